"""What layers are compared on: how they are made, and what they are called with.

`make_layer_reference.py` runs these cases in Keras, and `test_layers.py` in twofold: a case makes its layer from a
namespace of layers, so both see the same arguments; inputs and weights are waves rounded to three digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .formula_cases import ints, wave


@dataclass(frozen=True)
class Case:
    """One layer and one call of it.

    Attributes:
        make: from the namespace of layers to the layer.
        inputs: arrays; gradients go to the floating ones.
        call: from the layer and the inputs as tensors to the outputs.
        compiled: whether the case runs in a `tf.function`, too.
    """

    make: Callable[[Any], Any]
    inputs: tuple[np.ndarray, ...]
    call: Callable[..., Any]
    compiled: bool


def plain(layer: Any, *inputs: Any) -> Any:
    return layer(*inputs)


def listed(layer: Any, *inputs: Any) -> Any:
    return layer(list(inputs))


def training(layer: Any, *inputs: Any) -> Any:
    return layer(*inputs, training=True)


def inference(layer: Any, *inputs: Any) -> Any:
    return layer(*inputs, training=False)


def masked(layer: Any, inputs: Any, mask: Any) -> Any:
    return layer(inputs, mask=mask)


def started(layer: Any, inputs: Any, *states: Any) -> Any:
    return layer(inputs, initial_state=list(states))


def twice(layer: Any, inputs: Any) -> Any:
    """A stateful layer, over two batches."""
    return [layer(inputs), layer(0.5 * inputs)]


def masked_list(layer: Any, *given: Any) -> Any:
    return layer(list(given[:2]), mask=list(given[2:]))


CASES: dict[str, Case] = {}


def case(name: str, make: Callable[[Any], Any], *inputs: np.ndarray, call: Callable[..., Any] = plain,
         compiled: bool = False) -> None:
    assert name not in CASES, name
    CASES[name] = Case(make, inputs, call, compiled)


def weight(number: int, shape: tuple[int, ...], name: str) -> np.ndarray:
    """The value of a layer's weight number `number`."""
    value = 0.4 * wave(50 + number, *shape)
    if "variance" in name or "stddev" in name:
        return np.round(0.5 + np.abs(value), 3).astype(np.float32)
    return np.round(value, 3).astype(np.float32)


def operation_inputs() -> list[np.ndarray]:
    """Inputs of the model of operations: words, of which some are padding, and steps, of which some are masked."""
    x = wave(16, 2, 4, 3)
    x[0, 2:] = 0
    return [np.array([[1, 2, 0, 0], [3, 4, 1, 0]], np.int32), x]


STEPS = wave(1, 2, 5, 3)  # batch, steps, features
MASK = np.array([[True, True, False, True, False], [False, False, True, True, True]])
IMAGE = wave(2, 2, 6, 5, 4)
FIRST = wave(3, 2, 4, 6, 5)
VOLUME = wave(4, 1, 4, 5, 4, 2)
ROWS = wave(5, 3, 4)

# -- core -------------------------------------------------------------------------------------------
case("dense", lambda k: k.Dense(3), ROWS, compiled=True)
case("dense relu rank 3", lambda k: k.Dense(2, activation="relu"), STEPS)
case("dense without bias", lambda k: k.Dense(3, use_bias=False, activation="gelu"), ROWS)
case("dense options", lambda k: k.Dense(2, kernel_regularizer="l2", bias_constraint="non_neg",
                                        kernel_initializer="he_normal", activity_regularizer="l1"), ROWS)
case("einsum dense", lambda k: k.EinsumDense("abc,cd->abd", (None, 4), bias_axes="d"), STEPS, compiled=True)
case("einsum dense ellipsis", lambda k: k.EinsumDense("...x,xy->...y", 4, bias_axes="y", activation="tanh"), STEPS)
case("einsum dense heads", lambda k: k.EinsumDense("abc,cde->abde", (None, 2, 3), bias_axes="de"), STEPS)
case("einsum dense trailing", lambda k: k.EinsumDense("ab...,bc->ac...", (4,), bias_axes="c"), STEPS)
case("embedding", lambda k: k.Embedding(7, 3), ints(1, 7, 2, 5), compiled=True)
case("embedding mask_zero", lambda k: k.Embedding(7, 3, mask_zero=True), ints(1, 7, 4))
case("reversible embedding", lambda k: k.ReversibleEmbedding(7, 3), ints(1, 7, 2, 5))
case("reversible embedding back", lambda k: k.ReversibleEmbedding(7, 3, logit_soft_cap=0.5), STEPS,
     call=lambda layer, x: layer(x, reverse=True))
