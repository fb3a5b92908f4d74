"""Elements joined and taken apart: batch, padded_batch, unbatch, rebatch, window.

A batch of rows whose order is arithmetic on positions is one gather per component (`_Gathered`); other elements are
stacked. Both give the same batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine

from ._listed import Listed
from ._node import INFINITE, UNKNOWN, Node, check, number
from ._stream import Rows, Run, Stream
from ._structure import DatasetSpec, Form, Item, general, row_spec
from ._value import dataset_from

__all__ = ["Batch", "PaddedBatch", "RaggedBatch", "Rebatch", "Unbatch", "Window"]


def _batches(count: int, size: int, drop: bool) -> int:
    return count if count < 0 else count // size if drop else -(-count // size)


class Batch(Node):
    """Elements stacked along a new first axis."""

    name = "Batch"

    def __init__(self, source: Node, size: Any, drop: bool) -> None:
        self.source, self.drop = source, bool(drop)
        self.size = number(size, "batch_size")
        known = not engine.is_symbolic(self.size)
        check(not known or self.size > 0, "Batch size must be greater than zero.")
        self.form = source.form.map_whole(lambda s: general(s, self.size if self.drop and known else None))

    def cardinality(self) -> int:
        return UNKNOWN if engine.is_symbolic(self.size) else _batches(self.source.cardinality(), self.size, self.drop)

    def start(self, run: Run) -> Stream:
        check(self.size > 0, "Batch size must be greater than zero.")
        if self.source.form.composite:
            return _Batched(self.source.start(run), self.size, self.drop, self.source.form.stacked)
        rows = self.source.rows() if run.fuse else None
        if rows is not None:
            return _Gathered(rows, self.source.positions(run), self.size, self.drop)
        return _Batched(self.source.start(run), self.size, self.drop)


class _Gathered(Stream):
    """Batches of rows at the positions of a stream."""

    def __init__(self, rows: Rows, positions: Stream, size: int, drop: bool) -> None:
        self.gather, self.positions, self.size, self.drop = rows.gather, positions, size, drop

    def next(self) -> Any:
        chosen = self.positions.take(self.size)
        if len(chosen) < self.size and (self.drop or not len(chosen)):
            return None
        return self.gather(chosen)

    def save(self) -> Any:
        return self.positions.save()

    def load(self, state: Any) -> None:
        self.positions.load(state)


def _stacked_arrays(items: Sequence[Item]) -> Item:
    """Items of arrays as one item, along new first axes."""
    return tuple([_stacked(number, parts) for number, parts in enumerate(zip(*items, strict=True))])


class _Batched(Stream):
    """Batches of elements, stacked by a function."""

    def __init__(self, source: Stream, size: int, drop: bool, stack: Callable[[list[Item]], Item] = _stacked_arrays
                 ) -> None:
        self.input, self.size, self.drop, self.stack = source, size, drop, stack

    def _gather(self) -> list[Item]:
        items: list[Item] = []
        take = self.input.next
        while len(items) < self.size and (item := take()) is not None:
            items.append(item)
        return items

    def next(self) -> Any:
        items = self._gather()
        if not items or (self.drop and len(items) < self.size):
            return None
        return self.stack(items)

    def save(self) -> Any:
        return self.input.save()

    def load(self, state: Any) -> None:
        self.input.load(state)


def _stacked(component: int, parts: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays of one shape along a new first axis."""
    first = parts[0]
    shape = first.shape
    for i, part in enumerate(parts):
        if part.shape != shape:
            raise tf.errors.InvalidArgumentError(
                None, None, f"Cannot batch tensors with different shapes in component {component}. First element had "
                f"shape {list(shape)} and element {i} had shape {list(part.shape)}.")
    if shape:
        return np.concatenate(parts).reshape(len(parts), *shape)
    made = np.empty(len(parts), first.dtype)
    for i, part in enumerate(parts):
        made[i] = part[()]
    return made


