"""Writes the saved models of `data/`, and what TensorFlow gives for them, where TensorFlow 2.21 is installed.

    python tests/tensorflow_files/make_models.py [NAME ...]

Each model becomes `data/NAME.zip`: the folder that TensorFlow wrote, and `expected.npz`, which holds the arguments and
results of some calls, and the losses of some steps of training.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

DATA = Path(__file__).parent / "data"
RATE = 0.1


def losses(call, variables, x, y, steps=4):
    """The losses of plain gradient descent on the squared error of a loaded function."""
    out = []
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(call(tf.constant(x)) - y))
        for variable, by in zip(variables, tape.gradient(loss, variables), strict=True):
            if by is not None:
                variable.assign_sub(RATE * tf.convert_to_tensor(by))
        out.append(float(loss))
    return np.array(out)


def noise(*shape, seed=0):
    """Numbers of float32 that are the same everywhere."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


class Dense(tf.Module):
    """Several functions of one object, which share variables."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable(noise(4, 3), name="weights")
        self.b = tf.Variable(noise(3, seed=1), name="bias")
        self.count = tf.Variable(0, trainable=False, name="count")
        self.scale = tf.constant([2.0, 3.0, 4.0])
        self.parts = [tf.Variable([1.0, 2.0]), {"inner": tf.Variable(5.0)}]

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
    def __call__(self, x):
        return tf.nn.relu(tf.matmul(x, self.w) + self.b)

    @tf.function
    def scaled(self, x, training=False, by=2.0):
        y = self(x) * by
        if training:
            self.count.assign_add(1)
            y = y * self.scale
        return {"y": y, "sum": tf.reduce_sum(y)}

    @tf.function(input_signature=[(tf.TensorSpec([], tf.float32), [tf.TensorSpec([None], tf.int32)])])
    def nested(self, pair):
        return pair[0] * tf.cast(pair[1][0], tf.float32), pair[1]

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32), tf.TensorSpec([], tf.int32)])
    def rows(self, x, n):
        shape = tf.shape(x)
        flat = tf.reshape(x, [shape[0] * shape[1]])
        return tf.reshape(flat, [-1, n])[:, ::-1], tf.concat([x[1:], x[:1]], axis=0)


def dense(folder):
    module = Dense()
    x = noise(5, 4, seed=2)
    module.scaled(tf.constant(x))
    module.scaled(tf.constant(x), training=True)
    module.scaled(tf.constant(x), by=tf.constant(2.0))
    both = module.scaled.get_concrete_function(tf.TensorSpec([None, 4], tf.float32), True)
    tf.saved_model.save(module, folder, signatures={"serving_default": module.__call__, "both": both})
    loaded = tf.saved_model.load(folder)
    y = noise(5, 3, seed=3)
    plain, trained = loaded.scaled(tf.constant(x)), loaded.scaled(tf.constant(x), training=True)
    a, (b,) = loaded.nested((tf.constant(3.0), [tf.constant([1, 2])]))
    rows, moved = loaded.rows(tf.constant(x), tf.constant(2))
    return {"x": x, "y": y, "call": loaded(tf.constant(x)), "plain": plain["y"], "plain_sum": plain["sum"],
            "trained": trained["y"], "nested_a": a, "nested_b": b, "rows": rows, "moved": moved,
            "losses": losses(loaded, [loaded.w, loaded.b], x, y)}


def mlp(folder):
    from tensorflow import keras
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8, "gelu"), keras.layers.LayerNormalization(),
                              keras.layers.Dense(4, "swish"), keras.layers.Dense(3, "softmax")])
    model.export(folder, verbose=False)
    x, y = noise(5, 6), np.abs(noise(5, 3))
    loaded = tf.saved_model.load(folder)
    return {"x": x, "y": y, "call": loaded.serve(tf.constant(x)),
            "losses": losses(loaded.serve, loaded.trainable_variables, x, y)}


def cnn(folder):
    from tensorflow import keras
    keras.utils.set_random_seed(2)
    model = keras.Sequential([
        keras.Input((12, 12, 3)), keras.layers.Rescaling(0.5), keras.layers.Conv2D(4, 3, padding="same"),
        keras.layers.BatchNormalization(), keras.layers.ReLU(), keras.layers.MaxPooling2D(2),
        keras.layers.DepthwiseConv2D(3, padding="same"), keras.layers.ZeroPadding2D(1),
        keras.layers.SeparableConv2D(6, 3, strides=2), keras.layers.UpSampling2D(2, interpolation="bilinear"),
        keras.layers.AveragePooling2D(2), keras.layers.Dropout(0.3), keras.layers.Conv2DTranspose(3, 3),
        keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(2)])
    x, y = noise(4, 12, 12, 3), noise(4, 2, seed=5)
    for variable in model.layers[2].variables:
        variable.assign(np.abs(noise(*variable.shape, seed=7)) + 0.5)
    # both modes, as separate endpoints
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("serve", lambda x: model(x, training=False), [tf.TensorSpec([None, 12, 12, 3], tf.float32)])
    archive.add_endpoint("train", lambda x: model(x, training=True), [tf.TensorSpec([None, 12, 12, 3], tf.float32)])
    archive.write_out(folder, verbose=False)
    loaded = tf.saved_model.load(folder)
    call = loaded.serve(tf.constant(x))
    return {"x": x, "y": y, "call": call, "losses": losses(loaded.serve, loaded.trainable_variables, x, y),
            "train": loaded.train(tf.constant(x)), "after": loaded.serve(tf.constant(x))}


def recurrent(folder):
    from tensorflow import keras
    keras.utils.set_random_seed(3)
    inputs = keras.Input((None, 3))
    h = keras.layers.Bidirectional(keras.layers.LSTM(4, return_sequences=True))(inputs)
    h = keras.layers.GRU(5)(h)
    model = keras.Model(inputs, keras.layers.Dense(2)(h))
    model.export(folder, verbose=False)
    x, y = noise(3, 7, 3), noise(3, 2, seed=5)
    loaded = tf.saved_model.load(folder)
    return {"x": x, "y": y, "call": loaded.serve(tf.constant(x)), "other": loaded.serve(tf.constant(x[:2, :4])),
            "losses": losses(loaded.serve, loaded.trainable_variables, x, y)}


def transformer(folder):
    from tensorflow import keras
    keras.utils.set_random_seed(4)
    tokens = keras.Input((None,), dtype="int32")
    h = keras.layers.Embedding(20, 8, mask_zero=True)(tokens)
    a = keras.layers.MultiHeadAttention(2, 4)(h, h, use_causal_mask=True)
    h = keras.layers.LayerNormalization()(h + a)
    h = keras.layers.LayerNormalization()(h + keras.layers.Dense(8)(keras.layers.Dense(16, "gelu")(h)))
    model = keras.Model(tokens, keras.layers.Dense(20)(h))
    model.export(folder, verbose=False)
    x = np.array([[3, 5, 7, 1, 0, 0], [2, 9, 4, 8, 6, 11]], np.int32)
    y = noise(2, 6, 20)
    loaded = tf.saved_model.load(folder)
    return {"x": x, "y": y, "call": loaded.serve(tf.constant(x)),
            "losses": losses(loaded.serve, loaded.trainable_variables, x, y)}


def text(folder):
    from tensorflow import keras
    keras.utils.set_random_seed(5)
    layer = keras.layers.TextVectorization(max_tokens=20, output_sequence_length=6)
    layer.adapt(["the cat sat on the mat", "the dog, the mat!"])
    look = keras.layers.StringLookup(vocabulary=["a", "b", "c"])
    embed = keras.layers.Embedding(20, 4)
    dense_ = keras.layers.Dense(2)
    embed.build((None, 6))
    dense_.build((None, 4))
    look(tf.constant(["a"]))
    layer(tf.constant(["the"]))
    archive = keras.export.ExportArchive()
    model = tf.Module()
    model.layers = [layer, look, embed, dense_]
    for one in (layer, look, embed, dense_):
        archive.track(one)

    def serve(lines):
        return dense_(tf.reduce_mean(embed(layer(lines)), axis=1))
    archive.add_endpoint("serve", serve, [tf.TensorSpec([None], tf.string)])
    archive.add_endpoint("numbers", lambda w: look(w), [tf.TensorSpec([None], tf.string)])
    archive.add_endpoint("tokens", lambda w: layer(w), [tf.TensorSpec([None], tf.string)])
    archive.write_out(folder, verbose=False)
    loaded = tf.saved_model.load(folder)
    lines = np.array(["The cat.", "on the DOG mat unknown mat the the"])
    return {"lines": lines, "call": loaded.serve(tf.constant(lines)), "tokens": loaded.tokens(tf.constant(lines)),
            "numbers": loaded.numbers(tf.constant(["a", "x", "c"]))}


class Tables(tf.Module):
    """Tables: of constants, of a file, and one that changes."""

    def __init__(self, words):
        super().__init__()
        self.words = tf.saved_model.Asset(words)
        self.numbers = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(
            ["one", "two"], tf.constant([1, 2], tf.int64)), -1)
        self.lines = tf.lookup.StaticVocabularyTable(tf.lookup.TextFileInitializer(
            self.words.asset_path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER), 3)
        self.seen = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, 0.0)
        self.seen.insert(tf.constant(["x"]), tf.constant([1.5]))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def look(self, words):
        return self.numbers.lookup(words), self.lines.lookup(words), self.seen.lookup(words)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.float32)])
    def insert(self, words, values):
        self.seen.insert(words, values)
        return self.seen.size()

    @tf.function(input_signature=[tf.TensorSpec([], tf.string)])
    def pieces(self, line):
        parts = tf.strings.split(tf.strings.lower(line), " ")
        return tf.strings.reduce_join(parts, separator="-"), tf.strings.length(parts), parts


def tables(folder):
    with tempfile.TemporaryDirectory() as place:
        words = os.path.join(place, "words.txt")
        Path(words).write_text("red\ngreen\nblue\n")
        tf.saved_model.save(Tables(words), folder)
    loaded = tf.saved_model.load(folder)
    given = tf.constant(["one", "red", "blue", "x", "other"])
    a, b, c = loaded.look(given)
    size = loaded.insert(tf.constant(["one"]), tf.constant([2.5]))
    joined, lengths, parts = loaded.pieces(tf.constant("Some WORDS here"))
    return {"words": given, "numbers": a, "lines": b, "seen": c, "size": size, "seen_after": loaded.look(given)[2],
            "joined": joined, "lengths": lengths, "parts": parts}


class Control(tf.Module):
    """Loops and branches, and functions that call functions."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable([[0.5, 0.1], [0.2, 0.7]])
        self.calls = tf.Variable(0, trainable=False)

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([], tf.int32)])
    def powers(self, x, n):
        i = 0
        while i < n:
            x = tf.matmul(x, self.w) + 0.1
            i += 1
        return x

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def signs(self, x):
        self.calls.assign_add(1)
        if tf.reduce_sum(x) > 0:
            y = x * 2.0
            self.calls.assign_add(10)
        else:
            y = tf.abs(x)
        return y

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.float32)])
    def choose(self, which, x):
        return tf.switch_case(which, [lambda: x + 1.0, lambda: x * 10.0, lambda: tf.sqrt(x)])

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    def squares(self, x):
        out = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[3])
        for row in x:
            if tf.reduce_sum(row) > 5.0:
                break
            out = out.write(out.size(), row * row)
        return out.stack()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def running(self, x):
        return tf.scan(lambda a, b: a + b, x), tf.map_fn(lambda v: v * v, x)

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([None, 2], tf.float32)])
    def step(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.powers(x, 3) - y))
        self.w.assign_sub(0.1 * tape.gradient(loss, self.w))
        return loss

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def clipped(self, x):
        @tf.custom_gradient
        def same(v):
            return tf.identity(v), lambda up: tf.clip_by_value(up, -1.0, 1.0)
        return same(x * x)

    @tf.function(input_signature=[tf.TensorSpec([2], tf.int32)])
    def drawn(self, seed):
        return tf.random.stateless_uniform([3], seed), tf.random.stateless_normal([2, 2], seed)


