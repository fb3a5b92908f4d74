"""TensorFlow 1's names: graphs that sessions run, against the same computations in NumPy, and what is refused."""

import logging
import subprocess

import numpy as np
import pytest
from quick.start import python

import twofold as tf
from twofold._front import tensors as _tensors

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def nobody_asked_for_eager():
    before = list(_tensors.eager_for_good)
    _tensors.eager_for_good.clear()
    yield
    _tensors.eager_for_good[:] = before


def test_placeholders_with_and_without_a_shape():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    with v1.Session() as session:
        x, y = v1.placeholder(tf.float32, name="x"), v1.placeholder(tf.float32, [None, 3], name="y")
        product, scaled = tf.matmul(x, x, transpose_b=True), y * 2.0 + 1.0
        assert str(product) == 'Tensor("MatMul:0", shape=<unknown>, dtype=float32)'
        assert scaled.shape.as_list() == [None, 3]
        actual = session.run({"a": product, "b": [scaled, "y:0"]}, feed_dict={x: a, y: a})
        np.testing.assert_allclose(actual["a"], a @ a.T)
        np.testing.assert_allclose(actual["b"][0], a * 2 + 1)
        np.testing.assert_allclose(actual["b"][1], a)
        assert session.run(x * 2.0, {x: 3.0}) == 6.0
        assert session.run(tf.reduce_sum(x), {"x:0": [[1, 2], [3, 4]]}) == 10.0


def test_a_session_runs_only_what_is_fetched():
    told = []
    with v1.Session() as session:
        x = tf.constant(2.0)
        noisy = v1.py_func(lambda t: told.append(1) or t, [x], tf.float32)
        assert session.run(x * x) == 4.0
        assert told == []
        assert session.run([noisy, x])[0] == 2.0
        assert told == [1]


def test_tensors_inside_of_the_graph_may_be_fed():
    with v1.Session() as session:
        x = tf.constant(2.0)
        y = x * 3.0
        assert session.run(y + 1.0, {y: 10.0}) == 11.0
        assert session.run(y + 1.0) == 7.0


def test_variables_initialisers_and_assignments():
    graph = v1.Graph()
    with graph.as_default():
        v = tf.Variable([1.0, 2.0], name="v")
        n = tf.Variable(v1.random_normal([50]), name="n")
        init, add, put = v1.global_variables_initializer(), v.assign_add([1.0, 1.0]), v1.assign(v, [0.0, 5.0])
        doubled = v * 2.0
    with v1.Session(graph=graph) as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value v"):
            session.run(doubled)
        assert session.run(init) is None
        first = session.run(n)
        assert session.run(add).tolist() == [2.0, 3.0]
        assert session.run(v).tolist() == [2.0, 3.0]
        session.run(put)
        assert session.run(doubled).tolist() == [0.0, 10.0]
        session.run(init)
        assert session.run(v).tolist() == [1.0, 2.0]
        assert session.run(n).tolist() != first.tolist()


@pytest.mark.parametrize("make", [
    lambda: v1.train.GradientDescentOptimizer(0.1), lambda: v1.train.AdamOptimizer(0.1),
    lambda: v1.train.MomentumOptimizer(0.05, 0.9), lambda: v1.train.AdagradOptimizer(0.5),
    lambda: v1.train.RMSPropOptimizer(0.02)])
def test_optimizers_do_in_graphs_what_they_do_eagerly(make):
    x = np.random.default_rng(0).random((20, 3)).astype(np.float32)
    y = x @ np.array([[1.0], [2.0], [3.0]], np.float32)

    def loss_of(w, x, y):
        return tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
    w, optimizer = tf.Variable(tf.zeros([3, 1])), make()
    for _ in range(10):
        optimizer.minimize(lambda: loss_of(w, x, y), var_list=[w])
    expected = w.numpy()
    graph = v1.Graph()
    with graph.as_default():
        px, py = v1.placeholder(tf.float32, [None, 3]), v1.placeholder(tf.float32, [None, 1])
        gw = tf.Variable(tf.zeros([3, 1]))
        step = v1.train.get_or_create_global_step()
        loss = loss_of(gw, px, py)
        train = make().minimize(loss, global_step=step)
        init = v1.global_variables_initializer()
    with v1.Session(graph=graph) as session:
        session.run(init)
        losses = [session.run([train, loss], {px: x, py: y})[1] for _ in range(10)]
        np.testing.assert_allclose(session.run(gw), expected, rtol=1e-5, atol=1e-6)
        assert session.run(step) == 10
    assert losses[-1] < losses[0]


