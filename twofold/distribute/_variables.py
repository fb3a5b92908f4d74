"""Variables of strategies with several replicas: a copy for each, which assignments keep equal.

In a replica a variable is that replica's copy, to ops, tapes and traces, and so it is where it is updated copy by copy
(`StrategyExtended.update`). Outside it is that of the process's first one; one that is synchronised when it is read
(`tf.VariableSynchronization.ON_READ`), such as what a metric counts, is there the sum or the mean of all replicas of
all processes, which all must read it then. What is assigned outside is assigned to all.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import twofold as tf
from twofold._front import replica
from twofold.eager import convert, record
from twofold.eager.variable import Variable, created
from twofold.ir import ops
from twofold.tracer.trace import current

from . import _collective as collective
from ._context import _place
from ._values import DistributedValues, Mirrored, ReduceOp, own_number, part

__all__ = ["DistributedVariable", "MirroredVariable", "SyncOnReadVariable", "copied"]

_NONE, _SUM, _MEAN = tf.VariableAggregation.NONE, tf.VariableAggregation.SUM, tf.VariableAggregation.MEAN
_FIRST = tf.VariableAggregation.ONLY_FIRST_REPLICA


def copied(variable: Variable, make: Callable[..., Variable], strategy: Any) -> Variable:
    """A variable with a copy for each replica of this process, itself for the first.

    Args:
        make: makes a variable of an initial value.
        strategy: whose replicas they are.
    Raises:
        ValueError: what it says of its copies is impossible.
    """
    _check(variable)
    token = created.set(())  # who keeps variables keeps this one
    try:
        with tf.init_scope():
            others = [make(initial_value=tf.identity(variable._value)) for _ in strategy._devices[1:]]
    finally:
        created.reset(token)
    for n, other in enumerate(others, 1):
        other._name = f"{variable._name}/replica_{n}"
    on_read = variable._synchronization is tf.VariableSynchronization.ON_READ
    vars(variable).update(_distribute_strategy=strategy, _others=others)
    variable.__class__ = _kind(SyncOnReadVariable if on_read else MirroredVariable, type(variable))
    variable._link()
    return variable


def _check(variable: Variable) -> None:
    if variable._synchronization is tf.VariableSynchronization.NONE:
        raise ValueError("`NONE` variable synchronization mode is not supported with tf.distribute strategy. Please "
                         f"change the `synchronization` for variable: {variable.name}")
    if variable._aggregation is _MEAN and not variable.dtype.is_floating:
        raise ValueError("creating distributed tf.Variable with aggregation=MEAN and a non-floating dtype is not "
                         "supported, please use a different aggregation or dtype")


class DistributedVariable(Variable, DistributedValues):
    """What variables with copies do in another way than others; see `copied`, which makes them. The first replica's
    copy is in the variable itself."""

    __slots__ = ()

    _distribute_strategy: Any
    _others: list[Variable]

    def _link(self) -> None:
        """Lets the copies know that they are this variable's."""
        for other in self._others:
            other._distributed_container = weakref.ref(self)  # type: ignore[attr-defined]

    @property
    def distribute_strategy(self) -> Any:
        """The strategy whose replicas have the copies."""
        return self._distribute_strategy

    @property
    def values(self) -> tuple[Any, ...]:
        """The copies, as variables, in the order of the replicas."""
        first = vars(self).get("_first", _nothing)()
        if first is None:
            first = _First.__new__(_First)
            first._of = self
            self._first = weakref.ref(first)
        return (first, *self._others)

    @property
    def _values(self) -> tuple[Any, ...]:  # type: ignore[override]  # which values of other kinds keep
        return self.values

    def _own(self) -> Any:
        """The copy of the replica that this runs in."""
        return self.values[own_number() or 0]

    def _state(self) -> dict[str, object]:
        return {name: value for name, value in super()._state().items() if name != "_first"}

    def __deepcopy__(self, memo: dict[int, object]) -> Variable:
        made: Any = super().__deepcopy__(memo)
        made._link()
        return made

    def __repr__(self) -> str:
        lines = ",\n".join(f"  {n}: {value!r}" for n, value in enumerate(self.values))
        return f"{type(self).__name__}:{{\n{lines}\n}}"

    # -- reading ----------------------------------------------------------------------------------
    def _read_tensor(self) -> Any:
        number = own_number()
        if number is None:
            return self._read_outside()
        if number == 0:
            return super()._read_tensor()
        value = self._others[number - 1]._current()
        for recorder in record.active.get():  # tapes know the variable, whoever reads it
            recorder._variable_read(self, value)
        return value

    def _read_outside(self) -> Any:
        return super()._read_tensor()

    def _current(self) -> Any:
        number = own_number()
        return self._others[number - 1]._current() if number else super()._current()

    # -- writing ----------------------------------------------------------------------------------
    def assign(self, value: object, use_locking: bool = False, name: str | None = None,
               read_value: bool = True) -> Variable:
        """Replace the value; of a value for each replica each copy gets its own. See `tf.Variable.assign`."""
        return self._of_each(value, lambda to, own: to.assign(own)) or super().assign(value)

    def assign_add(self, delta: object, use_locking: bool = False, name: str | None = None,
                   read_value: bool = True) -> Variable:
        """Add to the value; see `assign`."""
        return self._of_each(delta, lambda to, own: to.assign_add(own)) or super().assign_add(delta)

    def assign_sub(self, delta: object, use_locking: bool = False, name: str | None = None,
                   read_value: bool = True) -> Variable:
        """Subtract from the value; see `assign`."""
        return self._of_each(delta, lambda to, own: to.assign_sub(own)) or super().assign_sub(delta)

    def _of_each(self, value: object, assign: Callable[[Any, Any], object]) -> Any:
        """Assigns a value for each replica outside of them; None where it is none, or this is in one."""
        if own_number() is not None or not isinstance(value, DistributedValues) or isinstance(value, Variable):
            return None
        for n, to in enumerate(self.values):
            assign(to, part(value, n))
        return self

    def _set(self, value: Any) -> Any:
        if own_number() is None:
            return self._set_all(value)
        own = self._own()
        own._set(self._joined(value) if self._joins() else value)
        return self

    def _set_all(self, value: Any) -> Any:
        """An assignment outside of replicas."""
        for to in self.values:
            to._set(value)
        return self

    def _update(self, op: Any, delta: Any) -> Any:
        change = convert.as_tensor(delta, dtype=self.dtype)
        if own_number() is None:
            return self._change_all(lambda value: op(value, change))
        self._own()._update(op, self._joined(change) if self._joins() else change)
        return self

    def _change(self, change: Callable[[Any], Any]) -> Any:
        if own_number() is None:
            return self._change_all(change)
        if self._joins():
            return self._set(change(self._current()))
        self._own()._change(change)
        return self

    def _change_all(self, change: Callable[[Any], Any]) -> Any:
        """A change of all copies, each of its own value."""
        for to in self.values:
            to._change(change)
        return self

    def _overwrite(self, change: Callable[[Any], Any]) -> bool:
        return False  # there is more than one value

    # -- of all replicas --------------------------------------------------------------------------
    def _joins(self) -> bool:
        """Whether an assignment here is of what the values of all replicas are together: not where copies may differ,
        nor where they are assigned alike, or one by one."""
        return False

    def _joined(self, value: Any) -> Any:
        """What the values that replicas assign are together, for each of them."""
        place: Any = _place.get()
        if self._aggregation is _FIRST:
            return collective.of_first(place.replica, value)
        return place.replica.all_reduce("SUM" if self._aggregation is _SUM else "MEAN", value)


