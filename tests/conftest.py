"""Settings of the whole suite: random tests draw the same cases every time, and no test depends on how quick it is.

`HYPOTHESIS_PROFILE=explore` draws new cases instead, more of them, and remembers those that failed.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

os.environ.setdefault("TWOFOLD_VERIFY", "1")  # graphs are verified around every pass
os.environ["TWOFOLD_TUNING"] = "0"  # plans of products are those of the usual costs, whatever was measured here
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's threads wait for products by turning round and round
# Tests start hundreds of processes, each of which would compile the whole package where its bytecode is not kept.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
_FIRST = str(Path(__file__).with_name("children"))  # what they import first, which says how often they look for garbage
if _FIRST not in os.environ.get("PYTHONPATH", "").split(os.pathsep):
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (_FIRST, os.environ.get("PYTHONPATH"))))

settings.register_profile(
    "fixed", max_examples=60, deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


# Tests make much that is gone when it is counted a little later, and more generations of it cost more than they find.
gc.set_threshold(10_000, 10, 10)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Collecting makes a million objects that stay, among which no garbage is looked for until all are there."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """What collecting made stays to the end: garbage is looked for among what tests make, not among all that again, and
    among that not even once."""
    gc.freeze()


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Processes of pytest-xdist tell the one that started them how a test went, once: of setting up and tearing down
    only what went wrong, and not that it begins and ends, since telling all takes as long as running a small test."""
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: Any) -> None:
    """The process that is told ends the line of dots, which is done where a test ends."""
    if hasattr(report, "node"):
        report.node.config.hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)


@pytest.fixture(scope="session", autouse=True)
def _temporary_files_end_with_the_session() -> Iterator[None]:
    """What tests, examples and the processes that they start leave in the folder for temporary files."""
    with tempfile.TemporaryDirectory(prefix="twofold-tests-", ignore_cleanup_errors=True) as folder:
        before = tempfile.tempdir, os.environ.get("TMPDIR")
        tempfile.tempdir = os.environ["TMPDIR"] = folder
        yield
        tempfile.tempdir = before[0]
        if before[1] is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before[1]


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for the code that a test compiles. What earlier tests have compiled in the background is done
    before, as it would be written there."""
    from twofold.runtime import tiers
    tiers.wait()
    folder = tmp_path / "cache"
    monkeypatch.setenv("TWOFOLD_CACHE_DIR", str(folder))
    return folder


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, Any, Any]:
    """What lasts for a program ends with its test: a call for eager execution, which refuses sessions, and a writer of
    summaries that was set as the default. (A fixture that does it takes ten times as long.)"""
    try:
        return (yield)
    finally:
        tensors, writer = sys.modules.get("twofold._front.tensors"), sys.modules.get("twofold.summary.writer")
        if tensors is not None:
            tensors.eager_for_good.clear()
        if writer is not None:
            writer.default.set(None)
            writer.steps.set(None)


@pytest.fixture(scope="module", autouse=True)
def _what_stays_of_a_module_is_not_looked_at_again() -> Iterator[None]:
    """Modules that were loaded, caches that were filled: a test that collects garbage looks among what its own module
    has made, not among all that the tests before it have left."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _kernels_of_gpus_assemble() -> Iterator[None]:
    """All PTX that the tests of a module have run here (`ptx_checks.py`)."""
    yield
    checks = sys.modules.get("ptx_checks")
    if checks is not None:
        wrong = checks.refused()
        assert not wrong, "\n".join(wrong)
