"""A page that reads digits while one draws them, with a mouse or a finger.

A network learns the 1,797 scanned digits that come with scikit-learn, 8x8 pixels each, turned, slanted and stretched a
little each time, as people write. What is exported takes a drawing instead: it finds the ink, scales it to the size
that the scanned digits have, and says how likely each digit is. All of that is one compiled function, in Python and in
the page alike. The page is one file, which opens from a disk and asks the network for nothing.

    python examples/draw_a_digit.py

Leaves in build/demo: draw_a_digit, the folder with the page (index.html) and with the library for programs; and a
plot of the loss. Ends with status 1 if the accuracy on digits never seen is below 0.97.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import plot
from sklearn.datasets import load_digits

import twofold as tf

SEED = 7
EPOCHS = 60
BATCH = 32
LEARNING_RATE = 2e-3
WANTED_ACCURACY = 0.97
PAPER = 64  # pixels of a drawing in each direction
INK = 0.1  # from which a pixel is drawn on
GAIN = 1.5  # by which ink is more than what fills a pixel of an image
PIXELS = np.arange(PAPER, dtype=np.float32)
CELLS = np.arange(-4, 4, dtype=np.float32)[:, None]  # of the images that the network knows, seen from their middle


def load():
    """Images scaled to 0..1 with their digits, shuffled, four fifths of them to train on."""
    images, digits = load_digits(return_X_y=True)
    images = (images / 16.0).astype(np.float32).reshape(-1, 8, 8)
    digits = digits.astype(np.int64)
    order = np.random.default_rng(SEED).permutation(len(images))
    train, test = np.split(order, [len(images) * 4 // 5])
    return (images[train], digits[train]), (images[test], digits[test])


def make_model():
    """The network, ready to be trained."""
    layers = tf.keras.layers
    model = tf.keras.Sequential([
        tf.keras.Input((8, 8)), layers.Flatten(), layers.Dense(128, "relu"), layers.Dropout(0.2),
        layers.Dense(64, "relu"), layers.Dense(10)])
    model.compile(tf.keras.optimizers.Adam(LEARNING_RATE),
                  tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def written_anew(images, rng):
    """The images turned, slanted, stretched and moved a little, with thicker or thinner pens, each in its own way."""
    n = len(images)
    turn, slant = rng.normal(0, 0.15, (2, n))
    wide, high = np.exp(rng.normal(0, 0.15, (2, n)))
    from_row = np.stack([np.cos(turn) / high, np.sin(turn) + slant], 1)
    from_column = np.stack([-np.sin(turn), np.cos(turn) / wide], 1)
    place = np.stack(np.meshgrid(np.arange(8) - 3.5, np.arange(8) - 3.5, indexing="ij"))
    rows = np.einsum("nk,kij->nij", from_row, place) + 3.5 + rng.normal(0, 0.3, (n, 1, 1))
    columns = np.einsum("nk,kij->nij", from_column, place) + 3.5 + rng.normal(0, 0.3, (n, 1, 1))
    padded = np.pad(images, [(0, 0), (2, 2), (2, 2)])
    rows, columns = (np.clip(p + 2, 0, 10.999) for p in (rows, columns))
    top, left, each = rows.astype(int), columns.astype(int), np.arange(n)[:, None, None]
    down, right = rows - top, columns - left
    moved = ((1 - down) * ((1 - right) * padded[each, top, left] + right * padded[each, top, left + 1])
             + down * ((1 - right) * padded[each, top + 1, left] + right * padded[each, top + 1, left + 1]))
    return (moved ** np.exp(rng.normal(0, 0.4, (n, 1, 1)))).astype(np.float32)


def centred(drawing):
    """The ink of a drawing as the scanned digits have it: 8x8 pixels, as high or as wide as these, in the middle, and
    about as thick as their pens were."""
    def bounds(axis):
        inked = tf.reduce_max(drawing, axis=axis) > INK
        return tf.reduce_min(tf.where(inked, PIXELS, float(PAPER))), tf.reduce_max(tf.where(inked, PIXELS + 1.0, 0.0))

    (top, bottom), (left, right) = bounds(1), bounds(0)
    cell = tf.maximum(tf.maximum(bottom - top, right - left), 8.0) / 8.0

    def shares(low, high):
        """How much of each window, of eight in a row around the middle of the ink, each pixel of the drawing covers.
        A window is as wide as two cells, which makes the pen thicker."""
        begin = (low + high) / 2.0 + cell * (CELLS - 0.5)
        covered = tf.minimum(begin + 2.0 * cell, PIXELS + 1.0) - tf.maximum(begin, PIXELS)
        return tf.maximum(covered, 0.0) / (2.0 * cell)

    image = shares(top, bottom) @ drawing @ tf.transpose(shares(left, right))
    return tf.minimum(image * (GAIN / tf.maximum(tf.reduce_max(image), INK)), 1.0)


def reader_of(model):
    """The function that is exported."""
    @tf.function(input_signature=[tf.TensorSpec([PAPER, PAPER], tf.float32, "drawing")])
    def read(drawing):
        """How likely each digit is: all the same where nothing is drawn."""
        scores = model(centred(drawing)[None], training=False)[0]
        return {"probabilities": tf.nn.softmax(tf.where(tf.reduce_max(drawing) > INK, scores, 0.0))}

    return read


def tell(folder, epochs):
    """Train, test, export; the accuracy on digits never seen."""
    tf.keras.utils.set_random_seed(SEED)
    (train_x, train_y), test = load()
    print(f"{len(train_x)} images of handwritten digits to learn from, {len(test[0])} to be tested with.")
    model, rng, losses = make_model(), np.random.default_rng(SEED), []
    for epoch in range(epochs):
        if epoch == epochs * 3 // 4:
            model.optimizer.learning_rate = LEARNING_RATE / 5
        history = model.fit(written_anew(train_x, rng), train_y, batch_size=BATCH, verbose=0)
        losses += history.history["loss"]
    print("\nThe loss:", *plot.in_terminal(losses, 60), sep="\n")
    plot.png(folder / "draw_a_digit.png", losses, losses, "training loss", "epoch")

    _, accuracy = model.evaluate(*test, verbose=0)
    made = tf.export.web(reader_of(model), folder / "draw_a_digit", title="Draw a digit")
    weights = sum(v.numpy().nbytes for v in model.variables)
    print(f"\nOf {len(test[0])} images that it never saw, {round(accuracy * len(test[0]))} are read right: "
          f"accuracy {accuracy:.4f}")
    print(f"{made.path}: {made.path.stat().st_size / 1000:.1f} kB, of which {weights / 1000:.1f} kB are weights.")
    print("Open it in a browser, and draw.")
    return accuracy


def main():
    parser = argparse.ArgumentParser(description="Train a network to read digits, and make a page to draw them on.")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--accuracy", type=float, default=WANTED_ACCURACY, help="what it must reach")
    parser.add_argument("--output", type=Path, default=Path("build/demo"), help="the folder for what is made")
    chosen = parser.parse_args()
    chosen.output.mkdir(parents=True, exist_ok=True)
    return 0 if tell(chosen.output, chosen.epochs) >= chosen.accuracy else 1


if __name__ == "__main__":
    sys.exit(main())
