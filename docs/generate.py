"""Write the pages of the documentation that come out of the code: `docs/ops.md`, the table of all ops, and
`docs/coverage.md`, where the public names of TensorFlow stand.

    python docs/generate.py            rewrite the page
    python docs/generate.py --check    end with status 1 if it is not what the code says

A test runs the check, so the page is never older than the ops.
"""

from __future__ import annotations

import collections
import inspect
import json
import sys
from pathlib import Path

import twofold
from twofold._front.refusals import refusal
from twofold.ir.op import REGISTRY, Op

PAGE = Path(__file__).with_name("ops.md")

_HEAD = """\
# Ops

Every op that programs are made of, from its declaration in `ir/ops/`; `make docs` writes this page. The public
functions (`tf.*`) are made of these. *Gradient*: `yes` where the op has a rule, to any order; `no` where it is not
differentiable. *Made by*: `body` and `reduction` are generated from one scalar function, `view` moves no data,
`kernel` has a generator of its own, and `host` calls NumPy or LAPACK.
"""


def _made_by(op: Op) -> str:
    forms = {"body": op.body, "reduction": op.reduction, "view": op.view, "kernel": op.lower, "host": op.host}
    return next(name for name, form in forms.items() if form is not None)


def _signature(op: Op) -> str:
    attrs = [n if d is inspect.Parameter.empty else f"{n}={d!r}" for n, d in op.defaults.items()]
    operands = [f"*{op.params[0]}"] if op.variadic else list(op.params)
    return f"{op.name}({', '.join(operands + attrs)})"


