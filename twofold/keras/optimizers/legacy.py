"""The optimizers under the names of `tf.keras.optimizers.legacy`.

They are the optimizers of today: `lr` stands for `learning_rate`, and `decay` is what it was, a learning rate that
falls as `learning_rate / (1 + decay * step)`.
"""

from __future__ import annotations

from typing import Any

from twofold._front.namespace import publish

from . import adam, adaptive, base, sgd
from .schedules import InverseTimeDecay

__all__ = ["Adadelta", "Adagrad", "Adam", "Adamax", "Ftrl", "Nadam", "Optimizer", "RMSprop", "SGD"]

Optimizer = base.Optimizer


def _older(cls: Any) -> Any:
    """`cls` with the older meaning of `lr` and `decay`."""
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        decay, lr = kwargs.pop("decay", 0.0), kwargs.pop("lr", None)
        if lr is not None:
            kwargs["learning_rate"] = lr
        if decay:
            rate = args[0] if args else kwargs.pop("learning_rate", _default_rate(cls))
            args = (InverseTimeDecay(rate, 1, decay), *args[1:])
        cls.__init__(self, *args, **kwargs)

    doc = f"""`tf.keras.optimizers.{cls.__name__}`, with the arguments `lr` and `decay` of older programs.

    >>> import twofold as tf
    >>> float(tf.keras.optimizers.legacy.{cls.__name__}(lr=0.5, decay=0.1).learning_rate)
    0.5
    """
    return type(cls.__name__, (cls,), {"__init__": __init__, "__module__": __name__, "__doc__": doc})


def _default_rate(cls: Any) -> float:
    import inspect
    return inspect.signature(cls.__init__).parameters["learning_rate"].default


Adadelta = _older(adaptive.Adadelta)
Adagrad = _older(adaptive.Adagrad)
Adam = _older(adam.Adam)
Adamax = _older(adam.Adamax)
Ftrl = _older(adaptive.Ftrl)
Nadam = _older(adam.Nadam)
RMSprop = _older(adaptive.RMSprop)
SGD = _older(sgd.SGD)

publish(__name__)
