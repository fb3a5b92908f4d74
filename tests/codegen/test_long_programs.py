"""Programs of many steps: their entries are compiled as written, and give what the ops give one by one."""

from __future__ import annotations

import ctypes
import math
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from llvmlite import ir

import twofold as tf
from twofold.codegen import llvm_module, planner, sizes
from twofold.ir import dims, passes
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.runtime import compiled
from twofold.runtime.cpu import cpu
from twofold.runtime.image import Image
from twofold.tracer.page import timing

STEPS = 60


def long(x: tf.Tensor, i: tf.Tensor) -> tf.Tensor:
    """Sums and products that do not share kernels, a gather whose index is checked, and a loop, by turns."""
    for n in range(STEPS):
        x = x * (1.0 / (2 + n)) + tf.reduce_sum(x, 0, keepdims=True)
        if n % 20 == 7:
            x = x + tf.gather(x, i)
        if n == 30:
            for _ in tf.range(3):
                x = tf.matmul(x, tf.ones([4, 4])) * 0.25
        x = x / tf.reduce_max(tf.abs(x))
    return x


@pytest.mark.parametrize("rows", [6, None])
def test_results_are_those_of_the_ops(rows: int | None) -> None:
    x = tf.constant(np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32))
    i = tf.constant([5, 0, 3, 3, 1, 2])
    fn = tf.function(long, input_signature=[tf.TensorSpec([rows, 4]), tf.TensorSpec([rows], tf.int32)])
    assert fn(x, i).numpy().tobytes() == long(x, i).numpy().tobytes()
    graph = fn.get_concrete_function().graph
    if rows is not None:
        assert len(planner.plan(graph, cpu).steps) >= STEPS
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"x = x \+ tf.gather\(x, i\)"):
        fn(x, tf.constant([0, 1, 2, 3, 4, 6]))


def test_only_long_entries_are_left_as_written() -> None:
    def text_of(count: int) -> str:
        def sums(x: tf.Tensor) -> tf.Tensor:
            for _ in range(count):
                x = x - tf.reduce_mean(x)
            return x
        graph = tf.function(sums).get_concrete_function(tf.TensorSpec([1 << 15])).graph
        return str(compiled.compile_program(graph, cpu, "entry", {}).module)
    short, many = (re.search(r'^define i64 @"entry".*$', text_of(n), re.M) for n in (5, STEPS))
    assert short is not None and "optnone" not in short.group()
    assert many is not None and "optnone" in many.group()


def test_one_function_of_a_long_program_shares_the_work_of_all_steps() -> None:
    def sums(x: tf.Tensor) -> tf.Tensor:
        for _ in range(STEPS):
            x = x - tf.reduce_mean(x, 0)
        return x
    graph = tf.function(sums).get_concrete_function(tf.TensorSpec([None, 32])).graph
    made = compiled.compile_program(graph, cpu, "entry", {})
    assert sum(step.shares is not None for step in made.plan.steps) >= STEPS
    entry = made.module.partition("@\"entry\"(")[2].partition("\n}")[0]
    assert entry.count("call i64 @\"entry_steps\"") == 1 and "udiv" not in entry
    assert made.module.count("define internal i64 @\"entry_steps\"") == 1


def long_graph() -> g.Graph:
    specs = tf.TensorSpec([6, 4]), tf.TensorSpec([6], tf.int32)
    return tf.function(long).get_concrete_function(*specs).graph


def kernels_of(module: str) -> set[str]:
    """The kernels that a module defines."""
    return set(re.findall(r'^define (?:internal )?i64 @"(entry_k\d+(?:_\d+)?)"', module, re.M))


@pytest.mark.parametrize("parts", [2, 3, 100])
def test_kernels_of_a_long_program_are_spread_over_modules(parts: int) -> None:
    """About evenly, each into one; the entry's module declares those of the others."""
    whole = compiled.compile_program(long_graph(), cpu, "entry", {})
    spread = compiled.compile_program(long_graph(), cpu, "entry", {}, parts=parts)
    assert not whole.others and len(spread.others) == parts - 1
    by_module = [kernels_of(module) for module in (spread.module, *spread.others)]
    assert sum(map(len, by_module)) == len(kernels_of(whole.module)) and set().union(*by_module) == kernels_of(
        whole.module)
    assert all(f'declare i64 @"{name}"' in spread.module for names in by_module[1:] for name in names)
    if parts < 100:
        sizes = [len(module) for module in spread.others]
        assert max(sizes) < 2 * min(sizes)


def test_short_programs_are_one_module() -> None:
    graph = tf.function(lambda x: tf.exp(x) - tf.reduce_sum(x)).get_concrete_function(tf.TensorSpec([6, 4])).graph
    assert compiled.compile_program(graph, cpu, "entry", {}, parts=4).others == []


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("by_llvm", [False, True])
def test_the_number_of_modules_changes_no_bit(count: int, by_llvm: bool, tmp_path: Path,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWOFOLD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiled, "_PARTS", 1)
    monkeypatch.setattr("twofold.runtime.threads.available_cpus", lambda: count)
    if by_llvm:
        monkeypatch.setattr("twofold.runtime.system.fills_code_pages", lambda: False)
    x = tf.constant(np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32))
    i = tf.constant([5, 0, 3, 3, 1, 2])
    native = compiled.Native.of_graph(long_graph(), cpu)
    again = compiled.Native.of_graph(long_graph(), cpu)
    assert not native.cached and again.cached
    want = long(x, i).numpy().tobytes()
    for program in (native, again):
        assert program([x.numpy(), i.numpy()], {})[0].tobytes() == want


