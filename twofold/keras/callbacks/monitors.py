"""Callbacks that watch a value and change or end the training."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..progress import tell
from .base import Callback

__all__ = ["EarlyStopping", "LearningRateScheduler", "Monitor", "ReduceLROnPlateau", "TerminateOnNaN"]

_RISING = ("acc", "auc", "precision", "recall", "fmeasure", "iou", "f1", "r2")


class Monitor(Callback):
    """The base of callbacks that compare a value with the best so far.

    Args:
        monitor: the name of the value.
        mode: "min", "max", or "auto", which is "max" for names that speak of accuracy and its like.
        min_delta: how much better a value must be.
        best: a value to begin with.
    Raises:
        ValueError: the mode is none of these.
    """

    def __init__(self, monitor: str, mode: str = "auto", min_delta: float = 0.0, best: float | None = None):
        super().__init__()
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"`mode` must be 'auto', 'min' or 'max'; got {mode!r}.")
        self.monitor, self.mode = monitor, mode
        self.min_delta = abs(min_delta)
        self.best = best

    def rising(self) -> bool:
        """Whether more is better."""
        if self.mode != "auto":
            return self.mode == "max"
        name = self.monitor.removeprefix("val_")
        given = getattr(self.model, "metrics", ())
        for metric in (part for m in given for part in getattr(m, "metrics", [m])):
            if (metric.name == name or name.endswith(f"_{metric.name}")) and getattr(metric, "_direction", None):
                return metric._direction == "up"
        return any(name.startswith(stem) or f"_{stem}" in name for stem in _RISING)

    def is_better(self, value: float, best: float | None) -> bool:
        """Whether a value is better than another by what counts."""
        if best is None:
            return not math.isnan(value)
        return value - self.min_delta > best if self.rising() else value + self.min_delta < best

    def value_in(self, logs: Any) -> float | None:
        """The value, or None with a warning where there is none."""
        value = (logs or {}).get(self.monitor)
        if value is None:
            warnings.warn(f"{type(self).__name__} needs the value `{self.monitor}`, which is not there. Available "
                          f"values are: {', '.join(logs or {})}", stacklevel=2)
        return value


class EarlyStopping(Monitor):
    """Ends training when a value has stopped getting better.

    Args:
        monitor: the name of the value.
        min_delta: how much better counts.
        patience: for how many epochs it may fail to get better.
        verbose: 1 to tell of it.
        mode: "min", "max" or "auto".
        baseline: what the value must be better than from the start.
        restore_best_weights: whether the weights of the best epoch come back.
        start_from_epoch: the epoch from which it watches.

    >>> import twofold as tf
    >>> tf.keras.callbacks.EarlyStopping(monitor="val_loss", patience=3).patience
    3
    """

    def __init__(self, monitor: str = "val_loss", min_delta: float = 0, patience: int = 0, verbose: int = 0,
                 mode: str = "auto", baseline: float | None = None, restore_best_weights: bool = False,
                 start_from_epoch: int = 0):
        super().__init__(monitor, mode, min_delta)
        self.patience, self.verbose, self.baseline = patience, verbose, baseline
        self.restore_best_weights, self.start_from_epoch = restore_best_weights, start_from_epoch
        self.wait, self.stopped_epoch, self.best_epoch = 0, 0, 0
        self.best_weights: Any = None

    def on_train_begin(self, logs: Any = None) -> None:
        """Begin anew."""
        self.wait, self.stopped_epoch, self.best_epoch = 0, 0, 0
        self.best, self.best_weights = None, None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Look at the value of an epoch."""
        value = self.value_in(logs)
        if value is None or epoch < self.start_from_epoch:
            return
        if self.restore_best_weights and self.best_weights is None:
            self.best_weights, self.best_epoch = self.model.get_weights(), epoch
        self.wait += 1
        if self.is_better(value, self.best):
            self.best, self.best_epoch = value, epoch
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            if self.baseline is None or self.is_better(value, self.baseline):
                self.wait = 0
            return
        if self.wait >= self.patience and epoch > 0:
            self.stopped_epoch = epoch
            self.model.stop_training = True

    def on_train_end(self, logs: Any = None) -> None:
        """Tell of an early end, and bring back the best weights."""
        if self.stopped_epoch > 0 and self.verbose:
            tell(f"Epoch {self.stopped_epoch + 1}: early stopping")
        if self.restore_best_weights and self.best_weights is not None:
            if self.verbose:
                tell(f"Restoring model weights from the end of the best epoch: {self.best_epoch + 1}.")
            self.model.set_weights(self.best_weights)


