"""Attention without weights for queries, keys and values: dot products, and sums (Luong et al., Bahdanau et al.)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twofold as tf

from .. import random
from ..operands import floating, same
from ..scalars import number
from ..symbolic import traced_spec
from ._declared import DeclaredLayer, Shape

__all__ = ["AdditiveAttention", "Attention"]


def causal_mask(queries: Any, keys: Any) -> Any:
    """Which keys queries may see that see none after themselves: bool [1, queries, keys], for their numbers."""
    return tf.range(queries)[tf.newaxis, :, tf.newaxis] >= tf.range(keys)


def spec_with_scores(layer: Any, spec: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The specs of a layer's outputs; of the weights of the averages, too, where the call asks for them.

    Args:
        layer: it takes `return_attention_scores`.
        spec: from the arguments to the spec of the outputs alone.
        args, kwargs: the call's, with KerasTensors for tensors.
    """
    if layer._call_spec.named(args, kwargs).get("return_attention_scores"):
        return traced_spec(layer, args, kwargs)
    return spec(*args, **kwargs)


class Attention(DeclaredLayer):
    """For each query, the average of values, weighted by the softmax of its scores with the keys (Luong et al. 2015).

    Args:
        use_scale: whether scores are multiplied by a learned number.
        score_mode: "dot" for dot products of queries and keys, "concat" for the sums of tanh of their sums.
        dropout: the rate at which weights are dropped in training.
        seed: an integer, for the same choices in every run.
        kwargs: those of `Layer`.
    Inputs: a list [query, value] or [query, value, key], floating [batch, queries, features] and [batch, keys,
        features]; `mask`, a list of bool [batch, queries] and [batch, keys]; `use_causal_mask`: whether a query sees no
        key after itself; `return_attention_scores`: whether the weights are given, too.
    Outputs: [batch, queries, features of values], and the weights [batch, queries, keys] if wanted.
    Weights: scale [] and concat_score_weight [], where there are.

    >>> import twofold as tf
    >>> query, value = tf.constant([[[1.0]]]), tf.constant([[[0.0], [2.0]]])
    >>> tf.keras.layers.Attention()([query, value], mask=[None, tf.constant([[False, True]])]).numpy().tolist()
    [[[2.0]]]
    """

    _arguments = ("use_scale", "score_mode", "dropout", "seed")
    supports_masking = True
    scale: Any = None
    concat_score_weight: Any = None

    def __init__(self, use_scale: bool = False, score_mode: str = "dot", dropout: float = 0.0, seed: Any = None,
                 **kwargs: Any):
        super().__init__(**kwargs)
        if score_mode not in ("dot", "concat"):
            raise ValueError("Invalid value for argument score_mode. Expected one of {'dot', 'concat'}. "
                             f"Received: score_mode={score_mode}")
        self.use_scale, self.score_mode, self.dropout, self.seed = use_scale, score_mode, dropout, seed
        if dropout > 0:
            self.seed_generator = random.SeedGenerator(seed)

    def build(self, input_shape: Any) -> None:
        """Make the weights."""
        self._check(input_shape)
        if self.use_scale:
            self.scale = self.add_weight(name="scale", shape=(), initializer="ones")
        if self.score_mode == "concat":
            self.concat_score_weight = self.add_weight(name="concat_score_weight", shape=(), initializer="ones")
        self.built = True

    def _check(self, inputs: Any) -> None:
        if not isinstance(inputs, (list, tuple)) or not 2 <= len(inputs) <= 3:
            raise ValueError(f"{type(self).__name__} layer must be called on a list of inputs, namely [query, value] "
                             f"or [query, value, key]. Received: inputs={inputs}.")

    def _scores(self, query: Any, key: Any) -> Any:
        if self.score_mode == "dot":
            query, key = same(query, key)
            scores = tf.matmul(query, key, transpose_b=True)
            return scores if self.scale is None else scores * self.scale
        query, key = same(query, key)
        sums = query[..., :, tf.newaxis, :] + key[..., tf.newaxis, :, :]
        sums = sums if self.scale is None else self.scale * sums
        return self.concat_score_weight * tf.reduce_sum(tf.tanh(floating(sums)), axis=-1)

    def call(self, inputs: Any, mask: Any = None, training: Any = False, return_attention_scores: bool = False,
             use_causal_mask: bool = False) -> Any:
        """The outputs for `inputs`."""
        self._check(inputs)
        query, value = inputs[0], inputs[1]
        key = inputs[2] if len(inputs) > 2 else value
        query_mask, value_mask = (mask[0], mask[1]) if mask else (None, None)
        scores = self._scores(query, key)
        allowed = None if value_mask is None else tf.cast(value_mask, tf.bool)[..., tf.newaxis, :]
        if use_causal_mask:
            sizes = tf.shape(scores)
            causal = causal_mask(sizes[-2], sizes[-1])
            allowed = causal if allowed is None else tf.logical_and(allowed, causal)
        if allowed is not None:
            far = number(65504.0 if scores.dtype == tf.float16 else 1e9, scores.dtype)
            scores = tf.where(allowed, scores, scores - far)
        weights = tf.nn.softmax(scores, axis=-1)
        if self.dropout > 0 and training:
            weights = random.dropout(weights, self.dropout, seed=self.seed_generator)
        outputs = tf.matmul(*same(weights, value))
        if query_mask is not None:
            outputs = tf.where(tf.cast(query_mask, tf.bool)[..., tf.newaxis], outputs, tf.zeros((), outputs.dtype))
        return (outputs, weights) if return_attention_scores else outputs

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the queries."""
        return None if mask is None or mask[0] is None else tf.convert_to_tensor(mask[0])

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """The specs of the outputs, and of the weights where they are asked for."""
        return spec_with_scores(self, super().compute_output_spec, args, kwargs)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """The shape of the outputs for inputs of shapes."""
        return (*input_shape[0][:-1], input_shape[1][-1])


class AdditiveAttention(Attention):
    """Attention whose scores are weighted sums of tanh of query plus key (Bahdanau et al. 2015).

    Args:
        use_scale: whether the sums are weighted, by a learned vector.
        dropout: the rate at which weights are dropped in training.
        kwargs: those of `Layer`, and `seed`.
    Inputs and outputs: as for `Attention`.
    Weights: scale [features].

    >>> import twofold as tf
    >>> layer = tf.keras.layers.AdditiveAttention()
    >>> layer([tf.zeros([2, 3, 4]), tf.zeros([2, 5, 4])]).shape
    TensorShape([2, 3, 4])
    """

    def __init__(self, use_scale: bool = True, dropout: float = 0.0, **kwargs: Any):
        super().__init__(use_scale=use_scale, dropout=dropout, **kwargs)

    def build(self, input_shape: Any) -> None:
        """Make the weight."""
        self._check(input_shape)
        if self.use_scale:
            self.scale = self.add_weight(name="scale", shape=(input_shape[0][-1],), initializer="glorot_uniform")
        self.built = True

    def _scores(self, query: Any, key: Any) -> Any:
        query, key = same(query, key, at_least=float)
        near = tf.tanh(query[..., :, tf.newaxis, :] + key[..., tf.newaxis, :, :])
        return tf.reduce_sum(near if self.scale is None else self.scale * near, axis=-1)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer, as plain values."""
        config = super().get_config()
        del config["score_mode"]
        return config
