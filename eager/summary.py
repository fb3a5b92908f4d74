"""Tensors as `tf.print` and `tf.strings.format` write them: `[0 1 2 ... 7 8 9]`.

The first and last entries of each axis are shown. Floats have as many digits as tell them from their neighbours, at
most 9 (15 or 17 for float64), as C's `%g` writes them; truth is 1 and 0; strings are quoted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from twofold.ir import nest

from .tensor import Tensor
from .types import Readable

__all__ = ["summary", "template_of", "filled"]


ElementWriter: TypeAlias = Callable[[Any], str]  # of an element of an array: a NumPy scalar, or bytes


def summary(array: np.ndarray, summarize: int = 3) -> str:
    """The text of an array.

    Args:
        array: the value.
        summarize: how many entries are shown at each end of each axis; -1 for all.
    """
    shown = max(array.size, 1) if summarize is None or summarize < 0 else summarize
    element = _element(array.dtype)
    return _axis(array, 0, shown, element) if array.ndim else element(array[()])


def _axis(array: np.ndarray, axis: int, shown: int, element: ElementWriter) -> str:
    inner = array.ndim - 1

    def text(part: Any) -> str:  # an element, or a part of the array
        return _axis(part, axis + 1, shown, element) if inner else element(part)
    gap = "\n" * inner + " " * (axis + 1) if inner else " "
    count = len(array)
    if count <= 2 * shown:
        parts = [text(part) for part in array]
    else:
        parts = [*map(text, array[:shown]), "...", *map(text, array[count - shown:])]
    return "[" + gap.join(parts) + "]"


def _element(dtype: np.dtype) -> ElementWriter:
    """How an element of an array is written."""
    if dtype.kind == "O":
        return _quoted
    if dtype.kind == "b":
        return lambda x: "1" if x else "0"
    if dtype.kind in "iu":
        return str
    if dtype.kind == "c":
        part = _digits(dtype.itemsize // 2)
        return lambda x: f"({part(x.real)},{part(x.imag)})"
    return _digits(dtype.itemsize)


def _digits(size: int) -> ElementWriter:
    """How a float of `size` bytes is written: `%g` with digits enough to read it back."""
    if size == 8:
        return lambda x: _shortest(float(x), 15, 17, np.float64)
    if size == 4:
        return lambda x: _shortest(float(x), 6, 9, np.float32)
    return lambda x: f"{float(x):g}"  # two bytes are written by way of a stream, with six digits


def _shortest(x: float, few: int, many: int, kind: type[np.floating]) -> str:
    text = f"{x:.{few}g}"
    return text if x != x or kind(text) == kind(x) else f"{x:.{many}g}"


def _quoted(item: bytes) -> str:
    """A string in quotes, with C's escapes; text in UTF-8 stays as it is."""
    text = item.decode("utf-8", "surrogateescape")
    characters = []
    for ch in text:
        if ch in _ESCAPES:
            characters.append(_ESCAPES[ch])
        elif "\udc80" <= ch <= "\udcff":
            characters.append(f"\\{ord(ch) - 0xdc00:03o}")
        else:
            characters.append(ch if ch >= " " and ch != "\x7f" else f"\\{ord(ch):03o}")
    return '"' + "".join(characters) + '"'


_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "'": "\\'", "\\": "\\\\"}


class _TensorMark:
    """Takes the place of a tensor while a structure is written: its text is a mark that no other text contains."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __repr__(self) -> str:
        return self.mark


_MARK = "\0{}\0"


def template_of(inputs: Sequence[object], sep: str = " ") -> tuple[list[str], list[Readable]]:
    """Python values and structures with tensors in them, as text around the tensors.

    Args:
        inputs: what is to be written, one after the other.
        sep: what separates them.
    Returns:
        The pieces of text, one more than there are tensors, and the tensors (or variables).
    """
    tensors: list[Readable] = []
    texts = []
    for value in inputs:
        if isinstance(value, str):
            texts.append(value)
            continue
        leaves = []
        for leaf in nest.flatten(value):
            if isinstance(leaf, Tensor) or hasattr(leaf, "_read_tensor"):
                leaves.append(_TensorMark(_MARK.format(len(tensors))))
                tensors.append(leaf)
            else:
                leaves.append(leaf)
        import pprint
        texts.append(pprint.pformat(nest.pack(value, leaves)))
    whole = sep.join(texts)
    pieces = []
    for number in range(len(tensors)):
        before, _, whole = whole.partition(_MARK.format(number))
        pieces.append(before)
    return [*pieces, whole], tensors


def filled(pieces: Sequence[str], tensors: Sequence[Tensor], summarize: int) -> str:
    """The text of a template with tensors in it; a string alone is written without quotes."""
    if len(tensors) == 1 and not pieces[0] and not pieces[1]:
        array = tensors[0]._array
        if array.dtype == object and not array.ndim:
            return array.item().decode("utf-8", "replace")
    shown = [summary(t._array, summarize) for t in tensors]
    return "".join([part for both in zip(pieces, shown, strict=False) for part in both]) + pieces[-1]
