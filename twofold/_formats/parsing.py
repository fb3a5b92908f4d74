"""`tf.io.parse_example` and its like: what records of `tf.train.Example` hold, as tensors.

A record is read by a function of Python each time that this is reached; the shapes come from what is asked for. What
is asked for is plain data there, so that saved models can hold it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold.ir.spec import TensorShape, TensorSpec

from .._front.api import mapped, public
from .._front.hosted import hosted
from .parsed_lists import RaggedFeature, SparseFeature, VarLenFeature, assembled, keys_of

__all__ = ["FixedLenFeature", "FixedLenSequenceFeature", "RaggedFeature", "SparseFeature", "VarLenFeature",
           "parse_example", "parse_sequence_example", "parse_single_example", "parse_single_sequence_example"]


class FixedLenFeature(NamedTuple):
    """A feature of as many values as a shape has.

    Attributes:
        shape: of the tensor, all sizes known.
        dtype: tf.float32, tf.int64 or tf.string.
        default_value: for records without it; without a default they are an error.

    >>> import twofold as tf
    >>> tf.io.FixedLenFeature([2], tf.float32).shape
    [2]
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """A feature of any number of parts of one shape.

    Attributes:
        shape: of a part, all sizes known.
        dtype: tf.float32, tf.int64 or tf.string.
        allow_missing: whether a record may be without it, and then has no part.
        default_value: what fills shorter ones in a batch; 0, or "".
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


_LISTS = {"string": "bytes_list", "float32": "float_list", "int64": "int64_list"}


class _Plain(NamedTuple):
    """A feature that is asked for, as plain data.

    Attributes:
        several: whether there are any number of parts.
        default: the values of the default, flat; one serves all places.
    """

    name: str
    dtype: tf.DType
    shape: tuple[int, ...]
    several: bool
    optional: bool
    default: list[Any] | None


def _plain(name: str, form: Any) -> _Plain:
    """A feature as plain data.

    Raises:
        ValueError: it is none, or asks for what cannot be.
    """
    if not isinstance(form, (FixedLenFeature, FixedLenSequenceFeature)):
        raise ValueError(f"parse_example: {name!r}: features are tf.io.FixedLenFeature, FixedLenSequenceFeature, "
                         f"VarLenFeature, RaggedFeature and SparseFeature; got {form!r}")
    dtype, shape = tf.as_dtype(form.dtype), TensorShape(form.shape)
    if shape.dims is None or any(d is None for d in shape.as_list()):
        raise ValueError(f"First dimension of shape for feature {name} unknown. Consider using "
                         "FixedLenSequenceFeature.")
    if dtype.name not in _LISTS:
        raise ValueError(f"parse_example: {name!r}: dtype must be float32, int64 or string; got {dtype.name}")
    sizes, several = tuple([int(d or 0) for d in shape.as_list()]), isinstance(form, FixedLenSequenceFeature)
    default = None
    if form.default_value is not None:
        array = np.asarray(engine.array_of(tf.constant(form.default_value, dtype)))
        if not several and array.size != 1 and array.shape != sizes:
            raise ValueError(f"parse_example: {name!r}: the default value has shape {array.shape}, the feature {sizes}")
        default = array.ravel().tolist()
    ragged = isinstance(form, FixedLenSequenceFeature) and bool(form.allow_missing)
    return _Plain(name, dtype, sizes, several, ragged, default)


class _Wanted:
    """A feature that is asked for, which takes values out of records."""

    def __init__(self, plain: Sequence[Any]) -> None:
        self.name, self.dtype, shape, self.several, self.optional, default = plain
        self.kind, self.shape, self.size = _LISTS[self.dtype.name], tuple(shape), math.prod(shape)
        self.default = None if default is None else self.array(default)
        if self.default is not None and not self.several:
            self.default = (np.broadcast_to(self.default.reshape(()), self.shape) if self.default.size == 1
                            else self.default.reshape(self.shape))

        self.alone = self.spec(())  # of the tensor for one record

    def spec(self, lead: tuple[Any, ...]) -> TensorSpec:
        """Of the tensor for records of a batch's shape."""
        return TensorSpec((*lead, *((None,) if self.several else ()), *self.shape), self.dtype)

    def array(self, values: list[Any]) -> np.ndarray:
        """Values as an array, flat."""
        if self.dtype != tf.string:
            return np.array(values, self.dtype.as_numpy_dtype)
        array = np.empty(len(values), object)
        array[:] = values
        return array

    def of(self, features: Mapping[str, Any], where: str) -> np.ndarray:
        """The value in a record.

        Raises:
            InvalidArgumentError: it is missing, of another kind, or has another number of values.
        """
        feature = features.get(self.name)
        kind = None if feature is None else feature.WhichOneof()
        if kind is None:
            if self.several and self.optional:
                return self.array([]).reshape(0, *self.shape)
            if self.default is not None and not self.several:
                return self.default
            raise _wrong(f"{where}: Feature: {self.name} (data type: {self.dtype.name}) is required but could not be "
                         "found.")
        if kind != self.kind:
            raise _wrong(f"{where}: Feature: {self.name}. Data types don't match. Expected type: {self.dtype.name}, "
                         f"but the record has a {kind}.")
        values = getattr(feature, kind).value
        if self.several and self.size and len(values) % self.size == 0:
            return self.array(values).reshape(-1, *self.shape)
        if self.several or len(values) != self.size:
            raise _wrong(f"{where}: Key: {self.name}. Number of {self.dtype.name} values != expected. Values size: "
                         f"{len(values)} but output shape: {list(self.shape)}")
        return self.array(values).reshape(self.shape)

    def stacked(self, parts: list[np.ndarray]) -> np.ndarray:
        """The values of several records as one array; shorter sequences are filled."""
        if not self.several:
            return np.stack(parts) if parts else self.array([]).reshape(0, *self.shape)
        longest = max((len(p) for p in parts), default=0)
        filler: Any = b"" if self.dtype == tf.string else 0
        if self.default is not None:
            filler = self.default.reshape(-1)[0]
        kind: Any = object if self.dtype == tf.string else self.dtype.as_numpy_dtype
        stacked = np.full((len(parts), longest, *self.shape), filler, kind)
        for n, part in enumerate(parts):
            stacked[n, :len(part)] = part
        return stacked


