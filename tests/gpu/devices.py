"""A GPU for tests: the one of this machine where TWOFOLD_TEST_GPU=1 asks for it, else a driver that NumPy runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpu.fake_cuda import FakeCuda
from gpu.ptx_machine import Checks
from ptx_checks import faults

from twofold.eager import placed
from twofold.runtime import cuda_driver

__all__ = ["HARDWARE", "device"]

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
