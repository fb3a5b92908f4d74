"""Sequences as data: padding of lists, windows over time series, folders of texts."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import twofold as tf

__all__ = ["pad_sequences", "text_dataset_from_directory", "timeseries_dataset_from_array"]


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
    found = np.full((len(sequences), length, *shape), value, dtype)
    for n, entry in enumerate(sequences):
        kept = np.asarray(entry[max(0, len(entry) - length):] if truncating == "pre" else entry[:length], dtype)
        if len(entry) and kept.shape[1:] != shape:
            raise ValueError(f"Shape of sample {kept.shape[1:]} of sequence at position {n} is different from expected "
                             f"shape {shape}")
        if len(kept):
            found[n, slice(0, len(kept)) if padding == "post" else slice(length - len(kept), length)] = kept
    return found


def timeseries_dataset_from_array(data: Any, targets: Any, sequence_length: int, sequence_stride: int = 1,
                                  sampling_rate: int = 1, batch_size: int | None = 128, shuffle: bool = False,
                                  seed: int | None = None, start_index: int | None = None,
                                  end_index: int | None = None) -> Any:
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
    Returns:
        A dataset of windows [batch, sequence_length, ..], or of such and targets.
    Raises:
        ValueError: an index or a stride is beyond the data.

    >>> import twofold as tf
    >>> import numpy as np
    >>> windows = tf.keras.utils.timeseries_dataset_from_array(np.arange(6), np.arange(6) * 10, 3, batch_size=2)
    >>> [(x.numpy().tolist(), y.numpy().tolist()) for x, y in windows]
    [([[0, 1, 2], [1, 2, 3]], [0, 10]), ([[2, 3, 4], [3, 4, 5]], [20, 30])]
    """
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
    steps, values = np.arange(sequence_length) * sampling_rate, tf.constant(np.asarray(data)[first:last])
    wanted = None if targets is None else tf.constant(np.asarray(targets)[first:last])

    def windows_at(places: Any) -> Any:
        found = tf.gather(values, places[..., tf.newaxis] + steps)
        return found if wanted is None else (found, tf.gather(wanted, places))

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


def text_dataset_from_directory(directory: Any, labels: Any = "inferred", label_mode: str | None = "int",
                                class_names: Any = None, batch_size: int | None = 32, max_length: int | None = None,
                                shuffle: bool = True, seed: int | None = None, validation_split: float | None = None,
                                subset: str | None = None, follow_links: bool = False, verbose: bool = True) -> Any:
    """The `.txt` files of a folder as a dataset of texts, labelled by the folders they are in.

    Args:
        directory: the folder; with labels "inferred" its folders are the classes.
        labels: "inferred", a list of an integer for each file in the order of their paths, or None.
        label_mode: "int", "categorical" (one-hot), "binary" (0.0 and 1.0), or None for texts alone.
        class_names: the classes in their order; by default that of the alphabet.
        batch_size: how many texts a batch has; None for single ones.
        max_length: how many bytes of a text are kept.
        shuffle: whether texts come in a random order; else in that of their paths.
        seed: an integer, for the same order in every run.
        validation_split: the share of files, the last ones, that is for validation.
        subset: "training", "validation" or "both" (which gives two datasets).
        follow_links: whether links to folders are followed.
        verbose: whether the number of files is printed.
    Returns:
        A dataset of string batches, or of such and labels, with `class_names`.
    Raises:
        ValueError: arguments do not go together, or there are no files.

    >>> import tempfile, pathlib
    >>> import twofold as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("bad", "good"):
    ...         (pathlib.Path(folder) / name).mkdir()
    ...         _ = (pathlib.Path(folder) / name / "0.txt").write_text(f"{name} film")
    ...     texts = tf.keras.utils.text_dataset_from_directory(folder, shuffle=False, verbose=False)
    ...     [(x.numpy().tolist(), y.numpy().tolist()) for x, y in texts], texts.class_names
    ([([b'bad film', b'good film'], [0, 1])], ['bad', 'good'])
    """
    if label_mode not in ("int", "categorical", "binary", None):
        raise ValueError("`label_mode` argument must be one of 'int', 'categorical', 'binary', or None. "
                         f"Received: label_mode={label_mode}")
    if (validation_split is None) != (subset is None) or subset not in (None, "training", "validation", "both"):
        raise ValueError("`subset` must be 'training', 'validation' or 'both' with `validation_split`, else None. "
                         f"Received: validation_split={validation_split}, subset={subset}")
    if validation_split is not None and not 0 < validation_split < 1:
        raise ValueError(f"`validation_split` must be between 0 and 1, received: {validation_split}")
    if subset and shuffle and seed is None:
        raise ValueError("If using `validation_split` and shuffling the data, you must provide a `seed` argument, to "
                         "make sure that there is no overlap between the training and validation subset.")
    paths, numbers, names = _texts_of(os.fspath(directory), labels, class_names, follow_links)
    if label_mode == "binary" and len(names) != 2:
        raise ValueError("When passing `label_mode='binary'`, there must be exactly 2 class_names. "
                         f"Received: class_names={names}")
    if not paths:
        raise ValueError(f"No text files found in directory {directory}. Allowed format: .txt")
    if verbose:
        said = f" belonging to {len(names)} classes" if numbers is not None else ""
        sys.stdout.write(f"Found {len(paths)} files{said}.\n")
    order = np.arange(len(paths))
    if shuffle:
        seed = int(np.random.randint(1_000_000)) if seed is None else seed
        np.random.RandomState(seed).shuffle(order)
    kept_back = int((validation_split or 0) * len(paths))
    parts = {"training": order[:len(order) - kept_back], "validation": order[len(order) - kept_back:]}
    found = []
    for part in ("training", "validation") if subset == "both" else (subset,):
        chosen = order if part is None else parts[part]
        if part is not None and verbose:
            sys.stdout.write(f"Using {len(chosen)} files for {part}.\n")
        found.append(_text_dataset([paths[i] for i in chosen], None if numbers is None or label_mode is None else
                                   np.array(numbers)[chosen], label_mode, names, batch_size, max_length,
                                   shuffle and part != "validation", seed))
    return found if subset == "both" else found[0]


