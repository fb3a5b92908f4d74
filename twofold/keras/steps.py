"""Steps of models as compiled functions: of one batch, and of several in one program.

The tensors of a batch are handed over flat, whatever structure it has, so that native code takes the call and no
Python runs between two steps. Several batches of one form are stacked, and one loop inside of a compiled program takes
step after step. What a step does is the model's; where batches come from is `data_adapter.py`'s.
"""

from __future__ import annotations

import itertools
import sys
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.api import staged
from twofold._front.together import Recent

from .composites import is_composite, joined, spec_of_rows

__all__ = ["StepFunction", "StepFunctions", "several_steps", "summary_writer"]

_CONTAINERS = (tuple, list, dict)
_KEPT = 16


class StepFunction:
    """A step of a model, compiled unless it is to run eagerly.

    Called with an iterator of batches it takes as many of them as make an execution.

    Args:
        step: a function of a batch.
        name: what error messages call it.
        count: how many batches make an execution.
        eagerly: whether it runs op by op.
        joined: whether the results of several batches are joined along the first axis; if not, the last counts.
    """

    def __init__(self, step: Callable[[Any], Any], name: str, count: int = 1, eagerly: bool = False,
                 joined: bool = False) -> None:
        self._step, self._name, self.count, self._eagerly, self._joined = step, name, count, eagerly, joined
        self._flat = self._function_of(lambda *batch: staged(step)(batch))
        self._whole = self._function_of(lambda data: staged(step)(data))
        self._by_form: dict[Hashable, Any] = {}
        self._loops: dict[Hashable, Any] = {}  # None where the step cannot be traced

    def _function_of(self, fn: Callable[..., Any]) -> Any:
        fn.__name__ = self._name
        return tf.function(fn)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(None), ())  # copies of a model make steps of their own

    @property
    def compiled(self) -> Any:
        """The `tf.function` of the tensors of a batch that is a tuple of them."""
        return self._flat

    def graphs(self) -> list[Any]:
        """The graphs of the step for one batch, for each kind of batch that there was."""
        functions = [self._flat, *self._by_form.values(), self._whole]
        return [concrete.graph for fn in functions for concrete in fn._list_all_concrete_functions()]

    def __call__(self, iterator: Iterator[Any]) -> Any:
        """The result for the next batches of an iterator.

        Raises:
            StopIteration: there are no more.
        """
        batches = list(itertools.islice(iterator, self.count))
        if not batches:
            raise StopIteration
        return self.on_batches(batches)

    def on_batch(self, data: Any) -> Any:
        """The result for one batch."""
        if self._eagerly:
            return self._step(data)
        if type(data) is tuple:
            for leaf in data:
                if type(leaf) is not tf.Tensor:
                    break
            else:
                return self._flat(*data)
        leaves: list[Any] = []
        try:
            form = _form(data, leaves)
        except _Opaque:
            return self._whole(data)
        return self._of_form(form, data)(*leaves)

    def _of_form(self, form: Hashable, data: Any) -> Any:
        """The compiled function of the tensors of batches that have a form."""
        function = self._by_form.get(form)
        if function is None:
            step, empty = self._step, _emptied(data)
            function = self._by_form[form] = self._function_of(
                lambda *leaves: staged(step)(_filled(empty, iter(leaves))))
        return function

    # -- several batches --------------------------------------------------------------------------
    def on_batches(self, batches: Sequence[Any]) -> Any:
        """The result for several batches, one after the other."""
        if len(batches) == 1 or self._eagerly:
            return self._one_by_one(batches)
        try:
            groups = list(_alike(batches))
        except _Opaque:
            return self._one_by_one(batches)
        return self._result([self._run(*alike) for alike in groups])

    def _one_by_one(self, batches: Sequence[Any]) -> Any:
        return self._result([self.on_batch(batch) for batch in batches])

    def _result(self, results: list[Any]) -> Any:
        """The result of several executions."""
        return _joined(results) if self._joined and len(results) > 1 else results[-1]

    def _run(self, form: Hashable, leaves: list[list[Any]], batches: list[Any]) -> Any:
        """The result for batches of one form, whose tensors have the same shapes."""
        if len(batches) == 1:
            return self.on_batch(batches[0])
        key = form, tuple([(leaf.dtype, tuple(leaf.shape)) for leaf in leaves[0]])
        if key not in self._loops:
            self._loops[key] = self._loop(self._of_form(form, batches[0]), leaves[0])
        loop = self._loops[key]
        if loop is None:
            return self._one_by_one(batches)
        return loop(*[_stacked(column) for column in zip(*leaves, strict=True)])

    def _loop(self, single: Any, leaves: list[Any]) -> Any:
        """The compiled function of stacked tensors, which runs the step for each row; None where it cannot be."""
        if not leaves or isinstance(single.traced_for(tuple(leaves), {})[0], str):
            return None
        one = single.get_concrete_function(*leaves)
        if any(type(spec) not in (tf.TensorSpec, type(None)) for spec in tf.nest.flatten(one.structured_outputs)):
            return None
        loop = _mapping(one) if self._joined else _repeating(one)
        loop.__name__ = f"{self._name}s"
        return tf.function(loop, autograph=False).get_concrete_function(
            *[tf.TensorSpec([None, *leaf.shape], leaf.dtype) for leaf in leaves])


