"""How the text form of graphs spells data: the elements of constants and the values of attributes.

Everything is spelt so that it reads back to the bit. Floats take the shortest digits that do, a NaN other than the
usual one shows its bits, large arrays are the base64 of their bytes. Nothing is evaluated as Python. The lines of the
text are `ir/graph_text.py`'s, cutting them into pieces `ir/graph_parse.py`'s.

    scalar element    true  3  -0.0  1e-30  inf  nan  nan(0x7fc00001)  (1.0, -0.0) for a complex number  "text"
    array             [[1.0, 2.0], [3.0, 4.0]]   or   base64 "AAAA..." (row-major, little-endian)
    attribute         none  true  3  0.5  "text"  f32  n*4 + 1  [1, [2, n]]  complex(1.0, 2.0)  dim(f32)
"""

from __future__ import annotations

import re
from typing import TypeAlias

import numpy as np

from . import dims as dm
from . import dtypes as dt
from . import errors
from .dims import Dim, Shape
from .dtypes import DType
from .types import Attr

# One element, as an array takes it
Element: TypeAlias = complex | str | bytes | np.generic | np.ndarray
# The elements of an array in nested lists, one for each axis, or the bytes of all of its numbers
Elements: TypeAlias = "Element | list[Elements]"

__all__ = ["Element", "Elements", "INLINE", "array_text", "array_of", "element_of", "attr_text", "atom_of", "quoted",
           "is_name", "GraphTextError"]

INLINE = 16  # elements up to which an array is spelt out
# Patterns, compiled when they are first needed: most processes only write graphs.
_FLOAT = r"(?a:[-+]?(\d+\.\d*([eE][-+]?\d+)?|\d+[eE][-+]?\d+|inf|nan))"
_INT = r"(?a:[-+]?\d+)"
_NAN = r"nan\((0x[0-9a-f]+)\)"
_WORDS = {"none": None, "true": True, "false": False, "inf": float("inf"), "nan": float("nan")}
_ERRORS = {name: getattr(errors, name) for name in errors.__all__ if isinstance(getattr(errors, name), type)}


class GraphTextError(ValueError):
    """Text that spells no graph; the message names the line."""


def is_name(text: str) -> bool:
    """Whether `text` is an ASCII identifier, which needs no quotes."""
    return text.isascii() and text.isidentifier()


def quoted(text: str) -> str:
    """A string between double quotes, on one line."""
    import json
    return json.dumps(text)


# -- arrays -------------------------------------------------------------------------------------------
def array_text(array: np.ndarray, dtype: DType) -> str:
    """The elements of an array: spelt out when there are few or when they are strings, else as bytes."""
    if array.size > INLINE and dtype is not dt.string:
        import base64
        plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        return f'base64 "{base64.b64encode(plain.tobytes()).decode("ascii")}"'
    return _nested(array, dtype)


def _nested(array: np.ndarray, dtype: DType) -> str:
    if array.ndim == 0:
        return _element_text(array, dtype)
    return "[" + ", ".join([_nested(part, dtype) for part in array]) + "]" if array.dtype != object else (
        "[" + ", ".join([_nested(array[i, ...], dtype) for i in range(len(array))]) + "]")


def _element_text(cell: np.ndarray, dtype: DType) -> str:
    cell = np.asarray(cell)
    if dtype.is_bool:
        return "true" if cell else "false"
    if dtype.is_integer:
        return str(int(cell))
    if dtype.is_complex:
        return f"({_float_text(cell.real, dtype.real_dtype)}, {_float_text(cell.imag, dtype.real_dtype)})"
    if dtype is dt.string:
        item = cell.item()
        return f"b{quoted(item.decode('latin-1'))}" if isinstance(item, bytes) else quoted(item)
    return _float_text(cell, dtype)


def _float_text(cell: np.ndarray, dtype: DType) -> str:
    cell = np.asarray(cell, dtype.np)
    number = float(cell)
    if number != number:
        return "nan" if _same_bits(cell, _usual_nan(dtype)) else f"nan({_bits(cell):#x})"
    short = str(cell[()])
    return short if re.fullmatch(_FLOAT, short) and _same_bits(_rounded(short, dtype), cell) else repr(number)


def _usual_nan(dtype: DType) -> np.ndarray:
    return np.array(np.nan, dtype.np)


def _rounded(text: str, dtype: DType) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.array(float(text), np.float64).astype(dtype.np)


def _bits(cell: np.ndarray) -> int:
    return int(cell.view(f"u{cell.dtype.itemsize}")[()])


def _same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.tobytes() == b.tobytes()


