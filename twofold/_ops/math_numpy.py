"""Functions of numbers that NumPy has and `tf.math` has not: roots, lengths and logarithms with bodies of their own.

`tf.keras.ops` gives them their public names. The ops are in `ir/ops/math.py` and `ir/ops/arithmetic.py`.
"""

from __future__ import annotations

from typing import Any

from twofold._front.api import public_op
from twofold.ir import ops

__all__ = ["cbrt", "hypot", "log10", "log2"]


@public_op(ops.cbrt)
def cbrt(x: Any) -> Any:
    """Cube root, elementwise, with the sign of `x`, a float tensor.

    >>> from twofold._ops.math_numpy import cbrt
    >>> cbrt([-8.0, 27.0]).numpy().tolist()
    [-2.0, 3.0]
    """
    return ops.cbrt(x)


@public_op(ops.hypot)
def hypot(x: Any, y: Any) -> Any:
    """`sqrt(x**2 + y**2)`, elementwise, where the squares would overflow too; float tensors that broadcast together.

    >>> from twofold._ops.math_numpy import hypot
    >>> hypot([3.0], 4.0).numpy().tolist()
    [5.0]
    """
    return ops.hypot(x, y)


@public_op(ops.log2)
def log2(x: Any) -> Any:
    """Logarithm to base 2, elementwise, of a float tensor; exact for powers of two.

    >>> from twofold._ops.math_numpy import log2
    >>> log2([0.25, 1024.0]).numpy().tolist()
    [-2.0, 10.0]
    """
    return ops.log2(x)


@public_op(ops.log10)
def log10(x: Any) -> Any:
    """Logarithm to base 10, elementwise, of a float tensor.

    >>> from twofold._ops.math_numpy import log10
    >>> log10([0.1, 1000.0]).numpy().tolist()
    [-1.0, 3.0]
    """
    return ops.log10(x)
