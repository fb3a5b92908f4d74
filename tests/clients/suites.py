"""Libraries that are written for TensorFlow, run by their own tests: on TensorFlow, and on twofold under its name.

A `Client` says which library, where its tests are and how they are started. `measure` runs them twice in one
environment, with `tensorflow` as what is installed there and as twofold, and counts what passes in both; so it does
with a short program of ours (`readme_programs.py`), whose numbers it compares. Each library has a module `*_suite.py`
here with one `Client` or several; `run.py` runs them. Nothing of the libraries is kept here.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import venv
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RESULTS = HERE / "results"
_CLOSE = 1e-5  # how far numbers of programs may be apart, of their size

#: what every environment has: TensorFlow, what twofold is made of, what runs tests
BASE = ("tensorflow-cpu==2.21.0", "numpy>=2.1", "numba>=0.63", "llvmlite>=0.46", "networkx>=3.2", "ml_dtypes>=0.5",
        "diastatic-malt>=2.15", "pytest>=8.3", "pytest-xdist>=3.6", "pytest-timeout>=2.3")


@dataclass(frozen=True)
class Client:
    """A library and its tests.

    Attributes:
        name: of the library.
        version: the one that is run; `tag` is its name in the repository.
        repository: where its tests are cloned from.
        needs: what is installed for it.
        tests: files and folders in its repository.
        arguments: for pytest.
        settings: environment variables.
        here: further ones on twofold alone, where modules of this folder are found then.
        example: which of the programs in `readme_programs.py` is the library's.
        from_source: whether the library itself is the repository's, since its tests lie within it.
        what: one line about which of its tests these are.
    """

    name: str
    version: str
    tag: str
    repository: str
    needs: tuple[str, ...]
    tests: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    here: Mapping[str, str] = field(default_factory=dict)
    example: str | None = None
    from_source: bool = False
    what: str = "all of its tests of TensorFlow"


@dataclass(frozen=True)
class Places:
    """Where things lie outside of the tree.

    Attributes:
        environment: of Python, made where it is missing.
        sources: the folder of the repositories, each cloned where it is missing.
        jobs: how many processes run tests.
        timeout: seconds that one test may take.
    """

    environment: Path
    sources: Path
    jobs: int = 2
    timeout: int = 300

    @property
    def python(self) -> str:
        """The interpreter of the environment."""
        return str(self.environment / "bin" / "python")


def prepare(client: Client, places: Places) -> Path:
    """Install what a client needs and clone its tests, where that is missing; the folder of its repository."""
    if not places.environment.is_dir():
        venv.create(places.environment, with_pip=True)
    install(places, "base", BASE)
    install(places, client.name, client.needs)
    folder = places.sources / client.repository.rpartition("/")[2]
    if not folder.is_dir():
        subprocess.run(["git", "clone", "--quiet", "--depth=1", f"--branch={client.tag}", client.repository,
                        str(folder)], check=True)
    return folder


def install(places: Places, name: str, needs: tuple[str, ...]) -> None:
    """Install requirements once: a stamp in the environment tells that they are there."""
    stamp = places.environment / f".{name}"
    if stamp.exists() and stamp.read_text() == repr(needs):
        return
    if needs:
        subprocess.run([places.python, "-m", "pip", "install", "--quiet", *needs], check=True)
    stamp.write_text(repr(needs))


def surroundings(on_twofold: bool, paths: Iterable[Path] = ()) -> dict[str, str]:
    """Environment variables with which `tensorflow` is TensorFlow, or twofold, and modules are found in `paths`."""
    before = [ROOT / "twofold" / "as_tensorflow" / "path", ROOT] if on_twofold else []
    search = os.pathsep.join(map(str, [*before, *paths]))
    return {**os.environ, "PYTHONPATH": search, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}


def report_of(client: Client, places: Places, *, on_twofold: bool) -> Path:
    """The file in which pytest writes what became of the tests."""
    return places.environment / f"{client.name}-{'twofold' if on_twofold else 'tensorflow'}.xml"


def run(client: Client, folder: Path, places: Places, *, on_twofold: bool) -> None:
    """Run the tests; what became of them goes to the report, what was printed beside it.

    Raises:
        RuntimeError: there is no report, or `tensorflow` is not what it should be.
    """
    env = {**surroundings(on_twofold, [folder] if client.from_source else []), **client.settings}
    if on_twofold and client.here:
        env |= {**client.here, "PYTHONPATH": os.pathsep.join([env["PYTHONPATH"], str(HERE)])}
    which = subprocess.run([places.python, "-c", "import tensorflow; print(tensorflow.__version__)"], cwd=folder,
                           env=env, capture_output=True, text=True, check=True).stdout
    if ("twofold" in which) != on_twofold:
        raise RuntimeError(f"the tests of {client.name} would run on TensorFlow {which.strip()}")
    report = report_of(client, places, on_twofold=on_twofold)
    report.unlink(missing_ok=True)
    command = [places.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--continue-on-collection-errors",
               "-n", str(places.jobs), f"--timeout={places.timeout}", f"--junitxml={report}",
               *client.arguments, *client.tests]
    with report.with_suffix(".txt").open("w") as printed:
        subprocess.run(command, cwd=folder, stdout=printed, stderr=subprocess.STDOUT, check=False, env=env)
    if not report.exists():
        raise RuntimeError(f"{' '.join(command)} left no report:\n{report.with_suffix('.txt').read_text()[-2000:]}")


def seconds(report: Path) -> int:
    """How long a run took."""
    suite = ElementTree.parse(report).getroot().find("testsuite")
    return round(float(suite.get("time", 0))) if suite is not None else 0


def outcomes(report: Path) -> dict[str, str]:
    """What became of each test: "passed", "skipped", or the cause of its failure."""
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        bad = case.find("failure") if case.find("failure") is not None else case.find("error")
        name = f"{case.get('classname')}::{case.get('name')}"
        if bad is not None:
            found[name] = cause(bad.get("message") or bad.text or "")
        elif found.get(name) in (None, "passed"):
            found[name] = "passed" if case.find("skipped") is None else "skipped"
    return found


def cause(message: str) -> str:
    """The first line of an error with what differs from test to test cut out, so that like causes are equal."""
    line = next((part for part in message.strip().splitlines() if part.strip()), "failed")
    line = re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?(e[-+]\d+)?", "0", line)
    return line[:160].strip()


def example_of(client: Client, places: Places) -> str | None:
    """Whether the library's program gives the same on both: "yes", or what differs; None where there is none."""
    if client.example is None:
        return None
    there, here = (json.loads(subprocess.run(
        [places.python, str(HERE / "readme_programs.py"), client.example], env=surroundings(on_twofold),
        stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1])[client.example]
        for on_twofold in (False, True))
    if isinstance(there, str) or isinstance(here, str):
        return f"there {there[:100]}, here {here[:100]}"
    if len(there) != len(here):
        return f"{len(there)} numbers there, {len(here)} here"
    apart = [pair for pair in zip(there, here, strict=True) if not math.isclose(*pair, rel_tol=_CLOSE, abs_tol=_CLOSE)]
    return "yes" if not apart else f"{len(apart)} of {len(there)} numbers differ, as {apart[0]}"


