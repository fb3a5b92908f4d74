"""Eager execution: tensors, variables, tapes, and ops that run at once.

Owns `Tensor`, `Variable`, dispatch to kernels, and gradients that record what ran. Leaves declarations
to `ir`, compiled loops to `codegen` and `runtime`, and the public names to `twofold`.
"""

import importlib
import pkgutil

from twofold.ir.op import set_default_interpreter

from . import dispatch, kernels, operators


def _install() -> None:
    set_default_interpreter(dispatch.eager)
    for module in pkgutil.iter_modules(kernels.__path__):
        importlib.import_module(f"{kernels.__name__}.{module.name}")
    operators.install()


_install()
