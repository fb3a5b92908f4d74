"""`tf.image`: sizes, colours, parts and measures of images [height, width, channels], or batches of them.

The functions are compositions of `tf`'s ops, so they run compiled, on sizes that are not known when a function is
traced, and have gradients; only images in files (`_formats/image_files.py`, `_formats/image_encoding.py`) are calls of
Python.
`convert_image_dtype` says what numbers of integer images stand for.
"""

from __future__ import annotations

from twofold._front.namespace import publish

from .._formats.image_encoding import (
    adjust_jpeg_quality,
    encode_jpeg,
    encode_png,
    random_jpeg_quality,
    stateless_random_jpeg_quality,
)
from .._formats.image_files import (
    decode_and_crop_jpeg,
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
    decode_webp,
    extract_jpeg_shape,
    is_jpeg,
)
from ._boxes import crop_and_resize, non_max_suppression
from ._colour import (
    adjust_brightness,
    adjust_contrast,
    adjust_gamma,
    adjust_hue,
    adjust_saturation,
    convert_image_dtype,
    grayscale_to_rgb,
    hsv_to_rgb,
    per_image_standardization,
    rgb_to_grayscale,
    rgb_to_hsv,
    rgb_to_yiq,
    rgb_to_yuv,
    yiq_to_rgb,
    yuv_to_rgb,
)
from ._glimpses import (
    draw_bounding_boxes,
    extract_glimpse,
    sample_distorted_bounding_box,
    stateless_sample_distorted_bounding_box,
)
from ._measures import image_gradients, psnr, sobel_edges, ssim, ssim_multiscale, total_variation
from ._parts import (
    central_crop,
    crop_to_bounding_box,
    extract_patches,
    flip_left_right,
    flip_up_down,
    pad_to_bounding_box,
    resize_with_crop_or_pad,
    rot90,
    transpose,
)
from ._random import (
    random_brightness,
    random_contrast,
    random_crop,
    random_flip_left_right,
    random_flip_up_down,
    random_hue,
    random_saturation,
    stateless_random_brightness,
    stateless_random_contrast,
    stateless_random_crop,
    stateless_random_flip_left_right,
    stateless_random_flip_up_down,
    stateless_random_hue,
    stateless_random_saturation,
)
from ._resize import ResizeMethod, resize, resize_with_pad
from ._suppression import (
    combined_non_max_suppression,
    non_max_suppression_overlaps,
    non_max_suppression_padded,
    non_max_suppression_with_scores,
)

__all__ = [
    "ResizeMethod", "adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue", "adjust_jpeg_quality",
    "adjust_saturation", "central_crop", "combined_non_max_suppression", "convert_image_dtype", "crop_and_resize",
    "crop_to_bounding_box", "decode_and_crop_jpeg", "decode_bmp", "decode_gif", "decode_image", "decode_jpeg",
    "decode_png", "decode_webp", "draw_bounding_boxes", "encode_jpeg", "encode_png", "extract_glimpse",
    "extract_jpeg_shape", "extract_patches", "flip_left_right", "flip_up_down", "grayscale_to_rgb", "hsv_to_rgb",
    "image_gradients", "is_jpeg", "non_max_suppression", "non_max_suppression_overlaps", "non_max_suppression_padded",
    "non_max_suppression_with_scores", "pad_to_bounding_box", "per_image_standardization", "psnr", "random_brightness",
    "random_contrast", "random_crop", "random_flip_left_right", "random_flip_up_down", "random_hue",
    "random_jpeg_quality", "random_saturation", "resize", "resize_with_crop_or_pad", "resize_with_pad",
    "rgb_to_grayscale", "rgb_to_hsv", "rgb_to_yiq", "rgb_to_yuv", "rot90", "sample_distorted_bounding_box",
    "sobel_edges", "ssim", "ssim_multiscale", "stateless_random_brightness", "stateless_random_contrast",
    "stateless_random_crop", "stateless_random_flip_left_right", "stateless_random_flip_up_down",
    "stateless_random_hue", "stateless_random_jpeg_quality", "stateless_random_saturation",
    "stateless_sample_distorted_bounding_box", "total_variation", "transpose", "yiq_to_rgb", "yuv_to_rgb",
]

publish(__name__)