_NO_SCATTER = ("scatter_{} is only supported for mirrored variable (variable created within certain "
               "`tf.distribute.Strategy` scope) with NONE or `ONLY_FIRST_REPLICA` aggregation, got: {}.")


class MirroredVariable(DistributedVariable, Mirrored):
    """A variable whose copies assignments keep equal."""

    __slots__ = ()

    @property
    def synchronization(self) -> tf.VariableSynchronization:
        """When copies become equal."""
        return tf.VariableSynchronization.ON_WRITE

    def _joins(self) -> bool:
        place = _place.get()
        return place is not None and place.replica is not None and self._aggregation is not _NONE and (
            not replica.alike.get())

    def _scatter_rows(self, slices: Any, mode: str) -> Any:
        if own_number() is None or not self._joins():
            return super()._scatter_rows(slices, mode)
        if mode not in ("add", "sub") and self._aggregation is not _FIRST:
            raise NotImplementedError(_NO_SCATTER.format(mode, self._aggregation))
        self._own()._scatter_rows(self._joined(tf.IndexedSlices(*reversed(self._rows(slices)))), mode)
        return self

    def _scatter_factors(self, slices: Any, combine: Any) -> Any:
        if own_number() is None or not self._joins():
            return super()._scatter_factors(slices, combine)
        self._own()._scatter_factors(self._joined(tf.IndexedSlices(*reversed(self._rows(slices)))), combine)
        return self


