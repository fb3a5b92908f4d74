"""Fewer nodes with the same results: equal ones once, transposes that cancel gone, weights turned once and for all.

Our layouts have channels last, those of ONNX's convolutions first. Each convolution comes with a transpose before and
one behind it; then comes, in most networks, a bias and an activation, and the next convolution. So a transpose moves
down through elementwise nodes until it meets its inverse.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from twofold.ir.dims import Dim, DimLike

from .export_writer import Block, OnnxNode

__all__ = ["simplify"]

_UNARY = frozenset({"Relu", "Elu", "Selu", "Sigmoid", "Tanh", "Gelu", "LeakyRelu", "Softsign", "Exp", "Log", "Neg",
                    "Abs", "Sqrt", "Reciprocal", "Erf", "Floor", "Ceil", "Round", "Cast", "Not", "Identity", "IsNaN",
                    "IsInf"})
_BINARY = frozenset({"Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Where", "Greater", "Less", "GreaterOrEqual",
                     "LessOrEqual", "Equal", "And", "Or"})
_REDUCING = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin")
_MOVING = _UNARY | _BINARY | {"Concat", "Transpose", *_REDUCING}
_SLICED = ("Add", "Sub", "Mul")
_ROUNDS = 20


def simplify(nodes: list[OnnxNode], initializers: dict[str, np.ndarray], inputs: Collection[str],
             outputs: Sequence[str], shapes: Mapping[str, Sequence[DimLike]]) -> None:
    """Improves the nodes of a model in place.

    Args:
        nodes: those of the model.
        initializers: may get more.
        inputs: names whose values callers give, though they may have an initializer.
        outputs: names that must stay.
        shapes: of values, where they are known.
    """
    _Simplifier(nodes, initializers, set(inputs), list(outputs), shapes).run()


class _Simplifier:
    def __init__(self, nodes: list[OnnxNode], initializers: dict[str, np.ndarray], inputs: set[str],
                 outputs: list[str], shapes: Mapping[str, Sequence[DimLike]]) -> None:
        self.shapes = shapes
        self.nodes, self.initializers, self.inputs, self.outputs = nodes, initializers, inputs, outputs
        self.taken = {name for node in _every(nodes) for name in (*node.outputs, *node.inputs, node.name)}

    def run(self) -> None:
        for _ in range(_ROUNDS):
            changed = self.merge_equal()
            changed |= self.fold_constants()
            changed |= self.cancel()
            changed |= self.move_down()
            changed |= self.slice_behind()
            changed |= self.drop_unused()
            changed |= self.drop_results()
            if not changed:
                break
        self.in_blocks()
        self.drop_initializers()

    def in_blocks(self) -> None:
        """In the bodies of loops and branches, equal nodes are one, slices are behind, and unused nodes are none."""
        for node in self.nodes:
            for block in node.attrs.values():
                if isinstance(block, Block):
                    inner = _Simplifier(block.nodes, {}, set(), [r.name for r, _ in block.outputs], self.shapes)
                    while inner.merge_equal() | inner.slice_behind() | inner.drop_unused() | inner.drop_results():
                        pass
                    inner.in_blocks()

    # -- who makes and reads what -------------------------------------------------------------------
    def makers(self) -> dict[str, OnnxNode]:
        return {name: node for node in self.nodes for name in node.outputs}

    def readers(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for node in _every(self.nodes):
            for name in node.inputs:
                counts[name] = counts.get(name, 0) + 1
            for value in node.attrs.values():
                if isinstance(value, Block):
                    for r, _ in value.outputs:
                        counts[r.name] = counts.get(r.name, 0) + 1
        for name in self.outputs:
            counts[name] = counts.get(name, 0) + 1
        return counts

    def replace(self, names: dict[str, str]) -> None:
        """Lets everybody read other values."""
        for node in _every(self.nodes):
            node.inputs = [names.get(n, n) for n in node.inputs]

    # -- rules ----------------------------------------------------------------------------------------
    def merge_equal(self) -> bool:
        """Equal nodes outside of blocks."""
        first: dict[Any, OnnxNode] = {}
        names: dict[str, str] = {}
        kept = []
        for node in self.nodes:
            node.inputs = [names.get(n, n) for n in node.inputs]
            key = _key(node)
            before = None if key is None else first.setdefault(key, node)
            if before is None or before is node or set(node.outputs) & set(self.outputs):
                kept.append(node)
            else:
                names.update(zip(node.outputs, before.outputs, strict=True))
        if not names:
            return False
        self.nodes[:] = kept
        self.replace(names)
        return True

    def fold_constants(self) -> bool:
        """Transposes of constants."""
        changed = False
        for node in list(self.nodes):
            if node.kind != "Transpose" or node.outputs[0] in self.outputs:
                continue
            name = node.inputs[0]
            if name in self.initializers and name not in self.inputs:
                made = np.ascontiguousarray(self.initializers[name].transpose(node.attrs["perm"]))
                turned = self.fresh(f"{name}_transposed")
                self.initializers[turned] = made
                self.nodes.remove(node)
                self.replace({node.outputs[0]: turned})
                changed = True
        return changed

    def cancel(self) -> bool:
        """A transpose of a transpose is one, or none; identities that nobody sees are none."""
        makers, names, changed = self.makers(), dict[str, str](), False
        for node in self.nodes:
            if node.kind == "Transpose":
                before = makers.get(node.inputs[0])
                if before is not None and before.kind == "Transpose":
                    node.inputs[0] = before.inputs[0]
                    node.attrs = {**node.attrs, "perm": [before.attrs["perm"][p] for p in node.attrs["perm"]]}
                    changed = True
                if node.attrs["perm"] == list(range(len(node.attrs["perm"]))):
                    changed |= self.pass_on(node, names)
            elif node.kind == "Identity":
                changed |= self.pass_on(node, names)
        final = {k: _last(k, names) for k in names}
        self.replace(final)
        return changed

    def pass_on(self, node: OnnxNode, names: dict[str, str]) -> bool:
        """Lets readers of a node's result read its operand."""
        if node.outputs[0] in self.outputs:
            node.kind, node.attrs = "Identity", {}
            return False
        names[node.outputs[0]] = node.inputs[0]
        return True

    def move_down(self) -> bool:
        """op(transpose(x), ...) -> transpose(op(x, ...)), where other operands are such transposes or can be turned."""
        makers, users, changed = self.makers(), self.users(), False
        for node in list(self.nodes):
            if node.kind not in _MOVING or node.kind == "Transpose":
                continue
            turned = [makers[n] for n in node.inputs if n in makers and makers[n].kind == "Transpose"]
            if not turned or not self.may_move(turned, users):
                continue
            perm = turned[0].attrs["perm"]
            if node.kind in _REDUCING:
                changed |= self.reduce_before(node, turned[0], perm)
            else:
                changed |= self.turn_behind(node, makers, perm)
        return changed

    def turn_behind(self, node: OnnxNode, makers: dict[str, OnnxNode], perm: list[int]) -> bool:
        """Puts the transpose behind the node."""
        if not all(self.can_turn(n, makers, perm, node.kind) for n in node.inputs):
            return False
        operands = [self.without(node, n, makers, perm) for n in node.inputs]
        inner = self.fresh(f"{node.outputs[0]}_inner")
        behind = OnnxNode("Transpose", [inner], list(node.outputs), {"perm": perm}, self.fresh(f"{node.name}_turn"),
                          node.place)
        node.inputs, node.outputs = operands, [inner]
        if node.kind == "Concat":
            node.attrs = {**node.attrs, "axis": perm[node.attrs["axis"]]}
        self.nodes.insert(self.nodes.index(node) + 1, behind)
        makers[inner], makers[behind.outputs[0]] = node, behind
        return True

    def reduce_before(self, node: OnnxNode, turn: OnnxNode, perm: list[int]) -> bool:
        """A reduction without the transpose before it, where the axes that are left keep their order."""
        axes = self.initializers.get(node.inputs[1]) if len(node.inputs) > 1 else None
        if axes is None or node.attrs.get("keepdims", 1):
            return False
        left = [perm[a] for a in range(len(perm)) if a not in axes]
        if left != sorted(left):
            return False
        inner = self.fresh(f"{node.name}_axes")
        self.initializers[inner] = np.array(sorted(perm[a] for a in axes), np.int64)
        node.inputs = [turn.inputs[0], inner]
        return True

    def may_move(self, turned: Sequence[OnnxNode], users: dict[str, list[OnnxNode | None]]) -> bool:
        """Whether the operands are turned alike, and whoever else reads them can do without the transpose, too."""
        alike = all(t.attrs["perm"] == turned[0].attrs["perm"] for t in turned)
        return alike and all(user is not None and user.kind in _MOVING for t in turned
                             for user in users.get(t.outputs[0], ()))

    def users(self) -> dict[str, list[OnnxNode | None]]:
        """Who reads each value; None for outputs and blocks."""
        users: dict[str, list[OnnxNode | None]] = {}
        for node in self.nodes:
            for name in node.inputs:
                users.setdefault(name, []).append(node)
            for inner in _every([node])[1:]:
                for name in inner.inputs:
                    users.setdefault(name, []).append(None)
            for value in node.attrs.values():
                if isinstance(value, Block):
                    for r, _ in value.outputs:
                        users.setdefault(r.name, []).append(None)
        for name in self.outputs:
            users.setdefault(name, []).append(None)
        return users

    def can_turn(self, name: str, makers: dict[str, OnnxNode], perm: Sequence[int], kind: str) -> bool:
        """Whether there is an operand that stands for this one before the transpose."""
        made = makers.get(name)
        if made is not None and made.kind == "Transpose":
            return True
        if kind == "Concat":
            return False
        array = self.initializers.get(name)
        if array is not None and name not in self.inputs:
            return array.ndim <= len(perm)
        sizes = self.shapes.get(name)
        plain = sizes is not None and not any(isinstance(d, Dim) for d in sizes)
        return plain and len(sizes or ()) <= len(perm) and sum(d != 1 for d in sizes or ()) <= 1

    def without(self, node: OnnxNode, name: str, makers: dict[str, OnnxNode], perm: Sequence[int]) -> str:
        """The operand before the transpose: what was transposed, a constant turned back, a vector along its axis."""
        made = makers.get(name)
        if made is not None and made.kind == "Transpose":
            return made.inputs[0]
        array = self.initializers.get(name)
        if array is not None and name not in self.inputs:
            if array.size == 1 and array.ndim <= 1:
                return name
            wide = array.reshape((1,) * (len(perm) - array.ndim) + array.shape)
            turned = self.fresh(f"{name}_transposed")
            self.initializers[turned] = np.ascontiguousarray(wide.transpose(np.argsort(perm)))
            return turned
        sizes = self.shapes[name]
        full = [1] * (len(perm) - len(sizes)) + [int(d) for d in sizes]  # type: ignore[arg-type]
        shape = self.fresh(f"{name}_shape")
        self.initializers[shape] = np.array([full[a] for a in np.argsort(perm)], np.int64)
        along = self.fresh(f"{name}_along")
        self.nodes.insert(self.nodes.index(node), OnnxNode("Reshape", [name, shape], [along], {}, along, node.place))
        return along

    def slice_behind(self) -> bool:
        """op(slice(x), slice(y)) -> slice(op(x, y)), where several ops take other parts of the same two.

        So are the gates of recurrent layers computed, in each step: a runtime takes its time for every node.
        """
        makers, groups = self.makers(), dict[tuple[str, ...], list[tuple[OnnxNode, list[str]]]]()
        for node in self.nodes:
            parts = [makers[n] for n in node.inputs if n in makers and makers[n].kind == "Slice"]
            if node.kind not in _SLICED or len(parts) != 2 or parts[0].inputs[1:] != parts[1].inputs[1:]:
                continue
            x, y = [part.inputs[0] for part in parts]
            if x in self.shapes and self.shapes[x] == self.shapes.get(y):
                groups.setdefault((node.kind, x, y), []).append((node, parts[0].inputs[1:]))
        several = {key: members for key, members in groups.items() if len(members) > 1}
        for (kind, x, y), members in several.items():
            first = members[0][0]
            whole = self.fresh(f"{first.name}_whole")
            self.nodes.insert(self.nodes.index(first), OnnxNode(kind, [x, y], [whole], {}, whole, first.place))
            for node, places in members:
                node.kind, node.inputs, node.name = "Slice", [whole, *places], self.fresh(f"{node.name}_part")
        return bool(several)

    def drop_unused(self) -> bool:
        readers = self.readers()
        kept = []
        for node in reversed(self.nodes):
            if any(readers.get(n) for n in node.outputs):
                kept.append(node)
                continue
            for inner in _every([node]):
                for name in inner.inputs:
                    readers[name] -= 1
        changed = len(kept) != len(self.nodes)
        self.nodes[:] = kept[::-1]
        return changed

    def drop_results(self) -> bool:
        """Of branches the results that nobody reads, of loops those that no other needs.

        The passes leave them where making them may fail, as in the compiled function it must.
        """
        changed, readers = False, self.readers()
        for node in self.nodes:
            if node.kind == "If":
                live = [k for k, name in enumerate(node.outputs) if readers.get(name)]
                blocks = [node.attrs["then_branch"], node.attrs["else_branch"]]
                first = 0
            elif node.kind == "Loop":
                live = _carried(node, readers)
                blocks = [node.attrs["body"]]
                first = 1
            else:
                continue
            if len(live) == len(node.outputs):
                continue
            node.outputs = [node.outputs[k] for k in live]
            for block in blocks:
                block.outputs = [*block.outputs[:first], *[block.outputs[first + k] for k in live]]
            if node.kind == "Loop":
                carried = [2 + k for k in live if 2 + k < len(node.inputs)]  # behind them comes what rounds only give
                node.inputs = [*node.inputs[:2], *[node.inputs[k] for k in carried]]
                blocks[0].inputs = [*blocks[0].inputs[:2], *[blocks[0].inputs[k] for k in carried]]
            changed = True
        return changed

    def drop_initializers(self) -> None:
        readers = self.readers()
        for name in list(self.initializers):
            if not readers.get(name) and name not in self.inputs:
                del self.initializers[name]

    def fresh(self, wanted: str) -> str:
        tried, n = wanted, 1
        while tried in self.taken or tried in self.initializers:
            tried, n = f"{wanted}_{n}", n + 1
        self.taken.add(tried)
        return tried


