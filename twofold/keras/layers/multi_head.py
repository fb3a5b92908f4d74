"""Attention of several heads, with weights for queries, keys, values and outputs (Vaswani et al. 2017)."""

from __future__ import annotations

import math
import string
from typing import Any

import twofold as tf
from twofold._front.api import listed

from .. import initializers
from ._declared import DeclaredLayer, Shape, build_within, positive
from .activation import Softmax
from .attention import causal_mask, spec_with_scores
from .core import EinsumDense
from .regularization import Dropout

__all__ = ["GroupQueryAttention", "MultiHeadAttention"]

_OPTIONS = ("kernel_initializer", "bias_initializer", "kernel_regularizer", "bias_regularizer",
            "activity_regularizer", "kernel_constraint", "bias_constraint")


class _Heads(DeclaredLayer):
    """What attention layers of several heads share: masks, weights of the average, and the dense layers' options."""

    supports_masking = True
    _sliding_window: int | None = None
    _query_dense: Any
    _key_dense: Any
    _value_dense: Any
    _output_dense: Any
    _gate_dense: Any
    _softmax: Any
    _dropout_layer: Any

    def _dense(self, equation: str, output_shape: Shape, bias_axes: str, name: str, input_shape: Any,
               activation: Any = None) -> EinsumDense:
        """A dense layer of this one's options, built."""
        options = {option: getattr(self, option) for option in _OPTIONS}
        for kind in ("kernel_initializer", "bias_initializer"):
            if isinstance(options[kind], initializers.Initializer):
                options[kind] = options[kind].clone()  # else all would begin alike
        layer = EinsumDense(equation, output_shape, activation, bias_axes if self.use_bias else None, name=name,
                            dtype=self.dtype_policy, **options)
        build_within(layer, self, tuple(input_shape))
        return layer

    use_bias: bool

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """The specs of the outputs, and of the weights where they are asked for."""
        return spec_with_scores(self, super().compute_output_spec, args, kwargs)

    def _visible(self, query: Any, value: Any, query_mask: Any, value_mask: Any, key_mask: Any, given: Any,
                 causal: bool) -> Any:
        """Which keys each query sees: bool [batch, queries, keys], or None for all."""
        masks = []
        if query_mask is not None:
            masks.append(tf.cast(query_mask, tf.bool)[..., tf.newaxis])
        masks += [tf.cast(mask, tf.bool)[..., tf.newaxis, :] for mask in (value_mask, key_mask) if mask is not None]
        queries, keys = tf.shape(query)[1], tf.shape(value)[1]
        if causal:
            masks.append(causal_mask(queries, keys))
        if self._sliding_window is not None:
            apart = tf.abs(tf.range(queries)[:, tf.newaxis] - tf.range(keys))
            masks.append((apart < self._sliding_window)[tf.newaxis])
        if given is not None:
            masks.append(tf.cast(given, tf.bool))
        if not masks:
            return None
        visible = masks[0]
        for one in masks[1:]:
            visible = tf.logical_and(visible, one)
        return visible

    def _attend(self, query: Any, key: Any, value: Any, visible: Any, scale: float) -> Any:
        """The averages of values [batch, queries, heads, size], for queries, keys and values of such shapes."""
        wide = tf.float32 if query.dtype.size < 4 else query.dtype
        query, key, value = (tf.transpose(x, (0, 2, 1, 3)) for x in (query * tf.cast(scale, query.dtype), key, value))
        scores = tf.cast(tf.matmul(query, key, transpose_b=True), wide)
        if visible is not None:
            for _ in range(4 - len(visible.shape)):
                visible = tf.expand_dims(visible, -3)
            scores = tf.where(visible, scores, tf.cast(wide.min * 0.7, wide))
        return tf.transpose(tf.matmul(tf.cast(tf.nn.softmax(scores, axis=-1), value.dtype), value), (0, 2, 1, 3))


def _projection(free: int, bound: int, made: int) -> tuple[str, str, int]:
    """The equation of a projection: of `free` axes kept, `bound` summed over, `made` new; its bias, its rank."""
    letters = string.ascii_lowercase
    kept, summed, new = letters[:free], letters[free:free + bound], letters[free + bound:free + bound + made]
    return f"{kept}{summed},{summed}{new}->{kept}{new}", new, free + made


