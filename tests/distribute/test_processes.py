"""Strategies of several processes, over MPI: sums, variables, training loops, `fit`, and how a job ends."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

import numpy as np
from distribute import mpi

import twofold as tf

# Sums of all sizes and dtypes, at once and compiled; their order; gradients; means; joins.
SUMS = """
rng = np.random.default_rng(rank)
everybodys = [np.random.default_rng(n) for n in range(count)]

def in_order(draw):
    total = draw(everybodys[0])
    for other in everybodys[1:]:
        total = total + draw(other)
    return total

def replica(fn, *args):
    return strategy.run(fn, args)

def reduce(x, op="SUM"):
    return tf.distribute.get_replica_context().all_reduce(op, x)

compiled = tf.function(lambda x: strategy.run(reduce, (x,)))
for dtype in ("float32", "float64", "float16", "int32", "complex64"):
    for shape in ((), (1,), (3,), (0, 4), (5, 7), (60, 1001)):
        draw = lambda rng: (rng.normal(size=shape) * 100).astype(dtype)
        wanted = in_order(draw)
        x = tf.constant(draw(rng), dtype)
        for got in (replica(reduce, x), compiled(x), strategy.reduce("SUM", x, None)):
            assert got.numpy().tobytes() == np.asarray(wanted, dtype).tobytes(), (dtype, shape)
x = tf.constant(draw(rng))
assert np.allclose(replica(lambda x: reduce(x, "MEAN"), x).numpy() * count, replica(reduce, x).numpy())
a, b = replica(reduce, [tf.constant(1.0), {"b": tf.constant([rank, 2])}])
assert a.numpy() == count and b["b"].numpy().tolist() == [sum(range(count)), 2 * count]

def slope(w):
    with tf.GradientTape() as tape:
        tape.watch(w)
        y = reduce(w * w) * (rank + 1.0)
    return tape.gradient(y, w)
for run in (slope, tf.function(slope)):
    assert replica(run, tf.constant(3.0)).numpy() == 6.0 * sum(range(1, count + 1))
rows = tf.reshape(tf.range((rank + 1) * 2), [rank + 1, 2])
gathered = strategy.gather(rows, 0).numpy()
assert gathered.tolist() == np.concatenate([np.arange((n + 1) * 2).reshape(n + 1, 2) for n in range(count)]).tolist()
joined = replica(tf.function(lambda x: tf.distribute.get_replica_context().all_gather(x, 0)), rows)
assert joined.numpy().tolist() == gathered.tolist()
assert tf.function(lambda x: strategy.gather(x, 0))(rows).numpy().tolist() == gathered.tolist()
assert strategy.reduce("MEAN", tf.cast(rows, tf.float64), 0).numpy().tolist() == gathered.mean(0).tolist()
packs = tf.distribute.experimental.CommunicationOptions(bytes_per_pack=100)
parts = replica(lambda *xs: tf.distribute.get_replica_context().all_reduce("SUM", xs, packs),
                *[tf.fill([n], rank + 1.0) for n in range(40)])
assert all(p.numpy().tolist() == [sum(range(1, count + 1))] * n for n, p in enumerate(parts))
exchanged, transport = [], strategy._group._group
whole = transport.sum
transport.sum = lambda rows, add: [exchanged.append(rows.nbytes), whole(rows, add)][1]
small = tf.distribute.MultiWorkerMirroredStrategy(communication_options=packs)
small.reduce("SUM", [tf.zeros(20)] * 3, None)
strategy.reduce("SUM", [tf.zeros(20)] * 3, None)
assert exchanged == [80, 80, 80, 240], exchanged

@tf.function
def anywhere(x):
    context = tf.distribute.get_replica_context()
    return x if context is None else context.all_reduce("SUM", x)

for _ in range(3):  # a trace in a replica, and one for all of them
    assert replica(anywhere, tf.constant(1.0)).numpy() == count and anywhere(tf.constant(1.0)).numpy() == 1.0
    with strategy.scope():
        assert anywhere(tf.constant(1.0)).numpy() == 1.0
