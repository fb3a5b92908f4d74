"""The mathematical functions that scalar bodies may call: `s.exp(x)` finds `FUNCTIONS["exp"]`.

Every function is itself a body of builder instructions, without branches, calls or tables, so that it
inlines into a kernel and vectorises at any width. This module only collects them, and where a function
is written for real and for complex values picks by the first operand; they are written in the
`ir/math_*.py` modules, and what they share is in `ir/math_core.py`.

How far they are off is measured by `tests/accuracy.py`, which prints the table of `docs/numerics.md`.

The builder's own `abs` and `sqrt` are instructions on reals; `complex_abs` and `complex_sqrt` take either.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from . import (
    math_complex,
    math_erf,
    math_exp,
    math_gamma,
    math_log,
    math_normal,
    math_polygamma,
    math_pow,
    math_round,
    math_trig,
)
from .instructions import InstructionBuilder, Scalar

__all__ = ["FUNCTIONS"]

Body = Callable[..., Scalar]


def _collect(*modules: object) -> dict[str, Body]:
    return {name: getattr(module, name) for module in modules for name in module.__all__}  # type: ignore[attr-defined]


def _by_kind(real: Body, complex_: Body) -> Body:
    @functools.wraps(real)
    def body(s: InstructionBuilder, x: Scalar, *rest: Scalar) -> Scalar:
        return (complex_ if x.dtype.is_complex else real)(s, x, *rest)
    return body


_REAL = _collect(math_erf, math_exp, math_gamma, math_log, math_normal, math_polygamma, math_pow, math_round,
                 math_trig)
_COMPLEX = _collect(math_complex)

FUNCTIONS: dict[str, Body] = _REAL | {
    name: _by_kind(_REAL[name], body) if name in _REAL else body for name, body in _COMPLEX.items()
}
