"""`tf.raw_ops`: TensorFlow's names of arguments and results, and what the functions give that they stand for."""

import inspect
import json
import pathlib

import numpy as np
import pytest

import twofold as tf

RECORDED = json.loads(pathlib.Path(__file__).with_name("raw_ops.json").read_text())["ops"]
raw = tf.raw_ops


def written(p):
    """A parameter as the record has it."""
    if p.default is p.empty:
        return p.name
    is_dtype = isinstance(p.default, (str, tf.DType)) and p.default in ("uint8", "int32", "int64", "uint64", "float32",
                                                                        "complex64", "string")
    return f"{p.name}=tf.{tf.as_dtype(p.default).name}" if is_dtype else f"{p.name}={p.default!r}"


def test_arguments_and_results_are_tensorflows():
    for name in raw.__all__:
        op = getattr(raw, name)
        parameters = inspect.signature(op).parameters.values()
        assert all(p.kind is p.KEYWORD_ONLY for p in parameters)
        arguments, _, results = RECORDED[name].partition(" -> ")
        assert ", ".join(map(written, parameters)) == arguments, name
        row = raw.__complete__._row(name)
        assert ", ".join(row.results._fields if row.results else ()) == results, name


def test_unknown_ones_say_so():
    with pytest.raises(AttributeError, match=r"tf.raw_ops.XlaSend is not among"):
        raw.XlaSend  # noqa: B018


X = np.float32([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]])
Y = np.float32([[2.0, 1.0, -1.0], [0.5, 4.0, 3.0]])
SQUARE = np.float32([[4.0, 1.0], [1.0, 3.0]])
IMAGE = np.arange(32, dtype=np.float32).reshape(1, 4, 4, 2)
FILTER = np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2)
IDS, BITS, ROW = np.int32([1, 0]), np.int32([12, 10]), np.float32([1, 3, 2, 3])

#: the raw op with its arguments, and the function that it stands for
SAMPLE = {
    "MatMul": ({"a": X, "b": Y, "transpose_b": True}, lambda: tf.matmul(X, Y, transpose_b=True)),
    "BatchMatMulV2": ({"x": X, "y": Y, "adj_x": True}, lambda: tf.matmul(X, Y, adjoint_a=True)),
    "AddV2": ({"x": X, "y": Y}, lambda: X + Y), "Sub": ({"x": X, "y": Y}, lambda: X - Y),
    "RealDiv": ({"x": X, "y": Y}, lambda: X / Y), "Maximum": ({"x": X, "y": Y}, lambda: np.maximum(X, Y)),
    "FloorMod": ({"x": X, "y": Y}, lambda: tf.math.floormod(X, Y)), "Sin": ({"x": X}, lambda: tf.sin(X)),
    "Atan2": ({"y": X, "x": Y}, lambda: tf.atan2(X, Y)), "Zeta": (
        {"x": Y + 3, "q": Y + 2}, lambda: tf.math.zeta(Y + 3, Y + 2)),
    "BesselJ0": ({"x": X}, lambda: tf.math.special.bessel_j0(X)), "NextAfter": (
        {"x1": X, "x2": Y}, lambda: np.nextafter(X, Y)),
    "LessEqual": ({"x": X, "y": Y}, lambda: X <= Y), "BitwiseXor": (
        {"x": BITS, "y": BITS[::-1]}, lambda: BITS ^ BITS[::-1]),
    "Relu": ({"features": X}, lambda: np.maximum(X, 0)), "ReluGrad": (
        {"gradients": Y, "features": X}, lambda: np.where(X > 0, Y, 0)),
    "LeakyReluGrad": ({"gradients": Y, "features": X, "alpha": 0.5}, lambda: np.where(X > 0, Y, Y * np.float32(0.5))),
    "SigmoidGrad": ({"y": X, "dy": Y}, lambda: Y * X * (1 - X)), "TanhGrad": (
        {"y": X, "dy": Y}, lambda: Y * (1 - X * X)),
    "Sum": ({"input": X, "axis": [1], "keep_dims": True}, lambda: tf.reduce_sum(X, 1, True)),
    "Any": ({"input": X > 2, "axis": 0}, lambda: (X > 2).any(0)), "ArgMax": (
        {"input": X, "dimension": 1, "output_type": tf.int32}, lambda: X.argmax(1).astype(np.int32)),
    "Cumsum": ({"x": X, "axis": 1, "exclusive": True}, lambda: tf.cumsum(X, 1, exclusive=True)),
    "Reshape": ({"tensor": X, "shape": [3, 2]}, lambda: X.reshape(3, 2)), "Squeeze": (
        {"input": X[None]}, lambda: X), "ConcatV2": ({"values": [X, Y], "axis": 1}, lambda: np.concatenate([X, Y], 1)),
    "GatherV2": ({"params": X, "indices": IDS, "axis": 1}, lambda: X[:, IDS]), "Split": (
        {"axis": 1, "value": X, "num_split": 3}, lambda: np.split(X, 3, 1)),
    "StridedSlice": ({"input": X, "begin": [0, 1], "end": [2, 3], "strides": [1, 1], "shrink_axis_mask": 1},
                     lambda: X[0, 1:3]),
    "SelectV2": ({"condition": X > 0, "t": X, "e": Y}, lambda: np.where(X > 0, X, Y)), "Cast": (
        {"x": X, "DstT": tf.int32}, lambda: X.astype(np.int32)),
    "Softmax": ({"logits": X}, lambda: tf.nn.softmax(X)), "Conv2D": (
        {"input": IMAGE, "filter": FILTER, "strides": [1, 2, 2, 1], "padding": "EXPLICIT",
             "explicit_paddings": [0, 0, 1, 0, 0, 1, 0, 0]},
        lambda: tf.nn.conv2d(IMAGE, FILTER, 2, [[0, 0], [1, 0], [0, 1], [0, 0]])),
    "MaxPool": ({"input": IMAGE, "ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"},
                lambda: tf.nn.max_pool2d(IMAGE, 2, 2, "VALID")),
    "TopKV2": ({"input": X, "k": 2}, lambda: tf.math.top_k(X, 2)), "LowerBound": (
        {"sorted_inputs": [[1.0, 2.0, 3.0]], "values": [[2.0, 4.0]]}, lambda: np.int32([[1, 3]])),
    "UnsortedSegmentSum": ({"data": X, "segment_ids": IDS, "num_segments": 2}, lambda: X[::-1]),
    "TensorScatterUpdate": ({"tensor": ROW, "indices": [[1]], "updates": [9.0]}, lambda: np.float32([1, 9, 2, 3])),
    "UniqueWithCounts": ({"x": ROW}, lambda: tf.unique_with_counts(ROW)), "Cholesky": (
        {"input": SQUARE}, lambda: tf.linalg.cholesky(SQUARE)),
    "Einsum": ({"inputs": [X, Y], "equation": "ij,ij->i"}, lambda: tf.einsum("ij,ij->i", X, Y)), "RFFT": (
        {"input": X, "fft_length": [3]}, lambda: tf.signal.rfft(X, [3])),
    "RGBToHSV": ({"images": np.abs(X)}, lambda: tf.image.rgb_to_hsv(np.abs(X))), "StatelessRandomNormal": (
        {"shape": [3], "seed": [1, 2]}, lambda: tf.random.stateless_normal([3], [1, 2])),
}