tell("done")
"""


def test_sums(tmp_path: Path) -> None:
    assert mpi.told(SUMS, 3, tmp_path) == ["done"] * 3


# A loop of a user's own: variables begin alike, and stay alike; dropout differs; the last batch is uneven.
LOOP = """
with strategy.scope():
    w = tf.Variable(tf.random.normal([5, 3]))
    optimizer = tf.keras.optimizers.Adam(0.05)
    seen = tf.keras.metrics.Mean()
x = np.random.default_rng(0).normal(size=(50, 5)).astype(np.float32)
y = (x @ np.arange(15, dtype=np.float32).reshape(5, 3)).astype(np.float32)
data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, y)).batch(16))
generator = tf.random.Generator.from_seed(5)
masks = strategy.run(lambda: tf.nn.dropout(tf.ones([64]), 0.5))
drawn = strategy.run(tf.function(lambda: generator.normal([2])))

@tf.function
def step(inputs):
    def one(inputs):
        x, y = inputs
        with tf.GradientTape() as tape:
            each = tf.reduce_mean((x @ w - y) ** 2, 1)
            loss = tf.nn.compute_average_loss(each, global_batch_size=16)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return loss
    return strategy.reduce("SUM", strategy.run(one, args=(inputs,)), axis=None)

losses = [float(step(batch)) for _ in range(3) for batch in data]
tell({"losses": losses, "w": w.numpy().tolist(), "mask": masks.numpy().tolist(), "drawn": drawn.numpy().tolist(),
      "next": tf.random.uniform([]).numpy().item()})
"""


# The same twice, which tells both.
TWICE = """
told, tell_all, tell = [], tell, lambda value: told.append(value)
for _ in range(2):
    tf.random.set_seed(3)
""" + textwrap.indent(LOOP, "    ") + """
tell_all(told)
"""


def test_a_loop(tmp_path: Path) -> None:
    alone, = mpi.told("tf.random.set_seed(3)" + LOOP, 1, tmp_path / "one")
    several, again = zip(*mpi.told(TWICE, 4, tmp_path / "four"), strict=True)
    assert several == again  # to the bit
    for one in several:
        np.testing.assert_allclose(one["losses"], alone["losses"], rtol=1e-5)
        assert one["w"] == several[0]["w"] and one["losses"] == several[0]["losses"] and one["next"] == alone["next"]
    assert several[0]["mask"] == alone["mask"] and len({tuple(one["mask"]) for one in several}) == 4
    assert several[0]["drawn"] == alone["drawn"] and len({tuple(one["drawn"]) for one in several}) == 4
    unseeded = mpi.told(LOOP, 2, tmp_path / "unseeded")
    assert unseeded[0]["w"] == unseeded[1]["w"] and unseeded[0]["next"] == unseeded[1]["next"]


FIT = """
import shutil
tf.random.set_seed(1)
np.random.seed(rank)
x = np.random.default_rng(0).normal(size=(70, 6)).astype(np.float32)
y = (x.sum(1) > 0).astype(np.int64)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(8, "relu", kernel_regularizer="l2"), tf.keras.layers.Dense(2)])
    model.compile(tf.keras.optimizers.Adam(0.01), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"])
folder = sys.argv[1]
files = [tf.keras.callbacks.CSVLogger(f"{folder}/log{rank}.csv"),
         tf.keras.callbacks.ModelCheckpoint(f"{folder}/at{rank}.weights.h5", save_weights_only=True)]
history = model.fit(x, y, batch_size=16, epochs=3, shuffle=SHUFFLE, callbacks=files, validation_data=(x[:30], y[:30]),
                    verbose=2)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(20)
evaluation = model.evaluate(data, verbose=0)
more = model.fit(data, epochs=1, verbose=0)
tell({"history": history.history, "evaluation": evaluation, "more": more.history,
      "weights": [w.tolist() for w in model.get_weights()],
      "outputs": model.predict(x[:33], batch_size=10, verbose=0).tolist()})
"""


def test_fit(tmp_path: Path) -> None:
    program = FIT.replace("SHUFFLE", "False")
    alone, = mpi.told(program, 1, tmp_path / "one")
    several = mpi.told(program, 4, tmp_path / "four")
    assert all(one == several[0] for one in several)
    for name in ("loss", "accuracy", "val_loss", "val_accuracy"):
        np.testing.assert_allclose(several[0]["history"][name], alone["history"][name], rtol=1e-4, err_msg=name)
    np.testing.assert_allclose(several[0]["evaluation"], alone["evaluation"], rtol=1e-4)
    np.testing.assert_allclose(several[0]["more"]["loss"], alone["more"]["loss"], rtol=1e-4)
    np.testing.assert_allclose(several[0]["outputs"], alone["outputs"], rtol=1e-3, atol=1e-5)
    written = sorted(path.name for path in (tmp_path / "four").iterdir() if path.suffix in (".csv", ".h5"))
    assert written == ["at0.weights.h5", "log0.csv"]


def test_fit_shuffles_alike(tmp_path: Path) -> None:
    several = mpi.told(FIT.replace("SHUFFLE", "True"), 2, tmp_path)
    assert several[0] == several[1]


# A step with a pack for each layer, and reductions at once beside it. In the second step the first exchange is held up
# until the last one begins, which the backward pass must reach.
OVERLAP = """
import threading
packs = tf.distribute.experimental.CommunicationOptions(bytes_per_pack=4000)
if BY_PROCESSES:
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=packs)
else:
    cpu, = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy()