class RaggedBatch(Node):
    """Elements stacked along a new first axis, whose axes of unknown size are ragged then."""

    name = "DenseToRaggedBatch"

    def __init__(self, source: Node, size: Any, drop: bool, row_splits_dtype: Any) -> None:
        self.source, self.drop, self.splits_dtype = source, bool(drop), tf.as_dtype(row_splits_dtype)
        self.size = number(size, "batch_size")
        known = not engine.is_symbolic(self.size)
        check(not known or self.size > 0, "Batch size must be greater than zero.")
        count = self.size if self.drop and known else None
        self.form = source.form.map_whole(lambda s: self._spec(s, count))

    def _spec(self, spec: Any, count: int | None) -> Any:
        levels = _ragged_axes(spec)
        if not levels:
            return general(spec, count)
        return tf.RaggedTensorSpec(tf.TensorShape([count]).concatenate(spec.shape), spec.dtype, levels,
                                   self.splits_dtype)

    def cardinality(self) -> int:
        return UNKNOWN if engine.is_symbolic(self.size) else _batches(self.source.cardinality(), self.size, self.drop)

    def start(self, run: Run) -> Stream:
        check(self.size > 0, "Batch size must be greater than zero.")
        return _Batched(self.source.start(run), self.size, self.drop, self._stacked)

    def _stacked(self, items: list[Item]) -> Item:
        form = self.source.form
        elements = [engine.nest.flatten(form.element(item), expand_composites=False) for item in items]
        leaves = [self._stacked_leaf(spec, values) for spec, values in
                  zip(form.whole, zip(*elements, strict=True), strict=True)]
        return form.item(leaves)

    def _stacked_leaf(self, spec: Any, values: Sequence[Any]) -> Any:
        if engine.nest.is_composite(spec):
            return spec._stacked(values)
        levels = _ragged_axes(spec)
        if not levels:
            return tf.stack(list(values))
        if levels > 1:
            values = [tf.RaggedTensor.from_tensor(v, ragged_rank=levels - 1) for v in values]
        stacked = tf.ragged.stack(list(values))
        return stacked.with_row_splits_dtype(self.splits_dtype)


def _ragged_axes(spec: Any) -> int:
    """How many axes of a batch of what `spec` describes are partitioned into rows: those up to the last unknown one."""
    if engine.nest.is_composite(spec):
        return 0
    if spec.shape.rank is None:
        raise ValueError("ragged_batch takes elements of known rank.")
    return max([n + 1 for n, size in enumerate(spec.shape) if size is None], default=0)


class PaddedBatch(Node):
    """Elements padded to one shape and stacked.

    Args:
        shapes: for each component the shape to pad to; None for the largest in the batch.
        values: for each component what to pad with.
    """

    name = "PaddedBatch"

    def __init__(self, source: Node, size: Any, shapes: list[Any], values: list[Any], drop: bool) -> None:
        self.source, self.size, self.drop = source, number(size, "batch_size"), bool(drop)
        check(engine.is_symbolic(self.size) or self.size > 0, "Batch size must be greater than zero.")
        self.shapes, self.values = shapes, values
        if source.form.composite:
            kinds = [s.value_type.__name__ for s in source.form.whole if engine.nest.is_composite(s)]
            raise TypeError(f"Padded batching of components of type {kinds[0]} is not supported.")
        count = self.size if self.drop and not engine.is_symbolic(self.size) else None
        specs = [tf.TensorSpec([count, *[n if isinstance(n, int) else None for n in shape]], spec.dtype)
                 for spec, shape in zip(source.form.flat, shapes, strict=True)]
        self.form = Form(engine.nest.pack(source.form.spec, specs))

    def cardinality(self) -> int:
        return UNKNOWN if engine.is_symbolic(self.size) else _batches(self.source.cardinality(), self.size, self.drop)

    def start(self, run: Run) -> Stream:
        return _Padded(self, self.source.start(run))

    def sizes(self) -> list[list[int | None]]:
        """The shapes, in which tensors may have stood for sizes."""
        return [[None if n is None else int(n) for n in shape] for shape in self.shapes]


class _Padded(_Batched):
    def __init__(self, node: PaddedBatch, source: Stream) -> None:
        super().__init__(source, node.size, node.drop)
        self.shapes, self.values = node.sizes(), node.values

    def next(self) -> Any:
        items = self._gather()
        if not items or (self.drop and len(items) < self.size):
            return None
        return tuple([_padded(parts, shape, value) for parts, shape, value in
                      zip(zip(*items, strict=True), self.shapes, self.values, strict=True)])


