"""Names of `tf.compat.v1` for functions that are elsewhere in `tf`, unchanged."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import twofold as tf
from twofold._front.api import public

__all__ = ["ALIASES", "assertion", "resolve"]


def _same(module: str, names: str) -> dict[str, str]:
    return {name: f"{module}.{name}" for name in names.split()}


#: where the names are
ALIASES: dict[str, str] = {
    **_same("math", "accumulate_n angle bincount ceil conj digamma erf erfc expm1 floordiv floormod imag "
                    "invert_permutation is_finite is_inf is_nan lbeta lgamma log1p logical_xor polygamma real "
                    "reciprocal rint rsqrt "
                    "segment_max segment_mean segment_min segment_prod segment_sum squared_difference "
                    "unsorted_segment_max unsorted_segment_mean unsorted_segment_min unsorted_segment_prod "
                    "unsorted_segment_sqrt_n unsorted_segment_sum zeta betainc igamma igammac"),
    **_same("linalg", "cholesky cholesky_solve cross global_norm qr svd trace"),
    **_same("signal", "fft fft2d fft3d ifft ifft2d ifft3d rfft irfft"),
    **_same("nn", "space_to_depth depth_to_space"),
    **_same("io", "FixedLenFeature FixedLenSequenceFeature decode_raw matching_files parse_example "
                  "parse_single_example parse_single_sequence_example read_file write_file"),
    **_same("strings", "as_string"),
    **{f"sparse_{name}": f"sparse.{name}" for name in [
        "fill_empty_rows", "mask", "maximum", "minimum", "reorder", "reset_shape", "reshape", "retain", "slice",
        "softmax", "to_indicator", "transpose"]},
    "sparse_tensor_dense_matmul": "sparse.sparse_dense_matmul", "sparse_tensor_to_dense": "sparse.to_dense",
    **_same("errors", "OpError"),
    **_same("debugging", "check_numerics"),
    "regex_replace": "strings.regex_replace", "string_join": "strings.join", "string_strip": "strings.strip",
    "string_to_number": "strings.to_number", "substr": "strings.substr", "batch_to_space_nd": "batch_to_space",
    "diag": "linalg.tensor_diag", "diag_part": "linalg.tensor_diag_part",
    "lin_space": "linspace", "matrix_band_part": "linalg.band_part", "matrix_determinant": "linalg.det",
    "matrix_diag": "linalg.diag", "matrix_diag_part": "linalg.diag_part", "matrix_inverse": "linalg.inv",
    "matrix_set_diag": "linalg.set_diag", "matrix_solve": "linalg.solve", "matrix_solve_ls": "linalg.lstsq",
    "matrix_triangular_solve": "linalg.triangular_solve", "random_gamma": "random.gamma",
    "random_poisson": "random.poisson", "reverse_v2": "reverse", "self_adjoint_eig": "linalg.eigh",
    "self_adjoint_eigvals": "linalg.eigvalsh", "tensor_scatter_add": "tensor_scatter_nd_add",
    "tensor_scatter_sub": "tensor_scatter_nd_sub", "tensor_scatter_update": "tensor_scatter_nd_update",
    "verify_tensor_all_finite": "debugging.assert_all_finite", "where_v2": "where",
}


def resolve(root: Any, path: str) -> Any:
    """The attribute of `root` that a dotted name leads to."""
    return functools.reduce(getattr, path.split("."), root)


def assertion(name: str) -> Callable[..., Any]:
    """An assertion of `tf.debugging`, with the argument `data` of TensorFlow 1, which has no effect."""
    now = getattr(tf.debugging, name)

    @functools.wraps(now)
    def check(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("data", None)
        return now(*args, **kwargs)
    return public(check)
