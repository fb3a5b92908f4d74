"""Functions of neural networks (`tf.keras.ops.nn`): normalisation, losses of one sample, encodings, attention.

Activations are `_activations.py`'s, convolutions and pooling `_windows.py`'s.
"""

from __future__ import annotations

from typing import Any

import twofold as tf
from twofold._front.api import one_int, same_axis
from twofold._front.namespace import publish
from twofold._ops.nn_ctc import beam_paths, greedy_paths

from ..config import epsilon as default_epsilon
from ..config import floatx
from ..encoding import encoded
from ..keras_ops import operation
from ..losses import crossentropy
from ..losses.temporal import ctc
from ..operands import axes_of, axis_of, floating, same, shape_of, tensor
from ._activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_shrink,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_shrink,
    softmax,
    softplus,
    softsign,
    sparse_plus,
    sparse_sigmoid,
    sparsemax,
    squareplus,
    swish,
    tanh_shrink,
    threshold,
)
from ._windows import (
    adaptive_average_pool,
    adaptive_max_pool,
    average_pool,
    conv,
    conv_transpose,
    depth_to_space,
    depthwise_conv,
    fold,
    max_pool,
    separable_conv,
    space_to_depth,
    unfold,
)

__all__ = [
    "adaptive_average_pool", "adaptive_max_pool", "average_pool", "batch_normalization", "binary_crossentropy",
    "categorical_crossentropy", "conv", "conv_transpose", "ctc_decode", "ctc_loss", "depth_to_space", "depthwise_conv",
    "dot_product_attention", "fold", "layer_normalization", "max_pool", "moments", "multi_hot", "normalize", "one_hot",
    "polar", "psnr", "rms_normalization", "separable_conv", "space_to_depth", "sparse_categorical_crossentropy",
    "unfold", "celu", "elu", "gelu", "glu", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
    "leaky_relu", "log_sigmoid", "log_softmax", "relu", "relu6", "selu", "sigmoid", "silu", "soft_shrink", "softmax",
    "softplus", "softsign", "sparse_plus", "sparse_sigmoid", "sparsemax", "squareplus", "swish", "tanh_shrink",
    "threshold",
]


# -- normalisation --------------------------------------------------------------------------------
@operation("nn", tensors="x")
def moments(x: Any, axes: Any, keepdims: bool = False, synchronized: bool = False) -> Any:
    """The means and the variances over axes.

    Args:
        x: a floating tensor; float16 is computed as float32.
        axes: an integer or several.
        keepdims: whether reduced axes stay, of size 1.
        synchronized: must be False: there is one device.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.keras.ops.moments([1.0, 3.0], 0)]
    [2.0, 1.0]
    """
    if synchronized:
        raise ValueError("Argument synchronized=True is not supported: there is one device.")
    x = floating(x)
    wide = tf.cast(x, tf.float32) if x.dtype.size < 4 else x
    mean, variance = tf.nn.moments(wide, list(axes_of(axes, x.ndim)), keepdims=keepdims)
    return tf.cast(mean, x.dtype), tf.cast(variance, x.dtype)


def _along(value: Any, axes: tuple[int, ...], x: Any) -> Any:
    """A value for places along axes, with axes of size 1 where the tensor has others."""
    if value is None:
        return None
    sizes = dict(zip(axes, shape_of(tensor(value)), strict=True))
    return tf.reshape(tensor(value, x.dtype), [sizes.get(n, 1) for n in range(x.ndim)])


@operation("nn", "BatchNorm", tensors="x mean variance offset scale")
def batch_normalization(x: Any, mean: Any, variance: Any, axis: int, offset: Any = None, scale: Any = None,
                        epsilon: float = 1e-3) -> Any:
    """`(x - mean) / sqrt(variance + epsilon) * scale + offset`, with one of each for each place along an axis.

    >>> import twofold as tf
    >>> tf.keras.ops.batch_normalization([[3.0]], [1.0], [4.0], -1, epsilon=0.0).numpy().tolist()
    [[1.0]]
    """
    x = floating(x)
    where = (axis_of(axis, x.ndim),)
    mean, variance, offset, scale = (_along(v, where, x) for v in (mean, variance, offset, scale))
    return tf.nn.batch_normalization(x, mean, variance, offset, scale, epsilon)


