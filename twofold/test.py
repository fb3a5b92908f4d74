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
        cuda_only: has no effect: all GPUs that can be used are CUDA's.
        min_cuda_compute_capability: the least that counts, such as (8, 0).

    >>> import twofold as tf
    >>> isinstance(tf.test.is_gpu_available(), bool)
    True
    """
    del cuda_only
    known = [devices.details(d) for d in devices.physical_devices("GPU")]
    least = (0, 0) if min_cuda_compute_capability is None else tuple(min_cuda_compute_capability)
    return any(d["compute_capability"] >= least for d in known)


@public
def is_built_with_cuda() -> bool:
    """Whether this build can use CUDA devices: it needs nothing but their driver, so always true."""
    return True


@public
def gpu_device_name() -> str:
    """The name of the first GPU; empty when there is none."""
    return "/device:GPU:0" if is_gpu_available() else ""


publish(__name__)