def test_a_sample_gives_what_its_functions_give():
    def run():
        return {name: getattr(raw, name)(**arguments) for name, (arguments, _) in SAMPLE.items()}
    for mode in (run, tf.function(run)):
        for name, result in mode().items():
            results, expected = tf.nest.flatten(result), tf.nest.flatten(SAMPLE[name][1]())
            assert len(results) == len(expected), name
            for one, other in zip(results, expected, strict=True):
                np.testing.assert_array_equal(one.numpy(), np.asarray(other), err_msg=name, strict=True)


def test_values_alone_of_decompositions():
    np.testing.assert_array_equal(raw.Svd(input=SQUARE, compute_uv=False).s, tf.linalg.svd(SQUARE, compute_uv=False))
    values, vectors = raw.SelfAdjointEigV2(input=SQUARE, compute_v=False)
    np.testing.assert_array_equal(values, tf.linalg.eigvalsh(SQUARE))
    assert tf.size(vectors) == 0


def test_what_a_row_cannot_do_is_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="Truncate must be False"):
        raw.Cast(x=SQUARE, DstT=tf.int32, Truncate=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="pass Tcomplex=tf.complex128"):
        raw.RFFT(input=X.astype(np.float64), fft_length=[3])
    with pytest.raises(tf.errors.InvalidArgumentError, match="BatchMatMulV2"):
        raw.MatMul(a=X[None], b=Y)
    with pytest.raises(TypeError):
        raw.Sin(X)


@pytest.mark.parametrize("s0, s1, r0, r1", [
    ([2, 3], [3], [], [0]), ([1], [4], [0], []), ([1], [1], [0], [0]), ([2, 1, 3], [4, 1], [1], [0, 2]),
    ([1, 2], [1, 1], [0], [0, 1]), ([], [1], [0], [0])])
def test_axes_of_gradients(s0, s1, r0, r1):  # TensorFlow's results
    found = raw.BroadcastGradientArgs(s0=tf.constant(s0, tf.int32), s1=tf.constant(s1, tf.int32))
    assert [r.numpy().tolist() for r in found] == [r0, r1]


def test_axes_of_gradients_follow_of_shapes():
    @tf.function
    def f(x, y):
        r0, _ = raw.BroadcastGradientArgs(s0=tf.shape(x), s1=tf.shape(y))
        return tf.reduce_sum(x * y, axis=r0)
    assert f(tf.ones([3]), tf.ones([2, 3])).numpy().tolist() == [2.0] * 3


def test_gradient_of_gamma_draws():  # TensorFlow's results
    found = raw.RandomGammaGrad(alpha=tf.constant([0.5, 2.0, 30.0]), sample=tf.constant([0.3, 1.5, 25.0]))
    np.testing.assert_allclose(found, [1.009802, 0.936639, 0.9166862], rtol=3e-6)


def test_layers_of_lstm_as_cudnn_has_them():
    rng, size, widths = np.random.RandomState(0), 3, (2, 3)
    x, started, states = [rng.randn(*shape).astype(np.float32) for shape in ((5, 4, 2), (2, 4, size), (2, 4, size))]
    matrices = [[rng.randn(4 * size, n).astype(np.float32) for n in (width, size)] for width in widths]
    biases = rng.randn(2, 2, 4 * size).astype(np.float32)
    params = np.concatenate([m.ravel() for pair in matrices for m in pair] + [biases.ravel()])
    made = raw.CudnnRNN(input=x, input_h=started, input_c=states, params=params, dropout=0.0)

    def sigmoid(z):
        return 1 / (1 + np.exp(-z))
    for (w, r), bias, h, c, told, state in zip(matrices, biases, started, states, made.output_h, made.output_c,
                                               strict=True):
        outs = []
        for row in x:
            i, f, g, o = np.split(row @ w.T + h @ r.T + bias.sum(0), 4, 1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            outs.append(h)
        x = np.stack(outs)
        np.testing.assert_allclose(told, h, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(state, c, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(made.output, x, rtol=1e-5, atol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="rnn_mode must be 'lstm'"):
        raw.CudnnRNN(input=x, input_h=started, input_c=states, params=params, rnn_mode="gru")