@pytest.mark.parametrize("first", [True, False])
def test_a_module_that_does_not_compile_is_an_error(first: bool) -> None:
    """In whichever thread it is met, and whichever tier is made."""
    right, wrong = "define i64 @entry() {\n ret i64 0\n}", "define i64 @other() {\n ret i32 0\n}"
    assert len(compiled._machine_code(lambda: [right, right], [], True, False, first).files) == 2
    for modules in ([wrong], [right, wrong], [wrong, right, right]):
        with pytest.raises(RuntimeError, match="value doesn't match function result type"):
            compiled._machine_code(lambda modules=modules: modules, [("no such library",)], False, False, first)


def test_library_kernels_are_made_while_the_program_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """By threads that are free, where there are any; a program that cannot be written is an error, and none is left."""
    loaded = threading.Event()
    monkeypatch.setattr(compiled.threads, "available_cpus", lambda: 2)
    monkeypatch.setattr(compiled.library, "address", lambda key, settled: loaded.set())

    def written() -> list[str]:
        assert loaded.wait(60.0)
        raise NotImplementedError("this program")
    with pytest.raises(NotImplementedError, match="this program"):
        compiled._machine_code(written, [("kernel",)], False, False, True)
    assert not any(thread.name == "twofold-compile" for thread in threading.enumerate())


def test_long_loops_read_items_where_they_lie() -> None:
    """A round's own places are known in the round alone: some of its steps read and write items of arrays."""
    def rounds(x: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
        y, written = x[0], tf.TensorArray(tf.float32, n)
        for i in tf.range(n):
            for _ in range(STEPS):
                y = x[i] - tf.reduce_mean(y * 0.5 + x[n - 1 - i], 0, keepdims=True)
            written = written.write(i, y)
        return written.stack() if n > 2 else written.stack() * 2.0
    fn = tf.function(rounds)
    for count in (2, 5):
        x = tf.constant(np.random.default_rng(count).normal(size=(count, 3, 4)).astype(np.float32))
        n = tf.constant(count)
        assert fn(x, n).numpy().tobytes() == rounds(x, n).numpy().tobytes()
    graph = fn.get_concrete_function(x, n).graph.copy()
    passes.optimise(graph)
    assert len(planner.plan(graph, cpu).steps) >= STEPS


def test_steps_of_long_programs_are_timed() -> None:
    x = tf.ones([6, 4])
    graph = tf.function(long).get_concrete_function(x, tf.constant([5, 0, 3, 3, 1, 2])).graph
    native = timing._TimedProgram(graph)
    native([x.numpy(), np.array([5, 0, 3, 3, 1, 2], np.int32)], {})
    assert len(native.counts) >= STEPS and sum(map(bool, native.counts)) >= STEPS


def computed(symbols: dict[str, int], out: list[dims.DimLike], graph: g.Graph) -> tuple[list[int], str]:
    """What the function `plan` writes, and the text of its module."""
    module = ir.Module()
    sizes.write_plan(module, list(symbols), out, graph)
    image = Image([llvm_module.first_tier(module)[0]], ["plan"])
    plan = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(image.address("plan"))
    given, numbers = (ctypes.c_int64 * len(symbols))(*symbols.values()), (ctypes.c_int64 * len(out))()
    assert plan(ctypes.addressof(given), ctypes.addressof(numbers)) == 1
    return list(numbers), str(module)


def windows(count: int) -> tuple[g.Graph, list[dims.DimLike]]:
    """A graph whose values are as large as results of windows over images are, and their sizes and the like."""
    graph, out = g.Graph(), list[dims.DimLike]()
    high, wide, deep = (dims.symbol(name) for name in ("h", "w", "d"))
    for n in range(count):
        rows, columns = high - (high + n) // 2 - n % 3, 2 * wide - (wide + 4 * n) // 3 - 1
        shape = [3 + n, rows, columns, *([deep - n] if n % 4 == 3 else [])]
        graph.add_input(shape, dt.float32)
        size = math.prod(shape)
        out += [size, size + 7, 4 * size - 64, size * n - size // 5]
    return graph, out


def test_sizes_have_the_values_of_their_expressions() -> None:
    """However they are computed: as the products that they were, or term by term."""
    graph, out = windows(9)
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = dict(zip(("h", "w", "d"), rng.integers(0, 300, 3).tolist(), strict=True))
        wrapped = [(dims.evaluate((d,), values)[0] + (1 << 63)) % (1 << 64) - (1 << 63) for d in out]
        assert computed(values, out, graph)[0] == wrapped


def test_products_of_sizes_are_not_multiplied_out() -> None:
    graph, out = windows(8)
    values = {"h": 50, "w": 60, "d": 70}
    few, many = computed(values, out[::4], graph), computed(values, out[::4], g.Graph())
    assert few[0] == many[0]
    assert few[1].count(" = mul ") * 2 < many[1].count(" = mul ")


def test_blocks_of_long_entries_are_short() -> None:
    """LLVM takes the square of their length for code that it compiles as it is written."""
    def means(x: tf.Tensor) -> tf.Tensor:
        return tf.add_n([tf.reduce_mean(tf.tanh(x[n // 8:, n % 8:])) for n in range(STEPS)])
    graph = tf.function(means).get_concrete_function(tf.TensorSpec([None, None, 3])).graph
    made = compiled.compile_program(graph, cpu, "entry", {})
    for name in ("entry", "plan"):
        body = made.module.partition(f'define i64 @"{name}"(')[2].partition("\n}")[0]
        lengths = [block.count("\n") for block in re.split(r"\n\"?[\w.]+\"?:", body)]
        assert sum(lengths) > 300
        assert max(lengths) < 200
