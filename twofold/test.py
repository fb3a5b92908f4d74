"""`tf.test`: what a program may ask about the machine before it runs something."""

from __future__ import annotations

from twofold._front.namespace import publish
from twofold.runtime import devices

from ._front.api import public

__all__ = ["is_gpu_available", "is_built_with_cuda", "gpu_device_name"]


@public
def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: tuple[int, int] | None = None) -> bool:
    """Whether a GPU can be used.

    Args:
        cuda_only, min_cuda_compute_capability: accepted, without effect while there is no GPU support.

    >>> import twofold as tf
    >>> isinstance(tf.test.is_gpu_available(), bool)
    True
    """
    del cuda_only, min_cuda_compute_capability
    return bool(devices.physical_devices("GPU"))


@public
def is_built_with_cuda() -> bool:
    """Whether this build can use CUDA devices."""
    return False


@public
def gpu_device_name() -> str:
    """The name of the first GPU; empty when there is none."""
    return "/device:GPU:0" if is_gpu_available() else ""


publish(__name__)
