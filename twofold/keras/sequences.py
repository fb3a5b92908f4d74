"""Sequences as data: padding of lists, windows over time series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import as_numpy, public

from .folders import check_format

__all__ = ["pad_sequences", "timeseries_dataset_from_array"]


@public
def pad_sequences(sequences: Sequence[Any], maxlen: int | None = None, dtype: Any = "int32", padding: str = "pre",
                  truncating: str = "pre", value: Any = 0.0) -> np.ndarray:
    """Sequences of different lengths as one array.

    Args:
        sequences: lists, or arrays whose further axes have the same sizes.
        maxlen: the length that all get; by default that of the longest.
        dtype: of the array; object for strings of different lengths.
        padding: "pre" to fill up before, "post" behind.
        truncating: "pre" to cut off the beginning of longer ones, "post" the end.
        value: what fills up.
    Returns:
        An array [sequences, maxlen, ..].
    Raises:
        ValueError: an entry is no sequence, shapes differ, or there is no such mode.

    >>> import twofold as tf
    >>> tf.keras.utils.pad_sequences([[1], [2, 3], [4, 5, 6]], maxlen=2).tolist()
    [[0, 1], [2, 3], [5, 6]]
    """
    for mode, name in ((padding, "Padding"), (truncating, "Truncating")):
        if mode not in ("pre", "post"):
            raise ValueError(f'{name} type "{mode}" not understood')
    if not hasattr(sequences, "__len__"):
        raise ValueError("`sequences` must be iterable.")
    for entry in sequences:
        if not hasattr(entry, "__len__"):
            raise ValueError(f"`sequences` must be a list of iterables. Found non-iterable: {entry}")
    text = np.issubdtype(dtype, np.str_) or np.issubdtype(dtype, np.bytes_)
    if isinstance(value, str) and dtype is not object and not text:
        raise ValueError(f"`dtype` {dtype} is not compatible with `value`'s type: {type(value)}\nYou should set "
                         "`dtype=object` for variable length strings.")
    length = max(map(len, sequences), default=0) if maxlen is None else maxlen
    shape = next((np.asarray(entry).shape[1:] for entry in sequences if len(entry)), ())
    padded = np.full((len(sequences), length, *shape), as_numpy(value), dtype)
    for n, entry in enumerate(sequences):
        kept = np.asarray(entry[max(0, len(entry) - length):] if truncating == "pre" else entry[:length], dtype)
        if len(entry) and kept.shape[1:] != shape:
            raise ValueError(f"Shape of sample {kept.shape[1:]} of sequence at position {n} is different from expected "
                             f"shape {shape}")
        if len(kept):
            padded[n, slice(0, len(kept)) if padding == "post" else slice(length - len(kept), length)] = kept
    return padded


@public
def timeseries_dataset_from_array(data: Any, targets: Any, sequence_length: int, sequence_stride: int = 1,
                                  sampling_rate: int = 1, batch_size: int | None = 128, shuffle: bool = False,
                                  seed: int | None = None, start_index: int | None = None,
                                  end_index: int | None = None, format: str = "tf") -> Any:
    """Windows over a time series, with the target of each.

    Args:
        data: an array, of which the first axis is time.
        targets: an array: entry i goes with the window that begins at step i; None for windows alone.
        sequence_length: how many steps a window has.
        sequence_stride: how many steps there are from one window to the next.
        sampling_rate: how many steps there are from one of a window's to its next.
        batch_size: how many windows a batch has; None for single ones.
        shuffle: whether windows come in a random order, another in each epoch.
        seed: an integer, for the same orders in every run.
        start_index, end_index: the part of the data that is used, its end not included.
        format: "tf", the one kind of dataset there is here.
    Returns:
        A dataset of windows [batch, sequence_length, ..], or of such and targets.
    Raises:
        ValueError: an index or a stride is beyond the data, or there is no such format.

    >>> import twofold as tf
    >>> import numpy as np
    >>> windows = tf.keras.utils.timeseries_dataset_from_array(np.arange(6), np.arange(6) * 10, 3, batch_size=2)
    >>> [(x.numpy().tolist(), y.numpy().tolist()) for x, y in windows]
    [([[0, 1, 2], [1, 2, 3]], [0, 10]), ([[2, 3, 4], [3, 4, 5]], [20, 30])]
    """
    check_format(format)
    count = len(data)
    _check_part(start_index, end_index, count)
    for value, name in ((sampling_rate, "sampling_rate"), (sequence_stride, "sequence_stride")):
        if not 0 < value < count:
            raise ValueError(f"`{name}` must be higher than 0 and lower than the length of the data. Received: "
                             f"{name}={value}, for data of length {count}")
    first, last = start_index or 0, count if end_index is None else end_index
    windows = last - first - (sequence_length - 1) * sampling_rate
    if targets is not None:
        windows = min(windows, len(targets))
    starts = np.arange(0, windows, sequence_stride)
    if shuffle:
        seed = int(np.random.randint(1_000_000)) if seed is None else seed
        np.random.RandomState(seed).shuffle(starts)
    steps, values = np.arange(sequence_length) * sampling_rate, tf.constant(as_numpy(data)[first:last])
    wanted = None if targets is None else tf.constant(as_numpy(targets)[first:last])

    def windows_at(places: Any) -> Any:
        windows = tf.gather(values, places[..., tf.newaxis] + steps)
        return windows if wanted is None else (windows, tf.gather(wanted, places))

    chosen = tf.data.Dataset.from_tensor_slices(starts)
    if shuffle:
        chosen = chosen.shuffle(batch_size * 8 if batch_size else 1024, seed=seed)
    if batch_size is not None:
        chosen = chosen.batch(batch_size)
    return chosen.map(windows_at).prefetch(tf.data.AUTOTUNE)


def _check_part(start: int | None, end: int | None, count: int) -> None:
    if start and not 0 <= start < count:
        raise ValueError("`start_index` must be 0 or greater, and lower than the length of the data. Received: "
                         f"start_index={start}, for data of length {count}")
    if end and not max(0, start or 0) < end < count:
        raise ValueError("`end_index` must be higher than `start_index` and 0, and lower than the length of the data. "
                         f"Received: start_index={start}, end_index={end}, for data of length {count}")
