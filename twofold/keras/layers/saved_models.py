"""A saved model as a layer."""

from __future__ import annotations

import os
from typing import Any

import twofold as tf

from ._declared import Layer

__all__ = ["TFSMLayer"]


class TFSMLayer(Layer):
    """A saved model, of TensorFlow's or of this library, as a layer: calls run one of its functions.

    Args:
        filepath: the directory.
        call_endpoint: the name of the function that calls run: an attribute of the saved object, or a signature.
        call_training_endpoint: likewise, of the one for training; the same by default.
        trainable: whether training changes the variables that the functions use.
        name, dtype: as of any layer.
    Raises:
        ValueError: there is no such function.

    >>> import os, tempfile
    >>> import twofold as tf
    >>> model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tf.saved_model.save(model, folder)
    ...     layer = tf.keras.layers.TFSMLayer(folder, call_endpoint="serving_default")
    >>> sorted(layer(tf.ones([4, 3]))), len(layer.trainable_weights)
    (['output_0'], 2)
    """

    def __init__(self, filepath: str | os.PathLike[str], call_endpoint: str = "serve",
                 call_training_endpoint: str | None = None, trainable: bool = True, name: str | None = None,
                 dtype: Any = None):
        super().__init__(trainable=trainable, name=name, dtype=dtype)
        own = self.__dict__
        own["_saved"] = tf.saved_model.load(filepath)  # functions refer to what it holds
        self.filepath, self.call_endpoint = os.fspath(filepath), call_endpoint
        self.call_training_endpoint = call_training_endpoint
        own["_functions"] = functions = {False: self._endpoint(call_endpoint)}
        functions[True] = functions[False] if call_training_endpoint is None else self._endpoint(
            call_training_endpoint)
        used = {id(v): v for fn in functions.values() for v in _variables_of(fn)}.values()
        own["_added_weights"].extend(sorted(used, key=lambda variable: not variable.trainable))
        self.built = True

    def _endpoint(self, name: str) -> Any:
        saved = self.__dict__["_saved"]
        function = getattr(saved, name, None)
        if callable(function):
            return function
        if name in saved.signatures:
            return saved.signatures[name]
        raise ValueError(f"The endpoint {name!r} is neither an attribute of the reloaded SavedModel, nor an entry in "
                         "the `signatures` field of the reloaded SavedModel. Select another endpoint via the "
                         "`call_endpoint` argument. Available endpoints for this SavedModel: "
                         f"{list(saved.signatures)}")

    def call(self, inputs: Any, training: bool = False, **kwargs: Any) -> Any:
        """What the function gives for `inputs`.

        Args:
            inputs: its argument.
            training: whether to run the one for training.
            kwargs: its other arguments.
        """
        return self.__dict__["_functions"][bool(training)](inputs, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer, as plain values."""
        return {**super().get_config(), "filepath": self.filepath, "call_endpoint": self.call_endpoint,
                "call_training_endpoint": self.call_training_endpoint}


def _variables_of(function: Any) -> list[Any]:
    """The variables that a loaded function uses."""
    restored = getattr(function, "_restored", None)
    return list(function.variables if restored is None else restored.variables)
