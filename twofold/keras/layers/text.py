"""`TextVectorization`: texts as the numbers of their words, or as vectors of how often words are in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import as_numpy

from ..composites import in_mode, result
from ..configs import config_of
from ..encoding import sparse_if
from ..serialization import deserialize_keras_object, serialize_keras_object
from ._declared import DeclaredLayer, Shape
from .lookup import StringLookup, as_bytes, by_python
from .preprocessing import batches_of

__all__ = ["TextVectorization"]

_PUNCTUATION = bytes.maketrans(b"", b""), b"!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~'"
_MARKS = r"[!\"#$%&()*+,\-./:;<=>?@\[\\\]^_`{|}~']"
_STANDARDIZED: dict[Any, Callable[[bytes], bytes]] = {
    None: lambda text: text,
    "lower": bytes.lower,
    "strip_punctuation": lambda text: text.translate(*_PUNCTUATION),
    "lower_and_strip_punctuation": lambda text: text.lower().translate(*_PUNCTUATION),
}
_SPLIT: dict[Any, Callable[[bytes], list[bytes]]] = {
    None: lambda text: [text],
    "whitespace": bytes.split,
    "character": lambda text: [c.encode() for c in text.decode("utf-8", "replace")],
}


class TextVectorization(DeclaredLayer):
    """Texts made plain, split into words, and the words put into numbers.

    Args:
        max_tokens: the largest size of the vocabulary, special tokens included; None for no limit.
        standardize: "lower_and_strip_punctuation", "lower", "strip_punctuation", None, or a function of a string
            tensor that gives one of the same shape.
        split: "whitespace", "character", None, or a function of a string tensor [texts] that gives one [texts, words]
            (empty words are left out), or a ragged one.
        ngrams: up to how many words in a row count as one, besides the words; or a tuple of numbers of words.
        output_mode: "int" for the numbers of words; "multi_hot", "count" or "tf_idf" for a vector for each text,
            "one_hot" for one for each word.
        output_sequence_length: how many numbers a text gets: cut or filled up with 0; by default as many as the longest
            of a batch.
        pad_to_max_tokens: whether vectors have `max_tokens` places, whatever the size of the vocabulary.
        vocabulary: the words, or the name of a file with one on each line; else `adapt` finds them.
        idf_weights: for "tf_idf", the weight of each word.
        sparse: whether vectors are sparse tensors.
        ragged: whether the numbers of words are a ragged tensor, with as many for each text as it has words; with "int"
            alone.
        encoding: "utf-8".
        name, kwargs: those of `Layer`.
    Inputs: strings [texts] or [texts, 1], or a single one; with `split=None` also ragged ones. Outputs: int64 [texts,
        words], in which 0 is no word and 1 an unknown word (of the shape of the inputs with `split=None`); or [texts,
        vocabulary], of int64 unless there is another integer `dtype`, of floats for "tf_idf".
    Raises:
        ValueError: the arguments do not go together.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.TextVectorization(output_sequence_length=4)
    >>> layer.adapt(["The cat sat.", "The dog sat!", "A cat?"])
    >>> layer.get_vocabulary()
    ['', '[UNK]', 'the', 'sat', 'cat', 'dog', 'a']
    >>> layer(["the cat ran"]).numpy().tolist()
    [[2, 4, 1, 0]]
    """

    _arguments = ("max_tokens", "standardize", "split", "ngrams", "output_mode", "output_sequence_length",
                  "pad_to_max_tokens", "sparse", "ragged", "vocabulary", "idf_weights", "encoding")

    def __init__(self, max_tokens: int | None = None, standardize: Any = "lower_and_strip_punctuation",
                 split: Any = "whitespace", ngrams: Any = None, output_mode: str = "int",
                 output_sequence_length: int | None = None, pad_to_max_tokens: bool = False, vocabulary: Any = None,
                 idf_weights: Any = None, sparse: bool = False, ragged: bool = False, encoding: str = "utf-8",
                 name: str | None = None, **kwargs: Any):
        if output_mode not in ("int", "one_hot", "multi_hot", "count", "tf_idf"):
            raise ValueError("`output_mode` must be 'int', 'one_hot', 'multi_hot', 'count' or 'tf_idf'. "
                             f"Received: {output_mode!r}")
        if kwargs.get("dtype") is None and output_mode != "tf_idf":
            kwargs["dtype"] = "int64"
        super().__init__(name=name, **kwargs)
        self.autocast = False
        if not callable(standardize) and standardize not in _STANDARDIZED:
            raise ValueError(f"`standardize` must be one of {list(_STANDARDIZED)} or a function. "
                             f"Received: {standardize!r}")
        if not callable(split) and split not in _SPLIT:
            raise ValueError(f"`split` must be one of {list(_SPLIT)} or a function. Received: {split!r}")
        if ragged and output_mode != "int":
            raise ValueError("`ragged` must not be true if `output_mode` is not 'int'. Received: "
                             f"ragged={ragged} and output_mode={output_mode}")
        if output_mode != "int" and output_sequence_length is not None:
            raise ValueError("`output_sequence_length` must not be set if `output_mode` is not 'int'. "
                             f"Received: output_sequence_length={output_sequence_length}")
        if output_sequence_length is not None and not (isinstance(output_sequence_length, int)
                                                       and output_sequence_length > 0):
            raise ValueError("`output_sequence_length` must be either None or an integer greater than 0. "
                             f"Received: output_sequence_length={output_sequence_length}")
        self.max_tokens, self.standardize, self.split, self.output_mode = max_tokens, standardize, split, output_mode
        self.output_sequence_length, self.pad_to_max_tokens = output_sequence_length, pad_to_max_tokens
        self.sparse, self.ragged = sparse_if(sparse, output_mode), bool(ragged)
        self.encoding, self.ngrams = encoding, ngrams
        self._widths = _widths(ngrams)
        self._lookup_layer = StringLookup(
            max_tokens, mask_token="" if output_mode == "int" else None, vocabulary=vocabulary,
            idf_weights=idf_weights, output_mode=output_mode, pad_to_max_tokens=pad_to_max_tokens, encoding=encoding,
            sparse=self.sparse, dtype=self.dtype_policy)
        self.built = True

    # -- words ------------------------------------------------------------------------------------
    def _words(self, texts: np.ndarray) -> list[list[bytes]]:
        """The words of each text, and the rows of words that count as one."""
        given = texts.ravel()
        if callable(self.standardize):
            given = np.asarray(self.standardize(tf.constant(given, tf.string))).ravel()
        plain = [as_bytes(text) for text in given.tolist()]
        if not callable(self.standardize):
            plain = [_STANDARDIZED[self.standardize](text) for text in plain]
        if callable(self.split):
            split = self.split(tf.constant(plain, tf.string))
            rows = split.to_list() if isinstance(split, tf.RaggedTensor) else np.asarray(split).tolist()
            rows_of_words = [[as_bytes(word) for word in (row if isinstance(row, list) else [row]) if as_bytes(word)]
                             for row in rows]
        else:
            rows_of_words = [_SPLIT[self.split](text) for text in plain]
        if self._widths is None:
            return rows_of_words
        return [[b" ".join(words[start:start + width]) for width in self._widths
                 for start in range(len(words) - width + 1)] for words in rows_of_words]

    def _numbers(self, texts: np.ndarray) -> np.ndarray:
        """The places of words, as many for each text: 0 (or -1, in vectors) where there are no more."""
        rows = self._words(texts)
        longest = self.output_sequence_length or max(map(len, rows), default=0)
        kept = [words[:longest] for words in rows]
        lengths = np.array([len(words) for words in kept], np.int64)
        table = np.full((len(rows), longest), self._no_word, np.int64)
        flat = np.array([*[word for words in kept for word in words], b""], object)[:-1]
        table[np.arange(longest) < lengths[:, np.newaxis]] = self._lookup_layer._find(flat)
        return table

    @property
    def _no_word(self) -> int:
        return 0 if self.output_mode == "int" else -1

    def _numbers_in_rows(self, texts: np.ndarray) -> list[np.ndarray]:
        """The places of words one text after the other, and how many each has."""
        rows = [words[:self.output_sequence_length] for words in self._words(texts)]
        flat = np.array([*[word for words in rows for word in words], b""], object)[:-1]
        return [np.asarray(self._lookup_layer._find(flat)), np.array([len(words) for words in rows], np.int64)]

    def _rows(self, x: Any, by_name: bool) -> Any:
        """The places of words as a ragged tensor.

        Args:
            x: a vector of texts, or ragged words.
            by_name: whether there are no functions of the user's.
        """
        if by_name:
            return self._staged_rows(x)[:, :self.output_sequence_length]
        words = x.flat_values if isinstance(x, tf.RaggedTensor) else x
        specs = [tf.TensorSpec([None], tf.int64)] * 2
        rows = tf.RaggedTensor.from_row_lengths(*tf.numpy_function(self._numbers_in_rows, [words], specs))
        return x.with_flat_values(rows.values) if isinstance(x, tf.RaggedTensor) else rows

    def _staged_rows(self, x: Any) -> Any:
        """The places of words as a ragged tensor, made of functions of strings, for what is told by name."""
        how = self.standardize or ""
        x = tf.strings.lower(x) if "lower" in how else x
        x = tf.strings.regex_replace(x, _MARKS, "") if "strip" in how else x
        if isinstance(x, tf.RaggedTensor):
            rows = x
        elif self.split is None:
            rows = tf.RaggedTensor.from_tensor(x[:, tf.newaxis])
        else:
            rows = tf.strings.split(x) if self.split == "whitespace" else tf.strings.unicode_split(x, "UTF-8")
        if self._widths is not None:
            rows = tf.strings.ngrams(rows, self._widths)
        return rows.with_flat_values(self._lookup_layer._find(rows.flat_values))

    def _padded(self, rows: Any) -> Any:
        """Places of words with as many for each text."""
        return rows.to_tensor(self._no_word, shape=[None, self.output_sequence_length])

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        x = in_mode(inputs)
        if x.dtype != tf.string:
            raise ValueError(f"TextVectorization takes strings. Received: {x.dtype.name}")
        by_name = not callable(self.standardize) and not callable(self.split)
        if isinstance(x, tf.RaggedTensor) and self.split is None:
            return self._of_rows(self._rows(x, by_name))
        if self.split is None and self._widths is None and self.output_mode == "int":
            if by_name:
                return tf.reshape(self._padded(self._staged_rows(tf.reshape(x, [-1]))), tf.shape(x))
            return by_python(lambda texts: self._numbers(texts).reshape(texts.shape), x, x.shape, tf.int64)
        single = len(x.shape) == 0
        if len(x.shape) > 1:
            if x.shape[-1] != 1 or len(x.shape) > 2:
                raise ValueError("When using `TextVectorization` to tokenize strings, the input rank must be 1 or the "
                                 f"last shape dimension must be 1. Received: inputs.shape={tuple(x.shape)} with "
                                 f"rank={len(x.shape)}")
            x = tf.squeeze(x, -1)
        x = tf.reshape(x, [1]) if single else x
        if self.ragged:
            rows = self._of_rows(self._rows(x, by_name))
            return rows[0] if single else rows
        places = self._padded(self._staged_rows(x)) if by_name else by_python(
            self._numbers, x, [x.shape[0], self.output_sequence_length], tf.int64)
        outputs = self._lookup_layer.of_places(places)
        return outputs[0] if single else outputs

    def _of_rows(self, rows: Any) -> Any:
        """The outputs for ragged places of words."""
        if self.output_mode != "int":
            return self._lookup_layer.of_places(rows)
        return rows if self.ragged else self._padded(rows)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        batch = tuple(input_shape)[:1]
        if self.output_mode == "int" and self.split is None and self._widths is None:
            return tuple(input_shape)
        if self.output_mode == "one_hot":
            return (*batch, self.output_sequence_length, self._lookup_layer._known_depth())
        return (*batch, self.output_sequence_length if self.output_mode == "int" else self._lookup_layer._known_depth())

    def compute_output_spec(self, inputs: Any) -> Any:
        """The spec of the outputs."""
        shape = self.compute_output_shape(inputs.shape)
        as_given = self.split is None and self._widths is None
        ragged = self.ragged and (not as_given or getattr(inputs, "ragged", False))
        return result((shape[0], None) if ragged else shape, self._lookup_layer.value_dtype, self.sparse, ragged)

    # -- the vocabulary ---------------------------------------------------------------------------
    def adapt(self, data: Any, batch_size: int | None = None, steps: int | None = None) -> None:
        """Make a vocabulary of texts: the most frequent words first.

        Args:
            data: texts in an array, a list or a tensor, or a dataset or another iterable of batches.
            batch_size: accepted, without effect.
            steps: how many batches are read; all by default.
        Raises:
            ValueError: the vocabulary was given.
        """
        self.reset_state()
        for batch in batches_of(data, steps):
            self.update_state(batch)
        self.finalize_state()

    def update_state(self, data: Any) -> None:
        """Count the words of a batch of texts."""
        self._lookup_layer.update_state([np.array([*words, None], object)[:-1] for words in self._words(
            as_numpy(data))])

    def finalize_state(self) -> None:
        """Make the vocabulary of what was counted."""
        self._lookup_layer.finalize_state()

    def reset_state(self) -> None:
        """Forget what `adapt` learnt."""
        self._lookup_layer.reset_state()

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[str]:
        """The words in the order of their numbers; see `StringLookup`."""
        return self._lookup_layer.get_vocabulary(include_special_tokens)

    def vocabulary_size(self) -> int:
        """How many numbers there are, those for no word and for unknown words included."""
        return self._lookup_layer.vocabulary_size()

    def set_vocabulary(self, vocabulary: Any, idf_weights: Any = None) -> None:
        """Set the words; see `StringLookup`."""
        self._lookup_layer.set_vocabulary(vocabulary, idf_weights)

    def save_own_variables(self, store: Any) -> None:
        """Write the weights of words, where there are."""
        self._lookup_layer.save_own_variables(store)

    def load_own_variables(self, store: Any) -> None:
        """Read the weights of words."""
        self._lookup_layer.load_own_variables(store)

    # -- configs ----------------------------------------------------------------------------------
    def _argument(self, name: str) -> Any:
        if name in ("vocabulary", "idf_weights"):
            return self._lookup_layer._argument(name)
        value = super()._argument(name)
        if callable(value):
            return serialize_keras_object(value)
        return value

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """A layer made from what `get_config` gave."""
        config = config_of(config)
        made = {k: deserialize_keras_object(v) if k in ("standardize", "split") and isinstance(v, dict) else v
                for k, v in config.items() if k not in ("trainable", "vocabulary_size")}
        if isinstance(made.get("ngrams"), list):
            made["ngrams"] = tuple(made["ngrams"])
        return super().from_config(made)


def _widths(ngrams: Any) -> tuple[int, ...] | None:
    widths = None if ngrams is None else tuple(range(1, ngrams + 1)) if isinstance(ngrams, int) else ngrams
    if widths is not None and not (isinstance(widths, tuple) and widths and all(
            isinstance(width, int) and width > 0 for width in widths)):
        raise ValueError("`ngrams` must be None, an integer, or a tuple of integers that are greater than 0. "
                         f"Received: ngrams={ngrams}")
    return widths