case("masking", lambda k: k.Masking(mask_value=0.5), np.where(MASK[..., None], STEPS, np.float32(0.5)))
case("identity", lambda k: k.Identity(), ROWS)

# -- activations ------------------------------------------------------------------------------------
case("activation", lambda k: k.Activation("tanh"), ROWS, compiled=True)
for _name in ("relu", "leaky_relu", "relu6", "softmax", "celu", "elu", "selu", "softplus", "softsign", "squareplus",
              "soft_shrink", "sparse_plus", "silu", "gelu", "glu", "tanh_shrink", "sigmoid", "sparse_sigmoid",
              "exponential", "hard_sigmoid", "hard_silu", "hard_tanh", "hard_shrink", "linear", "mish", "log_softmax",
              "log_sigmoid"):
    case(f"activation {_name}", lambda k, name=_name: k.Activation(name), wave(6, 3, 8) * 2)
case("relu layer", lambda k: k.ReLU(max_value=1.2, negative_slope=0.1, threshold=0.3), ROWS, compiled=True)
case("relu layer 6", lambda k: k.ReLU(max_value=6), ROWS * 5)
case("relu layer slope", lambda k: k.ReLU(negative_slope=0.25), ROWS)
case("leaky relu layer", lambda k: k.LeakyReLU(), ROWS)
case("prelu", lambda k: k.PReLU(), STEPS, compiled=True)
case("prelu shared", lambda k: k.PReLU(shared_axes=[1, 2]), IMAGE)
case("elu layer", lambda k: k.ELU(alpha=0.7), ROWS)
case("softmax layer", lambda k: k.Softmax(axis=1), STEPS)
case("softmax layer masked", lambda k: k.Softmax(), ROWS, ROWS > 0, call=masked)
case("softmax layer axes", lambda k: k.Softmax(axis=(1, 2)), STEPS)

# -- convolutions -----------------------------------------------------------------------------------
case("conv1d", lambda k: k.Conv1D(4, 3), STEPS, compiled=True)
case("conv1d causal dilated", lambda k: k.Conv1D(4, 2, padding="causal", dilation_rate=2, activation="relu"), STEPS)
case("conv1d same strides", lambda k: k.Conv1D(4, 3, strides=2, padding="same"), STEPS)
case("conv2d", lambda k: k.Conv2D(3, 3), IMAGE, compiled=True)
case("conv2d same strides", lambda k: k.Conv2D(3, (3, 2), strides=2, padding="same", activation="relu"), IMAGE)
case("conv2d dilated", lambda k: k.Conv2D(3, 2, dilation_rate=(2, 1), use_bias=False), IMAGE)
case("conv2d groups", lambda k: k.Conv2D(6, 3, groups=2), IMAGE)
case("conv3d", lambda k: k.Conv3D(2, 2), VOLUME, compiled=True)
case("conv3d same", lambda k: k.Conv3D(2, (2, 3, 2), strides=(1, 2, 2), padding="same"), VOLUME)
case("conv1d transpose", lambda k: k.Conv1DTranspose(2, 3, strides=2), STEPS, compiled=True)
case("conv1d transpose same", lambda k: k.Conv1DTranspose(2, 3, strides=2, padding="same"), STEPS)
case("conv2d transpose", lambda k: k.Conv2DTranspose(2, 3, strides=(2, 1)), IMAGE, compiled=True)
case("conv2d transpose same", lambda k: k.Conv2DTranspose(2, 3, strides=2, padding="same", activation="relu"), IMAGE)
case("conv2d transpose output padding", lambda k: k.Conv2DTranspose(2, 3, strides=2, output_padding=1), IMAGE)
case("conv2d transpose same output padding",
     lambda k: k.Conv2DTranspose(2, 3, strides=2, padding="same", output_padding=(1, 0)), IMAGE)
