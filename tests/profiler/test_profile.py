"""Profiles: the file holds what ran, in both modes, nested in time, with the user's lines."""

import gzip
import json
import threading

import numpy as np
import pytest

import twofold as tf


def events_of(folder):
    [path] = (folder / "plugins" / "profile").glob("*/*.trace.json.gz")
    told = json.loads(gzip.decompress(path.read_bytes()))
    return [e for e in told["traceEvents"] if e["ph"] == "X"], [e for e in told["traceEvents"] if e["ph"] == "M"]


def end_of(event):
    return event["ts"] + event["dur"]


@pytest.fixture
def step():
    v = tf.Variable(tf.ones([64, 64]))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.softmax(tf.nn.relu(x @ v)))
        v.assign_sub(tape.gradient(loss, v))
        return loss
    return step


def test_ops_functions_kernels_and_named_parts(tmp_path, step):
    x = tf.random.normal([32, 64])
    for _ in range(3):
        step(x)  # from now on native code would serve it
    with tf.profiler.experimental.Profile(tmp_path):
        for n in range(2):
            with tf.profiler.experimental.Trace("train", step_num=n):
                step(x)
                tf.tanh(x)
                tf.constant(1.0) + 2.0  # a small op, which otherwise runs natively
    events, names = events_of(tmp_path)
    by_kind = {kind: [e for e in events if e["cat"] == kind] for kind in ("part", "op", "function", "kernel")}
    assert [e["args"]["step_num"] for e in by_kind["part"]] == ["0", "1"]
    assert [e["name"] for e in by_kind["op"]] == ["tanh", "add"] * 2
    assert [e["name"] for e in by_kind["function"]] == ["step"] * 2
    assert by_kind["function"][0]["args"]["arguments"] == "float32[32, 64], float32[64, 64]"
    for e in by_kind["op"] + by_kind["function"]:
        assert "test_profile.py:" in e["args"]["line"]
        assert any(p["ts"] <= e["ts"] and end_of(e) <= end_of(p) for p in by_kind["part"])
    assert {"matmul", "softmax"} <= {e["name"] for e in by_kind["kernel"]}
    for e in by_kind["kernel"]:
        assert any(f["ts"] <= e["ts"] and end_of(e) <= end_of(f) + 1e-6 for f in by_kind["function"])
        assert "test_profile.py:" in e["args"]["lines"]
    assert "MainThread" in [e["args"]["name"] for e in names]


def test_the_file_is_as_perfetto_wants_it(tmp_path, step):
    """Its importer drops events that overlap without nesting, and threads beyond 32 bits; times are nanoseconds."""
    x = tf.random.normal([32, 64])
    step(x)

    def work():
        for n in range(5):
            with tf.profiler.experimental.Trace("outer", step_num=n), tf.profiler.experimental.Trace("inner"):
                step(x)
                tf.tanh(x)

    with tf.profiler.experimental.Profile(tmp_path):
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        work()
        for thread in threads:
            thread.join()
    events, names = events_of(tmp_path)
    assert {e["tid"] for e in events} == {e["tid"] for e in names if e["name"] == "thread_name"}
    assert len({e["tid"] for e in events}) == 3
    for e in events + names:
        assert type(e["pid"]) is int and type(e.get("tid", 0)) is int and 0 <= e.get("tid", 0) < 1 << 32
        assert all(type(k) is str for k in e["args"])
    for tid in {e["tid"] for e in events}:
        open_until: list[int] = []
        spans = [(round(e["ts"] * 1000), round(end_of(e) * 1000)) for e in events if e["tid"] == tid]
        for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            assert 0 <= begin <= end
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            assert not open_until or end <= open_until[-1]
            open_until.append(end)


