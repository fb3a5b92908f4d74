"""`tf.compat.v1.data`: iterators of graphs, which an operation starts and `get_next` takes elements from.

Where ops run at once, iterators are those of `tf.data`. In a graph an iterator is a place for one: its initialiser puts
an iterator over a dataset there each time that it runs, and each run that needs what `get_next` gave takes one element.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.api import public, public_class
from twofold._front.namespace import publish
from twofold.data import __all__ as _data
from twofold.data import experimental as experimental
from twofold.data._node import bound, tensors_in
from twofold.data._optional import tensor_specs
from twofold.data._structure import Form
from twofold.data.iterator import as_arrays, packed
from twofold.ir.spec import TensorShape, TensorSpec

from .graph import current_graph
from .keys import GraphKeys

__all__ = [*_data, "Iterator", "get_output_classes", "get_output_shapes", "get_output_types",
           "make_initializable_iterator", "make_one_shot_iterator"]

_numbers = itertools.count()
_places: weakref.WeakValueDictionary[bytes, _Place] = weakref.WeakValueDictionary()


class _Place:
    """Where a graph's iterator is while it runs.

    Attributes:
        iterator: over a dataset; None before an initialiser has run.
        text: what stands for it in string handles.
    """

    def __init__(self, once: Any = None) -> None:
        self.iterator: Any = None
        self.text = f"iterator/{next(_numbers)}".encode()
        self._once = once  # a dataset that needs no initialiser
        _places[self.text] = self

    def take(self) -> list[Any]:
        """The tensors of the next element.

        Raises:
            FailedPreconditionError: no initialiser has run.
            OutOfRangeError: there are no more elements.
        """
        if self.iterator is None and self._once is not None:
            self.iterator, self._once = iter(self._once), None
        if self.iterator is None:
            raise tf.errors.FailedPreconditionError(
                "GetNext() failed because the iterator has not been initialized. Ensure that you have run the "
                "initializer operation for this iterator before getting the next element.")
        item = self.iterator._pull()
        if item is None:
            raise tf.errors.OutOfRangeError(None, None, "End of sequence")
        return engine.tensors_of(as_arrays(item))


@public_class
class Iterator:
    """An iterator of a graph.

    >>> import twofold as tf
    >>> v1 = tf.compat.v1
    >>> with v1.Session() as session:
    ...     iterator = v1.data.make_initializable_iterator(tf.data.Dataset.range(2))
    ...     element = iterator.get_next()
    ...     session.run(iterator.initializer)
    ...     print(session.run(element), session.run(element))
    0 1
    """

    def __init__(self, place: Any, element_spec: Any, initializer: Any = None):
        self._place, self._form, self._initializer = place, Form(element_spec), initializer
        self._handle: Any = None

    @staticmethod
    def from_structure(output_types: Any, output_shapes: Any = None, shared_name: str | None = None,
                       output_classes: Any = None) -> Iterator:
        """An iterator without a dataset, for `make_initializer`.

        Args:
            output_types: the structure of dtypes of an element.
            output_shapes: the same structure of shapes; None where nothing is known but that there is one.
            shared_name, output_classes: accepted, without effect.
        Raises:
            RuntimeError: ops run at once.
            ValueError: a rank is not known.
        """
        _graph("Iterator.from_structure")
        return Iterator(_Place(), _spec_of(output_types, output_shapes))

    @staticmethod
    def from_string_handle(string_handle: Any, output_types: Any, output_shapes: Any = None,
                           output_classes: Any = None) -> Iterator:
        """An iterator that is another one, whichever a string tensor says.

        Args:
            string_handle: what `string_handle()` of an iterator gives when it runs.
            output_types, output_shapes: as for `from_structure`.
            output_classes: accepted, without effect.
        Raises:
            RuntimeError: ops run at once.
            ValueError: a rank is not known.
        """
        _graph("Iterator.from_string_handle")
        made = Iterator(None, _spec_of(output_types, output_shapes))
        made._handle = tf.convert_to_tensor(string_handle)
        return made

    @property
    def initializer(self) -> Any:
        """The operation that starts the iterator.

        Raises:
            ValueError: it needs none, or `make_initializer` makes it.
        """
        if self._initializer is None:
            raise ValueError("The iterator does not have an initializer. This means it was likely created using "
                             "`tf.data.Dataset.make_one_shot_iterator()`, or by `from_structure`: use "
                             "`Iterator.make_initializer(dataset)`.")
        return self._initializer

    def make_initializer(self, dataset: Any, name: str | None = None) -> Any:
        """The operation that starts the iterator with a dataset.

        Args:
            dataset: of elements of the iterator's structure.
            name: accepted, without effect.
        Raises:
            TypeError: the structures or dtypes differ.
            ValueError: the shapes do not fit.
        """
        graph, place = _graph("Iterator.make_initializer"), self._place
        if place is None:
            raise ValueError("make_initializer: an iterator of a string handle is initialised where it was made")
        _check(self._form.spec, dataset.element_spec)
        node, options = dataset._node, dataset.options()
        operands = tensors_in(node)

        def start(*tensors: Any) -> list[Any]:
            whole = tf.data.Dataset(bound(node, iter(tensors)) if operands else node)
            place.iterator = iter(whole.with_options(options))
            return []
        return graph.trace.effect("MakeIterator", lambda: engine.host_effect(start, "MakeIterator", operands))

    def get_next(self, name: str | None = None) -> Any:
        """The next element: tensors of which each run gives another.

        Args:
            name: accepted, without effect.
        """
        graph, place = _graph("Iterator.get_next"), self._place

        def from_handle(handle: Any) -> list[Any]:
            iterator = _places.get(bytes(engine.array_of(handle)[()]))
            if iterator is None:
                raise tf.errors.InvalidArgumentError(None, None, f"{handle!r} is no handle of an iterator")
            return iterator.take()
        specs = tensor_specs(self._form)
        components = engine.host_call(place.take if place is not None else from_handle, "IteratorGetNext",
                                      [] if place is not None else [self._handle], specs)
        return packed(self._form, graph.trace.name_all(components, "IteratorGetNext"))

    def string_handle(self, name: str | None = None) -> Any:
        """A string scalar that stands for the iterator.

        Args:
            name: accepted, without effect.
        """
        return self._handle if self._place is None else tf.constant(self._place.text)

    @property
    def element_spec(self) -> Any:
        """The structure of specs of an element."""
        return self._form.spec

    @property
    def output_types(self) -> Any:
        """The structure of dtypes of an element."""
        return get_output_types(self)

    @property
    def output_shapes(self) -> Any:
        """The structure of shapes of an element."""
        return get_output_shapes(self)

    @property
    def output_classes(self) -> Any:
        """The structure of classes of an element."""
        return get_output_classes(self)


def _graph(what: str) -> Any:
    graph = current_graph()
    if graph is None:
        raise RuntimeError(f"{what} is not supported when eager execution is enabled. Use `for element in dataset`.")
    return graph


def _spec_of(types: Any, shapes: Any) -> Any:
    dtypes = [tf.as_dtype(t) for t in tf.nest.flatten(types)]
    if shapes is None:
        raise ValueError("from_structure: give output_shapes, with None for sizes that are not known")
    flat = _flat_shapes(shapes, types)
    for shape in flat:
        if shape.rank is None:
            raise ValueError("from_structure: the rank of each shape must be known")
    return tf.nest.pack_sequence_as(types, [TensorSpec(s, t) for s, t in zip(flat, dtypes, strict=True)])


def _flat_shapes(shapes: Any, types: Any) -> list[TensorShape]:
    """The shapes of a structure like `types`, whose leaves may be lists of sizes."""
    if isinstance(types, dict):
        return [s for key in sorted(types) for s in _flat_shapes(shapes[key], types[key])]
    if isinstance(types, (list, tuple)):
        return [s for part, kind in zip(shapes, types, strict=True) for s in _flat_shapes(part, kind)]
    return [TensorShape(shapes)]


def _check(have: Any, given: Any) -> None:
    """Raise unless the elements of a dataset fit an iterator."""
    try:
        tf.nest.assert_same_structure(have, given)
    except (TypeError, ValueError) as e:
        raise TypeError(f"make_initializer: the iterator's elements are {have!r}, those of the dataset {given!r}: "
                        f"{e}") from None
    for ours, theirs in zip(tf.nest.flatten(have), tf.nest.flatten(given), strict=True):
        if ours.dtype != theirs.dtype:
            raise TypeError(f"Expected output types {ours.dtype!r}; the dataset gives {theirs.dtype!r}")
        if not ours.shape.is_compatible_with(theirs.shape):
            raise ValueError(f"Expected output shapes compatible with {ours.shape}; the dataset gives {theirs.shape}")


@public
def make_one_shot_iterator(dataset: Any) -> Any:
    """An iterator that needs no initialiser.

    Args:
        dataset: it must not depend on tensors that are fed.
    Raises:
        ValueError: it does.

    >>> import twofold as tf
    >>> iterator = tf.compat.v1.data.make_one_shot_iterator(tf.data.Dataset.range(2))
    >>> iterator.get_next()
    <tf.Tensor: shape=(), dtype=int64, numpy=0>
    """
    if current_graph() is None:
        return iter(dataset)
    if tensors_in(dataset._node):
        raise ValueError("make_one_shot_iterator: the dataset depends on tensors of the graph: use "
                         "make_initializable_iterator, whose initializer takes their values.")
    return Iterator(_Place(dataset), dataset.element_spec)


@public
def make_initializable_iterator(dataset: Any, shared_name: str | None = None) -> Iterator:
    """An iterator that its `initializer` starts, with the values that the dataset's tensors have then.

    Args:
        dataset: it may depend on tensors of the graph.
        shared_name: accepted, without effect.
    Raises:
        RuntimeError: ops run at once.
    """
    graph = _graph("tf.compat.v1.data.make_initializable_iterator")
    made = Iterator(_Place(), dataset.element_spec)
    made._initializer = made.make_initializer(dataset)
    graph.add_to_collection(GraphKeys.TABLE_INITIALIZERS, made._initializer)
    return made


def _mapped(dataset_or_iterator: Any, of: Any) -> Any:
    spec = dataset_or_iterator.element_spec
    return tf.nest.pack_sequence_as(spec, [of(s) for s in tf.nest.flatten(spec)])


@public
def get_output_types(dataset_or_iterator: Any) -> Any:
    """The structure of dtypes of an element.

    >>> import twofold as tf
    >>> tf.compat.v1.data.get_output_types(tf.data.Dataset.from_tensors((1, 2.0)))
    (tf.int32, tf.float32)
    """
    return _mapped(dataset_or_iterator, lambda spec: spec.dtype)


@public
def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """The structure of shapes of an element.

    >>> import twofold as tf
    >>> tf.compat.v1.data.get_output_shapes(tf.data.Dataset.range(6).batch(4))
    TensorShape([None])
    """
    return _mapped(dataset_or_iterator, lambda spec: spec.shape)


@public
def get_output_classes(dataset_or_iterator: Any) -> Any:
    """The structure of classes of an element."""
    return _mapped(dataset_or_iterator, lambda spec: tf.Tensor)


def __getattr__(name: str) -> Any:
    return getattr(tf.data, name)


publish(__name__)
