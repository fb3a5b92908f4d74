"""Iterators over datasets: in Python, and inside of traced functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front import older as _older
from twofold._front.together import locks
from twofold.tracking import Trackable

from ._node import Node, bound, tensors_in
from ._optional import Optional, fillers, tensor_specs
from ._sources import Placeholder
from ._state import decoded, encoded
from ._structure import DatasetSpec, Form, numpy_leaf
from ._value import dataset_from, is_dataset
from .options import Options, run_of

__all__ = ["Iterator", "IteratorSpec", "NumpyIterator", "packed", "staged_iterator"]

_END = "End of sequence"
_STAGED = 1000  # calls of next() in traces that are taken for a loop without an end
STATE = "ITERATOR_STATE"  # the name of the position in a checkpoint


class IteratorSpec:
    """The spec of an iterator: that of its elements.

    Args:
        element_spec: the structure of specs.

    >>> import twofold as tf
    >>> tf.data.IteratorSpec(tf.TensorSpec([], tf.int64))
    IteratorSpec(TensorSpec(shape=(), dtype=tf.int64, name=None))
    """

    def __init__(self, element_spec: Any) -> None:
        self.element_spec = element_spec

    @classmethod
    def from_value(cls, value: Any) -> IteratorSpec:
        """The spec of an iterator."""
        return cls(value.element_spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IteratorSpec) and self.element_spec == other.element_spec

    def __hash__(self) -> int:
        return hash(tuple(engine.nest.flatten(self.element_spec)))

    def __repr__(self) -> str:
        return f"IteratorSpec({self.element_spec!r})"


@engine.guarded
class Iterator(Trackable):
    """The elements of a dataset, one at a time; made by `iter(dataset)`.

    In a `tf.function` it may be an argument, or come from outside: `next` takes an element each time that the function
    runs, and `for` takes all that are left. It is part of a `tf.train.Checkpoint`: restored, it goes on with the
    element at which it was saved, shuffled data included.

    >>> import twofold as tf
    >>> iterator = iter(tf.data.Dataset.range(2))
    >>> next(iterator)
    <tf.Tensor: shape=(), dtype=int64, numpy=0>
    >>> iterator.get_next().numpy().item()
    1
    """

    def __init__(self, dataset: Any = None, element_spec: Any = None, *, token: Any = None) -> None:
        """Args:
            dataset: what to iterate over.
            element_spec: of the elements, for an iterator of a trace.
            token: the handle of an iterator of a trace.
        """
        self._token = token
        if token is not None:
            self._form = Form(element_spec)
            return
        self._form = dataset._node.form
        self._options = dataset.options()
        self._node: Node = dataset._node
        if engine.staging():
            self._token = staged_iterator(self._node, self._options)
            return
        self._lock = locks.RLock()
        self._waiting: Any = None  # an element that a loop has fetched by `advance` and not taken
        self._stream: Any = self._node.start_last(run_of(self._options))

    @staticmethod
    def from_structure(output_types: Any, output_shapes: Any = None, shared_name: str | None = None,
                       output_classes: Any = None) -> Any:
        """An iterator of a graph without a dataset; see `tf.compat.v1.data.Iterator.from_structure`.

        `shared_name` and `output_classes` have no effect.
        """
        return _older.module("data").Iterator.from_structure(output_types, output_shapes)

    # -- elements ---------------------------------------------------------------------------------
    def _pull(self) -> Any:
        """The next item, or None; at the end the streams go."""
        with self._lock:
            item, self._waiting = self._waiting, None
            if item is None and self._stream is not None:
                item = self._stream.next()
                if item is None:
                    self._stream = None
            return item

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        if self._token is not None or engine.staging():
            return self._staged_next()
        item = self._pull()
        if item is None:
            raise StopIteration
        return self._form.element(item)

    def next(self) -> Any:
        """The next element; the same as `next(iterator)`."""
        return next(self)

    def get_next(self, name: str | None = None) -> Any:
        """The next element.

        Args:
            name: accepted, without effect.
        Raises:
            OutOfRangeError: there are no more.
        """
        if self._token is not None or engine.staging():
            return self._staged_next()
        item = self._pull()
        if item is None:
            raise tf.errors.OutOfRangeError(None, None, _END)
        return self._form.element(item)

    def get_next_as_optional(self) -> Optional:
        """The next element, or none, as an `Optional`."""
        if self._token is not None or engine.staging():
            specs = tensor_specs(self._form)
            there, *leaves = engine.host_call(_get_optional, "IteratorGetNextAsOptional", [self._handle()],
                                              [tf.TensorSpec([], tf.bool), *specs])
            return Optional(self.element_spec, leaves, there)
        item = self._pull()
        if item is None:
            return Optional.empty(self.element_spec)
        leaves = [x for x in engine.nest.flatten(self._form.element(item)) if x is not None]
        return Optional(self.element_spec, leaves, tf.constant(True))

    @property
    def element_spec(self) -> Any:
        """The structure of specs of the elements."""
        return self._form.spec

    def __repr__(self) -> str:
        return f"<tf.data.Iterator element_spec={self.element_spec!r}>"

    # -- inside of traced functions ---------------------------------------------------------------
    def _handle(self) -> Any:
        return engine.handle(self) if self._token is None else self._token

    def _staged_next(self) -> Any:
        self._staged = getattr(self, "_staged", 0) + 1
        if self._staged > _STAGED:
            raise RuntimeError(
                f"next() was called {_STAGED} times on one iterator while a tf.function was traced: a Python loop over "
                "a dataset never ends there. Write a for statement, which is staged, in a function that is converted "
                "(autograph=True), or use dataset.reduce.")
        return self._packed(engine.host_call(_get_next, "IteratorGetNext", [self._handle()], tensor_specs(self._form)))

    def _packed(self, leaves: Sequence[Any]) -> Any:
        return packed(self._form, leaves)

    def __staged_sequence__(self) -> Any:
        return engine.StagedElements(self._handle, tensor_specs(self._form), self._packed, self._numbered,
                                     self._joined)

    def _numbered(self, first: Any) -> Any:
        raise TypeError("enumerate(iterator) cannot be staged in a tf.function: use dataset.enumerate().")

    def _joined(self, parts: list[Any]) -> Any:
        raise TypeError("zip(iterator, ...) cannot be staged in a tf.function: use tf.data.Dataset.zip.")

    def __trace_token__(self) -> tuple[Any, Any]:
        return self._form.text, self._handle()

    def __with_trace_token__(self, token: Any) -> Iterator:
        return Iterator(element_spec=self.element_spec, token=token)

    def advance(self) -> bool:
        """For loops in traced functions: whether there is another element, which waits until it is taken."""
        with self._lock:
            if self._waiting is None:
                self._waiting = self._pull()
            return self._waiting is not None

    def current(self) -> list[np.ndarray]:
        """For loops in traced functions: the arrays of the element that waits, which is taken."""
        item = self._pull()
        if item is None:
            raise tf.errors.OutOfRangeError(None, None, _END)
        return as_arrays(item)

    # -- checkpoints ------------------------------------------------------------------------------
    def _saved_values(self) -> dict[str, Any]:
        """The position, for checkpoints."""
        if self._token is not None:
            raise TypeError("an iterator that belongs to a trace cannot be saved: save the one that was made outside.")
        with self._lock:
            return {STATE: encoded({
                "steps": self._steps(), "waiting": self._waiting,
                "stream": None if self._stream is None else self._stream.save(),
                "orders": [orders.save() for orders in self._node.random_steps()]})}

    def _steps(self) -> list[str]:
        """The part of a saved state that must agree with the pipeline: the kinds of steps, and whether they run on
        positions."""
        return [*self._node.steps(), "fused" if run_of(self._options).fuse else "single"]

    def _restore_values(self, values: dict[str, Any]) -> None:
        """Go to a position that `_saved_values` gave, in this process or another.

        Raises:
            ValueError: it is a position in another pipeline. DataLossError: it is damaged.
        """
        if STATE not in values:
            return
        saved = values[STATE]
        state = decoded(saved if isinstance(saved, bytes) else np.ravel(saved)[0])
        if state["steps"] != self._steps():
            raise ValueError(f"the saved position is one in another pipeline. Its steps are {state['steps']}; those of "
                             f"this iterator are {self._steps()}.")
        with self._lock:
            stream = None
            if state["stream"] is not None:
                stream = self._node.start_last(run_of(self._options))
                stream.load(state["stream"])
            self._waiting, self._stream = state["waiting"], stream
            for orders, place in zip(self._node.random_steps(), state["orders"], strict=True):
                orders.load(place)


def _get_next(token: Any) -> list[Any]:
    item = engine.held(token)._pull()
    if item is None:
        raise tf.errors.OutOfRangeError(None, None, _END)
    return engine.tensors_of(as_arrays(item))


def _get_optional(token: Any) -> list[Any]:
    iterator = engine.held(token)
    item = iterator._pull()
    arrays = fillers(tensor_specs(iterator._form)) if item is None else as_arrays(item)
    return engine.tensors_of([np.array(item is not None), *arrays])


_get_next.before_variables = _get_optional.before_variables = True  # type: ignore[attr-defined]


def as_arrays(item: Any) -> list[np.ndarray]:
    """An item for a graph: datasets are handles."""
    return [engine.array_of(engine.handle(x)) if is_dataset(x) else x for x in item]


def packed(form: Form, leaves: Sequence[Any]) -> Any:
    """An element of a trace."""
    return form.pack([dataset_from(Placeholder(leaf, s.element_spec)) if isinstance(s, DatasetSpec) else leaf
                      for leaf, s in zip(leaves, form.flat, strict=True)])


def staged_iterator(node: Node, options: Options) -> Any:
    """A handle of an iterator that is made each time that the traced function comes by here."""
    operands = tensors_in(node)

    def make(*tensors: Any) -> list[Any]:
        dataset = dataset_from(bound(node, iter(tensors)) if operands else node)
        return [engine.handle(Iterator(dataset.with_options(options)))]
    return engine.host_call(make, "MakeIterator", operands, [tf.TensorSpec([], tf.string)])[0]


@engine.guarded
class NumpyIterator:
    """The elements of a dataset with NumPy values; made by `Dataset.as_numpy_iterator`.

    >>> import twofold as tf
    >>> next(tf.data.Dataset.from_tensors([1, 2]).as_numpy_iterator())
    array([1, 2], dtype=int32)
    """

    def __init__(self, dataset: Any) -> None:
        self._iterator = iter(dataset)
        self._pack = self._iterator._form.pack

    def __iter__(self) -> NumpyIterator:
        return self

    def __next__(self) -> Any:
        item = self._iterator._pull()
        if item is None:
            raise StopIteration
        return self._pack([numpy_leaf(a) for a in item])

    def next(self) -> Any:
        """The next element; the same as `next(iterator)`."""
        return next(self)