def test_kernels_of_fast_math_are_those_that_run(tmp_path):
    x = tf.constant([-0.0, 1.0])
    exact, free = (tf.function(lambda x: tf.exp(x + 0.0), fast_math=fast) for fast in (False, True))
    assert np.signbit(tf.function(lambda x: x + 0.0, fast_math=True)(x).numpy()).tolist() == [True, False]
    assert np.signbit(tf.function(lambda x: x + 0.0)(x).numpy()).tolist() == [False, False]
    for number, fn in enumerate((exact, free)):
        fn(x)
        with tf.profiler.experimental.Profile(tmp_path / str(number)):
            fn(x)
        names = [e["name"] for e in events_of(tmp_path / str(number))[0] if e["cat"] == "kernel"]
        assert any("add" in name for name in names) == (fn is exact), names
        assert names


def test_arguments_are_kept_within_bounds(tmp_path, monkeypatch):
    """Kernels are shown of the first function, and of others while what is kept of their arguments is little."""
    from twofold.profiler import recording
    monkeypatch.setattr(recording, "_KEPT", 3000)
    first, second, third = (tf.function(f) for f in (lambda x: tf.tanh(x), lambda x: tf.sin(x), lambda x: tf.cos(x)))
    with tf.profiler.experimental.Profile(tmp_path):
        first(tf.zeros([500]))  # 2000 bytes
        second(tf.zeros([500]))  # too many
        third(tf.zeros([200]))
    names = [e["name"] for e in events_of(tmp_path)[0] if e["cat"] == "kernel"]
    assert names == ["tanh", "cos"]


def test_profiling_changes_nothing(tmp_path):
    x = tf.random.normal([32, 64])
    plain = tf.constant(1.0) + 2.0
    with tf.profiler.experimental.Profile(tmp_path):
        profiled = tf.constant(1.0) + 2.0
    assert plain.numpy() == profiled.numpy()
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.profiler.experimental.Profile(tmp_path / "b"):
            y = tf.reduce_sum(tf.tanh(x))
    assert tape.gradient(y, x).shape == (32, 64)


def test_functions_with_effects_show_as_a_whole(tmp_path):
    drawn = tf.function(lambda: tf.random.normal([3]))
    tf.random.set_seed(1)
    drawn()
    second = drawn().numpy()
    tf.random.set_seed(1)
    drawn()
    with tf.profiler.experimental.Profile(tmp_path):
        actual = drawn().numpy()
    assert actual.tolist() == second.tolist()
    events, _ = events_of(tmp_path)
    assert [e["cat"] for e in events] == ["function"]


def test_threads_are_apart(tmp_path):
    with tf.profiler.experimental.Profile(tmp_path):
        thread = threading.Thread(target=lambda: tf.tanh(tf.ones([3])), name="worker")
        thread.start()
        thread.join()
        tf.sin(tf.ones([3]))
    events, names = events_of(tmp_path)
    threads = {e["tid"]: e["args"]["name"] for e in names if e["name"] == "thread_name"}
    where = {e["name"]: threads[e["tid"]] for e in events}
    assert (where["tanh"], where["sin"]) == ("worker", "MainThread")


def test_an_op_that_fails_is_there_too(tmp_path):
    with tf.profiler.experimental.Profile(tmp_path), pytest.raises(tf.errors.InvalidArgumentError):
        tf.matmul(tf.ones([2, 3]), tf.ones([2, 3]))
    assert [e["name"] for e in events_of(tmp_path)[0]][-1] == "matmul"


def test_one_at_a_time(tmp_path):
    with pytest.raises(tf.errors.UnavailableError, match="No profiler is running"):
        tf.profiler.experimental.stop()
    tf.profiler.experimental.start(tmp_path)
    with pytest.raises(tf.errors.AlreadyExistsError, match="Another profiler"):
        tf.profiler.experimental.start(tmp_path)
    tf.profiler.experimental.stop(save=False)
    assert list(tmp_path.iterdir()) == []


def test_summaries_start_and_stop_profiles(tmp_path):
    with pytest.raises(ValueError, match="profiler_outdir"):
        tf.summary.trace_on(profiler=True)
    tf.summary.trace_on(profiler=True, profiler_outdir=tmp_path)
    tf.tanh(tf.ones([2]))
    with tf.summary.create_noop_writer().as_default(step=0):
        tf.summary.trace_export("x")
    assert [e["name"] for e in events_of(tmp_path)[0]][-1] == "tanh"
