"""`tf.export.onnx`: a function or a model as an ONNX file, run beside the function before it is written.

What an op means in ONNX is the table of `export_meanings.py`, how a model is put together `export_model.py`, how it is
run and compared `export_checks.py`. Nothing is written before all of that has gone well.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from twofold._formats.replacing import Contents, folder_beside, replace_all
from twofold._front.api import public
from twofold.eager.tensor import Tensor
from twofold.ir import dims as dm
from twofold.ir.dims import Dim
from twofold.ir.errors import OpError
from twofold.ir.replay import bind_sizes
from twofold.ir.spec import as_numpy
from twofold.tracer.traced import Traced

from . import export_checks as checks
from .export_model import Model, TensorInfo, array_of, message, model_of
from .package import onnx_package

__all__ = ["onnx", "OnnxFile", "OPSETS", "DEFAULT_OPSET"]

_LOG = logging.getLogger("twofold.onnx")
OPSETS = range(18, 29)
DEFAULT_OPSET = 26  # the newest with operators that are used here, all of which onnxruntime knows
_LARGE = 2_000_000_000  # bytes of weights from which on they get a file of their own: a message has at most 2 GiB
_ALIGNED = 4096  # bytes: programs map weights, page by page
_SMALLEST = 1024  # bytes of what stays in the model
_NOTHING = 1e-3  # of the largest of all results, what a result is measured by at least
_SIZES = (3, 4, 2, 5, 6, 8, 12, 16, 24, 32, 64, 1)  # what is tried for unknown sizes, unless inputs are given


@dataclass(frozen=True)
class OnnxFile:
    """What `tf.export.onnx` wrote.

    Attributes:
        path: the model.
        weights: the file with its weights where these are too large for the model, else None.
        opset: the version of ONNX's operators.
        inputs, outputs: how each tensor is called, with dtype and shape.
        state: the variables that the function assigns: inputs with a default, and results `NAME_new`.
        operators: how many nodes there are of each operator.
        checked: by runtime, how far its results are from the function's, as a part of the largest; or why it did not
            run the model.
        unchecked: what the function checks and the model does not.
    """

    path: Path
    weights: Path | None
    opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    state: tuple[str, ...]
    operators: dict[str, int] = field(repr=False)
    checked: dict[str, float | str] = field(repr=False)
    unchecked: dict[str, str] = field(repr=False)


@public
def onnx(function: Any, path: str | os.PathLike[str], opset: int = DEFAULT_OPSET, check: bool = True,
         inputs: Sequence[Any] | None = None) -> OnnxFile:
    """Write a function or a model to a file in the Open Neural Network Exchange format.

    Every op becomes operators of ONNX, branches `If`, loops `Loop` and `Scan`. Unknown sizes are named dimensions, and
    variables are initializers under their names. A variable that the function assigns is an input, whose default is
    its value, and a result `NAME_new`: so a training step runs in a runtime for inference.

    Assertions (`tf.debugging.assert_*`) have no operator and are left out; `unchecked` of the result and a line in the
    log of "twofold.onnx" tell which.

    The model is then checked: by the checker of the package `onnx`, and by running it in its reference and, where that
    is installed, in onnxruntime, beside the function itself.

    Args:
        function: a `tf.function` with one signature, a concrete function, a model of `tf.keras` that knows its inputs,
            an object or a dict with one function, or the folder of a saved model.
        path: the file to write, `NAME.onnx`. Weights of more than 2 GB go to `NAME.onnx.data` beside it.
        opset: the version of ONNX's operators, from 18 to 28.
        check: whether the model is run before it is written.
        inputs: arrays for a call with which it is checked; by default random floats, and zeros and ones for integers.
    Returns:
        An `OnnxFile`.
    Raises:
        UnimplementedError: an op has no meaning in ONNX; the error names the op, its line, and what to do instead.
        ValueError: there is not one function, an argument makes no sense, or a runtime gives other results.
        ImportError: the package `onnx` is missing: `pip install 'twofold[onnx]'`.

    >>> import pathlib, tempfile
    >>> import twofold as tf
    >>> @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
    ... def lengths(x):
    ...     return tf.sqrt(tf.reduce_sum(x * x, axis=1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = tf.export.onnx(lengths, pathlib.Path(folder) / "lengths.onnx", check=False)
    ...     print(model.inputs, model.outputs, model.operators)
    ('x: float32[n, 2]',) ('output: float32[n]',) {'Mul': 1, 'ReduceSum': 1, 'Sqrt': 1}
    """
    to = Path(path)
    if to.suffix != ".onnx":
        raise ValueError(f"the path must end in .onnx; got {os.fspath(path)!r}.")
    if not to.parent.is_dir():
        raise ValueError(f"there is no folder {os.fspath(to.parent)!r} to write to.")
    if isinstance(opset, bool) or not isinstance(opset, int) or opset not in OPSETS:
        raise ValueError(f"opset must be an integer from {OPSETS[0]} to {OPSETS[-1]}; got {opset!r}.")
    package = onnx_package()
    if opset > package.defs.onnx_opset_version():
        raise ValueError(f"the package onnx {package.__version__} knows opsets up to "
                         f"{package.defs.onnx_opset_version()}; got {opset}.")
    name, traced = _the_function(function)
    model = model_of(name, traced, opset)
    given = _example(model, traced, inputs) if check else None
    files = _files(model, to)
    checked = {} if given is None else _checked(model, traced, given, files, to)
    replace_all(files)
    if "unchecked" in model.notes:
        _LOG.warning("%s: ONNX has no operator that stops a run, so that the model does not check the %s",
                     os.fspath(to), model.notes["unchecked"])
    return OnnxFile(to, to.with_name(f"{to.name}.data") if len(files) > 1 else None, opset,
                     tuple(map(str, model.inputs)), tuple(map(str, model.outputs)), tuple(t.name for t in model.state),
                     model.operators, checked, dict(model.notes))


def _the_function(given: Any) -> tuple[str, Traced]:
    """The one trace that there is."""
    from twofold.export.collect import collect

    traces = collect(given, "tf.export.onnx")
    if len(traces) > 1:
        raise ValueError("an ONNX model is one function, and there are several: " + ", ".join(traces) + ". Give one of "
                         "them, such as a concrete function (get_concrete_function) or a signature of a saved model.")
    [(name, traced)] = traces.items()
    return name, traced


# -- files --------------------------------------------------------------------------------------------
def _files(model: Model, to: Path) -> dict[str | os.PathLike[str], Contents]:
    """The contents of the file, and of that with weights where these are too large."""
    total = sum(a.nbytes for a in model.initializers.values())
    if total <= _LARGE:
        return {to: message(model).SerializeToString()}
    beside = f"{to.name}.data"
    places: dict[str, tuple[str, int, int]] = {}
    at = 0
    for name, array in model.initializers.items():
        if array.nbytes >= _SMALLEST and array.dtype.kind != "O":
            at = -(-at // _ALIGNED) * _ALIGNED
            places[name] = (beside, at, array.nbytes)
            at += array.nbytes
    return {to.with_name(beside): _writer_of(model.initializers, places),
            to: message(model, places).SerializeToString()}


def _writer_of(arrays: Mapping[str, np.ndarray],
               places: Mapping[str, tuple[str, int, int]]) -> Callable[[BinaryIO], object]:
    def write(file: BinaryIO) -> None:
        end = 0
        for name, (_, at, length) in places.items():
            file.write(b"\0" * (at - end))
            file.write(np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data)
            end = at + length
    return write


# -- checks -------------------------------------------------------------------------------------------
def _example(model: Model, traced: Traced, inputs: Sequence[Any] | None) -> list[np.ndarray]:
    """Arrays for a call.

    Raises:
        ValueError: those that were given do not fit.
    """
    if inputs is None:
        rng, chosen = np.random.default_rng(0), _example_sizes(model)
        return [_random(rng, t, chosen) for t in model.inputs]
    if len(inputs) != len(model.inputs):
        raise ValueError(f"inputs must be {len(model.inputs)} arrays, one for each of {_listed(model.inputs)}; got "
                         f"{len(inputs)}.")
    arrays, sizes = [], dict[str, int]()
    for t, value in zip(model.inputs, inputs, strict=True):
        array = value._array if isinstance(value, Tensor) else np.asarray(as_numpy(value), t.dtype.np)
        fits = array.ndim == len(t.dims)
        if fits:
            bind_sizes(t.dims, array.shape, sizes)
            fits = tuple(dm.evaluate(t.dims, sizes)) == array.shape
        if not fits:
            raise ValueError(f"the input {t} was given an array of shape {list(array.shape)}.")
        arrays.append(array)
    for guard in model.guards:
        if guard.symbols() <= sizes.keys() and not guard.holds(sizes):
            raise ValueError(f"{model.title} was traced for sizes with {guard}, which those of the inputs have not.")
    return arrays


def _example_sizes(model: Model) -> dict[str, int]:
    """Sizes for which the function was traced: one number for all that are open."""
    names = {s for t in model.inputs for d in t.dims if isinstance(d, Dim) for s in d.symbols()}
    for size in _SIZES:
        sizes = dict.fromkeys(names, size)
        if all(guard.holds(sizes) for guard in model.guards if guard.symbols() <= names):
            return sizes
    raise ValueError(f"{model.title} was traced for sizes with {model.notes['sizes']}: give inputs=[...] of such sizes "
                     "to check the model with, or check=False.")


def _listed(tensors: Sequence[TensorInfo]) -> str:
    return ", ".join(map(str, tensors)) or "none"


def _random(rng: np.random.Generator, t: TensorInfo, sizes: dict[str, int]) -> np.ndarray:
    shape = tuple(dm.evaluate(t.dims, sizes))
    if t.dtype.name == "string":
        return rng.choice(np.array([b"a", b"bc", b""], object), shape)
    values = rng.standard_normal(shape) if t.dtype.is_floating else rng.integers(0, 2, shape)
    return np.asarray(values).astype(t.dtype.np)


def _checked(model: Model, traced: Traced, given: Sequence[np.ndarray],
             files: Mapping[str | os.PathLike[str], Contents], to: Path) -> dict[str, float | str]:
    """How far each runtime is from the function.

    Raises:
        ValueError: one gives something else.
    """
    try:
        wanted = _called(traced, given)
    except OpError as error:
        raise ValueError(f"{model.title} does not run with the arrays that the model was to be checked with: {error}\n"
                         "Give inputs=[...] with which it does, or check=False.") from None
    feeds = {t.name: np.asarray(a) for t, a in zip(model.inputs, given, strict=True)}
    names = [t.name for t in (*model.outputs, *model.updates)]
    if len(files) == 1:
        [contents] = files.values()
        proto = onnx_package().load_model_from_string(contents)
        return _compared(model, contents, proto, feeds, names, wanted)
    with folder_beside(to) as folder:
        for path, contents in files.items():
            with open(os.path.join(folder, os.path.basename(path)), "wb") as file:
                contents(file) if callable(contents) else file.write(contents)
        path = os.path.join(folder, to.name)
        return _compared(model, path, path, feeds, names, wanted)


def _compared(model: Model, for_runtime: Any, proto: Any, feeds: Mapping[str, np.ndarray], names: Sequence[str],
              wanted: Sequence[np.ndarray]) -> dict[str, float | str]:
    package = onnx_package()
    try:
        package.checker.check_model(proto, full_check=True)
    except (package.checker.ValidationError, package.shape_inference.InferenceError) as error:
        raise ValueError(f"{model.title}: onnx.checker refuses the model: {error}") from None
    whole = {**feeds, **{t.name: model.initializers[t.name] for t in model.state}}
    results: dict[str, float | str] = {}
    if checks.has_onnxruntime():
        results["onnxruntime"] = _by("onnxruntime", checks.run_onnxruntime, model, for_runtime, feeds, names, wanted)
    else:
        results["onnxruntime"] = "not installed"
    try:
        results["reference"] = _by("onnx.reference", checks.run_reference, model, proto, whole, names, wanted)
    except ValueError:
        limits = [f"{kind}: {text}" for kind, text in checks.REFERENCE_LIMITS.items() if kind in model.operators]
        if not limits or not isinstance(results["onnxruntime"], float):
            raise
        results["reference"] = f"not compared, for what the reference does not do right ({'; '.join(limits)})"
    return results


def _by(what: str, run: Callable[..., list[np.ndarray]], model: Model, proto: Any, feeds: Mapping[str, np.ndarray],
        names: Sequence[str], wanted: Sequence[np.ndarray]) -> float | str:
    try:
        results = run(proto, feeds, names)
    except checks.MissingKernel as error:
        return f"not run: {error}"
    except Exception as error:
        raise ValueError(f"{model.title}: {what} cannot run the model: {error}") from error
    worst, least = 0.0, _NOTHING * max(map(_largest, wanted), default=0.0)
    for name, got, want in zip(names, results, wanted, strict=True):
        try:
            worst = max(worst, checks.compare(got, want, least))
        except ValueError as error:
            raise ValueError(f"{model.title}: the result {name} of {what} is not that of the function: {error}. Give "
                             "inputs=[...] where random ones make no sense; check=False leaves the comparison out."
                             ) from None
    return worst


def _largest(array: np.ndarray) -> float:
    """The largest finite magnitude among floats; 0 for other arrays."""
    if array.dtype.kind not in "fV":
        return 0.0
    sizes = np.abs(array.astype(np.float64))
    return float(sizes[np.isfinite(sizes)].max(initial=0.0))


def _called(traced: Traced, given: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the function gives, and the values that its variables get, which it does not keep."""
    from twofold.eager.constructs import run_graph
    from twofold.eager.tensor import wrap

    captured = [wrap(array_of(c)) for c in traced.captures]
    results = run_graph(traced.graph, [*[wrap(a) for a in given], *captured])
    return [t._array for t in results]
