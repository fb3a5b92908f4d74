"""Tensors, variables, functions and models on GPUs: where things lie, what runs where, and that bits stay the same."""

from __future__ import annotations

import gzip
import io
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpu.devices import HARDWARE, device

import twofold as tf
from twofold.codegen import gpu_flow, gpu_gemm, gpu_mma
from twofold.eager import dispatch
from twofold.ir.dtypes import DType
from twofold.runtime import cuda_device

GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


@pytest.fixture
def fake() -> Iterator[Any]:
    with device() as driver:
        yield driver


@pytest.fixture
def two() -> Iterator[Any]:
    if HARDWARE:
        pytest.skip("the fake driver has two GPUs")
    with device(devices=2) as driver:
        yield driver


def some(*shape: int, seed: int = 0) -> tf.Tensor:
    return tf.constant(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def same(x: Any, y: Any) -> bool:
    return bool(np.array_equal(np.asarray(x), np.asarray(y), equal_nan=True))


# -- tensors ------------------------------------------------------------------------------------------
def test_devices_are_listed(fake: Any) -> None:
    assert [d.device_type for d in tf.config.list_physical_devices()][:2] == ["CPU", "GPU"]
    gpu, *_ = tf.config.list_physical_devices("GPU")
    assert gpu.name == "/physical_device:GPU:0"
    assert tf.config.list_logical_devices("GPU")[0].name == "/device:GPU:0"
    assert tf.config.experimental.get_device_details(gpu)["compute_capability"][0] >= 7
    assert tf.test.is_gpu_available() and tf.test.gpu_device_name() == "/device:GPU:0"
    assert tf.test.is_gpu_available(min_cuda_compute_capability=(7, 5))
    assert not tf.test.is_gpu_available(min_cuda_compute_capability=(99, 0))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "bool", "int8", "uint64", "complex128"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_copies_there_and_back(fake: Any, dtype: str, shape: tuple[int, ...]) -> None:
    x = tf.cast(some(*shape), dtype)
    y = x.gpu()
    assert (y.device, y.shape, y.dtype, x.device) == (GPU, x.shape, x.dtype, CPU)
    assert y.gpu() is y and x.cpu() is x and y.cpu().device == CPU
    assert same(y.numpy(), x.numpy()) and same(y.cpu(), x)


def test_blocks_say_where(fake: Any) -> None:
    with tf.device("/gpu:0"):
        x = tf.constant([1.0, 2.0])
        with tf.device("/cpu:0"):
            z = x + 1
        with tf.device(None):
            w = tf.constant([1.0])
        y = x + 1
    assert (x.device, y.device, z.device, w.device) == (GPU, GPU, CPU, CPU)
    assert (x * 2).device == GPU and (tf.constant([1.0, 2.0]) + x).device == GPU


def test_a_missing_gpu(fake: Any) -> None:
    with tf.device("/gpu:7"):
        assert tf.constant(1.0).device == CPU
    with pytest.raises(RuntimeError, match="GPU:7 is not available"):
        tf.constant(1.0).gpu(7)
    tf.config.set_soft_device_placement(False)
    try:
        with pytest.raises(RuntimeError, match="unknown device"), tf.device("/gpu:7"):
            pass
    finally:
        tf.config.set_soft_device_placement(True)


def test_texts_stay_on_the_host(fake: Any) -> None:
    with tf.device("/gpu:0"):
        text = tf.constant(["a", "b"])
        assert text.device == CPU and tf.strings.join([text, text]).numpy().tolist() == [b"aa", b"bb"]
    assert text.gpu() is text


def test_two_gpus(two: Any) -> None:
    x = some(3)
    first, second = x.gpu(0), x.gpu(1)
    assert (first.device[-1], second.device[-1]) == ("0", "1")
    assert same(first.gpu(1), x) and (second + first).device[-1] == "1"
    with tf.device("/gpu:1"):
        assert same(first * 2, x * 2) and (first * 2).device[-1] == "1"


def test_it_is_told_where_ops_run(fake: Any, capfd: pytest.CaptureFixture[str]) -> None:
    tf.debugging.set_log_device_placement(True)
    try:
        x = tf.constant([1.0])
        x + x
        with tf.device("/gpu:0"):
            x * x
    finally:
        tf.debugging.set_log_device_placement(False)
    x - x
    told = capfd.readouterr().err
    assert f"Executing op add in device {CPU}" in told and f"Executing op multiply in device {GPU}" in told
    assert "subtract" not in told


# -- variables and functions --------------------------------------------------------------------------
def test_variables_stay_where_they_were_made(fake: Any) -> None:
    with tf.device("/gpu:0"):
        there = tf.Variable([1.0, 2.0])
    here = tf.Variable([1.0, 2.0])
    there.assign_add([1.0, 1.0])
    here.assign(there)
    there.assign([5.0, 6.0])
    here[0].assign(7.0)
    there[0].assign(7.0)
    assert (there.device, here.device) == (GPU, CPU)
    assert (there.numpy().tolist(), here.numpy().tolist()) == ([7.0, 6.0], [7.0, 3.0])

    @tf.function
    def swapped() -> None:
        before = here + 0
        here.assign(there * 2)
        there.assign(before)
    swapped()
    assert (there.device, here.device) == (GPU, CPU)
    assert (there.numpy().tolist(), here.numpy().tolist()) == ([7.0, 3.0], [14.0, 12.0])


def test_a_function_runs_where_its_inputs_are(fake: Any) -> None:
    f = tf.function(lambda x: (tf.tanh(x) * 2, tf.reduce_sum(x, 0)))
    x = some(4, 5)
    here, there, asked = f(x), f(x.gpu()), None
    with tf.device("/gpu:0"):
        asked = f(x)
    for a, b, c in zip(here, there, asked, strict=True):
        assert (a.device, b.device, c.device) == (CPU, GPU, GPU) and same(a, b) and same(a, c)
    kept = x.gpu()
    assert tf.function(lambda y: y + kept)(x).device == GPU


def powers(x: Any, n: Any) -> Any:
    y = x
    for _ in tf.range(n):
        y = y * x
    return y


@pytest.mark.parametrize("use", [powers, lambda x, n: tf.reduce_sum(x, n - 2) * tf.cast(n, x.dtype),
                                 lambda x, n: tf.reshape(tf.repeat(x, n, 0), [8, 3]) + tf.cast(n, x.dtype)],
                         ids=["rounds", "axis", "size"])
def test_small_tensors_there_are_known_in_functions(fake: Any, use: Any) -> None:
    """As on the host, where they are constants: from outside, from which a function learns where it runs, and made
    inside, which belong to no device."""
    x, n = some(4, 3), tf.constant(2)
    there = n.gpu()
    outside = tf.function(lambda x: use(x, there), fallback=False)
    inside = tf.function(lambda x: use(x, tf.constant(2)), fallback=False)
    assert all(y.device == GPU and same(y, use(x, n)) for y in (outside(x), outside(x), outside(x)))
    with tf.device("/gpu:0"):
        y = inside(x)
    assert y.device == GPU and same(y, use(x, n)) and inside(x).device == CPU
    assert tf.function(lambda x: outside(x) + 1)(x).device == GPU
    assert use is not powers or all("trips: 2" in str(f.get_concrete_function(x).graph) for f in (outside, inside))


def test_variables_that_functions_make(fake: Any) -> None:
    made: list[tf.Variable] = []

    @tf.function
    def f(x: Any) -> Any:
        if not made:
            made.extend(map(tf.Variable, ([1.0, 2.0], lambda: np.float32(3), tf.zeros([2]), x)))
        return x * made[0]
    with tf.device("/gpu:0"):
        f(some(2))
    assert [v.device for v in made] == [GPU] * 4


def test_a_variables_value_stays_itself(fake: Any) -> None:
    """Also in a block of another device: a tape that follows it follows what was read before."""
    w = tf.Variable([3.0])
    with tf.device("/gpu:0"):
        read = tf.convert_to_tensor(w)
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = read * w
    assert read.device == CPU and same(tape.gradient(y, w), [6.0])


def test_gradients_have_the_same_bits(fake: Any) -> None:
    def loss(w: Any, x: Any) -> Any:
        h = tf.nn.gelu(x * w[0]) + tf.nn.softmax(x * w[1])
        return tf.reduce_mean(tf.reduce_sum(h, -1) ** 2)

    def both(w: Any, x: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(w)
            with tf.GradientTape() as inner:
                inner.watch(w)
                value = loss(w, x)
            first = inner.gradient(value, w)
        return first, outer.gradient(first, w)
    w, x = some(2, 6), some(5, 6, seed=1)
    wanted = both(w, x)
    for f in (both, tf.function(both)):
        got = f(w.gpu(), x.gpu())
        assert all(g.device == GPU and same(g, v) for g, v in zip(got, wanted, strict=True))


def test_copies_hand_gradients_on(fake: Any) -> None:
    x = some(3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum((x.gpu() * 2).cpu() * x)
    assert same(tape.gradient(y, x), 4 * x)


def test_loops_and_branches(fake: Any) -> None:
    @tf.function
    def collatz(n: Any) -> Any:
        steps = 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps
    assert collatz(tf.constant(27).gpu()).numpy() == 111


def test_what_runs_on_the_host(fake: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TWOFOLD_LOG", "device")
    from twofold.eager import executing

    executing._told.clear()
    x = some(3, 3)
    for _ in range(2):
        q = tf.linalg.qr(x.gpu())[0]
    assert q.device == GPU and same(q, tf.linalg.qr(x)[0])
    assert capfd.readouterr().err.count("qr runs on the host") == 1

    @tf.function
    def f(y: Any) -> Any:
        return tf.numpy_function(np.sinh, [y * 2], tf.TensorSpec([3, 3], tf.float32)) + 1
    assert f(x.gpu()).device == GPU and same(f(x.gpu()), f(x))


# -- errors -------------------------------------------------------------------------------------------
def test_failed_checks_tell_as_on_the_host(fake: Any) -> None:
    x, i = tf.constant([1.0, 2.0]), tf.constant([0, 7])
    for f in (lambda x, i: tf.gather(x, i), tf.function(lambda x, i: tf.gather(x, i))):
        told = []
        for a, b in ((x, i), (x.gpu(), i.gpu())):
            with pytest.raises(tf.errors.InvalidArgumentError) as failure:
                f(a, b)
            told.append(str(failure.value))
        assert told[0] == told[1]
    assert same(x.gpu() + 1, x + 1)


FAR = 99999999  # further than any memory that there is
CHECKED = {
    "item": lambda: tf.constant([1.0, 2.0])[tf.constant(FAR)],
    "item, then more": lambda: tf.exp(tf.gather(tf.constant([[1.0], [2.0]]), tf.constant(-FAR))) + 1,
    "places of places": lambda: tf.gather(tf.range(30.0), tf.gather(tf.range(30), tf.constant([1, FAR]))),
    "several axes": lambda: tf.gather_nd(tf.ones([3, 4]), tf.constant([[FAR, 1], [0, 9]])),
    "several axes, gathered": lambda: tf.gather_nd(tf.ones([30, 4]), tf.gather(tf.constant([[1, 2]]), [FAR])),
    "scattered": lambda: tf.scatter_nd(tf.constant([[FAR], [1]]), tf.constant([1.0, 2.0]), [4]),
    "added": lambda: tf.tensor_scatter_nd_add(tf.ones([3, 2]), tf.constant([[FAR]]), tf.ones([1, 2])),
    "in a batch": lambda: tf.gather(tf.ones([3, 2]), tf.constant([[0], [FAR], [1]]), batch_dims=1, axis=1),
    "labels": lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(tf.constant([0, FAR]), tf.ones([2, 3])),
    "in a loop": lambda: tf.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + tf.gather([1.0, 2.0], i * FAR)),
                                       [0, 0.0]),
    "an item of a loop": lambda: tf.while_loop(
        lambda i, s: i < 3, lambda i, s: (i + 1, s + tf.constant([[1.0], [2.0]])[tf.gather([0, 1], i * FAR)]),
        [0, tf.zeros([1])]),
    "a flag": lambda: tf.cond(tf.gather([False, True], FAR), lambda: tf.gather([1.0], FAR), lambda: 2.0),
    "segments": lambda: tf.exp(tf.math.segment_sum(tf.ones([3]), tf.constant([0, FAR, 1]))),
    "any segments": lambda: tf.gather([1, 2], tf.math.unsorted_segment_sum(tf.range(3), tf.constant([0, FAR, 1]), 2)),
    "the first of several": lambda: tf.while_loop(
        lambda i, s: tf.reduce_max(tf.gather([1, 2, 3], [i, 0])) < 3,
        lambda i, s: (i + tf.reduce_max(tf.gather([FAR, FAR], [i + 7, 0])), s + 1.0), [0, 0.0]),
    "divided": lambda: tf.gather(tf.ones([9]), tf.constant([4, 5]) // tf.constant([0, 1])),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["op by op", "compiled"])
@pytest.mark.parametrize("name", CHECKED)
def test_checks_come_before_what_relies_on_them(fake: Any, name: str, compiled: bool) -> None:
    f, told = tf.function(CHECKED[name]) if compiled else CHECKED[name], []
    for where in ("/cpu:0", "/gpu:0"):
        with tf.device(where), pytest.raises(tf.errors.InvalidArgumentError) as failure:
            f()
        told.append(str(failure.value).splitlines()[0])
    assert told[0] == told[1] and (fake is None or fake.findings == [])
    assert same(tf.ones([3]).gpu() + 1, tf.fill([3], 2.0))


def test_status_words_are_read_once(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """And together with what the host decides by."""
    monkeypatch.setattr(gpu_flow, "unfit", lambda *args: "a test says so")
    if HARDWARE:
        pytest.skip("the fake driver counts")
    f = tf.function(lambda x, i: tf.gather(x, tf.gather(i, i) // i) + 1)
    loop = tf.function(lambda x, i: tf.while_loop(
        lambda n, s: n <= i[0] + i[1], lambda n, s: (n + 1, s + tf.gather(x, tf.gather(i, i))), [0, tf.zeros([2])])[1])
    x, i = some(4).gpu(), tf.constant([1, 1]).gpu()
    for g, wanted in ((f, 1), (loop, 5)):  # four flags, and at the end
        g(x, i)
        before = fake.calls["cuStreamSynchronize"]
        g(x, i)
        assert fake.calls["cuStreamSynchronize"] - before == wanted


def test_items_of_loops(fake: Any) -> None:
    """Places that a round computes right before it reads or writes there."""
    @tf.function
    def f(x: Any, n: Any) -> Any:
        total, out = tf.zeros([2]), tf.TensorArray(tf.float32, n, element_shape=[2])
        for i in tf.range(n):
            total += x[(i * i + 1) % 5] * x[(i + 3) % 5]
            out = out.write((i * 2) % n, total + x[i])
        return total, out.stack()
    x, n = some(5, 2), tf.constant(5)
    assert all(same(a, b) for a, b in zip(f(x.gpu(), n), f(x, n), strict=True))
    assert fake is None or fake.findings == []


def test_too_little_memory(fake: Any) -> None:
    if HARDWARE:
        pytest.skip("takes a GPU of known size")
    held = some(1 << 20).gpu()
    told = "bytes were asked for; tensors hold"
    with pytest.raises(tf.errors.ResourceExhaustedError, match=told) as failure, tf.device("/gpu:0"):
        tf.zeros([1 << 28]) + 1
    numbers = [int(n.replace(",", "")) for n in re.findall(r"[\d,]{4,}", str(failure.value))]
    assert any(0 <= number - held.numpy().nbytes < 4096 for number in numbers)
    assert same(held[:3] + 1, held.numpy()[:3] + 1)


def test_memory_is_told(fake: Any) -> None:
    info = tf.config.experimental.get_memory_info
    before = info("GPU:0")["current"]
    x = some(1000).gpu()
    assert info("GPU:0")["current"] >= before + 4000
    del x
    tf.config.experimental.reset_memory_stats("GPU:0")
    y = some(10).gpu()
    assert info("GPU:0")["peak"] < before + 4000 and y is not None
    with pytest.raises(ValueError, match="no GPU"):
        info("CPU:0")


# -- kernels of several blocks ------------------------------------------------------------------------
def test_sorting_scatters_and_scans(fake: Any) -> None:
    """Threads of blocks tell one another keys and pieces of lines; the processor's bits come out."""
    rng = np.random.default_rng(0)
    keys, updates = rng.integers(-40, 40, 1100) / 2, rng.normal(size=(1100, 2))
    ids = rng.integers(0, 50, 1100)

    def f(keys: Any, updates: Any, ids: Any) -> Any:
        return (tf.sort(keys), tf.argsort(keys, direction="DESCENDING"), *tf.math.top_k(keys, 5),
                tf.math.unsorted_segment_sum(updates, ids, 60), tf.scatter_nd(ids[:, None], updates, [50, 2]),
                tf.cumsum(keys), tf.cumsum(tf.reshape(keys, [11, 100]), 1, reverse=True), tf.cumsum(updates, 0))
    operands = [tf.constant(keys.astype(np.float32)), tf.constant(updates.astype(np.float32)), tf.constant(ids)]
    wanted, there = f(*operands), [x.gpu() for x in operands]
    got = tf.function(f)(*there)
    assert all(same(a, b) for a, b in zip(got, wanted, strict=True))


def test_sizes_that_values_decide(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Distinct values and places are found on the GPU, as NumPy has them; one program is for all sizes."""
    monkeypatch.delattr(dispatch.EagerInterpreter, "on_host")
    f = tf.function(lambda x: (*tf.unique_with_counts(x * 2), tf.where(x), tf.boolean_mask(x, x > 1)),
                    input_signature=[tf.TensorSpec([None])])
    for n in (2500, 1, 1024, 1025):
        x = np.random.default_rng(n).integers(0, 1 + n // 3, n).astype(np.float32)
        x[n // 2:n // 2 + 3] = [-0.0, np.nan, np.nan][:n]
        there = tf.constant(x).gpu()
        modules = 0 if fake is None else fake.counts["modules"]
        got = f(there)
        assert n == 2500 or fake is None or fake.counts["modules"] == modules
        _, first, inverse, counts = np.unique(x, True, True, True, equal_nan=False)
        order = np.argsort(first)
        wanted = (2 * x[first[order]], np.argsort(order)[inverse].astype(np.int32), counts[order].astype(np.int32),
                  np.argwhere(x), x[x > 1])
        assert all(t.device == GPU and t.numpy().tobytes() == w.tobytes() for t, w in zip(got, wanted, strict=True))
    told = f.explain(there, file=io.StringIO())
    assert {name for name, _ in told.host} == {f"{op}, whose size the host reads" for op in ("unique", "nonzero")}


def test_tensor_cores_are_asked_for(fake: Any) -> None:
    """Compiled and op by op, products are rounded then, and exact otherwise."""
    x, w = some(40, 24), some(24, 40, seed=1)
    exact, far = tf.matmul(x, w), 2.0 ** -9 * tf.matmul(tf.abs(x), tf.abs(w))
    for enabled in (False, True, False):
        ways = (tf.matmul, tf.function(tf.matmul))
        tf.config.experimental.enable_tensor_float_32_execution(enabled)
        assert tf.config.experimental.tensor_float_32_execution_enabled() is enabled
        try:
            got = [way(x.gpu(), w.gpu()) for way in ways]
        finally:
            tf.config.experimental.enable_tensor_float_32_execution(False)
        assert all(same(y, exact) is not enabled for y in got)
        assert all(bool(tf.reduce_all(tf.abs(y.cpu() - exact) <= far)) for y in got)
    assert same(tf.matmul(x, w), exact)


def test_tensor_cores_are_asked_for_by_calls_and_policies(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Op by op and compiled, with gradients, where a call goes the short way, too; equal products beside stay exact."""
    planned: list[DType] = []
    tiles = gpu_gemm.tiles_for

    def noted(p: Any, x: Any, dtype: DType, parts: bool = True) -> Any:
        shape, number = tiles(p, x, dtype, parts)
        planned.extend([dtype] if isinstance(shape, gpu_mma.WarpShape) else [])
        return shape, number
    monkeypatch.setattr(gpu_gemm, "tiles_for", noted)

    def by_cores(call: Any) -> int:
        del planned[:]
        call()
        return len(planned)
    x = some(20, 24).gpu()
    half, weights = tf.cast(x, tf.float16), tf.cast(tf.transpose(x), tf.float16)
    exact = tf.matmul(half, weights)
    assert by_cores(lambda: tf.matmul(x, x, transpose_b=True, precision="fast")) == 1
    assert by_cores(lambda: tf.matmul(half, weights, precision="fast")) == 1
    assert by_cores(lambda: same(tf.matmul(half, weights), exact)) == 0
    with tf.device("/gpu:0"):
        model = tf.keras.Sequential([tf.keras.layers.Dense(24, dtype="mixed_float16"),
                                     tf.keras.layers.Dense(24, dtype="float32")])
        model(x)

    def gradient() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(x))
        return tape.gradient(loss, model.trainable_variables)
    both = by_cores(gradient), by_cores(tf.function(gradient))
    assert both == (1, 2) and set(planned) == {tf.float16}  # the forward product was planned above

    class Squared(tf.keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return product(x, weights)
    product, layer = tf.function(lambda x, y: tf.matmul(x, y) * 2), Squared(dtype="mixed_float16")
    assert [by_cores(lambda: same(product(half, weights), 2 * exact)) for _ in range(3)] == [0, 0, 0]
    assert [by_cores(lambda: layer(half)) for _ in range(3)] == [1, 0, 0] and len(product._placed) == 2
    for here, around in zip(product._placed, [{"precision": "mixed", "reads": tf.float16}, {}], strict=True):
        assert dict(here._around) == around


# -- what a step costs --------------------------------------------------------------------------------
def test_steps_become_one_graph_of_the_driver(fake: Any) -> None:
    if HARDWARE:
        pytest.skip("the fake driver counts")

    @tf.function
    def f(x: Any, y: Any) -> Any:
        a = tf.reduce_sum(x, 1)
        b = tf.reduce_max(y, 0)
        return tf.cumsum(a), tf.cumsum(b), tf.reverse(tf.cumsum(tf.exp(b)), [0])
    x, y = some(5, 6).gpu(), some(6, 5).gpu()
    wanted = [t.numpy() for t in f(x, y)]
    for _ in range(6):
        assert all(same(a, b) for a, b in zip(f(x, y), wanted, strict=True))
    launches, graphs = fake.calls["cuLaunchKernel"], fake.counts["graph_launches"]
    f(x, y)
    assert (fake.counts["graph_launches"], fake.calls["cuLaunchKernel"]) == (graphs + 1, launches)


def test_calls_that_come_again(fake: Any) -> None:
    """They hand in one launch, and see whatever makes a call another one."""
    w = tf.Variable(some(3).gpu())

    @tf.function
    def f(x: Any, by: Any = 2.0) -> Any:
        return {"y": x * w * by, "none": None}

    def plain(x: Any, by: float = 2.0) -> np.ndarray:
        return x.numpy() * w.numpy() * np.float32(by)
    x, other = some(3, seed=1).gpu(), some(2, 3, seed=2).gpu()
    for _ in range(4):
        assert same(f(x)["y"], plain(x))
    if fake is not None:
        before = dict(fake.calls)
        result = f(x)
        assert {name: n - before.get(name, 0) for name, n in fake.calls.items() if n != before.get(name, 0)} == {
            "cuCtxSetCurrent": 1, "cuLaunchKernel": 1}
        assert result["none"] is None and result["y"].device == GPU
    for _ in range(3):
        assert same(f(other)["y"], plain(other)) and same(f(x, 3.0)["y"], plain(x, 3.0)) and same(f(x)["y"], plain(x))
        assert same(f(x, by=4.0)["y"], plain(x, 4.0)) and same(f(x.cpu())["y"], plain(x))  # where the variable is
        assert f(x.cpu())["y"].device == GPU
        with tf.device("/cpu:0"):
            assert f(x)["y"].device == CPU
        with tf.device("/gpu:0"):
            assert f(x)["y"].device == GPU
        with tf.GradientTape() as tape:
            y = f(x)["y"]
        assert same(tape.gradient(y, w), x.numpy() * 2)
        w.assign_add(w)
    tf.config.run_functions_eagerly(True)
    try:
        assert same(f(x)["y"], plain(x))
    finally:
        tf.config.run_functions_eagerly(False)


def test_calls_that_come_again_tell_zeros_apart(fake: Any) -> None:
    f, x = tf.function(lambda x, by: x * by), some(3).gpu()
    for by in (0.0, 0.0, 0.0, -0.0, -0.0, 0.0, float("nan"), 0, False):
        assert f(x, by).numpy().tobytes() == (x * by).numpy().tobytes()


def test_calls_without_tensors_come_again(fake: Any) -> None:
    """Where variables lie says where they run."""
    if HARDWARE:
        pytest.skip("the fake driver counts")
    with tf.device("/gpu:0"):
        w = tf.Variable([1.0, 2.0])
    f = tf.function(lambda by: w.assign_add(w * by))
    for _ in range(3):
        f(1.0)
    before = dict(fake.calls)
    assert f(1.0).device == GPU
    assert {name for name, n in fake.calls.items() if n != before.get(name, 0)} == {"cuCtxSetCurrent", "cuLaunchKernel"}
    assert w.numpy().tolist() == [16.0, 32.0]


@pytest.mark.parametrize("build", [
    lambda a, b: {"b": a, "a": b}, lambda a, b: (a, b), lambda a, b: [a, b], lambda a, b: {"x": (a, {"z": b, "y": a})},
    lambda a, b: a, lambda a, b: (a,), lambda a, b: (), lambda a, b: [b, None]])
def test_results_of_calls_that_come_again(fake: Any, build: Any) -> None:
    f = tf.function(lambda x: build(x + 1, x * 2))
    x = some(3)
    for _ in range(4):
        here, there = f(x), f(x.gpu())
        assert repr(tf.nest.map_structure(lambda t: None if t is None else t.numpy().tolist(), here)) == repr(
            tf.nest.map_structure(lambda t: None if t is None else t.numpy().tolist(), there))


def test_calls_of_several_threads_assign_one_after_another(fake: Any) -> None:
    with tf.device("/gpu:0"):
        total, one = tf.Variable(0.0), tf.constant(1.0)

    @tf.function
    def count(x: Any) -> Any:
        return total.assign_add(x)
    count(one)
    seen: list[float] = []

    def run() -> None:
        seen.extend(float(count(one)) for _ in range(20))
    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(2, 82)) and float(total) == 81


# -- models and files ---------------------------------------------------------------------------------
def trained(where: str) -> tuple[Any, list[np.ndarray]]:
    with tf.device(where):
        tf.keras.utils.set_random_seed(3)
        model = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dropout(0.2),
                                     tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(3)])
        model.compile(tf.keras.optimizers.Adam(0.01), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                      metrics=["accuracy"])
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(24, 5)).astype(np.float32), rng.integers(0, 3, 24)
        history = model.fit(x, y, epochs=2, batch_size=8, verbose=0, validation_data=(x, y))
    return history.history, [v.numpy() for v in model.variables]


def test_a_model_trains_to_the_same_bits(fake: Any) -> None:
    here, there = trained("/cpu:0"), trained("/gpu:0")
    assert here[0] == there[0] and all(same(a, b) for a, b in zip(here[1], there[1], strict=True))


def test_saved_and_restored(fake: Any, tmp_path: Path) -> None:
    class Scaled(tf.Module):
        def __init__(self) -> None:
            with tf.device("/gpu:0"):
                self.w = tf.Variable(some(3))

        @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
        def __call__(self, x: Any) -> Any:
            return x * self.w
    module, x = Scaled(), some(2, 3, seed=2)
    wanted = module(x)
    assert wanted.device == GPU
    tf.saved_model.save(module, tmp_path / "model")
    assert same(tf.saved_model.load(tmp_path / "model")(x), wanted)
    path = tf.train.Checkpoint(m=module).save(str(tmp_path / "checkpoint"))
    module.w.assign(tf.zeros([3]))
    tf.train.Checkpoint(m=module).restore(path)
    assert module.w.device == GPU and same(module(x), wanted)


# -- other libraries ----------------------------------------------------------------------------------
class Theirs:
    """Another library's array on the GPU, with both protocols, over memory of ours."""

    def __init__(self, tensor: tf.Tensor, strides: tuple[int, ...] | None = None) -> None:
        self.tensor = tensor
        self.__cuda_array_interface__ = {**tensor.__cuda_array_interface__, "strides": strides}

    def __dlpack__(self, *, stream: int | None = None) -> object:
        return self.tensor.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64", "bfloat16"])
def test_memory_is_shared_with_others(fake: Any, dtype: str) -> None:
    x = tf.cast(some(2, 3), dtype).gpu()
    for y in (tf.experimental.dlpack.from_dlpack(x), tf.experimental.dlpack.from_dlpack(
            tf.experimental.dlpack.to_dlpack(x))):
        assert y.device == GPU and same(y.numpy(), x.numpy()) and y._memory.address == x._memory.address
    assert x.__dlpack_device__() == (2, 0)
    if dtype == "bfloat16":
        assert not hasattr(x, "__cuda_array_interface__")
        return
    told = x.__cuda_array_interface__
    assert (told["shape"], told["version"], told["data"]) == ((2, 3), 3, (x._memory.address, True))
    copied = tf.convert_to_tensor(Theirs(x))
    assert copied.device == GPU and same(copied, x) and copied._memory.address != x._memory.address
    assert not hasattr(x.cpu(), "__cuda_array_interface__")


def test_memory_with_gaps_is_refused(fake: Any) -> None:
    x = some(2, 3).gpu()
    with pytest.raises(ValueError, match="not row-major"):
        tf.convert_to_tensor(Theirs(x, strides=(4, 8)))


def test_a_kernel_of_the_users(fake: Any) -> None:
    """Stands for one of `numba.cuda`: it is asked for a launch, and gets arrays of the GPU."""
    asked = []

    class Kernel:
        __name__ = "doubled"

        def forall(self) -> None: ...

        def __call__(self) -> None: ...

        def __getitem__(self, launch: tuple[Any, ...]) -> Any:
            def run(x: Any, out: Any) -> None:
                asked.append(launch)
                source, to = x.__cuda_array_interface__, out.__cuda_array_interface__
                assert source["data"][1] and not to["data"][1]
                gpu = cuda_device.gpu(0)
                assert gpu is not None
                gpu.driver.cuMemcpyDtoDAsync_v2(to["data"][0], source["data"][0], 4 * 300, gpu.stream)
            return run

    def f(x: Any) -> Any:
        return tf.numba_function(Kernel(), [x + 1], lambda x: tf.TensorSpec(x.shape, x.dtype),
                                 grad=lambda ins, outs, cts: cts[0] * 3) * 2
    x = some(300)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x.gpu())
    assert y.device == GPU and same(y, (x + 1) * 2) and same(tape.gradient(y, x), tf.fill([300], 6.0))
    compiled = tf.function(f)(x.gpu())
    assert compiled.device == GPU and same(compiled, y)
    assert asked[0][:2] == (2, 256)


# -- seeing -------------------------------------------------------------------------------------------
def test_explain_shows_launches(fake: Any) -> None:
    @tf.function
    def f(x: Any) -> Any:
        return tf.reduce_sum(tf.exp(x) * 2.0, 0), tf.linalg.svd(x, compute_uv=False)
    x = some(300, 20)
    assert f.explain(x, file=io.StringIO()).launches == []
    told = f.explain(x.gpu(), file=io.StringIO())
    assert [(launch.ops, launch.blocks, launch.threads) for launch in told.launches] == [
        (("exp", "multiply", "reduce_sum"), 1, 256)]
    assert told.launches[0].shared >= 1024 and told.launches[0].registers > 0
    assert [name for name, _ in told.host] == ["svd"] and len(told.kernels) == 1
    assert "launches on a GPU: 1" in str(told) and "1 blocks of 256 threads" in str(told)


def test_the_example_trains_to_the_same_losses(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    import digits

    data = tuple(part[:96] for part in digits.load())
    monkeypatch.setattr(digits, "EPOCHS", 2)
    losses = []
    for where in ("/cpu:0", "/gpu:0"):
        with tf.device(where):
            losses += [digits.train(mode, decorator, data)[2] for mode, decorator in
                       (("one op at a time", lambda step: step), ("compiled", tf.function))]
    assert losses[0] == losses[1] == losses[2] == losses[3]


def profiled(folder: Path, run: Any, **options: int) -> tuple[list[Any], dict[int, str]]:
    """The rows of a profile of a call, and the names of their processes."""
    with tf.profiler.experimental.Profile(str(folder), tf.profiler.experimental.ProfilerOptions(**options)):
        run()
    [path] = folder.rglob("*.trace.json.gz")
    rows = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    names = {r["pid"]: r["args"]["name"] for r in rows if r["name"] == "process_name"}
    return [r for r in rows if r["ph"] == "X"], names


def test_profiles_show_what_a_gpu_did(fake: Any, tmp_path: Path) -> None:
    f = tf.function(lambda x: tf.cumsum(tf.reduce_sum(tf.exp(x) * 2.0, 1)))
    x = some(30, 20).gpu()
    for _ in range(4):
        f(x)  # from now on it is one graph of the driver's

    def run() -> None:
        f(x)
        (x + 1).numpy()
        some(3).gpu()
        list(tf.data.Dataset.range(1).apply(tf.data.experimental.prefetch_to_device("/gpu:0")))
    run()
    events = 0 if fake is None else fake.handles_of("Event")
    rows, names = profiled(tmp_path / "all", run)
    there = [r for r in rows if names[r["pid"]] == "/device:GPU:0"]
    assert [r["name"] for r in there if r["cat"] == "kernel"] == ["exp, multiply, reduce_sum", "cumsum", "add"]
    assert [r["args"]["bytes"] for r in there if r["cat"] == "copy"] == [4, 30 * 20 * 4, 3 * 4, 8]  # the number first
    assert [r["tid"] for r in there] == [1] * (len(there) - 1) + [2]  # that of copies ahead
    first = there[0]
    assert "test_placement.py:" in first["args"]["lines"] and first["args"]["threads"] >= 32
    assert first["args"]["registers"] > 0
    ends = [r["ts"] + r["dur"] for r in there]
    assert all(end <= r["ts"] + 1e-6 for end, r in zip(ends, there[1:-1], strict=False))
    host = {r["cat"] for r in rows if names[r["pid"]] == "twofold"}
    assert host == {"function", "op"}  # kernels are where they ran
    rows, names = profiled(tmp_path / "host", run, device_tracer_level=0)
    assert list(names.values()) == ["twofold"] and {r["cat"] for r in rows} == {"function", "op"}
    assert fake is None or fake.handles_of("Event") == events


def test_pages_show_what_kernels_take_on_a_gpu(fake: Any, tmp_path: Path) -> None:
    x = some(30, 20).gpu()

    @tf.function
    def f(x: Any) -> Any:
        y = tf.reduce_sum(tf.exp(x) * 2.0)
        return tf.numpy_function(np.cos, [y], tf.TensorSpec([], tf.float32)) + 1 if y > 0 else y
    concrete = f.get_concrete_function(x)
    page = concrete.to_html(x, path=tmp_path / "page.html")
    [data] = re.findall(r'<script id="graph" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert "exp" in data and "time in kernels" in page and "on cuda sm_" in page
    assert " on cuda sm_" not in concrete.to_html(path=tmp_path / "host.html")
    with tf.device("/gpu:0"):
        assert "as it runs on cuda sm_" in concrete.to_html(path=tmp_path / "there.html")
    from twofold.eager.executing import backend_for
    from twofold.tracer.page import timing, whole

    backend = backend_for([x._memory])
    compiled, kernels, _ = whole.compiled_kernels(concrete.graph, backend=backend)
    spent = timing.measure(compiled, kernels, [x._memory], backend)
    assert len(kernels) >= 2 and all(k.seconds is not None for k in kernels) and len(spent) >= 1
    assert any(k.seconds for k in kernels)


def test_functions_are_verified(fake: Any) -> None:
    x, captured = some(3, 4), some(4, seed=1).gpu()
    f = tf.function(lambda x: tf.reduce_sum(x * captured, 1))
    assert str(tf.verify(f, x.gpu())) == str(tf.verify(f, x))


def test_no_view_of_memory_elsewhere(fake: Any) -> None:
    with pytest.raises((SystemError, BufferError, TypeError)):
        memoryview(some(3).gpu())  # type: ignore[arg-type]
