"""`tf.compat.v1.image`: `tf.image`, with the ways in which TensorFlow 1 resizes images.

There the first pixel of the result is at the first one of the image, and with `align_corners` the last at the last.
"""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold import image as _image
from twofold._front.api import public
from twofold._front.namespace import publish
from twofold.image._common import batched
from twofold.image._interpolation import linear_along, nearest_along

from .older_functions import extract_image_patches

__all__ = [*_image.__all__, "extract_image_patches", "resize_area", "resize_bicubic", "resize_bilinear",
           "resize_image_with_crop_or_pad", "resize_images", "resize_nearest_neighbor", "transpose_image"]

resize_image_with_crop_or_pad = _image.resize_with_crop_or_pad
transpose_image = _image.transpose


class ResizeMethod:
    """The numbers of the ways to resize images."""

    BILINEAR, NEAREST_NEIGHBOR, BICUBIC, AREA = range(4)


def _sizes(size: Any) -> tuple[Any, Any]:
    known = tf.get_static_value(tf.convert_to_tensor(size))
    if known is not None:
        return int(known[0]), int(known[1])
    return size[0], size[1]


@public
def resize_bilinear(images: Any, size: Any, align_corners: bool = False, name: str | None = None,
                    half_pixel_centers: bool = False) -> Any:
    """Images of another size, between pixels on lines.

    Args:
        images: [height, width, channels] or [batch, height, width, channels].
        size: new height and width.
        align_corners: whether the last pixels lie on each other, too.
        half_pixel_centers: whether pixels are squares, compared by their centres.
        name: accepted, without effect.
    Returns:
        float32.
    """
    height, width = _sizes(size)
    return batched(images, "resize_bilinear", lambda x: linear_along(
        linear_along(tf.cast(x, tf.float32), 2, width, align_corners, half_pixel_centers), 1, height, align_corners,
        half_pixel_centers))


@public
def resize_nearest_neighbor(images: Any, size: Any, align_corners: bool = False, name: str | None = None,
                            half_pixel_centers: bool = False) -> Any:
    """Images of another size, of pixels as they are; see `resize_bilinear`. `name` has no effect."""
    height, width = _sizes(size)
    return batched(images, "resize_nearest_neighbor", lambda x: nearest_along(
        nearest_along(x, 1, height, align_corners, half_pixel_centers), 2, width, align_corners, half_pixel_centers))


@public
def resize_bicubic(images: Any, size: Any, align_corners: bool = False, name: str | None = None,
                   half_pixel_centers: bool = False) -> Any:
    """Images of another size, on cubic curves; see `resize_bilinear`. `name` has no effect."""
    return tf.raw_ops.ResizeBicubic(images=images, size=size, align_corners=align_corners,
                                    half_pixel_centers=half_pixel_centers)


@public
def resize_area(images: Any, size: Any, align_corners: bool = False, name: str | None = None) -> Any:
    """Images of another size, each pixel the mean of what it covers; see `resize_bilinear`. `name` has no effect."""
    return tf.raw_ops.ResizeArea(images=images, size=size, align_corners=align_corners)


@public
def resize_images(images: Any, size: Any, method: Any = ResizeMethod.BILINEAR, align_corners: bool = False,
                  preserve_aspect_ratio: bool = False, name: str | None = None) -> Any:
    """Images of another size.

    Args:
        images: [height, width, channels] or [batch, height, width, channels].
        size: new height and width.
        method: ResizeMethod.BILINEAR or ResizeMethod.NEAREST_NEIGHBOR, or their names.
        align_corners: whether the last pixels lie on each other, too.
        preserve_aspect_ratio: False.
        name: accepted, without effect.
    Raises:
        ValueError: another method or the proportion is asked for, which `tf.image.resize` has.
    """
    if preserve_aspect_ratio or method not in (0, 1, "bilinear", "nearest"):
        raise ValueError("tf.compat.v1.image.resize_images: bilinear and nearest, without preserve_aspect_ratio; "
                         "tf.image.resize has the others")
    resize = resize_bilinear if method in (0, "bilinear") else resize_nearest_neighbor
    return resize(images, size, align_corners)


resize = resize_images


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_image, name)


publish(__name__)
