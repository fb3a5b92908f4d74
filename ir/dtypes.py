"""Element types: the one table of dtypes, their NumPy equivalents and their limits.

Every room asks this table; nobody keeps a second list of dtypes. Arithmetic on the 16-bit floats is
done in `compute` (float32) and rounded once when stored, so a body never sees them.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

__all__ = ["DType", "as_dtype", "from_numpy", "holds_integers", "ALL", "BOOL", "INTEGER", "SIGNED", "UNSIGNED",
           "FLOATING", "COMPLEX", "REAL", "NUMERIC", "DIFFERENTIABLE", "SMALL"]


DTypeLike: TypeAlias = "DType | str | type | np.dtype | int"  # a DType, or what names one (`as_dtype`)


class DType:
    """The type of a tensor's elements, such as `tf.float32`.

    There is one object per type, so `is` and `==` agree; a DType also compares equal to its name and
    to its NumPy type.

    >>> import twofold as tf
    >>> tf.float32 == np.float32, tf.float32 == "float32"
    (True, True)
    >>> tf.float32.size
    4
    """

    __slots__ = ("name", "np", "kind", "size", "index", "short", "compute", "_type")

    def __init__(self, name: str, np_type: type | np.dtype | str, kind: str, index: int, short: str):
        self.name = name
        self.np: np.dtype = np.dtype(np_type)
        self.kind = kind  # b bool, i signed, u unsigned, f float, c complex, s string
        self.size = self.np.itemsize
        self.index = index  # TensorFlow's DataType enum, kept for files that carry it
        self.short = short  # how IR text spells it
        self.compute: DType = self
        self._type = self.np.type

    @property
    def is_floating(self) -> bool:
        """Whether this is a real floating-point type."""
        return self.kind == "f"

    @property
    def is_integer(self) -> bool:
        """Whether this is a signed or unsigned integer type (bool is not)."""
        return self.kind in "iu"

    @property
    def is_numeric(self) -> bool:
        """Whether numbers are of this type: integers, real or complex ones, but no bools."""
        return self.kind in "iufc"

    @property
    def is_numpy_compatible(self) -> bool:
        """Whether NumPy has arrays for it: it has, for all types that tensors have."""
        return True

    @property
    def is_unsigned(self) -> bool:
        """Whether this is an unsigned integer type."""
        return self.kind == "u"

    @property
    def is_complex(self) -> bool:
        """Whether this is a complex type."""
        return self.kind == "c"

    @property
    def is_bool(self) -> bool:
        """Whether this is the boolean type."""
        return self.kind == "b"

    @property
    def is_differentiable(self) -> bool:
        """Whether gradients exist for this type: floats of at least 16 bits and complex numbers."""
        return self.kind in "fc" and self.size > 1

    @property
    def stays_on_host(self) -> bool:
        """Whether tensors of this type never lie on a GPU: strings, and floats of 8 bits."""
        return self.kind == "s" or self.kind == "f" and self.size == 1

    @property
    def base_dtype(self) -> DType:
        """This type itself: there are no reference types."""
        return self

    @property
    def real_dtype(self) -> DType:
        """The type of one part of a complex type; any other type is its own."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    @property
    def as_numpy_dtype(self) -> type[np.generic]:
        """The NumPy scalar type, such as `numpy.float32`; `object` for strings."""
        return self._type

    @property
    def as_datatype_enum(self) -> int:
        """TensorFlow's number for this type."""
        return self.index

    @property
    def min(self) -> float:
        """The smallest finite value. Raises TypeError where there is none (complex, string)."""
        return self._limit("min")

    @property
    def max(self) -> float:
        """The largest finite value. Raises TypeError where there is none (complex, string)."""
        return self._limit("max")

    @property
    def limits(self) -> tuple[float, float]:
        """`(min, max)` for clipping; `(0, 1)` for floats, as image code expects."""
        return (0, 1) if self.is_floating else (self.min, self.max)

    def _limit(self, which: str) -> float:
        if self.is_bool:
            return which == "max"
        if self.is_integer:
            return getattr(np.iinfo(self.np), which)
        if self.is_floating:
            return getattr(ml_dtypes.finfo(self.np), which)
        raise TypeError(f"Cannot find {which}imum value of {self!r}.")

    def is_compatible_with(self, other: DTypeLike) -> bool:
        """Whether `other` names this same type."""
        return self is as_dtype(other)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other is None or isinstance(other, DType):
            return False
        try:
            return self is _named(other)
        except TypeError:
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return self.index

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __reduce__(self) -> tuple[object, ...]:
        return (as_dtype, (self.name,))