case("conv3d transpose", lambda k: k.Conv3DTranspose(2, 2, strides=2), VOLUME)
case("depthwise conv1d", lambda k: k.DepthwiseConv1D(3, depth_multiplier=2), STEPS, compiled=True)
case("depthwise conv2d", lambda k: k.DepthwiseConv2D(3, depth_multiplier=2), IMAGE, compiled=True)
case("depthwise conv2d same strides", lambda k: k.DepthwiseConv2D(3, strides=2, padding="same"), IMAGE)
case("depthwise conv2d dilated", lambda k: k.DepthwiseConv2D(2, dilation_rate=2, use_bias=False), IMAGE)
case("separable conv1d", lambda k: k.SeparableConv1D(4, 3, padding="same"), STEPS, compiled=True)
case("separable conv2d", lambda k: k.SeparableConv2D(3, 3, depth_multiplier=2), IMAGE, compiled=True)
case("separable conv2d strides", lambda k: k.SeparableConv2D(3, 3, strides=2, padding="same"), IMAGE)

# -- pooling ----------------------------------------------------------------------------------------
case("max pooling 1d", lambda k: k.MaxPooling1D(), STEPS, compiled=True)
case("max pooling 1d same", lambda k: k.MaxPooling1D(3, strides=2, padding="same"), STEPS)
case("max pooling 2d", lambda k: k.MaxPooling2D(), IMAGE, compiled=True)
case("max pooling 2d same", lambda k: k.MaxPooling2D((3, 2), strides=(2, 1), padding="same"), IMAGE)
case("max pooling 3d", lambda k: k.MaxPooling3D(), VOLUME)
case("average pooling 1d", lambda k: k.AveragePooling1D(2), STEPS)
case("average pooling 2d", lambda k: k.AveragePooling2D(2), IMAGE, compiled=True)
case("average pooling 2d same", lambda k: k.AveragePooling2D(3, strides=2, padding="same"), IMAGE)
case("average pooling 3d", lambda k: k.AveragePooling3D(2), VOLUME)
for _rank, _x in (("1D", STEPS), ("2D", IMAGE), ("3D", VOLUME)):
    case(f"global max pooling {_rank}", lambda k, r=_rank: getattr(k, f"GlobalMaxPooling{r}")(), _x)
    case(f"global average pooling {_rank}",
         lambda k, r=_rank: getattr(k, f"GlobalAveragePooling{r}")(keepdims=r == "2D"), _x)
    case(f"adaptive average pooling {_rank}", lambda k, r=_rank: getattr(k, f"AdaptiveAveragePooling{r}")(2), _x)
    case(f"adaptive max pooling {_rank}", lambda k, r=_rank: getattr(k, f"AdaptiveMaxPooling{r}")(3), _x)
case("global average pooling masked", lambda k: k.GlobalAveragePooling1D(), STEPS, MASK, call=masked)
case("global average pooling first", lambda k: k.GlobalAveragePooling2D(data_format="channels_first"), FIRST)

# -- shapes -----------------------------------------------------------------------------------------
case("flatten", lambda k: k.Flatten(), IMAGE)
case("flatten first", lambda k: k.Flatten(data_format="channels_first"), FIRST)
case("reshape", lambda k: k.Reshape((3, -1)), STEPS)
case("permute", lambda k: k.Permute((3, 1, 2)), IMAGE)
case("repeat vector", lambda k: k.RepeatVector(3), ROWS)
case("zero padding 1d", lambda k: k.ZeroPadding1D((1, 2)), STEPS)
case("zero padding 2d", lambda k: k.ZeroPadding2D(((1, 0), (2, 1))), IMAGE)
case("zero padding 2d first", lambda k: k.ZeroPadding2D(1, data_format="channels_first"), FIRST)
case("zero padding 3d", lambda k: k.ZeroPadding3D((1, 0, 2)), VOLUME)
case("cropping 1d", lambda k: k.Cropping1D((1, 2)), STEPS)
case("cropping 2d", lambda k: k.Cropping2D(((1, 0), (2, 1))), IMAGE)
case("cropping 3d", lambda k: k.Cropping3D(((1, 0), (0, 2), (1, 1))), VOLUME)
case("up sampling 1d", lambda k: k.UpSampling1D(2), STEPS)
case("up sampling 2d", lambda k: k.UpSampling2D((2, 3)), IMAGE, compiled=True)
for _name in ("bilinear", "lanczos3", "lanczos5"):  # bicubic weights are of three digits in TensorFlow
    case(f"up sampling 2d {_name}", lambda k, name=_name: k.UpSampling2D((2, 3), interpolation=name), IMAGE)
