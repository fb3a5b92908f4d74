"""Functions of images (`tf.keras.ops.image`): sizes, colours, patches, affine and projective maps, filters.

Images are [batch, height, width, channels], or without the batch; with `data_format` "channels_first" the channels come
before height and width.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import listed, public
from twofold._front.namespace import publish

from ..keras_ops import operation
from ..layers._declared import data_format_of, numbers, padding_of
from ..layers._resizing import INTERPOLATIONS, resized_images, sampled
from ..layers._sampling import FILL_MODES, transformed
from ..layers._sampling import INTERPOLATIONS as SAMPLINGS
from ..operands import axes_of, floating, same, shape_of, size_of, tensor

__all__ = [
    "affine_transform", "crop_images", "extract_patches", "extract_patches_3d", "gaussian_blur", "hsv_to_rgb",
    "map_coordinates", "pad_images", "perspective_transform", "resize", "rgb_to_grayscale", "rgb_to_hsv",
    "scale_and_translate", "sobel_edges", "ssim",
]


def _first(data_format: str | None) -> bool:
    return data_format_of(data_format) == "channels_first"


def _channels_last(x: Any, first: bool) -> Any:
    """Images with their channels last; the rank is 3 or 4."""
    if x.ndim not in (3, 4):
        raise ValueError(f"Expected images of rank 3 (one image) or 4 (a batch of images). Received: shape {x.shape}")
    return tf.transpose(x, [*range(x.ndim - 3), x.ndim - 2, x.ndim - 1, x.ndim - 3]) if first else x


def _channels_back(x: Any, first: bool) -> Any:
    return tf.transpose(x, [*range(x.ndim - 3), x.ndim - 1, x.ndim - 3, x.ndim - 2]) if first else x


def _mapped(images: Any, data_format: str | None, function: Callable[[Any], Any]) -> Any:
    """A function of a batch of images with channels last, of images as they come."""
    first, single = _first(data_format), images.ndim == 3
    x = _channels_last(images, first)
    result = function(tf.expand_dims(x, 0) if single else x)
    return _channels_back(tf.squeeze(result, 0) if single else result, first)


# -- colours --------------------------------------------------------------------------------------
@operation("image", "RGBToGrayscale", tensors="images")
def rgb_to_grayscale(images: Any, data_format: str | None = None) -> Any:
    """The brightness of pixels, as one channel.

    >>> import twofold as tf
    >>> tf.keras.ops.image.rgb_to_grayscale(tf.ones([2, 2, 3])).shape
    TensorShape([2, 2, 1])
    """
    return _mapped(tensor(images), data_format, tf.image.rgb_to_grayscale)


def _floats(images: Any) -> Any:
    images = tensor(images)
    if not images.dtype.is_floating:
        raise ValueError(f"Invalid images dtype: expected float dtype. Received: images.dtype={images.dtype.name}")
    return images


@operation("image", "RGBToHSV", tensors="images")
def rgb_to_hsv(images: Any, data_format: str | None = None) -> Any:
    """Hue, saturation and value of pixels between 0 and 1.

    >>> import twofold as tf
    >>> tf.keras.ops.image.rgb_to_hsv([[[0.0, 1.0, 0.0]]]).numpy().round(3).tolist()
    [[[0.3330000042915344, 1.0, 1.0]]]
    """
    return _mapped(_floats(images), data_format, tf.image.rgb_to_hsv)


@operation("image", "HSVToRGB", tensors="images")
def hsv_to_rgb(images: Any, data_format: str | None = None) -> Any:
    """Red, green and blue of pixels whose hue, saturation and value are given.

    >>> import twofold as tf
    >>> tf.keras.ops.image.hsv_to_rgb([[[0.0, 1.0, 0.5]]]).numpy().tolist()
    [[[0.5, 0.0, 0.0]]]
    """
    return _mapped(_floats(images), data_format, tf.image.hsv_to_rgb)


# -- sizes ----------------------------------------------------------------------------------------
@operation("image", tensors="images")
def resize(images: Any, size: Any, interpolation: str = "bilinear", antialias: bool = False,
           crop_to_aspect_ratio: bool = False, pad_to_aspect_ratio: bool = False, fill_mode: str = "constant",
           fill_value: float = 0.0, data_format: str | None = None) -> Any:
    """Images of another size.

    Args:
        images: images.
        size: the height and the width.
        interpolation: "nearest", "bilinear", "bicubic", "lanczos3" or "lanczos5".
        antialias: whether pixels are averaged where images get smaller.
        crop_to_aspect_ratio: whether images are cropped in the middle first, so that nothing is distorted.
        pad_to_aspect_ratio: whether images are framed first instead, with `fill_value`.
        fill_mode: "constant".
        fill_value: the value of frames.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
    Returns:
        Images of their dtype; integers are rounded.
    Raises:
        ValueError: an argument is none of these.

    >>> import twofold as tf
    >>> tf.keras.ops.image.resize(tf.zeros([2, 8, 8, 3]), (4, 6)).shape
    TensorShape([2, 4, 6, 3])
    """
    if interpolation not in INTERPOLATIONS:
        raise ValueError(f"Invalid `interpolation` argument. Expected one of {INTERPOLATIONS}. Received: "
                         f"interpolation={interpolation}")
    if crop_to_aspect_ratio and pad_to_aspect_ratio:
        raise ValueError("Only one of `pad_to_aspect_ratio` & `crop_to_aspect_ratio` can be `True`.")
    if fill_mode != "constant":
        raise ValueError(f"Invalid `fill_mode` argument. Only 'constant' is supported. Received: fill_mode={fill_mode}")
    x, target = tensor(images), numbers(size, 2, "size")
    computed = x if x.dtype.is_floating and x.dtype.size >= 4 else tf.cast(x, tf.float32)
    resized = _mapped(computed, data_format, lambda y: resized_images(
        y, (1, 2), (target[0], target[1]), interpolation, antialias, crop_to_aspect_ratio, pad_to_aspect_ratio,
        fill_value))
    if x.dtype.is_integer:
        return tf.saturate_cast(tf.round(resized), x.dtype)
    return tf.cast(resized, x.dtype)


def _margins(x: Any, first: bool) -> tuple[int, int]:
    """The axes of height and width."""
    rank = x.ndim
    if rank not in (3, 4):
        raise ValueError(f"Expected images of rank 3 (one image) or 4 (a batch of images). Received: shape {x.shape}")
    return (rank - 2, rank - 1) if first else (rank - 3, rank - 2)


def _edges(before: int | None, after: int | None, target: int | None, size: Any, sign: int, what: str) -> tuple:
    """What is added (sign 1) or taken away (sign -1) before and after, of which two of three are given."""
    if [before, after, target].count(None) != 1:
        raise ValueError(f"Must specify exactly two of {what}. Received: {before}, {after}, {target}")
    if target is not None:
        left = sign * (target - size)
        before, after = (left - after, after) if before is None else (before, left - before)
    if (isinstance(before, int) and before < 0) or (isinstance(after, int) and after < 0):
        raise ValueError(f"{what} must not be negative: {before} and {after} for a size of {size}.")
    return before, after


@operation("image", tensors="images")
def pad_images(images: Any, top_padding: int | None = None, left_padding: int | None = None,
               bottom_padding: int | None = None, right_padding: int | None = None, target_height: int | None = None,
               target_width: int | None = None, data_format: str | None = None) -> Any:
    """Images with zeros around them.

    Args:
        images: images.
        top_padding, bottom_padding, target_height: rows of zeros, and the height then: two of the three.
        left_padding, right_padding, target_width: likewise, for columns.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
    Raises:
        ValueError: there are not two of three, or one is negative.

    >>> import twofold as tf
    >>> tf.keras.ops.image.pad_images(tf.ones([2, 2, 1]), 1, 0, target_height=4, target_width=5).shape
    TensorShape([4, 5, 1])
    """
    x, margins = tensor(images), [(0, 0)] * tensor(images).ndim
    down, across = _margins(x, _first(data_format))
    margins[down] = _edges(top_padding, bottom_padding, target_height, size_of(x, down), 1,
                           "top_padding, bottom_padding, target_height")
    margins[across] = _edges(left_padding, right_padding, target_width, size_of(x, across), 1,
                             "left_padding, right_padding, target_width")
    return tf.pad(x, margins)


@operation("image", tensors="images")
def crop_images(images: Any, top_cropping: int | None = None, left_cropping: int | None = None,
                bottom_cropping: int | None = None, right_cropping: int | None = None,
                target_height: int | None = None, target_width: int | None = None,
                data_format: str | None = None) -> Any:
    """Images without some of their rows and columns.

    Args:
        images: images.
        top_cropping, bottom_cropping, target_height: rows that go, and the height then: two of the three.
        left_cropping, right_cropping, target_width: likewise, for columns.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
    Raises:
        ValueError: there are not two of three, or one is negative.

    >>> import twofold as tf
    >>> tf.keras.ops.image.crop_images(tf.ones([4, 5, 1]), 1, 0, target_height=2, target_width=3).shape
    TensorShape([2, 3, 1])
    """
    x = tensor(images)
    down, across = _margins(x, _first(data_format))
    key: list[Any] = [slice(None)] * x.ndim
    for axis, before, after, target, what in (
            (down, top_cropping, bottom_cropping, target_height, "top_cropping, bottom_cropping, target_height"),
            (across, left_cropping, right_cropping, target_width, "left_cropping, right_cropping, target_width")):
        size = size_of(x, axis)
        start, rest = _edges(before, after, target, size, -1, what)
        key[axis] = slice(start, size - rest)
    return x[tuple(key)]


# -- patches --------------------------------------------------------------------------------------
def _patches(x: Any, window: tuple[int, ...], strides: Any, dilation: Any, padding: str, first: bool) -> Any:
    """Windows as channels: the place within the window, then the channel, by a convolution with ones and zeros."""
    rank = len(window)
    if x.ndim == rank + 1:
        return tf.squeeze(_patches(tf.expand_dims(x, 0), window, strides, dilation, padding, first), 0)
    if x.ndim != rank + 2:
        raise ValueError(f"Expected inputs of rank {rank + 1} or {rank + 2}. Received: shape {x.shape}")
    if first:
        x = tf.transpose(x, [0, *range(2, rank + 2), 1])
    steps = window if strides is None else numbers(strides, rank, "strides")
    apart, channels = numbers(dilation, rank, "dilation_rate"), x.shape[-1]
    count = int(np.prod(window)) * channels
    kernel = tf.reshape(tf.eye(count, dtype=x.dtype), [*window, channels, count])
    patches = tf.nn.convolution(x, kernel, steps, padding_of(padding).upper(), None, apart)
    return tf.transpose(patches, [0, rank + 1, *range(1, rank + 1)]) if first else patches


@operation("image", tensors="images")
def extract_patches(images: Any, size: Any, strides: Any = None, dilation_rate: Any = 1, padding: str = "valid",
                    data_format: str | None = None) -> Any:
    """The windows of images, the pixels of each as channels.

    Args:
        images: floating images.
        size: the windows' height and width, or one number for both.
        strides: how far windows are from each other; as their size by default.
        dilation_rate: how far the pixels of a window are from each other.
        padding: "valid" or "same".
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
    Returns:
        [batch, rows of windows, columns of windows, pixels * channels], or these before.

    >>> import twofold as tf
    >>> tf.keras.ops.image.extract_patches(tf.zeros([1, 8, 8, 3]), (3, 3)).shape
    TensorShape([1, 2, 2, 27])
    """
    if isinstance(size, (list, tuple)) and len(size) == 3:
        return _patches(tensor(images), numbers(size, 3, "size"), strides, dilation_rate, padding, _first(data_format))
    return _patches(tensor(images), numbers(size, 2, "size"), strides, dilation_rate, padding, _first(data_format))


@public
def extract_patches_3d(volumes: Any, size: Any, strides: Any = None, dilation_rate: Any = 1, padding: str = "valid",
                       data_format: str | None = None) -> Any:
    """The windows of volumes [batch, depth, height, width, channels]; arguments as for `extract_patches`.

    >>> import twofold as tf
    >>> tf.keras.ops.image.extract_patches_3d(tf.zeros([1, 4, 4, 4, 2]), 2).shape
    TensorShape([1, 2, 2, 2, 16])
    """
    return extract_patches(volumes, numbers(size, 3, "size"), strides, dilation_rate, padding, data_format)


# -- maps -----------------------------------------------------------------------------------------
def _check_map(interpolation: str, fill_mode: str) -> None:
    if interpolation not in SAMPLINGS:
        raise ValueError(f"Invalid `interpolation` argument. Expected one of {SAMPLINGS}. Received: "
                         f"interpolation={interpolation}")
    if fill_mode not in FILL_MODES:
        raise ValueError(f"Invalid `fill_mode` argument. Expected one of {FILL_MODES}. Received: fill_mode={fill_mode}")


@operation("image")
def affine_transform(images: Any, transform: Any, interpolation: str = "bilinear", fill_mode: str = "constant",
                     fill_value: float = 0, data_format: str | None = None) -> Any:
    """Images through affine, or projective, maps.

    Args:
        images: floating images.
        transform: [batch, 8], or [8] for all images: (a, b, c, d, e, f, g, h) takes the pixel at (x, y) from
            ((a x + b y + c) / k, (d x + e y + f) / k), k = g x + h y + 1; g and h are 0 for affine maps.
        interpolation: "nearest" or "bilinear".
        fill_mode: what is beyond the edges: "constant", "nearest", "wrap" or "reflect".
        fill_value: what is there with "constant".
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
    Raises:
        ValueError: an argument is none of these.

    >>> import twofold as tf
    >>> x = tf.reshape(tf.range(4.0), [1, 4, 1])
    >>> tf.keras.ops.image.affine_transform(x, [1.0, 0, 1, 0, 1, 0, 0, 0]).numpy().ravel().tolist()
    [1.0, 2.0, 3.0, 0.0]
    """
    _check_map(interpolation, fill_mode)
    maps = tf.reshape(tensor(transform, tf.float32), [-1, 8])
    return _mapped(floating(images), data_format, lambda x: transformed(
        x, tf.broadcast_to(maps, [tf.shape(x)[0], 8]), interpolation, fill_mode, fill_value))


def _projection(start: Any, end: Any) -> Any:
    """The eight numbers of the maps that take four end points to four start points, [batch, 8]."""
    x, y, u, v = end[..., 0], end[..., 1], start[..., 0], start[..., 1]
    one, zero = tf.ones_like(x), tf.zeros_like(x)
    rows = tf.concat([tf.stack([x, y, one, zero, zero, zero, tf.negative(u * x), tf.negative(u * y)], -1),
                      tf.stack([zero, zero, zero, x, y, one, tf.negative(v * x), tf.negative(v * y)], -1)], 1)
    return tf.linalg.solve(rows, tf.concat([u, v], 1)[..., tf.newaxis])[..., 0]


@operation("image", tensors="images start_points end_points")
def perspective_transform(images: Any, start_points: Any, end_points: Any, interpolation: str = "bilinear",
                          fill_value: float = 0, data_format: str | None = None) -> Any:
    """Images as seen from elsewhere: four points are taken to four others, straight lines to straight lines.

    Args:
        images: floating images.
        start_points, end_points: [batch, 4, 2], or [4, 2] for one image: x and y of the points.
        interpolation: "nearest" or "bilinear".
        fill_value: what is beyond the edges.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
    Raises:
        ValueError: the interpolation is another, or these are not four points.

    >>> import twofold as tf
    >>> x = tf.reshape(tf.range(4.0), [2, 2, 1])
    >>> corners = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    >>> tf.keras.ops.image.perspective_transform(x, corners, corners).numpy().round(3).ravel().tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    _check_map(interpolation, "constant")
    start, end = tensor(start_points, tf.float32), tensor(end_points, tf.float32)
    if start.shape[-2:].as_list() != [4, 2] or end.shape[-2:].as_list() != [4, 2]:
        raise ValueError("Each image needs four points; got `start_points` of shape "
                         f"{start.shape} and `end_points` of shape {end.shape}.")
    maps = _projection(tf.reshape(start, [-1, 4, 2]), tf.reshape(end, [-1, 4, 2]))

    return _mapped(floating(images), data_format, lambda x: transformed(
        x, tf.broadcast_to(maps, [tf.shape(x)[0], 8]), interpolation, "constant", fill_value))