rng = np.random.default_rng(0)
with strategy.scope():
    weights = [tf.Variable(rng.normal(size=[40, 40]).astype(np.float32) / 6) for _ in range(4)]
    optimizer = tf.keras.optimizers.Adam(0.01)
x, y = rng.normal(size=(2, 24, 40)).astype(np.float32)

@tf.function
def step(inputs):
    x, y = inputs
    with tf.GradientTape() as tape:
        h = x
        for w in weights:
            h = tf.tanh(h @ w)
        loss = tf.nn.compute_average_loss(tf.reduce_mean((h - y) ** 2, 1), global_batch_size=24)
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
    return loss

data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, y)).batch(24))
held, losses = [], []
for number in range(6):
    for batch in data:
        if BY_PROCESSES and number == 1 and count > 1:
            line, last, begun = strategy._group, threading.Event(), []
            transport, begin, whole = line._group, line.begin, line._group.sum
            def noted(about, call):
                begun.append(about)
                if len(begun) == 4:
                    last.set()
                return begin(about, call)
            line.begin, transport.sum = noted, lambda *args: [held.append(last.wait(20)), whole(*args)][1]
        losses.append(strategy.reduce("SUM", strategy.run(step, (batch,)), None).numpy().item())
tell({"losses": losses, "weights": [w.numpy().tolist() for w in weights], "held": held[:4]})
"""


def test_exchanges_overlap_with_the_backward_pass(tmp_path: Path) -> None:
    processes, threads = (OVERLAP.replace("BY_PROCESSES", word) for word in ("True", "False"))
    alone, = mpi.told(processes, 1, tmp_path / "one")
    several = mpi.told(processes, 2, tmp_path / "two")
    assert [one.pop("held") for one in several] == [[True] * 4] * 2
    threads, = mpi.told(threads, 1, tmp_path / "threads")
    for one in several:
        assert one["losses"] == several[0]["losses"] and one["weights"] == several[0]["weights"] == threads["weights"]
        np.testing.assert_allclose(one["losses"], alone["losses"], rtol=1e-5)


def test_processes_must_come_to_the_same_exchanges(tmp_path: Path) -> None:
    done = mpi.run("""
    try:
        strategy.reduce("SUM", tf.zeros([2 + rank]), None)
    except RuntimeError as error:
        assert "process 0: collective_all_reduce (SUM) of float32[2]" in str(error), error
        assert "process 1: collective_all_reduce (SUM) of float32[3]" in str(error), error
    assert strategy.reduce("SUM", tf.ones([2]), None).numpy().tolist() == [2.0, 2.0]
    assert strategy._group._thread is None  # MPI is not to be called by another one
    """, 2, tmp_path, environment={"MPI4PY_RC_THREAD_LEVEL": "funneled"})
    assert done.returncode == 0, done.stderr[-2000:]


def test_an_interrupt_ends_the_job(tmp_path: Path) -> None:
    done = mpi.run("""
    import signal, time
    strategy.reduce("SUM", tf.constant(1.0), None)
    if rank == 1:
        time.sleep(100)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    strategy.run(tf.function(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.constant(1.0))))
    """, 2, tmp_path)
    assert done.returncode != 0
    assert "KeyboardInterrupt" in done.stderr and "process 0 of 2 ended with the error above" in done.stderr


def test_an_error_ends_the_job(tmp_path: Path) -> None:
    done = mpi.run("""
    if rank == 1:
        raise ValueError("this one fails")
    strategy.reduce("SUM", tf.constant(1.0), None)
    """, 2, tmp_path)
    assert done.returncode != 0
    assert "ValueError: this one fails" in done.stderr and "process 1 of 2 ended with the error above" in done.stderr


def test_a_killed_process_ends_the_job(tmp_path: Path) -> None:
    done = mpi.run("""
    import signal
    strategy.reduce("SUM", tf.constant(1.0), None)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    strategy.reduce("SUM", tf.constant(1.0), None)
    """, 4, tmp_path)
    assert done.returncode != 0


def test_who_leaves_early_is_named(tmp_path: Path) -> None:
    done = mpi.run("""
    from twofold.distribute import _connecting
    _connecting._LAST = 0.3
    strategy.reduce("SUM", tf.constant(1.0), None)
    if rank == 0:
        strategy.reduce("SUM", tf.constant(1.0), None)
    """, 2, tmp_path)
    assert done.returncode != 0 and "process 1 of 2 (" in done.stderr and "has come to its end" in done.stderr


BACKUP = """
x = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
y = x.sum(1, keepdims=True)
tf.random.set_seed(2)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input([4]), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.Adam(0.05), "mse")

