"""Exchanges beside the work: where they begin and end, in which order and thread, and what errors and interrupts do."""

from __future__ import annotations

import io
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from distribute.alike import Twins, strategy_of

import twofold as tf
from twofold.distribute import _transport
from twofold.eager.executing import executable, execute
from twofold.ir import ops
from twofold.runtime.parts import Begin, End, Segment
from twofold.runtime.reference import reference

SIZES = [8, 16, 32, 4]
PACK = 1000  # bytes: each matrix is a pack


@pytest.fixture
def twins() -> Twins:
    return Twins()


@pytest.fixture
def strategy(twins: Twins) -> Iterator[tf.distribute.Strategy]:
    with strategy_of(twins, bytes_per_pack=PACK) as strategy:
        yield strategy


def context() -> Any:
    return tf.distribute.get_replica_context()


def network() -> list[tf.Variable]:
    rng = np.random.default_rng(0)
    return [tf.Variable(rng.normal(size=shape).astype(np.float32)) for shape in zip(SIZES, SIZES[1:], strict=False)]


def step_of(strategy: Any, weights: list[tf.Variable]) -> Any:
    def one(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            y = x
            for w in weights:
                y = tf.tanh(y @ w)
            loss = tf.reduce_sum(y)
        gradients = context().all_reduce("SUM", [g * 0.5 for g in tape.gradient(loss, weights)])
        for w, gradient in zip(weights, gradients, strict=True):
            w.assign_sub(0.1 * gradient)
        return loss
    return tf.function(lambda x: strategy.run(one, (x,)))


X = np.random.default_rng(1).normal(size=(6, SIZES[0])).astype(np.float32)


def test_the_gradients_of_the_last_layers_come_first_each_when_it_is_there(twins: Twins, strategy: Any) -> None:
    weights = network()
    step = step_of(strategy, weights)
    step(tf.constant(X))
    sizes = [int(np.prod(w.shape)) for w in weights]
    assert twins.told == [f"sum of {n}" for n in reversed(sizes)]
    assert twins.threads == {"twofold exchanges"}
    out = io.StringIO()
    told = step.explain(tf.constant(X), file=out)
    assert [(e.name, e.tensors, e.replicas) for e in told.exchanges] == [("collective_all_reduce", 1, 2)] * 3
    assert [e.bytes for e in told.exchanges] == ["512 B", "2.0 kB", "512 B"]
    begins = [e.begins for e in told.exchanges]
    assert sorted(set(begins)) == begins and begins[0] > 0
    assert {e.ends for e in told.exchanges} == {begins[-1] + 1}  # the loss is added up meanwhile
    assert told.kernels[begins[-1]].ops[-1][0] == "reduce_sum" and len(told.kernels) > begins[-1] + 1
    assert "collective_all_reduce of 1 tensor, 2.0 kB, of 2 replicas" in out.getvalue()


def test_the_gradients_of_a_model_that_fits(twins: Twins, strategy: Any) -> None:
    """They are weighted by rows after the backward pass, and come in its order all the same."""
    layers = [tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dropout(0.1), tf.keras.layers.Dense(32, "relu"),
              tf.keras.layers.Dense(4)]
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input([8]), *layers])
        model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(np.ones([8, 8], np.float32), np.zeros([8]), batch_size=8, verbose=0)
    last, middle, first = 32 * 4 + 4, 16 * 32, 8 * 16 + 16
    assert twins.told[:3] == [f"sum of {n}" for n in (1 + last + 32, middle, first)]  # with the rows, and a bias


