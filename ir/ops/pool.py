"""Pooling over one to three spatial axes, channels last: maxima and averages of sliding windows.

Averages and their gradient are linear and each other's gradients. A maximum's gradient goes to the first largest
element of each window (`max_pool_grad`), and that op's gradient takes elements from there (`max_pool_gather`).
Padding never takes part: it is no maximum and does not count in an average.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import ops, rules, windows
from twofold.ir.dims import Shape
from twofold.ir.dtypes import DType
from twofold.ir.errors import InvalidArgumentError
from twofold.ir.op import Op, primitive
from twofold.ir.spec import spec
from twofold.ir.types import AnyTensor, Attr, Spec
from twofold.ir.windows import Padding

__all__ = ["max_pool", "max_pool_argmax", "max_pool_grad", "max_pool_gather", "avg_pool", "avg_pool_grad"]


def _pooled(op: Op, operands: Sequence[Spec], dims: Shape, ksize: Sequence[int], strides: Sequence[int],
            padding: Padding, dilations: Sequence[int]) -> Shape:
    spatial = len(dims) - 2
    windows.check(op, operands, spatial, strides, dilations, padding)
    if len(ksize) != spatial or any(k < 1 for k in ksize):
        raise rules.fail(op, operands, f"ksize must be {spatial} positive integers; got {tuple(ksize)}.",
                         InvalidArgumentError)
    sizes = windows.output_sizes(op, operands, dims[1:-1], ksize, strides, dilations, padding)
    if not isinstance(padding, str):
        _require_no_empty_window(op, operands, ksize, dilations, padding)
    return (dims[0], *sizes, dims[-1])


def _require_no_empty_window(op: Op, operands: Sequence[Spec], ksize: Sequence[int], dilations: Sequence[int],
                             padding: Sequence[tuple[int, int]]) -> None:
    """A window inside the padding has no maximum and no average."""
    for k, d, pair in zip(ksize, dilations, padding, strict=True):
        if max(pair) > (k - 1) * d:
            raise rules.fail(op, operands, f"padding {tuple(pair)} must be smaller than the window, {(k - 1) * d + 1}.",
                             InvalidArgumentError)


def _infer(op: Op, x: Spec, *, ksize: Sequence[int], strides: Sequence[int], padding: Padding, dilations: Sequence[int],
           dtypes: Collection[DType] = dt.FLOATING, result: DType | None = None) -> Spec:
    rules.require_dtype(op, (x,), 0, dtypes)
    rules.require_rank(op, (x,), 0, 3, 5)
    return spec(_pooled(op, (x,), x.dims, ksize, strides, padding, dilations), result or x.dtype)


def _require_dims(op: Op, operands: Sequence[Spec], have: Shape, want: Shape) -> None:
    if len(have) != len(want) or not all(dm.require_eq(h, w) for h, w in zip(have, want, strict=True)):
        raise rules.fail(op, operands, f"{op.params[0]} has shape [{','.join(map(str, have))}]; expected "
                         f"[{','.join(map(str, want))}].")


def _max_grad_infer(op: Op, ct: Spec, x: Spec, **window: Attr) -> Spec:
    dtype = rules.same_dtype(op, (ct, x))
    rules.require_dtype(op, (ct, x), 0, dt.FLOATING)
    rules.require_rank(op, (ct, x), 1, 3, 5)
    _require_dims(op, (ct, x), ct.dims, _pooled(op, (ct, x), x.dims, **window))
    return spec(x.dims, dtype)


def _gather_infer(op: Op, g: Spec, x: Spec, **window: Attr) -> Spec:
    dtype = rules.same_dtype(op, (g, x))
    rules.require_dtype(op, (g, x), 0, dt.FLOATING)
    rules.require_rank(op, (g, x), 1, 3, 5)
    _require_dims(op, (g, x), g.dims, x.dims)
    return spec(_pooled(op, (g, x), x.dims, **window), dtype)


def _avg_grad_infer(op: Op, ct: Spec, *, input_shape: Shape, **window: Attr) -> Spec:
    rules.require_dtype(op, (ct,), 0, dt.FLOATING)
    rules.require_rank(op, (ct,), 0, 3, 5)
    dims = (ct.dims[0], *input_shape)
    _require_dims(op, (ct,), ct.dims, _pooled(op, (ct,), dims, **window))
    return spec(dims, ct.dtype)


@primitive(infer=lambda op, x, **window: _infer(op, x, dtypes=dt.REAL, **window), saves=("x",), lower="pool",
           vjp=lambda ct, out, x, **window: (ops.max_pool_grad(ct, x, **window),), traits=("total",))
def max_pool(x: AnyTensor, *, ksize: Sequence[int], strides: Sequence[int], padding: Padding,
             dilations: Sequence[int]) -> AnyTensor:
    """The largest element of each window; NaN where it holds one.

    Args:
        x: real, [batch, spatial.., channels], of rank 3 to 5.
        ksize, strides, dilations: an integer for every spatial axis.
        padding: "SAME", "VALID", or a pair (before, after) for every spatial axis, smaller than the window.
    Returns:
        [batch, places.., channels].
    Raises:
        DTypeError: `x` is not real. ShapeError: its rank, or the window is too large. InvalidArgumentError: an
        attribute makes no sense.
    """


@primitive(infer=lambda op, x, **window: _infer(op, x, result=dt.int64, **window), vjp=None, lower="pool",
           traits=("total",))
def max_pool_argmax(x: AnyTensor, *, ksize: Sequence[int], strides: Sequence[int], padding: Padding,
                    dilations: Sequence[int]) -> AnyTensor:
    """Where the first largest element of each window lies: its number in the row-major image, channels included.

    Args:
        x: floating, [batch, spatial.., channels], of rank 3 to 5.
        ksize, strides, dilations, padding: as for `max_pool`.
    Returns:
        int64 [batch, places.., channels].
    Raises:
        DTypeError, ShapeError, InvalidArgumentError: as `max_pool`.
    """


@primitive(infer=_max_grad_infer, saves=("x",), lower="pool",
           vjp=lambda g, out, ct, x, **window: (lambda: ops.max_pool_gather(g, x, **window), None), traits=("total",))
def max_pool_grad(ct: AnyTensor, x: AnyTensor, *, ksize: Sequence[int], strides: Sequence[int], padding: Padding,
                  dilations: Sequence[int]) -> AnyTensor:
    """The gradient of `max_pool`: `ct` added up at the first largest element of each window of `x`.

    Args:
        ct: floating, of the shape that `max_pool(x)` has.
        x, ksize, strides, dilations, padding: as for `max_pool`.
    Returns:
        A tensor like `x`.
    Raises:
        DTypeError: dtypes differ or are not floating. ShapeError, InvalidArgumentError: as `max_pool`.
    """


@primitive(infer=_gather_infer, saves=("x",), lower="pool",
           vjp=lambda ct, out, g, x, **window: (lambda: ops.max_pool_grad(ct, x, **window), None), traits=("total",))
def max_pool_gather(g: AnyTensor, x: AnyTensor, *, ksize: Sequence[int], strides: Sequence[int], padding: Padding,
                    dilations: Sequence[int]) -> AnyTensor:
    """The element of `g` at the place of the first largest element of each window of `x`.

    Args:
        g: floating, of the shape of `x`.
        x, ksize, strides, dilations, padding: as for `max_pool`.
    Returns:
        [batch, places.., channels].
    Raises:
        DTypeError: dtypes differ or are not floating. ShapeError, InvalidArgumentError: as `max_pool`.
    """


@primitive(infer=_infer, saves=(), lower="pool",
           vjp=lambda ct, out, x, **window: (ops.avg_pool_grad(ct, input_shape=x.dims[1:], **window),),
           traits=("total",))
def avg_pool(x: AnyTensor, *, ksize: Sequence[int], strides: Sequence[int], padding: Padding,
             dilations: Sequence[int]) -> AnyTensor:
    """The average of each window; padding does not count.

    Args:
        x: floating, [batch, spatial.., channels], of rank 3 to 5.
        ksize, strides, dilations, padding: as for `max_pool`.
    Returns:
        [batch, places.., channels].
    Raises:
        DTypeError: `x` is not floating. ShapeError, InvalidArgumentError: as `max_pool`.
    """


@primitive(infer=_avg_grad_infer, saves=(), lower="pool",
           vjp=lambda g, out, ct, *, input_shape, **window: (ops.avg_pool(g, **window),), traits=("total",))
def avg_pool_grad(ct: AnyTensor, *, input_shape: Shape, ksize: Sequence[int], strides: Sequence[int], padding: Padding,
                  dilations: Sequence[int]) -> AnyTensor:
    """The gradient of `avg_pool`: each element of `ct` in equal shares to its window.

    Args:
        ct: floating, of the shape that `avg_pool` gives.
        input_shape: the shape of its input, without the batch.
        ksize, strides, dilations, padding: as for `max_pool`.
    Returns:
        [batch, *input_shape].
    Raises:
        DTypeError: `ct` is not floating. ShapeError, InvalidArgumentError: as `max_pool`.
    """
