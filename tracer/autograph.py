"""Conversion of Python functions, so that `if`, `while` and `for` on tensors are staged when a function is traced.

`convert(fn)` gives a function of the same signature, closure and globals whose control flow goes through
`tracer/operators*.py`. The rewriting of the syntax tree is diastatic-malt's, imported when the first function with
control flow is converted; in others calls alone are rewritten. The tree that comes out keeps the user's file and lines
and is compiled as such, so locations, tracebacks and debuggers show the user's source. A conversion is kept for each
code object as long as that lives, and in the cache folder for later processes, which then need no malt.

Only the user's code is converted: not this package, the standard library, or installed packages, but for their
functions that wrap one of the user's (`__wrapped__`, as `functools.wraps` sets it) and those of which they make a
`tf.function`, which they have written to be converted. A function whose source cannot be had, and a generator, run as
they are.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import marshal
import os
import sys
import types
import weakref
from typing import TYPE_CHECKING, Any

from twofold.eager import custom
from twofold.ir import errors
from twofold.runtime import cache, locks

from .operator_calls import MARK
from .types import PythonFunction

if TYPE_CHECKING:
    from .autograph_source import Converted

__all__ = ["convert", "callee", "do_not_convert", "to_code", "is_converted"]

_lock = locks.RLock()
# By the id of a code object: a weak reference to it, and its factory; None where it cannot be converted.
_factories: dict[int, tuple[weakref.ref[types.CodeType], _Factory | None]] = {}


def is_converted(fn: object) -> bool:
    """Whether `fn` came out of `convert`, or is not to be converted."""
    return bool(getattr(fn, MARK, False))


def do_not_convert(fn: PythonFunction) -> PythonFunction:
    """`fn` such that it runs as it is, in converted code too."""
    if not inspect.isfunction(fn):
        if not callable(fn):
            raise TypeError(f"do_not_convert takes a callable; got {type(fn).__name__} {fn!r}.")
        bound = functools.wraps(fn, updated=())(lambda *args, **kwargs: fn(*args, **kwargs))
        setattr(bound, MARK, True)
        return bound
    copy = types.FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    functools.update_wrapper(copy, fn)
    copy.__kwdefaults__ = fn.__kwdefaults__
    setattr(copy, MARK, True)
    return copy


def convert(fn: PythonFunction, asked: bool = False) -> PythonFunction:
    """`fn` with its control flow converted; `fn` itself where it is not to be, or cannot be.

    Args:
        fn: a function or a bound method. Any other callable is the result itself.
        asked: whether it is itself what somebody made a `tf.function` of.
    """
    if inspect.ismethod(fn):
        converted = convert(fn.__func__, asked)
        return fn if converted is fn.__func__ else types.MethodType(converted, fn.__self__)
    if not inspect.isfunction(fn) or is_converted(fn) or not _is_users(fn, asked):
        return fn
    factory = _factory(fn)
    return fn if factory is None else factory.instance(fn)


def callee(function: PythonFunction, asked: bool = False) -> PythonFunction:
    """The callable to call in the place of another one: its converted form if it is the user's code, or `asked` for."""
    if is_converted(function):
        return function
    if isinstance(function, functools.partial):
        inner = callee(function.func, asked)
        return function if inner is function.func else functools.partial(inner, *function.args, **function.keywords)
    if inspect.isfunction(function) or inspect.ismethod(function):
        return convert(function, asked)
    if isinstance(function, custom.Decorated):
        return function.over(callee(function.function, asked))
    if inspect.isbuiltin(function):
        return function
    call = inspect.getattr_static(type(function), "__call__", None)
    if not isinstance(call, (types.FunctionType, staticmethod, classmethod)):
        return function
    bound = call.__get__(function, type(function))
    converted = convert(bound, asked)
    return function if converted is bound else converted


