"""Calls of functions of `keras.ops` with all their settings, in the form of `ops_cases.py`."""

from __future__ import annotations

import numpy as np

from .ops_cases import INF, NAN, numbers, x32

A, B, C = x32(3, 4), x32(2, 3, 4, seed=1), x32(5, seed=2)
I23 = numbers((2, 3), "int32")
HOLES = np.array([[1.0, NAN, 3.0, -2.0], [NAN, NAN, NAN, NAN], [0.5, 4.0, NAN, -1.5]], np.float32)
STRANGE = np.array([[1.0, NAN, INF], [-2.0, NAN, -INF]], np.float32)
SPD = (lambda m: m @ m.swapaxes(-1, -2) + np.eye(3, dtype=np.float32))(x32(2, 3, 3, seed=3))
SQUARE = x32(2, 3, 3, seed=4)
IMAGE = x32(2, 6, 8, 3, seed=5, low=0.0, high=1.0)
SIGNAL = x32(2, 40, seed=6)


def over(name, *args, x=B, **more):
    """A reduction, over several choices of axes."""
    return [(name, (x, *args), {"axis": axis, "keepdims": keep, **more})
            for axis, keep in ((None, False), (1, True), ((0, 2), False), (-1, False))]


def reductions():
    cases = []
    for name in ("sum", "mean", "std", "var", "max", "min", "prod", "amax", "amin", "all", "any", "logsumexp",
                 "median"):
        cases += over(name)
    for name in ("nansum", "nanmean", "nanmax", "nanmin", "nanprod", "nanvar", "nanstd", "nanmedian"):
        cases += [(name, (HOLES,), {"axis": a}) for a in (None, 0, 1)]
    for name in ("nanargmax", "nanargmin"):
        cases += [(name, (HOLES[[0, 2]],), {"axis": a}) for a in (None, 1)]
    for name in ("argmax", "argmin"):
        cases += [(name, (B,), {"axis": a, "keepdims": k}) for a in (None, 0, -1) for k in (False, True)]
    for name in ("cumsum", "cumprod"):
        cases += [(name, (B,), {"axis": a}) for a in (None, 0, -1)] + [(name, (I23,), {"axis": 1, "dtype": "float32"})]
    cases += [(name, (HOLES[0],), {}) for name in ("nancumsum", "nancumprod")]
    for method in ("linear", "lower", "higher", "nearest"):
        cases += [("quantile", (B, 0.3), {"method": method}), ("percentile", (B, 30), {"method": method})]
    cases += over("quantile", np.array([0.1, 0.7], np.float32)) + [("nanquantile", (HOLES[[0]], 0.4), {"axis": 1}),
                                                                  ("nanpercentile", (HOLES[[0]], 40), {"axis": 1})]
    cases += [("average", (A,), {"axis": 1, "weights": np.array([1.0, 2.0, 3.0, 4.0], np.float32)}),
              ("average", (A,), {"weights": np.abs(A)}), ("average", (A,), {"axis": 0}),
              ("count_nonzero", (I23,), {"axis": 0}), ("max", (A,), {"initial": 1.0}), ("min", (A,), {"initial": -1.0}),
              ("ptp", (A,), {"axis": 1, "keepdims": True}),
              ("trapezoid", (A,), {"dx": 0.5}), ("trapezoid", (A,), {"axis": 0}),
              ("trapezoid", (C,), {"x": np.sort(x32(5, seed=9))})]
    return cases


