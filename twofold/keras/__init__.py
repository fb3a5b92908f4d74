"""`tf.keras`: layers, models and their training, with Keras's names, arguments and defaults.

Everything loads on first use, so that the import costs a few milliseconds and a program pays for what it uses.

>>> import twofold as tf
>>> model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,))])
>>> model.count_params()
8
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from twofold._namespace import publish

#: what there is: a name, and the module below this one that has it ("" for a module of that name)
_WHERE = {
    "DTypePolicy": "dtype_policies",
    "Initializer": "initializers",
    "Input": "functional",
    "InputSpec": "input_spec",
    "KerasTensor": "keras_tensor",
    "Layer": "layer",
    "Loss": "losses",
    "Metric": "metrics",
    "Model": "model",
    "Optimizer": "optimizers",
    "Regularizer": "regularizers",
    "Sequential": "sequential",
    "Variable": "variable",
    "activations": "",
    "backend": "",
    "callbacks": "",
    "config": "",
    "constraints": "",
    "datasets": "",
    "dtype_policies": "",
    "initializers": "",
    "layers": "",
    "losses": "",
    "metrics": "",
    "mixed_precision": "",
    "models": "",
    "ops": "",
    "optimizers": "",
    "preprocessing": "",
    "random": "",
    "regularizers": "",
    "saving": "",
    "utils": "",
}

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if where:
        value = getattr(importlib.import_module(f"{__name__}.{where}"), name)
    else:
        value = importlib.import_module(f"{__name__}.{name}")
    setattr(sys.modules[__name__], name, value)
    return value


publish(__name__)
