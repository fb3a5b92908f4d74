"""Python called at run time: `tf.print`, `tf.py_function`, `tf.numpy_function`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from twofold.eager import summary
from twofold.eager.tensor import Tensor
from twofold.eager.variable import Variable
from twofold.ir import dtypes as dt
from twofold.ir import nest
from twofold.ir.errors import InvalidArgumentError
from twofold.ir.spec import TensorSpec
from twofold.tracer import host

from .api import public, tensor

__all__ = ["print", "py_function", "numpy_function"]


@public
def print(*inputs: Any, **kwargs: Any) -> None:
    """Print tensors, structures of them, and Python values, each time that this is reached.

    Inside a `tf.function` Python's `print` runs once per trace; this runs in every call.

    Args:
        inputs: what to print. Of a tensor the first and last entries of each axis are shown.
        output_stream: `sys.stderr` (the default), `sys.stdout`, a path as `"file://PATH"` to append to, or a
            function of a text, such as `logging.info`.
        summarize: how many entries are shown at each end of an axis; 3 by default, -1 for all.
        sep: what separates the inputs; a space by default.
        end: what ends the text; a line break by default.
        name: accepted, without effect.
    Raises:
        ValueError: there is no such stream, or no such argument.

    >>> import sys
    >>> import twofold as tf
    >>> tf.print("x:", tf.range(10), {"a": tf.constant([[1.5, 2.0]])}, output_stream=sys.stdout)
    x: [0 1 2 ... 7 8 9] {'a': [[1.5 2]]}
    """
    stream = kwargs.pop("output_stream", None)
    write = _stream(stream)
    summarize, sep, end = kwargs.pop("summarize", 3), kwargs.pop("sep", " "), kwargs.pop("end", "\n")
    kwargs.pop("name", None)
    if kwargs:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {sorted(kwargs)}")
    pieces, tensors = summary.template_of(inputs, sep)
    shown = 3 if summarize is None else int(summarize)
    tail = "\n" if end is None else end

    show = Printed(pieces, _standard(stream), shown, tail, write)
    host.call(show, "print", [tensor(t) for t in tensors], [])


class Printed:
    """The function that a `tf.print` calls each time that it is reached; it can be saved where it writes to a standard
    stream.

    Attributes:
        pieces: the text around the tensors.
        stream: "stdout", "stderr", or "" for any other.
        summarize: how many entries of an axis are shown at each end.
        end: what ends the text.
    """

    def __init__(self, pieces: Sequence[str], stream: str, summarize: int, end: str,
                 write: Callable[[str], Any] | None = None) -> None:
        self.pieces, self.stream, self.summarize, self.end = list(pieces), stream, summarize, end
        self._write = _stream(stream) if write is None else write

    def __call__(self, *tensors: Any) -> tuple[()]:
        self._write(summary.filled(self.pieces, tensors, self.summarize) + self.end)
        return ()


def _standard(given: Any) -> str:
    """The name of a standard stream; empty for any other."""
    if given is None or given is sys.stderr or given == "stderr":
        return "stderr"
    return "stdout" if given is sys.stdout or given == "stdout" else ""


def _stream(given: Any) -> Callable[[str], Any]:
    """A function that writes to a stream; the standard streams are those of the moment of writing."""
    name = _standard(given)
    if name:
        return lambda text: _write(getattr(sys, name), text)
    if isinstance(given, str) and given.startswith("file://"):
        return lambda text: _append(given[len("file://"):], text)
    if callable(given):
        return lambda text: given(text.removesuffix("\n"))
    if hasattr(given, "write"):
        return lambda text: _write(given, text)
    raise ValueError(f"Could not process the provided output_stream, {given}. Supported are sys.stdout, sys.stderr, "
                     "'file://PATH', and functions of a text.")


def _write(stream: Any, text: str) -> None:
    stream.write(text)
    if hasattr(stream, "flush"):
        stream.flush()


def _append(path: str, text: str) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)


@public
def py_function(func: Callable[..., Any] | None = None, inp: Sequence[Any] | None = None, Tout: Any = None,
                name: str | None = None) -> Any:
    """Call a Python function of tensors, each time that this is reached; gradients pass through it.

    Args:
        func: called with the tensors of `inp`, which have values there, also where a `tf.function` is traced here.
            Without it the result is a decorator: the function that it makes takes the tensors as its arguments.
        inp: a list of tensors, variables or values that convert to tensors.
        Tout: the dtype of the result, or a `tf.TensorSpec`; or a list of them for several results. Inside a
            `tf.function` a result of which only the dtype is known needs `set_shape` before it is used.
        name: accepted, without effect.
    Returns:
        A tensor, or a list of them where `Tout` is a list.
    Raises:
        InvalidArgumentError: `func` gives another number of results. TypeError: `Tout` is missing.

    >>> import twofold as tf
    >>> @tf.function
    ... def f(x):
    ...     return tf.py_function(lambda t: float(t) + 1.0, [x], tf.TensorSpec([], tf.float32))
    >>> f(tf.constant(2.0)).numpy().item()
    3.0
    >>> @tf.py_function(Tout=tf.float32)
    ... def cube(x):
    ...     return x ** 3
    >>> cube(tf.constant(2.0)).numpy().item()
    8.0
    """
    del name
    _require_results("py_function", Tout)
    if func is None:
        return _decorator(lambda fn, args: py_function(fn, args, Tout))
    specs = _specs(Tout)
    title = getattr(func, "__name__", repr(func))

    def call_with_tensors(*tensors: Any) -> list[Any]:
        results = _results(func(*tensors), specs, title)
        return _declared([tensor(r, s.dtype) for r, s in zip(results, specs, strict=True)], specs, title)
    return _structured(host.differentiable(call_with_tensors, title, _operands(inp), specs), Tout)


@public
def numpy_function(func: Callable[..., Any] | None = None, inp: Sequence[Any] | None = None, Tout: Any = None,
                   stateful: bool = True, name: str | None = None) -> Any:
    """Call a Python function of NumPy arrays, each time that this is reached; it has no gradient.

    Args:
        func: called with the values of `inp` as arrays, which it must not change. Without it the result is a
            decorator: the function that it makes takes the tensors as its arguments.
        inp: a list of tensors, variables or values that convert to tensors.
        Tout: the dtype of the result, or a `tf.TensorSpec`; or a list of them for several results. Inside a
            `tf.function` a result of which only the dtype is known needs `set_shape` before it is used.
        stateful, name: accepted, without effect.
    Returns:
        A tensor, or a list of them where `Tout` is a list.
    Raises:
        InvalidArgumentError: `func` gives another number of results, or other dtypes. TypeError: `Tout` is missing.

    >>> import numpy as np
    >>> import twofold as tf
    >>> tf.numpy_function(np.sinh, [tf.constant([0.0])], tf.float32)
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([0.], dtype=float32)>
    """
    del stateful, name
    _require_results("numpy_function", Tout)
    if func is None:
        return _decorator(lambda fn, args: numpy_function(fn, args, Tout))
    specs = _specs(Tout)
    title = getattr(func, "__name__", repr(func))

    def call_with_arrays(*tensors: Any) -> list[Any]:
        arrays = [np.array(t._array) for t in tensors]
        from twofold.eager import record
        with record.telling(()):
            results = [tensor(np.asarray(r)) for r in _results(func(*arrays), specs, title)]
        for i, (r, s) in enumerate(zip(results, specs, strict=True)):
            if r.dtype is not s.dtype:
                raise InvalidArgumentError(None, "numpy_function", f"{i}-th value returned by {title} is "
                                           f"{r.dtype.name}, but expects {s.dtype.name}")
        return _declared(results, specs, title)
    return _structured(host.call(call_with_arrays, title, _operands(inp), specs), Tout)


def _require_results(name: str, declared: Any) -> None:
    if declared is None:
        raise TypeError(f"tf.{name} needs Tout, the dtype of the result or a list of dtypes ([] for no results). As a "
                        f"decorator it takes it by name: @tf.{name}(Tout=tf.float32).")


def _decorator(call: Callable[[Callable[..., Any], tuple[Any, ...]], Any]) -> Callable[..., Any]:
    """A decorator whose function hands its arguments on to `call`."""
    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def calling(*args: Any) -> Any:
            return call(fn, args)
        return calling
    return decorate


def _specs(given: Any) -> list[TensorSpec]:
    """`Tout` as specs; a dtype alone leaves the rank open."""
    leaves = nest.flatten(given) if isinstance(given, (list, tuple)) else [given]
    return [s if isinstance(s, TensorSpec) else TensorSpec(None, dt.as_dtype(s)) for s in leaves]


def _structured(results: list[Any], given: Any) -> Any:
    return list(results) if isinstance(given, (list, tuple)) else results[0]


def _operands(inp: Sequence[Any] | None) -> list[Tensor]:
    values = inp if isinstance(inp, (list, tuple)) else [] if inp is None else [inp]
    return [tensor(v._read_tensor() if isinstance(v, Variable) else v) for v in values]


def _results(given: Any, specs: Sequence[TensorSpec], title: str) -> list[Any]:
    """The results of a function as a list, of which there must be as many as were declared."""
    results = list(given) if isinstance(given, (list, tuple)) and len(specs) != 1 else (
        given if isinstance(given, list) and len(given) == 1 and len(specs) == 1 and not _is_row(given, specs[0])
        else [] if given is None else [given])
    if not specs:
        return []
    if len(results) != len(specs):
        raise InvalidArgumentError(None, "py_function", f"{title} returns {len(results)} values, but expects to see "
                                   f"{len(specs)} values.")
    return list(results)


def _declared(results: list[Any], specs: Sequence[TensorSpec], title: str) -> list[Any]:
    """The results, which have the shapes that were declared."""
    for result, spec in zip(results, specs, strict=True):
        if not spec.shape.is_compatible_with(result.shape):
            raise InvalidArgumentError(None, title, f"{title}: gave a result of shape {result.shape}; expected "
                                       f"{spec.shape}.")
    return results


def _is_row(given: list[Any], declared: TensorSpec) -> bool:
    """Whether a list of one value is a tensor of rank 1 rather than a list of results."""
    return declared.rank is not None and declared.rank == np.ndim(given[0]) + 1