def shapes():
    cases = [(name, (B,), settings) for name, settings in [
        ("reshape", {"newshape": (4, -1)}), ("transpose", {"axes": (2, 0, 1)}), ("transpose", {}), ("ravel", {}),
        ("squeeze", {}), ("expand_dims", {"axis": 1}), ("expand_dims", {"axis": (0, -1)}),
        ("moveaxis", {"source": 0, "destination": -1}), ("moveaxis", {"source": (0, 1), "destination": (2, 0)}),
        ("swapaxes", {"axis1": 0, "axis2": 2}), ("flip", {"axis": 1}), ("flip", {"axis": (0, 2)}), ("fliplr", {}),
        ("flipud", {}), ("roll", {"shift": 1}), ("roll", {"shift": (1, -2), "axis": (0, 2)}),
        ("tile", {"repeats": 2}), ("tile", {"repeats": (2, 1, 1, 3)}), ("repeat", {"repeats": 2}),
        ("repeat", {"repeats": 2, "axis": 1}), ("repeat", {"repeats": np.array([1, 0, 2]), "axis": 1}),
        ("diagonal", {"axis1": 1, "axis2": 2}), ("diagonal", {"offset": 1}), ("trace", {"axis1": 1, "axis2": 2}),
        ("tril", {}), ("triu", {"k": 1}), ("tril", {"k": -1}), ("diff", {"n": 2}), ("diff", {"axis": 0}),
        ("take", {"indices": np.array([1, -1]), "axis": 1}), ("take", {"indices": np.array([[5, 23]])}),
        ("pad", {"pad_width": 1}), ("pad", {"pad_width": ((1, 0), (0, 2), (1, 1)), "constant_values": 3.0}),
        ("pad", {"pad_width": ((0, 1), (1, 0), (1, 2)), "mode": "reflect"}),
        ("pad", {"pad_width": ((0, 1), (1, 0), (1, 2)), "mode": "symmetric"}), ("sort", {"axis": 0}),
        ("argsort", {"axis": 1}), ("unstack", {"axis": 1}), ("unstack", {}), ("clip", {"x_min": -1, "x_max": 0.5}),
        ("round", {"decimals": 1}), ("split", {"indices_or_sections": 2, "axis": 2}),
        ("split", {"indices_or_sections": [1, 3], "axis": 2}), ("array_split", {"indices_or_sections": 2, "axis": 1}),
        ("hsplit", {"indices_or_sections": 3}), ("vsplit", {"indices_or_sections": 2}),
        ("dsplit", {"indices_or_sections": 2}), ("cast", {"dtype": "int32"}), ("nonzero", {}),
        ("full_like", {"fill_value": 2}), ("full_like", {"fill_value": 2, "dtype": "int32"}),
        ("ones_like", {"dtype": "int32"}), ("softmax", {"axis": 1}), ("softmax", {"axis": None}),
        ("softmax", {"axis": (0, 1)}), ("log_softmax", {"axis": 0}), ("log_softmax", {"axis": None}),
        ("top_k", {"k": 2}), ("view", {"dtype": "int32"}), ("view", {"dtype": "uint8"}),
        ("view", {"dtype": "float64"}), ("slice", {"start_indices": [0, 1, 2], "shape": [2, 2, 1]}),
        ("slice_update", {"start_indices": [0, 2, 1], "updates": np.ones((2, 1, 3), np.float32)}),
        ("normalize", {}), ("normalize", {"axis": 1, "order": 3}), ("moments", {"axes": [0, 2]}),
        ("moments", {"axes": [1], "keepdims": True}), ("layer_normalization", {}),
        ("layer_normalization", {"axis": (1, 2), "epsilon": 0.1}), ("rms_normalization", {"axis": 1}),
        ("extract_sequences", {"sequence_length": 3, "sequence_stride": 1}), ("view_as_real", {}),
        ("glu", {"axis": 2})]]
    cases += [
        ("rot90", (A,), {"k": k}) for k in (-1, 0, 1, 3)] + [("rot90", (B,), {"axes": (2, 0)})]
    cases += [
        ("concatenate", ([A, A + 1],), {"axis": 1}), ("stack", ([A, A + 1],), {"axis": -1}),
        ("hstack", ([C, C],), {}), ("vstack", ([A, A],), {}), ("dstack", ([C, C],), {}), ("dstack", ([A, A],), {}),
        ("append", (A, A), {"axis": 1}), ("append", (A, C), {}), ("broadcast_to", (C, (2, 5)), {}),
        ("meshgrid", (C, A[0]), {}), ("meshgrid", (C, A[0], C[:2]), {"indexing": "ij"}),
        ("take_along_axis", (A, np.array([[0], [3], [-1]])), {"axis": 1}),
        ("take_along_axis", (A, np.array([5, 1])), {}),
        ("take_along_axis", (A, np.array([[2, 1, 0, -1]])), {"axis": 0}),
        ("unravel_index", (np.array([3, 22, -1]), (2, 3, 4)), {}),
        ("select", ([A > 1, A > 0], [A, A * 10], -1), {}), ("where", (I23 > 0,), {}),
        ("get_item", (B, (slice(None), 1, slice(0, 4, 2))), {}), ("diag", (C,), {}), ("diag", (A,), {"k": 1}),
        ("diag", (C,), {"k": -1}), ("diagflat", (A[:1],), {"k": 1}), ("cross", (x32(4, 3), x32(3, seed=1)), {}),
        ("cross", (x32(4, 2), x32(2, seed=1)), {}), ("cross", (x32(3, 4), x32(3, 4, seed=1)), {"axis": 0}),
        ("cross", (x32(4, 2), x32(4, 3, seed=1)), {}), ("kron", (A, x32(2, 3, seed=5)), {}),
        ("tensordot", (B, B), {"axes": [[1, 2], [1, 2]]}), ("tensordot", (B, x32(3, 4, 2)), {"axes": 2}),
        ("tensordot", (A, C), {"axes": 0}), ("dot", (B, x32(4, 2)), {}), ("dot", (B, x32(5, 4, 2)), {}),
        ("dot", (A, 2.0), {}), ("dot", (A, A[0]), {}), ("inner", (A, B), {}), ("vdot", (A, A), {}),
        ("matmul", (B, A[0]), {}), ("matmul", (A[:, 0], A), {}), ("matmul", (C, C), {}),
        ("matmul", (B, x32(4, 5)), {}), ("einsum", ("bij,kj->bik", B, A), {}), ("einsum", ("ij->ji", A), {}),
        ("correlate", (C, C[:3]), {"mode": "full"}), ("correlate", (C, C[:3]), {"mode": "same"}),
        ("correlate", (C, C[:2]), {"mode": "same"}), ("correlate", (C, C[:2]), {}), ("corrcoef", (A,), {}),
        ("searchsorted", (np.sort(C), C), {"side": "right"}), ("searchsorted", (np.array([1, 3, 5]), I23), {}),
        ("digitize", (A, np.array([-1.0, 0.0, 1.0])), {}), ("digitize", (I23, np.array([0.0, 3.0])), {}),
        ("bincount", (np.array([1, 3, 1, 0]),), {}), ("bincount", (np.array([1, 3, 1, 0]),), {"minlength": 6}),
        ("bincount", (np.array([1, 3, 1, 0]),), {"weights": x32(4)}), ("bincount", (np.array([[1, 3], [0, 0]]),), {}),
        ("histogram", (C,), {}), ("histogram", (A,), {"bins": 3}), ("histogram", (A,), {"bins": 3, "range": (-1, 1)}),
        ("isin", (I23, np.array([0, 1, 3])), {}), ("isin", (I23, np.array([0, 1, 3])), {"invert": True}),
        ("allclose", (A, A + 1e-7), {}), ("allclose", (A, A + 1e-2), {}), ("isclose", (HOLES, HOLES), {}),
        ("isclose", (HOLES, HOLES), {"equal_nan": True}), ("unique", (I23,), {}),
        ("unique", (I23,), {"return_index": True, "return_inverse": True, "return_counts": True}),
        ("unique", (np.array([[1, 2], [0, 5], [1, 2]]),), {"axis": 0, "return_inverse": True, "return_counts": True}),
        ("vander", (C,), {}), ("vander", (C,), {"N": 3, "increasing": True}), ("nan_to_num", (STRANGE,), {}),
        ("nan_to_num", (STRANGE,), {"nan": 7.0, "neginf": -9.0}), ("ldexp", (A, np.array([1, -2, 0, 3])), {}),
        ("heaviside", (np.array([-1.0, 0.0, 2.0], np.float32), 0.5), {}), ("nextafter", (C, C + 1), {}),
        ("angle", (A,), {}), ("fmod", (A, x32(4, seed=3)), {}), ("fmod", (I23, np.array([2, -3, 4])), {})]
    return cases


