"""Branches and loops of compiled functions on a GPU: what the host waits for, and that the bits are the processor's.

Those that depend on data and are one kernel on the GPU are `test_flow.py`'s; here the host decides them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gpu.devices import HARDWARE, device, reads, same, some

import twofold as tf
from twofold.codegen import gpu_flow
from twofold.runtime import cuda_timeline, cuda_unrolled, cuda_work


@pytest.fixture
def fake() -> Iterator[Any]:
    with device() as driver:
        yield driver


@pytest.fixture(autouse=True)
def host_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has no control flow be one kernel."""
    monkeypatch.setattr(gpu_flow, "unfit", lambda *args: "a test says so")


# -- what a call costs --------------------------------------------------------------------------------
def counted(x: Any) -> Any:
    for i in tf.range(5):
        x = tf.tanh(x) * tf.cast(i + 1, tf.float32)
    return x


def nested(x: Any) -> Any:
    for i in tf.range(3):
        j = i
        while j < 4:
            x = x * 0.5 + tf.cast(i - j, tf.float32)
            j += 1
    return x


def by_integers(x: Any) -> Any:
    """Counters that divide, wrap around and are compared, of several widths."""
    n, steps, wide = tf.constant(27), tf.constant(0, tf.uint8), tf.constant(3, tf.int64)
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 7
        wide = tf.bitwise.bitwise_xor(wide * 1664525 + 1013904223, tf.cast(steps, tf.int64)) % (1 << 40)
        x = tf.cond(tf.logical_and(wide % 3 == 0, tf.not_equal(n, 4)), lambda x=x: x + 1, lambda x=x: x * 0.75)
    return x, steps, wide


def by_floats(x: Any) -> Any:
    t = tf.constant(0.0)
    while t < 1.0:
        x, t = x - 0.1 * x, t + 0.1
    return x, t


def left(x: Any) -> Any:
    for i in tf.range(9):
        x = x + tf.cast(i, tf.float32)
        if tf.reduce_sum(x) > 40.0:
            break
    return x


def recurrent(x: Any) -> Any:
    h, out = tf.zeros_like(x[0]), tf.TensorArray(tf.float32, 6)
    for t in tf.range(6):
        h = tf.tanh(x[t] + h * 0.5)
        out = out.write(5 - t, h)
    return out.stack()


