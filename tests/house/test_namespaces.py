"""Public modules show their public names and nothing else."""

from __future__ import annotations

from types import ModuleType

import pytest
from fuzz.bad_targets import modules

import twofold as tf


def shown(module: ModuleType) -> list[str]:
    """What `dir` lists and attributes give beyond `__all__`, but for names with an underscore and submodules."""
    names = {*dir(module), *vars(module)} - {*module.__all__}
    others = []
    for name in sorted(n for n in names if not n.startswith("_") and hasattr(module, n)):
        value = getattr(module, name)
        if not isinstance(value, ModuleType) or value.__name__ != f"{module.__name__}.{name}":
            others.append(name)
    return others


@pytest.mark.parametrize("path", list(modules()))
def test_a_public_module_shows_its_public_names_only(path: str) -> None:
    module = modules()[path]
    assert shown(module) == []
    assert {*module.__all__} <= {*dir(module)}


def test_what_is_hidden_says_that_it_is_not_there() -> None:
    for module, name in ((tf.linalg, "public"), (tf.linalg, "op_error"), (tf.signal, "publish"),
                         (tf.random, "shape_arg"), (tf.debugging, "check")):
        assert name in vars(module.__complete__)  # the module's own functions see it
        with pytest.raises(AttributeError, match=f"module 'twofold.* has no attribute '{name}'"):
            getattr(module, name)
