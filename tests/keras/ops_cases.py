"""Calls of functions of `keras.ops`: `(name, arguments, settings)`, which `twofold` and Keras 3 are asked alike.

Arguments are NumPy arrays, numbers and structures of them. `make_ops_reference.py` writes what Keras gives.
"""

from __future__ import annotations

import zlib

import numpy as np

DTYPES = ("bool", "uint8", "uint16", "uint32", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
          "float64")
NAN, INF = float("nan"), float("inf")


class Half:
    """An array that stands for one of dtype bfloat16, which NumPy does not have."""

    def __init__(self, values):
        self.values = np.asarray(values, np.float32)


def numbers(shape, dtype="float32", seed=0, low=-2.0, high=2.0):
    """Random numbers, in quarters, so that all dtypes have them."""
    rng = np.random.RandomState(seed)
    if dtype == "bool":
        return rng.rand(*shape) > 0.5
    if dtype.startswith("uint"):
        return rng.randint(0, 7, shape).astype(dtype)
    if dtype.startswith("int"):
        return rng.randint(-5, 7, shape).astype(dtype)
    values = np.round(rng.uniform(low, high, shape) * 4) / 4
    return Half(values) if dtype == "bfloat16" else values.astype(dtype)


def x32(*shape, seed=0, low=-2.0, high=2.0):
    return np.random.RandomState(seed).uniform(low, high, shape).astype(np.float32)


def key(case):
    """A name for a case, the same in all runs."""
    name, args, kwargs = case
    return f"{name}-{zlib.crc32(described((args, kwargs)).encode()):08x}"


def described(value):
    if isinstance(value, Half):
        return f"bfloat16{value.values.tolist()}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}{value.shape}{value.ravel().tolist()}"
    if isinstance(value, dict):
        return str({k: described(v) for k, v in value.items()})
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}{[described(v) for v in value]}"
    return f"{type(value).__name__}{value!r}"


UNARY = [
    "absolute", "ceil", "floor", "cos", "cosh", "sin", "sinh", "tan", "tanh", "arctan", "arcsinh", "exp",
    "exp2", "expm1", "square", "sign", "signbit", "trunc", "round", "negative", "isfinite", "isinf", "isnan",
    "isneginf", "isposinf", "isreal", "logical_not", "nan_to_num", "copy", "fabs", "sinc", "i0", "deg2rad",
    "rad2deg", "cbrt", "real", "sum", "mean", "std", "var", "max", "min", "prod", "all", "any", "argmax",
    "argmin", "cumsum", "cumprod", "amax", "amin", "ptp", "count_nonzero", "sort", "argsort", "median", "flip",
    "ravel", "transpose", "diff", "ones_like", "zeros_like", "nansum", "nanmean", "nanmax", "nanprod",
    "nanargmax", "nanvar", "nanstd", "isfinite", "size", "ndim"]
POSITIVE = ["arccosh", "log", "log10", "log1p", "log2", "sqrt", "reciprocal"]
SHARES = ["arccos", "arcsin", "arctanh"]
NO_BOOL = {"negative", "sign", "ptp", "signbit", "median"}
PAIRS = [("int32", "float32"), ("uint8", "int8"), ("int64", "float16"), ("bool", "int32"), ("float16", "bfloat16"),
         ("float32", "float64"), ("bool", "bool"), ("int64", "int32"), ("uint32", "int32"), ("bfloat16", "int16"),
         ("uint8", "uint16"), ("int8", "float64")]
BINARY = [
    "add", "subtract", "multiply", "divide", "true_divide", "maximum", "minimum", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal", "arctan2", "logaddexp", "hypot", "divide_no_nan", "floor_divide",
    "mod", "power", "heaviside", "logical_and", "logical_or", "logical_xor", "fmax", "fmin", "outer", "append",
    "isclose", "where2", "logaddexp2"]
INTEGERS = ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "gcd", "lcm"]


def dtype_cases():
    """Functions of one and of two tensors, of many dtypes."""
    cases = []
    for name in UNARY:
        cases += [(name, (numbers((2, 3), d),), {}) for d in DTYPES if not (d == "bool" and name in NO_BOOL)]
    for name in POSITIVE:
        cases += [(name, (numbers((5,), d, low=1.0),), {}) for d in DTYPES[8:] + ("int32", "int64")]
    for name in SHARES:
        cases += [(name, (numbers((5,), d, low=-1.0, high=1.0),), {}) for d in DTYPES[8:]]
    for name in BINARY:
        for n, (a, b) in enumerate(PAIRS):
            if a == b == "bool" and name in ("subtract", "power", "floor_divide", "mod"):
                continue
            if name == "logaddexp2" and b == "float64":  # which Keras computes with a constant of float32
                continue
            second = numbers((3,), b, n + 1, low=0.5)
            if not isinstance(second, Half) and second.dtype.kind in "iu":
                second = np.maximum(second, 1)
            if isinstance(second, np.ndarray) and second.dtype.kind == "b":
                second = second | True if name in ("divide", "true_divide") else second
            first = numbers((2, 3), a, n, low=0.5 if name == "power" else -2.0)
            if name == "power" and a.startswith("int"):
                first = np.abs(first)
            if name == "where2":
                cases.append(("where", (numbers((2, 3), "bool"), first, second), {}))
            else:
                cases.append((name, (first, second), {}))
        if name not in ("outer", "append", "where2"):
            for n, (a, number) in enumerate([("float32", 2), ("int32", 1.5), ("uint8", 2), ("float16", 1.5),
                                             ("int64", 2), ("bfloat16", 2.0)]):
                cases.append((name, (numbers((3,), a, n, low=0.5) if not a.startswith("int") else
                                     np.abs(numbers((3,), a, n)), number), {}))
    for name in INTEGERS:
        for a, b in [("int32", "int8"), ("uint8", "uint8"), ("int64", "uint8"), ("int16", "int32")]:
            cases.append((name, (np.abs(numbers((2, 3), a, 1)), np.abs(numbers((3,), b, 2))), {}))
    for name in ("dot", "matmul", "inner", "vdot", "tensordot", "einsum", "concatenate", "stack", "vstack", "hstack"):
        for n, (a, b) in enumerate([*PAIRS, ("int8", "int8"), ("uint8", "uint8"), ("float16", "float16")]):
            first, second = numbers((3, 3), a, n), numbers((3, 3), b, n + 5)
            if name == "einsum" and not (a == b == "bool"):
                cases.append((name, ("ij,jk->ik", first, second), {}))
            elif name in ("concatenate", "stack", "vstack", "hstack"):
                cases.append((name, ([first, second],), {}))
            elif name not in ("einsum", "tensordot") or not (a == b == "bool"):
                cases.append((name, (first, second), {}))
    return cases
