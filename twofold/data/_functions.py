"""Functions of elements: traced once when they are given, compiled, and called with items.

Datasets among arguments and results pass through the graph as handles. Where the rank of an argument is not known, the
function is traced for each rank that comes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import twofold as tf
from twofold._front import iteration as engine
from twofold._front.rowwise import over_rows

from ._node import Capturing, bound, tensors_in
from ._sources import Placeholder
from ._structure import DatasetSpec, Form, Item, normal, spec_of
from ._value import dataset_from, is_dataset

__all__ = ["ElementFunction", "dataset_of", "predicate", "scalar_of"]

_UNKNOWN = object()
_MAKES = "dataset"  # the name of calls of Python that make one
_RANKS = range(5)  # tried, to learn the form of results, where the rank of an argument is unknown


class ElementFunction(Capturing):
    """A function of users, from items to an item.

    Args:
        fn: called with an element: the parts of a tuple are arguments of their own.
        forms: of the arguments; one for an element alone.
        what: the step, for errors.
        spread: whether the parts of a single tuple are arguments of their own.
    Attributes:
        form: of the results.
    """

    def __init__(self, fn: Callable[..., Any], forms: Sequence[Form], what: str, spread: bool = True) -> None:
        if not callable(fn):
            raise TypeError(f"{what} takes a function; got {type(fn).__name__} {fn!r}.")
        self.forms, self.what = list(forms), what
        self._spread = spread and len(forms) == 1 and forms[0].unpacks
        self._fn = engine.user_function(fn)
        self._specs = [spec for form in forms for spec in form.flat]
        self._made: list[Any] = []
        self._late: set[int] = set()  # results of Python calls whose rank is known when they are there
        self.captured = []
        self._batched: Any = _UNKNOWN
        self._prompt: Any = None
        self._maker: Any = None
        self._draws: list[Any] | None = None
        self._handles = [i for i, spec in enumerate(self._specs) if isinstance(spec, DatasetSpec)]
        self._traced = tf.function(self._named(fn), autograph=False, fallback=False)
        self.form = self._inferred()
        self._held = {i for i, spec in enumerate(self.form.flat) if isinstance(spec, DatasetSpec)} | self._late

    def begin(self) -> None:
        """Prepare for another iteration over the dataset: as in TensorFlow, draws with seeds begin anew."""
        if self._draws is None:
            self._draws = [] if self._run is self._traced else engine.seeded_draws(self._run)
        if self._draws:
            engine.draw_anew(self._draws)

    def _named(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """A function of the leaves as tensors that gives the leaves of the result as tensors."""
        def flat(*leaves: Any) -> tuple[Any, ...]:
            result = self._result(self._call(leaves))
            flat_result = engine.nest.flatten(result)
            specs = {id(x): tf.TensorSpec(None, dtype) for x, dtype in [
                (x, x.dtype) for x in flat_result if not is_dataset(x)] if engine.carried(x)}
            self._late.update([i for i, x in enumerate(flat_result) if id(x) in specs])
            self._made.append(engine.nest.map_structure(lambda x: specs.get(id(x), x), result) if specs else result)
            return tuple([_as_handle(x) if is_dataset(x) else x for x in flat_result])
        flat.__name__ = getattr(fn, "__name__", type(fn).__name__)
        return flat

    def _call(self, leaves: Sequence[Any]) -> Any:
        given = [_dataset(leaf, spec) if isinstance(spec, DatasetSpec) else leaf
                 for leaf, spec in zip(leaves, self._specs, strict=True)]
        args, at = [], 0
        for form in self.forms:
            args.append(form.pack(given[at:at + len(form.flat)]))
            at += len(form.flat)
        return self._fn(*args[0]) if self._spread else self._fn(*args)

    def _result(self, result: Any) -> Any:
        if result is None or isinstance(result, tf.Module):
            raise TypeError(f"Unsupported return value from function passed to Dataset.{self.what}(): {result!r}.")
        try:
            return normal(tuple(result) if type(result) is list else result)
        except (TypeError, ValueError) as e:
            raise TypeError(f"Unsupported return value from function passed to Dataset.{self.what}(): {result!r}. "
                            f"{e}") from e

    # -- what it gives ----------------------------------------------------------------------------
    def _inferred(self) -> Form:
        tensors = [tf.TensorSpec([], tf.string) if isinstance(s, DatasetSpec) else s for s in self._specs]
        if all(s.shape.rank is not None for s in tensors):
            self._run = self._traced.get_concrete_function(*tensors)
            self.captured = engine.symbolic_captures(self._run)
            self._maker = engine.one_host_call(self._run, _MAKES)
            return Form(self._general(spec_of(self._made.pop())))
        self._run = self._traced
        return self._by_ranks(tensors)

    @staticmethod
    def _general(spec: Any) -> Any:
        return engine.nest.map_structure(
            lambda s: s if isinstance(s, DatasetSpec) else tf.TensorSpec(s.shape, s.dtype), spec)

    def _by_ranks(self, tensors: list[Any]) -> Form:
        """The form that the results for arguments of several ranks have in common."""
        forms: list[Any] = []
        failure: Exception | None = None
        for rank in _RANKS:
            specs = [s if s.shape.rank is not None else tf.TensorSpec([None] * rank, s.dtype) for s in tensors]
            try:
                self._traced.get_concrete_function(*specs)
            except (ValueError, TypeError, IndexError, tf.errors.OpError) as e:  # not for tensors of this rank
                failure = failure or e
                continue
            forms.append(self._general(spec_of(self._made.pop())))
        if not forms:
            assert failure is not None
            raise failure
        return Form(engine.nest.map_structure(_common, *forms))

    def over_rows(self) -> Callable[..., Any] | None:
        """The function of batches that this is element by element; None where it is not, or it cannot be told."""
        if self._handles or self._late or self.captured or self._run is self._traced:
            return None
        if self._batched is _UNKNOWN:
            self._batched = over_rows(self._run)
        return self._batched

    def in_steps(self, ordered: bool) -> tuple[Callable[[Item], Any], Callable[[Any], Item]] | None:
        """Two functions that do what this one does, so that it can run on several elements at once: what must be done
        for one element after another, and the rest. None where elements do not depend on those before.

        Args:
            ordered: whether the order matters where the function cannot be split.
        """
        plain = not (self._handles or self.captured or self._held or self._maker is not None)
        concretes = self._traced._list_all_concrete_functions()
        steps = engine.steps(concretes, plain and self._run is not self._traced)
        if steps is None or not plain:
            return None if steps is None or not ordered else (self, lambda item: item)
        begin, finish = steps
        return (lambda item: begin(*engine.tensors_of(item)), lambda begun: engine.arrays_of(finish(begun)))

    # -- calling ----------------------------------------------------------------------------------
    def __call__(self, item: Item) -> Item:
        """The result for the leaves of the arguments."""
        if self._handles:
            item = tuple([engine.array_of(engine.handle(x)) if is_dataset(x) else x for x in item])
        if self._maker is not None:
            make, places = self._maker
            return (engine.held(make(*[engine.tensor_of(item[i]) for i in places])[0]),)
        if self.captured:
            arrays = engine.arrays_of(engine.run_with_captures(self._run, engine.tensors_of(item), self.captured))
        else:
            if self._prompt is None:
                self._prompt = self._run if self._run is self._traced else engine.prompt(self._run)
            arrays = engine.arrays_of(self._prompt(*engine.tensors_of(item)))
        if self._made:
            self._made.clear()
        if not self._held:
            return arrays
        return tuple([engine.held(x) if i in self._held else x for i, x in enumerate(arrays)])


def _common(first: Any, *others: Any) -> Any:
    if isinstance(first, DatasetSpec):
        return first
    shape = first.shape
    for other in others:
        shape = shape.most_specific_compatible_shape(other.shape)
    return tf.TensorSpec(shape, first.dtype)


def _dataset(token: Any, spec: DatasetSpec) -> Any:
    return dataset_from(Placeholder(token, spec.element_spec))


def _as_handle(dataset: Any) -> Any:
    """A dataset that a traced function gives, as a handle that is made when the function runs."""
    node = dataset._node
    if isinstance(node, Placeholder):
        return node.token
    operands = tensors_in(node)

    def make(*tensors: Any) -> list[Any]:
        return [engine.handle(dataset_from(bound(node, iter(tensors))))]
    return engine.host_call(make, _MAKES, operands, [tf.TensorSpec([], tf.string)])[0]


def predicate(fn: Callable[..., Any], form: Form, what: str, argument: str = "predicate") -> ElementFunction:
    """A function of elements that gives a bool scalar.

    Raises:
        ValueError: it gives something else.
    """
    made = ElementFunction(fn, [form], what)
    spec = made.form.spec
    if not (isinstance(spec, tf.TensorSpec) and spec.dtype is tf.bool and spec.shape.rank in (0, None)):
        raise ValueError(f"Invalid `{argument}`. `{argument}` must return a `tf.bool` scalar tensor, but its return "
                         f"type is {spec!r}.")
    return made


def scalar_of(fn: Callable[..., Any], form: Form, what: str, argument: str, dtypes: Sequence[Any]) -> ElementFunction:
    """A function of elements that gives an integer scalar.

    Raises:
        ValueError: it gives something else.
    """
    made = ElementFunction(fn, [form], what)
    spec = made.form.spec
    if not (isinstance(spec, tf.TensorSpec) and spec.dtype in dtypes and spec.shape.rank in (0, None)):
        raise ValueError(f"Invalid `{argument}`. `{argument}` must return a scalar tensor of dtype "
                         f"{' or '.join(d.name for d in dtypes)}, but its return type is {spec!r}.")
    return made


def dataset_of(fn: Callable[..., Any], forms: Sequence[Form], what: str, argument: str) -> ElementFunction:
    """A function of elements that gives a dataset.

    Raises:
        TypeError: it gives something else.
    """
    made = ElementFunction(fn, forms, what)
    if not isinstance(made.form.spec, DatasetSpec):
        raise TypeError(f"`{argument}` must return a `Dataset` object. Got {made.form.spec!r}.")
    return made


