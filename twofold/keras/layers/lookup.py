"""Layers that put words and integers in the place of others: vocabularies, and hashes into buckets.

A vocabulary is two tables of `tf.lookup`, from terms to places and back, so that saved models hold it.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import as_numpy

from ..composites import each, in_mode, is_composite, result
from ..configs import config_of
from ..encoding import encoded, sparse_if
from ..scalars import number
from ._declared import DeclaredLayer, Shape, positive
from .preprocessing import batches_of

__all__ = ["Hashing", "IntegerLookup", "StringLookup"]

_UNKNOWN = -2  # the place of what is not in a vocabulary: -1 is that of the mask
_MODES = ("int", "one_hot", "multi_hot", "count", "tf_idf")


def as_text(value: Any) -> str:
    """A word as a string."""
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def as_bytes(value: Any) -> bytes:
    """A word, or an integer in digits, as bytes."""
    return value if isinstance(value, bytes) else str(value).encode()


def by_python(fn: Any, inputs: Any, shape: Any, dtype: Any) -> Any:
    """The result of a function of arrays for a tensor: computed now, or each time that a traced function runs."""
    return tf.numpy_function(fn, [inputs], tf.TensorSpec(shape, dtype))


class _Lookup(DeclaredLayer):
    """A vocabulary, and the ways from its terms to their places and back.

    The places are: 0 for the mask token, if there is one and outputs are places; then `num_oov_indices` for what is
    not in the vocabulary; then the terms.
    """

    _arguments: tuple[str, ...] = ("max_tokens", "num_oov_indices", "mask_token", "oov_token", "vocabulary",
                                   "idf_weights", "invert", "output_mode", "sparse", "pad_to_max_tokens", "salt")
    _words: bool

    def __init__(self, max_tokens: int | None, num_oov_indices: int, mask_token: Any, oov_token: Any, vocabulary: Any,
                 idf_weights: Any, invert: bool, output_mode: str, pad_to_max_tokens: bool, sparse: bool, salt: Any,
                 **kwargs: Any):
        if output_mode not in _MODES:
            raise ValueError(f"Invalid value for argument `output_mode`. Expected one of {_MODES}. Received: "
                             f"output_mode={output_mode!r}")
        if kwargs.get("dtype") is None:
            kwargs["dtype"] = None if output_mode == "tf_idf" else "string" if invert and self._words else "int64"
        super().__init__(**kwargs)
        self.autocast = False
        if max_tokens is not None and max_tokens <= 1:
            raise ValueError(f"If set, `max_tokens` must be greater than 1. Received: max_tokens={max_tokens}")
        if num_oov_indices < 0:
            raise ValueError("`num_oov_indices` must be greater than or equal to 0. "
                             f"Received: num_oov_indices={num_oov_indices}")
        if invert and (output_mode != "int" or num_oov_indices > 1):
            raise ValueError("`invert=True` needs `output_mode='int'` and at most one `num_oov_indices`. Received: "
                             f"output_mode={output_mode!r}, num_oov_indices={num_oov_indices}")
        if pad_to_max_tokens and max_tokens is None:
            raise ValueError("If `pad_to_max_tokens` is True, `max_tokens` must be set.")
        self.max_tokens, self.num_oov_indices, self.invert = max_tokens, num_oov_indices, invert
        self.mask_token, self.oov_token, self.output_mode = mask_token, oov_token, output_mode
        self.pad_to_max_tokens, self.salt = pad_to_max_tokens, _salt(salt)
        self.sparse = sparse_if(sparse, output_mode)
        self.idf_weights: Any = None
        self._terms: list[Any] = []
        self._tables = self._empty_tables()
        self._is_given = vocabulary is not None
        self.reset_state()
        if vocabulary is not None:
            self.set_vocabulary(vocabulary, idf_weights)
        self.built = True

    # -- the vocabulary ---------------------------------------------------------------------------
    def _key(self, value: Any) -> Any:
        """A term as vocabularies hold it."""
        return as_text(value) if self._words else int(value)

    @property
    def _first_oov(self) -> int:
        return 1 if self.mask_token is not None and self.output_mode == "int" else 0

    @property
    def _first_term(self) -> int:
        return self._first_oov + self.num_oov_indices

    def vocabulary_size(self) -> int:
        """How many places there are, those for the mask and for unknown terms included."""
        return self._first_term + len(self._terms)

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[Any]:
        """The terms in the order of their places.

        Args:
            include_special_tokens: whether the tokens for the mask and for unknown terms are among them.
        """
        if not include_special_tokens:
            return list(self._terms)
        mask = [self.mask_token] if self._first_oov else []
        return [*mask, *[self.oov_token] * self.num_oov_indices, *self._terms]

    def set_vocabulary(self, vocabulary: Any, idf_weights: Any = None) -> None:
        """Set the terms.

        Args:
            vocabulary: the terms in the order of their places, with or without the special tokens before them; or the
                name of a file with a term on each line.
            idf_weights: for "tf_idf", the weight of each term.
        Raises:
            ValueError: terms repeat, there are more than `max_tokens`, or weights are missing, too many or unasked for.
        """
        if isinstance(vocabulary, (str, os.PathLike)):
            with open(vocabulary, encoding="utf-8") as file:
                vocabulary = file.read().splitlines()
        terms = [self._key(term) for term in as_numpy(vocabulary, object).ravel().tolist()]
        special = self.get_vocabulary()[:self._first_term]
        has_special = len(special) > 0 and terms[:len(special)] == special
        rest = terms[len(special):] if has_special else terms
        twice = [term for term, count in Counter(rest).items() if count > 1]
        if twice:
            raise ValueError(f"The passed vocabulary has at least one repeated term: {twice[:5]}. Please uniquify it.")
        misplaced = [t for t in special if t in rest and (self.invert or t != self.oov_token)]
        if misplaced:
            raise ValueError(f"The special tokens {misplaced} are among the terms: a vocabulary should "
                             f"begin with {special}, or be without them.")
        if self.max_tokens is not None and len(rest) + self._first_term > self.max_tokens:
            raise ValueError(f"Attempted to set a vocabulary larger than the maximum vocab size: the size is "
                             f"{len(rest) + self._first_term}; `max_tokens` is {self.max_tokens}.")
        weights = self._weights_of(idf_weights, len(terms), len(rest))
        self._set_terms(rest, weights)

    def _weights_of(self, given: Any, count: int, terms: int) -> Any:
        """Weights for all places; those of unknown terms are the mean."""
        if self.output_mode != "tf_idf":
            if given is not None:
                raise ValueError("`idf_weights` should only be set if output_mode is 'tf_idf'.")
            return None
        if given is None:
            raise ValueError("`idf_weights` must be set if output_mode is 'tf_idf'.")
        weights = np.asarray(given, np.float32)
        if weights.shape != (count,):
            raise ValueError(f"`idf_weights` must be the same length as vocabulary. len(idf_weights) is "
                             f"{weights.size}; len(vocabulary) is {count}")
        return weights if count > terms else np.concatenate([[weights.mean()] * self._first_term, weights])

    def _set_terms(self, terms: list[Any], weights: Any) -> None:
        self._terms = terms
        self._fill_tables()
        if weights is not None:
            short = (self.max_tokens or 0) - len(weights) if self.pad_to_max_tokens else 0
            weights = np.pad(np.asarray(weights, np.float32), (0, max(0, short)))
        self.idf_weights = weights

    # -- learning it ------------------------------------------------------------------------------
    def reset_state(self) -> None:
        """Forget what `adapt` learnt."""
        self._counts: Counter[Any] = Counter()
        self._documents: Counter[Any] = Counter()
        self._document_count = 0
        if not self._is_given:
            self._set_terms([], None)

    def adapt(self, data: Any, batch_size: int | None = None, steps: int | None = None) -> None:
        """Make a vocabulary of data: the most frequent terms first.

        Args:
            data: an array, a list or a tensor, or a dataset or another iterable of batches.
            batch_size: accepted, without effect.
            steps: how many batches are read; all by default.
        Raises:
            ValueError: the vocabulary was given.
        """
        self.reset_state()
        for batch in batches_of(data, steps, composites=True):
            self.update_state(batch)
        self.finalize_state()

    def update_state(self, data: Any) -> None:
        """Count the terms of a batch."""
        if self._is_given:
            raise ValueError(f"Cannot adapt layer '{self.name}' after setting a static vocabulary via `vocabulary` "
                             "argument or `set_vocabulary()` method.")
        if is_composite(data):
            data = _rows_of(data)
        rows = data if isinstance(data, list) else as_numpy(data)
        if isinstance(rows, np.ndarray) and rows.ndim < 2:
            rows = rows.reshape(1, -1)
        for row in rows:
            terms = [self._key(term) for term in as_numpy(row, object).ravel().tolist()]
            self._counts.update(terms)
            self._documents.update(set(terms))
        self._document_count += len(rows)

    def finalize_state(self) -> None:
        """Make the vocabulary of what was counted."""
        if self._is_given or not self._counts:
            return
        special = {self.mask_token, self.oov_token}
        counted = [(count, as_bytes(term) if self._words else term, term) for term, count in self._counts.items()
                 if term not in special]
        room = None if self.max_tokens is None else self.max_tokens - self._first_term
        terms = [term for _, _, term in sorted(counted, reverse=True)[:room]]
        weights = None
        if self.output_mode == "tf_idf":
            seen = np.array([self._documents[term] for term in terms], np.float64)
            known = np.log(1 + self._document_count / (1 + seen))
            weights = np.concatenate([[known.mean()] * self._first_term, known])
        self._set_terms(terms, weights)

    # -- looking up -------------------------------------------------------------------------------
    def _empty_tables(self) -> tuple[Any, Any]:
        """Tables from terms to places and back, which functions capture; the vocabulary may change afterwards."""
        table = tf.lookup.experimental.MutableHashTable
        terms = tf.string if self._words else tf.int64
        unknown = self._spelt(self.oov_token)[0] if self.oov_token is not None else b"" if self._words else -1
        return (table(terms, tf.int64, _UNKNOWN, checkpoint=False), table(tf.int64, terms, unknown, checkpoint=False))

    def _spelt(self, *terms: Any) -> np.ndarray:
        """Terms as tables have them."""
        if not self._words:
            return np.array(terms, np.int64)
        made = np.empty(len(terms), object)
        made[:] = [as_bytes(term) for term in terms]
        return made

    def _fill_tables(self) -> None:
        first, (places, terms) = self._first_term, self._tables
        known = self._spelt(*self._terms)
        places._replace(known, np.arange(first, first + len(known)))
        if self.mask_token is not None and self.mask_token not in self._terms:
            places.insert(self._spelt(self.mask_token), np.array([0 if self.output_mode == "int" else -1]))
        vocabulary = self._spelt(*self.get_vocabulary())
        terms._replace(np.arange(len(vocabulary)), vocabulary)

    def _buckets(self, terms: Any) -> Any:
        """The places of terms among those for unknown ones."""
        texts = terms if self._words else tf.strings.as_string(terms)
        if self.salt is None:
            return tf.strings.to_hash_bucket_fast(texts, self.num_oov_indices)
        return tf.strings.to_hash_bucket_strong(texts, self.num_oov_indices, self.salt)

    def _find(self, terms: Any) -> Any:
        """The places of terms: a tensor of strings, or of int64."""
        places = self._tables[0].lookup(terms)
        if self.num_oov_indices == 0:
            return by_python(self._all_known, places, places.shape, tf.int64)
        buckets = tf.zeros_like(places) if self.num_oov_indices == 1 else self._buckets(terms)
        return tf.where(places == _UNKNOWN, buckets + self._first_oov, places)

    def _all_known(self, places: np.ndarray) -> np.ndarray:
        if (places == _UNKNOWN).any():
            raise ValueError("When `num_oov_indices=0` all inputs should be in vocabulary, found an OOV value, "
                             "consider setting `num_oov_indices=1`.")
        return places

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        x = in_mode(inputs)
        if isinstance(x, tf.SparseTensor) and not self._words and not self.invert:
            x = tf.sparse.to_dense(x)  # as Keras has it: of integers, those between count
        if self.invert:
            terms = each(lambda places: self._tables[1].lookup(tf.cast(places, tf.int64)), x)
            return terms if terms.dtype is self.value_dtype else tf.cast(terms, self.value_dtype)
        return self.of_places(each(lambda values: self._find(self._as_terms(values)), x))

    def _as_terms(self, x: Any) -> Any:
        if not self._words:
            return tf.cast(x, tf.int64)
        return x if x.dtype is tf.string else tf.strings.as_string(x)

    def of_places(self, places: Any) -> Any:
        """The outputs for the places of terms."""
        dtype = self.value_dtype
        if self.output_mode == "int":
            return places if dtype is tf.int64 else tf.cast(places, dtype)
        mode = "count" if self.output_mode == "tf_idf" else self.output_mode
        outputs = encoded(places, self._depth(), mode, dtype, sparse=self.sparse)
        if self.output_mode != "tf_idf":
            return outputs
        weights = number(self.idf_weights, outputs.dtype)
        if self.sparse:
            return outputs.with_values(outputs.values * tf.gather(weights, outputs.indices[:, -1]))
        return outputs * weights

    @property
    def value_dtype(self) -> Any:
        """The dtype of outputs: weights are floating, all else are integers whatever Keras's configs say."""
        if self.invert:
            return tf.string if self._words else tf.int64
        dtype = tf.as_dtype(self.compute_dtype)
        return dtype if self.output_mode == "tf_idf" or dtype.is_integer else tf.int64

    def _depth(self) -> int:
        return int(self.max_tokens) if self.pad_to_max_tokens and self.max_tokens else self.vocabulary_size()

    def _known_depth(self) -> int | None:
        """The size of encoded outputs; None before there is a vocabulary, unless it does not depend on that."""
        return self._depth() if self._terms or (self.pad_to_max_tokens and self.max_tokens) else None

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        shape = tuple(input_shape)
        if self.output_mode == "int":
            return shape
        if self.output_mode == "one_hot" and (len(shape) < 2 or shape[-1] != 1):
            return (*shape, self._known_depth())
        return (*shape[:-1], self._known_depth())

    def compute_output_spec(self, inputs: Any) -> Any:
        """The spec of the outputs."""
        like = self.output_mode == "int" and (self._words or self.invert)
        return result(self.compute_output_shape(inputs.shape), self.value_dtype,
                      self.sparse or like and getattr(inputs, "sparse", False),
                      self.output_mode in ("int", "one_hot") and getattr(inputs, "ragged", False))

    # -- keeping it -------------------------------------------------------------------------------
    def _argument(self, name: str) -> Any:
        if name == "vocabulary":
            return list(self._terms) if self._terms else None
        if name == "idf_weights":
            return None if self.idf_weights is None else self.idf_weights[
                self._first_term:self.vocabulary_size()].tolist()
        return super()._argument(name)

    def save_own_variables(self, store: Any) -> None:
        """Write the weights of terms, which a vocabulary alone does not tell."""
        if self.output_mode == "tf_idf":
            store["idf_weights"] = np.zeros(0, np.float32) if self.idf_weights is None else self.idf_weights

    def load_own_variables(self, store: Any) -> None:
        """Read the weights of terms."""
        if self.output_mode == "tf_idf" and self.idf_weights is None and "idf_weights" in store:
            self.idf_weights = np.array(store["idf_weights"], np.float32)

    def load_vocabulary(self, lines: list[str]) -> None:
        """Take the terms from the lines of a file that goes with a model's, where the config tells none."""
        if self._terms:
            return
        terms = [self._key(line) for line in lines]
        self._set_terms(terms[self._first_term:], self.idf_weights)
        self._is_given = True

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """A layer made from what `get_config` gave."""
        config = config_of(config)
        kept = {k: v for k, v in config.items() if k not in ("vocabulary_size", "trainable")}
        if not cls._takes_vocabulary_dtype:
            kept.pop("vocabulary_dtype", None)
            kept.pop("oov_method", None)
        return super().from_config(kept)

    _takes_vocabulary_dtype = False