_KERNELS = {"linear": "bilinear", "bilinear": "bilinear", "trilinear": "bilinear", "triangle": "bilinear",
            "cubic": "bicubic", "bicubic": "bicubic", "tricubic": "bicubic", "lanczos3": "lanczos3",
            "lanczos5": "lanczos5"}


@operation("image", tensors="images output_shape scale translation")
def scale_and_translate(images: Any, output_shape: Any, scale: Any, translation: Any, spatial_dims: Any, method: str,
                        antialias: bool = True) -> Any:
    """A tensor stretched and moved along some of its axes: what is at y comes to `y * scale + translation`.

    Args:
        images: a floating tensor.
        output_shape: the shape of the result, as many sizes as there are axes.
        scale, translation: a number for each of the axes.
        spatial_dims: which axes.
        method: "linear", "cubic", "lanczos3" or "lanczos5", or another name of the first two ("bilinear", "trilinear",
            "triangle", "bicubic", "tricubic").
        antialias: whether elements are averaged where the tensor is pressed together.
    Returns:
        A tensor with zeros where nothing comes to; places are of elements' middles, the first at 0.5.
    Raises:
        ValueError: the method is another.

    >>> import twofold as tf
    >>> x = tf.constant([1.0, 2.0, 3.0])
    >>> tf.keras.ops.image.scale_and_translate(x, (4,), [1.0], [1.0], (0,), "linear").numpy().tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    if method not in _KERNELS:
        raise ValueError(f"Invalid value for argument `method`. Expected of one {set(_KERNELS)}. Received: {method}")
    x = floating(images)
    factors, moves = tf.unstack(tensor(scale, tf.float32)), tf.unstack(tensor(translation, tf.float32))
    axes = axes_of(tuple(listed(spatial_dims, "spatial_dims")), x.ndim)
    for axis, factor, move in zip(axes, factors, moves, strict=True):
        inverse = 1 / factor
        places = (tf.cast(tf.range(output_shape[axis]), tf.float32) + 0.5) * inverse - move * inverse - 0.5
        spread = tf.maximum(inverse, 1.0) if antialias else 1.0
        x = sampled(x, axis, size_of(x, axis), places, spread, _KERNELS[method])
    return x


def _folded(place: Any, size: Any, fill_mode: str) -> Any:
    """Whole numbers brought into an axis."""
    if fill_mode == "wrap":
        return tf.math.floormod(place, size)
    if fill_mode == "mirror":
        turn = tf.maximum(2 * size - 2, 1)
        back = tf.math.floormod(place, turn)
        return tf.minimum(back, turn - back)
    if fill_mode == "reflect":
        back = tf.math.floormod(place, 2 * size)
        return tf.minimum(back, 2 * size - 1 - back)
    return tf.clip_by_value(place, 0, size - 1)


def _sampled(x: Any, places: list[Any], order: int, fill_mode: str, fill_value: Any) -> Any:
    """Elements at places that need not be whole numbers: the nearest, or by linear interpolation along each axis."""
    sizes = [tf.cast(n, tf.int32) for n in shape_of(x)]
    flat, fill = tf.reshape(x, [-1]), tensor(fill_value, x.dtype)
    choices = []
    for place in places:
        if order == 0:
            choices.append([(tf.cast(tf.round(place), tf.int32), None)])
        else:
            low = tf.floor(place)
            share = place - low
            choices.append([(tf.cast(low, tf.int32), 1 - share), (tf.cast(low, tf.int32) + 1, share)])
    total: Any = None
    for corner in itertools.product(*choices):
        index, there, weight = tf.constant(0), tf.constant(True), None
        for (place, share), size in zip(corner, sizes, strict=True):
            if fill_mode == "constant":
                there = tf.logical_and(there, tf.logical_and(place >= 0, place < size))
            index = index * size + _folded(place, size, fill_mode)
            if share is not None:
                weight = share if weight is None else weight * share
        value = tf.where(there, tf.gather(flat, index), fill)
        value = value if weight is None else value * tf.cast(weight, value.dtype)
        total = value if total is None else total + value
    return total


@operation("image", tensors="inputs coordinates")
def map_coordinates(inputs: Any, coordinates: Any, order: int, fill_mode: str = "constant",
                    fill_value: float = 0) -> Any:
    """Elements of a tensor at places between elements.

    Args:
        inputs: a tensor of any rank.
        coordinates: the places: along each axis of the inputs a tensor, all of one shape; [rank, ...].
        order: 0 for the nearest element, 1 for linear interpolation.
        fill_mode: what is beyond the edges: "constant", "nearest", "wrap", "mirror" (without the edge) or "reflect".
        fill_value: what is there with "constant".
    Returns:
        A tensor of the shape of the places; integers are rounded.
    Raises:
        ValueError: an argument is none of these.

    >>> import twofold as tf
    >>> tf.keras.ops.image.map_coordinates([0.0, 10.0, 20.0], [[0.5, 1.0, 7.0]], 1).numpy().tolist()
    [5.0, 10.0, 0.0]
    """
    modes = (*FILL_MODES, "mirror")
    if fill_mode not in modes:
        raise ValueError(f"Invalid `fill_mode` argument. Expected one of {modes}. Received: fill_mode={fill_mode}")
    if order not in (0, 1):
        raise ValueError(f"Invalid `order` argument. Expected one of (0, 1). Received: order={order}")
    x = tensor(inputs)
    places = list(coordinates) if isinstance(coordinates, (list, tuple)) else tf.unstack(tensor(coordinates), x.ndim)
    if len(places) != x.ndim:
        raise ValueError("First dim of `coordinates` must be the same as the rank of `inputs`. Received inputs with "
                         f"shape: {x.shape} and {len(places)} coordinates.")
    places = [floating(place) for place in same(*places)]
    computed = x if x.dtype.is_floating else tf.cast(x, places[0].dtype)
    values = _sampled(computed, places, order, fill_mode, fill_value)
    return tf.cast(tf.round(values), x.dtype) if x.dtype.is_integer else tf.cast(values, x.dtype)


# -- filters --------------------------------------------------------------------------------------
@operation("image", tensors="images")
def gaussian_blur(images: Any, kernel_size: Any = (3, 3), sigma: Any = (1.0, 1.0),
                  data_format: str | None = None) -> Any:
    """Images with each pixel the average of those around it, by Gauss's weights; zeros are beyond the edges.

    Args:
        images: floating images.
        kernel_size: the height and the width of the window.
        sigma: the standard deviations along height and width.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".

    >>> import twofold as tf
    >>> tf.keras.ops.image.gaussian_blur(tf.ones([1, 3, 3, 1])).numpy()[0, 1, 1].round(3).tolist()
    [1.0]
    """
    size = numbers(kernel_size, 2, "kernel_size")
    spread = tensor(sigma, tf.float32)

    def weights(axis: int) -> Any:
        away = tf.cast(tf.range(size[axis]), tf.float32) - (size[axis] - 1) / 2
        weights_along = tf.exp(tf.square(away / spread[axis]) / -2)
        return weights_along / tf.reduce_sum(weights_along)

    def blurred(x: Any) -> Any:
        kernel = tf.cast(weights(0)[:, tf.newaxis] * weights(1), x.dtype)
        each = tf.tile(kernel[..., tf.newaxis, tf.newaxis], [1, 1, x.shape[-1], 1])
        return tf.nn.depthwise_conv2d(x, each, [1, 1, 1, 1], "SAME")
    return _mapped(floating(images), data_format, blurred)


@operation("image", tensors="images")
def sobel_edges(images: Any, data_format: str | None = None) -> Any:
    """How images change along height and width, by Sobel's filters.

    Args:
        images: floating [batch, height, width, channels], or channels second.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
    Returns:
        A tensor with one more axis, of size 2, at the end.

    >>> import twofold as tf
    >>> tf.keras.ops.image.sobel_edges(tf.zeros([1, 4, 4, 3])).shape
    TensorShape([1, 4, 4, 3, 2])
    """
    x, first = floating(images), _first(data_format)
    edges = tf.image.sobel_edges(_channels_last(x, first))
    return tf.transpose(edges, [0, 3, 1, 2, 4]) if first else edges


@operation("image", "SSIM", tensors="image1 image2")
def ssim(image1: Any, image2: Any, max_val: float = 1.0, filter_size: int = 11, filter_sigma: float = 1.5,
         k1: float = 0.01, k2: float = 0.03, data_format: str | None = None) -> Any:
    """The structural similarity of images (Wang et al. 2004).

    Args:
        image1, image2: floating images of one shape.
        max_val: the largest value that there may be.
        filter_size, filter_sigma: of the Gaussian window.
        k1, k2: small numbers that keep quotients finite.
        data_format: "channels_last" (the default of `tf.keras.config`) or "channels_first".
    Returns:
        A number for each image.

    >>> import twofold as tf
    >>> x = tf.random.stateless_uniform([1, 16, 16, 1], [1, 2])
    >>> tf.keras.ops.image.ssim(x, x).numpy().round(3).tolist()
    [1.0]
    """
    first = _first(data_format)
    x1, x2 = (_channels_last(x, first) for x in same(image1, image2, at_least=float))
    return tf.image.ssim(x1, x2, max_val, filter_size, filter_sigma, k1, k2)


publish(__name__)
