"""The whole table: the cases and errors of every `cases_<family>.py` beside this file."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ops.case import Bad, Case

from twofold.ir.op import REGISTRY

HERE = Path(__file__).parent


@cache
def _gathered(name: str) -> list[tuple[str, Any]]:
    labelled = []
    for path in sorted(HERE.glob("cases_*.py")):
        family = path.stem.removeprefix("cases_")
        rows: Sequence[Any] = getattr(importlib.import_module(f"ops.{path.stem}"), name, ())
        labelled += [(f"{family}-{row}", row) for row in rows]
    seen: dict[str, int] = {}
    named = []
    for label, row in labelled:
        number = seen[label] = seen.get(label, 0) + 1
        if number > 1:
            label = f"{label}-{number}"
        if isinstance(row, Case):
            row.id = label  # random numbers follow from it, so it must be unique
        named.append((label, row))
    return named


def cases() -> list[Case]:
    """Every case, each with an id of its own."""
    return [row for _, row in _gathered("CASES")]


@cache
def firsts() -> frozenset[str]:
    """The ids of the cases each of which is the first of some op."""
    seen: set[str] = set()
    some = set()
    for case in cases():
        if not seen.issuperset(case.ops):
            some.add(str(case))
        seen.update(case.ops)
    return frozenset(some)


def samples() -> list[Case]:
    """All cases of ops that have a lowering of their own, and of the others, which share their schedules, the first of
    each; with what names no op. For what compiles every case in some way of its own."""
    return [case for case in cases() if not case.ops or str(case) in firsts()
            or any(REGISTRY[name].lower is not None for name in case.ops)]


def errors() -> list[tuple[str, Bad]]:
    """Every call that must fail, with its id."""
    return _gathered("ERRORS")
