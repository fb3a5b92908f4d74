"""`tf.train.Example` and its parts: named lists of numbers and texts, as records of TFRecord files hold them.

The classes have the attributes and methods that programs use of protocol buffers', and write the same bytes, with the
features in order of their names. What a record becomes in a pipeline is `tf.io.parse_single_example`'s.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

import twofold as tf
from twofold._formats.wire import field, fields, number, varint
from twofold._front.api import listed, public_class

from ._text_format import block, field_lines

__all__ = ["BytesList", "Example", "Feature", "FeatureList", "FeatureLists", "Features", "FloatList", "Int64List",
           "SequenceExample"]


class _Message:
    """What all messages share.

    Attributes and methods are those of protocol buffers: `SerializeToString`, `FromString` and `ParseFromString`.
    """

    _FIELDS: tuple[str, ...] = ()

    @classmethod
    def FromString(cls, s: bytes) -> Any:
        """The message that bytes hold.

        Raises:
            DataLossError: they hold none.
        """
        made = cls()
        made.MergeFromString(s)
        return made

    def _begin(self) -> None:
        """Hold nothing."""
        type(self).__init__(self)

    @classmethod
    def _of(cls, data: bytes) -> Any:
        """The message within a message that is being read."""
        made = cls.__new__(cls)
        made._begin()
        made._read(data)
        return made

    def ParseFromString(self, s: bytes) -> int:
        """Become the message that bytes hold; returns how many bytes there are.

        Raises:
            DataLossError: they hold none. TypeError: they are no bytes.
        """
        self.Clear()
        return self.MergeFromString(s)

    def MergeFromString(self, s: bytes) -> int:
        """Add the fields of the message that bytes hold; returns how many bytes there are.

        Raises:
            DataLossError: they hold none.
        """
        if not isinstance(s, (bytes, bytearray, memoryview)):
            raise TypeError(f"a message is read from bytes; got {type(s).__name__}.")
        data = bytes(s)
        try:
            self._read(data)
        except (ValueError, IndexError, KeyError, struct.error, UnicodeDecodeError) as e:
            raise tf.errors.DataLossError(f"Error parsing message of type {type(self).__name__}: {e}") from None
        return len(data)

    def SerializeToString(self, deterministic: bool = True) -> bytes:
        """The bytes of the message. `deterministic` has no effect."""
        return self._written()

    def ByteSize(self) -> int:
        """How many bytes it has."""
        return len(self._written())

    def Clear(self) -> None:
        """Forget everything."""
        type(self).__init__(self)

    def CopyFrom(self, other: Any) -> None:
        """Become equal to another message."""
        self.ParseFromString(other.SerializeToString())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._written() == other._written()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "".join([f"{line}\n" for line in self._lines()])

    def _lines(self) -> Iterator[str]:
        """The lines of the text format of protocol buffers; fields that hold nothing are left out."""
        for name in self._FIELDS:
            yield from field_lines(name, getattr(self, name))

    def _read(self, data: bytes) -> None:
        raise ValueError(f"{type(self).__name__} has no form")

    def _written(self) -> bytes:
        raise ValueError(f"{type(self).__name__} has no form")


_MOST = 1 << 26  # values of one list


class _List(_Message):
    """A list of values of one kind, `value`."""

    _FIELDS = ("value",)

    def __init__(self, value: Iterable[Any] = ()):
        items = value.tolist() if isinstance(value, np.ndarray) else listed(value, "value", _MOST)
        self.value: list[Any] = [self._checked(v) for v in items]

    def _begin(self) -> None:
        self.value = []

    @staticmethod
    def _checked(value: Any) -> Any:
        return value

    def __len__(self) -> int:
        return len(self.value)


def _number_like(value: Any) -> Any:
    return value.numpy() if hasattr(value, "numpy") else value


@public_class
class BytesList(_List):
    """A list of texts, as bytes.

    Args:
        value: bytes, each.

    >>> import twofold as tf
    >>> tf.train.BytesList(value=[b"a", b"bc"]).value
    [b'a', b'bc']
    """

    @staticmethod
    def _checked(value: Any) -> bytes:
        value = _number_like(value)
        if not isinstance(value, (bytes, bytearray)):
            raise TypeError(f"{value!r} has type {type(value).__name__}, but expected one of: bytes")
        return bytes(value)

    def _read(self, data: bytes) -> None:
        self.value += [bytes(value) for tag, value in fields(data) if tag == 1]

    def _written(self) -> bytes:
        return b"".join(field(1, self._checked(v)) for v in self.value)


@public_class
class FloatList(_List):
    """A list of float32 numbers.

    Args:
        value: numbers.

    >>> import twofold as tf
    >>> tf.train.FloatList.FromString(tf.train.FloatList(value=[0.5, 2]).SerializeToString()).value
    [0.5, 2.0]
    """

    @staticmethod
    def _checked(value: Any) -> float:
        value = _number_like(value)
        if isinstance(value, (str, bytes)):
            raise TypeError(f"{value!r} has type {type(value).__name__}, but expected one of: int, float")
        return float(value)

    def _read(self, data: bytes) -> None:
        for tag, value in fields(data):
            if tag == 1 and isinstance(value, bytes):
                self.value += np.frombuffer(value, "<f4").tolist()
            elif tag == 1:
                self.value.append(struct.unpack("<f", struct.pack("<I", value))[0])

    def _written(self) -> bytes:
        return field(1, np.array([self._checked(v) for v in self.value], "<f4").tobytes()) if self.value else b""


@public_class
class Int64List(_List):
    """A list of int64 numbers.

    Args:
        value: integers.

    >>> import twofold as tf
    >>> tf.train.Int64List.FromString(tf.train.Int64List(value=[3, -1]).SerializeToString()).value
    [3, -1]
    """

    @staticmethod
    def _checked(value: Any) -> int:
        value = _number_like(value)
        if not isinstance(value, (int, np.integer, np.bool_)):
            raise TypeError(f"{value!r} has type {type(value).__name__}, but expected one of: int")
        if not -(1 << 63) <= int(value) < 1 << 63:
            raise ValueError(f"Value out of range: {value}")
        return int(value)

    def _read(self, data: bytes) -> None:
        for tag, value in fields(data):
            if tag == 1 and isinstance(value, bytes):
                at = 0
                while at < len(value):
                    integer, at = varint(value, at)
                    self.value.append(_signed(integer))
            elif tag == 1:
                self.value.append(_signed(value))

    def _written(self) -> bytes:
        return field(1, b"".join(number(self._checked(v)) for v in self.value)) if self.value else b""


def _signed(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >= 1 << 63 else value


_KINDS: dict[str, type[_List]] = {"bytes_list": BytesList, "float_list": FloatList, "int64_list": Int64List}


@public_class
class Feature(_Message):
    """One of a `BytesList`, a `FloatList` and an `Int64List`.

    Args:
        bytes_list, float_list, int64_list: at most one of them.

    >>> import twofold as tf
    >>> feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
    >>> feature.WhichOneof("kind"), feature.int64_list.value
    ('int64_list', [7])
    """

    _FIELDS = tuple(_KINDS)

    def __init__(self, bytes_list: BytesList | None = None, float_list: FloatList | None = None,
                 int64_list: Int64List | None = None):
        given = {"bytes_list": bytes_list, "float_list": float_list, "int64_list": int64_list}
        told = [name for name, value in given.items() if value is not None]
        if len(told) > 1:
            raise ValueError(f"a Feature has one list; got {told}")
        for name, kind in _KINDS.items():
            if given[name] is not None and not isinstance(given[name], kind):
                raise TypeError(f"{name} must be a {kind.__name__}; got {type(given[name]).__name__}")
            setattr(self, name, given[name] if given[name] is not None else kind())
        self._kind = told[0] if told else None

    def _begin(self) -> None:
        self._kind = None
        for name, kind in _KINDS.items():
            made = kind.__new__(kind)
            made._begin()
            setattr(self, name, made)

    def WhichOneof(self, oneof_group: str = "kind") -> str | None:
        """The name of the list that it is; None where there is none. `oneof_group` has no effect."""
        for name in _KINDS:
            if len(getattr(self, name)):
                return name
        return self._kind

    def HasField(self, field_name: str) -> bool:
        """Whether it is that list."""
        return self.WhichOneof() == field_name

    def _read(self, data: bytes) -> None:
        for tag, value in fields(data):
            if 1 <= tag <= len(_KINDS):
                self._kind = self._FIELDS[tag - 1]
                for name, kind in _KINDS.items():
                    if name != self._kind and getattr(self, name).value:
                        setattr(self, name, kind())
                getattr(self, self._kind)._read(value)

    def _written(self) -> bytes:
        kind = self.WhichOneof()
        return b"" if kind is None else field(self._FIELDS.index(kind) + 1, getattr(self, kind)._written())

    def _lines(self) -> Iterator[str]:
        kind = self.WhichOneof()
        if kind is not None:
            yield from block(kind, getattr(self, kind)._lines())


class _Map(dict):
    """Messages by name, which are made when they are first asked for."""

    def __init__(self, make: Any, given: Mapping[str, Any]) -> None:
        super().__init__()
        self._make = make
        for name, value in given.items():
            if not isinstance(value, make):
                raise TypeError(f"{name!r} must be a {make.__name__}; got {type(value).__name__}")
            self[str(name)] = value

    def __missing__(self, name: str) -> Any:
        self[name] = made = self._make()
        return made


def _read_map(target: _Map, data: bytes) -> None:
    for tag, value in fields(data):
        if tag == 1:
            entry = dict(fields(value))
            target[entry.get(1, b"").decode()] = target._make._of(entry.get(2, b""))


def _written_map(entries: _Map) -> bytes:
    return b"".join(field(1, field(1, name.encode()) + field(2, entries[name]._written())) for name in sorted(entries))


@public_class
class Features(_Message):
    """Features by name.

    Args:
        feature: a dict of `Feature`.
    """

    _FIELDS = ("feature",)

    def __init__(self, feature: Mapping[str, Feature] | None = None):
        self.feature = _Map(Feature, feature or {})

    def _read(self, data: bytes) -> None:
        _read_map(self.feature, data)

    def _written(self) -> bytes:
        return _written_map(self.feature)


@public_class
class Example(_Message):
    """A record of named features.

    Args:
        features: the `Features`.

    >>> import twofold as tf
    >>> example = tf.train.Example()
    >>> example.features.feature["label"].int64_list.value.append(3)
    >>> data = example.SerializeToString()
    >>> tf.io.parse_single_example(data, {"label": tf.io.FixedLenFeature([], tf.int64)})["label"].numpy().item()
    3
    """

    _FIELDS = ("features",)

    def __init__(self, features: Features | None = None):
        self.features = Features() if features is None else features

    def _read(self, data: bytes) -> None:
        for tag, value in fields(data):
            if tag == 1:
                self.features._read(value)

    def _written(self) -> bytes:
        return field(1, self.features._written()) if self.features.feature else b""


@public_class
class FeatureList(_Message):
    """A sequence of features.

    Args:
        feature: a list of `Feature`.
    """

    _FIELDS = ("feature",)

    def __init__(self, feature: Iterable[Feature] = ()):
        self.feature = listed(feature, "feature", _MOST)

    def add(self) -> Feature:
        """A further feature, which is empty."""
        self.feature.append(Feature())
        return self.feature[-1]

    def _read(self, data: bytes) -> None:
        self.feature += [Feature._of(value) for tag, value in fields(data) if tag == 1]

    def _written(self) -> bytes:
        return b"".join(field(1, f._written()) for f in self.feature)


@public_class
class FeatureLists(_Message):
    """Sequences of features by name.

    Args:
        feature_list: a dict of `FeatureList`.
    """

    _FIELDS = ("feature_list",)

    def __init__(self, feature_list: Mapping[str, FeatureList] | None = None):
        self.feature_list = _Map(FeatureList, feature_list or {})

    def _read(self, data: bytes) -> None:
        _read_map(self.feature_list, data)

    def _written(self) -> bytes:
        return _written_map(self.feature_list)


@public_class
class SequenceExample(_Message):
    """A record of features of a whole, and of sequences.

    Args:
        context: the `Features` of the whole.
        feature_lists: the `FeatureLists`.
    """

    _FIELDS = ("context", "feature_lists")

    def __init__(self, context: Features | None = None, feature_lists: FeatureLists | None = None):
        self.context = Features() if context is None else context
        self.feature_lists = FeatureLists() if feature_lists is None else feature_lists

    def _read(self, data: bytes) -> None:
        for tag, value in fields(data):
            if tag == 1:
                self.context._read(value)
            elif tag == 2:
                self.feature_lists._read(value)

    def _written(self) -> bytes:
        parts = [(1, self.context._written()), (2, self.feature_lists._written())]
        return b"".join(field(tag, content) for tag, content in parts if content)
