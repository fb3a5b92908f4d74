"""Locks survive forks: all are made by `runtime/locks.py`."""

import ast

from house.tree import ROOT

ROOMS = ("ir", "codegen", "runtime", "eager", "tracer", "twofold")
BARE = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier", "allocate_lock"}


def test_no_module_makes_a_bare_lock():
    found = []
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            if path == ROOT / "runtime" / "locks.py":
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                taken = isinstance(node, ast.ImportFrom) and node.module in ("threading", "_thread") and any(
                    name.name in BARE for name in node.names)
                used = isinstance(node, ast.Attribute) and node.attr in BARE and isinstance(
                    node.value, ast.Name) and node.value.id in ("threading", "_thread")
                if taken or used:
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not found, f"use runtime/locks.py: {found}"
