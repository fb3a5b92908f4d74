"""Interpolation along one axis, as a product with a matrix of weights: pixels are squares, compared by centres."""

from __future__ import annotations

import math
from typing import Any

import twofold as tf

__all__ = ["INTERPOLATIONS", "resized"]

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
    places = (tf.range(target, dtype=tf.float32) + 0.5) * scale - 0.5
    if interpolation == "nearest":
        # the square into which the centre falls
        chosen = tf.minimum(tf.cast(tf.floor(places + 0.5), tf.int32), tf.cast(size, tf.int32) - 1)
        return tf.gather(x, chosen, axis=axis)
    spread = tf.maximum(scale, 1.0) if antialias else 1.0
    distance = tf.abs(places[:, tf.newaxis] - tf.range(size, dtype=tf.float32)) / spread
    weights = _WEIGHTS[interpolation](distance)
    weights = tf.cast(weights / tf.reduce_sum(weights, axis=1, keepdims=True), x.dtype)
    moved = tf.tensordot(weights, x, axes=([1], [axis]))
    order = list(range(1, axis + 1)) + [0] + list(range(axis + 1, len(x.shape)))
    return tf.transpose(moved, order)
