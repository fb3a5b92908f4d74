"""Datasets over files: `TextLineDataset`, `TFRecordDataset`, `FixedLengthRecordDataset`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twofold._front import iteration as engine

from ._files import FixedLengthRecords, Records, TextLines, names_of
from ._mapping import Interleave
from ._node import Node, check
from ._parallel import AUTOTUNE, cores
from ._sources import Slices
from ._value import is_dataset
from .dataset import Dataset

__all__ = ["FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset"]


def _over(filenames: Any, readers: Any, node: Callable[[Any], Node]) -> Node:
    """The node over files, or several of it that take turns."""
    import twofold as tf
    names = filenames._node if is_dataset(filenames) else filenames
    if readers is None:
        return node(names)
    count = cores() if readers == AUTOTUNE else int(readers)
    check(count > 0, f"num_parallel_reads must be positive; got {readers}.")
    source = names if isinstance(names, Node) else Slices(tf.reshape(names_of(names), [-1]))
    return Interleave(source, lambda name: Dataset(node(name)), count, 1, count)


@engine.guarded
class TextLineDataset(Dataset):
    """The lines of text files, without their ends, as string scalars.

    Args:
        filenames: a name, a list of names, a string tensor, or a dataset of names.
        compression_type: "", "ZLIB" or "GZIP".
        buffer_size: how many bytes are read at once.
        num_parallel_reads: how many files are open at once and take turns; None: one after another.
        name: accepted, without effect.
    Raises:
        TypeError: names are no strings. NotFoundError: (when iterated over) there is no such file.

    >>> import os, tempfile
    >>> import twofold as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "lines.txt")
    ...     with open(path, "w") as file:
    ...         _ = file.write("one\\ntwo\\n")
    ...     list(tf.data.TextLineDataset(path).as_numpy_iterator())
    [b'one', b'two']
    """

    def __init__(self, filenames: Any, compression_type: Any = None, buffer_size: Any = None,
                 num_parallel_reads: Any = None, name: str | None = None) -> None:
        super().__init__(_over(filenames, num_parallel_reads,
                               lambda names: TextLines(names, compression_type, buffer_size)))


@engine.guarded
class TFRecordDataset(Dataset):
    """The records of TFRecord files, as string scalars; `tf.io.TFRecordWriter` writes such files.

    Args:
        filenames: a name, a list of names, a string tensor, or a dataset of names.
        compression_type: "", "ZLIB" or "GZIP".
        buffer_size: how many bytes are read at once.
        num_parallel_reads: how many files are open at once and take turns; None: one after another.
        name: accepted, without effect.
    Raises:
        TypeError: names are no strings. NotFoundError: (when iterated over) there is no such file. DataLossError:
            (when iterated over) a file is damaged or cut short.

    >>> import os, tempfile
    >>> import twofold as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "data.tfrecord")
    ...     with tf.io.TFRecordWriter(path) as writer:
    ...         writer.write(b"first")
    ...         writer.write(b"second")
    ...     list(tf.data.TFRecordDataset(path).as_numpy_iterator())
    [b'first', b'second']
    """

    def __init__(self, filenames: Any, compression_type: Any = None, buffer_size: Any = None,
                 num_parallel_reads: Any = None, name: str | None = None) -> None:
        super().__init__(_over(filenames, num_parallel_reads,
                               lambda names: Records(names, compression_type, buffer_size)))


@engine.guarded
class FixedLengthRecordDataset(Dataset):
    """The records of one length of binary files, as string scalars.

    Args:
        filenames: a name, a list of names, a string tensor, or a dataset of names.
        record_bytes: the length of a record.
        header_bytes, footer_bytes: how many bytes are passed over at the start and the end of each file.
        buffer_size: how many bytes are read at once.
        compression_type: "", "ZLIB" or "GZIP".
        num_parallel_reads: how many files are open at once and take turns; None: one after another.
        name: accepted, without effect.
    Raises:
        InvalidArgumentError: the length is not above zero; (when iterated over) a file does not hold whole records.

    >>> import os, tempfile
    >>> import twofold as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "data.bin")
    ...     with open(path, "wb") as file:
    ...         _ = file.write(b"HEADaabbcc")
    ...     list(tf.data.FixedLengthRecordDataset(path, 2, header_bytes=4).as_numpy_iterator())
    [b'aa', b'bb', b'cc']
    """

    def __init__(self, filenames: Any, record_bytes: Any, header_bytes: Any = None, footer_bytes: Any = None,
                 buffer_size: Any = None, compression_type: Any = None, num_parallel_reads: Any = None,
                 name: str | None = None) -> None:
        super().__init__(_over(filenames, num_parallel_reads,
                               lambda names: FixedLengthRecords(names, record_bytes, header_bytes, footer_bytes,
                                                                compression_type, buffer_size)))
