"""The conformance tests of the array API standard (data-apis/array-api-tests), run on `twofold.array_api`.

    python tests/standard/suite.py            clones them into build/ and runs them
    python tests/standard/suite.py PATH       runs those of a checkout with its submodule
    python tests/standard/suite.py --write    writes the table of `docs/numpy.md`, too

`skips.txt` tells which are not run, and why; `plugin.py` what is set for them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SOURCE = "https://github.com/data-apis/array-api-tests"
REPORT = ROOT / "build" / "array-api-tests.xml"
NEEDS = ["ndindex>=1.8", "pytest-json-report"]
MARKS = "<!-- array api -->", "<!-- /array api -->"


def checkout(path: str | None) -> Path:
    """The folder of the tests, which are cloned where no path is given."""
    if path is not None:
        return Path(path)
    folder = ROOT / "build" / "array-api-tests"
    if not folder.exists():
        subprocess.run(["git", "clone", "--recurse-submodules", "--depth=1", SOURCE, str(folder)], check=True)
    return folder


def run(folder: Path, examples: int, jobs: int) -> None:
    """Run the tests, whose results go to `REPORT`."""
    REPORT.parent.mkdir(exist_ok=True)
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *NEEDS], check=True)
    command = [sys.executable, "-m", "pytest", "-c", "pytest.ini", "-q", "-p", "standard.plugin",
               "-p", "no:cacheprovider", "-n", str(jobs), f"--max-examples={examples}", "--disable-deadline",
               f"--skips-file={HERE / 'skips.txt'}", f"--junitxml={REPORT}", "array_api_tests"]
    subprocess.run(command, cwd=folder, env={
        **os.environ, "PYTHONPATH": str(ROOT / "tests"), "ARRAY_API_TESTS_MODULE": "twofold.array_api"}, check=False)


def outcome(case: ElementTree.Element) -> str:
    """What became of a test; one of `skips.txt` is "skipped"."""
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    skipped = case.find("skipped")
    if skipped is None:
        return "passed"
    return "skipped" if "--skips-file" in (skipped.get("message") or "") else "not applicable"


def skips() -> list[tuple[str, int]]:
    """The reasons of `skips.txt`, with how many lines have each."""
    reasons: list[tuple[str, int]] = []
    for block in (HERE / "skips.txt").read_text().split("\n\n")[1:]:
        reason, *tests = block.strip().splitlines()
        reasons.append((reason.lstrip("# "), len(tests)))
    return reasons


def table() -> str:
    """The results as a table, and the reasons of what is skipped."""
    by_file: dict[str, Counter[str]] = {}
    for case in ElementTree.parse(REPORT).iter("testcase"):
        module = next(part for part in (case.get("classname") or "").split(".") if part.startswith("test_"))
        name = module.removeprefix("test_").replace("_", " ")
        by_file.setdefault(name, Counter())[outcome(case)] += 1
    total = sum(by_file.values(), Counter())
    rows = [*sorted(by_file.items()), ("all", total)]
    lines = ["| tests of | passed | failed | skipped | not applicable |", "| --- | --- | --- | --- | --- |"]
    kinds = ("passed", "failed", "skipped", "not applicable")
    lines += [f"| {name} | {' | '.join(str(counts[kind]) for kind in kinds)} |" for name, counts in rows]
    return "\n".join([*lines, "", "Skipped, by entries of `tests/standard/skips.txt`:", "",
                      *[f"- {count}: {reason}." for reason, count in skips()]])


def write(text: str) -> None:
    """Put the table into the page."""
    page = ROOT / "docs" / "numpy.md"
    before, _, rest = page.read_text().partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    page.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}")


def main() -> None:
    """Run the tests as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", nargs="?")
    parser.add_argument("--examples", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    run(checkout(given.path), given.examples, given.jobs)
    print(table())
    if given.write:
        write(table())


if __name__ == "__main__":
    main()
