"""`tf.keras`: layers, models and their training, with Keras's names, arguments and defaults.

Everything loads on first use, so that the import costs a few milliseconds and a program pays for what it uses.

>>> import twofold as tf
>>> model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,))])
>>> model.count_params()
8
"""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any

from twofold._front.namespace import publish

from . import _registry

#: what there is: a name, and the module below this one that has it ("" for a module of that name)
_WHERE = {
    "DTypePolicy": "dtype_policies",
    "FloatDTypePolicy": "dtype_policies",
    "Initializer": "initializers",
    "Input": "input_layer",
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
    "__version__": "_version",
    "activations": "",
    "backend": "",
    "callbacks": "",
    "config": "",
    "constraints": "",
    "datasets": "",
    "device": "scopes",
    "dtype_policies": "",
    "initializers": "",
    "layers": "",
    "losses": "",
    "metrics": "",
    "mixed_precision": "",
    "models": "",
    "name_scope": "scopes",
    "ops": "",
    "optimizers": "",
    "preprocessing": "",
    "random": "",
    "regularizers": "",
    "remat": "scopes",
    "saving": "",
    "tree": "",
    "utils": "",
    "version": "_version",
}

__all__ = sorted(_WHERE)

#: the modules that provide what files below them ask the registry for
_PROVIDERS = {"Functional": "model", "TFOpLambda": "op_layer", "older_backend": "_older_backend",
              "operation_class": "keras_ops", "operations": "ops"}


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


def _module(path: tuple[str, ...]) -> Any:
    """The public module of a path such as `("optimizers", "schedules")`."""
    return functools.reduce(getattr, path, sys.modules[__name__])


_registry.provide("module", _module)
for _part, _provider in _PROVIDERS.items():
    _registry.expect(_part, functools.partial(importlib.import_module, f"{__name__}.{_provider}"))

publish(__name__)
