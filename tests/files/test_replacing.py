"""Files that are replaced as a whole: by processes that are killed, on full disks, and beside what others do.

Each writer runs in children of one process, which makes its objects once. A child writes again and again until it is
killed, or writes under a limit on the size of files, which fails as a full disk does. After each the old contents or
the new are there, whole, and after one more save nothing else is.
"""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest
from quick.start import python

from twofold.runtime import replacing

HARNESS = '''
import json, os, random, resource, signal, sys, time
import numpy as np
import twofold as tf

kind, folder = sys.argv[1], sys.argv[2]
path = os.path.join(folder, "it")
v = tf.Variable(tf.zeros([200, 50]))
random.seed(3)

def model():
    made = tf.keras.Sequential([tf.keras.layers.Input((200,)), tf.keras.layers.Dense(50, name="d")])
    made.compile("sgd", "mse")
    return made

def keras(ending):
    made = model()
    def write(number):
        made.layers[0].kernel.assign(tf.fill([200, 50], float(number)))
        made.save_weights(path + ending) if "weights" in ending else made.save(path + ending)
    def read():
        other = model()
        other.load_weights(path + ending)
        return other.layers[0].kernel.numpy()
    return write, read

def backup():
    made = model()
    callback = tf.keras.callbacks.BackupAndRestore(folder)
    made.optimizer.build(made.trainable_variables)
    def write(number):
        made.layers[0].kernel.assign(tf.fill([200, 50], float(number)))
        callback.set_model(made)
        callback.on_epoch_end(0)
    def read():
        other = model()
        callback.set_model(other)
        callback.on_train_begin()
        return other.layers[0].kernel.numpy()
    return write, read

def manager():
    checkpoint = tf.train.Checkpoint(v=v)
    def write(number):
        found = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
        found.restore_or_initialize()
        v.assign(tf.fill([200, 50], float(number)))
        for _ in range(4):
            found.save()
    def read():
        w = tf.Variable(tf.zeros([200, 50]))
        tf.train.Checkpoint(v=w).restore(tf.train.latest_checkpoint(folder)).expect_partial()
        return w.numpy()
    return write, read

def checkpoint():
    def write(number):
        v.assign(tf.fill([200, 50], float(number)))
        tf.train.Checkpoint(v=v).write(path)
    def read():
        w = tf.Variable(tf.zeros([200, 50]))
        tf.train.Checkpoint(v=w).read(path)
        return w.numpy()
    return write, read

def saved_model():
    module = tf.Module()
    module.v = v
    def write(number):
        v.assign(tf.fill([200, 50], float(number)))
        tf.saved_model.save(module, folder)
    return write, lambda: tf.saved_model.load(folder).v.numpy()

def dataset():
    def write(number):
        tf.data.Dataset.from_tensors(np.full([200, 50], number, np.float32)).repeat(3).save(folder)
    def read():
        found = [e.numpy() for e in tf.data.Dataset.load(folder)]
        assert len(found) == 3
        return found[0] + 0 * (found[1] + found[2])
    return write, read

def cache():
    def write(number):
        for name in os.listdir(folder):
            if name.endswith(".elements"):
                os.unlink(os.path.join(folder, name))
        list(tf.data.Dataset.from_tensors(np.full([200, 50], number, np.float32)).cache(path))
    def read():
        if not os.path.exists(path + ".elements"):
            return np.zeros([200, 50])
        found, = tf.data.Dataset.from_tensors(np.zeros([200, 50], np.float32)).cache(path)
        return found.numpy()
    return write, read

def library():
    from twofold.runtime.replacing import replace_all
    def write(number):
        data = np.full([200, 50], number, np.float32).tobytes()
        replace_all({path + ".a": data, path + ".h": data, path + ".safetensors": data})
    return write, lambda: np.frombuffer(open(path + ".a", "rb").read(), np.float32).reshape(200, 50)

write, read = {"keras": lambda: keras(".keras"), "weights": lambda: keras(".weights.h5"), "h5": lambda: keras(".h5"),
               "backup": backup, "manager": manager, "checkpoint": checkpoint, "saved_model": saved_model,
               "dataset": dataset, "cache": cache, "library": library}[kind]()

def number():
    values = set(np.unique(read()).tolist())
    assert len(values) == 1, values
    return int(values.pop())

def child(work):
    if not (pid := os.fork()):
        try:
            work()
            os._exit(0)
        except OSError:
            os._exit(7)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(8)
    return pid

def repeated(first):
    for n in range(first, first + 1_000_000):
        write(1 + n % 1000)

write(5)
names = sorted(os.listdir(folder))
for trial in range(15):
    pid = child(lambda: repeated(10 * trial))
    time.sleep(random.random() * 0.06)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    number()
write(6)
assert number() == 6
left_by_kills = len(os.listdir(folder)) - len(names)

def limited():
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    write(7)
ends = set()
write(6)
names = len(os.listdir(folder))
for limit in (0, 100, 3000, 20_000, 39_000):
    _, status = os.waitpid(child(limited), 0)
    ends.add(os.waitstatus_to_exitcode(status))
    assert len(os.listdir(folder)) <= names, os.listdir(folder)
    if kind != "cache":
        assert number() == 6
print(json.dumps([left_by_kills, sorted(ends)]))
'''

