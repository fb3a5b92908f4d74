"""Processes that `TF_CONFIG` names: what it may hold, how they find one another, and what becomes of them all when one
is lost."""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from distribute import mpi

import twofold as tf
from twofold.distribute import _connecting as connecting

TWO = {"worker": ["a:1", "b:2"]}
WORKER = {"type": "worker", "index": 1}


def resolver(monkeypatch: pytest.MonkeyPatch, config: Any) -> Any:
    text = config if isinstance(config, str) else json.dumps(config)
    monkeypatch.setenv("TF_CONFIG", text)
    return tf.distribute.cluster_resolver.TFConfigClusterResolver()


def test_what_tf_config_says(monkeypatch: pytest.MonkeyPatch) -> None:
    about = resolver(monkeypatch, {"cluster": {**TWO, "chief": ["c:3"], "ps": ["d:4"]}, "task": WORKER,
                                   "environment": "cloud", "rpc_layer": "grpc"})
    assert (about.task_type, about.task_id, about.environment) == ("worker", 1, "cloud")
    assert about.master() == "b:2" and about.master("chief", 0, rpc_layer="grpc") == "grpc://c:3"
    spec = about.cluster_spec()
    assert isinstance(spec, tf.train.ClusterSpec) and spec.jobs == ["chief", "ps", "worker"] and spec == spec.as_dict()
    cluster = connecting.cluster_of(about)
    assert cluster == (("chief 0", "worker 0", "worker 1"), ("c:3", "a:1", "b:2"), 2)
    about = tf.distribute.cluster_resolver.TFConfigClusterResolver(task_type="chief", task_id=0)
    assert connecting.cluster_of(about)._replace(names=(), addresses=()) == ((), (), 0)  # type: ignore[union-attr]
    assert resolver(monkeypatch, {"cluster": TWO, "task": {"type": "worker", "index": "1"}}).task_id == 1


