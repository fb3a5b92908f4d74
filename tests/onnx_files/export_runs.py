"""What the tests of the export share: a case of the table of ops as a model, run by both runtimes beside the function.

`onnxruntime` must agree wherever it has the kernels, else the reference of the package `onnx`. Where both run a model,
both must agree, but for what is wrong in the reference itself (`REFERENCE_LIMITS`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from ops.case import Case, named, tensors

import twofold as tf
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir.replay import bind_sizes
from twofold.onnx_files import export_checks
from twofold.onnx_files.export import DEFAULT_OPSET
from twofold.onnx_files.export_model import message, model_of

# Operator -> what the reference of onnx 1.23 cannot do.
REFERENCE_LIMITS = {
    "TopK": "it takes 64 elements at most, and drops axes of size 1",
    "ConvTranspose": "it does not know groups with several outputs in all forms",
    "MaxPool": "it forgets padding at the end of one spatial axis",
}


class Unfit(Exception):
    """The trace does not take these arrays: it assumes something of sizes that were unknown."""


def traced(case: Case, arrays: Sequence[np.ndarray], open_sizes: bool = False) -> Any:
    """The trace of a case for such arrays."""
    function = named(case.fn)
    shapes = [a.shape for a in arrays]
    if open_sizes:
        shapes = _opened(case, shapes)
    specs = [tf.TensorSpec(s, dt.from_numpy(a.dtype)) for s, a in zip(shapes, arrays, strict=True)]
    made = tf.function(lambda *given: function(*given, **case.kwargs), autograph=False)
    return made.get_concrete_function(*specs)._traced


def _opened(case: Case, shapes: list[tuple[int, ...]]) -> list[Any]:
    """The shapes with unknown sizes; channels and filters of convolutions keep theirs."""
    if not any(op.startswith("conv") for op in case.ops):
        return [[None] * len(s) for s in shapes]
    first, *rest = shapes
    filters = "conv_filter_grad" not in case.ops
    return [[*[None] * (len(first) - 1), first[-1]],
            *[s if filters else [*[None] * (len(s) - 1), s[-1]] for s in rest]]


def check_case(case: Case, arrays: Sequence[np.ndarray], opset: int = DEFAULT_OPSET,
               open_sizes: bool = False) -> dict[str, float]:
    """By runtime, how far results are from the eager ones, as a part of the largest.

    Raises:
        AssertionError: they are not the same. Unfit: the trace is not for such sizes.
    """
    wanted = [t._array for t in case.call(*tensors(arrays))]
    trace = traced(case, arrays, open_sizes)
    model = model_of("case", trace, opset)
    if open_sizes:
        _require_fit(trace, arrays)
    proto = message(model)
    onnx.checker.check_model(proto, full_check=True)
    feeds = {t.name: np.asarray(a) for t, a in zip(model.inputs, arrays, strict=True)}
    outputs = [t.name for t in model.outputs]
    errors: dict[str, float] = {}
    with contextlib.suppress(export_checks.MissingKernel):
        errors["onnxruntime"] = _error(export_checks.run_onnxruntime(proto.SerializeToString(), feeds, outputs), wanted)
    try:
        errors["reference"] = _error(export_checks.run_reference(proto, feeds, outputs), wanted)
    except Exception:
        if REFERENCE_LIMITS.keys().isdisjoint(model.operators):
            raise
    return errors


def _error(got: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> float:
    assert len(got) == len(wanted)
    return max(export_checks.compare(np.asarray(g), w) for g, w in zip(got, wanted, strict=True))


def _require_fit(trace: Any, arrays: Sequence[np.ndarray]) -> None:
    sizes: dict[str, int] = {}
    for value, array in zip(trace.graph.inputs, arrays, strict=False):
        bind_sizes(value.dims, array.shape, sizes)
    for guard in trace.graph.guards:
        if guard.symbols() <= sizes.keys() and not guard.holds(sizes):
            raise Unfit(str(guard))
    for value, array in zip(trace.graph.inputs, arrays, strict=False):
        if tuple(dm.evaluate(value.dims, sizes)) != array.shape:
            raise Unfit(str(value.dims))
