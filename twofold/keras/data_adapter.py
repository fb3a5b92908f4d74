"""Batches from what `fit`, `evaluate` and `predict` are given.

Arrays are cut into batches here; datasets, generators and `Sequence`s bring theirs. A source knows how many batches
an epoch has, or that it cannot know, and gives `(x,)`, `(x, y)` or `(x, y, sample_weight)` of tensors.
"""

from __future__ import annotations

import abc
import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.api import public

from .composites import is_composite, rows_at

__all__ = ["Source", "pack_x_y_sample_weight", "source_of", "train_validation_split", "unpack_x_y_sample_weight"]


@public
def unpack_x_y_sample_weight(data: Any) -> tuple[Any, Any, Any]:
    """Inputs, labels and sample weights of a batch, None for what is not there.

    Raises:
        ValueError: the batch is a tuple of another length.

    >>> import twofold as tf
    >>> tf.keras.utils.unpack_x_y_sample_weight(([1], [2]))
    ([1], [2], None)
    """
    if isinstance(data, list):
        data = tuple(data)
    if not isinstance(data, tuple):
        return data, None, None
    if not 1 <= len(data) <= 3:
        raise ValueError("Data is expected to be in format `x`, `(x,)`, `(x, y)`, or `(x, y, sample_weight)`, found: "
                         f"{data}")
    return (*data, *[None] * (3 - len(data)))


