"""`tf.dtypes`: the element types, and conversion between them."""

from twofold._front.api import public
from twofold._front.convert import cast, complex, saturate_cast
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


class experimental:
    """Floats of 8 bits, which tensors hold and `tf.cast` converts, and which no arithmetic takes.

    >>> import twofold as tf
    >>> x = tf.cast([0.3, 1000.0], tf.dtypes.experimental.float8_e4m3fn)
    >>> tf.cast(x, tf.float32).numpy().tolist()
    [0.3125, nan]
    """

    float8_e5m2 = _dtypes.float8_e5m2
    float8_e4m3fn = _dtypes.float8_e4m3fn


as_dtype = public(_dtypes.as_dtype)
bool = bool_
half = float16
double = float64
qint8, quint8, qint16, quint16, qint32 = int8, uint8, int16, uint16, int32  # of `tf.quantization`

__all__ = ["DType", "as_dtype", "bfloat16", "bool", "cast", "complex", "complex128", "complex64", "double",
           "experimental", "float16", "float32", "float64", "half", "int16", "int32", "int64", "int8", "qint16",
           "qint32", "qint8", "quint16", "quint8", "saturate_cast", "string", "uint16", "uint32", "uint64", "uint8"]


publish(__name__)
