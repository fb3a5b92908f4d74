"""The parts that passes share: a walk that replaces nodes by rules, and questions about values that rules ask.

A rule is a function `(r, node) -> Value, values or None`: what stands for the results of `node`, or None to leave it.
It appends new nodes with `r.op`, which are offered to the rules in turn, so that one walk from the first node to the
last reaches a fixed point as long as rules make things simpler. The walk guards the types: a rule whose result has
another dtype or shape, or which would assume something of unknown sizes that the graph's guards do not say, is taken
back. Rules state when they hold; this module owns walking and asking.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from .. import dims as dm
from .. import dtypes as dt
from .. import graph as g
from ..dims import Dim, DimLike, Shape
from ..dtypes import DType
from ..op import Op
from ..spec import spec
from ..types import Attr, Attrs, Spec

__all__ = ["Replacement", "Rewriter", "Rule", "Rules", "Table", "rewrite"]

# What stands for the results of a node from now on; None leaves it as it is
Replacement: TypeAlias = g.Value | Sequence[g.Value] | None
Rule: TypeAlias = Callable[["Rewriter", g.Node], Replacement]
Rules: TypeAlias = Mapping[str, Sequence[Rule]]

_UNIFORM = 64  # elements up to which a constant is looked through for being one value throughout
_DEPTH = 8  # rules within rules


class Table(dict[str, list[Rule]]):
    """Rules by the name of the op they are for; `@table.rule("add", "subtract")` adds one.

    >>> table = Table()
    >>> @table.rule("identity")
    ... def identity_gives_operand(r, node):
    ...     return node.inputs[0]
    >>> table["identity"] == [identity_gives_operand]
    True
    """

    def rule(self, *names: str) -> Callable[[Rule], Rule]:
        """Register a rule for nodes of these names."""
        def add(rule: Rule) -> Rule:
            for name in names:
                self.setdefault(name, []).append(rule)
            return rule
        return add


class _TakenBack(Exception):
    """The values that a rule gave do not fit the results that they would replace."""


def rewrite(graph: g.Graph, rules: Rules) -> bool:
    """Apply `rules` to the nodes of `graph` and of its regions, in place; whether anything changed.

    What is replaced stays behind unread where it has an effect, or is in the way of nobody: dead code elimination
    clears up.
    """
    return Rewriter(graph, rules).rewrite()


class Rewriter:
    """One walk over one graph.

    Attributes:
        nodes: the nodes so far of the graph that is being made.
    """

    def __init__(self, graph: g.Graph, rules: Rules, recorder: dm.GuardRecorder | None = None) -> None:
        self.graph, self.rules = graph, rules
        self.nodes: list[g.Node] = []
        self._recorder = recorder
        self._replaced: dict[g.Value, g.Value] = {}
        self._uniform: dict[g.Value, np.ndarray | None] = {}
        self._constants: dict[Hashable, g.Value] = {}
        self._loc: g.Location | None = None
        self._depth = 0

    def rewrite(self) -> bool:
        """Walk; whether anything changed."""
        changed, replaced, rules = False, self._replaced, self.rules
        for node in self.graph.nodes:
            if replaced:
                for i, value in enumerate(node.inputs):
                    if value in replaced:
                        node.inputs[i] = replaced[value]
            for region in node.regions:
                changed |= Rewriter(region, rules, None if node.op is g.CALL else self.recorder).rewrite()
            wanted = rules.get(node.op.name)
            if wanted is not None and (replacements := self._apply(node, wanted)) is not None:
                changed = True
                replaced.update(zip(node.outputs, replacements, strict=True))
            else:
                self.nodes.append(node)
        if replaced:
            self.graph.outputs = [replaced.get(v, v) for v in self.graph.outputs]
        self.graph.nodes = self._read_constants() + self.nodes
        return changed

    def _read_constants(self) -> list[g.Node]:
        """The new constants that something reads."""
        if not self._constants:
            return []
        read = {v for node in self.nodes for v in node.inputs} | set(self.graph.outputs)
        return [v.node for v in self._constants.values() if v in read]  # type: ignore[misc]

    @property
    def recorder(self) -> dm.GuardRecorder:
        """The assumptions about unknown sizes that hold here."""
        if self._recorder is None:
            self._recorder = dm.assumed(self.graph.guards)
        return self._recorder

    def _apply(self, node: g.Node, rules: Iterable[Rule]) -> list[g.Value] | None:
        if self._depth >= _DEPTH:
            return None
        before, place = len(self.nodes), self._loc
        self._loc = node.loc
        self._depth += 1
        try:
            for rule in rules:
                try:
                    result = rule(self, node)
                    if result is not None:
                        replacements = [result] if isinstance(result, g.Value) else list(result)
                        self._check(node, replacements)
                        return replacements
                except _TakenBack:
                    pass
                del self.nodes[before:]
        finally:
            self._loc = place
            self._depth -= 1
        return None

    def _check(self, node: g.Node, replacements: Sequence[g.Value]) -> None:
        for old, new in zip(node.outputs, replacements, strict=True):
            if new.dtype is not old.dtype or not self.same_dims(old.dims, new.dims):
                raise _TakenBack

    # -- making -----------------------------------------------------------------------------------
    def op(self, op: Op, *inputs: g.Value, **attrs: Attr) -> g.Value:
        """The result of a new node, simplified in turn."""
        return self.ops(op, *inputs, **attrs)[0]

    def ops(self, op: Op, *inputs: g.Value, **attrs: Attr) -> list[g.Value]:
        """The results of a new node, simplified in turn."""
        full = g.complete(op, attrs)
        specs = self.infer(op, inputs, full)
        if specs is None:
            raise _TakenBack
        return self._placed(g.Node(op, inputs, full, specs, (), self._loc))

    def infer(self, op: Op, inputs: Sequence[Spec], attrs: Attrs) -> tuple[Spec, ...] | None:
        """The specs of the op's results; None where it rejects the operands or must assume something new."""
        recorder = self.recorder
        before = len(recorder)
        with dm.recording(recorder):
            try:
                inferred = op.infer(op, *inputs, **attrs)
            except (ValueError, TypeError):
                return None
        if len(recorder) > before:
            self._recorder = dm.assumed(list(recorder)[:before])
            return None
        return inferred if isinstance(inferred, tuple) else (inferred,)

    def _placed(self, node: g.Node) -> list[g.Value]:
        wanted = self.rules.get(node.op.name)
        results = None if wanted is None else self._apply(node, wanted)
        if results is None:
            self.nodes.append(node)
            return node.outputs
        return results

    def constant(self, array: np.ndarray) -> g.Value:
        """A constant; equal ones of one walk are made once, at the start of the graph."""
        key = (array.dtype, array.shape, array.tobytes()) if array.dtype != object else id(array)
        value = self._constants.get(key)
        if value is None:
            outline = spec(array.shape, dt.from_numpy(array.dtype))
            node = g.Node(g.CONSTANT, (), {"value": _frozen(array)}, (outline,), (), self._loc)
            value = self._constants[key] = node.outputs[0]
        return value

    def size(self, size: DimLike, dtype: DType) -> g.Value:
        """A size as an integer scalar."""
        if not isinstance(size, Dim):
            return self.constant(np.array(size, dtype.np))
        node = g.Node(g.SIZE, (), {"size": size, "dtype": dtype}, (spec((), dtype),), (), self._loc)
        return self._placed(node)[0]

    def full(self, value: np.ndarray, like: g.Value) -> g.Value:
        """The scalar `value` in the shape of `like`, as a view of a constant."""
        from .. import ops
        scalar = self.constant(value)
        return scalar if not like.dims else self.op(ops.fill, scalar, shape=like.dims)

    def shaped(self, value: g.Value, like: g.Value) -> g.Value:
        """`value`, repeated to the shape of `like` where it has another."""
        from .. import ops
        return value if self.same_dims(value.dims, like.dims) else self.op(ops.broadcast_to, value, shape=like.dims)

    # -- asking -----------------------------------------------------------------------------------
    def same_dims(self, a: Shape, b: Shape) -> bool:
        """Whether two shapes are the same, given the graph's guards."""
        if a == b:
            return True
        return len(a) == len(b) and all(x == y or self.same_size(x, y) for x, y in zip(a, b, strict=True))

    def same_size(self, a: DimLike, b: DimLike) -> bool:
        """Whether two sizes are the same, given the graph's guards."""
        difference = a - b
        return difference == 0 if type(difference) is int else self.recorder.known("zero", difference) is True

    def uniform(self, value: g.Value) -> np.ndarray | None:
        """The scalar that every element of `value` is known to be, through views too; None where it is not."""
        node = value.node
        if node is None:
            return None
        if node.op is not g.CONSTANT and (isinstance(node.op, g.Construct) or node.op.view is None):
            return None
        if value in self._uniform:
            return self._uniform[value]
        scalar = _uniform_of(node.attrs["value"]) if node.op is g.CONSTANT else self.uniform(node.inputs[0])
        self._uniform[value] = scalar
        return scalar

    def is_uniform(self, value: g.Value, number: complex) -> bool:
        """Whether every element of `value` is `number`, signs of zeros included."""
        scalar = self.uniform(value)
        if scalar is None or scalar.dtype == object:
            return False
        return scalar.tobytes() == np.array(number).astype(scalar.dtype).tobytes()


def _uniform_of(array: np.ndarray) -> np.ndarray | None:
    if not 0 < array.size <= _UNIFORM or array.dtype == object:
        return None
    first = array.reshape(-1)[:1]
    if array.size > 1 and array.tobytes() != first.tobytes() * array.size:
        return None
    return _frozen(np.array(first[0]).astype(array.dtype))


def _frozen(array: np.ndarray) -> np.ndarray:
    if array.flags.writeable:
        array.flags.writeable = False
    return array
