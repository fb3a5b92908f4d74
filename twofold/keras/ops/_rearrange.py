"""`rearrange`: axes put in another order, joined and taken apart, as a pattern tells (the notation of einops)."""

from __future__ import annotations

import functools
import re
from typing import Any

import twofold as tf

from ..keras_ops import operation
from ..operands import shape_of
from ..operands import tensor as as_tensor

__all__ = ["rearrange"]

_EACH = ("*",)  # what stands for "..." outside of parentheses
_TOKEN = re.compile(r"\s*(\.\.\.|[A-Za-z_]\w*|[()1])")


@functools.lru_cache(maxsize=512)
def _groups(side: str) -> tuple[tuple[str, ...], ...]:
    """The axes that one side of a pattern names: for each axis the names of those that it is made of."""
    groups: list[tuple[str, ...]] = []
    inside: list[str] | None = None
    at, end = 0, len(side.rstrip())
    while at < end:
        match = _TOKEN.match(side, at)
        if match is None:
            raise ValueError(f"rearrange: {side.strip()!r} cannot be read at {side[at:].strip()!r}.")
        at, token = match.end(), match[1]
        if token in "()":
            if (token == "(") != (inside is None):
                raise ValueError(f"rearrange: the parentheses of {side.strip()!r} do not match.")
            if inside is not None:
                groups.append(tuple(inside))
            inside = [] if token == "(" else None
        elif token == "1":
            groups += [()] if inside is None else []
        elif inside is None:
            groups.append(_EACH if token == "..." else (token,))
        else:
            inside.append(token)
    if inside is not None:
        raise ValueError(f"rearrange: the parentheses of {side.strip()!r} do not match.")
    return tuple(groups)


def _sides(pattern: str, rank: int) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Both sides of a pattern for a tensor of a rank, with names for what "..." stands for."""
    before, arrow, after = pattern.partition("->")
    if not arrow:
        raise ValueError(f"rearrange: there is no '->' in {pattern!r}.")
    left, right = _groups(before), _groups(after)
    more = rank - len(left) + 1 if _EACH in left else 0
    unnamed = tuple([f"...{n}" for n in range(more)])

    def named(groups: tuple[tuple[str, ...], ...]) -> list[tuple[str, ...]]:
        names: list[tuple[str, ...]] = []
        for group in groups:
            if group == _EACH:
                names += [(name,) for name in unnamed]
            else:
                names.append(tuple([n for name in group for n in (unnamed if name == "..." else (name,))]))
        return names
    first, second = named(left), named(right)
    names = [[name for group in groups for name in group] for groups in (first, second)]
    if len(first) != rank or len(set(names[0])) != len(names[0]) or sorted(names[0]) != sorted(names[1]):
        raise ValueError(f"rearrange: {pattern!r} must name the axes of a tensor of rank {rank}, each once on each "
                         "side.")
    return first, second


@operation("einops")
def rearrange(tensor: Any, pattern: str, **axes_lengths: int) -> Any:
    """A tensor with its axes in another order, joined or taken apart.

    Args:
        tensor: a tensor.
        pattern: names for its axes, "->", and the same names as they are to be; names in parentheses are one axis, "1"
            or "()" is an axis of size 1, "..." all axes that have no names.
        axes_lengths: the sizes of axes, of which one in each pair of parentheses may be left out.
    Raises:
        ValueError: the pattern cannot be read, or does not fit the tensor.

    >>> import twofold as tf
    >>> tf.keras.ops.rearrange(tf.zeros([2, 6, 4]), "b (h w) c -> (b c) w h", w=3).shape
    TensorShape([8, 3, 2])
    """
    x = as_tensor(tensor)
    first, second = _sides(pattern, x.ndim)
    names = [name for group in first for name in group]
    unknown = sorted(set(axes_lengths) - set(names))
    if unknown:
        raise ValueError(f"rearrange: {', '.join(unknown)} not in {pattern!r}.")
    sizes: dict[str, Any] = dict(axes_lengths)
    for group, size in zip(first, shape_of(x), strict=True):
        open_names = [name for name in group if name not in sizes]
        if len(open_names) > 1:
            raise ValueError(f"rearrange: the sizes of {', '.join(open_names)} cannot be told; give all but one.")
        known = _product([sizes[name] for name in group if name in sizes])
        if isinstance(size, int) and isinstance(known, int) and (size % known if open_names else size != known):
            raise ValueError(f"rearrange: an axis of size {size} is not made of {' '.join(group) or '1'} with sizes "
                             f"{[sizes.get(name) for name in group]}.")
        if open_names:
            sizes[open_names[0]] = size // known
    order = [names.index(name) for group in second for name in group]
    apart = tf.transpose(tf.reshape(x, [sizes[name] for name in names]), order)
    return tf.reshape(apart, [_product([sizes[name] for name in group]) for group in second])


def _product(sizes: list[Any]) -> Any:
    product: Any = 1
    for size in sizes:
        product = product * size
    return product
