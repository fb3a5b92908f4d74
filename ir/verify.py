"""Checking graphs: what must hold of any graph before and after a pass.

Checked are: operands are defined before their use and in the same graph; attributes are complete; each op's shape
rule accepts the operands and gives the outputs' types, up to new sizes that the op brings, assuming no more of
unknown sizes than the graph's guards say; symbols are bound before they are used, and once; regions fit their
construct. Whether a graph computes what was meant is not decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from twofold.ir.dims import DimLike
from twofold.ir.op import Op
from twofold.ir.types import Spec

from . import dims as dm
from . import dtypes as dt
from . import graph as g
from .dims import Dim
from .graph_text import node_text
from .symbols import alone, names_in

__all__ = ["verify", "VerifyError"]


class VerifyError(ValueError):
    """A graph that is not well-formed: an error of whoever made it, never of the user's program."""


def verify(graph: g.Graph, complete: bool = False) -> g.Graph:
    """`graph` itself, when it is well-formed.

    Args:
        complete: whether what ops assume of sizes beyond the guards is added to the guards of their graph or region,
            where running tests it, and is no error.
    Raises:
        VerifyError: what is wrong, with the node.

    >>> from twofold.ir.graph_text import parse
    >>> verify(parse("graph f(%0: f32[2]) { %1 = exp(%0) : f32[3] return %1 }"))
    Traceback (most recent call last):
      ...
    twofold.ir.verify.VerifyError: graph f: exp(f32[2]) : f32[3]: result 0 is f32[3]; the op gives f32[2]
    """
    _Checker(graph, frozenset(), dm.assumed(graph.guards), complete).check()
    return graph


