"""What optimizers do beside the formulas: what they are given, what they refuse, how they compile and are kept."""

from __future__ import annotations

import copy
import gc
import json
import re
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest

import twofold as tf
from twofold import tracking

from . import rows_cases as rows

optimizers = tf.keras.optimizers
ALL = ["SGD", "Adam", "AdamW", "Adamax", "Nadam", "RMSprop", "Adagrad", "Adadelta", "Ftrl", "Lion", "Lamb",
       "Adafactor", "Muon", "ScheduleFreeAdamW"]
MODES = [pytest.param(lambda fn: fn, id="eager"), pytest.param(tf.function, id="function")]


def trained(name, steps, **settings):
    """An optimizer that has moved two variables."""
    variables = [tf.Variable([1.0, -2.0], name="a"), tf.Variable([[0.5]], name="b")]
    optimizer = getattr(optimizers, name)(**settings)
    for n in range(steps):
        grads = [tf.constant([0.3, -0.7]) * (n + 1), tf.constant([[0.2]])]
        optimizer.apply_gradients(zip(grads, variables, strict=True))
    return optimizer, variables


# -- formulas, against float64 -----------------------------------------------------------------------
def test_adam_against_float64():
    w = v64 = np.array([1.0, -2.0])
    m = v = np.zeros(2)
    variable = tf.Variable(w, dtype=tf.float64)
    optimizer = optimizers.Adam(0.1)
    for t in range(1, 20):
        g = np.sin(t + v64)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        rate = float(np.float32(0.1))  # the learning rate is a float32 variable
        w = w - rate * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-7)
        optimizer.apply([tf.constant(g)], [variable])
    np.testing.assert_allclose(variable.numpy(), w, rtol=1e-13)


def test_schedule_free_against_float64():
    """Algorithm 1 of the paper, with x, y and z as there, and a learning rate that warms up."""
    x = y = z = np.array([1.0, -2.0])
    v = np.zeros(2)
    variable = tf.Variable(y, dtype=tf.float64)
    optimizer = optimizers.ScheduleFreeAdamW(0.125, beta_1=0.75, warmup_steps=4)
    for t in range(1, 10):
        g = np.sin(t + y)
        v = 0.999 * v + 0.001 * g * g
        z = z - 0.125 * min(t / 4, 1) * g / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        x = (1 - 1 / t) * x + z / t
        y = 0.25 * z + 0.75 * x
        optimizer.apply([tf.constant(g)], [variable])
        np.testing.assert_allclose(variable.numpy(), y, rtol=1e-12)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.float16, tf.float64])
def test_other_dtypes(name, dtype):
    """Variables of all float dtypes move, and about as far."""
    moved = []
    for d in (dtype, tf.float32):
        v = tf.Variable(tf.cast([1.0, -2.0], d))
        optimizer = getattr(optimizers, name)(0.5)
        for g in ([0.5, -1.0], [0.25, 1.0]):
            optimizer.apply_gradients([(tf.cast(g, d), v)])
        moved.append(v.numpy().astype(np.float64) - [1.0, -2.0])
        assert v.dtype == d
    scale = {tf.bfloat16: 2e-2, tf.float16: 3e-3, tf.float64: 1e-4}[dtype]  # 1 - 0.999 has four digits in float32
    np.testing.assert_allclose(moved[0], moved[1], atol=scale * max(1, np.abs(moved[1]).max()), rtol=scale)


# -- one program -------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ALL)
def test_a_step_is_one_program_with_one_update(name):
    """The updates of all variables are one kernel, but for optimizers that need lengths of whole variables.

    The batch is larger than the inner sizes of products that have epilogues, as updates of few instructions may be.
    """
    x, y = tf.constant(np.ones((264, 200), np.float32)), tf.constant(np.arange(264) % 4)
    variables = [tf.Variable(np.full(shape, 0.01, np.float32)) for shape in ((200, 64), (64,), (64, 10), (10,))]
    optimizer = getattr(optimizers, name)(0.01)

    @tf.function
    def step():
        w1, b1, w2, b2 = variables
        with tf.GradientTape() as tape:
            logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) + b2
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    told = str(step.explain())
    assert "calls of Python\n  none" in told
    assert "native kernels" in told
    if name not in ("Lamb", "Adafactor", "Muon"):
        size = sum(int(np.prod(v.shape)) for v in variables)
        updates = [line for line in told.splitlines() if re.search(rf"over ({size}|{size + 1})$", line)]
        assert len(updates) == 1, "with the count of iterations or without it"
    assert step() > step()


