"""`tf.keras.models`: models, and models from files and configs."""

from __future__ import annotations

import json
from typing import Any

import twofold as tf
from twofold._front.api import public, refusable
from twofold._front.namespace import publish

from .input_layer import Input
from .keras_tensor import KerasTensor, replaced
from .model import Functional, Model
from .saving import load_model, save_model
from .sequential import Sequential
from .serialization import deserialize_keras_object

__all__ = ["Functional", "Model", "Sequential", "clone_model", "load_model", "model_from_json", "save_model"]


@public
def clone_model(model: Any, input_tensors: Any = None, clone_function: Any = None, call_function: Any = None,
                recursive: bool = False) -> Any:
    """A model with the same layers, made anew with weights of their own.

    Args:
        model: a functional or sequential model, or a subclass with `get_config`.
        input_tensors: what the clone begins with: results of `Input`, in the structure of the model's inputs.
        clone_function: makes a layer from a layer; by default from its config.
        call_function: calls a layer: `(layer, *args, **kwargs)`; by default it is called as it is. For functional
            models.
        recursive: whether `clone_function` gets the layers of models within, rather than those models.
    Raises:
        ValueError: the model is a subclass and there are arguments for its layers, or the input tensors are of another
            number than the inputs.

    >>> import twofold as tf
    >>> model = tf.keras.Sequential([tf.keras.Input([2]), tf.keras.layers.Dense(3)])
    >>> tf.keras.models.clone_model(model).count_params()
    9
    """
    with refusable():
        return _cloned(model, input_tensors, clone_function, call_function, recursive)


def _cloned(model: Any, input_tensors: Any, clone_function: Any, call_function: Any, recursive: bool) -> Any:
    plain = input_tensors is None and clone_function is None and call_function is None
    if plain or (model.__dict__.get("_graph") is None and not isinstance(model, Sequential)):
        if not plain:
            raise ValueError("The layers of a subclass of `Model` are not known: `input_tensors`, `clone_function` and "
                             f"`call_function` are for functional and sequential models. Received: {model!r}")
        return type(model).from_config(model.get_config())

    def cloned(layer: Any) -> Any:
        if recursive and clone_function is not None and isinstance(layer, Model):
            return _cloned(layer, None, clone_function, call_function, True)
        return type(layer).from_config(layer.get_config()) if clone_function is None else clone_function(layer)

    if isinstance(model, Sequential):
        if call_function is not None:
            raise ValueError("`call_function` is for functional models; the clone of a sequential one calls its layers "
                             "in turn.")
        entry = model.__dict__["_entry"]
        start = tf.nest.flatten(input_tensors) if input_tensors is not None else [] if entry is None else [
            Input(batch_shape=entry.batch_shape, dtype=entry.dtype, name=entry.name)]
        made = {id(layer): cloned(layer) for layer in model.layers}
        return Sequential([*start, *[made[id(layer)] for layer in model.layers]], name=model.name)
    return _cloned_network(model, input_tensors, cloned, call_function)


def _cloned_network(model: Any, input_tensors: Any, cloned: Any, call_function: Any) -> Any:
    """A functional model of cloned layers, called as those of `model` are."""
    graph = model.__dict__["_graph"]
    inputs = input_tensors
    if inputs is None:
        inputs = tf.nest.map_structure(lambda x: Input(batch_shape=x.shape, dtype=x.dtype,
                                                       name=x._node.operation.name), graph.input_structure)
    given = tf.nest.flatten(inputs)
    if len(given) != len(graph.inputs):
        raise ValueError(f"The model has {len(graph.inputs)} inputs, but there are {len(given)} `input_tensors`.")
    values = {id(old): new for old, new in zip(graph.inputs, given, strict=True)}
    layers: dict[int, Any] = {}

    def value_of(x: KerasTensor) -> Any:
        return values[id(x)]

    for node in graph.nodes:
        layer = layers.get(id(node.operation))
        if layer is None:
            layer = layers[id(node.operation)] = cloned(node.operation)
        args = [replaced(a, value_of) for a in node.args]
        kwargs = {k: replaced(v, value_of) for k, v in node.kwargs.items()}
        outputs_of_layer = layer(*args, **kwargs) if call_function is None else call_function(layer, *args, **kwargs)
        values.update({id(old): new for old, new in zip(node.outputs, tf.nest.flatten(outputs_of_layer), strict=True)})
    outputs = tf.nest.map_structure(value_of, graph.output_structure)
    clone = type(model)(inputs=inputs, outputs=outputs, name=model.name)
    clone.trainable = model.trainable
    return clone


@public
def model_from_json(json_string: str, custom_objects: Any = None) -> Any:
    """The model of what `model.to_json()` gave, with new weights.

    >>> import twofold as tf
    >>> model = tf.keras.Sequential([tf.keras.Input([2]), tf.keras.layers.Dense(3)])
    >>> tf.keras.models.model_from_json(model.to_json()).output_shape
    (None, 3)
    """
    return deserialize_keras_object(json.loads(json_string), custom_objects=custom_objects)


publish(__name__)