@public
def pack_x_y_sample_weight(x: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """A batch of inputs, and labels and sample weights where there are some.

    >>> import twofold as tf
    >>> tf.keras.utils.pack_x_y_sample_weight(1, 2)
    (1, 2)
    """
    if y is None:
        return x if not isinstance(x, (tuple, list)) else (x,)
    return (x, y) if sample_weight is None else (x, y, sample_weight)


class Source:
    """Batches of an epoch.

    Attributes:
        num_batches: how many there are in an epoch, None if that is not known.
        batch_size: the size of batches, None if it is not known.
    """

    num_batches: int | None = None
    batch_size: int | None = None
    agree: Callable[[np.ndarray], np.ndarray] = staticmethod(lambda order: order)  # what all processes take as order

    @abc.abstractmethod
    def epoch(self) -> Iterator[Any]:
        """The batches of the next epoch."""
        raise NotImplementedError

    def restart(self) -> None:
        """Let the next epoch begin with the first batch, where it would go on."""

    def on_epoch_begin(self) -> None:
        """Told before an epoch."""

    def on_epoch_end(self) -> None:
        """Told after an epoch."""


class ArraySource(Source):
    """Arrays and tensors, cut into batches along their first axis.

    Args:
        data: a structure of arrays.
        batch_size: of all batches but the last.
        shuffle: whether each epoch has an order of its own; "batch" shuffles whole batches.
        steps: how many batches there are, where their size is not given.
    Raises:
        ValueError: arrays differ in their first size.
    """

    def __init__(self, data: Any, batch_size: int | None, shuffle: Any, steps: int | None = None):
        self._data = tf.nest.map_structure(_array, data)
        sizes = sorted({_size(a) for a in tf.nest.flatten(self._data) if a is not None})
        if len(sizes) != 1:
            shapes = tf.nest.map_structure(lambda a: None if a is None else a.shape, self._data)
            raise ValueError("Data cardinality is ambiguous. Make sure all arrays contain the same number of samples. "
                             f"Shapes: {shapes}")
        self.size = sizes[0]
        self._step = self.batch_size = batch_size or (math.ceil(self.size / steps) if steps else 32)
        self._count = self.num_batches = math.ceil(self.size / self._step)
        self._shuffle = shuffle
        self._leaves = tf.nest.flatten(self._data)
        self._plain = type(self._data) is tuple and all(map(_is_plain, self._data))

    def epoch(self) -> Iterator[Any]:
        """The batches of the next epoch."""
        size, step = self.size, self._step
        starts: Any = range(0, size, step)
        order: Any = np.arange(size)
        if self._shuffle == "batch":
            starts = (self.agree(np.random.permutation(self._count)) * step).tolist()
        elif self._shuffle:
            order = self.agree(np.random.permutation(size))
        if self._plain:  # without a call too many: between two steps, all code and data come from far
            takes, tensor_of = [a.take for a in self._leaves], engine.tensor_of
            for start in starts:
                rows = order[start:start + step]
                yield tuple([tensor_of(take(rows, 0)) for take in takes])
            return
        for start in starts:
            rows = order[start:start + step]
            yield tf.nest.pack_sequence_as(self._data, [_rows_of(a, rows) for a in self._leaves])


def _size(array: Any) -> int:
    """How many rows an array, or a ragged or sparse tensor, has."""
    return array.shape[0] if array.shape[0] is not None else int(array.dense_shape[0] if isinstance(
        array, tf.SparseTensor) else array.nrows())


def _is_plain(array: Any) -> bool:
    """Whether rows of an array can be the memory of a tensor without conversion."""
    return isinstance(array, np.ndarray) and array.dtype.kind not in "OSU" and array.dtype.isnative


def _rows_of(array: Any, rows: np.ndarray) -> Any:
    """Some rows of an array as a tensor."""
    if array is None:
        return None
    if is_composite(array):
        return rows_at(array, rows)
    return engine.tensor_of(array.take(rows, 0)) if _is_plain(array) else tf.constant(array[rows])


class IterableSource(Source):
    """Datasets, generators and iterators.

    With a number of steps, an epoch goes on where the last one stopped. Where the batches end, the epoch ends as well,
    with a warning, and the next one begins anew.

    Args:
        iterable: gives batches.
        steps: how many make an epoch; by default all there are.
    """

    def __init__(self, iterable: Any, steps: int | None):
        self._iterable = iterable
        self._iterator: Any = None
        self._steps, self._seen = steps, 0
        self._again = not isinstance(iterable, Iterator)
        self._count = _cardinality(iterable)
        self.num_batches = steps if steps is not None else self._count

    def restart(self) -> None:
        if self._again:
            self._iterator = None

    def epoch(self) -> Iterator[Any]:
        """The batches of the next epoch."""
        if self._steps is None:
            yield from map(_tensors, iter(self._iterable))
            return
        for step in range(self._steps):
            if self._iterator is None:
                self._iterator, self._seen = iter(self._iterable), 0
            batch = next(self._iterator, _END)
            if batch is _END and not step and self._seen and self._again:  # the last epoch took all, unknowingly
                self._iterator, self._seen = iter(self._iterable), 0
                batch = next(self._iterator, _END)
            if batch is _END:
                self._iterator = None
                warnings.warn(f"Your input ran out of data; interrupting training after {step} of {self._steps} steps. "
                              "A dataset or generator must give `steps_per_epoch * epochs` batches; `.repeat()` makes "
                              "a dataset without an end.", stacklevel=2)
                return
            self._seen += 1
            yield _tensors(batch)
        if self._again and self._seen == self._count:
            self._iterator = None


_END = object()


class SequenceSource(Source):
    """A `Sequence`: batches by index, which threads may prepare.

    Args:
        sequence: has `__len__` and `__getitem__`; without a length it has no end.
        shuffle: whether the batches of each epoch are in an order of their own.
    """

    def __init__(self, sequence: Any, shuffle: bool):
        self._sequence, self._shuffle = sequence, shuffle
        try:
            self.num_batches = len(sequence)
        except TypeError:
            self.num_batches = getattr(sequence, "num_batches", None)
        self._threads = max(1, int(getattr(sequence, "workers", 1) or 1))
        self._queue = max(1, int(getattr(sequence, "max_queue_size", 10) or 10))

    def on_epoch_begin(self) -> None:
        """Tell the sequence."""
        if hasattr(self._sequence, "on_epoch_begin"):
            self._sequence.on_epoch_begin()

    def on_epoch_end(self) -> None:
        """Tell the sequence."""
        if hasattr(self._sequence, "on_epoch_end"):
            self._sequence.on_epoch_end()

    def _indices(self) -> Iterator[int]:
        if self.num_batches is None:
            return itertools.count()
        order = np.random.permutation(self.num_batches) if self._shuffle else np.arange(self.num_batches)
        return iter(order.tolist())

    def epoch(self) -> Iterator[Any]:
        """The batches of the next epoch."""
        if self._threads == 1:
            yield from (_tensors(self._sequence[n]) for n in self._indices())
            return
        from collections import deque
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(self._threads) as pool:
            waiting: deque[Any] = deque()
            try:
                for n in self._indices():
                    waiting.append(pool.submit(self._sequence.__getitem__, n))
                    if len(waiting) >= self._queue:
                        yield _tensors(waiting.popleft().result())
                while waiting:
                    yield _tensors(waiting.popleft().result())
            finally:
                for future in waiting:
                    future.cancel()


class WeightedSource(Source):
    """A source whose labels decide weights of samples.

    Args:
        source: the batches.
        class_weight: a weight for each class.
    """

    def __init__(self, source: Source, class_weight: Mapping[int, float]):
        self._source = source
        self.num_batches, self.batch_size = source.num_batches, source.batch_size
        self.on_epoch_begin, self.on_epoch_end = source.on_epoch_begin, source.on_epoch_end  # type: ignore[method-assign]
        self.restart = source.restart  # type: ignore[method-assign]
        self._table = np.ones(max([int(label) for label in class_weight], default=-1) + 2, np.float32)
        for label, weight in class_weight.items():
            self._table[int(label)] = weight

    def epoch(self) -> Iterator[Any]:
        """The batches of the next epoch, with weights."""
        for batch in self._source.epoch():
            x, y, weight = unpack_x_y_sample_weight(batch)
            weights = tf.constant(self._weights_of(y))
            yield x, y, weights if weight is None else tf.cast(weight, tf.float32) * weights

    def _weights_of(self, y: Any) -> np.ndarray:
        """The weight of each label; classes that were not named count once.

        Raises:
            ValueError: there are labels of several outputs.
        """
        if not isinstance(y, (tf.Tensor, np.ndarray)):
            raise ValueError("`class_weight` is only supported for models with a single output.")
        labels = np.asarray(y)
        labels = labels.argmax(-1) if labels.ndim > 1 and labels.shape[-1] > 1 else labels.reshape(len(labels))
        numbers, last = np.round(labels).astype(np.int64), len(self._table) - 1  # the last one is for all others
        return self._table[np.where((numbers >= 0) & (numbers < last), numbers, last)]


def source_of(x: Any, y: Any = None, sample_weight: Any = None, batch_size: int | None = None, shuffle: Any = False,
              class_weight: Any = None, steps: int | None = None) -> Source:
    """The batches of the data that a training method was given.

    Args:
        x: arrays or tensors in a structure; or a dataset, a generator, an iterable of batches, a `Sequence`.
        y, sample_weight: arrays, with arrays as `x`.
        batch_size: with arrays; 32 by default.
        shuffle: whether epochs have an order of their own, with arrays and `Sequence`s.
        class_weight: a weight for each class of `y`.
        steps: how many batches make an epoch.
    Raises:
        ValueError: the arguments do not go together.
    """
    if x is None:
        raise ValueError("There is no data: give arrays, a dataset, a generator or a Sequence as `x`.")
    kind = _kind_of(x)
    if kind != "arrays" and (y is not None or sample_weight is not None):
        what = "y" if y is not None else "sample_weight"
        raise ValueError(f"When passing `x` as a dataset, generator or Sequence, `{what}` cannot be passed separately: "
                         "its batches hold it.")
    if kind == "arrays":
        if isinstance(sample_weight, Mapping) and not isinstance(y, Mapping):
            raise ValueError("`sample_weight` is a dict, and `y` is not.")
        data = (x, y, sample_weight) if sample_weight is not None else pack_x_y_sample_weight(x, y)
        source: Source = ArraySource(data, batch_size, shuffle, steps)
    elif kind == "sequence":
        source = SequenceSource(x, bool(shuffle))
    else:
        source = IterableSource(x, steps)
    if steps is not None and kind != "iterable":
        source = _limited(source, steps)
    if class_weight is not None:
        source = WeightedSource(source, class_weight)
    return source


class _Passes:
    """The batches of a source as an iterable; each time that it is iterated over is an epoch of the source's."""

    def __init__(self, source: Source):
        self._source = source

    def __iter__(self) -> Iterator[Any]:
        return self._source.epoch()

    def cardinality(self) -> int:
        return -1 if self._source.num_batches is None else self._source.num_batches


def _limited(source: Source, steps: int) -> Source:
    """Arrays or a sequence with a number of steps: epochs go on where the last one stopped."""
    limited = IterableSource(_Passes(source), steps)
    limited.batch_size = source.batch_size
    limited.on_epoch_begin, limited.on_epoch_end = source.on_epoch_begin, source.on_epoch_end  # type: ignore[method-assign]
    return limited


def _kind_of(x: Any) -> str:
    """"arrays", "sequence" or "iterable"."""
    if isinstance(x, (np.ndarray, tf.Tensor, tf.Variable, list, tuple, dict, Mapping)) or _is_frame(x) or (
            is_composite(x)):
        return "arrays"
    if hasattr(x, "__getitem__") and hasattr(x, "__len__") and not hasattr(x, "element_spec"):
        return "arrays" if hasattr(x, "__array__") else "sequence"
    if hasattr(x, "__getitem__") and hasattr(type(x), "num_batches"):
        return "sequence"
    if isinstance(x, Iterable):
        return "iterable"
    if hasattr(x, "__array__"):
        return "arrays"
    raise ValueError(f"Unrecognized data type: x={x!r} (of type {type(x)}). Give arrays, a dataset, a generator or a "
                     "Sequence.")


def _is_frame(x: Any) -> bool:
    return type(x).__module__.split(".")[0] == "pandas"


def _array(value: Any) -> Any:
    """A leaf as an array; floats beyond float32 become `floatx`."""
    if value is None:
        return None
    if isinstance(value, (tf.Tensor, tf.Variable)):
        return np.asarray(value)
    if is_composite(value):
        return value
    if isinstance(value, (bool, int, float, str)):
        raise ValueError(f"`x` and `y` hold arrays; got {value!r}. Lists of numbers are given as NumPy arrays.")
    array: np.ndarray = value.to_numpy() if _is_frame(value) else np.asarray(value)
    if array.dtype == np.float64:
        from .config import floatx
        array = array.astype(tf.as_dtype(floatx()).as_numpy_dtype)
    if array.ndim == 0:
        raise ValueError("An array without axes has no samples.")
    return array


def _tensors(batch: Any) -> Any:
    """A batch of tensors."""
    if type(batch) is tuple:
        for leaf in batch:
            if type(leaf) is not tf.Tensor:
                break
        else:
            return batch
    if isinstance(batch, list):
        batch = tuple(batch)
    return tf.nest.map_structure(_tensor, batch)


def _tensor(value: Any) -> Any:
    if value is None or isinstance(value, tf.Tensor) or is_composite(value):
        return value
    array = np.asarray(value)
    if array.dtype == np.float64:
        from .config import floatx
        array = array.astype(tf.as_dtype(floatx()).as_numpy_dtype)
    return tf.constant(array)


def _cardinality(iterable: Any) -> int | None:
    """How many batches an iterable has, where it says so."""
    cardinality = getattr(iterable, "cardinality", None)
    if cardinality is not None:
        number = int(cardinality())
        return number if number >= 0 else None
    if isinstance(iterable, Sequence) or hasattr(iterable, "__len__"):
        return len(iterable)
    return None


def train_validation_split(arrays: Any, validation_split: float) -> tuple[Any, Any]:
    """The first part of arrays for training, the last for validation.

    Args:
        arrays: a structure of arrays.
        validation_split: the fraction of the last part.
    Raises:
        ValueError: one part would be empty, or what is given are not arrays.
    """
    flat = [a for a in tf.nest.flatten(arrays) if a is not None]
    if any(_kind_of(a) != "arrays" for a in flat):
        raise ValueError("Argument `validation_split` is only supported for tensors or NumPy arrays.")
    size = _size(flat[0]) if hasattr(flat[0], "shape") else len(flat[0])
    split = math.floor(size * (1.0 - validation_split))
    if not 0 < split < size:
        raise ValueError(f"Training data contains {size} samples, which is not sufficient to split it into a "
                         f"validation and training set as specified by `validation_split={validation_split}`.")
    def part(select: slice) -> Any:
        return tf.nest.map_structure(lambda a: None if a is None else rows_at(a, np.arange(size)[select]) if (
            is_composite(a)) else _array(a)[select], arrays)
    return part(slice(None, split)), part(slice(split, None))
