"""The base of the layers here: configs from declared arguments, and the reading of sizes, paddings and layouts."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import SymbolicValueError, listed

from .. import activations, config, constraints, initializers, regularizers
from ..input_spec import InputSpec
from ..layer import Layer

__all__ = ["DeclaredLayer", "FirstOrLast", "InputSpec", "Layer", "Shape", "as_floats", "build_within",
           "data_format_of", "from_front", "numbers", "padding_of", "positive", "window_sizes", "without_trainable"]

Shape = tuple[Any, ...]
_KINDS = {"activation": activations, "initializer": initializers, "regularizer": regularizers,
          "constraint": constraints}


class DeclaredLayer(Layer):
    """A layer that its declared arguments describe.

    An argument whose name ends in `activation`, `initializer`, `regularizer` or `constraint` may be a name or a config;
    it is kept as the object, and written as a config.
    """

    _arguments: tuple[str, ...] = ()

    kernel_initializer: Any
    kernel_regularizer: Any
    kernel_constraint: Any
    bias_initializer: Any
    bias_regularizer: Any
    bias_constraint: Any
    activation: Any

    def _take(self, **arguments: Any) -> None:
        """Set attributes, with names and configs turned into the objects that they stand for."""
        for name, value in arguments.items():
            kind = _KINDS.get(name.rpartition("_")[2])
            setattr(self, name, value if kind is None else kind.get(value))

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer, as plain values."""
        config = super().get_config()
        for name in self._arguments:
            kind, value = _KINDS.get(name.rpartition("_")[2]), self._argument(name)
            config[name] = value if kind is None or value is None else kind.serialize(value)
        return config

    def _argument(self, name: str) -> Any:
        """The value of an argument, for `get_config`."""
        return getattr(self, name)

    def _weight(self, name: str, shape: Any, kind: str | None = None, **options: Any) -> Any:
        """A weight with the initializer, regularizer and constraint that the arguments give for `kind`."""
        kind = name if kind is None else kind
        return self.add_weight(name=name, shape=shape, initializer=getattr(self, f"{kind}_initializer"),
                               regularizer=getattr(self, f"{kind}_regularizer", None),
                               constraint=getattr(self, f"{kind}_constraint", None), **options)


class FirstOrLast(DeclaredLayer):
    """A layer over images, or signals, whose channels come second or last."""

    data_format: str
    rank: int

    @property
    def _first(self) -> bool:
        return self.data_format == "channels_first"

    def _layout(self) -> str:
        """The layout as ops name it: "NHWC" and its like."""
        spatial = "DHW"[3 - self.rank:] if self.rank != 1 else "W"
        return f"NC{spatial}" if self._first else f"N{spatial}C"

    def _channels(self, shape: Shape) -> Any:
        return shape[1 if self._first else -1]

    def _spatial(self, shape: Shape) -> Shape:
        return tuple(shape[2:] if self._first else shape[1:-1])

    def _joined(self, batch: Any, spatial: Any, channels: Any) -> Shape:
        """A shape of its parts."""
        return (batch, channels, *spatial) if self._first else (batch, *spatial, channels)

    def _with_bias(self, outputs: Any, bias: Any) -> Any:
        if self._first:
            bias = tf.reshape(bias, (-1,) + (1,) * self.rank)
        return outputs + bias


def as_floats(inputs: Any, dtype: Any) -> Any:
    """Integers and bools in a floating dtype; other tensors as they are."""
    return tf.cast(inputs, dtype) if inputs.dtype.is_integer or inputs.dtype.is_bool else inputs


def numbers(value: Any, count: int, name: str, least: int = 1) -> tuple[int, ...]:
    """One integer for each of `count` axes.

    Args:
        value: an integer for all, or `count` of them.
        name: the argument's name, for the error.
        least: the smallest that is allowed.
    Raises:
        ValueError: it is something else.
    """
    sizes = (value,) * count if isinstance(value, int) else value
    try:
        sizes = tuple(int(v) for v in listed(sizes, f"`{name}`"))
    except SymbolicValueError:  # a trace does not know it
        raise
    except (TypeError, OverflowError):
        sizes = ()
    if len(sizes) != count or min(sizes) < least or max(sizes) >= 1 << 63:
        raise ValueError(f"The `{name}` argument must be an integer or a tuple of {count} "
                         f"integers that are at least {least}. Received {name}={value!r}")
    return sizes


def positive(value: Any, name: str) -> int:
    """An integer above 0.

    Raises:
        ValueError: it is not one.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) <= 0:
        raise ValueError(f"Invalid value for argument `{name}`. Expected a positive integer. Received {name}={value!r}")
    return int(value)


def from_front(axis: int, rank: int) -> int:
    """An axis counted from the front.

    Raises:
        ValueError: there is no such axis.
    """
    if not -rank <= axis < rank:
        raise ValueError(f"Axis {axis} is out of bounds for inputs with {rank} axes.")
    return axis % rank


def padding_of(value: Any, *more: str) -> str:
    """"valid" or "same" (or one of `more`), in lower case.

    Raises:
        ValueError: it is another.
    """
    padding = value.lower() if isinstance(value, str) else value
    if padding not in ("valid", "same", *more):
        raise ValueError(f"The `padding` argument must be one of {('valid', 'same', *more)}. Received: {value!r}")
    return padding


def data_format_of(value: Any) -> str:
    """"channels_last" or "channels_first"; None for the default of `tf.keras.config`.

    Raises:
        ValueError: it is another.
    """
    data_format = config.image_data_format() if value is None else str(value).lower()
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError("The `data_format` argument must be 'channels_last' or 'channels_first'. "
                         f"Received: {value!r}")
    return data_format


def window_sizes(sizes: Shape, window: tuple[int, ...], strides: tuple[int, ...], padding: str,
                 dilations: tuple[int, ...]) -> Shape:
    """How many places a window has along each axis; None where a size is unknown.

    Raises:
        ValueError: there is no place for it.
    """
    counts: list[Any] = []
    for size, width, stride, dilation in zip(sizes, window, strides, dilations, strict=True):
        if size is None:
            counts.append(None)
            continue
        reach = (width - 1) * dilation + 1
        places = -(-size // stride) if padding in ("same", "causal") else (size - reach) // stride + 1
        if places <= 0:
            raise ValueError(f"Computed output size would be negative or zero: a window of {window} with dilations "
                             f"{dilations} does not fit into {tuple(sizes)} with padding={padding!r}.")
        counts.append(places)
    return tuple(counts)


def build_within(layer: Any, parent: Any, *shapes: Any) -> None:
    """Build a layer that a layer holds, with the parent's name before the names of its weights."""
    if isinstance(layer, Layer) and not layer.built:
        with parent._scoped(), layer._scoped():
            layer.build(*shapes)
            layer.built = True


def without_trainable(config: dict[str, Any]) -> dict[str, Any]:
    """A config for those of Keras's layers whose constructors do not know `trainable`."""
    return {name: value for name, value in config.items() if name != "trainable"}
