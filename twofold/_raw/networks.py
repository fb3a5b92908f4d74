"""Raw ops of networks: normalisation, losses with their gradients, cells of recurrent layers."""

from __future__ import annotations

from typing import Any

import twofold as tf

from .declared import op, pulled, refuse_others

__all__ = ["ROWS"]

ROWS = ""


# -- normalisation ------------------------------------------------------------------------------------
def _normalised(x: Any, scale: Any, offset: Any, mean: Any, variance: Any, epsilon: float, factor: float, form: str,
                training: bool) -> Any:
    x = tf.convert_to_tensor(x)
    needed = not training or factor != 1
    y, new_mean, new_variance = tf.nn.fused_batch_norm(
        x, scale, offset, mean if needed else None, variance if needed else None, epsilon, form, training,
        exponential_avg_factor=float(factor))
    if not training:
        return y, new_mean, new_variance, tf.convert_to_tensor(mean), tf.convert_to_tensor(variance)
    axes = [n for n, axis in enumerate(form) if axis != "C"]
    return y, new_mean, new_variance, *tf.nn.moments(tf.cast(x, new_mean.dtype), axes)


@op("y batch_mean batch_variance reserve_space_1 reserve_space_2")
def fused_batch_norm(x: Any, scale: Any, offset: Any, mean: Any, variance: Any, epsilon: float = 0.0001,
                     exponential_avg_factor: float = 1, data_format: str = "NHWC", is_training: bool = True) -> Any:
    return _normalised(x, scale, offset, mean, variance, epsilon, exponential_avg_factor, data_format, is_training)


@op("y batch_mean batch_variance reserve_space_1 reserve_space_2", name="FusedBatchNormV2")
def fused_batch_norm_v2(x: Any, scale: Any, offset: Any, mean: Any, variance: Any, epsilon: float = 0.0001,
                        exponential_avg_factor: float = 1, data_format: str = "NHWC",
                        is_training: bool = True) -> Any:
    return _normalised(x, scale, offset, mean, variance, epsilon, exponential_avg_factor, data_format, is_training)


@op("y batch_mean batch_variance reserve_space_1 reserve_space_2 reserve_space_3", name="FusedBatchNormV3")
def fused_batch_norm_v3(x: Any, scale: Any, offset: Any, mean: Any, variance: Any, epsilon: float = 0.0001,
                        exponential_avg_factor: float = 1, data_format: str = "NHWC",
                        is_training: bool = True) -> Any:
    made = _normalised(x, scale, offset, mean, variance, epsilon, exponential_avg_factor, data_format, is_training)
    return *made, tf.zeros([0], made[1].dtype)  # the third reserve is cuDNN's


def _gradients(ct: Any, x: Any, scale: Any, mean: Any, variance: Any, epsilon: float, form: str,
               training: bool) -> Any:
    ct = tf.convert_to_tensor(ct)
    offset, none = tf.zeros_like(scale), tf.zeros([], tf.float32)
    given = (None, None) if training else (mean, variance)

    def forward(x: Any, scale: Any, offset: Any) -> Any:
        return tf.nn.fused_batch_norm(x, scale, offset, given[0], given[1], epsilon, form, training)[0]
    made = pulled(forward, [x, scale, offset], ct)
    return *made, none, none


@op("x_backprop scale_backprop offset_backprop reserve_space_3 reserve_space_4")
def fused_batch_norm_grad(y_backprop: Any, x: Any, scale: Any, reserve_space_1: Any, reserve_space_2: Any,
                          epsilon: float = 0.0001, data_format: str = "NHWC", is_training: bool = True) -> Any:
    return _gradients(y_backprop, x, scale, reserve_space_1, reserve_space_2, epsilon, data_format, is_training)


@op("x_backprop scale_backprop offset_backprop reserve_space_3 reserve_space_4", name="FusedBatchNormGradV2")
def fused_batch_norm_grad_v2(y_backprop: Any, x: Any, scale: Any, reserve_space_1: Any, reserve_space_2: Any,
                             epsilon: float = 0.0001, data_format: str = "NHWC", is_training: bool = True) -> Any:
    return _gradients(y_backprop, x, scale, reserve_space_1, reserve_space_2, epsilon, data_format, is_training)


@op("x_backprop scale_backprop offset_backprop reserve_space_4 reserve_space_5", name="FusedBatchNormGradV3")
def fused_batch_norm_grad_v3(y_backprop: Any, x: Any, scale: Any, reserve_space_1: Any, reserve_space_2: Any,
                             reserve_space_3: Any, epsilon: float = 0.0001, data_format: str = "NHWC",
                             is_training: bool = True) -> Any:
    return _gradients(y_backprop, x, scale, reserve_space_1, reserve_space_2, epsilon, data_format, is_training)


@op(name="LRNGrad")
def lrn_grad(input_grads: Any, input_image: Any, output_image: Any, depth_radius: int = 5, bias: float = 1,
             alpha: float = 1, beta: float = 0.5) -> Any:
    return pulled(lambda x: tf.nn.lrn(x, depth_radius, bias, alpha, beta), [input_image],
                  tf.convert_to_tensor(input_grads))[0]


# -- losses -------------------------------------------------------------------------------------------


# -- cells --------------------------------------------------------------------------------------------
@op("r u c h", name="GRUBlockCell")
def gru_block_cell(x: Any, h_prev: Any, w_ru: Any, w_c: Any, b_ru: Any, b_c: Any) -> Any:
    x, before = tf.convert_to_tensor(x), tf.convert_to_tensor(h_prev)
    reset, update = tf.split(tf.sigmoid(tf.concat([x, before], 1) @ w_ru + b_ru), 2, 1)
    new = tf.tanh(tf.concat([x, before * reset], 1) @ w_c + b_c)
    return reset, update, new, update * before + (1 - update) * new


