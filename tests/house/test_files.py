"""What every file owes its reader: a docstring that says what it owns, a length one can read, nothing left undone.

Docstrings name modules that exist, and variables are named for what they hold.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from house.tree import FLOORS, ROOT, all_modules, label, nodes, shipped_modules

LONGEST = 800
LONGEST_FUNCTION = 60  # lines, with its docstring, in the engine's rooms
# The tests of the engine's rooms and of the tree itself.
ENGINE_TESTS = [path for path in all_modules()
                if path.parts[len(ROOT.parts):][:2] in {("tests", room) for room in (*FLOORS, "ops", "house")}]

_LEFTOVER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
_NOT_STUBS = {"abstractmethod", "overload"}
_MODULE = re.compile(r"`([\w/*]+\.py)`")


class Facts(NamedTuple):
    """What the tests here ask of a file, from one reading of it: a tree of syntax costs more than all of them do.

    Attributes:
        opening: its docstring.
        length: in lines.
        leftovers: the marks of unfinished work.
        unnamed: the places where a variable is named for nothing.
        missing: the modules that it names and that are not there.
        long: the functions of more than `LONGEST_FUNCTION` lines.
    """

    opening: str
    length: int
    leftovers: list[str]
    unnamed: list[str]
    missing: list[str]
    long: list[str]


@cache
def facts(path: Path) -> Facts:
    """The facts of a file."""
    source = path.read_text()
    tree = ast.parse(source)
    parts = nodes(tree)
    return Facts(ast.get_docstring(tree) or "", len(source.splitlines()), leftovers(source, parts),
                 unnamed(parts) if "found" in source else [], missing_modules(source, path.parent),
                 long_functions(parts))


def nodes_of(source: str) -> list[ast.AST]:
    """All nodes of the tree of a source."""
    return nodes(ast.parse(source))


def is_stub(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """True for a body that is only `...` or `raise NotImplementedError`, with or without a docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if len(body) != 1:
        return False
    [only] = body
    if isinstance(only, ast.Raise) and only.exc is not None:
        raised = only.exc.func if isinstance(only.exc, ast.Call) else only.exc
        return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
    return isinstance(only, ast.Expr) and isinstance(only.value, ast.Constant) and only.value.value is ...


def leftovers(source: str, nodes: list[ast.AST]) -> list[str]:
    """Marks of unfinished work in `source`, which has these nodes: the usual words, and stubs that are not abstract
    methods."""
    lines = enumerate(source.splitlines(), 1)
    marks = [f"line {number}: {line.strip()}" for number, line in lines if _LEFTOVER.search(line)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    protocols = [node for node in classes if any(_last_name(base) == "Protocol" for base in node.bases)]
    excused = {id(child) for node in protocols for child in node.body}
    for node in nodes:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or id(node) in excused:
            continue
        if is_stub(node) and not any(_last_name(mark) in _NOT_STUBS for mark in node.decorator_list):
            marks.append(f"line {node.lineno}: {node.name} is a stub")
    return marks


def _last_name(node: ast.expr) -> str:
    """`Protocol` for `Protocol`, `typing.Protocol` and `Protocol[T]`."""
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def unnamed(nodes: list[ast.AST]) -> list[str]:
    """The places where a variable, argument or attribute is called `found`, which says nothing of what it holds."""
    return [f"line {node.lineno}: {name}" for node in nodes if (name := _own_name(node)).strip("_") == "found"]


def long_functions(nodes: list[ast.AST]) -> list[str]:
    """The functions of more than `LONGEST_FUNCTION` lines, decorators apart."""
    return [f"line {node.lineno}: {node.name}" for node in nodes
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and node.end_lineno - node.lineno >= LONGEST_FUNCTION]


def _own_name(node: ast.AST) -> str:
    """The name that a variable, argument, attribute, function or class has in the source; empty for other nodes."""
    for field in ("id", "arg", "attr", "name"):
        if isinstance(name := getattr(node, field, None), str):
            return name
    return ""


def missing_modules(source: str, folder: Path) -> list[str]:
    """The modules that `source` names in backticks though there are none of that name.

    A bare name is that of a module in the same `folder`, a path may leave out the folders it begins with.
    """
    named = set(_MODULE.findall(source))
    return sorted(name for name in named if not (folder / name).exists() and not any(folder.glob(name))
                  and not ("/" in name and _ends_a_path(name)))


@cache
def _ends_a_path(name: str) -> bool:
    return any(path.match(name) for path in all_modules())


def of_each(paths: Iterable[Path], what: Callable[[Facts], Any]) -> dict[str, Any]:
    """What is told of each file, by its path, where it is anything."""
    return {label(path): told for path in paths if (told := what(facts(path)))}


def test_modules_open_with_a_docstring():
    """It says what the module owns."""
    assert of_each(all_modules(), lambda file: len(file.opening.strip()) < 20) == {}


def test_modules_are_short_enough_to_read():
    assert of_each(all_modules(), lambda file: max(file.length - LONGEST, 0)) == {}


def test_functions_of_the_engine_are_short_enough_to_read():
    rooms = {ROOT / room for room in FLOORS if room != "twofold"}
    engine = [path for path in shipped_modules() if not rooms.isdisjoint(path.parents)]
    assert of_each(engine, lambda file: file.long) == {}


def test_long_functions_are_seen():
    lines = "\n    x = 1" * LONGEST_FUNCTION
    assert long_functions(nodes_of(f"def f():{lines[:-10]}")) == []
    assert long_functions(nodes_of(f"class A:\n  def f(self):{lines}")) == ["line 2: f"]


def test_nothing_is_left_undone():
    assert of_each(shipped_modules(), lambda file: file.leftovers) == {}


def test_variables_are_named_for_what_they_hold():
    assert of_each([*shipped_modules(), *ENGINE_TESTS], lambda file: file.unnamed) == {}


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "def f(found): ...",
        "def f(*, found=1): ...",
        "self._found = 1",
        "f(found=1)",
        "for found in x: ...",
        "def found(): ...",
        "(found := 1)",
    ],
)
def test_variables_that_are_named_for_nothing_are_seen(source):
    assert len(unnamed(nodes_of(source))) == 1


def test_other_names_and_words_are_left_alone():
    assert unnamed(nodes_of('"""What is found."""\nfounder = resolve("found")  # found')) == []


def test_modules_that_are_named_exist():
    assert of_each(shipped_modules(), lambda file: file.missing) == {}


def test_modules_that_are_missing_are_seen():
    source = "`spec.py`, `ops/spec.py`, `ops/products.py`, `codegen/plan.py`, `plan.py`, `ops/product*.py` and plan.py"
    assert missing_modules(source, ROOT / "ir") == ["ops/spec.py", "plan.py"]


@pytest.mark.parametrize(
    "source",
    [
        "x = 1  # TO" + "DO: more",
        "def f():\n    raise NotImplementedError",
        "def f():\n    '''Does it.'''\n    raise NotImplementedError('soon')",
        "class A:\n    async def f(self): ...",
    ],
)
def test_unfinished_work_is_seen(source):
    assert len(leftovers(source, nodes_of(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    @abc.abstractmethod\n    def f(self):\n        raise NotImplementedError",
        "class A(Protocol[T]):\n    def f(self): ...",
        "def f(x):\n    if x:\n        raise NotImplementedError('complex x')\n    return x",
        "@primitive(vjp=None)\ndef f(x):\n    '''The op f.'''",
    ],
)
def test_finished_work_is_left_alone(source):
    assert leftovers(source, nodes_of(source)) == []
