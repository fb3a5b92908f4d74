"""Running a model beside the function that it was made of: by onnxruntime, and by the reference of the package `onnx`.

Results are compared with those of the function, called in Python with the same arrays. How far apart two results may be
is told in units of the largest one: products and sums go in other orders, and functions have errors of their own.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from twofold.ir import dtypes as dt

from .package import onnx_package

__all__ = ["MissingKernel", "REFERENCE_LIMITS", "compare", "run_onnxruntime", "run_reference", "has_onnxruntime"]

# By how much of the largest result, at most, results of a dtype may differ.
_TOLERANCE = {dt.float16: 4e-3, dt.bfloat16: 3e-2, dt.float32: 2e-4, dt.float64: 1e-9}


# Operator -> what the reference of onnx 1.23 does not do right with it.
REFERENCE_LIMITS = {
    "TopK": "it takes 64 elements at most, and drops axes of size 1",
    "ConvTranspose": "it does not know all forms with groups",
    "MaxPool": "it forgets padding at the end of one spatial axis",
}


class MissingKernel(Exception):
    """A runtime has no code for a node of the model."""


def has_onnxruntime() -> bool:
    """Whether the package onnxruntime is installed."""
    import importlib.util
    return importlib.util.find_spec("onnxruntime") is not None


def run_onnxruntime(model: Any, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> list[np.ndarray]:
    """The outputs of a model in onnxruntime, on the processor.

    Args:
        model: the bytes of a model, or the path of its file.
        inputs: arrays by name.
        outputs: names.
    Raises:
        MissingKernel: it has no code for a node.
    """
    import onnxruntime as ort
    from onnxruntime.capi import onnxruntime_pybind11_state as errors

    options = ort.SessionOptions()
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except errors.NotImplemented as error:
        raise MissingKernel(str(error).partition("NOT_IMPLEMENTED : ")[2] or str(error)) from None
    inputs = {name: _texts(a) if a.dtype.kind == "O" else a for name, a in inputs.items()}
    if any(a.dtype == ml_dtypes.bfloat16 for a in inputs.values()) or "bfloat16" in str(
            [o.type for o in session.get_outputs()]):
        return _by_values(ort, session, inputs, outputs)
    results: list[np.ndarray] = session.run(list(outputs), dict(inputs))
    return results


def _texts(array: np.ndarray) -> np.ndarray:
    """Strings as onnxruntime takes them: as text."""
    decoded = np.empty(array.shape, object)
    decoded.reshape(-1)[:] = [t.decode() if isinstance(t, bytes) else t for t in array.ravel()]
    return decoded


def _by_values(ort: Any, session: Any, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> list[np.ndarray]:
    """NumPy has no bfloat16 of its own: such arrays go in and come out as bits."""
    number = onnx_package().TensorProto.BFLOAT16
    given = {}
    for name, array in inputs.items():
        if array.dtype == ml_dtypes.bfloat16:
            bits = np.ascontiguousarray(array).view(np.uint16).reshape(array.shape)
            given[name] = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, number)
        else:
            given[name] = ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array).reshape(array.shape))
    results = session.run_with_ort_values(list(outputs), given)
    arrays = []
    for value in results:
        if value.element_type() == number:
            size = int(np.prod(value.shape(), dtype=np.int64))
            pointer = ctypes.cast(value.data_ptr(), ctypes.POINTER(ctypes.c_uint16))
            bits = np.array(np.ctypeslib.as_array(pointer, (size,)) if size else [], np.uint16)
            arrays.append(bits.view(ml_dtypes.bfloat16).reshape(value.shape()))
        else:
            arrays.append(value.numpy())
    return arrays


def run_reference(model: Any, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> list[np.ndarray]:
    """The outputs of a model in the reference of the package `onnx`, which is slow and has all operators.

    Args:
        model: a `ModelProto`, or the path of its file.
        inputs: arrays by name.
        outputs: names.
    Raises:
        MissingKernel: it does not take this model.
    """
    onnx_package()
    from onnx.reference import ReferenceEvaluator
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evaluator = ReferenceEvaluator(model)
        results = evaluator.run(list(outputs), dict(inputs))
    return [np.asarray(r) for r in results]


def compare(got: np.ndarray, want: np.ndarray, least: float = 0.0) -> float:
    """How far results are from those that are right, as a part of the largest.

    Args:
        got: the results.
        want: those that are right.
        least: of which they are a part at least: a gradient that is 0 but for rounding beside others is no more exact.
    Raises:
        ValueError: they are too far, or of another dtype or shape.
    """
    if got.dtype != want.dtype and not (got.dtype.kind in "OSU" and want.dtype.kind in "OSU"):
        raise ValueError(f"the result is of {got.dtype}, expected is {want.dtype}")
    if got.shape != want.shape:
        raise ValueError(f"the result has shape {list(got.shape)}, expected is {list(want.shape)}")
    dtype = dt.from_numpy(want.dtype)
    if not dtype.is_floating:
        if dtype is dt.string:
            got, want = (np.array([_bytes(t) for t in a.ravel()], object) for a in (got, want))
        wrong = int(np.count_nonzero(got != want))
        if wrong:
            raise ValueError(f"{wrong} of {want.size} elements differ")
        return 0.0
    have, goal = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(goal) & np.isfinite(have)
    same = (have == goal) | (np.isnan(have) & np.isnan(goal))
    if not (same | finite).all():
        wrong = int(np.count_nonzero(~(same | finite)))
        raise ValueError(f"{wrong} of {want.size} elements are infinite or NaN on one side only")
    if not finite.any():
        return 0.0
    scale = max(float(np.abs(goal[finite]).max()), least, float(ml_dtypes.finfo(want.dtype).tiny))
    error = float(np.abs(have[finite] - goal[finite]).max()) / scale
    if error > _TOLERANCE[dtype]:
        raise ValueError(f"the largest error is {error:.2g} of the largest element")
    return error


def _bytes(text: Any) -> bytes:
    return text if isinstance(text, bytes) else str(text).encode()
