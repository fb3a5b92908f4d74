"""Losses and metrics as `compile` keeps them: objects over all outputs of a model.

Outputs are taken flat, in the order of `tf.nest`; dicts are matched to outputs by name. Metrics named "accuracy" or
"crossentropy" become the kind that the shapes of labels and outputs ask for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import twofold as tf

from .metrics.metric import Metric

__all__ = ["CompileMetrics", "CompiledLoss"]


def _names_of(y_pred: Any, names: list[str] | None) -> list[str]:
    """The names of the outputs."""
    if isinstance(y_pred, Mapping):
        return sorted(y_pred)
    count = len(tf.nest.flatten(y_pred))
    if names is not None and len(names) == count:
        return [name if names.count(name) == 1 else f"{name}_{n}" for n, name in enumerate(names)]
    return [f"output_{n + 1}" for n in range(count)]


def _by_output(given: Any, names: list[str], y_pred: Any, what: str, default: Any = None) -> list[Any]:
    """An entry of `compile` for each output.

    Raises:
        ValueError: it has another number of entries than the model has outputs, or names that are none.
    """
    if isinstance(given, Mapping):
        unknown = sorted(set(map(str, given)) - set(names))
        if unknown:
            raise ValueError(f"In the dict argument `{what}`, the key(s) {unknown} do not correspond to any model "
                             f"output. The outputs are {names}.")
        return [given.get(name, default) for name in names]
    if isinstance(given, (list, tuple)):
        if len(given) != len(names):
            raise ValueError(f"For a model with {len(names)} outputs, `{what}` must be a list of {len(names)} entries "
                             f"or a dict by the names {names}. Received: {given!r}")
        return list(given)
    return [given for _ in names]


def _matched(values: Any, names: list[str], y_pred: Any, what: str) -> list[Any]:
    """`values` flat, an entry for each output; None for all where there are none."""
    if values is None:
        return [None] * len(names)
    if isinstance(values, Mapping):
        return [values.get(name) for name in names]
    if len(names) == 1 and not isinstance(y_pred, (list, tuple)):
        return [values]
    if isinstance(values, tf.Tensor):
        return [values] * len(names)
    listed = list(values)
    if len(listed) == 1 and len(names) == 1:
        return listed
    if len(listed) != len(names):
        raise ValueError(f"The model has {len(names)} outputs, but there are {len(listed)} entries in `{what}`.")
    return listed


class CompiledLoss:
    """The loss of all outputs: the weighted sum of theirs.

    Args:
        loss: a loss for all outputs, or one for each in a list or dict; None for outputs without.
        loss_weights: factors, in the same forms.
        output_names: names of the outputs of a functional model.
    """

    def __init__(self, loss: Any, loss_weights: Any = None, output_names: list[str] | None = None):
        self.given, self.loss_weights, self._output_names = loss, loss_weights, output_names
        self._built: list[tuple[Any, Any]] | None = None
        self._names: list[str] = []
        self._trackers: list[Any] = []

    @property
    def metrics(self) -> list[Any]:
        """The mean losses of the outputs, where there are several."""
        return self._trackers

    def _build(self, y_pred: Any) -> list[tuple[Any, Any]]:
        from . import losses, metrics
        names = _names_of(y_pred, self._output_names)
        chosen = [losses.get(x) for x in _by_output(self.given, names, y_pred, "loss")]
        weights = _by_output(self.loss_weights, names, y_pred, "loss_weights", 1.0)
        if sum(fn is not None for fn in chosen) > 1:
            with tf.init_scope():
                self._trackers = [None if fn is None else metrics.Mean(name=f"{name}_loss")
                                  for name, fn in zip(names, chosen, strict=True)]
        self._names = names
        chosen = [_as_loss(fn) for fn in chosen]
        self._built = list(zip(chosen, weights, strict=True))
        return self._built

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None, regularization_losses: Any = None) -> Any:
        """The loss of a batch, a scalar.

        Args:
            y_true, y_pred: labels and outputs, in the structure of the outputs.
            sample_weight: weights, in that structure or one for all outputs.
            regularization_losses: further scalars to add.
        """
        built = self._build(y_pred) if self._built is None else self._built
        predicted = tf.nest.flatten(y_pred)
        labels = _matched(y_true, self._names, y_pred, "y")
        weights = _matched(sample_weight, self._names, y_pred, "sample_weight")
        total: Any = None
        for n, ((fn, factor), label, value, weight) in enumerate(
                zip(built, labels, predicted, weights, strict=True)):
            if fn is None or label is None:
                continue
            loss = fn(label, value, sample_weight=weight)
            if self._trackers and self._trackers[n] is not None:
                self._trackers[n].update_state(loss, sample_weight=tf.shape(value)[0] if len(value.shape) else None)
            if factor is not None and not (isinstance(factor, (int, float)) and factor == 1):
                loss = loss * tf.cast(factor, loss.dtype)
            total = loss if total is None else total + tf.cast(loss, total.dtype)
        for extra in regularization_losses or ():
            total = extra if total is None else total + tf.cast(extra, total.dtype)
        return total


def _as_loss(fn: Any) -> Any:
    """A loss object of a function or object."""
    from . import losses
    if fn is None or isinstance(fn, losses.Loss):
        return fn
    return losses.Loss.from_function(fn) if hasattr(losses.Loss, "from_function") else _wrapped(fn)


def _wrapped(fn: Any) -> Any:
    from .losses.loss import LossFunctionWrapper
    return LossFunctionWrapper(fn, name=getattr(fn, "__name__", None))


class CompileMetrics(Metric):
    """The metrics of all outputs, as one metric whose result is a dict by name.

    Args:
        metrics, weighted_metrics: metrics, functions or names: a list for one output; for several a list of lists or
            a dict by name.
        output_names: names of the outputs of a functional model.
    """

    def __init__(self, metrics: Any, weighted_metrics: Any = None, output_names: list[str] | None = None):
        super().__init__(name="compile_metrics")
        self.given, self.given_weighted, self._output_names = metrics, weighted_metrics, output_names
        self._built: list[tuple[list[Any], list[Any]]] | None = None
        self._names: list[str] = []

    @property
    def metrics(self) -> list[Any]:
        """The metrics, once a batch has shown the shapes."""
        if self._built is None:
            flat = [*tf.nest.flatten(self.given or []), *tf.nest.flatten(self.given_weighted or [])]
            return [m for m in flat if hasattr(m, "update_state")]
        return [m for plain, weighted in self._built for m in (*plain, *weighted)]

    @property
    def variables(self) -> list[tf.Variable]:
        """The variables of the metrics."""
        return [v for metric in self.metrics for v in metric.variables]

    @property
    def built(self) -> bool:
        """Whether the metrics are made, which takes the shapes of a batch."""
        return self._built is not None or not (self.given or self.given_weighted)

    def build(self, y_true: Any, y_pred: Any) -> list[tuple[list[Any], list[Any]]]:
        """Make the metrics.

        Args:
            y_true, y_pred: labels and outputs, or specs of them.
        Returns:
            For each output its metrics, plain and weighted.
        """
        names = _names_of(y_pred, self._output_names)
        self._names = names
        labels, predicted = _matched(y_true, names, y_pred, "y"), tf.nest.flatten(y_pred)
        kinds = []
        for given in (self.given, self.given_weighted):
            each = _metrics_by_output(given, names)
            kinds.append([[_metric(m, label, value) for m in group if m is not None]
                          for group, label, value in zip(each, labels, predicted, strict=True)])
        self._built = list(zip(*kinds, strict=True))
        return self._built

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Let the metrics see a batch.

        Args:
            y_true, y_pred: labels and outputs.
            sample_weight: weights, for weighted metrics.
        """
        if self._built is None:
            with_labels = self.build(y_true, y_pred)
        else:
            with_labels = self._built
        labels = _matched(y_true, self._names, y_pred, "y")
        weights = _matched(sample_weight, self._names, y_pred, "sample_weight")
        for (plain, weighted), label, value, weight in zip(
                with_labels, labels, tf.nest.flatten(y_pred), weights, strict=True):
            if label is None:
                continue
            for metric in plain:
                metric.update_state(label, value)
            for metric in weighted:
                metric.update_state(label, value, sample_weight=weight)

    def result(self) -> dict[str, Any]:
        """The values by name: the output's, where there are several, and the metric's; repeated ones are numbered.

        A weighted metric that has the name of another gets the word before its own.
        """
        results: dict[str, Any] = {}
        counts: dict[str, int] = {}
        outputs = [f"{name}_" if len(self._names) > 1 else "" for name in self._names]
        built = list(zip(outputs, self._built or [], strict=True))

        def add(name: str, metric: Any) -> None:
            count = counts.get(name, 0)
            counts[name] = count + 1
            results[f"{name}_{count}" if count else name] = metric.result()

        for output, (plain, _) in built:
            for metric in plain:
                add(f"{output}{metric.name}", metric)
        for output, (_, weighted) in built:
            for metric in weighted:
                name = f"{output}{metric.name}"
                add(f"{output}weighted_{metric.name}" if name in counts else name, metric)
        return results

    def reset_state(self) -> None:
        """Begin anew."""
        for metric in self.metrics:
            metric.reset_state()


