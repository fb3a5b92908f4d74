"""Op entries: the fast path computes what the Python function would, and everything else reaches that function.

`Op.python` is a complete op; it notes its calls, so that a test can also say which path was taken. That part only
counts where native entries are on; the results are the same anyway.
"""

from __future__ import annotations

import gc
import inspect
import operator
import sys
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest

from twofold.runtime import memory, native

needs_native = pytest.mark.skipif(not native.available(), reason="native entries are off")

KERNEL = """
define i64 @kernel(i64 %start, i64 %stop, ptr %args) {{
entry:
  %out = load ptr, ptr %args
  %at.x = getelementptr i64, ptr %args, i64 1
  %x = load ptr, ptr %at.x
  {load_y}
  %any = icmp slt i64 %start, %stop
  br i1 %any, label %loop, label %done
loop:
  %i = phi i64 [%start, %entry], [%next, %loop]
  %xi = select i1 {x_moves}, i64 %i, i64 0
  %yi = select i1 {y_moves}, i64 %i, i64 0
  %xp = getelementptr {kind}, ptr %x, i64 %xi
  %a = load {kind}, ptr %xp
  {b}
  {body}
  %op = getelementptr {out}, ptr %out, i64 %i
  store {out} %r, ptr %op
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %stop
  br i1 %more, label %loop, label %done
done:
  ret i64 {status}
}}"""
LLVM = {"float32": "float", "float64": "double", "int8": "i8", "uint8": "i8", "int32": "i32", "int64": "i64",
        "uint64": "i64", "bool": "i8", "bfloat16": "i16"}
TYPES = {name: np.dtype(getattr(ml_dtypes, name, name)) for name in LLVM}


def source(name, mask, body, out=None, status=0):
    kind, two = LLVM[name], len(mask) == 2
    return KERNEL.format(
        kind=kind, out=LLVM[out or name], body=body.format(kind=kind), status=status,
        x_moves=str(mask[0] == "v").lower(), y_moves=str(two and mask[1] == "v").lower(),
        load_y="%at.y = getelementptr i64, ptr %args, i64 2\n  %y = load ptr, ptr %at.y" if two else "",
        b=f"%yp = getelementptr {kind}, ptr %y, i64 %yi\n  %b = load {kind}, ptr %yp" if two else "")


class Tensor:
    __slots__ = ("_memory", "_id", "_device", "__weakref__")


def tensor(value, dtype=np.float32):
    made = Tensor()
    made._memory = value if isinstance(value, np.ndarray) else np.array(value, dtype)
    return made


class Op:
    """An op with its table, its Python function and its entries."""

    def __init__(self, function, arity=2):
        self.function, self.calls, self.table = function, 0, native.OpTable()
        self.arity = arity
        self.entry = self.make()

    def make(self, **options):
        def op(x, y=None, name=None):
            """An op."""
            return self.python(x, y) if self.arity == 2 else self.python(x)
        return native.entry(self.table, op, self.arity, "op", **options)

    def python(self, *operands):
        self.calls += 1
        operands = operands[:self.arity]
        if any(isinstance(o, str) for o in operands):
            return NotImplemented
        dtype = next(o._memory.dtype for o in operands if isinstance(o, Tensor))
        arrays = [o._memory if isinstance(o, Tensor) else np.asarray(o, dtype) for o in operands]
        arrays = [a.astype(a.dtype.newbyteorder("="), copy=False) for a in arrays]
        if len({a.dtype for a in arrays}) > 1:
            raise TypeError("dtypes differ")
        return tensor(np.array(self.function(*arrays), order="C"))

    def fast(self, expected=0):
        """Whether the Python function ran as often as expected since the last question."""
        calls, self.calls = self.calls, 0
        return calls == expected or not native.available()


@pytest.fixture(scope="module")
def bound():
    before = native.bind(Tensor), native.set_recorder(lambda *told: heard.append(told))
    assert native.reason() in ("", "TWOFOLD_NATIVE_CALL=0")
    yield
    native.bind(before[0])
    native.set_recorder(before[1])


