"""`tf.image` against what TensorFlow 2.21 gives (`image_cases.py`), compiled against eager, and what is refused."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import twofold as tf

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("image_cases", HERE / "image_cases.py")
cases = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cases)
KNOWN = np.load(HERE / "data" / "image.npz")
X, BYTES = cases.X, cases.BYTES


@pytest.mark.parametrize("name", cases.CASES)
def test_against_tensorflow(name):
    actual, want = cases.CASES[name](tf).numpy(), KNOWN[name]
    assert actual.dtype == want.dtype
    if want.dtype.kind in "iu":
        np.testing.assert_allclose(actual.astype(int), want.astype(int), rtol=0, atol=1 if "bytes" in name else 0)
    else:
        scale = 255.0 if want.size and np.abs(want).max() > 2 else 1.0
        apart = 2e-5 * scale if "lanczos" not in name else 1e-4
        if name.startswith("resize_bicubic") and not name.endswith("_aa"):
            apart = 5e-4  # TensorFlow rounds the places of pixels to 1/1024 here
        np.testing.assert_allclose(actual, want, rtol=1e-4, atol=apart)


def test_bytes_are_nearly_always_the_same():
    """A value that lies between two bytes may fall to either side; that is rare."""
    for name in (n for n in cases.CASES if n.endswith("_bytes") and KNOWN[n].dtype == np.uint8):
        assert np.mean(cases.CASES[name](tf).numpy() != KNOWN[name]) < 0.03, name


@pytest.mark.parametrize("fn", [
    lambda x: tf.image.resize(x, [5, 6]), lambda x: tf.image.resize(x, [5, 6], "bicubic", antialias=True),
    lambda x: tf.image.resize(x, [9, 4], "area"), lambda x: tf.image.resize(x, [9, 4], preserve_aspect_ratio=True),
    lambda x: tf.image.resize_with_crop_or_pad(x, 4, 12), lambda x: tf.image.resize_with_pad(x, 6, 6),
    lambda x: tf.image.central_crop(x, 0.5), lambda x: tf.image.adjust_hue(x, 0.2),
    lambda x: tf.image.adjust_contrast(x, 2.0), lambda x: tf.image.rot90(x, 3), tf.image.sobel_edges,
    lambda x: tf.image.extract_patches(x, [1, 2, 2, 1], [1, 1, 2, 1], [1, 1, 1, 1], "SAME"),
    tf.image.per_image_standardization, tf.image.rgb_to_grayscale, tf.image.total_variation,
    lambda x: tf.image.stateless_random_crop(x, [2, 3, 3, 3], [1, 2]),
    lambda x: tf.image.stateless_random_flip_left_right(x, [3, 4]),
    lambda x: tf.image.stateless_random_saturation(x, 0.5, 2.0, [5, 6])])
def test_functions_for_any_size_give_the_same(fn):
    compiled = tf.function(fn, input_signature=[tf.TensorSpec([None, None, None, 3])])
    for x in (X, X[:, :5]):
        np.testing.assert_allclose(compiled(x), fn(x), rtol=1e-6, atol=1e-6)


def test_sizes_as_tensors():
    size = tf.constant([4, 3])
    np.testing.assert_array_equal(tf.image.resize(X, size), tf.image.resize(X, [4, 3]))
    compiled = tf.function(lambda x, size: tf.image.resize(x, size))
    np.testing.assert_allclose(compiled(X, size), tf.image.resize(X, [4, 3]), rtol=1e-6)


@pytest.mark.parametrize("method", ["bilinear", "bicubic", "area", "nearest"])
def test_gradients_of_resizing(method):
    """The cotangent of a linear function is its transpose: inner products on both sides agree."""
    x, ct = tf.constant(X), np.random.RandomState(1).rand(2, 4, 9, 3).astype(np.float32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.image.resize(x, [4, 9], method)
    back = tape.gradient(y, x, output_gradients=tf.constant(ct))
    assert float(tf.reduce_sum(back * X)) == pytest.approx(float(np.sum(y.numpy() * ct)), rel=1e-4)


def test_random_changes_are_those_of_what_they_draw():
    tf.random.set_seed(3)
    flipped = tf.image.random_flip_left_right(np.stack([BYTES] * 64)).numpy()
    turned = [np.array_equal(image, BYTES[:, ::-1]) for image in flipped]
    assert all(t or np.array_equal(image, BYTES) for t, image in zip(turned, flipped, strict=True))
    assert 16 < sum(turned) < 48
    parts = [tf.image.random_crop(np.arange(30).reshape(6, 5), [2, 3]).numpy() for _ in range(40)]
    assert len({part[0, 0] for part in parts}) > 8
    assert all(np.array_equal(part - part[0, 0], [[0, 1, 2], [5, 6, 7]]) for part in parts)
    for change, low, high in ((tf.image.random_brightness(tf.zeros([1, 1, 1]), 0.25), -0.25, 0.25),
                              (tf.image.stateless_random_brightness(tf.zeros([1, 1, 1]), 0.25, [1, 2]), -0.25, 0.25)):
        assert low <= float(change[0, 0, 0]) < high
    same = [tf.image.stateless_random_contrast(X, 0.5, 1.5, [7, 8]).numpy() for _ in range(2)]
    np.testing.assert_array_equal(*same)
    assert tf.image.random_hue(X, 0.1).shape == X.shape
    assert tf.image.random_saturation(BYTES, 0.5, 1.5).dtype == tf.uint8
    assert tf.image.random_flip_up_down(BYTES).shape == BYTES.shape


@pytest.mark.parametrize("size", [[5, 2, 3], [-1, 2, 3], [2, 2, 4]])
def test_crops_that_are_not_within_the_image_are_refused_in_both_modes(size):
    x = tf.ones([4, 4, 3])
    whole = tf.function(tf.image.random_crop, input_signature=[tf.TensorSpec([None, None, 3]),
                                                               tf.TensorSpec([3], tf.int32)])
    for crop in (tf.image.random_crop, tf.function(tf.image.random_crop), whole):
        with pytest.raises(tf.errors.InvalidArgumentError, match="random_crop: "):
            crop(x, tf.constant(size))
        assert crop(x, tf.constant([4, 2, 3])).shape == [4, 2, 3]


@pytest.mark.parametrize("k", [0, 1, 2, 3, -1, 6])
def test_turns_that_a_value_decides(k):
    x = np.arange(6).reshape(2, 3, 1)
    np.testing.assert_array_equal(tf.function(tf.image.rot90)(x, tf.constant(k)), np.rot90(x, k))


def test_colours_there_and_back():
    for there, back in ((tf.image.rgb_to_hsv, tf.image.hsv_to_rgb), (tf.image.rgb_to_yiq, tf.image.yiq_to_rgb),
                        (tf.image.rgb_to_yuv, tf.image.yuv_to_rgb)):
        np.testing.assert_allclose(back(there(X)), X, atol=1e-4)  # the standards' numbers have 8 digits
    grey = tf.fill([2, 2, 3], 0.5)
    np.testing.assert_array_equal(tf.image.adjust_hue(grey, 0.3), grey)
    np.testing.assert_array_equal(tf.image.rgb_to_hsv(tf.zeros([1, 1, 3])), tf.zeros([1, 1, 3]))


def test_errors():
    for call, text in (
            (lambda: tf.image.resize(X, [0, 3]), "positive"), (lambda: tf.image.resize(X, [3]), "two numbers"),
            (lambda: tf.image.resize(X, [3, 3], "none"), "not implemented"),
            (lambda: tf.image.resize(X[0, 0], [3, 3]), "at least 3"),
            (lambda: tf.image.crop_to_bounding_box(X, 5, 0, 5, 2), "height must be"),
            (lambda: tf.image.crop_to_bounding_box(X, -1, 0, 5, 2), "offset_height"),
            (lambda: tf.image.pad_to_bounding_box(X, 0, 0, 5, 9), "height must be"),
            (lambda: tf.image.central_crop(X, 1.5), "central_fraction"),
            (lambda: tf.image.rgb_to_grayscale(X[..., :2]), "must be 3"),
            (lambda: tf.image.grayscale_to_rgb(X), "size 1"), (lambda: tf.image.adjust_hue(X, 2.0), "interval"),
            (lambda: tf.image.adjust_gamma(X, -1), "non-negative"), (lambda: tf.image.random_hue(X, 0.7), "<= 0.5"),
            (lambda: tf.image.random_contrast(X, 1.0, 0.5), "upper"),
            (lambda: tf.image.random_crop(X, [3, 1, 1, 1]), "value.shape >= size"),
            (lambda: tf.image.psnr(X, X[:, :3], 1.0), "one size"), (lambda: tf.image.ssim(X, X, 1.0), "smaller"),
            (lambda: tf.image.extract_patches(X, [1, 2, 2, 2], [1, 1, 1, 1], [1, 1, 1, 1], "SAME"), "sizes"),
            (lambda: tf.image.crop_and_resize(X, cases.BOXES, [0, 0, 0], [2, 2], "cubic"), "method")):
        with pytest.raises(ValueError, match=text):
            call()
    with pytest.raises(TypeError, match="no dtype of images"):
        tf.image.convert_image_dtype([True], tf.float32)


@pytest.mark.parametrize("fn", [
    *[lambda x, m=m: tf.image.resize(x, [4, 5], m) for m in ("bilinear", "nearest", "area", "bicubic", "lanczos3")],
    lambda x: tf.image.resize_with_pad(x, 4, 5), lambda x: tf.image.resize_with_crop_or_pad(x, 4, 5),
    lambda x: tf.image.crop_to_bounding_box(x, 1, 0, 4, 5),
    lambda x: tf.image.pad_to_bounding_box(x[:3, :2], 1, 2, 4, 5), lambda x: tf.image.random_crop(x, [4, 5, 3])])
def test_sizes_that_are_asked_for_are_known(fn):
    """Of images whose size is not, as files give them: models are built by what data sets tell."""
    dataset = tf.data.Dataset.from_tensors(X[0]).map(
        tf.function(fn, input_signature=[tf.TensorSpec([None, None, 3])]))
    assert dataset.element_spec.shape == [4, 5, 3]
    assert next(iter(dataset)).shape == [4, 5, 3]


def test_parts_beyond_an_image_are_errors_in_graphs_too():
    crop = tf.function(lambda x: tf.image.crop_to_bounding_box(x, 2, 2, *X.shape[1:3]),
                       input_signature=[tf.TensorSpec([None, None, 3])])
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        crop(X[0])
