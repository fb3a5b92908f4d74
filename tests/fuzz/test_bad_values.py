"""The fuzzer of bad values sees what it is there to see."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from fuzz import bad_table, bad_values
from fuzz.bad_targets import Call, Target, calls, targets
from quick.start import python

import twofold as tf

FUZZER = Path(bad_values.__file__)


@pytest.fixture(scope="module")
def everything() -> dict[str, Target]:
    return targets()


def test_targets_are_all_that_is_public(everything: dict[str, Target]) -> None:
    for name in ("tf.pad", "tf.image.resize", "tf.keras.layers.Dense", "tf.keras.layers.Dense.__call__",
                 "tf.Variable.assign_add", "tf.data.Dataset.batch", "tf.losses.Huber", "tf.train.Checkpoint.write",
                 "tf.compat.v1.layers.dense", "tf.strings.join", "tf.linalg.qr", "tf.signal.stft",
                 "tf.sparse.concat", "tf.RaggedTensor.to_tensor", "tf.queue.FIFOQueue", "tf.raw_ops.ResizeArea",
                 "tf.experimental.numpy.diff", "tf.feature_column.numeric_column", "tf.compat.v1.sparse_placeholder",
                 "tf.distribute.MirroredStrategy", "tf.keras.backend.batch_dot"):
        assert name in everything
    assert len(everything) > 2000


@pytest.mark.parametrize("name", ["tf.pad", "tf.keras.layers.Dense", "tf.keras.layers.Dense.__call__",
                                  "tf.Variable.assign_add", "tf.image.flip_up_down", "tf.Tensor.__getitem__",
                                  "tf.raw_ops.ResizeArea"])
def test_calls_that_work_are_known(everything: dict[str, Target], name: str) -> None:
    for call in calls(everything[name]):
        call.fn(*call.args, **call.kwargs)
    assert calls(everything[name])


def test_values_are_made_fresh() -> None:
    for text in bad_table.BAD:
        bad_table.make(text)
    assert bad_table.make("looped()") is not bad_table.make("looped()")


def planted(kind: int) -> Target:
    """A function with one fault."""
    variable = tf.Variable(1.0)

    def planted(x: int) -> int:
        if kind == 0:
            return [1, 2][x]  # what a list raises
        if kind == 1:
            raise ValueError("told, but not by whom")
        if kind == 2:
            variable.assign_add(1.0)
            raise ValueError("planted: At bad_values.py")
        if kind == 4:
            tf.random.uniform([1])
            raise ValueError("planted: At bad_values.py")
        if kind == 6:
            raise ValueError("planted: At bad_values.py") from MemoryError()
        raise bad_table.Boom("the user's own")
    target = Target("tf.planted", planted)
    planted.variables = [variable]  # type: ignore[attr-defined]
    return target


@pytest.mark.parametrize("kind, told", [(0, "raw"), (1, "nameless"), (2, "state"), (3, ""), (4, "state")])
def test_faults_are_seen(kind: int, told: str) -> None:
    target = planted(kind)
    call = Call(target.value, [1], {}, "planted(1)")
    assert bad_values.run_case(target, call, "eager", (("0", "7"),))[0] == told


@pytest.mark.parametrize("value, told", [("7", ""), ("itertools.count()", "memory")])
def test_what_reads_until_memory_is_over_is_seen(value: str, told: str) -> None:
    target = planted(6)
    call = Call(target.value, [1], {}, "planted(1)")
    assert bad_values.run_case(target, call, "eager", (("0", value),))[0] == told


def test_variables_of_any_size_are_watched() -> None:
    """Zeros take no memory, and copies of them do."""
    target = planted(5)
    target.value.variables.append(tf.Variable(tf.zeros([2**40])))
    assert bad_values.run_case(target, Call(target.value, [1], {}, "planted(1)"), "eager", (("0", "7"),))[0] == ""


def test_all_arguments_meet_each_endless_value_once() -> None:
    """Also those of examples after one that takes none."""
    actual = [Call(len, [], {}, "len()"), Call(len, [1], {"a": 2}, "len(1, a=2)", ["b"])]
    plan = bad_values.Plan(values=bad_table.ENDLESS)
    drawn = list(bad_values.cases(Target("tf.io.len", len), actual, plan, 0))
    assert {example for example, _, _ in drawn} == {1}
    assert sorted(change for _, _, change in drawn) == sorted(
        ((parameter, value),) for parameter in ("0", "a", "b") for value in bad_table.ENDLESS)


def run_child(source: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Has the fuzzer call the function `ends` that `source` defines with 7, in a process of its own that prints the
    report."""
    code = ("from fuzz import bad_values\nfrom fuzz.bad_targets import Target\n" + source +
            "report = bad_values.Report()\n"
            "bad_values.calls = lambda t: [bad_values.Call(ends, [1], {}, 'ends(1)')]\n"
            "plan = bad_values.Plan(seconds=0.3)\n"
            "bad_values.run_slice(Target('tf.ends', ends), plan, 0, 0, report, ['tf.ends/0/eager/0=7'])\n"
            "print(report)\n")
    path = os.pathsep.join(filter(None, [str(FUZZER.parents[1]), os.environ.get("PYTHONPATH")]))
    return subprocess.run(python("-c", code), cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": path})


def test_a_child_that_ends_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run_child("import os\ndef ends(x):\n    '''>>> ends(1)'''\n    if x != 1: os.abort()\n", tmp_path)
    assert "killed x1: tf.ends/0/eager/0=7" in done.stdout, done.stderr
    assert "SIGABRT" in done.stdout


ENDLESS = {
    "hangs": "def ends(x):\n    while x != 1: pass\n",
    "endless": "from fuzz.bad_table import boom\ndef ends(x):\n    while x != 1:\n"
               "        try: boom()\n        except Exception: pass\n",
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_our_endless_loops_are_told_from_the_users(kind: str, tmp_path: Path) -> None:
    done = run_child(ENDLESS[kind], tmp_path)
    assert f"{kind} x1: tf.ends/0/eager/0=7" in done.stdout, done.stdout + done.stderr


# Functions of all kinds, of which some cases each run in the suite; `make fuzz` runs all.
SAMPLE = ("tf.pad", "tf.cond", "tf.constant", "tf.reshape", "tf.reduce_sum", "tf.concat", "tf.gather", "tf.one_hot",
          "tf.linalg.qr", "tf.nn.conv2d", "tf.signal.stft", "tf.image.resize", "tf.image.crop_to_bounding_box",
          "tf.unravel_index", "tf.dynamic_partition", "tf.math.polygamma", "tf.strings.join", "tf.random_uniform")


def test_a_sample_of_bad_values(tmp_path: Path) -> None:
    """Nothing raw, no end of the process, no state that changed."""
    code = ("from fuzz import bad_values\n"
            "from fuzz.bad_targets import targets\n"
            "report, everything = bad_values.Report(), targets()\n"
            f"for name in {SAMPLE!r}: bad_values.run_slice(everything[name], bad_values.Plan(2), 0, 16, report)\n"
            "report.seen = {k: v for k, v in report.seen.items() if k[0] in ('raw', 'killed', 'hangs', 'state')}\n"
            "print(report)\n")
    path = os.pathsep.join(filter(None, [str(FUZZER.parents[1]), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(python("-c", code), cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": path})
    assert f"{16 * len(SAMPLE)} cases, 0 distinct failures" in done.stdout, done.stdout + done.stderr


def test_indices_are_told_by_their_op() -> None:
    report = bad_values.run_cases([f"tf.Tensor.__getitem__/0/eager/0={value}" for value in ("'abc'", "0.5", "{}")])
    assert report.cases == 3 and not report.seen, str(report)


# Calls of newer names, with what was wrong of them.
TOLD = (
    "tf.keras.backend.max/0/eager/0=object()", "tf.keras.backend.conv2d/0/eager/0=tf.zeros([0])",
    "tf.experimental.numpy.split/0/eager/0=tf.constant(True)", "tf.experimental.numpy.swapaxes/0/eager/1=2**31",
    "tf.RaggedTensor.__sub__/0/eager/0={'a': 1}", "tf.RaggedTensor.__truediv__/0/eager/0=[0, 5]",
    "tf.experimental.dlpack.to_dlpack/0/eager/0=tf.constant('s')",
    "tf.queue.PaddingFIFOQueue/0/eager/names=itertools.count()",
    "tf.raw_ops.DepthwiseConv2dNative/0/eager/strides=range(2**40)", "tf.queue.FIFOQueue.dequeue/0/eager/name='abc'",
    "tf.raw_ops.RaggedGather/0/eager/params_nested_splits=iter(int, 1)",
)


def test_newer_names_tell() -> None:
    """An error names the function and the line; nothing that has no end is read; what waits for others can be ended."""
    report = bad_values.run_cases(list(TOLD))
    assert report.cases == len(TOLD) and not report.failures(), str(report)
