"""The sources of `tf.data.Dataset`: tensors, ranges, generators, files, random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.api import listed

from ._files import matching_files
from ._saved import Loaded, save
from ._sources import Counter, Generated, RandomNumbers, Range, Slices, Tensors, sliced
from ._structure import DatasetSpec, Form, normal
from ._value import dataset_from

__all__ = ["SourceMethods"]


def _dataset(node: Any) -> Any:
    return dataset_from(node)


@engine.guarded
class SourceMethods:
    """Static methods that make datasets, and `save`, which `load` is the other half of."""

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Any:
        """A dataset of one element.

        Args:
            tensors: a tensor or a structure of them; lists become tensors.
            name: accepted, without effect.

        >>> import twofold as tf
        >>> tf.data.Dataset.from_tensors([1, 2, 3]).element_spec
        TensorSpec(shape=(3,), dtype=tf.int32, name=None)
        """
        return _dataset(Tensors(tensors))

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Any:
        """A dataset of the slices of tensors along their first axis.

        Args:
            tensors: a tensor of rank 1 or more, or a structure of tensors whose first axes have one size. Arrays are
                copied once, here.
            name: accepted, without effect.
        Raises:
            ValueError: a tensor is a scalar, or sizes differ.

        >>> import twofold as tf
        >>> dataset = tf.data.Dataset.from_tensor_slices({"a": [1, 2], "b": [[3.0], [4.0]]})
        >>> [x["a"].numpy().item() for x in dataset]
        [1, 2]
        """
        return _dataset(sliced(tensors))

    @staticmethod
    def range(*args: Any, **kwargs: Any) -> Any:
        """A dataset of the numbers of a range.

        Args:
            args: `stop`; `start, stop`; or `start, stop, step`.
            kwargs: `output_type`, the dtype, int64 by default; `name`.
        Raises:
            InvalidArgumentError: the step is 0.

        >>> import twofold as tf
        >>> [x.item() for x in tf.data.Dataset.range(5, 0, -2).as_numpy_iterator()]
        [5, 3, 1]
        """
        dtype = kwargs.pop("output_type", None)
        kwargs.pop("name", None)
        if kwargs or not 1 <= len(args) <= 3:
            raise ValueError(f"Dataset.range takes one to three numbers and output_type; got {args} and "
                             f"{sorted(kwargs)}.")
        return _dataset(Range(args, dtype))

    @staticmethod
    def from_generator(generator: Callable[..., Any], output_types: Any = None, output_shapes: Any = None,
                       args: Any = None, output_signature: Any = None, name: str | None = None) -> Any:
        """A dataset of the elements that a Python generator yields. Each iteration calls the function anew.

        Args:
            generator: a function that gives an iterable.
            output_types: the older way to say what is yielded: a structure of dtypes.
            output_shapes: a structure of shapes to go with it; unknown where it is missing.
            args: tensors that the function is called with, as NumPy values.
            output_signature: a structure of `tf.TensorSpec`.
            name: accepted, without effect.
        Raises:
            TypeError: the generator is not callable, or nothing says what it yields. InvalidArgumentError: (when
                iterated over) it yields something else.

        >>> import twofold as tf
        >>> def count(stop):
        ...     for i in range(stop):
        ...         yield i, [1.0] * i
        >>> signature = (tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.float32))
        >>> dataset = tf.data.Dataset.from_generator(count, args=[3], output_signature=signature)
        >>> [x.numpy().tolist() for _, x in dataset]
        [[], [1.0], [1.0, 1.0]]
        """
        if not callable(generator):
            raise TypeError("`generator` must be a Python callable.")
        if output_signature is not None:
            if output_types is not None or output_shapes is not None:
                raise TypeError("The `output_types` and `output_shapes` arguments can not be used together with the "
                                "`output_signature` argument.")
            form = Form(output_signature)
            for spec in form.flat:
                if not isinstance(spec, (tf.TensorSpec, DatasetSpec)):
                    raise TypeError(f"`output_signature` must contain objects that are subclass of `tf.TypeSpec` but "
                                    f"found {type(spec)} which is not.")
        else:
            form = Form(_signature(output_types, output_shapes))
        given = tuple([normal(a) for a in listed(args, "args")]) if args is not None else ()
        return _dataset(Generated(generator, form, given))

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: int | None = None,
                   name: str | None = None) -> Any:
        """A dataset of the names of the files that fit glob patterns.

        Args:
            file_pattern: a pattern such as `"data/*.txt"`, or a list of patterns.
            shuffle: whether each iteration has an order of its own; True by default. Otherwise names are sorted.
            seed: see `shuffle`.
            name: accepted, without effect.
        Raises:
            InvalidArgumentError: no file fits.

        >>> import os, tempfile
        >>> import twofold as tf
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("b.txt", "a.txt"):
        ...         open(os.path.join(folder, name), "w").close()
        ...     files = tf.data.Dataset.list_files(folder + "/*.txt", shuffle=False)
        ...     [os.path.basename(f).decode() for f in files.as_numpy_iterator()]
        ['a.txt', 'b.txt']
        """
        names = matching_files(file_pattern)
        dataset = _dataset(Slices(tf.constant(names, tf.string)))
        return dataset.shuffle(len(names), seed=seed) if shuffle is None or shuffle else dataset

    @staticmethod
    def load(path: Any, element_spec: Any = None, compression: str | None = None,
             reader_func: Callable[[Any], Any] | None = None) -> Any:
        """The dataset that `save` wrote to a folder.

        Args:
            path: the folder.
            element_spec: of the elements; found in the folder.
            compression: has no effect: it is found in the folder, too.
            reader_func: from a dataset of datasets, the parts that were saved, to the dataset that is wanted.
        Raises:
            NotFoundError: there is none. ValueError: `element_spec` describes something else. DataLossError: (when
                iterated over) the file is damaged.

        >>> import tempfile
        >>> import twofold as tf
        >>> folder = tempfile.mkdtemp()
        >>> tf.data.Dataset.range(3).map(lambda x: {"x": x, "y": -x}).save(folder)
        >>> data = tf.data.Dataset.load(folder)
        >>> len(data), [int(element["y"]) for element in data]
        (3, [0, -1, -2])
        """
        del compression
        dataset = _dataset(Loaded(path, element_spec))
        return dataset if reader_func is None else reader_func(_dataset(Tensors(dataset)))

    def save(self, path: Any, compression: str | None = None, shard_func: Any = None,
             checkpoint_args: Any = None) -> None:
        """Write all elements to a folder, which `load` reads.

        Args:
            path: the folder; what it holds of another dataset is replaced when all is written.
            compression: None, "GZIP" or "ZLIB".
            shard_func, checkpoint_args: accepted, without effect: elements are saved in one part.
        Raises:
            TypeError: elements hold more than tuples and dicts of tensors.
        """
        save(self, path, compression)

    @staticmethod
    def random(seed: int | None = None, rerandomize_each_iteration: bool | None = None,
               name: str | None = None) -> Any:
        """An endless dataset of random integers, 0 to 2**32 - 1, as int64.

        Args:
            seed: with it, the numbers are the same in each run.
            rerandomize_each_iteration: whether each iteration has numbers of its own; not, by default.
            name: accepted, without effect.

        >>> import twofold as tf
        >>> a, b = (list(tf.data.Dataset.random(seed=4).take(3).as_numpy_iterator()) for _ in range(2))
        >>> a == b
        True
        """
        return _dataset(RandomNumbers(seed, bool(rerandomize_each_iteration)))

    @staticmethod
    def counter(start: Any = 0, step: Any = 1, dtype: Any = None, name: str | None = None) -> Any:
        """An endless dataset: `start`, `start + step`, and so on.

        Args:
            start, step: integers.
            dtype: int64 by default.
            name: accepted, without effect.

        >>> import twofold as tf
        >>> [x.item() for x in tf.data.Dataset.counter(start=2, step=3).take(3).as_numpy_iterator()]
        [2, 5, 8]
        """
        return _dataset(Counter(start, step, tf.int64 if dtype is None else dtype))


def _signature(types: Any, shapes: Any) -> Any:
    """The specs that `output_types` and `output_shapes` stand for."""
    if types is None:
        raise TypeError("To specify the output signature you need to provide either the `output_signature` argument "
                        "or the `output_types` argument.")
    if isinstance(types, list):
        types = tuple(types)
    if isinstance(types, tuple):
        parts = [None] * len(types) if shapes is None else list(shapes)
        return tuple([_signature(t, s) for t, s in zip(types, parts, strict=True)])
    if isinstance(types, dict):
        return {key: _signature(t, None if shapes is None else shapes[key]) for key, t in types.items()}
    return tf.TensorSpec(shapes, types)
