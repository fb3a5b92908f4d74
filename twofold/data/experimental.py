"""`tf.data.experimental`: CSV files, and the older names of steps that are methods of `Dataset` now."""

from __future__ import annotations

import collections
import contextlib
import enum
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.api import listed, one_int
from twofold._front.namespace import publish
from twofold.lookup._datasets import DatasetInitializer, index_table_from_dataset, table_from_dataset

from ._combining import AssertCardinality
from ._csv import CsvRecords, inferred, rows_of
from ._devices import OnDevice
from ._files import matching_files
from ._node import INFINITE as INFINITE_CARDINALITY
from ._node import UNKNOWN as UNKNOWN_CARDINALITY
from ._optional import Optional
from ._order import HINT as SHARD_HINT
from ._parallel import AUTOTUNE
from ._records import compression_of
from ._sharding import AutoShardPolicy
from .dataset import Dataset
from .options import (
    AutotuneOptions,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
    ThreadingOptions,
)

__all__ = ["AUTOTUNE", "AutoShardPolicy", "AutotuneAlgorithm", "AutotuneOptions", "Counter", "CsvDataset",
           "DatasetInitializer", "DistributeOptions", "ExternalStatePolicy", "INFINITE_CARDINALITY",
           "OptimizationOptions", "Optional", "RandomDataset", "Reducer", "SHARD_HINT", "ThreadingOptions",
           "UNKNOWN_CARDINALITY", "assert_cardinality", "at", "bucket_by_sequence_length", "cardinality",
           "choose_from_datasets", "copy_to_device", "dense_to_ragged_batch", "enumerate_dataset", "from_list",
           "get_next_as_optional", "get_single_element", "get_structure", "group_by_reducer", "group_by_window",
           "ignore_errors", "index_table_from_dataset", "load", "make_batched_features_dataset", "make_csv_dataset",
           "map_and_batch", "pad_to_cardinality", "parallel_interleave", "parse_example_dataset",
           "prefetch_to_device", "rejection_resample", "sample_from_datasets", "save", "scan", "shuffle_and_repeat",
           "table_from_dataset", "take_while", "unbatch", "unique"]


@engine.guarded
class CsvDataset(Dataset):
    """The records of CSV files, as tuples of scalars.

    Args:
        filenames: a name, a list of names, a string tensor, or a dataset of names.
        record_defaults: for each column that is read a dtype, where no field may be empty, or a value for empty
            fields, whose dtype it is: float32, float64, int32, int64 or string.
        compression_type: "", "ZLIB" or "GZIP".
        buffer_size: how many bytes are read at once.
        header: whether the first line of each file holds names.
        field_delim: what separates fields.
        use_quote_delim: whether quotation marks enclose fields.
        na_value: a text that stands for an empty field.
        select_cols, exclude_cols: the numbers of the columns that are read, or that are not, rising.
    Raises:
        ValueError: columns and defaults do not go together. InvalidArgumentError: (when iterated over) a record has
            another number of fields, or a field cannot be read.

    >>> import os, tempfile
    >>> import twofold as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "data.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("name,count\\nx,3\\ny,\\n")
    ...     list(tf.data.experimental.CsvDataset(path, [tf.string, 0], header=True).as_numpy_iterator())
    [(b'x', np.int32(3)), (b'y', np.int32(0))]
    """

    def __init__(self, filenames: Any, record_defaults: Sequence[Any], compression_type: Any = None,
                 buffer_size: Any = None, header: bool = False, field_delim: str = ",", use_quote_delim: bool = True,
                 na_value: str = "", select_cols: Sequence[int] | None = None,
                 exclude_cols: Sequence[int] | None = None) -> None:
        if select_cols is not None and exclude_cols is not None:
            raise ValueError("Only one of select_cols and exclude_cols may be given.")
        names = filenames._node if isinstance(filenames, Dataset) else filenames
        if exclude_cols is not None:
            left_out = set(listed(exclude_cols, "exclude_cols"))
            select_cols = [c for c in range(len(record_defaults) + len(left_out)) if c not in left_out]
        super().__init__(CsvRecords(names, record_defaults, compression_type, buffer_size, header, field_delim,
                                    use_quote_delim, na_value, select_cols))


