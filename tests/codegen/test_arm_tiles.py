"""Code for AArch64, made wherever this runs: the loops of tiles hold multiply-adds and loads, and no more."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator

import pytest
from llvmlite import ir

from twofold.codegen import conv, gemm, llvm_module
from twofold.codegen import target as targets
from twofold.ir import dtypes as dt

TRIPLE = "aarch64-unknown-linux-gnu"
PROCESSORS = {"neon": targets.arm(TRIPLE, "neoverse-n1", ""), "sve 256": targets.arm(TRIPLE, "neoverse-v1", "", 256),
              "sve 512": targets.arm(TRIPLE, "a64fx", "", 512)}


def loops(text: str) -> Iterator[tuple[str, collections.Counter[str]]]:
    """The innermost loops of an assembly text: the function, and how often each instruction occurs; "stack" stands for
    all that reach it."""
    function, labels, lines = "", {}, text.splitlines()
    for number, line in enumerate(lines):
        if label := re.match(r"([\w.]+):", line):
            if not label[1].startswith("."):
                function, labels = label[1], {}
            labels[label[1]] = number
        back = re.match(r"\s+b\.\w+\s+(\.\w+)$", line)
        if back and back[1] in labels:
            body = lines[labels.pop(back[1]):number + 1]
            if not any(re.match(r"\.\w+:", inner) for inner in body[1:]):
                words = collections.Counter(m[1] for inner in body if (m := re.match(r"\s+([a-z]\w*)", inner)))
                words["stack"] = sum("[sp" in inner for inner in body)
                yield function, words


def text_of(target: targets.Target, module: str, part: str, dtype: dt.DType) -> str:
    with targets.use(target):
        made = ir.Module()
        (gemm if module == "gemm" else conv).build(made, dtype, gemm.tiling(dtype), part)
        parsed = llvm_module.verified(made)
        with llvm_module._emission.turn(True):
            return llvm_module.assembly(parsed)


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], ids=lambda d: d.name)
@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize(("module", "part"), [("gemm", "tall"), ("conv", "forward_2"), ("conv", "filters_2")])
def test_tiles_stay_in_registers(module: str, part: str, processor: str, dtype: dt.DType) -> None:
    multiplied = dict[str, int]()
    for function, words in loops(text_of(PROCESSORS[processor], module, part, dtype)):
        rows = re.search(r"(\d+)x2", function)
        if rows and words["fmla"] >= 2 * int(rows[1]):
            multiplied[function] = words["fmla"]
            assert words["stack"] == 0 and words["mov"] <= 1, function
            loads = sum(count for word, count in words.items() if word.startswith("ld"))
            assert loads <= words["fmla"] / 2 + 8, function
    assert multiplied and max(multiplied.values()) == 24


@pytest.mark.parametrize(("dtype", "most"), [(dt.float32, 3), (dt.float64, 4)], ids=["float32", "float64"])
def test_packed_rows_are_loaded_as_vectors(dtype: dt.DType, most: int) -> None:
    """24 multiply-adds for two vectors of B and the rows of A, loaded in pairs; nothing repeats a number."""
    text = text_of(PROCESSORS["neon"], "gemm", "tall", dtype)
    words = next(words for function, words in loops(text) if function == "micro_12x2_packed")
    assert words["fmla"] == 24 and words["ldp"] + words["ldr"] <= most and not words["ld1r"] + words["dup"]


def test_sve_repeats_numbers_as_it_loads_them() -> None:
    text = text_of(PROCESSORS["sve 512"], "gemm", "tall", dt.float32)
    words = next(words for function, words in loops(text) if function == "micro_12x2_packed")
    assert words["fmla"] == 24 and words["ld1rw"] == 12 and not words["mov"]
