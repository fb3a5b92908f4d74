"""Programs of Keras's documentation, on data that are made here: what each prints of its training.

    twofold run tests/clients/keras_programs.py [convnet transformer characters autoencoder]

`hub_suite.py --program keras_programs.py` compares the numbers with TensorFlow's. The weights begin by the same seed,
so that they are equal. The models are those of the pages "Simple MNIST convnet", "Text classification with
Transformer", "Character-level text generation with LSTM" and "Variational AutoEncoder", made small.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

_rng = np.random.RandomState(0)


def _losses(model: Any, *data: np.ndarray, epochs: int = 3, batch_size: int = 32, **settings: Any) -> list[float]:
    history = model.fit(*data, epochs=epochs, batch_size=batch_size, verbose=0, **settings).history
    return [float(value) for name in sorted(history) for value in history[name]]


def convnet() -> list[float]:
    """Digits by convolutions, with dropout, one-hot labels and a validation split."""
    y = _rng.randint(0, 10, 256)
    x = np.clip(_rng.rand(256, 28, 28, 1) * 0.3 + (np.arange(28)[None, :, None, None] // 3 == y[:, None, None, None]),
                0, 1).astype("float32")
    model = keras.Sequential([
        keras.Input((28, 28, 1)), layers.Conv2D(8, kernel_size=(3, 3), activation="relu"),
        layers.MaxPooling2D(pool_size=(2, 2)), layers.Conv2D(16, kernel_size=(3, 3), activation="relu"),
        layers.MaxPooling2D(pool_size=(2, 2)), layers.Flatten(), layers.Dropout(0.5),
        layers.Dense(10, activation="softmax")])
    model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
    labels = keras.utils.to_categorical(y, 10)
    return [*_losses(model, x, labels, validation_split=0.1), *model.evaluate(x, labels, verbose=0)]


class TransformerBlock(layers.Layer):
    """Attention and a small network, each with a way around it."""

    def __init__(self, embed_dim: int, num_heads: int, ff_dim: int, rate: float = 0.1) -> None:
        super().__init__()
        self.att = layers.MultiHeadAttention(num_heads=num_heads, key_dim=embed_dim)
        self.ffn = keras.Sequential([layers.Dense(ff_dim, activation="relu"), layers.Dense(embed_dim)])
        self.layernorm1 = layers.LayerNormalization(epsilon=1e-6)
        self.layernorm2 = layers.LayerNormalization(epsilon=1e-6)
        self.dropout1, self.dropout2 = layers.Dropout(rate), layers.Dropout(rate)

    def call(self, inputs: Any) -> Any:
        """The block's result."""
        out1 = self.layernorm1(inputs + self.dropout1(self.att(inputs, inputs)))
        return self.layernorm2(out1 + self.dropout2(self.ffn(out1)))


class TokenAndPositionEmbedding(layers.Layer):
    """Words and their places as vectors."""

    def __init__(self, maxlen: int, vocab_size: int, embed_dim: int) -> None:
        super().__init__()
        self.token_emb = layers.Embedding(input_dim=vocab_size, output_dim=embed_dim)
        self.pos_emb = layers.Embedding(input_dim=maxlen, output_dim=embed_dim)

    def call(self, x: Any) -> Any:
        """The vectors' sums."""
        positions = ops.arange(start=0, stop=ops.shape(x)[-1], step=1)
        return self.token_emb(x) + self.pos_emb(positions)


def transformer() -> list[float]:
    """Sequences of words told apart by a transformer block."""
    x = _rng.randint(1, 50, (160, 20))
    y = (x[:, ::2].sum(1) > x[:, 1::2].sum(1)).astype("int32")
    inputs = layers.Input(shape=(20,))
    hidden = TransformerBlock(16, 2, 16)(TokenAndPositionEmbedding(20, 50, 16)(inputs))
    hidden = layers.Dropout(0.1)(layers.GlobalAveragePooling1D()(hidden))
    hidden = layers.Dropout(0.1)(layers.Dense(20, activation="relu")(hidden))
    model = keras.Model(inputs=inputs, outputs=layers.Dense(2, activation="softmax")(hidden))
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return _losses(model, x, y)


