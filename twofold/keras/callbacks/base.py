"""The base of callbacks, the list that `fit` calls, and the callbacks that are always there."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from twofold._front import replica

from ..distribution import is_chief
from ..progress import Progbar, tell

__all__ = ["Callback", "CallbackList", "History", "LambdaCallback", "ProgbarLogger"]


class Callback:
    """The base of callbacks: override the methods for the moments of interest.

    Attributes:
        model: the model.
        params: `epochs`, `steps` and `verbose` of the call.

    >>> import twofold as tf
    >>> class Losses(tf.keras.callbacks.Callback):
    ...     def on_train_begin(self, logs=None):
    ...         self.losses = []
    ...     def on_epoch_end(self, epoch, logs=None):
    ...         self.losses.append(logs["loss"])
    >>> model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> seen = Losses()
    >>> history = model.fit(tf.ones([8, 2]), tf.zeros([8, 1]), epochs=3, verbose=0, callbacks=[seen])
    >>> seen.losses == history.history["loss"]
    True
    """

    _by_chief_alone = False  # whether it writes or shows something, which one of several processes does

    def __init__(self) -> None:
        self.params: dict[str, Any] = {}
        self._model: Any = None
        self.validation_data: Any = None

    @property
    def model(self) -> Any:
        """The model that is trained, evaluated or asked."""
        return self.__dict__.get("_model")

    def set_params(self, params: dict[str, Any]) -> None:
        """Be told `epochs`, `steps` and `verbose`."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Be told the model."""
        self._model = model

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before a batch of training; the older name of `on_train_batch_begin`."""

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """After a batch of training; the older name of `on_train_batch_end`."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Before an epoch of training."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """After an epoch of training and its validation; `logs` has the values of both."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before a batch of training."""
        self.on_batch_begin(batch, logs=logs)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """After a batch of training."""
        self.on_batch_end(batch, logs=logs)

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before a batch of evaluation."""

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        """After a batch of evaluation."""

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Before a batch of prediction."""

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        """After a batch of prediction; `logs` has the `outputs`."""

    def on_train_begin(self, logs: Any = None) -> None:
        """Before training."""

    def on_train_end(self, logs: Any = None) -> None:
        """After training."""

    def on_test_begin(self, logs: Any = None) -> None:
        """Before evaluation, or the validation of an epoch."""

    def on_test_end(self, logs: Any = None) -> None:
        """After evaluation, or the validation of an epoch."""

    def on_predict_begin(self, logs: Any = None) -> None:
        """Before prediction."""

    def on_predict_end(self, logs: Any = None) -> None:
        """After prediction."""


class CallbackList:
    """The callbacks of one call, called together.

    Args:
        callbacks: a callback, a list of them, or None.
        add_history, add_progbar: whether a `History` and a `ProgbarLogger` join where there is none.
        model: the model.
        params: `epochs`, `steps`, `verbose`.
    """

    def __init__(self, callbacks: Any = None, add_history: bool = False, add_progbar: bool = False, model: Any = None,
                 **params: Any):
        if isinstance(callbacks, CallbackList):
            callbacks = callbacks.callbacks
        listed = list(callbacks) if isinstance(callbacks, (list, tuple)) else [] if callbacks is None else [callbacks]
        if model is not None and not is_chief(model._strategy):
            listed, add_progbar = [c for c in listed if not c._by_chief_alone], False
        if add_progbar and not any(isinstance(c, ProgbarLogger) for c in listed):
            listed.append(ProgbarLogger())
        if add_history and not any(isinstance(c, History) for c in listed):
            listed.append(History())
        self.callbacks: list[Any] = listed
        self.params = params
        self.model = model
        for callback in listed:
            if isinstance(callback, History) and model is not None:
                model.__dict__["history"] = callback
            callback.set_params(params)
            callback.set_model(model)
        self._hooks = {name: [_hook(c, name) for c in listed if _overrides(c, name)] for name in _HOOKS}
        for kind in ("begin", "end"):
            if any(_overrides(c, f"on_batch_{kind}") for c in listed):
                self._hooks[f"on_train_batch_{kind}"] = [_hook(c, f"on_train_batch_{kind}") for c in listed]

    def batch_hooks(self, kind: str) -> tuple[Any, Any]:
        """What to call before and after a batch of "train", "test" or "predict"; None where no callback is there."""
        names = [f"on_{kind}_batch_{moment}" for moment in ("begin", "end")]
        begin, end = [getattr(self, name) if self._hooks[name] else None for name in names]
        return begin, end

    def first_epoch(self, initial_epoch: int) -> int:
        """The epoch that training begins with: a callback that restored another has its way."""
        restored = [c.restored_epoch for c in self.callbacks if getattr(c, "restored_epoch", None) is not None]
        return max([initial_epoch, *restored])

    def append(self, callback: Callback) -> None:
        """Add a callback."""
        self.__init__([*self.callbacks, callback], model=self.model, **self.params)  # type: ignore[misc]

    def __iter__(self) -> Any:
        return iter(self.callbacks)

    def __getattr__(self, name: str) -> Callable[..., None]:
        hooks = self.__dict__.get("_hooks", {}).get(name)
        if hooks is None:
            raise AttributeError(f"'CallbackList' object has no attribute {name!r}")

        def call(*args: Any, logs: Any = None) -> None:
            wanted = 1 if "epoch" in name or "batch" in name else 0
            if len(args) > wanted:
                args, logs = args[:wanted], args[wanted]
            for hook in hooks:
                hook(*args, logs if logs is not None else {})
        self.__dict__[name] = call
        return call


