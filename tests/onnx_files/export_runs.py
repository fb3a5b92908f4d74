"""What the tests of the export share: a case of the table of ops as a model, run by both runtimes beside the function.

`onnxruntime` must agree wherever it has the kernels, else the reference of the package `onnx`. Where both run a model,
both must agree, but for what is wrong in the reference itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
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


class Unfit(Exception):
    """The trace does not take these arrays: it assumes something of sizes that were unknown."""


def traced(case: Case, arrays: Sequence[np.ndarray], open_sizes: bool = False) -> Any:
    """The trace of a case for such arrays."""
    function = named(case.fn)
    shapes = [a.shape for a in arrays]
    return _trace(lambda *given: function(*given, **case.kwargs), arrays,
                  _opened(case, shapes) if open_sizes else shapes)


def _trace(function: Callable[..., Any], arrays: Sequence[np.ndarray], shapes: Sequence[Any]) -> Any:
    specs = [tf.TensorSpec(s, dt.from_numpy(a.dtype)) for s, a in zip(shapes, arrays, strict=True)]
    return tf.function(function, autograph=False).get_concrete_function(*specs)._traced


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
    trace = traced(case, arrays, open_sizes)
    return _check(trace, arrays, [t._array for t in case.call(*tensors(arrays))], opset)


def check_gradient(case: Case, arrays: Sequence[np.ndarray]) -> dict[str, float]:
    """The like for the gradient of a sum of the case's results, each with a weight of its own."""
    function, which = named(case.fn), case.differentiable([dt.from_numpy(a.dtype) for a in arrays])

    def gradient(*given: Any) -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch([given[i] for i in which])
            results = [y for y in tf.nest.flatten(function(*given, **case.kwargs)) if y.dtype.is_floating]
            total = tf.add_n([tf.reduce_sum(y * _weights(y)) for y in results])
        return [g for g in tape.gradient(total, [given[i] for i in which]) if g is not None]
    wanted = [g._array for g in gradient(*tensors(arrays))]
    return _check(_trace(gradient, arrays, [a.shape for a in arrays]), arrays, wanted, DEFAULT_OPSET)


def _weights(y: Any) -> Any:
    return tf.cast(tf.reshape(tf.range(tf.size(y)) % 5 + 1, tf.shape(y)), y.dtype)


def _check(trace: Any, arrays: Sequence[np.ndarray], wanted: Sequence[np.ndarray], opset: int) -> dict[str, float]:
    model = model_of("case", trace, opset)
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
        if export_checks.REFERENCE_LIMITS.keys().isdisjoint(model.operators):
            raise
    return errors


def _error(got: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> float:
    assert len(got) == len(wanted)
    return max([export_checks.compare(np.asarray(g), w) for g, w in zip(got, wanted, strict=True)], default=0.0)


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
