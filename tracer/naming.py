"""Other names of a tensor: what branches and loops have handed on unchanged before a tape began.

A branch that gives one of its operands back gives, where it is taken, that very tensor under another name, and a loop
without rounds gives what went in. Tapes that are recording hear of that with the construct (`tracer/gradients.py`). A
tape that begins later, or that begins later to follow the tensor, asks here for the names that there are already, and
one that is asked for a gradient of or by a name that was given after its block:

    t = tf.cond(p, lambda: x, lambda: x * 2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)           # t is followed, too: it is x where p is true
        y = t * 3.0

Which tensors may be one value is known when the function is traced, from the graphs alone (`ir/names.py`). Under which
condition they are is asked of the constructs when a gradient is computed, and only of those that hand the value on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from twofold.eager import record
from twofold.eager.tensor import Tensor
from twofold.ir import graph as g
from twofold.ir import ops
from twofold.ir.linearise import fits
from twofold.ir.names import roots
from twofold.ir.sums import Sums

from .gradients import Condition, Connection, recorded
from .symbolic import SymbolicTensor
from .trace import StagedConstruct, Trace

__all__ = ["other_names"]

#: what tells tensors apart: a value of the trace that made it, or the identity of a tensor that none made
Key: TypeAlias = g.Value | int


def other_names(trace: Trace, tensor: Tensor) -> _OtherNames | None:
    """What a tape is told that follows `tensor` from here on: the tensors that may be that one; None where there are
    none.

    Args:
        trace: the one under way.
    """
    handed = [_handed_on(level) for level in reversed(list(trace.levels()))]
    own = _key(tensor)
    tensors: dict[Key, Tensor] = {}
    constructs: list[StagedConstruct] = []
    places = _roots(tensor)
    for level in handed:  # the outer ones came first
        every = {key: made_by for place in places for key, made_by in level.names.get(place, {}).items()}
        here = [level.tensors[key] for key in {*every, *places} if key in level.tensors]
        for _, key, value in sorted(here, key=lambda item: item[0]):
            tensors.setdefault(key, value)
            constructs += [every[key]] if key in every else []
    tensors[own] = tensor
    fitting = {key: t for key, t in tensors.items() if fits(t, tensor)}
    return None if len(fitting) == 1 else _OtherNames(trace, own, fitting, constructs)


def _original(tensor: Tensor) -> Tensor:
    """The tensor that one stands for, in the trace that made it."""
    while isinstance(tensor, SymbolicTensor):
        trace: Any = tensor.trace  # a `Trace`
        original = trace.originals.get(tensor.value)
        if original is None:
            break
        tensor = original
    return tensor


def _key(tensor: Tensor) -> Key:
    original = _original(tensor)
    return original.value if isinstance(original, SymbolicTensor) else id(original)


def _roots(tensor: Tensor) -> frozenset[Key]:
    """The tensors that no construct has handed on and that this one may be."""
    original = _original(tensor)
    if not isinstance(original, SymbolicTensor):
        return frozenset((id(original),))
    trace: Any = original.trace  # a `Trace`
    return _handed_on(trace).roots(original.value)


def _handed_on(trace: Trace) -> _HandedOn:
    """What the constructs of a trace hand on, up to now."""
    if trace.names_so_far is None:
        trace.names_so_far = _HandedOn(trace)
    handed: _HandedOn = trace.names_so_far
    handed.look()
    return handed


class _HandedOn:
    """What the branches and loops of one trace hand on.

    Attributes:
        names: for roots, by their keys the results that may be these, with the constructs that made them.
        tensors: by their keys the operands and results of constructs that hand something on, as they are numbered.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.names: dict[Key, dict[Key, StagedConstruct]] = {}
        self.tensors: dict[Key, tuple[int, Key, Tensor]] = {}
        self._count = 0  # of the constructs that were looked at
        self._memo: dict[g.Value, frozenset[g.Value]] = {}
        self._roots: dict[g.Value, frozenset[Key]] = {}

    def look(self) -> None:
        """Look at the constructs that are new."""
        while self._count < len(self.trace.constructs):
            self._count += 1
            self._add(self.trace.constructs[self._count - 1])

    def _add(self, construct: StagedConstruct) -> None:
        smooth = [t for t in construct.results if t.dtype.is_differentiable]
        named = [t for t in smooth if self.roots(t.value) != {t.value}]
        for result in named:
            for place in self.roots(result.value):
                self.names.setdefault(place, {})[result.value] = construct
        if named:
            for tensor in (*construct.operands, *smooth):
                key = _key(tensor)
                self.tensors.setdefault(key, (len(self.tensors), key, _original(tensor)))

    def roots(self, value: g.Value) -> frozenset[Key]:
        """The values that no construct has handed on and that this one may be, of traces around this one, too."""
        if value not in self._roots:
            possible: set[Key] = set()
            for root in roots(value, self._memo):
                original = self.trace.originals.get(root)
                possible |= {root} if original is None else _roots(original)
            self._roots[value] = frozenset(possible)
        return self._roots[value]


