"""A convolutional network reads handwriting, trained with `fit`.

The 1,797 scanned digits that come with scikit-learn, 8x8 pixels each: three convolutions with batch normalisation,
dropout, and the images moved by a pixel while training, as people do not write in the middle of their boxes. The
model learns from four fifths of the digits and is tested with the rest.

    python examples/digits_cnn.py

Leaves in build/demo: a plot of the loss, and the model as digits_cnn.keras, which is loaded again and tested, too.
Ends with status 1 if the accuracy on digits never seen is below 0.98.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import plot
from sklearn.datasets import load_digits

import twofold as tf

SEED = 7
EPOCHS = 20
BATCH = 32
LEARNING_RATE = 2e-3
WANTED_ACCURACY = 0.98


def load():
    """Images scaled to 0..1 with one channel and their digits, shuffled, four fifths of them to train on."""
    images, digits = load_digits(return_X_y=True)
    images = (images / 16.0).astype(np.float32).reshape(-1, 8, 8, 1)
    digits = digits.astype(np.int64)
    order = np.random.default_rng(SEED).permutation(len(images))
    train, test = np.split(order, [len(images) * 4 // 5])
    return (images[train], digits[train]), (images[test], digits[test])


def make_model():
    """The network, ready to be trained."""
    layers = tf.keras.layers
    model = tf.keras.Sequential([
        tf.keras.Input((8, 8, 1)),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.BatchNormalization(momentum=0.9),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.BatchNormalization(momentum=0.9),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, padding="same", activation="relu"),
        layers.BatchNormalization(momentum=0.9),
        layers.Flatten(),
        layers.Dropout(0.4),
        layers.Dense(10),
    ])
    model.compile(tf.keras.optimizers.Adam(LEARNING_RATE),
                  tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def moved(image, digit):
    """The same digit, up to a pixel away in each direction."""
    corner = tf.random.uniform([2], 0, 3, tf.int32)
    return tf.slice(tf.pad(image, [[1, 1], [1, 1], [0, 0]]), [corner[0], corner[1], 0], [8, 8, 1]), digit


def batches_of(images, digits):
    """Batches in a new order each epoch, prepared while the model trains on others."""
    samples = tf.data.Dataset.from_tensor_slices((images, digits)).shuffle(len(images), seed=SEED)
    return samples.map(moved, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH).prefetch(2)


def tell(folder, epochs, verbose):
    """Train, test, draw, save; the accuracy on digits never seen, of the model and of what was saved."""
    tf.keras.utils.set_random_seed(SEED)
    train, test = load()
    print(f"{len(train[0])} images of handwritten digits to learn from, {len(test[0])} to be tested with.")
    model = make_model()
    model.summary()
    slower = tf.keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=2)
    history = model.fit(batches_of(*train), epochs=epochs, validation_data=test, callbacks=[slower], verbose=verbose)
    losses, test_losses = history.history["loss"], history.history["val_loss"]
    print("\nThe loss:", *plot.in_terminal(losses, epochs * 2), sep="\n")
    plot.png(folder / "digits_cnn.png", test_losses, losses, "training loss, in pale of the test", "epoch")

    _, accuracy = model.evaluate(*test, verbose=0)
    model.save(folder / "digits_cnn.keras")
    _, again = tf.keras.models.load_model(folder / "digits_cnn.keras").evaluate(*test, verbose=0)
    print(f"\nOf {len(test[0])} images that it never saw, {round(accuracy * len(test[0]))} are read right: "
          f"accuracy {accuracy:.4f}; loaded again from digits_cnn.keras: {again:.4f}")
    print(f"Left in {folder}: digits_cnn.png, the losses; digits_cnn.keras, the model.")
    return accuracy, again


def main():
    parser = argparse.ArgumentParser(description="Train a convolutional network to read handwritten digits.")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--accuracy", type=float, default=WANTED_ACCURACY, help="what it must reach")
    parser.add_argument("--output", type=Path, default=Path("build/demo"), help="the folder for what is made")
    chosen = parser.parse_args()
    chosen.output.mkdir(parents=True, exist_ok=True)
    accuracy, again = tell(chosen.output, chosen.epochs, 1 if sys.stdout.isatty() else 2)
    return 0 if accuracy == again and accuracy >= chosen.accuracy else 1


if __name__ == "__main__":
    sys.exit(main())
