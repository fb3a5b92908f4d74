"""Dtype policies: names, the global one, and what they refuse."""

from __future__ import annotations

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
