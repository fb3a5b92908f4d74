"""Convolutions and both of their gradients, in ONNX's layout: channels before the spatial axes.

The transposes between the layouts are nodes here; what cancels is taken out afterwards (`export_simplify.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twofold.ir import graph as g
from twofold.ir import windows
from twofold.ir.dims import Dim, DimLike
from twofold.ir.windows import Padding

from .export_table import meaning
from .export_writer import NoMeaning, Ref, Writer

Pads = Sequence[tuple[DimLike, DimLike]]


def channels_first(w: Writer, x: Ref, rank: int) -> Ref:
    """[batch, channels, spatial..] of [batch, spatial.., channels]."""
    return w.op("Transpose", x, perm=[0, rank - 1, *range(1, rank - 1)])


def channels_last(w: Writer, x: Ref, rank: int) -> Ref:
    """[batch, spatial.., channels] of [batch, channels, spatial..]."""
    return w.op("Transpose", x, perm=[0, *range(2, rank), 1])


def known(sizes: Sequence[DimLike]) -> list[int] | None:
    """The sizes as numbers; None where one is unknown."""
    numbers = [int(s) for s in sizes if not isinstance(s, Dim)]
    return numbers if len(numbers) == len(sizes) else None


def padded(w: Writer, x: Ref, pads: Pads, value: Ref | None = None,
           window: Sequence[int] | None = None) -> tuple[Ref, list[int]]:
    """`x`, channels first, and ONNX's attribute `pads`.

    Padding that depends on unknown sizes is put on here, and so is that of as much as a `window` has places, which
    runtimes refuse for pooling though dilation may ask for it.
    """
    sides = [*[b for b, _ in pads], *[a for _, a in pads]]
    numbers = known(sides)
    if numbers is not None and (window is None or all(n < k for n, k in zip(numbers, [*window, *window], strict=True))):
        return x, numbers
    count = len(pads)
    amounts = w.shape([0, 0, *sides[:count], 0, 0, *sides[count:]])
    return w.op("Pad", x, amounts, value), [0] * (2 * count)


def zeros(w: Writer, node: g.Node) -> Ref:
    """The result of a node as zeros."""
    out = node.outputs[0]
    return w.op("Expand", w.constant(0, out.dtype), w.shape(out.dims))


def _outputs_first(w: Writer, x: Ref, rank: int) -> Ref:
    """[outputs, inputs / groups, window..] of the filters [window.., inputs / groups, outputs]."""
    return w.op("Transpose", x, perm=[rank - 1, rank - 2, *range(rank - 2)])


def _groups(inputs: DimLike, share: DimLike) -> int:
    groups = inputs // share
    if isinstance(groups, Dim):
        raise NoMeaning("ONNX needs the number of groups of a convolution", "give the number of channels")
    return groups


@meaning("conv")
def conv(w: Writer, node: g.Node, x: Ref, filters: Ref, *, strides: Sequence[int], padding: Padding,
         dilations: Sequence[int], precision: str) -> Ref:
    """`Conv`; 16-bit floats are summed in float32."""
    if 0 in node.outputs[0].dims:
        return zeros(w, node)
    x_dims, w_dims = (v.dims for v in node.inputs)
    rank, dtype = len(x_dims), x.dtype
    pads = windows.pads(x_dims[1:-1], w_dims[:-2], strides, dilations, padding)
    image, edges = padded(w, channels_first(w, w.cast(x, dtype.compute), rank), pads)
    made = w.op("Conv", image, _outputs_first(w, w.cast(filters, dtype.compute), rank), strides=list(strides),
                dilations=list(dilations), pads=edges, group=_groups(x_dims[-1], w_dims[-2]))
    return w.cast(channels_last(w, made, rank), dtype)


@meaning("conv_input_grad")
def conv_input_grad(w: Writer, node: g.Node, ct: Ref, filters: Ref, *, input_shape: Sequence[DimLike],
                    strides: Sequence[int], padding: Padding, dilations: Sequence[int], precision: str) -> Ref:
    """`ConvTranspose`."""
    if 0 in node.inputs[0].dims or 0 in node.outputs[0].dims:
        return zeros(w, node)
    rank, dtype, w_dims = len(input_shape) + 1, ct.dtype, node.inputs[1].dims
    group = _groups(input_shape[-1], w_dims[-2])
    pads = windows.pads(input_shape[:-1], w_dims[:-2], strides, dilations, padding)
    image = channels_first(w, w.cast(ct, dtype.compute), rank)
    turned = _outputs_first(w, w.cast(filters, dtype.compute), rank)
    places = node.inputs[0].dims[1:-1]
    made = transposed(w, image, turned, places, input_shape[:-1], w_dims[:-2], pads, strides, dilations, group)
    return w.cast(channels_last(w, made, rank), dtype)


def transposed(w: Writer, image: Ref, filters: Ref, places: Sequence[DimLike], sizes: Sequence[DimLike],
               window: Sequence[DimLike], pads: Pads, strides: Sequence[int], dilations: Sequence[int],
               group: int) -> Ref:
    """`ConvTranspose` with a result of the spatial `sizes`.

    Args:
        image, filters: in ONNX's layouts.
        places: the spatial sizes of `image`.
        pads: of the convolution whose gradient this is.
    """
    whole = [(p - 1) * s + (k - 1) * d + 1
             for p, s, k, d in zip(places, strides, window, dilations, strict=True)]
    left = [n + b + a - e for n, (b, a), e in zip(sizes, pads, whole, strict=True)]
    plain: dict[str, Any] = {"strides": list(strides), "dilations": list(dilations), "group": group}
    edges, rest = known([*[b for b, _ in pads], *[a for _, a in pads]]), known(left)
    if edges is not None and rest is not None and all(0 <= n < s for n, s in zip(rest, strides, strict=True)):
        return w.op("ConvTranspose", image, filters, pads=edges, output_padding=rest, **plain)
    made = w.op("ConvTranspose", image, filters, **plain)
    count = len(sizes)
    made = w.op("Pad", made, w.shape([0] * (count + 4) + list(left)))
    starts, ends = [b for b, _ in pads], [b + n for (b, _), n in zip(pads, sizes, strict=True)]
    return w.op("Slice", made, w.shape(starts), w.shape(ends), w.ints(range(2, count + 2)))


@meaning("conv_filter_grad")
def conv_filter_grad(w: Writer, node: g.Node, x: Ref, ct: Ref, *, filter_shape: Sequence[DimLike],
                     strides: Sequence[int], padding: Padding, dilations: Sequence[int], precision: str) -> Ref:
    """A convolution in which channels are the batch and the batch is summed over; strides and dilations change places.

    Groups stay groups: each has the batch as its input channels.
    """
    if 0 in node.inputs[1].dims or 0 in node.outputs[0].dims:
        return zeros(w, node)
    x_dims = node.inputs[0].dims
    rank, dtype = len(x_dims), x.dtype
    share = filter_shape[-2]
    group = _groups(x_dims[-1], share)
    pads = windows.pads(x_dims[1:-1], filter_shape[:-2], strides, dilations, padding)
    image = w.cast(x, dtype.compute)
    spatial = list(range(1, rank - 1))
    if group == 1:
        image = w.op("Transpose", image, perm=[rank - 1, 0, *spatial])
    else:
        image = w.reshaped(image, [*x_dims[:-1], group, share])
        image = w.op("Transpose", image, perm=[rank, rank - 1, 0, *spatial])
        image = w.reshaped(image, [share, group * x_dims[0], *x_dims[1:-1]])
    image, edges = padded(w, image, pads)
    turned = w.op("Transpose", w.cast(ct, dtype.compute), perm=[rank - 1, 0, *spatial])
    made = w.op("Conv", image, turned, strides=list(dilations), dilations=list(strides), pads=edges, group=group)
    window = list(filter_shape[:-2])
    made = w.op("Slice", made, w.ints([0] * len(window)), w.shape(window), w.ints(range(2, rank)))
    return w.cast(w.op("Transpose", made, perm=[*range(2, rank), 0, 1]), dtype)
