"""Graphs of TensorFlow 1's programs: control dependencies, names, scopes, iterators, summaries; against NumPy."""

import os

import numpy as np
import pytest

import twofold as tf
from twofold._front import tensors as _tensors

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def nobody_asked_for_eager(monkeypatch):
    monkeypatch.setattr(_tensors, "eager_for_good", [])


# -- order -------------------------------------------------------------------------------------------
def test_control_dependencies_run_what_comes_first_and_see_it():
    with v1.Session() as session:
        v, w = tf.Variable(1.0), tf.Variable(10.0)
        add = v.assign_add(1.0)
        with v1.control_dependencies([add]):
            doubled = v * 2.0
            put = w.assign(v + w)
            nothing = v1.no_op()
        both = v1.group(put, v1.no_op())
        session.run(v1.global_variables_initializer())
        assert session.run(v * 2.0) == 2.0
        assert session.run(doubled) == 4.0
        assert session.run(v) == 2.0
        session.run(nothing)
        assert session.run(v) == 3.0
        session.run(both)
        assert session.run([v, w]) == [4.0, 14.0]
        assert session.run(add) == 5.0  # what an assignment gives is the new value


def test_assignments_one_after_another():
    with v1.Session() as session:
        v = tf.Variable(1.0)
        with v1.control_dependencies([v.assign_add(1.0)]):
            twice = v.assign(v * 3.0)
        with v1.control_dependencies([twice]), v1.control_dependencies(None):
            free = v + 0.0
        session.run(v1.global_variables_initializer())
        session.run(twice.op)
        assert session.run(v) == 6.0
        assert session.run(free) == 6.0
        assert session.run(v) == 6.0


def test_assertions_and_prints_run_where_something_depends_on_them(capfd):
    with v1.Session() as session:
        x = v1.placeholder(tf.float32, [None])
        with v1.control_dependencies([v1.assert_greater(x, 0.0), v1.Assert(tf.reduce_sum(x) < 10.0, [x])]):
            y = tf.reduce_sum(x)
        assert session.run(y, {x: [1.0, 2.0]}) == 3.0
        for bad in ([-1.0], [20.0]):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(y, {x: bad})
        assert session.run(tf.reduce_sum(x), {x: [-1.0]}) == -1.0
        session.run(v1.Print(y, [y], "total "), {x: [4.0]})
        session.run(v1.print("op", x), {x: [5.0]})
    assert capfd.readouterr().err == "total [4]\nop [5]\n"