def measure(client: Client, places: Places, *, again: bool = True) -> dict[str, Any]:
    """Run a client both ways, write its results and give them.

    Args:
        again: whether the tests run on TensorFlow where they ran there before.
    """
    folder = prepare(client, places)
    if again or not report_of(client, places, on_twofold=False).exists():
        run(client, folder, places, on_twofold=False)
    run(client, folder, places, on_twofold=True)
    return write(client, report_of(client, places, on_twofold=False), report_of(client, places, on_twofold=True),
                 example_of(client, places))


def write(client: Client, report_there: Path, report_here: Path, example: str | None) -> dict[str, Any]:
    """Compare what became of the tests, and write it down."""
    there, here = outcomes(report_there), outcomes(report_here)
    passed = [name for name, became in there.items() if became == "passed"]
    remaining = Counter(here.get(name, "not collected") for name in passed if here.get(name) != "passed")
    result = {
        "client": client.name, "version": client.version, "what": client.what,
        "tests_on_tensorflow": sum(became != "skipped" for became in there.values()),
        "passed_there": len(passed), "passed_here": len(passed) - sum(remaining.values()),
        "seconds": seconds(report_here), **({} if example is None else {"example": example}),
        "remaining": [{"cause": text, "tests": count} for text, count in remaining.most_common(12)],
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{client.name}.json").write_text(json.dumps(result, indent=1) + "\n")
    return result


def row(result: Mapping[str, Any]) -> str:
    """A line of the table that is printed."""
    return (f"{result['client']:<24} {result['version']:<10} {result['tests_on_tensorflow']:>6} "
            f"{result['passed_there']:>6} {result['passed_here']:>6} {result['seconds']:>5} s   "
            f"{result.get('example', '')}")


HEAD = f"{'client':<24} {'version':<10} {'tests':>6} {'there':>6} {'here':>6} {'takes':>7}   example"