def test_the_bits_are_those_of_additions_in_the_graph(strategy: Any) -> None:
    weights, alone = network(), network()
    step = step_of(strategy, weights)
    both = tf.distribute.Strategy(["/cpu:0"] * 2)

    def one(x: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            y = x
            for w in alone:
                y = tf.tanh(y @ w)
            loss = tf.reduce_sum(y)
        return [g * 0.5 for g in tape.gradient(loss, alone)]
    for _ in range(3):
        step(tf.constant(X))
        gradients = both.run(tf.function(one), (tf.constant(X),))
        for w, gradient in zip(alone, gradients, strict=True):
            w.assign_sub(0.1 * both.reduce("SUM", gradient, None))
    assert [w.numpy().tobytes() for w in weights] == [w.numpy().tobytes() for w in alone]


def test_an_exchange_is_under_way_while_the_backward_pass_goes_on(twins: Twins, strategy: Any) -> None:
    """The first one is held up until the last one begins, which is after the rest of the backward pass."""
    step = step_of(strategy, network())
    step(tf.constant(X))
    last, begin, begun = threading.Event(), strategy._group.begin, []

    def noted(about: str, call: Any) -> Any:
        begun.append(about)
        if len(begun) == len(SIZES) - 1:
            last.set()
        return begin(about, call)
    strategy._group.begin = noted
    waited = []
    twins.before = lambda: waited.append(last.wait(20))
    step(tf.constant(X))
    assert waited == [True] * (len(SIZES) - 1)


def test_errors_come_out_at_the_end_and_leave_all_as_it_was(twins: Twins, strategy: Any) -> None:
    weights = network()
    step = step_of(strategy, weights)
    step(tf.constant(X))
    before = [w.numpy() for w in weights]
    twins.before = lambda: (_ for _ in ()).throw(OSError("the cable"))
    with pytest.raises(OSError, match="the cable"):
        step(tf.constant(X))
    twins.before = lambda: None
    assert all(np.array_equal(w, b) for w, b in zip(weights, before, strict=True))
    step(tf.constant(X))
    assert not np.array_equal(weights[0], before[0])


def test_an_interrupt_ends_the_waiting(twins: Twins, strategy: Any) -> None:
    weights = network()
    step = step_of(strategy, weights)
    step(tf.constant(X))
    before, held = [w.numpy() for w in weights], threading.Event()
    twins.before = lambda: (signal.setitimer(signal.ITIMER_REAL, 0.01), held.wait(20))[0]
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            step(tf.constant(X))
    finally:
        twins.before = lambda: None
        held.set()
        signal.signal(signal.SIGALRM, handler)
    assert all(np.array_equal(w, b) for w, b in zip(weights, before, strict=True))
    step(tf.constant(X))  # those that were begun are made first
    assert len(twins.told) == 3 * 3


def test_processes_that_come_to_different_exchanges_are_told(twins: Twins, strategy: Any) -> None:
    twins.other = "collective_all_reduce (SUM) of int32[7]"
    with pytest.raises(RuntimeError, match=r"(?s)different exchanges.*process 0: .*float32\[3\].*process 1: .*int32"):
        strategy.run(lambda: context().all_reduce("SUM", tf.ones([3])))
    twins.other = None
    assert strategy.run(lambda: context().all_reduce("SUM", tf.ones([3]))).numpy().tolist() == [2.0] * 3


def test_a_transport_without_threads(twins: Twins) -> None:
    twins.concurrent = False
    with strategy_of(twins, bytes_per_pack=PACK) as strategy:
        step_of(strategy, network())(tf.constant(X))
    assert twins.threads == {threading.current_thread().name}


def test_functions_and_reductions_at_once_mix(twins: Twins, strategy: Any) -> None:
    """What is exchanged is in the order in which the program comes to it, whoever asks."""
    def one(x: tf.Tensor) -> Any:
        first = context().all_reduce("SUM", x)
        inside, = tf.py_function(lambda y: [strategy.run(lambda: context().all_reduce("SUM", y))], [x[:2]],
                                 [tf.float32])
        inside.set_shape([2])
        last = context().all_reduce("SUM", x[:1])
        return first, inside, last, context().all_gather(first[:1], 0)
    results = tf.function(lambda x: strategy.run(one, (x,)))(tf.constant([1.0, 2.0, 3.0]))
    assert [r.numpy().tolist() for r in results] == [[2, 4, 6], [2, 4], [2], [2, 2]]
    assert twins.told == ["sum of 3", "sum of 2", "sum of 1"]


def test_what_waits_for_what(strategy: Any) -> None:
    def one(x: tf.Tensor, w: tf.Tensor) -> Any:
        total = context().all_reduce("SUM", tf.reduce_sum(x @ w, 0))
        again = context().all_reduce("MEAN", tf.reduce_sum(total * x, 1))
        return tf.reduce_mean(w), again, tf.argmax(x, 1)
    step = tf.function(lambda x, w: strategy.run(one, (x, w)))
    x, w = X[:, :4], X[:4, :4]
    results = step(tf.constant(x), tf.constant(w))
    total = 2 * np.float32(x @ w).sum(0)
    np.testing.assert_allclose(results[1], (total * x).sum(1), rtol=1e-5)
    graph = step.get_concrete_function(tf.constant(x), tf.constant(w)).graph
    for backend in (None, reference):
        program = executable(graph, backend=backend)
        kinds = [type(part) for part in program.parts]
        assert kinds == [Segment, Begin, Segment, End, Segment, Begin, End], kinds
        for got, wanted in zip(execute(program, [x, w]), results, strict=True):
            assert got.tobytes() == wanted.numpy().tobytes()


def test_gradients_pass_from_inside_and_outside(strategy: Any) -> None:
    def one(x: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = context().all_reduce("MEAN", x * x)
        return tape.gradient(y, x)
    x = tf.constant([1.0, 3.0])
    for run in (one, tf.function(one)):
        assert strategy.run(run, (x,)).numpy().tolist() == [2.0, 6.0]
    cubes = tf.function(lambda x: context().all_reduce("SUM", x * x * x))

    def outside(x: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = cubes(x)
        return tape.gradient(y, x)
    assert strategy.run(outside, (x,)).numpy().tolist() == [6.0, 54.0]


@pytest.mark.parametrize("way", ["op by op", "each compiled", "traced together"])
def test_several_replicas_in_each_process(twins: Twins, strategy: Any, way: str) -> None:
    both = tf.distribute.Strategy(["/cpu:0"] * 2, strategy._group)

    def one() -> Any:
        x = tf.constant([1.0, 1e8]) * (context().replica_id_in_sync_group + 1.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = context().all_reduce("SUM", x)
            z = tf.reduce_sum(y * x)
        return y, tape.gradient(z, x), context().all_gather(x[:1], 0)

    def run(fn: Any) -> Any:
        return tf.nest.map_structure(both.experimental_local_results, both.run(fn))
    function = tf.function(one)

    def compiled() -> Any:
        return function()
    run_once = {"op by op": lambda: run(one), "each compiled": lambda: run(compiled),
                "traced together": tf.function(lambda: run(one))}[way]
    rows = [np.float32([1, 1e8]), np.float32([2, 2e8])]
    total = ((rows[0] + rows[1]) + rows[0]) + rows[1]
    for y, gradient, joined in zip(*run_once(), strict=True):
        assert y.numpy().tobytes() == total.tobytes() and joined.numpy().tolist() == [1, 2, 1, 2]
        np.testing.assert_allclose(gradient, total + total)  # by its own factor, and by those of all others
    assert all(what == "sum of 2" for what in twins.told)


def test_in_branches_and_loops(strategy: Any) -> None:
    def one(x: tf.Tensor) -> tf.Tensor:
        for _ in tf.range(3):
            x = context().all_reduce("SUM", x)
        return x if tf.reduce_sum(x) < 0 else context().all_reduce("SUM", x)
    assert strategy.run(tf.function(one), (tf.constant([1.0]),)).numpy().tolist() == [16.0]


def test_saved_models_keep_the_group(strategy: Any, tmp_path: Path) -> None:
    module = tf.Module()
    module.total = tf.function(lambda x: strategy.run(lambda x: context().all_reduce("SUM", x), (x,)),
                               input_signature=[tf.TensorSpec([2])])
    tf.saved_model.save(module, str(tmp_path / "m"))
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    assert loaded.total(tf.constant([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]
    strategy._group.size = 3
    with pytest.raises(tf.errors.FailedPreconditionError, match="of 2 replicas, 1 in each process; there are 3"):
        loaded.total(tf.constant([1.0, 2.0]))
    with pytest.raises(tf.errors.UnimplementedError, match="exchanges tensors with other replicas"):
        tf.export.native(module.total, str(tmp_path / "lib.a"))


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda x: ops.collective_all_reduce(x, reduction="SUM", group="none", replicas=2),
     tf.errors.FailedPreconditionError, "'none', to which this process does not belong"),
    (lambda x: ops.collective_all_reduce(x, x[:1], reduction="SUM", group="none", replicas=2, rows=2),
     tf.errors.InvalidArgumentError, "differ in dtype or shape"),
    (lambda x: ops.collective_all_reduce(x, reduction="MAX", group="none", replicas=1),
     tf.errors.InvalidArgumentError, "'MAX'; expected 'SUM' or 'MEAN'"),
    (lambda x: ops.collective_all_reduce(x, reduction="SUM", group="none", replicas=3, rows=2),
     tf.errors.InvalidArgumentError, "1 operands and 3 replicas"),
    (lambda x: ops.collective_all_gather(x[0], axis=0, group="none", replicas=1),
     tf.errors.InvalidArgumentError, "scalar cannot be gathered"),
])
def test_what_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(tf.constant([1.0, 2.0]))


@pytest.mark.parametrize("urgent", [True, False, None])
def test_who_waits_long_for_others_leaves_them_the_processor(urgent: bool | None,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may be compiling on it; but what all exchange moves only while they look."""
    naps, now = [], [0.0]

    def passes(seconds: float) -> None:
        now[0] += seconds

    def nap(seconds: float) -> None:
        naps.append(seconds)
        passes(seconds)

    monkeypatch.setattr(_transport, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=nap))
    monkeypatch.setattr(_transport, "give_way", lambda: passes(1e-5))
    _transport._finish(SimpleNamespace(Test=lambda: now[0] >= 3.0), None if urgent is None else lambda: urgent)
    assert sum(naps) == pytest.approx(3.0 if urgent is not None else 0.0, abs=0.02)
    assert len(naps) < 4000 and max(naps, default=0.0) < 0.002
