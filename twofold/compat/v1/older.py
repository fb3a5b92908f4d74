"""Names of `tf.compat.v1` for functions that are elsewhere in `tf`, unchanged."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import twofold as tf
from twofold._front.api import public

__all__ = ["ALIASES", "MODULES", "OlderModule", "assertion", "resolve"]


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
    **_same("quantization", "dequantize fake_quant_with_min_max_args fake_quant_with_min_max_args_gradient "
                            "fake_quant_with_min_max_vars fake_quant_with_min_max_vars_gradient "
                            "fake_quant_with_min_max_vars_per_channel "
                            "fake_quant_with_min_max_vars_per_channel_gradient quantize quantized_concat"),
    **_same("nn", "space_to_depth depth_to_space"),
    **_same("io", "FixedLenFeature FixedLenSequenceFeature SparseFeature VarLenFeature decode_base64 "
                  "decode_compressed decode_json_example decode_raw deserialize_many_sparse encode_base64 "
                  "matching_files parse_example parse_single_example parse_single_sequence_example parse_tensor "
                  "read_file serialize_tensor write_file"),
    **_same("strings", "as_string"),
    **{f"sparse_{name}": f"sparse.{name}" for name in [
        "fill_empty_rows", "mask", "maximum", "minimum", "reorder", "reset_shape", "reshape", "retain", "slice",
        "softmax", "to_indicator", "transpose"]},
    "sparse_tensor_dense_matmul": "sparse.sparse_dense_matmul", "sparse_tensor_to_dense": "sparse.to_dense",
    **_same("errors", "OpError"),
    **_same("debugging", "check_numerics is_numeric_tensor"),
    **_same("math", "is_non_decreasing is_strictly_increasing"), "VERSION": "version.VERSION",
    "string_to_hash_bucket_fast": "strings.to_hash_bucket_fast",
    "string_to_hash_bucket_strong": "strings.to_hash_bucket_strong",
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

#: names of modules that are older than those in `tf`, and the names in them that lead elsewhere
MODULES: dict[str, dict[str, str]] = {
    "manip": {name: name for name in ("gather_nd", "reshape", "reverse", "roll", "scatter_nd", "space_to_batch_nd",
                                      "tile")} | {"batch_to_space_nd": "batch_to_space"},
    "python_io": _same("io", "TFRecordOptions TFRecordWriter") | {"tf_record_iterator": "compat.v1.tf_record_iterator"},
    "sets": {f"set_{name}": f"sets.{name}" for name in ("difference", "intersection", "size", "union")},
    "spectral": _same("signal", "dct fft fft2d fft3d idct ifft ifft2d ifft3d irfft irfft2d irfft3d rfft rfft2d rfft3d"),
}


class OlderModule(ModuleType):
    """A module of `tf.compat.v1` whose names are elsewhere in `tf`, and beside them those of `tf`'s of its name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"twofold.compat.v1.{name}", f"`tf.compat.v1.{name}`: names that are elsewhere in `tf`.")
        self._names, self._now = MODULES[name], getattr(tf, name, None)

    def __getattr__(self, name: str) -> Any:
        if name in self._names:
            return resolve(tf, self._names[name])
        if self._now is None or name.startswith("_"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(self._now, name)

    def __dir__(self) -> list[str]:
        return sorted({*self._names, *([] if self._now is None else dir(self._now))})


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
