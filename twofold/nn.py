"""Neural networks (`tf.nn`), under TensorFlow's names.

The functions are in `_ops/nn_*.py`, a family in each; those that `tf.nn` shares with other modules are in these.
Families that few programs use are loaded when one of their names is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from twofold._front.namespace import publish
from twofold._ops.array_blocks import batch_to_space, depth_to_space, space_to_batch, space_to_depth
from twofold._ops.linalg_norms import l2_normalize
from twofold._ops.nn_activations import (
    crelu,
    elu,
    gelu,
    leaky_relu,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softplus,
    softsign,
    swish,
    tanh,
)
from twofold._ops.nn_batches import (
    approx_max_k,
    approx_min_k,
    batch_norm_with_global_normalization,
    compute_average_loss,
    scale_regularization_loss,
)
from twofold._ops.nn_conv import (
    atrous_conv2d,
    conv1d,
    conv1d_transpose,
    conv2d,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
    conv_transpose,
    convolution,
    depthwise_conv2d,
    separable_conv2d,
)
from twofold._ops.nn_dropout import dropout, general_dropout, stateless_dropout
from twofold._ops.nn_losses import (
    l2_loss,
    log_poisson_loss,
    log_softmax,
    sigmoid_cross_entropy_with_logits,
    softmax,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
    weighted_cross_entropy_with_logits,
    zero_fraction,
)
from twofold._ops.nn_norm import (
    batch_normalization,
    bias_add,
    embedding_lookup,
    fused_batch_norm,
    layer_normalization,
    local_response_normalization,
    lrn,
    moments,
    normalize_moments,
    sufficient_statistics,
    weighted_moments,
)
from twofold._ops.nn_pool import (
    avg_pool,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    max_pool_with_argmax,
    pool,
)
from twofold._ops.sorting import in_top_k, top_k

#: names by the module of `_ops` that is loaded for them
_LATER = {
    "nn_ctc": ("collapse_repeated", "ctc_beam_search_decoder", "ctc_greedy_decoder", "ctc_loss", "ctc_unique_labels"),
    "nn_embedding": ("embedding_lookup_sparse", "safe_embedding_lookup_sparse"),
    "nn_sampled": ("all_candidate_sampler", "compute_accidental_hits", "fixed_unigram_candidate_sampler", "nce_loss",
                   "sampled_softmax_loss"),
    "nn_windows": ("atrous_conv2d_transpose", "depthwise_conv2d_backprop_filter", "depthwise_conv2d_backprop_input",
                   "dilation2d", "erosion2d", "fractional_avg_pool", "fractional_max_pool", "isotonic_regression"),
}
_HOMES = {name: module for module, names in _LATER.items() for name in names}

__all__ = [
    *_HOMES,
    "approx_max_k", "approx_min_k", "atrous_conv2d", "avg_pool", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "batch_norm_with_global_normalization", "batch_normalization", "batch_to_space", "bias_add", "compute_average_loss",
    "conv1d", "conv1d_transpose", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose", "conv_transpose",
    "convolution", "crelu", "depth_to_space", "depthwise_conv2d", "dropout", "elu", "embedding_lookup", "experimental",
    "fused_batch_norm", "gelu", "in_top_k", "l2_loss", "l2_normalize", "layer_normalization", "leaky_relu",
    "local_response_normalization", "log_poisson_loss", "log_softmax", "lrn", "max_pool", "max_pool1d", "max_pool2d",
    "max_pool3d", "max_pool_with_argmax", "moments", "normalize_moments", "pool", "relu", "relu6",
    "scale_regularization_loss", "selu", "separable_conv2d", "sigmoid", "sigmoid_cross_entropy_with_logits", "silu",
    "softmax", "softmax_cross_entropy_with_logits", "softplus", "softsign", "space_to_batch", "space_to_depth",
    "sparse_softmax_cross_entropy_with_logits", "sufficient_statistics", "swish", "tanh", "top_k",
    "weighted_cross_entropy_with_logits", "weighted_moments", "zero_fraction",
]


class experimental:
    """`tf.nn.experimental`: dropout by random numbers of one's own."""

    general_dropout = staticmethod(general_dropout)
    stateless_dropout = staticmethod(stateless_dropout)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"twofold._ops.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


publish(__name__)
