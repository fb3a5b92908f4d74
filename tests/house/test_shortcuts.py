"""Public functions that are one op and no more say so by `public_op`, and those that say so are."""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from house.tree import ROOT, shipped_modules

import twofold as tf
from twofold import linalg, math, nn
from twofold.eager import entries
from twofold.ir import ops
from twofold.runtime import kernels, native

# Public functions that are one op as long as no setting is given and no operand is a string -> where they are.
WITH_SETTINGS: dict[str, Any] = {
    "matmul": linalg, **dict.fromkeys(("gelu", "silu"), nn), **dict.fromkeys((
        "add", "equal", "not_equal", "reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_min",
        "reduce_any", "reduce_all", "reduce_logsumexp", "reduce_euclidean_norm"), math)}


def op_of(function: ast.FunctionDef) -> str:
    """The op of `def f(x, y, name=None): return ops.add(x, y)`, a function that only hands on what it gets; else ""."""
    statements = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    parameters = [a.arg for a in function.args.args]
    match statements:
        case [ast.Return(ast.Call(ast.Attribute(ast.Name("ops"), op), arguments, []))]:
            handed = [a.id if isinstance(a, ast.Name) else "" for a in arguments]
            rest = parameters[len(handed):]
            return op if handed == parameters[:len(handed)] and rest in ([], ["name"]) else ""
    return ""


def said(function: ast.FunctionDef) -> str:
    """The op that a function's decorator `public_op` names, or ""."""
    for decorator in function.decorator_list:
        match decorator:
            case ast.Call(ast.Name("public_op"), [ast.Attribute(ast.Name("ops"), op)]):
                return op
    return ""


def functions(text: str) -> Iterator[ast.FunctionDef]:
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and any("public" in ast.unparse(d) for d in node.decorator_list):
            yield node


def wrong(text: str) -> list[str]:
    """The functions of a module whose decorator and body do not agree."""
    def expected(function: ast.FunctionDef) -> str:
        op = op_of(function)
        return op if getattr(ops, op, None) in entries.ENTRIES else ""
    return [f.name for f in functions(text) if said(f) != expected(f) and not (f.name in WITH_SETTINGS and said(f))]


def test_public_functions_that_are_one_op_say_so() -> None:
    texts = {path: path.read_text() for path in shipped_modules() if path.is_relative_to(ROOT / "twofold")}
    assert {str(path): names for path, text in texts.items() if (names := wrong(text))} == {}
    assert sum("@public_op(" in text for text in texts.values()) > 5


@pytest.mark.parametrize("text", [
    "@public\ndef f(x, name=None):\n    return ops.exp(x)",
    "@public_op(ops.exp)\ndef f(x, name=None):\n    return ops.log(x)",
    "@public_op(ops.subtract)\ndef f(x, y, name=None):\n    return ops.subtract(y, x)",
    "@public_op(ops.exp)\ndef f(x, scale=1.0):\n    return ops.exp(x)",
    "@public_op(ops.exp)\ndef f(x, name=None):\n    x = x + 1\n    return ops.exp(x)",
])
def test_functions_that_do_not_say_it_are_seen(text: str) -> None:
    assert wrong(text) == ["f"]


@pytest.mark.parametrize("name", WITH_SETTINGS)
def test_functions_with_settings_are_one_op_without_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    op, result = getattr(ops, name), object()
    calls: list[tuple[object, ...]] = []

    def record(*operands: object) -> object:
        calls.append(operands)
        return result

    operands = tuple(object() for _ in op.params)
    function: Any = native.unguarded(getattr(WITH_SETTINGS[name], name))
    with monkeypatch.context() as patch:
        patch.setitem(function.__globals__, "ops", types.SimpleNamespace(**{name: record}))
        assert function(*operands) is result
    assert calls == [operands]


_KERNELS = {"mod": "floormod", "truediv": "divide"}  # functions whose kernels are named by another op
NUMBERS = {"reduce_any": [True, False], "reduce_all": [True, True]}


