"""The classes of queues: what their elements are, and the calls of Python that put and take them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.api import listed, one_int, tensor
from twofold.data._stream import Draws
from twofold.ir.errors import InvalidArgumentError
from twofold.ir.spec import TensorSpec

from ._elements import Elements, InOrder, Prioritised, Shuffled

__all__ = ["FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "QueueBase", "RandomShuffleQueue"]


class QueueBase:
    """What queues share.

    Args:
        dtypes: of the components of an element.
        shapes: of these; None where they may be any.
        names: of these, for elements that are dicts.
        queue_ref: the handle of what a queue holds.
    Raises:
        ValueError: there is not one shape and one name for each dtype.
    """

    def __init__(self, dtypes: Any, shapes: Any, names: Any, queue_ref: Any) -> None:
        self._dtypes = [tf.as_dtype(d) for d in (dtypes if isinstance(dtypes, (list, tuple)) else [dtypes])]
        self._shapes = self._read_shapes(shapes)
        given = [names] if isinstance(names, str) else names
        self._names = None if given is None else listed(given, "names")
        if self._names is not None and len(self._names) != len(self._dtypes):
            raise ValueError(f"expected a name for each of {len(self._dtypes)} components; got {names!r}")
        self._queue_ref, self._given_name = queue_ref, ""

    def _read_shapes(self, shapes: Any) -> list[Any]:
        if shapes is None:
            return [tf.TensorShape(None)] * len(self._dtypes)
        several = isinstance(shapes, (list, tuple)) and all(
            isinstance(s, (list, tuple, tf.TensorShape)) or s is None for s in shapes)
        read = [tf.TensorShape(s) for s in (shapes if several and shapes or len(self._dtypes) > 1 else [shapes])]
        if len(read) != len(self._dtypes):
            raise ValueError(f"expected a shape for each of {len(self._dtypes)} components; got {shapes!r}")
        return read

    @staticmethod
    def from_list(index: Any, queues: Sequence[QueueBase]) -> QueueBase:
        """One of several queues of the same components.

        Args:
            index: which; in functions it may be a tensor that only running tells.
            queues: those.
        Raises:
            TypeError: they are no queues. ValueError: their dtypes or names differ.

        >>> import twofold as tf
        >>> queues = [tf.queue.FIFOQueue(5, tf.int32, shapes=[]) for _ in range(2)]
        >>> tf.queue.QueueBase.from_list(1, queues).enqueue(7)
        >>> int(queues[1].dequeue())
        7
        """
        if not queues or not all(isinstance(q, QueueBase) for q in queues):
            raise TypeError("A list of queues expected")
        first = queues[0]
        for other in queues:
            if other.dtypes != first.dtypes or other.names != first.names:
                raise ValueError("Queues do not have matching component dtypes and names.")
        shapes = [_common([q.shapes[n] for q in queues]) for n in range(len(first.dtypes))]
        return QueueBase(first.dtypes, shapes, first.names,
                         tf.gather(tf.stack([q.queue_ref for q in queues]), tensor(index)))

    @property
    def queue_ref(self) -> Any:
        """The handle of what the queue holds."""
        return self._queue_ref

    @property
    def name(self) -> str:
        """The name that the queue was given."""
        return self._given_name

    @property
    def dtypes(self) -> list[Any]:
        """The dtypes of components."""
        return self._dtypes

    @property
    def shapes(self) -> list[Any]:
        """The shapes of components."""
        return self._shapes

    @property
    def names(self) -> list[str] | None:
        """The names of components; None where elements are no dicts."""
        return self._names

    # -- calls ----------------------------------------------------------------------------------------
    def _call(self, fn: Callable[..., list[np.ndarray]], what: str, operands: Sequence[Any],
              results: Sequence[TensorSpec]) -> list[Any]:
        """The results of `fn` for what the queue holds and arrays."""
        def call(handle: Any, *tensors: Any) -> list[Any]:
            arrays = fn(_behind(handle), *map(engine.array_of, tensors))
            return [engine.tensor_of(array) for array in arrays]
        return engine.host_call(call, what, [self._queue_ref, *operands], results)

    def _components(self, values: Any, many: bool) -> list[Any]:
        """Tensors for the components."""
        if (self._names is not None) != isinstance(values, dict):
            raise ValueError("You must enqueue a dictionary in a Queue with names" if self._names is not None else
                             "You cannot enqueue a dictionary in a Queue without names")
        if self._names is not None:
            if sorted(values) != sorted(self._names):
                raise ValueError(f"Keys in dictionary to enqueue do not match names of Queue. Dictionary: "
                                 f"{sorted(values)}, Queue: {sorted(self._names)}")
            values = [values[name] for name in self._names]
        elif not isinstance(values, (list, tuple)):
            values = [values]
        if len(values) != len(self._dtypes):
            raise InvalidArgumentError(None, "QueueEnqueue", f"expected {len(self._dtypes)} components; got "
                                                             f"{len(values)}")
        components = [tensor(value, dtype) for value, dtype in zip(values, self._dtypes, strict=True)]
        for component, shape in zip(components, self._shapes, strict=True):
            own = component.shape
            if many and own.rank == 0:
                raise ValueError("Shape () must have rank at least 1")
            if not (own[1:] if many and own.rank is not None else own).is_compatible_with(shape):
                raise ValueError(f"Shapes {own} and {shape} are incompatible")
        return components

    def enqueue(self, vals: Any, name: str | None = None) -> None:
        """Put an element; waits while the queue is full.

        Args:
            vals: a tensor, a list with one for each component, or a dict of them by name.
            name: accepted, without effect.
        Raises:
            CancelledError: the queue is closed. ValueError: shapes or names are others.
        """
        def put(held: Elements, *arrays: np.ndarray) -> list[np.ndarray]:
            held.put([arrays])
            return []
        self._call(put, "QueueEnqueue", self._components(vals, False), [])

    def enqueue_many(self, vals: Any, name: str | None = None) -> None:
        """Put the entries of tensors along the first axis, one after another; waits while the queue is full.

        Args:
            vals: as for `enqueue`, each with an axis more.
            name: accepted, without effect.
        Raises:
            CancelledError: the queue is closed. ValueError: shapes or names are others. InvalidArgumentError: tensors
                have different numbers of entries.
        """
        def put(held: Elements, *arrays: np.ndarray) -> list[np.ndarray]:
            if len({len(array) for array in arrays}) > 1:
                raise InvalidArgumentError(None, "QueueEnqueueMany", "all components must have the same number of "
                                           f"entries; got shapes {[list(array.shape) for array in arrays]}")
            held.put([tuple([array[n:n + 1].copy().reshape(array.shape[1:]) for array in arrays])
                      for n in range(len(arrays[0]))])
            return []
        self._call(put, "QueueEnqueueMany", self._components(vals, True), [])

    def dequeue(self, name: str | None = None) -> Any:
        """Take an element; waits while there is none.

        Args:
            name: accepted, without effect.
        Returns:
            A tensor, a list of them if elements have several components, or a dict if these have names.
        Raises:
            OutOfRangeError: the queue is closed, and there is none.
        """
        specs = [TensorSpec(shape, dtype) for shape, dtype in zip(self._shapes, self._dtypes, strict=True)]
        return self._given(self._call(lambda held: list(held.take(1)[0]), "QueueDequeue", [], specs))

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """Take several elements and stack them; waits until there are so many.

        Args:
            n: how many.
            name: accepted, without effect.
        Returns:
            As `dequeue` gives them, each with an axis more.
        Raises:
            OutOfRangeError: the queue is closed, and there are too few, which stay. InvalidArgumentError: the queue
                does not know the shapes of components, or `n` is negative.
        """
        return self._take(n, False)

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """Take several elements as `dequeue_many` does, or those that are left once the queue is closed. `name`
        has no effect."""
        return self._take(n, True)

    def _take(self, n: Any, up_to: bool) -> Any:
        count = tensor(n, tf.int32)
        known = None if up_to else tf.get_static_value(count)
        if not all(self._can_stack(shape) for shape in self._shapes):
            raise InvalidArgumentError(None, "QueueDequeueMany", f"{type(self).__name__}'s DequeueMany and DequeueUpTo "
                                       "require the components to have specified shapes.")

        def take(held: Elements, number: np.ndarray) -> list[np.ndarray]:
            if number < 0:
                raise InvalidArgumentError(None, "QueueDequeueMany", f"n must not be negative; got {int(number)}")
            taken = held.take(int(number), up_to)
            return [self._stacked([element[at] for element in taken], at) for at in range(len(self._dtypes))]
        specs = [TensorSpec([None if known is None else int(known), *shape], dtype)
                 for shape, dtype in zip(self._shapes, self._dtypes, strict=True)]
        return self._given(self._call(take, "QueueDequeueMany", [count], specs))

    def _can_stack(self, shape: Any) -> bool:
        return bool(shape.is_fully_defined())

    def _stacked(self, arrays: list[np.ndarray], at: int) -> np.ndarray:
        """Arrays of a component as one."""
        if arrays:
            return np.stack(arrays)
        return np.empty([0, *[size or 0 for size in self._shapes[at]]], self._dtypes[at].as_numpy_dtype)

    def _given(self, tensors: list[Any]) -> Any:
        if self._names is not None:
            return dict(zip(self._names, tensors, strict=True))
        return tensors[0] if len(tensors) == 1 else tensors

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> None:
        """Let nothing more be put. What is in the queue can be taken.

        Args:
            cancel_pending_enqueues: whether threads that wait for room get a CancelledError.
            name: accepted, without effect.
        """
        def close(held: Elements) -> list[np.ndarray]:
            held.close(bool(cancel_pending_enqueues))
            return []
        self._call(close, "QueueClose", [], [])

    def is_closed(self, name: str | None = None) -> Any:
        """Whether the queue is closed: a bool tensor. `name` has no effect."""
        return self._call(lambda held: [np.array(held.closed)], "QueueIsClosed", [], [TensorSpec([], tf.bool)])[0]

    def size(self, name: str | None = None) -> Any:
        """How many elements there are, int32. `name` has no effect."""
        return self._call(lambda held: [np.array(len(held), np.int32)], "QueueSize", [], [TensorSpec([], tf.int32)])[0]


def _behind(handle: Any) -> Elements:
    """What a queue holds, by its handle."""
    array = engine.array_of(handle)
    elements = getattr(array[()], "target", None) if array.shape == () else None
    if not isinstance(elements, Elements):
        raise InvalidArgumentError(None, "queue", "the tensor is no handle of a queue.")
    return elements


def _common(shapes: list[Any]) -> Any:
    """What is known of several shapes."""
    if any(s.rank is None or s.rank != shapes[0].rank for s in shapes):
        return tf.TensorShape(None)
    return tf.TensorShape([sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*shapes, strict=True)])


class FIFOQueue(QueueBase):
    """A queue whose elements are taken in the order in which they were put.

    Args:
        capacity: how many elements there can be; whoever puts one more waits. Negative: any number.
        dtypes: of the components of an element, or of the only one.
        shapes: of these; None where they may be any, and elements cannot be stacked.
        names: of these, for elements that are dicts.
        shared_name: accepted, without effect.
        name: of the queue.

    >>> import twofold as tf
    >>> queue = tf.queue.FIFOQueue(10, [tf.int32, tf.string], shapes=[[], []])
    >>> queue.enqueue_many([[1, 2, 3], ["a", "b", "c"]])
    >>> number, text = queue.dequeue()
    >>> int(number), text.numpy(), [part.numpy().tolist() for part in queue.dequeue_many(2)]
    (1, b'a', [[2, 3], [b'b', b'c']])
    """

    def __init__(self, capacity: int, dtypes: Any, shapes: Any = None, names: Any = None,
                 shared_name: str | None = None, name: str = "fifo_queue") -> None:
        super().__init__(dtypes, shapes, names, engine.handle(InOrder("FIFOQueue", _capacity(capacity))))
        self._given_name = name


class PaddingFIFOQueue(QueueBase):
    """A queue as `FIFOQueue`, whose elements are padded with zeros, or empty strings, where they are stacked.

    Args:
        capacity, dtypes, names, name: as for `FIFOQueue`.
        shared_name: has no effect.
        shapes: of components, with None for sizes that differ.
    Raises:
        ValueError: the rank of a component is not known.

    >>> import twofold as tf
    >>> queue = tf.queue.PaddingFIFOQueue(10, [tf.int32], shapes=[[None]])
    >>> for row in ([1, 2], [3]):
    ...     queue.enqueue([row])
    >>> queue.dequeue_many(2).numpy().tolist()
    [[1, 2], [3, 0]]
    """

    def __init__(self, capacity: int, dtypes: Any, shapes: Any, names: Any = None, shared_name: str | None = None,
                 name: str = "padding_fifo_queue") -> None:
        super().__init__(dtypes, shapes, names, engine.handle(InOrder("PaddingFIFOQueue", _capacity(capacity))))
        if any(shape.rank is None for shape in self._shapes):
            raise ValueError("shapes of a PaddingFIFOQueue must have known ranks")
        self._given_name = name

    def _can_stack(self, shape: Any) -> bool:
        return True

    def _stacked(self, arrays: list[np.ndarray], at: int) -> np.ndarray:
        if len({array.shape for array in arrays}) <= 1:
            return super()._stacked(arrays, at)
        sizes = np.max([array.shape for array in arrays], axis=0)
        filler = b"" if arrays[0].dtype == object else 0
        made = np.full((len(arrays), *sizes), filler, arrays[0].dtype)
        for n, array in enumerate(arrays):
            made[n][tuple([slice(size) for size in array.shape])] = array
        return made


class RandomShuffleQueue(QueueBase):
    """A queue whose elements are taken in random order.

    Args:
        capacity, dtypes, shapes, names, name: as for `FIFOQueue`.
        shared_name: has no effect.
        min_after_dequeue: how many elements stay to be chosen from, until the queue is closed.
        seed: of the order, which is TensorFlow's.
    Raises:
        InvalidArgumentError: `min_after_dequeue` is negative, or not below the capacity.

    >>> import twofold as tf
    >>> tf.random.set_seed(1)
    >>> queue = tf.queue.RandomShuffleQueue(10, 2, [tf.int32], shapes=[[]], seed=1)
    >>> queue.enqueue_many([[1, 2, 3, 4, 5]])
    >>> queue.dequeue_many(3).numpy().tolist()
    [1, 3, 2]
    """

    def __init__(self, capacity: int, min_after_dequeue: int, dtypes: Any, shapes: Any = None, names: Any = None,
                 seed: int | None = None, shared_name: str | None = None, name: str = "random_shuffle_queue") -> None:
        most, least = _capacity(capacity), one_int(min_after_dequeue, "min_after_dequeue")
        if least < 0 or 0 <= most <= least:
            raise InvalidArgumentError(None, "RandomShuffleQueue", f"min_after_dequeue {least} must be >= 0 and < "
                                                                   f"capacity {most}")
        draws = Draws(engine.random_seeds(None if seed is None else one_int(seed, "seed")))
        super().__init__(dtypes, shapes, names, engine.handle(Shuffled("RandomShuffleQueue", most, least, draws)))
        self._given_name = name


class PriorityQueue(QueueBase):
    """A queue whose elements begin with an int64 number, the lowest of which is taken first.

    Args:
        capacity, names, name: as for `FIFOQueue`.
        shared_name: has no effect.
        types: of the other components.
        shapes: of these.

    >>> import twofold as tf
    >>> queue = tf.queue.PriorityQueue(10, [tf.string], shapes=[[]])
    >>> queue.enqueue_many([[5, 1, 3], ["five", "one", "three"]])
    >>> queue.dequeue()[1].numpy(), queue.dequeue()[1].numpy()
    (b'one', b'three')
    """

    def __init__(self, capacity: int, types: Any, shapes: Any = None, names: Any = None,
                 shared_name: str | None = None, name: str = "priority_queue") -> None:
        rest = QueueBase(types, shapes, None, None)
        super().__init__([tf.int64, *rest.dtypes], [tf.TensorShape([]), *rest.shapes], names,
                         engine.handle(Prioritised("PriorityQueue", _capacity(capacity))))
        self._given_name = name


def _capacity(capacity: Any) -> int:
    return one_int(capacity, "capacity")
