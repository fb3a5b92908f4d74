"""twofold: tensors with TensorFlow 2's API, run op by op or compiled to native code.

>>> import twofold as tf
>>> x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
>>> tf.reduce_sum(x * x)
<tf.Tensor: shape=(), dtype=float32, numpy=30.0>
"""

import os as _os
from typing import TYPE_CHECKING as _TYPE_CHECKING

# In a source tree the engine rooms (`ir/`, `codegen/`, ...) lie beside this folder. They are found there, so that
# Python started at the tree's root imports all of the tree, and never its front door with the rooms of an installed
# version.
if not _os.path.isdir(_os.path.join(__path__[0], "ir")):
    __path__.append(_os.path.dirname(_os.path.abspath(__path__[0])))

from twofold.eager.custom import custom_gradient, grad_pass_through, recompute_grad
from twofold.eager.indexed_slices import IndexedSlices, IndexedSlicesSpec
from twofold.eager.naming import name_scope
from twofold.eager.tape import GradientTape, UnconnectedGradients
from twofold.eager.tensor import Tensor
from twofold.eager.variable import Variable
from twofold.ir.spec import TensorShape, TensorSpec
from twofold.ir.type_spec import TypeSpec
from twofold.tracer.tensor_array import TensorArray

from . import (
    autodiff,
    autograph,
    bitwise,
    config,
    debugging,
    dtypes,
    errors,
    linalg,
    math,
    nest,
    nn,
    random,
    signal,
    test,
    types,
)
from ._front import einops as _einops
from ._front import namespace as _namespace
from ._front import older as _older
from ._front import standard as _standard
from ._front.control_flow import (
    case,
    cond,
    switch_case,
    while_loop,
)
from ._front.convert import (
    bitcast,
    cast,
    complex,
    identity,
    saturate_cast,
    stop_gradient,
)
from ._front.function import (
    executing_eagerly,
    function,
    init_scope,
    inside_function,
)
from ._front.gradients import (
    gradients,
    hessians,
)
from ._front.host import (
    numpy_function,
    print,
    py_function,
)
from ._front.importing import import_onnx
from ._front.numba import numba_function
from ._front.scopes import (
    AggregationMethod,
    VariableAggregation,
    VariableSynchronization,
    control_dependencies,
    device,
    get_current_name_scope,
    get_logger,
    guarantee_const,
    is_symbolic_tensor,
    timestamp,
    tuple,
    variable_creator_scope,
)
from ._front.tensors import (
    constant,
    convert_to_tensor,
    enable_eager_execution,
    get_static_value,
    is_tensor,
    register_tensor_conversion_function,
    type_spec_from_value,
)
from ._front.verify import verify
from ._ops.array_order import (
    identity_n,
    required_space_to_batch_paddings,
    reverse_sequence,
    unravel_index,
)
from ._ops.clip import (
    clip_by_global_norm,
    clip_by_norm,
    clip_by_value,
)
from ._ops.sorting import (
    argsort,
    searchsorted,
    sort,
    unique,
    unique_with_counts,
)
from .array import (
    batch_to_space,
    boolean_mask,
    broadcast_dynamic_shape,
    broadcast_static_shape,
    broadcast_to,
    concat,
    dynamic_partition,
    dynamic_stitch,
    ensure_shape,
    expand_dims,
    eye,
    fill,
    foldl,
    foldr,
    gather,
    gather_nd,
    linspace,
    map_fn,
    meshgrid,
    newaxis,
    one_hot,
    ones,
    ones_like,
    pad,
    range,
    rank,
    repeat,
    reshape,
    reverse,
    roll,
    scan,
    scatter_nd,
    sequence_mask,
    shape,
    shape_n,
    size,
    slice,
    space_to_batch,
    space_to_batch_nd,
    split,
    squeeze,
    stack,
    strided_slice,
    tensor_scatter_nd_add,
    tensor_scatter_nd_max,
    tensor_scatter_nd_min,
    tensor_scatter_nd_sub,
    tensor_scatter_nd_update,
    tile,
    transpose,
    unstack,
    vectorized_map,
    where,
    zeros,
    zeros_like,
)
from .debugging import (
    Assert,
    assert_equal,
    assert_greater,
    assert_less,
    assert_rank,
)
from .dtypes import (
    DType,
    as_dtype,
    bfloat16,
    bool,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    qint8,
    qint16,
    qint32,
    quint8,
    quint16,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .linalg import (
    eig,
    eigvals,
    einsum,
    matmul,
    norm,
    tensordot,
)
from .math import (
    abs,
    acos,
    acosh,
    add,
    add_n,
    argmax,
    argmin,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    cumsum,
    divide,
    equal,
    exp,
    floor,
    greater,
    greater_equal,
    histogram_fixed_width,
    histogram_fixed_width_bins,
    less,
    less_equal,
    log,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    pow,
    reduce_all,
    reduce_any,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    round,
    scalar_mul,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    truediv,
    truncatediv,
    truncatemod,
)
from .module import Module
from .random import normal as random_normal
from .random import uniform as random_uniform
from .version import __version__

#: sub-packages that are imported when they are first asked for, so that `import twofold` stays quick
_ON_FIRST_USE = frozenset({"array_api", "audio", "compat", "contrib", "data", "distribute", "experimental", "export",
                           "feature_column", "image", "io", "keras", "lookup", "losses", "profiler", "quantization",
                           "queue", "ragged", "raw_ops", "saved_model", "sets", "sparse", "strings", "summary",
                           "train"})
#: classes of values that are made of tensors, likewise
_COMPOSITES = {"RaggedTensor": ("ragged", "_ragged.ragged_tensor"), "RaggedTensorSpec": (
    "ragged", "_ragged.ragged_tensor"), "SparseTensor": ("sparse", "_sparse.sparse_tensor"), "SparseTensorSpec": (
        "sparse", "_sparse.sparse_tensor")}
#: functions that are imported when they are first asked for, by their modules
_LATER = {
    "DeviceSpec": "_front.device_spec", "OptionalSpec": "data._optional",
    "edit_distance": "_ops.nn_ctc", "fingerprint": "_ops.string_hashes",
    **dict.fromkeys(("approx_top_k", "conv", "conv2d_backprop_filter_v2", "conv2d_backprop_input_v2",
                     "extract_volume_patches"), "_ops.nn_windows"),
    **dict.fromkeys(("fftnd", "ifftnd", "irfftnd", "rfftnd"), "signal"),
    **dict.fromkeys(("ragged_fill_empty_rows", "ragged_fill_empty_rows_grad", "random_index_shuffle", "realdiv",
                     "matrix_square_root"), "_ops.raw_names")}
#: modules of Keras that have a place here too, and its initialisers under their older names
_KERAS = frozenset({"initializers", "metrics", "optimizers"})
_INITIALIZERS = {"constant_initializer": "Constant", "ones_initializer": "Ones", "random_normal_initializer":
                 "RandomNormal", "random_uniform_initializer": "RandomUniform", "zeros_initializer": "Zeros"}


if _TYPE_CHECKING:
    from . import array_api as array_api
    from . import audio as audio
    from . import compat as compat
    from . import contrib as contrib
    from . import data as data
    from . import distribute as distribute
    from . import experimental as experimental
    from . import export as export
    from . import feature_column as feature_column
    from . import image as image
    from . import io as io
    from . import keras as keras
    from . import lookup as lookup
    from . import losses as losses
    from . import profiler as profiler
    from . import quantization as quantization
    from . import queue as queue
    from . import ragged as ragged
    from . import raw_ops as raw_ops
    from . import saved_model as saved_model
    from . import sets as sets
    from . import sparse as sparse
    from . import strings as strings
    from . import summary as summary
    from . import train as train
    from ._ops.string_hashes import fingerprint as fingerprint
    from ._ragged.ragged_tensor import RaggedTensor as RaggedTensor
    from ._ragged.ragged_tensor import RaggedTensorSpec as RaggedTensorSpec
    from ._sparse.sparse_tensor import SparseTensor as SparseTensor
    from ._sparse.sparse_tensor import SparseTensorSpec as SparseTensorSpec
    from .data._optional import OptionalSpec as OptionalSpec


def _imported(name: str) -> object:
    import importlib
    return importlib.import_module(f"{__name__}.{name}")


_older.expect("modules", lambda: _imported("compat.v1"))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    if name in _ON_FIRST_USE:
        return _imported(name)
    if name in _COMPOSITES:
        functions, module = _COMPOSITES[name]
        _imported(functions)  # what public functions do with such values
        return getattr(_imported(module), name)
    if name in _LATER:
        return getattr(_imported(_LATER[name]), name)
    if name in _KERAS:
        from . import keras
        return getattr(keras, name)
    if name in _INITIALIZERS:
        from .keras import initializers
        return getattr(initializers, _INITIALIZERS[name])
    if not name.startswith("_"):
        from .compat import _older_names
        if name in _older_names.FROM_V1:
            return _older_names.from_v1(name)
    _namespace.say_why(__name__, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    *_LATER,
    "AggregationMethod", "Assert", "DType", "GradientTape", "IndexedSlices", "IndexedSlicesSpec", "Module",
    "RaggedTensor", "RaggedTensorSpec", "SparseTensor", "SparseTensorSpec", "Tensor", "TensorArray", "TensorShape",
    "TensorSpec", "TypeSpec", "UnconnectedGradients", "Variable", "VariableAggregation", "VariableSynchronization",
    "__version__", "abs", "acos", "acosh", "add", "add_n", "argmax", "argmin", "argsort", "as_dtype", "asin", "asinh",
    "assert_equal", "assert_greater", "assert_less", "assert_rank", "atan", "atan2", "atanh", "autodiff", "autograph",
    "batch_to_space", "bfloat16", "bitcast", "bitwise", "bool", "boolean_mask", "broadcast_dynamic_shape",
    "broadcast_static_shape", "broadcast_to", "case", "cast", "clip_by_global_norm", "clip_by_norm", "clip_by_value",
    "complex", "complex128", "complex64", "concat", "cond", "config", "constant", "contrib", "control_dependencies",
    "convert_to_tensor", "cos", "cosh", "cumsum", "custom_gradient", "debugging", "device", "divide", "double",
    "dtypes", "dynamic_partition", "dynamic_stitch", "eig", "eigvals", "einsum", "enable_eager_execution",
    "ensure_shape", "equal", "errors", "executing_eagerly", "exp", "expand_dims", "eye", "fill", "float16", "float32",
    "float64", "floor", "foldl", "foldr", "function", "gather", "gather_nd", "get_current_name_scope", "get_logger",
    "get_static_value", "grad_pass_through", "gradients", "greater", "greater_equal", "guarantee_const", "half",
    "hessians", "histogram_fixed_width", "histogram_fixed_width_bins", "identity", "identity_n", "import_onnx",
    "init_scope", "inside_function", "int16", "int32", "int64", "int8", "is_symbolic_tensor", "is_tensor", "less",
    "less_equal", "linalg", "linspace", "log", "logical_and", "logical_not", "logical_or", "map_fn", "math", "matmul",
    "maximum", "meshgrid", "minimum", "multiply", "name_scope", "negative", "nest", "newaxis", "nn", "norm",
    "not_equal", "numba_function", "numpy_function", "one_hot", "ones", "ones_like", "pad", "pow", "print",
    "py_function", "qint16", "qint32", "qint8", "quint16", "quint8", "random", "random_normal", "random_uniform",
    "range", "rank", "recompute_grad", "reduce_all", "reduce_any", "reduce_logsumexp", "reduce_max", "reduce_mean",
    "reduce_min", "reduce_prod", "reduce_sum", "register_tensor_conversion_function", "repeat",
    "required_space_to_batch_paddings", "reshape", "reverse", "reverse_sequence", "roll", "round", "saturate_cast",
    "scalar_mul", "scan", "scatter_nd", "searchsorted", "sequence_mask", "shape", "shape_n", "sigmoid", "sign",
    "signal", "sin", "sinh", "size", "slice", "sort", "space_to_batch", "space_to_batch_nd", "split", "sqrt", "square",
    "squeeze", "stack", "stop_gradient", "strided_slice", "string", "subtract", "switch_case", "tan", "tanh",
    "tensor_scatter_nd_add", "tensor_scatter_nd_max", "tensor_scatter_nd_min", "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update", "tensordot", "test", "tile", "timestamp", "transpose", "truediv", "truncatediv",
    "truncatemod", "tuple", "type_spec_from_value", "types", "uint16", "uint32", "uint64", "uint8", "unique",
    "unique_with_counts", "unravel_index", "unstack", "variable_creator_scope", "vectorized_map", "verify", "where",
    "while_loop", "zeros", "zeros_like",
]

_namespace.open_classes(globals())
_einops.connect()
_standard.connect()
