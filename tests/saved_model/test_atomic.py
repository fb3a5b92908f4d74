"""A save that dies leaves a whole model: the one before, or the new one.

Children of a process that has saved a first model save a second one over it and are killed: at each step on the file
system in turn, in the middle of writes, and at random moments. After each, the directory is read as a stranger would.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from quick.start import python

import twofold as tf
from twofold.errors import DataLossError, InvalidArgumentError
from twofold.saved_model import directory, reader

# One process makes the models; each trial is a fork of it, which is cheap. What a trial leaves is read back by a fork,
# too. It prints a line for each trial: how the child ended, and which model is there.
HARNESS = '''
import os, random, resource, signal, sys, time
import numpy as np
import twofold as tf
from twofold.saved_model import reader
from twofold.saved_model import directory

path, mode, count = sys.argv[1], sys.argv[2], int(sys.argv[3])

def model(number):
    made = tf.Module()
    made.w = tf.Variable(np.full([200, 50], number, np.float32))
    made.f = tf.function(lambda x: x + made.w[0, 0], input_signature=[tf.TensorSpec([None])])
    made.more = [tf.Variable(float(number)) for _ in range(number % 7)]
    return made

models = [model(n) for n in range(9)]
for made in models:  # traced here, so that a child only writes
    made.f.get_concrete_function()
tf.saved_model.save(models[0], path)
there = 0
random.seed(7)

STEPS = "open os.mkdir os.rename os.remove os.rmdir os.scandir os.listdir shutil.rmtree".split()

def steps_until_killed(at):
    """Kill this process when it comes to step `at` on the file system."""
    left = at
    def hook(event, args):
        nonlocal left
        if event in STEPS:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
    plain = os.fsync
    def fsync(number):
        hook("os.remove", ())
        plain(number)
    os.fsync = fsync

def bytes_until_killed(count):
    """Kill this process when it writes byte number `count` of a file."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, count))

start = time.perf_counter()
for n in range(5):
    if not (child := os.fork()):
        tf.saved_model.save(models[0], path)
        os._exit(0)
    os.waitpid(child, 0)
span = (time.perf_counter() - start) / 5  # what one save takes

for trial in range(count):
    new = trial % 8 + 1
    limit = random.randrange(1, 42_000)
    child = os.fork()
    if not child:
        if mode == "steps":
            steps_until_killed(trial + 1)
        if mode == "bytes":
            bytes_until_killed(limit)
        tf.saved_model.save(models[new], path)
        os._exit(0)
    if mode == "random":
        time.sleep(random.random() * span * 1.3)
        os.kill(child, signal.SIGKILL)
    died = os.waitpid(child, 0)[1] != 0
    found = reader.read(path)
    values = {float(v.value.reshape(-1)[0]) for v in found.variables.values()}
    number = int(next(iter(values)))
    assert len(values) == 1 and len(found.variables) == 1 + number % 7, values
    assert number in (there, new), (number, there, new)
    assert died or number == new
    print("killed" if died else "ended", "new" if number == new else "old", flush=True)
    if mode == "steps" and not died:
        break
    there = number
