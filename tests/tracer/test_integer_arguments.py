"""Integer arguments of public functions: sizes, axes, shifts, permutations, as Python integers and as tensors."""

from __future__ import annotations

import inspect
import random

import numpy as np
import pytest
from fuzz import integers
from fuzz.worker import run_source

import twofold as tf
from twofold._front.api import unguarded

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def traced(fn, *specs):
    return tf.function(fn, input_signature=list(specs), fallback=False)


INT, FLOATS = tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.float32)


# -- the table --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("part", range(12))
def test_every_function_takes_integers_in_every_form(part):
    """Each call of the table in one nest or another, as `make fuzz` runs them at random."""
    rng = random.Random(part)
    nests = list(integers.NESTS)
    for number, entry in enumerate(integers.TABLE):
        if number % 12 != part:
            continue
        case = integers.draw(rng, entry, nests[(number // 12 + 5 * part) % len(nests)])
        source = integers.source_of(case)
        error = run_source(source, "case")
        assert error is None, f"{error}\n{source}"


@pytest.mark.parametrize("compiled", [False, True])
def test_sizes_that_were_computed_as_floats(compiled):
    """TensorFlow takes them as items of sequences, without what follows the point."""
    def sized(n):
        x = tf.range(4.0)
        return (tf.reshape(x, (n, 2)), tf.reshape(x, [2 * n]), tf.zeros([tf.constant(2.7, tf.float64), n]),
                tf.tile(x, [n]), tf.pad(x, [[n, 0]]), tf.transpose(x[None], [n - 1, 0]))
    made = (traced(sized, tf.TensorSpec([], tf.float32)) if compiled else sized)(tf.constant(2.0))
    assert [list(t.shape) for t in made] == [[2, 2], [4], [2, 2], [8], [6], [4, 1]]
    with pytest.raises(TypeError, match="shape must hold integers"):
        tf.reshape(tf.range(4.0), tf.constant([2.0, 2.0]))


# Names of arguments that hold integers, and functions whose integers must be known when a function is traced.
NAMES = {"axis", "axes", "shape", "dims", "perm", "shift", "repeats", "multiples", "num", "num_rows", "num_columns",
         "depth", "maxlen", "k", "num_lower", "num_upper", "num_cols", "num_segments", "minlength",
         "maxlength", "nbins", "num_classes", "num_samples", "paddings", "crops", "begin", "size", "batch_dims",
         "num_or_size_splits", "seq_axis", "fft_length", "frame_length", "frame_step", "window_length", "block_shape",
         "batch_shape", "noise_shape", "offset_height", "target_height"}
KNOWN = {
    "static by meaning": "clip_by_global_norm broadcast_static_shape constant ensure_shape dynamic_partition "
                         "math.accumulate_n nn.normalize_moments signal.inverse_stft_window_fn "
                         "nn.compute_average_loss debugging.assert_shapes nn.conv_transpose nn.conv1d_transpose "
                         "nn.conv2d_transpose nn.conv3d_transpose placeholder_with_default",
    "must be known": "linalg.normalize math.approx_max_k math.approx_min_k signal.dct signal.idct signal.stft "
                     "signal.inverse_stft signal.mdct nn.batch_normalization image.extract_patches approx_top_k conv "
                     "nn.isotonic_regression nn.nce_loss nn.sampled_softmax_loss image.extract_glimpse",
    "as others of the table": "nn.sufficient_statistics nn.weighted_moments math.reduce_any math.reduce_all "
                              "signal.irfft signal.irfft2d signal.irfft3d signal.rfft2d signal.rfft3d signal.ifftshift "
                              "signal.hamming_window signal.kaiser_window signal.kaiser_bessel_derived_window "
                              "signal.vorbis_window random.gamma random.poisson random.truncated_normal "
                              "random.stateless_gamma random.stateless_poisson random.stateless_binomial "
                              "image.resize_with_pad image.random_crop image.stateless_random_crop unstack "
                              "strings.reduce_join strings.split strings.join image.crop_and_resize "
                              "required_space_to_batch_paddings signal.ifftnd signal.irfftnd "
                              "random.stateless_parameterized_truncated_normal",
    "a tensor": "linalg.lu_matrix_inverse linalg.lu_reconstruct linalg.lu_solve",
}


def test_every_function_with_an_integer_argument_is_in_the_table():
    places = {"": tf, "math.": tf.math, "linalg.": tf.linalg, "nn.": tf.nn, "random.": tf.random,
              "signal.": tf.signal, "image.": tf.image}
    functions = {}
    for prefix, module in places.items():
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and not isinstance(value, type):
                functions.setdefault(id(unguarded(value)), (prefix + name, value, []))[2].append(prefix + name)
    named = {entry.name for entry in integers.TABLE} | {name for names in KNOWN.values() for name in names.split()}
    missing = []
    for first, value, names in functions.values():
        if NAMES & set(inspect.signature(unguarded(value)).parameters) and named.isdisjoint(names):
            missing.append(first)
    assert not missing


# -- sizes from outside of a branch or loop ---------------------------------------------------------------------------
def test_size_from_outside_of_a_loop_is_known_in_it():
    def fn(k, n):
        y = tf.zeros([k])
        for _ in tf.range(n):
            y = y + tf.ones([k])
        return y
    compiled = traced(fn, INT, INT)
    for k, n in ((3, 2), (0, 4), (5, 0)):
        np.testing.assert_array_equal(compiled(k, n), np.full(k, n, np.float32))
    nodes = [node.op.name for node in compiled.get_concrete_function().graph.nodes]
    assert nodes.count("bind") == 1  # one symbol, wherever the size is used


def test_negative_size_in_a_loop_is_an_error_only_where_it_runs():
    def fn(k, n):
        s = 0.0
        for _ in tf.range(n):
            s += tf.reduce_sum(tf.ones([k]))
        return s
    compiled = traced(fn, INT, INT)
    assert float(compiled(-1, 0)) == 0.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="a size must not be negative"):
        compiled(-1, 2)


def test_sizes_out_of_a_vector_from_outside_of_the_loop():
    def fn(sizes, n):
        s = 0.0
        for _ in tf.range(n):
            s += tf.reduce_sum(tf.ones(sizes))
        return s, tf.map_fn(lambda k: tf.fill(sizes[1:], k), tf.range(n))
    compiled = traced(fn, tf.TensorSpec([None], tf.int32), INT)
    total, filled = compiled([2, 3], 2)
    assert float(total) == 12.0 and filled.numpy().tolist() == [[0] * 3, [1] * 3]
    with pytest.raises(tf.errors.InvalidArgumentError, match="a size must not be negative"):
        compiled([2, -1], 2)


def test_negative_size_in_a_branch_is_an_error_only_where_it_runs():
    def fn(k):
        if k > 0:
            y = tf.ones([k, 2])
        else:
            y = tf.zeros([0, 2])
        return y
    compiled = traced(fn, INT)
    assert compiled(-3).shape == [0, 2] and compiled(2).shape == [2, 2]


def test_reshape_by_a_size_from_outside():
    compiled = traced(lambda x, n: tf.cond(n > 1, lambda: tf.reshape(x, [n, -1]), lambda: tf.reshape(x, [1, -1])),
                      FLOATS, INT)
    for n, shape in ((2, [2, 6]), (3, [3, 4]), (0, [1, 12])):
        assert compiled(X.ravel(), n).shape == shape


def test_map_stacks_results_of_a_size_from_outside():
    compiled = traced(lambda x, k: tf.map_fn(lambda v: v * tf.ones([k]), x), FLOATS, INT)
    np.testing.assert_array_equal(compiled([1.0, 2.0], 3), [[1, 1, 1], [2, 2, 2]])


def test_array_holds_items_of_a_size_that_the_loop_decides():
    def fn(k, n):
        items = tf.TensorArray(tf.float32, size=n)
        for i in tf.range(n):
            items = items.write(i, tf.fill([k], tf.cast(i, tf.float32)))
        return items.stack()
    compiled = traced(fn, INT, INT)
    np.testing.assert_array_equal(compiled(2, 3), [[0, 0], [1, 1], [2, 2]])


def test_saved_function_keeps_sizes_and_axes_that_values_decide(tmp_path):
    class Model(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([3, 4]), INT])
        def __call__(self, x, k):
            s = tf.zeros([k])
            for _ in tf.range(2):
                s += tf.ones([k])
            return tf.reduce_sum(x, axis=k), tf.roll(x, k, 1), s
    model = Model()
    tf.saved_model.save(model, str(tmp_path / "m"))
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    for k in (0, 1):
        for want, got in zip(model(X, k), loaded(X, k), strict=True):
            np.testing.assert_array_equal(want, got)


# -- axes -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_sum_over_an_axis_that_a_value_decides(axis):
    compiled = traced(lambda x, k: tf.reduce_sum(x, axis=k), tf.TensorSpec([3, 4]), INT)
    np.testing.assert_array_equal(compiled(X, axis), X.sum(axis))


def test_axis_out_of_range_names_the_function_the_argument_and_the_line():
    compiled = traced(lambda x, k: tf.argmax(x, axis=k), tf.TensorSpec([3, 4]), INT)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"argmax: axis is out of range; expected -2 <= axis < 2"
                                                             r"(.|\n)*test_integer_arguments.py"):
        compiled(X, 2)


