"""Reductions on a GPU that go another way than on processors: columns side by side, and the tree over chunks.

The order is the one of all reductions (`reduce.py`, `docs/numerics.md`), and so are the bits. Accumulators are in
registers of threads, and go from thread to thread through shared memory or within a warp, where a processor has them on
its stack: of thousands of threads, stacks would be far away. Rows and chunks of rows are reduced by `reduce.rows`, each
by a warp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twofold.ir import dtypes as dt
from twofold.ir.scalar import Scalar

from .lanes import LANES
from .loop import TEAM, Cell, Kernel, LoopBuilder, Pointer, TeamBuilder
from .loop_sizes import covering, parted
from .reduce import CHUNK, OwnAccumulators, ReductionSpec

__all__ = ["COLUMNS", "THREADS", "FEW_CHUNKS", "JOINED", "sweep_columns", "columns", "blocks", "tree", "short_tree"]

COLUMNS = TEAM  # that a block reduces side by side: neighbours, read by the threads of a warp
_TOGETHER = 4  # lanes of a column that a thread has
_APART = LANES // _TOGETHER  # threads that share a column
THREADS = COLUMNS * _APART  # of a block
_LEVELS = 6  # of the tree over chunks that a thread has in registers
FEW_CHUNKS = 1 << _LEVELS  # that `short_tree` takes at most
_EACH = 16  # accumulators that a thread of `blocks` joins
JOINED = THREADS * _EACH  # that a block does
_DEPTH = 4  # powers of TEAM that chunks of `tree` have at most


def sweep_columns(b: TeamBuilder, specs: Sequence[ReductionSpec], count: Scalar,
                  take: Callable[[Scalar, Sequence[OwnAccumulators]], None]) -> list[OwnAccumulators]:
    """Reduces a chunk of each of COLUMNS columns, thread number c of each warp having part of column c; gives the
    accumulators of each reduction, which are complete in the threads of the first warp.

    Args:
        b: of a team of THREADS.
        specs: the reductions.
        count: how many elements; the same for all threads.
        take: `take(i, into)` has an accumulator of each reduction take element number i of this thread's column.
    """
    first = b.shr(b.thread(), TEAM.bit_length() - 1)  # of this thread's lanes, which are _APART apart
    lanes = [first + n * _APART for n in range(_TOGETHER)]
    own = [[OwnAccumulators(b, spec) for spec in specs] for _ in lanes]
    whole = b.shr(count, LANES.bit_length() - 1) * LANES
    with b.for_(0, whole, LANES) as row:
        for lane, into in zip(lanes, own, strict=True):
            take(row + lane, into)
    for lane, into in zip(lanes, own, strict=True):
        with b.if_(b.lt(whole + lane, count)):
            take(whole + lane, into)
    half = _TOGETHER // 2
    while half:
        for lane, into, other in zip(lanes, own, own[half:2 * half], strict=False):
            with b.if_(b.lt(lane + half * _APART, count)):
                for x, y in zip(into, other, strict=True):
                    x.join(y.get(lane))
        half //= 2
    memory = [[b.shared(d, THREADS) for d in spec.acc_dtypes] for spec in specs]
    half = _APART // 2
    while half:
        _meet(b, own[0], memory, first, half, count)
        half //= 2
    return own[0]


def _meet(b: TeamBuilder, own: Sequence[OwnAccumulators], memory: Sequence[Sequence[Pointer]], lane: Scalar, half: int,
          count: Scalar) -> None:
    """The upper half of the lanes that are left joins the lower one. Each half writes to a place of its own, so that
    one barrier is enough."""
    with b.if_(b.and_(b.ge(lane, half), b.lt(lane, 2 * half))):
        for x, places in zip(own, memory, strict=True):
            for place, value in zip(places, x.get(lane), strict=True):
                b.store(place, b.thread(), value)
    b.barrier()
    with b.if_(b.and_(b.lt(lane, half), b.lt(lane + half, count))):
        for x, places in zip(own, memory, strict=True):
            x.join([b.load(place, b.thread() + half * TEAM) for place in places])


def columns(spec: ReductionSpec, mask: str, partial: bool) -> Kernel:
    """Reduces a chunk of COLUMNS neighbouring outputs; the range numbers chunks, and in each of them such outputs.

    args: addresses of the outputs (or of accumulators, those of a chunk behind those of the one before) and inputs; the
    number of elements of an output; how many outputs there are; each input's stride along the reduced dimension; each
    `g` input's stride from one output to the next, less 1. Outputs are neighbours. Strides count elements.

    Args:
        mask: how each input moves from one output to the next: `v` stride 1, `s` stride 0, `g` any.
        partial: whether it ends in accumulators, which `tree` joins; else there is one chunk.
    """
    b = TeamBuilder(f"{spec.name} columns by blocks {mask}{' partial' if partial else ''}", THREADS)
    outs = [b.pointer(f"out{n}", d) for n, d in enumerate(spec.acc_dtypes if partial else spec.out_dtypes)]
    ins = [b.pointer(f"in{n}", d) for n, d in enumerate(spec.in_dtypes)]
    total, outputs = b.integer(), b.integer()
    down = [b.integer() for _ in ins]
    steps = [b.stride() if letter == "g" else b.const(int(letter == "v"), dt.int64) for letter in mask]
    tiles = covering(b, outputs, COLUMNS)
    with b.for_(b.start, b.stop) as number:
        chunk, tile = parted(b, number, tiles)
        position, output = chunk * CHUNK, tile * COLUMNS + b.lane()
        column = b.minimum(output, outputs - 1)  # all threads have one, and come to barriers

        def take(i: Scalar, into: Sequence[OwnAccumulators]) -> None:
            n = position + i
            places = [n * far + column * step for far, step in zip(down, steps, strict=True)]
            into[0].take(i, [b.load(p, at) for p, at in zip(ins, places, strict=True)], n)

        own, = sweep_columns(b, [spec], b.minimum(total - position, CHUNK), take)
        with b.if_(b.and_(b.lt(b.thread(), TEAM), b.lt(output, outputs))):
            acc = own.get(output)
            values = acc if partial else spec.reduction.result(b, acc, total, spec.attrs)
            for p, v in zip(outs, values, strict=True):
                b.store(p, chunk * outputs + output, b.cast(v, p.dtype))
    return b.finish()


def blocks(spec: ReductionSpec) -> Kernel:
    """Joins up to JOINED accumulators of chunks that follow one another into one, by a block of threads: the part of
    the tree over all chunks that is above these.

    args: addresses of the results and of the accumulators; the number of chunks; the number of outputs, by which those
    of one output are apart, as the results are. The range numbers parts, and in each of them outputs.
    """
    b = TeamBuilder(f"{spec.name} tree by blocks", THREADS)
    outs, accs = ([b.pointer(f"{name}{n}", d) for n, d in enumerate(spec.acc_dtypes)] for name in ("out", "acc"))
    chunks, outputs = b.integer(), b.integer()
    memory, thread = [b.shared(d, THREADS) for d in spec.acc_dtypes], b.thread()
    with b.for_(b.start, b.stop) as number:
        part, output = parted(b, number, outputs)
        first = part * JOINED + thread * _EACH
        own = OwnAccumulators(b, spec)

        def join_from(into: OwnAccumulators, at: Scalar, count: int) -> None:
            """Leaves in `into` what comes of up to `count` accumulators from `at` on, of which there is one at least.
            """
            if count == 1:
                into.set(at, [b.load(p, at * outputs + output) for p in accs])
                return
            join_from(into, at, count // 2)
            with b.if_(b.lt(at + count // 2, chunks)):
                right = OwnAccumulators(b, spec)
                join_from(right, at + count // 2, count // 2)
                into.join(right.get(at))

        with b.if_(b.lt(first, chunks)):
            join_from(own, first, _EACH)
        apart = 1
        while apart < THREADS:
            with b.if_(b.eq(b.and_(thread, 2 * apart - 1), apart)):
                for place, value in zip(memory, own.get(thread), strict=True):
                    b.store(place, thread, value)
            b.barrier()
            with b.if_(b.and_(b.eq(b.and_(thread, 2 * apart - 1), 0), b.lt(first + apart * _EACH, chunks))):
                own.join([b.load(place, thread + apart) for place in memory])
            apart *= 2
        with b.if_(b.eq(thread, 0)):
            for p, value in zip(outs, own.get(thread), strict=True):
                b.store(p, number, value)
    return b.finish()


def tree(spec: ReductionSpec) -> Kernel:
    """Joins the accumulators of chunks into results, for each output in the range, by a warp each.

    args: as of `reduce.tree`. The tree is the same: neighbours are joined, then neighbours of what came of it, and so
    on. There are TEAM to the power of 4 chunks at most.
    """
    b = TeamBuilder(f"{spec.name} tree by teams")
    outs, accs, (total, chunks, step) = _tree_arguments(b, spec)
    with b.for_(b.start, b.stop) as o:
        def loaded(first: Scalar) -> OwnAccumulators:
            own = OwnAccumulators(b, spec)
            with b.if_(b.lt(first + b.lane(), chunks)):
                own.set(first, [b.load(p, o + (first + b.lane()) * step) for p in accs])
            return _joined_lanes(b, own, chunks - first)

        own = _joined(b, spec, b.const(0, dt.int64), chunks, _DEPTH, loaded)
        with b.if_(b.eq(b.lane(), 0)):
            _store_results(b, spec, outs, o, own.get(o), total)
    return b.finish()


def _tree_arguments(b: LoopBuilder, spec: ReductionSpec) -> tuple[list[Pointer], list[Pointer], list[Scalar]]:
    outs = [b.pointer(f"out{n}", d) for n, d in enumerate(spec.out_dtypes)]
    accs = [b.pointer(f"acc{n}", d) for n, d in enumerate(spec.acc_dtypes)]
    return outs, accs, [b.integer() for _ in range(3)]


def _store_results(b: LoopBuilder, spec: ReductionSpec, outs: Sequence[Pointer], at: Scalar, acc: tuple[Scalar, ...],
                   total: Scalar) -> None:
    for p, v in zip(outs, spec.reduction.result(b, acc, total, spec.attrs), strict=True):
        b.store(p, at, b.cast(v, p.dtype))


def _joined(b: TeamBuilder, spec: ReductionSpec, first: Scalar, chunks: Scalar, depth: int,
            loaded: Callable[[Scalar], OwnAccumulators]) -> OwnAccumulators:
    """The tree, in the first thread of a warp, over the chunks from `first` on, at most TEAM to the power `depth`."""
    if depth == 1:
        return loaded(first)
    size = TEAM ** (depth - 1)
    own, count = OwnAccumulators(b, spec), b.minimum(covering(b, chunks - first, size), TEAM)
    with b.for_(0, count) as part:
        values = [b.leading(v) for v in _joined(b, spec, first + part * size, chunks, depth - 1, loaded).get(part)]
        with b.if_(b.eq(b.lane(), part)):
            own.set(part, values)
    return _joined_lanes(b, own, count)


def _joined_lanes(b: TeamBuilder, own: OwnAccumulators, count: Scalar) -> OwnAccumulators:
    """Joins the first `count` lanes, neighbours first."""
    step = 1
    while step < TEAM:
        further = own.further(step)
        with b.if_(b.lt(b.lane() + step, count)):
            own.join(further)
        step *= 2
    return own


def short_tree(spec: ReductionSpec) -> Kernel:
    """The same for at most FEW_CHUNKS chunks, by a thread each, for many outputs: threads beside one another read
    neighbours.

    args: as of `reduce.tree`. As there, complete trees of falling size wait for others of theirs, as the digits of the
    number of chunks seen: here in registers, one for each digit.
    """
    b = LoopBuilder(f"{spec.name} short tree")
    outs, accs, (total, chunks, step) = _tree_arguments(b, spec)
    with b.for_(b.start, b.stop) as o:
        start = spec.reduction.start(b, spec.in_dtypes)
        digits = [[b.local(v) for v in start] for _ in range(_LEVELS + 1)]
        with b.for_(0, chunks) as chunk:
            carried = [b.local(b.load(p, o + chunk * step)) for p in accs]
            carries = b.local(True, dt.bool_)
            for level, waiting in enumerate(digits):
                one = b.ne(b.and_(chunk, 1 << level), 0)
                with b.if_(carries.get()):
                    with b.if_(one):
                        _join_into(b, spec, carried, waiting)
                    with b.else_():
                        for cell, value in zip(waiting, carried, strict=True):
                            cell.set(value.get())
                        carries.set(False)
        joined, begun = [b.local(v) for v in start], b.local(False, dt.bool_)
        for level, waiting in enumerate(digits):
            with b.if_(b.ne(b.and_(chunks, 1 << level), 0)):
                with b.if_(begun.get()):
                    _join_into(b, spec, joined, waiting)
                with b.else_():
                    for cell, value in zip(joined, waiting, strict=True):
                        cell.set(value.get())
                    begun.set(True)
        _store_results(b, spec, outs, o, tuple(cell.get() for cell in joined), total)
    return b.finish()


def _join_into(b: LoopBuilder, spec: ReductionSpec, cells: Sequence[Cell], earlier: Sequence[Cell]) -> None:
    """Accumulators become those of `earlier` chunks joined by themselves."""
    values = spec.reduction.join(b, tuple(c.get() for c in earlier), tuple(c.get() for c in cells))
    for cell, value in zip(cells, values, strict=True):
        cell.set(value)
