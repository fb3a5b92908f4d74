"""Losses over batches: small functions of `tf.nn`, re-exported by it."""

from __future__ import annotations

from typing import Any

from twofold._front import replica
from twofold._front.api import public, tensor
from twofold._front.convert import cast
from twofold._ops.array_shape import shape
from twofold._ops.math_reductions import reduce_sum
from twofold._ops.nn_norm import batch_normalization
from twofold._ops.sorting import top_k
from twofold.ir import dtypes as dt

__all__ = ["approx_max_k", "approx_min_k", "batch_norm_with_global_normalization", "compute_average_loss",
           "scale_regularization_loss"]


@public
def compute_average_loss(per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None) -> Any:
    """The sum of losses of examples, with weights, over the number of examples of all replicas.

    Args:
        per_example_loss: [batch, ..].
        sample_weight: a weight for each, or for each example; 1 by default.
        global_batch_size: the number; by default the first size times the number of replicas (`tf.distribute`).
    Returns:
        A scalar.

    >>> import twofold as tf
    >>> float(tf.nn.compute_average_loss([1.0, 3.0], global_batch_size=4))
    1.0
    """
    losses = tensor(per_example_loss)
    if sample_weight is not None:
        weights = cast(tensor(sample_weight), losses.dtype)
        for _ in range(len(losses.dims) - len(weights.dims)):
            weights = weights[..., None]
        losses = losses * weights
    count = shape(losses)[0] * replica.here.get().of if global_batch_size is None else tensor(global_batch_size)
    return reduce_sum(losses) / cast(count, losses.dtype)


@public
def scale_regularization_loss(regularization_loss: Any) -> Any:
    """The sum of a loss over the number of replicas (`tf.distribute`), since gradients are summed over them.

    >>> import twofold as tf
    >>> float(tf.nn.scale_regularization_loss([1.0, 2.0]))
    3.0
    """
    total = reduce_sum(tensor(regularization_loss))
    replicas = replica.here.get().of
    return total if replicas == 1 else total / cast(tensor(replicas), total.dtype)


@public
def batch_norm_with_global_normalization(input: Any, mean: Any, variance: Any, beta: Any, gamma: Any,
                                         variance_epsilon: Any, scale_after_normalization: bool,
                                         name: str | None = None) -> Any:
    """`tf.nn.batch_normalization`, with `gamma` where `scale_after_normalization`. `name` has no effect."""
    return batch_normalization(input, mean, variance, beta, gamma if scale_after_normalization else None,
                               variance_epsilon)


def _last(operand: Any, reduction_dimension: int) -> Any:
    x = tensor(operand)
    if x.dtype not in (dt.float16, dt.bfloat16, dt.float32):
        raise TypeError(f"operand must be float16, bfloat16 or float32; got {x.dtype.name}")
    if reduction_dimension not in (-1, len(x.dims) - 1):
        raise ValueError("reduction_dimension must be the last one here; use tf.transpose")
    return x


@public
def approx_max_k(operand: Any, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
                 reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
                 name: str | None = None) -> Any:
    """The `k` largest elements along the last axis, and where they are: all of them, as `tf.math.top_k` has it.

    Args:
        operand: floating tensor.
        k: how many.
        reduction_dimension: the last one.
        recall_target, reduction_input_size_override, aggregate_to_topk, name: accepted, without effect.

    >>> import twofold as tf
    >>> [t.numpy().tolist() for t in tf.math.approx_max_k([1.0, 3.0, 2.0], 2)]
    [[3.0, 2.0], [1, 2]]
    """
    return top_k(_last(operand, reduction_dimension), k)


@public
def approx_min_k(operand: Any, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
                 reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
                 name: str | None = None) -> Any:
    """The `k` smallest elements along the last axis, and where they are; see `approx_max_k`.

    `recall_target`, `reduction_input_size_override`, `aggregate_to_topk` and `name` have no effect.
    """
    negated = top_k(-_last(operand, reduction_dimension), k)
    return -negated[0], negated[1]