@engine.public
def make_csv_dataset(file_pattern: Any, batch_size: int, column_names: Sequence[str] | None = None,
                     column_defaults: Sequence[Any] | None = None, label_name: str | None = None,
                     select_columns: Sequence[Any] | None = None, field_delim: str = ",", use_quote_delim: bool = True,
                     na_value: str = "", header: bool = True, num_epochs: int | None = None, shuffle: bool = True,
                     shuffle_buffer_size: int = 10000, shuffle_seed: int | None = None,
                     prefetch_buffer_size: int | None = None, num_parallel_reads: int | None = None,
                     sloppy: bool = False, num_rows_for_inference: int | None = 100,
                     compression_type: str | None = None, ignore_errors: bool = False,
                     encoding: str = "utf-8") -> Any:
    """Batches of the columns of CSV files, as dicts.

    Args:
        file_pattern: file names or glob patterns.
        batch_size: how many records a batch has; without `num_epochs` all have as many.
        column_names: names in order; those of the header by default.
        column_defaults: for the columns that are read, dtypes or defaults; found from the first records by default.
        label_name: the column that is given apart: elements are then pairs of a dict and labels.
        select_columns: names or numbers of the columns that are read; all by default.
        field_delim, use_quote_delim, na_value: see `CsvDataset`.
        header: whether the first line of each file holds names.
        num_epochs: how often the records come; for ever by default.
        shuffle, shuffle_buffer_size, shuffle_seed: see `Dataset.shuffle`.
        prefetch_buffer_size: how many batches are made ahead; found out by default.
        num_parallel_reads: how many files are open at once and take turns; 1 by default.
        sloppy: accepted, without effect.
        num_rows_for_inference: how many records decide dtypes; None for all.
        compression_type: "", "ZLIB" or "GZIP".
        ignore_errors: whether records that cannot be read are left out.
        encoding: of names in headers.
    Returns:
        A dataset of dicts (ordered as the columns are) of tensors of shape [batch], or of pairs of such and labels.
    Raises:
        ValueError: there are no names, or a name is not among them.

    >>> import os, tempfile
    >>> import twofold as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "data.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("a,b,label\\n1,2.5,0\\n3,4.5,1\\n")
    ...     data = tf.data.experimental.make_csv_dataset(path, 2, label_name="label", num_epochs=1, shuffle=False)
    ...     for features, labels in data:
    ...         print(features["a"].numpy(), features["b"].numpy(), labels.numpy())
    [1 3] [2.5 4.5] [0 1]
    """
    del sloppy
    files = [name.decode() for name in matching_files(file_pattern)]
    kind = compression_of(compression_type)
    names = listed(column_names, "column_names") if column_names is not None else _names(
        files[0], kind, field_delim, use_quote_delim, header, encoding)
    if len(set(names)) != len(names):
        raise ValueError("Cannot have duplicate column names.")
    chosen = list(range(len(names)))
    if select_columns is not None:
        chosen = sorted(_column(names, c) for c in listed(select_columns, "select_columns"))
    wanted = [names[c] for c in chosen]
    if label_name is not None and label_name not in wanted:
        raise ValueError("`label_name` provided must be one of the columns.")
    defaults = column_defaults if column_defaults is not None else _defaults(
        files, kind, field_delim, use_quote_delim, na_value, header, chosen, num_rows_for_inference)
    defaults = [d if isinstance(d, (tf.DType, list, tf.Tensor)) else [d] for d in defaults]

    def records(name: Any) -> Any:
        return CsvDataset(name, defaults, compression_type, None, header, field_delim, use_quote_delim, na_value,
                          chosen)
    readers = 1 if num_parallel_reads is None else num_parallel_reads
    data = Dataset.from_tensor_slices(files)
    if shuffle and len(files) > 1:
        data = data.shuffle(len(files), shuffle_seed)
    data = data.interleave(records, cycle_length=readers) if readers > 1 else data.flat_map(records)
    if ignore_errors:
        data = data.ignore_errors()

    def featured(*columns: Any) -> Any:
        features = collections.OrderedDict(zip(wanted, columns, strict=True))
        if label_name is None:
            return features
        label = features.pop(label_name)
        return features, label
    if shuffle:
        data = data.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        data = data.repeat(num_epochs)
    data = data.batch(batch_size, drop_remainder=num_epochs is None).map(featured)
    return data.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _names(path: str, kind: str, delimiter: str, quotes: bool, header: bool, encoding: str) -> list[str]:
    if not header:
        raise ValueError("Cannot infer column names without a header line.")
    del encoding
    with contextlib.closing(rows_of(path, kind, delimiter, quotes)) as rows:
        first = next(rows, None)
    if first is None:
        raise ValueError(f"Received StopIteration when reading the header line of {path}. Empty file?")
    return first


