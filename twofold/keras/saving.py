"""`tf.keras.saving`: objects as plain values and back, and models as files."""

from __future__ import annotations

from .serialization import (
    CustomObjectScope,
    custom_object_scope,
    deserialize_keras_object,
    get_custom_objects,
    get_registered_name,
    get_registered_object,
    register_keras_serializable,
    serialize_keras_object,
)

__all__ = ["CustomObjectScope", "custom_object_scope", "deserialize_keras_object", "get_custom_objects",
           "get_registered_name", "get_registered_object", "register_keras_serializable", "serialize_keras_object"]


def save_model(model, filepath, overwrite=True, **kwargs):
    raise NotImplementedError


load_model = save_weights = load_weights = export_model = save_model
