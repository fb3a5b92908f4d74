"""Data classes do what those of `dataclasses` do, and have nothing to be compiled when they are declared."""

from __future__ import annotations

import builtins
import copy
import dataclasses
import itertools
import pickle
from typing import Any

import pytest

from twofold.ir import data_class as ours
from twofold.ir.data_class import data_class, field, replace

OPTIONS = [{"frozen": frozen, "eq": eq} for frozen, eq in itertools.product((False, True), repeat=2)]


def pair(options: dict[str, bool]) -> list[Any]:
    """One class as it is declared here and by `dataclasses`."""
    made = []
    for declare, of_field in ((data_class, field), (lambda **o: dataclasses.dataclass(slots=True, **o),
                                                    dataclasses.field)):
        class Point:
            x: int
            y: float = 2.5
            names: list[str] = of_field(default_factory=list)
            note: str = of_field(default="", compare=False, repr=False)

            @property
            def total(self) -> float:
                return self.x + self.y

        made.append(declare(**options)(Point))
    return made


def outcome(function: Any) -> Any:
    """What a function gives, or the kind of its error."""
    try:
        return function()
    except Exception as error:  # noqa: BLE001 - it is compared
        return TypeError if isinstance(error, TypeError) else AttributeError


CALLS = [lambda c: c(1), lambda c: c(1, 2.0), lambda c: c(x=1, y=3.0), lambda c: c(1, note="n"),
         lambda c: c(1, 2.0, ["a"], "n"), lambda c: c(), lambda c: c(1, 2.0, [], "", 5), lambda c: c(1, z=2)]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("before", [0, 100])  # instances made before, from which on the constructor is compiled
def test_instances(options, before):
    mine, theirs = pair(options)
    for _ in range(before):
        mine(1)
    for call in CALLS:
        got, expected = (outcome(lambda kind=kind, call=call: call(kind)) for kind in (mine, theirs))
        if expected is TypeError:
            assert got is TypeError
            continue
        values = [(v.x, v.y, v.names, v.note, v.total, repr(v).rpartition(".")[2]) for v in (got, expected)]
        assert values[0] == values[1]
        for use in (lambda v: setattr(v, "x", 7), lambda v: setattr(v, "other", 7), lambda v: delattr(v, "x")):
            assert (outcome(lambda v=got, use=use: use(v)) is None) == (outcome(lambda v=expected, use=use: use(v))
                                                                         is None)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_equality_and_hashes(options):
    mine, theirs = pair(options)
    made = [[kind(1), kind(1, note="other"), kind(2), kind(1, 3.0)] for kind in (mine, theirs)]
    equal = [[a == b for a in values for b in values] for values in made]
    assert equal[0] == equal[1]
    hashed = [[outcome(lambda v=v: len({v.x: 0, hash(replaced(v)): 0})) for v in values] for values in made]
    assert hashed[0] == hashed[1]
    assert mine(1) != theirs(1)


def replaced(value: Any) -> Any:
    """The value with a tuple in the place of its list, which has no hash."""
    return (dataclasses.replace if dataclasses.is_dataclass(value) else replace)(value, names=())


def test_a_list_of_its_own():
    mine, _ = pair({})
    first, second = mine(1), mine(1)
    first.names.append("a")
    assert second.names == [] and mine(1).names == []


@data_class(frozen=True)
class _Base:
    a: int
    b: int = 2


@data_class(frozen=True)
class _Derived(_Base):
    c: int = 3


def test_fields_of_classes_above_come_first():
    value = _Derived(1)
    assert (value.a, value.b, value.c) == (1, 2, 3) and repr(value) == "_Derived(a=1, b=2, c=3)"
    assert value != _Base(1) and replace(value, b=5) == _Derived(1, 5)
    match value:
        case _Derived(a, b, c):
            assert (a, b, c) == (1, 2, 3)
    assert not hasattr(value, "__dict__")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))],
                         ids=["copy", "deepcopy", "pickle"])
def test_frozen_ones_are_copied(copied):
    assert copied(_Derived(1, 5)) == _Derived(1, 5)


def test_declaring_compiles_nothing(monkeypatch):
    monkeypatch.setattr(ours, "exec", lambda *_: pytest.fail("compiled"), raising=False)
    mine, _ = pair({"frozen": True})
    assert repr(mine(1)).endswith("Point(x=1, y=2.5, names=[])")
    monkeypatch.setattr(ours, "exec", builtins.exec, raising=False)
    assert mine(x=1) == mine(1)