_HOOKS = [name for name in vars(Callback) if name.startswith("on_")]


def _hook(callback: Any, name: str) -> Callable[..., Any]:
    """What is called of a callback; where it is the first process's alone, others read nothing with it."""
    hook: Callable[..., Any] = getattr(callback, name)
    return replica.reading_own()(hook) if callback._by_chief_alone else hook


def _overrides(callback: Any, name: str) -> bool:
    """Whether a callback has something to do at a moment."""
    return name in getattr(callback, "__dict__", {}) or getattr(type(callback), name, None) is not getattr(
        Callback, name)


class History(Callback):
    """The values of each epoch, which `fit` gives back.

    Attributes:
        epoch: the numbers of the epochs.
        history: lists of values by name.
    """

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str, list[Any]] = {}
        self.epoch: list[int] = []

    def on_train_begin(self, logs: Any = None) -> None:
        """Begin a new record of epochs."""
        self.epoch = []

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Note the values of an epoch."""
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)


class LambdaCallback(Callback):
    """Functions as a callback.

    Args:
        on_epoch_begin, on_epoch_end, on_train_begin, on_train_end, on_train_batch_begin, on_train_batch_end: functions
            with the arguments of the methods.
        kwargs: functions for further methods.

    >>> import twofold as tf
    >>> tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: None).on_epoch_end(0, {})
    """

    def __init__(self, on_epoch_begin: Any = None, on_epoch_end: Any = None, on_train_begin: Any = None,
                 on_train_end: Any = None, on_train_batch_begin: Any = None, on_train_batch_end: Any = None,
                 **kwargs: Any):
        super().__init__()
        given = {"on_epoch_begin": on_epoch_begin, "on_epoch_end": on_epoch_end, "on_train_begin": on_train_begin,
                 "on_train_end": on_train_end, "on_train_batch_begin": on_train_batch_begin,
                 "on_train_batch_end": on_train_batch_end, **kwargs}
        for name, function in given.items():
            if function is not None:
                self.__dict__[name] = function


class ProgbarLogger(Callback):
    """The progress bar of `fit`, `evaluate` and `predict`; it is there unless `verbose=0`."""

    _by_chief_alone = True

    def __init__(self) -> None:
        super().__init__()
        self._bar: Progbar | None = None
        self._target: int | None = None
        self._epochs, self._training = 1, False
        self._seen, self._started = 0, 0.0

    def set_params(self, params: dict[str, Any]) -> None:
        """Be told how much there is to show."""
        super().set_params(params)
        self._epochs, self._target = params.get("epochs", 1), params.get("steps")
        self._verbose = params.get("verbose", 1)

    def on_train_begin(self, logs: Any = None) -> None:
        """Training shows epochs, not the batches of validation."""
        self._training = True

    def on_train_end(self, logs: Any = None) -> None:
        """Training is over."""
        self._training = False

    def on_test_begin(self, logs: Any = None) -> None:
        """Begin a bar for an evaluation."""
        if not self._training:
            self._begin()

    def on_predict_begin(self, logs: Any = None) -> None:
        """Begin a bar for a prediction."""
        self._begin()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Show the number of the epoch, and begin a bar."""
        self._begin()
        if self._verbose and self._epochs > 1:
            tell(f"Epoch {epoch + 1}/{self._epochs}")

    def _begin(self) -> None:
        self._bar, self._seen, self._started = None, 0, time.perf_counter()
        self._show([], False)

    def _show(self, logs: Any, finalize: bool) -> None:
        if self._bar is None:
            self._bar = Progbar(self._target, verbose=self._verbose)
        names = {name for name, _ in logs}
        self._bar.stateful_metrics |= names
        if self._seen or finalize:
            self._bar.update(self._seen, logs, finalize=finalize)

    def _advance(self, batch: int, logs: Any) -> None:
        self._seen = batch + 1
        self._show([(k, v) for k, v in (logs or {}).items() if _is_number(v)], False)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Show a batch of training."""
        self._advance(batch, logs)

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        """Show a batch of evaluation."""
        if not self._training:
            self._advance(batch, logs)

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        """Show a batch of prediction."""
        self._advance(batch, None)

    def _end(self, logs: Any) -> None:
        if self._target is None:
            self._target = self._seen
            if self._bar is not None:
                self._bar.target = self._seen
        self._show([(k, v) for k, v in (logs or {}).items() if _is_number(v)], True)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Show the values of an epoch."""
        self._end(logs)

    def on_test_end(self, logs: Any = None) -> None:
        """Show the values of an evaluation."""
        if not self._training:
            self._end(logs)

    def on_predict_end(self, logs: Any = None) -> None:
        """End the bar of a prediction."""
        self._end(None)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))
