"""`twofold.array_api`: the array API standard (2024.12) on tensors.

`x.__array_namespace__()` of a tensor is this module. Operators between tensors of different dtypes, square brackets
with arrays, `.T` and `.size` are there after `tf.experimental.numpy.experimental_enable_numpy_behavior()`. Tensors
never change, so that `x[...] = y` is not.

>>> import twofold as tf
>>> x = tf.constant([1.0, 2.0])
>>> xp = x.__array_namespace__()
>>> xp.sum(xp.asarray([1, 2, 3], dtype=xp.int8)).dtype
tf.int32
"""

from __future__ import annotations

import math

import twofold as tf
from twofold._front.namespace import publish

from . import _arrays, _creation, _elementwise, _statistics, fft, linalg

__all__: list[str] = ["fft", "linalg"]
for _module in (_arrays, _creation, _elementwise, _statistics):
    for _name in _module.__all__:
        globals()[_name] = getattr(_module, _name)
        __all__.append(_name)
for _name in ("matmul", "matrix_transpose", "tensordot", "vecdot"):
    globals()[_name] = getattr(linalg, _name)
    __all__.append(_name)
for _name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
        "complex64", "complex128"):
    globals()[_name] = getattr(tf, _name)
    __all__.append(_name)
e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None
__all__ += ["e", "pi", "inf", "nan", "newaxis"]
__array_api_version__ = "2024.12"
__all__.sort()

publish(__name__)