@op("i cs f o ci co h", name="LSTMBlockCell")
def lstm_block_cell(x: Any, cs_prev: Any, h_prev: Any, w: Any, wci: Any, wcf: Any, wco: Any, b: Any,
                    forget_bias: float = 1, cell_clip: float = 3, use_peephole: bool = False) -> Any:
    return _cell(x, cs_prev, h_prev, w, (wci, wcf, wco) if use_peephole else None, b, forget_bias, cell_clip, "icfo")


def _cell(x: Any, cs_prev: Any, h_prev: Any, w: Any, peepholes: Any, b: Any, forget_bias: float, clip: float,
          order: str) -> Any:
    state = tf.convert_to_tensor(cs_prev)
    sums = tf.split(tf.concat([x, h_prev], 1) @ w + b, 4, 1)
    gates = dict(zip(order, sums, strict=True))
    if peepholes is not None:
        gates["i"] += state * peepholes[0]
        gates["f"] += state * peepholes[1]
    into, forget = tf.sigmoid(gates["i"]), tf.sigmoid(gates["f"] + forget_bias)
    new = tf.tanh(gates["c"])
    state = new * into + state * forget
    if clip > 0:
        state = tf.clip_by_value(state, -clip, clip)
    out = tf.sigmoid(gates["o"] if peepholes is None else gates["o"] + state * peepholes[2])
    told = tf.tanh(state)
    return into, state, forget, out, new, told, told * out


@op("i cs f o ci co h", name="BlockLSTM")
def block_lstm(seq_len_max: Any, x: Any, cs_prev: Any, h_prev: Any, w: Any, wci: Any, wcf: Any, wco: Any, b: Any,
               forget_bias: float = 1, cell_clip: float = 3, use_peephole: bool = False) -> Any:
    return _rounds(seq_len_max, x, cs_prev, h_prev, w, (wci, wcf, wco) if use_peephole else None, b, forget_bias,
                   cell_clip, "icfo")


@op("i cs f o ci co h", name="BlockLSTMV2")
def block_lstm_v2(seq_len_max: Any, x: Any, cs_prev: Any, h_prev: Any, w: Any, wci: Any, wcf: Any, wco: Any, b: Any,
                  cell_clip: float = 0, use_peephole: bool = False) -> Any:
    return _rounds(seq_len_max, x, cs_prev, h_prev, w, (wci, wcf, wco) if use_peephole else None, b, 0.0, cell_clip,
                   "ifco")


def _rounds(count: Any, x: Any, state: Any, told: Any, *settings: Any) -> Any:
    """A cell's results in each step of a sequence; zeros beyond its length."""
    x, count = tf.convert_to_tensor(x), tf.cast(count, tf.int32)
    steps = []
    for n in range(x.shape[0]):
        made = _cell(x[n], state, told, *settings)
        inside = n < count
        state, told = tf.where(inside, made[1], state), tf.where(inside, made[6], told)
        steps.append([tf.where(inside, value, tf.zeros([], value.dtype)) for value in made])
    return tuple([tf.stack(values) for values in zip(*steps, strict=True)])


@op("output output_h output_c reserve_space", name="CudnnRNN")
def cudnn_rnn(input: Any, input_h: Any, input_c: Any, params: Any, rnn_mode: str = "lstm",
              input_mode: str = "linear_input", direction: str = "unidirectional", dropout: float = 0, seed: int = 0,
              seed2: int = 0, is_training: bool = True) -> Any:
    # Layers of LSTM. Their parameters lie as cuDNN has them: the matrices for input and state of each layer, then the
    # two biases of each; their rows belong to the gates input, forget, candidate and output, in this order.
    refuse_others("CudnnRNN", rnn_mode=(rnn_mode, "lstm"), input_mode=(input_mode, "linear_input"),
                  direction=(direction, "unidirectional"), dropout=(dropout, 0))
    x, states = tf.convert_to_tensor(input), list(zip(tf.unstack(input_h), tf.unstack(input_c), strict=True))
    size, layers = states[0][0].shape[1], len(states)
    widths = [width for n in range(layers) for width in (size if n else x.shape[2], size)]
    parts = tf.split(params, [*[4 * size * width for width in widths], *[4 * size] * (2 * layers)])
    last = []
    for n, state in enumerate(states):
        of_input, of_state = [tf.reshape(parts[m], [4 * size, widths[m]]) for m in (2 * n, 2 * n + 1)]
        x, h, c = _lstm_layer(x, state, of_input, of_state, parts[2 * layers + 2 * n] + parts[2 * layers + 2 * n + 1])
        last.append((h, c))
    return x, tf.stack([h for h, _ in last]), tf.stack([c for _, c in last]), tf.zeros([0], x.dtype)


def _lstm_layer(x: Any, state: tuple[Any, Any], of_input: Any, of_state: Any, bias: Any) -> tuple[Any, Any, Any]:
    """The outputs of a layer for each step of `x`, and its output and cell state after the last one."""
    outputs, (h, c) = [], state
    for step in tf.unstack(x):
        sums = tf.matmul(step, of_input, transpose_b=True) + tf.matmul(h, of_state, transpose_b=True) + bias
        into, forget, candidate, out = tf.split(sums, 4, 1)
        c = tf.sigmoid(forget) * c + tf.sigmoid(into) * tf.tanh(candidate)
        h = tf.sigmoid(out) * tf.tanh(c)
        outputs.append(h)
    return tf.stack(outputs), h, c