def _column(names: list[str], column: Any) -> int:
    if isinstance(column, int):
        if not 0 <= column < len(names):
            raise ValueError(f"Column number {column} is out of range: there are {len(names)} columns.")
        return column
    if column not in names:
        raise ValueError(f"Value '{column}' in select_columns is not a valid column name: {names}.")
    return names.index(column)


def _defaults(files: list[str], kind: str, delimiter: str, quotes: bool, missing: str, header: bool,
              chosen: list[int], most: int | None) -> list[Any]:
    """For each column a default, 0 or "", of the dtype that the first records have."""
    texts: list[list[str]] = [[] for _ in chosen]
    for path in files:
        left = None if most is None else most - len(texts[0])
        with contextlib.closing(rows_of(path, kind, delimiter, quotes)) as rows:
            for row in itertools.islice(rows, int(header), None if left is None else left + int(header)):
                if chosen[-1] >= len(row):
                    raise ValueError("Problem inferring types: CSV row has different number of fields than expected: "
                                     f"{row}.")
                for column, fields in zip(chosen, texts, strict=True):
                    fields.append("" if row[column] == missing else row[column])
    dtypes = [inferred(t) for t in texts]
    return [[""] if d is tf.string else tf.zeros([1], d) for d in dtypes]


# -- older names ----------------------------------------------------------------------------------
class Counter(Dataset):
    """`Dataset.counter`.

    Args:
        start, step: integers.
        dtype: int64 by default.
    """

    def __init__(self, start: Any = 0, step: Any = 1, dtype: Any = None) -> None:
        super().__init__(Dataset.counter(start, step, dtype)._node)