@operation("nn", "LayerNorm", tensors="x gamma beta")
def layer_normalization(x: Any, gamma: Any = None, beta: Any = None, axis: Any = -1,
                        epsilon: float | None = None) -> Any:
    """A tensor brought to mean 0 and variance 1 along axes, then scaled and moved.

    Args:
        x: a floating tensor; float16 is computed as float32.
        gamma, beta: factors and summands, of the sizes of the axes.
        axis: an integer or several.
        epsilon: added to the variance; `tf.keras.config.epsilon()` by default.

    >>> import twofold as tf
    >>> tf.keras.ops.layer_normalization([[1.0, 3.0]]).numpy().round(3).tolist()
    [[-1.0, 1.0]]
    """
    x = floating(x)
    wide = tf.cast(x, tf.float32) if x.dtype.size < 4 else x
    axes = tuple(sorted(axes_of(axis, x.ndim)))
    normalized = tf.nn.layer_normalization(wide, _along(gamma, axes, wide), _along(beta, axes, wide), axes,
                                           default_epsilon() if epsilon is None else epsilon)
    return tf.cast(normalized, x.dtype)


@operation("nn", "RMSNorm", tensors="x scale")
def rms_normalization(x: Any, scale: Any = None, axis: Any = -1, epsilon: float | None = None) -> Any:
    """A tensor divided by the root of its mean square along axes, then scaled.

    Args:
        x: a floating tensor; float16 is computed as float32.
        scale: factors, of the sizes of the axes.
        axis: an integer or several.
        epsilon: added to the mean square; `tf.keras.config.epsilon()` by default.

    >>> import twofold as tf
    >>> tf.keras.ops.rms_normalization([[3.0, 3.0]]).numpy().round(3).tolist()
    [[1.0, 1.0]]
    """
    x = floating(x)
    wide = tf.cast(x, tf.float32) if x.dtype.size < 4 else x
    axes = tuple(sorted(axes_of(axis, x.ndim)))
    more = tensor(default_epsilon() if epsilon is None else epsilon, wide.dtype)
    root = tf.math.rsqrt(tf.reduce_mean(tf.square(wide), axis=list(axes), keepdims=True) + more)
    factor = _along(scale, axes, wide)
    return tf.cast(wide * root if factor is None else wide * root * factor, x.dtype)


@operation("nn")
def normalize(x: Any, axis: Any = -1, order: Any = 2, epsilon: float | None = None) -> Any:
    """A tensor divided by its norm along an axis.

    Args:
        x: a tensor.
        axis: along which.
        order: of the norm, a number.
        epsilon: what the norm is at least; `tf.keras.config.epsilon()` by default.
    Raises:
        ValueError: the order is no positive integer.

    >>> import twofold as tf
    >>> tf.keras.ops.normalize([[3.0, 4.0]]).numpy().round(3).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """
    if not isinstance(order, int) or order < 1:
        raise ValueError(f"Argument `order` must be an int >= 1. Received: order={order}")
    x = floating(x)
    axis = same_axis(axis, x)
    least = tensor(default_epsilon() if epsilon is None else epsilon, x.dtype)
    if order == 2:
        squares = tf.reduce_sum(tf.square(x), axis=axis, keepdims=True)
        return x * tf.math.rsqrt(tf.maximum(squares, tf.square(least)))
    return x / tf.maximum(tf.norm(x, order, axis=axis, keepdims=True), least)


# -- losses and encodings -------------------------------------------------------------------------
def _outcome(target: Any, output: Any) -> tuple[Any, Any]:
    output = floating(output)
    return tensor(target, output.dtype), output


@operation("nn")
def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Any:
    """`-target log(output) - (1 - target) log(1 - output)` of each element.

    Args:
        target: labels from 0 to 1.
        output: probabilities, or with `from_logits` logits, of the same shape.
    Raises:
        ValueError: the shapes differ.

    >>> import twofold as tf
    >>> print(tf.keras.ops.binary_crossentropy([0.0, 1.0], [0.5, 0.5]).numpy().round(4))
    [0.6931 0.6931]
    """
    target, output = _outcome(target, output)
    return crossentropy.binary_values(target, output, from_logits)


