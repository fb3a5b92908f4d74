"""Operators that CPython runs by our C functions: what they give, and that classes stay Python's in every other way."""

from __future__ import annotations

import ctypes
import gc
import operator
import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import twofold as tf
from twofold.runtime import native, operator_slots, system
from twofold.runtime.native_layout import capi

in_slots = pytest.mark.skipif(not native.available() or not system.fills_code_pages(), reason="plain operators")

BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "mod": np.mod,
          "floordiv": np.floor_divide, "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal,
          "gt": np.greater, "ge": np.greater_equal}
REFLECTED = ("add", "sub", "mul", "truediv", "mod", "floordiv")
SLOTS = {**{name: number for name, (number, _) in operator_slots._WORDS.items()},
         **dict.fromkeys(operator_slots._COMPARISONS, operator_slots._COMPARE_ID)}


def slot(cls: type, name: str) -> int | None:
    """The address of the C function that CPython calls for an operator of a class."""
    address: int | None = capi("PyType_GetSlot", ctypes.c_void_p, ctypes.py_object, ctypes.c_int)(cls, SLOTS[name])
    return address


def pythons_own(name: str) -> int | None:
    """That of a class written in Python."""
    return slot(type("Own", (), {name: lambda *operands: NotImplemented}), name)


@pytest.fixture
def attributes() -> Iterator[None]:
    """Puts the operators of tensors back."""
    before = {name: vars(tf.Tensor)[name] for name in [*SLOTS, "__radd__"]}
    yield
    for name, value in before.items():
        setattr(tf.Tensor, name, value)
    native.operators(tf.Tensor, {name: getattr(tf.Tensor, name) for name in SLOTS})


@in_slots
@pytest.mark.parametrize("name", SLOTS)
def test_every_operator_has_a_function_of_its_own(name: str) -> None:
    others = {slot(tf.Tensor, other) for other in SLOTS if SLOTS[other] != SLOTS[name]}
    assert slot(tf.Tensor, name) not in {None, pythons_own(name), *others}


@pytest.mark.parametrize("name", BINARY)
def test_results(name: str) -> None:
    op, x, y = getattr(operator, name), np.array([5.5, -7.0, 3.0], np.float32), np.array([2.0, 3.0, 3.0], np.float32)
    for left, right in ((x, y), (x, np.float32(3.0)), (x[:1], y[0])):
        result = op(tf.constant(left), tf.constant(right))
        np.testing.assert_array_equal(result.numpy(), BINARY[name](left, right))
    for _ in range(2):  # the second time the kernel is there
        np.testing.assert_array_equal(op(tf.constant(x), 3.0).numpy(), BINARY[name](x, np.float32(3.0)))
        np.testing.assert_array_equal(op(3.0, tf.constant(x)).numpy(), BINARY[name](np.float32(3.0), x))
        np.testing.assert_array_equal(op(y, tf.constant(x)), BINARY[name](y, x))


def test_results_of_one_operand_and_of_products() -> None:
    x = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)
    t = tf.constant(x)
    for _ in range(2):
        np.testing.assert_array_equal((-t).numpy(), -x)
        np.testing.assert_array_equal(abs(t).numpy(), abs(x))
        np.testing.assert_array_equal((t @ t).numpy(), x @ x)
        np.testing.assert_array_equal((x @ t).numpy(), x @ x)


class Both:
    """Answers what it is the right operand of."""

    def __radd__(self, other: object) -> str:
        return "radd"

    def __rmatmul__(self, other: object) -> str:
        return "rmatmul"


def test_the_other_operand_answers() -> None:
    x: Any = tf.constant([1.0])
    assert x + Both() == "radd"
    assert x @ Both() == "rmatmul"
    for op, symbol in ((operator.add, r"\+"), (operator.sub, "-"), (operator.mod, "%"), (operator.matmul, "@")):
        for left, right in ((x, None), (None, x)):
            with pytest.raises(TypeError, match=rf"unsupported operand type\(s\) for {symbol}: .*Tensor"):
                op(left, right)
    assert (x == None) is False  # noqa: E711
    assert (x != None) is True  # noqa: E711
    with pytest.raises(TypeError, match="'<' not supported"):
        operator.lt(x, None)


def test_a_class_below_answers_first() -> None:
    class Below(tf.Tensor):
        __slots__ = ()

        def __radd__(self, other: object) -> str:
            return "below"

        def __neg__(self) -> str:
            return "minus"

    below: Any = Below.__new__(Below)
    below._memory = np.ones(2, np.float32)
    x = tf.constant([1.0, 2.0])
    assert x + below == "below"
    assert -below == "minus"
    assert (below + x).numpy().tolist() == [2.0, 3.0]
    assert (x - below).numpy().tolist() == [0.0, 1.0]
    assert (below - x).numpy().tolist() == [0.0, -1.0]
    assert (below == x).numpy().tolist() == [True, False]


def test_attributes_that_are_assigned_count(attributes: None) -> None:
    x: Any = tf.constant([1.0])
    tf.Tensor.__add__ = lambda self, other: "mine"  # type: ignore[method-assign]
    tf.Tensor.__lt__ = lambda self, other: "less"  # type: ignore[method-assign]
    assert x + x == "mine"
    assert (x < x) == "less"
    assert (1.0 + x).numpy() == 2.0
    tf.Tensor.__radd__ = lambda self, other: "reflected"  # type: ignore[method-assign]
    assert 1.0 + x == "reflected"
    del tf.Tensor.__add__
    with pytest.raises(TypeError, match="unsupported operand"):
        operator.add(x, 1.0)