def test_axis_that_constants_tell_is_no_switch():
    compiled = traced(lambda x: tf.reduce_sum(x, axis=tf.minimum(tf.constant(3), tf.rank(x)) - 1),
                      tf.TensorSpec([3, 4]))
    assert "cond" not in {node.op.name for node in compiled.get_concrete_function().graph.nodes}
    np.testing.assert_array_equal(compiled(X), X.sum(1))


def test_transposition_that_a_value_decides():
    compiled = traced(lambda x, p: tf.transpose(x, p), tf.TensorSpec([2, 3, 4]), tf.TensorSpec([3], tf.int32))
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for perm in ([0, 1, 2], [2, 0, 1], [1, 0, 2], [2, 1, 0], [-1, 0, 1]):
        np.testing.assert_array_equal(compiled(x, perm), x.transpose(perm))
    with pytest.raises(tf.errors.InvalidArgumentError, match="no permutation"):
        compiled(x, [0, 0, 1])


def test_what_must_be_known_is_an_error_with_the_line():
    with pytest.raises(TypeError, match=r"block_size must be known when tf.function traces"
                                        r"(.|\n)*test_integer_arguments.py"):
        traced(lambda k: tf.nn.space_to_depth(tf.ones([1, 4, 4, 1]), k), INT)(2)