def control(folder):
    tf.saved_model.save(Control(), folder)
    loaded = tf.saved_model.load(folder)
    x, row = noise(3, 2), np.array([1.0, -2.0, 3.0], np.float32)
    y = noise(3, 2, seed=1)
    rows = np.array([[1, 1, 1], [2, 0, 1], [3, 3, 3], [0, 0, 0]], np.float32)
    out = {"x": x, "y": y, "row": row, "rows": rows, "powers": loaded.powers(x, 4), "signs": loaded.signs(row),
           "signs_down": loaded.signs(-2 * row), "calls": loaded.calls, "squares": loaded.squares(rows),
           "chosen": [loaded.choose(tf.constant(n), tf.constant(4.0)) for n in range(4)],
           "scan": loaded.running(row)[0], "map": loaded.running(row)[1]}
    with tf.GradientTape() as tape:
        v = tf.constant(row)
        tape.watch(v)
        total = tf.reduce_sum(3.0 * loaded.clipped(v))
    out["clipped"] = tape.gradient(total, v)
    out["uniform"], out["normal"] = loaded.drawn(tf.constant([3, 4]))
    out["losses"] = losses(lambda a: loaded.powers(a, 3), [loaded.w], x, y)
    out["steps"] = [loaded.step(x, y) for _ in range(3)]
    return out