def _padded(parts: Sequence[np.ndarray], shape: Sequence[int | None], value: np.ndarray) -> np.ndarray:
    rank, shapes = len(shape), [part.shape for part in parts]
    for part_shape in shapes:
        if len(part_shape) != rank:
            check(False, "All elements in a batch must have the same rank as the padded shape: expected rank "
                         f"{rank} but got element with rank {len(part_shape)}")
    largest = [max(sizes) for sizes in zip(*shapes, strict=True)]
    sizes = [most if known is None else known for most, known in zip(largest, shape, strict=True)]
    if any(most > size for most, size in zip(largest, sizes, strict=True)):
        raise tf.errors.DataLossError(None, None, "Attempted to pad to a smaller size than the input element: elements "
                                                  f"have sizes up to {largest}, the padded shape is {sizes}.")
    made = np.full((len(parts), *sizes), value, parts[0].dtype)
    for i, part in enumerate(parts):
        if rank == 1:
            made[i, :shapes[i][0]] = part
        else:
            made[(i, *[slice(n) for n in shapes[i]], ...)] = part  # type: ignore[index]
    return made


class Unbatch(Node):
    """The slices of elements along their first axis."""

    name = "Unbatch"

    def __init__(self, source: Node) -> None:
        self.source = source
        if not source.form.plain:
            raise TypeError("unbatch() takes elements of tensors; these hold datasets: use flat_map.")
        sizes = set()
        for spec in source.form.whole:
            if engine.nest.is_composite(spec):
                continue
            if spec.shape.rank == 0:
                raise ValueError("Cannot unbatch an input with scalar components.")
            if spec.shape.rank is not None and spec.shape[0] is not None:
                sizes.add(spec.shape[0])
        if len(sizes) > 1:
            a, b = sorted(sizes)[:2]
            raise ValueError("`unbatch()` is only supported for datasets of elements whose components have a matching "
                             f"leading dimension. Encountered both {a} and {b}.")
        self.size = sizes.pop() if sizes else None
        self.form = source.form.map_whole(row_spec)

    def cardinality(self) -> int:
        n = self.source.cardinality()
        if n == INFINITE or n == 0:
            return n
        return UNKNOWN if n == UNKNOWN or self.size is None else n * self.size

    def start(self, run: Run) -> Stream:
        if self.source.form.composite:
            return _UnbatchedWhole(self.source.start(run), self.source.form)
        return _Unbatched(self.source.start(run))


class _Unbatched(Stream):
    def __init__(self, source: Stream) -> None:
        self.input = source
        self.item: Item | None = None
        self.at = 0

    def next(self) -> Any:
        while self.item is None or self.at >= self.item[0].shape[0]:
            self.item, self.at = self.input.next(), 0
            if self.item is None:
                return None
            self._check(self.item)
        self.at += 1
        return tuple([a[self.at - 1, ...] for a in self.item])

    def _check(self, item: Item) -> None:
        if any(a.ndim == 0 for a in item) or len({a.shape[0] for a in item}) > 1:
            self.item = None
            shapes = [list(a.shape) for a in item]
            raise tf.errors.InvalidArgumentError(
                None, None, f"Input element must have the same batch size in each component; got shapes {shapes}.")

    def save(self) -> Any:
        return [None if self.item is None else list(self.item), self.at, self.input.save()]

    def load(self, state: Any) -> None:
        self.item = None if state[0] is None else tuple(state[0])
        self.at = state[1]
        self.input.load(state[2])


class _UnbatchedWhole(Stream):
    """The rows of elements that hold composite values."""

    def __init__(self, source: Stream, form: Form) -> None:
        self.input, self.form = source, form
        self.rows: list[Item] = []
        self.at = 0

    def next(self) -> Any:
        while self.at >= len(self.rows):
            item = self.input.next()
            if item is None:
                return None
            self.rows, self.at = self.form.rows(item), 0
        self.at += 1
        return self.rows[self.at - 1]

    def save(self) -> Any:
        return [[list(row) for row in self.rows], self.at, self.input.save()]

    def load(self, state: Any) -> None:
        self.rows, self.at = [tuple(row) for row in state[0]], state[1]
        self.input.load(state[2])