@in_slots
def test_what_does_not_lie_where_it_should_is_left_alone(attributes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SLOTS:
        setattr(tf.Tensor, name, vars(tf.Tensor)[name])  # CPython's own functions again
    before = {name: slot(tf.Tensor, name) for name in SLOTS}
    assert before == {name: pythons_own(name) for name in SLOTS}
    monkeypatch.setattr(operator_slots, "_WORDS", {name: (number, word + 1) for name, (number, word) in
                                                   operator_slots._WORDS.items()})
    monkeypatch.setattr(operator_slots, "_COMPARE", operator_slots._COMPARE + 1)
    native.operators(tf.Tensor, {name: getattr(tf.Tensor, name) for name in SLOTS})
    assert {name: slot(tf.Tensor, name) for name in SLOTS} == before
    assert (tf.constant([1.0]) + 1.0).numpy() == 2.0


def test_the_attributes_are_functions() -> None:
    x = tf.constant([1.0, 2.0])
    assert x.__add__(x).numpy().tolist() == [2.0, 4.0]
    assert x.__rsub__(5.0).numpy().tolist() == [4.0, 3.0]
    assert tf.Tensor.__add__(x, 1.0).numpy().tolist() == [2.0, 3.0]
    assert tf.Tensor.__add__.__name__ == "__add__"
    assert x.__eq__(None) is False
    for name in SLOTS:
        assert callable(getattr(x, name))
    assert pickle.loads(pickle.dumps(x)).numpy().tolist() == [1.0, 2.0]


@in_slots
def test_errors_show_the_users_frames() -> None:
    x, y = tf.constant([1.0, 2.0]), tf.constant([1.0, 2.0, 3.0])
    for op in (operator.add, operator.lt, operator.mod):
        with pytest.raises(tf.errors.InvalidArgumentError) as error:
            op(x, y)
        assert [entry.path.name for entry in error.traceback] == ["test_operator_slots.py"]  # type: ignore[union-attr]


@pytest.mark.parametrize("op", [operator.add, operator.neg, operator.lt, operator.matmul])
def test_nothing_leaks(op: Callable[..., Any]) -> None:
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    operands = (x,) if op is operator.neg else (x, x)

    def work() -> None:
        for _ in range(100):
            op(*operands)
            with pytest.raises((TypeError, tf.errors.InvalidArgumentError)):
                operator.lt(x, None)
            operator.eq(x, None)
    work()
    gc.collect()
    before = [sys.getrefcount(thing) for thing in (x, x._memory, tf.Tensor, None)][:3]
    work()
    gc.collect()
    assert [sys.getrefcount(thing) for thing in (x, x._memory, tf.Tensor, None)][:3] == before


def test_plain_operators_do_the_same() -> None:
    program = ("import operator as o, twofold as tf\nx, y = tf.constant([5., -7.]), tf.constant([2., 3.])\n"
               "all = o.add, o.sub, o.mul, o.truediv, o.mod, o.floordiv, o.lt, o.eq, o.ge\n"
               "print([f(a, b).numpy().tolist() for f in all for a, b in ((x, y), (x, 2.), (2., x))],"
               " (-x).numpy(), abs(x).numpy(), x == None)")
    outputs = {subprocess.run([sys.executable, "-c", program], env={**os.environ, "TWOFOLD_NATIVE_CALL": number},
                              capture_output=True, text=True, check=True).stdout for number in "01"}
    assert len(outputs) == 1


# -- stubs ------------------------------------------------------------------------------------------------------------
BASE, TARGET, STACK = 0x7F12_3456_7000, 0x55_0000_1000, 0x20_0000
PROCESSORS = {"x86_64": ("X86", ("RDI", "RSI", "RDX", "RCX")), "aarch64": ("ARM64", ("X0", "X1", "X2", "X3"))}


@pytest.mark.parametrize("given", [1, 2, 3])
@pytest.mark.parametrize("processor", PROCESSORS)
def test_stubs_hand_one_argument_more(processor: str, given: int) -> None:
    """On an emulated processor: the stub ends at the target with all arguments, and has changed nothing else."""
    unicorn = pytest.importorskip("unicorn")
    registers = pytest.importorskip(f"unicorn.{'x86' if processor == 'x86_64' else 'arm64'}_const")
    family, names = PROCESSORS[processor]
    cpu = unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64) if processor == "x86_64" else \
        unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
    for at in (BASE, TARGET, STACK):
        cpu.mem_map(at, 4096)
    code = operator_slots.stub(processor, given, 0x1234_5678_9ABC, TARGET)
    assert len(code) <= operator_slots._STUB
    cpu.mem_write(BASE, code)
    numbers = [getattr(registers, f"UC_{family}_REG_{name}") for name in names]
    for value, number in enumerate(numbers, 10):
        cpu.reg_write(number, value)
    top = getattr(registers, f"UC_{family}_REG_{'RSP' if family == 'X86' else 'SP'}")
    cpu.reg_write(top, STACK + 512)
    cpu.mem_write(STACK + 512, struct.pack("<Q", 77))
    cpu.emu_start(BASE, TARGET)
    expected = [10, 11, 12, 13]
    expected[given] = 0x1234_5678_9ABC
    assert [cpu.reg_read(number) for number in numbers] == expected
    assert cpu.reg_read(top) == STACK + 512