class MultiHeadAttention(_Heads):
    """Attention of several heads, each over projections of queries, keys and values (Vaswani et al. 2017).

    Args:
        num_heads: how many.
        key_dim: the size of a head's queries and keys.
        value_dim: the size of a head's values; `key_dim` by default.
        dropout: the rate at which weights of the averages are dropped in training.
        use_bias: whether the projections have biases.
        output_shape: the sizes of the outputs' last axes; those of the queries by default.
        attention_axes: the axes over which attention goes; all but batch, heads and features by default.
        sliding_window: how near keys must be to be seen: nearer than this; no limit by default.
        flash_attention: accepted if false.
        kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer,
        kernel_constraint, bias_constraint: for the projections.
        use_gate: whether the averages are multiplied by sigmoids of a projection of the queries.
        seed: an integer, for the same choices in every run.
        kwargs: those of `Layer`.
    Inputs: query [batch, queries, ..], value and optionally key [batch, keys, ..]; `attention_mask`, bool [batch,
        queries, keys]; `query_mask`, `value_mask`, `key_mask`; `use_causal_mask`: whether a query sees no key after
        itself; `return_attention_scores`: whether the weights are given, too.
    Outputs: [batch, queries, features], and the weights [batch, heads, queries, keys] if wanted.
    Weights: of the dense layers query, key, value: kernels [features, heads, size] and biases [heads, size]; of
        attention_output: kernel [heads, size, features] and bias [features].

    >>> import twofold as tf
    >>> layer = tf.keras.layers.MultiHeadAttention(num_heads=2, key_dim=4)
    >>> output, weights = layer(tf.zeros([3, 5, 8]), tf.zeros([3, 6, 8]), return_attention_scores=True)
    >>> output.shape, weights.shape
    (TensorShape([3, 5, 8]), TensorShape([3, 2, 5, 6]))
    """

    _arguments = ("num_heads", "key_dim", "value_dim", "dropout", "use_bias", "output_shape", "attention_axes",
                  "use_gate", "sliding_window", *_OPTIONS, "seed")

    def __init__(self, num_heads: int, key_dim: int, value_dim: int | None = None, dropout: float = 0.0,
                 use_bias: bool = True, output_shape: Any = None, attention_axes: Any = None,
                 sliding_window: int | None = None, flash_attention: Any = None,
                 kernel_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
                 kernel_regularizer: Any = None, bias_regularizer: Any = None, activity_regularizer: Any = None,
                 kernel_constraint: Any = None, bias_constraint: Any = None, use_gate: bool = False, seed: Any = None,
                 **kwargs: Any):
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        _refuse_flash(flash_attention)
        self.num_heads, self.key_dim = positive(num_heads, "num_heads"), positive(key_dim, "key_dim")
        self.value_dim = positive(value_dim or key_dim, "value_dim")
        self.dropout, self.use_bias, self.use_gate, self.seed = dropout, use_bias, use_gate, seed
        self._output_sizes = None if not output_shape else (output_shape,) if isinstance(output_shape, int) else tuple(
            listed(output_shape, "output_shape"))
        self.attention_axes = (attention_axes,) if isinstance(attention_axes, int) else attention_axes
        self._sliding_window = None if sliding_window is None else positive(sliding_window, "sliding_window")
        self._take(kernel_initializer=kernel_initializer, bias_initializer=bias_initializer,
                   kernel_regularizer=kernel_regularizer, bias_regularizer=bias_regularizer,
                   kernel_constraint=kernel_constraint, bias_constraint=bias_constraint)

    @property
    def query_dense(self) -> Any:
        """The layer that makes queries."""
        return self._query_dense

    @property
    def key_dense(self) -> Any:
        """The layer that makes keys."""
        return self._key_dense

    @property
    def value_dense(self) -> Any:
        """The layer that makes values."""
        return self._value_dense

    @property
    def output_dense(self) -> Any:
        """The layer that makes outputs of the heads' averages."""
        return self._output_dense

    def _argument(self, name: str) -> Any:
        hidden = {"output_shape": "_output_sizes", "sliding_window": "_sliding_window"}
        return super()._argument(hidden.get(name, name))

    def build(  # type: ignore[override]
            self, query_shape: Any, value_shape: Any, key_shape: Any = None) -> None:
        """Make the projections."""
        key_shape = value_shape if key_shape is None else key_shape
        if tuple(value_shape[1:-1]) != tuple(key_shape[1:-1]):
            raise ValueError("All dimensions of `value` and `key`, except the last one, must be equal. Received: "
                             f"value_shape={value_shape} and key_shape={key_shape}")

        def heads(shape: Any, size: int, name: str, activation: Any = None) -> EinsumDense:
            equation, bias, rank = _projection(len(shape) - 1, 1, 2)
            return self._dense(equation, (*(None,) * (rank - 3), self.num_heads, size), bias, name, shape, activation)

        self._query_dense = heads(query_shape, self.key_dim, "query")
        self._key_dense = heads(key_shape, self.key_dim, "key")
        if self.use_gate:
            self._gate_dense = heads(query_shape, self.value_dim, "gate", "sigmoid")
        self._value_dense = heads(value_shape, self.value_dim, "value")
        rank = len(value_shape) + 1
        axes = range(1, rank - 2) if self.attention_axes is None else self.attention_axes
        self._axes = tuple(axis if axis >= 0 else rank - 1 + axis for axis in axes)
        sizes = self._output_sizes or (query_shape[-1],)
        equation, bias, made = _projection(len(query_shape) - 1, 2, len(sizes))
        inner = (*query_shape[:-1], self.num_heads, self.value_dim)
        self._output_dense = self._dense(equation, (*(None,) * (made - 1 - len(sizes)), *sizes), bias,
                                         "attention_output", inner)
        self._softmax = Softmax(axis=tuple(range(-len(self._axes), 0)), dtype=self.dtype_policy)
        self._dropout_layer = Dropout(self.dropout, dtype=self.dtype_policy, seed=self.seed)
        self.built = True

    def call(self, query: Any, value: Any, key: Any = None, query_mask: Any = None, value_mask: Any = None,
             key_mask: Any = None, attention_mask: Any = None, return_attention_scores: bool = False,
             training: Any = None, use_causal_mask: bool = False) -> Any:
        """The outputs for queries, values and keys."""
        key = value if key is None else key
        visible = self._visible(query, value, query_mask, value_mask, key_mask, attention_mask, use_causal_mask)
        gate = self._gate_dense(query) if self.use_gate else None
        query, key, value = self._query_dense(query), self._key_dense(key), self._value_dense(value)
        scale, weights = 1.0 / math.sqrt(float(self.key_dim)), None
        if self.dropout > 0 or return_attention_scores or len(query.shape) != 4:
            averages, weights = self._weighted(query, key, value, visible, scale, training)
        else:
            averages = self._attend(query, key, value, visible, scale)
        outputs = self._output_dense(averages if gate is None else averages * gate)
        return (outputs, weights) if return_attention_scores else outputs

    def _weighted(self, query: Any, key: Any, value: Any, visible: Any, scale: float,
                  training: Any) -> tuple[Any, Any]:
        """The averages and their weights, over any axes, with dropout."""
        rank = len(query.shape)
        letters = string.ascii_letters
        target = letters[:rank]
        source = "".join(letters[rank + axis] if axis in self._axes else target[axis] for axis in range(rank))
        batch = "".join(target[axis] for axis in range(rank - 1) if axis not in self._axes)
        product = batch + "".join(target[a] for a in self._axes) + "".join(source[a] for a in self._axes)
        scores = tf.einsum(f"{source},{target}->{product}", key, query * tf.cast(scale, query.dtype))
        if visible is not None:
            for _ in range(len(scores.shape) - len(visible.shape)):
                visible = tf.expand_dims(visible, -2 * len(self._axes) - 1)
        weights = self._softmax(scores, mask=visible)
        dropped = self._dropout_layer(weights, training=training) if self.dropout > 0 else weights
        return tf.einsum(f"{product},{source}->{target}", dropped, value), weights

    def compute_output_shape(self, query_shape: Any, value_shape: Any = None, key_shape: Any = None) -> Shape:
        """The shape of the outputs for queries of a shape. `value_shape` and `key_shape` have no effect."""
        return (*query_shape[:-1], *(self._output_sizes or query_shape[-1:]))


