"""The text form of plans, for people and tests.

    plan norm {
      sizes of d0_0
      n0 = max((3*d0_0 + 4095)//4096, 1)
      ...
      %0 x: f32[d0_0,3] is input 0
      %1: f32[3,d0_0] is output 0 holds divide
      arena n5 bytes
      %2: f32[n0] at 64 in steps 0-1 holds partial results
      %3: f32[] at 0 in steps 1-3 holds reduce_sum, sqrt
      shared from work 65536 on, in parts of 32768 or more
      0: %2 = square_reduce_sum(%0; n0, 3*d0_0) over n0 x n2, shared
      1: %3 = reduce_sum tree(%2; 3*d0_0, n0, 1) over 1 x 4
      2: %3 = sqrt(%3) over 1 x 1
      3: %1 = divide(%3, %0; d0_0, d0_0 - 1) over 3*d0_0 x 3, shared
      work n6
    }

First the sizes that are computed from unknown ones, where their text is long. Then all memory, each piece with a
number: inputs, outputs, constants, and what is packed before; scratch memory with the byte of the arena at which it
begins and the steps between which it lives; and slots, whose place an integer tells while the program runs. Values that
share memory have one number; `holds` names the ops whose results are there, one after another. A result that takes over
an input's memory is that input. Last the steps in order, with branches and loops around them: what a kernel writes, its
name, what it reads and, behind a semicolon, the sizes that it gets; then its iterations x the simple operations of
each. Of a `shared` step threads may take parts. Steps in `by 28 of 8 x 2048 rows {` run for 28 rows, of 8 matrices of
2048 each, before the first of them runs for the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike

from . import gemm_shapes, statements
from .operands import Argument, Library, Memory, PartialResults, Slot, Within, Work, bytes_of
from .plan import UNBOUNDED, Batch, Branch, Copy, Plan, RowBlocks, RowShares, Shares, Step, Tree, parts_of

__all__ = ["text"]

_LONG = 12  # characters of a size that has no name of its own


def text(plan: Plan, kernels: bool = False) -> str:
    """The text of a plan.

    Args:
        plan: what to show.
        kernels: whether the loops of each kernel follow.

    >>> from twofold.codegen import plan_text, planner
    >>> from twofold.ir.graph_text import parse
    >>> from twofold.runtime.cpu import cpu
    >>> graph = parse("graph f(%0 x: f32[4]) { %1 = exp(%0) : f32[4] \\n return %1 }")
    >>> print(plan_text.text(planner.plan(graph, backend=cpu)))
    plan f {
      %0 x: f32[4] is input 0
      %1: f32[4] is output 0 holds exp
      0: %1 = exp(%0) over 4 x 5
      work 20
    }
    """
    return "\n".join(_PlanWriter(plan).lines(kernels))


class _PlanWriter:
    """Writes one plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.names: dict[Memory | Slot, str] = {}
        long = [size for size in self.all_sizes() if isinstance(size, Dim) and len(str(size)) > _LONG]
        self.short = {size: f"n{n}" for n, size in enumerate(dict.fromkeys(long))}

    def all_sizes(self) -> Iterator[Argument]:
        """The sizes that the text shows."""
        plan = self.plan
        for block in plan.blocks:
            yield from _dims(block.owner)
            yield plan.offsets[block.owner]
        yield plan.arena
        for step in plan.steps:
            for part in parts_of(step) or [step]:
                yield from [a.offset if isinstance(a, Within) else a for a in part.arguments]
                yield from (part.total, part.weight)
        yield plan.work

    def size(self, size: DimLike) -> str:
        """A size, by its short name where it has one."""
        return self.short.get(size, str(size)) if isinstance(size, Dim) else str(size)

    def lines(self, kernels: bool) -> Iterator[str]:
        plan = self.plan
        yield f"plan {plan.graph.name} {{"
        yield from self.indented([*self.sizes(), *self.buffers(), *self.arena(), *self.slots(), *self.sharing(),
                                  *self.tree(plan.tree), *self.cost()])
        yield "}"
        if kernels:
            shown = [part.kernel for step in plan.steps for part in parts_of(step)]
            yield from dict.fromkeys(map(str, shown))

    @staticmethod
    def indented(lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            yield f"  {line}"

    def sizes(self) -> Iterator[str]:
        """The sizes that are computed from the symbols."""
        if self.plan.symbols:
            yield f"sizes of {', '.join(self.plan.symbols)}"
        for size, name in self.short.items():
            yield f"{name} = {size}"

    # -- memory -----------------------------------------------------------------------------------
    def buffers(self) -> Iterator[str]:
        """The caller's memory."""
        plan = self.plan
        roles: dict[Memory, list[str]] = {v: [f"input {n}"] for n, v in enumerate(plan.inputs)}
        for n, value in enumerate(plan.outputs):
            owner = plan.memory_of(value)
            assert not isinstance(owner, Slot)
            roles.setdefault(owner, []).append(f"output {n}")
        first = len(plan.inputs) + len(plan.outputs)
        for memory, number in plan.buffers.items():
            if number >= first:
                packing = number - first - len(plan.constants)
                if packing < 0:
                    roles[memory] = [f"constant {number - first}"]
                else:
                    roles.setdefault(memory, []).append(f"packed before of input {plan.packings[packing].input}")
        for memory, names in roles.items():
            yield f"{self.named(memory, memory)} is {', '.join(names)}{self.holds(memory)}"

    def arena(self) -> Iterator[str]:
        """Scratch memory."""
        plan = self.plan
        windows = {memory: part for part in plan.row_blocks() for memory in part.windows}
        if plan.blocks:
            yield f"arena {self.size(plan.arena)} bytes"
        for block in plan.blocks:
            steps = f"step {block.first}" if block.first == block.last else f"steps {block.first}-{block.last}"
            at = self.size(plan.offsets[block.owner])
            text = f"{self.named(block.owner, block.owner)} at {at} in {steps}{self.holds(block.owner)}"
            part = windows.get(block.owner)
            each = "" if part is None or part.parts == 1 else f" for each of {part.parts} parts"
            yield text if part is None else f"{text}, {part.grain} rows of it{each}"

    def slots(self) -> Iterator[str]:
        """Values inside of others, at places that are told while the program runs."""
        used = set(self.plan.slots_of([a for step in self.plan.steps for a in step.memory()]))
        values = {slot: value for value, slot in self.plan.aliases.items() if isinstance(slot, Slot) and slot in used}
        heads = [self.named(slot, value) for slot, value in values.items()]
        for head, slot in zip(heads, values, strict=True):
            yield f"{head} in {self.name(slot.base)} from {self.first(slot)}"

    def first(self, slot: Slot) -> str:
        """The first element of a slot."""
        index, stride = self.at(slot.index, slot.skip), self.size(slot.stride)
        plain = not isinstance(slot.stride, Dim) or stride.isidentifier()
        scaled = index if slot.stride == 1 else f"{stride if plain else f'({stride})'}*{index}"
        return scaled if slot.offset == 0 else f"{scaled} + {self.size(slot.offset)}"

    def named(self, memory: Memory | Slot, value: Memory) -> str:
        """A new number for memory, with the type of the value that lies there."""
        number = self.names[memory] = f"%{len(self.names)}"
        name = f" {value.name}" if isinstance(value, g.Value) and value.name else ""
        return f"{number}{name}: {value.dtype.short}[{','.join(map(self.size, _dims(value)))}]"

    def holds(self, memory: Memory) -> str:
        """The ops whose results lie in memory, where it is no other's."""
        if isinstance(memory, Work):
            return " holds scratch"
        if isinstance(memory, PartialResults):
            return " holds partial results"
        values = [memory, *[v for v in self.plan.aliases if self.plan.memory_of(v) is memory]]
        ops = [v.node.op.name for v in values if v.node is not None and v.node.op is not g.CONSTANT]
        return f" holds {', '.join(dict.fromkeys(ops))}" if ops else ""

    def name(self, value: Memory) -> str:
        memory = self.plan.memory_of(value)
        return self.names.get(memory, "%?")

    def at(self, value: Memory, offset: DimLike) -> str:
        return self.name(value) if offset == 0 else f"{self.name(value)}[{self.size(offset)}:]"

    # -- steps ------------------------------------------------------------------------------------
    def sharing(self) -> Iterator[str]:
        """From which work threads share steps."""
        every = {(s.shares.least, s.shares.grain): s.shares for s in self.plan.steps if s.shares is not None}
        for shares in every.values():
            yield f"shared from work {shares.least} on, in parts of {shares.grain} or more"

    def tree(self, tree: Tree) -> Iterator[str]:
        for part in tree:
            if isinstance(part, int):
                yield from self.step(part)
            elif isinstance(part, Copy):
                if self.plan.memory_of(part.source) is not self.plan.memory_of(part.to):
                    size = self.size(bytes_of(part.to))
                    yield f"{self.name(part.to)} = copy of {self.name(part.source)}, {size} bytes"
            elif isinstance(part, Branch):
                yield f"if {self.name(part.test)} {{"
                yield from self.indented(self.tree(part.then))
                yield "} else {"
                yield from self.indented(self.tree(part.otherwise))
                yield "}"
            elif isinstance(part, RowBlocks):
                yield self.blocks(part)
                yield from self.indented(self.tree(list(part.steps)))
                yield "}"
            else:
                yield f"loop{_rows(part.rows)} {{"
                yield from self.indented([*self.tree(part.before), f"end unless {self.name(part.test)}",
                                          *self.tree(part.body)])
                yield "}"

    def blocks(self, part: RowBlocks) -> str:
        """The head of steps that run block by block of rows."""
        each = f"{self.size(part.matrices)} x {self.size(part.matrix)}"
        return f"by {part.grain} of {each} rows{_sharing(part.how, part.blocks)} {{"

    def step(self, number: int) -> Iterator[str]:
        step = self.plan.steps[number]
        if not isinstance(step.kernel, Batch):
            yield f"{number}: {self.kernel_run(step)}{_sharing(step.shares, step.total)}{_checks(step)}"
            return
        yield f"{number}: side by side{_sharing(step.shares, step.total)} {{"
        yield from self.indented(map(self.kernel_run, step.kernel.parts))
        yield "}"

    def kernel_run(self, step: Step) -> str:
        """One kernel: what it writes, its name, what it reads, sizes; iterations and the work of one."""
        reads, writes = _accesses(step)
        operands: list[tuple[int, str]] = []
        sizes = []
        for n, a in enumerate(step.arguments):
            if isinstance(a, (g.Value, PartialResults, Work)):
                operands.append((n, self.name(a)))
            elif isinstance(a, Within):
                operands.append((n, self.at(a.value, a.offset)))
            else:
                sizes.append(a.name if isinstance(a, (Library, statements.Kernel)) else self.size(a))
        written = [text for n, text in operands if n in writes]
        read = [text for n, text in operands if n in reads or n not in writes]
        left = f"{', '.join(dict.fromkeys(written))} = " if written else ""
        right = f"({', '.join(read)}{'; ' if sizes else ''}{', '.join(sizes)})"
        return f"{left}{step.name}{right} over {self.size(step.total)} x {self.size(step.weight)}"

    def cost(self) -> Iterator[str]:
        yield f"work {'unknown' if self.plan.work == UNBOUNDED else self.size(self.plan.work)}"


def _dims(memory: Memory) -> Sequence[DimLike]:
    return (memory.size,) if isinstance(memory, (Work, PartialResults)) else memory.dims


def _sharing(shares: Shares | None, total: DimLike) -> str:
    if shares is None:
        return ""
    if isinstance(shares.work, Dim) or isinstance(total, Dim):
        return ", shared"
    return f", shared by {min(shares.work // shares.grain, total)} or less"


def _rows(rows: RowShares | None) -> str:
    if rows is None:
        return ""
    private = f", each {len(rows.private)} numbers of its own" if rows.private else ""
    return f", threads share {rows.rows} rows, {rows.grain} or more each{private}"


def _checks(step: Step) -> str:
    texts = dict.fromkeys(step.failed(n + 1)[1] for n in range(len(step.codes)))
    return f", checks {'; '.join(texts)}" if texts else ""


def _accesses(step: Step) -> tuple[set[int], set[int]]:
    """The places in the args array of memory that a kernel reads, and of memory that it writes."""
    if isinstance(step.kernel, Library):  # results come first, those of an epilogue behind
        writes = set(step.results())
        reads = set(range(1, len(step.arguments))) - writes
        if step.epilogue is not None:  # what it writes over an operand is read, too
            first = len(step.arguments) - len(step.epilogue.arguments) - gemm_shapes.TILE_WORDS
            reads |= {first + n for n in statements.accesses(step.epilogue.kernel)[0] if n >= gemm_shapes.TILE_WORDS}
        return reads, writes
    assert isinstance(step.kernel, statements.Kernel)  # a batch's parts are asked for one by one
    return statements.accesses(step.kernel)