def _rows_of(data: Any) -> list[Any]:
    """The values of each row of a ragged or sparse tensor."""
    if isinstance(data, tf.SparseTensor):
        data = tf.RaggedTensor.from_value_rowids(data.values, data.indices[:, 0], data.dense_shape[0])
    return [row.flat_values if isinstance(row, tf.RaggedTensor) else row for row in data]


def _salt(given: Any) -> tuple[int, int] | None:
    if given is None:
        return None
    if isinstance(given, int):
        return given, given
    if isinstance(given, (list, tuple)) and len(given) == 2:
        return int(given[0]), int(given[1])
    raise ValueError(f"The `salt` argument can only be a tuple of 2 integers or a single integer. Received: {given!r}")


class StringLookup(_Lookup):
    """Words as the numbers of their places in a vocabulary, or back.

    Args:
        max_tokens: the largest size of the vocabulary, special tokens included; None for no limit.
        num_oov_indices: how many places there are for words that are not in it; they are shared by hashes. With 0 such
            a word is an error.
        mask_token: a word that stands for nothing, at place 0; in other modes than "int" it does not count.
        oov_token: what an unknown word becomes on the way back.
        vocabulary: the words, or the name of a file with one on each line; else `adapt` finds them.
        idf_weights: for "tf_idf", the weight of each word.
        invert: whether to go from places to words.
        output_mode: "int" for places; "one_hot", "multi_hot", "count" as for `CategoryEncoding`; "tf_idf" for counts
            times weights.
        pad_to_max_tokens: whether vectors have `max_tokens` places, whatever the size of the vocabulary.
        sparse: whether vectors are sparse tensors.
        encoding: "utf-8".
        salt: a number or two, for other hashes.
        name, kwargs: those of `Layer`.
    Inputs: strings of any shape (places if `invert`), also ragged or sparse. Outputs: int64 of that shape
        (strings), or vectors: of int64 unless `dtype` is another integer type, of floats for "tf_idf".
    Raises:
        ValueError: the arguments do not go together.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.StringLookup()
    >>> layer.adapt([["cat", "dog", "cat"], ["cat", "dog", "ape"]])
    >>> layer.get_vocabulary()
    ['[UNK]', 'cat', 'dog', 'ape']
    >>> layer(["dog", "fox"]).numpy().tolist()
    [2, 0]
    """

    _arguments = (*_Lookup._arguments, "encoding")
    _words = True

    def __init__(self, max_tokens: int | None = None, num_oov_indices: int = 1, mask_token: Any = None,
                 oov_token: Any = "[UNK]", vocabulary: Any = None, idf_weights: Any = None, invert: bool = False,
                 output_mode: str = "int", pad_to_max_tokens: bool = False, sparse: bool = False,
                 encoding: str = "utf-8", name: str | None = None, salt: Any = None, **kwargs: Any):
        if encoding.lower() != "utf-8":
            raise ValueError(f"`encoding` must be 'utf-8'. Received: {encoding!r}")
        super().__init__(max_tokens, num_oov_indices, mask_token, oov_token, vocabulary, idf_weights, invert,
                         output_mode, pad_to_max_tokens, sparse, salt, name=name, **kwargs)
        self.encoding = encoding