heard: list[tuple] = []
ADD = {True: "%r = fadd {kind} %a, %b", False: "%r = add {kind} %a, %b"}


@pytest.fixture(scope="module")
def module_add(assemble, bound):
    op = Op(np.add)
    for name in ("float32", "float64", "int8", "uint8", "int32", "int64", "uint64"):
        for mask in ("vv", "vs", "sv"):
            address = assemble(source(name, mask, ADD[name.startswith("float")]), "kernel")
            op.table.set(TYPES[name].num, mask, address, TYPES[name])
    return op


@pytest.fixture
def add(module_add):
    module_add.calls = 0
    return module_add


@pytest.fixture
def negative(assemble, bound):
    op = Op(np.negative, arity=1)
    op.table.set(TYPES["float32"].num, "v", assemble(source("float32", "v", "%r = fneg {kind} %a"), "kernel"),
                 TYPES["float32"])
    return op


def check(op, x, y, fast=True):
    """Both orders of the operands give what NumPy gives, on the path that is expected."""
    for left, right in ((x, y), (y, x)):
        op.fast()
        result = op.entry(left, right)
        assert op.fast(0 if fast else 1)
        plain = op.python(left, right)
        assert type(result) is Tensor
        assert result._memory.dtype == plain._memory.dtype
        assert result._memory.shape == plain._memory.shape
        np.testing.assert_array_equal(result._memory, plain._memory)
        assert result._memory.flags.c_contiguous
        assert result._memory.flags.owndata == (result._memory.nbytes < memory.POOLED_FROM)
        op.calls = 0


@pytest.mark.parametrize("name", ["float32", "float64", "int8", "uint8", "int32", "int64", "uint64"])
@pytest.mark.parametrize("shape", [(), (1,), (10,), (0,), (3, 4), (2, 0, 5), (2, 1, 3, 1, 2), (32768,)])
def test_equal_shapes(add, name, shape):
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 50, shape).astype(name) for _ in range(2))
    check(add, tensor(np.asarray(x)), tensor(np.asarray(y)))


@pytest.mark.parametrize("shape", [(1,), (10,), (0,), (3, 4)])
def test_a_scalar_tensor_with_any_shape(add, shape):
    check(add, tensor(2.5), tensor(np.arange(np.prod(shape), dtype=np.float32).reshape(shape)))


def test_the_same_tensor_twice(add):
    x = tensor([1, 2, 3])
    check(add, x, x)
    assert x._memory.tolist() == [1, 2, 3]


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(("name", "number", "fast"), [
    ("float32", 2.5, True), ("float32", 0.1, True), ("float32", -0.0, True), ("float32", INF, True),
    ("float32", -INF, True), ("float32", NAN, True), ("float32", 1e-60, True), ("float32", 3, True),
    ("float32", -(2**24), True), ("float32", 2**24 + 1, False), ("float64", 0.1, True), ("float64", 1e300, True),
    ("float64", 2**53, True), ("float64", -(2**53) - 1, False), ("int32", 7, True), ("int32", 2**31 - 1, True),
    ("int32", -(2**31), True), ("int64", 2**63 - 1, True), ("int64", -(2**63), True), ("int8", -128, True),
    ("uint8", 255, True), ("uint64", 2**63 - 1, True), ("uint64", 2**64 - 1, False),
])
@pytest.mark.filterwarnings("ignore:overflow")
def test_python_numbers(add, name, number, fast):
    check(add, tensor([1, 2, 3], name), number, fast)
    check(add, tensor(5, name), number, fast)


@pytest.mark.parametrize(("name", "number"), [
    ("float32", 1e39), ("float32", True), ("int32", 1.0), ("int32", True), ("int32", 2**31), ("int8", 200),
    ("uint8", -1), ("int64", 2**63), ("int64", 2**200), ("float32", 2**200), ("float32", np.float32(1)),
    ("float32", "text"), ("float32", None), ("float32", 1j),
])
def test_what_the_type_does_not_hold_goes_to_python(add, name, number, monkeypatch):
    monkeypatch.setattr(add, "python", lambda x, y: ("python", x, y))
    x = tensor([1, 2], name)
    assert add.entry(x, number) == ("python", x, number)
    assert add.entry(number, x) == ("python", number, x)