def _wanted(features: Sequence[Any]) -> list[_Wanted]:
    """What takes the features out of records; made once for each, since records come one by one."""
    return [_made(tuple([tuple(x) if isinstance(x, list) else x for x in plain])) for plain in features]


_made = functools.lru_cache(maxsize=4096)(_Wanted)


def _wrong(text: str) -> Exception:
    return tf.errors.InvalidArgumentError(None, None, text)


_OF_LISTS = (VarLenFeature, RaggedFeature, SparseFeature)


def _divided(features: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The features of known numbers of values, and those of any number."""
    if features is None or not mapped(features, "features"):
        raise ValueError("Missing: features was an empty dictionary.")
    lists = {name: features[name] for name in sorted(features) if isinstance(features[name], _OF_LISTS)}
    return {name: form for name, form in features.items() if name not in lists}, lists


def _made_of_lists(records: Any, features: Mapping[str, Any], alone: bool) -> dict[str, Any]:
    """The features of any number of values of a vector of records."""
    keys = list(dict.fromkeys(key for name, form in features.items() for key in keys_of(name, form)))
    flat = parsed_lists(records, [(name, tf.as_dtype(dtype)) for name, dtype in keys])
    lists = {key: (flat[2 * n], flat[2 * n + 1]) for n, key in enumerate(keys)}
    return {name: assembled(name, form, lists, alone) for name, form in features.items()}


@hosted
def parsed_lists(serialized: Any, keys: list[tuple[str, tf.DType]]) -> list[Any]:
    """The values of features of a batch of records, one behind the other, and their numbers in each record."""
    wanted = _wanted([_Plain(name, dtype, (), True, True, None) for name, dtype in keys])

    def parse(records: Any) -> list[Any]:
        examples = [_example(r).features.feature for r in engine.array_of(records).tolist()]
        results = []
        for w in wanted:
            parts = [w.of(f, f"Example {n}") for n, f in enumerate(examples)]
            results += [w.array([v for p in parts for v in p.tolist()]), np.array([len(p) for p in parts], np.int64)]
        return engine.tensors_of(results)
    lead = serialized.shape.as_list()[0]
    specs = [spec for w in wanted for spec in (TensorSpec([None], w.dtype), TensorSpec([lead], tf.int64))]
    return engine.host_call(parse, "ParseExampleLists", [serialized], specs)


def _plain_of(features: Mapping[str, Any], what: str = "features") -> list[_Plain]:
    if features is None or not mapped(features, what):
        raise ValueError("Missing: features was an empty dictionary.")
    return [_plain(name, features[name]) for name in sorted(features)]


def _by_name(features: Sequence[_Plain], tensors: Sequence[Any]) -> dict[str, Any]:
    return {f.name: t for f, t in zip(features, tensors, strict=True)}


def _example(data: Any) -> Any:
    try:
        return tf.train.Example.FromString(data)
    except tf.errors.DataLossError as e:
        raise _wrong(f"Could not parse example input: {e}") from None


@public
def parse_single_example(serialized: Any, features: Mapping[str, Any], example_names: Any = None,
                         name: str | None = None) -> dict[str, Any]:
    """The features of a record.

    Args:
        serialized: bytes, or a string scalar: a `tf.train.Example`.
        features: what to read: `tf.io.FixedLenFeature`s, `FixedLenSequenceFeature`s, `VarLenFeature`s,
            `RaggedFeature`s and `SparseFeature`s by name.
        example_names, name: accepted, without effect.
    Returns:
        Tensors by name, sparse and ragged ones among them.
    Raises:
        ValueError: `features` ask for what cannot be.
        InvalidArgumentError: the record is damaged, or has not what is asked for.

    >>> import twofold as tf
    >>> data = tf.train.Example(features=tf.train.Features(feature={
    ...     "x": tf.train.Feature(float_list=tf.train.FloatList(value=[1.0, 2.0]))})).SerializeToString()
    >>> tf.io.parse_single_example(data, {"x": tf.io.FixedLenFeature([2], tf.float32)})["x"].numpy().tolist()
    [1.0, 2.0]
    """
    features, lists = _divided(features)
    given = tf.convert_to_tensor(serialized, tf.string)
    if given.shape.rank not in (0, None):
        raise ValueError(f"parse_single_example: serialized must be a scalar; got shape {given.shape}")
    if lists:
        made = _made_of_lists(tf.reshape(given, [1]), lists, alone=True)
        return {**made, **parse_single_example(given, features)} if features else made
    wanted = _plain_of(features)
    return _by_name(wanted, parsed_record(given, [tuple(w) for w in wanted]))


@hosted
def parsed_record(serialized: Any, features: list[tuple[Any, ...]]) -> list[Any]:
    """The features of a record, which are described as by `_Plain`."""
    wanted = _wanted(features)

    def parse(record: Any) -> list[Any]:
        features = _example(engine.array_of(record).item()).features.feature
        return engine.tensors_of([np.array(w.of(features, "Example")) for w in wanted])
    return engine.host_call(parse, "ParseSingleExample", [serialized], [w.alone for w in wanted])


@public
def parse_example(serialized: Any, features: Mapping[str, Any], example_names: Any = None,
                  name: str | None = None) -> dict[str, Any]:
    """The features of a batch of records.

    Args:
        serialized: strings [batch]: each a `tf.train.Example`; or a scalar, as for `parse_single_example`.
        features: as there.
        example_names, name: have no effect.
    Returns:
        Tensors [batch, ..] by name; sequences are filled up to the longest.
    Raises:
        ValueError: `features` ask for what cannot be.
        InvalidArgumentError: a record is damaged, or has not what is asked for.
    """
    given = tf.convert_to_tensor(serialized, tf.string)
    if given.shape.rank == 0:
        return parse_single_example(given, features)
    if given.shape.rank != 1:
        raise ValueError(f"parse_example: serialized must be a vector; got shape {given.shape}")
    features, lists = _divided(features)
    if lists:
        made = _made_of_lists(given, lists, alone=False)
        return {**made, **parse_example(given, features)} if features else made
    wanted = _plain_of(features)
    return _by_name(wanted, parsed_records(given, [tuple(w) for w in wanted]))


@hosted
def parsed_records(serialized: Any, features: list[tuple[Any, ...]]) -> list[Any]:
    """The features of a batch of records; see `parsed_record`."""
    wanted = _wanted(features)

    def parse(records: Any) -> list[Any]:
        examples = [_example(r).features.feature for r in engine.array_of(records).tolist()]
        return engine.tensors_of([w.stacked([w.of(f, f"Example {n}") for n, f in enumerate(examples)]) for w in wanted])
    lead = serialized.shape.as_list()[0]
    return engine.host_call(parse, "ParseExample", [serialized], [w.spec((lead,)) for w in wanted])


@public
def parse_single_sequence_example(serialized: Any, context_features: Mapping[str, Any] | None = None,
                                  sequence_features: Mapping[str, Any] | None = None, example_name: Any = None,
                                  name: str | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The features of a record of sequences.

    Args:
        serialized: bytes, or a string scalar: a `tf.train.SequenceExample`.
        context_features: what to read of the whole, as for `parse_single_example`.
        sequence_features: `tf.io.FixedLenSequenceFeature`s by name.
        example_name, name: accepted, without effect.
    Returns:
        Tensors of the whole by name, and tensors [steps, ..] of the sequences by name.
    Raises:
        ValueError: nothing is asked for, or what cannot be.
        InvalidArgumentError: the record is damaged, or has not what is asked for.
    """
    whole, lists = _of_sequences("parse_single_sequence_example", context_features, sequence_features)
    given = tf.convert_to_tensor(serialized, tf.string)
    tensors = parsed_sequence(given, [tuple(w) for w in whole], [tuple(w) for w in lists])
    return _by_name(whole, tensors[:len(whole)]), _by_name(lists, tensors[len(whole):])


@hosted
def parsed_sequence(serialized: Any, context: list[tuple[Any, ...]], sequences: list[tuple[Any, ...]]) -> list[Any]:
    """The features of a record of sequences, first those of the whole; see `parsed_record`."""
    whole, lists = _wanted(context), _wanted(sequences)

    def parse(record: Any) -> list[Any]:
        example = _sequence_example(engine.array_of(record).item())
        values = [np.array(w.of(example.context.feature, "Context")) for w in whole]
        return engine.tensors_of([*values, *[_sequence(w, example.feature_lists.feature_list) for w in lists]])
    return engine.host_call(parse, "ParseSingleSequenceExample", [serialized],
                            [w.spec(()) for w in [*whole, *lists]])


def _sequence(wanted: _Wanted, lists: Mapping[str, Any]) -> np.ndarray:
    """The parts of a sequence, each a feature of its own."""
    if wanted.name not in lists:
        if wanted.optional:
            return wanted.array([]).reshape(0, *wanted.shape)
        raise _wrong(f"Name: <unknown>, Feature list '{wanted.name}' is required but could not be found.")
    rows: list[Any] = []
    for n, feature in enumerate(lists[wanted.name].feature):
        kind = feature.WhichOneof()
        values = [] if kind is None else getattr(feature, kind).value
        if (kind is not None and kind != wanted.kind) or len(values) != wanted.size:
            raise _wrong(f"Feature list: {wanted.name}, Index: {n}. Expected {wanted.size} values of "
                         f"{wanted.dtype.name}; the record has {len(values)} in {kind}")
        rows += values
    return wanted.array(rows).reshape(-1, *wanted.shape)


@public
def parse_sequence_example(serialized: Any, context_features: Mapping[str, Any] | None = None,
                           sequence_features: Mapping[str, Any] | None = None, example_names: Any = None,
                           name: str | None = None) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The features of a batch of records of sequences.

    Args:
        serialized: strings [batch]: each a `tf.train.SequenceExample`.
        context_features: what to read of the whole, as for `parse_single_example`.
        sequence_features: `tf.io.FixedLenSequenceFeature`s by name.
        example_names, name: accepted, without effect.
    Returns:
        Tensors [batch, ..] of the whole by name; tensors [batch, steps, ..] of the sequences by name, filled up to the
        longest; and how many steps each has, int64 [batch] by name.
    Raises:
        ValueError: nothing is asked for, or what cannot be.
        InvalidArgumentError: a record is damaged, or has not what is asked for.
    """
    whole, lists = _of_sequences("parse_sequence_example", context_features, sequence_features)
    given = tf.convert_to_tensor(serialized, tf.string)
    if given.shape.rank != 1:
        raise ValueError(f"parse_sequence_example: serialized must be a vector; got shape {given.shape}")
    tensors = parsed_sequences(given, [tuple(w) for w in whole], [tuple(w) for w in lists])
    first, second = len(whole), len(whole) + len(lists)
    return (_by_name(whole, tensors[:first]), _by_name(lists, tensors[first:second]),
            _by_name(lists, tensors[second:]))


@hosted
def parsed_sequences(serialized: Any, context: list[tuple[Any, ...]], sequences: list[tuple[Any, ...]]) -> list[Any]:
    """The features of a batch of records of sequences, first those of the whole, then sequences, then their lengths."""
    whole, lists = _wanted(context), _wanted(sequences)

    def parse(records: Any) -> list[Any]:
        examples = [_sequence_example(record) for record in engine.array_of(records).tolist()]
        of_whole = [w.stacked([w.of(e.context.feature, f"Context {n}") for n, e in enumerate(examples)]) for w in whole]
        rows = [[_sequence(w, e.feature_lists.feature_list) for e in examples] for w in lists]
        lengths = [np.array([len(row) for row in of_one], np.int64) for of_one in rows]
        stacked = [w.stacked(of_one) for w, of_one in zip(lists, rows, strict=True)]
        return engine.tensors_of([*of_whole, *stacked, *lengths])
    lead = serialized.shape[0]
    return engine.host_call(parse, "ParseSequenceExample", [serialized], [
        *[w.spec((lead,)) for w in [*whole, *lists]], *[TensorSpec([lead], tf.int64) for _ in lists]])


def _sequence_example(data: Any) -> Any:
    try:
        return tf.train.SequenceExample.FromString(data)
    except tf.errors.DataLossError as e:
        raise _wrong(f"Could not parse sequence example: {e}") from None


def _of_sequences(what: str, context: Mapping[str, Any] | None,
                  sequences: Mapping[str, Any] | None) -> tuple[list[_Plain], list[_Plain]]:
    """What is asked for of the whole, and of sequences."""
    whole = _plain_of(context, "context_features") if context else []
    lists = _plain_of(sequences, "sequence_features") if sequences else []
    if not whole and not lists:
        raise ValueError("Missing features.")
    if not all(w.several for w in lists):
        raise ValueError(f"{what}: sequence_features are tf.io.FixedLenSequenceFeature here")
    return whole, lists
