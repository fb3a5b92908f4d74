"""tf.math: elementwise mathematics, comparisons, reductions, scans and segments.

This module only collects them; they are written in `twofold/_ops/math_*.py`, and those that `tf.nn` and `tf.linalg`
have too in the modules of these.
"""

from twofold._front.namespace import publish
from twofold._ops.linalg_norms import (
    l2_normalize,
)
from twofold._ops.math_arithmetic import (
    abs,
    accumulate_n,
    add,
    add_n,
    divide,
    divide_no_nan,
    floordiv,
    floormod,
    maximum,
    minimum,
    mod,
    multiply,
    multiply_no_nan,
    negative,
    polyval,
    pow,
    reciprocal,
    reciprocal_no_nan,
    rsqrt,
    scalar_mul,
    sign,
    sqrt,
    square,
    squared_difference,
    subtract,
    truediv,
    truncatediv,
    truncatemod,
)
from twofold._ops.math_comparison import (
    equal,
    greater,
    greater_equal,
    is_finite,
    is_inf,
    is_nan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
)
from twofold._ops.math_complex import (
    angle,
    conj,
    imag,
    real,
)
from twofold._ops.math_functions import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    ceil,
    cos,
    cosh,
    digamma,
    erf,
    erfc,
    erfcinv,
    erfinv,
    exp,
    expm1,
    floor,
    lgamma,
    log,
    log1p,
    log_sigmoid,
    ndtri,
    nextafter,
    polygamma,
    rint,
    round,
    sigmoid,
    sin,
    sinh,
    softplus,
    softsign,
    tan,
    tanh,
    xdivy,
    xlog1py,
    xlogy,
)
from twofold._ops.math_orders import (
    is_non_decreasing,
    is_strictly_increasing,
    lbeta,
)
from twofold._ops.math_reductions import (
    argmax,
    argmin,
    count_nonzero,
    cumprod,
    cumsum,
    cumulative_logsumexp,
    reduce_all,
    reduce_any,
    reduce_euclidean_norm,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_std,
    reduce_sum,
    reduce_variance,
)
from twofold._ops.math_segments import (
    bincount,
    confusion_matrix,
    histogram_fixed_width,
    histogram_fixed_width_bins,
    segment_max,
    segment_mean,
    segment_min,
    segment_prod,
    segment_sum,
    unsorted_segment_max,
    unsorted_segment_mean,
    unsorted_segment_min,
    unsorted_segment_prod,
    unsorted_segment_sqrt_n,
    unsorted_segment_sum,
)
from twofold._ops.math_special import (
    bessel_i0,
    bessel_i0e,
    bessel_i1,
    bessel_i1e,
    bessel_j0,
    bessel_j1,
    bessel_k0,
    bessel_k0e,
    bessel_k1,
    bessel_k1e,
    bessel_y0,
    bessel_y1,
    betainc,
    dawsn,
    expint,
    fresnel_cos,
    fresnel_sin,
    igamma,
    igammac,
    spence,
    zeta,
)
from twofold._ops.nn_batches import (
    approx_max_k,
    approx_min_k,
)
from twofold._ops.nn_losses import (
    log_softmax,
    softmax,
    zero_fraction,
)
from twofold._ops.sorting import (
    in_top_k,
    invert_permutation,
    top_k,
)

__all__ = [
    "abs", "accumulate_n", "acos", "acosh", "add", "add_n", "angle", "approx_max_k", "approx_min_k", "argmax", "argmin",
    "asin", "asinh", "atan", "atan2", "atanh", "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "betainc",
    "bincount", "ceil", "confusion_matrix", "conj", "cos", "cosh", "count_nonzero", "cumprod", "cumsum",
    "cumulative_logsumexp", "digamma", "divide", "divide_no_nan", "equal", "erf", "erfc", "erfcinv", "erfinv", "exp",
    "expm1", "floor", "floordiv", "floormod", "greater", "greater_equal", "histogram_fixed_width",
    "histogram_fixed_width_bins", "igamma", "igammac", "imag", "in_top_k", "invert_permutation", "is_finite", "is_inf",
    "is_nan", "is_non_decreasing", "is_strictly_increasing", "l2_normalize", "lbeta", "less", "less_equal", "lgamma",
    "log", "log1p", "log_sigmoid", "log_softmax", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum",
    "minimum", "mod", "multiply", "multiply_no_nan", "ndtri", "negative", "nextafter", "not_equal", "polygamma",
    "polyval", "pow", "real", "reciprocal", "reciprocal_no_nan", "reduce_all", "reduce_any", "reduce_euclidean_norm",
    "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_std", "reduce_sum",
    "reduce_variance", "rint", "round", "rsqrt", "scalar_mul", "segment_max", "segment_mean", "segment_min",
    "segment_prod", "segment_sum", "sigmoid", "sign", "sin", "sinh", "softmax", "softplus", "softsign", "special",
    "sqrt", "square", "squared_difference", "subtract", "tan", "tanh", "top_k", "truediv", "truncatediv", "truncatemod",
    "unsorted_segment_max", "unsorted_segment_mean", "unsorted_segment_min", "unsorted_segment_prod",
    "unsorted_segment_sqrt_n", "unsorted_segment_sum", "xdivy", "xlog1py", "xlogy", "zero_fraction", "zeta",
]


class special:
    """`tf.math.special`: Bessel functions, and integrals without a closed form."""

    bessel_i0 = staticmethod(bessel_i0)
    bessel_i0e = staticmethod(bessel_i0e)
    bessel_i1 = staticmethod(bessel_i1)
    bessel_i1e = staticmethod(bessel_i1e)
    bessel_j0 = staticmethod(bessel_j0)
    bessel_j1 = staticmethod(bessel_j1)
    bessel_k0 = staticmethod(bessel_k0)
    bessel_k0e = staticmethod(bessel_k0e)
    bessel_k1 = staticmethod(bessel_k1)
    bessel_k1e = staticmethod(bessel_k1e)
    bessel_y0 = staticmethod(bessel_y0)
    bessel_y1 = staticmethod(bessel_y1)
    dawsn = staticmethod(dawsn)
    expint = staticmethod(expint)
    fresnel_cos = staticmethod(fresnel_cos)
    fresnel_sin = staticmethod(fresnel_sin)
    spence = staticmethod(spence)


publish(__name__)
