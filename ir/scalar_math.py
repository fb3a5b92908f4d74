"""The mathematical functions that scalar bodies may call: `s.exp(x)` finds `function("exp")`.

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
from importlib import import_module

from .instructions import InstructionBuilder, Scalar

__all__ = ["function"]

Body = Callable[..., Scalar]

# Where functions of real values are looked for, module by module: what is asked for often comes first, since nothing
# behind it is loaded.
_REAL = ("math_exp", "math_log", "math_trig", "math_pow", "math_erf", "math_round", "math_gamma", "math_normal",
         "math_polygamma", "math_bessel", "math_integrals", "math_incomplete")
_COMPLEX = ("math_complex",)


@functools.cache
def function(name: str) -> Body | None:
    """The body of this name, which picks by its first operand where there is one for complex values too; None where
    there is none."""
    real = _body_in(name, _REAL)
    if real is None:
        return _body_in(name, _COMPLEX)

    @functools.wraps(real)
    def body(s: InstructionBuilder, *args: Scalar, **kwargs: object) -> Scalar:
        is_complex = bool(args) and isinstance(args[0], Scalar) and args[0].dtype.is_complex
        return ((_body_in(name, _COMPLEX) if is_complex else None) or real)(s, *args, **kwargs)
    return body


def _body_in(name: str, modules: tuple[str, ...]) -> Body | None:
    for module in modules:
        loaded = import_module(f"{__package__}.{module}")
        if name in loaded.__all__:
            body: Body = getattr(loaded, name)
            return body
    return None
