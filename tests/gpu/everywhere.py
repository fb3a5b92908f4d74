"""A plugin that has tests of other folders run on a GPU: `PYTHONPATH=tests pytest -p gpu.everywhere PATH`."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from gpu.devices import device

import twofold as tf


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Every test, with all that it makes on the GPU."""
    with device(), tf.device("/gpu:0"):
        return (yield)
