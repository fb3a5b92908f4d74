"""Offsets and sizes of images as tensors fail where Python integers fail: at once, or when the function runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import twofold as tf

X = tf.reshape(tf.range(16.0), [4, 4, 1])
crop, pad = tf.image.crop_to_bounding_box, tf.image.pad_to_bounding_box

# A function of images and integers, integers that fit and those that do not.
CASES: dict[str, tuple[Callable[..., Any], tuple[int, ...], list[tuple[int, ...]]]] = {
    "crop": (lambda *n: crop(X, *n), (1, 2, 2, 2), [(0, 6, 1, 1), (-1, 0, 1, 1), (0, 0, 5, 1), (0, 0, 0, 1),
                                                    (3, 3, 2, 1), (0, 0, 1, -2), (0, 2**30, 1, 2**30)]),
    "pad": (lambda *n: pad(X, *n), (1, 0, 6, 5), [(-1, 0, 6, 6), (2, 0, 5, 4), (0, 3, 4, 6)]),
    "crop_or_pad": (lambda *n: tf.image.resize_with_crop_or_pad(X, *n), (3, 5), [(0, 3), (3, -1)]),
    "resize": (lambda *n: tf.image.resize(X, n), (3, 5), [(0, 3), (3, -1)]),
    "resize_with_pad": (lambda *n: tf.image.resize_with_pad(X, *n), (3, 5), [(0, 3), (3, -1)]),
}
WAYS: dict[str, Callable[[Any, tuple[int, ...]], Any]] = {
    "eager tensors": lambda fn, n: fn(*map(tf.constant, n)),
    "eager int64": lambda fn, n: fn(*[tf.constant(k, tf.int64) for k in n]),
    "variables": lambda fn, n: fn(*map(tf.Variable, n)),
    "constants in a function": lambda fn, n: tf.function(lambda: fn(*map(tf.constant, n)))(),
    "arguments of a function": lambda fn, n: tf.function(lambda *k: fn(*k))(*map(tf.constant, n)),
    "one argument": lambda fn, n: tf.function(lambda k: fn(k, *n[1:]))(tf.constant(n[0])),
}


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("case", list(CASES))
def test_tensors_are_taken_as_integers_are(case: str, way: str) -> None:
    fn, fit, wrong = CASES[case]
    assert WAYS[way](fn, fit).numpy().tolist() == fn(*fit).numpy().tolist()
    for numbers in wrong:
        with pytest.raises(ValueError) as expected:
            fn(*numbers)
        with pytest.raises(ValueError) as caught:
            WAYS[way](fn, numbers)
        told = str(expected.value).splitlines()[0].rpartition(": ")[2]
        assert told in str(caught.value)


@pytest.mark.parametrize("value", [1.5, None, "a", tf.constant([1, 2]), tf.constant(1.0)])
def test_what_is_no_integer_is_refused(value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="crop_to_bounding_box.*offset_height"):
        crop(X, value, 0, 1, 1)


def test_boxes_and_their_numbers_must_fit() -> None:
    boxes = [[0.0, 0.0, 1.0, 1.0]]
    with pytest.raises(ValueError, match="four numbers for each score"):
        tf.image.non_max_suppression(boxes, [0.5, 0.6], 2)
    with pytest.raises(ValueError, match="max_output_size must be one number"):
        tf.image.non_max_suppression(boxes, [0.5], [2, 3])
    with pytest.raises(ValueError, match="crop_size must be"):
        tf.image.crop_and_resize(X[None], boxes, [0], [2])
    with pytest.raises(ValueError, match="method"):
        tf.image.resize_with_pad(X, 2, 2, method="none of them")