@operation("nn")
def categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
    """`-target log(output)`, summed over the classes.

    Args:
        target: one-hot labels or probabilities.
        output: probabilities, which are divided by their sum, or with `from_logits` logits, of the same shape.
        axis: the axis of the classes.
    Raises:
        ValueError: the shapes differ.

    >>> import twofold as tf
    >>> print(tf.keras.ops.categorical_crossentropy([[0.0, 1.0]], [[0.5, 0.5]]).numpy().round(4))
    [0.6931]
    """
    return crossentropy.categorical_crossentropy(*_outcome(target, output), from_logits, axis=axis)


@operation("nn")
def sparse_categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
    """Minus the logarithm of the probability of the right class.

    Args:
        target: numbers of classes, of the shape of `output` without the axis of the classes, or with size 1 there.
        output: probabilities, which are divided by their sum, or with `from_logits` logits.
        axis: the axis of the classes.
    Raises:
        ValueError: the shapes do not fit.

    >>> import twofold as tf
    >>> print(tf.keras.ops.sparse_categorical_crossentropy([1], [[0.5, 0.5]]).numpy().round(4))
    [0.6931]
    """
    return crossentropy.sparse_categorical_crossentropy(tensor(target), floating(output), from_logits, axis=axis)


@operation("nn", "CTCLoss", tensors="target output target_length output_length")
def ctc_loss(target: Any, output: Any, target_length: Any, output_length: Any, mask_index: int = 0) -> Any:
    """Minus the logarithm of the probability of a sequence of labels for a longer sequence of predictions (CTC).

    Args:
        target: labels, integers [batch, most labels].
        output: logits [batch, steps, classes].
        target_length, output_length: how many of them count, integers [batch].
        mask_index: the class of the blank.
    Returns:
        A floating tensor [batch].

    >>> import twofold as tf
    >>> print(tf.keras.ops.ctc_loss([[1]], tf.zeros([1, 2, 2]), [1], [2]).numpy().round(4))
    [0.2877]
    """
    labels, logits = tensor(target, tf.int32), floating(output)
    classes = logits.shape[2]
    if mask_index := one_int(mask_index, "mask_index"):  # the blank comes first
        logits = tf.gather(logits, [mask_index, *[n for n in range(classes) if n != mask_index]], axis=2)
        labels = tf.where(labels < mask_index, labels + 1, labels)
    counted = tf.range(tf.shape(labels)[1]) < tf.expand_dims(tensor(target_length, tf.int32), -1)
    labels = tf.where(counted, labels, tf.zeros_like(labels))
    # behind the end there is nothing but blanks, which cost nothing
    there = tf.range(tf.shape(logits)[1]) < tf.expand_dims(tensor(output_length, tf.int32), -1)
    blank = tf.cast(tf.where(tf.equal(tf.range(classes), 0), 0.0, -1e30), logits.dtype)
    return ctc(labels, tf.where(tf.expand_dims(there, -1), logits, blank))


