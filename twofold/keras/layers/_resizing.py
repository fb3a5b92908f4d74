"""Interpolation along one axis, as a product with a matrix of weights: pixels are squares, compared by centres."""

from __future__ import annotations

import math
from typing import Any

import twofold as tf

__all__ = ["INTERPOLATIONS", "resized", "resized_images", "sampled"]

INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5")


def _triangle(distance: Any) -> Any:
    return tf.maximum(1 - distance, 0.0)


def _cubic(distance: Any) -> Any:
    """Keys's cubic convolution with a = -1/2 (Keys 1981)."""
    near = (1.5 * distance - 2.5) * distance * distance + 1
    far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
    return tf.where(distance <= 1, near, tf.where(distance < 2, far, tf.zeros_like(distance)))


def _lanczos(radius: int) -> Any:
    def weight(distance: Any) -> Any:
        angle = math.pi * tf.maximum(distance, 1e-3)
        wave = radius * tf.sin(angle) * tf.sin(angle / radius) / (angle * angle)
        return tf.where(distance > radius, tf.zeros_like(distance), tf.where(distance < 1e-3, 1.0, wave))
    return weight


_WEIGHTS = {"bilinear": _triangle, "bicubic": _cubic, "lanczos3": _lanczos(3), "lanczos5": _lanczos(5)}


def resized(x: Any, axis: int, size: Any, target: Any, interpolation: str, antialias: bool = False) -> Any:
    """`x` with another size along an axis.

    Args:
        x: floating tensor.
        axis: which axis, not negative.
        size, target: its size now and then: integers, or scalar tensors.
        interpolation: one of `INTERPOLATIONS`.
        antialias: whether the weights widen where the axis gets smaller.
    """
    scale = tf.cast(size, tf.float32) / tf.cast(target, tf.float32)
    places = (tf.cast(tf.range(target), tf.float32) + 0.5) * scale - 0.5
    if interpolation == "nearest":
        # the square into which the centre falls
        chosen = tf.minimum(tf.cast(tf.floor(places + 0.5), tf.int32), tf.cast(size, tf.int32) - 1)
        return tf.gather(x, chosen, axis=axis)
    return sampled(x, axis, size, places, tf.maximum(scale, 1.0) if antialias else 1.0, interpolation)


def sampled(x: Any, axis: int, size: Any, places: Any, spread: Any, interpolation: str, zeros: bool = False) -> Any:
    """What is at places along an axis, between its elements.

    Args:
        x: floating tensor.
        axis: which axis, not negative.
        size: its size.
        places: float32 [n].
        spread: how much wider the weights are than the distance of two elements.
        interpolation: one of `INTERPOLATIONS` but "nearest".
        zeros: whether there are zeros at places beyond the axis.
    """
    distance = tf.abs(places[:, tf.newaxis] - tf.cast(tf.range(size), tf.float32)) / spread
    weights = _WEIGHTS[interpolation](distance)
    total = tf.reduce_sum(weights, axis=1, keepdims=True)
    if zeros:
        last = tf.cast(size, tf.float32) - 0.5
        inside = tf.logical_and(tf.logical_and(places >= -0.5, places <= last)[:, tf.newaxis], tf.abs(total) > 1e-4)
        weights = tf.where(inside, weights / tf.where(inside, total, tf.ones_like(total)), tf.zeros_like(weights))
    else:
        weights = weights / total
    weights = tf.cast(weights, x.dtype)
    moved = tf.tensordot(weights, x, axes=([1], [axis]))
    order = list(range(1, axis + 1)) + [0] + list(range(axis + 1, len(x.shape)))
    return tf.transpose(moved, order)


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
        x, sizes = tf.pad(x, margins, constant_values=fill_value), framed
    for axis, size, goal in zip(axes, sizes, target, strict=True):
        x = resized(x, axis, size, goal, interpolation, antialias)
    return x