@contextmanager
def _early(trace: Trace) -> Iterator[None]:
    """Stage the ops of this block in `trace` as early as their operands are there, so that constructs that came before
    may read the results."""
    nodes = trace.graph.nodes
    count = len(nodes)
    with record.telling(()), trace.active():
        yield
    late, nodes[count:] = nodes[count:], []
    for node in late:
        before = {id(v.node) for v in node.inputs}
        at = next((i for i in range(len(nodes) - 1, -1, -1) if id(nodes[i]) in before), -1)
        nodes.insert(at + 1, node)


class _OtherNames:
    """The other names of a tensor, as an entry of a tape; `eager/playing.py` says what it asks of one.

    Args:
        trace: that in which the tape asks.
        own: the key of the tensor that the tape follows.
        tensors: this and its other names by their keys.
        constructs: those that gave some of them.

    Attributes:
        only_names: that it has no gradient.
    """

    only_names = True

    def __init__(self, trace: Trace, own: Key, tensors: dict[Key, Tensor],
                 constructs: Sequence[StagedConstruct]) -> None:
        self.trace = trace
        self.numbers = {key: n for n, key in enumerate(tensors)}
        self.constructs = list(dict.fromkeys(constructs))
        self.inputs = self.outputs = tuple(tensors.values())
        self.followed = {self.numbers[own]}  # the numbers of those that the tape follows by themselves
        for tensor in self.outputs:
            record.identity(tensor)

    def begin_with(self, tracked: set[int]) -> bool:
        """The tape does not follow the tensor itself, but those names whose identities are in `tracked`; whether there
        are such."""
        self.followed = {n for n, tensor in enumerate(self.outputs) if record.identity(tensor) in tracked}
        return bool(self.followed)

    def joined(self) -> list[tuple[int, int, Condition]]:
        """The names that may be earlier ones, with these and the conditions under which they are."""
        joins = []
        for construct in self.constructs:
            known = recorded(construct)
            for k, at, holds in known.names():
                name = self.numbers.get(_key(known.outputs[k]))
                value = self.numbers.get(_key(known.inputs[at] if at >= 0 else known.outputs[-1 - at]))
                if name is not None and value is not None and name != value:
                    joins.append((name, value, holds))
        return joins

    def connected(self, inputs: Sequence[Connection], surely: bool = False) -> list[Connection]:
        """Whether the names depend on what is watched: where they are one that is followed and does."""
        sums: Sums[int, Tensor] = Sums({}, lambda n: self.outputs[n])
        for name, value, holds in self.joined():
            sums.join(name, value, holds)
        connections: list[Connection] = list(inputs)
        with _early(self.trace):
            for n in range(len(inputs)):
                if n in self.followed:
                    continue
                flags: list[Tensor] = []
                for other, holds in sums.same(n).items():
                    if other in self.followed and (depends := inputs[other]) is not False:
                        flags += [holds()] if depends is True else [ops.logical_and(holds(), flag) for flag in depends]
                connections[n] = tuple(flags) if flags else False
        return connections
