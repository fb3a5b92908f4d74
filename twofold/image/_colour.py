"""Colours: dtypes of images, spaces of colours, brightness, contrast and the like.

Integers stand for the range of their dtype: 0 is black, the largest is white; floats for [0, 1]. What is computed of
integer images is computed in float32 and converted back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.api import public

from ._common import images_of

__all__ = ["adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue", "adjust_saturation",
           "convert_image_dtype", "grayscale_to_rgb", "hsv_to_rgb", "per_image_standardization", "rgb_to_grayscale",
           "rgb_to_hsv", "rgb_to_yiq", "rgb_to_yuv", "yiq_to_rgb", "yuv_to_rgb"]

_GREY = (0.2989, 0.5870, 0.1140)  # ITU-R BT.601
_YIQ = ((0.299, 0.59590059, 0.2115), (0.587, -0.27455667, -0.52273617), (0.114, -0.32134392, 0.31119955))
_OF_YIQ = ((1.0, 1.0, 1.0), (0.95598634, -0.27201283, -1.10674021), (0.6208248, -0.64720424, 1.70423049))
_YUV = ((0.299, -0.14714119, 0.61497538), (0.587, -0.28886916, -0.51496512), (0.114, 0.43601035, -0.10001026))
_OF_YUV = ((1.0, 1.0, 1.0), (0.0, -0.394642334, 2.03206185), (1.13988303, -0.58062185, 0.0))


@public
def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False, name: str | None = None) -> Any:
    """Images in another dtype, scaled to its range: [0, 1] for floats, up to the largest number for integers.

    Args:
        image: numeric tensor.
        dtype: of the result.
        saturate: whether what does not fit becomes the nearest that does.
        name: accepted, without effect.
    Raises:
        TypeError: a dtype is neither a float nor an integer.

    >>> import twofold as tf
    >>> tf.image.convert_image_dtype([0.0, 0.5, 1.0], tf.uint8).numpy().tolist()
    [0, 127, 255]
    >>> tf.image.convert_image_dtype(tf.constant([0, 255], tf.uint8), tf.float32).numpy().tolist()
    [0.0, 1.0]
    """
    x, want = tf.convert_to_tensor(image), tf.as_dtype(dtype)
    for kind in (x.dtype, want):
        if not (kind.is_floating or kind.is_integer):
            raise TypeError(f"convert_image_dtype: {kind.name} is no dtype of images")
    if x.dtype == want:
        return tf.identity(x)
    if x.dtype.is_floating:
        if want.is_floating:
            return tf.cast(x, want)
        scaled = x * tf.cast(want.max + 0.5, x.dtype)
        return tf.saturate_cast(scaled, want) if saturate else tf.cast(scaled, want)
    if want.is_floating:
        return tf.cast(x, want) * tf.cast(1.0 / x.dtype.max, want)
    return _between_integers(x, want, saturate)


def _between_integers(x: Any, want: Any, saturate: bool) -> Any:
    have = x.dtype
    if have.max > want.max:
        scaled = x // tf.cast((have.max + 1) // (want.max + 1), have)
        return tf.saturate_cast(scaled, want) if saturate else tf.cast(scaled, want)
    wide = tf.saturate_cast(x, want) if saturate else tf.cast(x, want)
    return wide * tf.cast((want.max + 1) // (have.max + 1), want)


def _in_float(image: Any, what: str, fn: Callable[[Any], Any], least: int = 3) -> Any:
    """The result of a function of float images, converted to the dtype of the images given."""
    x = images_of(image, what, least)
    if x.dtype in (tf.float32, tf.float16):
        return fn(x)
    return convert_image_dtype(fn(convert_image_dtype(x, tf.float32)), x.dtype, saturate=True)


# -- brightness and the like ---------------------------------------------------------------------------
@public
def adjust_brightness(image: Any, delta: Any) -> Any:
    """Images with a number added to all pixels, as floats in [0, 1] have them.

    Args:
        image: numeric tensor.
        delta: a number or a scalar.

    >>> import twofold as tf
    >>> tf.image.adjust_brightness([[[0.25]]], 0.5).numpy().item()
    0.75
    """
    return _in_float(image, "adjust_brightness", lambda x: x + tf.cast(delta, x.dtype), 0)


@public
def adjust_contrast(images: Any, contrast_factor: Any) -> Any:
    """Images in which each channel's distance from its mean over the image is multiplied.

    Args:
        images: [.., height, width, channels].
        contrast_factor: a number or a scalar.

    >>> import twofold as tf
    >>> tf.image.adjust_contrast([[[0.25], [0.75]]], 2.0)[0, :, 0].numpy().tolist()
    [0.0, 1.0]
    """
    def changed(x: Any) -> Any:
        wide = tf.cast(x, tf.float32)
        mean = tf.reduce_mean(wide, axis=[-3, -2], keepdims=True)
        return tf.cast((wide - mean) * tf.cast(contrast_factor, tf.float32) + mean, x.dtype)
    return _in_float(images, "adjust_contrast", changed)


@public
def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Any:
    """`gain * image ** gamma`, of numbers in [0, 1].

    Args:
        image: numeric tensor.
        gamma: a number that is not negative, or a scalar.
        gain: a number or a scalar.
    Raises:
        ValueError: `gamma` is negative.
    """
    if not tf.is_tensor(gamma) and gamma < 0:
        raise ValueError("Gamma should be a non-negative real number.")
    return _in_float(image, "adjust_gamma", lambda x: tf.cast(gain, x.dtype) * x ** tf.cast(gamma, x.dtype), 0)


@public
def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Any:
    """Images [.., 3] in RGB with another hue.

    Args:
        image: the images.
        delta: what part of the circle of colours they are moved by, in [-1, 1].
        name: accepted, without effect.
    Raises:
        ValueError: `delta` is out of range, or the last size is not 3.
    """
    if not tf.is_tensor(delta) and not -1 <= delta <= 1:
        raise ValueError("delta must be in the interval [-1, 1]")

    def changed(x: Any) -> Any:
        h, s, v = _hsv(x)
        return _rgb(tf.math.floormod(h + tf.cast(delta, h.dtype) + 1.0, 1.0), s, v, x.dtype)
    return _in_float(image, "adjust_hue", changed)


@public
def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Any:
    """Images [.., 3] in RGB whose saturation is multiplied, up to 1.

    Args:
        image: the images.
        saturation_factor: a number or a scalar.
        name: accepted, without effect.
    Raises:
        ValueError: the last size is not 3.
    """
    def changed(x: Any) -> Any:
        h, s, v = _hsv(x)
        return _rgb(h, tf.clip_by_value(s * tf.cast(saturation_factor, s.dtype), 0.0, 1.0), v, x.dtype)
    return _in_float(image, "adjust_saturation", changed)


@public
def per_image_standardization(image: Any) -> Any:
    """Each image [.., height, width, channels] with mean 0 and variance 1, or nearly where all pixels are alike.

    Returns:
        The images: float32, or float16 where they were.

    >>> import twofold as tf
    >>> tf.image.per_image_standardization([[[1.0], [3.0]]])[0, :, 0].numpy().tolist()
    [-1.0, 1.0]
    """
    x = images_of(image, "per_image_standardization")
    kind = x.dtype if x.dtype in (tf.float16, tf.float32) else tf.float32
    wide = tf.cast(x, tf.float32)
    axes = [-3, -2, -1]
    mean = tf.reduce_mean(wide, axis=axes, keepdims=True)
    apart = wide - mean
    deviation = tf.sqrt(tf.reduce_mean(tf.square(apart), axis=axes, keepdims=True))
    count = tf.cast(tf.reduce_prod(tf.shape(x)[-3:]), tf.float32)
    return tf.cast(apart / tf.maximum(deviation, tf.math.rsqrt(count)), kind)


# -- spaces --------------------------------------------------------------------------------------------
def _three(images: Any, what: str) -> Any:
    x = images_of(images, what, 1)
    if x.shape[-1] not in (3, None):
        raise ValueError(f"{what}: the last dimension must be 3; got shape {x.shape}")
    return x


@public
def rgb_to_grayscale(images: Any, name: str | None = None) -> Any:
    """Images [.., 3] in RGB as [.., 1] of their brightness (ITU-R BT.601), in their own dtype.

    `name` has no effect.

    Raises:
        ValueError: the last size is not 3.

    >>> import twofold as tf
    >>> tf.image.rgb_to_grayscale(tf.constant([[[255, 0, 0]]], tf.uint8)).numpy().item()
    76
    """
    x = _three(images, "rgb_to_grayscale")
    wide = convert_image_dtype(x, tf.float32)
    grey = tf.reduce_sum(wide * tf.constant(_GREY), axis=-1, keepdims=True)
    return convert_image_dtype(grey, x.dtype)


@public
def grayscale_to_rgb(images: Any, name: str | None = None) -> Any:
    """Images [.., 1] as [.., 3], with three equal channels.

    `name` has no effect.

    Raises:
        ValueError: the last size is not 1.

    >>> import twofold as tf
    >>> tf.image.grayscale_to_rgb([[[5]]]).numpy().tolist()
    [[[5, 5, 5]]]
    """
    x = images_of(images, "grayscale_to_rgb", 1)
    if x.shape[-1] not in (1, None):
        raise ValueError(f"Last dimension of a grayscale image should be size 1; got shape {x.shape}")
    return tf.repeat(x, 3, axis=-1)


def _hsv(x: Any) -> tuple[Any, Any, Any]:
    """Hue, saturation and value of RGB, each without the last axis, in float32 at least."""
    x = _three(x, "colour")
    wide = tf.cast(x, tf.float32) if x.dtype.size < 4 else x
    r, g, b = wide[..., 0], wide[..., 1], wide[..., 2]
    value = tf.maximum(r, tf.maximum(g, b))
    spread = value - tf.minimum(r, tf.minimum(g, b))
    saturation = tf.where(value > 0, tf.math.divide_no_nan(spread, value), 0)
    part = tf.math.divide_no_nan(tf.ones_like(spread), 6 * spread)
    hue = tf.where(tf.equal(r, value), part * (g - b),
                   tf.where(tf.equal(g, value), part * (b - r) + 2 / 6, part * (r - g) + 4 / 6))
    hue = tf.where(spread > 0, hue, 0)
    return tf.where(hue < 0, hue + 1, hue), saturation, value


def _rgb(h: Any, s: Any, v: Any, dtype: Any) -> Any:
    around = h * 6
    parts = (tf.abs(around - 3) - 1, 2 - tf.abs(around - 2), 2 - tf.abs(around - 4))
    return tf.cast(tf.stack([(1 - s + s * tf.clip_by_value(p, 0, 1)) * v for p in parts], axis=-1), dtype)


@public
def rgb_to_hsv(images: Any, name: str | None = None) -> Any:
    """Images [.., 3] of floats in RGB as hue, saturation and value, all in [0, 1].

    `name` has no effect.

    Source: Smith, "Color gamut transform pairs" (1978).

    Raises:
        ValueError: the last size is not 3.

    >>> import twofold as tf
    >>> tf.image.rgb_to_hsv([[[0.0, 0.5, 0.0]]]).numpy().round(3).tolist()
    [[[0.3330000042915344, 1.0, 0.5]]]
    """
    x = _three(images, "rgb_to_hsv")
    return tf.cast(tf.stack(_hsv(x), axis=-1), x.dtype)


@public
def hsv_to_rgb(images: Any, name: str | None = None) -> Any:
    """Images [.., 3] of floats in hue, saturation and value as RGB; see `rgb_to_hsv`.

    `name` has no effect.

    Raises:
        ValueError: the last size is not 3.
    """
    x = _three(images, "hsv_to_rgb")
    return _rgb(x[..., 0], x[..., 1], x[..., 2], x.dtype)


def _linear(what: str, matrix: Any, doc: str) -> Callable[..., Any]:
    """A change of colours that is a product with a matrix."""
    def convert(images: Any) -> Any:
        x = _three(images, what)
        return tf.tensordot(x, tf.constant(matrix, x.dtype), axes=[[x.shape.rank - 1], [0]])
    convert.__name__ = convert.__qualname__ = what
    convert.__doc__ = f"""{doc}, of images [.., 3] of floats.

    Raises:
        ValueError: the last size is not 3.
    """
    return public(convert)


rgb_to_yiq = _linear("rgb_to_yiq", _YIQ, "RGB as YIQ: brightness and two channels of colour of NTSC")
yiq_to_rgb = _linear("yiq_to_rgb", _OF_YIQ, "YIQ as RGB")
rgb_to_yuv = _linear("rgb_to_yuv", _YUV, "RGB as YUV: brightness and two channels of colour of PAL")
yuv_to_rgb = _linear("yuv_to_rgb", _OF_YUV, "YUV as RGB")