def creation():
    return [(name, args, kwargs) for name, args, kwargs in [
        ("zeros", ((2, 3),), {}), ("ones", ((2,),), {"dtype": "int32"}), ("empty", ((2,),), {}), ("eye", (3,), {}),
        ("identity", (3,), {"dtype": "int32"}), ("tri", (3,), {}), ("tri", (2, 4), {"k": 1}),
        ("full", ((2, 3), 4), {}), ("full", ((2,), 4), {"dtype": "int32"}), ("arange", (5,), {}),
        ("arange", (1, 8, 3), {}), ("arange", (0.0, 1.0, 0.25), {}), ("arange", (5,), {"dtype": "float16"}),
        ("arange", (5, 0, -2), {}), ("array", ([1, 2],), {}), ("array", ([1, 2],), {"dtype": "float32"}),
        ("linspace", (0, 5), {}), ("linspace", (0, 5, 4), {"endpoint": False}),
        ("linspace", (0, 5, 4), {"retstep": True}), ("linspace", (0.0, 1.0, 5), {"dtype": "int32"}),
        ("linspace", (np.zeros(3, np.float32), np.ones(3, np.float32), 4), {"axis": -1}), ("linspace", (1, 2, 1), {}),
        ("logspace", (0, 2, 5), {}), ("logspace", (0, 2, 5), {"base": 2, "endpoint": False}),
        ("geomspace", (1, 100, 5), {}), ("geomspace", (-1.0, -8.0, 4), {}), ("bartlett", (7,), {}),
        ("blackman", (7,), {}), ("hamming", (7,), {}), ("hanning", (7,), {}), ("kaiser", (7, 4.0), {}),
        ("one_hot", (np.array([1, 0, 3, -1]), 3), {}), ("one_hot", (np.array([[1, 0]]), 3), {"axis": 1}),
        ("one_hot", (np.array([1]), 3), {"dtype": "bool"}), ("one_hot", (np.array([1]), 3), {"dtype": "int32"}),
        ("multi_hot", (np.array([0, 2]), 4), {}), ("multi_hot", (np.array([[0, 2], [1, 1]]), 3), {}),
        ("convert_to_tensor", (3,), {}), ("convert_to_tensor", (3.0,), {}), ("convert_to_tensor", (True,), {}),
        ("convert_to_tensor", ([1, 2.5],), {}), ("saturate_cast", (np.array([-5.0, 300.0]), "uint8"), {})]]


