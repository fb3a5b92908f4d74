"""Models of many kinds for `keras_files.py`, each made by the module of Keras that is given.

A model comes with its inputs and targets. `MODELS` are the functions by name; those of `COARSE` compute in 16 bits and
are compared accordingly. `classes` registers the classes of the user's own, which files name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

__all__ = ["COARSE", "MODELS", "classes"]

_rng = np.random.RandomState


def _some(*shape: int, seed: int = 0) -> np.ndarray:
    return _rng(seed).rand(*shape).astype("float32")


@cache
def classes(keras: Any) -> dict[str, Any]:
    """Registers a layer, a model, a function and a loss of the user's own; gives them by name."""
    layers, register = keras.layers, keras.saving.register_keras_serializable(package="own")

    @register
    class Scaled(layers.Layer):  # type: ignore[misc]
        """A layer with a weight of its own and a layer inside."""

        def __init__(self, by: float = 2.0, **rest: Any) -> None:
            super().__init__(**rest)
            self.by, self.inner = by, layers.Dense(3)

        def build(self, shape: Any) -> None:
            self.scale = self.add_weight(shape=(shape[-1],), initializer="ones", name="scale")
            self.inner.build(shape)

        def call(self, x: Any) -> Any:
            return self.inner(x * self.scale) * self.by

        def get_config(self) -> dict[str, Any]:
            return {**super().get_config(), "by": self.by}

    @register
    class Tower(keras.Model):  # type: ignore[misc]
        """A subclassed model with lists and dicts of layers."""

        def __init__(self, widths: Any = (4, 3), **rest: Any) -> None:
            super().__init__(**rest)
            self.widths = list(widths)
            self.steps = [layers.Dense(n, activation="tanh") for n in self.widths]
            self.norm, self.heads = layers.BatchNormalization(), {"a": layers.Dense(2), "b": layers.Dense(2)}

        def call(self, x: Any, training: bool = False) -> Any:
            for step in self.steps:
                x = step(x)
            x = self.norm(x, training=training)
            return self.heads["a"](x) + self.heads["b"](x)

        def get_config(self) -> dict[str, Any]:
            return {**super().get_config(), "widths": self.widths}

    @register
    def doubled(x: Any) -> Any:
        return 2.0 * x

    @register
    class Halved(keras.losses.Loss):  # type: ignore[misc]
        """A loss of the user's own."""

        def call(self, y_true: Any, y_pred: Any) -> Any:
            return 0.5 * (y_true - y_pred) ** 2
    return {"Scaled": Scaled, "Tower": Tower, "doubled": doubled, "Halved": Halved}


Made = tuple[Any, Any, Any]


def sequential(keras: Any) -> Made:
    """Convolutions, moving averages, regularizers, a schedule; Adam."""
    layers = keras.layers
    model = keras.Sequential([
        keras.Input((8, 8, 2)), layers.Conv2D(4, 3, padding="same", activation="relu", kernel_regularizer="l2"),
        layers.BatchNormalization(), layers.MaxPooling2D(), layers.DepthwiseConv2D(3), layers.ReLU(max_value=6.0),
        layers.Conv2DTranspose(2, 2), layers.Flatten(), layers.Dense(3, kernel_constraint="max_norm")])
    schedule = keras.optimizers.schedules.ExponentialDecay(0.01, 10, 0.9)
    model.compile(keras.optimizers.Adam(schedule, amsgrad=True), keras.losses.MeanSquaredError(), metrics=["mae"])
    return model, _some(6, 8, 8, 2), _some(6, 3, seed=1)


def several_inputs(keras: Any) -> Made:
    """Inputs by name, several results, shared layers, losses by name; SGD with momentum."""
    layers = keras.layers
    a, b = keras.Input((4,), name="a"), keras.Input((5, 4), name="b")
    shared = layers.Dense(3, name="shared", activation="gelu")
    joined = layers.Concatenate()([shared(a), layers.GlobalMaxPooling1D()(shared(b))])
    outputs = {"score": layers.Dense(1, name="score")(joined), "kind": layers.Dense(3, name="kind")(joined)}
    model = keras.Model({"a": a, "b": b}, outputs)
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True), {"score": "mse", "kind": "mae"},
                  loss_weights={"score": 0.5, "kind": 2.0})
    return model, {"a": _some(6, 4), "b": _some(6, 5, 4)}, {"score": _some(6, 1, seed=2), "kind": _some(6, 3, seed=3)}


def subclassed(keras: Any) -> Made:
    """A model of the user's own; RMSprop."""
    model = classes(keras)["Tower"]((5, 4))
    model.compile(keras.optimizers.RMSprop(0.01, centered=True), classes(keras)["Halved"]())
    return model, _some(6, 4), _some(6, 2, seed=1)


