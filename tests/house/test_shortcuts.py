"""Public functions that are one op and no more say so by `public_op`, and those that say so are."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from house.tree import ROOT, shipped_modules

import twofold as tf
from twofold import linalg
from twofold.eager import entries
from twofold.ir import ops
from twofold.runtime import native

# Public functions that are one op as long as no setting of theirs is given -> where they are.
WITH_SETTINGS: dict[str, Any] = {"matmul": linalg}


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
    with monkeypatch.context() as patch:
        patch.setattr(WITH_SETTINGS[name].__complete__, "ops", types.SimpleNamespace(**{name: record}))
        assert native.unguarded(getattr(WITH_SETTINGS[name], name))(*operands) is result
    assert calls == [operands]


@pytest.mark.skipif(not native.available(), reason="no native entries here")
@pytest.mark.parametrize("name", WITH_SETTINGS)
def test_functions_with_settings_go_to_the_entry_without_them(name: str) -> None:
    function: Any = getattr(WITH_SETTINGS[name], name)
    assert function.__self__.direct is entries.ENTRIES[getattr(ops, name)]


def test_calls_by_position_skip_the_python_function() -> None:
    """All others run it, and results, errors and records are the same."""
    def fail(*args: object, **options: object) -> None:
        raise AssertionError("it was called")

    guarded = native.guard(fail, "exp", direct=(entries.ENTRIES[ops.exp], 1))
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
