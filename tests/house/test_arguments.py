"""An argument that is accepted does something, or its documentation says that it has no effect here.

A parameter that a public function or method never reads is named in a docstring as without effect: in that of the
function, of its class, or of the method that it overrides. A parameter of a method that a related class reads belongs
to what all of them are called with, and one of a method that does nothing is for those who override it. What is said to
have no effect is not read.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from fuzz.bad_targets import modules
from house.tree import ROOT, label, shipped_modules, statements

from twofold._front.api import unguarded

Function = ast.FunctionDef | ast.AsyncFunctionDef


def parameters(function: Function) -> list[str]:
    """The names of a function's parameters, but for the object itself and those with an underscore."""
    given = function.args
    listed = [*given.posonlyargs, *given.args, *given.kwonlyargs, *[a for a in (given.vararg, given.kwarg) if a]]
    return [a.arg for a in listed if a.arg not in ("self", "cls", "mcs") and not a.arg.startswith("_")]


def unread(function: Function) -> list[str]:
    """The parameters that the body never reads."""
    names = {node.id for statement in function.body for node in ast.walk(statement)
             if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return [] if "locals" in names else [name for name in parameters(function) if name not in names]


def does_nothing(function: Function) -> bool:
    """Whether a body has only a docstring, or refuses, as that of a method does which is to be overridden."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    nothing = (ast.Pass, ast.Raise)
    return all(isinstance(s, nothing) or isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) for s in body
               ) or isinstance(body[-1], ast.Raise) and "NotImplementedError" in ast.unparse(body[-1])


def says_without_effect(text: str, name: str) -> bool:
    """Whether an entry or a paragraph of a docstring names a parameter and says that it has no effect."""
    entries = re.split(r"\n\s*\n|(?<!,)\n(?=\s*[\w*][\w*, \n]*?:(?:\s|$))", text)
    return any(re.search(rf"\b{name}\b", entry) and re.search(r"\beffect\b", entry) for entry in entries)


@cache
def functions() -> dict[tuple[str, int], Function]:
    """The functions of what ships, by file and first line, decorators included."""
    by_place: dict[tuple[str, int], Function] = {}
    for path in shipped_modules():
        for node in statements(ast.parse(path.read_text())):
            if isinstance(node, Function):
                by_place[label(path), min([node.lineno, *[d.lineno for d in node.decorator_list]])] = node
    return by_place


@pytest.fixture(scope="module", autouse=True)
def _trees_end_with_this_file() -> Iterator[None]:
    """A million nodes, which every search for garbage would go through to the end."""
    yield
    functions.cache_clear()


def source(value: Any) -> tuple[str, Function] | None:
    """The file and the definition of a function of ours; None for others."""
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    value = inspect.unwrap(unguarded(value))
    code = getattr(value, "__code__", None)
    if code is None or not code.co_filename.startswith(str(ROOT)):
        return None
    file = code.co_filename.removeprefix(f"{ROOT}/")
    function = functions().get((file, code.co_firstlineno))
    return None if function is None else (file, function)


def _family(cls: type) -> list[type]:
    """The classes above and below a class, and those beside it."""
    above = [base for base in cls.__mro__ if base.__module__.startswith("twofold")]
    below: dict[type, None] = {}
    pending = list(above)
    while pending:
        each = pending.pop()
        if each not in below:
            below[each] = None
            pending += each.__subclasses__()
    return [each for each in below if each.__module__.startswith("twofold")]


def silent_in(cls: type) -> Iterator[tuple[str, str]]:
    """`(place, parameter)` of what methods of a class and its bases take, do not read and do not speak of."""
    for owner in cls.__mro__:
        for name, value in vars(owner).items():
            hidden = name.startswith("_") and name not in ("__init__", "__call__")
            if hidden or not owner.__module__.startswith("twofold"):
                continue
            definition = source(value)
            if definition is None or does_nothing(definition[1]) or not (unused := unread(definition[1])):
                continue
            others = [other for each in _family(owner) if name in vars(each) and (other := source(vars(each)[name]))]
            texts = [ast.get_docstring(definition[1]) or "", owner.__doc__ or "", cls.__doc__ or "",
                     *[getattr(base, name).__doc__ or "" for base in owner.__mro__ if hasattr(base, name)]]
            for parameter in unused:
                read = any(parameter in parameters(other) and (parameter not in unread(other) or does_nothing(other))
                           for _, other in others)
                if not read and not any(says_without_effect(text, parameter) for text in texts):
                    yield f"{definition[0]}:{definition[1].lineno} {owner.__qualname__}.{name}", parameter


def silent(value: Any) -> Iterator[tuple[str, str]]:
    """`(place, parameter)` of what a public function or class takes, does not read and does not speak of."""
    if inspect.isclass(value):
        yield from silent_in(value)
        return
    definition = source(value)
    if definition is None or does_nothing(definition[1]):
        return
    text = inspect.getdoc(value) or ""
    for parameter in unread(definition[1]):
        if not says_without_effect(text, parameter):
            yield f"{definition[0]}:{definition[1].lineno} {definition[1].name}", parameter


@pytest.mark.parametrize("path", list(modules()))
def test_what_is_accepted_does_something_or_is_said_to_do_nothing(path: str) -> None:
    module = modules()[path]
    told = {said for name in module.__all__ for said in silent(getattr(module, name))}
    assert sorted(f"{place}: {parameter}" for place, parameter in told) == []


def said_without_effect(text: str) -> Iterator[str]:
    """The parameters of which a docstring says nothing but that they have no effect."""
    for entry in re.findall(r"^ *([\w, ]+): (?:accepted, without effect|ha(?:s|ve) no effect)\.$", text, re.M):
        yield from entry.split(", ")
    for sentence in re.findall(r"^((?:`\w+`(?:, | and )?)+) ha(?:s|ve) no effect\.$", text, re.M):
        yield from re.findall(r"`(\w+)`", sentence)


def test_what_is_said_to_do_nothing_is_not_read() -> None:
    contradicted = [f"{file}:{line} {function.name}: {name}" for (file, line), function in functions().items()
                    for name in said_without_effect(ast.get_docstring(function) or "")
                    if name in parameters(function) and name not in unread(function)]
    assert contradicted == []


def test_silence_is_seen() -> None:
    function = ast.parse("def f(a, b, *, c=None, **rest):\n    del b\n    return [a for a in a]").body[0]
    assert isinstance(function, ast.FunctionDef)
    assert unread(function) == ["b", "c", "rest"]
    text = "Do.\n\nArgs:\n    a: read.\n    b,\n        c: accepted, without\n        effect.\n    d: something."
    assert [name for name in "abcd" if says_without_effect(text, name)] == ["b", "c"]
    assert says_without_effect("Like `f`; `name` has no effect.", "name")
    text = "Do.\n\n    a, b: have no effect.\n    c: does.\n`d` has no effect."
    assert list(said_without_effect(text)) == ["a", "b", "d"]
