"""ONNX's own tests: the smallest cases of each op and of its definition by others, and all cases of former exporters.

`node_tests.py` runs all of them, and writes how many pass into `docs/onnx.md`.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from onnx_files import node_tests

#: cases that are known to fail, by the beginnings of their names
KNOWN = ("test_attention_4d_causal_fp16", "test_image_decoder")
_EACH = 2  # cases of an op


def known(name: str) -> bool:
    """Whether a case is known to fail: products of 16-bit floats that NumPy rounds otherwise, and files of images."""
    return name.startswith(KNOWN) or "bf16" in name


def size(case: node_tests.Case) -> int:
    """How much a case computes with."""
    return sum(np.size(v) for given, _ in node_tests.data(case) for v in given)


def failures(cases: list[node_tests.Case]) -> list[str]:
    """What failed of cases that are to pass."""
    return [f"{c.name}: {told}" for c in cases if not known(c.name) and (told := node_tests.outcome(c))]


def test_the_smallest_cases_of_each_op_pass() -> None:
    by_op = defaultdict(list)
    for case in node_tests.cases():
        by_op[node_tests.op_of(case), len(case.model.graph.node) > 1].append(case)
    assert len(by_op) > 180
    sample = [c for cases in by_op.values() for c in sorted(cases, key=size)[:_EACH]]
    assert failures(sample) == []


def test_cases_of_former_exporters_pass() -> None:
    cases = [c for kind in ("simple", "pytorch-operator", "pytorch-converted") for c in node_tests.cases(kind)]
    assert len(cases) > 120
    assert failures(cases) == []