def _metrics_by_output(given: Any, names: list[str]) -> Iterator[list[Any]]:
    """A list of metrics for each output.

    Raises:
        ValueError: there is another number of lists than outputs, or names that are none.
    """
    if given is None:
        given = []
    if len(names) == 1 and not isinstance(given, Mapping):
        by_output = [given if isinstance(given, (list, tuple)) else [given]]
        if by_output[0] and all(isinstance(x, (list, tuple)) for x in by_output[0]) and len(by_output[0]) == 1:
            by_output = [by_output[0][0]]
    elif isinstance(given, (list, tuple)) and not given:
        by_output = [[] for _ in names]
    elif isinstance(given, (list, tuple)) and len(given) != len(names) and not any(
            isinstance(x, (list, tuple)) for x in given):
        raise ValueError(f"For a model with {len(names)} outputs, `metrics` must be a list of {len(names)} lists or a "
                         f"dict by the names {names}. Received: {given!r}")
    else:
        by_output = _by_output(given, names, None, "metrics", ())
    return iter([list(x) if isinstance(x, (list, tuple)) else [] if x is None else [x] for x in by_output])


def _metric(given: Any, label: Any, value: Any) -> Any:
    """A metric object."""
    from . import metrics
    with tf.init_scope():
        if isinstance(given, str) and given.lower() in ("accuracy", "acc", "crossentropy", "ce"):
            made = _by_shapes(given, label, value)
        elif hasattr(given, "update_state"):
            made = given
        else:
            metric = metrics.get(given)
            if not hasattr(metric, "update_state"):
                metric = metrics.MeanMetricWrapper(metric, name=_name_of(metric))
            if isinstance(given, str):
                metric.name = given
            made = metric
    return made


def _name_of(fn: Any) -> str:
    return getattr(fn, "__name__", "metric").strip("<>")  # of a lambda, without the brackets


def _by_shapes(given: str, label: Any, value: Any) -> Any:
    """The accuracy or crossentropy for labels and outputs of certain shapes."""
    from . import metrics
    accurate = given.lower() in ("accuracy", "acc")
    classes = value.shape[-1] if len(value.shape) else 1
    sparse = len(label.shape) < len(value.shape) or (label.shape[-1] == 1 and classes != 1)
    kind: Any
    if classes == 1:
        kind = metrics.BinaryAccuracy if accurate else metrics.BinaryCrossentropy
    elif sparse:
        kind = metrics.SparseCategoricalAccuracy if accurate else metrics.SparseCategoricalCrossentropy
    else:
        kind = metrics.CategoricalAccuracy if accurate else metrics.CategoricalCrossentropy
    return kind(name=given)