def test_assertions_of_tensorflow_2_are_operations():
    with v1.Session() as session:
        x = v1.placeholder(tf.float32, [None])
        checks = [tf.debugging.assert_positive(x), tf.debugging.assert_rank(x, 1), tf.debugging.Assert(x[0] < 9.0, [x])]
        with tf.control_dependencies(checks):
            y = tf.identity(x)
        finite = tf.debugging.check_numerics(x, "told") * 2.0
        assert session.run([x, y, finite], {x: [1.0]}) == [1.0, 1.0, 2.0]
        for bad in (-1.0, 9.0):
            assert session.run(x, {x: [bad]}) == bad
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(y, {x: [bad]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="told"):
            session.run(finite, {x: [np.inf]})
        chosen = tf.cond(x[0] < 5.0, v1.no_op, lambda: tf.debugging.assert_less(x, 7.0))
        with tf.control_dependencies([chosen]):
            z = tf.identity(x)
        assert session.run(z, {x: [6.0]}) == 6.0
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(z, {x: [8.0]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="is below"):  # constants tell it at once
            tf.debugging.assert_non_negative(tf.constant([1.0, -1.0]), message="is below")
        session.run(tf.debugging.assert_positive(tf.constant([1.0, 2.0])))


def test_gradients_of_calls_keep_what_comes_before_them():
    @tf.function
    def squared(x):
        tf.debugging.assert_less(x, 10.0)
        return x * x

    with v1.Session() as session:
        v, x = tf.Variable(0.0), v1.placeholder(tf.float32, [])
        with v1.control_dependencies([v.assign_add(1.0)]):
            y = squared(x)
        slope = v1.gradients(y, x)[0]
        session.run(v.initializer)
        assert session.run([y, slope], {x: 3.0}) == [9.0, 6.0]
        assert session.run(v) == 1.0
        session.run(y, {x: 2.0})
        assert session.run(v) == 2.0
        with tf.GradientTape() as tape:
            tape.watch(x)
            z = squared(x)
        assert session.run(tape.gradient(z, x), {x: 4.0}) == 8.0
        for late in (y, z):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(late, {x: 11.0})


def test_gradients_of_loops_keep_what_comes_before_them():
    with v1.Session() as session:
        v, x = tf.Variable(0.0), v1.placeholder(tf.float32, [])
        with v1.control_dependencies([v.assign_add(1.0)]):
            y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [0, x])[1]
        slope = tf.gradients(y, x)[0]
        session.run(v.initializer)
        assert session.run(y, {x: 2.0}) == 16.0
        assert session.run(slope, {x: 2.0}) == 32.0
        assert session.run(v) == 2.0


def test_assignments_in_branches_and_loops():
    with v1.Session() as session:
        v, p, n = tf.Variable(1.0), v1.placeholder(tf.bool, []), v1.placeholder(tf.int32, [])
        changed = v1.cond(p, lambda: v.assign_add(1.0), lambda: v.assign(v * 10.0))
        grouped = v1.cond(p, lambda: v1.group(v.assign(0.0)), v1.no_op)

        def body(i):
            v.assign_add(2.0)
            return i + 1
        count = tf.while_loop(lambda i: i < n, body, [0])
        untouched = v * 1.0
        with pytest.raises(TypeError, match="made in a branch"):
            v1.cond(p, lambda: v1.train.GradientDescentOptimizer(0.1).apply_gradients([(1.0, v)]), v1.no_op)
        session.run(v.initializer)
        assert session.run(changed, {p: True}) == 2.0
        assert session.run(changed, {p: False}) == 20.0
        assert session.run(untouched) == 20.0
        assert session.run(count, {n: 3}) == [3]
        assert session.run(v) == 26.0
        session.run(grouped, {p: False})
        assert session.run(v) == 26.0
        session.run(grouped, {p: True})
        assert session.run(v) == 0.0


# -- names and variables -----------------------------------------------------------------------------
def test_names_of_operations_and_tensors():
    with v1.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [2], name="x")
        with v1.name_scope("scope"):
            y = tf.add(x, x)
            with v1.name_scope("inner"):
                z = v1.identity(y, name="out")
        with v1.name_scope("scope"):
            again = tf.add(x, x)
        assert (y.name, z.name, again.name) == ("scope/Add:0", "scope/inner/out:0", "scope_1/Add:0")
        assert (x.op.name, x.op.type, y.op.inputs[0] is x) == ("x", "Placeholder", True)
        assert graph.get_tensor_by_name("scope/inner/out:0") is z
        assert graph.get_operation_by_name("x") is x.op
        with pytest.raises(KeyError, match="none"):
            graph.get_operation_by_name("none")
        assert tf.Variable(1.0).name == "Variable:0"
        assert tf.Variable(1.0).op.name == "Variable_1"
    with v1.Session(graph=graph) as session:
        assert session.run("scope/inner/out:0", {"x:0": [1.0, 2.0]}).tolist() == [2.0, 4.0]
        step = session.make_callable(y, [x])
        assert step([3.0, 4.0]).tolist() == [6.0, 8.0]


def test_scopes_of_modules_have_numbers():
    with v1.Graph().as_default():
        with tf.name_scope("a") as first, tf.name_scope("a") as inner:
            pass
        with tf.name_scope("a") as second, tf.name_scope(first) as again:
            pass
        assert (first, inner, second, again) == ("a/", "a/a/", "a_1/", "a/")
        modules = [tf.Module(name="m"), tf.Module(name="m")]
        for module in modules:
            with module.name_scope:
                module.w = tf.Variable(1.0, name="w")
        assert [module.w.name for module in modules] == ["m/w:0", "m_1/w:0"]
    assert [tf.Module(name="m").name_scope.name for _ in range(2)] == ["m/", "m/"]


