"""ONNX's `NonMaxSuppression`."""

from __future__ import annotations

from typing import Any

import twofold as tf

from .import_table import Call, op

__all__: list[str] = []


def _corners(call: Call, boxes: Any) -> tuple[Any, Any, Any, Any]:
    """Lower and upper ends of boxes along both axes."""
    a, b, c, d = (boxes[..., i] for i in range(4))
    if call.attr("center_point_box", 0):
        return b - d / 2, a - c / 2, b + d / 2, a + c / 2
    return tf.minimum(a, c), tf.minimum(b, d), tf.maximum(a, c), tf.maximum(b, d)


@op("NonMaxSuppression", folds=False)
def _non_max_suppression(call: Call, boxes: Any, scores: Any, most: Any = None, iou: Any = None,
                         least: Any = None) -> Any:
    """In each round each class of each batch takes the best box that is left, and drops those that overlap it."""
    low_y, low_x, high_y, high_x = (tf.expand_dims(v, 1) for v in _corners(call, boxes))
    areas = (high_y - low_y) * (high_x - low_x)
    gone = tf.constant(float("-inf"), scores.dtype)
    limit = tf.constant(0, tf.int64) if most is None else tf.reshape(tf.cast(most, tf.int64), ())
    limit = tf.minimum(limit, tf.cast(tf.shape(scores)[2], tf.int64))
    overlap = tf.zeros((), boxes.dtype) if iou is None else tf.reshape(iou, ())
    left = scores if least is None else tf.where(scores > tf.reshape(least, ()), scores, gone)
    batch, classes, _ = scores.dims
    chosen = tf.TensorArray(tf.int64, size=0, dynamic_size=True, element_shape=(batch, classes))

    def taken(v: Any, best: Any) -> Any:
        return tf.gather(tf.broadcast_to(v, scores.dims), best, axis=2, batch_dims=2)[..., None]

    def one(i: Any, left: Any, chosen: Any) -> Any:
        best = tf.argmax(left, axis=2)
        there = tf.reduce_max(left, axis=2) > gone
        sizes = [tf.minimum(high, taken(high, best)) - tf.maximum(low, taken(low, best))
                 for low, high in ((low_y, high_y), (low_x, high_x))]
        zero = tf.zeros((), boxes.dtype)
        inner = tf.maximum(sizes[0], zero) * tf.maximum(sizes[1], zero)
        mine = taken(areas, best)
        union = areas + mine - inner
        apart = tf.logical_or(tf.logical_or(areas <= 0, mine <= 0), union <= 0)
        share = tf.where(apart, zero, inner / tf.where(apart, tf.ones_like(union), union))
        own = tf.equal(tf.range(tf.shape(left)[2], dtype=tf.int64), best[..., None])
        drop = tf.logical_or(own, tf.logical_and(inner > 0, share > overlap))
        return i + 1, tf.where(drop, gone, left), chosen.write(tf.cast(i, tf.int32),
                                                               tf.where(there, best, tf.constant(-1, tf.int64)))

    _, _, chosen = tf.while_loop(lambda i, *_: i < limit, one, (tf.constant(0, tf.int64), left, chosen))
    places = tf.transpose(chosen.stack(), (1, 2, 0))
    chosen_places = tf.where(places >= 0)
    return tf.concat([chosen_places[:, :2], tf.gather_nd(places, chosen_places)[:, None]], axis=1)
