"""The table of meanings: for each op what it is in ONNX, or why it is nothing there.

A meaning is a function `(writer, node, *operands, **attributes) -> value or values`, declared by `@meaning("op", ...)`
in a module `export_*.py` of a family of ops. Elementwise ops without one of their own have that of their scalar body
(`export_scalars.py`). Ops without a meaning are listed by `without`, with the reason and what a user can do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from twofold.ir import graph as g
from twofold.ir.op import REGISTRY

from .export_scalars import Scalars
from .export_writer import NoMeaning, Ref, Writer

__all__ = ["Meaning", "meaning", "without", "meaning_of", "reasons"]

Meaning = Callable[..., "Ref | Sequence[Ref]"]

_MEANINGS: dict[str, Meaning] = {}
_WITHOUT: dict[str, NoMeaning] = {}


def meaning(*names: str) -> Callable[[Meaning], Meaning]:
    """Makes the decorated function the meaning of the ops of these names."""
    def declare(function: Meaning) -> Meaning:
        for name in names:
            if name not in REGISTRY or name in _MEANINGS:
                raise TypeError(f"{name!r} is no op, or has a meaning already")
            _MEANINGS[name] = function
        return function
    return declare


def without(*names: str, why: str, instead: str) -> None:
    """Says that the ops of these names have no meaning in ONNX."""
    for name in names:
        _WITHOUT[name] = NoMeaning(why, instead)


def meaning_of(name: str) -> Meaning:
    """The meaning of an op.

    Raises:
        NoMeaning: it has none.
    """
    _load()
    if name in _MEANINGS:
        return _MEANINGS[name]
    if name in _WITHOUT:
        raise _WITHOUT[name]
    if REGISTRY[name].body is not None:
        return elementwise
    raise NoMeaning("it has no meaning in ONNX", "compute it before or after the model")


def reasons() -> dict[str, NoMeaning]:
    """The ops that have no meaning."""
    _load()
    return _WITHOUT


@functools.cache
def _load() -> None:
    """Imports the families, whose modules fill the table."""
    from . import (  # noqa: F401
        export_activations,
        export_convolutions,
        export_indexing,
        export_ordering,
        export_pooling,
        export_products,
        export_reductions,
        export_scans,
        export_segments,
        export_shapes,
        export_slices,
    )


def elementwise(w: Writer, node: g.Node, *operands: Ref, **attrs: Any) -> Ref:
    """The scalar body, instruction by instruction; 16-bit floats are computed in float32 and rounded once."""
    s = Scalars(w)
    body = node.op.body  # type: ignore[union-attr]
    assert body is not None
    result = s.ref(body(s, *[s.value(x) for x in operands], **attrs))
    return w.cast(result, node.outputs[0].dtype)


without("angle", "complex", "conj", "imag", "real", "fft", "ifft", "irfft", "rfft",
        why="ONNX has no arithmetic of complex numbers",
        instead="keep real and imaginary parts in tensors of their own")
without("eig", "matrix_exponential", "pinv", "qr", "self_adjoint_eig", "svd", "cholesky", "log_matrix_determinant",
        "matrix_inverse", "matrix_solve", "matrix_triangular_solve",
        why="ONNX has no operator that factorises or solves",
        instead="compute the factors once, before the export, and capture them")
without("polygamma_of", why="ONNX has no operator for the derivatives of digamma of an order that is a value",
        instead="give the order as a Python number")
without("random_binomial", "random_bits", "random_gamma", "random_integers", "random_normal", "random_poisson",
        "random_seed_state", "random_skip", "random_state", "random_truncated_normal", "random_uniform",
        why="the random numbers of ONNX are others in every runtime",
        instead="draw outside of the model and hand the numbers in, or leave dropout out with training=False")
