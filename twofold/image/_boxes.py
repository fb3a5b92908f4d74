"""Boxes in images: their contents, and which of many to keep."""

from __future__ import annotations

from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.api import ANY, ints, public
from twofold._front.hosted import hosted

from ._common import images_of, is_number

__all__ = ["crop_and_resize", "non_max_suppression"]


@public
def crop_and_resize(image: Any, boxes: Any, box_indices: Any, crop_size: Any, method: str = "bilinear",
                    extrapolation_value: float = 0.0, name: str | None = None) -> Any:
    """The contents of boxes in images, each resized to one size.

    Args:
        image: [batch, height, width, channels].
        boxes: floats [boxes, 4]: top, left, bottom and right, where 0 is the centre of the first pixel and 1 that of
            the last; a bottom above the top turns the result around.
        box_indices: integers [boxes]: which image each is of.
        crop_size: height and width of the results.
        method: "bilinear" or "nearest".
        extrapolation_value: for what is outside of an image.
        name: accepted, without effect.
    Returns:
        float32 [boxes, crop_height, crop_width, channels].
    Raises:
        ValueError: there is no such method, or a rank is another one.

    >>> import twofold as tf
    >>> x = tf.reshape(tf.range(9.0), [1, 3, 3, 1])
    >>> tf.image.crop_and_resize(x, [[0.0, 0.0, 1.0, 1.0]], [0], [2, 2])[0, :, :, 0].numpy().tolist()
    [[0.0, 2.0], [6.0, 8.0]]
    """
    if method not in ("bilinear", "nearest"):
        raise ValueError(f"crop_and_resize: method is 'bilinear' or 'nearest'; got {method!r}")
    x = tf.cast(images_of(image, "crop_and_resize", 4), tf.float32)
    boxes, which = tf.cast(boxes, tf.float32), tf.cast(box_indices, tf.int32)
    if boxes.shape.rank != 2 or which.shape.rank != 1:
        raise ValueError(f"crop_and_resize: boxes must be [boxes, 4] and box_indices [boxes]; got {boxes.shape} and "
                         f"{which.shape}")
    size = ints(crop_size, "crop_size", ANY)
    if len(size) != 2 or not is_number(*size) or min(size) <= 0:
        raise ValueError(f"crop_and_resize: crop_size must be a height and a width above 0 that are known; got "
                         f"{crop_size!r}")
    height, width = size
    rows, in_rows = _places(boxes[:, 0], boxes[:, 2], tf.shape(x)[1], height)
    columns, in_columns = _places(boxes[:, 1], boxes[:, 3], tf.shape(x)[2], width)
    inside = tf.logical_and(in_rows[:, :, tf.newaxis], in_columns[:, tf.newaxis, :])[..., tf.newaxis]
    if method == "nearest":
        values = _pixels(x, which, tf.round(rows), tf.round(columns))
    else:
        top, left = tf.floor(rows), tf.floor(columns)
        below, right = tf.math.ceil(rows), tf.math.ceil(columns)
        down = (rows - top)[:, :, tf.newaxis, tf.newaxis]
        across = (columns - left)[:, tf.newaxis, :, tf.newaxis]
        upper = _pixels(x, which, top, left)
        upper = upper + (_pixels(x, which, top, right) - upper) * across
        lower = _pixels(x, which, below, left)
        lower = lower + (_pixels(x, which, below, right) - lower) * across
        values = upper + (lower - upper) * down
    return tf.where(inside, values, tf.constant(extrapolation_value, tf.float32))


def _places(begin: Any, end: Any, size: Any, count: int) -> tuple[Any, Any]:
    """Where the rows of each box lie in the image, and whether they are in it; those that are not are at its edge."""
    last = tf.cast(size - 1, tf.float32)
    steps = tf.range(count, dtype=tf.float32)[tf.newaxis]
    if count > 1:
        places = begin[:, tf.newaxis] * last + steps * ((end - begin) * last / (count - 1))[:, tf.newaxis]
    else:
        places = (0.5 * (begin + end) * last)[:, tf.newaxis] + steps
    return tf.clip_by_value(places, 0.0, last), tf.logical_and(places >= 0.0, places <= last)


def _pixels(x: Any, which: Any, rows: Any, columns: Any) -> Any:
    """Pixels [boxes, rows, columns, channels] of images by their rows and columns."""
    r = tf.cast(rows, tf.int32)[:, :, tf.newaxis]
    c = tf.cast(columns, tf.int32)[:, tf.newaxis, :]
    zero = tf.zeros_like(r + c)
    return tf.gather_nd(x, tf.stack([which[:, tf.newaxis, tf.newaxis] + zero, r + zero, c + zero], axis=-1))


@public
def non_max_suppression(boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5,
                        score_threshold: Any = float("-inf"), name: str | None = None) -> Any:
    """Which boxes to keep: by falling score, but for those that overlap one that is kept already.

    Args:
        boxes: floats [boxes, 4]: two opposite corners, y and x of each.
        scores: floats [boxes].
        max_output_size: how many are kept at most.
        iou_threshold: the part of two boxes' union that may be in both.
        score_threshold: those with a score up to it are left out.
        name: accepted, without effect.
    Returns:
        int32 [kept]: the numbers of the boxes.

    >>> import twofold as tf
    >>> boxes = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [2.0, 2.0, 3.0, 3.0]]
    >>> tf.image.non_max_suppression(boxes, [0.9, 0.8, 0.7], 3).numpy().tolist()
    [0, 2]
    """
    given = [tf.cast(boxes, tf.float32), tf.cast(scores, tf.float32), tf.cast(max_output_size, tf.int32),
             tf.cast(iou_threshold, tf.float32), tf.cast(score_threshold, tf.float32)]
    if given[0].shape.rank != 2 or given[1].shape.rank != 1:
        raise ValueError(f"non_max_suppression: boxes must be [boxes, 4] and scores [boxes]; got {given[0].shape} and "
                         f"{given[1].shape}")
    if not given[0].shape.is_compatible_with([given[1].shape[0], 4]):
        raise ValueError(f"non_max_suppression: boxes must have four numbers for each score; got boxes of shape "
                         f"{given[0].shape} and scores of shape {given[1].shape}")
    for value, what in zip(given[2:], ("max_output_size", "iou_threshold", "score_threshold"), strict=True):
        if value.shape.rank != 0:
            raise ValueError(f"non_max_suppression: {what} must be one number; got shape {value.shape}")
    return chosen_boxes(*given)


@hosted
def chosen_boxes(boxes: Any, scores: Any, most: Any, overlap: Any, least: Any) -> Any:
    """`non_max_suppression` of tensors."""
    def chosen(*tensors: Any) -> list[Any]:
        boxes, rating, *rest = [engine.array_of(t) for t in tensors]
        return [engine.tensor_of(_chosen(boxes, rating, *[n.item() for n in rest]))]
    return engine.host_call(chosen, "non_max_suppression", [boxes, scores, most, overlap, least],
                            [tf.TensorSpec([None], tf.int32)])[0]


def _chosen(boxes: np.ndarray, scores: np.ndarray, most: int, overlap: float, least: float) -> np.ndarray:
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    areas = np.prod(high - low, axis=1)
    kept: list[int] = []
    for n in np.argsort(-scores, kind="stable"):
        if len(kept) >= most or not scores[n] > least:
            break
        both = np.prod(np.maximum(np.minimum(high[n], high[kept]) - np.maximum(low[n], low[kept]), 0), axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = both / (areas[n] + areas[kept] - both)
        if not np.any(shares > overlap):
            kept.append(int(n))
    return np.array(kept, np.int32)
