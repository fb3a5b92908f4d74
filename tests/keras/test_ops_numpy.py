"""`tf.keras.ops` in float64 against NumPy and SciPy in float64, and the gradients of a sample against differences."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.ndimage
import scipy.special

import twofold as tf

ops = tf.keras.ops
RNG = np.random.RandomState(7)
A, B, V = RNG.uniform(-2, 2, (3, 4)), RNG.uniform(-2, 2, (3, 4)), RNG.uniform(-2, 2, 6)
POSITIVE, SHARE, INTS = np.abs(A) + 0.1, A / 2.5, RNG.randint(-6, 9, (3, 4))
HOLES = np.where(A > 1, np.nan, A)
STRANGE = np.array([1.0, -np.inf, np.inf, np.nan, -0.0])

SAME_NAME = [
    ((A,), "absolute abs ceil floor trunc cos cosh sin sinh tan tanh arctan arcsinh exp exp2 expm1 square sign signbit "
          "negative fabs sinc i0 deg2rad rad2deg cbrt round sum mean std var max min prod amax amin ptp median cumsum "
          "cumprod sort argsort argmax argmin ravel transpose fliplr flipud count_nonzero corrcoef rot90 tril triu "
          "diagonal trace diff nan_to_num reciprocal isreal real imag conj all any size angle"),
    ((POSITIVE,), "log log10 log1p log2 sqrt"), ((POSITIVE + 1,), "arccosh"), ((SHARE,), "arccos arcsin arctanh"),
    ((A, B), "add subtract multiply divide maximum minimum equal less greater_equal arctan2 hypot logaddexp logaddexp2 "
            "floor_divide mod fmod heaviside fmax fmin vdot inner outer kron append isclose allclose logical_xor "
            "not_equal nextafter tensordot"),
    ((POSITIVE, B), "power"), ((INTS, INTS[::-1]), "bitwise_and bitwise_or bitwise_xor gcd lcm"),
    ((INTS, INTS[::-1] * 2 + 1), "mod floor_divide fmod"),
    ((HOLES,), "nansum nanmean nanmax nanmin nanprod nanvar nanstd nanmedian nancumsum nancumprod isnan nanargmax "
              "nanargmin"),
    ((STRANGE,), "isfinite isinf isnan isneginf isposinf signbit nan_to_num sign"),
    ((STRANGE, STRANGE[::-1]), "fmax fmin hypot isclose equal add"),
    ((V,), "vander diag diagflat flip histogram unique trapezoid nonzero"), ((INTS,), "bitwise_invert unique sign")]


def near(actual, expected):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    if expected.dtype.kind in "fc":
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-13)
    else:
        np.testing.assert_array_equal(actual, expected)


def listed(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "args"), [pytest.param(name, args, id=f"{name}-{n}")
                                            for n, (args, names) in enumerate(SAME_NAME)
                                            for name in names.split()])
def test_numpy(name, args):
    actual = listed(getattr(ops, name)(*args))
    with np.errstate(all="ignore"):
        expected = listed(getattr(np, name)(*args))
    assert len(actual) == len(expected)
    for x, y in zip(actual, expected, strict=True):
        near(x, y)


@pytest.mark.parametrize(("name", "args", "settings"), [
    ("quantile", (A, np.array([0.1, 0.5])), {"axis": 1}), ("percentile", (A, 30), {"method": "midpoint"}),
    ("quantile", (A, 0.33), {"method": "higher", "keepdims": True}), ("nanquantile", (HOLES, 0.4), {"axis": 1}),
    ("average", (A,), {"weights": POSITIVE, "axis": 0}), ("linspace", (0.3, 7.7, 9), {}),
    ("logspace", (0.1, 2, 5), {"dtype": "float64"}), ("geomspace", (2.0, 9.0, 4), {"dtype": "float64"}),
    ("rot90", (A,), {"k": 2}), ("eye", (2, 4), {"k": 1}), ("vstack", ([V, V],), {}), ("dstack", ([V, V],), {}),
    ("prod", (INTS,), {"axis": 1, "dtype": "float64"}), ("pad", (A, 1), {}), ("pad", (A, (2, 1)), {}),
    ("pad", (A, ((1, 0), (0, 2))), {"mode": "reflect"}), ("roll", (A, (1, 2)), {"axis": (0, 1)}),
    ("moveaxis", (A[..., None], 2, 0), {}), ("take", (A, [[0, -1]]), {"axis": 1}), ("round", (A,), {"decimals": 2}),
    ("round", (INTS * 10 + 7,), {"decimals": -1}), ("searchsorted", (np.sort(V), A), {"side": "right"}),
    ("digitize", (A, [-1.0, 0.0, 1.0]), {}), ("isin", (INTS, [1, 2, 3]), {"invert": True}),
    ("bincount", (np.abs(INTS).ravel(),), {"minlength": 20}), ("histogram", (A,), {"bins": 4, "range": (-1, 2)}),
    ("correlate", (V, V[:3]), {"mode": "full"}), ("correlate", (V[:2], V), {"mode": "full"}),
    ("correlate", (V[:3], V), {"mode": "same"}), ("correlate", (V[:4], V), {"mode": "valid"}),
    ("cross", (A[:, :3], B[:, :3]), {}), ("tri", (3, 5), {"k": -1}), ("diff", (A,), {"n": 2, "axis": 0}),
    ("unravel_index", (np.array([3, 11]), (3, 4)), {}), ("array_split", (V, 4), {}), ("max", (A,), {"initial": 5.0}),
    ("split", (V, [2, 3]), {}), ("meshgrid", (V, A[0]), {"indexing": "ij"}), ("tile", (A, (2, 1, 2)), {}),
    ("repeat", (A, [1, 0, 2, 3]), {"axis": 1}), ("take_along_axis", (A, np.argsort(B, 1)), {"axis": 1}),
    ("trapezoid", (A,), {"x": np.sort(V)[:4]}), ("where", (A > 0, A, B), {}),
    ("select", ([A > 1, B > 0], [A, B], 0.5), {}),
    ("nan_to_num", (STRANGE,), {"nan": 3.0, "posinf": 8.0}), ("ldexp", (A, np.array([1, -3, 0, 40])), {}),
    ("unique", (INTS % 3,), {"axis": 0, "return_index": True, "return_inverse": True, "return_counts": True}),
    ("unique", (INTS % 3,), {"return_index": True, "return_inverse": True, "return_counts": True}),
    ("kron", (A, V), {}), ("clip", (A, -1, B), {}), ("argsort", (INTS,), {"axis": 0, }),
    ("view", (A,), {"dtype": "int64"}), ("matmul", (A, B.T), {}), ("dot", (A, B.T), {}),
    ("einsum", ("ij,ij->i", A, B), {}),
], ids=lambda value: value if isinstance(value, str) else "")
def test_numpy_with_settings(name, args, settings):
    actual = getattr(ops, name)(*args, **settings)
    if name == "view":
        expected = A.view("int64")
    elif name == "argsort":
        expected = np.argsort(INTS, 0, kind="stable")
    else:
        expected = getattr(np, name)(*args, **settings)
    actual = [tf.cast(x, tf.float64) if name == "eye" or name == "tri" else x for x in listed(actual)]
    for x, y in zip(actual, listed(expected), strict=True):
        if name in ("linspace",):
            np.testing.assert_allclose(x, y, rtol=1e-6)  # Python's numbers are of float32
        else:
            near(x, y)


def test_matrices():
    square = RNG.uniform(-1, 1, (2, 4, 4))
    definite = square @ np.swapaxes(square, 1, 2) + np.eye(4)
    rhs = RNG.uniform(-1, 1, (2, 4, 3))
    near(ops.det(square), np.linalg.det(square))
    near(ops.inv(definite), np.linalg.inv(definite))
    near(ops.solve(square, rhs), np.linalg.solve(square, rhs))
    near(ops.cholesky(definite), np.linalg.cholesky(definite))
    near(ops.cholesky(definite, upper=True), np.swapaxes(np.linalg.cholesky(definite), 1, 2))
    near(ops.cholesky_inverse(np.linalg.cholesky(definite)), np.linalg.inv(definite))
    near(ops.cholesky_inverse(np.swapaxes(np.linalg.cholesky(definite), 1, 2), upper=True), np.linalg.inv(definite))
    near(ops.eigh(definite)[0], np.linalg.eigh(definite)[0])
    near(ops.pinv(A), np.linalg.pinv(A))
    near(ops.logdet(definite), np.linalg.slogdet(definite)[1])
    for x, y in zip(ops.slogdet(square), np.linalg.slogdet(square), strict=True):
        near(x, y)
    near(ops.solve_triangular(definite[0], rhs[0]), scipy.linalg.solve_triangular(definite[0], rhs[0]))
    near(ops.solve_triangular(definite[0], rhs[0, :, 0], lower=True),
         scipy.linalg.solve_triangular(definite[0], rhs[0, :, 0], lower=True))
    near(ops.lstsq(A.T, B.T[:, 0]), np.linalg.lstsq(A.T, B.T[:, 0], rcond=None)[0])
    for order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        near(ops.norm(A, order), np.linalg.norm(A, order))
    for order in (None, 0, 1, 2, 3, np.inf, -np.inf, -2):
        near(ops.norm(A, order, axis=1, keepdims=True), np.linalg.norm(A, order, axis=1, keepdims=True))
    q, r = ops.qr(A.T, mode="complete")
    near(q @ tf.transpose(q), np.eye(4))
    near(q @ r, A.T)
    u, s, vh = ops.svd(A)
    assert u.shape == (3, 3) and vh.shape == (4, 4)
    near((u * s) @ vh[:3], A)
    values, vectors = ops.eig(square)
    near(tf.cast(square, tf.complex128) @ vectors, vectors * values[:, tf.newaxis])


def test_special_functions_and_distances():
    near(ops.erf(A), scipy.special.erf(A))
    near(ops.erfc(A), scipy.special.erfc(A))
    near(ops.erfinv(SHARE), scipy.special.erfinv(SHARE))
    near(ops.rsqrt(POSITIVE), POSITIVE ** -0.5)
    near(ops.logsumexp(A, axis=1), scipy.special.logsumexp(A, axis=1))
    near(ops.i0(np.array([19.9, 20.1, 300.0, 700.0])), scipy.special.i0([19.9, 20.1, 300.0, 700.0]))
    apart = A[:, None] - B[None]
    near(ops.cdist(A, B), np.sqrt((apart ** 2).sum(-1)))
    near(ops.segment_sum(A, [1, 0, 1], 3), np.stack([A[1], A[0] + A[2], A[0] * 0]))
    near(ops.softmax(A, None), scipy.special.softmax(A))


def test_transforms():
    signal = RNG.uniform(-1, 1, (2, 60))
    for actual, expected in ((ops.fft((A, B)), np.fft.fft(A + 1j * B)), (ops.fft2((A, B)), np.fft.fft2(A + 1j * B)),
                            (ops.ifft2((A, B)), np.fft.ifft2(A + 1j * B)), (ops.rfft(A, 6), np.fft.rfft(A, 6))):
        near(actual[0], expected.real)
        near(actual[1], expected.imag)
    near(ops.irfft((A, B), 5), np.fft.irfft(A + 1j * B, 5))
    for settings in ((8, 2, 8), (8, 3, 10), (7, 2, 9)):
        again = ops.istft(ops.stft(signal, *settings), *settings, length=60)
        np.testing.assert_allclose(again[:, 2:-4], signal[:, 2:-4], rtol=1e-9, atol=1e-9)
    near(ops.view_as_real(ops.view_as_complex(A[:, :2])), A[:, :2])


def test_images():
    image = RNG.uniform(0, 1, (6, 8, 3))
    places = RNG.uniform(-2, 9, (2, 30))
    for order in (0, 1):
        near(ops.image.map_coordinates(image[..., 0], places, order, "reflect"),
             scipy.ndimage.map_coordinates(image[..., 0], places, order=order, mode="reflect"))
    height, width = (np.exp(-(np.arange(n) - (n - 1) / 2) ** 2 / (2 * s * s)) for n, s in ((5, 0.7), (3, 1.3)))
    kernel = (height / height.sum())[:, None] * (width / width.sum())
    blurred = np.stack([scipy.ndimage.correlate(image[..., c], kernel, mode="constant") for c in range(3)], -1)
    np.testing.assert_allclose(ops.image.gaussian_blur(image, (5, 3), (0.7, 1.3)), blurred, rtol=1e-5)
    image = image.astype(np.float32)
    back = tf.transpose(ops.image.resize(image.transpose(2, 0, 1), (4, 5), data_format="channels_first"), [1, 2, 0])
    near(back, tf.keras.layers.Resizing(4, 5)(image))


def test_windows_and_attention():
    image = RNG.uniform(-1, 1, (2, 3, 5, 6))
    columns = ops.unfold(image, (2, 3), padding=1, stride=(2, 1))
    padded = np.pad(image, [(0, 0), (0, 0), (1, 1), (1, 1)])
    expected = np.lib.stride_tricks.sliding_window_view(padded, (2, 3), (2, 3))[:, :, ::2]
    near(columns, expected.transpose(0, 1, 4, 5, 2, 3).reshape(2, 18, -1))
    ones = ops.fold(ops.unfold(np.ones_like(image), (2, 3)), (5, 6), (2, 3))
    near(ops.fold(ops.unfold(image, (2, 3)), (5, 6), (2, 3)), image * ones.numpy())
    q, k = RNG.uniform(-1, 1, (2, 3, 4, 5)), RNG.uniform(-1, 1, (2, 6, 4, 5))
    scores = np.einsum("bthd,bshd->bhts", q, k) / np.sqrt(5)
    near(ops.dot_product_attention(q, k, k), np.einsum("bhts,bshd->bthd", scipy.special.softmax(scores, -1), k))


DIFFERENTIABLE = [
    ("sinc", (A,)), ("logaddexp", (A, B)), ("hypot", (A, B)), ("power", (POSITIVE, B)), ("std", (A,)),
    ("median", (V,)), ("quantile", (V, 0.3)), ("nanmean", (HOLES,)), ("cumprod", (A,)), ("trapezoid", (A,)),
    ("cross", (A[:, :3], B[:, :3])), ("kron", (A, B)), ("correlate", (V, V[:3])), ("take_along_axis", (A, INTS % 3, 0)),
    ("cdist", (A, B)), ("logsumexp", (A,)), ("segment_max", (A, [0, 1, 0])), ("norm", (A,)), ("det", (A[:, :3],)),
    ("solve", (A[:, :3], B)), ("unfold", (A.reshape(1, 1, 3, 4), 2)), ("layer_normalization", (A,)), ("i0", (A,)),
    ("average_pool", (A.reshape(1, 4, 3), 2)), ("softmax", (A,)), ("gelu", (A,)), ("normalize", (A,)),
    ("slice_update", (A, [0, 1], B[:2, :2])), ("associative_scan", (tf.multiply, A)), ("fmax", (A, B)),
    ("clip", (A, -1.0, 1.0)), ("corrcoef", (A,)), ("dot_product_attention", (A.reshape(1, 3, 2, 2),) * 3),
    ("unique", (V,)), ("roll", (A, 1)), ("tril", (A,)), ("where", (A > 0, A, B)), ("erfinv", (SHARE,))]


@pytest.mark.parametrize(("name", "args"), [pytest.param(*case, id=case[0]) for case in DIFFERENTIABLE])
def test_gradients_are_differences(name, args):
    """The slope along a random direction, of all floating arguments at once."""
    given = [np.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
    floats = [n for n, a in enumerate(given) if isinstance(a, np.ndarray) and a.dtype == np.float64]
    directions = {n: np.random.RandomState(n).uniform(-1, 1, given[n].shape) for n in floats}
    weights: dict[tuple, np.ndarray] = {}

    def value(step, tape=None):
        used = [tf.constant(a + step * directions[n]) if n in floats else a for n, a in enumerate(given)]
        if tape is not None:
            tape.watch([used[n] for n in floats])
        y = getattr(ops, name)(*used)
        w = weights.setdefault(tuple(y.shape), np.random.RandomState(3).uniform(0.5, 1.5, y.shape))
        return tf.reduce_sum(y * w), [used[n] for n in floats]

    with tf.GradientTape() as tape:
        total, inputs = value(0.0, tape)
    gradients = tape.gradient(total, inputs)
    slope = sum(float(tf.reduce_sum(g * directions[n])) for n, g in zip(floats, gradients, strict=True))
    step = 1e-6
    expected = float(value(step)[0] - value(-step)[0]) / (2 * step)
    assert slope == pytest.approx(expected, rel=2e-7, abs=1e-7)