def test_what_must_be_known_runs_eagerly_where_that_is_allowed():
    fn = tf.function(lambda x, k: tf.tensordot(x, x, k))
    x = tf.constant([1.0, 2.0])
    with pytest.warns(RuntimeWarning, match="axes must be known(.|\n)*results for its values differ"):
        assert fn(x, tf.constant(1)).shape == []
    assert fn(x, tf.constant(0)).shape == [2, 2]


def test_gradient_through_a_loop_that_replaces_a_value_of_unknown_size():
    def fn(x, k):
        y = x[:k]
        for _ in tf.range(2):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(y, tf.TensorShape([None]))])
            y = x[k:] * 2.0
        return y
    compiled, x = traced(fn, FLOATS, INT), tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = compiled(x, 1)
    np.testing.assert_array_equal(tape.gradient(y, x), [0.0, 2.0, 2.0])


def test_reshape_to_values_in_a_branch_is_checked_under_a_tape_too():
    def fn(x, k, m):
        if k > 0:
            y = tf.reshape(x, [k, m])
        else:
            y = tf.reshape(x, [2, 2])
        return tf.reduce_sum(y)
    compiled, x = traced(fn, tf.TensorSpec([4]), INT, INT), tf.ones([4])
    with tf.GradientTape() as tape:
        tape.watch(x)
        assert float(compiled(x, 2, 2)) == 4.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="reshape"):
            compiled(x, 2, 1)
    del tape


# -- sizes stay known -------------------------------------------------------------------------------------------------
def test_gather_of_a_reversed_range_keeps_the_size():
    compiled = traced(lambda x: tf.gather(x, tf.range(tf.shape(x)[0])[::-1]), tf.TensorSpec([5, 2]))
    assert compiled.get_concrete_function().structured_outputs.shape == [5, 2]


def test_diagonal_of_an_unknown_number_of_elements():
    compiled = traced(lambda x: tf.linalg.diag(x[:3]), FLOATS)
    for size in (0, 1, 2, 5):
        x = np.arange(1, size + 1, dtype=np.float32)
        np.testing.assert_array_equal(compiled(x), np.diag(x[:3]))


def test_identity_of_the_sizes_of_a_tensor_is_traced_once():
    seen = []

    def fn(x):
        seen.append(x.shape.as_list())
        return tf.eye(tf.shape(x)[0], tf.shape(x)[1])
    compiled = traced(fn, tf.TensorSpec([None, 4]))
    np.testing.assert_array_equal(compiled(tf.ones([2, 4])), np.eye(2, 4))
    np.testing.assert_array_equal(compiled(tf.ones([3, 4])), np.eye(3, 4))
    assert seen == [[None, 4]]


