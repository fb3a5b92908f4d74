"""Values between pixels along one axis: where new pixels lie among old ones, and how much each old one counts.

Pixels are squares: places are compared by their centres. `tf.image` resizes with this, and so do Keras's layers and
functions of images, whose axes may lie elsewhere and whose dtype may be any float.

Sources: Keys, "Cubic convolution interpolation for digital image processing" (1981); Mitchell and Netravali,
"Reconstruction filters in computer graphics" (1988); Duchon, "Lanczos filtering in one and two dimensions" (1979).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import twofold as tf

__all__ = ["KERNELS", "axis_resized", "kernel_weights", "linear_along", "nearest_along", "product", "size_along"]


def _cubic(b: float, c: float) -> Callable[[Any], Any]:
    """The cubic of Mitchell and Netravali (1988); b = 0 and c = 1/2 give that of Keys (1981)."""
    def weight(d: Any) -> Any:
        near = ((12 - 9 * b - 6 * c) * d + (-18 + 12 * b + 6 * c)) * d * d + (6 - 2 * b)
        far = (((-b - 6 * c) * d + (6 * b + 30 * c)) * d + (-12 * b - 48 * c)) * d + (8 * b + 24 * c)
        return tf.where(d < 1.0, near, tf.where(d < 2.0, far, 0.0)) / 6.0
    return weight


def _lanczos(radius: float) -> Callable[[Any], Any]:
    def weight(d: Any) -> Any:
        angle = math.pi * tf.maximum(d, 1e-3)
        wave = radius * tf.sin(angle) * tf.sin(angle / radius) / (angle * angle)
        return tf.where(d > radius, 0.0, tf.where(d <= 1e-3, 1.0, wave))
    return weight


def _gaussian(d: Any) -> Any:
    return tf.where(d >= 1.5, 0.0, tf.exp(-d * d / (2.0 * 0.5 * 0.5)))


#: how much a pixel counts by its distance
KERNELS: dict[str, Callable[[Any], Any]] = {
    "bilinear": lambda d: tf.maximum(1.0 - d, 0.0), "bicubic": _cubic(0.0, 0.5), "lanczos3": _lanczos(3.0),
    "lanczos5": _lanczos(5.0), "gaussian": _gaussian, "mitchellcubic": _cubic(1 / 3, 1 / 3),
}


def size_along(x: Any, axis: int) -> Any:
    """The size of an axis: a number where it is known, else an int32 scalar."""
    return tf.shape(x)[axis] if x.shape[axis] is None else x.shape[axis]


def _places(size: Any, target: Any, align_corners: bool, half_pixels: bool) -> Any:
    """Where the centres of new pixels lie among old ones."""
    new = tf.cast(tf.range(target), tf.float32)  # of integers, whose number is known where `target` is
    old, count = tf.cast(size, tf.float32), tf.cast(target, tf.float32)
    if align_corners:
        return new * tf.where(count > 1.0, (old - 1.0) / tf.maximum(count - 1.0, 1.0), old / count)
    return (new + 0.5) * (old / count) - 0.5 if half_pixels else new * (old / count)


def nearest_along(x: Any, axis: int, target: Any, align_corners: bool = False, half_pixels: bool = True) -> Any:
    """The pixels into which the centres of new ones fall."""
    size = size_along(x, axis)
    places = _places(size, target, align_corners, half_pixels)
    places = places + 0.5 if half_pixels or align_corners else places
    chosen = tf.minimum(tf.cast(tf.floor(places), tf.int32), tf.cast(size, tf.int32) - 1)
    return tf.gather(x, chosen, axis=axis)


def linear_along(x: Any, axis: int, target: Any, align_corners: bool = False, half_pixels: bool = True) -> Any:
    """Between the two pixels beside each new one, on a line."""
    size = size_along(x, axis)
    places = _places(size, target, align_corners, half_pixels)
    low = tf.floor(places)
    last = tf.cast(size, tf.int32) - 1
    before = tf.maximum(tf.cast(low, tf.int32), 0)
    after = tf.minimum(tf.cast(low, tf.int32) + 1, last)
    part = tf.reshape(places - low, [-1] + [1] * (x.shape.rank - 1 - axis))
    first = tf.gather(x, before, axis=axis)
    return first + (tf.gather(x, after, axis=axis) - first) * part


def axis_resized(x: Any, axis: int, target: Any, method: str, antialias: bool = False) -> Any:
    """`x` with another size along an axis: a product with the matrix of how much old pixels count for new ones.

    Args:
        x: floating tensor.
        axis: which axis, not negative.
        target: its new size, a number or a scalar.
        method: one of `KERNELS`.
        antialias: whether the kernel widens where the axis gets smaller.
    """
    size = size_along(x, axis)
    places = _places(size, target, False, True)
    scale = tf.cast(size, tf.float32) / tf.cast(target, tf.float32)
    weights = kernel_weights(places, size, tf.maximum(scale, 1.0) if antialias else 1.0, method)
    weights = tf.math.divide_no_nan(weights, tf.reduce_sum(weights, axis=1, keepdims=True))
    return product(weights, x, axis)


def kernel_weights(places: Any, size: Any, spread: Any, method: str) -> Any:
    """How much the pixels of an axis count at places between them: float32 [places, size], not yet divided by its sums.

    Args:
        places: float32 [places].
        size: the number of pixels.
        spread: how much wider the kernel is than the distance of two pixels.
        method: one of `KERNELS`.
    """
    return KERNELS[method](tf.abs(places[:, tf.newaxis] - tf.range(size, dtype=tf.float32)) / spread)


def product(weights: Any, x: Any, axis: int) -> Any:
    """The product of a matrix [new, old] with `x` along an axis, in the dtype of `x`."""
    moved = tf.tensordot(tf.cast(weights, x.dtype), x, axes=([1], [axis]))
    order = [*range(1, axis + 1), 0, *range(axis + 1, x.shape.rank)]
    return tf.transpose(moved, order)
