"""`tf.io.decode_json_example`: examples in the JSON that protocol buffers have, as records."""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any

import twofold as tf
from twofold._front.api import public
from twofold._front.hosted import hosted
from twofold._front.texts import each_text
from twofold.ir.errors import DataLossError, InvalidArgumentError

from .reading import parsed_json

__all__ = ["decode_json_example"]

_SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


@public
@hosted
def decode_json_example(json_examples: Any, name: str | None = None) -> Any:
    """Examples in JSON as serialised `tf.train.Example`s.

    Args:
        json_examples: strings, an example each: numbers may be texts, bytes are base64.
        name: accepted, without effect.
    Returns:
        Strings of the same shape, for `tf.io.parse_example`.
    Raises:
        InvalidArgumentError: a string is no such example.

    >>> import twofold as tf
    >>> text = '{"features": {"feature": {"age": {"int64List": {"value": ["7"]}}}}}'
    >>> record = tf.io.decode_json_example(text)
    >>> int(tf.io.parse_single_example(record, {"age": tf.io.FixedLenFeature([], tf.int64)})["age"])
    7
    """
    return each_text(_record, json_examples, "DecodeJSONExample")


def _record(text: bytes) -> bytes:
    try:
        return _example(parsed_json(text, "the example")).SerializeToString()
    except (DataLossError, ValueError, TypeError, OverflowError, binascii.Error) as e:
        raise InvalidArgumentError(None, "DecodeJSONExample", f"Error while parsing JSON: {e}") from None


def _example(body: Any) -> tf.train.Example:
    made = tf.train.Example()
    features = _fields(_fields(body, "features").get("features"), "feature").get("feature")
    for key, value in _object(features).items():
        lists = _fields(value, *_LISTS)
        if len(lists) > 1:
            raise ValueError(f"a feature has one list; got {sorted(lists)}")
        for kind, content in lists.items():
            values = _fields(content, "value").get("value") or []
            if not isinstance(values, list):
                raise TypeError(f"values of feature {key!r} are no list")
            getattr(made.features.feature[key], kind).value.extend([_LISTS[kind](v) for v in values])
    return made


def _object(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError(f"an object is expected; got {type(value).__name__}")
    return value


def _fields(value: Any, *names: str) -> dict[str, Any]:
    """The fields of a message by name, which JSON may write in camel case."""
    known = {name: name for name in names} | {_camel(name): name for name in names}
    given = {name: item for name, item in _object(value).items() if item is not None}
    strange = [name for name in given if name not in known]
    if strange:
        raise ValueError(f"no such field: {strange[0]!r}")
    return {known[name]: item for name, item in given.items()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _bytes(value: Any) -> bytes:
    text = value.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError(f"an integer is expected; got {value!r}")
    if isinstance(value, float) and not value.is_integer():
        raise ValueError(f"an integer is expected; got {value!r}")
    return int(value) if not isinstance(value, str) or "." not in value and "e" not in value else _integer(float(value))


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError(f"a number is expected; got {value!r}")
    made = _SPECIAL[value] if value in _SPECIAL else float(value)
    if math.isfinite(made) and abs(made) > float(tf.float32.max):
        raise ValueError(f"{value} is out of the range of float32")
    return made


_LISTS = {"bytes_list": _bytes, "float_list": _float, "int64_list": _integer}