def _refuse_flash(flash_attention: Any) -> None:
    if flash_attention:
        raise ValueError("flash_attention=True is for accelerators that have it; compiled code fuses what it can.")


class GroupedQueryAttention(_Heads):
    """Attention whose heads share keys and values in groups (Ainslie et al. 2023).

    Args:
        head_dim: the size of a head.
        num_query_heads: how many heads there are.
        num_key_value_heads: how many of them have keys and values of their own; it divides `num_query_heads`.
        dropout, use_bias, sliding_window, flash_attention, kernel_initializer, bias_initializer, kernel_regularizer,
        bias_regularizer, activity_regularizer, kernel_constraint, bias_constraint, use_gate, seed: as for
            `MultiHeadAttention`.
        kwargs: those of `Layer`.
    Inputs and outputs: as for `MultiHeadAttention`, with tensors of rank 3.

    >>> import twofold as tf
    >>> layer = tf.keras.layers.GroupQueryAttention(4, num_query_heads=4, num_key_value_heads=2)
    >>> layer(tf.zeros([3, 5, 8]), tf.zeros([3, 6, 8])).shape, layer.weights[2].shape
    (TensorShape([3, 5, 8]), TensorShape([8, 2, 4]))
    """

    _keras_name = "GroupQueryAttention"
    _arguments = ("head_dim", "num_query_heads", "num_key_value_heads", "use_bias", "use_gate", "sliding_window",
                  "dropout", *_OPTIONS, "seed")

    def __init__(self, head_dim: int, num_query_heads: int, num_key_value_heads: int, dropout: float = 0.0,
                 use_bias: bool = True, sliding_window: int | None = None, flash_attention: Any = None,
                 kernel_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
                 kernel_regularizer: Any = None, bias_regularizer: Any = None, activity_regularizer: Any = None,
                 kernel_constraint: Any = None, bias_constraint: Any = None, use_gate: bool = False, seed: Any = None,
                 **kwargs: Any):
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        _refuse_flash(flash_attention)
        self.head_dim, self.num_query_heads = positive(head_dim, "head_dim"), positive(num_query_heads,
                                                                                      "num_query_heads")
        self.num_key_value_heads = positive(num_key_value_heads, "num_key_value_heads")
        if num_query_heads % num_key_value_heads:
            raise ValueError("`num_query_heads` must be divisible by `num_key_value_heads`. Received: "
                             f"{num_query_heads} and {num_key_value_heads}")
        self.dropout, self.use_bias, self.use_gate, self.seed = dropout, use_bias, use_gate, seed
        self._sliding_window = None if sliding_window is None else positive(sliding_window, "sliding_window")
        self._take(kernel_initializer=kernel_initializer, bias_initializer=bias_initializer,
                   kernel_regularizer=kernel_regularizer, bias_regularizer=bias_regularizer,
                   kernel_constraint=kernel_constraint, bias_constraint=bias_constraint)

    def _argument(self, name: str) -> Any:
        return super()._argument("_sliding_window" if name == "sliding_window" else name)

    def build(  # type: ignore[override]
            self, query_shape: Any, value_shape: Any, key_shape: Any = None) -> None:
        """Make the projections."""
        key_shape = value_shape if key_shape is None else key_shape
        own, shared, size = self.num_query_heads, self.num_key_value_heads, self.head_dim
        self._query_dense = self._dense("bqm,muh->bquh", (None, own, size), "uh", "query", query_shape)
        self._key_dense = self._dense("bkm,mvh->bkvh", (None, shared, size), "vh", "key", key_shape)
        if self.use_gate:
            self._gate_dense = self._dense("bqm,muh->bquh", (None, own, size), "uh", "gate", query_shape, "sigmoid")
        self._value_dense = self._dense("bkm,mvh->bkvh", (None, shared, size), "vh", "value", value_shape)
        self._output_dense = self._dense("bquh,uhm->bqm", (None, query_shape[-1]), "m", "attention_output",
                                         (None, None, own, size))
        self._softmax = Softmax(axis=-1, dtype=self.dtype_policy)
        self._dropout_layer = Dropout(self.dropout, dtype=self.dtype_policy, seed=self.seed)
        self.built = True

    def call(self, query: Any, value: Any, key: Any = None, query_mask: Any = None, value_mask: Any = None,
             key_mask: Any = None, attention_mask: Any = None, return_attention_scores: bool = False,
             training: Any = None, use_causal_mask: bool = False) -> Any:
        """The outputs for queries, values and keys."""
        key = value if key is None else key
        visible = self._visible(query, value, query_mask, value_mask, key_mask, attention_mask, use_causal_mask)
        gate = self._gate_dense(query) if self.use_gate else None
        times = self.num_query_heads // self.num_key_value_heads
        query = self._query_dense(query)
        key = tf.repeat(self._key_dense(key), times, axis=2)
        value = tf.repeat(self._value_dense(value), times, axis=2)
        scale, weights = 1.0 / math.sqrt(float(self.head_dim)), None
        if self.dropout > 0 or return_attention_scores:
            scores = tf.einsum("bquh,bkuh->buqk", query * tf.cast(scale, query.dtype), key)
            weights = self._softmax(scores, mask=None if visible is None else tf.expand_dims(visible, -3))
            dropped = self._dropout_layer(weights, training=training) if self.dropout > 0 else weights
            averages = tf.einsum("buqk,bkuh->bquh", dropped, value)
        else:
            averages = self._attend(query, key, value, visible, scale)
        outputs = self._output_dense(averages if gate is None else averages * gate)
        return (outputs, weights) if return_attention_scores else outputs

    def compute_output_shape(self, query_shape: Any, value_shape: Any = None, key_shape: Any = None) -> Shape:
        """The shape of the outputs for queries of a shape. `value_shape` and `key_shape` have no effect."""
        return tuple(query_shape)


GroupQueryAttention = GroupedQueryAttention  # names of layers, and paths in weight files, follow the longer name
