"""What functions do survives export: state, gradients, control flow, random draws, checks, dtypes, saved models.

Each library runs beside the function that it was made of, and the bits of all results and variables are compared.
"""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest
from export.calling import Library, NativeError, struct_of

import twofold as tf

F32, F64, I32, I64 = np.float32, np.float64, np.int32, np.int64


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(F32)


def exported(folder, functions, name="lib", **options):
    """The library of functions, called `name`, and the text of its header."""
    made = tf.export.native(functions, folder / f"lib{name}.so", **options)
    return Library(made.path, name), made.header.read_text()


def state_size(header):
    return int(re.search(r"_STATE_SIZE INT64_C\((\d+)\)", header)[1])


def same(actual, expected):
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, np.asarray(b))


class Training:
    """A training step with momentum, a counter and a second function that reads what the step assigns."""

    def __init__(self):
        self.w = tf.Variable(numbers(6, 3), name="w")
        self.v = tf.Variable(tf.zeros([6, 3]), name="v")
        self.steps = tf.Variable(0, dtype=tf.int64, name="steps")
        self.scale = tf.Variable(2.0, name="scale")  # nothing assigns it

        @tf.function(input_signature=[tf.TensorSpec([None, 6], tf.float32), tf.TensorSpec([None], tf.int32)])
        def step(x, labels):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, self.logits(x)))
            gradient = tape.gradient(loss, self.w)
            self.v.assign(0.9 * self.v + gradient)
            self.w.assign_sub(0.5 * self.v)
            self.steps.assign_add(1)
            return loss

        @tf.function(input_signature=[tf.TensorSpec([None, 6], tf.float32)])
        def predict(x):
            return tf.argmax(self.logits(x), axis=1), self.steps
        self.functions = {"step": step, "predict": predict}

    def logits(self, x):
        return tf.tanh(x @ self.w) * self.scale


@pytest.mark.parametrize("weights", ["embedded", "file"])
def test_training_step(tmp_path, weights):
    model = Training()
    library, header = exported(tmp_path, model.functions, weights=weights)
    if weights == "file":
        library.weights = np.fromfile(tmp_path / "lib.safetensors", np.uint8)
    specs = [(F32, (6, 3)), (F32, (6, 3)), (I64, ())]
    names = re.search(r"typedef struct lib_state \{(.*?)\}", header, re.S)[1]
    assert re.findall(r"\*(\w+);", names) == ["w", "v", "steps"]
    w, v, steps = library.new_state(specs, state_size(header))
    x, labels = numbers(20, 6, seed=2), np.arange(20, dtype=I32) % 3
    for _ in range(4):
        actual, = library.call("step", [x, labels], [(F32, 0)])
        same([actual, w, v, steps], [model.functions["step"](x, labels), model.w, model.v, model.steps])
    same(library.call("predict", [x], [(I64, 1), (I64, 0)]), model.functions["predict"](x))


def test_failed_step_leaves_the_state(tmp_path):
    model = Training()

    @tf.function(input_signature=[tf.TensorSpec([6, 3], tf.float32), tf.TensorSpec([], tf.int32)])
    def update(g, i):
        model.w.assign_sub(g)
        model.v.assign(tf.tile(tf.gather(model.w, i)[None], [6, 1]))
    library, header = exported(tmp_path, update)
    state = library.new_state([(F32, (6, 3)), (F32, (6, 3))], state_size(header))
    before = [a.copy() for a in state]
    with pytest.raises(NativeError, match="an index is out of range"):
        library.call("update", [numbers(6, 3, seed=1), np.array(6, I32)], [])
    same(state, before)
    library.call("update", [numbers(6, 3, seed=1), np.array(5, I32)], [])
    assert not np.array_equal(state[1], before[1])


def test_two_states_are_apart(tmp_path):
    model = Training()
    library, header = exported(tmp_path, model.functions)
    specs, size = [(F32, (6, 3)), (F32, (6, 3)), (I64, ())], state_size(header)
    first = library.new_state(specs, size)
    one, kept = library.state, library.kept
    second = library.new_state(specs, size)
    library.call("step", [numbers(4, 6), np.zeros(4, I32)], [(F32, 0)])
    assert (int(first[2]), int(second[2])) == (0, 1)
    same(first[:1], [numbers(6, 3)])
    assert one is not library.state and kept is not library.kept


