"""The source tree as the house tests see it: where the rooms are, which files ship, and under which names."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Room -> floor. A room imports only from floors below it.
FLOORS = {"ir": 0, "codegen": 1, "runtime": 2, "eager": 3, "tracer": 4, "twofold": 5}


@cache
def project() -> dict:
    """The parsed `pyproject.toml`."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@cache
def files_under(folder: Path) -> tuple[Path, ...]:
    """Every file below `folder`, sorted, without what Python and editors leave there; looked for once."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return tuple(sorted(p for p in paths if "__pycache__" not in p.parts and not p.name.startswith(".")))


def shipped_files() -> list[Path]:
    """Every file of the rooms and the front door."""
    return [path for room in FLOORS for path in files_under(ROOT / room)]


@cache
def shipped_modules() -> list[Path]:
    """Every Python file that ships."""
    return [path for path in shipped_files() if path.suffix == ".py"]


@cache
def all_modules() -> list[Path]:
    """Every Python file of the project: what ships, the tests, examples, benchmarks and docs."""
    rest = [path for top in ("tests", "examples", "benchmarks", "docs") for path in files_under(ROOT / top)]
    return shipped_modules() + [path for path in rest if path.suffix == ".py"]


def installed_path(path: Path) -> str:
    """Where a shipped file lies inside the wheel: `ir/spec.py` is `twofold/ir/spec.py`."""
    relative = path.relative_to(ROOT)
    return relative.as_posix() if relative.parts[0] == "twofold" else f"twofold/{relative.as_posix()}"


def module_name(path: Path) -> str:
    """The name a shipped file is imported by."""
    return installed_path(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def nodes(tree: ast.AST) -> list[ast.AST]:
    """All nodes of a tree of syntax in the order of `ast.walk`, in half its time, but for contexts: whether a name is
    read or set says no node of its own."""
    reached = [tree]
    for node in reached:
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                reached += [part for part in value if isinstance(part, ast.AST)]
            elif isinstance(value, ast.AST) and field != "ctx":
                reached.append(value)
    return reached


def statements(tree: ast.AST) -> list[ast.stmt]:
    """All statements of a tree of syntax, at any depth: a tenth of its nodes."""
    reached = [tree]
    for node in reached:
        for field in ("body", "handlers", "cases", "orelse", "finalbody"):
            reached += getattr(node, field, ())
    return [node for node in reached if isinstance(node, ast.stmt)]


def label(path: Path) -> str:
    """A file's name in a test id or a message."""
    return path.relative_to(ROOT).as_posix()
