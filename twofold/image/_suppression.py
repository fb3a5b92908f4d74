"""Which of many boxes to keep: by falling score, but for those that overlap one that is kept already."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.api import one_int, public
from twofold._front.hosted import hosted

__all__ = ["combined_boxes", "combined_non_max_suppression", "kept_boxes", "non_max_suppression_overlaps",
           "non_max_suppression_padded", "non_max_suppression_with_scores"]


def _kept(similar: Callable[[int, list[int]], np.ndarray], scores: np.ndarray, most: int, overlap: float, least: float,
          sigma: float) -> tuple[list[int], list[float]]:
    """Numbers and scores of what is kept; with `sigma`, overlapping boxes come again with less of a score."""
    queue = [(-float(s), n, 0) for n, s in enumerate(scores) if s > least]
    heapq.heapify(queue)
    kept: list[int] = []
    ratings: list[float] = []
    while queue and len(kept) < most:
        negative, n, seen = heapq.heappop(queue)
        score = before = -negative
        shares = similar(n, kept[seen:])
        if sigma > 0:
            for share in shares[::-1]:
                score = float(np.float32(score) * np.float32(math.exp(-0.5 / sigma * float(share) ** 2)))
                if score <= least:
                    break
        elif np.any(shares > overlap):
            continue
        if score == before:
            kept.append(n)
            ratings.append(score)
        elif score > least:
            heapq.heappush(queue, (-score, n, len(kept)))
    return kept, ratings


def _shares_of(boxes: np.ndarray) -> Callable[[int, list[int]], np.ndarray]:
    """How much of the union of two boxes is in both."""
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    areas = np.prod(high - low, axis=1)

    def shares(n: int, others: list[int]) -> np.ndarray:
        both = np.prod(np.maximum(np.minimum(high[n], high[others]) - np.maximum(low[n], low[others]), 0), axis=1)
        valid = (areas[n] > 0) & (areas[others] > 0)
        return np.where(valid, both / np.where(valid, areas[n] + areas[others] - both, 1), 0)
    return shares


@hosted
def kept_boxes(square: bool, boxes: Any, scores: Any, most: Any, overlap: Any, least: Any, sigma: Any) -> Any:
    """The numbers of the boxes that are kept, int32, and their scores; `square`: `boxes` tells how they overlap."""
    def kept(*tensors: Any) -> list[Any]:
        given, rating, *numbers = [engine.array_of(t) for t in tensors]
        similar = (lambda n, others: given[n, others]) if square else _shares_of(given)
        kept_numbers, left = _kept(similar, rating, *[n.item() for n in numbers])
        return [engine.tensor_of(np.array(kept_numbers, np.int32)), engine.tensor_of(np.array(left, rating.dtype))]
    return engine.host_call(kept, "non_max_suppression", [boxes, scores, most, overlap, least, sigma],
                            [tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.float32)])


def _given(op: str, boxes: Any, scores: Any, width: int | None, *numbers: Any) -> list[Any]:
    boxes, scores = tf.cast(boxes, tf.float32), tf.cast(scores, tf.float32)
    wanted = [scores.shape[0], scores.shape[0] if width is None else width]
    if boxes.shape.rank != 2 or scores.shape.rank != 1 or not boxes.shape.is_compatible_with(wanted):
        raise ValueError(f"{op}: expected boxes of shape [boxes, {'boxes' if width is None else width}] and scores "
                         f"[boxes]; got {boxes.shape} and {scores.shape}.")
    most, *rest = numbers
    return [boxes, scores, tf.cast(most, tf.int32), *(tf.cast(n, tf.float32) for n in rest)]


@public
def non_max_suppression_with_scores(boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5,
                                    score_threshold: Any = float("-inf"), soft_nms_sigma: Any = 0.0,
                                    name: str | None = None) -> tuple[Any, Any]:
    """Which boxes to keep, and their scores: by falling score, but for those that overlap one that is kept already.

    Source: Bodla et al., "Soft-NMS: improving object detection with one line of code" (2017).

    Args:
        boxes: floats [boxes, 4]: two opposite corners, y and x of each.
        scores: floats [boxes].
        max_output_size: how many are kept at most.
        iou_threshold: the part of two boxes' union that may be in both.
        score_threshold: those with a score up to it are left out.
        soft_nms_sigma: if above 0, boxes that overlap are not left out, but lose some of their score.
        name: accepted, without effect.
    Returns:
        int32 [kept]: the numbers of the boxes; and their scores, float32.
    Raises:
        ValueError: shapes do not fit.

    >>> import twofold as tf
    >>> boxes = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [2.0, 2.0, 3.0, 3.0]]
    >>> kept, left = tf.image.non_max_suppression_with_scores(boxes, [0.9, 0.8, 0.7], 3, soft_nms_sigma=0.5)
    >>> kept.numpy().tolist(), left.numpy().round(3)
    ([0, 2, 1], array([0.9 , 0.7 , 0.41], dtype=float32))
    """
    given = _given("non_max_suppression_with_scores", boxes, scores, 4, max_output_size, iou_threshold,
                   score_threshold, soft_nms_sigma)
    kept, left = kept_boxes(False, *given)
    return kept, left


@public
def non_max_suppression_overlaps(overlaps: Any, scores: Any, max_output_size: Any, overlap_threshold: Any = 0.5,
                                 score_threshold: Any = float("-inf"), name: str | None = None) -> Any:
    """Which boxes to keep, of which is told how much each two overlap.

    Args:
        overlaps: floats [boxes, boxes].
        scores: floats [boxes].
        max_output_size: how many are kept at most.
        overlap_threshold: how much a box may overlap one that is kept.
        score_threshold: those with a score up to it are left out.
        name: accepted, without effect.
    Returns:
        int32 [kept]: the numbers of the boxes.
    Raises:
        ValueError: shapes do not fit.

    >>> import twofold as tf
    >>> tf.image.non_max_suppression_overlaps([[1.0, 0.8], [0.8, 1.0]], [0.3, 0.6], 2).numpy().tolist()
    [1]
    """
    given = _given("non_max_suppression_overlaps", overlaps, scores, None, max_output_size, overlap_threshold,
                   score_threshold)
    return kept_boxes(True, *[*given, tf.constant(0.0)])[0]


@public
def non_max_suppression_padded(boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5,
                               score_threshold: Any = float("-inf"), pad_to_max_output_size: bool = False,
                               name: str | None = None, sorted_input: bool = False,
                               canonicalized_coordinates: bool = False, tile_size: int = 512) -> tuple[Any, Any]:
    """Which boxes to keep, as a tensor of known size.

    Args:
        boxes: floats [.., boxes, 4]: two opposite corners, y and x of each.
        scores: floats [.., boxes].
        max_output_size: how many are kept at most.
        iou_threshold: the part of two boxes' union that may be in both.
        score_threshold: those with a score up to it are left out.
        pad_to_max_output_size: whether zeros fill the result; needed for a batch.
        name: accepted, without effect.
        sorted_input, canonicalized_coordinates, tile_size: accepted, without effect.
    Returns:
        int32 [.., max_output_size], or [kept]: the numbers of the boxes; and how many are kept, int32 [..].
    Raises:
        ValueError: shapes do not fit, or a batch that is not padded.

    >>> import twofold as tf
    >>> boxes = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [2.0, 2.0, 3.0, 3.0]]
    >>> kept, count = tf.image.non_max_suppression_padded(boxes, [0.9, 0.8, 0.7], 4, pad_to_max_output_size=True)
    >>> kept.numpy().tolist(), int(count)
    ([0, 2, 0, 0], 2)
    """
    boxes, scores = tf.cast(boxes, tf.float32), tf.cast(scores, tf.float32)
    if boxes.shape.rank > 2 and not pad_to_max_output_size:
        raise ValueError("non_max_suppression_padded: 'pad_to_max_output_size' must be True for batched input.")
    if boxes.shape.rank == 2:
        kept, count = _padded(boxes, scores, max_output_size, iou_threshold, score_threshold)
        return (kept if pad_to_max_output_size else kept[:count]), count
    head = tf.shape(scores)[:-1]
    kept, count = tf.map_fn(
        lambda pair: _padded(pair[0], pair[1], max_output_size, iou_threshold, score_threshold),
        (tf.reshape(boxes, tf.concat([[-1], tf.shape(boxes)[-2:]], 0)),
         tf.reshape(scores, tf.stack([-1, tf.shape(scores)[-1]]))),
        fn_output_signature=(tf.int32, tf.int32))
    return tf.reshape(kept, tf.concat([head, [max_output_size]], 0)), tf.reshape(count, head)


def _padded(boxes: Any, scores: Any, most: Any, overlap: Any, least: Any) -> tuple[Any, Any]:
    given = _given("non_max_suppression_padded", boxes, scores, 4, most, overlap, least, 0.0)
    kept, _ = kept_boxes(False, *given)
    count = tf.shape(kept)[0]
    return tf.pad(kept, [[0, given[2] - count]]), count


@public
def combined_non_max_suppression(boxes: Any, scores: Any, max_output_size_per_class: Any, max_total_size: Any,
                                 iou_threshold: Any = 0.5, score_threshold: Any = float("-inf"),
                                 pad_per_class: bool = False, clip_boxes: bool = True,
                                 name: str | None = None) -> tuple[Any, Any, Any, Any]:
    """Which boxes of several classes to keep: in each class as `tf.image.non_max_suppression`, then the best of all.

    Args:
        boxes: floats [batch, boxes, classes, 4], or [batch, boxes, 1, 4] where those of all classes are the same: two
            opposite corners, y and x of each.
        scores: floats [batch, boxes, classes].
        max_output_size_per_class: how many of a class are kept at most.
        max_total_size: how many of an image are kept at most.
        iou_threshold: the part of two boxes' union that may be in both.
        score_threshold: those with a score up to it are left out.
        pad_per_class: whether results have no more places than all classes together can fill.
        clip_boxes: whether boxes are clipped to [0, 1].
        name: accepted, without effect.
    Returns:
        The boxes [batch, kept, 4], their scores and classes [batch, kept], float32, with zeros behind them; and how
        many there are, int32 [batch].
    Raises:
        ValueError: shapes do not fit.

    >>> import twofold as tf
    >>> boxes = [[[[0.0, 0.0, 0.5, 0.5]], [[0.5, 0.5, 1.0, 1.0]]]]
    >>> kept = tf.image.combined_non_max_suppression(boxes, [[[0.2, 0.9], [0.8, 0.1]]], 1, 2)
    >>> kept[1].numpy(), kept[2].numpy().tolist(), kept[3].numpy().tolist()
    (array([[0.9, 0.8]], dtype=float32), [[1.0, 0.0]], [2])
    """
    boxes, scores = tf.cast(boxes, tf.float32), tf.cast(scores, tf.float32)
    if boxes.shape.rank != 4 or scores.shape.rank != 3 or boxes.shape[2] not in (1, scores.shape[2], None):
        raise ValueError("combined_non_max_suppression: expected boxes [batch, boxes, 1 or classes, 4] and scores "
                         f"[batch, boxes, classes]; got shapes {boxes.shape} and {scores.shape}.")
    most, total = one_int(max_output_size_per_class, "max_output_size_per_class"), one_int(max_total_size,
                                                                                           "max_total_size")
    if most <= 0 or total <= 0:
        raise ValueError(f"combined_non_max_suppression: sizes must be above 0; got {most} and {total}.")
    if pad_per_class and scores.shape[2] is not None:
        total = min(total, most * scores.shape[2])
    return tuple(combined_boxes(boxes, scores, tf.cast(iou_threshold, tf.float32),
                                tf.cast(score_threshold, tf.float32), most, total, bool(clip_boxes)))


@hosted
def combined_boxes(boxes: Any, scores: Any, overlap: Any, least: Any, most: int, total: int, clip: bool) -> Any:
    """`combined_non_max_suppression` of tensors."""
    def combined(*tensors: Any) -> list[Any]:
        given, rating, share, lowest = [engine.array_of(t) for t in tensors]
        batch = len(given)
        out = [np.zeros((batch, total, 4), np.float32), np.zeros((batch, total), np.float32),
               np.zeros((batch, total), np.float32), np.zeros(batch, np.int32)]
        for n in range(batch):
            best = _of_classes(given[n], rating[n], most, share.item(), lowest.item())[:total]
            for place, (score, number, kind) in enumerate(best):
                box = given[n, number, kind if given.shape[2] > 1 else 0]
                out[0][n, place] = np.clip(box, 0, 1) if clip else box
                out[1][n, place], out[2][n, place] = score, kind
            out[3][n] = len(best)
        return [engine.tensor_of(a) for a in out]
    batch = boxes.shape[0]
    return engine.host_call(combined, "combined_non_max_suppression", [boxes, scores, overlap, least],
                            [tf.TensorSpec([batch, total, 4], tf.float32), tf.TensorSpec([batch, total], tf.float32),
                             tf.TensorSpec([batch, total], tf.float32), tf.TensorSpec([batch], tf.int32)])


def _of_classes(boxes: np.ndarray, scores: np.ndarray, most: int, overlap: float,
                least: float) -> list[tuple[float, int, int]]:
    """(score, number, class) of what is kept of each class, best first."""
    best = []
    for kind in range(scores.shape[1]):
        similar = _shares_of(boxes[:, kind if boxes.shape[1] > 1 else 0])
        kept, left = _kept(similar, scores[:, kind], most, overlap, least, 0.0)
        best += [(score, n, kind) for score, n in zip(left, kept, strict=True)]
    return sorted(best, key=lambda f: -f[0])