def test_gradients():
    with v1.Session() as session:
        x = v1.placeholder(tf.float32, [3])
        w = tf.Variable(2.0)
        y = tf.reduce_sum(x * x * w)
        by = tf.gradients(y, [x, w])
        session.run(v1.global_variables_initializer())
        actual = session.run(by, {x: [1.0, 2.0, 3.0]})
        assert actual[0].tolist() == [4.0, 8.0, 12.0]
        assert actual[1] == 14.0
        assert tf.gradients(tf.constant(1.0), x) == [None]
        with pytest.raises(ValueError, match="give the placeholder that it comes from a shape"):
            tf.gradients(v1.placeholder(tf.float32), x)
    with pytest.raises(RuntimeError, match="GradientTape"):
        tf.gradients(tf.constant(1.0), tf.constant(1.0))


def test_control_flow_and_conditions():
    with v1.Session() as session:
        n = v1.placeholder(tf.int32, [])
        total = tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + i), [0, 0])[1]
        sign = tf.cond(n > 3, lambda: n * 10, lambda: -n)
        assert session.run([total, sign], {n: 5}) == [10, 50]
        assert session.run([total, sign], {n: 2}) == [1, -2]


def test_custom_getters_stand_in_the_place_of_get_variable():
    """What TensorFlow 2.21 gives for the same calls."""
    calls = []

    def halves(getter, name, *args, **kwargs):
        calls.append((name, kwargs["reuse"]))
        return getter(name, *args, **kwargs) / 2

    def untrained(getter, *args, **kwargs):
        return getter(*args, **{**kwargs, "trainable": False})

    def renamed(getter, *args, **kwargs):
        return getter(*args, **{**kwargs, "name": kwargs["name"] + "_x"})

    one = v1.ones_initializer()
    with v1.Graph().as_default():
        with v1.variable_scope("a", custom_getter=halves) as scope:
            w = v1.get_variable("w", [2], initializer=one)
            with v1.variable_scope("b", custom_getter=untrained):
                u = v1.get_variable("u", [1], initializer=one)
            x = v1.get_variable("x", [1], initializer=one, custom_getter=renamed)
        with v1.variable_scope(scope, reuse=True):
            again = v1.get_variable("w", [2])
        template = v1.make_template("t", lambda: v1.get_variable("q", [1], initializer=one), custom_getter_=untrained)
        assert template() is template() is template.variables[0] and not template.trainable_variables
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            values = [v.tolist() for v in session.run([w, u, x, again])]
        assert values == [[0.5, 0.5], [0.5], [1.0], [0.5, 0.5]]
        assert [v.name for v in v1.global_variables()] == ["a/w:0", "a/b/u:0", "a/x_x:0", "t/q:0"]
        assert [v.name for v in v1.trainable_variables()] == ["a/w:0", "a/x_x:0"]
    assert calls == [("a/w", False), ("a/b/u", False), ("a/w", True)]


def test_variable_scopes():
    with v1.Graph().as_default():
        with v1.variable_scope("a"):
            w = v1.get_variable("w", [2], initializer=tf.keras.initializers.Zeros())
            with v1.variable_scope("b"):
                assert v1.get_variable("w", [2]).name == "a/b/w:0"
        assert w.name == "a/w:0"
        with v1.variable_scope("a", reuse=True):
            assert v1.get_variable("w") is w
            with pytest.raises(ValueError, match="does not exist"):
                v1.get_variable("none", [2])
        with v1.variable_scope("a"), pytest.raises(ValueError, match="already exists"):
            v1.get_variable("w", [2])
        with v1.variable_scope("a", reuse=v1.AUTO_REUSE):
            assert v1.get_variable("w", [2]) is w
        assert [v.name for v in v1.trainable_variables()] == ["a/w:0", "a/b/w:0"]


def test_errors():
    with v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 3], name="x")
        y = x + 1.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="must feed a value for placeholder tensor 'x'"):
            session.run(y)
        with pytest.raises(tf.errors.InvalidArgumentError, match="must feed"):
            session.run(v1.placeholder(tf.float32) * 2.0)
        with pytest.raises(ValueError, match="Cannot feed value of shape"):
            session.run(y, {x: [1.0, 2.0]})
        with pytest.raises(TypeError, match="invalid type int"):
            session.run(3)
        with pytest.raises(KeyError, match="none:0"):
            session.run("none:0")
        with pytest.raises(TypeError, match="has no value while a graph is built"):
            bool(y[0, 0] > 1.0)
        with pytest.raises(ValueError, match="give the placeholder"):
            tf.reshape(v1.placeholder(tf.float32), [-1]).dims  # noqa: B018
    with pytest.raises(RuntimeError, match="closed Session"):
        session.run(y)
    with pytest.raises(RuntimeError, match="placeholder"):
        v1.placeholder(tf.float32)
    with v1.Graph().as_default():
        other = tf.constant(1.0) * 2.0
    with v1.Session() as session, pytest.raises(ValueError, match="not of this graph"):
        session.run(other)