bool_ = DType("bool", np.bool_, "b", 10, "i1")
int8 = DType("int8", np.int8, "i", 6, "i8")
int16 = DType("int16", np.int16, "i", 5, "i16")
int32 = DType("int32", np.int32, "i", 3, "i32")
int64 = DType("int64", np.int64, "i", 9, "i64")
uint8 = DType("uint8", np.uint8, "u", 4, "u8")
uint16 = DType("uint16", np.uint16, "u", 17, "u16")
uint32 = DType("uint32", np.uint32, "u", 22, "u32")
uint64 = DType("uint64", np.uint64, "u", 23, "u64")
float16 = DType("float16", np.float16, "f", 19, "f16")
bfloat16 = DType("bfloat16", ml_dtypes.bfloat16, "f", 14, "bf16")
float32 = DType("float32", np.float32, "f", 1, "f32")
float64 = DType("float64", np.float64, "f", 2, "f64")
complex64 = DType("complex64", np.complex64, "c", 8, "c64")
complex128 = DType("complex128", np.complex128, "c", 18, "c128")
float8_e5m2 = DType("float8_e5m2", ml_dtypes.float8_e5m2, "f", 24, "f8e5m2")
float8_e4m3fn = DType("float8_e4m3fn", ml_dtypes.float8_e4m3fn, "f", 25, "f8e4m3fn")
string = DType("string", np.object_, "s", 7, "str")
float16.compute = bfloat16.compute = float32

BOOL = frozenset({bool_})
SIGNED = frozenset({int8, int16, int32, int64})
UNSIGNED = frozenset({uint8, uint16, uint32, uint64})
INTEGER = SIGNED | UNSIGNED
FLOATING = frozenset({float16, bfloat16, float32, float64})
COMPLEX = frozenset({complex64, complex128})
REAL = INTEGER | FLOATING
NUMERIC = REAL | COMPLEX
DIFFERENTIABLE = FLOATING | COMPLEX
ALL = BOOL | NUMERIC
SMALL = frozenset({float8_e5m2, float8_e4m3fn})  # floats of 8 bits, which are kept and converted, and not computed with

_BY_NAME = {d.name: d for d in (bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16,
                                bfloat16, float32, float64, complex64, complex128, float8_e5m2, float8_e4m3fn,
                                string)}
_BY_NAME |= {"half": float16, "float": float32, "double": float64}
_BY_NP = {d.np: d for d in _BY_NAME.values()}
BY_NUMBER = {d.np.num: d for d in _BY_NAME.values()}  # by NumPy's number for the type, whatever the byte order
_BY_INDEX = {d.index: d for d in _BY_NAME.values()}
BY_SHORT = {d.short: d for d in _BY_NAME.values()}
# Python's own types, as TensorFlow reads them: a float is a float32 and an int an int32.
_BY_PYTHON = {bool: bool_, int: int32, float: float32, complex: complex128, str: string, bytes: string}


def holds_integers(wide: DType, narrow: DType) -> bool:
    """Whether both are types of integers, and `wide` has all numbers that `narrow` has.

    >>> holds_integers(int64, int32), holds_integers(int32, uint32)
    (True, False)
    """
    return wide.is_integer and narrow.is_integer and wide.min <= narrow.min and narrow.max <= wide.max


def from_numpy(dtype: np.dtype) -> DType:
    """The DType of a NumPy dtype, byte order apart.

    Raises:
        TypeError: there is no tensor type for it.
    """
    named = BY_NUMBER.get(dtype.num) or _BY_NP.get(dtype)
    if named is not None:
        return named
    if dtype.kind in "SU":
        return string
    named = _BY_NP.get(dtype.newbyteorder("="))
    if named is None:
        raise TypeError(f"Cannot convert NumPy dtype {dtype!r} to a tensor dtype.")
    return named


def as_dtype(value: DTypeLike) -> DType:
    """The DType that `value` names: a DType, a name, a NumPy type or dtype, a Python type, or an enum number.

    Raises:
        TypeError: `value` names no tensor type.

    >>> import twofold as tf
    >>> tf.as_dtype("int64"), tf.as_dtype(np.float32), tf.as_dtype(float)
    (tf.int64, tf.float32, tf.float32)
    """
    return _named(value)


def _named(value: Any) -> DType:
    if isinstance(value, DType):
        return value
    try:
        named = _BY_NAME.get(value) or _BY_PYTHON.get(value)
    except TypeError:
        named = None
    if named is not None:
        return named
    if isinstance(value, int) and not isinstance(value, bool) and value in _BY_INDEX:
        return _BY_INDEX[value]
    try:
        if value is None:  # which NumPy reads as float64
            raise TypeError
        return from_numpy(np.dtype(value))
    except (TypeError, ValueError, SyntaxError):  # NumPy reads strings as formats, some as Python
        raise TypeError(f"Cannot convert value {value!r} to a tensor dtype.") from None
