"""Locks survive forks: all are made by `runtime/locks.py`, or anew in a child by the module that has them."""

import ast

from house.tree import ROOT, label, nodes, shipped_modules

# Two of `codegen` lie below the runtime; what they wait with is made again in a child, or is one call's own.
OWN = {ROOT / "runtime" / "locks.py", ROOT / "codegen" / "llvm_module.py", ROOT / "codegen" / "apart.py"}
BARE = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier", "allocate_lock"}


def annotations(tree: ast.Module) -> set[int]:
    """The identities of the nodes that say types, where a lock is named and none is made."""
    said = [getattr(node, field, None) for node in nodes(tree) for field in ("annotation", "returns")]
    return {id(part) for node in said if isinstance(node, ast.AST) for part in nodes(node)}


def bare_locks(source: str) -> list[int]:
    """The lines that make locks of `threading` itself, or take what makes them from there."""
    if "thread" not in source:  # neither module is named
        return []
    tree = ast.parse(source)
    types, lines = annotations(tree), []
    for node in nodes(tree):
        taken = isinstance(node, ast.ImportFrom) and node.module in ("threading", "_thread") and any(
            name.name in BARE for name in node.names)
        used = isinstance(node, ast.Attribute) and node.attr in BARE and isinstance(
            node.value, ast.Name) and node.value.id in ("threading", "_thread")
        if taken or used and id(node) not in types:
            lines.append(node.lineno)
    return lines


def test_no_module_makes_a_bare_lock():
    bare = [f"{label(path)}:{line}" for path in shipped_modules() if path not in OWN
            for line in bare_locks(path.read_text())]
    assert not bare, f"use runtime/locks.py: {bare}"


def test_bare_locks_are_seen_and_types_are_left_alone():
    assert bare_locks("import threading\nx: threading.Lock = threading.Lock()") == [2]
    assert bare_locks("from threading import RLock") == [1]
    assert bare_locks("def f(x, make=threading.Event): ...") == [1]
    assert bare_locks("def f(x: threading.Lock) -> dict[str, threading.RLock]: ...\ny: threading.Lock") == []
