"""Raw ops give what TensorFlow's give for the same calls: `record_raw_results.py` recorded it."""

import json
import pathlib

import numpy as np
import pytest
from names import raw_cases

import twofold as tf

KEPT = json.loads(pathlib.Path(__file__).with_name("raw_results.json").read_text())
CASES = raw_cases.cases(tf)
#: results that go through float32 sums in another order than TensorFlow's; draws, orders and counts are equal
CLOSE = {"rtol": 2e-5, "atol": 2e-5}


def recorded(kept):
    name, shape, data = kept
    if name == "object":
        return np.array([x.encode() for x in data], object).reshape(shape)
    return np.frombuffer(bytes.fromhex(data[0] if isinstance(data, list) else data), name).reshape(shape)


def test_all_cases_are_recorded():
    assert KEPT.keys() == {*CASES, *raw_cases.UPDATES, *raw_cases.FROM_STATES}


@pytest.mark.parametrize("name", CASES)
def test_results_are_tensorflows(name):
    compare(name, raw_cases.run(tf, name, CASES[name]))


def compare(name, results):
    wanted = [recorded(kept) for kept in KEPT[name]]
    assert len(results) == len(wanted)
    for n, (result, want) in enumerate(zip(results, wanted, strict=True)):
        assert result.shape == want.shape and (result.dtype == want.dtype or result.dtype == object), n
        if want.dtype.kind in "fc":
            np.testing.assert_allclose(result, want, err_msg=f"result {n}", **CLOSE)
        else:
            np.testing.assert_array_equal(result, want, err_msg=f"result {n}")


@pytest.mark.parametrize("name", raw_cases.UPDATES)
def test_steps_of_optimizers_are_tensorflows(name):
    compare(name, raw_cases.updated(tf, name))


@pytest.mark.parametrize("name", raw_cases.FROM_STATES)
def test_draws_from_states_are_tensorflows(name):
    compare(name, raw_cases.drawn(tf, name))


def test_a_step_is_one_in_functions_and_rows_are_moved_alone():
    var, accum = tf.Variable([1.0, 2.0, 3.0]), tf.Variable([0.0, 0.0, 0.0])

    @tf.function(fallback=False)
    def step(grad):
        tf.raw_ops.ResourceSparseApplyMomentum(var=var.handle, accum=accum.handle, lr=0.5, grad=grad, indices=[2],
                                               momentum=0.5, use_nesterov=True)
    step(tf.constant([2.0]))
    step(tf.constant([2.0]))
    assert var.numpy().tolist() == [1.0, 2.0, -0.25] and accum.numpy().tolist() == [0.0, 0.0, 3.0]


IN_FUNCTIONS = ("ResizeBicubic 2", "ImageProjectiveTransformV3 BILINEAR WRAP", "StridedSliceGrad", "LSTMBlockCell",
                "FusedBatchNormGradV3", "MaxPoolGrad", "SparseAdd", "SparseFillEmptyRows", "RaggedTensorToSparse",
                "StringNGrams 1", "StatelessRandomNormalV2", "UnicodeDecode", "Bucketize", "CTCLoss")


def test_compiled_calls_have_the_bits_of_eager_ones():
    def calls():
        return [tf.nest.flatten(getattr(tf.raw_ops, n.split()[0])(**CASES[n])) for n in IN_FUNCTIONS]
    for name, made, eager in zip(IN_FUNCTIONS, tf.function(calls, fallback=False)(), calls(), strict=True):
        for one, other in zip(made, eager, strict=True):
            np.testing.assert_array_equal(one.numpy(), other.numpy(), err_msg=name, strict=True)


def test_what_decides_the_computation_must_be_known():
    @tf.function(fallback=False)
    def reversed_along(dims):
        return tf.raw_ops.Reverse(tensor=[[1, 2]], dims=dims)
    with pytest.raises(tf.errors.InvalidArgumentError, match="dims must be known"):
        reversed_along(tf.constant([True, False]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="align_corners must be False here"):
        tf.raw_ops.ResizeArea(images=tf.ones([1, 2, 2, 1]), size=[1, 1], align_corners=True)