@operation("nn", "CTCDecode", tensors="inputs sequence_lengths")
def ctc_decode(inputs: Any, sequence_lengths: Any, strategy: str = "greedy", beam_width: int = 100, top_paths: int = 1,
               merge_repeated: bool = True, mask_index: int | None = 0) -> Any:
    """The sequences of labels that a sequence of predictions says (CTC).

    Args:
        inputs: logits [batch, steps, classes].
        sequence_lengths: how many of the steps count, integers [batch].
        strategy: "greedy", the likeliest class of each step; or "beam_search" among whole sequences.
        beam_width: how many beginnings the search follows.
        top_paths: how many sequences it gives.
        merge_repeated: whether labels that repeat the one before are left out, if greedy.
        mask_index: the class of the blank; None for the last one.
    Returns:
        int32 [paths, batch, steps], with -1 behind the labels; and if greedy minus the sum of the logits on the way
        [batch, 1], else the logarithms of the probabilities [batch, paths].
    Raises:
        ValueError: another strategy.

    >>> import twofold as tf
    >>> tf.keras.ops.ctc_decode([[[0.0, 1.0], [0.0, 1.0]]], [2])[0].numpy().tolist()
    [[[1, -1]]]
    """
    if strategy not in ("greedy", "beam_search"):
        raise ValueError(f"Invalid strategy {strategy}. Supported values are 'greedy' and 'beam_search'.")
    logits, lengths = floating(inputs), tensor(sequence_lengths, tf.int32)
    classes = logits.shape[2]
    blank = (classes - 1 if mask_index is None else one_int(mask_index, "mask_index")) % classes
    shape = tf.shape(logits, tf.int64)[:2]

    def dense(indices: Any, values: Any) -> Any:
        nothing = tf.fill(shape, tf.constant(-1, tf.int32))
        return tf.tensor_scatter_nd_update(nothing, indices, tf.cast(values, tf.int32))
    if strategy == "greedy":
        (indices, values, _), scores = greedy_paths(tf.transpose(logits, [1, 0, 2]), lengths, merge_repeated, blank)
        return tf.expand_dims(dense(indices, values), 0), scores
    logits = tf.gather(logits, [*[n for n in range(classes) if n != blank], blank], axis=2)  # the blank comes last
    *paths, scores = beam_paths(tf.transpose(logits, [1, 0, 2]), lengths, beam_width, top_paths)
    decoded = tf.stack([dense(indices, values) for indices, values in zip(paths[::3], paths[1::3], strict=True)])
    return tf.where(decoded >= blank, decoded + 1, decoded), scores


def _last(x: Any, axis: int, last: int) -> Any:
    """`x`, whose vectors come along the last axis.

    Raises:
        ValueError: they are to be along another one.
    """
    if axis not in (-1, last):
        raise ValueError(f"The vectors of sparse results are along the last axis. Received: axis={axis}")
    return x