def _key(node: OnnxNode) -> Any:
    """What two nodes share that give the same; None for nodes with blocks."""
    if any(isinstance(v, Block) for v in node.attrs.values()):
        return None
    return node.kind, tuple(node.inputs), len(node.outputs), repr(sorted(node.attrs.items()))


def _carried(node: OnnxNode, readers: Mapping[str, int]) -> list[int]:
    """The numbers of the results that a loop must have: those that are read behind it, and what they need."""
    body = node.attrs["body"]
    live = {k for k, name in enumerate(node.outputs) if readers.get(name)}
    while True:
        wanted = {body.outputs[0][0].name, *[body.outputs[1 + k][0].name for k in live]}
        for inner in reversed(body.nodes):
            if not wanted.isdisjoint(inner.outputs):
                for each in _every([inner]):
                    wanted.update(each.inputs)
                    wanted.update(r.name for b in each.attrs.values() if isinstance(b, Block) for r, _ in b.outputs)
        more = {k for k, (r, _) in enumerate(body.inputs[2:]) if r.name in wanted} - live
        if not more:
            return sorted(live)
        live |= more


def _last(name: str, names: dict[str, str]) -> str:
    while name in names:
        name = names[name]
    return name


def _every(nodes: Sequence[OnnxNode]) -> list[OnnxNode]:
    every: list[OnnxNode] = []
    for node in nodes:
        every.append(node)
        for value in node.attrs.values():
            if isinstance(value, Block):
                every += _every(value.nodes)
    return every
