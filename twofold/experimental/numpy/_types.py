"""Dtypes and constants with NumPy's names, and questions about them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import twofold as tf
from twofold._front.api import public

from ._rules import as_dtype, meeting

__all__ = [
    "bool_", "complex128", "complex64", "complex_", "e", "finfo", "float16", "float32", "float64", "float_", "iinfo",
    "inexact", "inf", "int16", "int32", "int64", "int8", "int_", "isscalar", "issubdtype", "ndarray", "newaxis",
    "object_", "pi", "promote_types", "result_type", "string_", "uint16", "uint32", "uint64", "uint8", "unicode_",
]

bool_, object_, string_, unicode_ = np.bool_, np.object_, np.bytes_, np.str_
int8, int16, int32, int64, int_ = np.int8, np.int16, np.int32, np.int64, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
float16, float32, float64, float_ = np.float16, np.float32, np.float64, np.float64
complex64, complex128, complex_ = np.complex64, np.complex128, np.complex128
inexact, iinfo = np.inexact, np.iinfo
e, pi, inf = math.e, math.pi, math.inf
newaxis = None
ndarray = tf.Tensor


@public
def finfo(dtype: Any) -> np.finfo:
    """What there is to know of a dtype of floating numbers.

    Args:
        dtype: one of ours or NumPy's, or its name.
    Raises:
        ValueError: it is none of floating numbers.

    >>> import twofold as tf
    >>> float(tf.experimental.numpy.finfo(tf.float32).eps)
    1.1920928955078125e-07
    """
    return np.finfo(as_dtype(dtype).as_numpy_dtype)  # type: ignore[arg-type]  # it raises for others


@public
def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether a dtype is among those of a class of NumPy's.

    >>> import twofold as tf
    >>> tf.experimental.numpy.issubdtype(tf.float32, tf.experimental.numpy.inexact)
    True
    """
    return np.issubdtype(*(x.as_numpy_dtype if isinstance(x, tf.DType) else x for x in (arg1, arg2)))


@public
def promote_types(type1: Any, type2: Any) -> Any:
    """The dtype in which two dtypes meet by NumPy's rules, one of NumPy's.

    >>> import twofold as tf
    >>> tf.experimental.numpy.promote_types(tf.int32, "float32")
    dtype('float64')
    """
    return np.promote_types(as_dtype(type1).as_numpy_dtype, as_dtype(type2).as_numpy_dtype)


@public
def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype in which values and dtypes meet.

    Args:
        arrays_and_dtypes: tensors, arrays, Python numbers, which give way, dtypes, and lists of these.
    Raises:
        TypeError: there is none.

    >>> import twofold as tf
    >>> tf.experimental.numpy.result_type(tf.constant([1, 2]), 0.5)
    tf.float64
    """
    return meeting(*arrays_and_dtypes).dtype


@public
def isscalar(num: Any) -> bool:
    """Whether a value is a number, a string, or a tensor without axes.

    >>> import twofold as tf
    >>> tf.experimental.numpy.isscalar(tf.constant(1.0)), tf.experimental.numpy.isscalar([1.0])
    (True, False)
    """
    return num.ndim == 0 if isinstance(num, (tf.Tensor, np.ndarray)) else np.isscalar(num)
