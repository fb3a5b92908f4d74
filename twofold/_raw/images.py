"""Raw ops of images: sizes, boxes, and images seen through maps, with their gradients."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._ops.raw_functions import resize_bilinear, resize_nearest
from twofold.image._interpolation import (
    KERNELS,
    kernel_weights,
    product,
    size_along,
)
from twofold.ir.errors import InvalidArgumentError

from .declared import batched, op, pulled, refuse_others

__all__ = ["ROWS"]

ROWS = """
DecodeWebP(contents, channels=0, dtype=tf.uint8) = image.decode_webp(contents, channels, dtype)
EncodeJpegVariableQuality(images, quality) = io.encode_jpeg(images, quality=quality)
StatelessSampleDistortedBoundingBox(image_size, bounding_boxes, min_object_covered, seed, \
aspect_ratio_range=[0.75, 1.33], area_range=[0.05, 1], max_attempts=100, use_image_if_no_bounding_boxes=False) \
-> begin, size, bboxes = image.stateless_sample_distorted_bounding_box(image_size, bounding_boxes, seed, \
min_object_covered, aspect_ratio_range, area_range, max_attempts, use_image_if_no_bounding_boxes)
"""

_TABLE = 1024  # steps between two pixels that the older cubic interpolation tells apart


def _over_both(images: Any, size: Any, along: Any, *settings: Any) -> Any:
    x, (height, width) = tf.convert_to_tensor(images), _two(size)
    return along(along(x, 2, width, *settings), 1, height, *settings)


def _two(size: Any) -> tuple[Any, Any]:
    known = tf.get_static_value(tf.convert_to_tensor(size))
    return (int(known[0]), int(known[1])) if known is not None else (size[0], size[1])


@op()
def resize_bilinear_grad(grads: Any, original_image: Any, align_corners: bool = False,
                         half_pixel_centers: bool = False) -> Any:
    grads = tf.convert_to_tensor(grads)
    size = tf.shape(grads)[1:3]
    return pulled(lambda x: resize_bilinear(x, size, align_corners, half_pixel_centers), [original_image], grads)[0]


@op()
def resize_nearest_neighbor_grad(grads: Any, size: Any, align_corners: bool = False,
                                 half_pixel_centers: bool = False) -> Any:
    grads = tf.convert_to_tensor(grads)
    zeros = batched(grads, *_two(size), tf.shape(grads)[3])
    return pulled(lambda x: resize_nearest(x, tf.shape(grads)[1:3], align_corners, half_pixel_centers),
                  [zeros], grads)[0]


@op()
def resize_area(images: Any, size: Any, align_corners: bool = False) -> Any:
    refuse_others("ResizeArea", align_corners=(align_corners, False))
    return tf.image.resize(images, size, "area")


@op()
def resize_bicubic(images: Any, size: Any, align_corners: bool = False, half_pixel_centers: bool = False) -> Any:
    return _over_both(tf.cast(images, tf.float32), size, _cubic_along, align_corners, half_pixel_centers)


@op()
def resize_bicubic_grad(grads: Any, original_image: Any, align_corners: bool = False,
                        half_pixel_centers: bool = False) -> Any:
    grads = tf.convert_to_tensor(grads)
    size = tf.shape(grads)[1:3]
    return pulled(lambda x: resize_bicubic(x, size, align_corners, half_pixel_centers), [original_image], grads)[0]


def _cubic_along(x: Any, axis: int, target: Any, align_corners: bool, half_pixels: bool) -> Any:
    """Keys's interpolation: with half pixels pixels beyond the edges do not count, else the edges are repeated."""
    size = size_along(x, axis)
    old, count, new = tf.cast(size, tf.float32), tf.cast(target, tf.float32), tf.cast(tf.range(target), tf.float32)
    corners = align_corners and (not isinstance(target, int) or target > 1)
    scale = (old - 1) / tf.maximum(count - 1, 1.0) if corners else old / count
    places = (new + 0.5) * scale - 0.5 if half_pixels else new * scale
    low = tf.floor(places)
    part = tf.round((places - low) * _TABLE) / _TABLE
    numbers = tf.cast(low, tf.int32)[:, None] + [[-1, 0, 1, 2]]
    distances = tf.abs(tf.constant([[1.0, 0.0, -1.0, -2.0]]) + part[:, None])
    weights = _keys(distances, -0.5 if half_pixels else -0.75)
    last = tf.cast(size, tf.int32) - 1
    if half_pixels:
        weights = tf.where((numbers >= 0) & (numbers <= last), weights, 0.0)
        weights /= tf.reduce_sum(weights, 1, keepdims=True)
    matrix = tf.reduce_sum(tf.one_hot(tf.clip_by_value(numbers, 0, last), size) * weights[..., None], 1)
    return product(matrix, x, axis)


def _keys(d: Any, a: float) -> Any:
    """The weights at distances up to 2."""
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    return tf.where(d <= 1, near, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a)


@op()
def scale_and_translate(images: Any, size: Any, scale: Any, translation: Any, kernel_type: str = "lanczos3",
                        antialias: bool = True) -> Any:
    x = tf.cast(images, tf.float32)
    kernel = {"triangle": "bilinear", "keyscubic": "bicubic"}.get(kernel_type, kernel_type)
    if kernel not in KERNELS:
        raise InvalidArgumentError(f"ScaleAndTranslate: there is no kernel_type {kernel_type!r}.")
    for n, target in enumerate(_two(size)):
        x = _scaled_along(x, n + 1, target, scale[n], translation[n], kernel, antialias)
    return x


