"""Arithmetic on sizes, and choices by size, that schedules share; the numbers are not negative."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twofold.ir import dtypes as dt
from twofold.ir.scalar import Scalar

from .loop import BlockBuilder

__all__ = ["quotient", "parted", "covering", "share", "choose"]


def quotient(b: BlockBuilder, x: Scalar, y: Scalar | int) -> Scalar:
    """x // y."""
    if isinstance(y, int) and y & y - 1 == 0:
        return b.shr(x, y.bit_length() - 1)
    x, y = (b.bitcast(b.coerce(v, dt.int64), dt.uint64) for v in (x, y))
    return b.bitcast(b.idiv(x, y), dt.int64)


def parted(b: BlockBuilder, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    """Quotient and remainder."""
    whole = quotient(b, x, y)
    return whole, x - whole * y


def covering(b: BlockBuilder, x: Scalar, y: Scalar | int) -> Scalar:
    """How many times `y` it takes to cover x."""
    return quotient(b, x + (y - 1), y)


def share(b: BlockBuilder, number: Scalar, count: Scalar, shares: Scalar) -> tuple[Scalar, Scalar]:
    """Where share `number` begins and ends, of `count` things."""
    return quotient(b, number * count, shares), quotient(b, (number + 1) * count, shares)


def choose(b: BlockBuilder, cases: Sequence[tuple[Scalar, int, Callable[[], None]]],
           otherwise: Callable[[], None]) -> None:
    """Records a choice: what the first case records whose value is not above its limit."""
    if not cases:
        otherwise()
        return
    (value, limit, record), *rest = cases
    with b.if_(b.le(value, limit)):
        record()
    with b.else_():
        choose(b, rest, otherwise)
