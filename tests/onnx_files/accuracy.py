"""How far exported ops are from eager ones, measured: the table of docs/onnx.md.

    python tests/onnx_files/accuracy.py            print the table
    python tests/onnx_files/accuracy.py --write    put it into the page

Every case of the table of ops is exported in its main dtype and run beside the eager op. For elementwise ops an error
is told in units in the last place of the result that is right, for others in those of the largest one.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import onnx
import onnxruntime
from onnx_files.export_runs import traced
from ops import check
from ops.case import Case, tensors
from ops.table import cases

from twofold.ir import dtypes as dt
from twofold.ir.errors import UnimplementedError
from twofold.ir.op import REGISTRY
from twofold.onnx_files import export_checks
from twofold.onnx_files.export import DEFAULT_OPSET
from twofold.onnx_files.export_meanings import WITHOUT
from twofold.onnx_files.export_model import message, model_of

PAGE = Path(__file__).parents[2] / "docs" / "onnx.md"
BEGIN, END = "<!-- accuracy -->\n", "<!-- /accuracy -->\n"
_COUNT = 4000  # elements of an elementwise case
_SHOWN = 6  # operators that are named


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Op, its operators, and the errors in onnxruntime and in the reference."""
    for op in REGISTRY:
        if op not in WITHOUT:
            yield _row(op, [c for c in cases() if c.ops[:1] == (op,)] or [c for c in cases() if op in c.ops])


def _row(op: str, covering: Sequence[Case]) -> tuple[str, str, str, str]:
    operators: dict[str, int] = {}
    worst: dict[str, float] = {}
    for case in covering:
        if case.main.is_complex or set(case.ops) & WITHOUT.keys():
            continue
        shapes = [(_COUNT,)] * len(case.shapes[0]) if check.is_elementwise(case) else case.shapes[0]
        with contextlib.suppress(UnimplementedError):  # of a case that also has complex numbers
            for name, error in _errors(case, case.arrays(case.main, shapes), operators).items():
                worst[name] = max(worst.get(name, 0.0), error)
    named = list(operators)[:_SHOWN]
    more = ", ..." if len(operators) > _SHOWN else ""
    return op, ", ".join(named) + more or "-", _told(worst.get("onnxruntime")), _told(worst.get("reference"))


def _errors(case: Case, arrays: Sequence[np.ndarray], operators: dict[str, int]) -> dict[str, float]:
    wanted = [t._array for t in case.call(*tensors(arrays))]
    model = model_of("case", traced(case, arrays), DEFAULT_OPSET)
    if len(case.ops) == 1 and not operators:
        operators.update(model.operators)
    proto = message(model)
    feeds = {t.name: np.asarray(a) for t, a in zip(model.inputs, arrays, strict=True)}
    names = [t.name for t in model.outputs]
    errors: dict[str, float] = {}
    for name, run, given in (("onnxruntime", export_checks.run_onnxruntime, proto.SerializeToString()),
                             ("reference", export_checks.run_reference, proto)):
        try:
            results = run(given, feeds, names)
            errors[name] = max(_ulps(np.asarray(g), w, check.is_elementwise(case))
                               for g, w in zip(results, wanted, strict=True))
        except Exception:  # noqa: BLE001 - what the reference cannot do is listed in export_runs.py
            continue
    return errors


def _ulps(got: np.ndarray, want: np.ndarray, each: bool) -> float:
    dtype = dt.from_numpy(want.dtype)
    if not dtype.is_floating:
        return 0.0 if np.array_equal(got, want) or dtype is dt.string else np.inf
    have, goal = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(have) & np.isfinite(goal)
    if not finite.any():
        return 0.0
    size = np.abs(goal[finite])
    unit = check.spacing(size if each else np.full(size.shape, size.max()), dtype)
    return float((np.abs(have[finite] - goal[finite]) / unit).max())


def _told(error: float | None) -> str:
    """An error, rounded up to one digit."""
    if error is None:
        return "-"
    if error == 0 or not np.isfinite(error):
        return "0" if error == 0 else "differs"
    step = 10.0 ** np.floor(np.log10(error))
    return f"{np.ceil(error / step) * step:g}"


def table() -> str:
    """The part of the page."""
    exact, apart = [], []
    for op, operators, first, second in rows():
        if (first, second) == ("0", "0"):
            exact.append(f"`{op}`")
        else:
            apart.append(f"| `{op}` | {operators} | {first} | {second} |")
    versions = f"onnxruntime {onnxruntime.__version__} and the reference of onnx {onnx.__version__}"
    return "\n".join([
        f"Measured with {versions}, opset {DEFAULT_OPSET}, on an x86-64 processor.", "",
        "| op | operators | onnxruntime | reference |", "| --- | --- | --- | --- |", *apart, "",
        "Equal to the bit in both:", "", *_lines(exact), ""])


def _lines(words: Sequence[str]) -> list[str]:
    lines, line = [], ""
    for word in words:
        if len(line) + len(word) > 117:
            lines.append(line.rstrip())
            line = ""
        line += f"{word}, "
    return [*lines, line.rstrip(", ") + "."]


def main() -> None:
    """Prints the table, or writes it."""
    text = table()
    if "--write" not in sys.argv:
        print(text)
        return
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}{text}{END}{after}")


if __name__ == "__main__":
    main()