def test_eval_and_run_take_the_current_session():
    with v1.Session():
        v = tf.Variable(3.0)
        v1.global_variables_initializer().run()
        assert (v * 2.0).eval() == 6.0
    with v1.Graph().as_default():
        lonely = tf.constant(1.0) * 2.0
    with pytest.raises(ValueError, match="no default session"):
        lonely.eval()


def test_keras_layers_in_a_graph():
    x = np.random.default_rng(0).random((4, 6, 6, 1)).astype(np.float32)
    with v1.Session() as session:
        images = v1.placeholder(tf.float32, [None, 6, 6, 1])
        conv = v1.layers.Conv2D(2, 3, padding="SAME", activation=tf.nn.relu)
        out = v1.layers.dense(v1.layers.flatten(v1.layers.max_pooling2d(conv(images), 2, 2, padding="SAME")), 5)
        assert out.shape.as_list() == [None, 5]
        session.run(v1.global_variables_initializer())
        assert session.run(out, {images: x}).shape == (4, 5)
        assert session.run(out, {images: x[:1]}).shape == (1, 5)


def test_losses_of_both_kinds_are_in_one_module():
    logits = tf.constant([[1.0, 2.0, 0.5], [0.1, 0.2, 3.0]])
    labels = np.array([1, 0])
    expected = [np.log(np.exp(row).sum()) - row[n] for row, n in zip(logits.numpy(), labels, strict=True)]
    assert float(tf.losses.sparse_softmax_cross_entropy(labels, logits)) == pytest.approx(np.mean(expected), rel=1e-6)
    assert float(tf.losses.SparseCategoricalCrossentropy(from_logits=True)(labels, logits)) == pytest.approx(
        np.mean(expected), rel=1e-6)
    weighted = tf.losses.sparse_softmax_cross_entropy(labels, logits, weights=[1.0, 0.0])
    assert float(weighted) == pytest.approx(expected[0], rel=1e-6)


def test_older_names_are_told_of_once(caplog, monkeypatch):
    from twofold.compat import _older_names
    monkeypatch.setattr(_older_names, "_told", False)
    with caplog.at_level(logging.WARNING, "twofold"):
        assert tf.Session is v1.Session
        assert tf.placeholder is v1.placeholder
    assert [r.getMessage().split()[0] for r in caplog.records] == ["tf.Session"]
    assert tf.optimizers is tf.keras.optimizers
    assert tf.train.AdamOptimizer is v1.train.AdamOptimizer
    assert v1.matmul is tf.matmul
    with pytest.raises(AttributeError, match="nothing_like_it"):
        tf.nothing_like_it  # noqa: B018
    assert tf.compat.as_bytes("a") == b"a"
    assert tf.compat.as_str_any(3) == "3"


def run(code):
    return subprocess.run(python("-c", code), capture_output=True, text=True, timeout=120, check=False)


def test_a_program_that_builds_graphs_from_the_start():
    told = run("import twofold as tf\ntf.compat.v1.disable_eager_execution()\nprint(tf.executing_eagerly())\n"
               "x = tf.placeholder(tf.float32)\nm = tf.matmul([[2.]], [[2.]])\nprint(m)\n"
               "print(tf.Session().run([m, x * 2.0], {x: 1.5}))")
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines() == ['False', 'Tensor("MatMul:0", shape=(1, 1), dtype=float32)',
                                        "[array([[4.]], dtype=float32), np.float32(3.0)]"]


def test_a_program_that_asked_for_eager_execution_gets_no_sessions():
    told = run("import twofold as tf\ntf.enable_eager_execution()\nprint(tf.executing_eagerly())\n"
               "for make in (tf.Session, lambda: tf.placeholder(tf.float32), tf.compat.v1.disable_eager_execution):\n"
               "    try:\n        make()\n    except RuntimeError as e:\n        print(e)")
    assert told.returncode == 0, told.stderr
    lines = told.stdout.splitlines()
    assert lines[0] == "True"
    assert len(lines) == 4
    assert all("not compatible with eager execution" in line for line in lines[1:])


def test_a_regularizer_that_is_refused_makes_no_variable() -> None:
    for wrong in (np.zeros(0), "l2", 3):
        tf.random.set_seed(3)
        following = tf.random.uniform([2]).numpy().tolist()
        tf.random.set_seed(3)
        with pytest.raises(TypeError, match="get_variable: regularizer must be a function"):
            v1.get_variable("regularised", [2], regularizer=wrong)
        assert tf.random.uniform([2]).numpy().tolist() == following
    with v1.variable_scope("", reuse=True), pytest.raises(ValueError, match="does not exist"):
        v1.get_variable("regularised", [2])