class IntegerLookup(_Lookup):
    """Integers as the numbers of their places in a vocabulary, or back.

    Args:
        max_tokens, num_oov_indices, mask_token, oov_token, vocabulary, idf_weights, invert, output_mode,
        pad_to_max_tokens, sparse, salt: as for `StringLookup`, of integers.
        vocabulary_dtype: "int64" or "int32".
        oov_method: how unknown integers share several places: "floormod", or "farmhash" for hashes.
        name, kwargs: those of `Layer`.
    Inputs: integers of any shape. Outputs: as of `StringLookup`.
    Raises:
        ValueError: the arguments do not go together.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.IntegerLookup(vocabulary=[12, 36, 1138])
    >>> layer(tf.constant([[36, 12], [7, 1138]])).numpy().tolist()
    [[2, 1], [0, 3]]
    """

    _arguments = (*_Lookup._arguments, "vocabulary_dtype", "oov_method")
    _words = False
    _takes_vocabulary_dtype = True

    def __init__(self, max_tokens: int | None = None, num_oov_indices: int = 1, mask_token: Any = None,
                 oov_token: Any = -1, vocabulary: Any = None, vocabulary_dtype: str = "int64",
                 idf_weights: Any = None, invert: bool = False, output_mode: str = "int", sparse: bool = False,
                 pad_to_max_tokens: bool = False, oov_method: str = "floormod", salt: Any = None,
                 name: str | None = None, **kwargs: Any):
        if vocabulary_dtype not in ("int64", "int32"):
            raise ValueError("`vocabulary_dtype` must be one of {'int32', 'int64'}. "
                             f"Received: vocabulary_dtype={vocabulary_dtype}")
        if oov_method not in ("floormod", "farmhash"):
            raise ValueError(f"`oov_method` must be 'floormod' or 'farmhash'. Received: {oov_method!r}")
        self.vocabulary_dtype, self.oov_method = vocabulary_dtype, oov_method
        super().__init__(max_tokens, num_oov_indices, mask_token, oov_token, vocabulary, idf_weights, invert,
                         output_mode, pad_to_max_tokens, sparse, salt, name=name, **kwargs)

    def _buckets(self, terms: Any) -> Any:
        return terms % self.num_oov_indices if self.oov_method == "floormod" else super()._buckets(terms)