@pytest.mark.parametrize("config", [
    "", {}, {"task": WORKER}, {"cluster": {}}, {"cluster": TWO, "task": {"type": "evaluator", "index": 0}},
    {"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}])
def test_without_others_there_is_one_replica(monkeypatch: pytest.MonkeyPatch, config: Any) -> None:
    assert connecting.cluster_of(resolver(monkeypatch, config)) is None
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    assert strategy.num_replicas_in_sync == 1
    assert isinstance(strategy.cluster_resolver, tf.distribute.cluster_resolver.TFConfigClusterResolver)


@pytest.mark.parametrize(("config", "says"), [
    ("{", "must be an object in JSON"), ("[1]", "an object in JSON"), ("[" * 100000, "must be an object in JSON"),
    (" " * (5 << 20) + "{}x", "at most"), ({"cluster": 3}, "object of jobs"),
    ({"cluster": {"worker": "a:1"}}, "list of"),
    ({"cluster": {"worker": [1]}}, "must be a string"), ({"cluster": TWO, "task": 1}, "`task` must be an object"),
    ({"cluster": TWO}, "which process this is"), ({"cluster": TWO, "task": {"type": 1}}, "must be a text"),
    ({"cluster": TWO, "task": {"type": "worker", "index": 1.5}}, "must be an integer"),
    ({"cluster": TWO, "task": {"type": "worker", "index": 2}}, "worker 2, which the cluster"),
    ({"cluster": TWO, "task": {"type": "chief", "index": 0}}, "chief 0, which the cluster"),
    ({"cluster": {**TWO, "ps": ["c:1"]}, "task": {"type": "ps", "index": 0}}, "takes no part"),
    ({"cluster": {"worker": ["a:1", "a:1"]}, "task": WORKER}, "the same address"),
    ({"cluster": {**TWO, "chief": ["c:1", "d:1"]}, "task": WORKER}, "at most one chief"),
    ({"cluster": {"worker": ["a:1", "b"]}, "task": WORKER}, "must be host:port"),
    ({"cluster": {"worker": ["a:1", "b:99999"]}, "task": WORKER}, "must be host:port"),
])
def test_wrong_clusters(monkeypatch: pytest.MonkeyPatch, config: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        tf.distribute.MultiWorkerMirroredStrategy(resolver(monkeypatch, config))


def test_specs() -> None:
    spec = tf.train.ClusterSpec({"worker": {1: "b:2", 3: "d:4"}, "chief": ("c:3",)})
    assert spec.as_dict() == {"chief": ["c:3"], "worker": {1: "b:2", 3: "d:4"}}
    assert spec.job_tasks("worker") == [None, "b:2", None, "d:4"] and spec.task_indices("worker") == [1, 3]
    assert spec.num_tasks("worker") == 2 and spec != {"worker": []} and not tf.train.ClusterSpec({})
    for wrong in (lambda: spec.task_address("worker", 0), lambda: spec.num_tasks("ps")):
        with pytest.raises(ValueError, match="[Nn]o "):
            wrong()
    for given in (3, {"a": "b"}, {"a": [1]}, {"a": {"b": "c"}}):
        with pytest.raises(TypeError):
            tf.train.ClusterSpec(given)  # type: ignore[arg-type]


class Comes(threading.Thread):
    """A process that comes to the others, as a thread: up to the point where MPI would begin."""

    def __init__(self, cluster: connecting.Cluster, seconds: float = 20.0) -> None:
        super().__init__(daemon=True)
        self.members, self.seconds, self.error = connecting.Members(cluster), seconds, ""
        self.start()

    def run(self) -> None:
        try:
            self.members.gather(time.monotonic() + self.seconds)
        except tf.errors.OpError as error:
            self.error = f"{type(error).__name__}: {error}"

    def end(self) -> str:
        """What it failed with."""
        self.join()
        self.members.close()
        return self.error


@pytest.fixture
def addresses() -> tuple[str, ...]:
    config, *_ = mpi.cluster(3)
    return tuple(config["cluster"]["worker"])


def member(addresses: tuple[str, ...], rank: int) -> connecting.Cluster:
    return connecting.Cluster(("worker 0", "worker 1", "worker 2"), addresses, rank)


def test_processes_come_in_any_order(addresses: tuple[str, ...]) -> None:
    others = [Comes(member(addresses, n)) for n in (2, 1)]
    first = Comes(member(addresses, 0))
    time.sleep(0.2)
    host, port = addresses[0].split(":")
    assert [one.end() for one in (*others, first)] == ["", "", ""]
    with pytest.raises(OSError):  # nobody listens any more
        socket.create_connection((host, int(port)), timeout=1)


def test_who_does_not_come_is_named(addresses: tuple[str, ...]) -> None:
    coming = [Comes(member(addresses, n), 0.6 + n) for n in (0, 1)]
    for error in [one.end() for one in coming]:
        assert "DeadlineExceededError" in error and f"not come in time: worker 2 ({addresses[2]})" in error
    alone = Comes(member(addresses, 1), 0.3).end()
    assert f"not come in time: worker 0 ({addresses[0]})" in alone


def test_contradictions(addresses: tuple[str, ...]) -> None:
    coming = [Comes(member(addresses, n)) for n in (0, 1)]
    time.sleep(0.2)
    coming.append(Comes(member((addresses[0], addresses[2], addresses[1]), 2)))
    errors = [one.end() for one in coming]
    assert all("worker 2 has another cluster" in error for error in errors), errors
    coming = [Comes(member(addresses, n)) for n in (0, 1, 1)]  # in any order
    errors = [one.end() for one in coming]
    assert all("Two processes say in TF_CONFIG that they are worker 1" in error for error in errors), errors
    with socket.create_server(("127.0.0.1", int(addresses[1].split(":")[1]))) as other:
        taken = Comes(member((addresses[1], addresses[0], addresses[2]), 0))
        assert "cannot be used" in taken.end()
        mistaken = Comes(member((addresses[1], addresses[0], addresses[2]), 1))
        accepted, _ = other.accept()
        with accepted:
            accepted.sendall(b"220 welcome\n")
            mistaken.join()
        assert "Somebody else answers" in mistaken.end()


def test_strangers_are_not_heard(addresses: tuple[str, ...]) -> None:
    coming = [Comes(member(addresses, n)) for n in (0, 1)]
    time.sleep(0.3)
    address = ("127.0.0.1", int(addresses[0].split(":")[1]))
    for said in (b"GET / HTTP/1.1\r\n\r\n", b"{}\n", b"[" * 5000 + b"\n",
                 b'{"words": "twofold 1", "rank": 99, "mpi": true}\n', b"x" * (2 << 20)):
        with socket.create_connection(address) as stranger:
            stranger.settimeout(5)
            try:
                stranger.sendall(said)
                assert stranger.recv(100) == b""
            except ConnectionError:
                pass
    coming.append(Comes(member(addresses, 2)))
    assert [one.end() for one in reversed(coming)] == ["", "", ""]


TRAINING = """
x = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
tf.random.set_seed(2)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input([4]), tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.Adam(0.05), "mse")

class Dies(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if self.model.optimizer.iterations == 14 and rank == 1 and os.environ.get("DIES"):
            os.kill(os.getpid(), 9)
kept = os.path.join(os.path.dirname(sys.argv[1]), "kept")
callbacks = [tf.keras.callbacks.BackupAndRestore(kept), Dies()] if os.environ.get("KEEPS") else []
model.fit(x, x.sum(1, keepdims=True), batch_size=16, epochs=6, shuffle=False, verbose=0, callbacks=callbacks)
about = strategy.cluster_resolver
tell({"weights": [w.tolist() for w in model.get_weights()], "task": [about.task_type, about.task_id],
      "chief": strategy.extended.should_checkpoint})
"""


def test_a_training_without_a_launcher_survives_a_loss(tmp_path: Path) -> None:
    wanted = mpi.told(TRAINING, 3, tmp_path / "mpiexec")
    lost = mpi.ends(mpi.started(TRAINING, 3, tmp_path / "run", environment={"KEEPS": "1", "DIES": "1"},
                                clusters=mpi.cluster(3, chief=True)), 30)
    assert [status for status, _ in lost] == [1, -9, 1] and (tmp_path / "kept").exists()
    for n, name in ((0, "chief 0"), (2, "worker 1")):
        lines = lost[n][1].splitlines()
        assert len(lines) == 1 and "twofold: worker 0 (127.0.0.1:" in lines[0] and "was lost" in lines[0]
        assert lines[0].endswith("ends, too.") and name in lines[0]
    later = mpi.ends(mpi.started(TRAINING, 3, tmp_path / "run", environment={"KEEPS": "1"},
                                 clusters=mpi.cluster(3, chief=True)))
    assert later == [(0, "")] * 3
    told = [json.loads((tmp_path / "run" / f"{n}.json").read_text()) for n in range(3)]
    assert [one["weights"] for one in told] == [one["weights"] for one in wanted]
    assert [(*one["task"], one["chief"]) for one in told] == [("chief", 0, True), ("worker", 0, False),
                                                               ("worker", 1, False)]


def test_an_error_of_one_process_is_told_to_all(tmp_path: Path) -> None:
    first, second = mpi.ends(mpi.started("""
    if rank == 1:
        raise ValueError("this one fails")
    strategy.reduce("SUM", tf.ones([1 << 16]), None)
    """, 2, tmp_path, environment={"MPIR_CVAR_NOLOCAL": "1"}), 30)  # as between machines
    assert first[0] == 1 and "worker 1 (" in first[1] and "ended with an error (ValueError: this one fails)" in first[1]
    assert second[0] == 1 and "ended with the error above" in second[1]


def test_who_leaves_early_is_named(tmp_path: Path) -> None:
    first, second = mpi.ends(mpi.started("""
    from twofold.distribute import _connecting
    _connecting._LAST = 0.5
    strategy.reduce("SUM", tf.constant(1.0), None)
    if rank == 0:
        strategy.reduce("SUM", tf.constant(1.0), None)
    """, 2, tmp_path), 30)
    assert (first[0], second[0]) == (1, 1) and "worker 1 (" in first[1] and "has come to its end" in first[1]
