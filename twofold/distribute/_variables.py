"""Variables of strategies with several replicas: a copy for each, which assignments keep equal.

In a replica a variable is that replica's copy, to ops, tapes and traces. Outside it is that of the process's first
one; one that is synchronised when it is read (`tf.VariableSynchronization.ON_READ`), such as what a metric counts, is
there the sum or the mean of all replicas of all processes, which all must read it then. What is assigned outside is
assigned to all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import twofold as tf
from twofold._front import replica
from twofold.eager import convert, record
from twofold.eager.variable import Variable, created
from twofold.ir import ops

from . import _collective as collective
from ._context import _place
from ._values import ReduceOp

__all__ = ["MirroredVariable", "copied"]

_SUM, _MEAN = tf.VariableAggregation.SUM, tf.VariableAggregation.MEAN


def copied(variable: Variable, make: Callable[..., Variable], strategy: Any, synchronization: Any,
           aggregation: Any) -> Variable:
    """A variable with a copy for each replica of this process, itself for the first.

    Args:
        make: makes a variable of an initial value.
        strategy: whose replicas they are.
        synchronization, aggregation: as `tf.Variable` takes them.
    """
    token = created.set(())  # who keeps variables keeps this one
    try:
        with tf.init_scope():
            others = [make(initial_value=tf.identity(variable._value)) for _ in strategy._devices[1:]]
    finally:
        created.reset(token)
    on_read = synchronization is tf.VariableSynchronization.ON_READ
    vars(variable).update(_strategy=strategy, _others=others, _on_read=on_read,
                          _aggregation=aggregation or tf.VariableAggregation.NONE)
    variable.__class__ = _mirrored(type(variable))
    return variable


class MirroredVariable(Variable):
    """What variables with copies do in another way than others; see `copied`, which makes them. The first replica's
    copy is the variable itself."""

    __slots__ = ()

    _strategy: Any
    _others: list[Variable]
    _on_read: bool
    _aggregation: Any

    def _number(self) -> int | None:
        """The number of the replica that this runs in; None outside."""
        place = _place.get()
        return None if place is None or place.replica is None else place.replica._number

    # -- reading ----------------------------------------------------------------------------------
    def _read_tensor(self) -> Any:
        number = self._number()
        if number is None and self._on_read:
            return self._current()
        if not number:
            return super()._read_tensor()
        value = self._others[number - 1]._current()
        for recorder in record.active.get():  # tapes know the variable, whoever reads it
            recorder._variable_read(self, value)
        return value

    def _current(self) -> Any:
        number = self._number()
        if number is None and self._on_read:
            return self._joined([super()._current(), *[copy._current() for copy in self._others]])
        return self._others[number - 1]._current() if number else super()._current()

    def _joined(self, values: Sequence[Any]) -> Any:
        """What the values of all replicas are together."""
        if self._aggregation not in (_SUM, _MEAN):
            return values[0]
        if self._strategy._group.size > 1 and not replica.own.get():
            return collective.reduced(self._strategy, [[value] for value in values], (
                ReduceOp.from_variable_aggregation(self._aggregation)))[0]
        total = functools.reduce(ops.add, values)
        return total if self._aggregation is _SUM else total / tf.constant(len(values), total.dtype)

    # -- writing ----------------------------------------------------------------------------------
    def _set(self, value: Any) -> Any:
        number = self._number()
        if number is None:
            return self._set_all(value)
        return self._assigned(number, value, lambda total: self._own_set(number, total))

    def _own_set(self, number: int, value: Any) -> Any:
        if number:
            self._others[number - 1]._set(value)
        else:
            super()._set(value)
        return self

    def _set_all(self, value: Any) -> Any:
        """An assignment outside of replicas: of a sum the first has all."""
        others = tf.zeros_like(value) if self._on_read and self._aggregation is _SUM else value
        super()._set(value if self._strategy._group.rank == 0 else others)
        for copy in self._others:
            copy._set(others)
        return self

    def _update(self, op: Any, delta: Any) -> Any:
        number, change = self._number(), convert.as_tensor(delta, dtype=self.dtype)
        if number is None:
            return self._set_all(op(self._current(), change))
        return self._assigned(number, change, lambda total: self._own_update(number, op, total))

    def _own_update(self, number: int, op: Any, delta: Any) -> Any:
        if number:
            self._others[number - 1]._update(op, delta)
        else:
            with replica.assigning_alike():  # what was reduced, if it was to be, is not again
                super()._update(op, delta)
        return self

    def _change(self, change: Callable[[Any], Any]) -> Any:
        number = self._number()
        if number is None:
            return self._set_all(change(self._current()))
        if self._on_read or replica.alike.get():
            if number:
                self._others[number - 1]._change(change)
            else:
                super()._change(change)
            return self
        return self._set(change(self._current()))

    def _assigned(self, number: int, value: Any, assign: Callable[[Any], Any]) -> Any:
        """An assignment in a replica: of its own where copies may differ, or are assigned alike; else of what the
        values of all replicas are together.

        Raises:
            ValueError: nothing says what they are together.
        """
        if self._on_read or replica.alike.get():
            return assign(value)
        place: Any = _place.get()
        if self._aggregation in (_SUM, _MEAN):
            return assign(place.replica.all_reduce("SUM" if self._aggregation is _SUM else "MEAN", value))
        if self._aggregation is tf.VariableAggregation.ONLY_FIRST_REPLICA:
            part = value if place.replica._id == 0 else tf.zeros_like(value)
            return assign(place.replica.all_reduce("SUM", part))
        raise ValueError("You must specify an aggregation method to update a variable of several replicas in one of "
                         "them: make it with aggregation=tf.VariableAggregation.SUM, MEAN or ONLY_FIRST_REPLICA.")


@functools.cache
def _mirrored(kind: type[Variable]) -> type[Variable]:
    """The class of variables of a class that have copies: what a class does of its own comes first."""
    bases = (MirroredVariable,) if kind is Variable else (kind, MirroredVariable)
    make: Any = type(kind)
    made: type[Variable] = make(f"Mirrored{kind.__name__}", bases, {"__slots__": (), "__module__": __name__})
    return made