class Dies(tf.keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 3 and rank == 1 and os.environ.get("DIES"):
            os.kill(os.getpid(), 9)
backup = tf.keras.callbacks.BackupAndRestore(os.path.join(os.path.dirname(sys.argv[1]), "kept"))
history = model.fit(x, y, batch_size=16, epochs=6, shuffle=False, verbose=0, callbacks=[backup, Dies()])
tell({"loss": history.history["loss"], "weights": [w.tolist() for w in model.get_weights()]})
"""


def test_a_training_goes_on_after_a_process_was_lost(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "lost").mkdir()
    whole = mpi.told(BACKUP, 2, tmp_path / "whole" / "run")
    done = mpi.run(BACKUP, 2, tmp_path / "lost" / "run", environment={"DIES": "1"})
    assert done.returncode != 0 and (tmp_path / "lost" / "kept").exists()
    later = mpi.told(BACKUP, 2, tmp_path / "lost" / "run")
    assert later[0]["loss"] == whole[0]["loss"][3:] and later[0]["weights"] == whole[0]["weights"]
    assert not (tmp_path / "lost" / "kept").exists()


def test_explain_shows_the_reduction(tmp_path: Path) -> None:
    text, _ = mpi.told("""
    import io
    w = tf.Variable(2.0)
    @tf.function
    def step(x):
        return strategy.run(lambda x: tf.distribute.get_replica_context().all_reduce("SUM", x * w), (x,))
    step(tf.constant([1.0]))
    out = io.StringIO()
    step.explain(tf.constant([1.0]), file=out)
    tell(out.getvalue())
    """, 2, tmp_path)
    assert "exchanges: 1\n  0. collective_all_reduce of 1 tensor, 4 B, of 2 replicas" in text


def test_without_mpiexec_there_is_one_replica() -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    assert strategy.num_replicas_in_sync == 1
    assert json.dumps(strategy.run(lambda: 3)) == "3"


def test_the_example(tmp_path: Path) -> None:
    done = mpi.example("digits_mpi.py", tmp_path, "--processes", "2")
    assert done.returncode == 0, done.stderr[-2000:]
    processes, accuracy = re.search(r"(\d+) processes, accuracy ([\d.]+)", done.stdout).groups()  # type: ignore[union-attr]
    assert processes == "2" and float(accuracy) > 0.97
    assert done.stdout.count("Epoch 20/20") == 1  # by the first process
