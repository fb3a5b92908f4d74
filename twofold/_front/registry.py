"""A table through which files use one another without importing one another.

Where a file needs a definition of a file that stands on it, the one that has the definition provides it here when it is
imported, and the one that needs it asks. Whoever shows the package to its users says which module to import for a part
that nobody has provided yet, so that a program loads what it uses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Registry"]


class Registry:
    """Parts by name.

    >>> from twofold._front.registry import Registry
    >>> registry = Registry()
    >>> registry.expect("twice", lambda: registry.provide("twice", lambda x: 2 * x))
    >>> registry.ask("twice")(3)
    6
    """

    def __init__(self) -> None:
        self._parts: dict[str, Any] = {}
        self._loaders: dict[str, Callable[[], object]] = {}

    def provide(self, name: str, part: Any) -> None:
        """Have `part` as what asking for `name` gives."""
        self._parts[name] = part

    def expect(self, name: str, load: Callable[[], object]) -> None:
        """Say what to call for a part that is not there when it is asked for: `load()` has it provided."""
        self._loaders[name] = load

    def ask(self, name: str) -> Any:
        """The part of a name.

        Raises:
            KeyError: nobody provides it.
        """
        if name not in self._parts:
            self._loaders[name]()
        return self._parts[name]