def _scaled_along(x: Any, axis: int, target: Any, scale: Any, translation: Any, kernel: str, antialias: bool) -> Any:
    inverse = 1.0 / tf.cast(scale, tf.float32)
    size = size_along(x, axis)
    places = (tf.cast(tf.range(target), tf.float32) + 0.5) * inverse - inverse * tf.cast(translation, tf.float32)
    weights = kernel_weights(places - 0.5, size, tf.maximum(inverse, 1.0) if antialias else 1.0, kernel)
    weights = tf.math.divide_no_nan(weights, tf.reduce_sum(weights, 1, keepdims=True))
    inside = (places >= 0) & (places <= tf.cast(size, tf.float32))
    return product(tf.where(inside[:, None], weights, 0.0), x, axis)


@op()
def scale_and_translate_grad(grads: Any, original_image: Any, scale: Any, translation: Any,
                             kernel_type: str = "lanczos3", antialias: bool = True) -> Any:
    grads = tf.convert_to_tensor(grads)
    size = tf.shape(grads)[1:3]
    return pulled(lambda x: scale_and_translate(x, size, scale, translation, kernel_type, antialias),
                  [original_image], grads)[0]


@op()
def crop_and_resize_grad_image(grads: Any, boxes: Any, box_ind: Any, image_size: Any, T: Any,
                               method: str = "bilinear") -> Any:
    grads = tf.convert_to_tensor(grads)
    crop = tf.shape(grads)[1:3]
    made = pulled(lambda x: tf.image.crop_and_resize(x, boxes, box_ind, crop, method),
                  [tf.zeros(image_size, tf.float32)], grads)[0]
    return tf.cast(made, T)


@op()
def crop_and_resize_grad_boxes(grads: Any, image: Any, boxes: Any, box_ind: Any, method: str = "bilinear") -> Any:
    grads = tf.convert_to_tensor(grads)
    crop = tf.shape(grads)[1:3]
    image = tf.cast(image, tf.float32)
    return pulled(lambda b: tf.image.crop_and_resize(image, b, box_ind, crop, method), [boxes], grads)[0]


@op("selected_indices selected_scores valid_outputs", name="NonMaxSuppressionV5")
def non_max_suppression_v5(boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any, score_threshold: Any,
                           soft_nms_sigma: Any, pad_to_max_output_size: bool = False) -> Any:
    return _kept(boxes, scores, max_output_size, iou_threshold, score_threshold, soft_nms_sigma,
                 pad_to_max_output_size)


def _kept(boxes: Any, scores: Any, most: Any, overlap: Any, least: Any, sigma: Any, padded: bool) -> Any:
    """The boxes to keep with their scores and their number; zeros after them where they are `padded`."""
    chosen, theirs = tf.image.non_max_suppression_with_scores(boxes, scores, most, overlap, least, sigma)
    count = tf.size(chosen)
    if padded:
        chosen, theirs = (tf.pad(x, [[0, most - count]]) for x in (chosen, theirs))
    return chosen, theirs, count


@op(name="ImageProjectiveTransformV3")
def image_projective_transform_v3(images: Any, transforms: Any, output_shape: Any, fill_value: Any,
                                  interpolation: str, fill_mode: str = "CONSTANT") -> Any:
    from twofold.keras.layers._sampling import sampled

    x, maps = tf.convert_to_tensor(images), tf.cast(transforms, tf.float32)
    across = tf.cast(tf.range(output_shape[1]), tf.float32)[None, None, :]
    down = tf.cast(tf.range(output_shape[0]), tf.float32)[None, :, None]
    a, b, c, d, e, f, g, h = (maps[:, n, None, None] for n in range(8))
    depth = g * across + h * down + 1
    places = [(first * across + second * down + third) / depth for first, second, third in ((a, b, c), (d, e, f))]
    places = [tf.where(depth == 0, -1e9, tf.broadcast_to(p, [tf.shape(x)[0], output_shape[0], output_shape[1]]))
              for p in places]
    wide = x if x.dtype.is_floating else tf.cast(x, tf.float32)
    made = sampled(wide, places[0], places[1], interpolation.lower(), fill_mode.lower(), fill_value)
    return tf.cast(made, x.dtype)


@op(name="ImageProjectiveTransformV2")
def image_projective_transform_v2(images: Any, transforms: Any, output_shape: Any, interpolation: str,
                                  fill_mode: str = "CONSTANT") -> Any:
    return image_projective_transform_v3(images, transforms, output_shape, 0.0, interpolation, fill_mode)


#: the colours that boxes are drawn in where none are given, TensorFlow's: yellow, blue, red, lime, purple, olive,
#: maroon, navy, aqua and fuchsia
_COLOURS = [[1.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0],
            [0.5, 0.0, 0.5, 1.0], [0.5, 0.5, 0.0, 1.0], [0.5, 0.0, 0.0, 1.0], [0.0, 0.0, 0.5, 1.0],
            [0.0, 1.0, 1.0, 1.0], [1.0, 0.0, 1.0, 1.0]]


@op()
def draw_bounding_boxes(images: Any, boxes: Any) -> Any:
    x = tf.convert_to_tensor(images)
    return tf.image.draw_bounding_boxes(x, boxes, [[1.0]] if x.shape[-1] == 1 else _COLOURS)


@op(name="ExtractGlimpseV2")
def extract_glimpse_v2(input: Any, size: Any, offsets: Any, centered: bool = True, normalized: bool = True,
                       uniform_noise: bool = True, noise: str = "uniform") -> Any:
    del uniform_noise  # which `noise` says
    return tf.image.extract_glimpse(input, size, offsets, centered, normalized, noise)