def characters() -> list[float]:
    """The next character of a text by an LSTM, from a pipeline of `tf.data`."""
    text = "the quick brown fox jumps over the lazy dog and the dog sleeps on " * 6
    chars = sorted(set(text))
    numbers = np.array([chars.index(c) for c in text])
    windows = np.stack([numbers[i:i + 12] for i in range(len(numbers) - 12)])
    one_hot = np.eye(len(chars), dtype="float32")
    data = tf.data.Dataset.from_tensor_slices((one_hot[windows], one_hot[numbers[12:]]))
    model = keras.Sequential([keras.Input(shape=(12, len(chars))), layers.LSTM(24),
                              layers.Dense(len(chars), activation="softmax")])
    model.compile(loss="categorical_crossentropy", optimizer=keras.optimizers.RMSprop(learning_rate=0.01))
    history = model.fit(data.batch(32).prefetch(2), epochs=3, verbose=0).history["loss"]
    return [*map(float, history), *model.predict(one_hot[windows[:1]], verbose=0)[0].astype(float).tolist()]


class Sampling(layers.Layer):
    """A draw for each mean and logarithm of a variance."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seed_generator = keras.random.SeedGenerator(1337)

    def call(self, inputs: Any) -> Any:
        """The draws."""
        mean, log_var = inputs
        epsilon = keras.random.normal(shape=ops.shape(mean), seed=self.seed_generator)
        return mean + ops.exp(0.5 * log_var) * epsilon


class VAE(keras.Model):
    """An autoencoder with a training step of its own."""

    def __init__(self, encoder: Any, decoder: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.encoder, self.decoder = encoder, decoder
        self.total_loss_tracker = keras.metrics.Mean(name="total_loss")
        self.kl_loss_tracker = keras.metrics.Mean(name="kl_loss")

    @property
    def metrics(self) -> list[Any]:
        """What an epoch resets."""
        return [self.total_loss_tracker, self.kl_loss_tracker]

    def train_step(self, data: Any) -> dict[str, Any]:
        """One step."""
        with tf.GradientTape() as tape:
            mean, log_var, z = self.encoder(data)
            reconstruction = self.decoder(z)
            reconstruction_loss = ops.mean(
                ops.sum(keras.losses.binary_crossentropy(data, reconstruction), axis=(1, 2)))
            kl_loss = ops.mean(ops.sum(-0.5 * (1 + log_var - ops.square(mean) - ops.exp(log_var)), axis=1))
            total_loss = reconstruction_loss + kl_loss
        grads = tape.gradient(total_loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(grads, self.trainable_weights, strict=True))
        self.total_loss_tracker.update_state(total_loss)
        self.kl_loss_tracker.update_state(kl_loss)
        return {"loss": self.total_loss_tracker.result(), "kl_loss": self.kl_loss_tracker.result()}


def autoencoder() -> list[float]:
    """A variational autoencoder of small images."""
    x = (_rng.rand(128, 12, 12, 1) > 0.6).astype("float32")
    inputs = keras.Input(shape=(12, 12, 1))
    hidden = layers.Conv2D(8, 3, activation="relu", strides=2, padding="same")(inputs)
    hidden = layers.Dense(16, activation="relu")(layers.Flatten()(hidden))
    mean, log_var = layers.Dense(2, name="z_mean")(hidden), layers.Dense(2, name="z_log_var")(hidden)
    encoder = keras.Model(inputs, [mean, log_var, Sampling()([mean, log_var])], name="encoder")
    latent = keras.Input(shape=(2,))
    hidden = layers.Reshape((6, 6, 4))(layers.Dense(6 * 6 * 4, activation="relu")(latent))
    hidden = layers.Conv2DTranspose(8, 3, activation="relu", strides=2, padding="same")(hidden)
    outputs = layers.Conv2DTranspose(1, 3, activation="sigmoid", padding="same")(hidden)
    model = VAE(encoder, keras.Model(latent, outputs, name="decoder"))
    model.compile(optimizer=keras.optimizers.Adam())
    return _losses(model, x)


def main() -> None:
    """Prints a line of JSON: the numbers of each program, or what went wrong."""
    told = {}
    programs = {p.__name__: p for p in (convnet, transformer, characters, autoencoder)}
    for name in sys.argv[1:] or programs:
        keras.utils.set_random_seed(7)
        _rng.seed(0)
        try:
            told[name] = programs[name]()
        except Exception as error:  # noqa: BLE001 - the suite says what differs
            told[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(told))


if __name__ == "__main__":
    main()
