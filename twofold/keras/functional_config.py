"""Functional models made from their configs: layers first, then their calls as soon as the inputs of each are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .keras_tensor import KerasTensor
from .layer import Layer
from .serialization import by_name, custom_object_scope, deserialize_keras_object

__all__ = ["functional_from_config", "functional_from_layers"]


class _Missing(Exception):
    """A call needs a tensor that is not there yet."""


def functional_from_config(cls: Any, config: Mapping[str, Any], custom_objects: Any = None) -> Any:
    """A functional model of class `cls` made from a config of Keras 3.

    Raises:
        ValueError: calls need tensors that no call makes.
    """
    with custom_object_scope(by_name(custom_objects)):
        made = [(layer if isinstance(layer, Layer) else deserialize_keras_object(
            {k: v for k, v in layer.items() if k not in ("name", "inbound_nodes")}), layer)
            for layer in config["layers"]]
        return functional_from_layers(cls, config, made)


def functional_from_layers(cls: Any, config: Mapping[str, Any], made: list[tuple[Any, Mapping[str, Any]]]) -> Any:
    """A functional model of layers that are there, each with its config, which tells its calls."""
    layers = {entry.get("name", layer.name): layer for layer, entry in made}
    waiting = [(layer, node) for layer, entry in made for node in entry["inbound_nodes"]]
    _call_all(layers, waiting)
    inputs = _tensors(config["input_layers"], layers)
    outputs = _tensors(config["output_layers"], layers)
    model = cls(inputs=inputs, outputs=outputs, name=config.get("name"))
    if not config.get("trainable", True):
        model.trainable = False
    return model


def _call_all(layers: Mapping[str, Any], waiting: list[tuple[Any, Mapping[str, Any]]]) -> None:
    """Make the calls, each layer's in their order."""
    while waiting:
        left: list[tuple[Any, Mapping[str, Any]]] = []
        blocked: set[int] = set()
        for layer, node in waiting:
            if id(layer) in blocked:
                left.append((layer, node))
                continue
            try:
                args, kwargs = _arguments(node, layers)
            except _Missing:
                blocked.add(id(layer))
                left.append((layer, node))
                continue
            layer(*args, **kwargs)
        if len(left) == len(waiting):
            names = sorted({layer.name for layer, _ in left})
            raise ValueError(f"The config of the model is not complete: the inputs of {', '.join(names)} are made by "
                             "no layer of it.")
        waiting = left


def _arguments(node: Any, layers: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    if isinstance(node, Mapping):
        return [_value(a, layers) for a in node["args"]], {k: _value(v, layers) for k, v in node["kwargs"].items()}
    # configs of Keras 2: a list of [layer, call, result, keyword arguments]
    entries = [node] if isinstance(node[0], str) else node
    tensors = [_tensor(entry[:3], layers) for entry in entries]
    kwargs = entries[0][3] if len(entries[0]) > 3 else {}
    return [tensors[0] if len(tensors) == 1 else tensors], dict(kwargs)


def _value(value: Any, layers: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        if value.get("class_name") == "__keras_tensor__":
            return _tensor(value["config"]["keras_history"], layers)
        if value.get("class_name") == "__tuple__":
            return tuple([_value(v, layers) for v in value["items"]])
        if "class_name" in value:
            return deserialize_keras_object(value)
        return {k: _value(v, layers) for k, v in value.items()}
    return [_value(v, layers) for v in value] if isinstance(value, list) else value


def _tensor(reference: Any, layers: Mapping[str, Any]) -> KerasTensor:
    name, node, index = reference[:3]
    if name not in layers:
        raise ValueError(f"The config of the model names a layer that it does not have: {name!r}.")
    nodes = layers[name].inbound_nodes
    if node >= len(nodes):
        raise _Missing
    return nodes[node].outputs[index]


def _tensors(references: Any, layers: Mapping[str, Any]) -> Any:
    """Tensors in the structure of references: `[name, call, result]`, lists or dicts of such."""
    if isinstance(references, Mapping):
        return {k: _tensors(v, layers) for k, v in references.items()}
    if isinstance(references, (list, tuple)) and len(references) == 3 and isinstance(references[0], str):
        return _tensor(references, layers)
    tensors = [_tensors(r, layers) for r in references]
    return tensors
