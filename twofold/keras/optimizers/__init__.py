"""Optimizers (`tf.keras.optimizers`): what moves variables by their gradients.

`base.py` has what all share, with the variables in `slots.py`; `sgd.py`, `adam.py`, `adaptive.py` and `matrices.py` the
update formulas; `loss_scale.py` the scaling of losses for float16; `multi.py` several optimizers in one;
`schedules.py` learning rates that change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twofold._front.api import public
from twofold._front.namespace import publish

from ..serialization import deserialize_keras_object, serialize_keras_object
from . import schedules
from .adam import Adam, Adamax, AdamW, Lamb, Nadam, ScheduleFreeAdamW
from .adaptive import Adadelta, Adagrad, Ftrl, RMSprop
from .base import Optimizer
from .loss_scale import LossScaleOptimizer
from .matrices import Adafactor, Muon
from .multi import MultiOptimizer, OptimizerMap
from .sgd import SGD, Lion

__all__ = ["Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl", "Lamb", "Lion",
           "LossScaleOptimizer", "MultiOptimizer", "Muon", "Nadam", "Optimizer", "OptimizerMap", "RMSprop", "SGD",
           "ScheduleFreeAdamW", "deserialize", "get", "legacy", "schedules", "serialize"]

_CLASSES = {cls.__name__.lower(): cls for cls in (Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, Ftrl, Lamb, Lion,
                                                  LossScaleOptimizer, MultiOptimizer, Muon, Nadam, RMSprop, SGD,
                                                  ScheduleFreeAdamW)}


def __getattr__(name: str) -> Any:
    if name == "legacy":
        import importlib
        return importlib.import_module(f"{__name__}.legacy")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@public
def serialize(optimizer: Optimizer) -> dict[str, Any]:
    """An optimizer's settings as values that JSON can hold.

    >>> import twofold as tf
    >>> tf.keras.optimizers.serialize(tf.keras.optimizers.SGD(0.5))["config"]["learning_rate"]
    0.5
    """
    return serialize_keras_object(optimizer)


@public
def deserialize(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The optimizer of a config that `serialize` gave, without state.

    Args:
        config: the config; the class's name may be in any case.
        custom_objects: names in it that are the user's own, with what they stand for.
    Raises:
        ValueError: a name is not known.

    >>> import twofold as tf
    >>> tf.keras.optimizers.deserialize({"class_name": "adam", "config": {"beta_1": 0.8}}).beta_1
    0.8
    """
    if str(config.get("class_name")).lower() in _CLASSES:
        config = {**config, "class_name": str(config["class_name"]).lower()}
    return deserialize_keras_object(config, custom_objects=custom_objects, module_objects=_CLASSES)


@public
def get(identifier: Any) -> Any:
    """The optimizer that `identifier` stands for.

    Args:
        identifier: an optimizer, its name in any case, or its config; None for none.
    Raises:
        ValueError: it stands for no optimizer.

    >>> import twofold as tf
    >>> tf.keras.optimizers.get("sgd").get_config()["learning_rate"]
    0.009999999776482582
    """
    if identifier is None:
        return None
    optimizer = identifier
    if isinstance(identifier, str):
        optimizer = deserialize({"class_name": identifier, "config": {}})
    elif isinstance(identifier, Mapping):
        optimizer = deserialize(identifier)
    if isinstance(optimizer, Optimizer):
        return optimizer
    raise ValueError(f"Could not interpret optimizer identifier: {identifier!r}. Expected an optimizer, its config, or "
                     f"one of the names {', '.join(sorted(_CLASSES))}.")


publish(__name__)
