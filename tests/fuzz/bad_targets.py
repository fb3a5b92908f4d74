"""What the fuzzer of bad values calls: every public function, class and method, and calls of them that work.

Calls that work are those in docstrings: the examples run with a watch on each call, which keeps the arguments. What
has no example is tried with values that its parameters' names suggest (`bad_table.VALID`).
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import enum
import inspect
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from fuzz import bad_table
from names import raw_cases

import twofold as tf
from twofold.keras import _older_backend

__all__ = ["Target", "Call", "targets", "calls"]

# Modules that stand in no `__all__` and in no list of what is imported when it is first asked for.
_BESIDE = {"tf.data": ("experimental",), "tf.contrib.eager": ("metrics",), "tf.experimental": ("numpy", "dtensor"),
           "tf.distribute": ("experimental", "cluster_resolver")}
# What loads from the network, deletes, ends the process, or changes how the whole process reports errors.
_LEFT_OUT = ("tf.keras.datasets.", "tf.keras.utils.get_file", "tf.io.gfile.rmtree", "tf.compat.v1.app.run",
             "tf.compat.v1.flags.run", "tf.test.main", "tf.compat.v1.test.main", "tf.keras.callbacks.RemoteMonitor")
_DUNDER = ("__call__", "__getitem__", "__setitem__", "__delitem__", "__contains__", "__add__",
           "__sub__", "__mul__", "__matmul__", "__pow__", "__truediv__", "__floordiv__", "__mod__", "__and__", "__or__",
           "__xor__", "__lt__", "__ge__", "__eq__", "__neg__")


@dataclass(frozen=True)
class Target:
    """Something to call: `name` as a user types it; for methods the class, else None; the method's name, else "".

    For the setter of a property the name ends in "=", the value is the setter, and the method is the property's name.
    """

    name: str
    value: Any
    owner: type | None = None
    method: str = ""


@dataclass
class Call:
    """A call that works: what is called, with what, and how it reads."""

    fn: Callable[..., Any]
    args: list[Any]
    kwargs: dict[str, Any]
    text: str
    parameters: list[str] = field(default_factory=list)

    def named(self) -> dict[str, Any]:
        """All arguments by parameter; those of `*args` by position, as `"0"`."""
        return {**{str(n): v for n, v in enumerate(self.args)}, **self.kwargs}


def modules() -> dict[str, ModuleType]:
    """The public modules, by the dotted name a user types."""
    result: dict[str, ModuleType] = {}
    queue: list[tuple[str, Any]] = [("tf", tf)]
    while queue:
        path, module = queue.pop()
        if any(module is known for known in result.values()):
            continue
        result[path] = module
        for name in sorted({*getattr(module, "__all__", ()), *_on_first_use(path, module)}):
            value = getattr(module, name, None)
            if isinstance(value, ModuleType) and value.__name__.startswith("twofold") and not callable(value):
                queue.append((f"{path}.{name}", value))
    return result


def _on_first_use(path: str, module: ModuleType) -> Iterable[str]:
    """The modules below one that are imported when they are first asked for."""
    listed = vars(module).get("_ON_FIRST_USE" if module is tf else "_MODULES", ())
    return {*_BESIDE.get(path, ()), *(listed if path in ("tf", "tf.compat.v1") else ())}


def targets() -> dict[str, Target]:
    """Everything there is to call, once each, by name."""
    result: dict[str, Target] = {}
    seen: set[int] = set()
    for path, module in sorted(modules().items(), key=lambda item: (item[0].count("."), item[0])):
        older = _older_backend.OLDER if path == "tf.keras.backend" else ()
        for name in sorted({*getattr(module, "__all__", ()), *older}):
            value = getattr(module, name, None)
            full = f"{path}.{name}"
            if not callable(value) or id(value) in seen or full.startswith(_LEFT_OUT):
                continue
            seen.add(id(value))
            if not (inspect.isclass(value) and issubclass(value, enum.Enum)):  # those are Python's own to call
                result[full] = Target(full, value)
            if inspect.isclass(value) and not issubclass(value, BaseException):
                for method, fn in _methods(value, seen):
                    sets = "=" if isinstance(vars(_owner(value, method)).get(method), property) else ""
                    result[f"{full}.{method}{sets}"] = Target(f"{full}.{method}{sets}", fn, value, method)
    return result


def _methods(cls: type, seen: set[int]) -> Iterator[tuple[str, Any]]:
    for name in dir(cls):
        if name.startswith("_") and name not in _DUNDER:
            continue
        owner = _owner(cls, name)
        if owner is object:
            continue
        value = vars(owner)[name]
        ours = owner.__module__.split(".")[0] == "twofold"
        if not ours or not callable(value.fset if isinstance(value, property) else getattr(cls, name, None)):
            continue
        # A method that many classes inherit is called on the first of them; `__call__` on each, for what it calls.
        if id(value) in seen and name != "__call__":
            continue
        seen.add(id(value))
        yield name, value.fset if isinstance(value, property) else value


def _owner(cls: type, name: str) -> type:
    """The class above `cls`, or itself, that has an attribute; `object` for attributes of its own class."""
    return next((base for base in cls.__mro__ if name in vars(base)), object)


def calls(target: Target) -> list[Call]:
    """Calls of `target` that work, as far as they can be had: those of its docstrings, else one that was tried."""
    documented = list(_documented(target))
    result = [c for c in documented if c.text] or _raw(target) or list(_tried(target, [c.fn for c in documented]))
    for call in result:
        call.parameters = _parameters(call)
    return result[:4]


def _raw(target: Target) -> list[Call]:
    """The calls of a raw op by which its results are compared with TensorFlow's."""
    module, _, op = target.name.rpartition(".")
    if module != "tf.raw_ops":
        return []
    return [Call(target.value, [], dict(kwargs), name) for name, kwargs in raw_cases.cases(tf).items()
            if name.partition(" ")[0] == op]


