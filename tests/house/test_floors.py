"""Who may import whom: a room knows only the floors below it, and slow libraries load on first need."""

from __future__ import annotations

import ast
import re
import sys

import pytest
from house.tree import FLOORS, label, module_name, project, shipped_modules, statements

# Libraries that each room may use beside the standard library; twofold, the front door, may use the union.
LIBRARIES = {
    "ir": {"numpy", "ml_dtypes", "networkx"},
    "codegen": {"numpy", "ml_dtypes", "llvmlite", "numba"},
    "runtime": {"numpy", "ml_dtypes", "llvmlite"},
    "eager": {"numpy", "ml_dtypes"},
    "tracer": {"numpy", "ml_dtypes", "networkx", "malt"},
}
# What extras install: a clear error where it is missing. einops is what a user's program brings along.
OPTIONAL = {"PIL", "einops", "h5py", "mpi4py", "onnx", "onnxruntime", "prometheus_client", "re2", "scipy", "starlette",
            "tensorboard", "tqdm", "uvicorn"}
LIBRARIES["twofold"] = set().union(*LIBRARIES.values()) | OPTIONAL

# Slow to import: `import twofold` must not pay for them.
LAZY = {"numba", "networkx", "malt"} | OPTIONAL

# Written as users of the public API: they reach no engine room.
USERS = ("twofold.keras", "twofold.data", "twofold.train")


def imports(tree: ast.Module, module: str, is_package: bool) -> list[tuple[ast.stmt, str, bool]]:
    """`(statement, absolute name, relative?)` of every import in `tree`; `from a import b` gives `a.b`."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    imported = []
    for node in statements(tree):
        if isinstance(node, ast.Import):
            imported += [(node, alias.name, False) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            imported += [(node, f"{stem}.{alias.name}", node.level > 0) for alias in node.names]
    return imported


def room_of(name: str) -> str:
    """The room of an absolute name: `twofold.ir.spec` is in ir, `twofold` and `twofold.math` in twofold."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in FLOORS else "twofold"


def loaded_at_import(tree: ast.Module) -> set[ast.stmt]:
    """The statements that run when the module is imported: all outside functions and `if TYPE_CHECKING`."""
    running: set[ast.stmt] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.expr)):
            return
        if isinstance(node, ast.stmt):
            running.add(node)
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.If) and isinstance(node.test, (ast.Name, ast.Attribute)) and \
                ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            children = list(node.orelse)
        for child in children:
            visit(child)

    visit(tree)
    return running


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    """What is wrong with the imports of `source`, installed as `module`; empty when all is well."""
    tree = ast.parse(source)
    room, at_import = room_of(module), loaded_at_import(tree)
    wrong = []
    for node, name, relative in imports(tree, module, is_package):
        top = name.split(".")[0]
        said = f"line {node.lineno}: {room} imports {name}"
        if top in LAZY and node in at_import:
            wrong.append(f"{said} when it is itself imported; import it inside the function that needs it")
        if top == "twofold":
            wrong += _inside(said, module, room, name, relative)
        elif top in FLOORS:
            wrong.append(f"{said}; the room is called twofold.{top}")
        elif top not in sys.stdlib_module_names and top not in LIBRARIES[room]:
            wrong.append(f"{said}; {room} may use {', '.join(sorted(LIBRARIES[room]))}")
    return wrong


def _inside(said: str, module: str, room: str, name: str, relative: bool) -> list[str]:
    target = room_of(name)
    if module.startswith(USERS) and target != "twofold":
        return [f"{said}; {'.'.join(module.split('.')[:2])} uses the public API only"]
    if target == room:
        return []
    if relative:
        return [f"{said} by a relative import that leaves the room"]
    if FLOORS[target] > FLOORS[room]:
        return [f"{said}, which is above it"]
    return []


@pytest.mark.parametrize("path", shipped_modules(), ids=label)
def test_module_imports_only_from_below(path):
    assert violations(path.read_text(), module_name(path), path.name == "__init__.py") == []


@pytest.mark.parametrize(
    ("source", "module", "complaint"),
    [
        ("from twofold.eager import tensor", "twofold.ir.spec", "above it"),
        ("import twofold", "twofold.eager.tensor", "above it"),
        ("import twofold as tf", "twofold.tracer.function", "above it"),
        ("def f():\n    from twofold.runtime import cache", "twofold.codegen.loop", "above it"),
        ("from ..ir import spec", "twofold.eager.tensor", "leaves the room"),
        ("from ir import spec", "twofold.eager.tensor", "called twofold.ir"),
        ("import numba", "twofold.codegen.numba_cpu", "when it is itself imported"),
        ("try:\n    from scipy import linalg\nexcept ImportError: pass", "twofold.ir.ops.linalg", "itself imported"),
        ("class A:\n    import networkx", "twofold.ir.graph", "when it is itself imported"),
        ("import torch", "twofold.eager.tensor", "may use"),
        ("def f():\n    import numba", "twofold.ir.spec", "may use"),
        ("from twofold.ir import spec", "twofold.keras.layers", "public API only"),
        ("from ..eager import tensor", "twofold.data.dataset", "public API only"),
    ],
)
def test_a_wrong_import_is_seen(source, module, complaint):
    assert any(complaint in said for said in violations(source, module))


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from twofold.ir import spec\nimport numpy as np\nimport os.path", "twofold.eager.tensor"),
        ("from . import loop\nfrom .loop import Kernel", "twofold.codegen.numba_cpu"),
        ("from .. import spec", "twofold.ir.ops.math"),
        ("def f():\n    import numba", "twofold.codegen.numba_cpu"),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import networkx", "twofold.ir.graph"),
        ("import twofold as tf", "twofold.keras.layers"),
        ("from twofold.eager import tensor\nfrom . import math", "twofold.nn"),
    ],
)
def test_a_right_import_is_left_alone(source, module):
    assert violations(source, module) == []


# The names that dependencies are imported by, where these are not their own.
MODULES = {"diastatic-malt": "malt"}


def is_imported(name: str) -> bool:
    """Whether a module that ships imports something. Only of those that name it the syntax is looked at."""
    for path in shipped_modules():
        source = path.read_text()
        if name in source and any(imported.split(".")[0] == name for _, imported, _ in imports(
                ast.parse(source), module_name(path), path.name == "__init__.py")):
            return True
    return False


def test_every_dependency_is_imported_by_what_ships():
    named = [re.split(r"[><=~!;\[ ]", entry)[0] for entry in project()["project"]["dependencies"]]
    assert [name for name in named if not is_imported(MODULES.get(name, name.replace("-", "_")))] == []