def test_bool_with_bool(assemble, bound):
    op = Op(np.logical_and)
    for mask in ("vv", "vs", "sv"):
        op.table.set(0, mask, assemble(source("bool", mask, "%r = and {kind} %a, %b"), "kernel"), TYPES["bool"])
    check(op, tensor([True, False], bool), True)
    check(op, tensor([True, False], bool), False)
    check(op, tensor([True, False], bool), tensor([True, True], bool))
    check(op, tensor([True, False], bool), 1, fast=False)


def test_another_result_type(assemble, bound):
    op = Op(np.less)
    body = "%c = fcmp olt {kind} %a, %b\n  %r = zext i1 %c to i8"
    for mask in ("vv", "vs", "sv"):
        op.table.set(11, mask, assemble(source("float32", mask, body, out="bool"), "kernel"), TYPES["bool"])
    check(op, tensor([1, 2, 3]), tensor([3, 2, 1]))
    check(op, tensor([1, 2, 3]), 2.0)


def test_bfloat16(assemble, bound):
    op = Op(lambda x, y: x)
    op.table.set(TYPES["bfloat16"].num, "vv", assemble(source("bfloat16", "vv", "%r = or {kind} %a, 0"), "kernel"),
                 TYPES["bfloat16"])
    x = tensor([1, 2], TYPES["bfloat16"])
    assert op.entry(x, x)._memory.dtype == TYPES["bfloat16"]
    assert op.fast()
    with pytest.raises(ValueError, match="type number"):
        op.table.set(np.dtype(ml_dtypes.float8_e5m2).num, "vv", 1, TYPES["bool"])
    with pytest.raises(ValueError, match="mask"):
        op.table.set(11, "sss", 1, TYPES["bool"])


class Array(np.ndarray):
    pass


ODD = {
    "columns": lambda: np.ones((3, 4), np.float32)[:, ::2],
    "transposed": lambda: np.ones((2, 3), np.float32).T,
    "swapped bytes": lambda: np.ones((3, 2), ">f4"),
    "unaligned": lambda: np.frombuffer(bytes(25), np.uint8)[1:].view(np.float32).reshape(3, 2),
    "subclass": lambda: np.ones((3, 2), np.float32).view(Array),
    "metadata": lambda: np.ones((3, 2), np.dtype("float32", metadata={"a": 1})),
}


@pytest.mark.parametrize("kind", ODD)
def test_arrays_out_of_the_ordinary_go_to_python(add, kind):
    check(add, tensor(ODD[kind]()), tensor(np.ones((3, 2), np.float32)), fast=False)
    check(add, tensor(ODD[kind]()), 1.0, fast=False)


@pytest.mark.parametrize(("left", "right"), [((3, 4), (4,)), ((3, 1), (1, 4)), ((1,), (4,)), ((1, 4), (4,))])
def test_broadcasting_goes_to_python(add, left, right):
    check(add, tensor(np.ones(left, np.float32)), tensor(np.ones(right, np.float32)), fast=False)


def test_large_arrays_go_to_python(add):
    x = tensor(np.ones((257, 128), np.float32))
    check(add, x, x, fast=False)
    check(add, x, 1.0, fast=False)


def test_errors_come_from_the_python_function(add, negative):
    with pytest.raises(TypeError, match="dtypes differ"):
        add.entry(tensor([1], "int32"), tensor([1], "float32"))
    with pytest.raises(ValueError, match="broadcast"):
        add.entry(tensor([1, 2]), tensor([1, 2, 3]))
    assert add.entry(tensor([1]), "text") is NotImplemented
    with pytest.raises(AttributeError):
        add.entry(Tensor(), tensor([1]))
    with pytest.raises(AttributeError):
        add.entry(Tensor(), 1.0)
    with pytest.raises(AttributeError):
        negative.entry(Tensor())


