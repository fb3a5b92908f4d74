"""Every op against its oracle: values in all dtypes, layouts, special values, shape rules and gradients."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ops import check
from ops.case import Case
from ops.table import cases, firsts

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType

_IN_BETTER_CODE = {case.id for case in cases()[::3]}  # beside that of the first tier
_NUMBERS = {case.id: number for number, case in enumerate(cases())}


def each(wanted: Callable[[Case], bool]) -> pytest.MarkDecorator:
    """Parametrises a test with the cases that `wanted` picks."""
    return pytest.mark.parametrize("case", [c for c in cases() if wanted(c)], ids=str)


def is_in_turn(case: Case, dtype: DType) -> bool:
    """Whether a case is tested in one of its dtypes.

    The first case of each op is, and so are conversions and compositions of ops. What further cases of an op differ
    in is the same for all dtypes: every third one of them is tested, in turns from case to case.
    """
    return (dtype is case.main or str(case) in firsts() or len(case.ops) != 1 or "cast" in case.ops[0]
            or (_NUMBERS[case.id] + case.dtypes.index(dtype)) % 3 == 0)


def each_dtype(wanted: Callable[[Case, DType], bool]) -> pytest.MarkDecorator:
    """Parametrises a test with cases and the dtypes whose turn it is."""
    rows = [pytest.param(c, d, id=f"{c}-{d.name}") for c in cases() for d in c.dtypes
            if is_in_turn(c, d) and wanted(c, d)]
    return pytest.mark.parametrize(("case", "dtype"), rows)


def grad_dtypes(case: Case) -> set[DType]:
    """The dtypes in which `case` must have gradients."""
    return set(dt.FLOATING if case.grad_dtypes is None else case.grad_dtypes) & set(case.dtypes)


def has_gradient(case: Case, dtype: DType) -> bool:
    """Whether some operand is differentiable when `dtype` is tested."""
    return bool(case.differentiable(case.operand_dtypes(dtype, len(case.shapes[0]))))


@each_dtype(lambda case, dtype: True)
def test_values(case: Case, dtype: DType) -> None:
    def values() -> check.Watcher:
        return check.values(case, dtype, case.shapes[0])
    if dtype is not case.main:
        values()
        return
    watcher = check.in_better_code(values) if case.id in _IN_BETTER_CODE else values()
    assert set(case.ops) <= watcher.seen, f"runs {sorted(watcher.seen)} only"


@each(lambda case: len(case.shapes) > 1)
def test_more_shapes(case: Case) -> None:
    for shapes in case.shapes[1:]:
        check.values(case, case.main, shapes, salt=shapes)


@each(check.is_elementwise)
def test_ranks(case: Case) -> None:
    check.ranks(case)


@each(lambda case: case.layouts is True and case.oracle is not None and any(case.shapes[0]))
def test_layouts(case: Case) -> None:
    check.layouts(case)


@each_dtype(lambda case, dtype: bool(case.special) and dtype.is_floating)
def test_special_values(case: Case, dtype: DType) -> None:
    check.specials(case, dtype)


@each(lambda case: case.differences is True and dt.float64 in case.dtypes and has_gradient(case, dt.float64))
def test_gradient(case: Case) -> None:
    for shapes in case.shapes:
        check.gradient(case, dt.float64, shapes)


@each(lambda case: case.differences is True and case.second is True and dt.float64 in case.dtypes
      and has_gradient(case, dt.float64))
def test_second_derivative(case: Case) -> None:
    check.second(case, dt.float64)


@each(lambda case: case.differences is True and case.complex_grad is True and dt.complex128 in case.dtypes
      and has_gradient(case, dt.complex128))
def test_complex_gradient(case: Case) -> None:
    check.gradient(case, dt.complex128, case.shapes[0])
    if case.second is True:
        check.second(case, dt.complex128)


@each_dtype(lambda case, dtype: dtype in grad_dtypes(case) and has_gradient(case, dtype))
def test_gradient_in_every_dtype(case: Case, dtype: DType) -> None:
    check.gradient_exists(case, dtype)
