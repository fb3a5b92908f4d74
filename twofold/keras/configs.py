"""What every `from_config` takes: the arguments of an object by name, as its `get_config` gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twofold._front.api import describe

__all__ = ["config_of"]


def config_of(given: Any) -> dict[str, Any]:
    """A config as a dict of its own.

    Raises:
        TypeError: it is no dict.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"config must be a dict of arguments, as `get_config()` gives it; got {describe(given)}.")
    return dict(given)
