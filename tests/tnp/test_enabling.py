"""Tensors that behave as NumPy's arrays: operators, square brackets, methods; and the modes in which dtypes meet."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from tnp.cases import lines, run

import twofold as tf

tnp = tf.experimental.numpy
CUBE = np.arange(24).reshape(2, 3, 4)
#: what TensorFlow 2.21 gives in its modes
SUMS = {
    "legacy": [("x + 1.5", "float64"), ("1.5 + x", "float64"), ("x + f", "float64"), ("f + 1", "float32"),
               ("i8 + 1", "int8"), ("h + 1.5", "float16"), ("x / 2", "float64"), ("x // 2.0", "float64"),
               ("x ** 2.5", "float64"), ("x @ f", "float64"), ("x << 1", "int32"), ("x >> i8", "int32"),
               ("x < 1.5", "bool"), ("x == 1.5", "bool"),
               ("u8 - i8", "int16"), ("t + 1", "int64"), ("x & i64", "int64"), ("v * 1.5", "float64"),
               ("x + [0.5, 1, 2]", "float64"), ("np.ones(3) + x", "float64"), ("b + f", "float32")],
    "all": [("x + 1.5", "float64"), ("x + f", "float32"), ("f + 1", "float32"), ("i8 + 1", "int8"),
            ("h + 1.5", "float16"), ("x / 2", "float64"), ("u8 - i8", "int16"), ("t + 1", "int32"),
            ("v * 1.5", "float64"), ("f * k", "float32"),
            ("k + 1.0", "float32"), ("h + k", "float16"), ("i8 + k", "float64"), ("x < 1.5", "bool")],
    "safe": [("f + 1", "float32"), ("i8 + 1", "int8"), ("h + 1.5", "float16"), ("h + k", "float16"), ("x + 1.5", None),
             ("x + f", None), ("u8 - i8", None), ("i8 + x", "int32")],
}


def values() -> dict[str, object]:
    """Tensors of several dtypes, made with the rules that are in force."""
    x = tf.constant([1, 2, 3], tf.int32)
    return {"x": x, "f": tf.constant([1.0, 2, 3], tf.float32), "i8": tf.constant([1, 2, 3], tf.int8),
            "h": tf.constant(1.0, tf.float16), "u8": tf.constant(2, tf.uint8), "t": tf.constant(True),
            "i64": tf.constant(3, tf.int64), "v": tf.Variable([1, 2, 3]), "b": tf.constant(2.0, tf.bfloat16),
            "k": tf.constant(2.0), "np": np}


@pytest.mark.parametrize("mode", SUMS)
def test_operators_promote(mode, enable):
    enable(dtype_conversion_mode=mode)
    names = values()
    for text in [text for text, expected in SUMS[mode] if expected is None]:
        with pytest.raises(TypeError, match="promotion mode PromoMode.SAFE"):
            run(text, names)
    allowed = [(text, expected) for text, expected in SUMS[mode] if expected is not None]

    def compute() -> list[tf.Tensor]:
        return [run(text, names) for text, _ in allowed]

    fast = tf.function(compute, autograph=False)()
    for (text, expected), once, compiled in zip(allowed, compute(), fast, strict=True):
        assert once.dtype.name == compiled.dtype.name == expected, text
        assert once.numpy().tobytes() == compiled.numpy().tobytes(), text


def test_python_floats_may_be_float32(enable):
    enable(prefer_float32=True)
    assert tnp.array(1.5).dtype == tnp.linspace(0, 1, 3).dtype == tf.float32
    assert tnp.ones(2).dtype == (tf.constant([1, 2]) + tf.constant(1.0)).dtype == tf.float64


def test_numbers_are_weak_where_they_give_way(enable):
    enable(dtype_conversion_mode="all")
    x = tf.constant([1.0, 2.0])
    assert repr(x).endswith("weak=True>") and isinstance(x, tf.Tensor)
    assert repr(x * 2 + 1).endswith("weak=True>")
    assert (x * tf.constant(3, tf.float16)).dtype == tf.float16
    assert not repr(tf.constant(np.float32(1))).endswith("weak=True>")
    assert not repr(tf.constant(1.0, tf.float32)).endswith("weak=True>")
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    np.testing.assert_array_equal(tape.gradient(y, x), [2.0, 4.0])
    traced = tf.function(lambda h: h * tf.constant(1.5))(tf.constant(2, tf.float16))
    assert traced.dtype == tf.float16 and float(traced) == 3.0


KEYS = lines("""x[[0, 1]]|x[:, [0, 1], None]|x[[0, 1], :, [1, 2]]|x[np.array([[True, False, True]] * 2)]|x[..., [0, -1]]
x[:, :, [[0, 1], [2, 3]]]|x[[0, 1], [0, 2]]|x[[0, 1], [0, 2], 1:3]|x[:, [0, 1], [1, 2]]|x[None, [0, 1]]
x[np.array([True, False])]|x[:, np.array([True, False, True])]|x[:, np.array([True, False, True]), [0, 1]]|x[True]
x[:, None, [0, 1]]|x[..., [0, 1], None]|x[[],]|x[np.array([0, 1]), ..., 1]|x[x > 5]|x[1][x[0] > 5]|x[np.uint8([1, 0])]
x[[[0, 1], [1, 0]], [0, 2]]|x[0, [1, 2], [0, 1]]|x[1]|x[:, 1:, ::2]|x[..., 0]|x[False]|x[x > 99]|x[0, 0, 0]
x[[1, 0], ..., [1, 0]]|x[::-1, [2, 0]]|x[1:, 0, [0, 3]]""")


@pytest.mark.parametrize("compiled", [False, True])
def test_square_brackets_are_numpys(compiled, enable):
    enable()

    def compute(x):
        return [run(key, {"x": x, "np": np}) for key in KEYS]

    actual = (tf.function(compute, autograph=False) if compiled else compute)(tf.constant(CUBE))
    for key, got in zip(KEYS, actual, strict=True):
        expected = run(key, {"x": CUBE, "np": np})
        np.testing.assert_array_equal(got.numpy(), expected, err_msg=key)
        assert got.numpy().shape == expected.shape, key


def test_integers_are_taken_before_arrays_as_in_tensorflow(enable):
    enable()
    assert tf.constant(CUBE)[0, :, [1, 2]].shape == [3, 2]  # (2, 3) in NumPy
    with pytest.raises(IndexError, match="too many indices"):
        tf.constant(CUBE)[[0], [0], [0], [0]]
    with pytest.raises(IndexError, match="single ellipsis"):
        tf.constant(CUBE)[..., [0], ...]
    with pytest.raises(IndexError, match="got dtype float32"):
        tf.constant(CUBE)[tf.constant([0.0, 1.0])]


def test_gradients_go_through_square_brackets(enable):
    enable()
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tnp.sum(x[[0, 0, 2]] * tf.constant([1, 2, 3])) + tnp.sum(x[x > 1.5])
    np.testing.assert_array_equal(tape.gradient(y, x), [3.0, 1.0, 4.0])


METHODS = lines("""x.T|x.reshape(4, 6)|x.reshape((4, 6), order="F")|x.ravel()|x.flatten()|x.flatten("F")
x.astype("float32")
x.clip(2, 9)|x.max(1)|x.min(axis=(0, 2), keepdims=True)|x.mean(0)|x.transpose(2, 0, 1)|x.transpose([1, 0, 2])|x.size
x.tolist()""")


def test_methods_are_numpys(enable):
    enable()
    x = tf.constant(CUBE)
    for text in METHODS:
        got, expected = run(text, {"x": x}), run(text, {"x": CUBE})
        np.testing.assert_array_equal(got, expected, err_msg=text)
        if isinstance(got, tf.Tensor):
            assert got.dtype.name == expected.dtype.name, text
    assert x.data is x and tnp.ndarray is tf.Tensor
    assert round(tf.constant(2.567), 1).dtype == tf.float32
    assert x.astype(float).dtype == tf.float32 and x.astype(int).dtype == tf.int64
    np.testing.assert_array_equal(tf.function(lambda x: x.T.reshape(-1).clip(2, 5))(x), CUBE.T.reshape(-1).clip(2, 5))


def test_nothing_of_it_is_there_before():
    x = tf.constant([1, 2])
    assert not any(hasattr(x, name) for name in ("T", "size", "astype", "reshape", "tolist"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Nothing is promoted"):
        x + tf.constant(1.5)
    with pytest.raises(tf.errors.InvalidArgumentError):
        x[[0, 1]]  # a list is a tuple of indices
    assert tnp.add(x, 1.5).dtype == tf.float64  # the functions do


def test_off_promotes_nothing(enable):
    enable(dtype_conversion_mode="off")
    with pytest.raises(tf.errors.InvalidArgumentError, match="Nothing is promoted"):
        tf.constant([1, 2]) + tf.constant(1.5)
    assert tf.constant([1, 2])[[1, 0]].numpy().tolist() == [2, 1]


def test_strings_and_other_operands_are_as_before(enable):
    enable()
    assert (tf.constant("a") + "b").numpy() == b"ab"
    assert (tf.constant(1) == None) is False  # noqa: E711 (what the operator says is the matter)
    with pytest.raises(TypeError):
        tf.constant(1) + None

    class Other:
        def __radd__(self, x: object) -> str:
            return "answered"

    assert tf.constant(1) + Other() == "answered"


def test_what_is_refused():
    for call, error in (("np.sum(x, axis=9)", "axis"), ("np.where([True], 1)", "Both x and y"),
                        ("np.take(x, [0], mode='raise')", "not supported"), ("np.pad(x, 1, 'edge')", "padding mode"),
                        ("np.mean(x, out=x)", "out"), ("np.sign(x, out=x)", "out"), ("np.sort(x, kind='heap')", "kind"),
                        ("np.argsort(x, order='f')", "order"), ("np.clip(x, None, None)", "a_min"),
                        ("np.size(x, 0)", "axis"), ("np.gcd(x, 1.5)", "Integers"),
                        ("np.meshgrid(x, sparse=True)", "sparse"),
                        ("np.random.randint(3, dtype='int8')", "int32"), ("np.reshape(x, 2, order='K')", "order"),
                        ("np.average(x, (0,))", "axis"), ("np.arange(0, 3, 0)", "step"),
                        ("np.einsum('i->', x, casting='no')", "casting"), ("np.ix_([[1]])", "1-d"),
                        ("np.experimental_enable_numpy_behavior(dtype_conversion_mode='most')", "must be one of")):
        with pytest.raises((ValueError, TypeError, NotImplementedError), match=error):
            run(call, {"np": tnp, "x": tf.constant([1, 2])})


def test_random_numbers():
    tnp.random.seed(3)
    drawn = [tnp.random.rand(4), tnp.random.randn(4), tnp.random.randint(2, 5, [4]), tnp.random.poisson(2.0, 4),
             tnp.random.uniform([0.0, 5.0], 1.0), tnp.random.random(4), tnp.random.standard_normal((2, 2))]
    tnp.random.seed(3)
    np.testing.assert_array_equal(drawn[0], tnp.random.rand(4))
    assert [x.dtype.name for x in drawn] == ["float64", "float64", "int64", "int64", "float64", "float64", "float64"]
    assert [x.shape.as_list() for x in drawn] == [[4], [4], [4], [4], [2], [4], [2, 2]]
    assert set(drawn[2].numpy()) <= {2, 3, 4}


def test_importing_it_says_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        import twofold.experimental.numpy as module
    assert module.add is tnp.add