case("up sampling 3d", lambda k: k.UpSampling3D((1, 2, 2)), VOLUME)

# -- normalisation ----------------------------------------------------------------------------------
case("batch normalization training", lambda k: k.BatchNormalization(), ROWS, call=training, compiled=True)
case("batch normalization inference", lambda k: k.BatchNormalization(epsilon=0.01), IMAGE, call=inference)
case("batch normalization axis 1", lambda k: k.BatchNormalization(axis=1, momentum=0.5), IMAGE, call=training)
case("batch normalization frozen", lambda k: k.BatchNormalization(trainable=False), ROWS, call=training)
case("batch normalization bare", lambda k: k.BatchNormalization(center=False, scale=False), ROWS, call=training)
case("batch normalization masked", lambda k: k.BatchNormalization(), STEPS, MASK,
     call=lambda layer, x, mask: layer(x, training=True, mask=mask))
case("batch normalization renorm",
     lambda k: k.BatchNormalization(renorm=True, renorm_clipping={"rmin": 0.5, "rmax": 1.5, "dmax": 0.8}), ROWS,
     call=training)
case("layer normalization", lambda k: k.LayerNormalization(), STEPS, compiled=True)
case("layer normalization axes", lambda k: k.LayerNormalization(axis=(1, 2), epsilon=0.01), IMAGE)
case("layer normalization axis 1", lambda k: k.LayerNormalization(axis=1, center=False), STEPS)
case("group normalization", lambda k: k.GroupNormalization(groups=2), IMAGE, compiled=True)
case("group normalization axis 1", lambda k: k.GroupNormalization(groups=2, axis=1), FIRST)
case("group normalization instance", lambda k: k.GroupNormalization(groups=-1, scale=False), IMAGE)
case("rms normalization", lambda k: k.RMSNormalization(), STEPS, compiled=True)
case("unit normalization", lambda k: k.UnitNormalization(), STEPS)
case("unit normalization axes", lambda k: k.UnitNormalization(axis=(1, 2)), STEPS)
case("spectral normalization", lambda k: k.SpectralNormalization(k.Dense(3), power_iterations=2), ROWS, call=training)

# -- regularisation: what they do outside training --------------------------------------------------
for _name, _arguments, _x in (("Dropout", {"rate": 0.5}, ROWS), ("SpatialDropout1D", {"rate": 0.5}, STEPS),
                              ("SpatialDropout2D", {"rate": 0.5}, IMAGE), ("SpatialDropout3D", {"rate": 0.5}, VOLUME),
                              ("AlphaDropout", {"rate": 0.5}, ROWS), ("GaussianDropout", {"rate": 0.5}, ROWS),
                              ("GaussianNoise", {"stddev": 0.5}, ROWS),
                              ("ActivityRegularization", {"l1": 0.1, "l2": 0.2}, ROWS)):
    case(_name, lambda k, name=_name, arguments=_arguments: getattr(k, name)(**arguments), _x)

# -- merging ----------------------------------------------------------------------------------------
PAIR = (ROWS, wave(7, 3, 4))
for _name in ("Add", "Average", "Subtract", "Multiply", "Maximum", "Minimum"):
    case(_name, lambda k, name=_name: getattr(k, name)(), *PAIR, call=listed)