def activations():
    names = [
        "relu", "relu6", "sigmoid", "sparse_sigmoid", "softplus", "softsign", "soft_shrink", "sparse_plus",
        "silu", "swish", "squareplus", "log_sigmoid", "leaky_relu", "hard_sigmoid", "hard_silu",
        "hard_swish", "elu", "selu", "gelu", "celu", "glu", "tanh_shrink", "hard_tanh", "hard_shrink",
        "softmax", "log_softmax", "sparsemax", "erf", "erfc", "erfinv", "rsqrt"]
    cases = [(name, (x32(3, 4, low=0.1, high=0.9) if name in ("erfinv", "rsqrt") else 3 * A,), {}) for name in names]
    return cases + [
        ("threshold", (A, 0.5, -1.0), {}), ("gelu", (A,), {"approximate": False}), ("celu", (A,), {"alpha": 0.5}),
        ("elu", (A,), {"alpha": 2.0}), ("leaky_relu", (A,), {"negative_slope": 0.3}),
        ("hard_shrink", (A,), {"threshold": 1.0}), ("soft_shrink", (A,), {"threshold": 1.0}),
        ("squareplus", (A,), {"b": 2}), ("relu", (numbers((3,), "int32"),), {})]


def networks():
    image, kernel = x32(2, 7, 6, 3, seed=7), x32(3, 2, 3, 4, seed=8)
    line, volume = x32(2, 9, 3, seed=9), x32(1, 4, 5, 4, 2, seed=10)
    query, keys = x32(2, 3, 4, 5, seed=11), x32(2, 6, 4, 5, seed=12)
    chance = np.abs(A) / np.abs(A).sum(-1, keepdims=True)
    cases = []
    for name in ("max_pool", "average_pool"):
        cases += [(name, (image, 2), {}), (name, (image, (3, 2)), {"strides": 1, "padding": "same"}),
                  (name, (line, 3), {"strides": 2}), (name, (volume, 2), {"padding": "same"})]
    for name in ("adaptive_max_pool", "adaptive_average_pool"):
        cases += [(name, (image, (3, 2)), {}), (name, (line, 4), {}), (name, (image, 3), {"data_format":
                                                                                      "channels_last"})]
    cases += [
        ("conv", (image, kernel), {}), ("conv", (image, kernel), {"strides": 2, "padding": "same"}),
        ("conv", (image, kernel), {"dilation_rate": (2, 1)}), ("conv", (line, x32(3, 3, 2)), {"padding": "same"}),
        ("conv", (volume, x32(2, 2, 2, 2, 3)), {}), ("depthwise_conv", (image, x32(3, 2, 3, 2)), {"strides": 2}),
        ("depthwise_conv", (line, x32(3, 3, 2)), {"padding": "same"}),
        ("separable_conv", (image, x32(3, 2, 3, 2), x32(1, 1, 6, 4)), {"padding": "same"}),
        ("separable_conv", (line, x32(3, 3, 1), x32(1, 3, 4)), {"strides": 2}),
        ("conv_transpose", (image, x32(3, 2, 4, 3)), {"strides": 2}),
        ("conv_transpose", (image, x32(3, 2, 4, 3)), {"strides": 2, "padding": "same"}),
        ("conv_transpose", (line, x32(3, 2, 3)), {"strides": 3, "output_padding": 1}),
        ("depth_to_space", (x32(2, 2, 3, 8), 2), {}), ("space_to_depth", (x32(2, 4, 6, 2), 2), {}),
        ("depth_to_space", (x32(2, 8, 2, 3), 2), {"data_format": "channels_first"}),
        ("unfold", (x32(2, 3, 5, 6), 2), {}),
        ("unfold", (x32(2, 3, 5, 6), (2, 3)), {"padding": 1, "stride": (2, 1), "dilation": (1, 2)}),
        ("fold", (x32(2, 12, 20), (5, 6), 2), {}),
        ("batch_normalization", (A, x32(4), np.abs(x32(4)) + 1, -1), {}),
        ("batch_normalization", (B, x32(3), np.abs(x32(3)) + 1, 1), {"offset": x32(3), "scale": x32(3, seed=1)}),
        ("layer_normalization", (A, x32(4), x32(4, seed=1)), {}), ("rms_normalization", (A, x32(4)), {}),
        ("binary_crossentropy", ((A > 0).astype(np.float32), chance), {}),
        ("binary_crossentropy", ((A > 0).astype(np.float32), A), {"from_logits": True}),
        ("categorical_crossentropy", (chance, np.abs(A)), {}),
        ("categorical_crossentropy", (chance, A), {"from_logits": True}),
        ("sparse_categorical_crossentropy", (np.array([1, 0, 3]), chance), {}),
        ("sparse_categorical_crossentropy", (np.array([1, 0, 3]), A), {"from_logits": True}),
        ("ctc_loss", (np.array([[1, 2, 2], [3, 1, 0]]), x32(2, 7, 4), np.array([3, 2]), np.array([7, 5])), {}),
        ("ctc_loss", (np.array([[1, 0, 2], [0, 1, 0]]), x32(2, 7, 4), np.array([3, 2]), np.array([6, 5])),
         {"mask_index": 3}),
        ("ctc_decode", (3 * x32(3, 6, 4), np.array([6, 4, 2])), {}),
        ("ctc_decode", (3 * x32(3, 6, 4), np.array([6, 4, 2])), {"merge_repeated": False, "mask_index": 3}),
        ("ctc_decode", (3 * x32(3, 6, 4), np.array([6, 4, 2])),
         {"strategy": "beam_search", "beam_width": 5, "top_paths": 2, "mask_index": 1}),
        ("psnr", (A, A + 0.1, 2.0), {}), ("polar", (np.abs(A), A), {}),
        ("dot_product_attention", (query, keys, keys), {}),
        ("dot_product_attention", (query, query, query), {"is_causal": True, "scale": 0.3}),
        ("dot_product_attention", (query, keys[:, :, :2], keys[:, :, :2]), {"bias": x32(2, 4, 3, 6)}),
        ("dot_product_attention", (query, keys, keys), {"mask": x32(2, 1, 3, 6, seed=3) > -1})]
    return cases


