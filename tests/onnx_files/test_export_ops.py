"""Every op of the registry in ONNX: it has a meaning, and the table of ops gives what it gives here, or a reason.

Each case of the table is exported in its main dtype and, in turns, in one of its others; `TWOFOLD_ONNX_ALL=1` takes all
dtypes, shapes, special values and opsets.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import numpy as np
import pytest
from onnx_files.export_runs import Unfit, check_case, check_gradient
from ops import check
from ops.case import Case, combinations, tensors
from ops.table import cases

import twofold as tf
from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType
from twofold.ir.op import REGISTRY
from twofold.onnx_files.export import DEFAULT_OPSET, OPSETS
from twofold.onnx_files.export_meanings import WITHOUT, meaning_of
from twofold.onnx_files.export_table import elementwise
from twofold.onnx_files.export_writer import NoMeaning

PAGE = Path(__file__).parents[2] / "docs" / "onnx.md"
ALL = os.environ.get("TWOFOLD_ONNX_ALL") == "1"
# Cases whose operands are not what the op asks for in that dtype.
UNSORTED = {("searchsorted", dt.uint8), ("searchsorted", dt.uint16), ("searchsorted", dt.uint32),
            ("searchsorted", dt.uint64)}
# What runtimes make of special values otherwise, as docs/onnx.md says.
RUNTIMES_OWN = {"max_pool": "NaN is no maximum", "log_softmax": "onnxruntime's of float64 with infinity"}


def real(case: Case) -> list[DType]:
    """The dtypes in which a case has a meaning."""
    if any(d is not None and d.is_complex for d in case.dtypes_per_operand or ()):
        return []
    return [d for d in case.dtypes if not d.is_complex and not any((op, d) in UNSORTED for op in case.ops)]


def refused(case: Case) -> bool:
    """Whether an op of a case has no meaning."""
    return bool(set(case.ops) & WITHOUT.keys())


def turn(case: Case, dtypes: list[DType]) -> list[DType]:
    """The main dtype and one other, another for each case."""
    others = dtypes[1:]
    return [*dtypes[:1], *([others[zlib.crc32(str(case.id).encode()) % len(others)]] if others else [])]


WITH_MEANING = [c for c in cases() if not refused(c) and real(c)]


def checked(case: Case, arrays: list[np.ndarray], opset: int = DEFAULT_OPSET, open_sizes: bool = False) -> None:
    """The case is the same in ONNX, or is refused for what its parts are."""
    try:
        check_case(case, arrays, opset, open_sizes)
    except Unfit:
        return
    except tf.errors.UnimplementedError as error:
        assert set(error.op.split()) <= WITHOUT.keys() or "complex" in str(error) or "opset" in str(error) \
            or (open_sizes and "number of channels" in str(error)), str(error)


@pytest.mark.parametrize("op", list(REGISTRY), ids=str)
def test_op_has_a_meaning_or_a_reason(op):
    if op in WITHOUT:
        with pytest.raises(NoMeaning) as told:
            meaning_of(op)
        assert told.value.why and told.value.instead
    else:
        assert meaning_of(op) is not elementwise or REGISTRY[op].body is not None


def test_every_case_with_reasons_is_refused_with_the_users_line():
    seen = set()
    for case in cases():
        [own, *_] = [op for op in case.ops if op in WITHOUT] or [None]
        if own is None or own in seen or case.main is dt.string:
            continue
        seen.add(own)
        with pytest.raises(tf.errors.UnimplementedError, match=r"(?s)cannot be exported to ONNX: .*; .*\n  At "):
            check_case(case, case.arrays(case.main, case.shapes[0]))
    assert seen == WITHOUT.keys()


@pytest.mark.parametrize("case", WITH_MEANING, ids=str)
def test_case(case):
    for dtype in real(case) if ALL else turn(case, real(case)):
        for shapes in case.shapes if ALL and dtype is case.main else case.shapes[:1]:
            checked(case, case.arrays(dtype, shapes, salt=shapes))


@pytest.mark.parametrize("case", WITH_MEANING if ALL else WITH_MEANING[::4], ids=str)
def test_case_with_unknown_sizes(case):
    for shapes in case.shapes if ALL else case.shapes[:1]:
        arrays = case.arrays(case.main, shapes, salt=shapes)
        if not all(t.size for t in (*arrays, *[r._array for r in case.call(*tensors(arrays))])):
            continue  # what runtimes make of nothing, where only running tells that there is nothing, is theirs
        try:
            checked(case, arrays, open_sizes=True)
        except (TypeError, ValueError) as error:  # it cannot be traced without its sizes
            assert "size" in str(error) or "Dim" in str(error) or "None" in str(error) or "rank" in str(error), error


@pytest.mark.parametrize("case", WITH_MEANING if ALL else WITH_MEANING[1::12], ids=str)
def test_case_in_the_oldest_and_the_newest_opset(case):
    for opset in (OPSETS[0], 20, 23, OPSETS[-1]) if ALL else (OPSETS[0], OPSETS[-1]):
        checked(case, case.arrays(case.main, case.shapes[0]), opset)


DIFFERENTIABLE = [c for c in WITH_MEANING if c.grad is not False and c.main is dt.float32]


@pytest.mark.parametrize("case", DIFFERENTIABLE if ALL else DIFFERENTIABLE[2::9], ids=str)
def test_gradient(case):
    arrays = case.arrays(case.main, case.shapes[0], case.grad_domain, salt="grad")
    try:
        if case.differentiable([dt.from_numpy(a.dtype) for a in arrays]):
            check_gradient(case, arrays)
    except tf.errors.UnimplementedError as error:
        assert set(error.op.split()) <= WITHOUT.keys() or "complex" in str(error), str(error)
    except ValueError as error:
        assert "add_n: inputs must hold" in str(error), str(error)  # nothing real comes out


SPECIAL = [c for c in WITH_MEANING if c.special and not RUNTIMES_OWN.keys() & set(c.ops)]


@pytest.mark.parametrize("case", SPECIAL if ALL else SPECIAL[::3], ids=str)
def test_special_values(case):
    for dtype in [d for d in real(case) if d.is_floating][:None if ALL else 1]:
        count = len(case.shapes[0])
        dtypes = case.operand_dtypes(dtype, count)
        chosen = case.special_ops if case.special_ops is not None else [i for i in range(count) if dtypes[i] is dtype]
        if check.is_elementwise(case):
            vectors = combinations(case.special, len(chosen), dtype)
            arrays = case.arrays(dtype, [vectors[0].shape] * count, salt="special")
            for i, vector in zip(chosen, vectors, strict=True):
                arrays[i] = vector
            checked(case, arrays)
            continue
        for value in case.special:
            arrays = case.arrays(dtype, case.shapes[0], salt="special")
            for i in chosen:
                arrays[i].reshape(-1)[arrays[i].size // 2:][:1] = value
            checked(case, arrays)


def test_the_page_names_every_op():
    """Those with a meaning in the table of accuracy, the others with the reason."""
    page = PAGE.read_text()
    reasons, _, accuracy = page.partition("### Accuracy")
    assert [op for op in WITHOUT if f"`{op}`" not in reasons or WITHOUT[op].why not in reasons] == []
    assert [op for op in REGISTRY if op not in WITHOUT and f"`{op}`" not in accuracy] == []
