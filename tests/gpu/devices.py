"""A GPU for tests: the one of this machine where TWOFOLD_TEST_GPU=1 asks for it, else a driver that NumPy runs.

Also what several tests of that GPU ask: numbers, whether bits are the same, how often the host waits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from gpu.fake_cuda import FakeCuda
from gpu.ptx_machine import Checks
from ptx_checks import faults

import twofold as tf
from twofold.eager import placed
from twofold.runtime import cuda_driver

__all__ = ["HARDWARE", "device", "reads", "same", "some"]

HARDWARE = os.environ.get("TWOFOLD_TEST_GPU", "") == "1"


@contextmanager
def device(**settings: Any) -> Iterator[Any]:
    """Has the process see a GPU for a block; gives the fake driver, or None where there is a real one.

    Args:
        settings: of the fake driver.
    Raises:
        AssertionError: a kernel that was loaded is not what all must be (`ptx_checks.py`).
    """
    fake = None if HARDWARE else FakeCuda(checks=Checks(uninitialised=False), **settings)
    if fake is not None:
        cuda_driver.use(fake)
    try:
        yield fake
    finally:
        placed.stop()
        if fake is not None:
            cuda_driver.use(None)
    if fake is not None:
        wrong = faults(fake.texts, "sm_{}{}".format(*fake.architecture))
        assert not wrong, "\n".join(wrong)


def some(*shape: int, seed: int = 0) -> tf.Tensor:
    """Random numbers, always the same ones."""
    return tf.constant(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def same(x: Any, y: Any) -> bool:
    """Whether two structures of tensors have the same bits."""
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes()
               for a, b in zip(tf.nest.flatten(x), tf.nest.flatten(y), strict=True))


def reads(fake: Any, run: Callable[[], Any]) -> int:
    """How often the host waits in a call."""
    before = fake.calls["cuStreamSynchronize"]
    run()
    return int(fake.calls["cuStreamSynchronize"] - before)