def mathematics():
    pair = (SIGNAL[:, :8], SIGNAL[:, 8:16])
    plane = (x32(2, 3, 4), x32(2, 3, 4, seed=1))
    ids = np.array([0, 2, 0])
    cases = [(f"segment_{kind}", (A, ids), settings) for kind in ("sum", "max", "min", "prod")
             for settings in ({"num_segments": 3}, {"num_segments": 5})]
    cases += [
        ("segment_sum", (A, np.array([0, 0, 1])), {"sorted": True}), ("segment_sum", (I23, np.array([1, 0])), {}),
        ("top_k", (I23, 2), {}), ("in_top_k", (np.array([1, 0, 3]), A, 2), {}), ("logdet", (SPD,), {}),
        ("cdist", (A, x32(5, 4)), {}), ("cdist", (B, x32(2, 5, 4)), {}), ("fft", (pair,), {}), ("fft2", (plane,), {}),
        ("ifft2", (plane,), {}), ("rfft", (SIGNAL,), {}), ("rfft", (SIGNAL,), {"fft_length": 64}),
        ("irfft", (plane,), {}), ("irfft", (plane,), {"fft_length": 5}),
        ("stft", (SIGNAL, 8, 4, 8), {}), ("stft", (SIGNAL, 6, 3, 10), {"window": "hamming"}),
        ("stft", (SIGNAL, 8, 4, 8), {"center": False, "window": None}),
        ("istft", ((x32(2, 9, 5), x32(2, 9, 5, seed=1)), 8, 4, 8), {}),
        ("view_as_complex", (x32(3, 2),), {}), ("lu_factor", (SPD,), {}),
        ("cholesky", (SPD,), {}), ("cholesky", (SPD,), {"upper": True}),
        ("cholesky_inverse", (np.linalg.cholesky(SPD),), {}), ("det", (SQUARE,), {}), ("inv", (SPD,), {}),
        ("solve", (SPD, x32(2, 3, 2)), {}), ("solve", (SPD[0], x32(3)), {}), ("pinv", (A,), {}),
        ("solve_triangular", (np.tril(SPD), x32(2, 3, 2)), {"lower": True}),
        ("solve_triangular", (np.triu(SPD[0]), x32(3)), {}), ("slogdet", (SQUARE,), {}),
        ("lstsq", (x32(5, 3), x32(5, 2)), {}), ("lstsq", (x32(5, 3), x32(5)), {}), ("matrix_rank", (SQUARE,), {}),
        ("svd", (A,), {"compute_uv": False})]
    cases += [("norm", (A,), {"ord": o}) for o in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)]
    cases += [("norm", (B,), {"ord": o, "axis": 1, "keepdims": True}) for o in (None, 0, 1, 2, 3, np.inf, -np.inf)]
    cases += [("norm", (C,), {"ord": o}) for o in (None, 2, 1)] + [("norm", (B,), {"ord": 1, "axis": (0, 2)}),
                                                                 ("norm", (B,), {"axis": (2, 1), "keepdims": True})]
    cases += [
        ("scatter", (np.array([[0], [2], [2]]), x32(3, 2), (4, 2)), {}),
        ("scatter_update", (A, np.array([[0, 1], [2, 3]]), np.array([7.0, 8.0], np.float32)), {}),
        ("scatter_update", (A, np.array([[0], [2]]), x32(2, 4)), {"reduction": "add"}),
        ("scatter_update", (A, np.array([[0], [2]]), x32(2, 4)), {"reduction": "max"}),
        ("rearrange", (B, "a b c -> c (b a)"), {}), ("rearrange", (B, "a b (c d) -> (a c) d b"), {"d": 2}),
        ("slice_update", (C, [4], np.array([7.0, 8.0], np.float32)[:1]), {})]
    return cases


