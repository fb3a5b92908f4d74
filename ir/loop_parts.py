"""What the gradient of a loop is put together from: which values have gradients in some round, the stacks of residuals,
what is carried besides, and inputs of the body that may be one value. `loop_pullback.py` does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from . import ops
from .build import Builder
from .graph import Graph, Node, Value
from .linearise import Mask, reached, reaching
from .op import use_interpreter
from .spec import spec
from .sums import Holds
from .types import Spec

__all__ = ["FurtherCarried", "JoinedInputs", "ResidualStack", "StackPlace", "is_positive", "loop_backward",
           "loop_forward", "loop_seeds"]


def loop_forward(node: Node, mask: Mask) -> Mask:
    """Which results depend on the operands in `mask`."""
    body, count = node.regions[1], node.attrs["carried"]
    while True:
        varied = reached(body, mask)
        more = tuple([m or v in varied for m, v in zip(mask, body.outputs, strict=False)]) + mask[count:]
        if more == mask:
            return mask[:count]
        mask = more


def loop_seeds(node: Node, mask: Mask) -> Mask:
    """Which carried values have cotangents in some round."""
    body = node.regions[1]
    while True:
        useful = reaching(body, mask)
        more = tuple([m or v in useful for m, v in zip(mask, body.inputs, strict=False)])
        if more == mask:
            return mask
        mask = more


def loop_backward(node: Node, mask: Mask) -> Mask:
    """Which operands the results in `mask` depend on."""
    body, count = node.regions[1], node.attrs["carried"]
    mask = loop_seeds(node, mask)
    useful = reaching(body, mask)
    return mask + tuple([v in useful for v in body.inputs[count:]])


class ResidualStack(NamedTuple):
    """The stack of a residual of the rounds: the numbers of its parts among the carried values of the loop."""

    residual: int
    place: int
    offset: int | None  # where the sizes vary from round to round: the carried number of elements so far
    starts: int | None = None  # and, where items are read in no order, the stack of where they are


class StackPlace(NamedTuple):
    """Where residuals are on a stack that the loop had before: its number among the carried values, and that of the
    residual that tells the place."""

    stack: int
    at: int


class FurtherCarried:
    """What a loop carries besides: first values, specs of the results, inputs of the body and what these become.

    Args:
        count: how many values are carried before these.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.first: list[Value] = []
        self.specs: list[Spec] = []
        self.inputs: list[Value] = []
        self.results: list[Value] = []

    def add(self, first: Value, here: Value, after: Value, like: Spec | None = None) -> int:
        """Carry one more value; its number.

        Args:
            here: an input for the body. after: what it becomes.
            like: the spec of the result, where it is not that of `here`.
        """
        self.first.append(first)
        self.inputs.append(here)
        self.specs.append(spec(here.dims, here.dtype) if like is None else like)
        self.results.append(after)
        self.count += 1
        return self.count - 1


class JoinedInputs(NamedTuple):
    """Inputs of a loop's body that may be one value: in every round, or in the first, or as their identities tell.

    Attributes:
        one, other: numbers of the inputs.
        first: whether they are that in the first round alone.
        conditions: pairs of operands that they may be, which may be one value themselves, and when; where it is
            empty, that they are one is certain.
    """

    one: int
    other: int
    first: bool
    conditions: tuple[tuple[int, int, Holds], ...]


def is_positive(name: str, inputs: Sequence[Value]) -> Graph:
    """The test of a loop that goes on while its first carried value, the rounds that are left, is above 0.

    Args:
        name: of the test. inputs: of the body, like which the test's are.
    """
    test = Graph(name)
    for v in inputs:
        test.add_input(v.dims, v.dtype)
    with use_interpreter(Builder(test)):
        test.outputs = [ops.greater(test.inputs[0], 0)]
    return test