class Training(tf.Module):
    """A step of an optimizer, and functions of what is no dense tensor or of no known rank."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable(np.ones((4, 1), np.float32))
        self.optimizer = tf.keras.optimizers.Adam(0.1)
        self.optimizer.build([self.w])
        self.generator = tf.random.Generator.from_seed(3)
        self.rows = tf.Variable(noise(6, 3, seed=1))

    @tf.function(input_signature=[tf.TensorSpec([None, 4]), tf.TensorSpec([None, 1])])
    def train(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ self.w - y) ** 2)
        self.optimizer.apply_gradients(zip(tape.gradient(loss, [self.w]), [self.w], strict=True))
        return loss

    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int64)])
    def ragged(self, rows):
        return tf.reduce_mean(tf.gather(self.rows, rows), axis=1), rows + 1

    @tf.function(input_signature=[tf.SparseTensorSpec([None, 4], tf.float32)])
    def sparse(self, x):
        return tf.sparse.sparse_dense_matmul(x, self.w)

    @tf.function(input_signature=[])
    def draw(self):
        return self.generator.normal([3])

    @tf.function(input_signature=[tf.TensorSpec(None)])
    def of_any_rank(self, x):
        return tf.reduce_sum(x, axis=-1)

    @tf.function(input_signature=[tf.TensorSpec([None, 4]), tf.TensorSpec([None, 4])], jit_compile=True)
    def added(self, a, b):
        return a + b


def training(folder):
    tf.saved_model.save(Training(), folder)
    loaded = tf.saved_model.load(folder)
    x, y = noise(3, 4), np.ones((3, 1), np.float32)
    steps = [loaded.train(x, y) for _ in range(4)]
    means, more = loaded.ragged(tf.ragged.constant([[1, 2], [3]], dtype=tf.int64))
    return {"x": x, "y": y, "steps": steps, "means": means, "more": more.flat_values,
            "sparse": loaded.sparse(tf.sparse.from_dense(x)), "drawn": [loaded.draw(), loaded.draw()],
            "matrix": loaded.of_any_rank(x), "vector": loaded.of_any_rank(x[0]), "added": loaded.added(x, x[:1])}


def branches_1(folder):
    v1 = tf.compat.v1
    v1.disable_control_flow_v2()
    x = noise(3, 4)
    with tf.Graph().as_default(), v1.Session() as session:
        p, c = v1.placeholder(tf.float32, [None, 4], name="p"), v1.placeholder_with_default(False, [], name="c")
        w = v1.get_variable("w", initializer=np.float32([1, 2, 3, 4]), use_resource=False)
        y = tf.cond(tf.reduce_sum(p) > 0, lambda: tf.cond(c, lambda: p * w, lambda: p + w), lambda: p - 1.0)
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.builder.SavedModelBuilder(folder)
        signature = v1.saved_model.signature_def_utils.predict_signature_def({"p": p, "c": c}, {"y": y})
        builder.add_meta_graph_and_variables(session, ["serve", "old"], {"branch": signature})
        builder.save()
        results = [session.run(y, {p: a, c: b}) for a in (x, -x) for b in (True, False)]
    v1.enable_control_flow_v2()
    return {"x": x, "results": results}


class Steps(tf.Module):
    """The steps of older optimizers, which are ops."""

    def __init__(self):
        super().__init__()
        self.v, self.m, self.s = tf.Variable([1.0, 2.0]), tf.Variable([0.0, 0.0]), tf.Variable([0.5, 0.5])

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def step(self, grad):
        raw, v, m, s = tf.raw_ops, self.v.handle, self.m.handle, self.s.handle
        raw.ResourceApplyAdam(var=v, m=m, v=s, beta1_power=0.9, beta2_power=0.99, lr=0.1, beta1=0.9, beta2=0.99,
                              epsilon=1e-7, grad=grad, use_nesterov=True)
        raw.ResourceApplyMomentum(var=v, accum=m, lr=0.1, grad=grad, momentum=0.9)
        raw.ResourceApplyKerasMomentum(var=v, accum=m, lr=0.1, grad=grad, momentum=0.9, use_nesterov=True)
        raw.ResourceApplyGradientDescent(var=v, alpha=0.1, delta=grad)
        raw.ResourceSparseApplyAdagrad(var=v, accum=s, lr=0.1, grad=grad[:1], indices=[1])
        return self.v.read_value()


def steps(folder):
    tf.saved_model.save(Steps(), folder)
    loaded = tf.saved_model.load(folder)
    return {"values": [loaded.step(tf.constant([1.0, -2.0])) for _ in range(2)], "m": loaded.m, "s": loaded.s}


def version_1(folder):
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        w = v1.get_variable("w", initializer=noise(4, 3), use_resource=True)
        b = v1.get_variable("b", initializer=noise(3, seed=1), use_resource=False)
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(
            tf.constant([0, 1, 2], tf.int64), tf.constant(["low", "middle", "high"])), "none")
        scores = tf.nn.softmax(tf.matmul(x, w) + b, name="scores")
        names = table.lookup(tf.argmax(scores, axis=1))
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        v1.saved_model.simple_save(session, folder, {"x": x}, {"scores": scores, "names": names},
                                   legacy_init_op=v1.tables_initializer())
        given = noise(5, 4, seed=2)
        values = session.run({"scores": scores, "names": names}, {x: given})
    return {"x": given, **values}


def exported(folder, signatures, feeds, calls=1):
    """Saves the current graph of TensorFlow 1 with signatures; gives what each gives for its feeds, call by call."""
    v1 = tf.compat.v1
    out = {}
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        builder = v1.saved_model.Builder(folder)
        builder.add_meta_graph_and_variables(session, ["serve"], {
            name: v1.saved_model.predict_signature_def(*both) for name, both in signatures.items()},
            main_op=v1.local_variables_initializer(), strip_default_attrs=True)
        builder.save()
        for name, (inputs, outputs) in signatures.items():
            given = {tensor: feeds[key] for key, tensor in inputs.items()}
            for n in range(calls):
                for key, value in session.run(outputs, given).items():
                    out[f"{name}/{n}/{key}"] = value
    return {**feeds, **out}


def loops_1(folder):
    """Loops of TensorFlow 1: within one another, with branches, arrays, and sizes that change."""
    v1 = tf.compat.v1
    with v1.Graph().as_default():
        v1.disable_control_flow_v2()
        x, n = v1.placeholder(tf.float32, [None, 4], "x"), v1.placeholder(tf.int32, [], "n")

        def inner(i, y):
            _, z = v1.while_loop(lambda j, z: j < i,
                                 lambda j, z: (j + 1, z + tf.sin(x) * tf.cast(j, tf.float32)), [0, y])
            return i + 1, v1.cond(tf.equal(i % 2, 0), lambda: z * 2 + x, lambda: z - 1.0)
        i, y = v1.while_loop(lambda i, y: tf.logical_and(i < n, tf.reduce_sum(y) < 1e3), inner, [0, x])
        z = v1.cond(tf.reduce_sum(x) > 3, lambda: v1.while_loop(
            lambda i, z: i < 3, lambda i, z: (i + 1, z * x), [0, x])[1], lambda: v1.cond(n > 9, lambda: x, lambda: -x))
        rows = tf.shape(x)[0]
        read = tf.TensorArray(tf.float32, rows).unstack(x)
        _, sums, last = v1.while_loop(
            lambda i, out, s: i < rows, lambda i, out, s: (i + 1, out.write(i, s), s + read.read(i)),
            [0, tf.TensorArray(tf.float32, rows), tf.zeros([4])])
        _, grown = v1.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, tf.concat([y, x], 0)), [0, x],
                                 shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 4])])
        arrays = {"sums": sums.stack(), "last": last, "map": tf.map_fn(lambda r: r * 2, x),
                  "scan": tf.scan(lambda a, r: a + r, x)}
        return exported(folder, {"loop": ({"x": x, "n": n}, {"i": i, "y": y, "z": z}),
                                 "arrays": ({"x": x}, arrays), "grown": ({"x": x}, {"y": grown})},
                        {"x": noise(3, 4), "n": np.array(5, np.int32)})


def variables_1(folder):
    """Variables of TensorFlow 1: references that are assigned, parts of larger ones, one that is no part of files."""
    v1 = tf.compat.v1
    with v1.Graph().as_default():
        x = v1.placeholder(tf.float32, [3, 4], "x")
        count = v1.Variable(0, use_resource=False, trainable=False, name="count")
        w = v1.Variable(np.full((4, 2), 0.5, np.float32), use_resource=False, name="w")
        with tf.control_dependencies([v1.assign_add(count, 1)]):
            y = tf.matmul(x, w) + tf.cast(v1.identity(count), tf.float32)
        loss = tf.reduce_mean((tf.matmul(x, w) - 1) ** 2)
        steps = []
        for optimizer in (v1.train.GradientDescentOptimizer(0.1), v1.train.AdamOptimizer(0.1)):
            with tf.control_dependencies(steps):
                steps = [optimizer.minimize(loss)]
        with tf.control_dependencies(steps):
            after = v1.identity(w)
        table = v1.Variable(np.ones((3, 4), np.float32), use_resource=False, name="table")
        with tf.control_dependencies([v1.scatter_add(table, [0, 2], x[:2])]):
            changed = table[1:2].assign(x[2:3])
        with tf.control_dependencies([changed]):
            rows = v1.identity(table)
        parts = v1.get_variable("parts", [4, 6], initializer=v1.random_normal_initializer(seed=3),
                                partitioner=v1.fixed_size_partitioner(3, 1))
        local = v1.get_variable("local", [4], initializer=v1.constant_initializer(3.0), use_resource=True,
                                collections=[v1.GraphKeys.LOCAL_VARIABLES])
        return exported(folder, {
            "counted": ({"x": x}, {"y": y}), "trained": ({"x": x}, {"loss": loss, "after": after}),
            "table": ({"x": x}, {"rows": rows}),
            "others": ({"x": x}, {"y": tf.matmul(x * local, tf.convert_to_tensor(parts))})},
            {"x": noise(3, 4)}, calls=2)


MODELS = [dense, mlp, cnn, recurrent, transformer, text, tables, control, training, steps, branches_1, version_1,
          loops_1, variables_1]


def main():
    """Write the models that are named, else all."""
    wanted = sys.argv[1:]
    DATA.mkdir(exist_ok=True)
    for make in MODELS:
        if wanted and make.__name__ not in wanted:
            continue
        folder = tempfile.mkdtemp()
        values = {k: np.asarray(v) for k, v in make(folder).items()}
        values = {k: np.char.decode(v.astype(bytes)) if v.dtype == object else v for k, v in values.items()}
        np.savez(os.path.join(folder, "expected.npz"), **values)
        path = DATA / f"{make.__name__}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for file in sorted(Path(folder).rglob("*")):
                if file.is_file() and file.name != "fingerprint.pb":
                    archive.writestr(zipfile.ZipInfo(str(file.relative_to(folder))), file.read_bytes(),
                                     zipfile.ZIP_DEFLATED, 9)
        shutil.rmtree(folder)
        print(f"{make.__name__}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