def test_gradients(tmp_path):
    w = tf.Variable(numbers(4, 3), name="w")
    fixed = tf.Variable(numbers(3), name="fixed", trainable=False)

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, "x"), tf.TensorSpec([], tf.int32, "n")])
    def f(x, n):
        y = tf.nn.softplus(x @ w) + fixed
        for _ in tf.range(3):
            y = tf.sin(y) * y
        return {"y": y, "total": tf.reduce_sum(y * tf.cast(n, tf.float32)), "n": n + 1}
    library, header = exported(tmp_path, f, gradients=True)
    x, ct, ct2 = numbers(5, 4), numbers(5, 3, seed=3), np.array(0.5, F32)
    actual = library.call("f_grad", [x, np.array(2, I32), ct2, ct],
                         [(I32, 0), (F32, 0), (F32, 2), (F32, 2), (F32, 2)])
    tensor = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        out = f(tensor, tf.constant(2))
    dx, dw = tape.gradient([out["total"], out["y"]], [tensor, w], [tf.constant(ct2), tf.constant(ct)])
    same(actual, [out["n"], out["total"], out["y"], dx, dw])
    struct = re.search(r"typedef struct lib_f_grad_outputs \{(.*?)\} lib", header, re.S)[1]
    assert re.findall(r"\} (\w+);", struct) == ["n", "total", "y", "d_x", "d_w"]


def test_second_order_gradient_inside_of_a_function(tmp_path):
    @tf.function(input_signature=[tf.TensorSpec([5], tf.float64)])
    def f(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(tf.exp(x) * x ** 3)
            first = inner.gradient(y, x)
        return outer.gradient(first, x)
    library, _ = exported(tmp_path, f)
    x = np.linspace(-1, 1, 5)
    actual, = library.call("f", [x], [(F64, 1)])
    same([actual], [f(x)])
    np.testing.assert_allclose(actual, np.exp(x) * (x**3 + 6 * x**2 + 6 * x), rtol=1e-13, atol=1e-15)


def test_control_flow(tmp_path):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.int32)])
    def f(x, n):
        total, i = tf.zeros([]), 0
        while i < n:
            if total > 3.0:
                total -= x[i]
            else:
                total += x[i] * 2.0
            i += 1
        if n > 2:
            x = tf.sort(x) if False else tf.reverse(x, [0])
        for k in tf.range(n):
            x = x + tf.cast(k, tf.float32)
        return total, x
    library, _ = exported(tmp_path, f)
    for n in (0, 1, 3, 7):
        x = np.abs(numbers(8, seed=n))
        same(library.call("f", [x, np.array(n, I32)], [(F32, 0), (F32, 1)]), f(x, n))
    with pytest.raises(NativeError, match=r"gather: an index is out of range\n  At test_functions.py:\d+ in f\(\): "):
        library.call("f", [numbers(3), np.array(4, I32)], [(F32, 0), (F32, 1)])
    with pytest.raises(NativeError, match="a range must lead from start towards limit"):
        library.call("f", [numbers(3), np.array(-4, I32)], [(F32, 0), (F32, 1)])


def test_assertions_and_integer_division(tmp_path):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.int32)])
    def f(x, by):
        tf.debugging.assert_positive(x, message="x must be counts")
        for i in tf.range(2):
            tf.debugging.assert_less(by, 100 - i, message="by is too large")
        return x // by
    library, _ = exported(tmp_path, f)
    x = np.array([7, 9], I32)
    same(library.call("f", [x, np.array(2, I32)], [(I32, 1)]), [f(x, 2)])
    for given, by, text in ((x, 0, "floordiv: .*zero"), (-x, 2, "x must be counts"), (x, 99, "by is too large")):
        with pytest.raises(NativeError, match=rf"(?s)lib_f: .*{text}.*At test_functions.py:\d+ in f\(\)") as told:
            library.call("f", [given, np.array(by, I32)], [(I32, 1)])
        assert told.value.kind == 5
        with pytest.raises(tf.errors.InvalidArgumentError):
            f(given, by)


def test_assumptions_about_sizes(tmp_path):
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32, "x"), tf.TensorSpec([None], tf.float32, "y")])
    def f(x, y):
        return tf.linalg.matvec(x, y), tf.reshape(x, [2, -1])
    library, _ = exported(tmp_path, f)
    x, y = numbers(4, 3), numbers(3)
    same(library.call("f", [x, y], [(F32, 1), (F32, 2)]), f(x, y))
    text = r"the function was made for sizes with .*\n  At test_functions.py:\d+"
    with pytest.raises(NativeError, match=text) as told:
        library.call("f", [x, numbers(4)], [(F32, 1), (F32, 2)])
    assert told.value.kind == 2
    with pytest.raises(NativeError):
        library.call("f", [numbers(3, 3), y], [(F32, 1), (F32, 2)])


