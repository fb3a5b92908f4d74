"""Folders of files as labelled datasets: which files there are, their classes and shares, and folders of texts.

Orders are Keras's: folders by their paths, within each the files by their names, and a shuffle by NumPy's
`RandomState`, so that the same seed gives the same files for training and for validation.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import public

__all__ = ["Listing", "audio_dataset_from_directory", "check_format", "datasets_of", "listed",
           "text_dataset_from_directory"]


@dataclass(frozen=True)
class Listing:
    """The files of a folder in their order.

    Attributes:
        paths: of the files.
        labels: the number of each file's class, or None.
        names: of the classes, or None.
        seed: of the orders.
    """

    paths: list[str]
    labels: np.ndarray | None
    names: list[str] | None
    seed: int

    def part(self, share: float | None, subset: str | None) -> Listing:
        """The files of a subset; the last ones are for validation."""
        if not share:
            return self
        first = len(self.paths) - int(share * len(self.paths))
        kept = slice(first) if subset == "training" else slice(first, None)
        labels = None if self.labels is None else self.labels[kept]
        return Listing(self.paths[kept], labels, self.names, self.seed)


def check_format(format: str) -> None:
    """Refuse other kinds of datasets than `tf.data`'s."""
    if format != "tf":
        raise ValueError(f'`format` must be "tf": other kinds of datasets are not here. Received: format={format}')


def listed(directory: Any, labels: Any, label_mode: str | None, class_names: Any, shuffle: bool, seed: int | None,
           validation_split: float | None, subset: str | None, follow_links: bool, verbose: bool,
           endings: tuple[str, ...]) -> Listing:
    """The files of a folder that have one of some endings, as the arguments of a function for users say.

    Raises:
        ValueError: arguments do not go together.
    """
    _check(labels, label_mode, class_names, shuffle, seed, validation_split, subset)
    seed = int(np.random.randint(1_000_000)) if seed is None else seed
    labels = labels if label_mode is not None else None
    directory = os.fspath(directory)
    names = _class_names(directory, labels, class_names)
    paths: list[str] = []
    numbers: list[int] = []
    for number, name in enumerate(names):
        here = list(_files(os.path.join(directory, name), follow_links, endings))
        paths += here
        numbers += [number] * len(here)
    if labels is not None and not isinstance(labels, str):
        if len(labels) != len(paths):
            raise ValueError("Expected the lengths of `labels` to match the number of files in the target directory. "
                             f"len(labels) is {len(labels)} while we found {len(paths)} files in directory "
                             f"{directory}.")
        numbers, names = list(labels), [str(n) for n in sorted(set(labels))]
    if label_mode == "binary" and labels is not None and len(names) != 2:
        raise ValueError("When passing `label_mode='binary'`, there must be exactly 2 class_names. "
                         f"Received: class_names={names}")
    if verbose:
        said = f" belonging to {len(names)} classes" if labels is not None else ""
        sys.stdout.write(f"Found {len(paths)} files{said}.\n")
    order = np.arange(len(paths))
    if shuffle:
        np.random.RandomState(seed).shuffle(order)
    return Listing([paths[n] for n in order], None if labels is None else np.array(numbers, np.int32)[order],
                   None if labels is None else names, seed)


def _check(labels: Any, label_mode: str | None, class_names: Any, shuffle: bool, seed: int | None,
           validation_split: float | None, subset: str | None) -> None:
    if labels is not None and not isinstance(labels, (list, tuple)) and labels != "inferred":
        raise ValueError("`labels` argument should be a list/tuple of integer labels, 'inferred', or None. "
                         f"Received: labels={labels}")
    if class_names and (labels != "inferred" or label_mode is None):
        raise ValueError("You can only pass `class_names` if `labels='inferred'`. "
                         f"Received: labels={labels}, and class_names={class_names}")
    if label_mode not in ("int", "categorical", "binary", None):
        raise ValueError("`label_mode` argument must be one of 'int', 'categorical', 'binary', or None. "
                         f"Received: label_mode={label_mode}")
    if validation_split and not 0 < validation_split < 1:
        raise ValueError(f"`validation_split` must be between 0 and 1, received: {validation_split}")
    if bool(validation_split) != bool(subset):
        raise ValueError("If `subset` is set, `validation_split` must be set, and inversely. "
                         f"Received: validation_split={validation_split}, subset={subset}")
    if subset not in ("training", "validation", "both", None):
        raise ValueError(f"`subset` must be either 'training', 'validation' or 'both', received: {subset}")
    if validation_split and shuffle and seed is None:
        raise ValueError("If using `validation_split` and shuffling the data, you must provide a `seed` argument, to "
                         "make sure that there is no overlap between the training and validation subset.")


