"""Saved models as servables: their signatures, loaded and run once, so that the first request finds compiled code."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from twofold.ir import nest
from twofold.ir.dims import Dim
from twofold.ir.spec import TensorSpec

from .rows import rows_apart
from .servable import Arrays, Function, Servable, TensorInfo

__all__ = ["load"]

_LOG = logging.getLogger("twofold.serve")


def load(folder: Path, joins: bool | None) -> Servable:
    """The signatures of a saved model.

    Args:
        folder: of the saved model.
        joins: whether requests may be joined; None to let graphs tell.
    Raises:
        OpError: there is no saved model, or it is damaged. ValueError: it has no signature.
    """
    import twofold as tf

    signatures = tf.saved_model.load(os.fspath(folder)).signatures
    if not signatures:
        raise ValueError("the saved model has no signatures; give tf.saved_model.save some: signatures=...")
    functions = {name: _function(signature, joins) for name, signature in signatures.items()}
    for name, function in functions.items():
        if not signatures[name]._traced.updates:
            _warm(name, function)
    return Servable(functions, "saved model")


def _function(signature: Any, joins: bool | None) -> Function:
    from twofold import constant

    traced = signature._traced
    templates = {name: template for name, _, template in traced.arguments}
    inputs = [_info(path, leaf) for name, template in templates.items() for path, leaf in _leaves(template, name)]
    outputs = [_info(path, leaf) for name, part in traced.result.items() for path, leaf in _leaves(part, name)]
    counts = {name: len(nest.flatten(template)) for name, template in templates.items()}
    if traced.updates or _several_traces(signature):
        joins = False
    elif joins is None:
        joins = rows_apart(traced.graph, len(inputs))

    def run(arrays: Arrays) -> list[np.ndarray[Any, Any]]:
        leaves = iter([constant(array) for array in arrays])
        given = {name: nest.pack(template, [next(leaves) for _ in range(counts[name])])
                 for name, template in templates.items()}
        return [_array(leaf.numpy()) for part in signature(**given).values() for leaf in nest.flatten(part)]
    return Function(inputs, outputs, run, joins)


def _several_traces(signature: Any) -> bool:
    return len(signature.plain) > 1


def _info(name: str, leaf: Any) -> TensorInfo:
    if not isinstance(leaf, TensorSpec):
        raise ValueError(f"the signature has {name}, which is no tensor")
    dims = None if leaf.dims is None else tuple([None if isinstance(d, Dim) else d for d in leaf.dims])
    return TensorInfo(name, leaf.dtype, dims)


def _leaves(structure: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The tensors of a structure in the order of `nest.flatten`, each under its place, as "x.0" or "x.key"."""
    if not nest.is_nested(structure):
        yield name, structure
        return
    keys = sorted(structure) if isinstance(structure, Mapping) else range(len(nest.children(structure)))
    for key, child in zip(keys, nest.children(structure), strict=True):
        yield from _leaves(child, f"{name}.{key}")


def _array(value: Any) -> np.ndarray[Any, Any]:
    """An array, also for the bytes that a string without dimensions is."""
    return np.array(value, object) if isinstance(value, bytes) else np.asarray(value)


def _warm(name: str, function: Function) -> None:
    """Runs it once on zeros, which compiles it; a function may well refuse these."""
    if any(info.dims is None for info in function.inputs):
        return
    arrays = [np.full([1 if d is None else d for d in info.dims or ()], b"" if info.dtype.name == "string" else 0,
                      info.dtype.np) for info in function.inputs]
    with contextlib.suppress(ValueError, TypeError, ArithmeticError, LookupError, RuntimeError):
        function.run(arrays)
        _LOG.debug("ran %s once", name)
