"""`compile`, `fit`, `evaluate`, `predict`: the training of models.

A training step is one function of a batch, compiled as a whole: forward, loss, gradients, the optimizer's update and
the metrics. This module owns the steps and the loops; batches come from `data_adapter.py`, losses and metrics over
several outputs are `compiled.py`'s, what happens at the ends of batches and epochs is done by those in
`callbacks/`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import replica

from . import _settings, data_adapter, distribution
from .compiled import CompiledLoss, CompileMetrics
from .composites import joined
from .distribution import of_all_replicas, over_replicas
from .layer_state import LayerState
from .losses.loss import of_one_replica
from .serialization import serialize_keras_object
from .steps import StepFunction, StepFunctions, several_steps, summary_writer
from .symbolic import traced_spec

__all__ = ["Trainer"]

_STATE = ("_compiled", "_loss_tracker", "_compile_loss", "_compile_metrics", "optimizer", "_functions",
          "_share", "_strategy", "train_function", "test_function", "predict_function")


class Trainer(LayerState):
    """The training of a model; see `tf.keras.Model`."""

    __call__: Callable[..., Any]  # the layer's
    built: bool
    dtype_policy: Any
    _graph: Any

    optimizer: Any = None
    stop_training: bool = False
    stop_evaluating: bool = False
    stop_predicting: bool = False
    train_function: Any = None
    test_function: Any = None
    predict_function: Any = None
    run_eagerly: bool = False
    jit_compile: Any = "auto"
    steps_per_execution: int = 1
    loss: Any = None
    history: Any = None
    _compiled: Any = None
    _loss_tracker: Any = None
    _compile_loss: Any = None
    _compile_metrics: Any = None
    _strategy: Any = None  # in whose scope the model was compiled
    _share: Any = None  # see `distribution.over_replicas`

    _TF_MODULE_IGNORED_PROPERTIES = frozenset({*LayerState._TF_MODULE_IGNORED_PROPERTIES, *_STATE})

    # -- compile ----------------------------------------------------------------------------------
    def compile(self, optimizer: Any = "rmsprop", loss: Any = None, metrics: Any = None, loss_weights: Any = None,
                weighted_metrics: Any = None, run_eagerly: bool = False, steps_per_execution: int = 1,
                jit_compile: Any = "auto", auto_scale_loss: bool = True) -> None:
        """Say how the model is trained.

        Args:
            optimizer: an optimizer or its name.
            loss: a loss, a function of labels and outputs, or a name; for several outputs a list or a dict by name.
            metrics: metrics, functions or names; for several outputs a list of lists or a dict by name.
            loss_weights: factors of the losses of several outputs.
            weighted_metrics: metrics that regard sample weights.
            run_eagerly: whether steps run op by op, so that a debugger can stop in them.
            steps_per_execution: how many batches make one call of the compiled program, after which callbacks are told;
                the results are the same to the bit. A call itself costs microseconds.
            jit_compile: accepted, without effect: steps are always compiled to native code.
            auto_scale_loss: whether an optimizer for float16 scales the loss.
        Raises:
            ValueError: a name is not known.

        >>> import twofold as tf
        >>> model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> history = model.fit(tf.ones([8, 2]), tf.zeros([8, 1]), epochs=2, verbose=0)
        >>> sorted(history.history)
        ['loss']
        """
        from . import metrics as metrics_module
        from . import optimizers
        if not isinstance(steps_per_execution, int) or steps_per_execution < 1:
            raise ValueError(f"`steps_per_execution` must be a positive integer; got {steps_per_execution!r}.")
        chosen = optimizers.get(optimizer)
        if auto_scale_loss and self.dtype_policy.name == "mixed_float16" and not hasattr(chosen, "inner_optimizer"):
            scaled: Any = optimizers.LossScaleOptimizer
            chosen = scaled(chosen, name="loss_scale_optimizer")
        own = self.__dict__
        own["optimizer"], own["loss"] = chosen, loss
        own["run_eagerly"], own["jit_compile"] = bool(run_eagerly), jit_compile
        own["steps_per_execution"] = steps_per_execution
        own["train_function"] = own["test_function"] = own["predict_function"] = None
        names = [x._keras_history.operation.name for x in self._graph.outputs] if own.get("_graph") else None
        own["_compile_loss"] = None if loss is None else CompiledLoss(loss, loss_weights, names)
        has_metrics = metrics is not None or weighted_metrics is not None
        own["_compile_metrics"] = CompileMetrics(metrics, weighted_metrics, names) if has_metrics else None
        own["_loss_tracker"] = metrics_module.Mean(name="loss")
        own["_strategy"], own["_share"] = replica.scope.get(), None
        if distribution.several(own["_strategy"]):
            own["_share"] = tf.Variable(1.0, trainable=False, name="share")
        own["_compiled"] = {"optimizer": chosen, "loss": loss, "loss_weights": loss_weights, "metrics": metrics,
                            "weighted_metrics": weighted_metrics, "run_eagerly": bool(run_eagerly),
                            "steps_per_execution": steps_per_execution, "jit_compile": jit_compile}
        self.stop_training = False
        self._forget_functions()

    @property
    def distribute_strategy(self) -> Any:
        """The strategy in whose scope the model was compiled (`tf.distribute`); the default one elsewhere."""
        return tf.distribute.get_strategy() if self._strategy is None else self._strategy

    @property
    def compiled(self) -> bool:
        """Whether `compile` was called."""
        return self._compiled is not None

    def _forget_functions(self) -> None:
        self.__dict__["_functions"] = StepFunctions()

    def _compile_config(self) -> dict[str, Any] | None:
        if self._compiled is None:
            return None
        kept = {k: v for k, v in self._compiled.items() if v is not None}
        try:
            return {k: serialize_keras_object(v) for k, v in kept.items()}
        except ValueError:
            return None  # functions that have no name for a file

    def _require_compiled(self, method: str) -> None:
        if self._compiled is None:
            raise ValueError(f"You must call `compile()` before using `{method}()`.")

    # -- metrics ----------------------------------------------------------------------------------
    @property
    def metrics(self) -> list[Any]:
        """The mean loss, the metrics of `compile` as one, the mean losses of several outputs, and those of layers."""
        metrics: list[Any] = [] if self._loss_tracker is None else [self._loss_tracker]
        if self._compile_metrics is not None:
            metrics.append(self._compile_metrics)
        if self._compile_loss is not None:
            metrics += [m for m in self._compile_loss.metrics if m is not None]
        have = {id(m) for m in metrics}
        return metrics + [m for m in super().metrics if id(m) not in have]

    @property
    def metrics_names(self) -> list[str]:
        """The names of the metrics."""
        return [m.name for m in self.metrics]

    def reset_metrics(self) -> None:
        """Let all metrics begin anew."""
        for metric in self.metrics:
            metric.reset_state()

    def get_metrics_result(self) -> dict[str, Any]:
        """The values of the metrics by name."""
        results: dict[str, Any] = {}
        for metric in self.metrics:
            value = metric.result()
            if isinstance(value, Mapping):
                results.update(value)
            else:
                results[metric.name] = value
        return results

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, Any]:
        """Let the metrics of `compile` see a batch, and give the values of all by name.

        Args:
            x: the inputs of the batch, for those who override this; they have no effect here.
            y, y_pred, sample_weight: labels, outputs, weights of the batch.
        """
        if self._compile_metrics is not None and y is not None:
            self._compile_metrics.update_state(y, y_pred, sample_weight)
        return self.get_metrics_result()

    @property
    def compiled_metrics(self) -> Any:
        """The metrics of `compile`, with `update_state(y, y_pred, sample_weight)`."""
        if self._compile_metrics is None:
            self.__dict__["_compile_metrics"] = CompileMetrics(None)
        return self._compile_metrics

    @property
    def compiled_loss(self) -> Callable[..., Any]:
        """The loss of `compile`: `(y, y_pred, sample_weight, regularization_losses)`; it also notes its mean."""
        def loss_of(y: Any, y_pred: Any, sample_weight: Any = None, regularization_losses: Any = None) -> Any:
            loss = self._compile_loss(y, y_pred, sample_weight, regularization_losses)
            self._loss_tracker.update_state(loss, sample_weight=_batch_of(y_pred))
            return loss
        return loss_of

    # -- steps ------------------------------------------------------------------------------------
    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None,
                     training: bool = True) -> Any:
        """The loss of a batch: that of `compile`, and those that layers added.

        Args:
            x: the inputs of the batch, for those who override this; they have no effect here.
            y, y_pred, sample_weight: labels, outputs, weights of the batch.
            training: accepted, without effect.
        Returns:
            A scalar.
        Raises:
            ValueError: there is no loss at all.
        """
        total = None
        if self._compile_loss is not None and y is not None:
            total = self._compile_loss(y, y_pred, sample_weight)
        for extra in map(of_one_replica, self.losses):
            total = extra if total is None else total + tf.cast(extra, total.dtype)
        if total is None:
            if self._compile_loss is None:
                raise ValueError("No loss to compute. Provide a `loss` argument in `compile()`, or add losses with "
                                 "`add_loss`.")
            raise ValueError("There are no labels: `fit` and `evaluate` need `y` for the loss of `compile()`.")
        return tf.convert_to_tensor(total)

    def train_step(self, data: Any) -> dict[str, Any]:
        """One step of training; subclasses may override it.

        Args:
            data: `(x,)`, `(x, y)` or `(x, y, sample_weight)`.
        Returns:
            Values to report, by name.
        """
        x, y, sample_weight = data_adapter.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight)
            self._loss_tracker.update_state(of_all_replicas(loss), sample_weight=_batch_of(x))
            loss = self.optimizer.scale_loss(loss)
        variables = self.trainable_weights
        if variables:
            gradients, options = tape.gradient(loss, variables), {}
            if replica.here.get().of > 1:
                gradients = over_replicas(gradients, _batch_of(x), self._share)
                options = {"skip_gradients_aggregation": True}
            self.optimizer.apply_gradients(zip(gradients, variables, strict=True), **options)
        else:
            warnings.warn("The model does not have any trainable weights.", stacklevel=2)
        return self.compute_metrics(x, y, y_pred, sample_weight)

    def test_step(self, data: Any) -> dict[str, Any]:
        """One step of evaluation; subclasses may override it.

        Args:
            data: `(x,)`, `(x, y)` or `(x, y, sample_weight)`.
        Returns:
            Values to report, by name.
        """
        x, y, sample_weight = data_adapter.unpack_x_y_sample_weight(data)
        y_pred = self(x, training=False)
        loss = self.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=False)
        self._loss_tracker.update_state(of_all_replicas(loss), sample_weight=_batch_of(x))
        return self.compute_metrics(x, y, y_pred, sample_weight)

    def predict_step(self, data: Any) -> Any:
        """The outputs for a batch; subclasses may override it.

        Args:
            data: `(x,)`, or more, of which the rest is left.
        """
        x, _, _ = data_adapter.unpack_x_y_sample_weight(data)
        return self(x, training=False)

    def _function(self, kind: str) -> StepFunction:
        """The step for "train", "test" or "predict"."""
        functions = self.__dict__.setdefault("_functions", StepFunctions())
        method = getattr(self, f"{kind}_step")
        key = (kind, getattr(method, "__func__", method), self.run_eagerly, self.steps_per_execution,
               summary_writer())
        if getattr(type(self), f"{kind}_step") is not getattr(Trainer, f"{kind}_step"):
            method = self._with_metrics(method)
        return functions.get((*key, self._trainable_key()), lambda: StepFunction(
            method, f"{kind}_step", self.steps_per_execution, self.run_eagerly, joined=kind == "predict"))

    def _with_metrics(self, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A step of a subclass, which finds the metrics of `compile` among `metrics` from its first batch on."""
        def run(data: Any) -> Any:
            if self._compile_metrics is not None and not self._compile_metrics.built:
                self._build_metrics(data)
            return step(data)
        return run

    def _build_metrics(self, data: Any) -> None:
        x, y, _ = data_adapter.unpack_x_y_sample_weight(data)
        if y is None:
            return
        specs = tf.nest.map_structure(tf.type_spec_from_value, x)
        try:
            self._compile_metrics.build(y, traced_spec(self, (specs,), {"training": False}))
        except Exception:  # noqa: BLE001 - a step of its own need not call the model, or with other inputs
            return

    def _trainable_key(self) -> tuple[bool, ...]:
        """Which layers are trained: a step that was compiled for others does not serve."""
        return tuple([layer.__dict__["_trainable"] for layer in self._flatten_layers()])

    def make_train_function(self, force: bool = False) -> Callable[[Any], Any]:
        """The function that trains on the next batches of an iterator; `fit` calls it for each execution.

        It is kept as `train_function`. A model may make one of its own, whose result are values to report.

        Args:
            force: whether a new one is made where there is one.
        """
        return self._made("train", force)

    def make_test_function(self, force: bool = False) -> Callable[[Any], Any]:
        """The function that evaluates the next batches of an iterator; kept as `test_function`."""
        return self._made("test", force)

    def make_predict_function(self, force: bool = False) -> Callable[[Any], Any]:
        """The function that gives the outputs for the next batches of an iterator; kept as `predict_function`."""
        return self._made("predict", force)

    def _made(self, kind: str, force: bool) -> StepFunction:
        if force:
            self._forget_functions()
        function = self.__dict__[f"{kind}_function"] = self._function(kind)
        return function

    def _executed(self, kind: str) -> Any:
        """The function that a loop calls: our step, or one that the model makes itself."""
        if getattr(type(self), f"make_{kind}_function") is getattr(Trainer, f"make_{kind}_function"):
            return self._made(kind, False)
        made = getattr(self, f"make_{kind}_function")()
        return made if made is not None else getattr(self, f"{kind}_function")

    # -- loops ------------------------------------------------------------------------------------
    def fit(self, x: Any = None, y: Any = None, batch_size: int | None = None, epochs: int = 1, verbose: Any = "auto",
            callbacks: Any = None, validation_split: float = 0.0, validation_data: Any = None, shuffle: Any = True,
            class_weight: Any = None, sample_weight: Any = None, initial_epoch: int = 0,
            steps_per_epoch: int | None = None, validation_steps: int | None = None,
            validation_batch_size: int | None = None, validation_freq: Any = 1, max_queue_size: int = 10,
            workers: int = 1, use_multiprocessing: bool = False) -> Any:
        """Train for a number of epochs.

        Args:
            x: arrays or tensors, in a list or dict for several inputs; or a dataset, a generator or a `Sequence` of
                batches `(x, y)` or `(x, y, sample_weight)`.
            y: labels, with arrays.
            batch_size: with arrays; 32 by default.
            epochs: the number of the epoch after which training ends.
            verbose: 0 for silence, 1 for a progress bar, 2 for a line per epoch.
            callbacks: a list of callbacks.
            validation_split: the fraction of arrays, their last part, that is kept for validation.
            validation_data: arrays `(x, y)` or `(x, y, sample_weight)`, or a source of batches.
            shuffle: whether arrays are taken in a new order each epoch.
            class_weight: a weight for each class, by number; those that are not named count once.
            sample_weight: a weight for each sample, with arrays; it multiplies that of the class.
            initial_epoch: the number of epochs that are done already.
            steps_per_epoch: how many batches make an epoch; by default all there are. Without `batch_size`, arrays
                are cut into as many. The next epoch goes on where this one stopped, as long as there are batches.
            validation_steps, validation_batch_size: the same for validation.
            validation_freq: after how many epochs there is a validation, or a list of epochs.
            max_queue_size, workers, use_multiprocessing: accepted, without effect.
        Returns:
            A `History`, whose `history` holds the values of each epoch by name.
        Raises:
            ValueError: the model is not compiled, or the data do not go together.
        """
        from . import callbacks as callbacks_module
        del max_queue_size, workers, use_multiprocessing
        self._require_compiled("fit")
        epochs = _settings.limited(epochs, "max_epochs")
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = data_adapter.train_validation_split(
                (x, y, sample_weight), validation_split)
        source = self._source(x, y, sample_weight, batch_size, shuffle, class_weight, steps=steps_per_epoch)
        validation = self._validation(validation_data, validation_batch_size or batch_size, validation_steps)
        group = callbacks_module.CallbackList(callbacks, model=self, add_history=True, add_progbar=_verbosity(
            verbose) != 0, verbose=_verbosity(verbose), epochs=epochs, steps=source.num_batches)
        self.stop_training = False
        group.on_train_begin()
        logs: dict[str, Any] = {}
        start = group.first_epoch(initial_epoch)
        for epoch in range(start, epochs):
            self.reset_metrics()
            source.on_epoch_begin()
            group.on_epoch_begin(epoch)
            done, last = self._steps("train", source, group)
            source.on_epoch_end()
            if not done:
                if epoch == start:
                    raise ValueError("The data set is empty: there was no batch to train on.")
                warnings.warn(f"Your input ran out of data; training ends before epoch {epoch + 1} of {epochs}.",
                              stacklevel=2)
                break
            logs = self._reported(last)
            if validation is not None and _is_due(epoch, validation_freq):
                validation.restart()
                evaluation = self._evaluated(validation, group)
                logs = {**logs, **{f"val_{k}": v for k, v in evaluation.items()}}
            group.on_epoch_end(epoch, logs)
            if self.stop_training:
                break
        self.optimizer.finalize_variable_values(self.trainable_weights)
        group.on_train_end(logs)
        return self.history

    def _validation(self, data: Any, batch_size: int | None, steps: int | None) -> Any:
        if data is None:
            return None
        if isinstance(data, (tuple, list)) and 1 < len(data) <= 3:
            x, y, sample_weight = data_adapter.unpack_x_y_sample_weight(tuple(data))
            return self._source(x, y, sample_weight, batch_size, steps=steps)
        return self._source(data, batch_size=batch_size, steps=steps)

    def _source(self, x: Any, *args: Any, steps: int | None = None, whole: bool = False, **kwargs: Any) -> Any:
        """The batches of data; this process's part of them, under a strategy of several.

        Args:
            x, args, kwargs: as `data_adapter.source_of` takes them.
            steps: how many make an epoch, which `tf.keras.config` may limit.
            whole: whether all processes read the same, whatever the data say, so that rows have one order.
        """
        kwargs["steps"] = _settings.limited(steps, "max_steps_per_epoch")
        if not distribution.several(self._strategy):
            return data_adapter.source_of(x, *args, **kwargs)
        x = x if whole else distribution.of_process(self._strategy, x)
        return distribution.shared(self._strategy, x, lambda x: data_adapter.source_of(x, *args, **kwargs))

    def _reported(self, logs: Any) -> dict[str, Any]:
        """Values to report at the end of an epoch, those of all processes together; the logs are the last step's."""
        own = _python(logs)
        if not distribution.several(self._strategy):
            return own
        distribution.sums_of_metrics(self._strategy, self.metrics)
        distribution.means_of_statistics(self._strategy, self)
        results = _python(self.get_metrics_result())
        return {**own, **{name: value for name, value in results.items() if name in own or not own}}

    def _steps(self, kind: str, source: Any, group: Any) -> tuple[int, Any]:
        """Take the steps of an epoch; returns how many there were, and the logs of the last."""
        with distribution.within(self._strategy):
            return self._steps_here(kind, source, group)

    def _steps_here(self, kind: str, source: Any, group: Any) -> tuple[int, Any]:
        function = self._executed(kind)
        begin, end = group.batch_hooks(kind)
        batches, count = source.epoch(), self.steps_per_execution
        own = isinstance(function, StepFunction)
        done, logs = 0, None
        if own and count == 1 and begin is None and end is None:
            step = self._stepping(kind, function.on_batch)
            for batch in batches:
                logs = step(batch) or logs
                done += 1
                if self.stop_training:
                    break
            return done, logs
        together = function.on_batches if own else (lambda some: function(iter(some)))
        run = together
        if distribution.several(self._strategy):
            run = functools.partial(_last, self._stepping(kind, lambda batch: together([batch])))
        for some in several_steps(batches, count):
            if begin is not None:
                begin(done)
            logs = run(some)
            done += len(some)
            if end is not None:
                end(done - 1, _python(logs))
            if self.stop_training if kind == "train" else self.stop_evaluating:
                break
        return done, logs

    def _stepping(self, kind: str, run: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A function that takes a step, under a strategy of several replicas also where there are no rows."""
        if not distribution.several(self._strategy):
            return run
        return lambda batch: distribution.step(self, kind, run, batch)

    def _in_order(self, logs: dict[str, Any]) -> Any:
        """Values as a list in the order of the metrics, those of other names behind them; of one, the value."""
        names = dict.fromkeys([name for metric in self.metrics for name in (
            [part.name for part in metric.metrics] if isinstance(metric, CompileMetrics) else [metric.name])])
        values = [logs[name] for name in names if name in logs] + [logs[name] for name in logs if name not in names]
        return values[0] if len(values) == 1 else values

    def evaluate(self, x: Any = None, y: Any = None, batch_size: int | None = None, verbose: Any = "auto",
                 sample_weight: Any = None, steps: int | None = None, callbacks: Any = None,
                 return_dict: bool = False, **kwargs: Any) -> Any:
        """The loss and the metrics on data.

        Args:
            x, y, batch_size, sample_weight: as for `fit`.
            verbose: 0 for silence, 1 for a progress bar, 2 for a line.
            steps: how many batches are taken; by default all there are.
            callbacks: a list of callbacks.
            return_dict: whether the values come by name.
            kwargs: `max_queue_size`, `workers`, `use_multiprocessing`: without effect.
        Returns:
            The loss; a list that begins with it where there are metrics; or a dict.
        Raises:
            ValueError: the model is not compiled, or the data do not go together.
        """
        from . import callbacks as callbacks_module
        _known_options(kwargs)
        self._require_compiled("evaluate")
        source = self._source(x, y, sample_weight, batch_size, False, steps=steps)
        group = callbacks_module.CallbackList(callbacks, model=self, add_history=False, add_progbar=_verbosity(
            verbose) != 0, verbose=_verbosity(verbose), epochs=1, steps=source.num_batches)
        logs = self._evaluated(source, group)
        return logs if return_dict else self._in_order(logs)

    def _evaluated(self, source: Any, group: Any) -> dict[str, Any]:
        self.stop_evaluating = False
        group.on_test_begin()
        self.reset_metrics()
        done, logs = self._steps("test", source, group)
        if not done:
            raise ValueError("The data set is empty: there was no batch to evaluate.")
        logs = self._reported(logs)
        group.on_test_end(logs)
        return logs

    def predict(self, x: Any, batch_size: int | None = None, verbose: Any = "auto", steps: int | None = None,
                callbacks: Any = None, **kwargs: Any) -> Any:
        """The outputs for data.

        Args:
            x: as for `fit`, without labels.
            batch_size: with arrays; 32 by default.
            verbose: 0 for silence, 1 for a progress bar, 2 for a line.
            steps: how many batches are taken; by default all there are.
            callbacks: a list of callbacks.
            kwargs: `max_queue_size`, `workers`, `use_multiprocessing`: without effect.
        Returns:
            NumPy arrays in the structure of the outputs; ragged and sparse tensors where outputs are such.
        Raises:
            ValueError: there are no data.
        """
        from . import callbacks as callbacks_module
        _known_options(kwargs)
        source = self._source(x, None, None, batch_size, False, steps=steps, whole=True)
        group = callbacks_module.CallbackList(callbacks, model=self, add_history=False, add_progbar=_verbosity(
            verbose) != 0, verbose=_verbosity(verbose), epochs=1, steps=source.num_batches)
        function = self._executed("predict")
        run = function.on_batches if isinstance(function, StepFunction) else function
        begin, end = group.batch_hooks("predict")
        self.stop_predicting = False
        group.on_predict_begin()
        outputs_of_steps: list[Any] = []
        done = 0
        for some in several_steps(source.epoch(), self.steps_per_execution):
            if begin is not None:
                begin(done)
            with distribution.within(self._strategy):
                outputs = distribution.predicted(self._strategy, run, some)
            outputs_of_steps.append(outputs)
            done += len(some)
            if end is not None:
                end(done - 1, {"outputs": outputs})
            if self.stop_predicting:
                break
        group.on_predict_end()
        if not outputs_of_steps:
            raise ValueError("The data set is empty: there was no batch to predict.")
        return tf.nest.map_structure(lambda *parts: joined(parts), *outputs_of_steps)

    # -- single batches ---------------------------------------------------------------------------
    def train_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None,
                       return_dict: bool = False, reset_metrics: bool = True) -> Any:
        """Train on one batch.

        Args:
            x, y, sample_weight, class_weight: as for `fit`; the arrays are the batch.
            return_dict: whether the values come by name.
            reset_metrics: whether the metrics begin anew before.
        Returns:
            The loss and the metrics, as for `evaluate`.
        """
        self._require_compiled("train_on_batch")
        return self._on_batch("train", x, y, sample_weight, class_weight, return_dict, reset_metrics)

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False,
                      reset_metrics: bool = True) -> Any:
        """The loss and the metrics of one batch; arguments and result as for `train_on_batch`."""
        self._require_compiled("test_on_batch")
        return self._on_batch("test", x, y, sample_weight, None, return_dict, reset_metrics)

    def _on_batch(self, kind: str, x: Any, y: Any, sample_weight: Any, class_weight: Any, return_dict: bool,
                  reset: bool) -> Any:
        source = data_adapter.source_of(x, y, sample_weight, 1 << 62, False, class_weight)
        batch = _only_batch(source)
        if reset:
            self.reset_metrics()
        logs = _python(self._function(kind).on_batch(batch))
        return logs if return_dict else self._in_order(logs)

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs for one batch, as NumPy arrays in the structure of the outputs.

        Raises:
            ValueError: the batch has no samples.
        """
        batch = _only_batch(data_adapter.source_of(x, batch_size=1 << 62))
        return tf.nest.map_structure(lambda x: joined([x]), self._function("predict").on_batch(batch))


def _only_batch(source: Any) -> Any:
    """The batch of a source that has one."""
    batch = next(source.epoch(), None)
    if batch is None:
        raise ValueError("x has no samples.")
    return batch


def _batch_of(x: Any) -> Any:
    """The number of samples of a batch."""
    flat = [v for v in tf.nest.flatten(x) if v is not None]
    return tf.shape(flat[0])[0] if flat and len(flat[0].shape) else None


def _python(logs: Any) -> dict[str, Any]:
    """Values to report as Python numbers, sorted by name; those of a dict among them take its place."""
    values: dict[str, Any] = {}
    for name, value in sorted((logs or {}).items()):
        values.update(_python(value) if isinstance(value, Mapping) else {name: _number(value)})
    return values


def _number(value: Any) -> Any:
    if isinstance(value, (tf.Tensor, tf.Variable, np.ndarray, np.generic)):
        array = np.asarray(value)
        return array.item() if array.size == 1 else array
    return value


def _verbosity(verbose: Any) -> int:
    return 1 if verbose == "auto" else int(verbose)


def _is_due(epoch: int, frequency: Any) -> bool:
    """Whether there is a validation after an epoch."""
    return (epoch + 1) % frequency == 0 if isinstance(frequency, int) else (epoch + 1) in frequency


def _known_options(kwargs: dict[str, Any]) -> None:
    unknown = set(kwargs) - {"max_queue_size", "workers", "use_multiprocessing"}
    if unknown:
        raise TypeError(f"Arguments not recognized: {sorted(unknown)}")


def _last(step: Callable[[Any], Any], batches: Any) -> Any:
    """The last result of steps on batches that have one."""
    results = [step(batch) for batch in batches]
    return next((result for result in reversed(results) if result), None)
