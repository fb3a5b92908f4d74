"""Copies between host and GPU: pinned memory, copies beside the work, and elements of datasets that are there ahead."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gpu.devices import HARDWARE, device

import twofold as tf
from twofold.runtime import cuda_ahead, cuda_device, cuda_pinned

GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
SEEDS = range(1 if HARDWARE else 12)  # of the order in which the fake driver does what streams were given
experimental = tf.data.experimental


@pytest.fixture
def fake() -> Iterator[Any]:
    with device() as driver:
        yield driver


def batches(count: int, size: int = 20000) -> list[np.ndarray]:
    return [np.random.default_rng(n).integers(0, 99, size).astype(np.float32) for n in range(count)]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has copies of 80 kB go in pieces, and few blocks of pinned memory."""
    monkeypatch.setattr(cuda_device, "PIECE", 1 << 14)
    monkeypatch.setattr(cuda_pinned, "_MOST", 3 << 14)


@pytest.mark.parametrize("seed", SEEDS)
def test_copies_in_pieces(seed: int, small_pieces: None) -> None:
    with device(seed=seed) as fake:
        there = []
        for x in batches(4):
            given = x.copy()
            there.append(tf.constant(given).gpu() * 2)
            given[:] = -1
        for x, y in zip(batches(4), there, strict=True):
            assert np.array_equal(y.numpy(), x * 2)
        assert np.array_equal(tf.cast(there[0], tf.bfloat16).numpy(), (batches(1)[0] * 2).astype(tf.bfloat16.np))
        assert fake is None or fake.findings == []


@pytest.mark.parametrize("seed", SEEDS)
def test_copies_ahead_of_the_work(seed: int, small_pieces: None) -> None:
    """Memory of the host and of the GPU is used again as soon as that may be, and flights are dropped on their way."""
    with device(seed=seed) as fake:
        gpu = cuda_device.gpu(0)
        assert gpu is not None
        sender = cuda_ahead.SendingStream(gpu)
        with tf.device("/gpu:0"):
            total, wanted, flights = tf.zeros([20000]), np.zeros(20000, np.float32), []
            for n, x in enumerate([*batches(9), None, None]):
                if x is not None:
                    given = x.copy()
                    flights.append((x, sender.send([given])))
                    given[:] = -1
                if n % 4 == 1 and x is not None:
                    flights.pop()
                    sender.free()
                if len(flights) > 2 or x is None:
                    x, flight = flights.pop(0)
                    [memory] = flight.arrive()
                    total, wanted = tf.convert_to_tensor(wrapped(memory)) * 3 + total, wanted + x * 3
                    del memory, flight
        assert np.array_equal(total.numpy(), wanted)
        assert fake is None or fake.findings == []


def wrapped(memory: Any) -> Any:
    from twofold.eager.tensor import wrap

    return wrap(memory)


def test_the_streams_wait_for_each_other_alone(fake: Any) -> None:
    """A copy ahead is done although the work handed in before it is not."""
    if HARDWARE:
        pytest.skip("the fake driver tells what was done")
    gpu = cuda_device.gpu(0)
    assert gpu is not None
    x = tf.ones([10]).gpu()
    for _ in range(3):
        x = x + 1
    flight = cuda_ahead.SendingStream(gpu).send(batches(1))
    launched = len(fake.launches)
    with gpu:
        gpu.driver.cuStreamSynchronize(gpu.copies)
    [memory] = flight.arrive()
    assert np.array_equal(fake.peek(memory.address, 20000, np.float32), batches(1)[0])
    assert len(fake.launches) <= launched + 3 and np.array_equal(x.numpy(), np.full(10, 4.0))


def test_pinned_memory_is_bounded(fake: Any, small_pieces: None) -> None:
    for size in (5000, 20000, 40000, 20000, 100000):
        x = batches(1, size)[0]
        assert np.array_equal(tf.constant(x).gpu().numpy(), x)
    if fake is not None:
        assert fake.calls["cuMemHostAlloc"] <= 6 and fake.pinned_bytes() <= 3 << 14


# -- datasets -----------------------------------------------------------------------------------------
def pairs(count: int = 7) -> tf.data.Dataset:
    xs = np.stack(batches(count, 500))
    return tf.data.Dataset.from_tensor_slices((xs, np.arange(count), [f"text {n}" for n in range(count)]))


@pytest.mark.parametrize("slow", [False, True], ids=["in place", "by a thread"])
@pytest.mark.parametrize("room", [None, 1, 3])
def test_elements_are_there_ahead(fake: Any, slow: bool, room: int | None) -> None:
    data = pairs()
    if slow:
        data = data.map(lambda x, n, text: (tf.numpy_function(waits, [x], tf.TensorSpec([500], tf.float32)), n, text))
    data = data.apply(experimental.prefetch_to_device("/gpu:0", room))
    assert data.element_spec == pairs().element_spec and len(data) == 7
    for number, (x, n, text) in enumerate(data):
        assert (x.device, n.device, text.device[-5:]) == (GPU, GPU, "CPU:0")
        assert np.array_equal((x * 2).numpy(), batches(7, 500)[number] * 2) and int(n) == number
    assert fake is None or fake.findings == []


