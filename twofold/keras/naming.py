"""Names of layers and models that were given none: the class's in snake case, with a number from the second on."""

from __future__ import annotations

import re
from collections import Counter

from twofold._front.together import locks

__all__ = ["auto_name", "reset_uids", "to_snake_case", "uniquify"]

_counts: Counter[str] = Counter()
_lock = locks.Lock()


def to_snake_case(name: str) -> str:
    """The name of a class as Keras writes it: `Conv2DTranspose` is `conv2d_transpose`.

    >>> to_snake_case("MultiHeadAttention"), to_snake_case("LSTM"), to_snake_case("Conv2D")
    ('multi_head_attention', 'lstm', 'conv2d')
    """
    name = re.sub(r"\W+", "", name)
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


def uniquify(name: str) -> str:
    """`name`, with a number behind it from the second time on that it is asked for."""
    with _lock:
        n = _counts[name]
        _counts[name] += 1
    return f"{name}_{n}" if n else name


def auto_name(cls: type) -> str:
    """A name for a new object of a class."""
    return uniquify(to_snake_case(cls.__name__))


def reset_uids() -> None:
    """Let the numbers of names begin anew."""
    _counts.clear()
