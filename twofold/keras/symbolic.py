"""Calls of layers on KerasTensors: the layer is built, its outputs get shapes and dtypes, and the call is noted.

The shapes of outputs come from the layer's shape rule, or from tracing its `call` once without compiling anything. What
the noted calls make together is `functional.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import twofold as tf
from twofold._front.api import SymbolicValueError

from .composites import spec_of
from .input_spec import assert_input_compatibility
from .keras_tensor import KerasTensor, Node

__all__ = ["symbolic_call", "traced_spec"]

_SPECS = (KerasTensor, tf.TypeSpec)


def traced_spec(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The specs of what a function gives for tensors of certain shapes; nothing is compiled.

    Args:
        fn: a layer or a function.
        args, kwargs: its arguments, with specs or KerasTensors for tensors.
    Returns:
        Specs in the structure of the result.
    Raises:
        SymbolicValueError: the function asks for the value of one of them.
    """
    given = (args, dict(kwargs))
    leaves = [x for x in tf.nest.flatten(given) if isinstance(x, _SPECS)]
    sparse: list[Any] = []  # the shapes of sparse results, which leave a function without sizes

    def run(*tensors: Any) -> Any:
        rest = iter(tensors)
        filled_args, filled_kwargs = tf.nest.map_structure(
            lambda x: next(rest) if isinstance(x, _SPECS) else x, given)
        outputs = fn(*filled_args, **filled_kwargs)
        sparse.extend([x.shape for x in tf.nest.flatten(outputs) if isinstance(x, tf.SparseTensor)])
        return outputs

    specs = [spec_of(x) for x in leaves]
    try:
        outputs = tf.function(run, fallback=False).get_concrete_function(*specs).structured_outputs
        shapes = iter(sparse)
        return tf.nest.map_structure(lambda s: tf.SparseTensorSpec(next(shapes), s.dtype) if isinstance(
            s, tf.SparseTensorSpec) else s, outputs)
    except SymbolicValueError as error:
        if error.asked:  # the user has given a KerasTensor, and knows of no tf.function
            error.args = (f"A KerasTensor has no value, it stands for a tensor of a functional model: {error.asked}.\n"
                          "  Hint: use layers, operators and functions of tf on it, and other values for settings.\n"
                          f"  {error.where}",)
        raise


def _keras_tensor(spec: Any) -> KerasTensor:
    return KerasTensor(spec.shape, spec.dtype, sparse=getattr(spec, "value_type", None) is tf.SparseTensor,
                       ragged=getattr(spec, "ragged_rank", 0) > 0)


def symbolic_call(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a layer on KerasTensors: KerasTensors for its outputs.

    Raises:
        ValueError: the inputs do not fit the layer.
    """
    spec = layer._call_spec
    first = spec.first_argument(args, kwargs)
    if layer.input_spec is not None:
        assert_input_compatibility(layer.input_spec, first, layer.name)
    if not layer.built:
        layer.build(**spec.build_shapes(type(layer).build, args, kwargs))
        if layer.input_spec is not None:
            assert_input_compatibility(layer.input_spec, first, layer.name)
    if "training" in kwargs and not spec.takes_training:
        kwargs = {k: v for k, v in kwargs.items() if k != "training"}
    specs = layer.compute_output_spec(*args, **kwargs)
    outputs = tf.nest.map_structure(lambda s: None if s is None else _keras_tensor(s), specs)
    Node(layer, args, kwargs, outputs, first)
    layer._clear_losses()
    return outputs
