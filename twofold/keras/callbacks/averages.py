"""`SwapEMAWeights`, which lets a model be judged with the moving averages of its weights."""

from __future__ import annotations

from typing import Any

import twofold as tf

from .base import Callback

__all__ = ["SwapEMAWeights"]


class SwapEMAWeights(Callback):
    """Puts the moving averages of the weights, which the optimizer keeps, into the model while it is evaluated.

    Args:
        swap_on_epoch: whether they are in it from the end of an epoch to the beginning of the next as well, so that
            callbacks that come later in the list save them.
    Raises:
        ValueError: when first needed: the optimizer was not made with `use_ema=True`.

    >>> import numpy as np
    >>> import twofold as tf
    >>> model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
    >>> model.compile(tf.keras.optimizers.SGD(use_ema=True), "mse")
    >>> x, y = np.ones((4, 2)), np.ones((4, 1))
    >>> history = model.fit(x, y, verbose=0, validation_data=(x, y), callbacks=[tf.keras.callbacks.SwapEMAWeights()])
    >>> sorted(history.history)
    ['loss', 'val_loss']
    """

    def __init__(self, swap_on_epoch: bool = False) -> None:
        super().__init__()
        self.swap_on_epoch = swap_on_epoch
        self._swapped = False

    def _pairs(self) -> list[tuple[Any, Any]]:
        """The weights that are trained, each with its average."""
        optimizer = self.model.optimizer
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)
        if not getattr(optimizer, "use_ema", False):
            raise ValueError("SwapEMAWeights must be used when `use_ema=True` is set on the optimizer. Received: "
                             f"{optimizer!r}")
        if not optimizer.built:  # nothing was trained yet: the averages are the weights
            return []
        return list(zip(self.model.trainable_variables, optimizer._model_variables_moving_average, strict=True))

    def _exchange(self, swapped: bool) -> None:
        """Let the averages be in the model, or the weights."""
        if swapped is self._swapped:
            return
        for variable, average in self._pairs():
            value = tf.identity(variable)
            variable.assign(average)
            average.assign(value)
        self._swapped = swapped

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Go on training the weights."""
        self._exchange(False)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Leave the averages in the model."""
        if not self.swap_on_epoch:
            return
        self._exchange(True)
        if epoch == self.params["epochs"] - 1 or self.model.stop_training:
            for variable, average in self._pairs():  # `fit` ends with the averages in the model, from there
                average.assign(variable)
            self._swapped = False

    def on_test_begin(self, logs: Any = None) -> None:
        """Evaluate the averages."""
        self._exchange(True)

    def on_test_end(self, logs: Any = None) -> None:
        """Put the weights back."""
        self._exchange(False)

    def on_predict_begin(self, logs: Any = None) -> None:
        """Predict with the averages."""
        self._exchange(True)

    def on_predict_end(self, logs: Any = None) -> None:
        """Put the weights back."""
        self._exchange(False)
