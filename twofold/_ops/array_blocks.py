"""Blocks of space moved to the batch or to the channels, and back. Re-exported by `twofold/array.py` and `tf.nn`."""

from __future__ import annotations

from typing import Any

from twofold._front.api import ints, one_int, public, tensor
from twofold._ops.array_creation import constant_of
from twofold.ir import ops
from twofold.ir.dims import decide, numel, require, require_eq
from twofold.ir.errors import InvalidArgumentError

__all__ = ["space_to_batch", "space_to_batch_nd", "batch_to_space", "space_to_depth", "depth_to_space"]


def _blocks(op: str, x: Any, block_shape: Any, margins: Any, what: str) -> tuple[Any, Any]:
    """The block shape, and a pair of margins for each of its axes."""
    block = ints(block_shape, "block_shape")
    if not block or any(decide(b, "<", 1) for b in block) or len(x.dims) < 1 + len(block):
        raise InvalidArgumentError(f"{op}: block_shape {list(block)} does not fit input of shape {x.shape}.")
    flat = ints(tensor(margins), what)
    if len(flat) != 2 * len(block) or any(isinstance(n, int) and n < 0 for n in flat):
        raise InvalidArgumentError(f"{op}: {what} must be {len(block)} pairs of numbers that are not negative; got "
                                   f"{margins!r}.")
    return block, list(zip(flat[::2], flat[1::2], strict=True))


