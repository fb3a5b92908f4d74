"""Makes `einops` know our tensors: where both packages are imported, in whichever order.

einops asks each subclass of its `AbstractBackend` whether a tensor is its own. What ours do is in
`einops_backend.py`. Who does not use einops pays for one comparison of names in each first import of a module.

The layers of einops for Keras (`einops.layers.keras`) are written on top of `tensorflow`. Where TensorFlow is not
installed, these modules of einops are run with `twofold` in its place.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["connect"]

_BACKENDS, _LAYERS = "einops._backends", "einops.layers.tensorflow"


def connect() -> None:
    """Register our tensors with einops: now if it is imported already, else as soon as it is."""
    if _BACKENDS in sys.modules:
        _add_backends()
    sys.meta_path.insert(0, _Finder())


_classes: list[type] = []  # einops refers to them weakly


def _add_backends() -> None:
    from .einops_backend import KerasTensors, Tensors
    base = sys.modules[_BACKENDS].AbstractBackend
    _classes[:] = [type(functions.__name__, (functions, base), {}) for functions in (KerasTensors, Tensors)]


class _Finder:
    """Finds two modules of einops, by asking the other finders, and gives them loaders that do more."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """How to import a module; None for all that others should import as they do."""
        if name != _BACKENDS and name != _LAYERS:
            return None
        if name == _LAYERS and _tensorflow_is_there():
            return None
        for finder in sys.meta_path:
            spec = None if finder is self or not hasattr(finder, "find_spec") else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    loader: Any = _Loader(spec.loader, name == _LAYERS)
                    spec.loader = loader
                return spec
        return None


def _tensorflow_is_there() -> bool:
    loaded = sys.modules.get("tensorflow")
    if loaded is not None:
        return loaded is not sys.modules["twofold"]
    import importlib.util
    return importlib.util.find_spec("tensorflow") is not None


class _Loader:
    """Runs a module of einops by its own loader.

    Args:
        loader: of the module.
        layers: whether it is the one with layers, in which `tensorflow` is twofold, else the one with backends.
    """

    def __init__(self, loader: Any, layers: bool) -> None:
        self._loader, self._layers = loader, layers

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """The module, before it runs; None for the usual one."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, with nothing of ours left in it but the backend, or the meaning of `tensorflow`."""
        spec = module.__spec__
        assert spec is not None
        module.__loader__ = spec.loader = self._loader
        if self._layers:
            module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _importing}
        self._loader.exec_module(module)
        if not self._layers:
            _add_backends()


def _importing(name: str, globals: Mapping[str, Any] | None = None, locals: Mapping[str, Any] | None = None,
               fromlist: Sequence[str] | None = (), level: int = 0,
               ordinary: Callable[..., Any] = builtins.__import__) -> Any:
    """`import` in a module in which `tensorflow` is twofold."""
    parts = name.split(".")
    if level or parts[0] != "tensorflow":
        return ordinary(name, globals, locals, fromlist, level)
    return importlib.import_module(".".join(["twofold", *parts[1:]]) if fromlist else "twofold")