class RandomDataset(Dataset):
    """`Dataset.random`.

    Args:
        seed: with it, the numbers are the same in each run.
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(Dataset.random(seed)._node)


@engine.public
def assert_cardinality(expected_cardinality: Any) -> Callable[[Any], Any]:
    """For `Dataset.apply`: the elements, and an error where there are more or fewer.

    Args:
        expected_cardinality: how many there are to be; `tf.data.INFINITE_CARDINALITY` for no end.
    Raises:
        FailedPreconditionError: (when iterated over) there are more or fewer.

    >>> import twofold as tf
    >>> data = tf.data.Dataset.range(42).filter(lambda x: True).apply(tf.data.experimental.assert_cardinality(42))
    >>> len(data)
    42
    """
    return lambda dataset: dataset._then(AssertCardinality(dataset._node, expected_cardinality))


@engine.public
def cardinality(dataset: Any) -> Any:
    """`dataset.cardinality()`."""
    return dataset.cardinality()


@engine.public
def get_single_element(dataset: Any) -> Any:
    """`dataset.get_single_element()`."""
    return dataset.get_single_element()


@engine.public
def get_structure(dataset_or_iterator: Any) -> Any:
    """The `element_spec` of a dataset or an iterator."""
    return dataset_or_iterator.element_spec


@engine.public
def get_next_as_optional(iterator: Any) -> Any:
    """`iterator.get_next_as_optional()`."""
    return iterator.get_next_as_optional()


def _applied(name: str) -> Callable[..., Any]:
    """A function whose result, applied to a dataset, calls the method of this name."""
    def function(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        return lambda dataset: getattr(dataset, name)(*args, **kwargs)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"For `Dataset.apply`: `Dataset.{name}` with the same arguments."
    return engine.public(function)


bucket_by_sequence_length = _applied("bucket_by_sequence_length")
group_by_window = _applied("group_by_window")
ignore_errors = _applied("ignore_errors")
rejection_resample = _applied("rejection_resample")
scan = _applied("scan")
take_while = _applied("take_while")
unbatch = _applied("unbatch")
unique = _applied("unique")
sample_from_datasets = Dataset.sample_from_datasets
load = Dataset.load


@engine.public
def save(dataset: Any, path: Any, compression: str | None = None, shard_func: Any = None,
         checkpoint_args: Any = None) -> None:
    """`dataset.save(path, ...)`.

    Args:
        dataset: what is saved.
        path, compression, shard_func, checkpoint_args: as there.
    """
    dataset.save(path, compression, shard_func, checkpoint_args)


@engine.public
def dense_to_ragged_batch(batch_size: Any, drop_remainder: bool = False,
                          row_splits_dtype: Any = tf.int64) -> Callable[[Any], Any]:
    """For `Dataset.apply`: `Dataset.ragged_batch` with the same arguments."""
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


class AutotuneAlgorithm(enum.Enum):
    """How AUTOTUNE looks for numbers; TensorFlow's names, accepted by options without effect.

    >>> import twofold as tf
    >>> options = tf.data.Options()
    >>> options.autotune.autotune_algorithm = tf.data.experimental.AutotuneAlgorithm.HILL_CLIMB
    """

    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


@engine.public
def parse_example_dataset(features: Any, num_parallel_calls: Any = 1,
                          deterministic: bool | None = None) -> Callable[[Any], Any]:
    """For `Dataset.apply`: batches of serialised examples become dictionaries of their features.

    Args:
        features: see `tf.io.parse_example`.
        num_parallel_calls, deterministic: see `Dataset.map`.

    >>> import twofold as tf
    >>> feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))
    >>> record = tf.train.Example(features=tf.train.Features(feature={"n": feature})).SerializeToString()
    >>> parse = tf.data.experimental.parse_example_dataset({"n": tf.io.FixedLenFeature([], tf.int64)})
    >>> [batch["n"].numpy().tolist() for batch in tf.data.Dataset.from_tensors([record, record]).apply(parse)]
    [[3, 3]]
    """
    return lambda dataset: dataset.map(lambda records: tf.io.parse_example(records, features), num_parallel_calls,
                                       deterministic)


@engine.public
def make_batched_features_dataset(file_pattern: Any, batch_size: int, features: Any, reader: Any = None,
                                  label_key: str | None = None, reader_args: Sequence[Any] | None = None,
                                  num_epochs: int | None = None, shuffle: bool = True,
                                  shuffle_buffer_size: int = 10000, shuffle_seed: int | None = None,
                                  prefetch_buffer_size: int | None = None, reader_num_threads: int | None = None,
                                  parser_num_threads: int | None = None, sloppy_ordering: bool = False,
                                  drop_final_batch: bool = False) -> Any:
    """Batches of features of the examples in files.

    Args:
        file_pattern: names of files, or glob patterns.
        batch_size: how many examples are in a batch.
        features: see `tf.io.parse_example`.
        reader: makes a dataset of a file's records; `tf.data.TFRecordDataset` by default.
        label_key: the feature that is the label: elements are pairs then.
        reader_args: what `reader` gets after the name.
        num_epochs: how often the files are gone through; for ever by default.
        shuffle: whether files and examples are put in another order.
        shuffle_buffer_size, shuffle_seed: see `Dataset.shuffle`.
        prefetch_buffer_size: see `Dataset.prefetch`.
        reader_num_threads: how many files are read side by side.
        parser_num_threads: how many batches are parsed side by side.
        sloppy_ordering: whether the order may depend on which file is read first.
        drop_final_batch: whether a last batch that is smaller is left out.

    >>> import os, tempfile
    >>> import twofold as tf
    >>> feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))
    >>> record = tf.train.Example(features=tf.train.Features(feature={"n": feature})).SerializeToString()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with tf.io.TFRecordWriter(os.path.join(folder, "a")) as writer:
    ...         writer.write(record)
    ...     dataset = tf.data.experimental.make_batched_features_dataset(
    ...         folder + "/*", 2, {"n": tf.io.FixedLenFeature([], tf.int64)}, num_epochs=2)
    ...     [batch["n"].numpy().tolist() for batch in dataset]
    [[3, 3]]
    """
    reader = tf.data.TFRecordDataset if reader is None else reader
    files = tf.data.Dataset.list_files(file_pattern, shuffle, shuffle_seed)
    records = files.interleave(lambda name: reader(name, *(reader_args or ())), reader_num_threads or 1,
                               num_parallel_calls=reader_num_threads,
                               deterministic=None if reader_num_threads is None else not sloppy_ordering)
    if shuffle:
        records = records.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        records = records.repeat(num_epochs)
    batches = records.batch(batch_size, drop_final_batch or num_epochs is None).apply(
        parse_example_dataset(features, parser_num_threads or 2))
    if label_key is not None:
        if label_key not in features:
            raise ValueError(f"The `label_key` provided ({label_key!r}) must be one of the features: "
                             f"{sorted(features)}.")
        batches = batches.map(lambda made: (made, made.pop(label_key)))
    return batches.prefetch(tf.data.AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


@engine.public
def at(dataset: Any, index: Any) -> Any:
    """The element at a place, for which those before it are gone through.

    Args:
        dataset: the dataset.
        index: from 0.
    Raises:
        tf.errors.OutOfRangeError: there is none.

    >>> import twofold as tf
    >>> int(tf.data.experimental.at(tf.data.Dataset.range(5), 2))
    2
    """
    place = one_int(index, "index")
    if place >= 0:
        for element in dataset.skip(place).take(1):
            return element
    raise tf.errors.OutOfRangeError(None, None, f"There is no element {place} in the dataset.")


@engine.public
def from_list(elements: Any, name: str | None = None) -> Any:
    """A dataset of the elements of a list.

    Args:
        elements: tensors, or tuples and dicts of them, all of one structure, dtypes and shapes.
        name: has no effect.
    Raises:
        ValueError: it is no list, or an empty one.

    >>> import twofold as tf
    >>> data = tf.data.experimental.from_list([(1, "a"), (2, "b")])
    >>> [(int(n), text) for n, text in data.as_numpy_iterator()]
    [(1, b'a'), (2, b'b')]
    """
    if not isinstance(elements, list) or not elements:
        raise ValueError(f"from_list takes a list of one element or more, got {elements!r}.")
    return Dataset.from_tensor_slices(_stacked(elements))


def _stacked(elements: list[Any]) -> Any:
    """Elements of one structure, each of their tensors in one."""
    first = elements[0]
    if isinstance(first, dict):
        return {key: _stacked([element[key] for element in elements]) for key in first}
    if isinstance(first, tuple):
        parts = [_stacked(list(column)) for column in zip(*elements, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    return tf.stack(elements)


class Reducer:
    """What `group_by_reducer` does with the elements of a key.

    Args:
        init_func: of a key; gives the first state.
        reduce_func: of a state and an element; gives the next state.
        finalize_func: of the last state; gives the element.
    """

    def __init__(self, init_func: Callable[[Any], Any], reduce_func: Callable[[Any, Any], Any],
                 finalize_func: Callable[..., Any]) -> None:
        self.init_func, self.reduce_func, self.finalize_func = init_func, reduce_func, finalize_func


@engine.public
def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Callable[[Any], Any]:
    """For `Dataset.apply`: an element for each key, by rising keys, made of the elements of that key.

    The elements are held until the dataset's end.

    Args:
        key_func: of an element; gives an integer scalar, the key.
        reducer: what becomes of the elements.

    >>> import twofold as tf
    >>> sums = tf.data.experimental.Reducer(lambda key: tf.constant(0, tf.int64), lambda sum, x: sum + x, lambda x: x)
    >>> data = tf.data.Dataset.range(7).apply(tf.data.experimental.group_by_reducer(lambda x: x % 3, sums))
    >>> [int(x) for x in data]
    [9, 5, 7]
    """
    def of_group(key: Any, group: Any) -> Any:
        return Dataset.from_tensors(group.reduce(reducer.init_func(key), reducer.reduce_func))
    return lambda dataset: dataset.group_by_window(key_func, of_group, tf.int64.max).map(reducer.finalize_func)


@engine.public
def pad_to_cardinality(cardinality: Any, mask_key: str = "valid") -> Callable[[Any], Any]:
    """For `Dataset.apply`: elements of zeros at the end, until there is a number of them.

    Args:
        cardinality: that number.
        mask_key: the key in each element of whether it is one of the dataset's own.
    Raises:
        ValueError: (when applied) elements are no dicts, or how many there are is not known, or is more.

    >>> import twofold as tf
    >>> data = tf.data.Dataset.from_tensor_slices({"a": [1, 2]}).apply(tf.data.experimental.pad_to_cardinality(3))
    >>> [(int(x["a"]), bool(x["valid"])) for x in data]
    [(1, True), (2, True), (0, False)]
    """
    def apply(dataset: Any) -> Any:
        wanted, count, spec = one_int(cardinality, "cardinality"), int(dataset.cardinality()), dataset.element_spec
        if not isinstance(spec, dict):
            raise ValueError(f"pad_to_cardinality takes a dataset of dicts; its elements are {spec!r}.")
        if not 0 <= count <= wanted:
            raise ValueError(f"pad_to_cardinality takes a dataset of {wanted} elements at most; "
                             + (f"it has {count}." if count >= 0 else "how many it has is not known."))
        zeros = tf.nest.map_structure(lambda part: tf.zeros(part.shape, part.dtype), spec)
        padding = Dataset.from_tensors({**zeros, mask_key: False}).repeat(wanted - count)
        return dataset.map(lambda element: {**element, mask_key: True}).concatenate(padding)
    return apply


@engine.public
def choose_from_datasets(datasets: Any, choice_dataset: Any, stop_on_empty_dataset: bool = False) -> Any:
    """`Dataset.choose_from_datasets`, which goes on by default when one of the datasets has ended.

    Args:
        datasets, choice_dataset, stop_on_empty_dataset: as there.
    """
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


@engine.public
def enumerate_dataset(start: Any = 0) -> Callable[[Any], Any]:
    """For `Dataset.apply`: `Dataset.enumerate`.

    Args:
        start: the first number.
    """
    return lambda dataset: dataset.enumerate(start)


@engine.public
def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: int | None = None) -> Callable[[Any], Any]:
    """For `Dataset.apply`: `shuffle`, then `repeat`.

    Args:
        buffer_size, seed: see `Dataset.shuffle`.
        count: see `Dataset.repeat`.
    """
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


@engine.public
def map_and_batch(map_func: Callable[..., Any], batch_size: Any, num_parallel_batches: Any = None,
                  drop_remainder: bool = False, num_parallel_calls: Any = None) -> Callable[[Any], Any]:
    """For `Dataset.apply`: `map`, then `batch`.

    Args:
        map_func, num_parallel_calls: see `Dataset.map`.
        batch_size, drop_remainder: see `Dataset.batch`.
        num_parallel_batches: accepted, without effect.
    """
    del num_parallel_batches
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(batch_size, drop_remainder)


@engine.public
def parallel_interleave(map_func: Callable[..., Any], cycle_length: Any, block_length: Any = 1, sloppy: bool = False,
                        buffer_output_elements: Any = None,
                        prefetch_input_elements: Any = None) -> Callable[[Any], Any]:
    """For `Dataset.apply`: `interleave` with a thread for each open dataset.

    Args:
        map_func, cycle_length, block_length: see `Dataset.interleave`.
        sloppy, buffer_output_elements, prefetch_input_elements: accepted, without effect.
    """
    del sloppy, buffer_output_elements, prefetch_input_elements
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length, num_parallel_calls=cycle_length)


@engine.public
def prefetch_to_device(device: str, buffer_size: Any = None) -> Callable[[Any], Any]:
    """For `Dataset.apply`: the elements on a device, copied there while those before are used.

    It must be the last step: further ones read the elements on the host.

    Args:
        device: its name, such as "/gpu:0".
        buffer_size: how many elements are copied ahead at most; by default that is left open.
    Raises:
        ValueError: the name is no device's.

    >>> import twofold as tf
    >>> data = tf.data.Dataset.range(4).batch(2).apply(tf.data.experimental.prefetch_to_device("/gpu:0"))
    >>> [x.numpy().tolist() for x in data]
    [[0, 1], [2, 3]]
    """
    size, copied = AUTOTUNE if buffer_size is None else buffer_size, copy_to_device(device)
    return lambda dataset: copied(dataset).prefetch(size)


@engine.public
def copy_to_device(target_device: str, source_device: str = "/cpu:0") -> Callable[[Any], Any]:
    """For `Dataset.apply`: the elements on a device.

    It must be the last step, but for `prefetch`, which has them copied ahead: others read the elements on the host.

    Args:
        target_device: the name of the device, such as "/gpu:0".
        source_device: where the elements are made: on the CPU.
    Raises:
        ValueError: a name is no device's, or the source is not the CPU.

    >>> import twofold as tf
    >>> data = tf.data.Dataset.range(3).apply(tf.data.experimental.copy_to_device("/gpu:0")).prefetch(1)
    >>> [x.numpy().item() for x in data]
    [0, 1, 2]
    """
    engine.device_name(source_device, "source_device", "CPU")
    name = engine.device_name(target_device)
    return lambda dataset: dataset._then(OnDevice(dataset._node, name))


publish(__name__)
