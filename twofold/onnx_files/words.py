"""What ONNX does with text and `tf.strings` does not: parts of several strings as one tensor, lists without some words.

Python computes them each time that they are reached, and saved models hold the calls (`_front/hosted.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.hosted import hosted
from twofold.ir.spec import TensorSpec

__all__ = ["padded_parts", "words_left"]

_CHANGES: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}


def _characters(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _texts(words: Sequence[str], shape: Sequence[int]) -> np.ndarray:
    array = np.empty(len(words), object)
    array[:] = [word.encode("utf-8", "surrogateescape") for word in words]
    return array.reshape(shape)


@hosted
def padded_parts(x: Any, sep: str, maxsplit: int) -> Any:
    """The parts of each string along a new last axis, which empty strings fill up; and how many each has.

    Args:
        x: strings.
        sep: what is between parts; "" for white space, of which any amount counts as one.
        maxsplit: how often a string is split at most; -1 for always.
    """
    def take_apart(tensor: Any) -> list[Any]:
        array = engine.array_of(tensor)
        parts = [_characters(text).split(sep or None, maxsplit) for text in array.ravel().tolist()]
        most = max(map(len, parts), default=0)
        padded = [word for each in parts for word in [*each, *[""] * (most - len(each))]]
        counts = np.array([len(each) for each in parts], np.int64).reshape(array.shape)
        return [engine.tensor_of(_texts(padded, (*array.shape, most))), engine.tensor_of(counts)]
    dims = list(x.shape)
    specs = [TensorSpec([*dims, None], tf.string), TensorSpec(dims, tf.int64)]
    return engine.host_call(take_apart, "StringSplit", [x], specs)


@hosted
def words_left(x: Any, stopwords: Sequence[str], case_sensitive: bool, change: str) -> Any:
    """The strings of a list that are no stop words, in another case; one empty string where none is left.

    Args:
        x: strings along the last axis, before which there may be one of size 1.
        stopwords: what is left out.
        case_sensitive: whether a word in another case is another word.
        change: "LOWER", "UPPER" or "NONE".
    """
    case = _CHANGES[change]
    alike: Callable[[str], str] = str if case_sensitive else str.lower
    stopped = {alike(word) for word in stopwords}

    def leave(tensor: Any) -> list[Any]:
        array = engine.array_of(tensor)
        words = [_characters(text) for text in array.ravel().tolist()]
        left = [case(word) for word in words if alike(word) not in stopped] or [""]
        return [engine.tensor_of(_texts(left, (*array.shape[:-1], len(left))))]
    spec = TensorSpec([*list(x.shape)[:-1], None], tf.string)
    return engine.host_call(leave, "StringNormalizer", [x], [spec])[0]
