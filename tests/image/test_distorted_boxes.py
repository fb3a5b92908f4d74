"""Random boxes to cut images by: what they cover, their areas and proportions."""

from __future__ import annotations

import numpy as np
import pytest

import twofold as tf

BOX = np.array([[[0.2, 0.3, 0.6, 0.9]]], np.float32)


def test_boxes_keep_to_what_is_asked():
    for seed in range(40):
        begin, size, box = tf.image.stateless_sample_distorted_bounding_box(
            [60, 80, 3], BOX, [seed, 1], 0.5, aspect_ratio_range=[0.8, 1.25], area_range=[0.2, 0.6])
        (top, left, channel), (tall, wide, rest) = begin.numpy().tolist(), size.numpy().tolist()
        assert (channel, rest) == (0, -1)
        assert 0 <= top <= 60 - tall and 0 <= left <= 80 - wide
        assert 0.2 <= tall * wide / 4800 <= 0.6
        assert 0.75 < wide / tall < 1.35
        np.testing.assert_allclose(box[0, 0], [top / 60, left / 80, (top + tall) / 60, (left + wide) / 80], rtol=1e-6)
        shared = np.maximum(np.minimum(box[0, 0, 2:], BOX[0, 0, 2:]) - np.maximum(box[0, 0, :2], BOX[0, 0, :2]), 0)
        assert np.prod(shared) >= 0.5 * 0.4 * 0.6 - 1e-5


def test_seeds_tell_boxes_apart():
    def drawn(call):
        tf.random.set_seed(3)
        return call().numpy().tolist()
    call = lambda: tf.image.sample_distorted_bounding_box([60, 80, 3], BOX, seed=4).begin  # noqa: E731
    assert drawn(call) == drawn(call) == drawn(lambda: tf.function(call)())
    first, other = (tf.image.stateless_sample_distorted_bounding_box([60, 80, 3], BOX, [n, 0]).bboxes for n in (1, 2))
    assert not np.array_equal(first, other)


def test_where_no_box_is_found_it_is_the_whole_image():
    begin, size, box = tf.image.stateless_sample_distorted_bounding_box([10, 20, 3], BOX, [1, 2], max_attempts=0)
    assert (begin.numpy().tolist(), size.numpy().tolist()) == ([0, 0, 0], [10, 20, -1])
    assert box.numpy().ravel().tolist() == [0, 0, 1, 1]
    none = np.zeros([1, 0, 4], np.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="No bounding boxes provided"):
        tf.image.sample_distorted_bounding_box([10, 20, 3], none)
    whole = tf.image.sample_distorted_bounding_box([10, 20, 3], none, use_image_if_no_bounding_boxes=True)
    assert whole.bboxes.shape == [1, 1, 4]
    with pytest.raises(ValueError, match="area_range must be two numbers"):
        tf.image.sample_distorted_bounding_box([10, 20, 3], BOX, area_range=[0.5, 0.1])


def test_glimpses_beyond_an_image_are_noise():
    x = tf.zeros([1, 4, 4, 1])
    part = tf.image.extract_glimpse(x, [2, 8], [[0.0, 0.0]], noise="uniform").numpy()[0, :, :, 0]
    assert (part[:, 2:6] == 0).all() and (part[:, :2] > 0).all() and (part < 1).all()
    assert (tf.image.extract_glimpse(x, [8, 8], [[0.0, 0.0]], noise="gaussian").numpy() < 0).any()
