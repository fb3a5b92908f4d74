"""`tf.keras.preprocessing.text`: texts as lists and tables of numbers, as before `TextVectorization`."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from twofold._front.api import listed, public
from twofold._front.namespace import publish

__all__ = ["Tokenizer", "hashing_trick", "one_hot", "text_to_word_sequence", "tokenizer_from_json"]

_FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'
_MODES = ("binary", "count", "freq", "tfidf")


@public
def text_to_word_sequence(input_text: str, filters: str = _FILTERS, lower: bool = True, split: str = " ") -> list[str]:
    """The words of a text.

    Args:
        input_text: the text.
        filters: characters that part words, as `split` does.
        lower: whether words become lower case.
        split: what parts words.

    >>> import twofold as tf
    >>> tf.keras.preprocessing.text.text_to_word_sequence("The cat, the mat.")
    ['the', 'cat', 'the', 'mat']
    """
    text = (input_text.lower() if lower else input_text).translate(
        {ord(c): split for c in listed(filters, "filters")})
    return [word for word in text.split(split) if word]


@public
def hashing_trick(text: str, n: int, hash_function: Any = None, filters: str = _FILTERS, lower: bool = True,
                  split: str = " ", analyzer: Callable[[str], Iterable[str]] | None = None) -> list[int]:
    """The words of a text as numbers 1 to n - 1 by a hash, where different words may share a number.

    Args:
        text: the text.
        n: one more than the largest number.
        hash_function: from a word to an integer; "md5", or None for Python's `hash`, which differs between processes.
        filters, lower, split: those of `text_to_word_sequence`.
        analyzer: from the text to its words, instead of those.

    >>> import twofold as tf
    >>> tf.keras.preprocessing.text.hashing_trick("a b a", 100, "md5")
    [92, 95, 92]
    """
    number = hash if hash_function is None else _md5 if hash_function == "md5" else hash_function
    words = text_to_word_sequence(text, filters, lower, split) if analyzer is None else analyzer(text)
    return [number(word) % (n - 1) + 1 for word in words]


def _md5(word: str) -> int:
    return int(hashlib.md5(word.encode(), usedforsecurity=False).hexdigest(), 16)


@public
def one_hot(input_text: str, n: int, filters: str = _FILTERS, lower: bool = True, split: str = " ",
            analyzer: Callable[[str], Iterable[str]] | None = None) -> list[int]:
    """`hashing_trick` with Python's `hash`.

    Args:
        input_text: the text.
        n, filters, lower, split, analyzer: those of `hashing_trick`.

    >>> import twofold as tf
    >>> first, second, third = tf.keras.preprocessing.text.one_hot("a b a", 50)
    >>> first == third and 1 <= second < 50
    True
    """
    return hashing_trick(input_text, n, hash, filters, lower, split, analyzer)


class Tokenizer:
    """Words as numbers, by how often they are in the texts that it has seen; the most frequent one is 1.

    Args:
        num_words: numbers from this on are left out of what it gives.
        filters, lower, split: those of `text_to_word_sequence`.
        char_level: whether characters stand for words.
        oov_token: a word for all that are unknown or left out; its number is 1.
        analyzer: from a text to its words, instead of the above.
        document_count: how many texts it has seen.
    Attributes:
        word_counts: how often each word was seen, in the order of first sight.
        word_docs: in how many texts each word was.
        word_index, index_word: the numbers of words, and the words of numbers.
        index_docs: in how many texts the word of each number was.
    Raises:
        TypeError: there is no such argument.

    >>> import twofold as tf
    >>> tokenizer = tf.keras.preprocessing.text.Tokenizer(oov_token="?")
    >>> tokenizer.fit_on_texts(["The cat sat.", "The dog sat, the cat ran."])
    >>> tokenizer.texts_to_sequences(["the dog flew"])
    [[2, 5, 1]]
    """

    def __init__(self, num_words: int | None = None, filters: str = _FILTERS, lower: bool = True, split: str = " ",
                 char_level: bool = False, oov_token: str | None = None,
                 analyzer: Callable[[str], Iterable[str]] | None = None, document_count: int = 0):
        self.num_words, self.filters, self.lower, self.split = num_words, filters, lower, split
        self.char_level, self.oov_token, self.analyzer = char_level, oov_token, analyzer
        self.document_count = document_count
        self.word_counts: dict[str, int] = {}
        self.word_docs: dict[str, int] = {}
        self.index_docs: dict[int, int] = {}
        self.word_index: dict[str, int] = {}
        self.index_word: dict[int, str] = {}

    def _words(self, text: Any) -> Iterable[str]:
        if self.char_level or isinstance(text, list):
            if not self.lower:
                return text
            return [word.lower() for word in text] if isinstance(text, list) else text.lower()
        if self.analyzer is not None:
            return self.analyzer(text)
        return text_to_word_sequence(text, self.filters, self.lower, self.split)

    def fit_on_texts(self, texts: Iterable[Any]) -> None:
        """Learn the words of texts, or of lists of words; they add to those of earlier calls."""
        counts, documents = Counter(self.word_counts), Counter(self.word_docs)
        for text in texts:
            self.document_count += 1
            words = list(self._words(text))
            counts.update(words)
            documents.update(set(words))
        self.word_counts, self.word_docs = dict(counts), dict(documents)
        ordered = sorted(self.word_counts, key=lambda word: -self.word_counts[word])
        listed = ordered if self.oov_token is None else [self.oov_token, *ordered]
        # where the token is among the words, its later number holds
        self.word_index = {word: number for number, word in enumerate(listed, 1)}
        self.index_word = {number: word for word, number in self.word_index.items()}
        self.index_docs.update({self.word_index[word]: count for word, count in self.word_docs.items()})

    def fit_on_sequences(self, sequences: Sequence[Iterable[int]]) -> None:
        """Learn in how many sequences of numbers each number is, for the mode "tfidf"."""
        self.document_count += len(sequences)
        for sequence in sequences:
            for number in set(sequence):
                self.index_docs[number] = self.index_docs.get(number, 0) + 1

    def _kept(self, number: int | None) -> int | None:
        """A number, that of unknown words in its place, or None."""
        if number is not None and not (self.num_words and number >= self.num_words):
            return number
        return self.word_index.get(self.oov_token) if self.oov_token is not None else None

    def texts_to_sequences_generator(self, texts: Iterable[Any]) -> Iterator[list[int]]:
        """The numbers of the words of each text, one text after another."""
        for text in texts:
            numbers = [self._kept(self.word_index.get(word)) for word in self._words(text)]
            yield [number for number in numbers if number is not None]

    def texts_to_sequences(self, texts: Iterable[Any]) -> list[list[int]]:
        """The numbers of the words of each text; unknown ones and those left out are `oov_token`'s, if any."""
        return list(self.texts_to_sequences_generator(texts))

    def sequences_to_texts_generator(self, sequences: Iterable[Iterable[int]]) -> Iterator[str]:
        """The words of each sequence of numbers, one sequence after another."""
        for sequence in sequences:
            numbers = [self._kept(number if number in self.index_word else None) for number in sequence]
            yield " ".join([self.index_word[number] for number in numbers if number is not None])

    def sequences_to_texts(self, sequences: Iterable[Iterable[int]]) -> list[str]:
        """The words of each sequence of numbers, with spaces between them."""
        return list(self.sequences_to_texts_generator(sequences))

    def texts_to_matrix(self, texts: Iterable[Any], mode: str = "binary") -> np.ndarray:
        """A row for each text; see `sequences_to_matrix`."""
        return self.sequences_to_matrix(self.texts_to_sequences(texts), mode)

    def sequences_to_matrix(self, sequences: Sequence[Sequence[int]], mode: str = "binary") -> np.ndarray:
        """A row for each sequence of numbers, with a column for each number.

        Args:
            sequences: lists of numbers.
            mode: "binary" for whether a number is there, "count" for how often, "freq" for its share of the sequence,
                "tfidf" for how often, against how many texts it is in.
        Returns:
            float64 [sequences, num_words], or with one column more than there are words.
        Raises:
            ValueError: there is no such mode, or too little is known for it.
        """
        if mode not in _MODES:
            raise ValueError(f"Unknown vectorization mode: {mode}")
        if not self.num_words and not self.word_index:
            raise ValueError("Specify a dimension (`num_words` argument), or fit on some text data first.")
        if mode == "tfidf" and not self.document_count:
            raise ValueError("Fit the Tokenizer on some data before using tfidf mode.")
        columns = self.num_words or len(self.word_index) + 1
        matrix = np.zeros((len(sequences), columns))
        for row, sequence in zip(matrix, sequences, strict=True):
            for number, count in Counter([n for n in sequence if n < columns]).items():
                row[number] = self._weight(mode, number, count, len(sequence))
        return matrix

    def _weight(self, mode: str, number: int, count: int, length: int) -> float:
        if mode == "tfidf":
            rarity = np.log(1 + self.document_count / (1 + self.index_docs.get(number, 0)))
            return (1 + np.log(count)) * rarity
        return {"binary": 1.0, "count": float(count), "freq": count / length}[mode]

    def get_config(self) -> dict[str, Any]:
        """The arguments, and as JSON what it has learned."""
        names = ("num_words", "filters", "lower", "split", "char_level", "oov_token", "document_count")
        learned = ("word_counts", "word_docs", "index_docs", "index_word", "word_index")
        return {name: getattr(self, name) for name in names} | {
            name: json.dumps(getattr(self, name)) for name in learned}

    def to_json(self, **kwargs: Any) -> str:
        """The tokenizer as JSON; `kwargs` are those of `json.dumps`."""
        return json.dumps({"class_name": type(self).__name__, "config": self.get_config()}, **kwargs)


@public
def tokenizer_from_json(json_string: str) -> Tokenizer:
    """The tokenizer that `Tokenizer.to_json` wrote.

    Args:
        json_string: what it gave.
    Raises:
        ValueError: it is no such text.

    >>> import twofold as tf
    >>> tokenizer = tf.keras.preprocessing.text.Tokenizer()
    >>> tokenizer.fit_on_texts(["a b a"])
    >>> tf.keras.preprocessing.text.tokenizer_from_json(tokenizer.to_json()).word_index
    {'a': 1, 'b': 2}
    """
    config = json.loads(json_string).get("config")
    if not isinstance(config, dict):
        raise ValueError("This is no tokenizer: it has no config.")
    learned = {name: json.loads(config.pop(name)) for name in ("word_counts", "word_docs", "index_docs", "index_word",
                                                               "word_index")}
    for name in ("index_docs", "index_word"):  # JSON has only texts for keys
        learned[name] = {int(number): value for number, value in learned[name].items()}
    tokenizer = Tokenizer(**config)
    for name, value in learned.items():
        setattr(tokenizer, name, value)
    return tokenizer


publish(__name__)
