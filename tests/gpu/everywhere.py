"""A plugin that has tests of other folders run on a GPU: `PYTHONPATH=tests pytest -p gpu.everywhere PATH`.

Tests, and the fixtures that they ask for, make their tensors there. It is one GPU to the end, as tests keep tensors for
one another. Over the fake driver a test fails, too, where a kernel or a call did what it must not.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from gpu.devices import device

import twofold as tf

_drivers: list[Any] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, Any, Any]:
    """All tests, on a machine that has a GPU."""
    with device() as fake:
        _drivers.append(fake)
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Every test, with all that it makes on the GPU."""
    with tf.device("/gpu:0"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Looks for what the driver found while a test ran."""
    result = yield
    fake = _drivers[-1]
    if fake is not None and fake.findings:
        told, fake.findings[:] = "\n".join(fake.findings), []
        pytest.fail(f"the fake driver found:\n{told}")
    return result