class Rebatch(Node):
    """The rows of batches in batches of other sizes, which take turns."""

    name = "Rebatch"

    def __init__(self, source: Node, sizes: Any, drop: bool) -> None:
        self.source, self.drop = source, bool(drop)
        given = np.ravel(engine.array_of(sizes)).tolist()
        check(bool(given) and min(given) >= 0 and max(given) > 0,
              f"batch_size must be a positive integer or a vector of such; got {given}.")
        self.sizes = given
        size = given[0] if self.drop and len(set(given)) == 1 else None
        if source.form.composite:
            raise TypeError("rebatch() takes elements of tensors: use unbatch() and batch().")
        self.form = Unbatch(source).form.map_specs(lambda s: general(s, size))

    def cardinality(self) -> int:
        return UNKNOWN

    def start(self, run: Run) -> Stream:
        return _Rebatched(self, run)


class _Rebatched(Stream):
    def __init__(self, node: Rebatch, run: Run) -> None:
        self.node, self.turn = node, 0
        self.input = node.source.start(run)
        self.parts: list[Item] = []  # what has been read and not given out
        self.rows = 0

    def next(self) -> Any:
        size = self.node.sizes[self.turn]
        while self.rows < size:
            item = self.input.next()
            if item is None:
                break
            self.parts.append(item)
            self.rows += item[0].shape[0]
        if self.rows < size and (self.node.drop or not self.rows):
            return None
        self.turn = (self.turn + 1) % len(self.node.sizes)
        return self._cut(min(size, self.rows))

    def _cut(self, size: int) -> Item:
        joined = self.parts[0] if len(self.parts) == 1 else tuple(
            [np.concatenate(arrays) for arrays in zip(*self.parts, strict=True)])
        self.rows -= size
        self.parts = [tuple([a[size:] for a in joined])] if self.rows else []
        return tuple([a[:size] for a in joined])

    def save(self) -> Any:
        return [self.turn, self.rows, [list(p) for p in self.parts], self.input.save()]

    def load(self, state: Any) -> None:
        self.turn, self.rows = state[:2]
        self.parts = [tuple(p) for p in state[2]]
        self.input.load(state[3])


class Window(Node):
    """Datasets of neighbouring elements."""

    name = "Window"

    def __init__(self, source: Node, size: Any, shift: Any, stride: Any, drop: bool) -> None:
        self.source, self.drop = source, bool(drop)
        self.size, self.stride = number(size, "size"), number(stride, "stride")
        self.shift = self.size if shift is None else number(shift, "shift")
        for value, what in ((self.size, "size"), (self.shift, "shift"), (self.stride, "stride")):
            check(engine.is_symbolic(value) or value > 0, f"Window {what} must be greater than zero.")
        self.form = source.form.map_specs(lambda s: DatasetSpec(s))

    def cardinality(self) -> int:
        n = self.source.cardinality()
        if n < 0 or any(map(engine.is_symbolic, (self.size, self.shift, self.stride))):
            return n if n < 0 else UNKNOWN
        if not self.drop:
            return -(-n // self.shift)
        span = (self.size - 1) * self.stride + 1
        return 0 if n < span else (n - span) // self.shift + 1

    def start(self, run: Run) -> Stream:
        return _Windowed(self, self.source.start(run))


class _Windowed(Stream):
    """Keeps the elements from the start of the next window on."""

    def __init__(self, node: Window, source: Stream) -> None:
        self.node, self.input = node, source
        self.items: list[Item] = []
        self.skip, self.ended = 0, False

    def next(self) -> Any:
        node = self.node
        span = (node.size - 1) * node.stride + 1
        while not self.ended and (self.skip or len(self.items) < span):
            item = self.input.next()
            if item is None:
                self.ended = True
            elif self.skip:
                self.skip -= 1
            else:
                self.items.append(item)
        if not self.items or (node.drop and len(self.items) < span):
            return None
        chosen = self.items[:span:node.stride]
        self.skip = max(0, node.shift - len(self.items)) if not self.ended else 0
        self.items = self.items[node.shift:]
        return tuple([dataset_from(Listed([(item[i],) for item in chosen], Form(spec)))
                      for i, spec in enumerate(node.source.form.flat)])

    def save(self) -> Any:
        return {"items": [list(i) for i in self.items], "skip": self.skip, "ended": self.ended,
                "input": self.input.save()}

    def load(self, state: Any) -> None:
        self.items = [tuple(i) for i in state["items"]]
        self.skip, self.ended = state["skip"], state["ended"]
        self.input.load(state["input"])
