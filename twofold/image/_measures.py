"""Measures of images: how much they differ, and how they change from pixel to pixel."""

from __future__ import annotations

import math
from typing import Any

import twofold as tf
from twofold._front.api import public

from ._colour import convert_image_dtype
from ._common import images_of

__all__ = ["image_gradients", "psnr", "sobel_edges", "ssim", "ssim_multiscale", "total_variation"]


def _pair(a: Any, b: Any, max_val: Any, what: str) -> tuple[Any, Any, Any]:
    """Two images, and the largest number, as float32."""
    first, second = images_of(a, what), images_of(b, what)
    if not first.shape[-3:].is_compatible_with(second.shape[-3:]):
        raise ValueError(f"{what}: images must be of one size; got {first.shape} and {second.shape}")
    largest = tf.cast(max_val, first.dtype)
    return (convert_image_dtype(first, tf.float32), convert_image_dtype(second, tf.float32),
            convert_image_dtype(largest, tf.float32))


@public
def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> Any:
    """The peak signal-to-noise ratio of images, in decibels.

    Args:
        a, b: images [.., height, width, channels] of one dtype.
        max_val: the largest number that there can be.
        name: accepted, without effect.
    Returns:
        float32 [..].
    Raises:
        ValueError: the images are of different sizes.

    >>> import twofold as tf
    >>> round(float(tf.image.psnr(tf.zeros([2, 2, 1]), tf.fill([2, 2, 1], 0.1), 1.0)), 4)
    20.0
    """
    first, second, largest = _pair(a, b, max_val, "psnr")
    error = tf.reduce_mean(tf.square(first - second), axis=[-3, -2, -1])
    return (20.0 * tf.math.log(largest) - 10.0 * tf.math.log(error)) / math.log(10.0)


@public
def ssim(img1: Any, img2: Any, max_val: Any, filter_size: int = 11, filter_sigma: float = 1.5, k1: float = 0.01,
         k2: float = 0.03, return_index_map: bool = False) -> Any:
    """The structural similarity of images, in [-1, 1].

    Source: Wang et al., "Image quality assessment: from error visibility to structural similarity" (2004).

    Args:
        img1, img2: images [.., height, width, channels] of one dtype, no smaller than the filter.
        max_val: the largest number that there can be.
        filter_size, filter_sigma: of the Gaussian that means are taken with.
        k1, k2: keep quotients from becoming large.
        return_index_map: whether the similarity is given for each place.
    Returns:
        float32 [..], or [.., height, width] less the borders.
    Raises:
        ValueError: the images are of different sizes, or too small.

    >>> import twofold as tf
    >>> x = tf.random.stateless_uniform([12, 12, 1], seed=[1, 2])
    >>> float(tf.image.ssim(x, x, 1.0))
    1.0
    """
    x, y, largest = _pair(img1, img2, max_val, "ssim")
    similarity, _ = _similar(x, y, largest, filter_size, filter_sigma, k1, k2)
    return tf.reduce_mean(similarity, axis=-1) if return_index_map else tf.reduce_mean(similarity, axis=[-3, -2, -1])


def _similar(x: Any, y: Any, largest: Any, filter_size: int, filter_sigma: float, k1: float, k2: float,
             what: str = "ssim") -> tuple[Any, Any]:
    """At each place the similarity, and its factor for contrast and structure."""
    if any(size is not None and size < filter_size for size in x.shape.as_list()[-3:-1]):
        raise ValueError(f"{what}: images of shape {x.shape} are smaller than the filter of {filter_size}")
    places = tf.range(filter_size, dtype=tf.float32) - (filter_size - 1) / 2.0
    window = tf.exp(-tf.square(places) / (2.0 * filter_sigma * filter_sigma))
    window = window / tf.reduce_sum(window)

    def mean(z: Any) -> Any:
        return _filtered(z, window)
    mean_x, mean_y = mean(x), mean(y)
    c1, c2 = tf.square(k1 * largest), tf.square(k2 * largest)
    product, squares = 2.0 * mean_x * mean_y, tf.square(mean_x) + tf.square(mean_y)
    upper, lower = 2.0 * mean(x * y) - product + c2, mean(tf.square(x) + tf.square(y)) - squares + c2
    return (product + c1) / (squares + c1) * upper / lower, upper / lower


@public
def ssim_multiscale(img1: Any, img2: Any, max_val: Any,
                    power_factors: Any = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333), filter_size: int = 11,
                    filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03) -> Any:
    """The structural similarity of images at several scales, in [0, 1].

    Source: Wang, Simoncelli and Bovik, "Multiscale structural similarity for image quality assessment" (2003).

    Args:
        img1, img2: images [.., height, width, channels] of one dtype, no smaller than the filter at any scale.
        max_val: the largest number that there can be.
        power_factors: a weight for each scale, of which each has half the size of the one before.
        filter_size, filter_sigma: of the Gaussian that means are taken with.
        k1, k2: keep quotients from becoming large.
    Returns:
        float32 [..].
    Raises:
        ValueError: the images are of different sizes, or too small.

    >>> import twofold as tf
    >>> x = tf.random.stateless_uniform([24, 24, 1], seed=[1, 2])
    >>> float(tf.image.ssim_multiscale(x, x, 1.0, power_factors=(0.5, 0.5)))
    1.0
    """
    x, y, largest = _pair(img1, img2, max_val, "ssim_multiscale")
    weights = [float(w) for w in power_factors]
    total: Any = None
    for scale, weight in enumerate(weights):
        if scale:
            x, y = _halved(x), _halved(y)
        similarity, contrast = _similar(x, y, largest, filter_size, filter_sigma, k1, k2, "ssim_multiscale")
        last = scale == len(weights) - 1
        part = tf.nn.relu(tf.reduce_mean(similarity if last else contrast, axis=[-3, -2])) ** weight
        total = part if total is None else total * part
    return tf.reduce_mean(total, axis=-1)