def array_of(elements: Elements, dims: Shape, dtype: DType) -> np.ndarray:
    """A read-only array from the nested lists of its elements, or of numbers from their bytes.

    Raises:
        ValueError: the data does not fill an array of this shape and dtype.
    """
    if not dm.all_static(dims):
        raise ValueError("a constant has no unknown sizes")
    sizes = dm.evaluate(dims, {})
    if isinstance(elements, bytes) and dtype is not dt.string:
        array = np.frombuffer(elements, dtype.np.newbyteorder("<")).astype(dtype.np)
        if array.size != dm.numel(sizes):
            raise ValueError(f"the bytes hold {array.size} elements; the shape has {dm.numel(sizes)}")
    else:
        cells: list[Element] = []
        _flatten(elements, sizes, cells)
        array = np.empty(len(cells), dtype.np)
        for i, cell in enumerate(cells):
            array[i] = cell
    array = array.reshape(sizes)
    array.flags.writeable = False
    return array


def _flatten(elements: Elements, dims: tuple[int, ...], cells: list[Element]) -> None:
    if not dims:
        if isinstance(elements, list):
            raise ValueError("there are more brackets than axes")
        cells.append(elements)
        return
    if not isinstance(elements, list) or len(elements) != dims[0] and elements:
        raise ValueError(f"{dims[0]} elements are expected along an axis")
    if not elements and dm.numel(dims):
        raise ValueError(f"{dims[0]} elements are expected along an axis; there are none")
    for part in elements:
        _flatten(part, dims[1:], cells)


def element_of(text: str, dtype: DType) -> Element:
    """One element, other than a string, as what an array of `dtype` takes.

    Raises:
        ValueError: `text` spells no element of `dtype`.
    """
    if dtype.is_bool and text in ("true", "false"):
        return text == "true"
    if dtype.is_integer and re.fullmatch(_INT, text):
        low, high = dtype.limits
        if not low <= int(text) <= high:
            raise ValueError(f"{text} is no {dtype.name}")
        return int(text)
    if dtype.is_complex and text.startswith("(") and text.endswith(")") and text.count(",") == 1:
        item = np.empty((), dtype.np)
        real, imag = text[1:-1].split(",")
        item.real, item.imag = element_of(real.strip(), dtype.real_dtype), element_of(imag.strip(), dtype.real_dtype)
        return item[()]
    if dtype.is_floating:
        bits = re.fullmatch(_NAN, text)
        if bits is not None:
            return np.array(int(bits[1], 16), f"u{dtype.size}").view(dtype.np)[()]
        if text == "nan":
            return _usual_nan(dtype)[()]
        if re.fullmatch(_FLOAT, text):
            return _rounded(text, dtype)[()]
    raise ValueError(f"{text!r} is no element of {dtype.name}")


# -- attributes ---------------------------------------------------------------------------------------
def attr_text(value: Attr) -> str:
    """The value of an attribute. What has no spelling, such as a Python function, is shown and does not read back."""
    kind = type(value)
    if value is None or kind is bool:
        return "none" if value is None else "true" if value else "false"
    if kind is int:
        return str(value)
    if kind is tuple:
        return "[" + ", ".join([attr_text(v) for v in value]) + "]"
    if isinstance(value, Dim):
        text = str(value)
        return f"dim({text})" if text in dt.BY_SHORT or text in _WORDS or text in ("complex", "dim") else text
    if isinstance(value, DType):
        return value.short
    if kind is str:
        return quoted(value)
    if kind is float:
        return repr(value)
    if kind is complex:
        return f"complex({value.real!r}, {value.imag!r})"
    if isinstance(value, type) and value in _ERRORS.values():
        return f"@{value.__name__}"
    name: str = getattr(value, "__qualname__", "") or type(value).__name__
    return f"<python {quoted(name)}>"


def atom_of(text: str) -> Attr:
    """The attribute that a piece of text without brackets or quotes spells.

    Raises:
        ValueError: it spells none.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text in dt.BY_SHORT:
        return dt.BY_SHORT[text]
    if re.fullmatch(_INT, text):
        return int(text)
    if re.fullmatch(_FLOAT, text):
        return float(text)
    if text.startswith("@"):
        if text[1:] not in _ERRORS:
            raise ValueError(f"{text[1:]!r} is no class of errors")
        return _ERRORS[text[1:]]
    if text.startswith("complex("):
        real, _, imag = text[len("complex("):-1].partition(",")
        return complex(float(real), float(imag))
    if text.startswith("<"):
        raise ValueError(f"a Python object ({text}) cannot be read back from text")
    return dm.parse(text[len("dim("):-1] if text.startswith("dim(") else text)
