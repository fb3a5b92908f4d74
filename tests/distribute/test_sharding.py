"""Datasets that processes share by file, by element, or by hints: who reads what, to the last row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distribute import mpi

import twofold as tf
from twofold.data import _sharding as sharding

Policy = tf.data.experimental.AutoShardPolicy
COUNTS = [5, 1, 7, 2, 4]  # lines of each file


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Files of numbers: file n has 10 n, 10 n + 1 and so on."""
    for n, count in enumerate(COUNTS):
        (tmp_path / f"{n}.txt").write_text("".join(f"{10 * n + k}\n" for k in range(count)))
    return [str(tmp_path / f"{n}.txt") for n in range(len(COUNTS))]


def numbers(which: Any) -> list[int]:
    return [10 * n + k for n in which for k in range(COUNTS[n])]


def read(dataset: Any) -> list[int]:
    return [int(line) for line in dataset.as_numpy_iterator()]


PIPELINES = {
    "names": lambda files: tf.data.TextLineDataset(files),
    "a dataset of names": lambda files: tf.data.TextLineDataset(tf.data.Dataset.from_tensor_slices(files)),
    "flat_map": lambda files: tf.data.Dataset.from_tensor_slices(files).flat_map(tf.data.TextLineDataset),
    "interleave": lambda files: tf.data.Dataset.from_tensor_slices(files).interleave(
        lambda name: tf.data.TextLineDataset(name).map(tf.strings.strip), cycle_length=1),
    "list_files": lambda files: tf.data.Dataset.list_files(files, shuffle=False).flat_map(tf.data.TextLineDataset),
    "steps": lambda files: tf.data.TextLineDataset(files).map(tf.strings.strip).prefetch(2).cache(),
    "joined": lambda files: tf.data.TextLineDataset(files[:3]).concatenate(tf.data.TextLineDataset(files[3:])),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_files_of_a_worker(files: list[str], name: str) -> None:
    dataset = PIPELINES[name](files)
    assert sorted(read(dataset)) == sorted(numbers(range(5)))
    parts = [read(tf.data.Dataset(sharding.by_files(dataset._node, 2, n))) for n in range(2)]
    wanted = [numbers([0, 2, 4]), numbers([1, 3])] if name != "joined" else [numbers([0, 2, 3]), numbers([1, 4])]
    assert parts == wanted
    assert sorted(read(dataset)) == sorted(numbers(range(5)))  # the dataset itself stays what it was


def test_names_in_random_order_are_shared_before(files: list[str]) -> None:
    dataset = tf.data.Dataset.list_files(files).repeat(2).interleave(tf.data.TextLineDataset, cycle_length=2)
    assert sorted(read(tf.data.Dataset(sharding.by_files(dataset._node, 3, 2)))) == sorted(numbers([2]) * 2)


@pytest.mark.parametrize("make", [
    lambda files: tf.data.Dataset.range(10),
    lambda files: tf.data.Dataset.zip(tf.data.TextLineDataset(files), tf.data.Dataset.range(10)),
    lambda files: tf.data.Dataset.from_tensor_slices(files).flat_map(lambda name: tf.data.Dataset.from_tensors(name)),
    lambda files: tf.data.TextLineDataset(files[:1])])
def test_what_is_not_shared_by_file(files: list[str], make: Any) -> None:
    with pytest.raises(sharding.NotByFile):
        sharding.by_files(make(files)._node, 2, 0)


def test_hints() -> None:
    hint = tf.data.experimental.SHARD_HINT
    dataset = tf.data.Dataset.range(7).shard(hint, hint).map(lambda x: x * 10)
    assert read(dataset) == [0, 10, 20, 30, 40, 50, 60]
    assert read(tf.data.Dataset(sharding.by_hints(dataset._node, 3, 1))) == [10, 40]
    with pytest.raises(ValueError, match="SHARD_HINT"):
        sharding.by_hints(tf.data.Dataset.range(3)._node, 2, 0)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.data.Dataset.range(3).shard(-1, 0)
    with pytest.raises(TypeError, match="AutoShardPolicy"):
        tf.data.Options().experimental_distribute.auto_shard_policy = 1  # type: ignore[assignment]


PROGRAM = """
Policy = tf.data.experimental.AutoShardPolicy
files = sorted(str(p) for p in __import__("pathlib").Path(sys.argv[1]).parent.glob("*.txt"))
lines = tf.data.TextLineDataset(files).map(lambda x: tf.strings.to_number(x, tf.int64))

def rows(dataset, policy=None):
    if policy is not None:
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = policy
        dataset = dataset.with_options(options)
    return [x.numpy().tolist() for x in strategy.experimental_distribute_dataset(dataset)]

hint = tf.data.experimental.SHARD_HINT
seen = {"auto": rows(lines.batch(4)), "file": rows(lines.batch(4), Policy.FILE),
        "data": rows(lines.batch(4), Policy.DATA), "off": rows(lines.batch(6), Policy.OFF),
        "hint": rows(lines.shard(hint, hint).batch(4), Policy.HINT),
        "few": rows(tf.data.TextLineDataset(files[:1]).map(lambda x: tf.strings.to_number(x, tf.int64)).batch(4)),
        "none": rows(tf.data.Dataset.range(6).batch(4))}
for wrong in (lambda: rows(tf.data.Dataset.range(6).batch(4), Policy.FILE),
              lambda: rows(tf.data.TextLineDataset(files[:1]).batch(4), Policy.FILE)):
    try:
        wrong()
    except ValueError as error:
        assert "AutoShardPolicy.FILE" in str(error)
def of_process(about):
    n = about.input_pipeline_id
    return tf.data.Dataset.range(7 + n).shard(about.num_input_pipelines, n).batch(about.get_per_replica_batch_size(4))

own = strategy.distribute_datasets_from_function(of_process)
seen["own"] = [x.numpy().tolist() for x in own]
asked, whole = [], strategy._group.sum
strategy._group.sum = lambda *given: [asked.append(1), whole(*given)][1]
endless = iter(strategy.experimental_distribute_dataset(lines.repeat().batch(4)))
seen["endless"] = [next(endless).numpy().tolist() for _ in range(3)]
assert not asked  # whether there is more
del strategy._group.sum
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input([1]), tf.keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile(tf.keras.optimizers.SGD(1e-4), "mse")
pairs = lines.map(lambda x: (tf.cast(x[None], tf.float32), tf.constant([1.0]))).batch(4)
seen["losses"] = model.fit(pairs, epochs=2, verbose=0).history["loss"]
seen["again"] = model.fit(strategy.experimental_distribute_dataset(pairs), epochs=1, verbose=0).history["loss"]
seen["evaluated"] = model.evaluate(pairs, verbose=0)
seen["weights"] = [w.tolist() for w in model.get_weights()]
seen["predicted"] = model.predict(pairs.map(lambda x, y: x), verbose=0).ravel().tolist()
tell(seen)
"""


def batches(own: list[int], size: int, count: int) -> list[list[int]]:
    """The batches of a process, and those without rows at the end."""
    return [own[n * size:(n + 1) * size] for n in range(count)]


def test_processes_share_files(files: list[str], tmp_path: Path) -> None:
    told = mpi.told(PROGRAM, 2, tmp_path / "run")
    everything, own = numbers(range(5)), [numbers([0, 2, 4]), numbers([1, 3])]
    for n, seen in enumerate(told):
        assert seen["auto"] == seen["file"] == batches(own[n], 2, 8)
        parts = [everything[a:a + 4] for a in range(0, 19, 4)]
        halves = [-(-len(part) // 2) for part in parts]
        assert seen["data"] == [part[half * n:half * (n + 1)] for part, half in zip(parts, halves, strict=True)]
        assert seen["off"] == batches(everything, 3, 7) and seen["hint"] == batches(everything[n::2], 2, 5)
        assert seen["endless"] == batches((own[n] * 2)[:6], 2, 3)
        assert seen["few"] == [[[0, 1], [2, 3]][n], [[4], []][n]]
        assert seen["none"] == [[[0, 1], [2, 3]][n], [[4], [5]][n]]
        assert seen["own"] == batches(list(range(7 + n))[n::2], 2, 2)
    w, b, losses = np.float64(1), np.float64(0), []
    for _ in range(3):  # steps of the rows of both; the loss of an epoch is the mean over rows
        total = 0.0
        for step in zip(batches(own[0], 2, 8), batches(own[1], 2, 8), strict=True):
            x = np.array(sum(step, []), np.float64)
            error = w * x + b - 1
            total += (error ** 2).sum()
            w, b = w - 1e-4 * (2 * error * x).mean(), b - 1e-4 * (2 * error).mean()
        losses.append(total / 19)
    x = np.array(everything)
    for seen in told:
        np.testing.assert_allclose([*seen["losses"], *seen["again"]], losses, rtol=1e-4)
        np.testing.assert_allclose(np.ravel(seen["weights"][0])[0], w, rtol=1e-4)
        np.testing.assert_allclose(seen["evaluated"], ((w * x + b - 1) ** 2).mean(), rtol=1e-4)
        np.testing.assert_allclose(seen["predicted"], w * x + b, rtol=1e-3)
    assert told[0]["weights"] == told[1]["weights"]
