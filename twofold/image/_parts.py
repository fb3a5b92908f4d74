"""Parts of images, images within larger ones, and turns."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import ANY, ints, one_part, public
from twofold._ops.array_creation import as_scalar

from ._common import batched, images_of, is_number, pixels, require, sized, sizes_of

__all__ = ["central_crop", "crop_to_bounding_box", "extract_patches", "flip_left_right", "flip_up_down",
           "pad_to_bounding_box", "padded", "resize_with_crop_or_pad", "rot90", "transpose"]


@public
def flip_left_right(image: Any) -> Any:
    """Images [.., height, width, channels] with left and right exchanged.

    >>> import twofold as tf
    >>> tf.image.flip_left_right([[[1], [2]]])[0, :, 0].numpy().tolist()
    [2, 1]
    """
    return tf.reverse(images_of(image, "flip_left_right"), [-2])


@public
def flip_up_down(image: Any) -> Any:
    """Images [.., height, width, channels] with top and bottom exchanged."""
    return tf.reverse(images_of(image, "flip_up_down"), [-3])


def _exchanged(x: Any) -> Any:
    rank = x.shape.rank
    return tf.transpose(x, [*range(rank - 3), rank - 2, rank - 3, rank - 1])


@public
def transpose(image: Any, name: str | None = None) -> Any:
    """Images [.., height, width, channels] with rows and columns exchanged. `name` has no effect."""
    return _exchanged(images_of(image, "transpose"))


@public
def rot90(image: Any, k: Any = 1, name: str | None = None) -> Any:
    """Images [.., height, width, channels] turned counter-clockwise by quarters.

    Args:
        image: the images.
        k: how many quarters, an integer or a scalar tensor.
        name: accepted, without effect.

    >>> import twofold as tf
    >>> tf.image.rot90([[[1], [2]], [[3], [4]]])[:, :, 0].numpy().tolist()
    [[2, 4], [1, 3]]
    """
    x = images_of(image, "rot90")
    turns = [lambda: tf.identity(x), lambda: tf.reverse(_exchanged(x), [-3]), lambda: tf.reverse(x, [-3, -2]),
             lambda: tf.reverse(_exchanged(x), [-2])]
    quarters = one_part(k, "k")
    if is_number(quarters):
        return turns[quarters % 4]()
    return tf.switch_case(tf.cast(as_scalar(quarters) % 4, tf.int32), turns)


# -- rectangles ----------------------------------------------------------------------------------------
@public
def crop_to_bounding_box(image: Any, offset_height: Any, offset_width: Any, target_height: Any,
                         target_width: Any) -> Any:
    """A rectangle of images.

    Args:
        image: [height, width, channels] or [batch, height, width, channels].
        offset_height, offset_width: the first row and column of it.
        target_height, target_width: its size.
    Raises:
        ValueError: it is not within the images.

    >>> import twofold as tf
    >>> tf.image.crop_to_bounding_box([[[1], [2]], [[3], [4]]], 1, 0, 1, 2)[:, :, 0].numpy().tolist()
    [[3, 4]]
    """
    def cropped(x: Any) -> Any:
        starts = [pixels(offset_height, "offset_height"), pixels(offset_width, "offset_width")]
        target = [pixels(target_height, "target_height", 1), pixels(target_width, "target_width", 1)]
        for start, length, size, what in zip(starts, target, sizes_of(x, 1), ("height", "width"), strict=True):
            require(size - start >= length, f"{what} must be >= target + offset.")
        part = x[:, starts[0]:starts[0] + target[0], starts[1]:starts[1] + target[1]]
        return sized(part, *target)
    return batched(image, "crop_to_bounding_box", cropped)


@public
def pad_to_bounding_box(image: Any, offset_height: Any, offset_width: Any, target_height: Any,
                        target_width: Any) -> Any:
    """Images within larger ones of zeros.

    Args:
        image: [height, width, channels] or [batch, height, width, channels].
        offset_height, offset_width: how many rows and columns of zeros come first.
        target_height, target_width: the size of the result.
    Raises:
        ValueError: they do not fit.

    >>> import twofold as tf
    >>> tf.image.pad_to_bounding_box([[[7]]], 1, 0, 2, 2)[:, :, 0].numpy().tolist()
    [[0, 0], [7, 0]]
    """
    return batched(image, "pad_to_bounding_box",
                   lambda x: padded(x, offset_height, offset_width, target_height, target_width))


def padded(x: Any, top: Any, left: Any, height: Any, width: Any) -> Any:
    """A batch of images within larger ones of zeros."""
    own = sizes_of(x, 1)
    top, left = pixels(top, "offset_height"), pixels(left, "offset_width")
    height, width = pixels(height, "target_height"), pixels(width, "target_width")
    below, right = height - top - own[0], width - left - own[1]
    require(below >= 0, "height must be <= target - offset")
    require(right >= 0, "width must be <= target - offset")
    return sized(tf.pad(x, [[0, 0], [top, below], [left, right], [0, 0]]), height, width)


@public
def resize_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Any:
    """The middle of images that are larger than a size, and zeros around those that are smaller.

    Args:
        image: [height, width, channels] or [batch, height, width, channels].
        target_height, target_width: the size.
    Raises:
        ValueError: the size is not positive.

    >>> import twofold as tf
    >>> tf.image.resize_with_crop_or_pad([[[1], [2], [3]]], 2, 1)[:, :, 0].numpy().tolist()
    [[2], [0]]
    """
    target = pixels(target_height, "target_height", 1), pixels(target_width, "target_width", 1)

    def fitted(x: Any) -> Any:
        size = sizes_of(x, 1)
        cut = [_positive(s - t) // 2 for s, t in zip(size, target, strict=True)]
        add = [_positive(t - s) // 2 for s, t in zip(size, target, strict=True)]
        kept = [_smaller(s, t) for s, t in zip(size, target, strict=True)]
        part = x[:, cut[0]:cut[0] + kept[0], cut[1]:cut[1] + kept[1]]
        return padded(part, add[0], add[1], target[0], target[1])
    return batched(image, "resize_with_crop_or_pad", fitted)


def _positive(value: Any) -> Any:
    return max(value, 0) if is_number(value) else tf.maximum(value, 0)


def _smaller(a: Any, b: Any) -> Any:
    return min(a, b) if is_number(a, b) else tf.minimum(a, b)


@public
def central_crop(image: Any, central_fraction: Any) -> Any:
    """The middle of images.

    Args:
        image: [height, width, channels] or [batch, height, width, channels].
        central_fraction: what part of height and width is kept, in (0, 1].
    Raises:
        ValueError: it is out of its range.

    >>> import twofold as tf
    >>> tf.image.central_crop(tf.reshape(tf.range(16), [4, 4, 1]), 0.5)[:, :, 0].numpy().tolist()
    [[5, 6], [9, 10]]
    """
    part = tf.get_static_value(tf.convert_to_tensor(central_fraction))
    if part is None or part.shape or part.dtype.kind not in "fiu":
        raise TypeError(f"central_crop: central_fraction must be one number that is known; got {central_fraction!r}")
    part = float(part) if tf.is_tensor(central_fraction) else float(central_fraction)
    require(0.0 < part <= 1.0, "central_fraction is not within (0, 1]")

    def cropped(x: Any) -> Any:
        begin, kept = [], []
        for size in sizes_of(x, 1):
            if is_number(size):
                first = int((size - size * part) / 2)
            else:
                whole = tf.cast(size, tf.float64)
                first = tf.cast((whole - whole * part) / 2, tf.int32)
            begin.append(first)
            kept.append(size - 2 * first)
        return x[:, begin[0]:begin[0] + kept[0], begin[1]:begin[1] + kept[1]]
    return x if part == 1.0 and (x := images_of(image, "central_crop")) is not None else batched(
        image, "central_crop", cropped)


@public
def extract_patches(images: Any, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None) -> Any:
    """Rectangles of images, flat, one for each place.

    Args:
        images: [batch, height, width, channels].
        sizes: [1, rows, columns, 1] of a rectangle.
        strides: [1, rows, columns, 1] from one to the next.
        rates: [1, rows, columns, 1] from one pixel of a rectangle to the next.
        padding: "VALID" for places where it is within the image, "SAME" for all, with zeros outside.
        name: accepted, without effect.
    Returns:
        [batch, places down, places across, rows * columns * channels].
    Raises:
        ValueError: an argument is none of these.

    >>> import twofold as tf
    >>> x = tf.reshape(tf.range(9), [1, 3, 3, 1])
    >>> tf.image.extract_patches(x, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID")[0, 0, 0].numpy().tolist()
    [0, 1, 3, 4]
    """
    x = images_of(images, "extract_patches", 4)
    (rows, columns), (down, across), (row_rate, column_rate) = (
        _middle(v, what) for v, what in ((sizes, "sizes"), (strides, "strides"), (rates, "rates")))
    span = (rows - 1) * row_rate + 1, (columns - 1) * column_rate + 1
    height, width = sizes_of(x, 1)
    padding = padding.upper() if isinstance(padding, str) else padding
    if padding == "SAME":
        pads = []
        for size, whole, stride in zip((height, width), span, (down, across), strict=True):
            total = _positive((-(-size // stride) - 1) * stride + whole - size)
            pads.append([total // 2, total - total // 2])
        x = tf.pad(x, [[0, 0], *pads, [0, 0]])
        height, width = sizes_of(x, 1)
    elif padding != "VALID":
        raise ValueError(f"padding must be 'SAME' or 'VALID'; got {padding!r}")
    last = height - span[0] + 1, width - span[1] + 1
    parts = [x[:, i * row_rate:i * row_rate + last[0]:down, j * column_rate:j * column_rate + last[1]:across]
             for i in range(rows) for j in range(columns)]
    return tf.concat(parts, axis=-1)


def _middle(value: Any, what: str) -> tuple[int, int]:
    given = ints(value, what, ANY)
    if len(given) != 4 or given[0] != 1 or given[3] != 1 or min(given) < 1:
        raise ValueError(f"extract_patches: {what} must be [1, rows, columns, 1]; got {value!r}")
    return given[1], given[2]