# -- eager ------------------------------------------------------------------------------------------------------------
def test_draw_of_a_negative_size_takes_nothing_from_the_stream():
    tf.random.set_seed(3)
    want = tf.random.normal([2])
    tf.random.set_seed(3)
    for draw in (lambda: tf.random.normal([-1, 3]), lambda: tf.random.categorical([[0.5, 0.5]], -2)):
        with pytest.raises(tf.errors.InvalidArgumentError):
            draw()
    np.testing.assert_array_equal(tf.random.normal([2]), want)


def test_linspace_of_no_numbers_is_empty():
    assert tf.linspace(0.0, 1.0, 0).shape == [0] and tf.linspace([0.0, 1.0], 1.0, 0).shape == [0, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="num must not be negative"):
        tf.linspace(0.0, 1.0, -1)


def test_eager_while_loop_gives_its_functions_numpy_values_as_they_are():
    seen = []

    def body(i, x):
        seen.append((type(i), type(x)))
        return i + 1, x * 2
    i, x = tf.while_loop(lambda i, x: i < 2, body, [np.int64(0), np.ones(2, np.int16)])
    assert seen == [(np.int64, np.ndarray)] * 2
    assert i.dtype == tf.int64 and x.dtype == tf.int16 and x.numpy().tolist() == [4, 4]


# -- values at the ends of their range --------------------------------------------------------------------------------
def test_batch_axes_of_a_gather_count_from_the_end_of_the_indices():
    """-2 is no axis for indices of rank 2, as TensorFlow counts. One axis would not fit: it has other sizes."""
    places = np.array([[1], [0]], np.int32)
    call = traced(lambda x, k: tf.gather(x, places, batch_dims=k), tf.TensorSpec([3, 4], tf.float32), INT)
    for batch in (-2, 0):
        assert call(X, batch).numpy().tolist() == tf.gather(X, places, batch_dims=batch).numpy().tolist()
        assert call(X, batch).numpy().tolist() == X[places].tolist()
    for batch in (-1, 1):
        with pytest.raises(tf.errors.InvalidArgumentError, match="batch axis 0 has size 3"):
            call(X, batch)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_gradients_of_numbers_between_two_where_values_say_how_many(count):
    """A branch that is not taken has sizes, too, which its gradient must be able to compute."""
    def gradient(x, k):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x[None]
            if k > -1:
                y = tf.linspace(x, 3.0 * x, k)
            total = tf.reduce_sum(y)
        return tape.gradient(total, x)

    got = traced(gradient, FLOATS, INT)(X[0], count).numpy()
    weights = np.linspace(1.0, 3.0, count).sum()  # of x, in all numbers
    np.testing.assert_allclose(got, np.full(4, weights, np.float32), rtol=1e-6)


@pytest.mark.parametrize("call", [
    lambda x, k: tf.image.rot90(x[:, :, None], k)[:, :, 0],
    lambda x, k: tf.image.pad_to_bounding_box(x[:, :, None], k, 0, 6, 5),
    lambda x, k: tf.image.crop_to_bounding_box(x[:, :, None], k, k, 1, 1),
    lambda x, k: tf.math.in_top_k([0, 3, 1], x, k),
    lambda x, k: tf.linalg.diag(x[0], num_rows=k + 4, num_cols=4),
    lambda x, k: tf.linalg.band_part(x, k, k),
    lambda x, k: tf.range(k, k + 3, k),
    lambda x, k: tf.signal.frame(x[0], k + 1, k),
], ids=["rot90", "pad", "crop", "in_top_k", "diag", "band_part", "range", "frame"])
def test_a_tensor_that_was_a_size_before_is_an_integer_still(call):
    """Its value is known as a size then, which functions that compute with it must make a number again."""
    def function(x, k):
        return tf.reduce_sum(tf.zeros([k])), call(x, k)

    got = traced(function, tf.TensorSpec([3, 4], tf.float32), INT)(X, 1)[1]
    assert got.numpy().tolist() == call(tf.constant(X), tf.constant(1)).numpy().tolist()