@public
def space_to_batch(input: Any, block_shape: Any, paddings: Any, name: str | None = None) -> Any:
    """A tensor whose space axes are padded with zeros and cut in blocks; places in a block become batch entries.

    Args:
        input: a tensor of shape [batch, space.., rest..].
        block_shape: the size of a block along each space axis.
        paddings: for each space axis how many zeros come before and after.
        name: has no effect.
    Returns:
        A tensor of shape [batch * product of block_shape, padded space / block_shape.., rest..].
    Raises:
        tf.errors.InvalidArgumentError: shapes do not fit, or blocks do not divide the padded space.

    >>> import twofold as tf
    >>> x = tf.reshape(tf.range(1, 5), [1, 2, 2, 1])
    >>> tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]]).numpy().ravel().tolist()
    [1, 2, 3, 4]
    """
    x = tensor(input)
    block, around = _blocks("space_to_batch", x, block_shape, paddings, "paddings")
    count = len(block)
    rest = len(x.dims) - 1 - count
    x = ops.pad(x, constant_of(0, x.dtype), paddings=((0, 0), *around, *[(0, 0)] * rest))
    batch, *sizes = x.dims
    for size, b in zip(sizes, block, strict=False):
        if not require_eq(size % b, 0):
            raise InvalidArgumentError(f"space_to_batch: padded_shape={size} is not divisible by block_shape={b}")
    apart = [n for size, b in zip(sizes, block, strict=False) for n in (size // b, b)]
    x = ops.reshape(x, shape=(batch, *apart, *sizes[count:]))
    inside, outside = range(2, 2 * count + 1, 2), range(1, 2 * count, 2)
    x = ops.transpose(x, perm=(*inside, 0, *outside, *range(2 * count + 1, 2 * count + 1 + rest)))
    return ops.reshape(x, shape=(batch * numel(block), *apart[::2], *sizes[count:]))


space_to_batch_nd = space_to_batch


@public
def batch_to_space(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Any:
    """The inverse of `tf.space_to_batch`: batch entries become places in blocks of space, whose edges are cut off.

    Args:
        input: a tensor of shape [batch, space.., rest..].
        block_shape: the size of a block along each space axis; their product divides the batch.
        crops: for each space axis how much is cut off at the beginning and at the end.
        name: has no effect.
    Returns:
        A tensor of shape [batch / product of block_shape, space * block_shape - crops.., rest..].
    Raises:
        tf.errors.InvalidArgumentError: shapes do not fit.

    >>> import twofold as tf
    >>> x = tf.reshape(tf.range(1, 5), [4, 1, 1, 1])
    >>> tf.batch_to_space(x, [2, 2], [[0, 0], [0, 0]]).numpy()[0, :, :, 0].tolist()
    [[1, 2], [3, 4]]
    """
    x = tensor(input)
    block, cut = _blocks("batch_to_space", x, block_shape, crops, "crops")
    count = len(block)
    batch, *sizes = x.dims
    if not require_eq(batch % numel(block), 0):
        raise InvalidArgumentError(f"batch_to_space: Input batch dimension ({batch}) is not divisible by product of "
                                   f"block sizes ({numel(block)})")
    own = batch // numel(block)
    x = ops.reshape(x, shape=(*block, own, *sizes))
    order = [a for i in range(count) for a in (count + 1 + i, i)]
    x = ops.transpose(x, perm=(count, *order, *range(2 * count + 1, count + 1 + len(sizes))))
    grown = [s * b for s, b in zip(sizes, block, strict=False)]
    x = ops.reshape(x, shape=(own, *grown, *sizes[count:]))
    for size, (before, after) in zip(grown, cut, strict=True):
        if not require(before + after, "<=", size):
            raise InvalidArgumentError(f"batch_to_space: crops {before} and {after} leave nothing of an axis of size "
                                       f"{size}.")
    inside = [(b, size - a, None) for size, (b, a) in zip(grown, cut, strict=True)]
    return ops.strided_slice(x, spec=((None, None, None), *inside))


def _as_nhwc(op: str, input: Any, block_size: Any, data_format: str) -> tuple[Any, int]:
    x, block = tensor(input), one_int(block_size, "block_size")
    if len(x.dims) != 4 or block < 2 or data_format not in ("NHWC", "NCHW"):
        raise InvalidArgumentError(f"{op}: input must have rank 4, block_size be at least 2 and data_format NHWC or "
                                   f"NCHW; got shape {x.shape}, {block} and {data_format!r}.")
    return (ops.transpose(x, perm=(0, 2, 3, 1)) if data_format == "NCHW" else x), block


def _from_nhwc(x: Any, data_format: str) -> Any:
    return ops.transpose(x, perm=(0, 3, 1, 2)) if data_format == "NCHW" else x


@public
def space_to_depth(input: Any, block_size: Any, data_format: str = "NHWC", name: str | None = None) -> Any:
    """An image with blocks of space moved to the channels.

    Args:
        input: a tensor of shape [batch, height, width, channels], or in the order of `data_format`.
        block_size: the height and width of a block, at least 2; it divides those of the image.
        data_format: "NHWC" or "NCHW".
        name: has no effect.
    Returns:
        A tensor of shape [batch, height / block_size, width / block_size, channels * block_size ** 2].
    Raises:
        tf.errors.InvalidArgumentError: the shape does not fit.

    >>> import twofold as tf
    >>> tf.nn.space_to_depth(tf.zeros([1, 4, 4, 3]), 2).shape
    TensorShape([1, 2, 2, 12])
    """
    x, b = _as_nhwc("space_to_depth", input, block_size, data_format)
    n, h, w, c = x.dims
    if not (require_eq(h % b, 0) and require_eq(w % b, 0)):
        raise InvalidArgumentError(f"space_to_depth: Image width {w} and height {h} should be divisible by "
                                   f"block_size: {b}")
    x = ops.transpose(ops.reshape(x, shape=(n, h // b, b, w // b, b, c)), perm=(0, 1, 3, 2, 4, 5))
    return _from_nhwc(ops.reshape(x, shape=(n, h // b, w // b, b * b * c)), data_format)


@public
def depth_to_space(input: Any, block_size: Any, data_format: str = "NHWC", name: str | None = None) -> Any:
    """The inverse of `tf.nn.space_to_depth`: channels become blocks of space.

    Args:
        input: a tensor of shape [batch, height, width, channels], or in the order of `data_format`.
        block_size: the height and width of a block, at least 2; its square divides the number of channels.
        data_format: "NHWC" or "NCHW".
        name: has no effect.
    Returns:
        A tensor of shape [batch, height * block_size, width * block_size, channels / block_size ** 2].
    Raises:
        tf.errors.InvalidArgumentError: the shape does not fit.

    >>> import twofold as tf
    >>> tf.nn.depth_to_space(tf.zeros([1, 2, 2, 12]), 2).shape
    TensorShape([1, 4, 4, 3])
    """
    x, b = _as_nhwc("depth_to_space", input, block_size, data_format)
    n, h, w, c = x.dims
    if not require_eq(c % (b * b), 0):
        raise InvalidArgumentError(f"depth_to_space: Input depth dimension {c} should be divisible by: {b * b}")
    x = ops.transpose(ops.reshape(x, shape=(n, h, w, b, b, c // (b * b))), perm=(0, 1, 3, 2, 4, 5))
    return _from_nhwc(ops.reshape(x, shape=(n, h * b, w * b, c // (b * b))), data_format)
