"""Backward passes that are compiled because they repeat: the same bits as op by op, and never another pass's."""

from __future__ import annotations

import gc
import math
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twofold as tf
from twofold.eager import playing
from twofold.ir.recent import Recent
from twofold.runtime import kernels


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[Any, Any]]:
    """No pass is known, and each is compiled when it is played for the second time."""
    known: Recent[Any, Any] = Recent(256, lambda p: p.program is not None)
    monkeypatch.setattr(playing, "_passes", known)
    monkeypatch.setattr(playing, "_PRICE", 0.0)
    monkeypatch.setattr(playing, "_PRICE_OF_ENTRY", 0.0)
    yield known


def programs() -> int:
    """How many passes are compiled."""
    return sum(p.program is not None for p in playing._passes.values())


def tensor(rng: np.random.Generator, *shape: int) -> Any:
    return tf.constant(rng.normal(size=shape).astype(np.float32))


def plainly(run: Callable[[], Any]) -> Any:
    """What `run` gives where every pass is played op by op."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(playing, "_LEAST", math.inf)
        return run()


def same(results: Any, wanted: Any) -> None:
    """Assert that two lists of gradients are equal to the bit."""
    assert len(results) == len(wanted)
    for a, b in zip(results, wanted, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert type(a) is tf.Tensor and a.dtype is b.dtype
            np.testing.assert_array_equal(a.numpy(), b.numpy(), strict=True)


def repeated(run: Callable[[], Any], compiled: int = 1, times: int = 4) -> None:
    """Assert that `run` gives the same when its passes are compiled, and that so many are."""
    wanted = plainly(run)
    for _ in range(times):
        same(run(), wanted)
    assert programs() == compiled


class Net:
    """Two layers of a classifier, or two convolutions."""

    def __init__(self, kind: str) -> None:
        rng = np.random.default_rng(3)
        self.kind = kind
        if kind == "dense":
            self.x, shapes = tensor(rng, 8, 20), [(20, 16), (16,), (16, 5), (5,)]
        else:
            self.x, shapes = tensor(rng, 8, 9, 9, 2), [(3, 3, 2, 4), (4,), (4, 5), (5,)]
        self.y = tf.constant(rng.integers(0, 5, 8), tf.int32)
        self.variables = [tf.Variable(tensor(rng, *s)) for s in shapes]

    def loss(self) -> Any:
        w, b, v, c = self.variables
        if self.kind == "dense":
            hidden = tf.nn.relu(tf.matmul(self.x, w) + b)
        else:
            hidden = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(self.x, w, 1, "SAME") + b), 2, 2, "VALID")
            hidden = tf.reduce_mean(hidden, [1, 2])
        logits = tf.matmul(hidden, v) + c
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.y, logits=logits))

    def gradients(self) -> Any:
        with tf.GradientTape() as tape:
            loss = self.loss()
        return tape.gradient(loss, self.variables)


@pytest.mark.parametrize("kind", ["dense", "convolutions"])
def test_networks(kind: str) -> None:
    net = Net(kind)
    repeated(net.gradients)
    assert len(playing._passes) == 1


def test_values_of_each_call_count() -> None:
    net = Net("dense")
    rng = np.random.default_rng(0)
    for _ in range(5):
        net.x = tensor(rng, 8, 20)
        for v in net.variables:
            v.assign(tensor(rng, *v.shape))
        same(net.gradients(), plainly(net.gradients))
    assert programs() == 1


def test_training_reaches_the_same_weights() -> None:
    def train() -> list[Any]:
        net = Net("dense")
        optimizer = tf.keras.optimizers.Adam(0.01)
        for _ in range(6):
            optimizer.apply_gradients(zip(net.gradients(), net.variables, strict=True))
        return [v.value() for v in net.variables]
    wanted = plainly(train)
    same(train(), wanted)
    assert programs() == 1


def test_another_shape_or_dtype_is_another_pass() -> None:
    def gradient(shape: tuple[int, ...], dtype: Any, power: int) -> Any:
        x = tf.cast(tf.fill(shape, 3.0), dtype)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(x ** power * tf.exp(x) + x)
        return [tape.gradient(y, x)]
    for n, case in enumerate([((2,), tf.float32, 2), ((3,), tf.float32, 2), ((2, 1), tf.float32, 2),
                              ((2,), tf.float64, 2)]):
        repeated(lambda case=case: gradient(*case), compiled=n + 1)
    repeated(lambda: gradient((2,), tf.float32, 3), compiled=4)  # another value only: the power is an operand


def test_other_joints_between_the_same_ops_are_another_pass() -> None:
    x, y = tf.constant([1.0, 2.0]), tf.constant([3.0, 5.0])

    def gradient(swap: bool, again: bool) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            a = tf.sin(x)
            b = tf.cos(x if again else y)
            c = a / b if swap else b / a
        return tape.gradient(c, [x, y])
    for n, case in enumerate([(False, False), (True, False), (False, True), (True, True)]):
        repeated(lambda case=case: gradient(*case), compiled=n + 1)


def test_sources_and_targets_belong_to_the_pass() -> None:
    x, y = tf.constant(2.0), tf.Variable(3.0)
    unused = tf.Variable(1.0)

    def run(pick: Callable[..., Any]) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            a = x * y
            b = tf.sin(a) + y
            c = a * b
        return pick(tape, a, b, c)
    picks: list[Callable[..., Any]] = [
        lambda t, a, b, c: t.gradient(c, [x, y]),
        lambda t, a, b, c: t.gradient(c, [y, x]),
        lambda t, a, b, c: [t.gradient(c, y)],
        lambda t, a, b, c: t.gradient([a, b], [x, a]),
        lambda t, a, b, c: t.gradient([b, b], [x, a]),
        lambda t, a, b, c: t.gradient(c, [x, unused, a, b]),
        lambda t, a, b, c: t.gradient(c, [x, unused], unconnected_gradients="zero"),
        lambda t, a, b, c: t.gradient([c, a], [x, y], output_gradients=[tf.constant(2.0), tf.constant(-1.0)]),
        lambda t, a, b, c: list(t.gradient(b, {"x": x, "y": (y,)}).values())[:1],
    ]
    for pick in picks:
        wanted = plainly(lambda pick=pick: run(pick))
        for _ in range(3):
            same(run(pick), wanted)
    assert programs() == len(playing._passes) == len(picks)


def test_persistent_tapes() -> None:
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.sin(x) * x + x
        z = y * y
    wanted = plainly(lambda: [tape.gradient(z, x), tape.gradient(y, x)])
    for _ in range(3):
        same([tape.gradient(z, x), tape.gradient(y, x)], wanted)
    assert programs() == 2


def test_jacobians_play_the_same_for_each_element() -> None:
    x, w = tf.Variable([[0.5, -1.0, 2.0], [1.0, 0.25, 3.0]]), tf.Variable(np.ones((3, 4), np.float32))

    def jacobians() -> Any:
        with tf.GradientTape(persistent=True) as tape:
            y = tf.tanh(tf.matmul(x, w) * tf.range(1.0, 5.0))
        return [*tape.jacobian(y, [x, w]), tape.batch_jacobian(y, x)]
    repeated(jacobians, compiled=2)


def test_what_is_watched_by_another_tape_is_played() -> None:
    x = tf.Variable([0.3, 0.7])

    def second() -> Any:
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = tf.reduce_sum(tf.exp(x) * x * x)
            first = inner.gradient(y, x)
        return [outer.gradient(first, x)]
    repeated(second)  # of the outer tape's pass, which nobody watches
    e, v = np.exp(x.numpy().astype(np.float64)), x.numpy().astype(np.float64)
    np.testing.assert_allclose(second()[0].numpy(), e * (v * v + 4 * v + 2), rtol=1e-6)


def test_custom_gradients_are_never_compiled() -> None:
    calls = []

    @tf.custom_gradient
    def double(x: Any) -> Any:
        def backward(dy: Any) -> Any:
            calls.append(1)
            return dy * 3.0
        return x * 2.0, backward
    x = tf.Variable(1.0)
    for n in range(1, 5):
        with tf.GradientTape() as tape:
            y = tf.sin(tf.exp(double(x) * 2.0))
        tape.gradient(y, x)
        assert len(calls) == n
    assert not playing._passes


def test_parts_of_variables_and_views() -> None:
    x = tf.Variable(np.arange(12, dtype=np.float32).reshape(3, 4))

    def gradient() -> Any:
        with tf.GradientTape() as tape:
            y = tf.matmul(tf.transpose(x)[1:3], x[:, ::2]) * tf.sin(x[0, :2])
        return [tape.gradient(y, x)]
    wanted = plainly(gradient)
    for _ in range(4):
        same(gradient(), wanted)


def test_ops_with_several_results_and_integers() -> None:
    x = tf.Variable(np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32))

    def gradient() -> Any:
        with tf.GradientTape() as tape:
            values, places = tf.math.top_k(x, 3)
            left, right = tf.split(values * tf.cast(places, tf.float32), [1, 2], axis=1)
            mean, variance = tf.nn.moments(x, [0])
            y = tf.reduce_sum(left * right) + tf.reduce_sum(mean * variance) + tf.reduce_sum(tf.gather(x, [2, 0, 2]))
        return [tape.gradient(y, x)]
    repeated(gradient)


def test_checks_in_a_pass_raise_at_the_users_line() -> None:
    def gradient(n: int) -> Any:
        x = tf.Variable([1.0, 2.0, 3.0])
        with tf.GradientTape() as tape:
            y = tf.math.unsorted_segment_sum(tf.sin(x) * x, tf.constant([0, n, 1]), 2)
        return [tape.gradient(y, x)]
    repeated(lambda: gradient(1))
    with pytest.raises(tf.errors.InvalidArgumentError):
        gradient(7)


def test_the_environment_turns_it_off(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TWOFOLD_COMPILE_GRADIENTS", "0")
    monkeypatch.setenv("TWOFOLD_LOG", "gradient")
    net = Net("dense")
    repeated(net.gradients, compiled=0)
    assert capsys.readouterr().err.count("cannot be compiled") == 1


def test_compiling_is_told_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TWOFOLD_LOG", "gradient")
    repeated(Net("dense").gradients)
    assert capsys.readouterr().err == "twofold gradient: a backward pass of 7 ops is compiled\n"


def test_a_pass_pays_its_price_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing, "_PRICE", 1e9)
    repeated(Net("dense").gradients, compiled=0)
    known, = playing._passes.values()
    assert 0 < known.seconds < 1e9


def test_what_is_on_disk_is_taken_sooner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TWOFOLD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(playing, "_PRICE", 1e9)
    monkeypatch.setattr(playing, "_PRICE_OF_READING", 0.0)
    net = Net("dense")
    wanted = plainly(net.gradients)
    repeated(net.gradients, compiled=0)  # looked for, and not there
    known, = playing._passes.values()
    known.price = 0.0
    monkeypatch.setattr(playing, "_PRICE", 0.0)
    same(net.gradients(), wanted)
    assert programs() == 1
    playing._passes.clear()
    monkeypatch.setattr(playing, "_PRICE", 1e9)
    repeated(net.gradients)


def test_what_saves_much_is_not_kept_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing, "_MOST_BYTES", 1000)
    repeated(Net("dense").gradients, compiled=0)


def test_few_passes_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing._passes, "_most", 4)
    net = Net("dense")
    repeated(net.gradients)
    for n in range(1, 12):
        x = tf.Variable(np.ones(n, np.float32))
        with tf.GradientTape() as tape:
            y = tf.sin(x) * x + x
        tape.gradient(y, x)
        assert len(playing._passes) <= 4
    assert programs() == 1  # what was compiled stays while others come and go


def test_it_makes_no_difference_who_runs_an_op() -> None:
    """Python runs ops until their kernels have their best code, and native entries from then on."""
    x = tf.Variable(np.linspace(0, 1, 7, dtype=np.float64))

    def gradient() -> Any:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.atan(x) * x / (x + 2.0))
        return [tape.gradient(y, x)]
    before = plainly(gradient)
    playing._passes.clear()
    same(gradient(), before)
    kernels.settle("atan", "multiply", "divide", "add", "reduce_sum")
    for _ in range(3):
        same(gradient(), before)
    assert len(playing._passes) == 1


def test_plans_that_are_forgotten_do_not_confuse_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attributes are told apart by identity, which ends with the plan of the op: passes keep theirs."""
    from twofold.eager import dispatch
    x = tf.Variable(np.arange(6, dtype=np.float32).reshape(2, 3))

    def gradient(axis: int) -> Any:
        with tf.GradientTape() as tape:
            y = tf.cumsum(x * x, axis=axis) * x
        return [tape.gradient(y, x)]
    wanted = [plainly(lambda axis=axis: gradient(axis)) for axis in (0, 1)]
    gc.collect()
    gc.disable()  # so that what a round makes is of the youngest generation, of which alone the next one looks
    try:
        for n in range(40):
            dispatch.eager._plans.clear()
            gc.collect(0)
            same(gradient(n % 2), wanted[n % 2])
    finally:
        gc.enable()


