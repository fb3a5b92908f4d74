"""Tests that have tensors behave as NumPy's arrays leave the process as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from twofold.experimental.numpy import __complete__ as tnp


@pytest.fixture
def enable() -> Iterator[Callable[..., None]]:
    """`experimental_enable_numpy_behavior`, until the test is over."""
    yield tnp.experimental_enable_numpy_behavior
    tnp._enabling.disable()
