"""`tf.contrib.eager`, known as `tfe`: eager execution as TensorFlow 1 offered it.

The names that TensorFlow 2 keeps are the same objects here; the function-style gradients live here alone.
"""

from typing import Any

from twofold import config
from twofold._front.api import public
from twofold._front.function import executing_eagerly
from twofold._front.namespace import publish
from twofold._front.tensors import enable_eager_execution
from twofold.eager.custom import custom_gradient
from twofold.eager.functional import (
    gradients_function,
    implicit_gradients,
    implicit_value_and_gradients,
    value_and_gradients_function,
)
from twofold.eager.tape import GradientTape
from twofold.eager.variable import Variable

__all__ = ["GradientTape", "Variable", "custom_gradient", "enable_eager_execution", "executing_eagerly",
           "gradients_function", "implicit_gradients", "implicit_value_and_gradients", "in_eager_mode", "list_devices",
           "num_gpus", "value_and_gradients_function"]

in_eager_mode = executing_eagerly


@public
def num_gpus() -> int:
    """The number of GPUs that ops can run on.

    >>> import twofold.contrib.eager as tfe
    >>> tfe.num_gpus() >= 0
    True
    """
    return len(config.list_logical_devices("GPU"))


@public
def list_devices() -> list[str]:
    """The names of the devices that ops can run on.

    >>> import twofold.contrib.eager as tfe
    >>> tfe.list_devices()[0]
    '/job:localhost/replica:0/task:0/device:CPU:0'
    """
    return ["/job:localhost/replica:0/task:0" + d.name for d in config.list_logical_devices()]

# What belongs to sub-packages that load when they are first asked for.
_ELSEWHERE = {"Checkpoint": ("twofold.train", "Checkpoint"), "Iterator": (f"{__name__}.iterator", "Iterator"),
              "metrics": (f"{__name__}.metrics", None), "py_func": ("twofold.compat.v1", "py_func")}


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib
    module, attribute = _ELSEWHERE[name]
    imported = importlib.import_module(module)
    return imported if attribute is None else getattr(imported, attribute)


publish(__name__)
