"""malt's converters without its front end.

`import malt` runs a package that imports all of malt, `unittest` and more, of which conversion needs half. `prepare`
puts the package into place such that its own code runs when a program first asks for one of its names, and its modules
can be imported before.
"""

from __future__ import annotations

import importlib.util
import sys
import types

__all__ = ["prepare"]

_SELDOM = ("malt.pyct.pretty_printer", "malt.utils.ag_logging")  # what they import takes milliseconds


class _Package(types.ModuleType):
    """The package malt before its own `__init__` has run."""

    def __getattr__(self, name: str) -> object:
        inside = f"{self.__name__}.{name}"
        if name.startswith("__") or inside in sys.modules or importlib.util.find_spec(inside) is not None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")  # the import system sets it
        self.__class__ = types.ModuleType  # type: ignore[assignment]
        spec = self.__spec__
        assert spec is not None and spec.loader is not None
        spec.loader.exec_module(self)
        return getattr(self, name)


def prepare() -> None:
    """Lets malt's modules be imported without all of malt; where it was imported already, that serves as well.

    Raises:
        ImportError: it is not installed.
    """
    if "malt" in sys.modules:
        return
    spec = importlib.util.find_spec("malt")
    if spec is None:
        raise ImportError("diastatic-malt is needed to convert control flow")
    package = importlib.util.module_from_spec(spec)
    package.__class__ = _Package
    sys.modules["malt"] = package
    for name in _SELDOM:
        _put_off(name)


def _put_off(name: str) -> None:
    """Has a module run when one of its names is asked for first."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        return
    loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    package, _, own = name.rpartition(".")
    setattr(sys.modules[package], own, module)  # where `from package import module` finds it without a look inside
