"""Branches and loops on a GPU that are one kernel there: the bits are the processor's, and the host waits for none."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from gpu.devices import device, reads, same, some
from gpu.ptx_machine import Memory, load
from ptx_checks import clean

import twofold as tf
from twofold.codegen import gpu_flow, lockstep, loop_verify
from twofold.codegen.kernels import softmax
from twofold.codegen.loop import Kernel, LoopBuilder, TeamBuilder
from twofold.codegen.statements import Barrier, For, If, Load, Spread, Statement
from twofold.eager.executing import backend_for
from twofold.ir import dtypes as dt
from twofold.tracer.page import timing, whole


@pytest.fixture
def fake() -> Iterator[Any]:
    with device() as driver:
        yield driver


# -- whole functions ----------------------------------------------------------------------------------
def by_input(x: Any, n: Any) -> Any:
    i = tf.constant(0)
    while i < n:
        x = tf.tanh(x) * tf.cast(i + 1, tf.float32)
        i += 1
    return x


def newton(x: Any, n: Any) -> Any:
    """Square roots, until nothing changes by much."""
    x, y, rounds = tf.abs(x) + 0.5, tf.ones_like(x), tf.constant(0)
    while tf.reduce_max(tf.abs(y * y - x)) > 1e-4:
        y, rounds = 0.5 * (y + x / y), rounds + 1
    return y, rounds


def broken_off(x: Any, n: Any) -> Any:
    steps = tf.constant(0)
    while True:
        x, steps = x * 0.75 + 0.5, steps + 1
        if tf.reduce_sum(x) > 20.0 or steps > 30:
            break
    return x, steps


def recurrence(x: Any, n: Any) -> Any:
    """As many rows as the input says, each by a matrix."""
    w, h, t = tf.constant(np.arange(9, dtype=np.float32).reshape(3, 3) * 0.1), tf.zeros([1, 3]), tf.constant(0)
    while t < n:
        h = tf.tanh(x[t][tf.newaxis] + h @ w)
        t += 1
    return h


def filled(x: Any, n: Any) -> Any:
    """An array whose items are taken and written at an index of each round."""
    out, i = tf.TensorArray(tf.float32, 6, element_shape=[3]), tf.constant(0)
    while i < n:
        out = out.write(5 - i, x[i] * 2 + tf.reduce_sum(x, axis=0))
        i += 1
    return out.stack()


def nested(x: Any, n: Any) -> Any:
    """A loop in a loop, both of which data end, and sides that data choose."""
    count = tf.constant(0)
    while tf.reduce_max(x) < 30.0:
        i = tf.constant(0)
        while i < n and tf.reduce_min(x) < 9.0:
            x = tf.cond(tf.reduce_sum(x) > 2.0, lambda x=x: tf.exp(x * 0.1) + x, lambda x=x: x * x)
            i, count = i + 1, count + 1
        x += 1
    return x, count


def learned(x: Any, n: Any) -> Any:
    """The gradient of a loop for whose rounds there is room."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, tf.sin(y) * (1 + tf.cast(i, tf.float32) * 0.1)),
                          (tf.constant(0), x), maximum_iterations=7)[1]
        loss = tf.reduce_sum(y * y)
    return tape.gradient(loss, x)


def whole_numbers(x: Any, n: Any) -> Any:
    steps, k = tf.constant(0, tf.int64), tf.cast(n, tf.int64) + 22
    while k != 1:
        k = k // 2 if k % 2 == 0 else 3 * k + 1
        steps += 1
    return steps


def two_sides(x: Any, n: Any) -> Any:
    for _ in tf.range(3):
        x = tf.cond(tf.reduce_sum(x) > 1.0, lambda x=x: tf.reduce_max(x, axis=0) * x, lambda x=x: x + 1)
    return x


