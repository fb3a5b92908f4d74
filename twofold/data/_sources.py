"""Where elements come from: tensors, slices of tensors, ranges, generators, random numbers, other datasets' handles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import twofold as tf
from twofold._front import iteration as engine

from ._listed import Listed
from ._node import INFINITE, UNKNOWN, Node, check, number
from ._stream import ArithmeticRows, Draws, Orders, Positions, RowItems, Rows, Run, Seeds, Stream
from ._structure import DatasetSpec, Form, normal, row_spec, spec_of
from ._value import is_dataset

__all__ = ["Counter", "Generated", "Placeholder", "RandomNumbers", "Range", "Slices", "Tensors", "sliced"]


class _Once(Stream):
    """One item."""

    def __init__(self, item: Any) -> None:
        self.item, self.done = item, False

    def next(self) -> Any:
        if self.done:
            return None
        self.done = True
        return self.item

    def save(self) -> Any:
        return self.done

    def load(self, state: Any) -> None:
        self.done = state


class Tensors(Node):
    """One element."""

    name = "Tensor"

    def __init__(self, element: Any) -> None:
        element = normal(element)
        self.form = Form(spec_of(element))
        self.leaves = engine.nest.flatten(element)
        if not self.leaves:
            raise ValueError("Invalid `element`. `element` should not be empty.")

    def settled(self, key: str, value: Any) -> Any:
        return value

    def cardinality(self) -> int:
        return 1

    def start(self, run: Run) -> Stream:
        return _Once(tuple([x if is_dataset(x) else engine.array_of(x) for x in self.leaves]))


class Slices(Node):
    """The slices of tensors along their first axis."""

    name = "TensorSlice"

    def __init__(self, tensors: Any) -> None:
        element = normal(tensors)
        self.leaves = engine.nest.flatten(element)
        if not self.leaves:
            raise ValueError("Invalid `element`. `element` should not be empty.")
        shapes = [leaf.shape for leaf in self.leaves]
        if any(s.rank == 0 for s in shapes):
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        sizes = [s[0] for s in shapes if s[0] is not None]
        for other in sizes[1:]:
            if other != sizes[0]:
                raise ValueError(f"Dimensions {sizes[0]} and {other} are not compatible")
        specs = [tf.TensorSpec(s[1:], leaf.dtype) for s, leaf in zip(shapes, self.leaves, strict=True)]
        self.form = Form(engine.nest.pack(element, specs))
        self.count = sizes[0] if sizes else UNKNOWN

    def cardinality(self) -> int:
        return self.count

    def rows(self) -> Rows | None:
        return None if any(map(engine.is_symbolic, self.leaves)) else Rows([engine.array_of(x) for x in self.leaves])

    def positions(self, run: Run) -> Stream:
        sizes = [x.shape[0] for x in self.leaves]
        check(min(sizes) == max(sizes), f"The tensors have first axes of different sizes: {sizes}.")
        return Positions(sizes[0])

    def start(self, run: Run) -> Stream:
        return RowItems(Rows([engine.array_of(x) for x in self.leaves]), self.positions(run))


def sliced(tensors: Any) -> Node:
    """The slices of a structure of tensors and composite values along their first axes."""
    element = normal(tensors)
    form = Form(spec_of(element)) if engine.nest.flatten(element) else None
    if form is None or not form.composite:
        return Slices(element)
    return Listed(form.rows(form.item(element)), form.map_whole(row_spec))


class Range(Node):
    """The numbers of a range."""

    name = "Range"

    def __init__(self, limits: tuple[Any, ...], dtype: Any = None) -> None:
        self.begin, self.end, self.step = (0, *limits, 1) if len(limits) == 1 else (*limits, 1)[:3]
        self.begin, self.end, self.step = (number(v, "an argument of range") for v in
                                           (self.begin, self.end, self.step))
        self.dtype = tf.as_dtype(tf.int64 if dtype is None else dtype)
        if self.step == 0 and not engine.is_symbolic(self.step):
            check(False, "step must be non-zero.")
        self.form = Form(tf.TensorSpec([], self.dtype))

    def _numbers(self) -> range:
        check(self.step != 0, "step must be non-zero.")
        return range(self.begin, self.end, self.step)

    def cardinality(self) -> int:
        if any(map(engine.is_symbolic, (self.begin, self.end, self.step))):
            return UNKNOWN
        numbers = self._numbers()
        return len(numbers)

    def rows(self) -> Rows | None:
        if self.cardinality() == UNKNOWN:
            return None
        return ArithmeticRows(self._numbers(), self.dtype.as_numpy_dtype)

    def positions(self, run: Run) -> Stream:
        return Positions(len(self._numbers()))

    def start(self, run: Run) -> Stream:
        return RowItems(ArithmeticRows(self._numbers(), self.dtype.as_numpy_dtype), self.positions(run))


class Counter(Node):
    """`begin`, `begin + step`, and so on for ever."""

    name = "Counter"

    def __init__(self, begin: Any, step: Any, dtype: Any) -> None:
        self.begin, self.step = number(begin, "start"), number(step, "step")
        self.dtype = tf.as_dtype(dtype)
        self.form = Form(tf.TensorSpec([], self.dtype))

    def cardinality(self) -> int:
        return INFINITE

    def start(self, run: Run) -> Stream:
        dtype = self.dtype.as_numpy_dtype
        return Computed(lambda place: (np.array(self.begin + place * self.step, dtype),))


class Computed(Stream):
    """Items computed from their places."""

    def __init__(self, item: Callable[[int], Any]) -> None:
        self.item, self.at = item, 0

    def next(self) -> Any:
        self.at += 1
        return self.item(self.at - 1)

    def save(self) -> Any:
        return self.at

    def load(self, state: Any) -> None:
        self.at = state


class RandomNumbers(Node):
    """Integers drawn from [0, 2**32)."""

    name = "Random"

    def __init__(self, seed: Any, renewed: bool) -> None:
        self.orders = Orders(engine.random_seeds(None if seed is None else number(seed, "seed")), renewed)
        self.form = Form(tf.TensorSpec([], tf.int64))

    def cardinality(self) -> int:
        return INFINITE

    def start(self, run: Run) -> Stream:
        return _Random(self.orders.next()[0])


class _Random(Stream):
    def __init__(self, seeds: Seeds) -> None:
        self.draws = Draws(seeds)

    def next(self) -> Any:
        return (np.array(self.draws.next(), np.int64),)

    def save(self) -> Any:
        return self.draws.save()

    def load(self, state: Any) -> None:
        self.draws.load(state)


class Generated(Node):
    """The elements that a Python generator yields.

    A saved iterator starts the generator anew when it is restored, and passes over as many elements.
    """

    name = "Generator"

    def __init__(self, generator: Callable[..., Any], form: Form, args: tuple[Any, ...]) -> None:
        self.generator, self.form, self.args = generator, form, args

    def settled(self, key: str, value: Any) -> Any:
        return value

    def cardinality(self) -> int:
        return UNKNOWN

    def start(self, run: Run) -> Stream:
        return _Generated(self)


class _Generated(Stream):
    def __init__(self, node: Generated) -> None:
        self.node, self.count = node, 0
        self.iterator: Iterator[Any] | None = None

    def _value(self) -> Any:
        if self.iterator is None:
            args = [engine.array_of(a)[()] if not engine.array_of(a).ndim else np.asarray(a) for a in self.node.args]
            self.iterator = iter(self.node.generator(*args))
        return next(self.iterator)

    def next(self) -> Any:
        try:
            value = self._value()
        except StopIteration:
            return None
        self.count += 1
        return self._item(value)

    def _item(self, value: Any) -> Any:
        form = self.node.form
        try:
            leaves = _leaves(form.spec, value)
        except (TypeError, ValueError) as e:
            raise _mismatch(f"`generator` yielded an element that did not match the expected structure. The expected "
                            f"structure was {form.spec!r}, but the yielded element was {value!r}.") from e
        return tuple([self._leaf(spec, leaf) for spec, leaf in zip(form.flat, leaves, strict=True)])

    @staticmethod
    def _leaf(spec: Any, leaf: Any) -> Any:
        if isinstance(spec, DatasetSpec):
            return leaf
        try:
            array = _converted(leaf, spec.dtype)
        except (TypeError, ValueError, OverflowError, tf.errors.OpError) as e:
            raise _mismatch(f"`generator` yielded an element that could not be converted to the expected type. The "
                            f"expected type was {spec.dtype.name}, but the yielded element was {leaf!r}.") from e
        if not spec.shape.is_compatible_with(array.shape):
            raise _mismatch(f"`generator` yielded an element of shape {array.shape} where an element of shape "
                            f"{spec.shape} was expected.")
        return array

    def save(self) -> Any:
        return self.count

    def load(self, state: Any) -> None:
        self.iterator, self.count = None, 0
        while self.count < state:
            self._value()
            self.count += 1


def _mismatch(message: str) -> tf.errors.InvalidArgumentError:
    return tf.errors.InvalidArgumentError(None, None, f"TypeError: {message}")


def _leaves(spec: Any, value: Any) -> list[Any]:
    """The leaves of an element of a generator, by the structure that was declared; lists may take the place of
    tuples."""
    if not engine.nest.is_nested(spec):
        return [value]
    if engine.nest.is_composite(spec):
        if not spec.is_compatible_with(value):
            raise TypeError(type(value).__name__)
        return engine.nest.flatten(value)
    if isinstance(spec, dict):
        if set(spec) != set(value):
            raise ValueError(f"keys {sorted(value)}")
        return [leaf for key in sorted(spec) for leaf in _leaves(spec[key], value[key])]
    if isinstance(spec, tuple):
        if not isinstance(value, (tuple, list)) or len(value) != len(spec):
            raise TypeError(type(value).__name__)
        return [leaf for s, v in zip(spec, value, strict=True) for leaf in _leaves(s, v)]
    engine.nest.assert_same_structure(spec, value)
    return engine.nest.flatten(value)


def _converted(leaf: Any, dtype: Any) -> np.ndarray:
    """A yielded value as an array of a dtype; arrays and numbers are cast as NumPy does within one kind."""
    if isinstance(leaf, tf.Tensor):
        return engine.array_of(leaf, dtype)
    if dtype is tf.string:
        return engine.array_of(leaf, dtype)
    array = np.array(leaf)
    if array.dtype.kind in "OSU" or (array.dtype.kind in "fc" and dtype.is_integer and array.size):
        return engine.array_of(leaf, dtype)  # which tells what is wrong
    return array.astype(dtype.as_numpy_dtype)


class Placeholder(Node):
    """A dataset that a traced function gets as a tensor: a handle."""

    name = "Variant"

    def __init__(self, token: Any, spec: Any, count: int = UNKNOWN) -> None:
        self.token, self.form, self.count = token, Form(spec), count

    def settled(self, key: str, value: Any) -> Any:
        return value

    def resolved(self) -> Node:
        if engine.is_symbolic(self.token):
            return self
        node: Node = engine.held(self.token)._node
        return node

    def cardinality(self) -> int:
        return self.count

    def start(self, run: Run) -> Stream:
        return self.resolved().start(run)
