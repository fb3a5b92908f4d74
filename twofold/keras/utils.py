"""`tf.keras.utils`: labels, batches, seeds, files, pictures."""

from __future__ import annotations

import abc
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import as_numpy, describe, one_int, public
from twofold._front.namespace import publish

from ._settings import disable_interactive_logging, enable_interactive_logging, is_interactive_logging_enabled
from .backend import clear_session, is_keras_tensor, standardize_dtype
from .data_adapter import pack_x_y_sample_weight, unpack_x_y_sample_weight
from .files import get_file
from .folders import audio_dataset_from_directory, text_dataset_from_directory
from .images import array_to_img, image_dataset_from_directory, img_to_array, load_img, save_img
from .progress import Progbar
from .random import _seed_all
from .sequences import pad_sequences, timeseries_dataset_from_array
from .serialization import (
    CustomObjectScope,
    custom_object_scope,
    deserialize_keras_object,
    get_custom_objects,
    get_registered_name,
    get_registered_object,
    register_keras_serializable,
    serialize_keras_object,
)
from .summary import model_to_dot, plot_model

__all__ = ["CustomObjectScope", "Progbar", "PyDataset", "Sequence", "array_to_img", "audio_dataset_from_directory",
           "clear_session", "custom_object_scope", "deserialize_keras_object", "disable_interactive_logging",
           "enable_interactive_logging", "get_custom_objects", "get_file", "get_registered_name",
           "get_registered_object", "get_source_inputs", "image_dataset_from_directory", "img_to_array",
           "is_interactive_logging_enabled", "is_keras_tensor", "load_img", "model_to_dot", "normalize",
           "pack_x_y_sample_weight", "pad_sequences", "plot_model", "register_keras_serializable", "save_img",
           "serialize_keras_object", "set_random_seed", "split_dataset", "standardize_dtype",
           "text_dataset_from_directory", "timeseries_dataset_from_array", "to_categorical",
           "unpack_x_y_sample_weight"]


@public
def get_source_inputs(tensor: Any) -> Any:
    """The inputs of a functional model that a symbolic tensor is computed from.

    Args:
        tensor: a `tf.keras.KerasTensor`.
    Returns:
        A list of them, each once; other values as they are.

    >>> import twofold as tf
    >>> x, y = tf.keras.Input((2,)), tf.keras.Input((2,))
    >>> [t is x for t in tf.keras.utils.get_source_inputs(tf.keras.layers.Dense(1)(x) + x)]
    [True]
    """
    if getattr(tensor, "_keras_history", None) is None:
        return tensor
    inputs: list[Any] = []
    waiting, seen = [tensor], set()
    while waiting:
        top = waiting.pop()
        if id(top) in seen:
            continue
        seen.add(id(top))
        before = top._node.inputs
        if before:
            waiting += reversed(before)
        else:
            inputs.append(top)
    return inputs