def test_nothing_keeps_tensors_alive() -> None:
    net = Net("dense")
    for _ in range(3):
        net.gradients()
    assert programs() == 1
    x = tf.constant(np.ones((8, 20), np.float32))
    net.x = x
    gone = weakref.ref(x)
    derivatives = net.gradients()
    del x, net.x
    gc.collect()
    assert gone() is None and derivatives[0] is not None


def test_threads_at_once() -> None:
    wanted = plainly(Net("dense").gradients)
    derivatives: list[Any] = []

    def work() -> None:
        net = Net("dense")
        derivatives.extend(net.gradients() for _ in range(30))
    threads = [threading.Thread(target=work) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(derivatives) == 180
    for one in derivatives:
        same(one, wanted)


def test_profiles_and_traces_see_every_op() -> None:
    net = Net("dense")
    for _ in range(3):
        net.gradients()
    tf.debugging.enable_check_numerics()
    try:
        net.variables[0].assign(np.full((20, 16), np.inf, np.float32))
        with pytest.raises(tf.errors.InvalidArgumentError):
            net.gradients()
    finally:
        tf.debugging.disable_check_numerics()
    step = tf.function(net.gradients)
    net.variables[0].assign(np.full((20, 16), 0.25, np.float32))
    same(step(), plainly(net.gradients))


STEPS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b, "row": lambda a, b: a * b[0], "column": lambda a, b: a - b[:, :1],
    "divide": lambda a, b: a / (1.0 + b * b), "tanh": lambda a, b: tf.tanh(a), "matmul": lambda a, b: tf.matmul(
        a, b, transpose_b=True), "where": lambda a, b: tf.where(a > b, a, tf.exp(-b * b)),
    "softmax": lambda a, b: tf.nn.softmax(a), "sum": lambda a, b: tf.reduce_sum(a, 1, keepdims=True) + b,
    "concat": lambda a, b: tf.concat([a[:, :1], b[:, 1:]], 1), "relu": lambda a, b: tf.nn.relu(a),
    "mean": lambda a, b: b - tf.reduce_mean(a, 0), "number": lambda a, b: 0.5 * a + b ** 2,
    "norm": lambda a, b: tf.math.l2_normalize(a + b, axis=1), "sign": lambda a, b: tf.abs(a) * tf.stop_gradient(b),
}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9), st.integers(0, 9)), min_size=2,
                max_size=9), st.integers(0, 2**31))
def test_random_programs(program: list[tuple[str, int, int]], seed: int) -> None:
    playing._passes.clear()
    rng = np.random.default_rng(seed)
    variables = [tf.Variable(tensor(rng, 4, 4)) for _ in range(3)]

    def gradients() -> Any:
        with tf.GradientTape() as tape:
            known = [v.value() for v in variables]
            for name, i, j in program:
                known.append(STEPS[name](known[i % len(known)], known[j % len(known)]))
            target = tf.reduce_sum(known[-1] * known[-2])
        return tape.gradient(target, variables)
    wanted = plainly(gradients)
    for _ in range(3):
        same(gradients(), wanted)
    assert all(p.program is not None for p in playing._passes.values())
