"""Loops of converted code: `while` with a traced condition, and `for` over traced tensors, datasets and iterators."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from twofold.eager.tensor import Tensor
from twofold.ir import ops
from twofold.ir.dims import Dim

from . import invariants, operators
from .composite import MaybeDefined
from .conditional import predicate
from .loop import Body, LoopVariable, Test, while_loop
from .operators import GetState, SetState, State
from .sequences import StagedSequence, sequence
from .symbolic import SymbolicTensor
from .trace import current
from .types import PythonValue, Structure, Values

__all__ = ["while_stmt", "for_stmt"]

#: the options of a loop by name, such as "maximum_iterations": `loop_options.py` has them
LoopOptions: TypeAlias = dict[str, Any]


def while_stmt(test: Callable[[], PythonValue], body: Callable[[], None], get_state: GetState, set_state: SetState,
               symbol_names: tuple[str, ...], opts: LoopOptions) -> None:
    """`while test: body`. Rounds that Python decides run at once; a condition that is a tensor stages the rest."""
    if current() is None:
        while test():
            body()
        return
    while True:
        condition = test()
        if operators.staged(condition):
            condition = predicate(condition, "condition of a while statement")
        if isinstance(condition, SymbolicTensor):
            break
        if not condition:
            return
        body()
    limit = opts.get("maximum_iterations")

    def loop(rounds: int) -> None:
        before = get_state()
        counter = [] if limit is None else [LoopVariable("maximum_iterations", rounds)]

        def holds(values: Values) -> PythonValue:
            set_state(tuple(values[len(counter):]))
            return operators.and_(lambda: values[0] < limit, test) if counter else test()

        def round_(values: Values) -> Values:
            set_state(tuple(values[len(counter):]))
            body()
            return [*[v + 1 for v in values[:len(counter)]], *get_state()]
        variables = [*counter, *_variables(symbol_names, before, opts)]
        after = _run(holds, round_, variables, "while statement", limit, before, set_state)
        set_state(tuple(after[len(counter):]))

    def first() -> None:
        entered = condition if limit is None else operators.and_(lambda: condition, lambda: limit > 0)
        _if(entered, body, get_state, set_state, symbol_names)
    _either(functools.partial(loop, 0), first, functools.partial(loop, 1), get_state, symbol_names)


def _either(loop: Callable[[], None], first: Callable[[], None], rest: Callable[[], None], get_state: GetState,
            names: tuple[str, ...]) -> None:
    """A loop as a whole; or its first round, which finds None in a variable, and then the rest, which find a tensor.

    A None that a loop replaces stands for a value that is not there, which is enough for bodies that do not read it.
    """
    before = get_state()
    try:
        loop()
    except UnboundLocalError as error:
        if not any(name == error.name and value is None for name, value in zip(names, before, strict=True)):
            raise
    else:
        return
    first()
    rest()


def _if(condition: PythonValue, body: Callable[[], None], get_state: GetState, set_state: SetState,
        names: tuple[str, ...]) -> None:
    """`if condition: body`, where a None that the body replaces has no value on the other side."""
    replaced: list[bool] = []

    def first_round() -> None:
        before = get_state()
        body()
        replaced[:] = [b is None and a is not None for a, b in zip(get_state(), before, strict=True)]

    def other() -> None:
        set_state(tuple([operators.Undefined(name) if gone else value
                         for name, value, gone in zip(names, get_state(), replaced, strict=True)]))
    operators.if_stmt(condition, first_round, other, get_state, set_state, names, len(names))


def _variables(names: tuple[str, ...], values: State, opts: LoopOptions) -> list[LoopVariable]:
    shapes = {id(value): shape for value, shape in opts.get("shape_invariants") or ()}
    return [LoopVariable(name, value, invariants.of_value(shapes.get(id(value)), value, name))
            for name, value in zip(names, values, strict=True)]


def _run(test: Test, body: Body, variables: list[LoopVariable], what: str, trips: PythonValue, before: State,
         set_state: SetState) -> list[PythonValue]:
    """The variables after the loop, those among them marked that may not have been assigned."""
    try:
        after, ran = while_loop(test, body, variables, what, trips if isinstance(trips, (int, Dim)) else None)
    except BaseException:
        set_state(before)
        raise
    return [operators.settled(v.name, _marked(v, value, ran)) for v, value in zip(variables, after, strict=True)]


def _marked(variable: LoopVariable, value: Structure, ran: Tensor | None) -> Structure:
    """The value after the loop of a variable that may have none, as one that may be undefined."""
    if variable.late is None:
        return value
    assert ran is not None, "the loop of such a variable tells whether it ran"
    returned = isinstance(variable.value, operators.UndefinedReturnValue)
    if isinstance(value, MaybeDefined):
        defined = None if returned or value.defined is None else ops.logical_and(value.defined, ran)
        return MaybeDefined(value.value, defined, value.name)
    return MaybeDefined(value, None if returned else ran, variable.name)


def for_stmt(iter_: Any, extra_test: Callable[[], PythonValue] | None, body: Callable[[PythonValue], None],
             get_state: GetState, set_state: SetState, symbol_names: tuple[str, ...], opts: LoopOptions) -> None:
    """`for target in iter_: body`, while `extra_test` holds, which is there where the loop has break or return."""
    items = sequence(iter_) if current() is not None else None
    if items is not None:
        _staged_for(items, extra_test, body, get_state, set_state, symbol_names, opts)
        return
    if extra_test is None:
        for item in iter_:
            body(item)
        return
    if not _goes_on(extra_test):
        return
    for item in iter_:
        going = extra_test()
        if operators.staged(going):  # a tensor has decided about break: later rounds run under a condition
            operators.if_stmt(going, functools.partial(body, item), _nothing, get_state, set_state, symbol_names,
                              len(symbol_names))
            continue
        body(item)
        if not _goes_on(extra_test):
            break


def _nothing() -> None:
    """The round of a loop that is over."""


def _goes_on(extra_test: Callable[[], PythonValue]) -> bool:
    going = extra_test()
    return True if operators.staged(going) else bool(going)


def _staged_for(items: StagedSequence, extra_test: Callable[[], PythonValue] | None,
                body: Callable[[PythonValue], None], get_state: GetState, set_state: SetState, names: tuple[str, ...],
                opts: LoopOptions) -> None:
    place: list[PythonValue] = [items.start]

    def holds(values: Values) -> PythonValue:
        set_state(tuple(values[1:]))
        more = items.more(values[0])
        return more if extra_test is None else operators.and_(lambda: more, extra_test)

    def round_(values: Values) -> Values:
        set_state(tuple(values[1:]))
        body(items.item(values[0]))
        return [items.after(values[0]), *get_state()]

    def loop() -> None:
        before = get_state()
        variables = [LoopVariable("the place in the loop", place[0]), *_variables(names, before, opts)]
        after = _run(holds, round_, variables, "for statement", items.trips, before, set_state)
        set_state(tuple(after[1:]))

    def placed() -> State:
        return (place[0], *get_state())

    def put(values: State) -> None:
        place[0] = values[0]
        set_state(values[1:])

    def first() -> None:
        _if(holds(list(placed())), lambda: put(tuple(round_(list(placed())))), placed, put,
            ("the place in the loop", *names))
    _either(loop, first, loop, get_state, names)
