"""Functions as ONNX models, run in onnxruntime and by the reference with sizes that the signature leaves open: control
flow, gradients, training steps, models of Keras, names, and what the files hold."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import twofold as tf
from twofold.onnx_files import export as exporting

ROWS = tf.TensorSpec([None, 3], tf.float32, name="rows")


def exported(function, specs, path, **options):
    """What `tf.export.onnx` gives for a function of this signature."""
    return tf.export.onnx(tf.function(function, input_signature=specs), path / "model.onnx", **options)


def session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def same(function, specs, path, *calls):
    """The model gives what the function gives, for arrays of several sizes, to within rounding."""
    model = exported(function, specs, path)
    assert all(isinstance(error, float) for error in model.checked.values()), model.checked
    running = session(model.path)
    for arrays in calls:
        results = running.run(None, dict(zip([i.name for i in running.get_inputs()], arrays, strict=True)))
        wanted = tf.nest.flatten(function(*map(tf.constant, arrays)))
        for got, want in zip(results, wanted, strict=True):
            np.testing.assert_allclose(got, want.numpy(), rtol=2e-5, atol=1e-6)
            assert got.dtype == want.dtype.np
    return model


def rows(count, seed=0):
    return np.random.default_rng(seed).standard_normal((count, 3)).astype(np.float32)


# -- control flow -------------------------------------------------------------------------------------
def choosing(x):
    if tf.reduce_sum(x) > 0.0:
        return x * 2.0
    return x - 1.0


def looping(x):
    turns = tf.constant(0)
    while tf.reduce_sum(x) < 100.0 and turns < 20:
        x = x * x + 1.0
        turns += 1
    return x, turns


def collecting(x):
    total, kept = tf.zeros([3]), tf.TensorArray(tf.float32, size=tf.shape(x)[0])
    for i in tf.range(tf.shape(x)[0]):
        total = total * 0.5 + x[i]
        if total[0] > 0.0:
            kept = kept.write(i, total)
        else:
            kept = kept.write(i, -total)
    return kept.stack()


def growing(x):
    kept = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[3])
    for row in x:
        if row[0] > 0.0:
            kept = kept.write(kept.size(), row)
    return kept.stack()


def nested(x):
    total = tf.zeros([])
    for i in tf.range(3):
        for row in x:
            total += tf.reduce_sum(row) * tf.cast(i, tf.float32)
            if total > 10.0:
                break
    return total


@tf.function
def halved(x):
    return x / 2.0 if tf.reduce_max(x) > 1.0 else x


def calling(x):
    return halved(x) + halved(halved(x[:2]))[0]


@pytest.mark.parametrize(("function", "operator"), [
    (choosing, "If"), (looping, "Loop"), (collecting, "Loop"), (growing, "Loop"), (nested, "Loop"), (calling, "If"),
    (lambda x: tf.map_fn(lambda r: tf.reduce_sum(r) * r, x), "Loop"),
    (lambda x: tf.scan(lambda a, r: a * r + a, x), "Loop")])
def test_control_flow(tmp_path, function, operator):
    model = same(function, [ROWS], tmp_path, [rows(4)], [-rows(7, 1)], [np.abs(rows(3, 2))])
    assert operator in model.operators


def test_scan(tmp_path):
    model = same(lambda x: tf.math.cumulative_logsumexp(x, 1, reverse=True), [ROWS], tmp_path, [rows(4)], [rows(1)])
    assert model.operators["Scan"] == 1


@pytest.mark.parametrize("function", [choosing, looping, collecting, nested, lambda x: in_order(x)])
def test_gradients_of_control_flow(tmp_path, function):
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
            y = y[0] if isinstance(y, tuple) else y
        return tape.gradient(y, x)
    same(gradient, [ROWS], tmp_path, [rows(4) / 4], [-rows(3, 1) / 4])


# -- sizes --------------------------------------------------------------------------------------------
def sizes(x, y):
    n = tf.shape(x)[0]
    return {"joined": tf.concat([tf.reshape(x, [-1]), tf.reshape(y, [-1])], 0), "twice": tf.tile(x, [2, 1]),
            "zeros": tf.zeros([n * 2 + 1, 2]), "count": n, "turned": x[::-1, ::2], "inner": x[1:-1], "parts":
            tf.reshape(x, [n, 1, -1]), "padded": tf.pad(x, [[1, n], [0, 2]]), "table": tf.eye(n), "last": y[..., -1],
            "spaced": tf.linspace(0.0, 1.0, n)}


def test_unknown_sizes(tmp_path):
    matrix = tf.TensorSpec([None, None], tf.float32)
    model = same(sizes, [ROWS, matrix], tmp_path, [rows(4), rows(2)], [rows(2), rows(5, 1)[:, :1]])
    assert model.inputs == ("rows: float32[rows_0, 3]", "y: float32[y_0, y_1]")
    assert "joined: float32[y_0*y_1 + 3*rows_0]" in model.outputs
    held = onnx.load(model.path).graph.input
    assert [d.dim_param or d.dim_value for d in held[0].type.tensor_type.shape.dim] == ["rows_0", 3]


def test_sizes_that_values_decide(tmp_path):
    def positive(x):
        where = tf.where(x > 0.0)
        return tf.gather_nd(x, where), where, tf.zeros([tf.cast(tf.reduce_max(x), tf.int32) + 1])
    same(positive, [ROWS], tmp_path, [np.abs(rows(4))], [np.abs(rows(2, 1))])


def test_assumptions_about_sizes(tmp_path):
    def pairs(x):
        return tf.reduce_sum(tf.reshape(x, [tf.shape(x)[0] // 2, 2, 3]), axis=1)
    model = exported(pairs, [ROWS], tmp_path)
    assert "== " in model.unchecked["sizes"]
    with pytest.raises(ValueError, match="was traced for sizes with"):
        exported(pairs, [ROWS], tmp_path, inputs=[rows(3)])


def test_assertions_that_are_left_out_are_told(tmp_path, caplog):
    def roots(x):
        tf.debugging.assert_non_negative(x)
        return tf.sqrt(x)
    model = exported(roots, [ROWS], tmp_path, inputs=[np.abs(rows(3))])
    [told] = caplog.records
    assert (told.name, told.levelname) == ("twofold.onnx", "WARNING")
    assert model.unchecked["unchecked"] in told.getMessage() and "functions.py:" in told.getMessage()


def test_many_updates_of_one_place(tmp_path):
    """None is lost, however many threads of a runtime add at the same time."""
    def added(values, places):
        return (tf.math.unsorted_segment_sum(values, places, 4), tf.scatter_nd(places[:, None], values, [4, 8]),
                tf.tensor_scatter_nd_max(tf.zeros([4, 8]), places[:, None], values))
    specs = [tf.TensorSpec([None, 8], tf.float32, name="values"), tf.TensorSpec([None], tf.int32, name="places")]
    running = session(exported(added, specs, tmp_path).path)
    rng = np.random.default_rng(0)
    values, places = np.ones((200_000, 8), np.float32), rng.integers(0, 4, 200_000).astype(np.int32)
    counts = np.bincount(places)
    for _ in range(3):
        sums, scattered, largest = running.run(None, {"values": values, "places": places})
        assert (sums == counts[:, None]).all() and (scattered == counts[:, None]).all() and (largest == 1).all()


# -- state --------------------------------------------------------------------------------------------
def test_training_step(tmp_path):
    """Run again and again by onnxruntime, with the new values handed in, it trains as here."""
    net = tf.keras.Sequential([tf.keras.layers.Input([8, 8, 2]), tf.keras.layers.Conv2D(4, 3, activation="relu"),
                               tf.keras.layers.MaxPooling2D(), tf.keras.layers.Flatten(), tf.keras.layers.Dense(3)])
    optimizer = tf.keras.optimizers.Adam(0.01)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 2], name="image"),
                                  tf.TensorSpec([None], tf.int32, name="label")])
    def step(image, label):
        with tf.GradientTape() as tape:
            value = loss(label, net(image, training=True))
        optimizer.apply_gradients(zip(tape.gradient(value, net.trainable_variables), net.trainable_variables,
                                      strict=True))
        return value
    model = tf.export.onnx(step, tmp_path / "step.onnx")
    running, state = session(model.path), {}
    rng = np.random.default_rng(0)
    image, label = rng.standard_normal((6, 8, 8, 2)).astype(np.float32), rng.integers(0, 3, 6).astype(np.int32)
    names = [o.name for o in running.get_outputs()]
    assert names[1:] == [f"{name}_new" for name in model.state]
    for _ in range(3):
        results = dict(zip(names, running.run(None, {"image": image, "label": label, **state}), strict=True))
        state = {name: results[f"{name}_new"] for name in model.state}
        np.testing.assert_allclose(results["output"], step(image, label).numpy(), rtol=1e-4)


# -- models -------------------------------------------------------------------------------------------
def mlp():
    layers = tf.keras.layers
    return tf.keras.Sequential([layers.Input([16], name="features"), layers.Dense(8, activation="relu", name="first"),
                                layers.BatchNormalization(), layers.Dropout(0.3),
                                layers.Dense(3, activation="softmax")])


def cnn():
    layers = tf.keras.layers
    return tf.keras.Sequential([
        layers.Input([12, 12, 3]), layers.Conv2D(4, 3, padding="same"), layers.BatchNormalization(),
        layers.Activation("gelu"), layers.MaxPooling2D(), layers.DepthwiseConv2D(3, strides=2, padding="same"),
        layers.Conv2DTranspose(2, 3, strides=2, padding="same"), layers.AveragePooling2D(),
        layers.GlobalAveragePooling2D(), layers.Dense(2)])


def lstm():
    layers = tf.keras.layers
    return tf.keras.Sequential([layers.Input([None, 4]), layers.LSTM(5, return_sequences=True),
                                layers.Bidirectional(layers.GRU(3)), layers.Dense(2)])


def transformer():
    layers = tf.keras.layers
    words = layers.Input([None], dtype="int32", name="words")
    x = layers.Embedding(11, 8)(words)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True))
    x = layers.LayerNormalization()(x + layers.Dense(8)(layers.Dense(16, activation="gelu")(x)))
    return tf.keras.Model(words, layers.Dense(11)(x))


@pytest.mark.parametrize(("make", "shape"), [(mlp, (16,)), (cnn, (12, 12, 3)), (lstm, (5, 4)), (transformer, (6,))])
def test_models(tmp_path, make, shape):
    net = make()
    model = tf.export.onnx(net, tmp_path / "net.onnx")
    running = session(model.path)
    [given] = running.get_inputs()
    for count in (1, 5):
        batch = np.random.default_rng(0).standard_normal((count, *shape)).astype(np.float32)
        batch = np.abs(batch * 4).astype(np.int32) if given.type == "tensor(int32)" else batch
        [got] = running.run(None, {given.name: batch})
        np.testing.assert_allclose(got, net(batch, training=False).numpy(), rtol=1e-4, atol=1e-5)


def test_names_are_kept(tmp_path):
    model = tf.export.onnx(mlp(), tmp_path / "net.onnx")
    graph = onnx.load(model.path).graph
    assert [v.name for v in graph.input] == ["features"]
    held = {t.name: list(t.dims) for t in graph.initializer}
    assert held["first/kernel"] == [16, 8]
    assert held["first/bias"] == [8]
    assert all(node.name and node.doc_string for node in graph.node if node.op_type == "MatMul")


def test_any_name_will_do(tmp_path):
    held = tf.Variable([1.0, 2.0], name="held")

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="1 x/é:0"),
                                  tf.TensorSpec([None, 2], tf.float32, name="held")])
    def named(x, y):
        return {"held": x * held, "1 x/é:0": tf.concat([x, y], 0)}
    model = tf.export.onnx(named, tmp_path / "model.onnx")
    assert model.inputs == ("1 x/é:0: float32[_1_x___0_0, 2]", "held: float32[held_0, 2]")
    assert {text.partition(": f")[0] for text in model.outputs} == {"1 x/é:0_1", "held_1"}
    assert "held_2" in {t.name for t in onnx.load(model.path).graph.initializer}


def test_layouts_are_turned_once(tmp_path):
    """Between convolutions, normalisations and activations no transposes are left."""
    layers = tf.keras.layers
    image = layers.Input([16, 16, 3])
    x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same", use_bias=False)(image)))
    y = layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same")(x))
    x = layers.Concatenate()([layers.ReLU()(x + y), y])
    out = layers.Dense(10)(layers.GlobalAveragePooling2D()(layers.Conv2D(4, 1, activation="relu")(x)))
    model = tf.export.onnx(tf.keras.Model(image, out), tmp_path / "net.onnx")
    assert model.operators["Conv"] == 3
    assert model.operators["Transpose"] == 1


def test_loops_carry_what_is_read(tmp_path):
    """What a recurrence keeps for its gradient is not in a model that has none."""
    layers = tf.keras.layers
    net = tf.keras.Sequential([layers.Input([None, 4]), layers.LSTM(5, return_sequences=True)])
    model = tf.export.onnx(net, tmp_path / "net.onnx")
    assert model.operators["Loop"] == 1
    [loop] = [node for node in onnx.load(model.path).graph.node if node.op_type == "Loop"]
    assert (len(loop.input) - 2, len(loop.output)) == (3, 4)  # number of the round and both states; and the sequence


def test_gates_are_cut_behind_their_sums(tmp_path):
    """The products for the input and for the state are added as wholes."""
    layers = tf.keras.layers
    net = tf.keras.Sequential([layers.Input([None, 4]), layers.LSTM(5, return_sequences=True)])
    model = tf.export.onnx(net, tmp_path / "net.onnx")
    [loop] = [node for node in onnx.load(model.path).graph.node if node.op_type == "Loop"]
    kinds = [node.op_type for node in loop.attribute[0].g.node]
    assert kinds.count("Slice") == 4 and kinds.count("Add") == 3  # the gates, the state, and the number of the round
    assert all(error < 1e-6 for error in model.checked.values())


def test_slices_that_differ_stay(tmp_path):
    def parts(x, y):
        return x[:, :1] + y[:, :1], x[:, 1:] + y[:, :2], x[:, 2:] * y[:, 2:]
    model = same(parts, [tf.TensorSpec([4, 3])] * 2, tmp_path, [rows(4), rows(4, 1)])
    assert model.operators["Slice"] == 6


def in_order(x):
    total, kept = tf.zeros([3]), tf.TensorArray(tf.float32, tf.shape(x)[0], element_shape=[3])
    for i in tf.range(tf.shape(x)[0]):
        total = total * 0.5 + x[i]
        kept = kept.write(i, total)
    return kept.stack()


def from_the_end(x):
    count = tf.shape(x)[0]
    kept = tf.TensorArray(tf.float32, count, element_shape=[3])
    for i in tf.range(count):
        kept = kept.write(count - 1 - i, x[i] * 2.0)
    return kept.stack()


def in_the_middle(x):
    """Before and behind what the rounds write, elements stay."""
    count = tf.shape(x)[0]
    kept = tf.TensorArray(tf.float32, count + 2, element_shape=[3]).unstack(tf.pad(x, [[1, 1], [0, 0]]) - 1.0)
    for i in tf.range(count):
        kept = kept.write(i + 1, x[i] * 2.0)
    return kept.stack()


@pytest.mark.parametrize("function", [in_order, from_the_end, in_the_middle])
def test_arrays_that_rounds_fill_are_not_carried(tmp_path, function):
    """Each round gives its item, and the loop has all of them: no round copies an array."""
    model = same(function, [ROWS], tmp_path, [rows(5)], [rows(1)], [rows(0)])
    for loop in [node for node in onnx.load(model.path).graph.node if node.op_type == "Loop"]:
        body = loop.attribute[0].g
        assert not {node.op_type for node in body.node} & {"ScatterND", "ScatterElements", "Concat"}
        assert len(body.output) > len(loop.input) - 1


def test_gradients_of_recurrences_copy_nothing(tmp_path):
    layer = tf.keras.layers.LSTM(4, return_sequences=True)
    layer.build((None, None, 3))

    def slopes(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(layer(x) ** 2)
        return tape.gradient(total, [x, *layer.trainable_variables])
    sequences = np.random.default_rng(0).standard_normal((2, 6, 3)).astype(np.float32)
    model = same(slopes, [tf.TensorSpec([None, None, 3])], tmp_path, [sequences], [sequences[:1, :1]])
    assert model.operators["Loop"] == 2 and "ScatterND" not in model.operators


def test_saved_model(tmp_path):
    class Scorer(tf.Module):
        @tf.function(input_signature=[ROWS])
        def score(self, x):
            return {"total": tf.reduce_sum(x, axis=1), "best": tf.argmax(x, axis=1)}
    scorer = Scorer()
    tf.saved_model.save(scorer, tmp_path / "saved", signatures=scorer.score)
    model = tf.export.onnx(tmp_path / "saved", tmp_path / "model.onnx")
    assert model.inputs == ("rows: float32[n, 3]",)
    assert set(model.outputs) == {"total: float32[n]", "best: int64[n]"}


# -- files --------------------------------------------------------------------------------------------
def test_weights_in_a_file_of_their_own(tmp_path, monkeypatch):
    """As those of more than 2 GB are."""
    monkeypatch.setattr(exporting, "_LARGE", 1000)
    net = tf.keras.Sequential([tf.keras.layers.Input([50]), tf.keras.layers.Dense(40), tf.keras.layers.Dense(30)])
    model = tf.export.onnx(net, tmp_path / "net.onnx")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.onnx", "net.onnx.data"]
    assert model.weights == tmp_path / "net.onnx.data"
    assert model.path.stat().st_size < 3000
    assert all(isinstance(error, float) for error in model.checked.values()), model.checked
    batch = np.random.default_rng(0).standard_normal((3, 50)).astype(np.float32)
    running = session(model.path)
    [got] = running.run(None, {running.get_inputs()[0].name: batch})
    np.testing.assert_allclose(got, net(batch).numpy(), rtol=1e-4, atol=1e-5)


def test_equal_functions_give_equal_files(tmp_path):
    for name in ("a", "b"):
        tf.export.onnx(tf.function(looping, input_signature=[ROWS]), tmp_path / f"{name}.onnx", check=False)
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_dtypes_that_numpy_has_not(tmp_path):
    half = tf.TensorSpec([None, 3], tf.bfloat16)
    model = exported(lambda x: tf.nn.gelu(tf.matmul(x, x, transpose_b=True)), [half], tmp_path)
    assert all(isinstance(error, float) for error in model.checked.values()), model.checked


def test_padding_as_wide_as_a_window(tmp_path):
    """Which dilation asks for, and runtimes refuse as an attribute of pooling."""
    image = tf.TensorSpec([None, 9, 7, 3], tf.float32)
    for kind in ("MAX", "AVG"):
        def pooled(x, kind=kind):
            return tf.nn.pool(x, [2, 2], kind, padding="SAME", dilations=[4, 3])
        same(pooled, [image], tmp_path, [np.random.default_rng(0).standard_normal((2, 9, 7, 3)).astype(np.float32)])


def test_limits_of_the_reference_are_told(tmp_path):
    model = exported(lambda x: tf.sort(x), [tf.TensorSpec([100], tf.float32)], tmp_path)
    assert model.checked["onnxruntime"] == 0.0
    assert "TopK: it takes 64 elements" in model.checked["reference"]


def test_powers_of_integers_are_products(tmp_path):
    model = same(lambda x: x ** 5, [tf.TensorSpec([None], tf.int64)], tmp_path, [np.array([3_000_017, -7, 0])])
    assert model.operators == {"Mul": 3}


def test_bits_of_other_widths(tmp_path):
    word = tf.TensorSpec([None], tf.int32)
    same(lambda x: (tf.bitcast(x, tf.uint8), tf.bitcast(tf.bitcast(x, tf.int16), tf.int32), tf.bitcast(x, tf.float32)),
         [word], tmp_path, [np.array([1, 255, 65536, 1 << 30], np.int32)])