def learned(x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(recurrent(x) ** 2)
    return tape.gradient(loss, x)


def in_order(x: Any) -> Any:
    total = tf.zeros_like(x[0])
    for k in tf.constant([2, 0, 4, 2]):
        total = total * 0.5 + x[k]
    return total


def sides(x: Any) -> Any:
    for i in tf.range(4):
        x = tf.cond(i % 2 == 0, lambda x=x: x * 3, lambda x=x: x - 1)
    return x


def data_sides(x: Any) -> Any:
    for _ in tf.range(4):
        x = tf.cond(tf.reduce_sum(x) > 1.0, lambda x=x: x * 0.3, lambda x=x: x + 1)
    return x


def inside(x: Any) -> Any:
    """A loop that is known in one that is not."""
    while tf.reduce_max(x) < 8.0:
        for i in tf.range(3):
            x = tf.exp(x * 0.1) + x + tf.cast(i, tf.float32)
    return x


def met(x: Any) -> Any:
    """What both sides of a branch agree on is known behind it, what they do not is not."""
    n, m = tf.cond(x[0, 0] > 0, lambda: (3, 2), lambda: (3, 4))
    while n > 0:
        x, n = x + 1, n - 1
    while m > 0:
        x, m = x * 0.5, m - 1
    return x


# How often the host waits. Gathers of several items have a status word, which is read at the end. A round of `left`
# asks whether there are rounds left, whether it was broken off, and whether to break it off.
READS = {counted: 0, nested: 0, by_integers: 0, by_floats: 0, recurrent: 0, learned: 1, in_order: 0, sides: 0,
         data_sides: 4, left: 3 * 3 + 2, inside: 2, met: 4}


@pytest.mark.parametrize("function", READS)
def test_the_host_waits_for_what_depends_on_data(fake: Any, function: Callable[..., Any]) -> None:
    f, x = tf.function(function), some(6, 3)
    there, wanted = x.gpu(), f(x)
    for _ in range(3):
        assert same(f(there), wanted)
    if fake is not None:
        graphs = fake.counts["graph_launches"]
        assert reads(fake, lambda: f(there)) == READS[function]
        assert READS[function] > 1 or fake.counts["graph_launches"] == graphs + 1
        assert fake.findings == []


def launches(fake: Any, f: Any, *args: Any) -> int:
    """How many kernels run in a call."""
    fake.settle()
    before = fake.counts["launches"]
    f(*args)
    fake.settle()
    return int(fake.counts["launches"] - before)


def test_flags_and_checks_that_hold_are_not_computed(fake: Any) -> None:
    if HARDWARE:
        pytest.skip("the fake driver counts")
    x = some(6, 3).gpu()
    for f, most in ((counted, 2 + 5 * 2), (sides, 4), (recurrent, 2 + 6 * 2)):
        assert launches(fake, tf.function(f), x) <= most


def test_rounds_that_are_too_many_are_the_hosts(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The outermost loop is left to the host first; those in it are short enough, or not."""
    def loops(x: Any) -> Any:
        for i in tf.range(4):
            for j in tf.range(6):
                x = x * 0.5 + tf.cast(i * j, tf.float32)
        return x
    x = some(2, 3)
    wanted = loops(x)
    for most, flags in ((200, 0), (40, 5), (10, 5 + 4 * 7)):
        monkeypatch.setattr(cuda_unrolled, "_MOST_LAUNCHES", most)
        f, there = tf.function(loops), x.gpu()
        assert same(f(there), wanted)
        assert fake is None or reads(fake, lambda f=f, there=there: f(there)) == flags


def test_long_sequences_keep_few_graphs(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_work, "_NODES", 24)
    f, inputs, kept = tf.function(counted), [some(2, 3, seed=n).gpu() for n in range(4)], []
    for x in inputs:
        kept += [f(x) for _ in range(2)]
        for _ in range(3):
            assert same(f(x), f(x.cpu()))
    if fake is not None:
        made, given_back = (fake.calls[f"cuGraph{name}"] for name in ("InstantiateWithFlags", "ExecDestroy"))
        assert made >= 3 and made - given_back <= 2


def test_sets_of_sizes(fake: Any) -> None:
    """Each has rounds and sides of its own."""
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def f(x: Any) -> Any:
        n = tf.shape(x)[0]
        total = tf.zeros([2])
        for i in tf.range(n):
            total = total * 0.5 + x[n - 1 - i]
        return tf.cond(n > 3, lambda: tf.exp(total), lambda: total - tf.cast(n, tf.float32))
    for n in (3, 5, 3, 1, 0, 5):
        x = some(n, 2, seed=n)
        there = x.gpu()
        assert same(f(there), f(x)), n
        assert fake is None or reads(fake, lambda there=there: f(there)) == 0


# -- checks that fail ---------------------------------------------------------------------------------
def late(x: Any, i: Any) -> Any:
    """An item that is not there in the last rounds."""
    total = tf.zeros([3])
    for n in tf.range(8):
        total = total + x[n] * 0.5
    return total


def late_of_data(x: Any, i: Any) -> Any:
    total = tf.zeros([3])
    for n in tf.range(6):
        total = total + tf.gather(x, i + 3 * n)
    return total


def of_both(x: Any, i: Any) -> Any:
    """What fails first in the order of the program is told."""
    total = tf.zeros([3])
    for n in tf.range(9):
        total = total + tf.gather(x, i * n) + x[n]
    return total


def divided(x: Any, i: Any) -> Any:
    n = tf.constant(4)
    while n > -3:
        n, x = n - 4 // n, x + 1
    return x


def written(x: Any, i: Any) -> Any:
    out = tf.TensorArray(tf.float32, 5, element_shape=[3])
    for n in tf.range(5):
        out = out.write(n * 2, x[n])
    return out.stack()


@pytest.mark.parametrize("f", [late, late_of_data, of_both, divided, written])
def test_checks_inside_of_rounds(fake: Any, f: Callable[..., Any]) -> None:
    x, i, told = some(6, 3), tf.constant(1), []
    for place in ("/cpu:0", "/gpu:0"):
        with tf.device(place), pytest.raises(tf.errors.InvalidArgumentError) as failure:
            tf.function(f)(x, i)
        told.append(str(failure.value))
    assert told[0] == told[1]
    assert fake is None or fake.findings == []


# -- seeing -------------------------------------------------------------------------------------------
def test_rounds_are_seen_as_they_ran(fake: Any) -> None:
    f, x, timeline = tf.function(counted), some(2, 3).gpu(), cuda_timeline.Timeline()
    wanted = f(x).numpy()
    cuda_timeline.start(timeline)
    try:
        got = f(x)
        spans = timeline.take()
    finally:
        cuda_timeline.stop(timeline)
        timeline.close()
    kernels = [span.what.step.name for span in spans if not isinstance(span.what, str)]
    assert same(got, wanted) and sum("tanh" in name for name in kernels) == 5
    assert not any("less" in name for name in kernels)
    assert {launch.name for launch in f.explain(x, file=io.StringIO()).launches} == set(kernels)