def images():
    corners = np.array([[[0, 0], [7, 0], [0, 5], [7, 5]]] * 2, np.float32)
    turn = np.array([0.9, 0.3, 0.5, -0.2, 1.1, 0.25, 0, 0], np.float32)
    cases = [("image.resize", (IMAGE, (4, 12)), {"interpolation": i}) for i in ("nearest", "bilinear", "lanczos3")]
    turns = np.stack([turn, turn + 0.01])
    cases += [("image.affine_transform", (IMAGE, turns), {"fill_mode": mode, "interpolation": i})
              for mode in ("constant", "nearest", "reflect") for i in ("nearest", "bilinear")]
    places = x32(2, 9, seed=13, low=-2.0, high=8.0)
    cases += [("image.map_coordinates", (IMAGE[0, :, :, 0], places, order), {"fill_mode": mode})
              for order in (0, 1) for mode in ("constant", "nearest", "wrap", "mirror")]
    scale, move = np.array([0.7, 1.3], np.float32), np.array([0.2, -0.4], np.float32)
    cases += [("image.scale_and_translate", (IMAGE, (2, 5, 9, 3), scale, move, (1, 2), method), {"antialias": smooth})
              for method in ("linear", "cubic", "lanczos3") for smooth in (True, False)]
    return cases + [
        ("image.resize", (IMAGE, (3, 4)), {"antialias": True}), ("image.resize", (IMAGE[0], (3, 4)), {}),
        ("image.resize", (IMAGE, (4, 4)), {"crop_to_aspect_ratio": True}),
        ("image.resize", (IMAGE, (4, 4)), {"pad_to_aspect_ratio": True, "fill_value": 0.5}),
        ("image.resize", ((255 * IMAGE).astype(np.uint8), (5, 5)), {}), ("image.rgb_to_grayscale", (IMAGE,), {}),
        ("image.rgb_to_grayscale", (IMAGE[0],), {}), ("image.rgb_to_hsv", (IMAGE,), {}),
        ("image.hsv_to_rgb", (IMAGE,), {}), ("image.pad_images", (IMAGE, 1, 2, 3, 0), {}),
        ("image.pad_images", (IMAGE, 1, 2), {"target_height": 9, "target_width": 10}),
        ("image.crop_images", (IMAGE, 1, 2, 3, 0), {}),
        ("image.crop_images", (IMAGE,), {"bottom_cropping": 1, "right_cropping": 2, "target_height": 3,
                                         "target_width": 4}),
        ("image.extract_patches", (IMAGE, 3), {}),
        ("image.extract_patches", (IMAGE, (2, 3)), {"strides": 1, "padding": "same"}),
        ("image.extract_patches", (IMAGE, 2), {"strides": 1, "dilation_rate": 2}),
        ("image.extract_patches_3d", (x32(1, 4, 4, 6, 2), 2), {}),
        ("image.perspective_transform", (IMAGE, corners, corners + x32(2, 4, 2, seed=4) / 2), {}),
        ("image.perspective_transform", (IMAGE, corners, corners + 0.3), {"interpolation": "nearest"}),
        ("image.gaussian_blur", (IMAGE[..., :1],), {}),
        ("image.sobel_edges", (IMAGE,), {}), ("image.ssim", (IMAGE, IMAGE + 0.1), {"filter_size": 3})]


def setting_cases():
    """Functions with their settings, in float32 where nothing else is said."""
    return [*reductions(), *shapes(), *creation(), *activations(), *networks(), *mathematics(), *images()]
