"""What a public module shows: the names in its `__all__`, and no import or helper of its own.

`publish(__name__)` is the last line of each public module. Its functions go on in the module that was executed, which
holds everything; what is imported is another, with the public names, those that begin with an underscore, and
submodules.
"""

from __future__ import annotations

import sys
from types import ModuleType

__all__ = ["publish"]


def publish(name: str) -> None:
    """Put in the place of the module `name` one that shows what its `__all__` lists, and its submodules.

    The complete one stays reachable as `__complete__`.
    """
    complete = sys.modules[name]
    public = {*vars(complete)["__all__"]}
    shown = ModuleType(name)
    vars(shown).update({n: value for n, value in vars(complete).items() if n.startswith("_") or n in public or (
        isinstance(value, ModuleType) and value.__name__ == f"{name}.{n}")}, __complete__=complete)
    shown.__dir__ = lambda: sorted({*vars(shown), *public})  # type: ignore[method-assign]
    sys.modules[name] = shown
