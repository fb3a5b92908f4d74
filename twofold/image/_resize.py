"""Images of other sizes. Pixels are squares: places are compared by the centres of pixels."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import parts, public

from ._common import batched, is_number, pixels, require, sized, sizes_of
from ._interpolation import KERNELS, axis_resized, linear_along, nearest_along, product
from ._parts import padded

__all__ = ["ResizeMethod", "resize", "resize_with_pad"]


class ResizeMethod:
    """The names of the ways to resize images."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


@public
def resize(images: Any, size: Any, method: str = ResizeMethod.BILINEAR, preserve_aspect_ratio: bool = False,
           antialias: bool = False, name: str | None = None) -> Any:
    """Images of another size.

    Sources: Keys, "Cubic convolution interpolation for digital image processing" (1981); Mitchell and Netravali,
    "Reconstruction filters in computer graphics" (1988); Duchon, "Lanczos filtering in one and two dimensions" (1979).

    Args:
        images: [height, width, channels] or [batch, height, width, channels], numeric.
        size: new height and width, integers or an int32 tensor of two elements.
        method: "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian" or "mitchellcubic".
        preserve_aspect_ratio: whether height and width are the largest of the old proportion within `size`.
        antialias: whether all pixels that fall into a new one count, where images get smaller.
        name: accepted, without effect.
    Returns:
        The images: float32; of the old dtype for "nearest".
    Raises:
        ValueError: another rank or size, or no such method.

    >>> import twofold as tf
    >>> tf.image.resize([[[0.0], [1.0]]], [1, 4])[0, :, 0].numpy().tolist()
    [0.0, 0.25, 0.75, 1.0]
    >>> tf.image.resize([[[1], [2]]], [1, 4], "nearest")[0, :, 0].numpy().tolist()
    [1, 1, 2, 2]
    """
    method, target = _method(method), _target(size)
    return batched(images, "resize", lambda x: _resized(x, *_of_proportion(x, target, preserve_aspect_ratio), method,
                                                        antialias))


def _method(given: Any) -> str:
    """A method's name as the tables have it."""
    method = given.lower() if isinstance(given, str) else given
    if not isinstance(method, str) or method not in (*KERNELS, "nearest", "area"):
        raise ValueError(f"Resize method is not implemented: {given!r}; there are {[*KERNELS, 'nearest', 'area']}")
    return method


def _target(size: Any) -> tuple[Any, Any]:
    """New height and width: numbers where they are known, else scalars."""
    pixel_counts = parts(size, "size")
    if len(pixel_counts) != 2:
        raise ValueError(f"'size' must be two numbers: new_height, new_width; got {size!r}")
    height, width = (pixels(part, "size") for part in pixel_counts)
    for part in (height, width):
        require(part > 0, "'size' must be positive.")
    return height, width


def _of_proportion(x: Any, target: tuple[Any, Any], wanted: bool) -> tuple[Any, Any]:
    if not wanted:
        return target
    height, width = sizes_of(x, 1)
    if is_number(height, width, *target):
        scale = min(target[0] / height, target[1] / width)
        return max(round(scale * height), 1), max(round(scale * width), 1)
    old = [tf.cast(n, tf.float32) for n in (height, width)]
    scale = tf.minimum(*[tf.cast(t, tf.float32) / n for t, n in zip(target, old, strict=True)])
    new = [tf.maximum(tf.cast(tf.round(scale * n), tf.int32), 1) for n in old]
    return new[0], new[1]


def _resized(x: Any, height: Any, width: Any, method: str, antialias: bool) -> Any:
    old = sizes_of(x, 1)
    same = is_number(*old, height, width) and old == (height, width)
    if method == "nearest":
        return x if same else nearest_along(nearest_along(x, 1, height), 2, width)
    x = tf.cast(x, tf.float32)
    if same:
        return x
    if method == "bilinear" and not antialias:
        return linear_along(linear_along(x, 2, width), 1, height)
    if method == "area":
        return sized(_averaged(_averaged(x, 1, height), 2, width), height, width)
    return axis_resized(axis_resized(x, 1, height, method, antialias), 2, width, method, antialias)


def _averaged(x: Any, axis: int, target: Any) -> Any:
    """The mean over what each new pixel covers."""
    size = sizes_of(x, axis)[0] if axis == 1 else sizes_of(x, 1)[1]
    scale = tf.cast(size, tf.float32) / tf.cast(target, tf.float32)
    begin = tf.range(target, dtype=tf.float32)[:, tf.newaxis] * scale
    left = tf.range(size, dtype=tf.float32)
    covered = tf.maximum(tf.minimum(begin + scale, left + 1.0) - tf.maximum(begin, left), 0.0)
    return product(covered / tf.reduce_sum(covered, axis=1, keepdims=True), x, axis)


@public
def resize_with_pad(image: Any, target_height: Any, target_width: Any, method: str = ResizeMethod.BILINEAR,
                    antialias: bool = False) -> Any:
    """Images resized in proportion to fit into a size, and zeros around them.

    Args:
        image: [height, width, channels] or [batch, height, width, channels].
        target_height, target_width: the size.
        method, antialias: as for `resize`.
    Returns:
        The images, of the dtype that `resize` gives.

    >>> import twofold as tf
    >>> tf.image.resize_with_pad(tf.ones([2, 4, 1]), 4, 4)[:, 0, 0].numpy().tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    method, target = _method(method), _target([target_height, target_width])

    def fitted(x: Any) -> Any:
        height, width = _inside(x, target)
        resized = _resized(x, height, width, method, antialias)
        top, left = (target[0] - height) // 2, (target[1] - width) // 2
        return padded(resized, top, left, *target)
    return batched(image, "resize_with_pad", fitted)


def _inside(x: Any, target: tuple[Any, Any]) -> tuple[Any, Any]:
    """Height and width in proportion, rounded down, that fit into a size."""
    height, width = sizes_of(x, 1)
    if is_number(height, width, *target):
        ratio = max(width / target[1], height / target[0])
        return int(height / ratio), int(width / ratio)
    old = [tf.cast(n, tf.float32) for n in (height, width)]
    ratio = tf.maximum(old[1] / tf.cast(target[1], tf.float32), old[0] / tf.cast(target[0], tf.float32))
    return tf.cast(tf.floor(old[0] / ratio), tf.int32), tf.cast(tf.floor(old[1] / ratio), tf.int32)