class SyncOnReadVariable(DistributedVariable):
    """A variable that each replica has for itself, until it is read outside of them."""

    __slots__ = ()

    def _read_outside(self) -> Any:
        return self._current()

    def _current(self) -> Any:
        if own_number() is None:
            return self._together([copy._current() for copy in self.values])
        return super()._current()

    def _together(self, values: Sequence[Any]) -> Any:
        """What the values of all replicas are together.

        Raises:
            ValueError: nothing says what they are.
        """
        if self._aggregation is _FIRST:
            return values[0]
        kind = ReduceOp.from_variable_aggregation(self._aggregation)
        if self._distribute_strategy._group.size > 1 and not replica.own.get():
            return collective.reduced(self._distribute_strategy, [[value] for value in values], kind)[0]
        total = functools.reduce(ops.add, values)
        return total if self._aggregation is _SUM else total / tf.constant(len(values), total.dtype)

    def _set_all(self, value: Any) -> Any:
        """An assignment outside of replicas: of a sum the first has all."""
        if self._aggregation is not _SUM:
            return super()._set_all(value)
        first, *others = self.values
        first._set(value if self._distribute_strategy._group.rank == 0 else tf.zeros_like(value))
        for copy in others:
            copy._set(tf.zeros_like(value))
        return self

    def _change_all(self, change: Callable[[Any], Any]) -> Any:
        return self._set_all(change(self._current())) if self._aggregation is _SUM else super()._change_all(change)


class _First(Variable):
    """The first replica's copy of a variable, whose value the variable itself keeps.

    Attributes:
        _of: the variable.
    """

    __slots__ = ()

    _of: Any

    @property
    def _value(self) -> Any:  # type: ignore[override]  # the slot is the variable's
        return self._of._value

    def __getattr__(self, name: str) -> Any:
        if name == "_of":  # of an object that is being made
            raise AttributeError(name)
        return getattr(self._of, name)

    def _distributed_container(self) -> Any:
        return self._of

    @property
    def synchronization(self) -> tf.VariableSynchronization:
        """When copies become equal."""
        kind: tf.VariableSynchronization = self._of.synchronization
        return kind

    @property
    def aggregation(self) -> tf.VariableAggregation:
        """What becomes of what replicas assign."""
        kind: tf.VariableAggregation = self._of.aggregation
        return kind

    def _read_tensor(self) -> Any:
        return Variable._read_tensor(self._of)

    def _current(self) -> Any:
        return Variable._current(self._of)

    def _set(self, value: Any) -> Any:
        result = Variable._set(self._of, value)
        return self if result is self._of else result

    def _update(self, op: Any, delta: Any) -> Any:
        change = convert.as_tensor(delta, dtype=self.dtype)
        return self._change(lambda value: op(value, change))

    def _change(self, change: Callable[[Any], Any]) -> Any:
        if current() is not None:
            return self._set(change(self._current()))
        Variable._change(self._of, change)
        return self

    def _overwrite(self, change: Callable[[Any], Any]) -> bool:
        return Variable._overwrite(self._of, change)

    def __deepcopy__(self, memo: dict[int, object]) -> Variable:
        copy = tf.Variable(self._current(), trainable=self.trainable, name=self._name)
        return copy


def _nothing() -> None:
    return None


@functools.cache
def _kind(base: type[DistributedVariable], kind: type[Variable]) -> type[Variable]:
    """The class of variables of a class that have copies: what a class does of its own comes first."""
    if kind is Variable:
        return base
    make: Any = type(kind)
    made: type[Variable] = make(f"{base.__name__.removesuffix('Variable')}{kind.__name__}", (kind, base),
                                {"__slots__": (), "__module__": __name__})
    return made
