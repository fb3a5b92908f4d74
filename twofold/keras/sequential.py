"""`Sequential`: layers one after another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import twofold as tf
from twofold._front.api import no_item, refusable

from . import call_context, dtype_policies
from .configs import config_of
from .functional import NetworkGraph
from .input_layer import Input, InputLayer
from .keras_tensor import KerasTensor
from .layer import Layer
from .model import Model
from .refusals import unbuilt_if_refused
from .serialization import deserialize_keras_object, serialize_keras_object
from .shapes import InputShape, as_shape

__all__ = ["Sequential"]


class Sequential(Model):
    """Layers one after another: each takes the output of the one before.

    With an input shape (an `Input` as the first entry, or `input_shape=` of the first layer) the weights exist at
    once; else they are made by the first call, by `build`, or by `fit`.

    Args:
        layers: the layers.
        trainable: whether training changes the weights.
        name: the model's name.
    Raises:
        ValueError: an entry is not a layer, or names repeat.

    >>> import twofold as tf
    >>> model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(1)])
    >>> model(tf.zeros([2, 3])).shape, len(model.weights)
    (TensorShape([2, 1]), 4)
    """

    _own_scope = False

    def __init__(self, layers: Any = None, trainable: bool = True, name: str | None = None):
        super().__init__(trainable=trainable, name=name)
        own = self.__dict__
        own["_stack"] = []
        own["_entry"] = None  # the InputLayer, if there is one
        if layers is not None:
            if not isinstance(layers, (list, tuple)):
                layers = [layers]
            with unbuilt_if_refused(*[layer for layer in layers if isinstance(layer, Layer)]):
                for layer in layers:
                    self.add(layer, rebuild=False)
                self._maybe_rebuild()

    # -- the stack --------------------------------------------------------------------------------
    def add(self, layer: Any, rebuild: bool = True) -> None:
        """Put a layer on top.

        Args:
            layer: a layer, or the result of `Input` as the first entry.
            rebuild: whether the model is built again at once, where its input shape is known.
        Raises:
            ValueError: it is not a layer, its name is taken, or an input is not the first entry.
        """
        if isinstance(layer, KerasTensor):
            layer = layer._node.operation
        if not isinstance(layer, Layer):
            layer = _module_layer(layer)
        if not rebuild:
            self._put(layer)
            return
        with unbuilt_if_refused(self, layer):
            self._put(layer)
            self._maybe_rebuild()

    def _put(self, layer: Layer) -> None:
        own = self.__dict__
        if isinstance(layer, InputLayer):
            if own["_stack"] or own["_entry"] is not None:
                raise ValueError(f"Sequential model '{self.name}' has already been configured to use input shape "
                                 f"{self._known_input_shape()}. You cannot add a different Input layer to it.")
            own["_entry"] = layer
        else:
            if any(layer.name == other.name and layer is not other for other in own["_stack"]):
                raise ValueError("All layers added to a Sequential model should have unique names. Name "
                                 f"'{layer.name}' is already the name of a layer in this model.")
            if not own["_stack"] and own["_entry"] is None:
                own["_entry"] = _entry_of(layer)
            own["_stack"].append(layer)
        self._forget()

    def pop(self, rebuild: bool = True) -> Layer:
        """Take the topmost layer off, and give it back.

        Raises:
            TypeError: there is none.
        """
        stack = self.__dict__["_stack"]
        if not stack:
            raise TypeError("There are no layers in the model.")
        with unbuilt_if_refused(self):
            layer: Layer = stack.pop()
            self._forget()
            if rebuild:
                self._maybe_rebuild()
        return layer

    def _forget(self) -> None:
        own = self.__dict__
        own["_graph"], own["_fast"], own["built"] = None, None, False
        self._forget_functions()

    def _maybe_rebuild(self) -> None:
        own = self.__dict__
        if own["_entry"] is not None and own["_stack"]:
            self._connect(own["_entry"].output)

    def _known_input_shape(self) -> Any:
        entry = self.__dict__["_entry"]
        return None if entry is None else entry.batch_shape

    def _connect(self, x: KerasTensor) -> None:
        """Call the layers on a symbolic input, which builds them."""
        own = self.__dict__
        inputs = x
        for layer in own["_stack"]:
            x = layer(x)
        own["_graph"] = NetworkGraph(inputs, x)
        own["built"] = True

    def build(self, input_shape: Any = None) -> None:
        """Make the weights for an input shape.

        Args:
            input_shape: with the batch, None for sizes that may be any.
        Raises:
            ValueError: there is no layer.
        """
        own = self.__dict__
        if own["_graph"] is not None or input_shape is None:
            return
        if not own["_stack"]:
            raise ValueError(f"Sequential model {self.name} cannot be built because it has no layers. Call "
                             "`model.add(layer)`.")
        shape = as_shape(input_shape)
        if isinstance(shape, (list, dict)):
            own["built"] = True
            return
        dtype = own.pop("_first_dtype", None) or own["_stack"][0].compute_dtype
        own["_entry"] = Input(batch_shape=(None, *shape[1:]), dtype=dtype)._node.operation
        try:
            self._connect(own["_entry"].output)
        except TypeError:  # a layer asks for values: there is no graph then, and calls go from layer to layer
            own["_entry"] = None
            own["built"] = True

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """The output of the last layer.

        Args:
            inputs: what the first layer takes.
            training: whether the call is for training.
            mask: the mask that goes with the inputs.
        """
        graph = self.__dict__["_graph"]
        x = graph.flat_inputs(inputs)[0] if graph is not None and isinstance(inputs, tf.Tensor) else inputs
        if mask is not None:
            call_context.set_mask(x, mask)
        for layer in self.__dict__["_stack"]:
            x = layer(x)
        return x

    def _full_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not self.built and args and isinstance(args[0], (tf.Tensor, KerasTensor)):
            self.__dict__["_first_dtype"] = args[0].dtype
        return super()._full_call(args, kwargs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the output for an input shape."""
        shape = input_shape
        for layer in self.__dict__["_stack"]:
            shape = layer.compute_output_shape(shape)
        return shape

    def compute_output_spec(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """The spec of the output for a symbolic input. `training` and `mask` have no effect."""
        spec = inputs
        for layer in self.__dict__["_stack"]:
            spec = layer.compute_output_spec(spec)
        return spec

    # -- what is in it ----------------------------------------------------------------------------
    @property
    def layers(self) -> list[Layer]:
        """The layers, without the input."""
        return list(self.__dict__["_stack"])

    def _held(self) -> Iterator[Any]:
        yield from self.__dict__.get("_stack", ())
        yield from super()._held()

    def _file_layers(self) -> list[Any]:
        entry = self.__dict__["_entry"]
        return [*([] if entry is None else [entry]), *self.__dict__["_stack"]]

    def _also_known(self, name: str) -> Any:
        if name == "_functional":  # Keras keeps a functional model in this one
            return self
        entry = self.__dict__["_entry"]
        return (() if entry is None else entry, *self.__dict__["_stack"]) if name == "_operations" else None

    def __len__(self) -> int:
        return len(self.__dict__["_stack"])

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, index: Any) -> Any:
        layers = self.__dict__["_stack"]
        try:
            return layers[index]
        except (IndexError, TypeError, ValueError) as error:
            raise no_item(error, "Sequential", index, layers) from None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.__dict__["_stack"])

    # -- configs ----------------------------------------------------------------------------------
    def get_config(self) -> dict[str, Any]:
        """The layers as plain values."""
        own = self.__dict__
        layers = [serialize_keras_object(layer) for layer in self._file_layers()]
        config: dict[str, Any] = {"name": self.name, "trainable": self.trainable,
                                  "dtype": dtype_policies.serialize(self.dtype_policy), "layers": layers}
        if own["_graph"] is not None and own["_entry"] is not None:
            config["build_input_shape"] = tuple(own["_entry"].batch_shape)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """A model made from what `get_config` gave."""
        with refusable():
            return cls._of_config(config_of(config), custom_objects)

    @classmethod
    def _of_config(cls, config: dict[str, Any], custom_objects: Any) -> Any:
        model = cls(name=config.get("name"))
        for layer in config["layers"]:
            made = layer if isinstance(layer, Layer) else deserialize_keras_object(layer, custom_objects)
            model.add(made, rebuild=False)
        if not config.get("trainable", True):
            model.trainable = False
        model._maybe_rebuild()
        shape = config.get("build_input_shape")
        if shape is not None and model.__dict__["_graph"] is None and model.__dict__["_stack"]:
            model.build(as_shape(shape))
        return model


def _entry_of(layer: Layer) -> InputLayer | None:
    """The input that a first layer implies."""
    if isinstance(layer, Model) and layer.__dict__.get("_graph") is not None and isinstance(
            layer.__dict__["_graph"].input_structure, KerasTensor):
        x = layer.__dict__["_graph"].inputs[0]
        return Input(batch_shape=x.shape, dtype=x.dtype)._node.operation
    shape: InputShape | None = layer.__dict__.get("_batch_input_shape")
    if shape is None:
        return None
    dtype = "int32" if type(layer).__name__ == "Embedding" else layer.compute_dtype
    return Input(batch_shape=shape, dtype=dtype)._node.operation


def _module_layer(layer: Any) -> Layer:
    """A function as a layer, as Keras takes it.

    Raises:
        ValueError: it is neither layer nor function.
    """
    if callable(layer) and not isinstance(layer, type):
        from . import layers
        return layers.Lambda(layer)
    raise ValueError(f"Only instances of `keras.Layer` can be added to a Sequential model. Received: {layer} (of type "
                     f"{type(layer)})")