def waits(x: np.ndarray) -> np.ndarray:
    time.sleep(0.003)
    return x


def test_further_steps_get_elements_from_the_host(fake: Any) -> None:
    data = pairs().apply(experimental.copy_to_device("/gpu:0"))
    assert next(iter(data))[0].device == GPU and next(iter(data.prefetch(2)))[0].device == GPU
    mapped = data.map(lambda x, n, text: (x + 1, n)).batch(7)
    [(x, n)] = list(mapped)
    assert x.device[-5:] == "CPU:0" and np.array_equal(x[3], batches(4, 500)[3] + 1)
    assert [int(n) for _, n, _ in data.take(2).as_numpy_iterator()] == [0, 1]
    assert [int(n) for _, n, _ in data.as_numpy_iterator()] == list(range(7))


@pytest.mark.parametrize("where", ["/cpu:0", "/gpu:0"])
def test_loops_in_functions(fake: Any, where: str) -> None:
    @tf.function
    def total(data: Any) -> Any:
        result = tf.zeros([500])
        for x, n, _ in data:
            result += x * tf.cast(n, tf.float32)
        return result
    with tf.device(where):
        result = total(pairs().apply(experimental.prefetch_to_device("/gpu:0")))
    assert np.array_equal(result.numpy(), sum(n * x for n, x in enumerate(batches(7, 500))))


def test_iterators_are_saved_and_restored(fake: Any, tmp_path: Any) -> None:
    data = pairs().map(lambda x, n, text: (tf.numpy_function(waits, [x], tf.TensorSpec([500], tf.float32)), n))
    data = data.apply(experimental.prefetch_to_device("/gpu:0", 3))
    iterator = iter(data)
    for _ in range(3):
        next(iterator)
    path = tf.train.Checkpoint(i=iterator).save(str(tmp_path / "at"))
    rest = [int(n) for _, n in iterator]
    again = iter(data)
    tf.train.Checkpoint(i=again).restore(path)
    left = [(x, int(n)) for x, n in again]
    assert [n for _, n in left] == rest == [3, 4, 5, 6] and all(x.device == GPU for x, _ in left)
    assert all(np.array_equal(x, batches(7, 500)[n]) for x, n in left)


def test_a_model_trains_on_what_is_there_ahead(fake: Any) -> None:
    def trained(where: str, ahead: bool) -> Any:
        with tf.device(where):
            tf.keras.utils.set_random_seed(1)
            model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(1)])
            model.compile("sgd", "mse")
            data = tf.data.Dataset.from_tensor_slices((np.stack(batches(8, 6)), np.arange(8.0))).batch(4)
            data = data.apply(experimental.prefetch_to_device("/gpu:0")) if ahead else data
            return model.fit(data, epochs=2, verbose=0).history["loss"]
    assert trained("/gpu:0", True) == trained("/cpu:0", False) == trained("/gpu:0", False)


def test_names_of_devices(fake: Any) -> None:
    for call in (lambda: experimental.prefetch_to_device("somewhere"),
                 lambda: experimental.copy_to_device("/gpu:0", source_device="/gpu:0")):
        with pytest.raises(ValueError):
            call()
    assert next(iter(pairs().apply(experimental.prefetch_to_device("/cpu:0"))))[0].device[-5:] == "CPU:0"
    assert next(iter(pairs().apply(experimental.prefetch_to_device("/gpu:7"))))[0].device[-5:] == "CPU:0"


def held_by(where: str, table: tf.Tensor) -> Any:
    """A function that reads a table of the host: from outside, or of Python's values."""
    values = table.numpy()

    def f(x: Any) -> Any:
        used = table if where == "captured" else tf.constant(values)
        return tf.reduce_sum(tf.sin(x * used) * used)
    return tf.function(f)


@pytest.mark.parametrize("where", ["captured", "made"])
def test_what_every_call_reads_is_copied_once(fake: Any, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a tape, in its gradient, and without one; and the copy goes when nobody has the tensor any more."""
    table, sent = tf.constant(np.linspace(0, 1, 600, dtype=np.float32)), list[int]()
    f, x = held_by(where, table), tf.ones([600])
    there, send = x.gpu(), cuda_device.Gpu.send
    monkeypatch.setattr(cuda_device.Gpu, "send", lambda gpu, address, array, stream: (
        sent.append(array.nbytes), send(gpu, address, array, stream))[1])

    def gradient(x: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    wanted, total = gradient(x), f(x)
    for _ in range(3):
        assert np.array_equal(gradient(there), wanted) and np.array_equal(f(there), total)
    assert sent.count(table._memory.nbytes) == 1
    gpu = cuda_device.gpu(0)
    assert gpu is not None and len(gpu._copies) == 1
    f = table = None
    gc.collect()
    assert not gpu._copies
