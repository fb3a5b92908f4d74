"""`tf.data.Dataset`: iteration, what its elements are and how many, options, reduction. The steps are methods of the
classes that it derives from (`_methods_*.py`); what runs is nodes and streams.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine

from ._functions import _as_handle
from ._mapping import settled_state
from ._methods_batch import BatchMethods
from ._methods_combine import CombineMethods
from ._methods_graphs import GraphMethods
from ._methods_map import MapMethods
from ._methods_order import OrderMethods
from ._methods_source import SourceMethods
from ._node import INFINITE, UNKNOWN, Node, tensors_in
from ._optional import tensor_specs
from ._sources import Placeholder, Tensors
from ._structure import DatasetSpec, Form
from ._value import DatasetValue, provide
from .iterator import Iterator, NumpyIterator, packed, staged_iterator
from .options import Options, run_of

__all__ = ["Dataset"]


_DEFAULTS = Options()  # of datasets that were given none; never changed


@engine.guarded
class Dataset(SourceMethods, OrderMethods, MapMethods, BatchMethods, CombineMethods, GraphMethods,
              DatasetValue):
    """A sequence of elements, each a tensor or a structure of tensors; it may be endless.

    A dataset starts from a source, such as `from_tensor_slices`, and each step makes a new one of it. Nothing runs
    before it is iterated over; each `for` starts anew. Functions of elements are traced once, when they are given, and
    compiled.

    >>> import twofold as tf
    >>> dataset = tf.data.Dataset.from_tensor_slices([1, 2, 3, 4]).map(tf.square).batch(2)
    >>> for x in dataset:
    ...     print(x)
    tf.Tensor([1 4], shape=(2,), dtype=int32)
    tf.Tensor([ 9 16], shape=(2,), dtype=int32)
    """

    _node: Node
    _given: Options

    def __init__(self, variant: Node, options: Options | None = None) -> None:
        if not isinstance(variant, Node):
            raise TypeError("datasets are made by tf.data.Dataset.from_tensor_slices and other sources, not by "
                            f"tf.data.Dataset(...); got {type(variant).__name__}.")
        self._node = variant
        self._given = _DEFAULTS if options is None else options

    def _then(self, node: Node, *others: Any) -> Dataset:
        """The dataset of a node over this one's and others'."""
        options = self._given
        for other in others:
            options = options.merge(other._given)
        return Dataset(node, options)

    # -- what it is -------------------------------------------------------------------------------
    @property
    def element_spec(self) -> Any:
        """The structure of an element, with a `tf.TensorSpec` for each tensor.

        >>> import twofold as tf
        >>> tf.data.Dataset.from_tensor_slices(([1, 2], [[3.0], [4.0]])).element_spec[1]
        TensorSpec(shape=(1,), dtype=tf.float32, name=None)
        """
        return self._node.form.spec

    @property
    def _batch_size(self) -> Any:
        """The size of the batches that this dataset makes itself, a tensor; other datasets have no such attribute."""
        size = getattr(self._node, "size", None) if self._node.name == "Batch" else None
        if size is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute '_batch_size': it makes no batches.")
        return tf.constant(size, tf.int64)

    def cardinality(self) -> Any:
        """How many elements there are, as far as can be told without iterating.

        Returns:
            int64 scalar; `tf.data.INFINITE_CARDINALITY` or `tf.data.UNKNOWN_CARDINALITY` where that is so.

        >>> import twofold as tf
        >>> tf.data.Dataset.range(10).batch(4).cardinality().numpy().item()
        3
        >>> tf.data.Dataset.range(10).repeat().cardinality() == tf.data.INFINITE_CARDINALITY
        <tf.Tensor: shape=(), dtype=bool, numpy=True>
        """
        return tf.constant(self._node.cardinality(), tf.int64)

    def __len__(self) -> int:
        count = self._node.cardinality()
        if count == INFINITE:
            raise TypeError("The dataset is infinite.")
        if count == UNKNOWN:
            raise TypeError("The dataset length is unknown.")
        return count

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<_{self._node.name}Dataset element_spec={self.element_spec!r}>"

    __str__ = __repr__

    def options(self) -> Options:
        """The options of this dataset and of what it is made of."""
        if self._given is _DEFAULTS:
            self._given = Options()  # which the caller may change
        return self._given

    def with_options(self, options: Options, name: str | None = None) -> Dataset:
        """The same elements, with options.

        Args:
            options: a `tf.data.Options`; what it sets wins over what was set before.
            name: accepted, without effect.

        >>> import twofold as tf
        >>> options = tf.data.Options()
        >>> options.deterministic = False
        >>> tf.data.Dataset.range(3).with_options(options).options().deterministic
        False
        """
        if not isinstance(options, Options):
            raise TypeError(f"with_options takes a tf.data.Options; got {type(options).__name__}.")
        return Dataset(self._node, self._given.merge(options))

    # -- iteration --------------------------------------------------------------------------------
    def __iter__(self) -> Iterator:
        return Iterator(self)

    def as_numpy_iterator(self) -> NumpyIterator:
        """An iterator whose elements hold NumPy arrays and scalars in the places of tensors.

        Raises:
            TypeError: elements hold datasets.

        >>> import twofold as tf
        >>> [x.item() for x in tf.data.Dataset.range(3).as_numpy_iterator()]
        [0, 1, 2]
        """
        for spec in self._node.form.flat:
            if isinstance(spec, DatasetSpec):
                raise TypeError(f"`tf.data.Dataset.as_numpy_iterator()` is not supported for datasets that produce "
                                f"values of type {spec!r}.")
        return NumpyIterator(self)

    def get_single_element(self, name: str | None = None) -> Any:
        """The element of a dataset that has exactly one.

        Args:
            name: accepted, without effect.
        Raises:
            InvalidArgumentError: there is none, or more than one.

        >>> import twofold as tf
        >>> tf.data.Dataset.range(4).batch(4).get_single_element().numpy().tolist()
        [0, 1, 2, 3]
        """
        form = self._node.form
        if not engine.staging():
            return form.element(_single(self))
        token = staged_iterator(self._node, self._given)
        return packed(form, engine.host_call(_single_of, "DatasetToSingleElement", [token], tensor_specs(form)))

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any], name: str | None = None) -> Any:
        """The state after the last element, where a function makes the next state of a state and an element.

        Args:
            initial_state: a structure of tensors.
            reduce_func: of a state and an element, neither unpacked; gives a state of the same structure and dtypes.
            name: accepted, without effect.
        Returns:
            The last state; the initial one where there are no elements.
        Raises:
            TypeError: the function changes the structure or the dtypes.

        >>> import twofold as tf
        >>> tf.data.Dataset.range(5).reduce(tf.constant(0, tf.int64), lambda s, x: s + x).numpy().item()
        10
        """
        first = Tensors(initial_state)
        form, fn = settled_state(reduce_func, first.form, self._node.form, "reduce", lambda spec: spec)
        if engine.staging():
            return self._staged_reduce(first, form, reduce_func)
        state = first.start(run_of(self._given)).next()
        iterator = iter(self)
        while (item := iterator._pull()) is not None:
            state = fn((*state, *item))
        return form.element(state)

    def _staged_reduce(self, first: Tensors, form: Form, fn: Callable[[Any, Any], Any]) -> Any:
        fn = engine.user_function(fn)
        start = first.form.pack([tf.convert_to_tensor(x) for x in first.leaves])
        return engine.fold(self.__staged_sequence__(), start, lambda state, element: Form(form.spec).pack(
            [tf.convert_to_tensor(x) for x in engine.nest.flatten(fn(state, element))]))

    # -- inside of traced functions ---------------------------------------------------------------
    def _ranked(self) -> Form:
        """The form of elements, with the ranks of the first one where nothing said them: traces need ranks."""
        form = self._node.form
        if any(isinstance(s, tf.TensorSpec) and s.dims is None for s in form.flat) and not isinstance(
                self._node, Placeholder) and not tensors_in(self._node):
            known = self.__dict__.get("_ranked_form")
            return self.__dict__.setdefault("_ranked_form", self._peeked(form)) if known is None else known
        return form

    def _peeked(self, form: Form) -> Form:
        with tf.init_scope():
            first = Iterator(self)._pull()
        if first is None:
            return form
        return Form(form.pack([tf.TensorSpec([None] * np.ndim(engine.on_host(x)), s.dtype, s.name)
                               if isinstance(s, tf.TensorSpec) and s.dims is None else s
                               for s, x in zip(form.flat, first, strict=True)]))

    def __staged_sequence__(self) -> Any:
        form = self._ranked()
        return _Elements(self, lambda: staged_iterator(self._node, self._given), tensor_specs(form),
                         lambda leaves: packed(form, leaves),
                         lambda first: self.enumerate(first).__staged_sequence__(), _joined)

    def __trace_token__(self) -> tuple[Any, Any]:
        node = self._node
        symbolic = isinstance(node, Placeholder) or (engine.staging() and tensors_in(node))
        return repr(self._ranked().spec), _as_handle(self) if symbolic else engine.handle(self)

    def __with_trace_token__(self, token: Any) -> Dataset:
        return Dataset(Placeholder(token, self._ranked().spec), self._given)


class _Elements(engine.StagedElements):
    """The elements of a dataset, for a staged loop."""

    def __init__(self, dataset: Dataset, *args: Any) -> None:
        super().__init__(*args)
        self.dataset = dataset


def _joined(parts: list[Any]) -> Any:
    if not all(isinstance(p, _Elements) for p in parts):
        raise TypeError("zip() of datasets and other things cannot be staged in a tf.function: make datasets of all, "
                        "with tf.data.Dataset.from_tensor_slices or tf.data.Dataset.range.")
    return Dataset.zip(tuple([p.dataset for p in parts])).__staged_sequence__()


def _single(dataset: Any) -> Any:
    return _single_item(iter(dataset))


def _single_item(iterator: Iterator) -> Any:
    item = iterator._pull()
    if item is None:
        raise tf.errors.InvalidArgumentError(None, None, "Dataset was empty.")
    if iterator._pull() is not None:
        raise tf.errors.InvalidArgumentError(None, None, "Dataset had more than one element.")
    return item


def _single_of(token: Any) -> list[Any]:
    from .iterator import as_arrays
    return engine.tensors_of(as_arrays(_single_item(engine.held(token))))


provide("Dataset", Dataset)
