"""`tf.dtypes`: the element types, and conversion between them."""

from twofold._front.api import public
from twofold._front.namespace import publish
from twofold.ir import dtypes as _dtypes
from twofold.ir.dtypes import (
    DType,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)

as_dtype = public(_dtypes.as_dtype)
bool = bool_
half = float16
double = float64

__all__ = ["DType", "as_dtype", "bfloat16", "bool", "complex64", "complex128", "double", "float16", "float32",
           "float64", "half", "int8", "int16", "int32", "int64", "string", "uint8", "uint16", "uint32", "uint64"]


publish(__name__)
