"""The whole story of a model: from training it one op at a time to a C program that reads handwriting.

A network of two hidden layers learns the 1,797 scanned digits that come with scikit-learn: 8x8 pixels in, the digit
out. Nothing is hidden: the weights are plain variables, a tape finds the gradients, and the update is three lines.

 1. It is trained one op at a time, as Python runs.
 2. It is trained again, with one decorator on the training step: the same losses to the last bit, in far less time.
 3. It is saved, and a fresh Python process, which has none of this source, loads it and predicts.
 4. It becomes a native library, and a C program, compiled on the spot, predicts the same.

    python examples/digits.py
    python examples/digits.py --explain     tell what becomes of the compiled step, and train nothing
    python examples/digits.py --device gpu  train on a GPU: the losses are those of the processor to the last bit

Leaves in build/demo: a plot of the loss, the training step as a page to look around in, the saved model, the library
with its header, and the C program. Ends with status 1 if an accuracy is below 0.95, the losses of the two runs differ,
or one of the four ways to predict gives another accuracy.
"""

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import plot
from sklearn.datasets import load_digits
from tqdm import tqdm

import twofold as tf

HERE = Path(__file__).resolve().parent
SEED = 7
EPOCHS = 30
BATCH = 32
LEARNING_RATE = 0.05
MOMENTUM = 0.9
WANTED_ACCURACY = 0.95


def load():
    """Images scaled to 0..1 with their digits, shuffled, four fifths of them to train on."""
    images, digits = load_digits(return_X_y=True)
    images = (images / 16.0).astype(np.float32)
    digits = digits.astype(np.int32)
    order = np.random.default_rng(SEED).permutation(len(images))
    train, test = np.split(order, [len(images) * 4 // 5])
    return images[train], digits[train], images[test], digits[test]


def make_layer(inputs, outputs):
    """The weights and the bias of one layer, the weights as wide as keeps the signal's variance (He et al., 2015)."""
    weights = tf.random.normal([inputs, outputs], stddev=(2.0 / inputs) ** 0.5)
    return tf.Variable(weights, name="weights"), tf.Variable(tf.zeros([outputs]), name="bias")


class Digits(tf.Module):
    """The network."""

    def __init__(self):
        super().__init__()
        self.layers = [make_layer(64, 128), make_layer(128, 64), make_layer(64, 10)]

    def scores(self, x):
        """One score for each of the ten digits, for each image of `x`."""
        *hidden, (last_weights, last_bias) = self.layers
        for weights, bias in hidden:
            x = tf.nn.relu(tf.matmul(x, weights) + bias)
        return tf.matmul(x, last_weights) + last_bias

    @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32, name="images")])
    def predict(self, images):
        """The digit on each image, and the scores that say so; what is saved and exported."""
        scores = self.scores(images)
        return {"digit": tf.argmax(scores, axis=1), "scores": scores}


def count_right(network, x, y):
    """How many images have their highest score at the right digit."""
    return int(np.sum(network.predict(x)["digit"].numpy() == y))


# -- training -----------------------------------------------------------------------------------------
def make_step(decorator):
    """A network that begins alike each time, and its training step."""
    tf.random.set_seed(SEED)
    network = Digits()
    variables = network.trainable_variables
    velocities = [tf.Variable(tf.zeros(variable.shape)) for variable in variables]

    @decorator
    def train_step(x, y):
        """Move every variable a little downhill, and return the loss that was there before."""
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=network.scores(x))
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, variables)
        for variable, velocity, gradient in zip(variables, velocities, gradients, strict=True):
            velocity.assign(MOMENTUM * velocity + gradient)
            variable.assign_sub(LEARNING_RATE * velocity)
        return loss

    return network, train_step


def train(mode, decorator, data):
    """Train a network from the same start whatever the mode; it, its step, the losses, and the seconds of a step."""
    train_x, train_y, _, _ = data
    network, train_step = make_step(decorator)
    shuffler = np.random.default_rng(SEED)
    losses, steps, seconds = [], 0, 0.0
    progress = tqdm(range(1, EPOCHS + 1), desc=f"training, {mode}", unit="epoch", leave=False, disable=None)
    for epoch in progress:
        order = shuffler.permutation(len(train_x))
        batches = [order[i : i + BATCH] for i in range(0, len(order), BATCH)]
        batches = [(tf.constant(train_x[rows]), tf.constant(train_y[rows])) for rows in batches]
        start = time.perf_counter()
        batch_losses = [train_step(x, y) for x, y in batches]
        if epoch > 1:  # the first epoch also compiles
            seconds += time.perf_counter() - start
            steps += len(batches)
        losses.append([float(loss) for loss in batch_losses])
        if epoch % 10 == 0 or epoch == 1:
            progress.write(f"   epoch {epoch:2d}: loss {np.mean(losses[-1]):.6f}", file=sys.stdout)
    return network, train_step, losses, seconds / steps


