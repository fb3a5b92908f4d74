"""Images of other sizes, in any layout and floating dtype, by the interpolation of `tf.image`."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold.image._interpolation import axis_resized, kernel_weights, nearest_along, product

__all__ = ["INTERPOLATIONS", "resized", "resized_images", "sampled"]

INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5")


def resized(x: Any, axis: int, target: Any, interpolation: str, antialias: bool = False) -> Any:
    """`x` with another size along an axis.

    Args:
        x: floating tensor.
        axis: which axis, not negative.
        target: its new size, an integer or a scalar tensor.
        interpolation: one of `INTERPOLATIONS`.
        antialias: whether the weights widen where the axis gets smaller.
    """
    if interpolation == "nearest":
        return nearest_along(x, axis, target)
    return axis_resized(x, axis, target, interpolation, antialias)


def sampled(x: Any, axis: int, size: Any, places: Any, spread: Any, interpolation: str) -> Any:
    """What is at places along an axis, between its elements; zeros beyond it.

    Args:
        x: floating tensor.
        axis: which axis, not negative.
        size: its size.
        places: float32 [n].
        spread: how much wider the weights are than the distance of two elements.
        interpolation: one of `INTERPOLATIONS` but "nearest".
    """
    weights = kernel_weights(places, size, spread, interpolation)
    total = tf.reduce_sum(weights, axis=1, keepdims=True)
    last = tf.cast(size, tf.float32) - 0.5
    inside = tf.logical_and(tf.logical_and(places >= -0.5, places <= last)[:, tf.newaxis], tf.abs(total) > 1e-4)
    weights = tf.where(inside, weights / tf.where(inside, total, tf.ones_like(total)), tf.zeros_like(weights))
    return product(weights, x, axis)


def resized_images(x: Any, axes: tuple[int, int], target: tuple[int, int], interpolation: str, antialias: bool = False,
                   crop: bool = False, frame: bool = False, fill_value: float = 0.0) -> Any:
    """Images of another size.

    Args:
        x: floating tensor.
        axes: those of height and width, not negative.
        target: the height and the width that they get.
        interpolation, antialias: as for `resized`.
        crop: whether to crop in the middle first, so that nothing is distorted.
        frame: whether to frame first instead, with `fill_value`.
    """
    height, width = target
    sizes = [tf.shape(x)[axis] if x.shape[axis] is None else x.shape[axis] for axis in axes]
    if crop:
        wanted = [sizes[1] * height // width, sizes[0] * width // height]
        kept = [tf.minimum(size, want) for size, want in zip(sizes, wanted, strict=True)]
        for axis, size, keep in zip(axes, sizes, kept, strict=True):
            start = (size - keep) // 2
            x = tf.gather(x, tf.range(start, start + keep), axis=axis)
        sizes = kept
    if frame:
        wanted = [sizes[1] * height // width, sizes[0] * width // height]
        framed = [tf.maximum(size, want) for size, want in zip(sizes, wanted, strict=True)]
        margins: list[Any] = [(0, 0)] * len(x.shape)
        for axis, size, full in zip(axes, sizes, framed, strict=True):
            margins[axis] = ((full - size) // 2, full - size - (full - size) // 2)
        x = tf.pad(x, margins, constant_values=fill_value)
    for axis, goal in zip(axes, target, strict=True):
        x = resized(x, axis, goal, interpolation, antialias)
    return x
