"""Some random programs, eager against compiled; `make fuzz` runs more."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fuzz.compare import difference, run, same_bits
from fuzz.programs import Line, Program, programs
from fuzz.worker import Workshop, script
from hypothesis import HealthCheck, given, settings
from quick.start import python

import twofold as tf

_FIRST = "x0 = tf.constant([1.0, 2.0])"


@pytest.fixture(scope="module")
def shop() -> Iterator[Workshop]:
    with Workshop() as made:
        yield made


def agree(shop: Workshop, number: int) -> None:
    """Has programs run in all modes, and requires the same bits of them, with errors and all."""
    @settings(max_examples=number, deadline=None, suppress_health_check=list(HealthCheck))
    @given(programs())
    def check(program: Program) -> None:
        source = program.source()
        actual = shop.check(source)
        if actual is not None:
            pytest.fail(script(source, actual), pytrace=False)
    check()


def test_modes_agree(shop: Workshop) -> None:
    agree(shop, 20)


def test_modes_agree_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWOFOLD_FUZZ_GPU", "1")
    with Workshop() as there:
        agree(there, 3)


def test_programs_have_everything() -> None:
    """Control flow, gradients, variables, random numbers and calls of every kind occur."""
    seen: list[str] = []

    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(programs())
    def collect(program: Program) -> None:
        seen.append(program.source())
    collect()
    text = "\n".join(seen)
    for word in ("for ", "if ", "while ", "GradientTape", ".assign", "tf.random.", "tf.reduce_", "taped = True"):
        assert word in text


def _program(*lines: str) -> str:
    made = Program(body=[Line(line) for line in lines], results=["x0"])
    return made.source()


def test_a_difference_is_seen(shop: Workshop) -> None:
    """A program that tells which mode it runs in."""
    assert shop.check(_program(_FIRST)) is None
    actual = shop.check(_program(_FIRST, "x0 = x0 + (1.0 if tf.executing_eagerly() else 0.0)"))
    assert actual == "known sizes, compiled: call 0: result 0: at [0]: eager np.float32(2.0), compiled np.float32(1.0)"
    actual = shop.check(_program(_FIRST, "if not tf.executing_eagerly(): raise ValueError('traced')"))
    assert "compiled raises ValueError: traced" in str(actual)


def test_a_crash_is_seen(shop: Workshop) -> None:
    actual = shop.check(_program("import os; os.abort()"))
    assert actual == "crashes: the process ended with SIGABRT"
    assert shop.check(_program(_FIRST)) is None


def test_scripts_run_alone(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(script(_program(_FIRST, "x0 = x0 + (1.0 if tf.executing_eagerly() else 0.0)"), "differs"))
    done = subprocess.run(python(path), capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "result 0: at [0]: eager np.float32(2.0)" in done.stdout


def test_comparison() -> None:
    """Bits count: the sign of zero does, which NaN it is does not."""
    zero, nan = tf.constant([0.0]).numpy(), tf.constant([float("nan")]).numpy()
    assert same_bits(zero, zero) and same_bits(nan, -nan)
    assert not same_bits(zero, -zero) and not same_bits(zero, zero.astype("float64"))

    def make():
        return (lambda x: [x + x]), []
    told = run(make, [(1, [tf.constant([1.0])]), (2, [tf.constant([2])])], "eager")
    assert [t[0] for t in told] == ["results", "results"]
    assert difference(told, told) is None
    assert "eager gives results" in str(difference([("results", [], [])], [("error", "ValueError", "no")]))
