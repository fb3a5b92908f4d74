"""What every `from_config` takes: the arguments of an object by name, as its `get_config` gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twofold._front.api import mapped

__all__ = ["config_of"]


def config_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config as a dict of its own.

    Raises:
        TypeError: it is no dict.
    """
    return dict(mapped(config, "config"))