def nested(keras: Any) -> Made:
    """Models within models; AdamW with clipping and averages."""
    layers = keras.layers
    inner = keras.Sequential([keras.Input((4,)), layers.Dense(5, activation="swish"), layers.LayerNormalization()])
    x = keras.Input((4,))
    middle = keras.Model(x, inner(x) + layers.Dense(5)(x), name="middle")
    model = keras.Sequential([keras.Input((6, 4)), layers.TimeDistributed(middle), layers.Flatten(), layers.Dense(2)])
    model.compile(keras.optimizers.AdamW(0.01, clipnorm=1.0, use_ema=True, ema_momentum=0.9), "huber")
    return model, _some(6, 6, 4), _some(6, 2, seed=1)


def recurrent(keras: Any) -> Made:
    """Recurrent layers and cells, both directions, masks; Nadam."""
    layers = keras.layers
    model = keras.Sequential([
        keras.Input((7,), dtype="int32"), layers.Embedding(11, 4, mask_zero=True),
        layers.Bidirectional(layers.LSTM(3, return_sequences=True)), layers.GRU(4, return_sequences=True),
        layers.RNN([layers.SimpleRNNCell(3), layers.LSTMCell(3), layers.GRUCell(2, reset_after=False)]),
        layers.Dense(2)])
    model.compile(keras.optimizers.Nadam(0.01), "mse")
    tokens = _rng(0).randint(1, 11, (6, 7))
    tokens[:, 5:] = 0
    return model, tokens.astype("int32"), _some(6, 2, seed=1)


def convolutional_recurrent(keras: Any) -> Made:
    """A convolutional LSTM and convolutions in one dimension; Adagrad."""
    layers = keras.layers
    model = keras.Sequential([
        keras.Input((3, 6, 6, 1)), layers.ConvLSTM2D(2, 3, padding="same"), layers.Reshape((6, 12)),
        layers.SeparableConv1D(4, 3), layers.Conv1D(3, 2, padding="causal"), layers.GlobalAveragePooling1D()])
    model.compile(keras.optimizers.Adagrad(0.05), "mse")
    return model, _some(4, 3, 6, 6, 1), _some(4, 3, seed=1)


def attention(keras: Any) -> Made:
    """All layers of attention, normalisations of groups; Adamax."""
    layers = keras.layers
    tokens, other = keras.Input((6, 8)), keras.Input((5, 8))
    h = layers.MultiHeadAttention(2, 4)(tokens, other) + tokens
    h = layers.GroupNormalization(2)(h)
    h = h + layers.GroupQueryAttention(4, 4, 2)(h, h, use_causal_mask=True)
    h = layers.LayerNormalization()(h + layers.Attention(use_scale=True)([h, other]))
    h = layers.UnitNormalization()(h + layers.AdditiveAttention()([h, other]))
    model = keras.Model([tokens, other], layers.Dense(3)(layers.GlobalAveragePooling1D()(h)))
    model.compile(keras.optimizers.Adamax(0.01), "mse")
    return model, [_some(6, 6, 8), _some(6, 5, 8)], _some(6, 3, seed=1)


def numbers(keras: Any) -> Made:
    """Preprocessing of numbers and categories with what was learnt from data; Ftrl."""
    layers = keras.layers
    values, years = keras.Input((3,), name="values"), keras.Input((1,), dtype="int64", name="years")
    normal, bins = layers.Normalization(), layers.Discretization(num_bins=4)
    look = layers.IntegerLookup(output_mode="multi_hot")
    normal.adapt(_some(20, 3, seed=4))
    bins.adapt(_some(20, 3, seed=4))
    look.adapt(np.arange(1990, 1997, dtype="int64")[:, None])
    coded = layers.CategoryEncoding(4, output_mode="count")(bins(values))
    hashed = layers.CategoryEncoding(7)(layers.Hashing(7)(years))
    model = keras.Model([values, years], layers.Dense(2)(layers.Concatenate()(
        [normal(values), coded, look(years), hashed, layers.Rescaling(0.1, 1.0)(values)])))
    model.compile(keras.optimizers.Ftrl(0.05), "mse")
    return model, [_some(6, 3), np.arange(1991, 1997, dtype="int64")[:, None]], _some(6, 2, seed=1)


