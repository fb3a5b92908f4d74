"""ONNX's own tests of its ops, run by this library: the cases of `onnx.backend.test`, and which of them count.

    python tests/onnx_files/node_tests.py            run all that count, and say what failed
    python tests/onnx_files/node_tests.py SOFTMAX    those whose names hold a text
    python tests/onnx_files/node_tests.py --kind=simple --kind=pytorch-operator --kind=pytorch-converted
    python tests/onnx_files/node_tests.py --write    all, and write the table of `docs/onnx.md`
"""

from __future__ import annotations

import re
import sys
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

import twofold as tf

__all__ = ["Case", "cases", "outcome"]

_T = TensorProto
#: floats, integers, bools and strings
_TYPES = {_T.FLOAT, _T.DOUBLE, _T.FLOAT16, _T.BFLOAT16, _T.BOOL, _T.INT8, _T.INT16, _T.INT32, _T.INT64, _T.UINT8,
          _T.UINT16, _T.UINT32, _T.UINT64, _T.STRING}
_QUANTISED = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearMatMul", "QLinearConv",
              "MatMulInteger", "ConvInteger"}
#: their results are random numbers, whose values the cases do not tell
_RANDOM = {"Bernoulli", "RandomUniformLike"}
_DRAWN = ("test_training_dropout",)

_OPS = {schema.name for schema in onnx.defs.get_all_schemas()}

Case = Any  # onnx.backend.test.case.test_case.TestCase


def op_of(case: Case) -> str:
    """The op that a case is of. Where the graph is an op's definition by others, its nodes have that op's name."""
    nodes = case.model.graph.node
    if len(nodes) == 1:
        return nodes[0].op_type
    first = next((o for n in nodes for o in n.output if "_test_" in o), "")
    name = first.split("_test_")[0]
    return name if name in _OPS else "several"


def counts(case: Case) -> bool:
    """Whether a case is of the default domain, without sequences, optionals and quantised types, which are told by the
    types of inputs, outputs and values, and by the ops."""
    graph = case.model.graph
    values = [*graph.input, *graph.output, *graph.value_info]
    return (all(v.type.WhichOneof("value") == "tensor_type" and v.type.tensor_type.elem_type in _TYPES for v in values)
            and all(n.domain in ("", "ai.onnx") and n.op_type not in _QUANTISED and "Sequence" not in n.op_type
                    for n in graph.node))


def cases(kind: str = "node") -> list[Case]:
    """All cases of a kind that count."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests
        found = load_model_tests(kind=kind)
    for case in found:
        if case.model is None:
            case.model = onnx.load(Path(case.model_dir) / "model.onnx")
    return [c for c in found if counts(c)]


def data(case: Case) -> Iterator[tuple[list[Any], list[Any]]]:
    """The inputs and the expected outputs of a case."""
    for given, expected in case.data_sets or _stored(Path(case.model_dir)):
        yield [_array(v) for v in given], [_array(v) for v in expected]


def _stored(folder: Path) -> Iterator[tuple[list[Any], list[Any]]]:
    for data_set in sorted(folder.glob("test_data_set_*")):
        sides = []
        for side in ("input", "output"):
            files = sorted(data_set.glob(f"{side}_*.pb"), key=lambda p: int(p.stem.rsplit("_", 1)[1]))
            sides.append([onnx.TensorProto.FromString(f.read_bytes()) for f in files])
        yield sides[0], sides[1]


def _array(value: Any) -> Any:
    return onnx.numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def outcome(case: Case) -> str:
    """What went wrong with a case; empty where nothing did."""
    random = any(n.op_type in _RANDOM for n in case.model.graph.node) or (
        case.name.startswith(_DRAWN) and "zero_ratio" not in case.name)
    try:
        model = tf.import_onnx(case.model.SerializeToString())
        for given, expected in data(case):
            results = model(*given)
            results = results if isinstance(results, tuple) else (results,)
            for want, have in zip(expected, results, strict=True):
                if told := _difference(np.asarray(want), _numpy(have), case, random):
                    return told
    except Exception as e:  # noqa: BLE001 (a report of what it is)
        return f"{type(e).__name__}: {e}"
    return ""


def _numpy(tensor: Any) -> np.ndarray:
    """The array of a tensor, of a single string, too."""
    return np.array(tensor.numpy(), object) if tensor.dtype == tf.string else tensor.numpy()


def _difference(want: np.ndarray, have: np.ndarray, case: Case, random: bool) -> str:
    if want.shape != have.shape or want.dtype != have.dtype:
        return f"{have.dtype}{list(have.shape)} where {want.dtype}{list(want.shape)} is expected"
    if random:
        return ""
    if want.dtype.kind == "O":
        texts = [text if isinstance(text, bytes) else text.encode() for text in want.ravel()]
        return "" if texts == list(have.ravel()) else f"{have.tolist()} where {want.tolist()} is expected"
    kind = np.float64 if want.dtype.kind not in "iub" else want.dtype
    try:
        np.testing.assert_allclose(have.astype(kind), want.astype(kind), rtol=case.rtol, atol=case.atol)
    except AssertionError as e:
        return str(e)
    return ""


PAGE = Path(__file__).resolve().parents[2] / "docs" / "onnx.md"
_BLOCK = re.compile(r"(<!-- node tests -->\n).*?(<!-- /node tests -->)", re.DOTALL)


def _page(passed: Counter[str], failed: dict[str, list[str]]) -> str:
    """What `docs/onnx.md` says of the cases: how many passed by op, and those that did not."""
    right, wrong = sum(passed.values()), sum(map(len, failed.values()))
    whole = [f"`{op}` {n}" for op, n in sorted(passed.items()) if op not in failed]
    lines = [f"Of {right + wrong} cases (onnx {onnx.__version__}), {right} pass: "
             f"{100 * right / (right + wrong):.1f} %. All cases pass of", ""]
    lines += textwrap.wrap(", ".join(whole) + ".", 120, break_on_hyphens=False)
    lines += ["", "| op | pass | fail |", "| --- | --- | --- |"]
    lines += [f"| `{op}` | {passed[op]} | {', '.join(n.removeprefix('test_') for n in names)} |"
              for op, names in sorted(failed.items())]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run the cases that the arguments name."""
    kinds = [a.removeprefix("--kind=") for a in sys.argv[1:] if a.startswith("--kind=")] or ["node"]
    texts = [a.lower() for a in sys.argv[1:] if not a.startswith("--")]
    chosen = [c for kind in kinds for c in cases(kind) if not texts or any(t in c.name.lower() for t in texts)]
    passed: Counter[str] = Counter()
    failed: dict[str, list[str]] = {}
    for case in chosen:
        told = outcome(case)
        if not told:
            passed[op_of(case)] += 1
        else:
            failed.setdefault(op_of(case), []).append(case.name)
            print(f"{case.name}: {' '.join(told.split())[:300]}", flush=True)
    print(f"{sum(passed.values())} of {len(chosen)} pass")
    if "--write" in sys.argv:
        PAGE.write_text(_BLOCK.sub(lambda m: m[1] + _page(passed, failed) + m[2], PAGE.read_text()))
    return int(bool(failed) and "--write" not in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