case("add of different ranks", lambda k: k.Add(), STEPS, wave(7, 2, 3), call=listed)
case("add of three", lambda k: k.Add(), *PAIR, wave(8, 1, 4)[[0, 0, 0]], call=listed)
case("concatenate", lambda k: k.Concatenate(axis=1), STEPS, wave(7, 2, 2, 3), call=listed, compiled=True)
case("dot", lambda k: k.Dot(axes=1), *PAIR, call=listed)
case("dot matrices", lambda k: k.Dot(axes=(2, 1), normalize=True), STEPS, wave(7, 2, 3, 4), call=listed)

# -- recurrence -------------------------------------------------------------------------------------
for _name in ("SimpleRNN", "LSTM", "GRU"):
    _make = (lambda name: lambda k, **options: getattr(k, name)(4, **options))(_name)
    _few = 2 if _name == "LSTM" else 1
    _states = tuple(wave(20 + n, 2, 4) for n in range(_few))
    case(_name, lambda k, make=_make: make(k), STEPS)
    case(f"{_name} sequences and state", lambda k, make=_make: make(k, return_sequences=True, return_state=True), STEPS)
    case(f"{_name} backwards", lambda k, make=_make: make(k, return_sequences=True, go_backwards=True), STEPS)
    case(f"{_name} masked", lambda k, make=_make: make(k, return_sequences=True, return_state=True), STEPS, MASK,
         call=masked, compiled=True)
    case(f"{_name} masked last", lambda k, make=_make: make(k), STEPS, MASK, call=masked)
    case(f"{_name} masked with states",
         lambda k, make=_make: make(k, return_sequences=True, zero_output_for_mask=False), STEPS, *_states, MASK,
         call=lambda layer, x, *rest: layer(x, initial_state=list(rest[:-1]), mask=rest[-1]))
    case(f"{_name} zero masked", lambda k, make=_make: make(k, return_sequences=True, zero_output_for_mask=True), STEPS,
         MASK, call=masked)
    case(f"{_name} with states", lambda k, make=_make: make(k, return_sequences=True), STEPS, *_states, call=started)
    case(f"{_name} stateful", lambda k, make=_make: make(k, stateful=True), STEPS, call=twice)
    case(f"{_name} unrolled", lambda k, make=_make: make(k, unroll=True), STEPS, MASK, call=masked)
    case(f"{_name} relu without bias", lambda k, make=_make: make(k, activation="relu", use_bias=False), STEPS)
    case(f"{_name} cell", lambda k, name=_name: getattr(k, f"{name}Cell")(4), wave(9, 2, 3), *_states,
         call=lambda layer, x, *states: layer(x, list(states)))
    case(f"RNN of {_name} cell", lambda k, name=_name: k.RNN(getattr(k, f"{name}Cell")(4), return_state=True), STEPS)
case("LSTM without forget bias", lambda k: k.LSTM(3, unit_forget_bias=False, recurrent_activation="hard_sigmoid"),
     STEPS)
case("GRU reset before", lambda k: k.GRU(4, reset_after=False, return_sequences=True), STEPS)
case("stacked cells", lambda k: k.RNN([k.LSTMCell(4), k.GRUCell(3)], return_sequences=True, return_state=True), STEPS)
case("stacked cells masked", lambda k: k.RNN(k.StackedRNNCells([k.SimpleRNNCell(4), k.LSTMCell(3)])), STEPS, MASK,
     call=masked)
for _name in ("concat", "sum", "mul", "ave"):
    case(f"bidirectional {_name}",
         lambda k, mode=_name: k.Bidirectional(k.LSTM(3, return_sequences=True), merge_mode=mode), STEPS)
FILMS = wave(20, 2, 3, 5, 4, 2)
case("conv lstm", lambda k: k.ConvLSTM2D(3, 2), FILMS, compiled=True)
case("conv lstm sequences", lambda k: k.ConvLSTM2D(2, (3, 2), strides=(2, 1), padding="same", return_sequences=True,
                                                   return_state=True, go_backwards=True), FILMS)
case("conv lstm dilated", lambda k: k.ConvLSTM2D(2, 2, dilation_rate=2, use_bias=False, activation="relu",
                                                 recurrent_activation="hard_sigmoid"), FILMS)
