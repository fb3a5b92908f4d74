"""Eager execution: tensors, variables, tapes, and ops that run at once.

Owns `Tensor`, `Variable`, dispatch to kernels, and gradients that record what ran. Leaves declarations
to `ir`, compiled loops to `codegen` and `runtime`, and the public names to `twofold`.
"""

import importlib
from typing import Any

from twofold.ir.op import set_default_interpreter
from twofold.runtime import devices

from . import dispatch, kernels, operators, tensor

_DRIVERS = ("indexing", "random", "segment", "strings")  # the files of `kernels`


def _install() -> None:
    set_default_interpreter(dispatch.eager)
    for name in _DRIVERS:
        importlib.import_module(f"{kernels.__name__}.{name}")
    operators.install()
    devices.when_asked(lambda: _placed().start())
    tensor.moved_by(lambda x, index: _placed().moved(x, index))


def _placed() -> Any:
    """The module that runs ops on GPUs, which programs without them do without."""
    return importlib.import_module(f"{__name__}.placed")


_install()