def _repeating(one: Any) -> Callable[..., Any]:
    """A function of stacked tensors that runs `one` on each row; its result is that for the last."""
    def several(*stacked: Any) -> Any:
        count = tf.shape(stacked[0])[0]
        start = tf.nest.map_structure(lambda s: None if s is None else tf.zeros(s.shape, s.dtype),
                                      one.structured_outputs)
        _, last = tf.while_loop(lambda n, _: n < count, lambda n, _: (n + 1, one(*[s[n] for s in stacked])),
                                (tf.constant(0), start))
        return last
    return several


def _mapping(one: Any) -> Callable[..., Any]:
    """A function of stacked tensors that runs `one` on each row; its results are joined along the first axis."""
    def several(*stacked: Any) -> Any:
        signature = tf.nest.map_structure(lambda s: tf.TensorSpec(s.shape, s.dtype), one.structured_outputs)
        stacked_outputs = tf.map_fn(lambda rows: one(*rows), stacked, fn_output_signature=signature)
        return tf.nest.map_structure(lambda t: tf.reshape(t, [-1, *t.shape[2:]]), stacked_outputs)
    return several


def _stacked(column: Sequence[Any]) -> Any:
    return engine.tensor_of(np.stack(engine.arrays_of(column)))


def _joined(results: list[Any]) -> Any:
    return tf.nest.map_structure(lambda *parts: joined(parts) if is_composite(parts[0]) else engine.tensor_of(
        np.concatenate(engine.arrays_of(parts))), *results)


def _alike(batches: Sequence[Any]) -> Iterator[tuple[Hashable, list[list[Any]], list[Any]]]:
    """Neighbours of one form and the same shapes: the form, the tensors of each, and the batches."""
    flat: list[Any] = []
    for batch in batches:
        leaves: list[Any] = []
        form = _form(batch, leaves)
        flat.append(((form, [(leaf.shape, leaf.dtype) for leaf in leaves]), leaves, batch))
    for (form, _), group in itertools.groupby(flat, lambda entry: entry[0]):
        members = list(group)
        yield form, [leaves for _, leaves, _ in members], [batch for _, _, batch in members]


# -- the form of a batch --------------------------------------------------------------------------
class _Opaque(Exception):
    """A batch is no structure of tensors that can be taken apart here."""


def _form(data: Any, leaves: list[Any]) -> Hashable:
    """The key that batches of one structure share; appends the tensors of this batch.

    Raises:
        _Opaque: there are other containers than tuples, lists and dicts.
    """
    kind = type(data)
    if kind is tf.Tensor:
        leaves.append(data)
        return None
    if kind is tuple or kind is list:
        return kind, tuple([_form(child, leaves) for child in data])
    if kind is dict:
        return kind, tuple(data), tuple([_form(child, leaves) for child in data.values()])
    if kind is tf.RaggedTensor or kind is tf.SparseTensor:
        spec = spec_of_rows(data)
        leaves += tf.nest.flatten(data, expand_composites=True)
        return kind, spec
    if data is not None:
        raise _Opaque
    return ()


def _emptied(data: Any) -> Any:
    """The structure of a batch without its tensors."""
    kind = type(data)
    if kind is tf.Tensor:
        return _LEAF
    if kind is tf.RaggedTensor or kind is tf.SparseTensor:
        return spec_of_rows(data)
    if kind is dict:
        return {key: _emptied(child) for key, child in data.items()}
    return kind([_emptied(child) for child in data]) if kind in _CONTAINERS else data


def _filled(empty: Any, leaves: Iterator[Any]) -> Any:
    """A structure with tensors in their places."""
    if empty is _LEAF:
        return next(leaves)
    kind = type(empty)
    if kind is tf.RaggedTensorSpec or kind is tf.SparseTensorSpec:
        specs = tf.nest.flatten(empty, expand_composites=True)
        return tf.nest.pack_sequence_as(empty, [next(leaves) for _ in specs], expand_composites=True)
    if kind is dict:
        return {key: _filled(child, leaves) for key, child in empty.items()}
    return kind([_filled(child, leaves) for child in empty]) if kind in _CONTAINERS else empty


_LEAF = object()


class StepFunctions:
    """The compiled steps of a model by what they depend on: those used last.

    Copies of a model have none: they compile their own.
    """

    def __init__(self) -> None:
        self._functions: Recent[Hashable, StepFunction] = Recent(_KEPT)

    def get(self, key: Hashable, make: Callable[[], StepFunction]) -> StepFunction:
        """The step of a key; it is made where there is none."""
        step = self._functions.pop(key, None)
        return self._functions.remember(key, make() if step is None else step)

    def __reduce__(self) -> tuple[Any, ...]:
        return (StepFunctions, ())


def several_steps(batches: Iterator[Any], count: int) -> Iterator[list[Any]]:
    """Batches in groups of `count`; the last group may be smaller."""
    while group := list(itertools.islice(batches, count)):
        yield group


def summary_writer() -> Hashable:
    """The writer of summaries in this context, or None, as a part of a step's key: compiled steps keep their writer."""
    module = sys.modules.get("twofold.summary.writer")  # where it is not loaded, nobody has made a writer
    writer = None if module is None else module.default.get()
    return None if writer is None else weakref.ref(writer)