# What TensorFlow 2.21 gives for a matrix of 3 rows and 4 columns; None where it refuses.
ODD_NUMBERS = {
    "lower": (lambda x, k: tf.linalg.band_part(x, k, -1), {
        -9: X, 0: np.triu(X), 2: np.triu(X, -2), 3: X, 4: None, 2**31: None}),
    "upper": (lambda x, k: tf.linalg.band_part(x, -1, k), {
        -9: X, 0: np.tril(X), 3: np.tril(X, 3), 4: X, 5: None, 2**31: None}),
    "bins": (lambda x, k: tf.math.bincount([1, 1, 2], minlength=k), {
        -2: [0, 2, 1], -(2**40): [0, 2, 1], 0: [0, 2, 1], 5: [0, 2, 1, 0, 0]}),
    "most bins": (lambda x, k: tf.math.bincount([1, 1, 2], maxlength=k), {-2: None, 0: [], 2: [0, 2]}),
    "few bins": (lambda x, k: tf.math.bincount([1, 1, 2], minlength=k, maxlength=2), {-2: [0, 2], 0: [0, 2]}),
    "repeats": (lambda x, k: tf.repeat(x, [k, 1, k], axis=0), {
        -1: X[1:2], -(2**40): X[1:2], 0: X[1:2], 2: X[[0, 0, 1, 2, 2]]}),
    "repeats of all": (lambda x, k: tf.repeat(x, k, axis=0), {-1: None, -9: None, 0: X[:0], 2: np.repeat(X, 2, 0)}),
}


@pytest.mark.parametrize("name", ODD_NUMBERS)
def test_numbers_that_are_negative_or_beyond_a_size(name):
    call, wanted = ODD_NUMBERS[name]
    wide = tf.TensorSpec([], tf.int64)
    for number, want in wanted.items():
        def known(x, number=number):
            return call(x, number)

        def open_rows(x, k):
            return call(x, k)
        forms = {"eager": lambda n=number: call(tf.constant(X), n),
                 "a tensor": lambda n=number: call(tf.constant(X), tf.constant(n, tf.int64)),
                 "a known number": lambda f=known: traced(f, tf.TensorSpec([3, 4], tf.float32))(X),
                 "unknown sizes": lambda f=known: traced(f, tf.TensorSpec([None, None], tf.float32))(X),
                 "an unknown number": lambda n=number, f=open_rows: traced(
                     f, tf.TensorSpec([None, 4], tf.float32), wide)(X, n)}
        for form, run in forms.items():
            if want is None:
                with pytest.raises(tf.errors.InvalidArgumentError):
                    run()
            else:
                np.testing.assert_array_equal(run(), np.array(want), f"{number}, {form}")


def counted(x):
    return tf.range(tf.shape(x)[0], dtype=tf.float32)


def counted_in_halves(x):
    return tf.range(tf.shape(x)[0], dtype=tf.float16)


def counted_down(x):
    return tf.range(tf.shape(x)[0] - 1, -1, -2, dtype=tf.float32)


def counted_from_a_cast(x):
    return tf.range(0.0, tf.cast(tf.shape(x)[0], tf.float32), 2.0)


@pytest.mark.parametrize(("fn", "size"), [(counted, (1 << 24) + 3), (counted_from_a_cast, (1 << 24) + 5),
                                          (counted_in_halves, 2051), (counted_down, (1 << 23) + 1)])
def test_ranges_count_in_the_precision_of_their_dtype(fn, size):
    """Where integers are no floats, a range is as long as its floats make it, compiled or not."""
    x = tf.zeros([size, 0])
    compiled = tf.function(fn, input_signature=[tf.TensorSpec([None, 0])])
    for few in (0, 1, 5):
        assert tf.reduce_all(compiled(x[:few]) == fn(x[:few])) and len(compiled(x[:few])) == len(fn(x[:few]))
    assert compiled(x).shape == fn(x).shape
    assert compiled(x)[-1] == fn(x)[-1]


def test_the_sizes_of_ranges_follow_from_sizes_and_numbers():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def fn(x):
        made = [tf.range(4, dtype=tf.float32), tf.range(0.0, 2.0, 0.3), tf.range(tf.constant(3), 0, -2)]
        assert [t.shape.as_list() for t in made] == [[4], [7], [2]]
        return x + tf.range(tf.shape(x)[0], dtype=tf.float32)  # whose sizes are one
    assert not [guard for guard in fn.get_concrete_function().graph.guards if guard.op == "=="]
    with pytest.raises(tf.errors.InvalidArgumentError, match="delta != 0"):
        tf.function(lambda: tf.range(0.0, 1.0, 0.0))()
