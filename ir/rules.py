"""Shape rules: what an op's operands must be, and what comes out.

A rule is `(op, *specs, **attrs) -> spec or tuple of specs`; specs have `.dims` and `.dtype`. Rules alone
reject operands, for eager calls, tracer and verifier alike, with the op's name and what it was given.
Dimensions may be symbols, so rules do arithmetic on them only through `ir/dims.py` and operators.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import SupportsIndex

from . import dims as dm
from . import dtypes as dt
from .dims import Shape
from .dtypes import DType
from .errors import DTypeError, InvalidArgumentError, OpError, ShapeError, op_error
from .op import Op
from .precision import EXACT, FAST, is_known
from .spec import spec
from .types import Attr, Axes, ShapeRule, Spec

__all__ = ["fail", "names_of", "same_dtype", "require_dtype", "require_precision", "require_rank", "elementwise",
           "unary", "like_first", "normalize_axis", "normalize_axes", "reduced_dims"]


def fail(op: Op, operands: Sequence[Spec], problem: str, cls: type[OpError] = ShapeError,
         hint: str | None = None) -> OpError:
    """The error for `op` given `operands`; the caller raises it."""
    return op_error(cls, op.name, problem, op.operands(operands), hint)


def names_of(dtypes: Collection[DType]) -> str:
    """A set of dtypes in words, in the table's order."""
    if dtypes is dt.ALL:
        return "any dtype but string"
    return ", ".join(d.name for d in sorted(dtypes, key=lambda d: (d.kind, d.size)))


def require_dtype(op: Op, operands: Sequence[Spec], which: int, dtypes: Collection[DType]) -> None:
    """Raise DTypeError unless operand number `which` has one of `dtypes`."""
    if operands[which].dtype not in dtypes:
        name = op.operands(operands)[which][0]
        raise fail(op, operands, f"{name} has dtype {operands[which].dtype.name}; expected {names_of(dtypes)}.",
                   DTypeError)


def same_dtype(op: Op, operands: Sequence[Spec], which: Sequence[int] | None = None) -> DType:
    """The one dtype of the operands numbered in `which` (all by default); DTypeError when they differ."""
    chosen = operands if which is None else [operands[i] for i in which]
    first = chosen[0].dtype
    for other in chosen[1:]:
        if other.dtype is not first:
            raise fail(op, operands, f"dtypes differ: {first.name} and {other.dtype.name}. Nothing is promoted.",
                       DTypeError, f"convert one of them with tf.cast(value, tf.{first.name}).")
    return first


def require_rank(op: Op, operands: Sequence[Spec], which: int, low: int, high: int | None = None) -> int:
    """The rank of operand `which`; ShapeError unless low <= rank <= high (`high` None: no upper bound)."""
    rank = len(operands[which].dims)
    if rank < low or (high is not None and rank > high):
        want = f"{low}" if high == low else f"at least {low}" if high is None else f"between {low} and {high}"
        name = op.operands(operands)[which][0]
        raise fail(op, operands, f"{name} has rank {rank}; expected rank {want}.")
    return rank


def broadcast(op: Op, operands: Sequence[Spec]) -> Shape:
    """The shape to which all operands broadcast; ShapeError naming the axis when they do not."""
    first = operands[0].dims
    if all(o.dims == first for o in operands[1:]):
        return first
    try:
        return dm.broadcast_shapes(*(o.dims for o in operands))
    except ValueError:
        shapes = " and ".join(f"[{','.join(map(str, o.dims))}]" for o in operands)
        raise fail(op, operands, f"Incompatible shapes: {shapes} do not broadcast: sizes of an axis must match or be "
                   "1.") from None


def broadcasts_to(dims: Shape, shape: Shape) -> bool:
    """Whether an operand broadcasts to a shape; sizes of which neither is known are assumed to be equal."""
    missing = len(shape) - len(dims)
    return missing >= 0 and all(dm.decide_eq(d, 1) or dm.require_eq(d, s)
                                for d, s in zip(dims, shape[max(missing, 0):], strict=True))


def require_precision(op: Op, operands: Sequence[Spec], precision: Attr) -> None:
    """Raise InvalidArgumentError unless products can have that precision."""
    if not is_known(precision):
        raise fail(op, operands, f'precision must be "{EXACT}" or "{FAST}"; got {precision!r}.', InvalidArgumentError)


def elementwise(dtypes: Collection[DType], result: DType | Callable[[DType], DType] | None = None,
                same: Sequence[int] | None = None) -> Callable[..., Spec]:
    """The rule of an elementwise op: operands of one dtype out of `dtypes`, broadcast together.

    Args:
        dtypes: what is accepted.
        result: dtype of the result, or a function from the operands' dtype; None keeps it.
        same: which operands must agree in dtype (all by default; the last of them sets the result's).
    """
    def rule(op: Op, *operands: Spec, **attrs: Attr) -> Spec:
        dtype = same_dtype(op, operands, same)
        which = 0 if same is None else same[0]
        if dtype not in dtypes:
            require_dtype(op, operands, which, dtypes)
        out = dtype if result is None else result if isinstance(result, DType) else result(dtype)
        return spec(broadcast(op, operands), out)
    return rule


def unary(dtypes: Collection[DType], result: DType | Callable[[DType], DType] | None = None) -> Callable[..., Spec]:
    """The rule of an elementwise op of one operand."""
    return elementwise(dtypes, result)


def like_first(op: Op, *operands: Spec, **attrs: Attr) -> Spec:
    """The result has the first operand's shape and dtype."""
    return spec(operands[0].dims, operands[0].dtype)


def normalize_axis(op: Op, operands: Sequence[Spec], axis: SupportsIndex, rank: int, what: str = "axis") -> int:
    """`axis` as a number from 0; InvalidArgumentError unless -rank <= axis < rank."""
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise fail(op, operands, f"{what} must be an integer; got {axis!r}.", InvalidArgumentError)
    number = axis.__index__()
    if not -rank <= number < rank:
        span = f"expected {-rank} <= {what} < {rank}" if rank else "a scalar has no axes"
        raise fail(op, operands, f"{what} {number} is out of range; {span}.", InvalidArgumentError)
    return number + rank if number < 0 else number


def normalize_axes(op: Op, operands: Sequence[Spec], axes: Axes, rank: int, what: str = "axis") -> tuple[int, ...]:
    """`axes` (None for all, an integer or a sequence) as sorted numbers from 0, each at most once."""
    if axes is None:
        return tuple(range(rank))
    entries = axes if isinstance(axes, (tuple, list)) else (axes,)
    out = sorted(normalize_axis(op, operands, a, rank, what) for a in entries)
    if len(set(out)) != len(out):
        raise fail(op, operands, f"{what} {tuple(entries)} names an axis twice.", InvalidArgumentError)
    return tuple(out)


def reduced_dims(dims: Shape, axes: Collection[int], keepdims: bool) -> Shape:
    """The shape left after reducing `axes`."""
    if keepdims:
        return tuple(1 if i in axes else d for i, d in enumerate(dims))
    return tuple(d for i, d in enumerate(dims) if i not in axes)


def reduction(dtypes: Collection[DType], result: DType | None = None) -> ShapeRule:
    """The rule of a reduction with attributes `axis` (None, or a tuple of ints) and `keepdims`."""
    def rule(op: Op, *operands: Spec, axis: Axes, keepdims: bool, **attrs: Attr) -> Spec:
        require_dtype(op, operands, 0, dtypes)
        dims = operands[0].dims
        axes = normalize_axes(op, operands, axis, len(dims))
        return spec(reduced_dims(dims, axes, keepdims), result or operands[0].dtype)
    return rule
