"""Keras's own tests, on TensorFlow and on twofold as its TensorFlow, and how many of them pass.

    python tests/clients/keras_suite.py --python ENVIRONMENT/bin/python             all folders of tests
    python tests/clients/keras_suite.py --python ... --failures FILE ops layers     some; failures in a file

The environment holds TensorFlow, Keras, pytest, pytest-xdist and what twofold needs. Prints one line of JSON: `client`,
`version`, `tests_on_tensorflow` (tests that ran there), `passed_there`, `passed_here` (of those that passed there) and
`seconds`. `--baseline FILE` keeps what TensorFlow gave, and a run that finds the file does not ask TensorFlow again.

A test is given a minute; one that takes longer has failed. The file is also the plugin of pytest that writes results.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

try:
    import pytest
except ImportError:  # the environment's interpreter has it, this one need not
    pytest = None

_ROOT = Path(__file__).resolve().parents[2]
_SECONDS = 60
_RESULTS = "KERAS_SUITE_RESULTS"
_HERE = "KERAS_SUITE_HERE"

Results = dict[str, tuple[str, str]]


def run(python: str, source: Path, paths: list[str], here: bool, jobs: int) -> Results:
    """What became of each test of the paths: a word of pytest ("passed", "failed", "skipped") and what was raised."""
    search = [str(Path(__file__).parent)]
    if here:
        search += [str(_ROOT / "twofold" / "as_tensorflow" / "path"), str(_ROOT)]
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "PYTHONPATH": os.pathsep.join(search),
                       "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "KERAS_HOME": folder,
                       _RESULTS: str(results), **({_HERE: "1"} if here else {})}
        subprocess.run([python, "-m", "pytest", "-q", "-p", "keras_suite", "-p", "no:cacheprovider", "--tb=short",
                        "-n", str(jobs), "--dist", "worksteal", "--rootdir", str(source), *paths],
                       env=environment, cwd=folder, stdout=subprocess.DEVNULL, check=False)
        lines = results.read_text().splitlines() if results.exists() else []
    return {test: (outcome, text) for test, outcome, text in map(json.loads, lines)}


def version_and_folder(python: str) -> tuple[str, Path]:
    """The version of Keras in an environment, and where its source is."""
    told = subprocess.run([python, "-c", "import importlib.metadata as m, importlib.util as u; "
                           "print(m.version('keras'), u.find_spec('keras').origin)"],
                          capture_output=True, text=True, check=True).stdout
    version, _, file = told.strip().partition(" ")
    return version, Path(file).parent / "src"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", help="folders or files below keras/src; all without")
    parser.add_argument("--python", required=True, help="the interpreter of an environment")
    parser.add_argument("--baseline", type=Path, help="where to keep what TensorFlow gave")
    parser.add_argument("--failures", type=Path, help="where to write what failed here alone")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    started = time.monotonic()
    version, source = version_and_folder(options.python)
    paths = [str(source / folder) for folder in options.folders] or [str(source)]
    if options.baseline and options.baseline.exists():
        there = json.loads(options.baseline.read_text())
    else:
        there = run(options.python, source, paths, here=False, jobs=options.jobs)
        if options.baseline:
            options.baseline.write_text(json.dumps(there, indent=0))
    kept = {path.removeprefix(f"{source}/").rstrip("/") for path in paths if path != str(source)}
    there = {test: result for test, result in there.items()
             if not kept or any(test.startswith((f"{path}/", f"{path}::")) for path in kept)}
    here = run(options.python, source, paths, here=True, jobs=options.jobs)
    passed = [test for test, result in there.items() if result[0] == "passed"]
    missed = {test: here.get(test, ("missing", "")) for test in passed if here.get(test, ("",))[0] != "passed"}
    if options.failures:
        options.failures.write_text(json.dumps(missed, indent=0))
    print(json.dumps({"client": "keras", "version": version, "tests_on_tensorflow": len(there),
                      "passed_there": len(passed), "passed_here": len(passed) - len(missed),
                      "seconds": round(time.monotonic() - started)}))


# -- the plugin --------------------------------------------------------------------------------------------------------


def _write(report: Any) -> None:
    path = os.environ.get(_RESULTS)
    if path is None or "PYTEST_XDIST_WORKER" in os.environ:
        return
    if report.when != "call" and report.outcome == "passed":
        return  # setting up and tearing down count where they do not pass
    text = report.longreprtext[-1500:] if report.outcome == "failed" else ""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps([report.nodeid, report.outcome, text]) + "\n")


def _too_long(*_: object) -> None:
    raise TimeoutError(f"the test took more than {_SECONDS} seconds")


if pytest is not None:
    def pytest_configure(config: Any) -> None:
        if _HERE in os.environ:  # pytest puts the folder of installed packages in front of the search path: not by that
            import twofold.as_tensorflow  # noqa: F401
        # what some tests import from the file beside Keras's sources, which packages of it do not have
        beside = types.ModuleType("conftest")
        vars(beside)["skip_if_backend"] = lambda name, reason: pytest.mark.skipif(name == "tensorflow", reason=reason)
        sys.modules.setdefault("conftest", beside)
        config.addinivalue_line("markers", "requires_trainable_backend: tests that need gradients")

    def pytest_runtest_logreport(report: Any) -> None:
        """Write a line for a test."""
        _write(report)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(item: Any) -> Iterator[None]:
        """End a test that takes too long: by an exception, and with its process where that does not help."""
        signal.signal(signal.SIGALRM, _too_long)
        signal.alarm(_SECONDS)
        faulthandler.dump_traceback_later(_SECONDS + 20, exit=True, file=sys.__stderr__)
        try:
            yield
        finally:
            signal.alarm(0)
            faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main()