def wide(x: Any, n: Any) -> Any:
    """Columns, rows, tiles and orders: kernels of warps, and of blocks of two sizes, with memory that they share."""
    i, x = tf.constant(0), tf.tile(x, [4, 4]) + tf.cast(tf.range(12), tf.float32)
    x = tf.cast(x, tf.bfloat16)
    while i < n:
        x = tf.nn.softmax(x) + tf.cast(tf.reduce_sum(tf.cast(x, tf.float32), axis=0) * 1e-2, tf.bfloat16)
        x = tf.math.cumsum(x, axis=1) @ x[:12] * 0.1
        i += 1
    return x


# How often the host waits: once for status words where a check may fail.
READS = {by_input: 0, newton: 0, broken_off: 0, recurrence: 1, filled: 1, nested: 0, learned: 1, whole_numbers: 1,
         two_sides: 0, wide: 0}


@pytest.mark.parametrize("function", READS)
def test_the_bits_are_the_processors_and_the_host_waits_for_no_round(fake: Any, function: Callable[..., Any]) -> None:
    f, x = tf.function(function), some(6, 3)
    there, numbers = x.gpu(), [tf.constant(n) for n in (5, 0, 3)]
    for n in numbers:
        assert same(f(there, n.gpu()), f(x, n))
    if fake is not None:
        there_too = n.gpu()
        assert reads(fake, lambda: f(there, there_too)) == READS[function]
        assert fake.findings == []


