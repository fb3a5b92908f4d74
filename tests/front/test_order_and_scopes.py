"""reverse_sequence, unravel_index and their like, against NumPy; statements of order and scopes; codes of errors."""

import numpy as np
import pytest

import twofold as tf

X = np.arange(48).reshape(2, 4, 3, 2)


@pytest.mark.parametrize(("lengths", "along", "over"), [
    ([3, 1], 1, 0), ([3, 2, 1], 1, 2), ([0, 1, 2, 2], 0, 1), ([2, 0], -1, 0)])
def test_reverse_sequence(lengths, along, over):
    expected = X.copy()
    for n, length in enumerate(lengths):
        part = np.moveaxis(expected, over, 0)[n]  # a view
        place = along % 4 - (along % 4 > over % 4)
        moved = np.moveaxis(part, place, 0)
        moved[:length] = moved[:length][::-1].copy()
    np.testing.assert_array_equal(tf.reverse_sequence(X, lengths, along, over), expected)
    compiled = tf.function(lambda x, n: tf.reverse_sequence(x, n, along, over),
                           input_signature=[tf.TensorSpec([None] * 4, tf.int64), tf.TensorSpec([None], tf.int32)])
    np.testing.assert_array_equal(compiled(X, np.int32(lengths)), expected)


def test_reverse_sequence_has_gradients():
    x, ct = tf.constant(X.astype(np.float32)), tf.random.stateless_normal(X.shape, [1, 2])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reverse_sequence(x, [3, 1], 1)
    np.testing.assert_array_equal(tape.gradient(y, x, ct), tf.reverse_sequence(ct, [3, 1], 1))
    for call, text in ((lambda: tf.reverse_sequence(X, [1, 1]), "seq_axis must be given"),
                       (lambda: tf.reverse_sequence(X, [1, 1], 0, 0), "are both"),
                       (lambda: tf.reverse_sequence(X, [[1, 1]], 1), "vector")):
        with pytest.raises(ValueError, match=text):
            call()


def test_indices_and_paddings():
    np.testing.assert_array_equal(tf.unravel_index([3, 17, 22], [2, 4, 3]), np.unravel_index([3, 17, 22], (2, 4, 3)))
    assert tf.unravel_index(17, tf.constant([2, 4, 3])).numpy().tolist() == [1, 1, 2]
    paddings, crops = tf.required_space_to_batch_paddings([5, 7], [3, 2], [[1, 0], [0, 2]])
    assert (paddings.numpy().tolist(), crops.numpy().tolist()) == ([[1, 0], [0, 3]], [[0, 0], [0, 1]])


MODES = {"eager": lambda f: f, "compiled": tf.function, "sizes unknown": lambda f: tf.function(
    f, input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.int32)])}
REFUSED = {
    "unravel_index": (lambda places, sizes: tf.unravel_index(places, tf.ensure_shape(sizes, [2])), [
        ([3, 6], [2, 3]), ([-1, 0], [2, 3]), ([0, 1], [0, 2]), ([0, 1], [2, 0]), ([6], [-2, -3])]),
    "reverse_sequence": (lambda lengths, x: tf.reverse_sequence(tf.stack([x, x]), lengths, 1), [
        ([-1, 0], [1, 2, 3]), ([0, 4], [1, 2, 3]), ([1, 0], [])]),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_out_of_bounds_is_refused(name, mode):
    call, arguments = REFUSED[name]
    for pair in arguments:
        with pytest.raises(tf.errors.InvalidArgumentError, match=name):
            MODES[mode](call)(*[tf.constant(values, tf.int32) for values in pair])


def test_places_in_tensors_of_more_elements_than_the_dtype_counts():
    assert tf.unravel_index([7], [1 << 16, 1 << 16]).numpy().tolist() == [[0], [7]]


def test_order_is_kept_anyway():
    v = tf.Variable(1.0)

    @tf.function
    def f():
        with tf.control_dependencies([v.assign_add(1.0)]):
            doubled = v * 2.0
        return tf.tuple([doubled, v.read_value(), None])[:2]
    assert [float(x) for x in f()] == [4.0, 2.0]
    with tf.compat.v1.Session() as session:
        w = tf.Variable(1.0)
        with tf.control_dependencies([w.assign_add(1.0)]):
            doubled = w * 2.0
        session.run(w.initializer)
        assert session.run(doubled) == 4.0
        assert session.run(w) == 2.0


def test_small_names():
    with tf.name_scope("a"):
        assert tf.get_current_name_scope() == "a"
    actual = []
    tf.function(lambda x: actual.append(tf.is_symbolic_tensor(x)))(tf.constant(1.0))
    assert actual == [True]
    now = tf.function(tf.timestamp)
    assert float(now()) <= float(now())
    assert tf.zeros_initializer is tf.keras.initializers.Zeros
    assert tf.random_uniform_initializer(1.0, 2.0)([3]).numpy().min() >= 1.0
    tf.assert_equal(1, 1)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.assert_less(2, 1)


def test_codes_of_errors():
    for name in tf.errors.__all__:
        if name.isupper() and name != "OK":
            words = "".join(part.capitalize() for part in name.split("_"))
            assert getattr(tf.errors, f"{words}Error").error_code == getattr(tf.errors, name)
