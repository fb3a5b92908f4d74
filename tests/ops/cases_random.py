"""Cases of random draws: shape rules, dtypes and errors. What is drawn is judged in `test_random.py`."""

from __future__ import annotations

import numpy as np
from ops.case import Bad, Case

import twofold as tf
from twofold.ir import dtypes as dt

TENSORFLOW = {"like": "tensorflow"}
INVALID = tf.errors.InvalidArgumentError


def advanced(state, count):
    low, high, key = (int(v) % 2**64 for v in state)
    total = (low + (high << 64) + int(count)) % 2**128
    return np.array([total % 2**64, total >> 64, key], np.uint64).astype(np.int64)


def any_word(rng, shape):
    return rng.integers(-2**63, 2**63, shape)


def positive(rng, shape):
    return rng.uniform(0.5, 3, shape)


def plain():
    for name, dtypes in (("bits", (dt.int32, dt.int64, dt.uint32, dt.uint64)), ("uniform", dt.FLOATING),
                         ("normal", dt.FLOATING), ("truncated_normal", dt.FLOATING)):
        for dtype in dtypes:
            for shape in ((), (7,), (2, 0), (2, 3, 5)):
                for like in [{}] if name == "bits" else [{}, TENSORFLOW]:
                    yield Case(f"random_{name}", f"ops.random_{name}", [(3,)], None, dtypes=dt.int64, domain=any_word,
                               kwargs={"shape": shape, "dtype": dtype, **like}, grad=False, result=dtype)


def with_parameters(like):
    for shape in ((), (5,), (2, 0)):
        yield Case("random_integers", "ops.random_integers", [(3,), (), ()], None, dtypes=dt.INTEGER, grad=False,
                   kwargs={"shape": shape, **like}, dtypes_per_operand=[dt.int64, None, None],
                   domain=[any_word, lambda rng, s: np.full(s, 3), lambda rng, s: np.full(s, 9)])
    for name in ("gamma", "poisson"):
        for param, shape in (((), (4, 2)), ((2,), (4, 2)), ((1, 3), (2, 2, 3)), ((0,), (2, 0))):
            yield Case(f"random_{name}", f"ops.random_{name}", [(3,), param], None, dtypes=dt.FLOATING, grad=False,
                       kwargs={"shape": shape, "dtype": dt.float64, **like}, dtypes_per_operand=[dt.int64, None],
                       domain=[any_word, positive])
    yield Case("random_binomial", "ops.random_binomial", [(3,), (2,), (4, 1)], None, dtypes=dt.FLOATING, grad=False,
               kwargs={"shape": (4, 2), "dtype": dt.int32, **like}, dtypes_per_operand=[dt.int64, None, None],
               domain=[any_word, (1, 9), (0.1, 0.9)], result=dt.int32)


def orders():
    yield Case("random_cut_normal", "ops.random_cut_normal", [(3,), (), (2,), (3, 1), ()], None, grad=False,
               dtypes={dt.float16, dt.float32, dt.float64}, dtypes_per_operand=[dt.int64, None, None, None, None],
               domain=[any_word, (-1, 1), (0.5, 2), (-3, 0), (1, 3)], kwargs={"shape": (4, 3, 2)})
    for size in (0, 1, 9):
        yield Case("random_permutation", "ops.random_permutation", [(3,)], None, dtypes=dt.int64, domain=any_word,
                   kwargs={"size": size, "dtype": dt.int32}, grad=False, result=dt.int32)
    yield Case("random_place", "ops.random_place", [(5,), (2,), ()], None, grad=False,
               dtypes={dt.int32, dt.int64, dt.uint32, dt.uint64}, dtypes_per_operand=[None, dt.int64, None],
               domain=[lambda rng, s: np.arange(5), any_word, lambda rng, s: np.full(s, 70_000)])


def streams():
    yield Case("random_skip", "ops.random_skip", [(3,), ()], advanced, dtypes=dt.int64, grad=False,
               domain=[any_word, lambda rng, shape: rng.integers(0, 2**62, shape)])
    for like in ({}, TENSORFLOW):
        yield Case("random_seed_state", "ops.random_seed_state", [(2,)], None, dtypes={dt.int32, dt.int64}, grad=False,
                   domain=lambda rng, shape: rng.integers(-2**31, 2**31, shape), kwargs=like, result=dt.int64)
    yield Case("random_state", "ops.random_state", [()], None, dtypes={dt.int32, dt.int64}, domain=(0, 9), grad=False,
               kwargs={"seed": 5}, result=dt.int64, layouts="each call takes the next part")
    yield Case("random_op_state", "ops.random_op_state", [()], None, dtypes={dt.int32, dt.int64}, domain=(0, 9),
               grad=False, kwargs={"seeds": (3, 4), "kind": "uniform"}, result=dt.int64,
               layouts="each call takes the next part")


CASES = [*plain(), *with_parameters({}), *with_parameters(TENSORFLOW), *orders(), *streams()]

ERRORS = [
    Bad("normal: dtype", lambda: tf.random.normal([2], dtype=tf.int32), TypeError, match="random_normal.*int32"),
    Bad("normal: mean", lambda: tf.random.normal([2], mean=[1.0, 2.0, 3.0]), INVALID, match="broadcast"),
    Bad("normal: shape", lambda: tf.random.normal([2.5]), TypeError, match="shape"),
    Bad("normal: negative", lambda: tf.random.normal([-1]), INVALID, match="-1"),
    Bad("uniform: maxval", lambda: tf.random.uniform([2], dtype=tf.int32), ValueError, match="maxval"),
    Bad("uniform: empty", lambda: tf.random.uniform([2], 3, 3, tf.int32), INVALID, match="less than"),
    Bad("uniform: bounds", lambda: tf.random.uniform([2], [1, 2], 3, tf.int32), INVALID, match="rank"),
    Bad("shuffle: scalar", lambda: tf.random.shuffle(1), INVALID, match="rank"),
    Bad("categorical: rank", lambda: tf.random.categorical([0.0], 1), INVALID, match="matrix"),
    Bad("categorical: count", lambda: tf.random.categorical([[0.0]], -1), INVALID, match="-1"),
    Bad("gamma: shape", lambda: tf.random.stateless_gamma([2], [1, 2], [1.0, 2.0, 3.0]), INVALID, match="alpha"),
    Bad("poisson: dtype", lambda: tf.random.poisson([2], 1.0, tf.bool), TypeError, match="bool"),
    Bad("stateless: seed", lambda: tf.random.stateless_normal([2], seed=3), INVALID, match="shape"),
    Bad("stateless: float seed", lambda: tf.random.stateless_normal([2], seed=[1.0, 2.0]), TypeError, match="float32"),
    Bad("generator: state", lambda: tf.random.Generator.from_state([1, 2]), INVALID, match="shape"),
    Bad("generator: algorithm", lambda: tf.random.Generator.from_seed(1, alg="mersenne"), ValueError, match="mersenne"),
    Bad("generator: no draws", lambda: tf.random.Generator.from_seed(1, alg="threefry").normal([2]),
        tf.errors.UnimplementedError, match="ThreeFry"),
    Bad("generator: nothing", lambda: tf.random.Generator(), ValueError, match="state"),
    Bad("generator: skip", lambda: tf.random.Generator.from_seed(1).skip([1]), INVALID, match="rank"),
]
