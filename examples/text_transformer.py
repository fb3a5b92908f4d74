"""A small transformer learns to write like the documentation of this project, letter by letter.

The text is README.md and the pages of docs/. The model sees a stretch of it and says at each place which letter comes
next: a convolution over the last four letters, then blocks of causal self-attention and a layer of two, each around a
residual and behind a normalisation, as in GPT-2 (Radford et al., 2019). It learns from nine tenths of every page; the
loss is measured on the rest.

    python examples/text_transformer.py
    python examples/text_transformer.py --prompt "The compiler " --letters 600

Leaves in build/demo a plot of the loss, and ends with text of its own. The status is 1 if the loss on text never seen
is above 2.0 nats a letter: so uncertain is who chooses among 7.4 letters, of the hundred and more that there are.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import plot
from tqdm import tqdm

import twofold as tf

ROOT = Path(__file__).resolve().parent.parent
SEED = 7
LENGTH, BATCH = 64, 16  # letters in a stretch, stretches in a batch
WIDTH, HEADS, BLOCKS = 96, 4, 2
STEPS, OF_EPOCH = 600, 60
LEARNING_RATE = 4e-3
WANTED_LOSS = 2.0


class Text:
    """The documentation as numbers of letters: `train` and `test`."""

    def __init__(self):
        pages = [page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]]
        self.letters = sorted(set("".join(pages)))
        self._places = {letter: place for place, letter in enumerate(self.letters)}
        self.train = self.numbers("".join(page[:len(page) * 9 // 10] for page in pages))
        self.test = self.numbers("".join(page[len(page) * 9 // 10:] for page in pages))

    def numbers(self, text):
        """The places of letters in `letters`; those that are not in it are left out."""
        return np.array([self._places[letter] for letter in text if letter in self._places], np.int32)


def batches_of(numbers):
    """Endless batches of stretches from anywhere in the text, each with the letters that come after."""
    def stretch(start):
        letters = tf.slice(text, [start], [LENGTH + 1])
        return letters[:-1], letters[1:]

    text = tf.constant(numbers)
    starts = np.random.default_rng(SEED).permutation(len(numbers) - LENGTH).astype(np.int32)
    return tf.data.Dataset.from_tensor_slices(starts).map(stretch).repeat().batch(BATCH).prefetch(2)


def stretches_of(numbers):
    """The text cut into stretches, each with the letters that come after."""
    count = (len(numbers) - 1) // LENGTH
    return numbers[:count * LENGTH].reshape(-1, LENGTH), numbers[1:count * LENGTH + 1].reshape(-1, LENGTH)


def make_model(letters, steps):
    """From stretches of letters to scores for the next letter at each place, ready to be trained for some steps."""
    layers = tf.keras.layers
    stretch = tf.keras.Input((None,), dtype="int32")
    x = layers.Embedding(letters, WIDTH)(stretch)
    x = layers.Conv1D(WIDTH, 4, padding="causal", activation="gelu")(x)
    for _ in range(BLOCKS):
        normal = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(normal, normal, use_causal_mask=True)
        normal = layers.LayerNormalization()(x)
        x = x + layers.Dense(WIDTH)(layers.Dense(4 * WIDTH, activation="gelu")(normal))
    model = tf.keras.Model(stretch, layers.Dense(letters)(layers.LayerNormalization()(x)))
    warm = max(steps // 10, 1)
    rate = tf.keras.optimizers.schedules.CosineDecay(0.0, max(steps - warm, 1), alpha=0.05,
                                                     warmup_target=LEARNING_RATE, warmup_steps=warm)
    model.compile(tf.keras.optimizers.AdamW(rate, weight_decay=0.05),
                  tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def write(model, text, prompt, count, temperature=0.6):
    """Continue a prompt by letters drawn from what the model holds likely."""
    numbers = list(text.numbers(prompt))
    scores_of = tf.function(lambda stretch: model(stretch)[0, -1])
    for _ in tqdm(range(count), desc="writing", unit="letter", leave=False, disable=None):
        # A stretch is as long as those it learnt from, so that one compiled function serves; at first it begins with
        # line breaks.
        stretch = np.full(LENGTH, text.numbers("\n")[0], np.int32)
        seen = numbers[-LENGTH:]
        stretch[LENGTH - len(seen):] = seen
        scores = scores_of(tf.constant(stretch[None]))
        numbers.append(int(tf.random.categorical(scores[None] / temperature, 1)[0, 0]))
    return "".join(text.letters[number] for number in numbers)


def tell(folder, steps, prompt, letters, verbose):
    """Train, draw, write; the loss on text that was not learnt from."""
    tf.keras.utils.set_random_seed(SEED)
    text = Text()
    model = make_model(len(text.letters), steps)
    print(f"{len(text.train)} letters to learn from, {len(text.test)} to be tested with, {len(text.letters)} different "
          f"ones; a model of {model.count_params()} weights.")
    epochs = max(steps // OF_EPOCH, 2)  # each ends with the loss on all of the text that is not learnt from
    history = model.fit(batches_of(text.train), epochs=epochs, steps_per_epoch=max(steps // epochs, 1),
                        validation_data=stretches_of(text.test), verbose=verbose).history
    print("\nThe loss:", *plot.in_terminal(history["loss"], 60), sep="\n")
    plot.png(folder / "text_transformer.png", history["val_loss"], history["loss"],
             "training loss, in pale of the test", "epoch")
    loss = history["val_loss"][-1]
    print(f"\nThe loss on text never seen: {loss:.3f} nats a letter.")
    print(f"Left in {folder}: text_transformer.png, the losses.\n\nIt writes:\n")
    print(write(model, text, prompt, letters))
    return loss


def main():
    parser = argparse.ArgumentParser(description="Train a transformer to write like this project's documentation.")
    parser.add_argument("--steps", type=int, default=STEPS, help="of training")
    parser.add_argument("--loss", type=float, default=WANTED_LOSS, help="the highest loss on text never seen")
    parser.add_argument("--prompt", default="## What a compiled function", help="how the text begins")
    parser.add_argument("--letters", type=int, default=400, help="how many it writes")
    parser.add_argument("--output", type=Path, default=Path("build/demo"), help="the folder for what is made")
    chosen = parser.parse_args()
    chosen.output.mkdir(parents=True, exist_ok=True)
    loss = tell(chosen.output, chosen.steps, chosen.prompt, chosen.letters, 1 if sys.stdout.isatty() else 2)
    return 0 if loss <= chosen.loss else 1


if __name__ == "__main__":
    sys.exit(main())
