"""Which tensors recorders follow, and items of arrays apart from the arrays where they are followed."""

from __future__ import annotations

from collections.abc import Sequence

from twofold.eager import record
from twofold.eager.tensor import Tensor
from twofold.ir import ops

__all__ = ["apart", "followed"]


def followed(tensors: Sequence[Tensor]) -> tuple[bool, ...]:
    """For each tensor, whether it is smooth and some recorder of this context differentiates by it."""
    recorders = record.active.get()
    return tuple([t.dtype.is_differentiable and any(r._follows(t) for r in recorders) for t in tensors])


def apart(item: Tensor) -> Tensor:
    """An item of an array, as a tensor of its own where its gradient is followed.

    Cotangents then meet where the item is written and read, as they do in a trace, and add up in the same order.
    """
    tensor: Tensor = ops.identity(item) if followed((item,))[0] else item
    return tensor

