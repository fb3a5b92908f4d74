"""Eager execution: tensors, variables, tapes, and ops that run at once.

Owns `Tensor`, `Variable`, dispatch to kernels, and gradients that record what ran. Leaves declarations
to `ir`, compiled loops to `codegen` and `runtime`, and the public names to `twofold`.
"""

import importlib

from twofold.ir.op import set_default_interpreter

from . import dispatch, kernels, operators

_DRIVERS = ("indexing", "random", "segment", "strings")  # the files of `kernels`


def _install() -> None:
    set_default_interpreter(dispatch.eager)
    for name in _DRIVERS:
        importlib.import_module(f"{kernels.__name__}.{name}")
    operators.install()


_install()