case("conv lstm masked", lambda k: k.ConvLSTM2D(2, 3, return_sequences=True), FILMS,
     np.array([[True, False, True], [False, True, True]]), call=masked)
case("conv lstm 1d", lambda k: k.ConvLSTM1D(3, 2, return_sequences=True, unit_forget_bias=False), wave(21, 2, 4, 6, 2))
case("conv lstm 3d", lambda k: k.ConvLSTM3D(2, 2), wave(22, 1, 2, 3, 4, 3, 2))
case("bidirectional last", lambda k: k.Bidirectional(k.GRU(3)), STEPS)
case("bidirectional apart", lambda k: k.Bidirectional(k.SimpleRNN(3, return_sequences=True), merge_mode=None), STEPS)
case("bidirectional masked", lambda k: k.Bidirectional(k.LSTM(3, return_sequences=True)), STEPS, MASK, call=masked)
case("bidirectional states", lambda k: k.Bidirectional(k.LSTM(3, return_state=True)), STEPS,
     *(wave(30 + n, 2, 3) for n in range(4)), call=started)
case("time distributed", lambda k: k.TimeDistributed(k.Dense(2)), STEPS, compiled=True)
case("time distributed conv2d", lambda k: k.TimeDistributed(k.Conv2D(2, 3)), wave(10, 2, 2, 4, 4, 2))
case("time distributed batch normalization", lambda k: k.TimeDistributed(k.BatchNormalization()), STEPS, call=training)

# -- attention --------------------------------------------------------------------------------------
KEYS, VALUES = wave(11, 2, 4, 3), wave(12, 2, 4, 3)
KEY_MASK = MASK[:, :4]
case("attention", lambda k: k.Attention(), STEPS, VALUES, call=listed, compiled=True)
case("attention scaled with keys", lambda k: k.Attention(use_scale=True), STEPS, VALUES, KEYS, call=listed)
case("attention concat", lambda k: k.Attention(use_scale=True, score_mode="concat"), STEPS, VALUES, call=listed)
case("attention masked", lambda k: k.Attention(), STEPS, VALUES, MASK, KEY_MASK, call=masked_list)
case("attention causal", lambda k: k.Attention(), STEPS, VALUES, call=lambda layer, q, v: layer(
    [q, v], use_causal_mask=True, return_attention_scores=True))
case("additive attention", lambda k: k.AdditiveAttention(), STEPS, VALUES, call=listed, compiled=True)
case("additive attention masked", lambda k: k.AdditiveAttention(use_scale=False), STEPS, VALUES, MASK, KEY_MASK,
     call=masked_list)
case("multi-head attention", lambda k: k.MultiHeadAttention(2, 3), STEPS, VALUES, compiled=True)
case("multi-head attention of values", lambda k: k.MultiHeadAttention(2, 3, value_dim=2, output_shape=5), STEPS, VALUES,
     KEYS)
case("multi-head attention scores", lambda k: k.MultiHeadAttention(2, 3, use_bias=False), STEPS, VALUES,
     call=lambda layer, q, v: layer(q, v, return_attention_scores=True))
case("multi-head attention causal", lambda k: k.MultiHeadAttention(2, 3), STEPS,
     call=lambda layer, x: layer(x, x, use_causal_mask=True), compiled=True)
case("multi-head attention masked", lambda k: k.MultiHeadAttention(2, 3), STEPS, VALUES, np.broadcast_to(
    MASK[:, :, None] | KEY_MASK[:, None, :], (2, 5, 4)), call=lambda layer, q, v, m: layer(q, v, attention_mask=m))
case("multi-head attention padded", lambda k: k.MultiHeadAttention(2, 3), STEPS, VALUES, KEY_MASK,
     call=lambda layer, q, v, m: layer(q, v, value_mask=m, return_attention_scores=True))
case("multi-head attention window", lambda k: k.MultiHeadAttention(2, 3, sliding_window=2, use_gate=True), STEPS,
     call=lambda layer, x: layer(x, x))