def _class_names(directory: str, labels: Any, class_names: Any) -> list[str]:
    """The folders that are classes, or that one of no name in which all files are."""
    if not isinstance(labels, str):
        return [""]
    folders = sorted(e.name for e in os.scandir(directory) if e.is_dir() and not e.name.startswith("."))
    if class_names is None:
        return folders
    if not set(class_names) <= set(folders):
        raise ValueError("The `class_names` passed did not match the names of the subdirectories of the target "
                         f"directory. Expected: {folders} (or a subset of it), but received: class_names={class_names}")
    return list(class_names)


def _files(directory: str, links: bool, endings: tuple[str, ...]) -> Iterator[str]:
    for root, _, files in sorted(os.walk(directory, followlinks=links), key=lambda entry: entry[0]):
        yield from (os.path.join(root, name) for name in sorted(files) if name.lower().endswith(endings))


def datasets_of(listing: Listing, load: Callable[[Any], Any], label_mode: str | None, batch_size: int | None,
                shuffle: bool, validation_split: float | None, subset: str | None, verbose: bool, kind: str,
                endings: Sequence[str], directory: Any, padded: bool = False) -> Any:
    """The dataset of a subset of files, or with "both" the list of two.

    Args:
        listing: all files.
        load: from a path to what an element holds.
        label_mode: see `text_dataset_from_directory`.
        batch_size, shuffle, validation_split, subset, verbose, directory: as users give them.
        kind, endings: what errors call the files.
        padded: whether elements of a batch are filled up to the longest one.
    Raises:
        ValueError: there are no files.
    """
    datasets = []
    for name in ("training", "validation") if subset == "both" else (subset,):
        part = listing.part(validation_split, name)
        if name and verbose:
            sys.stdout.write(f"Using {len(part.paths)} files for {name}.\n")
        if not part.paths:
            raise ValueError(f"No {f'{name} ' if subset == 'both' else ''}{kind} found in directory {directory}. "
                             f"Allowed formats: {tuple(endings)}")
        mixed = shuffle and not (subset == "both" and name == "validation")
        made = _dataset(part, load, label_mode, batch_size, mixed, padded)
        made.class_names, made.file_paths = part.names, part.paths
        datasets.append(made)
    return datasets if subset == "both" else datasets[0]


def _dataset(part: Listing, load: Callable[[Any], Any], label_mode: str | None, batch_size: int | None,
             shuffle: bool, padded: bool) -> Any:
    made: Any = np.array(part.paths)
    if part.labels is not None:
        labels = part.labels
        if label_mode == "binary":
            labels = labels.astype(np.float32)[:, np.newaxis]
        elif label_mode == "categorical":
            labels = (labels[:, np.newaxis] == np.arange(len(part.names or ()))).astype(np.float32)
        made = (made, labels)
    dataset = tf.data.Dataset.from_tensor_slices(made)
    if shuffle:
        dataset = dataset.shuffle(batch_size * 8 if batch_size else 1024, seed=part.seed)

    def element(path: Any, *label: Any) -> Any:
        return (load(path), *label) if label else load(path)
    dataset = dataset.map(element, num_parallel_calls=tf.data.AUTOTUNE)
    if batch_size is not None:
        dataset = dataset.padded_batch(batch_size) if padded else dataset.batch(batch_size)
    return dataset.prefetch(tf.data.AUTOTUNE)