class _Checker:
    def __init__(self, graph: g.Graph, outer: frozenset[str], recorder: dm.GuardRecorder,
                 complete: bool = False) -> None:
        """Args:
            outer: symbols that the surrounding graph binds.
            recorder: what is assumed of sizes.
            complete: whether further assumptions become guards.
        """
        self.graph = graph
        self.complete = complete
        self.outer = outer
        self.recorder = recorder
        self.bound = set(outer).union(*[alone(v.dims) for v in graph.inputs])
        self.defined: set[g.Value] = set()
        self.node: g.Node | None = None

    def fail(self, problem: str) -> NoReturn:
        at = "" if self.node is None else f"{node_text(self.node)}: "
        raise VerifyError(f"graph {self.graph.name}: {at}{problem}")

    def check(self) -> None:
        for i, value in enumerate(self.graph.inputs):
            if value.node is not None or value.index != i or value in self.defined:
                self.fail(f"input {i} is no input of its own at this place")
            self.defined.add(value)
        seen: set[int] = set()
        for node in self.graph.nodes:
            self.node = node
            if id(node) in seen:
                self.fail("the node is there twice")
            seen.add(id(node))
            self.check_node(node)
        self.node = None
        for i, value in enumerate(self.graph.outputs):
            if value not in self.defined:
                self.fail(f"output {i} is no value of this graph")

    def check_node(self, node: g.Node) -> None:
        for i, value in enumerate(node.inputs):
            if value not in self.defined:
                self.fail(f"operand {i} is not defined before")
        for value in node.outputs:
            if value.node is not node or node.outputs[value.index] is not value:
                self.fail("a result does not know its node")
        if not isinstance(node.op, g.Construct) or node.op is not g.CALL:
            self.symbols(names_in(node.attrs.values()), "its attributes")
        if isinstance(node.op, g.Construct):
            _CONSTRUCT[node.op](self, node)
        else:
            self.op(node)
        for value in node.outputs:
            self.bound |= {name for d in value.dims if isinstance(d, Dim) and (name := d.name_alone()) is not None}
        self.symbols(dm.symbols_of([d for v in node.outputs for d in v.dims]), "its results")
        self.defined.update(node.outputs)

    def symbols(self, names: frozenset[str], where: str) -> None:
        missing = names - self.bound
        if missing:
            self.fail(f"{where} use the size {min(missing)}, which is not bound before")

    # -- ops --------------------------------------------------------------------------------------
    def op(self, node: g.Node) -> None:
        op = node.op
        assert isinstance(op, Op)
        if list(node.attrs) != list(op.defaults):
            self.fail(f"attributes are {list(node.attrs)}; the op declares {list(op.defaults)}")
        if node.regions:
            self.fail("an op has no regions")
        if not op.variadic and len(node.inputs) != len(op.params):
            self.fail(f"{len(node.inputs)} operands; the op takes {len(op.params)}")
        before = len(self.recorder)
        with dm.recording(self.recorder):
            try:
                inferred = op.infer(op, *node.inputs, **node.attrs)
            except (ValueError, TypeError) as e:
                self.fail(f"the op rejects it: {e}")
        if len(self.recorder) > before and self.complete:
            self.graph.guards += self.recorder[before:]
        elif len(self.recorder) > before:
            self.fail(f"it assumes {self.recorder[-1]}, which the graph's guards do not say")
        specs = inferred if isinstance(inferred, tuple) else (inferred,)
        if len(specs) != len(node.outputs):
            self.fail(f"{len(node.outputs)} results; the op gives {len(specs)}")
        self.results(node, specs)

    def results(self, node: g.Node, specs: Sequence[Spec]) -> None:
        names = dm.symbols_of([d for v in node.inputs for d in v.dims]) | names_in(node.attrs.values())
        renamed: dict[str, DimLike] = {}
        for i, (value, spec) in enumerate(zip(node.outputs, specs, strict=True)):
            same = value.dtype is spec.dtype and len(value.dims) == len(spec.dims)
            for have, want in zip(value.dims, spec.dims, strict=False):
                if isinstance(want, Dim) and "dynamic" in node.op.traits:  # type: ignore[union-attr]
                    name = want.name_alone()
                    if name is not None and name not in names:
                        renamed.setdefault(name, have)
                    want = want.substitute(renamed)
                same = same and self.equal(have, want)
            if not same:
                text = f"{spec.dtype.short}[{','.join(map(str, spec.dims))}]"
                self.fail(f"result {i} is {value.spec.short()}; the op gives {text}")

    def equal(self, a: DimLike, b: DimLike) -> bool:
        difference = a - b
        return difference == 0 if type(difference) is int else self.recorder.known("zero", difference) is True

    # -- constructs -------------------------------------------------------------------------------
    def attrs(self, node: g.Node, **kinds: type | tuple[type, ...]) -> None:
        for name, kind in kinds.items():
            if name not in node.attrs or not isinstance(node.attrs[name], kind):
                self.fail(f"attribute {name!r} is missing or of another kind")

    def shape(self, node: g.Node, operands: int | None, results: int | None) -> None:
        if operands is not None and len(node.inputs) != operands:
            self.fail(f"{len(node.inputs)} operands; {operands} are expected")
        if results is not None and len(node.outputs) != results:
            self.fail(f"{len(node.outputs)} results; {results} are expected")
        if len(node.regions) != node.op.regions:  # type: ignore[union-attr]
            self.fail(f"{len(node.regions)} regions; {node.op.regions} are expected")  # type: ignore[union-attr]

    def constant(self, node: g.Node) -> None:
        self.shape(node, 0, 1)
        self.attrs(node, value=np.ndarray)
        array, out = node.attrs["value"], node.outputs[0]
        if out.dims != array.shape or dt.from_numpy(array.dtype) is not out.dtype:
            self.fail(f"the constant is {array.dtype}{list(array.shape)}")

    def size(self, node: g.Node) -> None:
        self.shape(node, 0, 1)
        self.attrs(node, size=(int, Dim), dtype=dt.DType)
        if node.outputs[0].dims != () or node.outputs[0].dtype is not node.attrs["dtype"]:
            self.fail("a size is a scalar of its dtype")

    def bind(self, node: g.Node) -> None:
        self.shape(node, 1, 0)
        self.attrs(node, symbol=str)
        if node.inputs[0].dims != () or not node.inputs[0].dtype.is_integer:
            self.fail("a size is bound to an integer scalar")
        if node.attrs["symbol"] in self.bound:
            self.fail(f"the size {node.attrs['symbol']} is bound already")
        self.bound.add(node.attrs["symbol"])

    def cond(self, node: g.Node) -> None:
        self.shape(node, None, None)
        if not node.inputs or node.inputs[0].dims != () or not node.inputs[0].dtype.is_bool:
            self.fail("the predicate must be a bool scalar")
        for region in node.regions:
            self.region(region, node.inputs[1:])
            self.fits(region.outputs, node.outputs, f"results of {region.name}")

    def loop(self, node: g.Node) -> None:
        self.shape(node, None, None)
        self.attrs(node, carried=int)
        test, body = node.regions
        count = node.attrs["carried"]
        if not 0 <= count <= len(node.inputs):
            self.fail(f"carried is {count}; there are {len(node.inputs)} operands")
        for region in node.regions:
            self.region(region, node.inputs)
        if len(test.outputs) != 1 or test.outputs[0].dims != () or not test.outputs[0].dtype.is_bool:
            self.fail("the test must give one bool scalar")
        changing = frozenset(alone([d for v in body.inputs for d in v.dims])) - self.bound  # sizes that rounds change
        self.fits(body.outputs, body.inputs[:count], "results of the body", changing)
        self.fits(body.outputs, node.outputs, "results", changing)
        self.fits(node.inputs[:count], node.outputs, "first values")

    def call(self, node: g.Node) -> None:
        self.shape(node, None, None)
        self.attrs(node, sizes=tuple)
        sizes = dict(node.attrs["sizes"])
        self.symbols(names_in(sizes.values()), "its sizes")
        callee = node.regions[0]
        inner = _Checker(callee, frozenset(sizes), dm.assumed(callee.guards), self.complete)
        self.fits(node.inputs, callee.inputs, "operands", frozenset(callee.symbols() | set(sizes)))
        for i, (operand, value) in enumerate(zip(node.inputs, callee.inputs, strict=True)):
            own = [not dm.symbols_of((d,)) <= sizes.keys() for d in value.dims]  # the callee binds it by a value
            wanted = dm.substitute(value.dims, sizes)
            if not all(x or self.equal(a, b) for a, b, x in zip(operand.dims, wanted, own, strict=True)):
                self.fail(f"operand {i} is {operand.spec.short()}; with the sizes of the call the callee takes "
                          f"{value.spec.substitute(sizes).short()}")
        inner.check()
        self.fits(callee.outputs, node.outputs, "results of the callee", frozenset(inner.bound))

    def host(self, node: g.Node) -> None:
        self.shape(node, None, None)
        if not callable(node.attrs.get("fn")):
            self.fail("attribute 'fn' is missing")

    def assertion(self, node: g.Node) -> None:
        self.shape(node, None, 0)
        if not node.inputs or node.inputs[0].dims != () or not node.inputs[0].dtype.is_bool:
            self.fail("the condition must be a bool scalar")

    def custom(self, node: g.Node) -> None:
        self.shape(node, None, None)
        self.attrs(node, results=int, inputs=int, given=tuple)
        count = node.attrs["results"]
        if count + node.attrs["inputs"] > len(node.inputs) or len(node.attrs["given"]) != node.attrs["inputs"]:
            self.fail("its operands are fewer than its attributes say")
        self.fits(node.inputs[:count], node.outputs, "results")
        self.inside(node.regions[0])

    def push(self, node: g.Node) -> None:
        self.shape(node, 3, 1)
        self.stack(node, node.outputs[0], node.inputs[1], node.inputs[2])

    def pop(self, node: g.Node) -> None:
        self.shape(node, 2, 1)
        self.attrs(node, dims=tuple)
        self.stack(node, node.inputs[0], node.outputs[0], node.inputs[1])

    def stack(self, node: g.Node, stack: g.Value, value: g.Value, at: g.Value) -> None:
        if len(stack.dims) != 1 or not stack.dtype is node.inputs[0].dtype is value.dtype:
            self.fail("a stack is a vector of what is put on it")
        if at.dims != () or at.dtype is not dt.int64:
            self.fail("a place in a stack is an int64 scalar")
        if node.attrs.get("told", 0) not in (0, 1):
            self.fail("before an item of a stack there is one element or none that tells of its cotangent")

    def region(self, region: g.Graph, operands: Sequence[g.Value]) -> None:
        self.fits(operands, region.inputs, f"operands of {region.name}")
        self.inside(region)

    def inside(self, region: g.Graph) -> None:
        """Checks a region, whose own guards hold in it."""
        recorder = dm.assumed([*self.recorder, *region.guards]) if region.guards or self.complete else self.recorder
        _Checker(region, frozenset(self.bound), recorder, self.complete).check()

    def fits(self, have: Sequence[g.Value], wanted: Sequence[g.Value], what: str,
             foreign: frozenset[str] = frozenset()) -> None:
        """Dtypes and ranks agree, and no size is known to differ; symbols in `foreign` may stand for any."""
        if len(have) != len(wanted):
            self.fail(f"{what}: {len(have)}, where {len(wanted)} are expected")
        for i, (a, b) in enumerate(zip(have, wanted, strict=True)):
            fit = a.dtype is b.dtype and len(a.dims) == len(b.dims)
            if not fit or any(self.differ(x, y, foreign) for x, y in zip(a.dims, b.dims, strict=True)):
                self.fail(f"{what}: number {i} is {a.spec.short()}, where {b.spec.short()} is expected")

    def differ(self, a: DimLike, b: DimLike, foreign: frozenset[str]) -> bool:
        if a == b or foreign and dm.symbols_of((a, b)):
            return False
        difference = a - b
        return difference != 0 if type(difference) is int else self.recorder.known("zero", difference) is False


_CONSTRUCT = {g.CONSTANT: _Checker.constant, g.SIZE: _Checker.size, g.BIND: _Checker.bind, g.COND: _Checker.cond,
              g.WHILE: _Checker.loop, g.CALL: _Checker.call, g.HOST: _Checker.host, g.ASSERT: _Checker.assertion,
              g.CUSTOM: _Checker.custom, g.PUSH: _Checker.push, g.POP: _Checker.pop}