def test_signatures_of_a_function(tmp_path):
    @tf.function
    def f(x):
        return x + x
    for spec in (tf.TensorSpec([3], tf.float32), tf.TensorSpec([None, 2], tf.int64)):
        f.get_concrete_function(spec)
    made = tf.export.native(f, tmp_path / "libboth.so")
    assert made.functions == ("both_f", "both_f_1")
    library = Library(made.path, "both")
    same(library.call("f", [numbers(3)], [(F32, 1)]), [2 * numbers(3)])
    same(library.call("f_1", [np.arange(6).reshape(3, 2)], [(I64, 2)]), [2 * np.arange(6).reshape(3, 2)])


def test_random_draws(tmp_path):
    tf.random.set_seed(11)
    generator = tf.random.Generator.from_seed(4)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32), tf.TensorSpec([2], tf.int32)])
    def f(x, seed):
        return (tf.nn.dropout(x, 0.4), tf.random.normal([7], seed=5), generator.uniform([3], maxval=9, dtype=tf.int32),
                tf.random.stateless_truncated_normal([5], seed), tf.random.normal([3]), tf.random.truncated_normal([2]))
    library, header = exported(tmp_path, f)
    library.new_state([(I64, (3,))] * 5, state_size(header))
    for n in range(3):
        x, seed = np.abs(numbers(9)) + 1, np.array([n, -7], I32)
        same(library.call("f", [x, seed], [(F32, 1), (F32, 1), (I32, 1), (F32, 1), (F32, 1), (F32, 1)]), f(x, seed))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64", "int8", "uint64", "bool"])
def test_dtypes(tmp_path, dtype):
    kind = tf.as_dtype(dtype)

    @tf.function(input_signature=[tf.TensorSpec([None, 4], kind), tf.TensorSpec([None, 4], kind)])
    def f(x, y):
        if kind.is_bool:
            return tf.logical_and(x, y), tf.where(x, y, x)
        return x * y + x, tf.matmul(x, y, transpose_b=True)
    library, _ = exported(tmp_path, f)
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 2 if kind.is_bool else 9, (5, 4)).astype(kind.as_numpy_dtype) for _ in range(2))
    if dtype == "complex64":
        x = x + (1j * y).astype(x.dtype)
    same(library.call("f", [x, y], [(x.dtype, 2), (x.dtype, 2)]), f(x, y))


def test_convolution_and_pooling(tmp_path):
    kernel = tf.Variable(numbers(3, 3, 2, 4), name="kernel")

    @tf.function
    def f(x):
        y = tf.nn.relu(tf.nn.conv2d(x, kernel, strides=1, padding="SAME"))
        return tf.nn.max_pool2d(y, 2, 2, "VALID"), tf.reduce_mean(y, axis=[1, 2])
    x, ct, ct2 = numbers(3, 8, 8, 2), numbers(3, 4, 4, 4, seed=1), numbers(3, 4, seed=2)
    known = f.get_concrete_function(tf.TensorSpec([3, 8, 8, 2], tf.float32))
    library, _ = exported(tmp_path, {"f": known}, gradients=True)
    same(library.call("f", [x], [(F32, 4), (F32, 2)]), f(x))
    with tf.GradientTape() as tape:
        out = f(x)
    expected = tape.gradient(out, kernel, [tf.constant(ct), tf.constant(ct2)])
    actual = library.call("f_grad", [x, ct, ct2], [(F32, 4), (F32, 2), (F32, 4), (F32, 4)])
    same(actual[3:], [expected])
    unknown = f.get_concrete_function(tf.TensorSpec([None, 8, 8, 2], tf.float32))
    library, _ = exported(tmp_path, {"f": unknown}, "open", gradients=True)
    same(library.call("f", [x], [(F32, 4), (F32, 2)]), f(x))
    same(library.call("f_grad", [x, ct, ct2], [(F32, 4), (F32, 2), (F32, 4), (F32, 4)])[3:], [expected])