def test_eager_updates_compile_once_there_were_a_few(monkeypatch):
    calls = []
    original = optimizers.Adam._apply
    monkeypatch.setattr(optimizers.Adam, "_apply", lambda self, *args: (calls.append(tf.executing_eagerly()),
                                                                        original(self, *args))[1])
    optimizer, variables = trained("Adam", 25)
    assert calls == [True] * 10 + [False], "op by op, then traced once"
    assert optimizer.iterations.numpy() == 25
    monkeypatch.setattr("twofold.keras.optimizers.eager_update._PATIENCE", 10**9)
    other, plain = trained("Adam", 25)
    for a, b in zip([*variables, *optimizer.variables], [*plain, *other.variables], strict=True):
        assert np.array_equal(a.numpy(), b.numpy())


def test_compiled_eager_updates_see_settings_change(monkeypatch):
    monkeypatch.setattr("twofold.keras.optimizers.eager_update._PATIENCE", 0)
    v = tf.Variable(0.0)
    optimizer, falling = optimizers.SGD(1.0), optimizers.schedules.PiecewiseConstantDecay([9], [2.0, 1.0])
    seen = []
    for change in (lambda: None, lambda: setattr(optimizer, "learning_rate", 0.5),
                   lambda: setattr(optimizer, "clipvalue", 0.25),
                   lambda: setattr(optimizer, "learning_rate", lambda: 8.0),
                   lambda: setattr(optimizer, "learning_rate", falling)):
        change()
        before = v.numpy()
        optimizer.apply([tf.constant(1.0)], [v])
        seen.append(float(before - v.numpy()))
    assert seen == [1.0, 0.5, 0.125, 2.0, 0.5]


def test_an_update_step_of_the_users_runs_as_it_is():
    class Counting(optimizers.SGD):
        calls = 0

        def update_step(self, gradient, variable, learning_rate):
            type(self).calls += 1
            super().update_step(gradient, variable, learning_rate)

    v = tf.Variable(0.0)
    optimizer = Counting(0.5)
    for _ in range(20):
        optimizer.apply([tf.constant(1.0)], [v])
    assert (Counting.calls, v.numpy()) == (20, -10.0)


def test_optimizers_are_freed():
    optimizer, variables = trained("Adam", 15)
    gone = weakref.ref(optimizer), weakref.ref(variables[0])
    del optimizer, variables
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_updates_under_a_tape_are_not_recorded():
    v, w = tf.Variable(1.0), tf.Variable(2.0)
    optimizer = optimizers.SGD(0.5)
    for _ in range(12):
        with tf.GradientTape(persistent=True) as tape:
            loss = v * w
            optimizer.apply_gradients([(tape.gradient(loss, v), v)])
        assert tape.gradient(loss, w) is not None


# -- what is given -----------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", MODES)
def test_variables_without_gradient_stay(mode):
    a, b = tf.Variable(1.0, name="a"), tf.Variable(1.0, name="unused")
    optimizer = optimizers.Adam(0.5)
    with pytest.warns(UserWarning, match=r"do not exist for variables \['unused:0'\]"):
        mode(lambda: optimizer.apply_gradients([(tf.constant(1.0), a), (None, b)]))()
    assert (a.numpy() < 0.6, b.numpy()) == (True, 1.0)
    with pytest.raises(ValueError, match="No gradients provided"):
        optimizer.apply_gradients([(None, a), (None, b)])
    with pytest.raises(ValueError, match="No gradients provided"):
        optimizer.apply_gradients([])


