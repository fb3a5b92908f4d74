"""`tf.compat.v1.Dimension`: a size of TensorFlow 1, which may be unknown. Shapes hold plain numbers and None here."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from twofold._front.api import public_class, told

__all__ = ["Dimension"]


def _size(name: str, turned: bool = False) -> Any:
    """An operator that gives a size, which is unknown where one of the two is."""
    compare = _value(name)

    def method(self: Dimension, other: Any) -> Any:
        """The operator, of two sizes."""
        try:
            other = Dimension(other)
        except (TypeError, ValueError):
            return NotImplemented
        return Dimension(compare(other, self) if turned else compare(self, other))

    return told(method)


def _value(name: str) -> Any:
    """An operator that gives a value, which is None where one of the two sizes is unknown."""
    function: Callable[[int, int], Any] = getattr(operator, name)

    def method(self: Dimension, other: Any) -> Any:
        """The operator, of two sizes."""
        try:
            theirs = Dimension(other).value
        except (TypeError, ValueError):
            return NotImplemented
        return None if self.value is None or theirs is None else function(self.value, theirs)

    return told(method)


@public_class
class Dimension:
    """A size: a number, or None where it is unknown.

    >>> import twofold as tf
    >>> tf.compat.v1.Dimension(3) * 2, tf.compat.v1.Dimension(None) + 1
    (Dimension(6), Dimension(None))
    """

    __slots__ = ("_value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        """Args:
            value: a number, another size, or None.

        Raises:
            ValueError: it is negative.
        """
        self._value: int | None = value.value if isinstance(value, Dimension) else (
            None if value is None else operator.index(value))
        if self._value is not None and self._value < 0:
            raise ValueError(f"Dimension {self._value} must be >= 0")

    @property
    def value(self) -> int | None:
        """The number, or None."""
        return self._value

    def __repr__(self) -> str:
        return f"Dimension({self._value})"

    def __str__(self) -> str:
        return "?" if self._value is None else str(self._value)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __index__(self) -> int:
        if self._value is None:
            raise TypeError("the size is unknown")
        return self._value

    __int__ = __index__

    def __reduce__(self) -> tuple[Any, ...]:
        return Dimension, (self._value,)

    __add__, __radd__, __sub__, __rsub__ = _size("add"), _size("add", True), _size("sub"), _size("sub", True)
    __mul__, __rmul__, __mod__, __rmod__ = _size("mul"), _size("mul", True), _size("mod"), _size("mod", True)
    __floordiv__, __rfloordiv__ = _size("floordiv"), _size("floordiv", True)
    __eq__, __ne__, __lt__, __le__, __gt__, __ge__ = map(_value, ("eq", "ne", "lt", "le", "gt", "ge"))

    def is_compatible_with(self, other: Any) -> bool:
        """Whether both may be one size: they are equal, or one is unknown."""
        theirs = Dimension(other).value
        return self._value is None or theirs is None or self._value == theirs

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raise a ValueError where the two differ."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {other} are not compatible")

    def merge_with(self, other: Any) -> Dimension:
        """What is known of a size from both.

        Raises:
            ValueError: they differ.
        """
        other = Dimension(other)
        self.assert_is_compatible_with(other)
        return Dimension(other if self._value is None else self)
