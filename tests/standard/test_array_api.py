"""`twofold.array_api`: dtypes by the standard's tables, values as NumPy's, in both modes; and what is refused.

The conformance tests of the standard are run by `make array-api-tests` (`suite.py`).
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import twofold as tf
import twofold.array_api as xp

X = np.array([[3.0, 1.5, 2.0], [1.0, 6.0, 4.5]])
Y = np.array([[2.0, 1.5, 3.0], [1.0, 2.5, 2.0]])
V = np.array([2.0, 0.5, 4.0])
S = np.array([[4.0, 1.0], [1.0, 3.0]])
I = np.array([[3, 1, 2], [2, 6, 4]])  # noqa: E741 (integers)
#: what is computed of tensors in both modes, and of arrays by NumPy, whose names are the standard's
CALLS = """
acos(x / 8)|acosh(x)|add(x, y)|asin(x / 8)|asinh(x)|atan(x)|atan2(x, y)|atanh(x / 8)|bitwise_and(i, 3)
bitwise_invert(i)|bitwise_left_shift(i, 2)|bitwise_or(i, 1)|bitwise_right_shift(i, 1)|bitwise_xor(i, 3)|ceil(x)
clip(x, 2, 4)|copysign(x, -y)|cos(x)|cosh(x)|divide(x, y)|equal(x, y)|exp(x)|expm1(x)|floor(x)|floor_divide(x, y)
greater(x, y)|hypot(x, y)|isfinite(x)|less_equal(x, 2)|log(x)|log10(x)|log1p(x)|log2(x)|logaddexp(x, y)
logical_not(x > 2)|maximum(x, y)|multiply(x, 2)|negative(x)|nextafter(x, y)|pow(x, y)|reciprocal(x)|remainder(-x, y)
round(x)|sign(x)|signbit(x)|sin(x)|sqrt(x)|square(x)|subtract(x, y)|tan(x)|tanh(x)|trunc(x)|all(x > 1, axis=1)
any(x > 5, axis=0)|sum(x, axis=1, keepdims=True)|prod(i, axis=0)|max(x, axis=1)|min(x)|mean(x, axis=0)
std(x, correction=1)|var(x, axis=1, correction=1)|cumulative_sum(x, axis=1)|cumulative_sum(v, include_initial=True)
cumulative_prod(x, axis=0)|argmax(x, axis=1)|argmin(x)|count_nonzero(x, axis=0)|sort(x, axis=0)|argsort(x, axis=1)
searchsorted(sort(v), v)|take(x, argsort(v), axis=1)|take_along_axis(x, argsort(x), axis=1)|where(x > 2, x, y)
diff(x, axis=1)|diff(x, axis=0, prepend=y, append=y)|concat([x, y], axis=1)|concat([x, y], axis=None)
stack([x, y], axis=1)|expand_dims(x, axis=1)|flip(x, axis=1)|permute_dims(x, (1, 0))|moveaxis(x, 0, 1)
repeat(x, 2, axis=0)|reshape(x, (3, 2))|roll(x, 1)|roll(x, (1, 1), axis=(0, 1))
squeeze(expand_dims(x, axis=0), axis=0)|tile(x, (2, 1))|tril(x)|triu(x, k=1)|broadcast_to(v, (2, 3))|eye(2, 3, k=1)
linspace(0, 1, 5)|arange(5)|matmul(x, v)|vecdot(x, y)|tensordot(x, y)|linalg.cholesky(s)|linalg.cross(x, y)
linalg.det(s)|linalg.diagonal(s)|linalg.eigvalsh(s)|linalg.inv(s)|linalg.matmul(s, s)|linalg.matrix_norm(s)
linalg.matrix_norm(s, ord=1)|linalg.matrix_power(s, 3)|linalg.matrix_power(s, -1)|linalg.trace(s)
linalg.matrix_rank(s)|linalg.outer(v, v)|linalg.pinv(x)|linalg.solve(s, s)|linalg.svdvals(x)
linalg.vector_norm(x, axis=1)|linalg.vector_norm(x)|linalg.vector_norm(x, axis=0, ord=1, keepdims=True)|fft.fft(x)
fft.ifft(x, n=4)|fft.rfft(x, axis=0)|fft.irfft(fft.rfft(x), n=3)|fft.fftn(x)|fft.ifftn(x, norm="ortho")|fft.rfftn(x)
fft.irfftn(fft.rfftn(x), s=(2, 3), axes=(0, 1))|fft.hfft(x)|fft.ihfft(x, norm="forward")|fft.fftshift(x)
fft.ifftshift(x, axes=1)|fft.fftfreq(5, d=2.0)|fft.rfftfreq(4)
""".strip().replace("\n", "|").split("|")


class Names(dict):
    """Names of a call: those given, and the functions of a module."""

    def __init__(self, module: object, **given: object) -> None:
        super().__init__(given)
        self.module = module

    def __missing__(self, name: str) -> object:
        return getattr(self.module, name)


def evaluated(call: str, module: object, arrays: list[object]) -> object:
    """What a call gives."""
    return eval(call, {}, Names(module, **dict(zip("xyvsi", arrays, strict=True))))  # noqa: S307 (texts of our own)


def test_values_are_numpys_in_both_modes():
    arrays = [X, Y, V, S, I]
    tensors = [tf.constant(a) for a in arrays]

    def compute(*given: tf.Tensor) -> list[object]:
        return [evaluated(call, xp, list(given)) for call in CALLS]

    for call, once, compiled in zip(CALLS, compute(*tensors), tf.function(compute, autograph=False)(*tensors),
                                    strict=True):
        expected = evaluated(call, np, arrays)
        loose = once.dtype in (tf.float32, tf.complex64)
        np.testing.assert_allclose(once, expected, rtol=1e-5 if loose else 1e-12, atol=1e-12, err_msg=call)
        assert once.numpy().tobytes() == compiled.numpy().tobytes(), call


def test_parts_of_factors():
    q, r = xp.linalg.qr(tf.constant(X))
    np.testing.assert_allclose(q @ r, X, atol=1e-12)
    assert xp.linalg.qr(tf.constant(X.T), mode="complete").Q.shape == [3, 3]
    u, s, vh = xp.linalg.svd(tf.constant(X), full_matrices=False)
    np.testing.assert_allclose(u @ tf.linalg.diag(s) @ vh, X, atol=1e-12)
    values, vectors = xp.linalg.eigh(tf.constant(S))
    np.testing.assert_allclose(tf.constant(S) @ vectors, vectors * values, atol=1e-12)
    assert [float(t) for t in xp.linalg.slogdet(tf.constant(S))] == pytest.approx([1.0, np.log(11.0)])


def test_sets():
    x = tf.constant([[3, 1], [3, 2]])
    every = xp.unique_all(x)
    assert [t.numpy().tolist() for t in every] == [[1, 2, 3], [1, 3, 0], [[2, 0], [2, 1]], [1, 1, 2]]
    assert xp.unique_counts(x).counts.numpy().tolist() == [1, 1, 2]
    assert xp.unique_inverse(x).inverse_indices.numpy().tolist() == [[2, 0], [2, 1]]
    assert xp.unique_values(tf.constant([np.nan, np.nan, 1.0])).shape == [3]
    assert xp.isin(x, tf.constant([2]), invert=True).numpy().tolist() == [[True, True], [True, False]]
    assert xp.sort(tf.constant([2, 3, 2]), descending=True).numpy().tolist() == [3, 2, 2]
    assert xp.argsort(tf.constant([2, 3, 2]), descending=True).numpy().tolist() == [1, 0, 2]
    assert [t.numpy().tolist() for t in xp.nonzero(x > 2)] == [[0, 1], [0, 0]]
    assert [t.numpy().tolist() for t in xp.unstack(x, axis=1)] == [[3, 3], [1, 2]]
    assert [t.shape.as_list() for t in xp.broadcast_arrays(x, tf.constant(1))] == [[2, 2], [2, 2]]
    assert xp.searchsorted(tf.constant([3, 1]), tf.constant([2]), sorter=tf.constant([1, 0])).numpy().tolist() == [1]


def test_dtypes_meet_as_the_tables_say():
    info = xp.__array_namespace_info__()
    for kind in ("integral", ("real floating", "complex floating")):
        dtypes = info.dtypes(kind=kind)
        for first, second in itertools.product(dtypes, dtypes):
            expected = np.result_type(np.dtype(first), np.dtype(second)).name
            if expected in dtypes:  # NumPy's uint64 and int64 meet in float64
                assert xp.result_type(dtypes[first], dtypes[second]).name == expected, (first, second)
    with pytest.raises(TypeError, match="There is no dtype"):
        xp.result_type(xp.uint64, xp.int64)
    x = xp.asarray([1], dtype=xp.int8)
    assert [t.dtype for t in (xp.add(x, 1), xp.multiply(xp.ones(1), 2), xp.add(xp.ones(1), 1j))] == [
        xp.int8, xp.float32, xp.complex64]
    assert xp.can_cast(xp.int8, xp.int16) and not xp.can_cast(xp.float64, xp.float32)
    assert xp.sum(x).dtype == xp.int32 and xp.sum(xp.astype(x, xp.uint8)).dtype == xp.uint32


def test_what_is_made():
    assert [xp.asarray(v).dtype.name for v in (True, 1, 1.0, 1j, [1, 2.5], np.ones(1))] == [
        "bool", "int32", "float32", "complex64", "float32", "float64"]
    assert xp.asarray([xp.asarray(1), xp.asarray(2)]).numpy().tolist() == [1, 2]
    assert xp.asarray(2**40, dtype=xp.int64).numpy() == 2**40
    x = xp.ones((2, 3), dtype=xp.float64, device=xp.ones(1).device)
    like = [xp.zeros_like(x), xp.empty_like(x), xp.full_like(x, 3), xp.ones_like(x, dtype=xp.int8)]
    assert [t.dtype for t in like] == [xp.float64, xp.float64, xp.float64, xp.int8]
    assert xp.asarray(x) is x and xp.asarray(x, copy=True) is not x
    assert xp.from_dlpack(np.ones(2)).dtype == xp.float64 and xp.from_dlpack(x) is x
    assert xp.astype(x, xp.float64, copy=False) is x
    assert xp.finfo(xp.complex64).dtype == xp.float32 and xp.iinfo(xp.uint8).max == 255
    assert xp.broadcast_shapes((2, 1), (1, 3)) == (2, 3)
    assert [t.shape.as_list() for t in xp.meshgrid(xp.arange(2), xp.arange(3), indexing="ij")] == [[2, 3], [2, 3]]
    info = xp.__array_namespace_info__()
    assert info.default_device() in info.devices() and info.capabilities()["boolean indexing"]


def test_what_tensors_have_for_it():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert x.__array_namespace__() is xp and x.__array_namespace__(api_version="2022.12") is xp
    assert x.mT.numpy().tolist() == [[1.0, 3.0], [2.0, 4.0]] and x.to_device(x.device).device == x.device
    assert tf.function(lambda x: x.__array_namespace__().sum(x.mT, axis=0))(x).numpy().tolist() == [3.0, 7.0]
    with pytest.raises(ValueError, match="2024.12"):
        x.__array_namespace__(api_version="2100.01")
    with pytest.raises(ValueError, match="no matrices"):
        _ = x[0].mT
    with pytest.raises(ValueError, match="streams"):
        x.to_device(x.device, stream=1)


def test_what_the_conformance_tests_found():
    x = xp.asarray([1, 3])
    assert xp.bitwise_left_shift(x, xp.asarray([32, 1])).numpy().tolist() == [0, 6]
    assert xp.bitwise_right_shift(xp.asarray([200], dtype=xp.uint8), 8).numpy().tolist() == [0]
    assert xp.bitwise_right_shift(xp.asarray([-8], dtype=xp.int8), 9).numpy().tolist() == [-1]
    values, counts = xp.unique_counts(xp.asarray([1 + 2j, 1j, 1 + 2j]))
    assert values.numpy().tolist() == [1j, 1 + 2j] and counts.numpy().tolist() == [1, 2]
    with pytest.raises(ValueError, match="sizes differ"):
        xp.vecdot(xp.ones((2, 3)), xp.ones((2, 1)))
    with pytest.raises(IndexError, match="out of bounds"):
        xp.expand_dims(x, axis=3)
    assert xp.repeat(xp.zeros(0), xp.asarray([], dtype=xp.int8)).shape == [0]
    assert xp.sum(xp.eye(2, k=2**63)) == 0 and xp.sum(xp.eye(2, k=-2**70)) == 0
    cosh = xp.cosh(xp.asarray([complex(np.inf, np.nan), complex(0, np.inf)]))
    np.testing.assert_array_equal(xp.real(cosh), [np.inf, np.nan])
    np.testing.assert_array_equal(xp.imag(cosh), [np.nan, 0.0])
    assert not xp.any(xp.signbit(xp.sign(xp.asarray([-0.0, 0.0]))))
    zeros = xp.remainder(xp.asarray([0.0, -0.0]), xp.asarray([-1.0, 1.0]))
    assert xp.signbit(zeros).numpy().tolist() == [True, False]


def test_gradients():
    x = tf.constant(S)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = xp.sum(xp.linalg.inv(x)) + xp.linalg.vector_norm(x) + xp.sum(xp.logaddexp(x, x))
    inverse = np.linalg.inv(S)
    expected = -np.outer(inverse.T.sum(1), inverse.sum(1)) + S / np.linalg.norm(S) + 1
    np.testing.assert_allclose(tape.gradient(y, x), expected, rtol=1e-10)


@pytest.mark.parametrize("call, text", [
    ("add(1, 2)", "must be a tensor"), ("sin([1.0])", "Expected a tensor"),
    ("asarray([1], copy=False)", "a copy is needed"),
    ("squeeze(x, axis=0)", "have size 1"), ("take(x, argsort(v))", "axis must be named"),
    ("cumulative_sum(x)", "axis must be named"), ("isdtype(float32, 'real')", "kind must be"),
    ("nonzero(sum(x))", "no places"), ("matmul(x, sum(x))", "without axes"), ("linalg.cross(s, s)", "3 numbers"),
    ("linalg.qr(x, mode='full')", "mode must be"), ("linalg.matrix_norm(s, ord=3)", "ord"),
    ("fft.fft(x, norm='half')", "norm must be"), ("from_dlpack(array, copy=False)", "a copy is needed")])
def test_what_is_refused(call, text):
    names = Names(xp, x=tf.constant(X), v=tf.constant(V), s=tf.constant(S), array=np.ones(2))
    with pytest.raises((TypeError, ValueError), match=text):
        eval(call, {}, names)  # noqa: S307 (texts of our own)
