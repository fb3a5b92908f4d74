"""11,228 newswires of Reuters in 46 topics, as ranks of words by frequency."""

from __future__ import annotations

import numpy as np

from twofold._front.api import public
from twofold._front.namespace import publish

from . import _sources, _words
from ._plain import load_npz

__all__ = ["get_label_names", "get_word_index", "load_data"]

_Pair = tuple[np.ndarray, np.ndarray]

_TOPICS = ("cocoa grain veg-oil earn acq wheat copper housing money-supply coffee sugar trade reserves ship cotton "
           "carcass crude nat-gas cpi money-fx interest gnp meal-feed alum oilseed gold tin strategic-metal livestock "
           "retail ipi iron-steel rubber heat jobs lei bop zinc orange pet-chem dlr gas silver wpi hog lead")


@public
def load_data(path: str = "reuters.npz", num_words: int | None = None, skip_top: int = 0, maxlen: int | None = None,
              test_split: float = 0.2, seed: int = 113, start_char: int | None = 1, oov_char: int | None = 2,
              index_from: int = 3) -> tuple[_Pair, _Pair]:
    """Load the newswires; the first call downloads them to `~/.keras/datasets` (2 MB).

    Args:
        path: the name of the file in the cache.
        num_words: words of this rank or a lower one are replaced by `oov_char`; by default none but the last.
        skip_top: words of higher ranks than this are replaced as well.
        maxlen: newswires that are not shorter are left out.
        test_split: which part is for testing.
        seed: of the order.
        start_char: the mark at the beginning of a newswire; None for none.
        oov_char: the mark for a word that is replaced; None to leave such words out.
        index_from: what is added to ranks, for the marks.
    Returns:
        `(x_train, y_train), (x_test, y_test)`: arrays of lists of integers, and labels int64 of 0 to 45.
    Raises:
        OSError: they are neither there nor to be downloaded; the message names the file and its place.
        ValueError: the checksum is wrong, the file is damaged, or no newswire is short enough.
    """
    file = load_npz(_sources.fetch("reuters.npz", path))
    x, y = _words.shuffled(np.random.RandomState(seed), file["x"], file["y"])
    if start_char is None and not index_from:
        texts = [list(text) for text in x]
    else:
        texts = _words.shifted(x, start_char, index_from)
    texts, y = _words.short_enough(maxlen, texts, y)
    texts = _words.limited(texts, skip_top, num_words, oov_char)
    n = int(len(texts) * (1 - test_split))
    return (_words.objects(texts[:n]), y[:n]), (_words.objects(texts[n:]), y[n:])


@public
def get_word_index(path: str = "reuters_word_index.json") -> dict[str, int]:
    """The ranks of words, without what `load_data` adds to them (`index_from`).

    Args:
        path: the name of the file in the cache.
    Raises:
        OSError: it is neither there nor to be downloaded; the message names the file and its place.
        ValueError: the checksum is wrong.
    """
    return _words.read_index(_sources.fetch("reuters_word_index.json", path))


@public
def get_label_names() -> tuple[str, ...]:
    """The names of the topics, in the order of the labels.

    >>> import twofold as tf
    >>> tf.keras.datasets.reuters.get_label_names()[:3]
    ('cocoa', 'grain', 'veg-oil')
    """
    return tuple(_TOPICS.split())


publish(__name__)
