"""The functions that converted code calls in place of Python's statements and operators (`ag__.if_stmt` and the like).

Each does what Python does, unless what decides is a traced tensor: then the statement is staged. The names and
parameters of the public functions are those that converted code uses. Calls are `tracer/operator_calls.py`'s, loops
over tensors `tracer/operator_loops.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from twofold.eager import convert
from twofold.eager.tensor import Tensor
from twofold.eager.variable import Variable
from twofold.ir import errors, ops
from twofold.ir import graph as g

from . import conditional
from .composite import MaybeDefined, Undefined
from .conditional import predicate
from .symbolic import SymbolicTensor, SymbolicValueError
from .trace import current
from .types import PythonValue, Structure

__all__ = ["FunctionScope", "UndefinedReturnValue", "Undefined", "UndefinedVariableError",
           "AssertStatementError", "and_", "assert_stmt", "eq",
           "if_exp", "if_stmt", "ld", "ldu", "not_", "not_eq", "or_", "staged", "with_function_scope"]


#: the values of a statement's variables: how converted code reads them, and how it sets them
State: TypeAlias = tuple[PythonValue, ...]
GetState: TypeAlias = Callable[[], State]
SetState: TypeAlias = Callable[[State], None]


class UndefinedVariableError(errors.OpError, UnboundLocalError):
    """A variable was read that the taken path has not assigned."""


class AssertStatementError(errors.InvalidArgumentError, AssertionError):
    """An `assert` statement about a tensor did not hold when the function ran."""


class UndefinedReturnValue(Undefined):
    """The result of a function until it has met a `return`."""

    __slots__ = ()
    returned = True

    def __init__(self) -> None:
        super().__init__("the result")


def staged(value: PythonValue) -> bool:
    """Whether `value` is known only when the function runs."""
    return isinstance(value, SymbolicTensor) or (isinstance(value, Variable) and current() is not None)


# -- variables ------------------------------------------------------------------------------------
def ld(value: PythonValue) -> PythonValue:
    """Reads a variable.

    Raises:
        UnboundLocalError: it has no value. Where that depends on tensors, the error comes when the function runs.
    """
    if isinstance(value, Undefined):
        raise UnboundLocalError(f"cannot access local variable '{value.name}' where it is not associated with a value"
                                f".\n  {errors.user_line()}", name=value.name)
    if isinstance(value, MaybeDefined):
        return _defined(value)
    return value


def _defined(value: MaybeDefined) -> Structure:
    """The value, with a check that there is one when the function runs."""
    trace = current()
    if trace is None or not isinstance(value.defined, SymbolicTensor):
        return value.value
    trace.construct(g.ASSERT, [value.defined], {
        "message": f"cannot access local variable '{value.name}' where it is not associated with a value: the path "
                   "that was taken does not assign it", "summarize": None, "error": UndefinedVariableError}, ())
    return value.value


def settled(name: str, value: PythonValue) -> PythonValue:
    """The value of an attribute or an item (`a.b`, `a[i]`), which lives outside of converted code: it must be one."""
    return ld(value) if isinstance(value, MaybeDefined) and ("." in name or "[" in name) else value


def ldu(read: Callable[[], PythonValue], name: str) -> PythonValue:
    """Reads an attribute or an item, which may not exist."""
    try:
        return read()
    except (KeyError, AttributeError, NameError, IndexError):
        return Undefined(name)


# -- functions ------------------------------------------------------------------------------------
class FunctionScope:
    """The body of a converted function."""

    def __init__(self, name: str, scope: str, options: object) -> None:
        self.name = name

    def __enter__(self) -> FunctionScope:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def ret(self, value: PythonValue, returned: PythonValue) -> PythonValue:
        """The function's result.

        Raises:
            ValueError: some paths return a value and others do not.
        """
        if isinstance(value, UndefinedReturnValue):
            return None
        if isinstance(value, MaybeDefined):
            if isinstance(returned, SymbolicTensor) and g.constant_of(returned.value) is None:
                raise ValueError(f"{self.name}(): a value must be returned from every path: some return "
                                 f"{errors.describe(value.value)}, and others reach the end of the function."
                                 f"\n  {errors.user_line()}")
            return value.value
        return value


def with_function_scope(body: Callable[[FunctionScope], PythonValue], scope: str, options: object) -> PythonValue:
    """The body of a converted lambda."""
    return body(FunctionScope("lambda", scope, options))


# -- branches -------------------------------------------------------------------------------------
def if_stmt(cond: PythonValue, body: Callable[[], object], orelse: Callable[[], object], get_state: GetState,
            set_state: SetState, symbol_names: tuple[str, ...], nouts: int) -> None:
    """`if cond: body else: orelse`."""
    test = predicate(cond, "condition of an if statement") if staged(cond) else cond
    if not isinstance(test, SymbolicTensor):
        body() if test else orelse()
        return
    before = get_state()

    def side(run: Callable[[], object], holds: bool) -> Callable[[], list[PythonValue]]:
        def traced() -> list[PythonValue]:
            set_state(tuple([list(v) if isinstance(v, list) and type(v) is list else _implied(v, test, holds)
                             for v in before]))
            run()
            return list(get_state()[:nouts])
        return traced
    try:
        after = conditional.branch_values(test, side(body, True), side(orelse, False), symbol_names[:nouts],
                                          "if statement")
    except BaseException:
        set_state(before)
        raise
    after = [settled(name, _same_list(old, new)) for name, old, new in zip(symbol_names, before, after, strict=False)]
    set_state((*after, *before[nouts:]))


def _same_list(before: PythonValue, after: PythonValue) -> PythonValue:
    """A list that the sides were given copies of stays the object that it was."""
    if isinstance(before, list) and type(before) is list and isinstance(after, list) and type(after) is list:
        before[:] = after
        return before
    return after


def _implied(value: PythonValue, test: SymbolicTensor, holds: bool) -> PythonValue:
    """The value of a flag on a side that the flag itself decides."""
    if not isinstance(value, SymbolicTensor):
        return value
    if value.value is test.value:
        return holds
    node = test.value.node
    if node is not None and getattr(node.op, "name", "") == "logical_not" and node.inputs[0] is value.value:
        return not holds
    return value


def if_exp(cond: PythonValue, if_true: Callable[[], PythonValue], if_false: Callable[[], PythonValue],
           text: str) -> PythonValue:
    """`if_true if cond else if_false`."""
    test = predicate(cond, "condition") if staged(cond) else cond
    if not isinstance(test, SymbolicTensor):
        return if_true() if test else if_false()
    return conditional.branch(test, if_true, if_false, "conditional expression")


# -- logic ----------------------------------------------------------------------------------------
def and_(left: Callable[[], PythonValue], right: Callable[[], PythonValue]) -> PythonValue:
    """`left and right`; the right side runs only where it decides."""
    first = left()
    if not staged(first):
        return first and right()
    test = predicate(first, "operand of `and`")
    if isinstance(test, bool):
        return right() if test else first
    return conditional.branch(test, lambda: _truth(right()), lambda: False, "`and`")


def or_(left: Callable[[], PythonValue], right: Callable[[], PythonValue]) -> PythonValue:
    """`left or right`; the right side runs only where it decides."""
    first = left()
    if not staged(first):
        return first or right()
    test = predicate(first, "operand of `or`")
    if isinstance(test, bool):
        return first if test else right()
    return conditional.branch(test, lambda: True, lambda: _truth(right()), "`or`")


def _truth(value: PythonValue) -> bool | SymbolicTensor:
    return predicate(value, "operand of a logical operator")


def not_(value: PythonValue) -> PythonValue:
    """`not value`."""
    if not staged(value):
        return not value
    test = predicate(value, "operand of `not`")
    return not test if isinstance(test, bool) else ops.logical_not(test)


def eq(left: PythonValue, right: PythonValue) -> PythonValue:
    """`left == right`."""
    return left == right


def not_eq(left: PythonValue, right: PythonValue) -> PythonValue:
    """`left != right`."""
    return left != right


def assert_stmt(test: PythonValue, message: Callable[[], PythonValue]) -> None:
    """`assert test, message`: for tensors it is checked when the function runs."""
    if not staged(test):
        if not test:
            text = message()
            raise AssertionError() if text is None else AssertionError(text)
        return
    stage_assert(predicate(test, "condition of an assert statement"), _message(message), error=AssertStatementError)


def _message(message: Callable[[], PythonValue]) -> str:
    """The message of an assertion; values that are not known yet show as tensors."""
    try:
        text = message()
    except SymbolicValueError:
        return "assertion failed"
    return "assertion failed" if text is None else str(text)


def stage_assert(test: Tensor | bool, message: str | Tensor | None, data: tuple[PythonValue, ...] = (),
                 error: type[Exception] = errors.InvalidArgumentError) -> None:
    """An assertion of the function under way.

    Args:
        test: a bool, or a scalar bool tensor.
        message: of the error, text or a tensor of text.
        data: tensors that the error shows.
    """
    trace = current()
    assert trace is not None
    text = message if isinstance(message, str) and message else "assertion failed"
    shown = data if isinstance(message, str) or message is None else (message, *data)
    tensors = [convert.as_tensor(test), *[x if isinstance(x, (Tensor, Variable)) else convert.as_tensor(x)
                                          for x in shown]]
    trace.construct(g.ASSERT, tensors, {"message": text, "summarize": None,
                                        "error": error}, ())
