"""Libraries for this machine, called through ctypes: the results are the compiled function's, to the bit."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest
from export.calling import Library, NativeError

import twofold as tf

F32 = np.float32


def mlp(seed=0):
    """A classifier with unknown batch size."""
    rng = np.random.default_rng(seed)
    w1, b1, w2, b2 = (tf.Variable(rng.standard_normal(s).astype(F32), name=n) for n, s in (
        ("w1", (64, 32)), ("b1", (32,)), ("w2", (32, 10)), ("b2", (10,))))

    @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32, "x")])
    def predict(x):
        return tf.nn.softmax(tf.nn.relu(x @ w1 + b1) @ w2 + b2)
    return predict


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    predict = mlp()
    path = tmp_path_factory.mktemp("digits") / "libdigits.so"
    return predict, tf.export.native(predict, path)


def image(n, seed=1):
    return np.random.default_rng(seed).standard_normal((n, 64)).astype(F32)


@pytest.mark.parametrize("n", [0, 1, 2, 7, 64, 65])
def test_equals_the_function(digits, n):
    predict, library = digits
    actual, = Library(library.path, "digits").call("predict", [image(n)], [(F32, 2)])
    assert actual.shape == (n, 10)
    np.testing.assert_array_equal(actual, predict(tf.constant(image(n))).numpy())


def test_needs_nothing_but_libc_and_libm(digits):
    if shutil.which("nm") is None:
        pytest.skip("there is no nm")
    told = subprocess.run(["nm", "-D", str(digits[1].path)], capture_output=True, text=True, check=True).stdout
    undefined = {line.split()[-1].split("@")[0] for line in told.splitlines() if re.search(r" [UwV] ", line)}
    defined = {line.split()[-1] for line in told.splitlines() if " T " in line}
    assert undefined <= {"memcpy", "memset", "memmove"}
    assert defined == {"digits_predict", "digits_predict_sizes", "digits_strerror", "digits_abi", "digits_interface"}


def test_is_small(digits):
    assert digits[1].path.stat().st_size < 100 << 10


def test_shapes_are_checked(digits):
    library = Library(digits[1].path, "digits")
    with pytest.raises(NativeError, match=r"digits_predict: input x must have shape \[.*, 64\]") as told:
        library.call("predict", [np.zeros((3, 63), F32)], [(F32, 2)])
    assert told.value.kind == 2


def test_workspace_is_checked(digits):
    library = Library(digits[1].path, "digits")
    _, need = library.sizes("predict", [image(3)], [(F32, 2)])
    with pytest.raises(NativeError, match="workspace is smaller than digits_predict_sizes tells") as told:
        library.call("predict", [image(3)], [(F32, 2)], need - 1)
    assert told.value.kind == 3
