"""Ops that make tensors from numbers: ranges. Constant fills are `shape.fill`; random numbers are elsewhere."""

from __future__ import annotations

from .. import dims as dm
from .. import dtypes as dt
from .. import rules
from ..dims import DimLike
from ..op import Op, primitive
from ..spec import spec
from ..types import AnyTensor, Spec

__all__ = ["range_"]


def _range_infer(op: Op, start: Spec, limit: Spec, delta: Spec, *, size: DimLike | None) -> Spec:
    operands = (start, limit, delta)
    for which in range(3):
        rules.require_rank(op, operands, which, 0, 0)
    rules.require_dtype(op, operands, 0, dt.REAL)
    dtype = rules.same_dtype(op, operands)
    return spec((dm.symbol("range") if size is None else size,), dtype)


@primitive(infer=_range_infer, lower="range", vjp=None, traits=("dynamic",))
def range_(start: AnyTensor, limit: AnyTensor, delta: AnyTensor, *, size: DimLike | None = None) -> AnyTensor:
    """The numbers `start + i * delta` that come before `limit`.

    Args:
        start, limit, delta: real scalars of one dtype.
        size: how many there are, where that is known; it then takes the place of `limit`.
    Raises:
        InvalidArgumentError: `delta` is 0, or leads away from `limit`.
    """
