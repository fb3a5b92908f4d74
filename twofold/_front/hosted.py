"""Functions of the library that Python runs inside of graphs, by name, so that saved models can hold their calls.

A `hosted` function makes one call of Python (`iteration.host_call`). In a trace that call is noted as a `HostedCall`:
which function it is, and its arguments with a spec in the place of each tensor. That is data: a saved model writes it,
and loading one makes the call again, of a function of this closed list.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

from twofold.eager import convert
from twofold.eager.tensor import Tensor
from twofold.eager.variable import Variable
from twofold.ir import nest
from twofold.ir.errors import CompositeOperand
from twofold.ir.op import tracing
from twofold.ir.spec import TensorSpec
from twofold.tracer import host

__all__ = ["HostedCall", "call", "hosted"]

F = TypeVar("F", bound=Callable[..., Any])
# modules that have such functions
_MODULES = ("strings", "io", "image._boxes", "image._glimpses", "image._suppression", "_formats.gfile",
            "_formats.tensor_proto", "_formats.image_files", "_formats.image_encoding", "_formats.decoding",
            "_formats.json_example", "_formats.wav", "_formats.parsing", "_front.scopes", "_ops.nn_ctc",
            "_ops.nn_sampled", "_ops.nn_windows", "_ops.signal_frames", "_ops.string_hashes", "_ops.string_joining",
            "_ops.string_unicode", "_sparse.serialized", "lookup._contents", "onnx_files.words", "sets")
_functions: dict[str, Callable[..., Any]] = {}


class HostedCall:
    """A call of a hosted function in a graph.

    Args:
        name: of the function.
        args, kwargs: of the call, with a TensorSpec for each tensor.
    Attributes:
        operands: how many tensors it takes.
    Raises:
        ValueError: there is no such function.
    """

    def __init__(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if name not in _functions:
            for module in _MODULES:
                importlib.import_module(f"twofold.{module}")
        if name not in _functions:
            raise ValueError(f"there is no function {name!r} that Python runs in graphs")
        self.name, self.args, self.kwargs = name, args, dict(sorted(kwargs.items()))  # the order of `nest`
        leaves = [nest.flatten(x) for x in (*args, *kwargs.values())]
        self._replaced = [any(isinstance(leaf, (TensorSpec, _Itself)) for leaf in of_one) for of_one in leaves]
        self.operands = sum(isinstance(leaf, TensorSpec) for of_one in leaves for leaf in of_one)

    def __call__(self, *tensors: Tensor) -> Sequence[Any]:
        """The results of the call of Python, for tensors."""
        rest = iter(tensors)
        given = [_filled(x, rest) if replaced else x
                 for x, replaced in zip((*self.args, *self.kwargs.values()), self._replaced, strict=True)]
        places = len(self.args)
        results: list[Any] = []
        token = _under_way.set(results)
        try:
            _functions[self.name](*given[:places], **dict(zip(self.kwargs, given[places:], strict=True)))
        finally:
            _under_way.reset(token)
        return results[0]


class _Itself:
    """What the user gave and nothing stands for: a TensorSpec, or an argument that is nested too deeply to be looked
    into, which the function refuses if it matters. Such a call cannot be saved."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _filled(value: Any, tensors: Iterator[Tensor]) -> Any:
    """An argument with the next tensors in the places of the specs that stand for them."""
    def leaf(x: Any) -> Any:
        return next(tensors) if isinstance(x, TensorSpec) else x.value if isinstance(x, _Itself) else x
    return nest.map_structure(leaf, value)


class _Pending:
    """A call of a hosted function that is being traced."""

    def __init__(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.tensors: list[Tensor] = []
        noted = tuple([self._noted(x) for x in args])
        self.made = HostedCall(name, noted, {k: self._noted(kwargs[k]) for k in sorted(kwargs)})  # the order of `nest`

    def _noted(self, argument: Any) -> Any:
        """An argument with a spec in the place of each tensor."""
        tensors: list[Tensor] = []

        def outline(x: Any) -> Any:
            if isinstance(x, TensorSpec):
                return _Itself(x)
            if not isinstance(x, (Tensor, Variable)) and not (isinstance(x, np.ndarray) and x.dtype.kind != "O"):
                return x
            tensors.append(convert.as_tensor(x))
            return TensorSpec(tensors[-1].shape, tensors[-1].dtype)
        try:
            for leaf in nest.flatten(argument, expand_composites=False):
                if nest.is_composite(leaf):
                    raise CompositeOperand(leaf)
            noted = nest.map_structure(outline, argument)
        except RecursionError:
            return _Itself(argument)
        self.tensors += tensors
        return noted


# The call that is being traced, or the list that takes the results of a call made again; None outside of hosted ones.
_under_way: ContextVar[_Pending | list[Any] | None] = ContextVar("hosted_call", default=None)


def hosted(fn: F) -> F:
    """A function of the library that makes one call of Python, for saved models to hold."""
    name = fn.__name__
    _functions[name] = fn

    @functools.wraps(fn)
    def calling(*args: Any, **kwargs: Any) -> Any:
        if tracing() is None or _under_way.get() is not None:
            return fn(*args, **kwargs)
        token = _under_way.set(_Pending(name, args, kwargs))
        try:
            return fn(*args, **kwargs)
        finally:
            _under_way.reset(token)
    return calling  # type: ignore[return-value]


def call(fn: Callable[..., Any], name: str, operands: Sequence[Any], results: Sequence[TensorSpec]) -> list[Any]:
    """The results of `fn` for tensors: at once, or each time that the traced function runs."""
    pending = _under_way.get()
    if isinstance(pending, _Pending) and tracing() is not None:
        return host.call(pending.made, name, pending.tensors, results)
    outputs = host.call(fn, name, [convert.as_tensor(t) for t in operands], results)
    if isinstance(pending, list):
        pending.append(outputs)
    return outputs