def test_what_does_not_fit_is_refused_before_anything_moves():
    a, b = tf.Variable([1.0, 2.0]), tf.Variable(1.0)
    optimizer = optimizers.SGD(0.5)
    optimizer.build([a])
    with pytest.raises(ValueError, match="Unknown variable"):
        optimizer.apply([tf.constant([1.0, 1.0]), tf.constant(1.0)], [a, b])
    with pytest.raises(ValueError, match="2 gradients for 1 variables"):
        optimizer.apply([1.0, 2.0], [a])
    with pytest.raises(ValueError, match=r"shape \(3,\); expected the variable's shape \(2,\)"):
        optimizer.apply([tf.constant([1.0, 1.0, 1.0])], [a])
    with pytest.raises(ValueError, match="built"):
        optimizers.SGD().apply([tf.constant(1.0)])
    assert a.numpy().tolist() == [1.0, 2.0]
    assert optimizer.iterations.numpy() == 0


@pytest.mark.parametrize(("make", "match"), [
    (lambda: optimizers.SGD(momentum=1.5), "momentum"),
    (lambda: optimizers.SGD("0.1"), "learning_rate"),
    (lambda: optimizers.SGD(True), "learning_rate"),
    (lambda: optimizers.SGD(rate=0.1), "not recognized.*rate"),
    (lambda: optimizers.Adam(clipnorm=1.0, clipvalue=1.0), "Only one of"),
    (lambda: optimizers.Adam(use_ema=True, ema_momentum=2.0), "ema_momentum"),
    (lambda: optimizers.Adam(use_ema=True, ema_overwrite_frequency=0.5), "ema_overwrite_frequency"),
    (lambda: optimizers.Adam(gradient_accumulation_steps=1), "gradient_accumulation_steps"),
    (lambda: optimizers.AdamW(weight_decay=None), "weight_decay"),
    (lambda: optimizers.Lion(beta_1=0.0), "beta_1"),
    (lambda: optimizers.Ftrl(beta=0.1, l1_regularization_strength=-1.0), "l1_regularization_strength"),
    (lambda: optimizers.Ftrl(learning_rate_power=0.5), "learning_rate_power"),
    (lambda: optimizers.get("descent"), "descent"),
    (lambda: optimizers.get(3), "identifier"),
    (lambda: optimizers.LossScaleOptimizer(optimizers.SGD(), clipnorm=1.0), "clipnorm"),
    (lambda: optimizers.schedules.ExponentialDecay(0.1, 0, 0.5), "decay_steps"),
    (lambda: optimizers.schedules.PiecewiseConstantDecay([1], [1.0]), "one value more"),
])
def test_wrong_settings(make, match):
    with pytest.raises(ValueError, match=match):
        make()


