"""What public functions share: the guard that keeps our frames out of tracebacks, and argument readers."""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from twofold.eager import convert, entries
from twofold.eager.tensor import Tensor
from twofold.ir import dtypes as dt
from twofold.ir import nest, ops
from twofold.ir.dims import Dim
from twofold.ir.errors import (
    ChoiceNeeded,
    CompositeOperand,
    InvalidArgumentError,
    SymbolicOperand,
    describe,
    is_ours,
    user_line,
)
from twofold.ir.op import Op, tracing
from twofold.ir.spec import TensorShape, as_numpy, listed, mapped, no_item, numbered
from twofold.runtime import native
from twofold.runtime.leaving import for_the_user, leave
from twofold.runtime.native import stand_in, unguarded
from twofold.runtime.random import mark, refusable
from twofold.tracer import choices  # noqa: F401  (answers `ChoiceNeeded`)
from twofold.tracer.symbolic import SymbolicValueError

__all__ = ["ANY", "SymbolicOperand", "SymbolicValueError", "public", "public_op", "public_class", "tensor", "as_numpy",
           "ints", "one_int", "axis_arg", "axis_span", "same_axis", "shape_arg", "describe", "user_line", "listed",
           "mapped", "no_item", "numbered", "parts", "one_number", "one_part", "one_size", "is_open", "is_ours",
           "staged", "stand_in", "told", "leave", "for_the_user", "unguarded", "block", "tells", "untold",
           "open_methods", "mark", "refusable"]

F = TypeVar("F", bound=Callable[..., Any])


def public(fn: F) -> F:
    """Make `fn` a public function: an error it raises shows the user's frames only."""
    return native.guard(fn)  # type: ignore[return-value]


def public_op(op: Op, own: bool = False) -> Callable[[F], F]:
    """Make the decorated function public, which without further arguments does nothing but hand its first ones on to
    `op`, where these are tensors that the op's native entry computes.

    Calls with just these arguments go to an entry at once, where the op has one.

    Args:
        own: whether the function, and not the op, is called with what the entry does not compute: as it must be where
            it does something else with that, such as strings. So it is in any case where the function has another name
            than the op, since errors of the entry say a name.
    """
    def make(fn: F) -> F:
        direct = entries.ENTRIES.get(op)
        if direct is not None and (own or fn.__name__.rstrip("_") != op.name):
            direct = entries.another(op, fn)
        return native.guard(fn, direct=direct)  # type: ignore[return-value]
    return make


C = TypeVar("C", bound=type)


def public_class(cls: C) -> C:
    """Make the methods of `cls` without an underscore, and its `__init__`, public functions."""
    for name, value in list(vars(cls).items()):
        if isinstance(value, classmethod):
            setattr(cls, name, classmethod(native.as_method(public(value.__func__))))
        elif inspect.isfunction(value) and (name == "__init__" or not name.startswith("_")):
            setattr(cls, name, native.as_method(public(value)))
    return cls