def test_tensors_are_equal_where_they_are_the_same_and_know_their_graph():
    with v1.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [2])
        assert x == x and x != x + 0.0 and [x] == [x]
        assert x.graph is tf.constant(1.0).graph is graph
        x.set_shape([2])
        with pytest.raises(ValueError, match="not compatible"):
            v1.placeholder_with_default([1.0], None).set_shape([1, 1])
    with pytest.raises(AttributeError, match="eager"):
        tf.constant(1.0).graph  # noqa: B018


def test_scopes_that_number_and_share():
    with v1.Graph().as_default():
        def layer():
            with v1.variable_scope(None, default_name="layer"):
                return v1.get_variable("w", [2])
        with v1.variable_scope("net"):
            first = [layer(), layer()]
        with v1.variable_scope("net", reuse=True):
            second = [layer(), layer()]
        assert [v.name for v in first] == ["net/layer/w:0", "net/layer_1/w:0"]
        assert all(a is b for a, b in zip(first, second, strict=True))
        with v1.variable_scope("net", reuse=v1.AUTO_REUSE):
            with pytest.raises(ValueError, match="specified shape"):
                v1.get_variable("layer/w", [3])
            with pytest.raises(ValueError, match="specified dtype"):
                v1.get_variable("layer/w", [2], tf.float64)
        with v1.variable_scope("all", initializer=v1.constant_initializer(3.0), regularizer=tf.nn.l2_loss,
                               dtype=tf.float64) as scope:
            w = v1.get_variable("w", [2, 2])
            assert w.dtype == tf.float64 and scope.caching_device is None
            scope.set_caching_device("/device:CPU:0")
            assert scope.caching_device == "/device:CPU:0"
        with v1.variable_scope(scope, reuse=True):
            assert v1.get_variable("w") is w
        local = v1.get_local_variable("local", initializer=5)
        assert [v.name for v in v1.local_variables()] == ["local:0"]
        assert v1.get_variable("not_trained", [1], trainable=False).name == "not_trained:0"
        assert {"local:0", "not_trained:0"}.isdisjoint([v.name for v in v1.trainable_variables()])
        assert "local:0" not in [v.name for v in v1.global_variables()]
        loss = v1.losses.get_regularization_loss()
        with v1.Session() as session:
            session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
            assert session.run([w[0, 0], loss, local]) == [3.0, 18.0, 5]


def test_templates_share_their_variables():
    def scaled(x, name):
        w = v1.get_variable(name, [], initializer=v1.ones_initializer())
        return x * w

    with v1.Session() as session:
        first = v1.make_template("scaled", scaled, create_scope_now_=True, name="w")
        second, fixed = (v1.make_template("scaled", scaled, name="w", unique_name_=name) for name in (None, "fixed"))
        with v1.variable_scope("within"):
            a, b, c, d = first(2.0), first(3.0), second(4.0), fixed(5.0)
        assert [v.name for v in v1.global_variables()] == ["scaled/w:0", "within/scaled/w:0", "within/fixed/w:0"]
        session.run(v1.global_variables_initializer())
        session.run(first.trainable_variables[0].assign(10.0))
        assert session.run([a, b, c, d]) == [20.0, 30.0, 4.0, 5.0]
        assert (first.name, fixed.name, second.variable_scope.name) == ("scaled", "scaled", "within/scaled")
        dense = v1.layers.Dense(2, name="other", _scope="held")
        dense(tf.ones([1, 3]))
        assert dense.scope_name == "held"
    again = v1.make_template("again", scaled, name="w")
    once = tf.function(again)
    assert float(once(2.0)) == float(again(2.0)) == 2.0 and len(again.variables) == 1


