"""Models of ONNX files as compiled functions with their weights as variables: what `tf.import_onnx` gives."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._formats.node_errors import FAULTS, NodeError, told
from twofold._front.api import SymbolicValueError, open_methods
from twofold.ir.errors import InvalidArgumentError, UnimplementedError
from twofold.ir.recent import Recent
from twofold.ir.spec import TensorSpec
from twofold.module import Module

from .import_file import read_model
from .import_graph import Model, Node, walk
from .import_run import Run
from .import_standard import defines
from .import_table import find
from .import_values import NeedsSizes, tensor_of
from .import_weights import Weights, by_value

__all__ = ["OnnxModel", "imported"]

_VARIANTS = 64  # functions that are kept for different values of inputs which decide shapes


class OnnxModel(Module):
    """A model of an ONNX file: a callable module whose variables are the model's weights.

    It is compiled as any `tf.function`, and tapes, `tf.saved_model.save` and `tf.export.native` take it as they take
    other modules. `tf.import_onnx` makes it.
    """

    def __init__(self, model: Model, name: str) -> None:
        super().__init__(name="onnx_model")
        self._model, self._source = model, name
        self._kept = Weights(model)
        self._weights = self._kept.variables
        self._values = by_value(model.graph)
        self._variants: Recent[Any, Callable[..., Any]] = Recent(_VARIANTS)
        self._main = self._function()
        self._calls = tf.function(self._body({}), autograph=False)

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """The specs of the arguments, by name, in order."""
        return tuple([spec if spec is not None else TensorSpec(None, tf.float32, name)
                      for name, spec in self._model.graph.inputs])

    @property
    def outputs(self) -> tuple[TensorSpec | None, ...]:
        """The specs of the results in order, as far as the file tells them."""
        return tuple([spec for _, spec in self._model.graph.outputs])

    @property
    def signatures(self) -> dict[str, Any]:
        """The compiled function by the name that `tf.export.native` gives it in C."""
        return {"predict": self._main}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The model's result: a tensor, or a tuple of them where there are several.

        Args:
            args: arrays or tensors in the order of `inputs`.
            kwargs: the rest of them by name.
        Raises:
            TypeError: one is missing, or there are too many.
            tf.errors.InvalidArgumentError: shapes or dtypes do not fit.
        """
        given = self._in_order(args, kwargs)
        if not self._values:
            return self._calls(*given)
        known = {place: _value(given[place], self.inputs[place].name) for place in self._values}
        key = tuple((v.dtype.str, v.shape, v.tobytes()) for v in known.values())
        variant = self._variants.get(key)
        if variant is None:
            variant = self._variants.remember(key, tf.function(self._body(known), autograph=False))
        return variant(*[v for place, v in enumerate(given) if place not in known])

    def _in_order(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        names = [name for name, _ in self._model.graph.inputs]
        if len(args) > len(names) or not {*kwargs} <= {*names[len(args):]}:
            raise TypeError(f"the model takes {names}; got {len(args)} arguments and {sorted(kwargs)} by name.")
        missing = [n for n in names[len(args):] if n not in kwargs]
        if missing:
            raise TypeError(f"the model takes {names}; {missing} are missing.")
        given = [*args, *[kwargs[n] for n in names[len(args):]]]
        return [_fitting(v, name, s) for v, (name, s) in zip(given, self._model.graph.inputs, strict=True)]

    def _functions_to_save(self) -> dict[str, Any]:
        return {"__call__": self._main}

    def _tracked_children(self) -> dict[str, Any]:
        return {"_weights": self._weights}

    def _function(self) -> Any:
        """The compiled function; of a model whose ranks are told, for all sizes that it leaves open."""
        specs = self.inputs
        body = self._body({})
        told = all(spec is not None and spec.shape.rank is not None for _, spec in self._model.graph.inputs)
        if self._values or not told:
            return tf.function(body, autograph=False)
        made = tf.function(body, input_signature=list(specs), autograph=False)
        try:
            made.get_concrete_function()
        except (NeedsSizes, SymbolicValueError):
            return tf.function(body, autograph=False)
        return made

    def _body(self, known: dict[int, np.ndarray]) -> Callable[..., Any]:
        """The function of the inputs that are not known."""
        graph, count = self._model.graph, len(self._model.graph.inputs)

        def run(*args: Any) -> Any:
            rest = iter(args)
            given = [known[place] if place in known else next(rest) for place in range(count)]
            try:
                results = Run(self._model, self._kept.value).graph(graph, given)
            except NeedsSizes:
                raise
            except NodeError as e:
                raise (e.cause if isinstance(e.cause, SymbolicValueError) else told(e, self._source)) from e.cause
            except FAULTS as e:
                raise InvalidArgumentError(f"{self._source}: {str(e)[:500]}") from e
            made = tuple([[tensor_of(v) for v in r] if isinstance(r, list) else tensor_of(r) for r in results])
            return made[0] if len(made) == 1 else made
        return run


def _fitting(given: Any, name: str, spec: TensorSpec | None) -> Any:
    """An argument as a tensor of a spec; what has none may be a sequence, which is a list of tensors."""
    if spec is None:
        return [tf.convert_to_tensor(v) for v in given] if isinstance(given, list) else tf.convert_to_tensor(given)
    x = given if isinstance(given, tf.Tensor) else tf.convert_to_tensor(given, dtype=spec.dtype)
    if x.dtype != spec.dtype or not spec.shape.is_compatible_with(x.shape):
        raise InvalidArgumentError(f"input {name!r} of the model is {spec.dtype.name}{spec.shape}; got "
                                   f"{x.dtype.name}{x.shape}.")
    return x


def _value(given: Any, name: str | None) -> np.ndarray:
    try:
        return np.ascontiguousarray(given.numpy()).reshape(given.shape)
    except TypeError:
        raise TypeError(f"input {name!r} decides shapes, so that its value must be known: it cannot be a tensor of a "
                        "function that is being traced.") from None


def _unsupported(model: Model) -> list[str]:
    """The ops that neither the table, nor the model, nor the standard defines."""
    nodes: list[Node] = [*walk(model.graph.nodes), *(n for f in model.functions.values() for n in walk(f.nodes))]
    lost = {f"{n.domain or 'ai.onnx'}::{n.op} (version {n.version})" for n in nodes
            if (n.domain, n.op) not in model.functions and find(n.domain, n.op, n.version) is None
            and not defines(n)}
    return sorted(lost)


def imported(source: str | os.PathLike[str] | bytes) -> OnnxModel:
    """The model of a file; see `tf.import_onnx`."""
    model, name = read_model(source)
    lost = _unsupported(model)
    if lost:
        raise UnimplementedError(None, None, f"{name} uses ops that are not supported: {', '.join(lost)}")
    return OnnxModel(model, name)


open_methods(OnnxModel)