def test_results_that_are_inputs_constants_or_twice_the_same(tmp_path):
    big = tf.constant(numbers(100))

    @tf.function(input_signature=[tf.TensorSpec([3], tf.float32)])
    def f(x):
        y = x + 1.0
        return x, big, y, y, tf.constant([1, 2]), None
    library, _ = exported(tmp_path, f)
    x = numbers(3)
    kinds = [(F32, 1)] * 4 + [(I32, 1)]
    same(library.call("f", [x], kinds), f(x)[:5])


def test_functions_without_arguments_or_results(tmp_path):
    count = tf.Variable(5, name="count")

    @tf.function(input_signature=[])
    def up():
        count.assign_add(2)

    @tf.function(input_signature=[])
    def now():
        return count * 10
    library, header = exported(tmp_path, {"up": up, "now": now})
    value, = library.new_state([(I32, ())], state_size(header))
    library.call("up", [], [])
    same(library.call("now", [], [(I32, 0)]), [70])
    assert int(value) == 7 and int(count) == 5


def test_saved_model(tmp_path):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(numbers(4, 2), name="w")

        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
        def predict(self, x):
            return {"scores": tf.nn.softmax(x @ self.w)}
    model = Model()
    tf.saved_model.save(model, tmp_path / "saved", signatures={"serve": model.predict})
    made = tf.export.native(tmp_path / "saved", tmp_path / "libserved.so")
    assert made.functions == ("served_serve",)
    x = numbers(3, 4)
    same(Library(made.path, "served").call("serve", [x], [(F32, 2)]), [model.predict(x)["scores"]])


def test_threads(tmp_path):
    @tf.function(input_signature=[tf.TensorSpec([None, 256], tf.float32)])
    def f(x):
        return tf.nn.softmax(tf.matmul(x, x, transpose_a=True) * 0.01), tf.reduce_sum(tf.exp(x))
    library, _ = exported(tmp_path, f, threads=4)
    x = numbers(512, 256)
    same(library.call("f", [x], [(F32, 2), (F32, 0)]), f(x))


def test_weights_are_checked(tmp_path):
    w = tf.Variable(numbers(40, 3), name="w")

    @tf.function(input_signature=[tf.TensorSpec([None, 40], tf.float32)])
    def f(x):
        return x @ w
    library, header = exported(tmp_path, f, weights="file")
    file = np.fromfile(tmp_path / "lib.safetensors", np.uint8)
    assert f"LIB_WEIGHTS_SIZE INT64_C({file.size})" in header
    from safetensors.numpy import load_file
    same([load_file(tmp_path / "lib.safetensors")["w"]], [w])
    check = library.lib.lib_weights_check
    import ctypes
    assert check(ctypes.c_void_p(file.ctypes.data), ctypes.c_int64(file.size)) == 0
    for place in (0, 100, file.size - 1):
        other = file.copy()
        other[place] ^= 4
        assert check(ctypes.c_void_p(other.ctypes.data), ctypes.c_int64(file.size)) & 0xFF == 4
    assert check(ctypes.c_void_p(file.ctypes.data), ctypes.c_int64(file.size - 8)) & 0xFF == 4
    library.weights = file
    same(library.call("f", [numbers(5, 40)], [(F32, 2)]), [f(numbers(5, 40))])


def test_keras_model(tmp_path):
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((8, 8, 1), name="image"), layers.Conv2D(4, 3, activation="relu"),
                                 layers.MaxPooling2D(), layers.Flatten(), layers.Dropout(0.5), layers.Dense(10)])
    library, header = exported(tmp_path, model)
    assert "} image;  /* float32 [" in header
    x = numbers(3, 8, 8, 1)
    same(library.call("predict", [x], [(F32, 2)]), [tf.function(lambda x: model(x, training=False))(x)])


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "bool"])
def test_sorting(tmp_path, dtype):
    kind = tf.as_dtype(dtype)

    @tf.function(input_signature=[tf.TensorSpec([None, None], kind)])
    def f(x):
        if kind.is_bool:
            return tf.argsort(x), tf.argsort(x, direction="DESCENDING")
        return (tf.sort(x), tf.argsort(x), tf.sort(x, direction="DESCENDING", axis=0),
                tf.argsort(x, direction="DESCENDING"), *tf.math.top_k(x, k=3))
    library, _ = exported(tmp_path, f)
    rng = np.random.default_rng(3)
    for n in (3, 4, 5, 31, 64, 257):
        x = (rng.integers(0, 2 if kind.is_bool else 40, (6, n))).astype(kind.as_numpy_dtype)
        if kind.is_floating:
            x[1, ::3], x[2, 1] = np.nan, -np.inf
        expected = [t.numpy() for t in f(x)]
        same(library.call("f", [x], [(t.dtype, 2) for t in expected]), expected)


