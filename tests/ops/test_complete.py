"""Every op in the registry is complete: it is tested, documented, and has all that a declaration owes."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from ops.table import cases

import twofold  # noqa: F401  declares every op
from twofold.eager import kernels
from twofold.ir.op import REGISTRY, Op
from twofold.runtime.cpu import cpu

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ops.md"

every_op = pytest.mark.parametrize("op", list(REGISTRY.values()), ids=lambda op: op.name)


def covering(op: Op) -> list:
    return [case for case in cases() if op.name in case.ops]


def test_cases_name_ops_that_exist() -> None:
    unknown = {f"{case}: {name}" for case in cases() for name in case.ops if name not in REGISTRY}
    assert not unknown


@every_op
def test_is_tested(op: Op) -> None:
    assert covering(op), "no Case names it"


@every_op
def test_its_gradient_is_tested(op: Op) -> None:
    if op.vjp is not None:
        assert any(case.grad is not False for case in covering(op)), "it has a gradient, and no Case tests one"


@every_op
def test_is_declared_in_full(op: Op) -> None:
    assert callable(op.infer)
    assert op.vjp is None or callable(op.vjp)
    assert inspect.getdoc(op)
    given = inspect.signature(op)
    assert [p for p in given.parameters.values() if p.kind is not p.KEYWORD_ONLY], "an op has operands"
    assert set(op.saves or ()) <= {*op.params, "out"}, f"saves={op.saves} names no operand"


@every_op
def test_its_gradient_rule_reads_no_value_that_is_not_saved(op: Op) -> None:
    """Where the rule has a name, its signature says which operands and results reach it as tensors."""
    rule = getattr(op.vjp, "__annotations__", {})
    operands = op.params if not op.variadic else ()
    positional = [p for p in inspect.signature(op.vjp).parameters if p in rule][1:] if rule else []
    for name, parameter in zip(("out", *operands), positional, strict=False):
        assert op.saves is None or name in op.saves or rule[parameter] == "Spec", \
            f"{parameter} is {rule[parameter]}, and saves={op.saves}"


@every_op
def test_runs_eagerly(op: Op) -> None:
    derived = op.body or op.reduction or op.view or op.host
    driven = kernels.driver(op, [], op.defaults) is not None
    cpu.prepare()
    assert derived is not None or driven or cpu.lowering(op.name) is not None, f"lower={op.lower!r} has no lowering"


@every_op
def test_is_in_the_table_of_ops(op: Op) -> None:
    assert f"| `{op.name}(" in PAGE.read_text(), "run `make docs`"
