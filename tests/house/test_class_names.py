"""A name of a class in the engine means one thing: no two classes of its rooms have the same, in whatever files."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest
from house.tree import FLOORS, ROOT, files_under, label, statements

ENGINE = [room for room in FLOORS if room != "twofold"]


def same_names(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """The names that several classes have, those inside functions and classes included, with the classes' lines.

    An underscore before a name says who may use the class, not what it is, and tells no two classes apart.

    Args:
        sources: file -> its text.
    """
    places: dict[str, list[str]] = {}
    for file, source in sources.items():
        for node in statements(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name.strip("_"), []).append(f"{file}:{node.lineno}")
    return {name: lines for name, lines in places.items() if len(lines) > 1}


def test_no_two_classes_of_the_engine_have_the_same_name() -> None:
    paths = [path for room in ENGINE for path in files_under(ROOT / room) if path.suffix == ".py"]
    assert same_names({label(path): path.read_text() for path in paths}) == {}


@pytest.mark.parametrize("second", ["class Slot: ...", "class _Slot: ...", "def f():\n    class Slot: ...",
                                    "class Table:\n    class Slot: ..."])
def test_a_second_class_of_a_name_is_seen(second: str) -> None:
    assert same_names({"a.py": "class Slot: ...", "b.py": second}).keys() == {"Slot"}


def test_names_that_differ_are_left_alone() -> None:
    assert same_names({"a.py": "class Slot: ...\nslot = 1", "b.py": "class Slots: ...\nSlot = 2"}) == {}