@pytest.mark.parametrize("content", [None, 3, [1.0, 2.0], "abc"])
def test_a_tensor_with_something_else_as_array(add, content):
    wrong = Tensor()
    wrong._memory = content
    with pytest.raises(AttributeError):
        add.entry(wrong, tensor([1]))


def test_other_ways_to_call(add, negative):
    x, y = tensor([1, 2]), tensor([3, 4])
    for result in (add.entry(x, y, "name"), add.entry(x, y, name="name"), add.entry(x, y=y), add.entry(x=x, y=y)):
        assert result._memory.tolist() == [4, 6]
    assert add.fast(4)
    assert negative.entry(x, name="n")._memory.tolist() == [-1, -2]
    for wrong in ((), (x, y, "n", 4)):
        with pytest.raises(TypeError, match="argument"):
            add.entry(*wrong)
    with pytest.raises(TypeError, match="unexpected"):
        add.entry(x, y, nonsense=1)


@pytest.mark.parametrize("shape", [(), (5,), (0,), (2, 3)])
def test_one_operand(negative, shape):
    x = tensor(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))
    result = negative.entry(x)
    assert negative.fast()
    np.testing.assert_array_equal(result._memory, -x._memory)
    assert result._memory.shape == shape
    negative.entry(tensor([1], "float64"))
    assert negative.fast(1)


def test_a_failed_check_goes_to_python(assemble, bound):
    op = Op(np.add)
    op.table.set(11, "vv", assemble(source("float32", "vv", "%r = fsub {kind} %a, %b", status=3), "kernel"),
                 TYPES["float32"])
    assert op.entry(tensor([1, 2]), tensor([3, 4]))._memory.tolist() == [4, 6]
    assert op.fast(1)


def test_a_missing_kernel_is_asked_for_once(assemble, bound):
    op = Op(np.add)
    x = tensor([1, 2])
    op.entry(x, x)
    assert op.fast(1)
    op.table.set(11, "vv", assemble(source("float32", "vv", ADD[True]), "kernel"), TYPES["float32"])
    assert op.entry(x, x)._memory.tolist() == [2, 4]
    assert op.fast(0)


def test_an_entry_keeps_its_table(assemble, bound):
    op = Op(np.add)
    op.table.set(11, "vv", assemble(source("float32", "vv", ADD[True]), "kernel"), TYPES["float32"])
    op.table = None
    gc.collect()
    trash = [bytearray(5000) for _ in range(100)]
    assert op.entry(tensor([1, 2]), tensor([1, 2]))._memory.tolist() == [2, 4]
    assert op.fast()
    del trash


def test_operators(assemble, bound):
    class Number(Tensor):
        __slots__ = ()

    subtract = Op(np.subtract)
    for mask in ("vv", "vs", "sv"):
        subtract.table.set(11, mask, assemble(source("float32", mask, "%r = fsub {kind} %a, %b"), "kernel"),
                           TYPES["float32"])
    Tensor.__sub__ = native.as_method(subtract.entry)
    Tensor.__rsub__ = native.as_method(subtract.make(reflected=True))
    try:
        x, y = tensor([5, 7]), tensor([1, 2])
        assert (x - y)._memory.tolist() == [4, 5]
        assert (x - 1.0)._memory.tolist() == [4, 6]
        assert (10 - x)._memory.tolist() == [5, 3]
        assert x.__rsub__(y)._memory.tolist() == [-4, -5]
        assert subtract.fast()
        assert x.__rsub__(2**24 + 1)._memory.tolist() == [2**24 - 5, 2**24 - 7]
        assert subtract.fast(1)
        special = Number()
        special._memory = np.array([1, 1], np.float32)
        assert (x - special)._memory.tolist() == [4, 6]
        assert (special - x)._memory.tolist() == [-4, -6]
        assert subtract.fast(2)
        with pytest.raises(TypeError, match="unsupported operand"):
            operator.sub(x, "text")
        with pytest.raises(TypeError, match="unsupported operand"):
            operator.sub("text", x)
    finally:
        del Tensor.__sub__, Tensor.__rsub__


