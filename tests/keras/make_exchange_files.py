"""Writes `data/exchange/`: models that Keras 3 saved, with inputs and the outputs that Keras gave for them.

Run it with a Python that has TensorFlow and Keras 3: `python tests/keras/make_exchange_files.py`. The tests read what
it wrote and need neither.
"""

from __future__ import annotations

import pathlib

import keras
import numpy as np

FOLDER = pathlib.Path(__file__).parent / "data" / "exchange"
layers = keras.layers


def image_model():
    model = keras.Sequential([
        keras.Input((6, 6, 1)), layers.Conv2D(3, 3, padding="same", activation="relu"), layers.BatchNormalization(),
        layers.MaxPooling2D(), layers.Dropout(0.5), layers.Flatten(), layers.Dense(2, kernel_regularizer="l2")],
        name="image")
    model.compile(keras.optimizers.Adam(0.01), keras.losses.MeanSquaredError(), metrics=["mae"])
    return model, [np.random.RandomState(0).rand(5, 6, 6, 1).astype("float32")]


def text_model():
    model = keras.Sequential([keras.Input((7,)), layers.Embedding(11, 4), layers.LSTM(3, return_sequences=True),
                              layers.Bidirectional(layers.GRU(2)), layers.LayerNormalization(), layers.Dense(2)],
                             name="text")
    model.compile("rmsprop", "mse")
    return model, [np.random.RandomState(1).randint(0, 11, (4, 7))]


def attention_model():
    query = keras.Input((5, 4), name="query")
    other = keras.Input((4,), name="other")
    attended = layers.MultiHeadAttention(2, 3, name="attention")(query, query)
    joined = layers.Add()([attended, query])
    shared = layers.Dense(3, name="shared")
    pooled = layers.GlobalAveragePooling1D()(joined)
    head = layers.Dense(2, activation="softmax", name="head")(layers.Concatenate()([shared(pooled), shared(other)]))
    model = keras.Model([query, other], [head, joined], name="attention_model")
    rng = np.random.RandomState(2)
    return model, [rng.rand(3, 5, 4).astype("float32"), rng.rand(3, 4).astype("float32")]


def operator_model():
    x = keras.Input((4, 6), name="x")
    y = (2 * x - 1) / 3 + x[:, 1:2] ** 2
    z = layers.Dense(3, name="rows")(-y) @ layers.Dense(4, name="columns")(abs(x))[:, :3]
    return keras.Model(x, z, name="operators"), [
        np.random.RandomState(3).rand(2, 4, 6).astype("float32")]


def grouped_model():
    query, value = keras.Input((5, 4), name="query"), keras.Input((6, 4), name="value")
    actual, scores = layers.MultiHeadAttention(2, 3)(query, value, return_attention_scores=True)
    other, weights = layers.Attention(use_scale=True)([query, value], return_attention_scores=True)
    grouped = layers.GroupQueryAttention(3, 4, 2)(layers.AlphaDropout(0.2)(actual), value, use_causal_mask=True)
    rng = np.random.RandomState(4)
    return keras.Model([query, value], [grouped, other, scores, weights], name="grouped"), [
        rng.rand(2, 5, 4).astype("float32"), rng.rand(2, 6, 4).astype("float32")]


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(1)
    for make in (image_model, text_model, attention_model, operator_model, grouped_model):
        model, inputs = make()
        given = inputs if len(inputs) > 1 else inputs[0]
        if model.compiled:
            model.fit(given, np.ones(model.predict(given, verbose=0).shape), epochs=2, verbose=0)
        stem = make.__name__
        model.save(FOLDER / f"{stem}.keras")
        model.save(FOLDER / f"{stem}.h5")
        outputs = model.predict(given, verbose=0)
        outputs = outputs if isinstance(outputs, list) else [outputs]
        np.savez(FOLDER / f"{stem}.npz", **{f"in{n}": x for n, x in enumerate(inputs)},
                 **{f"out{n}": x for n, x in enumerate(outputs)})


if __name__ == "__main__":
    main()
