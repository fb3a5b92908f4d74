"""Calls of functions, branches and loops, and what only orders nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import twofold as tf
from twofold.eager.variable import Variable

from .graphs import Called, Source
from .lists import TensorList, carried
from .table import Call, op, tensor, truth

__all__: list[str] = []


@op("PartitionedCall", "StatefulPartitionedCall")
def _call(call: Call, args: list[Any]) -> list[Any]:
    return call.runner.function(call.function("f"), args)


@op("NoOp", "ControlTrigger")
def _nothing(call: Call) -> list[Any]:
    return []


@op("Const")
def _constant(call: Call) -> list[Any]:
    value = call.attr("value")
    if not isinstance(value, np.ndarray):
        raise ValueError("its value is of a dtype that is not known here")
    return [value if value.nbytes <= _SMALL or value.dtype == object else _held(call, value)]


_SMALL = 1024  # bytes up to which a constant is part of the graphs that read it


def _held(call: Call, value: np.ndarray) -> Any:
    """A large constant as one tensor, which all graphs capture."""
    with tf.init_scope():
        held = call.node.attrs["value"] = _Held(value)
    return held.tensor


class _Held:
    """A constant that has become a tensor."""

    __slots__ = ("tensor",)

    def __init__(self, value: np.ndarray) -> None:
        self.tensor = tf.constant(value)


@op("Placeholder", "PlaceholderV2")
def _placeholder(call: Call) -> list[Any]:
    raise ValueError("its value is not given")


@op("PlaceholderWithDefault")
def _with_default(call: Call, input: Any) -> list[Any]:
    return [input]


@op("Identity", "RefIdentity")
def _same(call: Call, input: Any) -> list[Any]:
    """The value. A variable of TensorFlow 1 is still one: it is read where it is used, as there."""
    return [input]


@op("IdentityN")
def _all_same(call: Call, input: list[Any]) -> list[Any]:
    """The values, whose gradient may be one of the user's own."""
    gradient = call.runner.gradient(call.word("_gradient_op_type"))
    if gradient is None or any(isinstance(v, Variable) for v in input):
        return list(input)
    captures = [call.value(v) if isinstance(v, Source) else v for v in gradient.captures()]

    @tf.custom_gradient
    def same(*values: Any) -> Any:
        def by(*upstream: Any) -> list[Any]:
            made = iter(call.runner.function(Called(gradient.name, {}), [*upstream, *captures]))
            return [None if absent else tensor(next(made)) for absent in gradient.absent]
        return [tf.identity(v) for v in values], by
    return list(same(*[tensor(v) for v in input]))


# -- branches -----------------------------------------------------------------------------------------
@op("Switch")
def _switch(call: Call, data: Any, pred: Any) -> list[Any]:
    """The value for both sides; which one goes on, `Merge` decides (`switches.py`)."""
    return [data, data]


@op("Merge")
def _merge(call: Call, inputs: list[Any]) -> list[Any]:
    raise ValueError("it is run by `switches.merged`")


@op("Enter", "Exit", "NextIteration")
def _frame(call: Call, data: Any) -> list[Any]:
    raise ValueError("it belongs to no loop, which `frames.loop` runs")


@op("If", "StatelessIf")
def _if(call: Call, cond: Any, input: list[Any]) -> list[Any]:
    then, otherwise = call.function("then_branch"), call.function("else_branch")
    holds = truth(cond)
    if isinstance(holds, bool):
        return call.runner.function(then if holds else otherwise, input)
    return _joined(call, [otherwise, then], input, lambda fns: tf.cond(holds, fns[1], fns[0]))


@op("Case", "StatelessCase")
def _case(call: Call, branch_index: Any, input: list[Any]) -> list[Any]:
    branches = call.attr("branches")
    if not branches or not all(isinstance(b, Called) for b in branches):
        raise ValueError("it has no branches")
    if isinstance(branch_index, np.ndarray):
        which = int(branch_index.item())
        return call.runner.function(branches[which if 0 <= which < len(branches) else -1], input)
    index = tf.reshape(tensor(branch_index), ())
    return _joined(call, branches, input, lambda fns: tf.switch_case(index, fns[:-1] or fns, fns[-1]))


def _joined(call: Call, branches: Sequence[Called], given: list[Any], run: Any) -> list[Any]:
    """What one of several functions gives, of which only running tells which."""
    kept: dict[int, Any] = {}  # outputs that are no tensors and the same object in all branches
    lists: dict[int, TensorList] = {}

    def branch(called: Called) -> Any:
        def made() -> list[Any]:
            outputs = call.runner.function(called, given)
            kept.update({n: v for n, v in enumerate(outputs) if isinstance(v, Variable) or hasattr(v, "_contents")})
            lists.update({n: v for n, v in enumerate(outputs) if isinstance(v, TensorList)})
            return [tensor(np.zeros((), np.int32)) if n in kept else carried(v) for n, v in enumerate(outputs)]
        return made
    outputs = run([branch(called) for called in branches])
    outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    return [kept[n] if n in kept else TensorList(v, lists[n]) if n in lists else v for n, v in enumerate(outputs)]


# -- loops --------------------------------------------------------------------------------------------
@op("While", "StatelessWhile")
def _while(call: Call, input: list[Any]) -> list[Any]:
    test, body = call.function("cond"), call.function("body")
    passed = {n for n, source in call.runner.body(body).passed().items() if n == source}
    places = [n for n in range(len(input)) if n not in passed]
    lists = {n for n in places if isinstance(input[n], TensorList)}

    def arguments(values: Sequence[Any]) -> list[Any]:
        full = list(input)
        for place, value in zip(places, values, strict=True):
            full[place] = TensorList(value, input[place]) if place in lists else value
        return full

    def goes_on(*values: Any) -> Any:
        return truth(call.runner.function(test, arguments(values))[0])

    def one(*values: Any) -> list[Any]:
        after = call.runner.function(body, arguments(values))
        return [carried(after[place]) for place in places]

    if not places:
        raise ValueError("nothing changes in its rounds")
    first = [carried(input[place]) for place in places]
    last = _loop(call, goes_on, one, first, places)
    outputs = list(input)
    for place, value in zip(places, last, strict=True):
        outputs[place] = TensorList(value, input[place]) if place in lists else value
    return outputs


def _loop(call: Call, goes_on: Any, one: Any, first: list[Any], places: list[int]) -> Sequence[Any]:
    """The last values; sizes stay what they are, or where that does not do, may change where the file says so."""
    try:
        return tf.while_loop(goes_on, one, first)
    except ValueError:
        shapes = call.attr("output_shapes") or []
        if len(shapes) <= max(places) or not tf.inside_function():
            raise
        open_ = [shapes[place] if isinstance(value, tf.Tensor) and shapes[place].rank == value.shape.rank else None
                 for place, value in zip(places, first, strict=True)]
        return tf.while_loop(goes_on, one, first, shape_invariants=open_)
