"""Elements gathered into groups by a key: group_by_window, bucket_by_sequence_length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.api import listed

from ._functions import dataset_of, scalar_of
from ._listed import Listed
from ._node import INFINITE, UNKNOWN, Node, check
from ._padding import padded, padded_shapes
from ._stream import Run, Stream
from ._structure import DatasetSpec, Form, Item
from ._value import dataset_from

__all__ = ["GroupByWindow", "bucketed", "constant_size"]


class GroupByWindow(Node):
    """Elements gathered by a key, each full group turned into elements by a function of the key and the group."""

    name = "GroupByWindow"

    def __init__(self, source: Node, key: Callable[..., Any], reduce: Callable[..., Any], size: Any) -> None:
        self.source = source
        self.key = scalar_of(key, source.form, "group_by_window", "key_func", (tf.int64, tf.int32))
        self.size = size
        key_form = Form(tf.TensorSpec([], tf.int64))
        self.size_fn = scalar_of(size, key_form, "group_by_window", "window_size_func", (tf.int64, tf.int32))
        self.fn = dataset_of(reduce, [key_form, Form(DatasetSpec(source.form.spec))], "group_by_window", "reduce_func")
        self.form = Form(self.fn.form.spec.element_spec)

    def cardinality(self) -> int:
        return INFINITE if self.source.cardinality() == INFINITE else UNKNOWN

    def start(self, run: Run) -> Stream:
        return _Grouped(self, run)


class _Grouped(Stream):
    def __init__(self, node: GroupByWindow, run: Run) -> None:
        self.node, self.run = node, run
        self.input: Stream | None = node.source.start(run)
        self.groups: dict[int, list[Item]] = {}
        self.sizes: dict[int, int] = {}
        self.open: Any = None  # (key, items, stream) of the group that is given out

    def next(self) -> Any:
        while True:
            if self.open is not None:
                item = self.open[2].next()
                if item is not None:
                    return item
                self.open = None
            if not self._gather():
                return None

    def _gather(self) -> bool:
        """Read on until a group is full, or give out those that are left."""
        while self.input is not None:
            item = self.input.next()
            if item is None:
                self.input = None
                break
            key = int(self.node.key(item)[0])
            group = self.groups.setdefault(key, [])
            if not group:
                self.sizes[key] = self._size(key)
            group.append(item)
            if len(group) >= self.sizes[key]:
                self._give(key)
                return True
        if not self.groups:
            return False
        self._give(min(self.groups))  # the order of TensorFlow's map of keys
        return True

    def _size(self, key: int) -> int:
        size = int(self.node.size_fn((np.array(key, np.int64),))[0])
        check(size > 0, f"Window size must be greater than zero, but got {size}.")
        return size

    def _give(self, key: int) -> None:
        self._open(key, self.groups.pop(key))

    def _open(self, key: int, items: list[Item]) -> None:
        group = dataset_from(Listed(items, self.node.source.form))
        opened = self.node.fn((np.array(key, np.int64), group))[0]
        self.open = (key, items, opened._node.start(self.run))

    def save(self) -> Any:
        return {"input": None if self.input is None else self.input.save(), "keys": list(self.groups),
                "groups": list(self.groups.values()),
                "open": None if self.open is None else [self.open[0], self.open[1], self.open[2].save()]}

    def load(self, state: Any) -> None:
        self.groups = {k: [tuple(i) for i in g] for k, g in zip(state["keys"], state["groups"], strict=True)}
        self.sizes = {key: self._size(key) for key in self.groups}
        self.input, self.open = None, None
        if state["input"] is not None:
            self.input = self.node.source.start(self.run)
            self.input.load(state["input"])
        if state["open"] is not None:
            key, items, inner = state["open"]
            self._open(key, [tuple(i) for i in items])
            self.open[2].load(inner)


def constant_size(size: Any) -> Callable[[Any], Any]:
    """A window size as a function of the key."""
    tensor = tf.cast(size, tf.int64)
    return lambda key: tensor


def bucketed(dataset: Any, length: Callable[..., Any], boundaries: Any, sizes: Any, shapes: Any, values: Any,
             to_boundary: bool, unpadded: bool, drop: bool) -> Any:
    """Batches of elements of similar length; see `Dataset.bucket_by_sequence_length`."""
    limits = [int(b) for b in listed(boundaries, "bucket_boundaries")]
    counts = [int(s) for s in listed(sizes, "bucket_batch_sizes")]
    if not limits or not counts:
        raise ValueError("bucket_boundaries and bucket_batch_sizes must not be empty.")
    if len(counts) != len(limits) + 1:
        raise ValueError(f"`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but `"
                         f"len(bucket_batch_sizes)={len(counts)}` and `len(bucket_boundaries)={len(limits)}`.")
    of_buckets, ends = tf.constant(counts, tf.int64), tf.constant(limits, tf.int32)

    def bucket(*element: Any) -> Any:
        reached = tf.cast(length(*element), tf.int32) >= ends
        return tf.reduce_sum(tf.cast(reached, tf.int64))

    def batched(key: Any, group: Any) -> Any:
        if unpadded:
            return group.batch(of_buckets[key], drop_remainder=drop)
        wanted = padded_shapes(Form(group.element_spec), shapes)
        if to_boundary:
            tf.debugging.assert_less(key, tf.constant(len(limits), tf.int64), message=(
                "When pad_to_bucket_boundary=True, elements must have length < max(bucket_boundaries)."))
            most = tf.cast(ends[tf.minimum(key, len(limits) - 1)], tf.int64) - 1
            wanted = [[most if n is None else n for n in shape] for shape in wanted]
        return padded(group, of_buckets[key], wanted, values, drop)

    length = engine.user_function(length)
    return dataset.group_by_window(bucket, batched, window_size_func=lambda key: of_buckets[key])