def _parameters(call: Call) -> list[str]:
    """The parameters that the call does not give, by name."""
    try:
        signature = inspect.signature(call.fn)
        bound = signature.bind(*call.args, **call.kwargs)
    except (TypeError, ValueError):
        return []
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
    return [p.name for p in signature.parameters.values() if p.name not in bound.arguments and p.kind not in variable]


class _Watch(ast.NodeTransformer):
    """Every call `f(...)` becomes `__watch__(f, ...)`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        text = ast.unparse(node)
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("super", "locals", "globals"):
            return node
        return ast.copy_location(ast.Call(ast.Name("__watch__", ast.Load()),
                                          [node.func, ast.Constant(text), *node.args], node.keywords), node)


def _documented(target: Target) -> Iterator[Call]:
    """The calls in docstrings; one without text holds an object of the class, for a method without an example."""
    seen: list[Call] = []

    def watch(fn: Any, text: str, *args: Any, **kwargs: Any) -> Any:
        if _is_call_of(target, fn) and not tf.inside_function():  # whose tensors are of no use outside
            seen.append(Call(fn, list(args), dict(kwargs), text))
        result = fn(*args, **kwargs)
        if target.owner is not None and isinstance(result, target.owner):
            seen.append(Call(_on(result, target), [], {}, ""))
        return result

    for text in filter(None, (inspect.getdoc(target.value), target.owner and inspect.getdoc(target.owner))):
        names: dict[str, Any] = {"tf": tf, "np": np, "__watch__": watch, "__name__": "__main__"}
        try:
            examples = doctest.DocTestParser().get_examples(text)
        except ValueError:
            continue
        for example in examples:
            with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
                tree = ast.fix_missing_locations(_Watch().visit(ast.parse(example.source)))
                exec(compile(tree, "<example>", "exec"), names)
    yield from seen


def _is_call_of(target: Target, fn: Any) -> bool:
    if target.owner is None:
        return fn is target.value
    if target.method == "__call__":
        return isinstance(fn, target.owner)
    owner = getattr(fn, "__self__", None)
    is_owner = isinstance(owner, target.owner) or isinstance(owner, type) and issubclass(owner, target.owner)
    return is_owner and getattr(fn, "__name__", "") == target.method


def _on(thing: Any, target: Target) -> Any:
    """The method of an object, or of the class, that is to be called; for a property what sets it."""
    return partial(setattr, thing, target.method) if target.name.endswith("=") else getattr(thing, target.method)


def valid_of(setter: Any) -> Any:
    """The value that a property has, for what sets it; None where it cannot be read."""
    thing, name = setter.args
    try:
        return getattr(thing, name)
    except Exception:  # noqa: BLE001 (whatever a property that is not set raises)
        return None


def _tried(target: Target, fns: list[Any]) -> Iterator[Call]:
    """A call with values that the parameters' names suggest: the first that works, or else the first."""
    fn = target.value
    if target.owner is not None:
        if isinstance(fn, (classmethod, staticmethod)):
            fns = [getattr(target.owner, target.method)]
        if not fns:
            made = next(iter(calls(Target("", target.owner))), None)
            try:
                fns = [_on(made.fn(*made.args, **made.kwargs), target)] if made else []
            except Exception:  # noqa: BLE001 (without an object there is nothing to call)
                fns = []
        if not fns:
            return
        fn = fns[-1]
    if target.name.endswith("="):
        yield Call(fn, [valid_of(fn)], {}, f"{target.name}")
        return
    try:
        wanted = [p for p in inspect.signature(fn).parameters.values() if p.default is p.empty]
    except (TypeError, ValueError):
        return
    named = [p for p in wanted if p.kind is p.POSITIONAL_OR_KEYWORD]
    first: Call | None = None
    for kind in range(len(bad_table.KINDS)):
        args = [bad_table.valid(p.name, kind) for p in named]
        kwargs = {p.name: bad_table.valid(p.name, kind) for p in wanted if p.kind is p.KEYWORD_ONLY}
        call = Call(fn, args, kwargs, f"{target.name}({', '.join(map(str, args))})")
        first = first or call
        with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
            fn(*args, **kwargs)
            yield call
            return
    if first is not None:
        yield first
