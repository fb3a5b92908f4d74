"""What goes wrong on a GPU is told as the library's errors, with op and line, and the process goes on; forks."""

from __future__ import annotations

import functools
import os
import pickle
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gpu.devices import HARDWARE, device

import twofold as tf
from twofold.runtime import cuda_code, cuda_device, cuda_driver

pytestmark = pytest.mark.skipif(HARDWARE, reason="the fake driver fails as it is told")


@pytest.fixture
def fake() -> Iterator[Any]:
    with device() as driver:
        yield driver


def x() -> tf.Tensor:
    return tf.constant(np.arange(300, dtype=np.float32)).gpu()


def lost(tensor: tf.Tensor) -> None:
    """Has a tensor's memory be gone, so that the kernel that reads it fails."""
    gpu = cuda_device.gpu(0)
    assert gpu is not None
    gpu.driver.cuMemFreeAsync(tensor._memory.address, gpu.stream)


@tf.function
def scaled(x: Any) -> Any:
    return tf.exp(x) * 2.0


@pytest.mark.parametrize("compiled", [False, True], ids=["op by op", "compiled"])
def test_a_gpu_that_has_failed(fake: Any, compiled: bool) -> None:
    """Whatever is called then tells of it, names what was handed in, and the host works on."""
    bad, good = x(), x()
    f = scaled if compiled else tf.exp
    f(good)
    lost(bad)
    result = f(bad)
    told = r"ILLEGAL_ADDRESS.*handed in last: exp" + (r", multiply \(.*test_failures.py:\d+" if compiled else "")
    calls = [result.numpy, good.numpy, functools.partial(f, good), x, functools.partial(tf.add, good, 1),
             good._memory.copy, lambda: tf.config.experimental.get_memory_info("GPU:0")]
    for call in calls:
        with pytest.raises(tf.errors.InternalError, match=told) as failure:
            call()
        assert failure.value.op == "exp"
    assert (tf.ones([3]) + 1).numpy().tolist() == [2, 2, 2]
    again = pickle.loads(pickle.dumps(failure.value))
    assert (str(again), again.status) == (str(failure.value), 700)
    calls.clear()
    del result, bad, good, call  # which tells nobody of an error


def test_a_kernel_that_the_driver_refuses(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_code.LoadedKernel, "shape", lambda self, total: (1, 2048))

    @tf.function
    def f(x: Any) -> Any:
        return tf.cumsum(tf.exp(x) * 3.0)
    told = r"(?s)exp, multiply \(.*test_failures.py:\d+\): the kernel .* cannot be run on GPU:0: cuLaunchKernel"
    with pytest.raises(tf.errors.InternalError, match=told) as failure:
        f(x())
    assert failure.value.op == "exp"
    monkeypatch.undo()
    assert np.array_equal(tf.function(lambda x: x * 2)(x()), x().numpy() * 2)


def test_too_little_memory_says_what_is_held_and_free(fake: Any) -> None:
    held, idle = tf.zeros([1 << 24]).gpu(), tf.zeros([1 << 23]).gpu()
    del idle  # which is kept for later, and goes back to the driver when there is too little
    with pytest.raises(tf.errors.ResourceExhaustedError) as failure, tf.device("/gpu:0"):
        tf.zeros([1 << 26]) + 1
    numbers = [int(n.replace(",", "")) for n in re.findall(r"[\d,]{5,}", str(failure.value))]
    asked, used, free, total = numbers
    assert (asked, total) == (4 << 26, 1 << 28) and (4 << 24) <= used < (4 << 24) + 4096 and free == total - used
    assert float(tf.reduce_sum(held)) == 0 and fake.findings == []


def test_other_memory_runs_out(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the host for copies, and of the driver for code."""
    driver = cuda_driver.driver()
    assert driver is not None
    for function, call in (("cuMemHostAlloc", lambda: tf.zeros([1 << 20]).gpu()),
                           ("cuModuleLoadData", lambda: x() % 7)):
        monkeypatch.setattr(driver, function, driver._checked(function, lambda *args: cuda_driver.OUT_OF_MEMORY))
        with pytest.raises(tf.errors.ResourceExhaustedError, match=function):
            call()
        monkeypatch.undo()
        call()


def in_child(work: Any) -> str:
    """What a forked process says of some work."""
    read, write = os.pipe()
    if not (pid := os.fork()):
        try:
            said = work()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the parent tells
            said = f"{type(error).__name__}: {error}"
        os.write(write, str(said).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        said = file.read()
    os.waitpid(pid, 0)
    return said


def test_a_forked_process_leaves_the_gpus_alone(fake: Any) -> None:
    there, w = x(), tf.Variable(tf.ones([3]).gpu())
    compiled = scaled(there)
    data = tf.data.Dataset.range(3).apply(tf.data.experimental.prefetch_to_device("/gpu:0"))
    works = [lambda: there.numpy(), lambda: there + 1, lambda: scaled(there), lambda: w.assign_add([1.0, 1.0, 1.0]),
             lambda: tf.constant(1.0).gpu(), lambda: list(data), lambda: there.__dlpack__(stream=5),
             lambda: tf.config.experimental.get_memory_info("GPU:0")]
    for work in works:
        said = in_child(work)
        assert said.startswith("FailedPreconditionError: ") and "spawn" in said and "parent process" in said

    def let_go() -> int:
        nonlocal there, compiled
        calls = sum(fake.calls.values())
        del there, compiled
        assert (tf.ones([3]) * 2).numpy().tolist() == [2, 2, 2]
        return sum(fake.calls.values()) - calls
    assert in_child(let_go) == "0"
    assert np.array_equal(scaled(there).numpy(), compiled.numpy()) and fake.findings == []
