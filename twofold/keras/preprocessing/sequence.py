"""`tf.keras.preprocessing.sequence`: padding of sequences, windows over series, pairs of words that stand together."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence, Sized
from typing import Any

import numpy as np

from twofold._front.api import describe, listed, one_int, one_number, public
from twofold._front.namespace import publish

from ..sequences import pad_sequences
from ..utils import PyDataset

__all__ = ["TimeseriesGenerator", "make_sampling_table", "pad_sequences", "skipgrams"]

_MOST_WORDS, _MOST_PAIRS = 1 << 24, 1 << 28  # more than a list holds
_EULER = 0.577  # Euler's constant, to the digits that Keras has


class TimeseriesGenerator(PyDataset):
    """Batches of windows over a series, with the target of the step after each.

    Args:
        data: a list or array, of which the first axis is time.
        targets: as many targets.
        length: how many steps a window has.
        sampling_rate: of how many steps of a window one is taken.
        stride: how many steps there are from one window to the next.
        start_index, end_index: the first and last step that is used.
        shuffle: whether windows are drawn at random.
        reverse: whether windows run backwards.
        batch_size: how many windows a batch has.
        kwargs: those of `PyDataset`.
    Raises:
        ValueError: data and targets have different lengths, or there is no window.

    >>> import numpy as np
    >>> import twofold as tf
    >>> series = np.arange(6)
    >>> windows = tf.keras.preprocessing.sequence.TimeseriesGenerator(series, series * 10, length=2, batch_size=3)
    >>> [(x.tolist(), y.tolist()) for x, y in windows]
    [([[0, 1], [1, 2], [2, 3]], [20, 30, 40]), ([[3, 4]], [50])]
    """

    def __init__(self, data: Any, targets: Any, length: int, sampling_rate: int = 1, stride: int = 1,
                 start_index: int = 0, end_index: int | None = None, shuffle: bool = False, reverse: bool = False,
                 batch_size: int = 128, **kwargs: Any):
        super().__init__(**kwargs)
        if len(data) != len(targets):
            raise ValueError("Data and targets have to be of same length. "
                             f"Data length is {len(data)} while target length is {len(targets)}")
        self.data, self.targets, self.length = data, targets, length
        self.sampling_rate, self.stride = sampling_rate, stride
        self.start_index = start_index + length
        self.end_index = len(data) - 1 if end_index is None else end_index
        self.shuffle, self.reverse, self.batch_size = shuffle, reverse, batch_size
        if self.start_index > self.end_index:
            raise ValueError(f"`start_index+length={self.start_index} > end_index={self.end_index}` is disallowed, as "
                             "no part of the sequence would be left to be used as current step.")

    @property
    def num_batches(self) -> int:
        """How many batches there are."""
        step = self.batch_size * self.stride
        return (self.end_index - self.start_index + step) // step

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        index = one_int(index, "index")
        if self.shuffle:
            rows = np.random.randint(self.start_index, self.end_index + 1, self.batch_size)
        else:
            first = self.start_index + self.batch_size * self.stride * index
            rows = np.arange(first, min(first + self.batch_size * self.stride, self.end_index + 1), self.stride)
        samples = np.array([self.data[row - self.length:row:self.sampling_rate] for row in rows])
        targets = np.array([self.targets[row] for row in rows])
        return (samples[:, ::-1] if self.reverse else samples), targets

    def get_config(self) -> dict[str, Any]:
        """The arguments, with data and targets as JSON.

        Raises:
            TypeError: they cannot be JSON.
        """
        names = ("length", "sampling_rate", "stride", "start_index", "end_index", "shuffle", "reverse", "batch_size")
        config = {name: getattr(self, name) for name in names}
        for name in ("data", "targets"):
            value = getattr(self, name)
            config[name] = json.dumps(value.tolist() if isinstance(value, np.ndarray) else value)
        return config

    def to_json(self, **kwargs: Any) -> str:
        """`get_config` as JSON; `kwargs` are those of `json.dumps`."""
        return json.dumps({"class_name": type(self).__name__, "config": self.get_config()}, **kwargs)


@public
def make_sampling_table(size: int, sampling_factor: float = 1e-5) -> np.ndarray:
    """With which chance words are kept by `skipgrams`, by their rank: frequent ones are rather left out.

    Frequencies are taken to follow Zipf's law, and chances are those of word2vec (Mikolov and others, 2013).

    Args:
        size: how many words there are.
        sampling_factor: word2vec's threshold.
    Returns:
        float64 [size].
    Raises:
        TypeError: an argument is no number.

    >>> import twofold as tf
    >>> tf.keras.preprocessing.sequence.make_sampling_table(3).round(4).tolist()
    [0.0032, 0.0032, 0.0055]
    """
    rank = np.maximum(np.arange(one_int(size, "size")), 1)
    share = one_number(sampling_factor, "sampling_factor") * (rank * (np.log(rank) + _EULER) + 0.5 - 1 / (12 * rank))
    return np.minimum(1.0, share / np.sqrt(share))


@public
def skipgrams(sequence: Sequence[int], vocabulary_size: int, window_size: int = 4, negative_samples: float = 1.0,
              shuffle: bool = True, categorical: bool = False, sampling_table: Any = None,
              seed: int | None = None) -> tuple[list[list[int]], list[Any]]:
    """Pairs of words that stand near to one another, and pairs with random words.

    Args:
        sequence: the numbers of words; 0 stands for none.
        vocabulary_size: one more than the largest number.
        window_size: how far apart the words of a pair are at most.
        negative_samples: how many random pairs there are for each true one.
        shuffle: whether the pairs are in a random order.
        categorical: whether labels are [0, 1] for true pairs and [1, 0] for random ones, rather than 1 and 0.
        sampling_table: with which chance each word is kept, see `make_sampling_table`.
        seed: of the order, which also seeds Python's `random`.
    Returns:
        The pairs, and their labels.
    Raises:
        ValueError: there are more words, or random pairs, than can be meant.
        TypeError: the sequence has no length.

    >>> import twofold as tf
    >>> tf.keras.preprocessing.sequence.skipgrams([1, 2, 3], 4, window_size=1, negative_samples=0, shuffle=False)
    ([[1, 2], [2, 1], [2, 3], [3, 2]], [1, 1, 1, 1])
    """
    pairs: list[list[int]] = []
    if not isinstance(sequence, Sized):
        raise TypeError(f"sequence must be a list of words' numbers; got {describe(sequence)}.")
    sequence = listed(sequence, "sequence", _MOST_WORDS)
    for place, word in enumerate(sequence):
        if not word or (sampling_table is not None and sampling_table[word] < random.random()):
            continue
        for other in range(max(0, place - window_size), min(len(sequence), place + window_size + 1)):
            if other != place and sequence[other]:
                pairs.append([word, sequence[other]])
    true, false = ([0, 1], [1, 0]) if categorical else (1, 0)
    labels: list[Any] = [true] * len(pairs)
    if negative_samples > 0:
        if not len(pairs) * negative_samples <= _MOST_PAIRS:
            raise ValueError(f"negative_samples={negative_samples!r} makes more than {_MOST_PAIRS} random pairs, which "
                             "cannot be meant.")
        count = int(len(pairs) * negative_samples)
        words = [pair[0] for pair in pairs]
        random.shuffle(words)
        pairs += [[words[n % len(words)], random.randint(1, vocabulary_size - 1)] for n in range(count)]
        labels += [false] * count
    if shuffle:
        seed = random.randint(0, 10_000_000) if seed is None else seed
        for values in (pairs, labels):
            random.seed(seed)
            random.shuffle(values)
    return pairs, labels


publish(__name__)