@pytest.mark.parametrize("function", [newton, filled, nested, learned, wide])
def test_threads_wait_between_what_one_writes_and_another_reads(fake: Any, function: Callable[..., Any],
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps have barriers between, flags and indices of items are read behind one, and so are status words."""
    made, record = list[Kernel](), gpu_flow.flow_kernel
    monkeypatch.setattr(gpu_flow, "flow_kernel", lambda *args: (flow := record(*args), made.append(flow.kernel))[0])
    tf.function(function)(some(6, 3).gpu(), tf.constant(2).gpu())
    assert made
    for kernel in made:
        assert_waits(kernel.body, True)


def assert_waits(block: Sequence[Statement], waited: bool) -> bool:
    """Goes through statements, with loops twice; gives whether threads have waited since they wrote anything."""
    for statement in block:
        if isinstance(statement, For):
            waited = assert_waits([*statement.body, *statement.body], waited)
        elif isinstance(statement, If):
            sides = [assert_waits(side, waited) for side in (statement.body, statement.otherwise)]
            waited = all(sides)
        elif isinstance(statement, (Load, Spread)):
            assert waited, statement
            waited = isinstance(statement, Load)
        else:
            waited = waited or isinstance(statement, Barrier)
    return waited


def test_only_what_is_launched_is_compiled(fake: Any) -> None:
    """The steps inside of one kernel are none by themselves."""
    f, x = tf.function(newton), some(6, 3).gpu()
    f(x, x)
    launched = f.explain(x, x, file=io.StringIO()).launches
    assert fake is None or len(fake.texts) <= len(launched) == 4


def test_what_a_block_takes_long_for_is_the_hosts(fake: Any) -> None:
    @tf.function(input_signature=[tf.TensorSpec([None, 128], tf.float32)])
    def f(x: Any) -> Any:
        while tf.reduce_sum(x) < 1e7:
            x = x * 2 + 1
        return x
    told = []
    for rows in (8, 2000):
        x = some(rows, 128)
        there = x.gpu()
        assert same(f(there), f(x))
        told.append(f.explain(there, file=io.StringIO()).control[0][1])
    assert told == ["one kernel, which decides on the GPU",
                    "the host reads what decides: what runs between two flags is much for one block of threads"]


def test_explain_says_who_decides(fake: Any) -> None:
    def f(x: Any, n: Any) -> Any:
        for _ in tf.range(3):
            x = x + 1
        while tf.reduce_sum(x) < 100.0:
            x = tf.cond(x[0, 0] > 3.0, lambda x=x: x * 2, lambda x=x: x + 1)
        return x
    text = io.StringIO()
    tf.function(f).explain(some(6, 3).gpu(), tf.constant(1), file=text)
    lines = text.getvalue().partition("branches and loops\n")[2].splitlines()
    assert [line.partition(": ")[2] for line in lines[:2]] == [
        "decided before it runs", "one kernel, which decides on the GPU"]
    assert "while at test_flow.py:" in lines[0] and "cond, multiply" not in text.getvalue()


def test_pages_and_profiles_show_it(fake: Any, tmp_path: Any) -> None:
    """Steps of one kernel share its time."""
    x, n = some(6, 3).gpu(), tf.constant(3).gpu()
    concrete = tf.function(nested).get_concrete_function(x, n)
    backend = backend_for([x._memory])
    compiled, kernels, _ = whole.compiled_kernels(concrete.graph, backend=backend)
    timing.measure(compiled, kernels, [x._memory, n._memory], backend)
    assert len([k for k in kernels if k.loops]) > 5 and all(k.seconds for k in kernels if k.loops)


# -- checks that fail ---------------------------------------------------------------------------------
def outside(x: Any, n: Any) -> Any:
    """An item that is not there, in some round."""
    i = tf.constant(0)
    while i < n:
        x, i = x + x[i * 3], i + 1
    return x


def divided(x: Any, n: Any) -> Any:
    """A division by zero, after which the loop would have no end."""
    k = tf.constant(3)
    while k != 99:
        k = k - 1 + 6 // k // 7
    return k


def before(x: Any, n: Any) -> Any:
    """A check that fails before a loop that has no end then."""
    k = tf.gather(tf.constant([7, 9, 4, 1, 2]), n + 2)
    while k != 1:
        k = tf.cond(k % 2 == 0, lambda k=k: k // 2, lambda k=k: k * 3 + 1)
        k = tf.cond(n < 9, lambda k=k: k, lambda k=k: 0 * k)
    return k


@pytest.mark.parametrize("function", [outside, divided, before])
def test_checks_leave_a_loop_and_are_told(fake: Any, function: Callable[..., Any]) -> None:
    told, n = [], tf.constant(9)
    for place in ("/cpu:0", "/gpu:0"):
        with tf.device(place), pytest.raises(tf.errors.InvalidArgumentError) as failure:
            tf.function(function)(some(6, 3), n)
        told.append(str(failure.value))
    assert told[0] == told[1]
    assert fake is None or fake.findings == []


# -- kernels that a block shares ----------------------------------------------------------------------
def turned(threads: int) -> Kernel:
    """Turns rows round, by way of memory that a block shares, twice in one iteration."""
    b = TeamBuilder(f"turned {threads}", threads)
    out, x = b.pointer("out", dt.float32), b.pointer("x", dt.float32)
    row = b.shared(dt.float32, threads)
    with b.for_(b.start, b.stop) as team:
        at = team * threads + b.thread()
        b.store(row, b.thread(), b.load(x, at))
        b.barrier()
        b.store(out, at, b.load(row, threads - 1 - b.thread()))
    return b.finish()


def doubled() -> Kernel:
    """Doubles numbers, which must not be negative."""
    b = LoopBuilder("doubled")
    out, x = b.pointer("out", dt.float32), b.pointer("x", dt.float32)
    with b.for_(b.start, b.stop) as i:
        value = b.load(x, i)
        b.check(b.ge(value, 0.0), "it is negative")
        b.check(b.lt(value, 100.0), "it is large")
        b.store(out, i, value + value)
    return b.finish()


def in_turns(parts: Sequence[tuple[Kernel, int, list[int]]]) -> Kernel:
    """Kernels that a block of 256 threads shares, each with two pieces of memory and integers."""
    b = TeamBuilder("in turns", 256)
    memory = [b.pointer(f"x{n}", dt.float32) for n in range(len(parts) + 1)]
    status = b.pointer("status", dt.int64)
    with b.for_(b.start, b.stop):
        for n, (kernel, total, integers) in enumerate(parts):
            b.barrier()
            args = [b.at(memory[n + 1], 0), b.at(memory[n], 0), *[b.const(i, dt.int64) for i in integers]]
            b.spread(kernel, total, args, b.at(status, n))
    return b.finish()


PARTS = [(doubled(), 512, []), (turned(128), 4, []), (softmax.rows(dt.float32, False, True), 16, [32]),
         (turned(256), 2, []), (doubled(), 300, [])]


@pytest.mark.parametrize("bad", [False, True])
def test_a_block_does_what_launches_do(bad: bool) -> None:
    given = np.random.default_rng(1).uniform(0, 9, 512).astype(np.float32)
    if bad:
        given[[17, 400]] = 200, -1
    status, states = np.full(len(PARTS), -1, np.int64), [given]
    for n, (kernel, total, integers) in enumerate(PARTS):
        states.append(np.zeros_like(given))
        code = lockstep.run(kernel, total, [*memory_of(states[-1], states[-2]), *integers])
        status[n] = code - 1
    together = in_turns(PARTS)
    loop_verify.verify(together)
    arrays = [given, *[np.zeros_like(given) for _ in PARTS], np.full_like(status, -1)]
    assert lockstep.run(together, 1, memory_of(*arrays)) == 0
    assert all(x.tobytes() == y.tobytes() for x, y in zip(arrays, [*states, status], strict=True))


def memory_of(*arrays: np.ndarray) -> list[lockstep.ByteMemory]:
    return [lockstep.ByteMemory(a.view(np.uint8)) for a in arrays]


@pytest.mark.parametrize("bad", [False, True])
def test_the_code_does_what_the_kernel_says(bad: bool, tmp_path: Any) -> None:
    given = np.random.default_rng(1).uniform(0, 9, 512).astype(np.float32)
    if bad:
        given[[17, 400]] = 200, -1
    kernel, memory = in_turns(PARTS), Memory()
    arrays = [given, *[np.zeros_like(given) for _ in PARTS], np.full(len(PARTS), -1, np.int64)]
    text, _ = clean({"kernel": kernel}, tmp_path)
    assert "bar.sync" in text and ", 128;" in text
    machine, places = load(text, memory), [memory.allocate(a.nbytes, "array") for a in arrays]
    for place, a in zip(places, arrays, strict=True):
        memory.bytes(place, a.nbytes)[:] = a.view(np.uint8)
    machine.launch("kernel", (1, 1, 1), (256, 1, 1), machine.packed("kernel", [1, 0, *places]))
    assert lockstep.run(kernel, 1, memory_of(*arrays)) == 0
    for place, a in zip(places, arrays, strict=True):
        assert memory.bytes(place, a.nbytes).tobytes() == a.tobytes()


def test_what_a_block_cannot_share_is_refused() -> None:
    def spread(threads: int, kernel: Kernel, arg: Any = 0) -> Kernel:
        b = TeamBuilder("wrong", threads)
        with b.for_(b.start, b.stop):
            b.spread(kernel, 1, [b.const(arg, dt.int64 if type(arg) is int else dt.float32)])
        return b.finish()
    for kernel, told in ((spread(128, turned(256)), "a block of too few threads"),
                         (spread(32, doubled()), "a block of too few threads"),
                         (spread(64, doubled(), 1.5), "an argument that is neither an address nor an integer")):
        with pytest.raises(ValueError, match=told):
            loop_verify.verify(kernel)
    b = TeamBuilder("apart", 64)
    out = b.pointer("out", dt.float32)
    with b.for_(b.start, b.stop):
        b.spread(doubled(), 1, [b.at(out, b.thread()), b.at(out, 0)])
    with pytest.raises(ValueError, match="apart: spread: threads of a block have different arguments"):
        lockstep.run(b.finish(), 1, memory_of(np.zeros(64, np.float32)))
