"""Layers and operators over inputs of several dtypes, for `make_dtype_reference.py` and `test_dtypes.py`.

Nothing here knows which library it is run with: that is an argument.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

DTYPES = ("int64", "int32", "uint8", "bool", "float16", "bfloat16", "float32", "float64")
MERGING = ("Concatenate", "Add", "Multiply", "Subtract", "Maximum", "Minimum", "Average", "Dot")
OPERATORS = ("x + y", "y + x", "x - y", "x * y", "x / y", "x // y", "x % y", "x ** y", "x < y", "x >= y", "x / x",
             "x * 2.5", "x * 2", "y * 2", "x / 2", "2.5 * x", "2 - x", "x ** 2", "abs(x)", "-x", "x + array",
             "x[:, 0] + y[:, 1]", "(x < y) & (y < x)", "(x < y) | (y < x)", "(x < y) ^ (y < x)", "~(x < y)")
SINGLE = ("BatchNormalization", "LayerNormalization", "GroupNormalization", "RMSNormalization",
          "GlobalAveragePooling1D", "GlobalMaxPooling1D", "MaxPooling1D", "Flatten", "Dropout", "ReLU", "LSTM", "GRU")
ARGUMENTS: dict[str, dict[str, Any]] = {"Dot": {"axes": 1}, "GroupNormalization": {"groups": 1},
                                        "Dropout": {"rate": 0.5}, "LSTM": {"units": 2}, "GRU": {"units": 2}}


def names() -> list[str]:
    """All cases."""
    pairs = itertools.combinations_with_replacement(DTYPES, 2)
    return [*[f"{layer} {a} {b}" for a, b in pairs for layer in MERGING], *OPERATORS, *SINGLE,
            "Attention int32 float32", "Attention float32 int32", "AdditiveAttention int32 int32",
            "MultiHeadAttention int32 int32"]


def run(tf: Any, name: str) -> Any:
    """The result of a case, a tensor or an array.

    Raises:
        Exception: the library refuses it.
    """
    head, *dtypes = name.split() if name not in OPERATORS else (name,)
    if name in OPERATORS:
        return operator(tf, name)
    layer = getattr(tf.keras.layers, head)
    if name in SINGLE:
        return layer(**ARGUMENTS.get(head, {}))(tf.constant(np.arange(8).reshape(1, 4, 2), tf.int32))
    values = [tf.cast(tf.constant(v), dtype) for v, dtype in zip(
        ([[1.0, 0.0, 3.0]], [[2.0, 5.0, 1.0]]), dtypes, strict=True)]
    if head in MERGING:
        return layer(**ARGUMENTS.get(head, {}))(values)
    values = [v[:, :, None] for v in values]
    return layer(1, 2)(*values) if head == "MultiHeadAttention" else layer()(values)


def operator(tf: Any, text: str) -> Any:
    """What a model gives that is an expression of an integer input x and a floating one y."""
    x, y = tf.keras.Input([3], dtype="int32"), tf.keras.Input([3])
    out = eval(text, {"x": x, "y": y, "array": np.ones([3])})  # noqa: S307 - one of the texts above
    values = tf.constant([[1, 2, 3]]), tf.constant([[3.0, 2.0, 0.5]])
    return tf.keras.Model([x, y], out)(list(values))
