"""Images seen through affine and projective maps: where each pixel comes from, and what lies beyond the edges."""

from __future__ import annotations

from typing import Any

import twofold as tf

__all__ = ["FILL_MODES", "INTERPOLATIONS", "MIRROR", "sampled", "transformed"]

FILL_MODES = ("constant", "nearest", "wrap", "reflect")
MIRROR = "mirror"  # of `sampled` alone
INTERPOLATIONS = ("nearest", "bilinear")


def transformed(images: Any, maps: Any, interpolation: str, fill_mode: str, fill_value: float) -> Any:
    """Each image through a map of its own.

    Args:
        images: floating [batch, height, width, channels].
        maps: float32 [batch, 6]: (a, b, c, d, e, f) take the pixel at (x, y) from (a x + b y + c, d x + e y + f).
            Of [batch, 8] the last two, g and h, make a projection: these are divided by g x + h y + 1.
        interpolation: one of `INTERPOLATIONS`.
        fill_mode: one of `FILL_MODES`: what is beyond the edges, as (d c b a | a b c d | d c b a) for "reflect" and
            (a b c d | a b c d | a b c d) for "wrap".
        fill_value: what is there with "constant".
    Returns:
        Images of the same shape and dtype.
    """
    shape = tf.shape(images)
    height, width = _size(images, shape, 1), _size(images, shape, 2)
    x = tf.cast(tf.range(width), tf.float32)[tf.newaxis, tf.newaxis, :]
    y = tf.cast(tf.range(height), tf.float32)[tf.newaxis, :, tf.newaxis]
    a, b, c, d, e, f, *rest = (maps[:, n, tf.newaxis, tf.newaxis] for n in range(maps.shape[1]))
    from_x, from_y = a * x + b * y + c, d * x + e * y + f
    if rest:
        depth = rest[0] * x + rest[1] * y + 1
        from_x, from_y = from_x / depth, from_y / depth
    return sampled(images, from_x, from_y, interpolation, fill_mode, fill_value)


def sampled(images: Any, from_x: Any, from_y: Any, interpolation: str, fill_mode: str, fill_value: float) -> Any:
    """Each image with every pixel taken from a place of its own.

    Args:
        images: floating [batch, height, width, channels].
        from_x, from_y: float32 [batch, new height, new width]: the places.
        interpolation: one of `INTERPOLATIONS`.
        fill_mode: one of `FILL_MODES`, or `MIRROR`: as (d c b | a b c d | c b a).
        fill_value: what is beyond the edges with "constant".
    Returns:
        Images with a pixel for each place.
    """
    shape, target = tf.shape(images), tf.shape(from_x)
    height, width = _size(images, shape, 1), _size(images, shape, 2)
    new_height, new_width = _size(from_x, target, 1), _size(from_x, target, 2)
    across, down = _within(from_x, width, fill_mode), _within(from_y, height, fill_mode)
    rows = tf.reshape(images, [shape[0], height * width, images.shape[3]])
    constant = fill_mode == "constant"

    def pixels(at_x: Any, at_y: Any) -> Any:
        """The pixels at whole numbers; the fill value where there are none."""
        column, row = tf.cast(at_x, tf.int32), tf.cast(at_y, tf.int32)
        last_x, last_y = tf.cast(width, tf.int32) - 1, tf.cast(height, tf.int32) - 1
        place = tf.clip_by_value(row, 0, last_y) * (last_x + 1) + tf.clip_by_value(column, 0, last_x)
        gathered = tf.gather(rows, tf.reshape(place, [shape[0], new_height * new_width]), axis=1, batch_dims=1)
        gathered = tf.reshape(gathered, [shape[0], new_height, new_width, images.shape[3]])
        there = (column >= 0) & (column <= last_x) & (row >= 0) & (row <= last_y)
        # the neighbour of an edge pixel has no share where places are brought into the image
        return tf.where(there[..., tf.newaxis], gathered, tf.cast(fill_value if constant else 0.0, gathered.dtype))

    if interpolation == "nearest":
        return pixels(_rounded(across), _rounded(down))
    left, top = tf.floor(across), tf.floor(down)
    right_share = tf.cast((across - left)[..., tf.newaxis], images.dtype)
    low_share = tf.cast((down - top)[..., tf.newaxis], images.dtype)
    high = (1 - right_share) * pixels(left, top) + right_share * pixels(left + 1, top)
    low = (1 - right_share) * pixels(left, top + 1) + right_share * pixels(left + 1, top + 1)
    return (1 - low_share) * high + low_share * low


def _size(images: Any, shape: Any, axis: int) -> Any:
    return shape[axis] if images.shape[axis] is None else images.shape[axis]


def _rounded(places: Any) -> Any:
    """To the nearest whole number, halves away from zero."""
    return tf.sign(places) * tf.floor(tf.abs(places) + 0.5)


def _within(places: Any, size: Any, fill_mode: str) -> Any:
    """Places along an axis, brought into the image; unchanged for "constant"."""
    if fill_mode == "constant":
        return places
    count = tf.cast(size, tf.float32)
    if fill_mode == "reflect":
        # the image and its mirror image take turns, each edge pixel twice
        turned = tf.math.floormod(places, 2 * count)
        places = tf.where((places < 0) | (places > count - 1),
                          tf.where(turned >= count, 2 * count - 1 - turned, turned), places)
    elif fill_mode == MIRROR:
        # likewise, each edge pixel once
        period = tf.maximum(2 * (count - 1), 1.0)
        turned = tf.math.floormod(places, period)
        places = tf.where(turned > count - 1, period - turned, turned)
    elif fill_mode == "wrap":
        # a turn is as long as the image, the way from the last pixel to the first included
        span = tf.maximum(count - 1, 1.0)
        places = tf.where(places < 0, places + count * (tf.floor(-places / span) + 1),
                          tf.where(places > count - 1, places - count * tf.floor(places / span), places))
    return tf.clip_by_value(places, 0.0, count - 1)
