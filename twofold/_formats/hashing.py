"""Hashes of bytes as TensorFlow takes them: FarmHash's 64-bit fingerprint, SipHash-2-4 with a key, MurmurHash64A.

Kernels compute them where the texts lie (`codegen/kernels/texts.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from twofold.codegen.kernels import texts as generated
from twofold.codegen.loop import Kernel
from twofold.runtime import kernels
from twofold.runtime.calls import address_of, run

from .text_memory import WORK, kernel_args, reading

__all__ = ["concatenated", "fingerprints", "keyed", "legacy"]

_ALL = (1 << 64) - 1
_SEED = 0xDECAFCAFFE  # that TensorFlow's oldest hash has


def _hashed(texts: np.ndarray, make: Callable[[], Kernel], buckets: int, *words: int) -> np.ndarray:
    """A hash of each string, or the bucket that it names; uint64."""
    made = np.empty(texts.shape, np.uint64)

    def hash_all(array: np.ndarray) -> None:
        run(kernels.get(("hash", make), make), array.size,
            [address_of(made), *kernel_args(array), buckets, *map(_signed, words)], array.size * WORK)
    reading(hash_all, texts)
    return made


def _signed(word: int) -> int:
    """The word of a kernel's argument that has the bits of an unsigned number."""
    return (word & _ALL ^ 1 << 63) - (1 << 63)


def fingerprints(texts: np.ndarray, buckets: int = 0) -> np.ndarray:
    """The 64-bit fingerprint of FarmHash (Pike & Alakuijala 2014) of each string, uint64.

    Args:
        texts: an array of bytes.
        buckets: with a number, what is left of a hash in a division by it.

    >>> import numpy as np
    >>> from twofold._formats import hashing
    >>> hex(hashing.fingerprints(np.array([b"twofold"], object))[0])
    '0x1be2b85921efacad'
    """
    return _hashed(texts, generated.farm, buckets)


def keyed(texts: np.ndarray, key: tuple[int, int], buckets: int = 0) -> np.ndarray:
    """SipHash-2-4 (Aumasson & Bernstein 2012) of each string with a key of two 64-bit numbers; see `fingerprints`."""
    return _hashed(texts, generated.sip, buckets, *key)


def legacy(texts: np.ndarray, buckets: int = 0) -> np.ndarray:
    """MurmurHash64A (Appleby 2008) of each string with the seed that TensorFlow's oldest hash has; see `fingerprints`.
    """
    return _hashed(texts, generated.murmur, buckets, _SEED)


def _mixed(value: Any) -> Any:
    return value ^ value >> np.uint64(47)


def concatenated(first: Any, second: np.ndarray) -> np.ndarray:
    """The fingerprint of two fingerprints one after the other, of 64 bits; arrays of them or a number first.

    Source: `FingerprintCat64` of tensorflow/core/platform/fingerprint.h.
    """
    factor = np.uint64(0xC6A4A7935BD1E995)
    mixed = np.asarray(first, np.uint64) ^ factor
    mixed = mixed ^ _mixed(second * factor) * factor
    return _mixed(_mixed(mixed * factor) * factor)
