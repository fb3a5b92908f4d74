"""No two files import each other in a circle: who reads a file can read what it stands on first, and it ends.

A file depends on the file that holds a definition it uses, wherever the import stands: at the top, inside a function,
under `TYPE_CHECKING`, or as a name given to `import_module`. What a package's `__init__` only hands on counts for the
file it comes from, so that `import twofold as tf` followed by `tf.matmul` depends on the file of `matmul`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

import pytest
from house.tree import FLOORS, ROOT, module_name, nodes, shipped_modules

_ROOT = "twofold"
_FIRST = "twofold.compat"


class _Import(NamedTuple):
    """One name that an import statement binds: `attribute` of `module`, or the module itself; "*" is everything.

    The name is empty where a module is imported without being bound.
    """

    bound: str
    module: str
    attribute: str | None


class _File(NamedTuple):
    """What the test knows of a file: its imports, the names it defines at its top, and `a.b.c` wherever it is said."""

    imports: list[_Import]
    exported: dict[str, _Import]
    stars: list[str]
    defined: frozenset[str]
    chains: list[list[str]]


def _absolute(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    package = module.split(".") if is_package else module.split(".")[:-1]
    base = package[: len(package) - node.level + 1] if node.level else []
    return ".".join([*base, *([node.module] if node.module else [])])


def _bindings(node: ast.AST, module: str, is_package: bool) -> Iterator[_Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname is not None or "." not in alias.name:
                yield _Import(alias.asname or alias.name, alias.name, None)
            else:
                yield _Import(alias.name.split(".")[0], alias.name.split(".")[0], None)
                yield _Import("", alias.name, None)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield _Import(alias.asname or alias.name, _absolute(node, module, is_package), alias.name)
    elif isinstance(node, ast.Call) and (_chain(node.func) or [""])[-1] == "import_module" and node.args:
        name = node.args[0]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield _Import("", name.value, None)


def _top(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run at import, those within `if`, `try`, `with` and loops included."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody"):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield from _top(getattr(node, part, []))
        for handler in getattr(node, "handlers", []):
            yield from _top(handler.body)


def _names_of(node: ast.stmt) -> Iterator[str]:
    """The names that a statement defines."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(
        node, (ast.AnnAssign, ast.AugAssign, ast.For)) else []
    for target in targets:
        yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))