def words(keras: Any) -> Made:
    """Texts to vectors by vocabularies: predicted, not trained."""
    layers = keras.layers
    lines, names = keras.Input((), dtype="string", name="lines"), keras.Input((), dtype="string", name="names")
    vectors = layers.TextVectorization(output_sequence_length=5)
    vectors.adapt(["the cat sat on the mat", "a dog", "the dog sat"])
    weighted = layers.TextVectorization(output_mode="tf_idf", ngrams=2)
    weighted.adapt(["the cat sat on the mat", "a dog", "the dog sat"])
    look = layers.StringLookup(vocabulary=["ann", "bob", "cy"], num_oov_indices=2, output_mode="one_hot")
    embedded = layers.GlobalAveragePooling1D()(layers.Embedding(20, 4)(vectors(lines)))
    model = keras.Model([lines, names], layers.Dense(2)(layers.Concatenate()([embedded, weighted(lines), look(names)])))
    return model, [np.array(["the dog sat on a mat", "cat"], object), np.array(["bob", "dan"], object)], None


def own(keras: Any) -> Made:
    """Layers, functions and losses of the user's own; Adafactor."""
    layers, mine = keras.layers, classes(keras)
    model = keras.Sequential([keras.Input((4,)), mine["Scaled"](3.0), layers.Activation(mine["doubled"]),
                              layers.Dense(2, activation=mine["doubled"])])
    model.compile(keras.optimizers.Adafactor(0.01), mine["Halved"](), weighted_metrics=["mse"])
    return model, _some(6, 4), _some(6, 2, seed=1)


def operations(keras: Any) -> Made:
    """Operations on tensors that are no layers; Lion."""
    layers, ops = keras.layers, keras.ops
    x = keras.Input((4, 6))
    y = (2 * x - 1) / 3 + x[:, 1:2] ** 2
    y = ops.concatenate([ops.relu(y), ops.transpose(ops.softmax(y), (0, 1, 2))], axis=-1)
    y = ops.mean(ops.reshape(y, (-1, 4, 12)), axis=1)
    model = keras.Model(x, layers.Dense(2)(y))
    model.compile(keras.optimizers.Lion(0.01), "log_cosh")
    return model, _some(6, 4, 6), _some(6, 2, seed=1)


def classes_of_pictures(keras: Any) -> Made:
    """Layers for pictures and a loss of classes; Adadelta."""
    layers = keras.layers
    model = keras.Sequential([
        keras.Input((9, 9, 3)), layers.CenterCrop(8, 8), layers.ZeroPadding2D(1), layers.Cropping2D(1),
        layers.UpSampling2D(2), layers.AveragePooling2D(3, strides=2), layers.SeparableConv2D(4, 3),
        layers.PReLU(), layers.SpatialDropout2D(0.0), layers.GlobalMaxPooling2D(), layers.LeakyReLU(), layers.Dense(3),
        layers.Softmax()])
    model.compile(keras.optimizers.Adadelta(0.5), keras.losses.SparseCategoricalCrossentropy(), metrics=["accuracy"])
    return model, _some(6, 9, 9, 3), _rng(1).randint(0, 3, (6,)).astype("int32")


def _mixed(keras: Any, policy: str) -> Made:
    layers = keras.layers
    model = keras.Sequential([keras.Input((6,)), layers.Dense(8, "relu", dtype=policy),
                              layers.BatchNormalization(dtype=policy), layers.Dense(3, dtype="float32")])
    optimizer = keras.optimizers.SGD(0.05)
    if policy == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=8.0)
    model.compile(optimizer, "mse")
    return model, _some(6, 6), _some(6, 3, seed=1)


def half(keras: Any) -> Made:
    """Layers of float16 with variables of float32, and a scaled loss."""
    return _mixed(keras, "mixed_float16")


def brain_half(keras: Any) -> Made:
    """Layers of bfloat16 with variables of float32."""
    return _mixed(keras, "mixed_bfloat16")


def double(keras: Any) -> Made:
    """A model of float64; a slice of its variables frozen."""
    layers = keras.layers
    first = layers.Dense(4, dtype="float64", name="frozen")
    first.trainable = False
    model = keras.Sequential([keras.Input((3,), dtype="float64"), first, layers.Dense(2, dtype="float64")])
    model.compile(keras.optimizers.Adam(0.01), "mse")
    return model, _some(6, 3).astype("float64"), _some(6, 2, seed=1).astype("float64")


MODELS: dict[str, Callable[[Any], Made]] = {made.__name__: made for made in (
    sequential, several_inputs, subclassed, nested, recurrent, convolutional_recurrent, attention, numbers, words, own,
    operations, classes_of_pictures, half, brain_half, double)}

#: models whose layers compute in 16 bits, with what predictions may differ by
COARSE = {"half": 2e-3, "brain_half": 2e-2}