def test_older_arguments():
    with pytest.warns(UserWarning, match="`lr` is called `learning_rate`"):
        assert float(optimizers.SGD(lr=0.5).learning_rate) == 0.5
    with pytest.warns(UserWarning, match="`decay` has no effect.*InverseTimeDecay"):
        optimizers.SGD(0.5, decay=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        older = optimizers.legacy.SGD(lr=0.5, decay=1.0)
    v = tf.Variable(0.0)
    for _ in range(3):
        older.apply_gradients([(tf.constant(1.0), v)])
    np.testing.assert_allclose(v.numpy(), -0.5 * (1 + 1 / 2 + 1 / 3), rtol=1e-6)
    assert isinstance(older, optimizers.SGD)


@pytest.mark.parametrize("mode", MODES)
def test_learning_rate_can_be_set(mode):
    v = tf.Variable(0.0)
    optimizer = optimizers.SGD(1.0)
    step = mode(lambda: optimizer.apply_gradients([(tf.constant(1.0), v)]))
    step()
    optimizer.learning_rate = 0.5
    step()
    optimizer.learning_rate.assign(0.25)
    step()
    optimizer.lr = 0.125
    step()
    assert v.numpy() == -1.875
    rate = tf.Variable(0.5)
    own = optimizers.SGD(rate)
    assert own.learning_rate is rate
    mode(lambda: own.apply_gradients([(tf.constant(2.0), v)]))()
    assert v.numpy() == -2.875
    scheduled = optimizers.SGD(optimizers.schedules.InverseTimeDecay(1.0, 1, 1.0))
    with pytest.raises(TypeError, match="schedule"):
        scheduled.learning_rate = 0.1
    scheduled.learning_rate = optimizers.schedules.InverseTimeDecay(0.5, 1, 1.0)
    assert float(scheduled.learning_rate) == 0.5


@pytest.mark.parametrize("mode", MODES)
def test_constraints_hold_after_an_update(mode):
    v = tf.Variable([1.0, 0.25], constraint=lambda x: tf.maximum(x, 0.0))
    optimizer = optimizers.SGD(0.5)
    mode(lambda: optimizer.apply_gradients([(tf.constant([1.0, 1.0]), v)]))()
    assert v.numpy().tolist() == [0.5, 0.0]


def test_weight_decay_leaves_variables_out():
    a, b, c = (tf.Variable(1.0, name=name) for name in ("kernel", "bias", "scale"))
    optimizer = optimizers.AdamW(1.0, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_list=[c], var_names=["bias"])
    optimizer.apply([tf.constant(0.0)] * 3, [a, b, c])
    assert [v.numpy() for v in (a, b, c)] == [0.5, 1.0, 1.0]
    with pytest.raises(ValueError, match="before"):
        optimizer.exclude_from_weight_decay(var_names=["kernel"])


@pytest.mark.parametrize("mode", MODES)
def test_minimize(mode):
    v = tf.Variable([3.0, -2.0])
    optimizer = optimizers.Adam(0.2)
    step = mode(lambda: optimizer.minimize(lambda: tf.reduce_sum(v * v), lambda: [v]))
    for _ in range(200):
        count = step()
    assert np.abs(v.numpy()).max() < 1e-3
    assert int(count) == 200
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(v)
    optimizer.minimize(loss, [v], tape=tape)
    with pytest.raises(ValueError, match="tape"):
        optimizer.minimize(loss, [v])


def test_slots_may_be_made_inside_a_function():
    v = tf.Variable([1.0, 2.0])
    optimizer = optimizers.Adam(0.1)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(v * x)
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])

    step(tf.constant([1.0, 2.0]))
    step(tf.constant([[1.0, 2.0]]))  # another trace uses the same
    assert len(optimizer.variables) == 4
    assert optimizer.iterations.numpy() == 2


# -- scaled losses -----------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", MODES)
def test_loss_scale(mode):
    v = tf.Variable([1.0, 2.0])
    optimizer = tf.keras.mixed_precision.LossScaleOptimizer(optimizers.SGD(0.25), 8.0, dynamic_growth_steps=2)

    @mode
    def step(factor):
        with tf.GradientTape() as tape:
            loss = optimizer.scale_loss(tf.reduce_sum(v * v) * factor)
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])

    seen = []
    for factor in (1.0, np.inf, np.nan, 1.0, 1.0, 1.0):
        step(tf.constant(factor))
        seen.append((v.numpy().tolist(), float(optimizer.dynamic_scale), int(optimizer.step_counter),
                     int(optimizer.iterations)))
    assert seen == [([0.5, 1.0], 8.0, 1, 1), ([0.5, 1.0], 4.0, 0, 1), ([0.5, 1.0], 2.0, 0, 1),
                    ([0.25, 0.5], 2.0, 1, 2), ([0.125, 0.25], 4.0, 0, 3), ([0.0625, 0.125], 4.0, 1, 4)]
    optimizer.learning_rate = 0.125
    assert float(optimizer.inner_optimizer.learning_rate) == float(optimizer.lr) == 0.125
    config = optimizers.serialize(optimizer)
    assert optimizers.deserialize(config).inner_optimizer.get_config() == optimizer.inner_optimizer.get_config()