@public
def to_categorical(x: Any, num_classes: int | None = None, dtype: Any = None) -> np.ndarray:
    """Labels as rows with a single one.

    Args:
        x: integers from 0, of any shape; a last axis of size 1 is left out.
        num_classes: the size of the new last axis; one more than the largest label by default.
        dtype: of the result; float64 as in Keras if None.
    Returns:
        An array of one more axis; of a ragged tensor a ragged one.
    Raises:
        ValueError: a label is negative, or not below `num_classes`.

    >>> import twofold as tf
    >>> tf.keras.utils.to_categorical([0, 2], 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    if isinstance(x, tf.RaggedTensor):
        return tf.ragged.map_flat_values(to_categorical, x, num_classes, dtype or "float32")
    labels = as_numpy(x).astype(np.int64)
    if labels.ndim > 1 and labels.shape[-1] == 1:
        labels = labels[..., 0]
    count = int(labels.max()) + 1 if num_classes is None and labels.size else int(num_classes or 0)
    if labels.size and (labels.min() < 0 or labels.max() >= count):
        raise ValueError(f"Labels must be in 0 .. {count - 1}; got values from {labels.min()} to {labels.max()}.")
    rows = np.zeros((labels.size, count), np.float64 if dtype is None else tf.as_dtype(dtype).as_numpy_dtype)
    rows[np.arange(labels.size), labels.ravel()] = 1
    return rows.reshape(*labels.shape, count)


@public
def normalize(x: Any, axis: int = -1, order: int = 2) -> np.ndarray:
    """An array divided by its norms along an axis; vectors of zeros stay.

    Args:
        x: the array.
        axis: along which the norm is taken.
        order: of the norm.

    >>> import twofold as tf
    >>> tf.keras.utils.normalize([[3.0, 4.0]]).tolist()
    [[0.6, 0.8]]
    """
    if not isinstance(order, (int, float)):
        raise TypeError(f"order must be a number; got {describe(order)}.")
    array, axis = as_numpy(x), one_int(axis, "axis")
    array = array if array.dtype.kind == "f" else as_numpy(array, np.float64)
    norms = np.atleast_1d(np.linalg.norm(array, order, axis))
    norms[norms == 0] = 1
    return array / np.expand_dims(norms, axis)


@public
def set_random_seed(seed: int) -> None:
    """Seed Python's, NumPy's and `tf`'s random numbers.

    Args:
        seed: an integer.

    >>> import twofold as tf
    >>> tf.keras.utils.set_random_seed(7)
    >>> first = float(tf.random.normal([]))
    >>> tf.keras.utils.set_random_seed(7)
    >>> float(tf.random.normal([])) == first
    True
    """
    if not isinstance(seed, int):
        raise ValueError(f"Expected `seed` argument to be an integer. Received: seed={seed} (of type {type(seed)})")
    random.seed(seed)
    np.random.seed(seed % 2**32)
    _seed_all(seed)


class PyDataset:
    """The base of batches by index: override `__getitem__` and `num_batches` (or `__len__`).

    Args:
        workers: how many threads prepare batches.
        use_multiprocessing: accepted, without effect: native code lets threads run beside one another.
        max_queue_size: how many batches are prepared ahead.

    >>> import twofold as tf, numpy as np
    >>> class Squares(tf.keras.utils.PyDataset):
    ...     def __len__(self):
    ...         return 3
    ...     def __getitem__(self, n):
    ...         x = np.full([2, 1], n, "float32")
    ...         return x, x * x
    >>> model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> len(model.fit(Squares(workers=2), epochs=2, verbose=0).epoch)
    2
    """

    def __init__(self, workers: int = 1, use_multiprocessing: bool = False, max_queue_size: int = 10):
        self.workers, self.use_multiprocessing, self.max_queue_size = workers, use_multiprocessing, max_queue_size

    @abc.abstractmethod
    def __getitem__(self, index: int) -> Any:
        """The batch of a number: `(x,)`, `(x, y)` or `(x, y, sample_weight)`."""
        raise NotImplementedError

    @property
    @abc.abstractmethod
    def num_batches(self) -> int | None:
        """How many batches there are; None for no end."""
        raise NotImplementedError

    def __len__(self) -> int:
        count = self.num_batches
        if count is None:
            raise TypeError(f"{type(self).__name__} has no end.")
        return count

    def on_epoch_begin(self) -> None:
        """Called before each epoch."""

    def on_epoch_end(self) -> None:
        """Called after each epoch."""

    def __iter__(self) -> Iterator[Any]:
        for n in range(len(self)):
            yield self[n]


class Sequence(PyDataset):
    """The older name of `PyDataset`.

    >>> import twofold as tf
    >>> issubclass(tf.keras.utils.Sequence, tf.keras.utils.PyDataset)
    True
    """


@public
def split_dataset(dataset: Any, left_size: Any = None, right_size: Any = None, shuffle: bool = False,
                  seed: int | None = None, preferred_backend: str | None = None) -> tuple[Any, Any]:
    """Split arrays or a dataset into two datasets.

    Args:
        dataset: a `tf.data.Dataset`, whose batches are taken apart, or a structure of arrays.
        left_size, right_size: how many elements, or which fraction; one may be left out.
        shuffle: whether elements are shuffled before.
        seed: of the shuffle, whose order is that of Python's `random`.
        preferred_backend: "tensorflow" or None.
    Returns:
        Two `tf.data.Dataset`s; of a dataset in batches they are in batches of that size.
    Raises:
        ValueError: there is no size, or a part would be empty, or they are more than there is. TypeError: a size is no
            number.

    >>> import twofold as tf, numpy as np
    >>> left, right = tf.keras.utils.split_dataset(np.arange(10), left_size=0.8)
    >>> len(list(left)), len(list(right))
    (8, 2)
    """
    from .data_adapter import _kind_of
    if preferred_backend not in (None, "tensorflow"):
        raise ValueError(f"`preferred_backend` must be 'tensorflow' or None. Received: {preferred_backend}")
    if left_size is None and right_size is None:
        raise ValueError("At least one of the `left_size` or `right_size` must be specified.")
    batch_size = None
    if _kind_of(dataset) == "arrays":
        items = tf.nest.map_structure(np.asarray, dataset)
    else:
        batch_size = getattr(dataset, "_batch_size", None)
        plain = dataset if batch_size is None else dataset.unbatch()
        items = tf.nest.map_structure(lambda *parts: np.stack(parts), *plain.as_numpy_iterator())
    size = len(tf.nest.flatten(items)[0])
    left, right = _parts(left_size, right_size, size)
    order = list(range(size))
    if shuffle:
        random.Random(random.randint(0, 1_000_000) if seed is None else seed).shuffle(order)

    def part(chosen: list[int]) -> Any:
        made = tf.data.Dataset.from_tensor_slices(tf.nest.map_structure(lambda a: a[chosen], items))
        return (made if batch_size is None else made.batch(batch_size)).prefetch(tf.data.AUTOTUNE)
    return part(order[:left]), part(order[size - right:])


def _parts(left: Any, right: Any, size: int) -> tuple[int, int]:
    """The sizes of both parts of `size` elements."""
    for value, name in ((left, "left_size"), (right, "right_size")):
        if value is None:
            continue
        if type(value) not in (int, float):
            raise TypeError(f"Invalid `{name}` Type. Expected: int or float or None. Received: {type(value)}")
        if not 0 < value < (size if isinstance(value, int) else 1):
            raise ValueError(f"`{name}` should be either a positive integer smaller than {size}, or a float within the "
                             f"range `[0, 1]`. Received: {name}={value}")
    if isinstance(left, float) and isinstance(right, float) and left + right > 1:
        raise ValueError("The sum of `left_size` and `right_size` is greater than 1. Received: "
                         f"left_size={left}, right_size={right}")
    counts: list[Any] = [value if value is None or isinstance(value, int) else round(value * size)
                         for value in (left, right)]
    sizes = (size - counts[1] if counts[0] is None else counts[0], size - counts[0] if counts[1] is None else counts[1])
    if sum(sizes) > size or 0 in sizes:
        raise ValueError(f"{size} elements cannot be split into parts of {sizes[0]} and {sizes[1]}: none may be empty. "
                         f"Received: left_size={left}, right_size={right}")
    return sizes


publish(__name__)
