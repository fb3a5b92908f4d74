"""Where modules of TensorFlow 2 ask for what TensorFlow 1 had in them: `tf.compat.v1` provides it.

Data sets have methods that make iterators of graphs, `tf.train` and `tf.losses` have older names. Their modules know
nothing of `tf.compat`, which stands on them; they ask for its modules here.
"""

from __future__ import annotations

from typing import Any

from .registry import Registry

__all__ = ["expect", "module", "provide"]

_parts = Registry()
expect, provide = _parts.expect, _parts.provide


def module(name: str) -> Any:
    """The module of `tf.compat.v1` of a name, such as "data"."""
    return _parts.ask("modules")(name)
