"""A model goes out to ONNX, runs in another runtime, comes back, learns more, and leaves as a native library.

A small convolutional network learns to read the scanned digits that come with scikit-learn, dark ink on pale paper. It
is exported to an ONNX file, which onnxruntime runs. The file alone is imported again: a model with variables under the
names of the file, with no source of the network. That model cannot read pale chalk on a dark board, so it is trained
further, on digits of both kinds, from the weights of the file; what comes out becomes a library, and a C program reads
with it.

    python examples/onnx_roundtrip.py

It needs the extra `onnx`. Leaves in build/demo: a plot of both losses; and onnx_roundtrip, the folder with the ONNX
file, the library with its header, and the C program. Ends with status 1 if the accuracy on digits of both kinds, never
seen, is below 0.95 at the end, or one of the ways to predict gives another accuracy than the others.
"""

import argparse
import shutil
import sys
from pathlib import Path

import digits
import numpy as np
import onnxruntime
import plot

import twofold as tf

SEED = 7
EPOCHS, MORE_EPOCHS = 12, 20
BATCH = 32
LEARNING_RATE = 2e-3
WANTED_ACCURACY = 0.95


def make_model():
    """The network, from 64 pixels to ten scores, ready to be trained."""
    layers = tf.keras.layers
    model = tf.keras.Sequential([
        tf.keras.Input((64,), name="images"), layers.Reshape((8, 8, 1)),
        layers.Conv2D(16, 3, padding="same", activation="relu"), layers.MaxPooling2D(),
        layers.Flatten(), layers.Dense(64, activation="relu"), layers.Dense(10, name="scores")])
    model.compile(tf.keras.optimizers.Adam(LEARNING_RATE),
                  tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def both_kinds(images, numbers):
    """Ink on paper, then chalk on a board, of the same digits."""
    return np.concatenate([images, 1 - images]), np.concatenate([numbers, numbers])


def accuracy(scores, numbers):
    """The share of rows with their highest score at the right digit, as text."""
    return f"accuracy {np.mean(np.argmax(scores, axis=1) == numbers):.4f}"


def train_further(model, images, numbers, epochs):
    """Train an imported model, as any other module, from the weights that its file holds; the loss of each epoch."""
    optimizer = tf.keras.optimizers.Adam(LEARNING_RATE)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=model(x)))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    samples = tf.data.Dataset.from_tensor_slices((images, numbers)).shuffle(len(images), seed=SEED)
    batches = samples.batch(BATCH, drop_remainder=True)
    return [float(np.mean([step(x, y) for x, y in batches])) for _ in range(epochs)]


def export_library(model, folder):
    """A library of one function, which gives the digit on each image and its scores."""
    @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32, name="images")])
    def serving_default(images):
        scores = model(images)
        return {"digit": tf.argmax(scores, axis=1), "scores": scores}

    return tf.export.native({"serving_default": serving_default}, folder / "libdigits.a")


def tell(folder, epochs, more_epochs):
    """The story, step by step; the accuracy at the end, and whether all ways to predict agreed."""
    tf.keras.utils.set_random_seed(SEED)
    train_x, train_y, test_x, test_y = digits.load()
    made = folder / "onnx_roundtrip"
    made.mkdir(exist_ok=True)
    print(f"1. Trained: {len(train_x)} images of handwritten digits to learn from, {len(test_x)} to be tested with.")
    model = make_model()
    losses = model.fit(train_x, train_y, batch_size=BATCH, epochs=epochs, verbose=0).history["loss"]
    said = [accuracy(model.predict(test_x, verbose=0), test_y)]
    print(f"   {said[0]}")

    file = tf.export.onnx(model, made / "digits.onnx")
    print(f"\n2. Exported: {file.path.name}, {digits.size_of(file.path)}; {file.inputs[0]} -> {file.outputs[0]}")
    print("   its operators:", ", ".join(f"{count} {kind}" for kind, count in file.operators.items()))
    session = onnxruntime.InferenceSession(file.path, providers=["CPUExecutionProvider"])
    [scores] = session.run(None, {"images": test_x})
    said.append(accuracy(scores, test_y))
    print(f"   onnxruntime: {said[-1]}")

    again = tf.import_onnx(file.path)
    said.append(accuracy(again(test_x).numpy(), test_y))
    chalk = accuracy(again(1 - test_x).numpy(), test_y)
    print(f"\n3. Imported from the file alone: {said[-1]}; of chalk on a board: {chalk}")
    more = train_further(again, *both_kinds(train_x, train_y), more_epochs)
    both_x, both_y = both_kinds(test_x, test_y)
    at_end = accuracy(again(both_x).numpy(), both_y)
    print(f"   trained further, on both: of both {at_end}; of chalk: {accuracy(again(1 - test_x).numpy(), test_y)}")
    print("\n   the losses, one behind the other:", *plot.in_terminal([*losses, *more], 48), sep="\n   ")
    plot.png(folder / "onnx_roundtrip.png", [*losses, *more], [*losses, *more], "training loss", "epoch")

    library = export_library(again, made)
    print(f"\n4. Compiled to a native library: {library.path.name}, {digits.size_of(library.path)}")
    last = [at_end]
    compiler = shutil.which("cc")
    if compiler is None:
        print("   there is no C compiler (cc) on this machine to call it with; all the rest is done")
    else:
        in_c = digits.predict_in_c(made, (None, None, both_x, both_y), compiler)
        last.append(in_c.partition(",")[0])
        print(f"   the C program: {in_c}")
    print(f"\nLeft in {folder}: onnx_roundtrip.png, the losses; onnx_roundtrip, the folder of all that was made.")
    return float(at_end.split()[1]), len(set(said)) == len(set(last)) == 1


def main():
    parser = argparse.ArgumentParser(description="Export a model to ONNX, run it elsewhere, import it, train on.")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--more-epochs", type=int, default=MORE_EPOCHS, help="of the imported model")
    parser.add_argument("--accuracy", type=float, default=WANTED_ACCURACY, help="what it must reach")
    parser.add_argument("--output", type=Path, default=Path("build/demo"), help="the folder for what is made")
    chosen = parser.parse_args()
    chosen.output.mkdir(parents=True, exist_ok=True)
    reached, agree = tell(chosen.output, chosen.epochs, chosen.more_epochs)
    return 0 if agree and reached >= chosen.accuracy else 1


if __name__ == "__main__":
    sys.exit(main())
