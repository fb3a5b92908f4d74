"""Convolution over one to three spatial axes, channels last, with its two gradients as ops of their own.

The three are linear in each operand and each other's gradients, so that derivatives of any order stay among them.
Groups follow from the shapes: a filter that takes a share of the input's channels works on each share in turn, which
makes depthwise convolution the case of one channel a group. Other layouts are transposed in `twofold/nn.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import ops, rules, windows
from twofold.ir.dims import Shape
from twofold.ir.dtypes import DType
from twofold.ir.op import Op, primitive
from twofold.ir.precision import EXACT
from twofold.ir.spec import spec
from twofold.ir.types import AnyTensor, Attr, Cotangents, Spec
from twofold.ir.windows import Padding

__all__ = ["conv", "conv_input_grad", "conv_filter_grad"]


def _output_dims(op: Op, operands: Sequence[Spec], x: Shape, w: Shape, strides: Sequence[int], padding: Padding,
                 dilations: Sequence[int]) -> Shape:
    """The shape of a convolution of `x` [batch, spatial.., in] by `w` [window.., in / groups, out]."""
    spatial = len(x) - 2
    windows.check(op, operands, spatial, strides, dilations, padding)
    if not (dm.require(w[-2], ">", 0) and dm.require_eq(x[-1] % w[-2], 0)):
        raise rules.fail(op, operands, f"the input's {x[-1]} channels are not a multiple of the filter's {w[-2]}.")
    groups = x[-1] // w[-2]
    if not (dm.require(groups, ">", 0) and dm.require_eq(w[-1] % groups, 0)):
        raise rules.fail(op, operands, f"the filter's {w[-1]} output channels do not divide among {groups} groups.")
    sizes = windows.output_sizes(op, operands, x[1:-1], w[:-2], strides, dilations, padding)
    return (x[0], *sizes, w[-1])


def _require_like(op: Op, operands: Sequence[Spec], what: str, have: Shape, want: Shape) -> None:
    if len(have) != len(want) or not all(dm.require_eq(h, w) for h, w in zip(have, want, strict=True)):
        raise rules.fail(op, operands, f"{what} has shape [{','.join(map(str, have))}]; expected "
                         f"[{','.join(map(str, want))}].")


def _floating(op: Op, operands: Sequence[Spec], precision: str) -> DType:
    rules.require_precision(op, operands, precision)
    dtype = rules.same_dtype(op, operands)
    rules.require_dtype(op, operands, 0, dt.FLOATING)
    rank = rules.require_rank(op, operands, 0, 3, 5)
    rules.require_rank(op, operands, 1, rank, rank)
    return dtype


def _conv_infer(op: Op, x: Spec, w: Spec, *, strides: Sequence[int], padding: Padding,
                dilations: Sequence[int], precision: str) -> Spec:
    dtype = _floating(op, (x, w), precision)
    return spec(_output_dims(op, (x, w), x.dims, w.dims, strides, padding, dilations), dtype)


def _input_grad_infer(op: Op, ct: Spec, w: Spec, *, input_shape: Shape, strides: Sequence[int], padding: Padding,
                      dilations: Sequence[int], precision: str) -> Spec:
    dtype = _floating(op, (ct, w), precision)
    dims = (ct.dims[0], *input_shape)
    _require_like(op, (ct, w), "input_shape, batch included,", dims[:len(ct.dims)], dims)
    _require_like(op, (ct, w), "ct", ct.dims, _output_dims(op, (ct, w), dims, w.dims, strides, padding, dilations))
    return spec(dims, dtype)


def _filter_grad_infer(op: Op, x: Spec, ct: Spec, *, filter_shape: Shape, strides: Sequence[int], padding: Padding,
                       dilations: Sequence[int], precision: str) -> Spec:
    dtype = _floating(op, (x, ct), precision)
    want = _output_dims(op, (x, ct), x.dims, tuple(filter_shape), strides, padding, dilations)
    _require_like(op, (x, ct), "ct", ct.dims, want)
    return spec(tuple(filter_shape), dtype)


def _conv_vjp(ct: AnyTensor, out: Spec, x: AnyTensor, w: AnyTensor, **window: Attr) -> Cotangents:
    return (lambda: ops.conv_input_grad(ct, w, input_shape=x.dims[1:], **window),
            lambda: ops.conv_filter_grad(x, ct, filter_shape=w.dims, **window))


def _input_grad_vjp(g: AnyTensor, out: Spec, ct: AnyTensor, w: AnyTensor, *, input_shape: Shape,
                    **window: Attr) -> Cotangents:
    return lambda: ops.conv(g, w, **window), lambda: ops.conv_filter_grad(g, ct, filter_shape=w.dims, **window)


def _filter_grad_vjp(g: AnyTensor, out: Spec, x: AnyTensor, ct: AnyTensor, *, filter_shape: Shape,
                     **window: Attr) -> Cotangents:
    return lambda: ops.conv_input_grad(ct, g, input_shape=x.dims[1:], **window), lambda: ops.conv(x, g, **window)


@primitive(infer=_conv_infer, vjp=_conv_vjp, saves=("x", "w"), lower="conv", traits=("total",))
def conv(x: AnyTensor, w: AnyTensor, *, strides: Sequence[int], padding: Padding,
         dilations: Sequence[int], precision: str = EXACT) -> AnyTensor:
    """Cross-correlation of `x` with filters `w`, as deep learning calls convolution.

    Args:
        x: floating, [batch, spatial.., channels], of rank 3 to 5.
        w: of the same dtype, [window.., channels / groups, outputs].
        strides, dilations: an integer for every spatial axis.
        padding: "SAME", "VALID", or a pair (before, after) for every spatial axis.
        precision: "exact", or "fast" for tensor cores of GPUs; processors compute either alike.
    Returns:
        [batch, places.., outputs].
    Raises:
        DTypeError: dtypes differ or are not floating. ShapeError: ranks or channels do not fit, or the window is too
        large. InvalidArgumentError: an attribute makes no sense.
    """


@primitive(infer=_input_grad_infer, vjp=_input_grad_vjp, saves=("ct", "w"), lower="conv", traits=("total",))
def conv_input_grad(ct: AnyTensor, w: AnyTensor, *, input_shape: Shape, strides: Sequence[int], padding: Padding,
                    dilations: Sequence[int], precision: str = EXACT) -> AnyTensor:
    """The gradient of `conv` for its input, which is transposed convolution.

    Args:
        ct: floating, of the shape that `conv` gives.
        w: its filters.
        input_shape: the shape of its input, without the batch.
        strides, padding, dilations, precision: as for `conv`.
    Raises:
        DTypeError: dtypes differ or are not floating. ShapeError: shapes do not fit. InvalidArgumentError: an
        attribute makes no sense.
    """


@primitive(infer=_filter_grad_infer, vjp=_filter_grad_vjp, saves=("x", "ct"), lower="conv", traits=("total",))
def conv_filter_grad(x: AnyTensor, ct: AnyTensor, *, filter_shape: Shape, strides: Sequence[int], padding: Padding,
                     dilations: Sequence[int], precision: str = EXACT) -> AnyTensor:
    """The gradient of `conv` for its filters.

    Args:
        x: floating, the input of `conv`.
        ct: of the shape that it gives.
        filter_shape: the shape of its filters.
        strides, padding, dilations, precision: as for `conv`.
    Raises:
        DTypeError: dtypes differ or are not floating. ShapeError: shapes do not fit. InvalidArgumentError: an
        attribute makes no sense.
    """
