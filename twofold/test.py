"""`tf.test`: what a program may ask about the machine before it runs something."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twofold._front.namespace import publish
from twofold.runtime import devices

from ._front.api import public

if TYPE_CHECKING:
    from ._front.testing import Benchmark, TestCase, benchmark_config, compute_gradient, main

__all__ = ["Benchmark", "TestCase", "benchmark_config", "compute_gradient", "disable_with_predicate",
           "gpu_device_name", "is_built_with_cuda", "is_built_with_gpu_support", "is_built_with_rocm",
           "is_built_with_xla", "is_cpu_target_available", "is_gpu_available", "main", "with_eager_op_as_function"]


@public
def disable_with_predicate(pred: Callable[[], bool], skip_message: str) -> Callable[..., Any]:
    """A decorator of a test's method: it is skipped where `pred` says so when it runs.

    Args:
        pred: whether to skip.
        skip_message: why.

    >>> import twofold as tf
    >>> class Tests(tf.test.TestCase):
    ...     @tf.test.disable_with_predicate(lambda: True, "not today")
    ...     def test_nothing(self):
    ...         raise AssertionError
    >>> Tests("test_nothing").run().skipped[0][1]
    'not today'
    """
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self.skipTest(skip_message) if pred() else function(self, *args, **kwargs)
        return method
    return decorate


@public
def with_eager_op_as_function(cls: Any = None, only_as_function: bool = False) -> Any:
    """The class as it is; in TensorFlow, too.

    Args:
        cls: a class of tests; without it the result is a decorator.
        only_as_function: has no effect.

    >>> import twofold as tf
    >>> tf.test.with_eager_op_as_function(int)
    <class 'int'>
    """
    return cls if cls is not None else lambda decorated: decorated


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


@public
def is_built_with_gpu_support() -> bool:
    """Whether this build can use GPUs: always, since it needs nothing but their driver."""
    return True


@public
def is_built_with_rocm() -> bool:
    """Whether this build can use GPUs by ROCm: never."""
    return False


@public
def is_built_with_xla() -> bool:
    """Whether XLA is there: never, since every `tf.function` is compiled to native code as it is."""
    return False


@public
def is_cpu_target_available(target: str) -> bool:
    """Whether native code for a processor can be made.

    Args:
        target: the name of an architecture, such as "x86" or "aarch64".

    >>> import twofold as tf
    >>> tf.test.is_cpu_target_available("a processor that nobody made")
    False
    """
    import platform
    names = {"x86": ("x86_64", "amd64", "i386", "i686"), "arm": ("arm",), "aarch64": ("aarch64", "arm64")}
    return platform.machine().lower() in names.get(str(target), (str(target),))


# Loaded when it is first asked for: unittest takes longer than all that programs need of this module.
def __getattr__(name: str) -> Any:
    if name in ("Benchmark", "TestCase", "benchmark_config", "compute_gradient", "main"):
        from ._front import testing
        return getattr(testing, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


publish(__name__)
