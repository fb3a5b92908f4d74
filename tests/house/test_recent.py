"""What remembers recent entries does so by `ir/recent.py`, since two steps of an iteration may be interrupted."""

import ast

from house.tree import ROOT, label, nodes, shipped_modules

OWN = ROOT / "ir" / "recent.py"
REMOVING = {"pop", "popitem"}


def evictions(source: str) -> list[int]:
    """The lines that remove the first entry of a dictionary: by `popitem(last=False)`, or whichever comes first."""
    if "next(" not in source and "popitem" not in source:
        return []
    return sorted(node.lineno for node in nodes(ast.parse(source)) if _is_eviction(node))


def _is_eviction(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in REMOVING:
        return any(k.arg == "last" for k in node.keywords) or any(map(_is_first, node.args))
    return isinstance(node, ast.Delete) and any(
        isinstance(target, ast.Subscript) and _is_first(target.slice) for target in node.targets)


def _is_first(node: ast.AST) -> bool:
    """Whether an expression is a call of `next`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "next"


def test_no_module_evicts_by_itself() -> None:
    lines = [f"{label(path)}:{line}" for path in shipped_modules() if path != OWN
             for line in evictions(path.read_text())]
    assert not lines, f"use ir/recent.py: {lines}"


def test_evictions_are_seen() -> None:
    assert evictions("d.pop(next(iter(d)), None)\ndel d[next(iter(d))]\nd.popitem(last=False)") == [1, 2, 3]
    assert evictions("d.pop(key)\nd.popitem()\ndel d[key]\nfirst = next(iter(d))") == []
