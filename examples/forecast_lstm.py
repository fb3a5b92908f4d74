"""An LSTM forecasts the sunspots of next year from those of the years before.

The yearly numbers of sunspots since 1700, a series that comes with statsmodels. They swing with a period of about
eleven years, high and low in turn, never twice alike. The network sees a window of two such periods, and says what
comes next. It learns from the years up to 1920; those after it, it never sees while learning, nor does anything else
here: mean and spread, too, are those of the years to learn from.

    python examples/forecast_lstm.py

Its error is measured beside naive forecasts, "as last year" and "as eleven years ago", and a linear one, the least
squares over the same windows. Leaves in build/demo a picture of the forecast over the truth. Ends with status 1 if the
root of its mean squared error is above 0.65 of that of the better naive one.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import plot
from statsmodels.datasets import sunspots

import twofold as tf

SEED = 7
WINDOW = 24
LAST_YEAR_TO_LEARN_FROM = 1920
EPOCHS = 60
BATCH = 32
LEARNING_RATE = 5e-3
WANTED_RATIO = 0.65


def load():
    """The years, and the number of sunspots in each."""
    table = sunspots.load_pandas().data
    return table["YEAR"].to_numpy(int), table["SUNACTIVITY"].to_numpy(np.float64)


def windows_of(series):
    """All windows of the series, and what comes after each."""
    windows = np.lib.stride_tricks.sliding_window_view(series[:-1], WINDOW)
    return windows[..., None].copy(), series[WINDOW:]


def make_model(steps):
    """From a window of years to the next one, ready to be trained for a number of steps."""
    model = tf.keras.Sequential([tf.keras.Input((WINDOW, 1)), tf.keras.layers.LSTM(32), tf.keras.layers.Dense(1)])
    rate = tf.keras.optimizers.schedules.CosineDecay(LEARNING_RATE, steps)
    model.compile(tf.keras.optimizers.AdamW(rate, weight_decay=1e-2), "mse")
    return model


def line_through(x, y):
    """The linear forecast whose squared error is least where it learns."""
    def with_one(windows):
        return np.concatenate([windows[..., 0], np.ones([len(windows), 1])], axis=1)
    weights, *_ = np.linalg.lstsq(with_one(x), y, rcond=None)
    return lambda windows: with_one(windows) @ weights


def error(forecast, truth):
    """The root of the mean squared error."""
    return float(np.sqrt(np.mean((forecast - truth) ** 2)))


def tell(folder, epochs, verbose):
    """Train, forecast, compare, draw; the network's error over that of the better naive forecast."""
    tf.keras.utils.set_random_seed(SEED)
    years, numbers = load()
    learnt = int(np.sum(years <= LAST_YEAR_TO_LEARN_FROM))
    mean, spread = numbers[:learnt].mean(), numbers[:learnt].std()
    scaled = ((numbers - mean) / spread).astype(np.float32)
    print(f"{len(years)} years of sunspots, {years[0]} to {years[-1]}; {learnt} of them to learn from.")
    x, y = windows_of(scaled[:learnt])
    model = make_model(epochs * -(-len(x) // BATCH))
    losses = model.fit(x, y, batch_size=BATCH, epochs=epochs, verbose=verbose).history["loss"]
    print("\nThe loss:", *plot.in_terminal(losses, 60), sep="\n")

    windows, _ = windows_of(scaled[learnt - WINDOW:])  # each year from the true ones before it
    forecast = model.predict(windows, verbose=0)[:, 0] * spread + mean
    truth = numbers[learnt:]
    naive = {"as last year": error(numbers[learnt - 1:-1], truth),
             "as eleven years ago": error(numbers[learnt - 11:-11], truth)}
    linear = error(line_through(x, y)(windows) * spread + mean, truth)
    ours = error(forecast, truth)
    print(f"\nThe typical error in the {len(truth)} years from {years[learnt]} on, whose mean is {truth.mean():.1f}:")
    for name, typical_error in {**naive, "linear": linear, "the network": ours}.items():
        print(f"  {name:20s}{typical_error:6.1f}")
    ratio = ours / min(naive.values())
    print(f"The network's error is {ratio:.2f} of the better naive forecast's.")
    plot.png(folder / "forecast_lstm.png", truth, forecast, "forecast, in pale the truth", "year", scale=float,
             first=int(years[learnt]))
    print(f"Left in {folder}: forecast_lstm.png, the forecast over the truth.")
    return ratio


def main():
    parser = argparse.ArgumentParser(description="Train an LSTM to forecast the sunspots of next year.")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--ratio", type=float, default=WANTED_RATIO, help="the highest error over a naive one's")
    parser.add_argument("--output", type=Path, default=Path("build/demo"), help="the folder for what is made")
    chosen = parser.parse_args()
    chosen.output.mkdir(parents=True, exist_ok=True)
    return 0 if tell(chosen.output, chosen.epochs, 1 if sys.stdout.isatty() else 0) <= chosen.ratio else 1


if __name__ == "__main__":
    sys.exit(main())
