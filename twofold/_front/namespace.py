"""The names that a public module shows: those in its `__all__`, and no import or helper of its own.

`publish(__name__)` is the last line of each public module. Its functions go on in the module that was executed, which
holds everything; what is imported is another, with the public names, those that begin with an underscore, and
submodules. The public classes among them are opened: their methods' errors tell (`api.open_methods`).
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

__all__ = ["publish", "open_classes", "say_why"]


def open_classes(names: dict[str, Any]) -> None:
    """Open the classes of ours among the values, and those that a `__getattr__` among them will give."""
    for value in list(names.values()):
        _opened(value)
    look_up = names.get("__getattr__")
    if look_up is not None:
        names["__getattr__"] = lambda name: _opened(look_up(name))


def _opened(value: Any) -> Any:
    if isinstance(value, type) and value.__module__.partition(".")[0] == "twofold" and not issubclass(
            value, BaseException):
        from twofold._front.api import open_methods
        open_methods(value)
    return value


def _refuse(names: dict[str, Any], module: str) -> None:
    """Have a module say of names that it refuses why, or what to use (`refusals.py`)."""
    look_up = names.get("__getattr__")

    def get(name: str) -> Any:
        try:
            if look_up is not None:
                return look_up(name)
        except AttributeError:
            say_why(module, name)
            raise
        say_why(module, name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    names["__getattr__"] = get


def say_why(module: str, name: str) -> None:
    """Raise for a name that a module refuses.

    Raises:
        AttributeError: it refuses it; the text says why, or what to use.
    """
    if not name.startswith("_"):
        from twofold._front.refusals import refusal
        full = f"tf{module.removeprefix('twofold')}.{name}"
        sentence = refusal(full)
        if sentence is not None:
            raise AttributeError(f"{full} is not part of twofold: {sentence}")


def publish(name: str) -> None:
    """Put in the place of the module `name` one that shows what its `__all__` lists, and its submodules.

    The complete one stays reachable as `__complete__`.
    """
    complete = sys.modules[name]
    public = {*vars(complete)["__all__"]}
    shown = ModuleType(name)
    vars(shown).update({n: value for n, value in vars(complete).items() if n.startswith("_") or n in public or (
        isinstance(value, ModuleType) and value.__name__ == f"{name}.{n}")}, __complete__=complete)
    _refuse(vars(shown), name)
    open_classes(vars(shown))
    shown.__dir__ = lambda: sorted({*vars(shown), *public})  # type: ignore[method-assign]
    sys.modules[name] = shown