def test_variables_of_sessions():
    with v1.Session() as session:
        v = v1.Variable([1.0, 2.0], name="v", collections=[v1.GraphKeys.GLOBAL_VARIABLES, "mine"])
        w = tf.Variable(v.initialized_value() * 2.0)
        assert v1.get_collection("mine") == [v]
        assert session.run(v1.report_uninitialized_variables()).tolist() == [b"v", b"Variable"]
        session.run(v.initializer)
        assert session.run(v1.is_variable_initialized(v))
        assert not session.run(v1.is_variable_initialized(w))
        session.run(v1.variables_initializer([w]))
        v.load([5.0, 6.0], session)
        assert v.eval().tolist() == [5.0, 6.0]
        assert w.eval(session).tolist() == [2.0, 4.0]
        assert v.graph is session.graph
        row = v1.scatter_update(v, [1], [9.0])
        assert session.run(row).tolist() == [5.0, 9.0]
    with pytest.raises(RuntimeError, match="not made in a graph"):
        tf.Variable(1.0).graph  # noqa: B018


def test_keras_layers_are_among_the_variables_of_the_graph():
    x = np.random.default_rng(0).random((16, 3)).astype(np.float32)
    with v1.Session() as session:
        inputs = v1.placeholder(tf.float32, [None, 3])
        dense = tf.keras.layers.Dense(2)
        loss = tf.reduce_mean(tf.square(dense(inputs) - 1.0))
        assert [id(v) for v in v1.trainable_variables()] == [id(v) for v in dense.trainable_variables]
        train = v1.train.AdamOptimizer(0.1).minimize(loss)
        session.run(v1.global_variables_initializer())
        losses = [session.run([train, loss], {inputs: x})[1] for _ in range(30)]
        assert losses[-1] < 0.1 * losses[0]


def test_rates_that_are_fed():
    with v1.Session() as session:
        v, rate = tf.Variable(1.0), v1.placeholder(tf.float32, [])
        train = v1.train.GradientDescentOptimizer(rate).minimize(v * v, var_list=[v])
        session.run(v.initializer)
        session.run(train, {rate: 0.25})
        assert session.run(v) == 0.5
        session.run(train, {rate: 0.0})
        assert session.run(v) == 0.5


def test_sizes_that_values_decide():
    with v1.Session() as session:
        x = v1.placeholder(tf.float32, [None])
        kept = tf.boolean_mask(x, x > 0.0)
        zeros = tf.zeros([tf.shape(kept)[0], 2])
        shape = v1.placeholder(tf.int32, [2])
        assert session.run(zeros, {x: [1.0, -1.0, 2.0]}).shape == (2, 2)
        assert session.run(tf.reshape(x, shape), {x: [1.0, 2.0, 3.0, 4.0], shape: [2, 2]}).tolist() == [[1, 2], [3, 4]]


def test_placeholders_with_defaults():
    with v1.Session() as session:
        batch = tf.Variable([[1.0, 2.0]])
        x = v1.placeholder_with_default(batch * 2.0, [None, 2], name="x")
        total, rows = tf.reduce_sum(x), tf.shape(x)[0]
        session.run(v1.global_variables_initializer())
        assert session.run([total, rows]) == [6.0, 1]
        assert session.run([total, rows], {x: [[1.0, 1.0], [1.0, 1.0]]}) == [4.0, 2]
        anything = v1.placeholder_with_default([[1.0, 2.0], [3.0, 4.0]], None)
        rows = tf.reduce_sum(anything, axis=1)
        assert anything.shape.rank is rows.shape.rank is None and tf.reshape(rows, [2]).shape == [2]
        assert session.run(rows).tolist() == [3.0, 7.0]
        assert session.run(rows + [1.0], {anything: [[1.0], [2.0], [3.0]]}).tolist() == [2.0, 3.0, 4.0]
        with pytest.raises(ValueError, match=r"Cannot feed value of shape \(1,\) .* shape \(None, None\)"):
            session.run(rows, {anything: [1.0]})
        training = v1.placeholder_with_default(False, [])
        chosen = v1.cond(training, lambda: 1.0, lambda: 2.0)
        assert session.run(chosen) == 2.0
        assert session.run(chosen, {training: True}) == 1.0


# -- data --------------------------------------------------------------------------------------------
def drained(session, fetch, feed=None):
    actual = []
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        while True:
            actual.append(session.run(fetch, feed))
    return actual