@public
def audio_dataset_from_directory(directory: Any, labels: Any = "inferred", label_mode: str | None = "int",
                                 class_names: Any = None, batch_size: int | None = 32, sampling_rate: int | None = None,
                                 output_sequence_length: int | None = None, ragged: bool = False, shuffle: bool = True,
                                 seed: int | None = None, validation_split: float | None = None,
                                 subset: str | None = None, follow_links: bool = False, verbose: bool = True) -> Any:
    """The `.wav` files of a folder as a dataset of sounds, labelled by the folders they are in.

    Args:
        directory: the folder; with labels "inferred" its folders are the classes, but for those whose names begin with
            a dot.
        labels: "inferred", a list of an integer for each file in the order of their paths, or None.
        label_mode: "int", "categorical" (one-hot), "binary" (0.0 and 1.0), or None for sounds alone.
        class_names: the classes in their order, or some of them; by default all in that of the alphabet.
        batch_size: how many sounds a batch has; None for single ones.
        sampling_rate: must be None: sounds keep the rates of their files.
        output_sequence_length: how many samples each sound has, cut or filled with zeros; by default as many as the
            longest of its batch.
        ragged: whether sounds are ragged tensors, each as long as it is.
        shuffle: whether sounds come in a random order; else in that of their paths.
        seed: an integer, for the same order in every run.
        validation_split: the share of files, the last ones, that is for validation.
        subset: "training", "validation" or "both" (which gives two datasets).
        follow_links: whether links to folders are followed.
        verbose: whether the number of files is printed.
    Returns:
        A dataset of float32 batches [batch, samples, channels], or of such and labels, with `class_names` and
        `file_paths`.
    Raises:
        ValueError: arguments do not go together, or there are no files. UnimplementedError: `sampling_rate` is given.

    >>> import tempfile, pathlib
    >>> import twofold as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for n, name in enumerate(("hum", "ring")):
    ...         (pathlib.Path(folder) / name).mkdir()
    ...         tf.io.write_file(f"{folder}/{name}/0.wav", tf.audio.encode_wav(tf.zeros([9 + n, 1]), 8000))
    ...     sounds = tf.keras.utils.audio_dataset_from_directory(folder, verbose=False)
    ...     [(x.shape.as_list(), sorted(y.numpy().tolist())) for x, y in sounds], sounds.class_names
    ([([2, 10, 1], [0, 1])], ['hum', 'ring'])
    """
    if ragged and output_sequence_length is not None:
        raise ValueError("Cannot set both `ragged` and `output_sequence_length`")
    if sampling_rate is not None and (not isinstance(sampling_rate, int) or sampling_rate <= 0):
        raise ValueError(f"`sampling_rate` should be an integer higher than 0. Received: sampling_rate={sampling_rate}")
    if sampling_rate is not None:
        raise tf.errors.UnimplementedError(None, None, "sounds are not brought to another rate: `sampling_rate` must "
                                                       "be None")
    listing = listed(directory, labels, label_mode, class_names, shuffle, seed, validation_split, subset, follow_links,
                     verbose, (".wav",))

    def load(path: Any) -> Any:
        length = -1 if output_sequence_length is None else output_sequence_length
        sound = tf.audio.decode_wav(tf.io.read_file(path), desired_samples=length)[0]
        return tf.RaggedTensor.from_tensor(sound) if ragged else sound
    return datasets_of(listing, load, label_mode, batch_size, shuffle, validation_split, subset, verbose, "audio files",
                       (".wav",), directory, padded=output_sequence_length is None and not ragged)


@public
def text_dataset_from_directory(directory: Any, labels: Any = "inferred", label_mode: str | None = "int",
                                class_names: Any = None, batch_size: int | None = 32, max_length: int | None = None,
                                shuffle: bool = True, seed: int | None = None, validation_split: float | None = None,
                                subset: str | None = None, follow_links: bool = False, format: str = "tf",
                                verbose: bool = True) -> Any:
    """The `.txt` files of a folder as a dataset of texts, labelled by the folders they are in.

    Args:
        directory: the folder; with labels "inferred" its folders are the classes, but for those whose names begin with
            a dot.
        labels: "inferred", a list of an integer for each file in the order of their paths, or None.
        label_mode: "int", "categorical" (one-hot), "binary" (0.0 and 1.0), or None for texts alone.
        class_names: the classes in their order, or some of them; by default all in that of the alphabet.
        batch_size: how many texts a batch has; None for single ones.
        max_length: how many bytes of a text are kept.
        shuffle: whether texts come in a random order; else in that of their paths.
        seed: an integer, for the same order in every run.
        validation_split: the share of files, the last ones, that is for validation.
        subset: "training", "validation" or "both" (which gives two datasets).
        follow_links: whether links to folders are followed.
        format: "tf", the one kind of dataset there is here.
        verbose: whether the number of files is printed.
    Returns:
        A dataset of string batches, or of such and labels, with `class_names` and `file_paths`.
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
    check_format(format)
    listing = listed(directory, labels, label_mode, class_names, shuffle, seed, validation_split, subset, follow_links,
                     verbose, (".txt",))

    def load(path: Any) -> Any:
        text = tf.io.read_file(path)
        return text if max_length is None else tf.strings.substr(text, 0, max_length)
    return datasets_of(listing, load, label_mode, batch_size, shuffle, validation_split, subset, verbose, "text files",
                       (".txt",), directory)