case("multi-head attention of images", lambda k: k.MultiHeadAttention(2, 3, attention_axes=(1, 2)),
     wave(13, 1, 3, 2, 4), call=lambda layer, x: layer(x, x))
case("group query attention", lambda k: k.GroupQueryAttention(3, 4, 2), STEPS, VALUES)

# -- preprocessing ----------------------------------------------------------------------------------
case("rescaling", lambda k: k.Rescaling(0.5, offset=-1.0), ROWS)
case("normalization given", lambda k: k.Normalization(mean=[0.1, 0.2, 0.3, 0.4], variance=[1.0, 2.0, 3.0, 4.0]), ROWS)
case("normalization inverted", lambda k: k.Normalization(axis=None, mean=0.3, variance=2.0, invert=True), ROWS)
case("discretization", lambda k: k.Discretization([-1.0, 0.0, 0.5]), ROWS)
for _name in ("one_hot", "multi_hot", "count"):
    case(f"category encoding {_name}", lambda k, mode=_name: k.CategoryEncoding(6, output_mode=mode), ints(3, 6, 3, 4))
for _name in ("nearest", "bilinear", "lanczos3"):
    case(f"resizing {_name}", lambda k, name=_name: k.Resizing(4, 7, interpolation=name), IMAGE)
case("resizing antialias", lambda k: k.Resizing(3, 2, antialias=True), IMAGE)
case("resizing cropped", lambda k: k.Resizing(4, 4, crop_to_aspect_ratio=True), wave(14, 2, 4, 8, 3))
case("resizing framed", lambda k: k.Resizing(4, 4, pad_to_aspect_ratio=True, fill_value=0.5), wave(14, 2, 4, 8, 3))
case("center crop", lambda k: k.CenterCrop(3, 4), IMAGE)

# What TensorFlow has no kernel for on a processor, and Keras hence refuses there: compared with the transposed case.
CHANNELS_FIRST = {
    "conv2d": lambda k, **o: k.Conv2D(3, 3, padding="same", strides=2, **o),
    "conv2d transpose": lambda k, **o: k.Conv2DTranspose(2, 3, strides=2, **o),
    "depthwise conv2d": lambda k, **o: k.DepthwiseConv2D(3, **o),
    "separable conv2d": lambda k, **o: k.SeparableConv2D(3, 3, **o),
    "max pooling 2d": lambda k, **o: k.MaxPooling2D(2, **o),
    "average pooling 2d": lambda k, **o: k.AveragePooling2D(2, padding="same", **o),
    "up sampling 2d": lambda k, **o: k.UpSampling2D(2, interpolation="bilinear", **o),
    "cropping 2d": lambda k, **o: k.Cropping2D(1, **o),
}

_WORDS = np.array(["a", "b", "", "Zürich"], object), np.array(["1", "22", "333", ""], object)
case("crossing_words", lambda k: k.HashedCrossing(1000), *_WORDS, call=listed)
case("crossing_mixed", lambda k: k.HashedCrossing(7), _WORDS[0][:, None], np.array([[1], [-2], [3], [0]]), call=listed)
case("crossing_one_hot", lambda k: k.HashedCrossing(5, output_mode="one_hot"), np.array([3, 4]), np.array([1, -2]),
     np.array([[7, 8]]).ravel(), call=listed)
for _mode in ("log", "magnitude", "psd", "real", "imag", "angle", "stft"):
    case(f"stft_{_mode}", lambda k, mode=_mode: k.STFTSpectrogram(mode, frame_length=8, frame_step=3),
         wave(64, 2, 20, 3), compiled=True)
case("stft_first", lambda k: k.STFTSpectrogram("magnitude", 8, fft_length=16, window="hamming", periodic=True,
                                               scaling="spectrum", padding="same", data_format="channels_first"),
     wave(65, 2, 3, 21))
case("stft_axes", lambda k: k.STFTSpectrogram("stft", 6, expand_dims=True, window=None, scaling=None),
     wave(66, 2, 21, 2), compiled=True)
case("stft_axes_first", lambda k: k.STFTSpectrogram("psd", 6, expand_dims=True, data_format="channels_first"),
     wave(67, 2, 2, 21))