def test_one_shot_iterators():
    with v1.Session() as session:
        x, y = v1.data.make_one_shot_iterator(
            tf.data.Dataset.from_tensor_slices((np.arange(5), {"a": np.ones([5, 2])}["a"])).batch(2)).get_next()
        assert x.shape.as_list() == [None]
        assert y.shape.as_list() == [None, 2]
        actual = drained(session, [x + 1, tf.reduce_sum(y)])
        assert [(a.tolist(), b) for a, b in actual] == [([1, 2], 4.0), ([3, 4], 4.0), ([5], 2.0)]
        element = tf.data.Dataset.range(3).make_one_shot_iterator().get_next()
        assert session.run([element, element * 10]) == [0, 0]  # one element for a run
        assert drained(session, element) == [1, 2]


def test_initializable_iterators_take_what_is_fed_when_they_start():
    with v1.Session() as session:
        count, factor = v1.placeholder(tf.int64, []), v1.placeholder(tf.int64, [])
        dataset = tf.data.Dataset.range(count).map(lambda x: x * factor)
        iterator = dataset.make_initializable_iterator()
        element = iterator.get_next()
        with pytest.raises(tf.errors.FailedPreconditionError, match="not been initialized"):
            session.run(element)
        for n, k in ((2, 3), (4, 1)):
            session.run(iterator.initializer, {count: n, factor: k})
            assert drained(session, element) == [i * k for i in range(n)]
        session.run(v1.tables_initializer(), {count: 1, factor: 7})
        assert drained(session, element) == [0]
        with pytest.raises(ValueError, match="make_initializable_iterator"):
            v1.data.make_one_shot_iterator(dataset)


def test_iterators_of_a_structure():
    train = tf.data.Dataset.from_tensor_slices({"x": np.arange(6.0, dtype=np.float32), "y": np.arange(6)}).batch(3)
    test = tf.data.Dataset.from_tensors({"x": np.float32([7.0]), "y": np.array([8])})
    with v1.Session() as session:
        iterator = tf.data.Iterator.from_structure(train.output_types, train.output_shapes)
        element = iterator.get_next()
        starts = [iterator.make_initializer(d) for d in (train, test)]
        for start, expected in zip(starts * 2, ([3.0, 12.0], [7.0]) * 2, strict=True):
            session.run(start)
            assert drained(session, tf.reduce_sum(element["x"])) == expected
        with pytest.raises(TypeError, match="types"):
            iterator.make_initializer(tf.data.Dataset.from_tensors({"x": [1.0], "y": [2.0]}))
        with pytest.raises(ValueError, match="shapes"):
            iterator.make_initializer(tf.data.Dataset.from_tensors({"x": 1.0, "y": np.array(2)}))
        with pytest.raises(TypeError, match="make_initializer"):
            iterator.make_initializer(tf.data.Dataset.range(3))
        with pytest.raises(ValueError, match="does not have an initializer"):
            iterator.initializer  # noqa: B018


def test_iterators_that_a_handle_chooses():
    with v1.Session() as session:
        small, large = (v1.data.make_one_shot_iterator(tf.data.Dataset.range(n, n + 2)) for n in (0, 100))
        handle = v1.placeholder(tf.string, [])
        element = v1.data.Iterator.from_string_handle(handle, tf.int64, []).get_next()
        handles = session.run([small.string_handle(), large.string_handle()])
        assert [session.run(element, {handle: handles[n]}) for n in (0, 1, 1, 0)] == [0, 100, 101, 1]
        with pytest.raises(tf.errors.InvalidArgumentError, match="no handle"):
            session.run(element, {handle: "elsewhere"})


def test_iterators_where_ops_run_at_once():
    iterator = tf.data.Dataset.range(2).make_one_shot_iterator()
    assert [int(iterator.get_next()), int(next(iterator))] == [0, 1]
    with pytest.raises(tf.errors.OutOfRangeError):
        iterator.get_next()
    for make in (tf.data.Dataset.range(2).make_initializable_iterator,
                 lambda: v1.data.Iterator.from_structure(tf.int64, [])):
        with pytest.raises(RuntimeError, match="eager execution"):
            make()


