"""`tf.keras.models`: models, and models from files and configs."""

from __future__ import annotations

import json
from typing import Any

from .functional import Functional
from .model import Model
from .saving import load_model, save_model
from .sequential import Sequential
from .serialization import deserialize_keras_object

__all__ = ["Functional", "Model", "Sequential", "clone_model", "load_model", "model_from_json", "save_model"]


def clone_model(model: Any, input_tensors: Any = None, clone_function: Any = None) -> Any:
    """A model with the same layers, made anew with weights of their own.

    Args:
        model: a functional or sequential model, or a subclass with `get_config`.
        input_tensors: accepted if None.
        clone_function: makes a layer from a layer; by default from its config.
    Raises:
        ValueError: there are input tensors.

    >>> import twofold as tf
    >>> model = tf.keras.Sequential([tf.keras.Input([2]), tf.keras.layers.Dense(3)])
    >>> tf.keras.models.clone_model(model).count_params()
    9
    """
    if input_tensors is not None:
        raise ValueError("`input_tensors` is not supported: the clone has inputs of its own.")
    if clone_function is None:
        return type(model).from_config(model.get_config())
    if isinstance(model, Sequential):
        entry = model.__dict__["_entry"]
        return Sequential([*([] if entry is None else [entry.output]), *map(clone_function, model.layers)],
                          name=model.name)
    config = model.get_config()
    by_name = {layer.name: layer for layer in model.layers}
    layers = []
    for layer_config in config["layers"]:
        old = by_name[layer_config["name"]]
        new = clone_function(old) if type(old).__name__ != "InputLayer" else type(old).from_config(old.get_config())
        layers.append((new, layer_config))
    from .functional_config import functional_from_layers
    return functional_from_layers(type(model), config, layers)


def model_from_json(json_string: str, custom_objects: Any = None) -> Any:
    """The model of what `model.to_json()` gave, with new weights.

    >>> import twofold as tf
    >>> model = tf.keras.Sequential([tf.keras.Input([2]), tf.keras.layers.Dense(3)])
    >>> tf.keras.models.model_from_json(model.to_json()).output_shape
    (None, 3)
    """
    return deserialize_keras_object(json.loads(json_string), custom_objects=custom_objects)
