"""`Bidirectional`: a recurrent layer over sequences as they are, and over them reversed."""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import listed

from ..configs import config_of
from ..serialization import deserialize_keras_object, serialize_keras_object
from ._declared import Layer, build_within

__all__ = ["Bidirectional"]

_MODES = ("sum", "mul", "ave", "concat", None)


class Bidirectional(Layer):
    """A recurrent layer in both directions (Schuster & Paliwal 1997).

    Args:
        layer: the layer; it is copied, with weights of its own for each direction.
        merge_mode: how the outputs of the two are joined: "concat", "sum", "mul", "ave", or None for both apart.
        weights: arrays for the weights of both.
        backward_layer: the layer for the other direction, with `go_backwards=True`; made from `layer` by default.
        kwargs: those of `Layer`.
    Inputs: [batch, steps, ..], optionally `initial_state` (of both, one after the other) and `mask`.
    Outputs: those of the layer, joined, followed by the states of both if the layer gives states.
    Raises:
        ValueError: the layers do not fit together, or the mode is another.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.Bidirectional(tf.keras.layers.LSTM(4, return_sequences=True))
    >>> layer(tf.zeros([2, 5, 3])).shape
    TensorShape([2, 5, 8])
    """

    supports_masking = True

    def __init__(self, layer: Any, merge_mode: str | None = "concat", weights: Any = None, backward_layer: Any = None,
                 **kwargs: Any):
        for given in (layer, backward_layer):
            if given is not None and not isinstance(given, Layer):
                raise ValueError("Please initialize `Bidirectional` layer with a `keras.layers.Layer` instance. "
                                 f"Received: {given}")
        if merge_mode not in _MODES:
            raise ValueError(f"Invalid merge mode. Received: {merge_mode}. Merge mode should be one of {_MODES}")
        _require_direction(layer)
        super().__init__(**kwargs)
        self.forward_layer = _copied(layer, "forward_")
        self.backward_layer = _copied(layer, "backward_", True) if backward_layer is None else backward_layer
        _require_pair(self.forward_layer, self.backward_layer)
        for one in (self.forward_layer, self.backward_layer):
            if hasattr(one, "zero_output_for_mask"):
                one.zero_output_for_mask = one.return_sequences
        self.merge_mode = merge_mode
        self.stateful, self.return_sequences = layer.stateful, layer.return_sequences
        self.return_state, self.input_spec = layer.return_state, layer.input_spec
        self._first_weights = None if not weights else listed(weights, "weights")

    def build(self, sequences_shape: Any, initial_state_shape: Any = None) -> None:
        """Build both layers. `initial_state_shape` has no effect."""
        for one in (self.forward_layer, self.backward_layer):
            build_within(one, self, sequences_shape)
        if self._first_weights:
            self.set_weights(self._first_weights)
        self.built = True

    def call(self, sequences: Any, initial_state: Any = None, mask: Any = None, training: Any = None) -> Any:
        """The outputs for sequences."""
        given: list[Any] = [None, None]
        if initial_state is not None:
            initial_state = listed(initial_state, "initial_state")
            half = len(initial_state) // 2
            given = [list(initial_state[:half]), list(initial_state[half:])]
        results = []
        for one, states in zip((self.forward_layer, self.backward_layer), given, strict=True):
            known = {"training": training, "mask": mask, "initial_state": states}
            names = one._call_spec.names
            flags = {name: value for name, value in known.items() if value is not None and name in names}
            results.append(one(sequences, **flags))
        states_after: tuple[Any, ...] = ()
        if self.return_state:
            states_after = (*results[0][1:], *results[1][1:])
            results = [result[0] for result in results]
        forward, backward = (tf.cast(y, self.compute_dtype) for y in results)
        if self.return_sequences:
            backward = tf.reverse(backward, [1])
        merged = self._merged(forward, backward)
        if not self.return_state:
            return merged
        return (*merged, *states_after) if self.merge_mode is None else (merged, *states_after)

    def _merged(self, forward: Any, backward: Any) -> Any:
        if self.merge_mode is None:
            return forward, backward
        if self.merge_mode == "concat":
            return tf.concat([forward, backward], -1)
        if self.merge_mode == "mul":
            return forward * backward
        return forward + backward if self.merge_mode == "sum" else (forward + backward) / 2

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the inputs, if all steps are given."""
        mask = mask[0] if isinstance(mask, (list, tuple)) else mask
        outputs_mask = mask if self.return_sequences else None
        masks = [outputs_mask, outputs_mask] if self.merge_mode is None else [outputs_mask]
        if self.return_state:
            masks += [None] * (2 * len(self.forward_layer.state_size))
        return masks if len(masks) > 1 else masks[0]

    def compute_output_shape(self, sequences_shape: Any, initial_state_shape: Any = None) -> Any:
        """The shape of the outputs for sequences of a shape. `initial_state_shape` has no effect."""
        shape = self.forward_layer.compute_output_shape(sequences_shape)
        states: tuple[Any, ...] = ()
        if self.return_state:
            shape, states = shape[0], tuple(shape[1:]) * 2
        if self.merge_mode == "concat":
            shape = (*shape[:-1], shape[-1] * 2)
        shapes = (shape, shape) if self.merge_mode is None else (shape,)
        return (*shapes, *states) if self.return_state or self.merge_mode is None else shape

    @property
    def states(self) -> Any:
        """The states that stay between batches, of both; None without any."""
        forward, backward = self.forward_layer.states, self.backward_layer.states
        return None if forward is None or backward is None else (*forward, *backward)

    def reset_state(self) -> None:
        """Let the next batch of a stateful layer begin with zeros.

        Raises:
            AttributeError: the layer is not stateful.
        """
        if not self.stateful:
            raise AttributeError("Layer must be stateful.")
        self.forward_layer.reset_state()
        self.backward_layer.reset_state()

    def reset_states(self) -> None:
        """The older name of `reset_state`."""
        self.reset_state()

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer, as plain values."""
        return {**super().get_config(), "merge_mode": self.merge_mode,
                "layer": serialize_keras_object(self.forward_layer),
                "backward_layer": serialize_keras_object(self.backward_layer)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Bidirectional:
        """A layer made from what `get_config` gave."""
        config = config_of(config)
        for name in ("layer", "backward_layer"):
            if config.get(name) is not None:
                config[name] = deserialize_keras_object(config[name], custom_objects=custom_objects)
        return cls(**config)


def _copied(layer: Any, prefix: str, backwards: bool = False) -> Any:
    """A layer of the same config, in one direction."""
    config = layer.get_config()
    config["name"] = prefix + layer.name.removeprefix(prefix)
    if backwards:
        config["go_backwards"] = not config["go_backwards"]
    return type(layer).from_config(config)


def _require_direction(layer: Any) -> None:
    for name in ("go_backwards", "stateful", "return_sequences", "return_state"):
        if not hasattr(layer, name):
            raise ValueError(f"Layers of `Bidirectional` must have `{name}`. Received: {layer}")


def _require_pair(forward: Any, backward: Any) -> None:
    _require_direction(backward)
    if forward.go_backwards == backward.go_backwards:
        raise ValueError("Forward layer and backward layer should have different `go_backwards` value. Received: "
                         f"{forward.go_backwards} for both")
    for name in ("stateful", "return_sequences", "return_state"):
        if getattr(forward, name) != getattr(backward, name):
            raise ValueError(f'Forward layer and backward layer are expected to have the same value for "{name}", got '
                             f"{getattr(forward, name)!r} and {getattr(backward, name)!r}")