@operation("nn", tensors="x")
def one_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> Any:
    """For each integer a vector of zeros, with a one at its place; of zeros alone, if it has none.

    Args:
        x: integers.
        num_classes: how long the vectors are.
        axis: their axis in the result.
        dtype: `floatx()` by default.
        sparse: whether the result is a sparse tensor.
    Raises:
        ValueError: it is to be sparse, with vectors along another axis than the last.

    >>> import twofold as tf
    >>> tf.keras.ops.one_hot([1, 0], 2).numpy().tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    x = tensor(x, tf.int64)
    target = tf.as_dtype(floatx() if dtype is None else dtype)
    if sparse:
        return encoded(_last(x, axis, x.ndim), num_classes, "one_hot", target, sparse=True, squeezed=False)
    if target.is_bool:
        return tf.one_hot(x, num_classes, axis=axis, on_value=True, off_value=False, dtype=target)
    return tf.one_hot(x, num_classes, axis=axis, dtype=target)


@operation("nn", tensors="inputs")
def multi_hot(inputs: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> Any:
    """For the integers along the last axis one vector of zeros, with ones at their places.

    Args:
        inputs: integers [n] or [batch, n].
        num_classes: how long the vectors are.
        axis: their axis.
        dtype: `floatx()` by default.
        sparse: whether the result is a sparse tensor.
    Raises:
        ValueError: it is to be sparse, with vectors along another axis than the last.

    >>> import twofold as tf
    >>> tf.keras.ops.multi_hot([0, 2], 3).numpy().tolist()
    [1.0, 0.0, 1.0]
    """
    x = tensor(inputs)
    if sparse:
        target = tf.as_dtype(floatx() if dtype is None else dtype)
        return encoded(_last(x, axis, x.ndim - 1), num_classes, "multi_hot", target, sparse=True)
    return tf.reduce_max(one_hot(x, num_classes, axis, dtype), axis=1 if x.ndim > 1 else 0)


@operation("nn", "PSNR", tensors="x1 x2")
def psnr(x1: Any, x2: Any, max_val: Any) -> Any:
    """The ratio in decibels of a signal's peak to the error of another (peak signal-to-noise ratio), over all elements.

    Args:
        x1, x2: tensors of one shape.
        max_val: the largest value that there may be.
    Raises:
        ValueError: the shapes differ.

    >>> import twofold as tf
    >>> print("%.4f" % tf.keras.ops.psnr([1.0, 2.0], [1.0, 3.0], 10.0))
    23.0103
    """
    x1, x2 = same(x1, x2, at_least=float)
    if not x1.shape.is_compatible_with(x2.shape):
        raise ValueError(f"Input shapes {x1.shape} and {x2.shape} must match for PSNR calculation. ")
    error = tf.reduce_mean(tf.square(x1 - x2))
    ten = tf.math.log(tf.cast(10, error.dtype))
    return (20 * tf.math.log(tensor(max_val, error.dtype)) - 10 * tf.math.log(error)) / ten


@operation("nn", tensors="abs_ angle")
def polar(abs_: Any, angle: Any) -> Any:
    """Complex numbers of given size and angle.

    >>> import twofold as tf
    >>> tf.keras.ops.polar([2.0], [0.0]).numpy().tolist()
    [(2+0j)]
    """
    size, angle = same(abs_, angle, at_least=float)
    return tf.complex(size * tf.cos(angle), size * tf.sin(angle))


@operation("nn", tensors="query key value bias mask scale")
def dot_product_attention(query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, scale: Any = None,
                          is_causal: bool = False, flash_attention: bool | None = None,
                          attn_logits_soft_cap: float | None = None) -> Any:
    """For each query, the average of values weighted by the softmax of its products with the keys, in each head.

    Args:
        query: floating [batch, queries, heads, size].
        key, value: [batch, keys, heads or a divisor of them, size].
        bias: added to the scores [batch, heads, queries, keys]; it broadcasts.
        mask: bools of that shape, where a key is seen.
        scale: the factor of the scores; one over the root of the size by default.
        is_causal: whether a query sees no key behind it.
        flash_attention: must not be True: there is one way to compute.
        attn_logits_soft_cap: a bound to which the scores are squeezed by tanh.
    Returns:
        [batch, queries, heads, size].
    Raises:
        ValueError: the tensors are not of rank 4, or `flash_attention` is True.

    >>> import twofold as tf
    >>> x = tf.ones([1, 3, 2, 4])
    >>> tf.keras.ops.dot_product_attention(x, x, x).shape
    TensorShape([1, 3, 2, 4])
    """
    if flash_attention:
        raise ValueError("Flash attention is not supported; `flash_attention` must be None or False.")
    query, key, value = same(query, key, value, at_least=float)
    if {query.ndim, key.ndim, value.ndim} != {4}:
        raise ValueError("`dot_product_attention` only supports 4D inputs. Received: "
                         f"query.shape={query.shape}, key.shape={key.shape}, value.shape={value.shape}.")
    groups = query.shape[2] // key.shape[2]
    if groups > 1:
        key, value = tf.repeat(key, groups, axis=2), tf.repeat(value, groups, axis=2)
    wide = tf.float32 if query.dtype.size < 4 else query.dtype
    factor = tensor(query.shape[3] ** -0.5 if scale is None else scale, wide)
    scores = tf.cast(tf.einsum("bthd,bshd->bhts", query, key), wide) * factor
    if attn_logits_soft_cap is not None:
        cap = tensor(attn_logits_soft_cap, wide)
        scores = tf.tanh(scores / cap) * cap
    if bias is not None:
        scores = scores + tensor(bias, wide)
    seen = None if mask is None else tensor(mask, tf.bool)
    if is_causal:
        rows, columns = tf.range(tf.shape(scores)[2]), tf.range(tf.shape(scores)[3])
        before = rows[:, tf.newaxis] >= columns
        seen = before if seen is None else tf.logical_and(seen, before)
    if seen is not None:
        scores = tf.where(seen, scores, tf.constant(0.7 * wide.min, wide))
    return tf.einsum("bhts,bshd->bthd", tf.cast(tf.nn.softmax(scores), query.dtype), value)


publish(__name__)
