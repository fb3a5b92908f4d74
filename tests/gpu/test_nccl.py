"""Sums of several processes from GPU to GPU, by NCCL: with the bits of MPI, or by way of the host in all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distribute import mpi
from distribute.alike import Twins, strategy_of
from gpu.devices import HARDWARE, device, same, some
from gpu.fake_nccl import FakeNccl

import twofold as tf
from twofold.distribute import _gpus
from twofold.ir import ops
from twofold.runtime import nccl

pytestmark = pytest.mark.skipif(HARDWARE, reason="the fake of NCCL works on the fake driver")


@contextmanager
def connected(communicator: Any = None, machine: int = 0) -> Iterator[tuple[Any, FakeNccl]]:
    """A fake driver and a fake of NCCL for a block."""
    with device(machine=machine) as cuda:
        library = FakeNccl(cuda, communicator)
        nccl.use(library)
        try:
            yield cuda, library
        finally:
            nccl.use(None)


def summed(*tensors: tf.Tensor, reduction: str = "SUM") -> tuple[tf.Tensor, ...]:
    """The sums of tensors of two processes."""
    made: Any = ops.collective_all_reduce(*tensors, reduction=reduction, group="processes", replicas=2)
    return tuple(made)


PACKS: list[tuple[str, list[list[int]]]] = [
    ("float32", [[]]), ("float32", [[3, 5], [0], [7]]), ("float32", [[9001], [2]]), ("bfloat16", [[5], [3]]),
    ("float16", [[20001]]), ("float64", [[63, 100]]), ("complex64", [[5000]]), ("int8", [[40007]]), ("int64", [[3]])]


def reduced(rank: int) -> tuple[list[str], str]:
    """Sums and means of packs, of which each process has other numbers, and where they all lie."""
    results, places = [], set()
    for name, shapes in PACKS:
        dtype, rng = tf.as_dtype(name), np.random.default_rng(rank)
        values = [tf.constant(rng.normal(size=shape, scale=30).astype(dtype.as_numpy_dtype)) for shape in shapes]
        for reduction in ("SUM", "MEAN"):
            totals = summed(*values, reduction=reduction)
            results += [np.asarray(t).tobytes().hex() for t in totals]
            places |= {t.device[-5:] for t in totals}
    x = tf.ones([2, 3 + rank], tf.bfloat16) * (rank + 1)  # of other sizes in each process
    joined: Any = ops.collective_all_gather(x, tf.range(3) + rank, axis=-1, group="processes", replicas=2)
    return [*results, *[np.asarray(t).tobytes().hex() for t in joined]], " ".join(places | {joined[0].device[-5:]})


PROGRAM = f"""
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from mpi4py import MPI
from gpu.test_nccl import connected, reduced, summed
from gpu.test_replicas import trained
apart = MPI.COMM_WORLD.Dup()
weights, _ = trained(strategy)
packs, _ = reduced(rank)
told = {{}}
with connected(apart, machine=rank) as (cuda, library):
    mirrored = tf.distribute.MultiWorkerMirroredStrategy()
    there, where = trained(mirrored)
    told["step"] = [there == weights and "GPU" in where, sorted(set(t.split()[0] for t in library.told)), cuda.findings]
    with tf.device("GPU:0"):
        there, where = reduced(rank)
    told["packs"] = [there == packs, where, cuda.findings, sorted(set(t.split()[0] for t in library.told))]
    before = len(library.told)
    with tf.device(f"{{'GPU' if rank else 'CPU'}}:0"):  # the other process has it on the host
        told["mixed"] = [reduced(rank)[0] == packs, len(library.told) == before]
os.environ["TWOFOLD_NCCL"] = str(1 - rank)  # the second process will not
with connected(apart, machine=rank) as (cuda, library):
    with tf.device("GPU:0"):
        told["off"] = [reduced(rank)[0] == packs, library.told]
os.environ["TWOFOLD_NCCL"] = "1"
with connected(apart, machine=rank) as (cuda, library):
    library.failing["ncclSend"] = 2
    told["error"] = []
    with tf.device("GPU:0"):
        for _ in range(2):
            try:
                summed(tf.ones([20000]))
            except tf.errors.UnavailableError as error:
                told["error"].append(error.message)
    told["error"].append(library.told)
tell(told)
"""


def test_processes_have_the_bits_of_the_host(tmp_path: Path) -> None:
    for told in mpi.told(PROGRAM, 2, tmp_path):
        assert told["step"] == [True, ["gather", "init"], []]
        assert told["packs"] == [True, "GPU:0", [], ["exchange", "gather", "init"]]
        assert told["mixed"] == [True, True] and told["off"] == [True, []]
        first, second, done = told["error"]
        assert "ncclSend: unhandled system error (2)" in first and "TWOFOLD_NCCL=0" in first
        assert second == f"An exchange before has failed: {first}" and done == ["init", "abort"]


class Others(Twins):
    """Twins whose GPUs are two."""

    def texts(self, text: str) -> list[str]:
        told = json.loads(text)
        return [text, json.dumps({**told, "gpu": "another"})]


def test_a_lost_process_ends_the_waiting() -> None:
    with connected() as (cuda, library), strategy_of(Others()), tf.device("GPU:0"):
        assert same(summed(some(3)), [some(3) + some(3)])
        library.lost = True
        with pytest.raises(tf.errors.UnavailableError, match="remote process exited"):
            summed(some(3))
        with pytest.raises(tf.errors.UnavailableError, match="An exchange before has failed.*remote process exited"):
            summed(some(3))
        assert library.told == ["init", "gather of 256", "gather of 256", "abort"] and not cuda.findings


@pytest.mark.parametrize("name", ["ncclGetUniqueId", "ncclCommInitRank"])
def test_processes_that_do_not_connect(name: str) -> None:
    with connected() as (cuda, library), strategy_of(Others()), tf.device("GPU:0"):
        library.failing[name] = 2
        with pytest.raises(tf.errors.UnavailableError, match=f"{name}: unhandled system error"):
            summed(some(3))


@pytest.mark.parametrize(("other", "why"), [
    ({}, "processes 0 and 1 share a GPU"),
    ({"gpu": "b", "version": 3}, "processes 0 and 1 have NCCL 2 and 3"),
    ({"why": "there is no NCCL"}, "process 1: there is no NCCL"),
    ({"gpu": "b"}, ""),
])
def test_what_processes_agree_about(other: dict[str, Any], why: str) -> None:
    first = {"why": "", "gpu": "a", "version": 2}
    assert _gpus._why_not([first, {**first, **other}]) == why


def test_one_line_says_why(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TWOFOLD_LOG", "device")
    with connected() as (_, library), strategy_of(Twins()), tf.device("GPU:0"):
        assert same([summed(some(3)), summed(some(3))], [some(3) + some(3)] * 2) and not library.told
    assert capsys.readouterr().err.count("by way of the host: processes 0 and 1 share a GPU\n") == 1


def test_the_library_of_a_package_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "nvidia" / "nccl" / "lib" / "libnccl.so.2"
    path.parent.mkdir(parents=True)
    path.touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert nccl._file() == str(path)


def test_a_library_that_is_too_old_is_none() -> None:
    with device() as cuda, pytest.raises(tf.errors.UnavailableError, match="of version 2604, before 2.7"):
        nccl.use(FakeNccl(cuda, version=2604))
