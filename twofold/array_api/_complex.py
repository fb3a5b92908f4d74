"""What the array API standard says of complex functions of zeros, infinities and NaN, where ops give NaN in both parts.

The rules are those of C's Annex G. Each is a row: which real and imaginary parts, and the parts of the result, where a
letter is a part of the argument.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan, pi
from typing import Any

import twofold as tf

__all__ = ["completed"]

_Row = tuple[str, str, Any, Any]
_IS: dict[str, Callable[[Any], Any]] = {
    "0": lambda x: tf.equal(x, tf.zeros_like(x)),
    "inf": lambda x: tf.logical_and(tf.math.is_inf(x), x > tf.zeros_like(x)),
    "infinite": tf.math.is_inf,
    "nan": tf.math.is_nan,
    "not finite": lambda x: tf.logical_not(tf.math.is_finite(x)),
    "finite, not 0": lambda x: tf.logical_and(tf.math.is_finite(x), tf.not_equal(x, tf.zeros_like(x))),
}
_ROWS: dict[str, list[_Row]] = {
    "exp": [("inf", "not finite", inf, nan), ("nan", "0", nan, "y")],
    "expm1": [("inf", "not finite", inf, nan), ("nan", "0", nan, "y"), ("0", "0", 0.0, "y")],
    "cosh": [("0", "not finite", nan, 0.0), ("infinite", "not finite", inf, nan)],
    "sinh": [("0", "not finite", "x", nan), ("infinite", "not finite", "x", nan)],
    "tanh": [("finite, not 0", "not finite", nan, nan), ("0", "not finite", "x", nan), ("nan", "0", nan, "y")],
    "acos": [("0", "nan", pi / 2, nan), ("infinite", "nan", nan, inf), ("nan", "inf", nan, -inf)],
    "acosh": [("0", "nan", nan, pi / 2), ("infinite", "nan", inf, nan), ("nan", "infinite", inf, nan)],
    "asinh": [("nan", "0", nan, "y"), ("nan", "infinite", inf, nan)],
    "atanh": [("0", "nan", "x", nan), ("nan", "inf", 0.0, pi / 2)],
}


def completed(name: str, compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function whose results for complex numbers are those of its rows."""
    def function(z: Any) -> Any:
        result = compute(z)
        if not z.dtype.is_complex:
            return result
        parts = {"x": tf.math.real(z), "y": tf.math.imag(z)}
        for real, imaginary, *values in _ROWS[name]:
            holds = tf.logical_and(_IS[real](parts["x"]), _IS[imaginary](parts["y"]))
            first, second = [parts[v] if v in ("x", "y") else tf.zeros_like(parts["x"]) + tf.constant(
                v, parts["x"].dtype) for v in values]
            result = tf.where(holds, tf.complex(first, second), result)
        return result
    return function
