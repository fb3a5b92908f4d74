"""Ops that lay tensors side by side in a new one: concatenation and padding."""

from __future__ import annotations

from collections.abc import Callable

from .. import dims as dm
from .. import grad, ops, rules
from ..dims import DimLike, Shape
from ..errors import InvalidArgumentError
from ..op import Op, primitive
from ..spec import spec
from ..types import AnyTensor, Cotangents, Spec

__all__ = ["concat", "pad"]


def _concat_infer(op: Op, *values: Spec, axis: int) -> Spec:
    if not values:
        raise rules.fail(op, (), "there is nothing to concatenate.", InvalidArgumentError)
    dtype, first = rules.same_dtype(op, values), values[0].dims
    if not first:
        raise rules.fail(op, values, "scalars cannot be concatenated (use tf.stack instead).", InvalidArgumentError)
    at = rules.normalize_axis(op, values, axis, len(first))
    for n, value in enumerate(values):
        if len(value.dims) != len(first):
            raise rules.fail(op, values, f"Ranks of all inputs should match: values[0] has rank {len(first)} and "
                             f"values[{n}] has rank {len(value.dims)}.")
        for i, (here, want) in enumerate(zip(value.dims, first, strict=True)):
            if i != at and not dm.require_eq(here, want):
                raise rules.fail(op, values, f"Dimension {i} must match in all inputs: values[0] has size {want} and "
                                 f"values[{n}] has size {here}.")
    total = sum((v.dims[at] for v in values[1:]), start=first[at])
    return spec((*first[:at], total, *first[at + 1:]), dtype)


def _concat_vjp(ct: AnyTensor, out: Spec, *values: Spec, axis: int) -> Cotangents:
    rank = len(values[0].dims)
    axis %= rank
    parts: list[Callable[[], AnyTensor]] = []
    begin: DimLike = 0
    for value in values:
        parts.append(_part(ct, axis, begin, value.dims))
        begin = begin + value.dims[axis]
    return tuple(parts)


def _part(ct: AnyTensor, axis: int, begin: DimLike, dims: Shape) -> Callable[[], AnyTensor]:
    start = tuple(begin if i == axis else 0 for i in range(len(dims)))
    return lambda: ops.slice_(ct, begin=start, size=dims)


@primitive(infer=_concat_infer, lower="concat", vjp=_concat_vjp, saves=(), traits=("total",))
def concat(*values: AnyTensor, axis: int) -> AnyTensor:
    """Tensors of one dtype joined along `axis`.

    Raises:
        ShapeError: ranks, or sizes of another axis, differ. DTypeError: dtypes differ.
        InvalidArgumentError: `axis` is out of range, or there is nothing to join.
    """


def _pad_infer(op: Op, x: Spec, value: Spec, *, paddings: tuple[tuple[DimLike, DimLike], ...]) -> Spec:
    rules.require_rank(op, (x, value), 1, 0, 0)
    dtype = rules.same_dtype(op, (x, value))
    if len(paddings) != len(x.dims) or any(len(p) != 2 for p in paddings):
        raise rules.fail(op, (x, value), f"paddings must be {len(x.dims)} pairs, one for each axis; "
                         f"got {[list(p) for p in paddings]}.", InvalidArgumentError)
    for before, after in paddings:
        if not dm.require(before, ">=", 0) or not dm.require(after, ">=", 0):
            raise rules.fail(op, (x, value), f"Paddings must be non-negative: {before} {after}", InvalidArgumentError)
    return spec(tuple(b + d + a for d, (b, a) in zip(x.dims, paddings, strict=True)), dtype)


def _pad_vjp(ct: AnyTensor, out: Spec, x: Spec, value: Spec, *,
             paddings: tuple[tuple[DimLike, DimLike], ...]) -> Cotangents:
    inside = tuple(b for b, _ in paddings)

    def of_value() -> AnyTensor:
        key = tuple((b, b + d, 1) for b, d in zip(inside, x.dims, strict=True))
        around = ops.strided_slice_assign(ct, grad.scalar(0, like=ct), spec=key)
        return ops.reduce_sum(around, axis=None, keepdims=False)
    return lambda: ops.slice_(ct, begin=inside, size=x.dims), of_value


@primitive(infer=_pad_infer, lower="pad", vjp=_pad_vjp, saves=(), traits=("total",))
def pad(x: AnyTensor, value: AnyTensor, *, paddings: tuple[tuple[DimLike, DimLike], ...]) -> AnyTensor:
    """`x` in the middle of a larger tensor whose other elements are the scalar `value`.

    Args:
        x: any tensor.
        value: a scalar of its dtype.
        paddings: for each axis how many elements come before and after.
    Raises:
        InvalidArgumentError: paddings are negative or not one pair for each axis.
    """