def test_recording(add, negative):
    x, y = tensor([1, 2]), tensor([3, 4])
    native.change_recorders(1)
    try:
        result = add.entry(x, y)
        minus = negative.entry(x)
        swapped = add.make(reflected=True, op="swapped")(x, y)
        fast = add.fast(0)
        add.entry(x, 1.0)  # a constant has to become a tensor first
        assert add.fast(1)
    finally:
        native.change_recorders(-1)
    if native.available():
        assert fast
        assert heard == [("op", (x, y), result), ("op", (x,), minus), ("swapped", (y, x), swapped)]
    heard.clear()
    add.entry(x, y)
    assert heard == []


@needs_native
def test_an_error_of_the_recorder_comes_through(add):
    def refuse(op, inputs, output):
        raise LookupError("no tape")

    before = native.set_recorder(refuse)
    native.change_recorders(1)
    try:
        with pytest.raises(LookupError, match="no tape"):
            add.entry(tensor([1]), tensor([2]))
    finally:
        native.change_recorders(-1)
        native.set_recorder(before)


def test_tracing_goes_to_python(add, negative):
    native.change_tracers(1)
    try:
        add.entry(tensor([1]), tensor([2]))
        negative.entry(tensor([1]))
    finally:
        native.change_tracers(-1)
    assert add.fast(1)
    assert negative.fast(1)
    add.entry(tensor([1]), tensor([2]))
    assert add.fast(0)


def test_documentation(add):
    assert add.entry.__name__ == "op"
    assert add.entry.__doc__ == "An op."
    assert str(inspect.signature(add.entry)) == "(x, y=None, name=None)"
    with pytest.raises(ValueError, match="arity"):
        native.entry(add.table, len, 3, "op")


def test_results_are_whole_objects(add):
    result = add.entry(tensor([1]), tensor([2]))
    assert gc.is_tracked(result)
    result._id, result._device = 5, "CPU:0"
    died = []
    weakref.finalize(result, died.append, 1)
    del result
    assert died == [1]


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@needs_native
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory in use from /proc")
def test_a_million_calls_leak_nothing(add, negative):
    x, y, big, dtype = tensor(range(10)), tensor(range(10)), tensor([1.5]), np.dtype(np.float32)
    entry, minus, number, wide = add.entry, negative.entry, 2.5, 12345678
    counted = (x, y, big, x._memory, y._memory, dtype, Tensor, number, wide, add.table)

    def work(times):
        for _ in range(times):
            entry(x, y)
            entry(x, number)
            entry(wide, big)
            minus(x)

    work(20_000)
    gc.collect()
    before, memory = [sys.getrefcount(thing) for thing in counted], resident()
    work(250_000)
    gc.collect()
    assert [sys.getrefcount(thing) for thing in counted] == before
    assert resident() - memory < 2 << 20


@needs_native
def test_the_ways_out_leak_nothing(add, assemble, bound):
    failing = Op(np.add)
    failing.table.set(11, "vv", assemble(source("float32", "vv", ADD[True], status=1), "kernel"), TYPES["float32"])
    x, y, dtype = tensor([1, 2]), tensor([3, 4, 5]), np.dtype(np.float32)
    reflected = add.make(reflected=True)

    def work():
        failing.entry(x, x)
        add.entry(x, "text")
        reflected("text", x)
        with pytest.raises(ValueError, match="broadcast"):
            add.entry(x, y)
        native.change_recorders(1)
        add.entry(x, x)
        native.change_recorders(-1)
        heard.clear()

    counted = (x, y, x._memory, y._memory, dtype, Tensor)
    work()
    gc.collect()
    before = [sys.getrefcount(thing) for thing in counted]
    for _ in range(200):
        work()
    gc.collect()
    assert [sys.getrefcount(thing) for thing in counted] == before


def test_many_threads(add):
    wrong = []

    def work(number):
        x = tensor(np.full(100, number, np.float32))
        for _ in range(3000):
            if add.entry(x, x)._memory[50] != 2 * number or add.entry(x, 1.0)._memory[99] != number + 1:
                wrong.append(number)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []
    add.calls = 0
