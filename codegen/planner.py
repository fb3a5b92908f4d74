"""From a graph to its plan: units as steps in order, where every value lies, and which memory is used again.

In: a graph of nodes that a backend supports (`backend.py`). Out: a `Plan` (`plan.py`). No code is written here.

Which nodes share a kernel is `fusion.py`'s affair, the kernels' loops are `fused.py`'s and the lowerings', places in
scratch memory are `arena.py`'s.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence

import numpy as np

from twofold.ir import dims as dm
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike

from . import (
    arena,
    epilogues,
    fusion,
    loop_info,
    loop_rows,
    prologues,
    row_blocks,
    structured,
    structured_draws,
    structured_products,
    structured_windows,
)
from .backend import Backend
from .layout import Layout, contiguous
from .operands import Library, Memory, PackedInput, Run, Slot, Within, Work, bytes_of, memory_in
from .plan import (
    UNBOUNDED,
    Aliases,
    Batch,
    Branch,
    Copy,
    Plan,
    RowBlocks,
    Shares,
    Step,
    Tree,
    While,
    batch_arguments,
    memory_of,
    owners,
    parts_of,
    slots_of,
)
from .units import FusionItem, Group, Grouping, Single, Source

__all__ = ["plan"]

_WORTH = 1 << 12  # simple operations of the larger of two maps from which they are run together
_PARTS = 64  # maps that are run together

structured.install()
structured_products.install()
structured_draws.install()
structured_windows.install()


def plan(graph: g.Graph, backend: Backend, donate: dict[int, int] | None = None, interruptible: bool = False,
         intact: bool = False, steady: Collection[int] = ()) -> Plan:
    """The plan of `graph`.

    Args:
        graph: of nodes that the backend supports.
        backend: that it is for.
        donate: output number -> number of an input of the same shape and dtype whose memory it may take, if that
            input is needed no more when the output is written.
        interruptible: whether loops ask if they are to end. `threads` then holds, behind the libraries' words, the
            address of what they ask (`runtime/interrupts.py: poll_words`).
        intact: whether a run that fails, or is interrupted, must leave inputs as they were: then none gives its memory
            away where that could happen after it was written.
        steady: numbers of inputs that stay the same in many runs: what products need of them is packed before the
            first (`Plan.packings`).
    """
    backend.prepare()
    if intact and interruptible and any(node.op is g.WHILE for node in graph.walk()):
        donate = None  # a loop that can be interrupted is a check that can fail late
    planner = _Planner(graph, donate or {}, backend, steady)
    if intact and planner.fails_late():
        planner = _Planner(graph, {}, backend, steady)
    return planner.finish(interruptible)


class _Planner:
    """The state that the graphs of a program share: its steps in order, and which values share memory."""

    def __init__(self, graph: g.Graph, donate: dict[int, int], backend: Backend, steady: Collection[int]) -> None:
        self.graph, self.backend = graph, backend
        self.steady = {graph.inputs[n] for n in steady}
        self.numbers: dict[Memory | Slot, int] = {graph.inputs[n]: n for n in steady}
        self.packings: dict[PackedInput, PackedInput] = {}  # each is its own key
        self.packed: dict[Memory, PackedInput] = {}  # memory that is filled before the first run
        self.steps: list[Step] = []
        self.touched: list[tuple[int, g.Value]] = []  # memory that is used between steps
        self.loops: list[tuple[While, int, int]] = []  # each with its steps
        self.blocks: list[RowBlocks] = []
        self.seen: set[Memory] = set()  # memory that has been used
        self.aliases: Aliases = {}
        self.groupings: list[Grouping] = []
        self.pieces: dict[Memory | Slot, Source] = {}  # copies of a piece of another value
        body = _Body(self, graph, donate, steady=self.steady)
        self.tree = body.steps()
        self.outputs, self.donated = body.outputs, body.donated

    def fails_late(self) -> bool:
        """Whether a check can fail in or after the first step that writes memory which was given away."""
        checks = [n for n, step in enumerate(self.steps) if step.codes]
        if not self.donated or not checks:
            return False
        if self.loops:
            return True
        given = {self.graph.inputs[n] for n in self.donated.values()}
        writes = [n for n, step in enumerate(self.steps) if not given.isdisjoint(self.written(step))]
        return not writes or writes[0] <= checks[-1]

    def written(self, step: Step) -> list[Memory]:
        """The memory that a step writes its results to."""
        memory = set(owners(self.aliases, step.memory()))
        parts = [item.into.base for item in step.items if item.into is not None]
        return [owner for owner in owners(self.aliases, [*_results(step), *parts]) if owner in memory]

    def finish(self, interruptible: bool) -> Plan:
        """The plan, with places for all memory that the steps use, and the work of a run."""
        self.widen()
        self.share_rows()
        results = dm.symbols_of([d for v in self.graph.outputs for d in v.dims])  # of an empty result no step may tell
        symbols = sorted(self.graph.symbols().union(results, *[self.symbols_of(s) for s in self.steps]))
        buffers, constants = self.place()
        blocks = self.temporaries(buffers)
        layout = arena.plan(blocks)
        work: DimLike = UNBOUNDED if self.loops else 0
        by_rows = {n for loop, first, last in self.loops if loop.rows is not None for n in range(first, last + 1)}
        by_rows.update(n for blocks in self.blocks for n in blocks.steps)
        for number, step in enumerate(self.steps):
            amount = step.total * step.weight
            if not self.loops:
                work = work + amount
            for part in parts_of(step) if isinstance(step.kernel, Batch) else ():
                part.shares = self.shares(part.total, part.total * part.weight)
            step.shares = None if number in by_rows else self.shares(step.total, amount)
        return Plan(self.graph, self.outputs, constants, symbols, self.steps, self.tree, buffers, layout.offsets,
                    layout.size, blocks, layout.sums, self.aliases, self.donated, self.libraries(), work,
                    self.groupings, interruptible, list(self.packings.values()), self.worth_packing())

    def keep(self, runs: Sequence[Run]) -> list[Run]:
        """The runs that are left where those that pack what stays the same are done before."""
        return [run for run in runs if not self.packs_before(run)]

    def packs_before(self, run: Run) -> bool:
        """Whether a run packs what stays the same in many runs; if so, it is noted."""
        if not run.fixed or not isinstance(run.kernel, Library):
            return False
        work, operands = run.arguments[0], [a for a in run.arguments[1:] if memory_in(a) is not None]
        integers = [a for a in run.arguments if type(a) is int]
        places = {memory_in(operand) for operand in operands}
        if not isinstance(work, Work) or len(places) != 1 or 1 + len(operands) + len(integers) < len(run.arguments):
            return False
        value, at = places.pop() or (work, 0)
        owner, offset = self.origin(value)
        number, offset = self.numbers.get(owner), offset + at
        if number is None or isinstance(offset, Dim) or isinstance(work.size, Dim) or isinstance(run.total, Dim):
            return False
        made = PackedInput(run.kernel, number, offset * value.dtype.size, len(operands), tuple(integers), run.total,
                       work.size, work.dtype)
        self.packed[work] = self.packings.setdefault(made, made)
        return True

    def origin(self, value: Memory) -> tuple[Memory | Slot, DimLike]:
        """The value in whose memory another one's elements are, or were before they were copied, and the number of the
        first."""
        owner, offset = memory_of(self.aliases, value), 0
        while (piece := self.pieces.get(owner)) is not None:
            owner, offset = memory_of(self.aliases, piece.base), offset + piece.layout.offset
        return owner, offset

    def worth_packing(self) -> list[int]:
        """The numbers of inputs that are worth packing once for many runs, if they stay the same."""
        worth = {self.origin(v)[0] for grouping in self.groupings for v in grouping.packed}
        given = self.donated.values()
        return [n for n, v in enumerate(self.graph.inputs) if v in worth and n not in given]

    def share_rows(self) -> None:
        """Finds the loops that threads share as a whole."""
        for loop, first, last in self.loops:
            works = [step.total * step.weight for step in self.steps[first:last + 1]]
            known = [work for work in works if not isinstance(work, Dim)]
            if len(known) == len(works):
                how = functools.partial(self.backend.shares_rounds, known)
                loop.rows = loop_rows.row_shares(loop, self.steps, self.aliases, how)

    def shares(self, total: DimLike, work: DimLike) -> Shares | None:
        """How threads may share a step; None where there is but one iteration, or too little to do."""
        alone = not isinstance(total, Dim) and total <= 1
        return None if alone else self.backend.shares(work)

    def symbols_of(self, step: Step) -> frozenset[str]:
        """The symbols that the arguments and memory of a step depend on."""
        memory = step.memory()
        sizes = [*step.arguments, *[a.offset for a in step.arguments if isinstance(a, Within)],
                 *[bytes_of(a) for a in memory], step.total, step.weight]
        sizes += [size for a in slots_of(self.aliases, memory) for size in (a.skip, a.stride, a.offset)]
        return dm.symbols_of([a for a in sizes if isinstance(a, Dim)])

    def temporaries(self, buffers: dict[Memory, int]) -> list[arena.Block]:
        """The blocks of the arena, with the first and last step that each is live at."""
        live: dict[Memory, list[int]] = {}
        uses: list[tuple[int, Sequence[Memory]]] = [(n, step.memory()) for n, step in enumerate(self.steps)]
        uses += [(n, [v]) for n, v in self.touched]
        for number, memory in sorted(uses, key=lambda use: use[0]):
            for a in owners(self.aliases, memory):
                if a not in buffers:
                    live.setdefault(a, [number, number])[1] = number
        for loop, first, last in self.loops:  # what is made before a loop and used in it is used in every round
            for span in live.values():
                if span[0] < first <= span[1] <= last:
                    span[1] = last
                elif loop.rows is not None and span[0] <= last and first <= span[1]:  # threads are in different rounds
                    span[:] = min(span[0], first), max(span[1], last)
        sizes: dict[Memory, DimLike] = {}
        for blocks in self.blocks:  # which are at any of their steps
            first, last = blocks.steps[0], blocks.steps[-1]
            for span in live.values():
                if span[0] <= last and first <= span[1]:
                    span[:] = min(span[0], first), max(span[1], last)
            sizes.update((memory, blocks.parts * blocks.window(memory)) for memory in blocks.windows)
        return [arena.Block(a, sizes[a] if a in sizes else bytes_of(a), first, last)
                for a, (first, last) in live.items()]

    def place(self) -> tuple[dict[Memory, int], list[np.ndarray]]:
        """The number of the buffer of each input, output and constant; and the constants."""
        buffers: dict[Memory, int] = {v: n for n, v in enumerate(self.graph.inputs)}
        for n, v in enumerate(self.outputs):
            owner = memory_of(self.aliases, v)
            assert not isinstance(owner, Slot)
            buffers.setdefault(owner, len(self.graph.inputs) + n)
        start = len(self.graph.inputs) + len(self.outputs)
        constants: list[np.ndarray] = []
        used = [a for step in self.steps for a in step.memory()] + [a for _, a in self.touched]
        for a in owners(self.aliases, used):
            if isinstance(a, g.Value) and a not in buffers and (array := g.constant_of(a)) is not None:
                buffers[a] = start + len(constants)
                constants.append(np.ascontiguousarray(array))
        order = {packing: n for n, packing in enumerate(self.packings, start + len(constants))}
        buffers.update((work, order[packing]) for work, packing in self.packed.items())
        return buffers, constants

    def widen(self) -> None:
        """Takes one library kernel where another one of the program can do its work."""
        wider = self.backend.wider({step.kernel.key for step in self.steps if isinstance(step.kernel, Library)})
        for step in self.steps:
            if isinstance(step.kernel, Library):
                step.kernel = Library(wider.get(step.kernel.key, step.kernel.key))

    def libraries(self) -> list[Library]:
        """The kernels outside of the program: those that kernels call, then those that are steps."""
        called = [a for step in self.steps for a in step.arguments if isinstance(a, Library)]
        return list(dict.fromkeys([*called, *[s.kernel for s in self.steps if isinstance(s.kernel, Library)]]))


def _results(step: Step) -> list[g.Value]:
    results = [out for item in step.items for out in item.outs]
    return results if step.node is None else [*results, *step.node.outputs]


def _step_of(run: Run, node: g.Node | None, items: Sequence[FusionItem] = ()) -> Step:
    codes = () if isinstance(run.kernel, Library) else run.kernel.codes
    return Step(run.kernel, run.arguments, run.total, run.weight, list(items) if run.epilogue is not None else [], node,
                codes, run.detail, rows=run.rows, epilogue=run.epilogue)


def _step_for_blocks(step: Step, rows: int) -> list[Step]:
    """The steps of a product that is computed for blocks of so many rows."""
    blocking = next(way.blocking for way in step.rows if way.blocking is not None)
    return [_step_of(run, step.node, step.items) for run in blocking.runs(rows)]


class _Body:
    """One graph of a program, the function's or a region: its units as steps."""

    def __init__(self, shared: _Planner, graph: g.Graph, donate: dict[int, int],
                 loop: loop_info.LoopInfo | None = None, steady: Collection[g.Value] = ()) -> None:
        self.shared, self.graph, self.donate = shared, graph, donate
        self.inplace = {} if loop is None else {n: graph.inputs[n] for n in loop.writers}
        self.grouping = fusion.fuse(graph, shared.backend, loop, steady)
        shared.groupings.append(self.grouping)
        shared.pieces.update(self.grouping.pieces.items())
        shared.aliases.update(self.grouping.slots)
        self.donated: dict[int, int] = {}
        self.tree: Tree = []
        self.line: list[Step] = []  # that run one after another, and are not in the tree yet
        self.maps: dict[Step, Sequence[Memory]] = {}  # what steps write that are maps
        self.written: set[Memory] | None = None  # memory that the last step writes, where that is a map

    def steps(self) -> Tree:
        """The tree of steps."""
        for unit in self.grouping.units:
            if isinstance(unit, Single):
                unit.runs = self.shared.keep(unit.runs)
        self.settle_outputs()
        epilogues.attach(self.grouping, self.graph.inputs, self.outputs, self.donate,
                         self.shared.backend.caches)
        prologues.attach(self.grouping, self.outputs, self.inplace.values())
        self.find_uses()
        for unit in self.grouping.units:
            if isinstance(unit, Group):
                self.group(unit)
            elif unit.node.regions:
                self.control(unit)
            elif unit.epilogue is not None:
                self.product(unit, unit.epilogue)
            else:
                self.line += [step for _, step in self.begun(unit)]
        self.end_line(len(self.grouping.units))
        return self.tree

    def end_line(self, at: int) -> None:
        """Brings the steps since the last control flow, which is unit `at`, into the tree."""
        last: dict[Memory | Slot, int] = {}
        for value, needed in self.needed.items():
            memory = memory_of(self.shared.aliases, value)
            last[memory] = max(needed, last.get(memory, -1))
        line, self.line = self.line, []
        others = {memory_of(self.shared.aliases, v) for v in self.shared.seen.union(self.graph.inputs)}
        self.shared.seen.update(memory for step in line for memory in step.memory())
        for part in row_blocks.regions(
                line, self.shared.aliases, lambda memory: memory not in others and last.get(memory, at) < at,
                self.shared.backend.caches, self.shared.backend.threads(), _step_for_blocks):
            if isinstance(part, Step):
                self.add(part, self.maps.get(part))
            else:
                self.add_region(part)

    def add_region(self, region: row_blocks.RowRegion) -> None:
        """Appends steps that run block by block of rows."""
        shared, first = self.shared, len(self.shared.steps)
        shared.steps += region.steps
        work: DimLike = 0
        for step in region.steps:
            work = work + step.total * step.weight
        blocks = RowBlocks(list(range(first, len(shared.steps))), region.matrices, region.matrix, region.grain,
                           region.windows, row_blocks.parts(shared.backend.threads()), shared.backend.shares(work))
        shared.blocks.append(blocks)
        self.tree.append(blocks)
        self.written = None

    def add(self, step: Step, written: Sequence[Memory] | None = None) -> None:
        """Appends a step; `written` is the memory that a map writes, None for any other step."""
        steps = self.shared.steps
        batch = self.batched(step, written)
        if batch is not None:
            steps[-1] = batch
            return
        self.tree.append(len(steps))
        steps.append(step)
        self.written = None if written is None or step.codes else set(owners(self.shared.aliases, written))

    def batched(self, step: Step, written: Sequence[Memory] | None) -> Step | None:
        """The step before and this one as one, where both are maps that do not touch what the other writes."""
        steps = self.shared.steps
        if written is None or self.written is None or step.codes or not self.tree or self.tree[-1] != len(steps) - 1:
            return None
        before = steps[-1]
        parts = before.kernel.parts if isinstance(before.kernel, Batch) else [before]
        works = [p.total * p.weight for p in (*parts, step)]
        weights = [p.weight for p in (*parts, step) if not isinstance(p.weight, Dim)]  # those of maps are known
        if all(not isinstance(w, Dim) and w < _WORTH for w in works) or len(parts) >= _PARTS or \
                max(weights) > 4 * min(weights):
            return None
        mine = set(owners(self.shared.aliases, written))
        if not mine.isdisjoint(owners(self.shared.aliases, before.memory())) or \
                not self.written.isdisjoint(owners(self.shared.aliases, step.memory())):
            return None
        self.written |= mine
        parts = [*parts, step]
        arguments = batch_arguments(parts, [p.arguments for p in parts])
        total: DimLike = 0
        for p in parts:
            total = total + p.total
        return Step(Batch(parts), arguments, total, max(weights), [i for p in parts for i in p.items])

    # -- what must be in memory -------------------------------------------------------------------
    def settle_outputs(self) -> None:
        """Gives every output memory of its own, row-major; copies what is a view, an input or a constant."""
        self.outputs: list[g.Value] = []
        taken: set[g.Value] = set(self.graph.inputs)
        computed = {v for u in self.grouping.units for v in (
            (*u.full, *u.outer, *[s.base for s in u.into.values()]) if isinstance(u, Group) else u.outs)}
        for n, value in enumerate(self.graph.outputs):
            source = self.grouping.sources[value]
            if n in self.inplace:  # rounds change the memory of what is carried
                self.outputs.append(source.base)
                self.donated[n] = n
                continue
            whole = source.layout.is_contiguous() and dm.numel(source.layout.shape) == dm.numel(source.base.dims)
            if not whole or source.base in taken or source.base not in computed or source.base in self.grouping.slots:
                source = Source(self.copied(source), contiguous(value.dims))
            taken.add(source.base)
            self.outputs.append(source.base)

    def copied(self, source: Source) -> g.Value:
        """A new value with the elements of `source`, in the group of its last operand or one of its own."""
        copy = g.Value(source.layout.shape, source.base.dtype)
        fuser = fusion.resume(self.grouping, self.shared.backend)
        fuser.place(FusionItem("copy", [source], [copy], {}, lambda s, x: x, None, None))
        return copy

    def find_uses(self) -> None:
        """For each value in memory the last unit that touches it."""
        self.needed: dict[g.Value, int] = {}
        self.shared_reads: set[g.Value] = set()  # what several units read
        for unit in self.grouping.units:
            group = unit if isinstance(unit, Group) else unit.epilogue
            inside: set[g.Value] = set() if group is None else group.full.keys() | group.outer
            if isinstance(unit, Single) and group is not None:
                inside |= set(unit.outs)
            sources = list(unit.sources) if isinstance(unit, Single) else []
            for s in (*sources, *[s for i in (group.items if group is not None else ()) for s in i.sources]):
                if s.base not in inside:
                    self.use(s.base, unit.at)
            for value in self.grouping.slots.keys() & {*inside, *(unit.outs if isinstance(unit, Single) else ())}:
                self.use(value, unit.at)  # made in its slot, for whoever reads the array
        for value in self.outputs:
            self.needed[value] = len(self.grouping.units)
        for unit in self.grouping.units:
            if isinstance(unit, Group):
                for v, s in unit.into.items():
                    if s.base in self.grouping.slots:
                        self.use(s.base, unit.at)
                    if s.base in self.needed:
                        self.needed[v] = unit.at
        self.is_output = {v: n for n, v in enumerate(self.outputs)}
        self.is_input = {v: n for n, v in enumerate(self.graph.inputs)}

    def use(self, value: g.Value, at: int) -> None:
        """Notes that unit `at` touches the memory of `value`."""
        if self.needed.get(value, at) != at:
            self.shared_reads.add(value)
        self.needed[value] = max(at, self.needed.get(value, at))
        slot = self.grouping.slots.get(value)
        if slot is not None:
            self.use(slot.base, at)
            self.use(slot.index, at)

    # -- units to steps ---------------------------------------------------------------------------
    def group(self, group: Group) -> None:
        stored = [v for item in group.items for v in item.outs if v in self.needed]
        if not stored:
            return
        own = [v for v in stored if v not in group.into and v not in self.grouping.slots]
        overwrites = self.overwritten(group, own)
        self.shared.aliases.update(overwrites)
        taken = set(overwrites.values())
        stored = [v for v in stored if not self.carried(group, v, taken)]
        if not stored:
            return
        written = None if group.axes is not None or group.into else stored
        for kernel in self.shared.backend.kernels_of(group, stored, overwrites):
            step = Step(kernel.kernel, kernel.arguments, kernel.total, kernel.weight, kernel.items,
                        codes=kernel.kernel.codes, rows=kernel.rows)
            self.line.append(step)
            if written is not None:
                self.maps[step] = written

    def product(self, single: Single, group: Group) -> None:
        """A product with an epilogue."""
        result, (*before, (last, step)) = single.outs[0], self.begun(single)
        self.line += [step for _, step in before]
        stored = [v for item in group.items for v in item.outs if v in self.needed]
        if not stored:
            self.line.append(step)
            return
        overwrites = self.overwritten(group, stored, {result, *[s.base for s in single.sources]})
        self.shared.aliases.update(overwrites)
        run = self.shared.backend.finished(last, group, stored, overwrites, result, result in self.needed)
        finished = _step_of(run, single.node)
        finished.items = [*step.items, *group.items]
        self.line.append(finished)

    def begun(self, single: Single) -> list[tuple[Run, Step]]:
        """The runs of a unit, with its prologues, as steps."""
        steps = []
        for run in single.runs:
            begun = self.shared.backend.begun(run, single.prologues) if single.prologues else run
            step = _step_of(begun, single.node)
            if begun is not run:
                step.items = [item for group in single.prologues.values() for item in group.items]
            steps.append((begun, step))
        return steps

    def overwritten(self, group: Group, stored: Sequence[g.Value],
                    around: Collection[g.Value] = ()) -> dict[g.Value, g.Value]:
        """Which stored values take over the memory of a dying operand: each element is stored where it was read, and
        not before all else that is read there; `around` are operands that are read elsewhere, too."""
        if group.axes is not None and not group.rowwise:
            return {}
        elsewhere = self.around_slots(group)
        layouts: dict[g.Value, set[Layout]] = {}
        for item in group.items:
            for s in item.sources:
                layouts.setdefault(s.base, set()).add(s.layout)
        dying = [base for base, ways in layouts.items() if base not in group.full and len(ways) == 1
                 and base not in elsewhere and base not in around and self.needed.get(base) == group.at
                 and base not in self.is_output
                 and (way := next(iter(ways))).is_contiguous() and way.shape == group.space
                 and way.shape == base.dims]
        if group.axes is not None:
            early = group.reduced()
            stored = [v for v in stored if v in group.full and v not in early]  # which the last pass stores
            dying = [base for base in dying if base in self.shared_reads]  # what is read here alone may be a window
        taken: dict[g.Value, g.Value] = {}
        for value in stored:
            base = next((b for b in dying if b.dtype is value.dtype and self.may_take(value, b)), None)
            if base is not None:
                dying.remove(base)
                taken[value] = base
        return taken

    def around_slots(self, group: Group) -> set[g.Value]:
        """The arrays whose slots a group reads: the group needs elements of these at other places too."""
        around: set[g.Value] = set()
        for value in {s.base for item in group.items for s in item.sources}:
            while (slot := self.grouping.slots.get(value)) is not None:
                value = slot.base
                around.add(value)
        return around

    def carried(self, group: Group, value: g.Value, taken: set[g.Value]) -> bool:
        """Whether `value` is a copy of a whole operand that dies here, so that nothing needs copying.

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
        self.shared.aliases[part.base] = base
        taken.add(base)
        return True

    def may_take(self, value: g.Value, base: g.Value) -> bool:
        """Whether `value` may have the memory of `base`, whose elements nobody needs any more."""
        if value in self.grouping.slots or base in self.grouping.slots:
            return False
        number, of_input = self.is_output.get(value), self.is_input.get(base)
        if number is None and of_input is None:
            return base.node is None or base.node.op not in (g.CONSTANT, g.SIZE)
        if number is None or of_input is None or self.donate.get(number) != of_input:
            return False
        self.donated[number] = of_input
        return True

    # -- control flow -----------------------------------------------------------------------------
    def control(self, single: Single) -> None:
        self.end_line(single.at)
        if single.node.op is g.COND:
            self.branch(single)
        else:
            self.loop(single)

    def region(self, graph: g.Graph, operands: Sequence[g.Value], donate: dict[int, int],
               loop: loop_info.LoopInfo | None = None) -> _Body:
        """A region whose inputs lie where `operands` do."""
        steady = {v for v, operand in zip(graph.inputs, operands, strict=True)
                  if self.shared.origin(operand)[0] in self.shared.steady}
        body = _Body(self.shared, graph, donate, loop, steady)
        self.shared.aliases.update(zip(graph.inputs, operands, strict=True))
        return body

    def branch(self, single: Single) -> None:
        node, operands = single.node, [s.base for s in single.sources]
        sides = []
        self.touch(operands)
        for graph in node.regions:
            body = self.region(graph, operands[1:], {})
            sides.append(body.steps())
            self.shared.aliases.update(zip(body.outputs, node.outputs, strict=True))
        self.touch([*operands, *node.outputs])
        self.tree.append(Branch(operands[0], sides[0], sides[1], node))

    def loop(self, single: Single) -> None:
        """The carried values lie in the memory of the results; a round leaves there what the next begins with."""
        node, operands = single.node, [s.base for s in single.sources]
        count, loop = node.attrs["carried"], loop_info.analyse(node)
        begin = [(operand, out) for n, (operand, out) in enumerate(zip(operands, node.outputs, strict=False))
                 if n not in loop.filled]
        self.touch([*[operand for operand, _ in begin], *operands[count:], *node.outputs])
        self.tree += [Copy(operand, out) for operand, out in begin]
        state = [*node.outputs, *operands[count:]]
        test = self.region(node.regions[0], state, {})
        body = self.region(node.regions[1], state, {n: n for n in range(count)}, loop)
        for unit in body.grouping.units:
            if isinstance(unit, Single):  # what is the same in all rounds
                for run in self.shared.keep(unit.runs):
                    if run.fixed:
                        self.add(_step_of(run, unit.node))
                unit.runs = [run for run in unit.runs if not run.fixed]
        first = len(self.shared.steps)
        before = test.steps()
        rounds = body.steps()
        for n, (value, out) in enumerate(zip(body.outputs, node.outputs, strict=True)):
            if n not in body.donated:
                rounds.append(Copy(value, out))
        self.touch([*state, *body.outputs, test.outputs[0]])
        for step in self.shared.steps[first:]:
            step.loops = (node, *step.loops)
        loop_of = While(before, test.outputs[0], rounds, node)
        self.shared.loops.append((loop_of, first, max(len(self.shared.steps) - 1, first)))
        self.tree.append(loop_of)

    def touch(self, values: Sequence[g.Value]) -> None:
        """Notes that memory is used between the last step and the next one."""
        at = len(self.shared.steps)
        self.shared.seen.update(values)
        self.shared.touched += [(n, v) for v in values for n in (max(at - 1, 0), at)]
