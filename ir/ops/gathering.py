"""Ops that pick or write elements at places given as data: gather, scatter, and where a condition holds.

Indices are checked where they are used: one that is out of range raises, and nothing is read or written there.
Scatters go through the updates in row-major order, so sums have one order and of several updates the last wins.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import dims as dm
from .. import dtypes as dt
from .. import grad, ops, rules
from ..dims import Shape
from ..errors import InvalidArgumentError
from ..op import Op, primitive
from ..spec import spec
from ..types import AnyTensor, Cotangents, Spec

__all__ = ["gather", "scatter_add", "gather_nd", "scatter_nd", "tensor_scatter", "nonzero"]


# -- along one axis -----------------------------------------------------------------------------------
def _batch_and_axis(op: Op, operands: Sequence[Spec], x: Spec, indices: Spec, axis: int,
                    batch_dims: int) -> tuple[int, int]:
    """Both attributes counted from 0, once the operands fit them."""
    rules.require_dtype(op, operands, 1, dt.INTEGER)
    batch = rules.normalize_axis(op, operands, batch_dims, len(indices.dims) + 1, "batch_dims")
    axis = rules.normalize_axis(op, operands, axis, len(x.dims))
    if batch > axis:
        raise rules.fail(op, operands, f"batch_dims ({batch}) must be less than or equal to axis ({axis}).",
                         InvalidArgumentError)
    for i in range(batch):
        if not dm.require_eq(x.dims[i], indices.dims[i]):
            raise rules.fail(op, operands, f"batch axis {i} has size {x.dims[i]} in one operand and {indices.dims[i]} "
                             "in indices.")
    return batch, axis


def _gathered(x: Spec, indices: Spec, batch: int, axis: int) -> Shape:
    return (*x.dims[:axis], *indices.dims[batch:], *x.dims[axis + 1:])


def _gather_infer(op: Op, x: Spec, indices: Spec, *, axis: int, batch_dims: int) -> Spec:
    batch, axis = _batch_and_axis(op, (x, indices), x, indices, axis, batch_dims)
    return spec(_gathered(x, indices, batch, axis), x.dtype)


def _gather_vjp(ct: AnyTensor, out: Spec, x: Spec, indices: AnyTensor, *, axis: int, batch_dims: int) -> Cotangents:
    return ops.scatter_add(grad.zeros_like(x), indices, ct, axis=axis, batch_dims=batch_dims), None


@primitive(infer=_gather_infer, lower="gather", vjp=_gather_vjp, saves=("indices",))
def gather(x: AnyTensor, indices: AnyTensor, *, axis: int = 0, batch_dims: int = 0) -> AnyTensor:
    """Slices of `x` along `axis` at `indices`.

    Args:
        x: any tensor.
        indices: integers in [0, size of the axis).
        axis: where slices are taken.
        batch_dims: how many leading axes `x` and `indices` share.
    Returns:
        A tensor of shape `x[:axis] + indices[batch_dims:] + x[axis + 1:]`.
    Raises:
        InvalidArgumentError: an index is out of range, or an attribute is. ShapeError: batch axes differ.
    """


def _scatter_add_infer(op: Op, base: Spec, indices: Spec, updates: Spec, *, axis: int, batch_dims: int) -> Spec:
    operands = (base, indices, updates)
    rules.require_dtype(op, operands, 0, dt.NUMERIC)
    dtype = rules.same_dtype(op, operands, (0, 2))
    batch, axis = _batch_and_axis(op, operands, base, indices, axis, batch_dims)
    _require_dims(op, operands, updates.dims, _gathered(base, indices, batch, axis))
    return spec(base.dims, dtype)


def _require_dims(op: Op, operands: Sequence[Spec], have: Shape, want: Shape) -> None:
    if len(have) != len(want) or not all(dm.require_eq(h, w) for h, w in zip(have, want, strict=True)):
        raise rules.fail(op, operands, f"updates have shape [{','.join(map(str, have))}]; expected "
                         f"[{','.join(map(str, want))}].")


@primitive(infer=_scatter_add_infer, lower="scatter", saves=("indices",),
           vjp=lambda ct, out, base, indices, updates, *, axis, batch_dims: (
               ct, None, lambda: ops.gather(ct, indices, axis=axis, batch_dims=batch_dims)))
def scatter_add(base: AnyTensor, indices: AnyTensor, updates: AnyTensor, *, axis: int = 0,
                batch_dims: int = 0) -> AnyTensor:
    """`base` with `updates` added to its slices along `axis` at `indices`: what `gather` took goes back.

    Args:
        base: a numeric tensor.
        indices: as for `gather`; an index given several times adds up.
        updates: of the shape that `gather(base, indices)` has.
    Raises:
        InvalidArgumentError: an index is out of range. ShapeError: shapes do not fit.
    """


# -- at full or partial coordinates -------------------------------------------------------------------
def _coordinates(op: Op, operands: Sequence[Spec], which: int, dims: Shape, batch: int = 0) -> int:
    """How many axes each index names: the last size of operand `which`, the indices."""
    rules.require_dtype(op, operands, which, dt.INTEGER)
    indices = operands[which]
    depth = indices.dims[-1] if indices.dims else None
    if not isinstance(depth, int):
        raise rules.fail(op, operands, "indices must have a last axis of known size: the length of an index.",
                         InvalidArgumentError)
    if depth + batch > len(dims):
        raise rules.fail(op, operands, f"index innermost dimension length must be <= params rank; saw: {depth} vs. "
                         f"{len(dims) - batch}", InvalidArgumentError)
    return depth


def _gather_nd_infer(op: Op, x: Spec, indices: Spec, *, batch_dims: int) -> Spec:
    operands = (x, indices)
    batch = rules.normalize_axis(op, operands, batch_dims, max(len(indices.dims), 1), "batch_dims")
    depth = _coordinates(op, operands, 1, x.dims, batch)
    for i in range(batch):
        if not dm.require_eq(x.dims[i], indices.dims[i]):
            raise rules.fail(op, operands, f"batch axis {i} has size {x.dims[i]} in x and {indices.dims[i]} in "
                             "indices.")
    return spec((*indices.dims[:-1], *x.dims[batch + depth:]), x.dtype)


def _gather_nd_vjp(ct: AnyTensor, out: Spec, x: Spec, indices: AnyTensor, *, batch_dims: int) -> Cotangents:
    if batch_dims:
        indices = with_batch_coordinates(indices, batch_dims)
    return ops.scatter_nd(indices, ct, shape=x.dims), None


def with_batch_coordinates(indices: AnyTensor, batch_dims: int) -> AnyTensor:
    """Indices that begin with the numbers of their own batch axes, so that they name places of the whole tensor."""
    shape, parts = (*indices.dims[:-1], 1), []
    for i in range(batch_dims):
        limit = grad.scalar(indices.dims[i], like=indices)
        own = ops.range_(grad.scalar(0, like=indices), limit, grad.scalar(1, like=indices), size=indices.dims[i])
        along = tuple(indices.dims[i] if j == i else 1 for j in range(len(shape)))
        parts.append(ops.broadcast_to(ops.reshape(own, shape=along), shape=shape))
    return ops.concat(*parts, indices, axis=-1)


@primitive(infer=_gather_nd_infer, lower="gather_nd", vjp=_gather_nd_vjp, saves=("indices",))
def gather_nd(x: AnyTensor, indices: AnyTensor, *, batch_dims: int = 0) -> AnyTensor:
    """Elements or slices of `x` at the coordinates in the last axis of `indices`.

    Args:
        x: any tensor.
        indices: integers; each vector along the last axis names the first axes of `x` after the batch axes.
        batch_dims: how many leading axes `x` and `indices` share.
    Returns:
        A tensor of shape `indices[:-1] + x[batch_dims + indices[-1]:]`.
    Raises:
        InvalidArgumentError: an index is out of range or has too many parts. ShapeError: batch axes differ.
    """


def _scatter_nd_infer(op: Op, indices: Spec, updates: Spec, *, shape: Shape) -> Spec:
    operands = (indices, updates)
    rules.require_dtype(op, operands, 1, dt.NUMERIC)
    depth = _coordinates(op, operands, 0, shape)
    _require_dims(op, operands, updates.dims, (*indices.dims[:-1], *shape[depth:]))
    return spec(tuple(shape), updates.dtype)


@primitive(infer=_scatter_nd_infer, lower="scatter_nd", saves=("indices",),
           vjp=lambda ct, out, indices, updates, *, shape: (None, lambda: ops.gather_nd(ct, indices, batch_dims=0)))
def scatter_nd(indices: AnyTensor, updates: AnyTensor, *, shape: Shape) -> AnyTensor:
    """Zeros of `shape` with `updates` added at the coordinates in the last axis of `indices`.

    Raises:
        InvalidArgumentError: an index is out of range or has too many parts. ShapeError: `updates` does not fit.
    """


MODES = ("update", "add", "sub", "min", "max")


def _tensor_scatter_infer(op: Op, x: Spec, indices: Spec, updates: Spec, *, mode: str) -> Spec:
    operands = (x, indices, updates)
    if mode not in MODES:
        raise rules.fail(op, operands, f"mode {mode!r} is none of {', '.join(MODES)}.", InvalidArgumentError)
    dtype = rules.same_dtype(op, operands, (0, 2))
    if mode != "update":
        rules.require_dtype(op, operands, 0, dt.REAL if mode in ("min", "max") else dt.NUMERIC)
    depth = _coordinates(op, operands, 1, x.dims)
    _require_dims(op, operands, updates.dims, (*indices.dims[:-1], *x.dims[depth:]))
    return spec(x.dims, dtype)


def _tensor_scatter_vjp(ct: AnyTensor, out: AnyTensor, x: AnyTensor, indices: AnyTensor, updates: AnyTensor, *,
                        mode: str) -> Cotangents:
    if mode in ("min", "max"):
        return _extremum_vjp(ct, out, x, indices, updates)
    if mode == "update":
        return (lambda: ops.tensor_scatter(ct, indices, grad.zeros_like(updates), mode="update"), None,
                lambda: _of_updates(ct, x, indices, updates))
    return ct, None, lambda: _signed(ops.gather_nd(ct, indices, batch_dims=0), mode)


def _signed(ct: AnyTensor, mode: str) -> AnyTensor:
    return ops.negative(ct) if mode == "sub" else ct


def _of_updates(ct: AnyTensor, x: Spec, indices: AnyTensor, updates: Spec) -> AnyTensor:
    """The cotangent of what is written: nothing where a later update takes the place, which a single one has alone."""
    if all(dm.is_exactly(d, 1) for d in indices.dims):
        return ops.reshape(ops.gather(ct, ops.reshape(indices, shape=()), axis=0, batch_dims=0), shape=updates.dims)
    return ops.where(_winners(x, indices, updates), ops.gather_nd(ct, indices, batch_dims=0), grad.scalar(0, like=ct))


def _winners(x: Spec, indices: AnyTensor, updates: Spec) -> AnyTensor:
    """Which updates remain: of several for one place, the last. Shaped to broadcast against the updates."""
    depth, count = indices.dims[-1], dm.numel(indices.dims[:-1])
    assert type(depth) is int  # `_coordinates` accepts no other
    zero, end, one = (grad.scalar(v, like=spec((), dt.int64)) for v in (0, count, 1))
    numbers = ops.range_(zero, end, one, size=count)
    numbers = ops.reshape(numbers, shape=indices.dims[:-1])
    owners = ops.tensor_scatter(ops.fill(zero, shape=x.dims[:depth]), indices, numbers, mode="update")
    wins = ops.equal(ops.gather_nd(owners, indices, batch_dims=0), numbers)
    return ops.reshape(wins, shape=(*wins.dims, *(1 for _ in updates.dims[len(wins.dims):])))


def _extremum_vjp(ct: AnyTensor, out: Spec, x: Spec, indices: Spec, updates: Spec) -> Cotangents:
    """Shared equally between all that attain the extremum."""
    def indicator(cond: AnyTensor) -> AnyTensor:
        return ops.cast(cond, dtype=ct.dtype)

    x_wins = indicator(ops.equal(out, x))
    u_wins = indicator(ops.equal(ops.gather_nd(out, indices, batch_dims=0), updates))
    count = ops.tensor_scatter(x_wins, indices, u_wins, mode="add")
    share = ops.divide(ct, ops.maximum(count, grad.scalar(1, like=ct)))
    return (lambda: ops.multiply(share, x_wins), None,
            lambda: ops.multiply(ops.gather_nd(share, indices, batch_dims=0), u_wins))


@primitive(infer=_tensor_scatter_infer, lower="scatter_nd", vjp=_tensor_scatter_vjp,
           saves=("out", "x", "indices", "updates"))
def tensor_scatter(x: AnyTensor, indices: AnyTensor, updates: AnyTensor, *, mode: str) -> AnyTensor:
    """`x` with `updates` combined into it at the coordinates in the last axis of `indices`.

    Args:
        x: any tensor.
        indices: integers; each vector along the last axis names the first axes of `x`.
        updates: a tensor of shape `indices[:-1] + x[indices[-1]:]`.
        mode: "update" (the last one wins), "add", "sub", "min" or "max".
    Raises:
        InvalidArgumentError: an index is out of range or has too many parts. ShapeError: `updates` does not fit.
    Gradient: of "min" and "max", shared equally between all that attain the extremum; of "update", to the last.
    """


# -- where a condition holds --------------------------------------------------------------------------
def _nonzero_infer(op: Op, x: Spec) -> Spec:
    rules.require_dtype(op, (x,), 0, dt.ALL)
    return spec((dm.symbol("nonzero"), len(x.dims)), dt.int64)


@primitive(infer=_nonzero_infer, lower="nonzero", vjp=None, traits=("dynamic", "total"))
def nonzero(x: AnyTensor) -> AnyTensor:
    """The coordinates, int64 and row-major, of the elements of `x` that are not zero or false, one in each row."""
