"""Dtype policies: names, the global one, and what they refuse."""

from __future__ import annotations

from collections import Counter

import pytest

import twofold as tf

mixed = tf.keras.mixed_precision


@pytest.fixture(autouse=True)
def unchanged():
    yield
    mixed.set_global_policy(None)
    tf.keras.config.set_floatx("float32")


@pytest.mark.parametrize(("name", "compute", "variable"), [
    ("mixed_bfloat16", "bfloat16", "float32"), ("mixed_float16", "float16", "float32"),
    ("bfloat16", "bfloat16", "bfloat16"), ("float64", "float64", "float64")])
def test_policies(name, compute, variable):
    policy = mixed.Policy(name)
    assert (policy.name, policy.compute_dtype, policy.variable_dtype) == (name, compute, variable)
    assert policy == mixed.Policy(name) != mixed.Policy("float32")
    assert tf.keras.dtype_policies.deserialize(tf.keras.dtype_policies.serialize(policy)) == policy
    assert tf.keras.dtype_policies.get(name) == tf.keras.dtype_policies.get(policy) == policy


def test_the_global_policy():
    assert mixed.global_policy().name == "float32"
    mixed.set_global_policy("mixed_bfloat16")
    assert mixed.global_policy() == mixed.Policy("mixed_bfloat16") == mixed.Policy()
    assert tf.keras.config.dtype_policy() is mixed.global_policy()
    mixed.set_global_policy(None)
    tf.keras.config.set_floatx("float64")
    assert mixed.global_policy().name == "float64"
    assert tf.keras.metrics.Mean().dtype == "float64"


def test_what_is_no_policy():
    with pytest.raises(ValueError, match="mixed_bfloat16"):
        mixed.Policy("float31")
    with pytest.raises(TypeError, match="string"):
        mixed.Policy(tf.float32)
    with pytest.raises(ValueError, match="2.5"):
        mixed.set_global_policy(2.5)
    with pytest.raises(ValueError, match="3.5"):
        tf.keras.dtype_policies.get(3.5)
    assert mixed.global_policy().name == "float32"


# -- products -----------------------------------------------------------------------------------------
class Scores(tf.keras.layers.Layer):
    """Products of all kinds, in a compiled function and recomputed."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.w = self.add_weight(shape=(4, 4))
        self.inner = tf.function(lambda x: tf.einsum("bi,ij->bj", x, tf.cast(self.w, x.dtype)))

    def call(self, x):
        again = tf.recompute_grad(lambda x: x @ self.w)
        return self.inner(x) + again(x) + tf.matmul(x, self.w, precision="exact")


def products(policy):
    """(dtype, precision) of all products of a forward and a backward pass of a model."""
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Conv1D(4, 2, dtype=policy), layers.Flatten(), layers.Dense(4, dtype=policy),
                        Scores(dtype=policy), layers.Dense(2, dtype="float32")])

    @tf.function
    def gradient(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.cast(model(x), tf.float32) ** 2)
        return tape.gradient(loss, model.trainable_variables), tf.matmul(tf.cast(x, tf.float16), tf.zeros([3, 1], "f2"))
    graph = gradient.get_concrete_function(tf.TensorSpec([2, 3, 3]))._traced.graph
    return [(n.outputs[0].dtype.name, n.attrs["precision"]) for n in graph.walk() if "precision" in n.attrs]


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float16", "float32"])
def test_products_of_mixed_layers_need_not_be_exact(policy):
    """Those of 16-bit floats, with their gradients, but for those that say that they are exact; float32 products of
    such layers, and products outside of them, are exact."""
    found = Counter(products(policy))
    if policy.startswith("mixed"):
        dtype = policy.removeprefix("mixed_")
        assert set(found) == {(dtype, "fast"), (dtype, "exact"), ("float16", "exact"), ("float32", "exact")}
        assert found[dtype, "exact"] == 3 + (dtype == "float16") and found["float32", "exact"] == 3
    else:
        assert {precision for _, precision in found} == {"exact"}


def test_functions_have_a_trace_for_each_precision(tmp_path):
    """One that is called in a mixed layer and outside of it, in any order; what was saved has its own everywhere."""
    @tf.function
    def square(x):
        return x @ x

    class Squared(tf.keras.layers.Layer):
        def call(self, x):
            return self.function(x)
    x, layer = tf.ones([2, 2], tf.float16), Squared(dtype="mixed_float16")
    layer.function = square
    for _ in range(2):
        assert square(x).numpy().tolist() == layer(x).numpy().tolist() == [[2, 2], [2, 2]]
    precisions = [f._traced.graph.nodes[0].attrs["precision"] for f in square._list_all_concrete_functions()]
    assert precisions == ["exact", "fast"]
    module = tf.Module()
    module.f = tf.function(lambda x: tf.matmul(x, x, precision="fast"), input_signature=[tf.TensorSpec([2, 2], "f2")])
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    layer.function = loaded.f
    assert layer(x).numpy().tolist() == [[2, 2], [2, 2]]
    assert [n.attrs["precision"] for n in loaded.f.get_concrete_function()._traced.graph.nodes] == ["fast"]


def test_what_a_mixed_layer_calls_reads_its_weights_so():
    """A compiled function that others call, too, and one that is computed once more for its gradient."""
    layer = Reading(dtype="mixed_bfloat16")
    for _ in range(3):
        assert layer.read().dtype is tf.float32
        with tf.GradientTape() as tape:
            result, again = layer(tf.ones([2, 2]))
        assert result.dtype is again.dtype is tf.bfloat16
        assert tape.gradient(again, layer.w).numpy().tolist() == [[2, 2], [2, 2]]


class Reading(tf.keras.layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.w = self.add_weight(shape=(2, 2))
        self.read = tf.function(lambda: self.w + 1)

    def call(self, x):
        return self.read(), tf.recompute_grad(lambda x: x @ self.w)(x)
