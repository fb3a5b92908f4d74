"""Names of TensorFlow 1 that programs look for in `tf` itself: they are those of `tf.compat.v1`, and told of once."""

import importlib
import logging
from typing import Any

__all__ = ["FROM_V1", "from_v1"]

#: names of `tf.compat.v1` that programs of TensorFlow 1 look for in `tf`
FROM_V1 = frozenset({
    "AUTO_REUSE", "ConfigProto", "FixedLenFeature", "FixedLenSequenceFeature", "GPUOptions", "Graph", "GraphKeys",
    "InteractiveSession", "OpError", "Print", "RunMetadata", "RunOptions", "Session", "accumulate_n",
    "add_to_collection", "add_to_collections", "all_variables", "app", "arg_max", "arg_min", "as_string",
    "assert_greater_equal", "assert_less_equal", "assert_non_negative", "assert_positive", "assign", "assign_add",
    "assign_sub", "batch_gather", "ceil", "check_numerics", "cholesky", "clip_by_average_norm", "confusion_matrix",
    "conj", "count_nonzero", "cross", "cumprod", "decode_raw", "depth_to_space", "diag", "diag_part", "digamma",
    "disable_eager_execution", "disable_v2_behavior", "div", "div_no_nan", "enable_v2_behavior", "erf", "erfc", "expm1",
    "fft", "flags", "floor_div", "floordiv", "floormod", "get_collection", "get_collection_ref", "get_default_graph",
    "get_default_session", "get_local_variable", "get_variable", "get_variable_scope", "gfile", "global_norm",
    "global_variables", "global_variables_initializer", "glorot_normal_initializer", "glorot_uniform_initializer",
    "group", "ifft", "imag", "initialize_all_variables", "initialize_variables", "invert_permutation", "is_finite",
    "is_inf", "is_nan", "is_variable_initialized", "layers", "lgamma", "lin_space", "local_variables",
    "local_variables_initializer", "log1p", "log_sigmoid", "logging", "logical_xor", "matching_files",
    "matrix_band_part", "matrix_determinant", "matrix_diag", "matrix_diag_part", "matrix_inverse", "matrix_set_diag",
    "matrix_solve", "matrix_solve_ls", "matrix_transpose", "matrix_triangular_solve", "mod", "moving_average_variables",
    "multinomial", "no_op", "orthogonal_initializer", "parse_example", "parse_single_example",
    "parse_single_sequence_example", "placeholder", "placeholder_with_default", "polygamma", "py_func", "qr",
    "random_crop", "random_gamma", "random_poisson", "random_shuffle", "read_file", "real", "reciprocal",
    "regex_replace", "report_uninitialized_variables", "reset_default_graph", "reverse_v2", "rint", "rsqrt",
    "scatter_add", "scatter_nd_add", "scatter_nd_sub", "scatter_nd_update", "scatter_sub", "scatter_update",
    "segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum", "self_adjoint_eig",
    "self_adjoint_eigvals", "set_random_seed", "space_to_depth", "squared_difference", "string_join", "string_strip",
    "string_to_number", "substr", "svd", "tables_initializer", "tensor_scatter_add", "tensor_scatter_sub",
    "tensor_scatter_update", "to_bfloat16", "to_double", "to_float", "to_int32", "to_int64", "trace",
    "trainable_variables", "truncated_normal", "truncated_normal_initializer", "uniform_unit_scaling_initializer",
    "unsorted_segment_max", "unsorted_segment_mean", "unsorted_segment_min", "unsorted_segment_prod",
    "unsorted_segment_sum", "variable_scope", "variables_initializer", "variance_scaling_initializer",
    "verify_tensor_all_finite", "write_file",
})
_told = False


def from_v1(name: str) -> Any:
    """A name of `tf.compat.v1`; the first one is told of."""
    global _told
    v1 = importlib.import_module("twofold.compat.v1")
    if not _told:
        _told = True
        logging.getLogger("twofold").warning(
            "tf.%s is a name of TensorFlow 1, which lives in tf.compat.v1; new programs do without it.", name)
    return getattr(v1, name)