@pytest.mark.parametrize("name", [*WITH_SETTINGS, "truediv", "floormod", "mod", "multiply", "exp"])
def test_calls_with_operands_alone_run_no_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where = WITH_SETTINGS.get(name, math)
    function: Any = getattr(where, name)
    operand = tf.constant([NUMBERS.get(name, [0.5, 1.5])] * 2)
    operands = (operand,) * (2 if name in ("matmul", "add", "equal", "not_equal", "truediv", "floormod", "mod",
                                           "multiply") else 1)
    offered, when_best = [], kernels.Compiled.when_best
    monkeypatch.setattr(kernels.Compiled, "when_best",
                        lambda kernel, use: offered.append(kernel) or when_best(kernel, use))
    expected = function(*operands).numpy().tolist()
    for kernel in offered:  # to the entry, which takes them in their best code
        kernel.settle()
    result, frames = _profiled(function, operands)
    if frames:  # an earlier test has offered the kernel, and its best code is not made yet
        names = {name, _KERNELS.get(name)}
        for kernel in [kernel for kernel in kernels._compiled.values() if kernel.name.split(" ")[0] in names]:
            kernel.settle()
        result, frames = _profiled(function, operands)
    assert result.numpy().tolist() == expected
    assert frames == [] or not native.available()


def _profiled(function: Any, operands: tuple[Any, ...]) -> tuple[Any, list[str]]:
    """The result of a call, and the functions of Python that ran for it."""
    frames: list[str] = []
    sys.setprofile(lambda frame, event, _: frames.append(frame.f_code.co_name) if event == "call" else None)
    try:
        result = function(*operands)
    finally:
        sys.setprofile(None)
    return result, frames


def test_strings_and_errors_are_the_functions_own() -> None:
    a, b = tf.constant(["a", "b"]), tf.constant(["a", "c"])
    assert tf.add(a, b).numpy().tolist() == [b"aa", b"bc"]
    assert tf.add(a, "!").numpy().tolist() == [b"a!", b"b!"]
    assert tf.equal(a, b).numpy().tolist() == [True, False]
    assert tf.not_equal(a, "a").numpy().tolist() == [False, True]
    for function in (tf.add, tf.equal, tf.not_equal, tf.truediv, tf.math.mod, tf.reduce_sum, tf.nn.gelu):
        wrong_operands = [(tf.constant(["a"]), tf.constant([1.0])), (tf.constant([1.0, 2.0]), tf.constant([1.0] * 3))]
        for operands in wrong_operands if function not in (tf.reduce_sum, tf.nn.gelu) else [(tf.constant(["a"]),)]:
            with pytest.raises((tf.errors.InvalidArgumentError, TypeError)) as direct:
                function(*operands)
            with pytest.raises((tf.errors.InvalidArgumentError, TypeError)) as by_name:
                function(*operands, name="n")
            said = [str(error.value).replace(', name="n"', "").split("\n")[0] for error in (direct, by_name)]
            assert said[0] == said[1]
            assert said[0].startswith(function.__name__)


def test_calls_by_position_skip_the_python_function() -> None:
    """All others run it, and results, errors and records are the same."""
    def fail(*args: object, **options: object) -> None:
        raise AssertionError("it was called")

    guarded = native.guard(fail, "exp", direct=entries.ENTRIES[ops.exp])
    x = tf.constant([0.5, -1.0])
    if native.available():
        np.testing.assert_array_equal(guarded(x), tf.exp(x=x))
    for call in (lambda: guarded(x=x), lambda: guarded(x, None), lambda: guarded(x, name="n"), lambda: guarded()):
        with pytest.raises(AssertionError, match="it was called"):
            call()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.exp(x)
    np.testing.assert_array_equal(tape.gradient(y, x), y)
    for wrong_call in (lambda: tf.exp(["a"]), lambda: tf.exp(x=["a"])):
        with pytest.raises(tf.errors.InvalidArgumentError, match="exp: x"):
            wrong_call()