# -- summaries ---------------------------------------------------------------------------------------
def test_summaries_of_a_run(tmp_path):
    with v1.Session() as session:
        x = v1.placeholder(tf.float32, [None])
        with v1.name_scope("train"):
            v1.summary.scalar("mean", tf.reduce_mean(x))
            v1.summary.histogram("x", x)
        v1.summary.image("picture", tf.reshape(x, [1, -1, 1, 1]))
        v1.summary.text("note", tf.constant("hello"))
        apart = v1.summary.scalar("apart", 1.0, collections=["other"])
        every = v1.summary.merge_all()
        assert v1.summary.merge_all("none") is None
        writer = v1.summary.FileWriter(tmp_path, session.graph)
        for step in range(2):
            writer.add_summary(session.run(every, {x: [1.0, 3.0 + step]}), step)
        writer.add_summary(session.run(v1.summary.merge([apart])), 7)
        writer.close()
        with pytest.raises(ValueError, match="Duplicate tag"):
            session.run(v1.summary.merge([apart, apart]))
    [name] = os.listdir(tmp_path)
    events = [e for e in v1.train.summary_iterator(tmp_path / name) if e.HasField("summary")]
    assert [e.step for e in events] == [0, 1, 7]
    assert [v.tag for v in events[0].summary.value] == ["train/mean", "train/x", "picture", "note"]
    assert [e.summary.value[0].simple_value for e in events] == [2.0, 2.5, 1.0]
    buckets = np.array(events[0].summary.value[1].tensor.double_val or np.frombuffer(
        events[0].summary.value[1].tensor.tensor_content, np.float64)).reshape(-1, 3)
    assert buckets[:, 2].sum() == 2.0
    assert (buckets[0, 0], buckets[-1, 1]) == (1.0, 3.0)


def test_a_writer_takes_messages_alone(tmp_path):
    writer = v1.summary.FileWriter(tmp_path)
    before = {path: path.stat().st_size for path in tmp_path.iterdir()}
    with pytest.raises(tf.errors.DataLossError, match="add_summary: these are not the bytes of a summary"):
        writer.add_summary(b"x\xff", 3)
    for wrong in (3, "text", tf.keras.layers.Dense(2), np.ones([2])):
        with pytest.raises(TypeError, match="summary must be what a session gave"):
            writer.add_summary(wrong)
        with pytest.raises(TypeError, match="session_log must be a SessionLog"):
            writer.add_session_log(wrong)
    writer.flush()
    assert {path: path.stat().st_size for path in tmp_path.iterdir()} == before
    writer.close()


def test_settings_are_taken():
    config = v1.ConfigProto(allow_soft_placement=True, log_device_placement=False)
    config.gpu_options.per_process_gpu_memory_fraction = 0.5
    with v1.Session(config=config) as session:
        assert v1.get_default_session() is session
        assert session.run(tf.constant(1.0), options=v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE),
                           run_metadata=v1.RunMetadata()) == 1.0
    assert v1.get_default_session() is None


def test_elements_of_graphs_are_of_the_kinds_allowed():
    with v1.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [2], name="x")
    assert graph.as_graph_element(x.name) is graph.as_graph_element(x, allow_operation=False) is x
    assert graph.as_graph_element(x.op.name, allow_tensor=False) is x.op
    with pytest.raises(ValueError, match="appears to refer to a Tensor, not a Operation"):
        graph.as_graph_element(x.name, allow_tensor=False)
    with pytest.raises(ValueError, match="appears to refer to an Operation, not a Tensor"):
        graph.as_graph_element(x.op.name, allow_operation=False)
    with pytest.raises(TypeError, match="Can not convert a Tensor into a Operation"):
        graph.as_graph_element(x, allow_tensor=False)
    with pytest.raises(TypeError, match="Can not convert an Operation into a Tensor"):
        graph.as_graph_element(x.op, allow_operation=False)
    with pytest.raises(ValueError, match="can't both be False"):
        graph.as_graph_element(x, allow_tensor=False, allow_operation=False)
