"""`Model`: layers that are called as one, trained and saved.

A model is functional (made of symbolic inputs and outputs), a subclass with its own `call`, or both: a subclass may be
given inputs and outputs and override `train_step`. Training is `trainer.py`'s, files are `saving.py`'s, tables
and pictures are `summary.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.api import refusable

from . import _registry, call_context, dtype_policies
from .configs import config_of
from .functional import NetworkGraph
from .functional_config import functional_from_config
from .keras_tensor import KerasTensor, replaced
from .layer import Layer
from .serialization import deserialize_keras_object, serialize_keras_object
from .shapes import as_shape, shapes_of
from .symbolic import traced_spec
from .trainer import Trainer

__all__ = ["Functional", "Model"]


class Model(Trainer, Layer):
    """Layers that are called as one, trained and saved.

    Args:
        inputs, outputs: for a functional model: structures of KerasTensors. Both or neither.
        name: the model's name.
        trainable: whether training changes the weights.
        kwargs: those of a layer.
    Raises:
        ValueError: the outputs depend on something else than the inputs.

    >>> import twofold as tf
    >>> x = tf.keras.Input([4])
    >>> model = tf.keras.Model(x, tf.keras.layers.Dense(2)(x))
    >>> model(tf.zeros([3, 4])).shape
    TensorShape([3, 2])
    >>> class Twice(tf.keras.Model):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.dense = tf.keras.layers.Dense(4)
    ...     def call(self, x):
    ...         return self.dense(self.dense(x))
    >>> Twice()(tf.zeros([3, 4])).shape
    TensorShape([3, 4])
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is Model and _is_functional(args, kwargs):
            return super().__new__(Functional, *args, **kwargs)
        return super().__new__(cls, *args, **kwargs)

    def __init__(self, *args: Any, **kwargs: Any):
        own = self.__dict__
        own.setdefault("_graph", None)
        own["_trainer"] = None
        if not _is_functional(args, kwargs):
            Layer.__init__(self, *args, **kwargs)
            return
        inputs, outputs, name = _functional_arguments(args, kwargs)
        Layer.__init__(self, name=name, **kwargs)
        own["_graph"] = NetworkGraph(inputs, outputs)
        own["_own_scope"] = False
        own["built"] = True

    # -- calls ------------------------------------------------------------------------------------
    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """Compute the outputs: of a functional model by its graph; subclasses override it.

        Args:
            inputs: tensors in the structure of the model's inputs.
            training: whether the call is for training.
            mask: masks in that structure.
        """
        graph = self.__dict__.get("_graph")
        if graph is None:
            raise NotImplementedError(f"Model {type(self).__name__} does not have a `call()` method implemented.")
        flat = graph.flat_inputs(inputs)
        if mask is not None:
            for x, m in zip(flat, tf.nest.flatten(mask), strict=False):
                call_context.set_mask(x, m)
        return graph.run(flat)

    def build(self, input_shape: Any) -> None:
        """Make the weights for an input shape, by calling the model on symbolic inputs.

        Args:
            input_shape: with the batch, None for sizes that may be any; or a structure of shapes.
        Raises:
            ValueError: `call` cannot be traced for inputs of this shape.
        """
        own = self.__dict__
        if own.get("_graph") is not None or type(self).call is Model.call or own.get("_building"):
            return
        if not own.get("_in_first_call"):
            dtype = self.compute_dtype
            specs = tf.nest.map_structure(lambda s: tf.TensorSpec(s, dtype), _tensor_shapes(as_shape(input_shape)))
            own["_building"] = own["built"] = True
            try:
                traced_spec(self, (specs,), {})
            except Exception as e:
                own["built"] = False
                raise ValueError(f"Model '{self.name}' cannot be built for the input shape {input_shape}: {e}") from e
            finally:
                own["_building"] = False

    def _needs_no_build(self) -> bool:
        return self.__dict__.get("_graph") is not None and type(self).build is Model.build

    def _full_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        own = self.__dict__
        if self.built:
            return super()._full_call(args, kwargs)
        own["_in_first_call"] = True  # `build` need not trace: the call itself makes the weights
        try:
            return super()._full_call(args, kwargs)
        finally:
            own["_in_first_call"] = False

    # -- what is in it ----------------------------------------------------------------------------
    @property
    def layers(self) -> list[Layer]:
        """The layers: of a functional model in the order of its graph, else as they were set as attributes."""
        graph = self.__dict__.get("_graph")
        if graph is not None:
            return list(graph.layers)
        return [layer for layer in self._sublayers() if isinstance(layer, Layer)]

    def _held(self) -> Any:
        graph = self.__dict__.get("_graph")
        if graph is not None:
            yield from graph.layers
        yield from super()._held()

    def _tracked_children(self) -> dict[str, Any]:
        children: dict[str, Any] = {}
        layers = self.layers if self.__dict__.get("_graph") is not None or hasattr(self, "_file_layers") else []
        weighty = 0
        for layer in layers:
            if layer.weights:
                children[f"layer_with_weights-{weighty}"] = layer
                weighty += 1
        for n, layer in enumerate(layers):
            children[f"layer-{n}"] = layer
        children.update(super()._tracked_children())
        optimizer = self.__dict__.get("optimizer")
        if optimizer is not None:
            children["optimizer"] = optimizer
        return children

    def _also_known(self, name: str) -> Any:
        graph = self.__dict__.get("_graph")
        return tuple(graph.layers) if name == "_operations" and graph is not None else super()._also_known(name)

    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """A layer by name or by index.

        Raises:
            ValueError: there is none, or neither or both were given.
        """
        layers = self.layers
        if (name is None) == (index is None):
            raise ValueError("Provide either a layer name or a layer index, not both. "
                             f"Received: index={index}, name={name}")
        if index is not None:
            if not -len(layers) <= index < len(layers):
                raise ValueError(f"Was asked to retrieve layer at index {index} but model only has {len(layers)} "
                                 "layers.")
            return layers[index]
        for layer in layers:
            if layer.name == name:
                return layer
        raise ValueError(f"No such layer: {name}. Existing layers are: {[layer.name for layer in layers]}.")

    def _graph_or_error(self, what: str) -> Any:
        graph = self.__dict__.get("_graph")
        if graph is None:
            raise AttributeError(f"Model '{self.name}' has no {what}: it is not functional, or not built yet.")
        return graph

    @property
    def inputs(self) -> list[KerasTensor]:
        """The symbolic inputs of a functional model, flat."""
        return list(self._graph_or_error("inputs").inputs)

    @property
    def outputs(self) -> list[KerasTensor]:
        """The symbolic outputs of a functional model, flat."""
        return list(self._graph_or_error("outputs").outputs)

    @property
    def input(self) -> Any:
        """The symbolic inputs of a functional model in their structure."""
        return self._graph_or_error("input").input_structure

    @property
    def output(self) -> Any:
        """The symbolic outputs of a functional model in their structure."""
        return self._graph_or_error("output").output_structure

    @property
    def input_shape(self) -> Any:
        """The shapes of the inputs of a functional model."""
        return shapes_of(self.input)

    @property
    def output_shape(self) -> Any:
        """The shapes of the outputs of a functional model."""
        return shapes_of(self.output)

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs of a functional model."""
        return [x.name for x in self.inputs]

    @property
    def output_names(self) -> list[str]:
        """The names of the layers that make the outputs of a functional model."""
        return [x._keras_history.operation.name for x in self.outputs]  # type: ignore[union-attr]

    # -- tables and pictures ----------------------------------------------------------------------
    def summary(self, line_length: int | None = None, positions: Any = None, print_fn: Callable[..., Any] | None = None,
                expand_nested: bool = False, show_trainable: bool = False, layer_range: Any = None) -> None:
        """Print a table of the layers, their output shapes and numbers of parameters.

        Args:
            line_length: the width of the table.
            positions: accepted, without effect.
            print_fn: called with the text instead of printing it.
            expand_nested: whether the layers of models within are shown.
            show_trainable: whether there is a column for it.
            layer_range: the names of the first and the last layer to show.
        """
        from .summary import print_summary
        print_summary(self, line_length, print_fn, expand_nested, show_trainable, layer_range)

    # -- files ------------------------------------------------------------------------------------
    def save(self, filepath: Any, overwrite: bool = True, **kwargs: Any) -> None:
        """Write the model to a file: see `tf.keras.models.save_model`."""
        from .saving import save_model
        save_model(self, filepath, overwrite, **kwargs)

    def save_weights(self, filepath: Any, overwrite: bool = True) -> None:
        """Write the weights to a `.weights.h5` file; needs the extra `h5`."""
        from .saving import save_weights
        save_weights(self, filepath, overwrite)

    def load_weights(self, filepath: Any, skip_mismatch: bool = False, **kwargs: Any) -> None:
        """Read the weights from a `.weights.h5`, `.h5` or `.keras` file; needs the extra `h5`.

        Raises:
            ValueError: the file's weights do not fit the model's; nothing is changed then.
        """
        from .saving import load_weights
        load_weights(self, filepath, skip_mismatch, **kwargs)

    def _functions_to_save(self) -> dict[str, Any]:
        functions = super()._functions_to_save()
        if self.built and type(self).call is not Model.call or self.__dict__.get("_graph") is not None:
            from .saving import _input_specs
            def serve(inputs: Any) -> Any:
                return self(inputs, training=False)
            functions["__call__"] = tf.function(serve, input_signature=[_input_specs(self)])
        return functions

    def export(self, filepath: Any, format: str = "tf_saved_model", verbose: bool = True, **kwargs: Any) -> None:
        """Write a saved model with the endpoint `serve`; see `tf.saved_model`."""
        from .saving import _export_model
        _export_model(self, filepath, format, verbose, **kwargs)

    def to_json(self, **kwargs: Any) -> str:
        """The model without its weights as JSON; `kwargs` are those of `json.dumps`."""
        import json
        return json.dumps(serialize_keras_object(self), **kwargs)

    # -- configs ----------------------------------------------------------------------------------
    def get_config(self) -> dict[str, Any]:
        """The layers and their calls as plain values; of a subclass its constructor's arguments."""
        if self.__dict__.get("_graph") is not None and not _has_own_constructor(type(self)):
            return self._graph_config()
        return super().get_config()

    def _graph_config(self) -> dict[str, Any]:
        graph = self.__dict__["_graph"]
        kept = {id(node) for node in graph.nodes}
        entries = {id(x._node) for x in graph.inputs}
        numbers: dict[int, tuple[Any, int]] = {}  # of the calls that are in this model, by layer
        for layer in graph.layers:
            calls = [node for node in layer.inbound_nodes if id(node) in kept or id(node) in entries]
            numbers.update({id(node): (layer, n) for n, node in enumerate(calls)})

        def reference(x: KerasTensor) -> list[Any]:
            layer, number = numbers[id(x._node)]
            return [layer.name, number, x._keras_history.tensor_index]  # type: ignore[union-attr]

        layers = []
        for layer in graph.layers:
            config = serialize_keras_object(layer)
            config["name"] = layer.name
            config["inbound_nodes"] = [_node_config(node, reference) for node in layer.inbound_nodes
                                       if id(node) in kept]
            layers.append(config)
        return {"name": self.name, "trainable": self.trainable, "layers": layers,
                "input_layers": _references(graph.input_structure, reference),
                "output_layers": _references(graph.output_structure, reference)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """A model made from what `get_config` gave."""
        config = config_of(config)
        if "layers" in config and "input_layers" in config:
            with refusable():
                return functional_from_config(cls if not _has_own_constructor(cls) else Functional, config,
                                              custom_objects)
        if isinstance(config.get("dtype"), dict):
            config = {**config, "dtype": dtype_policies.deserialize(config["dtype"])}
        return super().from_config(config)

    def _describes_itself(self) -> bool:
        return type(self).get_config is Model.get_config and type(self).__init__ is not Model.__init__

    def get_compile_config(self) -> dict[str, Any] | None:
        """What `compile` was given, as plain values, or None."""
        return self._compile_config()

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Call `compile` with what `get_compile_config` gave."""
        self.compile(**deserialize_keras_object(config))
        optimizer = getattr(self, "optimizer", None)
        if optimizer is not None and self.built:
            optimizer.build(self.trainable_variables)


class Functional(Model):
    """A model made of symbolic inputs and outputs; `tf.keras.Model(inputs, outputs)` makes one."""

    _own_scope = False
    _reads_raw_config = True
    _keras_home = ("keras.src.models.functional", "Functional")  # the module and the class that configs name


_registry.provide("Functional", Functional)


def _has_own_constructor(cls: Any) -> bool:
    return cls.__init__ is not Model.__init__


def _is_functional(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if "inputs" in kwargs or "outputs" in kwargs:
        return True
    return bool(args) and any(type(x) is KerasTensor for x in tf.nest.flatten(args[0]))


def _functional_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Inputs, outputs and name; `kwargs` keeps the rest."""
    given = dict(zip(("inputs", "outputs", "name"), args, strict=False))
    for key in ("inputs", "outputs", "name"):
        if key in kwargs:
            given[key] = kwargs.pop(key)
    if "inputs" not in given or "outputs" not in given:
        raise ValueError("A functional model needs both `inputs` and `outputs`.")
    return given["inputs"], given["outputs"], given.get("name")


def _node_config(node: Any, reference: Callable[[KerasTensor], list[Any]]) -> dict[str, Any]:
    """A call as plain values."""
    def tensor(x: KerasTensor) -> Any:
        return {"class_name": "__keras_tensor__", "config": {
            "shape": list(x.shape), "dtype": x.dtype.name, "keras_history": reference(x)}}
    args = [_plain(replaced(a, tensor)) for a in node.args]
    return {"args": args, "kwargs": {k: _plain(replaced(v, tensor)) for k, v in node.kwargs.items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, dict) and value.get("class_name") == "__keras_tensor__":
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return serialize_keras_object(value)


def _references(structure: Any, reference: Callable[[KerasTensor], list[Any]]) -> Any:
    if isinstance(structure, KerasTensor):
        return reference(structure)
    if isinstance(structure, dict):
        return {k: _references(v, reference) for k, v in structure.items()}
    return [_references(v, reference) for v in structure]


def _tensor_shapes(shape: Any) -> Any:
    if isinstance(shape, dict):
        return {k: _tensor_shapes(v) for k, v in shape.items()}
    if isinstance(shape, list):
        return [_tensor_shapes(v) for v in shape]
    return tf.TensorShape(shape)