def told(fn: F) -> F:
    """`fn` as a Python function with the errors of a public function: for methods, of which Python needs the function
    itself.

    `fn` itself is the result's `__wrapped__`.
    """
    @functools.wraps(fn)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        since = mark()
        try:
            return fn(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 (whatever it is, it goes on)
            raise leave(error, fn, since, sys._getframe(1))  # noqa: B904
    return tells(guarded)  # type: ignore[return-value]


class _Block(contextlib.ContextDecorator, contextlib.AbstractContextManager[Any]):
    """The `with` block of a generator function, whose errors on entry are those of a public function."""

    def __init__(self, fn: Callable[..., Iterator[Any]], make: Callable[..., Any], args: tuple[Any, ...],
                 kwargs: dict[str, Any]) -> None:
        self._made = fn, make, args, kwargs
        self._inner = make(*args, **kwargs)

    def _recreate_cm(self) -> _Block:  # for each call of a function that it decorates
        return _Block(*self._made)

    def __enter__(self) -> Any:
        try:
            return self._inner.__enter__()
        except Exception as error:  # noqa: BLE001 (whatever it is, it goes on)
            raise leave(error, self._made[0], caller=sys._getframe(1))  # noqa: B904

    def __exit__(self, *exc: Any) -> bool | None:
        return self._inner.__exit__(*exc)


def block(fn: Callable[..., Iterator[Any]]) -> Callable[..., contextlib.AbstractContextManager[Any]]:
    """A generator function as a public one that gives a `with` block, as `contextlib.contextmanager` does."""
    return public(_entering(fn))


def _entering(fn: Callable[..., Iterator[Any]]) -> Callable[..., contextlib.AbstractContextManager[Any]]:
    make = contextlib.contextmanager(fn)

    @functools.wraps(fn)
    def enter(*args: Any, **kwargs: Any) -> contextlib.AbstractContextManager[Any]:
        return _Block(fn, make, args, kwargs)
    return enter


def untold(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function that `told` wrapped; any other function itself. For calls within a function that has a guard
    already."""
    return fn.__wrapped__ if hasattr(fn, "__tells__") and hasattr(fn, "__wrapped__") else fn


def tells(fn: F) -> F:
    """Marks a function that has a guard of its own, so that `open_methods` leaves it as it is."""
    fn.__tells__ = True  # type: ignore[attr-defined]
    return fn


# Methods with underscores that users call, by syntax.
_BY_SYNTAX = frozenset({"__init__", "__new__", "__call__", "__enter__", "__add__", "__radd__", "__getitem__",
                        "__setitem__", "__delitem__", "__contains__"})


def open_methods(cls: type) -> None:
    """Let the errors of what users call of a public class say what those of a public function say (`told`).

    These are its methods without an underscore, its constructor, calls and blocks, and the setters of its
    properties, also those that it has from our own classes above it. `namespace.publish` opens all public classes.
    Those that take nothing, which cannot be wrong, abstract ones, and those with a guard of their own (`public_class`)
    stay as they are.
    """
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] == "twofold":
            for name, value in list(vars(base).items()):
                if not name.startswith("_") or name in _BY_SYNTAX:
                    opened = value if _takes_nothing(value) and name != "__enter__" else _opened(value)
                    if opened is not value:
                        setattr(base, name, opened)


def _opened(value: Any) -> Any:
    """An attribute of a public class with a guard; the attribute itself where it is no method of ours."""
    if isinstance(value, (classmethod, staticmethod)):
        inner = _opened(value.__func__)
        return value if inner is value.__func__ else type(value)(inner)
    if isinstance(value, property):
        setter = _opened(value.fset)
        return value if setter is value.fset else value.setter(setter)
    if not inspect.isfunction(value) or hasattr(value, "__tells__"):
        return value
    inner = getattr(value, "__wrapped__", value)
    if inspect.isgeneratorfunction(inner) and value.__code__.co_filename == contextlib.__file__:  # `contextmanager`
        return told(_entering(inner)) if is_ours(inner.__code__.co_filename) else value
    if not is_ours(value.__code__.co_filename):
        return value
    return value if getattr(value, "__isabstractmethod__", False) else told(value)


def _takes_nothing(value: Any) -> bool:
    """Whether an attribute of a class is a method without parameters."""
    code = getattr(getattr(value, "__func__", value), "__code__", None)
    least = int(not isinstance(value, staticmethod))
    return code is not None and code.co_argcount + code.co_kwonlyargcount <= least and not code.co_flags & (
        inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)


def tensor(value: Any, dtype: Any = None, hint: Any = None) -> Tensor:
    """`value` as a tensor, of `dtype` when one is given; see `eager.convert.as_tensor`."""
    return convert.as_tensor(value, None if dtype is None else dt.as_dtype(dtype),
                             None if hint is None else dt.as_dtype(hint))


# The least value of an integer that must be known, and the first that is too large; or a function that tells them.
Span = tuple[int, int] | Callable[[], tuple[int, int]]
ANY: Span = (-(1 << 63), 1 << 63)  # more than can be staged: a traced tensor must be known


def ints(value: Any, what: str = "value", span: Span | None = None) -> tuple[Any, ...]:
    """Integers (or Dims) of an argument: a number, sequence, array, tensor or TensorShape.

    Args:
        span: for integers that decide how a function is put together, such as axes: then there are no Dims among them,
            and where a traced tensor holds one, the function is staged for each value in the span
            (`tracer/choices.py`).
    Raises:
        TypeError: it holds something that is not an integer.
        ChoiceNeeded: it is to be staged for each value; handled by the tracer.
    """
    if isinstance(value, (int, np.integer, Dim)) and not isinstance(value, bool):
        return (value if isinstance(value, Dim) else _in_64_bits(int(value), what),)
    if isinstance(value, TensorShape):
        return tuple(value.as_list())
    if hasattr(value, "_read_tensor"):
        value = value._read_tensor()
    if isinstance(value, Tensor):
        if not value.dtype.is_integer:
            raise TypeError(f"{what} must hold integers; got dtype {value.dtype.name}.")
        if hasattr(value, "sizes"):  # a traced tensor
            return value.sizes() if span is None else _known(value, what, span)
        value = value.numpy()
    if isinstance(value, (str, bytes)):  # Python's integers of bytes are not meant
        raise TypeError(f"{what} must be an integer or a sequence of integers; got {value!r}.")
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype.kind not in "iu" and value.size:
            raise TypeError(f"{what} must hold integers; got dtype {value.dtype}.")
        return tuple(int(v) for v in np.ravel(value))
    return _each(value, what, span, value)


def _each(items: Any, what: str, span: Span | None, given: Any) -> tuple[Any, ...]:
    """The integers of a sequence that is part of what was given, or all of it."""
    if nest.is_composite(items):
        raise CompositeOperand(items)
    try:
        return tuple(v if isinstance(v, Dim) else _int(v, what, span) for v in listed(items, what))
    except (ChoiceNeeded, CompositeOperand, InvalidArgumentError):
        raise
    except TypeError:
        raise TypeError(f"{what} must be an integer or a sequence of integers; got {given!r}.") from None


def parts(value: Any, what: str = "value") -> list[Any]:
    """Integers of an argument as `ints` reads them, but with scalar tensors for those that only running can tell.

    They may be negative; as sizes they are what `ints` gives for them.
    """
    if tracing() is None:
        return list(ints(value, what))
    if hasattr(value, "_read_tensor"):
        value = value._read_tensor()
    if isinstance(value, Tensor) and hasattr(value, "parts"):
        if not value.dtype.is_integer:
            raise TypeError(f"{what} must hold integers; got dtype {value.dtype.name}.")
        return value.parts()
    if not isinstance(value, (list, tuple)):
        return list(ints(value, what))
    pieces: list[Any] = []
    for item in value:
        item = _size(item)
        scalar = hasattr(item, "parts") and not item.dims and item.dtype.is_integer
        pieces += item.parts() if scalar else _each((item,), what, None, value)
    return pieces


def one_part(value: Any, what: str) -> Any:
    """One integer, a Dim, or a scalar tensor where only running can tell it.

    Raises:
        TypeError: it is no integer. InvalidArgumentError: there is not one.
    """
    pieces = parts(value, what)
    if len(pieces) != 1:
        raise InvalidArgumentError(f"{what} must be one integer; got {value!r}.")
    return pieces[0]


def is_open(part: Any) -> bool:
    """Whether a part that `parts` gave is known only when a function runs."""
    return isinstance(part, Tensor)


def one_size(value: Any, what: str) -> Any:
    """One size: an integer, not negative, or a Dim.

    Raises:
        TypeError: it is no integer. InvalidArgumentError: there is not one, or it is negative.
    """
    sizes = ints(value, what)
    if len(sizes) != 1:
        raise InvalidArgumentError(f"{what} must be one integer; got {value!r}.")
    if isinstance(sizes[0], int) and sizes[0] < 0:
        raise InvalidArgumentError(f"{what} must not be negative; got {sizes[0]}.")
    return sizes[0]


def _int(value: Any, what: str, span: Span | None) -> Any:
    if type(value) is int:
        return _in_64_bits(value, what)
    if span is None:
        value = _size(value)
    elif hasattr(value, "_read_tensor"):
        value = value._read_tensor()
    if hasattr(value, "sizes"):
        if value.dims or not value.dtype.is_integer:
            raise TypeError(value)
        return (value.sizes() if span is None else _known(value, what, span))[0]
    if isinstance(value, (bool, float)) or value is None:
        raise TypeError(value)
    return _in_64_bits(operator.index(value), what)


def _size(item: Any) -> Any:
    """An item of a sequence of sizes: a scalar tensor of floats as the integer that TensorFlow makes of it there."""
    item = item._read_tensor() if hasattr(item, "_read_tensor") else item
    if isinstance(item, Tensor) and item.dtype.is_floating and not item.dims:
        return ops.cast(item, dtype=dt.int32)
    return item


def _in_64_bits(value: int, what: str) -> int:
    if not -(1 << 63) <= value < 1 << 63:
        raise InvalidArgumentError(f"{what} holds an integer that does not fit in 64 bits.")
    return value


def _known(value: Any, what: str, span: Span) -> tuple[int, ...]:
    """The elements of a traced tensor as numbers.

    Raises:
        ChoiceNeeded: only running can tell them.
    """
    elements = value.known_elements()
    if elements is None:
        raise ChoiceNeeded(value, span() if callable(span) else span, what)
    return elements


def one_int(value: Any, what: str, span: Span = ANY) -> int:
    """One integer that decides how a function is put together; see `ints`.

    Args:
        span: by default any value, which is more than can be staged: a traced tensor must be known.
    Raises:
        TypeError: it is no integer. InvalidArgumentError: there is not one.
    """
    numbers = ints(value, what, span)
    if len(numbers) != 1:
        raise InvalidArgumentError(f"{what} must be one integer; got {value!r}.")
    return numbers[0]


def one_number(value: Any, what: str) -> float:
    """One real number that is a setting of a function: Python's, NumPy's, or a tensor's whose value is there.

    Raises:
        TypeError: it is none, such as an iterable, which arithmetic would read to its end.
    """
    if hasattr(type(value), "__float__") or hasattr(type(value), "__index__"):
        try:
            return float(value)
        except SymbolicValueError:  # a trace does not know it
            raise
        except (TypeError, ValueError, OverflowError):  # an array of several, an integer that is too large
            pass
    raise TypeError(f"{what} must be a number; got {describe(value)}.")


def axis_span(x: Any, more: int = 0) -> Span:
    """The values that an axis of a tensor may have, or of one with `more` axes."""
    def span() -> tuple[int, int]:
        rank = len(convert.as_tensor(x).dims) + more
        return -rank, rank
    return span


def axis_arg(axis: Any, x: Any) -> tuple[int, ...] | None:
    """An `axis` argument for a tensor, as ops take it: None for all axes, else a tuple."""
    return None if axis is None else ints(axis, "axis", axis_span(x))


def same_axis(axis: Any, x: Any) -> Any:
    """An `axis` argument that several functions get, as a number, a tuple of numbers or None.

    Where only running can tell it, the caller is staged for each value, and not the functions one by one, between which
    sizes would be unknown.
    """
    numbers = axis_arg(axis, x)
    return numbers if numbers is None or len(numbers) != 1 else numbers[0]


def shape_arg(shape: Any) -> tuple[Any, ...]:
    """A `shape` argument as ops take it."""
    return ints(shape, "shape")


def staged(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The form of a user's function to call in a trace: with staged control flow."""
    from twofold.tracer import autograph
    return autograph.callee(fn)