def _texts_of(directory: str, labels: Any, class_names: Any, links: bool) -> tuple[list[str], Any, list[str]]:
    """The paths of texts, their labels (or None), and the names of the classes."""
    inferred = isinstance(labels, str)
    if inferred and labels != "inferred":
        raise ValueError("`labels` argument should be a list of integer labels, 'inferred' or None. "
                         f"Received: labels={labels}")
    if class_names is not None and not inferred:
        raise ValueError("You can only pass `class_names` if `labels='inferred'`. "
                         f"Received: labels={labels}, and class_names={class_names}")
    folders = sorted(e.name for e in os.scandir(directory) if e.is_dir()) if inferred else [""]
    if inferred and class_names is not None and set(class_names) != set(folders):
        raise ValueError("The `class_names` passed did not match the names of the subdirectories of the target "
                         f"directory. Expected: {folders} (or a subset of it), but received: {class_names}")
    names = list(class_names or folders) if inferred else []
    paths: list[str] = []
    numbers: list[int] = []
    for number, name in enumerate(names if inferred else [""]):
        here = [os.path.join(root, file) for root, _, files in os.walk(os.path.join(directory, name),
                                                                       followlinks=links)
                for file in files if file.lower().endswith(".txt")]
        paths += sorted(here)
        numbers += [number] * len(here)
    if inferred:
        return paths, numbers, names
    if labels is None:
        return paths, None, []
    if len(labels) != len(paths):
        raise ValueError("Expected the lengths of `labels` to match the number of files in the target directory. "
                         f"len(labels) is {len(labels)} while we found {len(paths)} files in directory {directory}.")
    return paths, list(labels), [str(n) for n in sorted(set(labels))]


def _text_dataset(paths: list[str], numbers: Any, label_mode: str | None, names: list[str], batch_size: int | None,
                  max_length: int | None, shuffle: bool, seed: int | None) -> Any:
    def read(path: Any) -> Any:
        with open(path.decode() if isinstance(path, bytes) else str(path), "rb") as file:
            return np.array(file.read() if max_length is None else file.read(max_length), object)

    def text_at(path: Any, *label: Any) -> Any:
        text = tf.numpy_function(lambda p: read(p.item() if isinstance(p, np.ndarray) else p), [path],
                                 tf.TensorSpec([], tf.string))
        return (text, *label) if label else text

    made: Any = np.array(paths)
    if numbers is not None:
        label = {"int": numbers.astype(np.int32), "binary": numbers.astype(np.float32)[:, np.newaxis]}.get(
            str(label_mode))
        made = (made, np.eye(len(names), dtype=np.float32)[numbers] if label is None else label)
    dataset = tf.data.Dataset.from_tensor_slices(made)
    if shuffle:
        dataset = dataset.shuffle(batch_size * 8 if batch_size else 1024, seed=seed)
    dataset = dataset.map(text_at, num_parallel_calls=tf.data.AUTOTUNE)
    if batch_size is not None:
        dataset = dataset.batch(batch_size)
    dataset = dataset.prefetch(tf.data.AUTOTUNE)
    dataset.class_names = names
    return dataset