class Hashing(DeclaredLayer):
    """Words or integers as the numbers of buckets, by their hashes: TensorFlow's, so the same buckets.

    Args:
        num_bins: how many buckets there are.
        mask_value: what goes to bucket 0, where nothing else goes then.
        salt: a number or two, for other hashes (SipHash instead of FarmHash).
        output_mode: "int" for numbers of buckets, or "one_hot", "multi_hot", "count" as for `CategoryEncoding`.
        sparse: whether vectors are sparse tensors.
        kwargs: those of `Layer`.
    Inputs: strings or integers of any shape, also ragged or sparse. Outputs: int64 of that shape, or floating vectors.

    >>> import twofold as tf
    >>> tf.keras.layers.Hashing(num_bins=3)([["A"], ["B"], ["C"], ["D"], ["E"]]).numpy().ravel().tolist()
    [1, 0, 1, 1, 2]
    """

    _arguments = ("num_bins", "salt", "mask_value", "output_mode", "sparse")

    def __init__(self, num_bins: int, mask_value: Any = None, salt: Any = None, output_mode: str = "int",
                 sparse: bool = False, **kwargs: Any):
        if output_mode not in _MODES[:4]:
            raise ValueError(f"Invalid value for argument `output_mode`. Expected one of {_MODES[:4]}. Received: "
                             f"output_mode={output_mode!r}")
        if kwargs.get("dtype") is None and output_mode == "int":
            kwargs["dtype"] = "int64"
        super().__init__(**kwargs)
        self.autocast = False
        self.num_bins, self.mask_value = positive(num_bins, "num_bins"), mask_value
        self.output_mode, self.sparse, self.salt = output_mode, sparse_if(sparse, output_mode), _salt(salt)

    def _hash(self, x: Any) -> Any:
        texts = x if x.dtype is tf.string else tf.strings.as_string(x)
        kept = 0 if self.mask_value is None or self.num_bins == 1 else 1
        count = self.num_bins - kept
        bins = kept + (tf.strings.to_hash_bucket_fast(texts, count) if self.salt is None
                       else tf.strings.to_hash_bucket_strong(texts, count, self.salt))
        if self.mask_value is None:
            return bins
        return tf.where(texts == as_bytes(self.mask_value), tf.zeros_like(bins), bins)

    def call(self, inputs: Any) -> Any:
        """The outputs for `inputs`."""
        bins = each(self._hash, in_mode(inputs))
        if self.output_mode == "int":
            return bins if self.compute_dtype == "int64" else tf.cast(bins, self.compute_dtype)
        return encoded(bins, self.num_bins, self.output_mode, self.compute_dtype, sparse=self.sparse)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of a shape."""
        shape = tuple(input_shape)
        if self.output_mode == "int":
            return shape
        keeps = self.output_mode == "one_hot" and (len(shape) < 2 or shape[-1] != 1)
        return (*shape, self.num_bins) if keeps else (*shape[:-1], self.num_bins)

    def compute_output_spec(self, inputs: Any) -> Any:
        """The spec of the outputs."""
        like = self.output_mode == "int" and getattr(inputs, "sparse", False)
        return result(self.compute_output_shape(inputs.shape), self.compute_dtype, self.sparse or like,
                      self.output_mode in ("int", "one_hot") and getattr(inputs, "ragged", False))
