"""Maps, scans and folds over the slices of tensors, staged: each is one loop whose results go into one tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twofold.eager import convert
from twofold.eager.tensor import Tensor
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import errors, nest, ops
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike
from twofold.ir.spec import TensorShape, spec

from .conditional import branch, zeros
from .loop import LoopVariable, while_loop
from .operators import stage_assert
from .trace import current
from .types import PythonFunction, Structure, Values

__all__ = ["staged_map", "staged_scan", "staged_fold"]


class _Slices:
    """A structure of tensors, slice by slice."""

    def __init__(self, what: str, elems: Structure, leaves: Sequence[Tensor], backward: bool) -> None:
        # Slices are values of their own, whose cotangents join the sum of the tensor at once, as those of an `unstack`.
        self.leaves = [ops.identity(leaf) if leaf.dtype.is_differentiable else leaf for leaf in leaves]
        self.what, self.elems, self.backward = what, elems, backward
        self.count: DimLike = leaves[0].dims[0]
        for leaf in leaves[1:]:
            if self.count != leaf.dims[0]:
                dm.require(self.count, "==", leaf.dims[0])

    def size(self) -> Tensor:
        """How many there are, an int64 scalar of the present trace."""
        if isinstance(self.count, int):
            return _long(self.count)
        trace = current()
        assert trace is not None, "an unknown size is of a trace"
        return trace.size(self.count)

    def place(self, number: Tensor) -> Tensor:
        """The place, along the first axis, of the slice that is taken as number `number`."""
        return ops.subtract(ops.subtract(self.size(), _long(1)), number) if self.backward else number

    def at(self, place: Tensor) -> Structure:
        """The slice at a place."""
        return nest.pack(self.elems, [ops.gather(leaf, place) for leaf in self.leaves])


def _long(value: int) -> Tensor:
    return convert.as_tensor(value, dt.int64)


def _tensors(value: Structure) -> Structure:
    return nest.map_structure(lambda v: convert.as_tensor(v), value)


def staged_map(what: str, fn: PythonFunction, elems: Structure, leaves: Sequence[Tensor],
               finish: Callable[[Structure], Structure] = _tensors) -> Structure:
    """`fn` of each slice, stacked.

    Args:
        what: the public function, for errors.
        elems, leaves: the structure, and its leaves as tensors.
        finish: makes tensors of a result of `fn`.
    """
    slices = _Slices(what, elems, leaves, False)
    trace = current()
    assert trace is not None
    rows = [spec(leaf.dims[1:], leaf.dtype) for leaf in leaves]
    look = trace.region("look", rows, lambda *row: finish(fn(nest.pack(elems, list(row)))), repeats=True)
    kinds = [look.lift(t) for t in nest.flatten(look.result)]
    late = [any(isinstance(d, Dim) and not d.symbols().isdisjoint(look.trace.born) for d in v.dims) for v in kinds]
    buffers = [_unsized(slices, v) if unknown else _buffer(slices, v) for v, unknown in zip(kinds, late, strict=True)]

    def body(values: Values) -> Values:
        rows = nest.flatten(finish(fn(slices.at(values[0]))))
        sized = [_sized(what, slices, values[0], b, item) if unknown else b
                 for b, item, unknown in zip(values[1:], rows, late, strict=True)]
        return [ops.add(values[0], _long(1)), *_stored(sized, values[0], rows)]
    variables = [LoopVariable("the place", _long(0)),
                 *[LoopVariable(f"the result of {what}", b, [_open_shape(b)] if unknown else None)
                   for b, unknown in zip(buffers, late, strict=True)]]
    after, _ = while_loop(lambda values: ops.less(values[0], slices.size()), body, variables, what, slices.count)
    return nest.pack(look.result, after[1:])


def _unsized(slices: _Slices, like: g.Value) -> Tensor:
    """The buffer before the first result, without elements: only a result tells the sizes."""
    return ops.fill(zeros((), like.dtype), shape=(slices.count, *[0] * len(like.dims)))


def _open_shape(buffer: Tensor) -> TensorShape:
    first, *rest = buffer.dims
    return TensorShape([None if isinstance(first, Dim) else first, *[None] * len(rest)])


def _sized(what: str, slices: _Slices, place: Tensor, buffer: Tensor, item: Tensor) -> Tensor:
    """The buffer with room for results of the size of the first."""
    sizes = ops.shape(item, out_type=dt.int64)
    sized = branch(ops.equal(place, _long(0)),
                   lambda: ops.fill(zeros((), buffer.dtype), shape=(slices.count, *item.dims)),
                   lambda: ops.identity(buffer), what)
    same = ops.reduce_all(ops.equal(ops.slice_(ops.shape(sized, out_type=dt.int64), begin=(1,), size=(-1,)), sizes))
    stage_assert(same, f"{what}: results of different shapes cannot be stacked.", (sizes,))
    return ops.reshape(sized, shape=(slices.count, *item.dims))


def _buffer(slices: _Slices, like: g.Value | Tensor) -> Tensor:
    """The buffer before the first result, for results like this one."""
    return ops.fill(zeros((), like.dtype), shape=(slices.count, *like.dims))


def _stored(buffers: Sequence[Tensor], place: Tensor, items: Sequence[Tensor]) -> list[Tensor]:
    """The buffers with each item at a place."""
    return [ops.tensor_scatter(b, ops.reshape(place, shape=(1, 1)), ops.reshape(i, shape=(1, *i.dims)), mode="update")
            for b, i in zip(buffers, items, strict=True)]


def _begin(slices: _Slices, initializer: Structure) -> tuple[Structure, int]:
    """The first accumulator, and how many slices went into it."""
    if initializer is not None:
        return _tensors(initializer), 0
    if slices.count == 0:
        raise errors.InvalidArgumentError(f"{slices.what}: there is neither an initializer nor a slice to begin with.")
    return slices.at(slices.place(_long(0))), 1


def _next(fn: PythonFunction, state: Structure, row: Structure) -> Structure:
    """The accumulator after a slice."""
    state_after = _tensors(fn(state, row))
    nest.assert_same_structure(state, state_after)
    return state_after


def staged_fold(what: str, fn: PythonFunction, elems: Structure, leaves: Sequence[Tensor], initializer: Structure,
                backward: bool) -> Structure:
    """The last accumulator."""
    slices = _Slices(what, elems, leaves, backward)
    state, first = _begin(slices, initializer)

    def body(values: Values) -> Values:
        return [ops.add(values[0], _long(1)), _next(fn, values[1], slices.at(slices.place(values[0])))]
    variables = [LoopVariable("the place", _long(first)), LoopVariable("the accumulator", state)]
    after, _ = while_loop(lambda values: ops.less(values[0], slices.size()), body, variables, what, slices.count)
    return after[1]


def staged_scan(what: str, fn: PythonFunction, elems: Structure, leaves: Sequence[Tensor], initializer: Structure,
                backward: bool) -> Structure:
    """All accumulators, stacked at the places of their slices."""
    slices = _Slices(what, elems, leaves, backward)
    state, first = _begin(slices, initializer)
    buffers = [_buffer(slices, t) for t in nest.flatten(state)]
    if first:
        buffers = _stored(buffers, slices.place(_long(0)), nest.flatten(state))

    def body(values: Values) -> Values:
        place = slices.place(values[0])
        state = _next(fn, values[1], slices.at(place))
        return [ops.add(values[0], _long(1)), state, *_stored(values[2:], place, nest.flatten(state))]
    variables = [LoopVariable("the place", _long(first)), LoopVariable("the accumulator", state),
                 *[LoopVariable("the accumulators", b) for b in buffers]]
    after, _ = while_loop(lambda values: ops.less(values[0], slices.size()), body, variables, what, slices.count)
    return nest.pack(state, after[2:])