def test_float16_training_needs_the_scale():
    def gradient(scaled):
        v = tf.Variable(1.0)
        optimizer = tf.keras.mixed_precision.LossScaleOptimizer(optimizers.SGD(1.0))
        with tf.GradientTape() as tape:
            loss = tf.cast(tf.cast(v, tf.float16) * tf.constant(1e-4, tf.float16), tf.float32) * 1e-4
            loss = optimizer.scale_loss(loss) if scaled else loss
        g = tape.gradient(loss, v)
        if scaled:
            optimizer.apply_gradients([(g, v)])
            return 1.0 - v.numpy()
        return g.numpy()

    assert gradient(scaled=False) == 0.0
    np.testing.assert_allclose(gradient(scaled=True), 1e-8, rtol=1.0)


# -- several in one -----------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", MODES)
def test_several_optimizers(mode):
    def made():
        return [tf.Variable([1.0, -2.0], name=name) for name in ("a/kernel", "a/bias", "b/kernel")]

    by_name = optimizers.OptimizerMap(optimizers.Adam(0.1), {".*bias": optimizers.SGD(0.5, momentum=0.9)})
    optimizer, variables, plain = optimizers.MultiOptimizer(by_name), made(), made()
    alone = optimizers.Adam(0.1), optimizers.SGD(0.5, momentum=0.9)
    step = mode(lambda *grads: optimizer.apply_gradients(zip(grads, variables, strict=True)))
    for n in range(3):
        grads = [tf.constant([0.5, n + 1.0]) * i for i in (1, 2, 3)]
        step(*grads)
        alone[0].apply([grads[0], grads[2]], [plain[0], plain[2]])
        alone[1].apply([grads[1]], [plain[1]])
    for a, b in zip(variables, plain, strict=True):
        assert np.array_equal(a.numpy(), b.numpy())
    assert (int(optimizer.iterations), len(optimizer.variables)) == (3, 2 + 3 + 6)
    assert [type(o).__name__ for o in optimizer.optimizers] == ["SGD", "Adam"]
    again = optimizers.deserialize(json.loads(json.dumps(optimizers.serialize(optimizer))))
    assert again.get_config() == optimizer.get_config()
    again.build(made())
    again.set_weights(optimizer.get_weights())
    with pytest.raises(AttributeError, match="optimizers"):
        optimizer.learning_rate = 0.1
    with pytest.raises(ValueError, match="already"):
        by_name[".*bias"] = optimizers.SGD()
    with pytest.raises(ValueError, match="no LossScaleOptimizer"):
        by_name["x"] = optimizers.LossScaleOptimizer(optimizers.SGD())
    by_name["a/.*"] = optimizers.SGD()
    with pytest.raises(ValueError, match="Several"):
        by_name["a/bias"]


# -- configs and state -------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ALL)
def test_configs_by_name(name):
    actual = optimizers.get(name.lower())
    assert type(actual).__name__ == name
    again = optimizers.get(optimizers.serialize(actual))
    assert again.get_config() == actual.get_config()
    assert optimizers.get(actual) is actual


@pytest.mark.parametrize("name", ALL)
def test_state_goes_on_in_another_optimizer(name):
    first, variables = trained(name, 3)
    second, copies = trained(name, 1)
    for other, variable in zip(copies, variables, strict=True):
        other.assign(variable)
    store: dict[str, np.ndarray] = {}
    first.save_own_variables(store)
    if name == "Adam":
        second.load_own_variables(store)
    else:
        second.set_weights(first.get_weights())
    for optimizer, of in ((first, variables), (second, copies)):
        optimizer.apply([tf.constant([1.0, 2.0]), tf.constant([[3.0]])], of)
    for other, variable in zip(copies, variables, strict=True):
        assert np.array_equal(other.numpy(), variable.numpy())
    with pytest.raises(ValueError, match="variables; got 1 weights"):
        first.set_weights([1])
    values = [v.numpy().tolist() for v in first.variables]
    for last in (None, "text", [[["a"]]], np.ones([3, 3, 3])):  # nothing is changed where one does not fit
        weights = [np.zeros(v.shape) for v in first.variables[:-1]]
        with pytest.raises((ValueError, TypeError)):
            first.set_weights([*weights, last])
        assert [v.numpy().tolist() for v in first.variables] == values
    with pytest.warns(UserWarning, match="not loaded"):
        first.load_own_variables({"0": np.zeros(())})