def _rate(model: Any) -> float:
    return float(np.asarray(model.optimizer.learning_rate))


class ReduceLROnPlateau(Monitor):
    """Lowers the learning rate when a value has stopped getting better.

    Args:
        monitor: the name of the value.
        factor: by which the rate is multiplied, below 1.
        patience: for how many epochs the value may fail to get better.
        verbose: 1 to tell of it.
        mode: "min", "max" or "auto".
        min_delta: how much better counts.
        cooldown: for how many epochs it rests after lowering the rate.
        min_lr: the lowest rate.
    Raises:
        ValueError: the factor is not below 1.

    >>> import twofold as tf
    >>> tf.keras.callbacks.ReduceLROnPlateau(factor=0.5, patience=2).factor
    0.5
    """

    def __init__(self, monitor: str = "val_loss", factor: float = 0.1, patience: int = 10, verbose: int = 0,
                 mode: str = "auto", min_delta: float = 1e-4, cooldown: int = 0, min_lr: float = 0.0):
        super().__init__(monitor, mode, min_delta)
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau does not support a factor >= 1.0. Received factor={factor}")
        self.factor, self.patience, self.verbose = factor, patience, verbose
        self.cooldown, self.min_lr = cooldown, min_lr
        self.wait, self.cooldown_counter = 0, 0

    def on_train_begin(self, logs: Any = None) -> None:
        """Begin anew."""
        self.wait, self.cooldown_counter, self.best = 0, 0, None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Look at the value of an epoch."""
        if isinstance(logs, dict):
            logs["learning_rate"] = _rate(self.model)
        value = self.value_in(logs)
        if value is None:
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        if self.is_better(value, self.best):
            self.best, self.wait = value, 0
        elif self.cooldown_counter <= 0:
            self.wait += 1
            old = _rate(self.model)
            if self.wait >= self.patience and old > np.float32(self.min_lr):
                new = max(old * self.factor, self.min_lr)
                self.model.optimizer.learning_rate = new
                if self.verbose:
                    tell(f"\nEpoch {epoch + 1}: ReduceLROnPlateau reducing learning rate to {new}.")
                self.cooldown_counter, self.wait = self.cooldown, 0


class LearningRateScheduler(Callback):
    """Sets the learning rate before each epoch.

    Args:
        schedule: a function of the number of the epoch and the present rate, or of the number alone.
        verbose: 1 to tell of it.

    >>> import twofold as tf
    >>> model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> falling = tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2)
    >>> history = model.fit(tf.ones([4, 2]), tf.zeros([4, 1]), epochs=3, verbose=0, callbacks=[falling])
    >>> [round(rate, 6) for rate in history.history["learning_rate"]]
    [0.005, 0.0025, 0.00125]
    """

    def __init__(self, schedule: Callable[..., Any], verbose: int = 0):
        super().__init__()
        self.schedule, self.verbose = schedule, verbose

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Set the rate.

        Raises:
            ValueError: the schedule gives no number.
        """
        try:
            rate = self.schedule(epoch, _rate(self.model))
        except TypeError:  # a schedule of one argument
            rate = self.schedule(epoch)
        if np.ndim(rate) or np.asarray(rate).dtype.kind not in "fiu":
            raise ValueError(f"The output of the `schedule` function should be a float. Got: {rate}")
        self.model.optimizer.learning_rate = float(rate)
        if self.verbose:
            tell(f"\nEpoch {epoch + 1}: LearningRateScheduler setting learning rate to {float(rate)}.")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Report the rate."""
        if isinstance(logs, dict):
            logs["learning_rate"] = _rate(self.model)


class TerminateOnNaN(Callback):
    """Ends training when the loss of a batch is infinite or not a number.

    Args:
        raise_error: whether that is an error, rather than the end of training alone.
    Raises:
        RuntimeError: by the training.

    >>> import twofold as tf
    >>> stop = tf.keras.callbacks.TerminateOnNaN()
    """

    def __init__(self, raise_error: bool = False) -> None:
        super().__init__()
        self.raise_error = raise_error

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Look at the loss of a batch."""
        loss = (logs or {}).get("loss")
        if loss is not None and not math.isfinite(loss):
            if self.raise_error:
                raise RuntimeError(f"NaN or Inf loss encountered at batch {batch}. Loss value: {loss}. Terminating "
                                   "training immediately.")
            tell(f"Batch {batch}: Invalid loss, terminating training")
            self.model.stop_training = True
