"""The names that users see: a walk over `twofold` and its public modules by their `__all__`."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any


def public_modules(root: ModuleType) -> dict[str, ModuleType]:
    """The modules that `root` names in `__all__`, theirs and so on, by the dotted name a user types after `tf`."""
    by_name = {"tf": root}
    queue = [("tf", root)]
    while queue:
        prefix, module = queue.pop()
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name, None)
            ours = isinstance(value, ModuleType) and value.__name__.split(".")[0] == root.__name__.split(".")[0]
            if ours and value not in by_name.values():
                by_name[f"{prefix}.{name}"] = value
                queue.append((f"{prefix}.{name}", value))
    return by_name


def public_names(root: ModuleType) -> Iterator[tuple[str, Any]]:
    """`(dotted name, value)` for every function, class and callable that a user can reach."""
    for prefix, module in public_modules(root).items():
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name, None)
            if callable(value) and not isinstance(value, ModuleType):
                yield f"{prefix}.{name}", value


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """`(name, value)` of the methods and properties that `cls` and our own classes above it define for users."""
    for name in dir(cls):
        if name.startswith("_"):
            continue
        value = inspect.getattr_static(cls, name)
        owner = next(base for base in cls.__mro__ if name in vars(base))
        if owner.__module__.split(".")[0] == cls.__module__.split(".")[0] and (
            inspect.isroutine(value) or isinstance(value, (property, staticmethod, classmethod))
        ):
            yield name, getattr(cls, name) if not isinstance(value, property) else value


def undocumented(root: ModuleType) -> list[str]:
    """The public names without a docstring, and the public modules without `__all__`."""
    wrong = [f"{name}: no __all__" for name, module in public_modules(root).items() if not hasattr(module, "__all__")]
    seen: set[type] = set()
    for name, value in public_names(root):
        if not (inspect.getdoc(value) or "").strip():
            wrong.append(name)
        if inspect.isclass(value) and value not in seen:
            seen.add(value)
            wrong += [f"{name}.{m}" for m, v in members(value) if not (inspect.getdoc(v) or "").strip()]
    return sorted(wrong)


def missing(root: ModuleType) -> list[str]:
    """Names that an `__all__` promises and its module does not have."""
    return sorted(
        f"{prefix}.{name}"
        for prefix, module in public_modules(root).items()
        for name in getattr(module, "__all__", ())
        if not hasattr(module, name)
    )


def load(name: str) -> ModuleType:
    """The module `name`, imported, with all that is in it."""
    module = importlib.import_module(name)
    return getattr(module, "__complete__", module)
