"""50,000 reviews of films, good ones and bad ones (Maas et al., 2011), as ranks of words by frequency."""

from __future__ import annotations

import numpy as np

from twofold._front.api import public
from twofold._front.namespace import publish

from . import _sources, _words
from ._plain import load_npz

__all__ = ["get_word_index", "load_data"]

_Pair = tuple[np.ndarray, np.ndarray]


@public
def load_data(path: str = "imdb.npz", num_words: int | None = None, skip_top: int = 0, maxlen: int | None = None,
              seed: int = 113, start_char: int | None = 1, oov_char: int | None = 2,
              index_from: int = 3) -> tuple[_Pair, _Pair]:
    """Load the reviews; the first call downloads them to `~/.keras/datasets` (17 MB).

    Args:
        path: the name of the file in the cache.
        num_words: words of this rank or a lower one are replaced by `oov_char`; by default none but the last.
        skip_top: words of higher ranks than this are replaced as well.
        maxlen: reviews that are not shorter are left out.
        seed: of the order.
        start_char: the mark at the beginning of a review; None for none.
        oov_char: the mark for a word that is replaced; None to leave such words out.
        index_from: what is added to ranks, for the marks.
    Returns:
        `(x_train, y_train), (x_test, y_test)`: arrays of lists of integers, and labels int64 of 0 and 1.
    Raises:
        OSError: they are neither there nor to be downloaded; the message names the file and its place.
        ValueError: the checksum is wrong, the file is damaged, or no review is short enough.
    """
    file = load_npz(_sources.fetch("imdb.npz", path))
    rng = np.random.RandomState(seed)
    parts = [_words.shuffled(rng, file[f"x_{part}"], file[f"y_{part}"]) for part in ("train", "test")]
    texts, labels = zip(*(_words.short_enough(maxlen, _words.shifted(x, start_char, index_from), y)
                          for x, y in parts), strict=True)
    both = _words.limited(texts[0] + texts[1], skip_top, num_words, oov_char)
    n = len(texts[0])
    return (_words.objects(both[:n]), labels[0]), (_words.objects(both[n:]), labels[1])


@public
def get_word_index(path: str = "imdb_word_index.json") -> dict[str, int]:
    """The ranks of words, without what `load_data` adds to them (`index_from`).

    Args:
        path: the name of the file in the cache.
    Raises:
        OSError: it is neither there nor to be downloaded; the message names the file and its place.
        ValueError: the checksum is wrong.
    """
    return _words.read_index(_sources.fetch("imdb_word_index.json", path))


publish(__name__)
