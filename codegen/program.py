"""A graph of native ops as one LLVM module: kernels, and an entry that runs them one after another.

In: a graph that holds nothing but native nodes (`is_native`). Out: a `Program`: the module's text, which values the
entry takes and gives, how much memory it needs between kernels, and what a failed check means.

    int64 entry(ptr buffers, ptr sizes, ptr arena, ptr threads)

`buffers` holds the addresses of inputs, outputs and constants, all row-major; `sizes` the values of the symbols; the
arena is scratch memory of `arena` bytes, aligned to a cache line; `threads` holds [fork-join function, its context,
address of the number of threads] (`runtime/threads.py`), then the addresses of library kernels. The result is 0, or
(number of the step + 1) << 16 | status. Where sizes are unknown there is a second function, `plan` (`sizes.py`).

Which nodes share a kernel is `fusion.py`'s affair, the kernels' loops are `fused.py`'s, what the entry is made of
`program_steps.py`'s and `program_entry.py`'s, linking the runtime's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike

from . import alike, arena, fused, fusion, library, llvm_cpu, loops, sizes, slots, structured, structured_windows
from .arena import Block
from .fusion import Group, Single, Source
from .layout import contiguous
from .program_entry import Entry
from .program_steps import Batch, Copy, If, Loop, Step, batch_arguments, bytes_of, is_shared

__all__ = ["Program", "Step", "compile_graph", "Outline", "outline", "is_native", "UNBOUNDED"]

_INLINE = 6  # kernels up to which they are written into the entry
_SHORT = 1 << 12  # iterations up to which a kernel is compiled for little code rather than for long ranges
_WORTH = 1 << 12  # simple operations of the larger of two maps from which they are run together
_PARTS = 64  # maps that are run together
UNBOUNDED = 1 << 62  # the work of a program with loops
_I64, _PTR = ir.IntType(64), ir.PointerType()


@dataclass(eq=False)
class Program:
    """A compiled graph before machine code.

    Attributes:
        module: the LLVM module as text; `entry` is its one external function.
        inputs, outputs: values of the graph, in the order of the buffers.
        constants: arrays that follow them.
        symbols: the order of `sizes`.
        arena: bytes of scratch memory.
        steps: what the entry runs.
        donated: output number -> the number of the input whose memory it is to be given, where it may be.
        libraries: kernels whose addresses the entry expects in the table behind the threads' words.
        work: simple operations of a run.
        blocks: what lies in the arena.
    """

    module: str
    inputs: list[g.Value]
    outputs: list[g.Value]
    constants: list[np.ndarray]
    symbols: list[str]
    arena: DimLike
    steps: list[Step]
    places: dict[Any, Any]
    donated: dict[int, int]
    libraries: list[Any]
    offsets: dict[Any, DimLike]
    memory_of: Callable[[Any], Any]
    work: DimLike
    blocks: list[Block]

    def place_of(self, of: Any) -> tuple[int | None, DimLike] | None:
        """The buffer, or None for the arena, and the byte in it at which the memory of a value begins; None for one in
        a slot, which lies elsewhere in every round."""
        of = self.memory_of(of)
        if isinstance(of, slots.Slot):
            return None
        return (self.places[of], 0) if of in self.places else (None, self.offsets[of])


structured.install()
structured_windows.install()


def is_native(node: g.Node) -> bool:
    """Whether a node can be part of a program."""
    if node.op in (g.CONSTANT, g.SIZE):
        return node.op is g.SIZE or node.attrs["value"].dtype != object
    if any(v.dtype.name == "string" for v in (*node.inputs, *node.outputs)):
        return False
    if isinstance(node.op, g.Construct):
        if node.op in (g.PUSH, g.POP, g.ASSERT):
            return library.handles(node)
        return node.op in (g.COND, g.WHILE) and _is_steady(node) and all(
            is_native(inner) for region in node.regions for inner in region.nodes)
    if node.op.view is not None or node.op.body is not None or node.op.reduction is not None:
        return True
    return library.handles(node)


def _is_steady(node: g.Node) -> bool:
    """Whether the sizes of what control flow carries and gives are known before it begins."""
    outside = {name for v in node.inputs for d in v.dims if isinstance(d, Dim) for name in d.symbols()}
    if any(isinstance(d, Dim) and not d.symbols() <= outside for r in node.regions for v in r.inputs for d in v.dims):
        return False  # a region has a name of its own for a size
    if node.op is g.COND:
        return all(r.outputs[n].dims == v.dims for r in node.regions for n, v in enumerate(node.outputs))
    test, body = node.regions
    count = node.attrs["carried"]
    return all(v.dims == w.dims == out.dims == body.inputs[n].dims == test.inputs[n].dims
               for n, (v, w, out) in enumerate(zip(node.inputs[:count], body.outputs, node.outputs, strict=True)))


def compile_graph(graph: g.Graph, name: str, donate: dict[int, int] | None = None, timed: bool = False,
                  interruptible: bool = False, intact: bool = False) -> Program:
    """The program of `graph`.

    Args:
        graph: of native nodes only.
        name: of the entry; names of programs linked together must differ.
        donate: output number -> number of an input of the same shape and dtype whose memory it may take, if that
            input is needed no more when the output is written.
        timed: whether the entry counts how long each step takes. `threads` then holds two words more, behind that of
            `interruptible`: the address of C's `clock_gettime`, and that of an int64 of nanoseconds for each step, to
            which a run adds.
        interruptible: whether loops ask if they are to end. `threads` then holds, behind the libraries' words, the
            address of what they ask (`runtime/interrupts.py: poll_words`).
        intact: whether a run that fails, or is interrupted, must leave inputs as they were: then none gives its memory
            away where that could happen after it was written.
    """
    if intact and interruptible and any(node.op is g.WHILE for node in graph.walk()):
        donate = None  # a loop that can be interrupted is a check that can fail late
    compiler = Compiler(graph, name, donate or {}, timed, interruptible)
    blocks = compiler.plan()
    if intact and compiler.fails_late():
        compiler = Compiler(graph, name, {}, timed, interruptible)
        blocks = compiler.plan()
    return compiler.run(blocks)


class Outline(NamedTuple):
    """What a program would be: its kernels, whose memory each value has, and what lies in the arena, where; and for
    values that one kernel leaves to others, in loops and branches too, why they are not one (`fusion.Plan.reasons`)."""

    steps: list[Step]
    memory_of: Callable[[Any], Any]
    arena: DimLike
    blocks: list[arena.Block]
    offsets: dict[Any, DimLike]
    reasons: dict[g.Value, str]


def outline(graph: g.Graph) -> Outline:
    """What `compile_graph` would make of `graph`, found without writing any code."""
    compiler = Compiler(graph, "entry", {})
    blocks = compiler.plan()
    reasons = {value: text for plan in compiler.fused for value, text in plan.reasons().items()}
    return Outline(compiler.steps, compiler.memory_of, compiler.arena, blocks, compiler.offsets, reasons)


class Compiler:
    """What all graphs of a program share: steps in order, which memory is whose."""

    def __init__(self, graph: g.Graph, name: str, donate: dict[int, int], timed: bool = False,
                 interruptible: bool = False) -> None:
        self.graph, self.name, self.timed, self.interruptible = graph, name, timed, interruptible
        self.steps: list[Step] = []
        self.touched: list[tuple[int, g.Value]] = []  # memory that is used between steps
        self.loops: list[tuple[int, int]] = []  # the steps of each loop
        self.constants: list[np.ndarray] = []
        self.same: dict[Any, Any] = {}
        self.fused: list[fusion.Plan] = []  # of the graph and its regions
        self.body = _Body(self, graph, donate)

    def plan(self) -> list[arena.Block]:
        """Finds the steps, and places for what lies between them."""
        self.tree = self.body.compile()
        self.outputs, self.donated = self.body.outputs, self.body.donated
        results = dm.symbols_of([d for v in self.graph.outputs for d in v.dims])  # of an empty result no step may tell
        self.symbols = sorted(self.graph.symbols().union(results, *[self.symbols_of(s) for s in self.steps]))
        self.places = self.place()
        blocks = self.temporaries()
        layout = arena.plan(blocks)
        self.offsets, self.arena, self.sums = layout.offsets, layout.size, layout.sums
        return blocks

    def fails_late(self) -> bool:
        """Whether a check can fail in or after the first step that writes memory which was given away."""
        checks = [n for n, step in enumerate(self.steps) if step.codes]
        if not self.donated or not checks:
            return False
        if self.loops:
            return True
        wanted = {self.outputs[n] for n in self.donated}
        made = {out: n for n, step in enumerate(self.steps) for out in _results(step)}
        return any(out not in made or made[out] <= max(checks) for out in wanted)

    def run(self, blocks: list[Block]) -> Program:
        """The program of what `plan` laid out."""
        self.work: DimLike = UNBOUNDED if self.loops else 0
        for step in () if self.loops else self.steps:
            self.work = self.work + step.total * step.weight
        module, libraries = self.emit()
        return Program(module, self.graph.inputs, self.outputs, self.constants, self.symbols, self.arena, self.steps,
                       self.places, self.donated, libraries, self.offsets, self.memory_of, self.work,
                       blocks)

    def memory_of(self, value: Any) -> Any:
        """The value whose memory `value` has, or the slot that it lies in."""
        while value in self.same:
            value = self.same[value]
        return value

    def owners(self, values: Sequence[Any]) -> list[Any]:
        """The values in whose memory others are found: for one in a slot, what that lies in, and the index."""
        return [a for a in self._places_of(values) if not isinstance(a, slots.Slot)]

    def slots_of(self, values: Sequence[Any]) -> list[slots.Slot]:
        """The slots that tell where values are found."""
        return [a for a in self._places_of(values) if isinstance(a, slots.Slot)]

    def _places_of(self, values: Sequence[Any]) -> list[Any]:
        found = [self.memory_of(a) for a in values]
        for a in found:  # which grows meanwhile
            if isinstance(a, slots.Slot):
                found += [self.memory_of(a.base), self.memory_of(a.index)]
        return found

    def symbols_of(self, step: Step) -> frozenset[str]:
        sizes = [*step.arguments, *[a.offset for a in step.arguments if isinstance(a, library.Within)],
                 *[bytes_of(a) for a in step.memory()], step.total, step.weight]
        sizes += [size for a in self.slots_of(step.memory()) for size in (a.skip, a.stride, a.offset)]
        return dm.symbols_of([a for a in sizes if isinstance(a, Dim)])

    def temporaries(self) -> list[arena.Block]:
        """What lies in the arena, with the steps at which it lives."""
        live: dict[Any, list[int]] = {}
        uses = [*[(n, step.memory()) for n, step in enumerate(self.steps)], *[(n, [v]) for n, v in self.touched]]
        for number, memory in sorted(uses, key=lambda use: use[0]):
            for a in self.owners(memory):
                if a not in self.places:
                    live.setdefault(a, [number, number])[1] = number
        for first, last in self.loops:  # what is made before a loop and used in it is used in every round
            for span in live.values():
                if span[0] < first <= span[1] <= last:
                    span[1] = last
        return [arena.Block(a, bytes_of(a), first, last) for a, (first, last) in live.items()]

    def place(self) -> dict[Any, Any]:
        """The number of the buffer of each input, output and constant."""
        places: dict[Any, Any] = {v: n for n, v in enumerate(self.graph.inputs)}
        for n, v in enumerate(self.outputs):
            v = self.memory_of(v)
            if v not in places:
                places[v] = len(self.graph.inputs) + n
        start = len(self.graph.inputs) + len(self.outputs)
        used = [a for step in self.steps for a in step.memory()] + [a for _, a in self.touched]
        for a in self.owners(used):
            if isinstance(a, g.Value) and a not in places and (array := g.constant_of(a)) is not None:
                places[a] = start + len(self.constants)
                self.constants.append(np.ascontiguousarray(array))
        return places

    @staticmethod
    def runs_of(step: Step) -> list[_Run]:
        """The kernels of a step."""
        parts = _parts(step)
        short = all(not isinstance(part.total, Dim) and part.total <= _SHORT for part in parts)
        return [_Run(part.kernel, short, not isinstance(part.total, Dim) and part.total == 1,
                     {slot: a for slot, a in enumerate(part.arguments) if type(a) is int}, len(part.arguments))
                for part in parts]

    def emit(self) -> tuple[str, list[Any]]:
        module = ir.Module(self.name)
        inline = len(self.steps) <= _INLINE
        functions: list[Any] = []
        known: dict[str, Any] = {}
        libraries = self.libraries = [*dict.fromkeys(
            a for step in self.steps for a in step.arguments if isinstance(a, library.Library))]
        runs = [run for step in self.steps for run in self.runs_of(step)]
        written = iter(zip(runs, alike.shared([(run.kernel, run.fixed, run.takes) for run in runs]), strict=True))
        for number, step in enumerate(self.steps):
            if isinstance(step.kernel, library.Library):
                if step.kernel not in libraries:
                    libraries.append(step.kernel)
                functions.append(libraries.index(step.kernel))
                continue
            parts = _parts(step)
            made = []
            for at, part in enumerate(parts):
                run, one = next(written)
                part.arguments = [*part.arguments, *one.values]
                text = f"{run.fixed} {sorted(one.slots.items())} {one.kernel}"
                if text not in known:
                    known[text] = llvm_cpu.emit_kernel(
                        module, one.kernel, f"{self.name}_k{number}_{at}", short=run.short, alone=run.alone,
                        numbers=run.numbers, constants=one.slots)
                    known[text].linkage = "internal"
                    if len(parts) > 1 or is_shared(part):
                        known[text].attributes.add("noinline")  # else each part, and one thread, had a copy
                    elif inline:
                        known[text].attributes.add("inlinehint")
                made.append(known[text])
            if len(parts) > 1:
                step.arguments = batch_arguments(parts)
            functions.append(_dispatcher(module, f"{self.name}_k{number}", parts, made) if len(parts) > 1 else made[0])
        Entry(self, module, functions).write()
        if self.symbols:
            dims = [d for v in self.graph.outputs for d in v.dims]
            sizes.write_plan(module, self.symbols, [self.arena, self.work, *dims], self.graph, self.sums)
        return str(module), libraries


class _Run(NamedTuple):
    """A kernel with what its code depends on besides: whether its ranges are short, or [0, 1); arguments that are
    known; and how many arguments there are."""

    kernel: Any
    short: bool
    alone: bool
    numbers: dict[int, int]
    takes: int

    @property
    def fixed(self) -> str:
        """All but the kernel, as text."""
        return f"{self.short} {self.alone} {self.numbers}"


def _parts(step: Step) -> list[Step]:
    """The kernel runs that a step consists of; none where it is a library's."""
    if isinstance(step.kernel, library.Library):
        return []
    return step.kernel.parts if isinstance(step.kernel, Batch) else [step]