# -- leaving Python -----------------------------------------------------------------------------------
def predict_elsewhere(folder, data):
    """What a fresh process says that has the saved model and not this file."""
    _, _, test_x, test_y = data
    np.savez(folder / "test.npz", images=test_x, digits=test_y)
    command = [sys.executable, HERE / "digits_predict.py", folder / "digits", folder / "test.npz"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def predict_in_c(folder, data, compiler):
    """What a C program says that is linked with the library."""
    _, _, test_x, test_y = data
    count = np.array(len(test_x), np.int64)
    (folder / "test.bin").write_bytes(count.tobytes() + test_x.tobytes() + test_y.astype(np.int64).tobytes())
    program = folder / "digits_predict"
    subprocess.run([compiler, "-std=c11", "-O2", HERE / "digits_predict.c", "-I", folder, folder / "libdigits.a", "-lm",
                    "-o", program], check=True)
    return subprocess.run([program, folder / "test.bin"], check=True, capture_output=True, text=True).stdout.strip()


def size_of(path):
    """Kilobytes of a file, or of all files in a folder."""
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return f"{sum(p.stat().st_size for p in files) / 1000:.1f} kB"


def tell(folder, data):
    """The story, step by step; whether all of it came out as it should."""
    _, _, test_x, test_y = data
    print(f"The data: {len(data[0])} images of handwritten digits to learn from, {len(test_x)} to be tested with.")
    print(f"\n1. Training one op at a time: {EPOCHS} epochs, batches of {BATCH}.")
    eager, _, eager_losses, eager_seconds = train("one op at a time", lambda step: step, data)
    print("\n2. The same, with the training step compiled by @tf.function.")
    network, train_step, losses, seconds = train("compiled", tf.function, data)
    same, right = losses == eager_losses, count_right(network, test_x, test_y)
    accuracy = f"accuracy {right / len(test_y):.4f}"
    print(f"   losses of all {sum(map(len, losses))} steps: {'equal to the last bit' if same else 'DIFFERENT'}")
    print(f"   a step takes {eager_seconds * 1e6:.0f} us one op at a time, {seconds * 1e6:.0f} us compiled: "
          f"{eager_seconds / seconds:.0f} times as fast")
    print(f"   {right} of {len(test_y)} images that it never saw read right: {accuracy}\n")
    print("   the loss:", *plot.in_terminal([np.mean(epoch) for epoch in losses], EPOCHS * 2), sep="\n   ")
    plot.png(folder / "loss.png", [x for epoch in losses for x in epoch], [np.mean(epoch) for epoch in losses],
             "training loss", "epoch")
    batch = tf.constant(data[0][:BATCH]), tf.constant(data[1][:BATCH])
    train_step.get_concrete_function(*batch).to_html(*batch, path=folder / "train_step.html")

    print("\n3. Saved, then loaded by a fresh process that has the folder and nothing of this source.")
    tf.saved_model.save(network, folder / "digits", signatures=network.predict)
    elsewhere = predict_elsewhere(folder, data)
    print(f"   saved model: {size_of(folder / 'digits')}; the other process: {elsewhere}")

    print("\n4. Compiled to a native library, and called from C.")
    tf.export.native(folder / "digits", folder / "libdigits.a")
    weights = sum(v.numpy().nbytes for v in network.variables)
    print(f"   libdigits.a: {size_of(folder / 'libdigits.a')}, of which {weights / 1000:.1f} kB are weights; no Python "
          "in it")
    said = [f"accuracy {count_right(eager, test_x, test_y) / len(test_y):.4f}", elsewhere]
    compiler = shutil.which("cc")
    if compiler is None:
        print("   there is no C compiler (cc) on this machine to call it with; all the rest is done")
    else:
        in_c = predict_in_c(folder, data, compiler)
        said.append(in_c.partition(",")[0])
        print(f"   the C program: {in_c}")

    agree = set(said) == {accuracy}
    ways = "one op at a time, compiled, reloaded" + (", in C" if compiler else "")
    print(f"\nThe accuracy is {'the same' if agree else 'NOT THE SAME'} each way: {ways}.")
    print(f"Left in {folder}: loss.png; train_step.html, the compiled training step to look around in; the saved")
    print("model digits; the library with its header; the C program.")
    return same and agree and right / len(test_y) >= WANTED_ACCURACY


def main():
    parser = argparse.ArgumentParser(description="Train a classifier of handwritten digits; save it; call it from C.")
    parser.add_argument("--explain", action="store_true", help="tell what becomes of the compiled step, and end")
    parser.add_argument("--device", default="cpu", help="where to train: cpu, gpu, or gpu:1 and so on")
    parser.add_argument("--output", type=Path, default=Path("build/demo"), help="the folder for what is made")
    chosen = parser.parse_args()
    data = load()
    if chosen.device.startswith("gpu") and not tf.config.list_physical_devices("GPU"):
        parser.error("there is no GPU on this machine")
    with tf.device(f"/{chosen.device}"):
        return run(chosen, data)


def run(chosen, data):
    """What was chosen, on the device of the block around it; the exit status."""
    if chosen.explain:
        _, train_step = make_step(tf.function)
        train_step.explain(tf.constant(data[0][:BATCH]), tf.constant(data[1][:BATCH]))
        return 0
    chosen.output.mkdir(parents=True, exist_ok=True)
    return 0 if tell(chosen.output, data) else 1


if __name__ == "__main__":
    sys.exit(main())
