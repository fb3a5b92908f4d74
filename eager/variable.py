"""`Variable`: a tensor that can be replaced, with a name and an identity.

A variable holds a tensor; assigning swaps it for another, so values read before stay what they were.
It lives as long as its last reference. Wherever an op takes a tensor it takes a variable: conversion
calls `_read_tensor`, which tells the recorders of the context.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from twofold.ir import dtypes as dt
from twofold.ir import ops
from twofold.ir.dtypes import DType, DTypeLike
from twofold.ir.op import Op, tracing
from twofold.ir.spec import ShapeLike, TensorShape
from twofold.runtime import claims, program_call
from twofold.runtime.calls import KernelCheck
from twofold.runtime.leaving import for_the_user
from twofold.runtime.native_layout import PythonFunction

from . import conversions, convert, in_place, indexing, naming
from .aggregation import VariableAggregation, VariableSynchronization
from .record import active, record_custom
from .scatter import ScatterMethods
from .sessions import SessionMethods
from .tensor import NumpyValue, Tensor, TensorRef, alias, beside, text_of, where_asked

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Variable", "created", "creators"]

_orders = itertools.count()

#: functions that are told of each variable that is made outside of traces, in this context
created: ContextVar[tuple[Callable[[Variable], object], ...]] = ContextVar("variables_created", default=())
#: functions `creator(next_creator, **kwargs)` through which variables are made in this context, outer ones first
creators: ContextVar[tuple[PythonFunction, ...]] = ContextVar("variable_creators", default=())

# Gives a legal value for one that an optimizer has assigned.
Constraint: TypeAlias = "Callable[[Variable], object]"


class _Creating(type):
    """The metaclass of variables: a call of the class goes through the creators of this context; see `creators`."""

    @for_the_user
    def __call__(cls, *args: object, **kwargs: object) -> Any:  # a creator gives what it likes
        """A variable, or the result of a creator in its place."""
        if not creators.get():
            return type.__call__(cls, *args, **kwargs)
        initializer: Callable[..., None] = cls.__init__  # type: ignore[misc]
        signature = inspect.signature(initializer)
        if "initial_value" not in signature.parameters:  # a class of users, which creators know nothing of
            return type.__call__(cls, *args, **kwargs)
        bound = signature.bind(None, *args, **kwargs)
        bound.apply_defaults()
        arguments = {k: v for k, v in bound.arguments.items() if k != "self"}
        make: PythonFunction = functools.partial(type.__call__, cls)
        for creator in creators.get():  # those of inner scopes come last and are asked first
            make = functools.partial(creator, make)
        return make(**arguments)


class Variable(ScatterMethods, SessionMethods, metaclass=_Creating):
    """A mutable tensor, such as a parameter of a model.

    Args:
        initial_value: the first value: anything that converts to a tensor, or a function of no arguments.
        trainable: whether gradient tapes watch it by themselves; by default those of float and complex dtype that are
            not synchronised when they are read.
        validate_shape: whether the shape is fixed by the initial value.
        caching_device, variable_def, import_scope: accepted, without effect.
        synchronization, aggregation: in the scope of a strategy of several replicas in one process
            (`tf.distribute.MirroredStrategy`), when the replicas' copies become equal, and how; else without effect.
            Members of `tf.VariableSynchronization` and `tf.VariableAggregation`.
        name: its name; `.name` adds ":0".
        dtype: the dtype to convert the initial value to.
        constraint: a function of the value, which optimizers apply after an update.
        shape: a shape more general than the initial value's that later values must fit.
    Raises:
        ValueError: there is no initial value, or it does not fit `shape`.

    >>> import twofold as tf
    >>> v = tf.Variable([1.0, 2.0], name="w")
    >>> v.assign_add([10.0, 10.0])
    <tf.Variable 'w:0' shape=(2,) dtype=float32, numpy=array([11., 12.], dtype=float32)>
    """

    # Compiled functions read and write the value where it lies, and the word that says who is at work on it.
    __slots__ = ("_value", "_word", "__dict__", "__weakref__")
    __array_priority__ = 100

    _value: Tensor
    _word: bytes
    _aggregation = VariableAggregation.NONE
    _synchronization = VariableSynchronization.AUTO

    def __init__(self, initial_value: object = None, trainable: bool | None = None, validate_shape: bool = True,
                 caching_device: object = None, name: str | None = None, variable_def: object = None,
                 dtype: DTypeLike | None = None, import_scope: object = None,
                 constraint: Constraint | None = None, synchronization: VariableSynchronization | None = None,
                 aggregation: VariableAggregation | None = None, shape: ShapeLike = None):
        if initial_value is None:
            raise ValueError("The `initial_value` arg to `tf.Variable` must be specified.")
        wanted = None if dtype is None else dt.as_dtype(dtype)
        trace = tracing()
        start = _start(initial_value, wanted) if trace is None else trace.initial_value(initial_value, wanted)
        self._shape = TensorShape(shape) if shape is not None else start.shape if validate_shape else TensorShape(None)
        if not self._shape.is_compatible_with(start.shape):
            raise ValueError(f"The initial value's shape ({start.shape}) is not compatible with the explicitly "
                             f"supplied `shape` argument ({self._shape}).")
        self._value = alias(start)
        self._name = naming.full_name("Variable" if name is None else name)
        on_read = synchronization is VariableSynchronization.ON_READ
        self._trainable = start.dtype.is_differentiable and not on_read if trainable is None else bool(trainable)
        self._constraint = constraint
        if aggregation is not None:
            self._aggregation = aggregation
        if synchronization is not None:
            self._synchronization = synchronization
        self._begin()
        self._tell()

    def _begin(self) -> None:
        """Set the attributes that belong to this object alone, which copies do not share."""
        self._word = claims.fresh_word()
        self._order = next(_orders)  # tapes list variables in the order in which they were made

    def _tell(self) -> None:
        """Tell the trace, or whoever asked for it, that there is a new variable."""
        trace = tracing()
        if trace is not None:
            trace.created.append(self)
        else:
            for function in created.get():
                function(self)

    # -- reading ----------------------------------------------------------------------------------
    def _read_tensor(self) -> Tensor:
        trace = tracing()
        value: Tensor = self._value if trace is None else trace.read_variable(self)
        recorders = active.get()
        if recorders and "_order" in self.__dict__:  # not of classes whose `__init__` is not ours: see `__getattr__`
            for recorder in recorders:
                recorder._variable_read(self, value)
        return value

    def _current(self) -> Tensor:
        """The value at this point, without telling anybody."""
        trace = tracing()
        return self._value if trace is None else trace.read_variable(self)

    # `_read_tensor` and `_current` of the value that this very object keeps. Variables of several replicas
    # (`tf.distribute`) override those two, to read the copy of a replica or the sum of all, but never these, which are
    # for traces: what a trace has captured is one of the copies.
    _kept_tensor, _kept = _read_tensor, _current

    def __getattr__(self, name: str) -> Any:  # whatever attribute is asked for
        """The value, where a compiled function in another thread writes it in place: wait until it has.

        A user's class may derive from this one without calling its `__init__`, and keep values in a way of its own; it
        registers how its objects become tensors, and what that gives is the value.
        """
        if name == "_value":
            if "_order" in self.__dict__:
                return claims.wait_for_value(lambda: object.__getattribute__(self, name))
            value = conversions.converted(self, None, None)
            if value is not None:
                return value
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def read_value(self) -> Tensor:
        """The current value; later assignments do not change it."""
        return ops.identity(self._read_tensor())

    def value(self) -> Tensor:
        """The current value as a tensor."""
        return self._read_tensor()

    def numpy(self) -> NumpyValue:
        """The value as a NumPy array of its own, or a NumPy scalar."""
        return self._current().numpy()

    @property
    def dtype(self) -> DType:
        """The element type, fixed for ever."""
        return self._value.dtype

    @property
    def shape(self) -> TensorShape:
        """The shape that every value fits."""
        return self._shape

    @property
    def dims(self) -> tuple[int, ...]:
        """The current value's shape as a plain tuple, for shape rules."""
        return self._value.dims

    @property
    def ndim(self) -> int:
        """The number of dimensions of the current value."""
        return self._value.ndim

    @property
    def name(self) -> str:
        """The name, with TensorFlow's suffix ":0"."""
        return f"{self._name}:0"

    @property
    def trainable(self) -> bool:
        """Whether tapes watch it by themselves."""
        return self._trainable

    @property
    def constraint(self) -> Constraint | None:
        """The function that keeps values legal, or None."""
        return self._constraint

    @property
    def aggregation(self) -> VariableAggregation:
        """What becomes of what replicas assign (`tf.distribute`)."""
        return self._aggregation

    @property
    def synchronization(self) -> VariableSynchronization:
        """When copies for replicas become equal (`tf.distribute`)."""
        return self._synchronization

    @property
    def device(self) -> str:
        """The full name of the device that holds the value."""
        return self._value.device

    @property
    def handle(self) -> Variable:
        """The variable itself: there are no separate resource handles."""
        return self

    def get_shape(self) -> TensorShape:
        """The shape; the same as `.shape`."""
        return self._shape

    def ref(self) -> TensorRef:
        """A hashable reference to this variable."""
        return TensorRef(self)

    @property
    def _unique_id(self) -> str:
        """A name that no other variable has, by which libraries know it."""
        return f"{self._name}_{self._order}"

    @property
    def _label(self) -> str:
        """The name that errors give it."""
        return f"variable '{self.name}'"

    # -- writing ----------------------------------------------------------------------------------
    def assign(self, value: object, use_locking: bool = False, name: str | None = None,
               read_value: bool = True) -> Variable:
        """Replace the value.

        Args:
            value: of this variable's dtype and a fitting shape.
            use_locking, name, read_value: accepted, without effect.
        Returns:
            The variable.
        Raises:
            ValueError: the shape does not fit. DTypeError: the dtype differs.
        """
        del use_locking, name, read_value
        return self._set(convert.as_tensor(value, dtype=self.dtype))

    def assign_add(self, delta: object, use_locking: bool = False, name: str | None = None,
                   read_value: bool = True) -> Variable:
        """Add `delta` (this variable's dtype and shape) to the value; returns the variable.

        `use_locking`, `name` and `read_value` have no effect.
        """
        return self._update(ops.add, delta)

    def assign_sub(self, delta: object, use_locking: bool = False, name: str | None = None,
                   read_value: bool = True) -> Variable:
        """Subtract `delta` (this variable's dtype and shape) from the value; returns the variable.

        `use_locking`, `name` and `read_value` have no effect.
        """
        return self._update(ops.subtract, delta)

    def _update(self, op: Op, delta: object) -> Variable:
        if type(delta) is Tensor and tracing() is None:  # what follows, spelt out: this runs for every training step
            before = self._value
            if before._memory.dtype is delta._memory.dtype:
                after = op(before, delta)
                if after._memory.shape != before._memory.shape:
                    self._check(after)
                if claims.swap(self, _assigned(before, after), before):
                    return self
        change = convert.as_tensor(delta, dtype=self.dtype)
        return self._change(lambda value: op(value, change))

    def _change(self, change: Callable[[Tensor], Tensor]) -> Self:
        """Assign the result of `change` for the present value, as one step for other threads. Returns the result of
        `_set`."""
        trace = tracing()
        if trace is not None:
            return self._set(change(trace.read_variable(self)))
        before = self._value
        after = change(before)
        self._check(after)
        if not claims.swap(self, _assigned(before, after), before):  # another thread assigned: claim it
            with self._claimed():
                before = self._value
                after = change(before)
                self._check(after)
                claims.commit((self,), (_assigned(before, after),))
        return self

    def _overwrite(self, change: Callable[[Tensor], Tensor]) -> bool:
        """Assign the result of `change`, which may have the memory of the value, if nobody else refers to that; else
        nothing is done, nor where `change` finds an index that is out of range. Meanwhile the variable has no value,
        for which those wait who read it."""
        with self._claimed():
            tensor = self._value
            try:
                del self._value
                if in_place.is_alone(tensor):
                    tensor = change(tensor)
                    return True
            except KernelCheck:
                pass  # who assigns in another way is told
            finally:
                self._value = tensor
        return False

    def _set(self, value: Tensor) -> Self:
        """Assign a tensor; gives the variable, or the assignment as an operation in a graph of version 1."""
        self._check(value)
        trace = tracing()
        if trace is not None:
            assignment = trace.assign_variable(self, value)
            return self if assignment is None else assignment
        before = self._value
        if not claims.swap(self, _assigned(before, value)):
            with self._claimed():
                claims.commit((self,), (_assigned(self._value, value),))
        return self

    def _take(self, value: Tensor) -> None:
        """In a trace, note the value that a compiled function assigns, as the tensor that recorders know."""
        tracing().assigned_within(self, value)

    def _claimed(self) -> claims.claimed:
        """A block in which nobody else assigns the variable."""
        return claims.claimed(claims.Claim((), (self._word,)))

    def _check(self, value: Tensor) -> None:
        """Raise ValueError unless `value` has a shape that this variable can hold."""
        if self._shape._dims != value.dims and not self._shape.is_compatible_with(value.shape):
            raise ValueError(f"Cannot assign value to variable '{self.name}': Shape mismatch."
                             f"The variable shape {self._shape}, and the assigned value shape {value.shape} are "
                             "incompatible.")

    def __getitem__(self, key: object) -> VariableSlice:
        trace = tracing()
        return _Sliced(self, key)._tensor() if trace is None else trace.sliced(_Sliced(self, key))

    def __setitem__(self, key: object, value: object) -> None:
        raise TypeError("'Variable' object does not support item assignment: use v[...].assign(value).")

    # -- to Python and NumPy ----------------------------------------------------------------------
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return self._current().__array__(dtype, copy)

    def __bool__(self) -> bool:
        return bool(self._read_tensor())

    def __int__(self) -> int:
        return int(self._current())

    def __float__(self) -> float:
        return float(self._current())

    def __complex__(self) -> complex:
        return complex(self._current())

    def __index__(self) -> int:
        return self._read_tensor().__index__()

    def __len__(self) -> int:
        return len(self._current())

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._read_tensor())

    def __format__(self, spec: str) -> str:
        return str(self) if not spec else self._current().__format__(spec)

    def __hash__(self) -> int:
        raise TypeError("Variable is unhashable. Instead, use variable.ref() as the key.")

    def __reduce__(self) -> tuple[object, ...]:
        return (_remade, (type(self), self._value, self._state()))

    def __deepcopy__(self, memo: dict[int, object]) -> Variable:
        import copy
        return _remade(type(self), self._value, copy.deepcopy(self._state(), memo))

    def _state(self) -> dict[str, object]:
        """The state of the variable apart from its value and what `_begin` sets."""
        return {name: value for name, value in vars(self).items() if name != "_order"}

    def __repr__(self) -> str:
        if tracing() is not None:
            return f"<tf.Variable '{self.name}' shape={self._shape} dtype={self.dtype.name}>"
        text = text_of(self._value._array, True)
        return f"<tf.Variable '{self.name}' shape={self._shape} dtype={self.dtype.name}, numpy={text}>"