def test_copies():
    first, variables = trained("Adam", 12)
    second, copies = copy.deepcopy((first, variables))
    for optimizer, of in ((first, variables), (second, copies)):
        optimizer.apply([tf.constant([1.0, 2.0]), tf.constant([[3.0]])], of)
    assert second.variables[2] is not first.variables[2]
    for a, b in zip([*variables, *first.variables], [*copies, *second.variables], strict=True):
        assert np.array_equal(a.numpy(), b.numpy())


def test_names_in_the_graph_of_objects():
    """The names under which TensorFlow's checkpoints have the variables of a Keras optimizer."""
    optimizer, _ = trained("Adam", 1, use_ema=True)
    actual = {"/".join(path): value.name for path, value in tracking.walk(optimizer) if isinstance(value, tf.Variable)}
    expected = ["iteration", "learning_rate", "a_average", "b_average", "a_momentum", "a_velocity", "b_momentum",
                "b_velocity"]
    names = ["_iterations", "_learning_rate", *(f"_variables/{n}" for n in range(2, 8))]
    assert {path: name.split("/")[1] for path, name in actual.items()} == {
        path: f"{name}:0" for path, name in zip(names, expected, strict=True)}
    assert set(tracking.children(optimizer)) >= {"_momentums", "_velocities", "_variables"}
    assert "_trainable_variables" not in tracking.children(optimizer)
    wrapped = tf.keras.mixed_precision.LossScaleOptimizer(optimizers.SGD(0.1, momentum=0.9))
    wrapped.build([tf.Variable(1.0)])
    names = {"/".join(path) for path, value in tracking.walk(wrapped) if isinstance(value, tf.Variable)}
    assert {"dynamic_scale", "step_counter", "inner_optimizer/_iterations", "inner_optimizer/_variables/2"} <= names


def test_fit_takes_an_optimizer_whose_update_has_no_options() -> None:
    class Own(tf.keras.optimizers.SGD):
        def apply_gradients(self, grads_and_vars):  # type: ignore[no-untyped-def, override]
            return super().apply_gradients(grads_and_vars)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(Own(0.1), "mse")
    losses = model.fit(tf.ones([8, 2]), tf.zeros([8, 1]), epochs=2, verbose=0).history["loss"]
    assert losses[1] < losses[0]


def test_aggregations_of_weights_have_names() -> None:
    layer = tf.keras.layers.Layer()
    assert layer.add_weight(shape=(2,), aggregation="sum").shape == (2,)
    with pytest.raises(ValueError, match="Invalid value for argument `aggregation`"):
        layer.add_weight(shape=(2,), aggregation="max")


@pytest.mark.parametrize("number", range(len(rows.CASES)), ids=lambda n: f"{n} {rows.CASES[n][0]}")
@pytest.mark.parametrize("decorate", [lambda f: f, tf.function], ids=["eager", "compiled"])
def test_rows_that_come_several_times_move_as_in_keras(number, decorate):
    name, settings = rows.CASES[number]
    expected = json.loads((Path(__file__).parent / "data" / "rows.json").read_text())[number]
    optimizer, table = getattr(tf.keras.optimizers, name)(0.1, **settings), tf.Variable(rows.TABLE)
    optimizer.build([table])

    @decorate
    def step(ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, ids) ** 2)
        gradient = tape.gradient(loss, table)
        assert isinstance(gradient, tf.IndexedSlices)
        optimizer.apply([gradient], [table])

    for ids in rows.STEPS:
        step(tf.constant(ids))
    np.testing.assert_allclose(table, expected, rtol=2e-5, atol=2e-6)