def _results(step: Step) -> list[g.Value]:
    made = [out for item in step.items for out in item.outs]
    return made if step.node is None else [*made, *step.node.outputs]


class _Body:
    """One graph of a program, the function's or a region: its units as steps."""

    def __init__(self, shared: Compiler, graph: g.Graph, donate: dict[int, int],
                 loop: loops.Loop | None = None) -> None:
        self.shared, self.graph, self.donate = shared, graph, donate
        self.inplace = {} if loop is None else {n: graph.inputs[n] for n in loop.writers}
        self.plan = fusion.fuse(graph, lambda node: False, loop)
        shared.fused.append(self.plan)
        shared.same.update(self.plan.slots)
        self.donated: dict[int, int] = {}
        self.tree: list[Any] = []
        self.written: set[Any] | None = None  # memory that the last step writes, where that is a map

    def compile(self) -> list[Any]:
        """The tree of steps."""
        self.settle_outputs()
        self.find_uses()
        for unit in self.plan.units:
            if isinstance(unit, Group):
                self.group(unit)
            elif unit.node.regions:
                self.control(unit)
            else:
                for run in unit.runs:
                    self.run(run, unit.node)
        return self.tree

    def run(self, run: library.Run, node: g.Node) -> None:
        codes = () if isinstance(run.kernel, library.Library) else run.kernel.codes
        self.add(Step(run.kernel, run.arguments, run.total, run.weight, [], node, codes, run.detail))

    def add(self, step: Step, written: Sequence[Any] | None = None) -> None:
        """Appends a step; `written` is the memory that a map writes, None for any other step."""
        steps = self.shared.steps
        batch = self.batched(step, written)
        if batch is not None:
            steps[-1] = batch
            return
        self.tree.append(len(steps))
        steps.append(step)
        self.written = None if written is None or step.codes else set(self.shared.owners(written))

    def batched(self, step: Step, written: Sequence[Any] | None) -> Step | None:
        """The step before and this one as one, where both are maps that do not touch what the other writes."""
        steps = self.shared.steps
        if written is None or self.written is None or step.codes or not self.tree or self.tree[-1] != len(steps) - 1:
            return None
        before = steps[-1]
        parts = before.kernel.parts if isinstance(before.kernel, Batch) else [before]
        works = [p.total * p.weight for p in (*parts, step)]
        if all(not isinstance(w, Dim) and w < _WORTH for w in works) or len(parts) >= _PARTS or \
                max(p.weight for p in (*parts, step)) > 4 * min(p.weight for p in (*parts, step)):
            return None
        mine = set(self.shared.owners(written))
        if not mine.isdisjoint(self.shared.owners(before.memory())) or \
                not self.written.isdisjoint(self.shared.owners(step.memory())):
            return None
        self.written |= mine
        parts = [*parts, step]
        arguments = batch_arguments(parts)
        total: DimLike = 0
        for p in parts:
            total = total + p.total
        return Step(Batch(parts), arguments, total, max(p.weight for p in parts), [i for p in parts for i in p.items])

    # -- what must be in memory -------------------------------------------------------------------
    def settle_outputs(self) -> None:
        """Gives every output memory of its own, row-major; copies what is a view, an input or a constant."""
        self.outputs: list[g.Value] = []
        taken: set[g.Value] = set(self.graph.inputs)
        made = {v for u in self.plan.units for v in (
            (*u.full, *u.outer, *[s.base for s in u.into.values()]) if isinstance(u, Group) else u.outs)}
        for n, value in enumerate(self.graph.outputs):
            source = self.plan.sources[value]
            if n in self.inplace:  # rounds change the memory of what is carried
                self.outputs.append(source.base)
                self.donated[n] = n
                continue
            whole = source.layout.is_contiguous() and dm.numel(source.layout.shape) == dm.numel(source.base.dims)
            if not whole or source.base in taken or source.base not in made or source.base in self.plan.slots:
                source = Source(self.copied(source), contiguous(value.dims))
            taken.add(source.base)
            self.outputs.append(source.base)

    def copied(self, source: Source) -> g.Value:
        """A new value with the elements of `source`, in the group of its last operand or one of its own."""
        copy = g.Value(source.layout.shape, source.base.dtype)
        fuser = fusion.resume(self.plan)
        fuser.place(fusion.Item("copy", [source], [copy], {}, lambda s, x: x, None, None))
        return copy

    def find_uses(self) -> None:
        """For each value in memory the last unit that touches it."""
        self.needed: dict[g.Value, int] = {}
        for unit in self.plan.units:
            sources = unit.sources if isinstance(unit, Single) else [s for i in unit.items for s in i.sources]
            inside = set() if isinstance(unit, Single) else unit.full.keys() | unit.outer
            for s in sources:
                if s.base not in inside:
                    self.use(s.base, unit.at)
            for value in self.plan.slots.keys() & {*inside, *(unit.outs if isinstance(unit, Single) else ())}:
                self.use(value, unit.at)  # made in its slot, for whoever reads the array
        for value in self.outputs:
            self.needed[value] = len(self.plan.units)
        for unit in self.plan.units:
            if isinstance(unit, Group):
                for v, s in unit.into.items():
                    if s.base in self.plan.slots:
                        self.use(s.base, unit.at)
                    if s.base in self.needed:
                        self.needed[v] = unit.at
        self.is_output = {v: n for n, v in enumerate(self.outputs)}
        self.is_input = {v: n for n, v in enumerate(self.graph.inputs)}

    def use(self, value: g.Value, at: int) -> None:
        """Notes that unit `at` touches the memory of `value`."""
        self.needed[value] = max(at, self.needed.get(value, at))
        slot = self.plan.slots.get(value)
        if slot is not None:
            self.use(slot.base, at)
            self.use(slot.index, at)

    # -- units to steps ---------------------------------------------------------------------------
    def group(self, group: Group) -> None:
        stored = [v for item in group.items for v in item.outs if v in self.needed]
        if not stored:
            return
        same = self.overwritten(group, [v for v in stored if v not in group.into and v not in self.plan.slots])
        self.shared.same.update(same)
        taken = set(same.values())
        stored = [v for v in stored if not self.carried(group, v, taken)]
        if not stored:
            return
        written = None if group.axes is not None or group.into else stored
        for made in fused.kernels_of(group, stored, same):
            step = Step(made.kernel, made.arguments, made.total, made.weight, made.items, codes=made.kernel.codes)
            self.add(step, written)

    def overwritten(self, group: Group, stored: Sequence[g.Value]) -> dict[g.Value, g.Value]:
        """Which stored values take the memory of an operand that dies here: same element, same place."""
        if group.axes is not None:
            return {}
        elsewhere = self.around_slots(group)
        layouts: dict[g.Value, set[Any]] = {}
        for item in group.items:
            for s in item.sources:
                layouts.setdefault(s.base, set()).add(s.layout)
        dying = [base for base, ways in layouts.items() if base not in group.full and len(ways) == 1
                 and base not in elsewhere and self.needed.get(base) == group.at and base not in self.is_output
                 and (way := next(iter(ways))).is_contiguous() and way.shape == group.space
                 and way.shape == base.dims]
        found: dict[g.Value, g.Value] = {}
        for value in stored:
            base = next((b for b in dying if b.dtype is value.dtype and self.may_take(value, b)), None)
            if base is not None:
                dying.remove(base)
                found[value] = base
        return found

    def around_slots(self, group: Group) -> set[g.Value]:
        """The values of which items, in slots, are operands of a group: it needs their elements at other places too."""
        around: set[g.Value] = set()
        for value in {s.base for item in group.items for s in item.sources}:
            while (slot := self.plan.slots.get(value)) is not None:
                value = slot.base
                around.add(value)
        return around

    def carried(self, group: Group, value: g.Value, taken: set[g.Value]) -> bool:
        """Whether `value`, where it is a copy of a whole operand that dies here, needs no copying.

        The value it is part of then has the operand's memory, which is put into `taken`.
        """
        part = group.into.get(value)
        item = next((i for i in group.items if value in i.outs), None)
        if part is None or item is None or item.name != "carry":
            return False
        (source,), base = item.sources, item.sources[0].base
        inside = base in group.full or base in self.is_output or base in taken
        if inside or self.needed.get(base) != group.at or base.dtype is not part.base.dtype or \
                not source.layout.is_contiguous() or base.dims != part.base.dims or \
                source.layout.shape != part.layout.shape:
            return False
        if not self.may_take(part.base, base):
            return False
        self.shared.same[part.base] = base
        taken.add(base)
        return True

    def may_take(self, value: g.Value, base: g.Value) -> bool:
        """Whether `value` may have the memory of `base`, whose elements nobody needs any more."""
        if value in self.plan.slots or base in self.plan.slots:
            return False
        number, given = self.is_output.get(value), self.is_input.get(base)
        if number is None and given is None:
            return base.node is None or base.node.op not in (g.CONSTANT, g.SIZE)
        if number is None or given is None or self.donate.get(number) != given:
            return False
        self.donated[number] = given
        return True

    # -- control flow -----------------------------------------------------------------------------
    def control(self, single: Single) -> None:
        if single.node.op is g.COND:
            self.branch(single)
        else:
            self.loop(single)

    def region(self, graph: g.Graph, operands: Sequence[g.Value], donate: dict[int, int],
               loop: loops.Loop | None = None) -> _Body:
        """A region whose inputs lie where `operands` do."""
        body = _Body(self.shared, graph, donate, loop)
        self.shared.same.update(zip(graph.inputs, operands, strict=True))
        return body

    def branch(self, single: Single) -> None:
        node, operands = single.node, [s.base for s in single.sources]
        sides = []
        self.touch(operands)
        for graph in node.regions:
            body = self.region(graph, operands[1:], {})
            sides.append(body.compile())
            self.shared.same.update(zip(body.outputs, node.outputs, strict=True))
        self.touch([*operands, *node.outputs])
        self.tree.append(If(operands[0], *sides))

    def loop(self, single: Single) -> None:
        """The carried values lie in the memory of the results; a round leaves there what the next begins with."""
        node, operands = single.node, [s.base for s in single.sources]
        count, loop = node.attrs["carried"], loops.analyse(node)
        begin = [(operand, out) for n, (operand, out) in enumerate(zip(operands, node.outputs, strict=False))
                 if n not in loop.filled]
        self.touch([*[operand for operand, _ in begin], *operands[count:], *node.outputs])
        self.tree += [Copy(operand, out) for operand, out in begin]
        state = [*node.outputs, *operands[count:]]
        test = self.region(node.regions[0], state, {})
        body = self.region(node.regions[1], state, {n: n for n in range(count)}, loop)
        for unit in body.plan.units:
            if isinstance(unit, Single):  # what is the same in all rounds
                for run in unit.runs:
                    if run.fixed:
                        self.run(run, unit.node)
                unit.runs = [run for run in unit.runs if not run.fixed]
        first = len(self.shared.steps)
        before = test.compile()
        rounds = body.compile()
        for n, (value, out) in enumerate(zip(body.outputs, node.outputs, strict=True)):
            if n not in body.donated:
                rounds.append(Copy(value, out))
        self.touch([*state, *body.outputs, test.outputs[0]])
        for step in self.shared.steps[first:]:
            step.loops = (node, *step.loops)
        self.shared.loops.append((first, max(len(self.shared.steps) - 1, first)))
        self.tree.append(Loop(before, test.outputs[0], rounds))

    def touch(self, values: Sequence[g.Value]) -> None:
        """Notes that memory is used between the last step and the next one."""
        at = len(self.shared.steps)
        self.shared.touched += [(n, v) for v in values for n in (max(at - 1, 0), at)]


def _dispatcher(module: ir.Module, name: str, parts: Sequence[Step], functions: Sequence[ir.Function]) -> ir.Function:
    """The kernel of a `Batch`: each part runs over its share of the range."""
    fn = ir.Function(module, llvm_cpu.KERNEL, name)
    fn.linkage = "internal"
    b = ir.IRBuilder(fn.append_basic_block("entry"))
    start, stop, args = fn.args
    begin: Any = _I64(0)
    at = len(parts)
    for n, (part, function) in enumerate(zip(parts, functions, strict=True)):
        length = b.load(b.gep(args, [_I64(n)], source_etype=_I64), typ=_I64)
        low, high = b.sub(start, begin), b.sub(stop, begin)
        low = b.select(b.icmp_signed("<", low, _I64(0)), _I64(0), low)
        high = b.select(b.icmp_signed("<", high, length), high, length)
        with b.if_then(b.icmp_signed("<", low, high)):
            b.call(function, [low, high, b.gep(args, [_I64(at)], source_etype=_I64)])
        begin = b.add(begin, length)
        at += len(part.arguments)
    b.ret(_I64(0))
    return fn