def _row(op: Op) -> str:
    summary = inspect.cleandoc(op.__doc__ or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    gradient = "no" if op.vjp is None else "yes"
    return f"| `{_signature(op)}` | {summary} | {gradient} | {_made_by(op)} |"


def page() -> str:
    """The text of `docs/ops.md`: one table for each file of `ir/ops/`."""
    families: dict[str, list[Op]] = {}
    for op in REGISTRY.values():
        families.setdefault(op.__module__.rsplit(".", 1)[-1], []).append(op)
    parts = [_HEAD]
    for family in sorted(families):
        parts += [f"## {family}", "", "| op | what it does | gradient | made by |", "| --- | --- | --- | --- |"]
        parts += [_row(op) for op in sorted(families[family], key=lambda op: op.name)]
        parts.append("")
    return "\n".join(parts)


# -- coverage -----------------------------------------------------------------------------------------------------
COVERAGE = Path(__file__).with_name("coverage.md")
NAMES = Path(__file__).parents[1] / "tests" / "names" / "names.json"
RAW_OPS = NAMES.with_name("raw_ops.json")
LIBRARIES = NAMES.parents[1] / "clients" / "results"

_COVERAGE_HEAD = """\
# TensorFlow's names

Where each public name of TensorFlow {version} stands, of its {count} without raw ops, `compat`, DTensor, Lite and TPU;
`make docs` writes this page, from `tests/names/names.json`, which `tests/names/record.py` records. *Here*: the
name is there. *Refused*: asking for it raises an AttributeError that says why, or what to use
(`twofold/_front/refusals.py`). *Missing*: neither.

**{here} are here, {refused} are refused, {missing} are missing: {share:.1f} % are here or refused.**

`tf.raw_ops`: {raw} of {raw_count}, with TensorFlow's arguments; of the others some are functions of `tf` without a raw
op here, and most belong to what is refused.
"""


def standing(name: str) -> str:
    """Where a name stands: "here", "missing", or the sentence that refuses it."""
    owner: object = twofold
    parts = name.split(".")
    for depth, part in enumerate(parts[1:], 2):
        try:
            owner = getattr(owner, part)
        except AttributeError:
            sentences = [refusal(".".join(parts[:n])) for n in range(depth, len(parts) + 1)]
            return next((s for s in reversed(sentences) if s is not None), "missing")
    return "here"


def coverage_page() -> str:
    """The text of `docs/coverage.md`."""
    recorded = json.loads(NAMES.read_text())
    standings = {name: standing(name) for name in recorded["names"]}
    kinds = {name: s if s in ("here", "missing") else "refused" for name, s in standings.items()}
    totals = collections.Counter(kinds.values())
    parts = [_COVERAGE_HEAD.format(
        version=recorded["tensorflow"], count=len(kinds), here=totals["here"], refused=totals["refused"],
        missing=totals["missing"], share=100 * (totals["here"] + totals["refused"]) / len(kinds),
        raw=len(twofold.raw_ops.__all__), raw_count=len(json.loads(RAW_OPS.read_text())["ops"]))]
    modules: dict[str, collections.Counter[str]] = {}
    for name, kind in kinds.items():
        modules.setdefault(name.rpartition(".")[0], collections.Counter())[kind] += 1
    parts += ["| module | here | refused | missing |", "| --- | --- | --- | --- |"]
    parts += [f"| `{m}` | {c['here']} | {c['refused']} | {c['missing']} |" for m, c in sorted(modules.items())]
    parts += ["", *libraries(), "", "## Refused", "", "| names | why, or what to use |", "| --- | --- |"]
    by_sentence: dict[str, list[str]] = {}
    for name, s in standings.items():
        if kinds[name] == "refused":
            by_sentence.setdefault(s, []).append(name)
    parts += [f"| {_listed(names)} | {s.replace('|', '&#124;')} |" for s, names in sorted(by_sentence.items())]
    parts += ["", "## Missing", ""]
    missing: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        if kind == "missing":
            module, _, last = name.rpartition(".")
            missing.setdefault(module, []).append(last)
    parts += [f"- `{m}`: {', '.join(f'`{n}`' for n in sorted(names))}" for m, names in sorted(missing.items())]
    return "\n".join(parts) + "\n"


_LIBRARIES_HEAD = """\
## Libraries

Libraries that are written for TensorFlow, run on twofold under its name ([tensorflow.md](tensorflow.md)) by their own
tests, in one environment with TensorFlow {version}; `make clients` runs them and writes what this table is made of.
*There*: the tests that pass on TensorFlow. *Here*: those of them that pass on twofold, and the seconds of that run.
*Example*: whether a short program in the manner of the library's README (`tests/clients/readme_programs.py`) computes
the same numbers on both, to 1e-5.
"""


def libraries() -> list[str]:
    """The lines of the section about libraries, from what `tests/clients/run.py` wrote."""
    results = [json.loads(path.read_text()) for path in sorted(LIBRARIES.glob("*.json"))]
    version = json.loads(NAMES.read_text())["tensorflow"]
    parts = [*_LIBRARIES_HEAD.format(version=version).split("\n"),
             "| library | tests | ran there | there | here | % | s | example |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for r in results:
        share = int(1000 * r["passed_here"] / max(r["passed_there"], 1)) / 10
        parts.append(f"| {r['client']} {r['version']} | {r.get('what', 'all')} | {r['tests_on_tensorflow']} | "
                     f"{r['passed_there']} | {r['passed_here']} | {share:.1f} | {r['seconds']} | "
                     f"{r.get('example', '')} |")
    for r in results:
        if r.get("remaining"):
            parts += ["", f"What fails of {r['client']}, by the beginnings of its errors:", ""]
            parts += [f"- {entry['tests']}: `{entry['cause'].replace('`', '')}`" for entry in r["remaining"]]
    return parts


def _listed(names: list[str]) -> str:
    """Names as a cell shows them: those of one module together."""
    modules: dict[str, list[str]] = {}
    for name in names:
        module, _, last = name.rpartition(".")
        modules.setdefault(module, []).append(last)
    return "; ".join([f"`{m}`: {', '.join(sorted(lasts))}" if len(lasts) > 1 else f"`{m}.{lasts[0]}`"
                      for m, lasts in sorted(modules.items())])


def main() -> int:
    pages = {PAGE: page(), COVERAGE: coverage_page()}
    if "--check" in sys.argv[1:]:
        return 0 if all(p.is_file() and p.read_text() == text for p, text in pages.items()) else 1
    for path, text in pages.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
