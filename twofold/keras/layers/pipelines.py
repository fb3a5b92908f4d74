"""Layers of pipelines: layers in a row over any structure of data, and boxes brought to one number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import twofold as tf
from twofold._front.api import listed

from ..configs import config_of
from ..serialization import deserialize_keras_object, serialize_keras_object
from ._declared import DeclaredLayer, Layer, positive

__all__ = ["MaxNumBoundingBoxes", "Pipeline"]


class Pipeline(Layer):
    """Layers one after the other, over tensors or structures of them, such as dicts of images and labels.

    Args:
        layers: the layers.
        name: its name.
    Inputs: what the first layer takes. Outputs: what the last one gives.

    >>> import twofold as tf
    >>> pipeline = tf.keras.layers.Pipeline([tf.keras.layers.Rescaling(0.5), tf.keras.layers.AutoContrast()])
    >>> pipeline(tf.constant([[[[2.0], [4.0]]]])).numpy().ravel().tolist()
    [0.0, 255.0]
    """

    def __init__(self, layers: Sequence[Layer], name: str | None = None, **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self._pipeline_layers = listed(layers, "layers")
        self.autocast = False

    @property
    def layers(self) -> list[Layer]:
        """The layers."""
        return self._pipeline_layers

    def build(self, input_shape: Any) -> None:
        """Nothing: the layers are built as they are called."""
        self.built = True

    def call(self, inputs: Any, training: Any = True, mask: Any = None) -> Any:
        """The outputs for `inputs`."""
        for layer in self._pipeline_layers:
            spec = layer._call_spec
            options = {"training": training} if spec.takes_training and training is not None else {}
            if mask is not None and "mask" in spec.names:
                options["mask"] = mask
            inputs = layer(inputs, **options)
            mask = None  # that of the outputs goes with them
        return inputs

    def get_config(self) -> dict[str, Any]:
        """The layers' configs, and the name."""
        return {"layers": serialize_keras_object(self._pipeline_layers), "name": self.name}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Pipeline:
        """A pipeline made from what `get_config` gave.

        Raises:
            ValueError: it has no list of layers.
        """
        config = config_of(config)
        layers = config.get("layers")
        if not isinstance(layers, (list, tuple)):
            raise ValueError("`Pipeline` config must contain a `layers` key mapping to a list of serialized layers. "
                             f"Received config with layers={layers}.")
        made = [x if isinstance(x, Layer) else deserialize_keras_object(x) for x in layers]
        return cls(**{**config, "layers": made})


class MaxNumBoundingBoxes(DeclaredLayer):
    """Boxes of images brought to one number: further ones are left out, and missing ones filled in.

    Args:
        max_number: how many boxes each image has then.
        fill_value: what the coordinates and labels of missing boxes are.
        kwargs: those of `Layer`.
    Inputs: a dict with "bounding_boxes", itself a dict with "boxes" [batch, boxes, 4] and "labels" [batch, boxes];
        other entries pass. Outputs: such a dict.
    Raises:
        ValueError: the inputs are no such dict.

    >>> import twofold as tf
    >>> boxes = {"boxes": tf.ones([1, 1, 4]), "labels": tf.constant([[5]])}
    >>> tf.keras.layers.MaxNumBoundingBoxes(2)({"bounding_boxes": boxes})["bounding_boxes"]["labels"].numpy().tolist()
    [[5, -1]]
    """

    _arguments = ("max_number", "fill_value")

    def __init__(self, max_number: int, fill_value: int = -1, **kwargs: Any):
        super().__init__(**kwargs)
        self.max_number, self.fill_value = positive(int(max_number), "max_number"), int(fill_value)

    def call(self, inputs: Any, training: Any = True) -> Any:
        """The outputs for `inputs`."""
        if not isinstance(inputs, Mapping):
            return inputs
        outputs = dict(inputs)
        if "bounding_boxes" in outputs:
            boxes = outputs["bounding_boxes"]
            if not isinstance(boxes, Mapping) or not {"boxes", "labels"} <= set(boxes):
                raise ValueError("`bounding_boxes` must be a dict with 'boxes' and 'labels'. Received: "
                                 f"{sorted(boxes) if isinstance(boxes, Mapping) else type(boxes).__name__}")
            outputs["bounding_boxes"] = {**boxes, "boxes": self._cut(boxes["boxes"]),
                                       "labels": self._cut(boxes["labels"])}
        return outputs

    def _cut(self, values: Any) -> Any:
        kept = values[:, :self.max_number]
        missing = self.max_number - tf.shape(kept)[1]
        rest = tf.fill(tf.concat([tf.shape(kept)[:1], [missing], tf.shape(kept)[2:]], 0),
                       tf.cast(self.fill_value, kept.dtype))
        return tf.ensure_shape(tf.concat([kept, rest], 1), [kept.shape[0], self.max_number, *kept.shape[2:]])

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shapes of the outputs for inputs of shapes."""
        if not isinstance(input_shape, Mapping) or "bounding_boxes" not in input_shape:
            return input_shape
        boxes = {name: (shape[0], self.max_number, *shape[2:]) if name in ("boxes", "labels") else shape
                 for name, shape in input_shape["bounding_boxes"].items()}
        return {**input_shape, "bounding_boxes": boxes}
