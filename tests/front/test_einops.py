"""einops on our tensors: op by op, in functions of known and unknown sizes, in models, and through gradients.

What is expected is what einops gives for NumPy's arrays.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import einops
import numpy as np
import pytest
from einops import EinopsError

import twofold as tf

X = np.random.default_rng(0).normal(size=(4, 6, 8)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(8, 5)).astype(np.float32)

# Functions of einops on an array of shape [4, 6, 8].
CASES: dict[str, Any] = {
    "transpose": lambda x: einops.rearrange(x, "a b c -> c a b"),
    "join": lambda x: einops.rearrange(x, "a b c -> (a c) b"),
    "split": lambda x: einops.rearrange(x, "(a1 a2) (b1 b2) c -> a1 b1 (c a2 b2)", a1=2, b2=3),
    "ones": lambda x: einops.rearrange(x, "a ... -> 1 ... a ()"),
    "ellipsis": lambda x: einops.rearrange(x, "a ... -> (...) a"),
    "sum": lambda x: einops.reduce(x, "a b c -> b", "sum"),
    "mean": lambda x: einops.reduce(x, "a (b b2) c -> c b", "mean", b2=2),
    "max": lambda x: einops.reduce(x, "(a a2) b c -> a b c", "max", a2=2),
    "min": lambda x: einops.reduce(x, "a b c -> a 1 c", "min"),
    "prod": lambda x: einops.reduce(x, "a b c -> a b", "prod"),
    "all of it": lambda x: einops.reduce(x, "... ->", "sum"),
    "repeat": lambda x: einops.repeat(x, "a b c -> a (b 3) c 2"),
    "repeat to a size": lambda x: einops.repeat(x, "a b c -> n a (c m) b", n=2, m=2),
    "einsum": lambda x: einops.einsum(x, W, "batch time channel, channel out -> time batch out"),
    "by the sizes of itself": lambda x: einops.rearrange(einops.rearrange(x, "a b c -> (a b) c"), "(a b) c -> c b a",
                                                         **einops.parse_shape(x, "a b _")),
    "a list": lambda x: einops.rearrange([x, x + 1], "two a b c -> a (two b) c"),
    "pack": lambda x: einops.pack([x, x[:, 0]], "a * c")[0],
    "unpack": lambda x: einops.unpack(einops.rearrange(x, "a b c -> a (b c)"), [[2, 3], [], [-1]], "a *"),
}


def _check(actual: Any, expected: Any) -> None:
    for one, other in zip(tf.nest.flatten(actual), tf.nest.flatten(expected), strict=True):
        assert isinstance(one, tf.Tensor) and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, strict=True)


@pytest.mark.parametrize("name", CASES)
def test_as_on_arrays(name: str) -> None:
    fn = CASES[name]
    expected = fn(X)
    _check(fn(tf.constant(X)), expected)
    _check(fn(tf.Variable(X)), expected)
    _check(tf.function(fn)(tf.constant(X)), expected)
    unknown = tf.function(fn, input_signature=[tf.TensorSpec([None] * 3)])
    _check(unknown(tf.constant(X)), expected)
    assert len(tf.nest.flatten(unknown.get_concrete_function().output_shapes)) == len(tf.nest.flatten(expected))
    other = X[:2, :, ::-1]
    _check(unknown(tf.constant(other)), fn(other))


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    fn = CASES[name]

    def gradient(x: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.add_n([tf.reduce_sum(tf.sin(y)) for y in tf.nest.flatten(fn(x))])
        return tape.gradient(total, x)
    x = tf.constant(X.astype(np.float32))
    actual = gradient(x)
    for signature in (None, [tf.TensorSpec([None] * 3)]):
        np.testing.assert_array_equal(tf.function(gradient, input_signature=signature)(x), actual)
    towards = np.random.default_rng(2).normal(size=X.shape)

    def along(step: float) -> float:  # what einops gives for NumPy's arrays
        moved = fn(X.astype(np.float64) + step * towards)
        return sum(float(np.sin(y).sum()) for y in (moved if isinstance(moved, list) else [moved]))
    expected = (along(1e-5) - along(-1e-5)) / 2e-5
    np.testing.assert_allclose(float((actual.numpy() * towards).sum()), expected, rtol=1e-3, atol=1e-3)


def test_sizes_that_are_not_known_are_tensors() -> None:
    sizes: dict[str, Any] = {}

    @tf.function(input_signature=[tf.TensorSpec([None, 6])])
    def f(x: tf.Tensor) -> tf.Tensor:
        sizes.update(einops.parse_shape(x, "a b"))
        return einops.repeat(x, "a b -> (a b n)", n=tf.shape(x)[0])
    assert f(tf.ones([4, 6])).shape == [96] and f(tf.ones([0, 6])).shape == [0]
    assert sizes["b"] == 6 and tf.is_symbolic_tensor(sizes["a"])


def test_what_einops_refuses() -> None:
    x = tf.constant(X)
    with pytest.raises(EinopsError, match="can't divide axis of length 6"):
        einops.rearrange(x, "a (b c) d -> a b c d", b=4)
    with pytest.raises(EinopsError, match="Error while processing"):
        einops.rearrange(x, "a b -> b a")
    with pytest.raises(NotImplementedError, match="mean"):
        einops.reduce(tf.range(4), "a -> ", "mean")
    with pytest.raises(EinopsError, match="could not split"):
        einops.unpack(x, [[2], [2]], "a * c")


def test_other_reductions_and_numpy() -> None:
    x = tf.constant(X)
    np.testing.assert_allclose(einops.reduce(x, "a b c -> b", tf.reduce_logsumexp), tf.reduce_logsumexp(x, [0, 2]))
    np.testing.assert_array_equal(einops.reduce(x > 0, "a b c -> a", "any"), (X > 0).any((1, 2)))
    actual = einops.asnumpy(x)
    assert type(actual) is np.ndarray
    np.testing.assert_array_equal(actual, X)


def test_models_of_keras() -> None:
    """The functions on the tensors of a functional model, and einops' layers, saved and loaded."""
    from einops.layers.keras import EinMix, Rearrange, Reduce, keras_custom_objects
    inputs = tf.keras.Input([6, 8])

    def block(x: Any) -> Any:
        parts = einops.reduce(einops.rearrange(x, "a (b two) c -> a c b two", two=2), "a c b two -> b (c a)", "max")
        return parts, einops.repeat(x, "a b c -> a (b n) c", n=2), einops.einsum(x, W, "a b c, c d -> a d")
    model = tf.keras.Model(inputs, block(inputs))
    _check(model(X), block(X))
    _check(model(X[:2]), block(X[:2]))
    with pytest.raises(EinopsError, match="use einops.layers.keras"):
        einops.rearrange(tf.keras.Input([None, 8]), "a b (c two) -> a b c two", two=2)
    free = tf.keras.Input([None, 8])
    _check(tf.keras.Model(free, Rearrange("a b (c two) -> two a b c", two=2)(free))(X),
           einops.rearrange(X, "a b (c two) -> two a b c", two=2))
    layers = tf.keras.Sequential([
        tf.keras.Input([6, 8]), Rearrange("a (b two) c -> a b (c two)", two=2), Reduce("a b c -> a c", "mean"),
        EinMix("a c -> a d", weight_shape="c d", bias_shape="d", c=16, d=3), tf.keras.layers.Dense(2)])
    assert [v.shape for v in layers.trainable_variables] == [(16, 3), (1, 3), (3, 2), (2,)]
    layers.compile("sgd", "mse")
    before = layers.predict(X, verbose=0)
    layers.fit(X, np.zeros((4, 2), np.float32), verbose=0)
    assert not np.array_equal(layers.predict(X, verbose=0), before)
    again = tf.keras.Sequential([
        tf.keras.Input([6, 8]), *[keras_custom_objects[type(x).__name__].from_config(x.get_config())
                                  for x in layers.layers[:2]]])
    _check(again(X), einops.reduce(X, "a (b two) c -> a (c two)", "mean", two=2))


@pytest.mark.parametrize("first", ["einops", "twofold"])
def test_either_may_be_imported_first(first: str) -> None:
    other = "twofold" if first == "einops" else "einops"
    script = f"""
import sys
import {first}
import {other}
assert "twofold.keras" not in sys.modules
x = twofold.range(6)
print(einops.rearrange(x, "(a b) -> b a", a=2).numpy().tolist())
module = sys.modules["einops._backends"]
print(type(module.__loader__).__name__, module.__spec__.loader is module.__loader__)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True)
    assert done.stdout == "[[0, 3], [1, 4], [2, 5]]\nSourceFileLoader True\n", done.stderr


def test_nothing_of_einops_is_loaded_without_it() -> None:
    script = "import sys, twofold; print([m for m in sys.modules if 'einops' in m])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "['twofold._front.einops']\n"
