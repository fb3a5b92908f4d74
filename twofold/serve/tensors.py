"""JSON to arrays, as a signature wants them, and arrays to JSON.

A body is read by Python's `json`, whose nesting is bounded by the interpreter; `RecursionError` and all else that goes
wrong on the way is a refusal with status 400. Integers must be in their dtype's range, floats may be written without a
point, and numbers, booleans and strings are not taken for one another.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .refusals import Refusal
from .servable import TensorInfo

__all__ = ["Form", "array_of", "document_of", "is_bytes", "value_of"]

_RANK = 64  # of NumPy's arrays
_KINDS = {"O": "numbers out of range, null or objects", "U": "strings", "b": "booleans", "f": "numbers with a point"}


class Form(NamedTuple):
    """What may be in a document, so that it is looked for: `true` and `false`; NaN and infinities, which are allowed
    then."""

    booleans: bool
    nan: bool


def document_of(body: bytes, nan: bool) -> tuple[Any, Form]:
    """The document that a body holds.

    Args:
        body: of a request.
        nan: whether it may hold NaN, Infinity and -Infinity.
    Raises:
        Refusal: it is no JSON.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise Refusal(400, "the body is not UTF-8") from None
    try:
        document = json.loads(text) if nan else json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise Refusal(400, "the body is nested too deeply") from None
    except ValueError as error:  # also of an integer with thousands of digits
        raise Refusal(400, f"the body is no JSON: {error}") from None
    return document, Form("true" in text or "false" in text, nan)


def _no_constant(token: str) -> Any:
    raise ValueError(f"{token} is no number in JSON (a server that was started with --nan takes it)")


def array_of(value: Any, info: TensorInfo, form: Form) -> np.ndarray[Any, Any]:
    """The array of an input.

    Args:
        value: nested lists.
        info: the input.
        form: what may be in it.
    Raises:
        Refusal: it is not of the input's dtype or shape.
    """
    wanted = info.dtype
    if wanted.name == "string":
        array = _strings(value, info)
    elif wanted.is_complex or wanted.np.kind not in "biufV" or not (wanted.name == "bool" or wanted.is_integer or
                                                                   wanted.is_floating):
        raise Refusal(501, f"input {info.name} is {wanted.name}, for which there is no JSON")
    else:
        array = _numbers(value, info, form)
    dims = info.dims
    if dims is not None and (len(dims) != array.ndim or any(
            d is not None and d != size for d, size in zip(dims, array.shape, strict=True))):
        raise Refusal(400, f"input {info.name} is {info.text}; got the shape {list(array.shape)}")
    return array


def _numbers(value: Any, info: TensorInfo, form: Form) -> np.ndarray[Any, Any]:
    wanted = info.dtype
    try:
        array = np.array(value)
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise Refusal(400, f"input {info.name} is no array: its lists are of different lengths or kinds") from None
    kind = array.dtype.kind
    if array.size == 0 and kind == "f":
        return array.astype(wanted.np)  # lists without numbers
    kinds = "b" if wanted.name == "bool" else "iu" if wanted.is_integer else "iuf"
    if kind not in kinds or (form.booleans and kinds != "b" and any(isinstance(leaf, bool) for leaf in _leaves(value))):
        raise Refusal(400, f"input {info.name} is of {wanted.name}; got {_KINDS.get(kind, 'numbers and others')}")
    if wanted.is_integer and (array.min() < wanted.min or array.max() > wanted.max):
        raise Refusal(400, f"input {info.name} is of {wanted.name}; a number is out of its range")
    with np.errstate(over="ignore", invalid="ignore"):
        cast = array.astype(wanted.np)
    finite = np.isfinite(array)
    if wanted.is_floating and not (np.array_equal(np.isfinite(cast.astype(np.float64)), finite) and (
            form.nan or finite.all())):
        raise Refusal(400, f"input {info.name} is of {wanted.name}; a number is out of its range")
    return cast


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def is_bytes(value: Any) -> bool:
    """Whether a value is an object that stands for bytes."""
    return isinstance(value, dict) and value.keys() == {"b64"}


def _strings(value: Any, info: TensorInfo) -> np.ndarray[Any, Any]:
    shape: list[int] = []
    level = value
    while isinstance(level, list) and len(shape) < _RANK:
        shape.append(len(level))
        level = level[0] if level else None
    array = np.empty(shape, object)
    flat: list[bytes] = []
    _fill(value, shape, flat, info)
    array.reshape(-1)[:] = flat
    return array


def _fill(value: Any, shape: list[int], flat: list[bytes], info: TensorInfo) -> None:
    if not shape:
        flat.append(_bytes(value, info))
        return
    if not isinstance(value, list) or len(value) != shape[0]:
        raise Refusal(400, f"input {info.name} is no array: its lists are of different lengths or kinds")
    for item in value:
        _fill(item, shape[1:], flat, info)


def _bytes(value: Any, info: TensorInfo) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if not is_bytes(value):
        raise Refusal(400, f'input {info.name} is of strings: each is a string or {{"b64": "..."}}')
    encoded = value["b64"]
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise Refusal(400, f"input {info.name} holds a b64 that is no Base64") from None


def value_of(array: np.ndarray[Any, Any], info: TensorInfo) -> Any:
    """Nested lists for an array; strings that are bytes by their name (`..._bytes`), or no UTF-8, are Base64.

    Raises:
        Refusal: there is no JSON for the dtype.
    """
    if array.dtype.kind == "c":
        raise Refusal(501, f"output {info.name} is {info.dtype.name}, for which there is no JSON")
    if array.dtype.kind == "V":
        return array.astype(np.float32).tolist()  # 16-bit floats and the like, which NumPy has not
    if array.dtype.kind != "O":
        return array.tolist()
    binary = info.name.endswith("_bytes")
    return _texts(array.tolist(), binary)


def _texts(value: Any, binary: bool) -> Any:
    if isinstance(value, list):
        return [_texts(item, binary) for item in value]
    if not binary:
        try:
            return value.decode()
        except UnicodeDecodeError:
            pass
    return {"b64": base64.b64encode(value).decode()}