def _chain(node: ast.AST) -> list[str] | None:
    """`["a", "b", "c"]` of the expression `a.b.c`."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *names[::-1]] if isinstance(node, ast.Name) else None


def _chains(nodes: list[ast.AST]) -> Iterator[list[str]]:
    """The longest dotted names in a file of these nodes, those in annotations that are strings included."""
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in inner:
            chain = _chain(node)
            if chain is not None:
                yield chain


def _read(source: str, module: str, is_package: bool) -> _File:
    tree = ast.parse(source)
    parts = nodes(tree)
    imports = [each for node in parts for each in _bindings(node, module, is_package)]
    top = list(_top(tree.body))
    exported = {each.bound: each for node in top for each in _bindings(node, module, is_package)}
    defined = {name for node in top for name in _names_of(node)}
    return _File(imports, exported, [each.module for each in imports if each.attribute == "*"], frozenset(defined),
                 list(_chains(parts)))


class Tree:
    """The files of a package, and which of them each depends on.

    Args:
        sources: module name -> (source, whether it is a package's `__init__`).
    """

    def __init__(self, sources: Mapping[str, tuple[str, bool]]):
        self._packages = {name for name, (_, is_package) in sources.items() if is_package}
        self._files = {name: _read(source, name, is_package) for name, (source, is_package) in sources.items()}

    def edges(self) -> dict[str, set[str]]:
        """The files that each file depends on."""
        return {name: {target for target in self._targets(name) if target != name} for name in self._files}

    def _targets(self, name: str) -> Iterator[str]:
        file = self._files[name]
        packages: dict[str, set[str]] = {}
        for each in file.imports:
            target = self._file_of(each)
            if target in self._packages and self._is_module(each) and each.bound:
                packages.setdefault(each.bound, set()).add(target)
            elif target is not None:
                yield target
        for first, *rest in file.chains:
            for package in packages.get(first, ()):
                yield from self._used(package, rest)

    def _is_module(self, each: _Import) -> bool:
        """Whether an import binds a module, not a definition in one."""
        origin = self._resolved(each.module, each.attribute) if each.attribute else (each.module, None)
        return origin is not None and origin[1] is None

    def _used(self, package: str, attributes: list[str]) -> Iterator[str]:
        """The file of `package.a.b`; nothing for the bare root, through which the public names are looked up."""
        for attribute in attributes:
            origin = self._resolved(package, attribute)
            if origin is None:
                return
            if origin[1] is not None or origin[0] not in self._packages:
                yield origin[0]
                return
            package = origin[0]
        if package != _ROOT:
            yield package

    def _file_of(self, each: _Import) -> str | None:
        origin = self._resolved(each.module, each.attribute) if each.attribute else (each.module, None)
        return None if origin is None or origin[0] not in self._files else origin[0]

    def _resolved(self, module: str, attribute: str, seen: frozenset[tuple[str, str]] = frozenset()
                  ) -> tuple[str, str | None] | None:
        """Where `attribute` of `module` is defined: `(file, name)`, or `(module, None)` for a module; None outside."""
        file = self._files.get(module)
        if file is None or (module, attribute) in seen:
            return None
        seen |= {(module, attribute)}
        each = file.exported.get(attribute)
        if module in self._packages and each is not None and each[1:] != (module, attribute):
            if each.attribute is None:
                return (each.module, None) if each.module in self._files else None
            return self._resolved(each.module, each.attribute, seen)
        if attribute in file.defined:
            return module, attribute
        if f"{module}.{attribute}" in self._files:
            return f"{module}.{attribute}", None
        for star in file.stars:
            origin = self._resolved(star, attribute, seen)
            if origin is not None and origin[0] != star:
                return origin
        return module, attribute


def circles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """The largest groups of files in which each depends on each, by way of others (Tarjan's algorithm, 1972)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = low[name] = len(number)
        stack.append(name)
        for target in sorted(edges[name]):
            if target not in number:
                visit(target)
            if target in stack:
                low[name] = min(low[name], low[target])
        if low[name] == number[name]:
            group = stack[stack.index(name):]
            del stack[stack.index(name):]
            if len(group) > 1:
                groups.append(sorted(group))

    for name in sorted(edges):
        if name not in number:
            visit(name)
    return groups


def room_of(name: str) -> str:
    """The room of a file's module."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in FLOORS else _ROOT


def edges_of(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """The dependencies of a small tree: a name that ends in `.__init__` is a package."""
    return Tree({name.removesuffix(".__init__"): (source, name.endswith("__init__"))
                 for name, source in sources.items()}).edges()


@cache
def shipped_edges(room: str = "") -> dict[str, set[str]]:
    """The dependencies of what ships, or of one room's files on each other."""
    paths = [path for path in shipped_modules() if path.is_relative_to(ROOT / room)]
    return Tree({module_name(path): (path.read_text(), path.name == "__init__.py") for path in paths}).edges()


@pytest.mark.parametrize("room", [room for room in FLOORS if room != _ROOT])
def test_no_two_files_of_an_engine_room_import_each_other(room: str) -> None:
    assert [group for group in circles(shipped_edges()) if any(room_of(name) == room for name in group)] == []


def test_no_two_files_of_the_public_floor_import_each_other() -> None:
    groups = circles(shipped_edges())
    assert [group for group in groups if any(room_of(name) == _ROOT for name in group)] == []


def test_nothing_of_version_2_imports_version_1() -> None:
    users = {name for name, targets in shipped_edges().items() if any(t.startswith(_FIRST) for t in targets)}
    # `tf` itself shows the older names, and lets `tf.compat` register itself
    assert {name for name in users if not name.startswith(_FIRST)} <= {
        _ROOT, f"{_ROOT}.contrib", *[
            f"{_ROOT}.as_tensorflow.{name}" for name in ("decorators", "internal", "private")]}


@pytest.mark.parametrize("other", [
    "from . import a", "from .a import f", "import twofold.a", "def g():\n    from twofold.a import f",
    "import twofold as tf\ntf.f", "import twofold\ntwofold.a.f", "class C:\n    from .a import f",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .a import f",
    "import importlib\nimportlib.import_module('twofold.a')", "from .p import f", "from . import p\np.f",
    "import twofold as tf\ndef g(x: tf.p.f): ...", "from . import p\np.q.f"])
def test_a_circle_is_seen(other: str) -> None:
    edges = edges_of({"twofold.__init__": "from .a import f", "twofold.a": "from . import b\ndef f(): ...",
                      "twofold.b": other, "twofold.p.__init__": "from ..a import f\nfrom . import q",
                      "twofold.p.q": "from ..a import *"})
    assert ["twofold.a", "twofold.b"] in [[name for name in group if name != "twofold.p.q"] for group in circles(edges)]


@pytest.mark.parametrize("other", [
    "from .c import g", "import twofold as tf\ntf.g", "import numpy as a\na.f", "from .p import g",
    "import twofold as tf\ngetattr(tf, 'f')", "from . import p\np.g"])
def test_what_is_handed_on_counts_for_where_it_is_from(other: str) -> None:
    edges = edges_of({"twofold.__init__": "from .a import f\nfrom .c import g",
                      "twofold.a": "from . import b\ndef f(): ...", "twofold.b": other, "twofold.c": "def g(): ...",
                      "twofold.p.__init__": "from ..a import f\nfrom ..c import g"})
    assert circles(edges) == []