def _remade(cls: type[Variable], value: Tensor, state: dict[str, object]) -> Variable:
    """A variable like another one, from its value and the rest of its state."""
    variable, trace = cls.__new__(cls), tracing()
    vars(variable).update(state)
    variable._value = alias(value if trace is None else trace.initial_value(value, None))
    variable._begin()
    variable._tell()
    return variable


class _Sliced:
    """`variable[key]`: reads as a tensor, and can be assigned to."""

    def __init__(self, variable: Variable, key: object):
        self._variable, self._key = variable, key

    def _tensor(self) -> VariableSlice:
        value = indexing.index(self._variable._read_tensor(), self._key)
        part = VariableSlice.__new__(VariableSlice)
        part._memory = value._memory
        part._id = getattr(value, "_id", 0)
        part._source = self
        return part


class SliceMethods:
    """The methods that a part of a variable has beside a tensor's."""

    __slots__ = ()

    _source: _Sliced
    dtype: DType

    @property
    def _label(self) -> str:
        """The name that errors give it."""
        return f"a part of {self._source._variable._label}"

    def assign(self, value: object, name: str | None = None) -> Variable:
        """Replace this part of the variable; returns the variable."""
        tensor = convert.as_tensor(value, dtype=self.dtype)
        return self._write(lambda part: tensor)

    def assign_add(self, delta: object, name: str | None = None) -> Variable:
        """Add to this part of the variable; returns the variable."""
        tensor = convert.as_tensor(delta, dtype=self.dtype)
        return self._write(lambda part: ops.add(part, tensor))

    def assign_sub(self, delta: object, name: str | None = None) -> Variable:
        """Subtract from this part of the variable; returns the variable."""
        tensor = convert.as_tensor(delta, dtype=self.dtype)
        return self._write(lambda part: ops.subtract(part, tensor))

    def _write(self, change: Callable[[Tensor], Tensor]) -> Variable:
        """Assign to this part what `change` computes from it, as one step for other threads."""
        key = self._source._key

        def whole(value: Tensor) -> Tensor:
            return indexing.strided_slice_assign(value, key, change(indexing.index(value, key)))
        self._source._variable._change(whole)
        return self._source._variable


class VariableSlice(SliceMethods, Tensor):
    """A part of a variable: a tensor that also takes `assign`, `assign_add` and `assign_sub`."""

    __slots__ = ("_source",)


def _start(initial_value: object, dtype: DType | None) -> Tensor:
    """The first value of a variable."""
    if callable(initial_value) and not isinstance(initial_value, Variable):
        initial_value = initial_value()
    return where_asked(convert.as_tensor(initial_value, dtype=dtype))


def _assigned(before: Tensor, value: Tensor) -> Tensor:
    """The value of a variable after `value` was assigned.

    Its gradient is the variable's: recorders that follow the value before take it to come from that, and never from
    what was assigned.
    """
    after = alias(beside(value, before))
    recorders = active.get()
    if recorders and before.dtype.is_differentiable and before._memory.shape == value._memory.shape and any(
            r._follows(before) for r in recorders):
        record_custom(lambda cts: list(cts), (before,), (after,))
    return after



program_call.bind_variables(Variable)