def to_code(fn: PythonFunction) -> str:
    """The source of the converted function.

    Raises:
        ValueError: it cannot be converted.
    """
    from .autograph_source import Unconvertible, tree_of
    function = getattr(fn, "__func__", fn)
    if not inspect.isfunction(function):
        raise Unconvertible(f"only functions written in Python can be converted; got {type(fn).__name__} {fn!r}")
    source = tree_of(function)
    tree = ast.fix_missing_locations(source.tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == source.name:
            node.name = f"tf__{source.shown}"
            return ast.unparse(node) + "\n"
    return ast.unparse(tree) + "\n"


def _is_users(fn: types.FunctionType, asked: bool = False) -> bool:
    """Whether a function is the user's, or an installed one that wraps the user's or is `asked` for."""
    file = fn.__code__.co_filename
    if errors.is_ours(file):
        return False
    if asked and "<frozen" not in file:
        return True
    wrapped = getattr(fn, "__wrapped__", None)
    if inspect.isfunction(wrapped) and wrapped is not fn and _is_users(wrapped):
        return True
    return not (file.startswith(_installed()) or "<frozen" in file)


@functools.cache
def _installed() -> tuple[str, ...]:
    """Folders of code that is not the user's."""
    # The module `sysconfig` knows them too, but reads how Python was built first.
    import site
    folders = {os.path.join(f, "") for f in (os.path.dirname(os.__file__), *site.getsitepackages())}
    return tuple(folders | {os.path.realpath(f) + os.sep for f in folders})


def _factory(fn: types.FunctionType) -> _Factory | None:
    """The factory of a function's code, made where there is none; None where it cannot be converted."""
    code = fn.__code__
    entry = _factories.get(id(code))
    if entry is not None and entry[0]() is code:
        return entry[1]
    with _lock:
        key = id(code)
        entry = _factories.get(key)
        if entry is not None and entry[0]() is code:  # another thread has made it meanwhile
            return entry[1]
        factory = _new_factory(fn)

        def gone(reference: weakref.ref[types.CodeType]) -> None:
            if _factories.get(key, (None,))[0] is reference:
                del _factories[key]
        _factories[key] = (weakref.ref(code, gone), factory)
        return factory


def _new_factory(fn: types.FunctionType) -> _Factory | None:
    key = cache.digest(_identity(), _fingerprint(fn.__code__))
    stored = cache.read("conversions", key)
    if stored is not None:
        # The folder is as trusted as the machine code in it: checked sums, this user's own files.
        return _Factory(marshal.loads(stored), fn.__code__.co_freevars)
    from .autograph_source import Unconvertible, tree_of
    try:
        outer = _compiled(tree_of(fn))
    except (Unconvertible, SyntaxError):
        return None
    cache.write("conversions", key, marshal.dumps(outer))
    return _Factory(outer, fn.__code__.co_freevars)


def _compiled(source: Converted) -> types.CodeType:
    """The code of the function that makes the converted one, given `ag__`."""
    code = compile(ast.fix_missing_locations(source.tree), source.file, "exec", dont_inherit=True, flags=source.flags)
    names: dict[str, Any] = {}  # that the module defines
    exec(_renamed(code, source.name, source.shown), names)  # noqa: S102 - the user's own function, rewritten
    outer: types.CodeType = names["outer_factory"]().__code__
    return outer


def _fingerprint(code: types.CodeType) -> str:
    """A text that tells code objects apart: their instructions, constants and names, with file and lines."""
    constants = [_fingerprint(c) if isinstance(c, types.CodeType) else f"{type(c).__name__} {c!r}"
                 for c in code.co_consts]
    return repr((code.co_filename, code.co_firstlineno, code.co_name, code.co_flags, code.co_argcount,
                 code.co_posonlyargcount, code.co_kwonlyargcount, code.co_code, code.co_names, code.co_varnames,
                 code.co_freevars, code.co_cellvars, code.co_linetable, constants))


@functools.cache
def _identity() -> str:
    """A text for all that a conversion depends on besides the function: Python, malt, and our own rewriting."""
    malt = importlib.util.find_spec("malt")
    status = os.stat(malt.origin) if malt is not None and malt.origin else None
    from pathlib import Path
    own = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))
           if path.name.startswith(("autograph", "operator", "loop_options"))]
    version = status and malt and (malt.origin, status.st_mtime_ns, status.st_size)
    return cache.digest(sys.version, version, *own)


class _Factory:
    """Makes converted functions of one code object: they share code, and differ in closures and defaults."""

    def __init__(self, outer: types.CodeType, freevars: tuple[str, ...]) -> None:
        self.outer, self.freevars = outer, freevars

    def instance(self, fn: types.FunctionType) -> types.FunctionType:
        """`fn` converted."""
        cells = dict(zip(self.freevars, fn.__closure__ or (), strict=True))
        inner = types.FunctionType(self.outer, fn.__globals__, fn.__name__, (),
                                   tuple([cells[n] for n in self.outer.co_freevars]))
        converted: types.FunctionType = inner(_namespace())
        converted.__defaults__, converted.__kwdefaults__ = fn.__defaults__, fn.__kwdefaults__
        converted.__name__, converted.__qualname__, converted.__module__ = fn.__name__, fn.__qualname__, fn.__module__
        converted.__doc__, converted.__annotations__ = fn.__doc__, fn.__annotations__
        setattr(converted, MARK, True)
        return converted


_OURS = ("if_body", "else_body", "loop_body", "loop_test", "get_state", "set_state", "extra_test")


def _renamed(code: types.CodeType, name: str, shown: str, around: str = "") -> types.CodeType:
    """Code in which the parts of a function have the function's name, which tracebacks show."""
    own = shown if code.co_name == name else around if code.co_name.startswith(_OURS) and around else code.co_name
    constants = [_renamed(c, name, shown, own) if isinstance(c, types.CodeType) else c for c in code.co_consts]
    return code.replace(co_consts=tuple(constants), co_name=own)


@functools.cache
def _namespace() -> types.SimpleNamespace:
    """The namespace `ag__`, through which converted code calls its operators."""
    from . import operator_calls, operator_loops, operators
    namespace = types.SimpleNamespace()
    for module in (operators, operator_loops, operator_calls):
        for name in module.__all__:
            setattr(namespace, name, getattr(module, name))
    namespace.converted_call = operator_calls.calls(callee)
    return namespace