def test_sizes_beyond_64_bits(tmp_path):
    """Shapes that a caller may state without having memory for them: nothing is computed with what does not fit."""
    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None])])
    def f(x, y):
        return tf.concat([x, x], 0), tf.reduce_sum(tf.cumsum(x), 0), tf.expand_dims(x[:, 0], 1) * y
    library, _ = exported(tmp_path, f)
    x, y = numbers(2, 3), numbers(2)
    same(library.call("f", [x, y], [(F32, 2), (F32, 1), (F32, 2)]), f(x, y))

    def sizes(n, m):
        given, out = struct_of([x, y]), struct_of([numbers(2, 3), numbers(3), numbers(2, 2)])
        need = ctypes.c_int64(-1)
        given.m0.shape[0], given.m1.shape[0] = n, m
        status = library.lib[f"{library.prefix}_f_sizes"](ctypes.byref(given), ctypes.byref(out), ctypes.byref(need))
        return status, [list(getattr(out, f"m{k}").shape) for k in range(3)], need.value
    status, shapes, need = sizes(5, 4)
    assert status == 0 and shapes == [[10, 3], [3], [5, 4]] and need >= 0
    for n in (2 ** 63 - 1, 2 ** 62, 2 ** 60, 2 ** 59 - 1, 2 ** 63 // 12):
        status, _, need = sizes(n, 4)
        assert status & 0xFF == 2 and need == -1, n
        assert "too large" in library.text(status).decode()
    assert sizes(2 ** 33, 2 ** 33)[0] & 0xFF == 2  # their product
    status, shapes, need = sizes(2 ** 40, 2)  # large, and a number
    assert status == 0 and shapes[0] == [2 ** 41, 3] and need >= 0


@pytest.mark.parametrize("threads", [1, 2])
def test_products_with_epilogues(tmp_path, threads):
    w, v = tf.constant(numbers(40, 96)), tf.constant(numbers(96, 50, seed=1))

    @tf.function(input_signature=[tf.TensorSpec([None, 40], tf.float32), tf.TensorSpec([50], tf.float32)])
    def layers(x, bias):
        hidden = tf.nn.relu(tf.matmul(x, w) * 0.5)
        return tf.cast(tf.matmul(hidden, v) + bias, tf.float64), hidden

    library, _ = exported(tmp_path, layers, threads=threads)
    for rows in (1, 15, 200):
        x, bias = numbers(rows, 40, seed=rows), numbers(50, seed=2)
        same(library.call("layers", [x, bias], [(F64, 2), (F32, 2)]), layers(x, bias))


# -- ranges -------------------------------------------------------------------------------------------
@tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
def ranges(x):
    """Of sizes that are known from constants and from the shape."""
    n = tf.shape(x)[0]
    return (tf.range(4, dtype=tf.float32), tf.range(0.0, 2.0, 0.3), tf.range(tf.constant(1.0), 0.0, -0.25),
            tf.range(n, dtype=tf.float32), tf.range(1, n + 1, 2, dtype=tf.float64), tf.range(n - 1, -1, -1),
            tf.linspace(0.0, 1.0, n), tf.range(tf.size(x), dtype=tf.int64), tf.range(0.0, tf.cast(n, tf.float32)))


@pytest.mark.parametrize("count", [0, 1, 7])
def test_ranges_of_known_sizes(tmp_path, count):
    library, _ = exported(tmp_path, {"ranges": ranges})
    x = numbers(count)
    wanted = [np.arange(4, dtype=F32), np.arange(7, dtype=F32) * F32(0.3), 1 - np.arange(4, dtype=F32) / 4,
              np.arange(count, dtype=F32), np.arange(1, count + 1, 2, dtype=F64),
              np.arange(count - 1, -1, -1, dtype=I32), np.linspace(0, 1, count, dtype=F32), np.arange(count),
              np.arange(count, dtype=F32)]
    actual = library.call("ranges", [x], [(w.dtype.type, 1) for w in wanted])
    same(actual, [t.numpy() for t in ranges(x)])
    for have, want in zip(actual, wanted, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-6)
