"""Whether products on GPUs may run on tensor cores, which the user chooses: quick, and not to the bit.

Which GPUs have such cores is the backend's affair (`cuda.py`), what they compute `codegen/gpu_mma.py`'s.
"""

from __future__ import annotations

__all__ = ["enabled", "enable"]

_enabled = False


def enabled() -> bool:
    """Whether matrix products and convolutions on GPUs may run on tensor cores."""
    return _enabled


def enable(enabled: bool) -> None:
    """Choose whether matrix products and convolutions on GPUs run on tensor cores: those of float32 rounded to TF32,
    those of float16 and bfloat16 with exact products, all with sums of no fixed order. By default they do not.

    It counts for what is called afterwards; functions that ran are compiled once more for it.
    """
    global _enabled
    _enabled = bool(enabled)
