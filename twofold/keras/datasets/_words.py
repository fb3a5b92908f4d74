"""What IMDB and Reuters share: texts as lists of ranks of words, shuffled, limited, and with marks in them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from twofold._formats.reading import parsed_json

__all__ = ["limited", "objects", "read_index", "shifted", "short_enough", "shuffled"]


def shuffled(rng: np.random.RandomState, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Arrays in one new order."""
    order = np.arange(len(arrays[0]))
    rng.shuffle(order)
    return tuple(array[order] for array in arrays)


def shifted(texts: Iterable[Any], start_char: int | None, index_from: int) -> list[list[int]]:
    """Texts with ranks that begin at `index_from`, and a mark before each."""
    first = [] if start_char is None else [start_char]
    return [first + [word + index_from for word in text] for text in texts]


def short_enough(maxlen: int | None, texts: list[list[int]], labels: np.ndarray) -> tuple[list[list[int]], np.ndarray]:
    """The texts shorter than `maxlen`, with their labels."""
    if not maxlen:
        return texts, labels
    kept = [n for n, text in enumerate(texts) if len(text) < maxlen]
    if not kept:
        raise ValueError(f"No text is shorter than maxlen={maxlen}; give a larger one.")
    return [texts[n] for n in kept], labels[kept]


def limited(texts: list[list[int]], skip_top: int, num_words: int | None, oov_char: int | None) -> list[list[int]]:
    """Texts with a mark for words that are too frequent or too rare, or without them."""
    below = num_words or max(max(text, default=0) for text in texts)
    if oov_char is None:
        return [[word for word in text if skip_top <= word < below] for text in texts]
    return [[word if skip_top <= word < below else oov_char for word in text] for text in texts]


def objects(texts: list[list[int]]) -> np.ndarray:
    """An array of lists."""
    array = np.empty(len(texts), object)
    for n, text in enumerate(texts):
        array[n] = text
    return array


def read_index(path: Path) -> dict[str, int]:
    """Words with their ranks."""
    return parsed_json(path.read_bytes(), path)