def _halved(x: Any) -> Any:
    """Means of two by two pixels; the last row and column are doubled where their number is odd."""
    lead = tf.shape(x)[:-3]
    flat = tf.reshape(x, tf.concat([[-1], tf.shape(x)[-3:]], 0)) if x.shape.rank != 4 else x
    rows, columns = (flat.shape[n] if flat.shape[n] is not None else tf.shape(flat)[n] for n in (1, 2))
    flat = tf.pad(flat, [[0, 0], [0, rows % 2], [0, columns % 2], [0, 0]], mode="SYMMETRIC")
    small = tf.nn.avg_pool2d(flat, 2, 2, "VALID")
    return small if x.shape.rank == 4 else tf.reshape(small, tf.concat([lead, tf.shape(small)[1:]], 0))


def _filtered(x: Any, window: Any) -> Any:
    """Weighted means over squares of the window's size, within the images."""
    lead, channels = tf.shape(x)[:-3], x.shape[-1]
    flat = tf.reshape(x, tf.concat([[-1], tf.shape(x)[-3:]], 0)) if x.shape.rank != 4 else x
    rows = tf.tile(window[:, tf.newaxis, tf.newaxis, tf.newaxis], [1, 1, channels, 1])
    columns = tf.tile(window[tf.newaxis, :, tf.newaxis, tf.newaxis], [1, 1, channels, 1])
    ones = [1, 1, 1, 1]
    means = tf.nn.depthwise_conv2d(tf.nn.depthwise_conv2d(flat, rows, ones, "VALID"), columns, ones, "VALID")
    return means if x.shape.rank == 4 else tf.reshape(means, tf.concat([lead, tf.shape(means)[1:]], 0))


@public
def total_variation(images: Any, name: str | None = None) -> Any:
    """The sum of the absolute differences of neighbouring pixels, of each image.

    Args:
        images: [height, width, channels] or [batch, height, width, channels].
        name: accepted, without effect.
    Returns:
        A scalar, or [batch].

    >>> import twofold as tf
    >>> float(tf.image.total_variation([[[1.0], [3.0]], [[1.0], [0.0]]]))
    6.0
    """
    x = images_of(images, "total_variation")
    down, across = x[..., 1:, :, :] - x[..., :-1, :, :], x[..., 1:, :] - x[..., :-1, :]
    return sum(tf.reduce_sum(tf.abs(part), axis=[-3, -2, -1]) for part in (down, across))


@public
def image_gradients(image: Any) -> tuple[Any, Any]:
    """The differences to the pixels below and to the right, with zeros at the last ones.

    Args:
        image: [batch, height, width, channels].
    Returns:
        Two tensors of that shape.
    Raises:
        ValueError: the rank is not 4.

    >>> import twofold as tf
    >>> dy, dx = tf.image.image_gradients([[[[1], [3]], [[2], [7]]]])
    >>> dy.numpy().ravel().tolist(), dx.numpy().ravel().tolist()
    ([1, 4, 0, 0], [2, 0, 5, 0])
    """
    x = images_of(image, "image_gradients")
    if x.shape.rank != 4:
        raise ValueError(f"image_gradients expects a 4D tensor [batch_size, h, w, d]; got shape {x.shape}")
    none: list[list[int]] = [[0, 0]]
    return (tf.pad(x[:, 1:] - x[:, :-1], [*none, [0, 1], *none, *none]),
            tf.pad(x[:, :, 1:] - x[:, :, :-1], [*none, *none, [0, 1], *none]))


@public
def sobel_edges(image: Any) -> Any:
    """Sobel's estimates of how images change downwards and to the right.

    Args:
        image: floats [batch, height, width, channels].
    Returns:
        [batch, height, width, channels, 2].

    >>> import twofold as tf
    >>> tf.image.sobel_edges(tf.reshape(tf.range(9.0), [1, 3, 3, 1]))[0, 1, 1, 0].numpy().tolist()
    [24.0, 8.0]
    """
    x = images_of(image, "sobel_edges", 4)
    y = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")

    def smoothed(z: Any, axis: int) -> Any:
        first, middle, last = _thirds(z, axis)
        return first + 2 * middle + last

    def apart(z: Any, axis: int) -> Any:
        first, _, last = _thirds(z, axis)
        return last - first
    return tf.stack([apart(smoothed(y, 2), 1), smoothed(apart(y, 2), 1)], axis=-1)


def _thirds(z: Any, axis: int) -> list[Any]:
    if axis == 1:
        return [z[:, :-2], z[:, 1:-1], z[:, 2:]]
    return [z[:, :, :-2], z[:, :, 1:-1], z[:, :, 2:]]
