"""What libraries decorate their functions with, and ask of those of others: private modules of TensorFlow.

`util.deprecation` warns of old arguments, `util.tf_inspect` reads signatures, `util.tf_export` names what is public.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

__all__ = ["deprecation", "export", "inspection"]

F = TypeVar("F", bound=Callable[..., Any])
_quiet = [0]


def _warn(text: str) -> None:
    if not _quiet[0]:
        warnings.warn(text, DeprecationWarning, stacklevel=4)


def deprecated(date: str | None, instructions: str, warn_once: bool = True) -> Callable[[F], F]:
    """A decorator: calls of the function, or of the class, warn that it is old."""
    def decorate(function: F) -> F:
        called: Any = vars(function).get("__init__", object.__init__) if isinstance(function, type) else function

        @functools.wraps(called)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            _warn(f"{function.__qualname__} is deprecated: {instructions}")
            return called(*args, **kwargs)

        if isinstance(function, type):
            function.__init__ = wrapper  # type: ignore[misc]
            return function
        return wrapper  # type: ignore[return-value]

    return decorate


def deprecated_args(date: str | None, instructions: str, *names: Any, **kwargs: Any) -> Callable[[F], F]:
    """A decorator: calls that give one of these arguments warn that it is old."""
    usual = {name[0]: name[1:] for name in names if isinstance(name, tuple)}
    old = [name[0] if isinstance(name, tuple) else name for name in names]

    def decorate(function: F) -> F:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind_partial(*args, **kwargs).arguments if not _quiet[0] else {}
            for name in old:
                if name in given and not any(given[name] is value for value in usual.get(name, ())):
                    _warn(f"the argument {name} of {function.__qualname__} is deprecated: {instructions}")
            return function(*args, **kwargs)

        return wrapper  # type: ignore[return-value]

    return decorate


def deprecated_arg_values(date: str | None, instructions: str, warn_once: bool = True,
                          **values: Any) -> Callable[[F], F]:
    """A decorator: calls that give these arguments these values warn that they are old."""
    def decorate(function: F) -> F:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind_partial(*args, **kwargs).arguments if not _quiet[0] else {}
            for name, value in values.items():
                if name in given and type(given[name]) is type(value) and given[name] == value:
                    _warn(f"{name}={value!r} of {function.__qualname__} is deprecated: {instructions}")
            return function(*args, **kwargs)

        return wrapper  # type: ignore[return-value]

    return decorate


def deprecated_alias(deprecated_name: str, name: str, func_or_class: Any, warn_once: bool = True) -> Any:
    """A function or a class under its old name, calls of which warn."""
    note = deprecated(None, f"Please use {name} instead.")
    if not isinstance(func_or_class, type):
        return note(func_or_class)
    begin: Any = vars(func_or_class).get("__init__", func_or_class.__init__)  # type: ignore[misc]
    return type(func_or_class.__name__, (func_or_class,), {"__init__": note(begin)})


def deprecated_argument_lookup(new_name: str, new_value: Any, old_name: str, old_value: Any) -> Any:
    """The value of an argument that has two names.

    Raises:
        ValueError: both are given.
    """
    from twofold.compat.v1.functions import one_of
    return one_of(new_value, old_value, new_name, old_name)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """A block in which nothing warns."""
    _quiet[0] += 1
    try:
        yield
    finally:
        _quiet[0] -= 1


def deprecation() -> dict[str, Any]:
    """The names of `tensorflow.python.util.deprecation`."""
    return {f.__name__: f for f in (deprecated, deprecated_alias, deprecated_arg_values, deprecated_args,
                                    deprecated_argument_lookup, silence)}


# -- signatures ---------------------------------------------------------------------------------------------------
def getfullargspec(obj: Any) -> inspect.FullArgSpec:
    """The arguments of a callable, as it takes them itself."""
    if isinstance(obj, functools.partial):
        return _of_partial(obj)
    spec = inspect.getfullargspec(obj)
    if not inspect.isroutine(obj) and not isinstance(obj, type) and callable(obj) and "self" not in spec.args[:1]:
        return spec._replace(args=["self", *spec.args])  # of an object that is called, as TensorFlow has it
    return spec


def _of_partial(obj: functools.partial[Any]) -> inspect.FullArgSpec:
    """What is left to give of a partial call: names that it gives by position are gone, others have new defaults."""
    spec = getfullargspec(obj.func)
    args = spec.args[len(obj.args):]
    missing = object()
    defaults: list[Any] = [missing] * len(args)
    known = list(spec.defaults or ())[-len(args):] if args else []
    if known:
        defaults[-len(known):] = known
    for name, value in obj.keywords.items():
        if name in args:
            defaults[args.index(name)] = value
    first = next((i for i, value in enumerate(defaults) if value is not missing), len(args))
    if any(value is missing for value in defaults[first:]):
        raise ValueError(f"{obj} has some keyword-only arguments, which are not supported.")
    return spec._replace(args=args, defaults=tuple(defaults[first:]) or None)


def inspection() -> dict[str, Any]:
    """The names of `tensorflow.python.util.tf_inspect`."""
    same = ("Parameter", "currentframe", "getcallargs", "getdoc", "getfile", "getmembers", "getmodule", "getmro",
            "getsource", "isabstract", "isclass", "isfunction", "isgenerator", "ismethod", "ismodule", "isroutine",
            "signature", "stack")
    return {**{name: getattr(inspect, name) for name in same}, "getfullargspec": getfullargspec,
            "getargspec": getfullargspec, "_inspect": inspect}


def export() -> dict[str, Any]:
    """The names of `tensorflow.python.util.tf_export`."""
    def tf_export(*names: str, **kwargs: Any) -> Callable[[F], F]:
        """A decorator that leaves what is public as it is."""
        return lambda value: value

    return {"tf_export": tf_export, "keras_export": tf_export}
