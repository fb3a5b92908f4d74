"""Strings as kernels read them (`codegen/kernels/texts.py`): Python's bytes where they lie, without a copy.

In CPython an object begins with its head, whose last word is its class; of objects of several sizes the size follows;
and the bytes of a text are the last thing in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from twofold.codegen.kernels import texts as generated
from twofold.runtime import kernels
from twofold.runtime.calls import KernelCheck, address_of, run

__all__ = ["WORK", "checked", "kernel_args", "reading"]

WORK = 32  # simple operations, or so, that a kernel does for a text
T = TypeVar("T")
_SIZE = object.__basicsize__ // 8
_LAYOUT = (0, 0, id(bytes), _SIZE - 1, _SIZE, bytes.__basicsize__ - 1)


def kernel_args(texts: np.ndarray) -> list[int]:
    """The arguments of kernels for strings, which must live as long as the kernel runs.

    Args:
        texts: contiguous.
    """
    return [address_of(texts), *_LAYOUT]


def reading(run_kernel: Callable[[np.ndarray], T], texts: np.ndarray) -> T:
    """What `run_kernel` gives for strings, of which it may be told twice: where some are of a class derived from bytes,
    it raises KernelCheck, and gets copies that are of none."""
    texts = np.ascontiguousarray(texts)
    try:
        return run_kernel(texts)
    except KernelCheck:
        return run_kernel(_plain(texts))


def _plain(texts: np.ndarray) -> np.ndarray:
    plain = np.empty(texts.shape, object)
    plain.reshape(-1)[:] = [bytes(text) for text in texts.reshape(-1)]
    return plain


def checked(texts: np.ndarray) -> np.ndarray:
    """Strings that kernels can read, contiguous: the array itself wherever that is possible."""
    def read(array: np.ndarray) -> np.ndarray:
        run(kernels.get("text classes", generated.classes), array.size, kernel_args(array), array.size)
        return array
    return reading(read, texts)