print("folders", len(os.listdir(path)))
tf.saved_model.save(models[0], path)
print("left", sorted(name.split("-")[0] for name in os.listdir(path)))
'''


def harness(folder: Path, mode: str, count: int) -> list[str]:
    """The lines that the harness printed."""
    done = subprocess.run(python("-c", HARNESS, folder / "model", mode, str(count)),
                          capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout.splitlines()


def test_killed_at_each_step(tmp_path):
    *trials, folders, left = harness(tmp_path, "steps", 500)
    assert trials[-1] == "ended new" and len(trials) > 30  # the last one was not reached by the knife
    assert {"killed old", "killed new"} <= set(trials)
    assert all(line.startswith("killed") for line in trials[:-1])
    assert left == "left ['data', 'manifest.json']"  # the next save that ends tidies up


def test_killed_at_random_moments(tmp_path):
    *trials, _, left = harness(tmp_path, "random", 200)
    assert len(trials) == 200 and trials.count("killed old") > 20
    assert left == "left ['data', 'manifest.json']"


def test_killed_in_the_middle_of_a_file(tmp_path):
    *trials, _, left = harness(tmp_path, "bytes", 60)
    assert len(trials) == 60 and trials.count("killed old") > 40
    assert left == "left ['data', 'manifest.json']"


def simple(number: float) -> tf.Module:
    model = tf.Module()
    model.w = tf.Variable(np.full([10], number, np.float32))
    return model


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_everything_is_durable_before_the_manifest_is(tmp_path, monkeypatch):
    """The order of calls: all files and folders are synced, then the manifest is, then it is put in place."""
    events: list[tuple[str, str]] = []
    plain_sync, plain_replace, plain_rename = os.fsync, os.replace, os.rename

    def name_of(number: int) -> str:
        return os.path.basename(os.readlink(f"/proc/self/fd/{number}"))
    monkeypatch.setattr(os, "fsync", lambda n: (events.append(("sync", name_of(n))), plain_sync(n))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (events.append(("replace", os.path.basename(b))),
                                                     plain_replace(a, b))[1])
    monkeypatch.setattr(os, "rename", lambda a, b: (events.append(("rename", os.path.basename(b))),
                                                    plain_rename(a, b))[1])
    model = simple(1.0)
    model.f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([])])
    tf.saved_model.save(model, tmp_path / "m")
    named = [f"{kind} {re.match(r'data|[.]data|[.]manifest|.*', name)[0]}" for kind, name in events]
    decides = named.index("replace manifest.json")
    before = named[:decides]
    assert before.index("rename data") > max(
        before.index(f"sync {name}") for name in ("objects.json", "weights.safetensors", "000__lambda_.txt", "graphs",
                                                  ".data"))
    assert before[-1] == "sync .manifest" and before[-2] == "sync m"  # the manifest, and the folder with the data
    assert named[decides + 1] == "sync m"


def test_a_save_that_fails_changes_nothing(tmp_path, monkeypatch):
    tf.saved_model.save(simple(1.0), tmp_path)
    before = contents(tmp_path)

    def full(*args):
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(directory.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        tf.saved_model.save(simple(2.0), tmp_path)
    assert contents(tmp_path) == before


def test_equal_models_are_equal_bytes(tmp_path):
    for name in ("one", "two"):
        tf.saved_model.save(simple(3.0), tmp_path / name)
    tf.saved_model.save(simple(4.0), tmp_path / "two")
    tf.saved_model.save(simple(3.0), tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_saving_the_same_again_mends_what_is_damaged(tmp_path):
    tf.saved_model.save(simple(3.0), tmp_path)
    weights, = tmp_path.glob("data-*/weights.safetensors")
    weights.write_bytes(b"")
    with pytest.raises(DataLossError):
        tf.saved_model.load(tmp_path)
    tf.saved_model.save(simple(3.0), tmp_path)
    assert tf.saved_model.load(tmp_path).w.numpy().tolist() == [3.0] * 10
    assert len(list(tmp_path.iterdir())) == 2


def test_other_files_of_the_directory_stay(tmp_path):
    (tmp_path / "README").write_text("mine")
    (tmp_path / "data-0123456789ab").mkdir()
    (tmp_path / "data-0123456789ab" / "thesis.txt").write_text("mine, too")
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "objects.json").write_text("not ours")
    (tmp_path / "data-ffffffffffff").symlink_to(outside)
    for n in range(3):
        tf.saved_model.save(simple(n), tmp_path)
    assert (tmp_path / "README").read_text() == "mine"
    assert (tmp_path / "data-0123456789ab" / "thesis.txt").read_text() == "mine, too"
    assert (outside / "objects.json").read_text() == "not ours"
    assert len([p for p in tmp_path.iterdir() if p.name.startswith("data-")]) == 3


def test_a_file_is_no_place_for_a_model(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidArgumentError, match="no directory"):
        tf.saved_model.save(simple(1.0), tmp_path / "file")
    assert (tmp_path / "file").read_text() == "x"


def test_reading_while_another_saves(tmp_path, monkeypatch):
    """A model that is replaced between its manifest and its files is read again, as the new one."""
    tf.saved_model.save(simple(1.0), tmp_path)
    plain, replaced = reader.read_manifest, []

    def then_replaced(path, newest):
        actual = plain(path, newest)
        if not replaced:
            replaced.append(True)
            tf.saved_model.save(simple(2.0), tmp_path)
        return actual
    monkeypatch.setattr(reader, "read_manifest", then_replaced)
    assert reader.read(tmp_path).variables[1].value.tolist() == [2.0] * 10


def test_two_processes_that_save_at_once(tmp_path):
    script = '''
import sys
import numpy as np
import twofold as tf
model = tf.Module()
for n in range(40):
    model.w = tf.Variable(np.full([10], float(sys.argv[2]) + n, np.float32))
    tf.saved_model.save(model, sys.argv[1])
'''
    running = [subprocess.Popen(python("-c", script, tmp_path, base)) for base in ("100", "200")]
    while any(r.poll() is None for r in running):
        if tf.saved_model.contains_saved_model(tmp_path):
            assert 100 <= reader.read(tmp_path).variables[1].value[0] < 240
    assert [r.returncode for r in running] == [0, 0]
    assert tf.saved_model.load(tmp_path).w.numpy()[0] in (139.0, 239.0)
    assert len(list(tmp_path.iterdir())) == 2
