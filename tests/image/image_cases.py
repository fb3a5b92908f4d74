"""Calls of `tf.image` that TensorFlow has made and twofold makes: both run what is here.

`python tests/image/image_cases.py FILE`, where TensorFlow 2.21 is installed, writes what TensorFlow gives; the tests
compare with `data/image.npz`, which was written so.
"""

import sys

import numpy as np

RNG = np.random.RandomState(0)
X = RNG.rand(2, 7, 5, 3).astype(np.float32)
Y = np.clip(X + RNG.randn(*X.shape).astype(np.float32) * 0.1, 0, 1)
BYTES = RNG.randint(0, 256, (6, 9, 3)).astype(np.uint8)
WORDS = RNG.randint(-2000, 2000, (4, 4, 1)).astype(np.int16)
LARGE = RNG.rand(2, 16, 14, 3).astype(np.float32)
BOXES = np.array([[0.1, 0.2, 0.8, 0.9], [-0.3, 0.0, 0.5, 1.4], [0.9, 0.9, 0.2, 0.1]], np.float32)
MANY = np.stack([RNG.rand(30), RNG.rand(30), 1 + RNG.rand(30), 1 + RNG.rand(30)], 1).astype(np.float32)
SCORES = RNG.rand(30).astype(np.float32)

CASES = {
    **{f"resize_{method}_{height}x{width}{'_aa' if antialias else ''}":
       lambda tf, m=method, h=height, w=width, a=antialias: tf.image.resize(X, [h, w], m, antialias=a)
       for method in ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic")
       for height, width in ((11, 9), (3, 2), (7, 12)) for antialias in (False, True)},
    "resize_bytes": lambda tf: tf.image.resize(BYTES, [4, 4]),
    "resize_bytes_nearest": lambda tf: tf.image.resize(BYTES, [13, 4], "nearest"),
    "resize_same": lambda tf: tf.image.resize(BYTES, [6, 9]),
    "resize_in_proportion": lambda tf: tf.image.resize(X, [20, 8], preserve_aspect_ratio=True),
    "resize_with_pad": lambda tf: tf.image.resize_with_pad(X, 10, 4),
    "resize_with_pad_wide": lambda tf: tf.image.resize_with_pad(BYTES, 5, 20, "nearest"),
    "crop_or_pad": lambda tf: tf.image.resize_with_crop_or_pad(X, 4, 8),
    "crop_or_pad_odd": lambda tf: tf.image.resize_with_crop_or_pad(BYTES, 9, 4),
    "crop": lambda tf: tf.image.crop_to_bounding_box(X, 1, 2, 4, 3),
    "pad": lambda tf: tf.image.pad_to_bounding_box(BYTES, 1, 2, 10, 12),
    "central": lambda tf: tf.image.central_crop(X, 0.6),
    "central_odd": lambda tf: tf.image.central_crop(BYTES, 0.35),
    "left_right": lambda tf: tf.image.flip_left_right(X), "up_down": lambda tf: tf.image.flip_up_down(BYTES),
    "transpose": lambda tf: tf.image.transpose(X), "rot90": lambda tf: tf.image.rot90(X),
    "rot90_2": lambda tf: tf.image.rot90(BYTES, 2), "rot90_3": lambda tf: tf.image.rot90(BYTES, 3),
    "patches": lambda tf: tf.image.extract_patches(X, [1, 3, 2, 1], [1, 2, 1, 1], [1, 1, 2, 1], "VALID"),
    "patches_same": lambda tf: tf.image.extract_patches(X, [1, 3, 2, 1], [1, 2, 2, 1], [1, 2, 1, 1], "SAME"),
    "to_float": lambda tf: tf.image.convert_image_dtype(BYTES, tf.float32),
    "to_half": lambda tf: tf.image.convert_image_dtype(BYTES, tf.float16),
    "to_bytes": lambda tf: tf.image.convert_image_dtype(X, tf.uint8),
    "to_bytes_saturated": lambda tf: tf.image.convert_image_dtype(X * 3.0 - 1.0, tf.uint8, saturate=True),
    "to_words": lambda tf: tf.image.convert_image_dtype(BYTES, tf.uint16),
    "of_words": lambda tf: tf.image.convert_image_dtype(WORDS, tf.uint8, saturate=True),
    "words_to_float": lambda tf: tf.image.convert_image_dtype(WORDS, tf.float32),
    "brightness": lambda tf: tf.image.adjust_brightness(X, 0.3),
    "brightness_bytes": lambda tf: tf.image.adjust_brightness(BYTES, -0.2),
    "contrast": lambda tf: tf.image.adjust_contrast(X, 1.7),
    "contrast_bytes": lambda tf: tf.image.adjust_contrast(BYTES, 0.4),
    "gamma": lambda tf: tf.image.adjust_gamma(X, 0.7, 1.5), "gamma_bytes": lambda tf: tf.image.adjust_gamma(BYTES, 2),
    "hue": lambda tf: tf.image.adjust_hue(X, 0.35), "hue_bytes": lambda tf: tf.image.adjust_hue(BYTES, -0.6),
    "saturation": lambda tf: tf.image.adjust_saturation(X, 1.8),
    "saturation_bytes": lambda tf: tf.image.adjust_saturation(BYTES, 0.3),
    "grey": lambda tf: tf.image.rgb_to_grayscale(X), "grey_bytes": lambda tf: tf.image.rgb_to_grayscale(BYTES),
    "of_grey": lambda tf: tf.image.grayscale_to_rgb(X[..., :1]),
    "hsv": lambda tf: tf.image.rgb_to_hsv(X), "of_hsv": lambda tf: tf.image.hsv_to_rgb(X),
    "yiq": lambda tf: tf.image.rgb_to_yiq(X), "of_yiq": lambda tf: tf.image.yiq_to_rgb(X),
    "yuv": lambda tf: tf.image.rgb_to_yuv(X), "of_yuv": lambda tf: tf.image.yuv_to_rgb(X),
    "standard": lambda tf: tf.image.per_image_standardization(X),
    "standard_bytes": lambda tf: tf.image.per_image_standardization(BYTES),
    "psnr": lambda tf: tf.image.psnr(X, Y, 1.0),
    "psnr_bytes": lambda tf: tf.image.psnr(BYTES, BYTES // 2, 255),
    "ssim": lambda tf: tf.image.ssim(LARGE, LARGE ** 1.3, 1.0),
    "ssim_map": lambda tf: tf.image.ssim(LARGE, LARGE ** 1.3, 1.0, filter_size=5, return_index_map=True),
    "variation": lambda tf: tf.image.total_variation(X), "variation_one": lambda tf: tf.image.total_variation(X[0]),
    "dy": lambda tf: tf.image.image_gradients(X)[0], "dx": lambda tf: tf.image.image_gradients(X)[1],
    "sobel": lambda tf: tf.image.sobel_edges(X),
    "boxes": lambda tf: tf.image.crop_and_resize(X, BOXES, [0, 1, 1], [4, 3]),
    "boxes_nearest": lambda tf: tf.image.crop_and_resize(X, BOXES, [0, 1, 0], [3, 1], "nearest", 7.0),
    **{f"v1_{name}_{h}{'_aligned' if aligned else ''}": lambda tf, name=name, h=h, aligned=aligned: getattr(
        tf.compat.v1.image, f"resize_{name}")(X, [h, 6], align_corners=aligned)
       for name in ("bilinear", "nearest_neighbor") for h in (3, 11) for aligned in (False, True)},
    "v1_images": lambda tf: tf.compat.v1.image.resize_images(BYTES, [9, 4]),
    "kept": lambda tf: tf.image.non_max_suppression(MANY, SCORES, 8, 0.4, 0.2),
    "kept_all": lambda tf: tf.image.non_max_suppression(MANY, SCORES, 50),
}

if __name__ == "__main__":
    import tensorflow

    for name in ("X", "Y", "BYTES", "WORDS", "LARGE", "BOXES", "MANY", "SCORES"):
        globals()[name] = tensorflow.constant(globals()[name])
    np.savez_compressed(sys.argv[1], **{name: np.asarray(case(tensorflow)) for name, case in CASES.items()})
