"""Pipelines of which each of several workers reads a part: rewritten so that it opens its own files alone, or reads
its shard where the program has marked one. Who the workers are is `tf.distribute`'s."""

from __future__ import annotations

import copy
import enum
from collections.abc import Callable
from typing import Any

import twofold as tf

from ._caching import MemoryCache
from ._combining import Prefetch
from ._files import FileNode
from ._mapping import Filter, Interleave, Map
from ._node import Node
from ._order import HINT, Repeat, Shard, Shuffle, Skip, Take
from ._stream import Run

__all__ = ["AutoShardPolicy", "NotByFile", "batch_size_of", "by_files", "by_hints"]


class AutoShardPolicy(enum.IntEnum):
    """How workers share a dataset under a strategy of several processes (`tf.distribute`).

    `FILE`: each reads its own files. `DATA`: each takes its rows of each batch. `AUTO`: by file, where the dataset
    reads files and there are enough of them, else by data. `HINT`: as `shard(tf.data.experimental.SHARD_HINT,
    tf.data.experimental.SHARD_HINT)` in the dataset says. `OFF`: each reads everything.

    >>> import twofold as tf
    >>> options = tf.data.Options()
    >>> options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    >>> options.experimental_distribute.auto_shard_policy.name
    'DATA'
    """

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class NotByFile(Exception):
    """A pipeline's files cannot be shared out: there are none, or too few."""


def by_files(node: Node, count: int, index: int) -> Node:
    """A pipeline that reads every `count`-th file, from number `index` on.

    Raises:
        NotByFile: some elements do not come from files, or there are fewer files than workers.
    """
    if isinstance(node, FileNode):
        return _changed(node, "names", _names(node.names, count, index))
    if isinstance(node, Interleave) and _opens_files(node):
        return _changed(node, "source", _shard(node.source, count, index))
    if not node.inputs():
        raise NotByFile(f"{node.name} reads no files")
    return _rebuilt(node, lambda inner: by_files(inner, count, index))


def _names(names: Any, count: int, index: int) -> Any:
    """Some of the names of files."""
    if isinstance(names, Node):
        return _shard(names, count, index)
    flat = tf.reshape(names, [-1])
    _check_enough(int(flat.shape[0]), count)
    return flat[index::count]


def _shard(node: Node, count: int, index: int) -> Node:
    """Some of the elements of a node: below what orders or repeats them, so that each worker has the same each time."""
    if isinstance(node, (Shuffle, Repeat, Prefetch)):
        return _rebuilt(node, lambda inner: _shard(inner, count, index))
    _check_enough(node.cardinality(), count)
    return Shard(node, count, index)


def _check_enough(files: int, count: int) -> None:
    if 0 <= files < count:
        raise NotByFile(f"there are {files} files for {count} workers")


def _opens_files(node: Interleave) -> bool:
    """Whether the datasets that a function makes of names read files; asked with the first name."""
    form = node.source.form
    if not form.plain or not any(spec.dtype is tf.string for spec in form.flat):
        return False
    item = node.source.start(Run(fuse=False)).next()
    return item is not None and _reads_files(node.fn(item)[0]._node)


def _reads_files(node: Node) -> bool:
    return isinstance(node, FileNode) or any(_reads_files(inner) for inner in node.inputs())


def by_hints(node: Node, count: int, index: int) -> Node:
    """A pipeline whose marked shards are those of a worker.

    Raises:
        ValueError: none is marked.
    """
    marked: list[Node] = []

    def changed(node: Node) -> Node:
        if isinstance(node, Shard) and node.count == HINT:
            marked.append(node)
            return Shard(changed(node.source), count, index)
        return _rebuilt(node, changed)
    result = changed(node)
    if not marked:
        raise ValueError("AutoShardPolicy.HINT: the dataset has no `shard(tf.data.experimental.SHARD_HINT, "
                         "tf.data.experimental.SHARD_HINT)`.")
    return result


def batch_size_of(node: Node) -> int | None:
    """How many rows the batches have that a pipeline gives; None where nothing tells."""
    size = getattr(node, "size", None)
    if node.name in ("Batch", "PaddedBatch") and isinstance(size, int):
        return size
    shape = getattr(node.form.flat[0], "shape", None) if node.form.flat else None
    if shape is not None and shape.rank and shape[0] is not None:
        return int(shape[0])
    if isinstance(node, (Map, Filter, Prefetch, Repeat, Shard, Shuffle, Skip, Take)):
        return batch_size_of(node.inputs()[0])
    return None


def _rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """A node over changed inputs."""
    made = MemoryCache(node.source) if isinstance(node, MemoryCache) else copy.copy(node)  # which keeps its own
    for key, value in vars(node).items():
        if isinstance(value, Node):
            setattr(made, key, change(value))
        elif isinstance(value, (list, tuple)) and any(isinstance(v, Node) for v in value):
            setattr(made, key, type(value)([change(v) if isinstance(v, Node) else v for v in value]))
    return made


def _changed(node: Node, key: str, value: Any) -> Node:
    made = copy.copy(node)
    setattr(made, key, value)
    return made