WRITERS = ("keras", "weights", "h5", "backup", "manager", "checkpoint", "saved_model", "dataset", "cache", "library")


@pytest.mark.parametrize("kind", WRITERS)
def test_killed_writers_and_full_disks_leave_whole_files_and_nothing_else(kind: str, tmp_path: Path) -> None:
    done = subprocess.run(python("-c", HARNESS, kind, str(tmp_path)), capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stdout.splitlines()[-1] == "[0, [7]]", done.stdout


def test_what_a_living_process_writes_stays(tmp_path: Path) -> None:
    with replacing.replaced(tmp_path / "a") as file:
        file.write(b"new")
        replacing.replace(tmp_path / "b", b"other")
        assert len(list(tmp_path.iterdir())) == 2
    assert (tmp_path / "a").read_bytes() == b"new"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


def test_only_files_of_that_name_are_swept(tmp_path: Path) -> None:
    mine = [".a.tmp", "a.12.0123abcd.tmp", ".a.12.0123abcd.tmp.bak", ".a.x.0123abcd.tmp", ".a.12.0123ABCD.tmp"]
    for name in mine:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".a.12.0123abcd.tmp").write_text("left")
    (tmp_path / ".b.keras.13.ffffffff.tmp").mkdir()
    (tmp_path / ".b.keras.13.ffffffff.tmp" / "objects").write_text("left")
    (tmp_path / ".c.12.0123abcd.tmp").symlink_to(tmp_path / mine[0])
    os.mkfifo(tmp_path / ".d.12.0123abcd.tmp")
    replacing.replace(tmp_path / "new", b"x")
    left = [".c.12.0123abcd.tmp", ".d.12.0123abcd.tmp"]  # no files
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*mine, *left, "new"])


def test_permissions_stay_and_other_things_are_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "private"
    path.write_bytes(b"old")
    path.chmod(0o640)
    replacing.replace(path, b"new")
    assert path.stat().st_mode & 0o777 == 0o640 and path.read_bytes() == b"new"
    os.mkfifo(tmp_path / "pipe")
    for other in (tmp_path / "pipe", tmp_path):
        with pytest.raises(FileExistsError, match="something else than a file"):
            replacing.replace(other, b"new")
    with pytest.raises(FileNotFoundError):
        replacing.replace(tmp_path / "none" / "file", b"new")
    replacing.replace(tmp_path / ("long name " * 24), b"new")  # 240 bytes; the file beside it has a shorter name


def test_several_files_come_together(tmp_path: Path) -> None:
    def fails(file: object) -> None:
        raise OSError("disk full")
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(OSError, match="disk full"):
        replacing.replace_all({tmp_path / "a": b"new", tmp_path / "b": fails})
    assert [p.name for p in tmp_path.iterdir()] == ["a"] and (tmp_path / "a").read_bytes() == b"old"


def test_files_and_folders_are_synced_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = []
    sync, rename = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda n: (events.append(os.path.basename(os.readlink(f"/proc/self/fd/{n}"))),
                                                sync(n)))
    monkeypatch.setattr(os, "replace", lambda a, b: (events.append("rename"), rename(a, b)))
    replacing.replace(tmp_path / "a", b"new")
    assert events[0].startswith(".a.") and events[1:] == ["rename", tmp_path.name]
    events.clear()
    replacing.replace(tmp_path / "a", b"new", durable=False)
    assert events == ["rename"]


def test_threads_that_replace_one_file(tmp_path: Path) -> None:
    contents = [bytes([n]) * 5000 for n in range(4)]
    threads = [threading.Thread(target=lambda c=c: [replacing.replace(tmp_path / "a", c, durable=False)
                                                    for _ in range(50)]) for c in contents]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if (tmp_path / "a").exists():
            assert (tmp_path / "a").read_bytes() in contents
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
