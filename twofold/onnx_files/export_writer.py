"""ONNX nodes while they are written: values with dtypes, constants, sizes, and the blocks that control flow needs.

A `Writer` is told of nodes one after another and names what they give. It knows three things that every meaning of an
op needs: constants become initializers of the model, equal ones once; unknown sizes are computed from the shapes of
values that are there; and a dtype for which runtimes have no kernel of an operator takes a way by another one, in
which nothing is lost (`_DETOURS`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir.dim_expr import Atom, terms_of
from twofold.ir.dims import Dim, DimLike
from twofold.ir.dtypes import DType

from .types import ELEMENT_TYPES

__all__ = ["Block", "NoMeaning", "OnnxNode", "Ref", "Writer", "require_real"]


class NoMeaning(Exception):
    """Something has no meaning in ONNX.

    Attributes:
        why: what is missing.
        instead: what a user can do.
    """

    def __init__(self, why: str, instead: str) -> None:
        super().__init__(why, instead)
        self.why, self.instead = why, instead

    def __str__(self) -> str:
        return self.why


def require_real(*dtypes: DType) -> None:
    """Raises NoMeaning for complex numbers."""
    if any(d.is_complex for d in dtypes):
        raise NoMeaning("ONNX has no arithmetic of complex numbers",
                        "keep real and imaginary parts in tensors of their own")


@dataclass(frozen=True)
class Ref:
    """A value of the model under construction: its name and its dtype."""

    name: str
    dtype: DType


@dataclass(eq=False)
class OnnxNode:
    """One node of ONNX.

    Attributes:
        kind: the operator.
        inputs, outputs: names; an empty one stands for an input that is left out.
        attrs: numbers, texts, lists of these, arrays, or blocks.
        name: of the node, unique in the model.
        place: the user's line.
    """

    kind: str
    inputs: list[str]
    outputs: list[str]
    attrs: dict[str, Any]
    name: str
    place: str


@dataclass(eq=False)
class Block:
    """The body of an `If`, a `Loop` or a `Scan`: a graph whose nodes also read values from around it.

    Attributes:
        inputs, outputs: each with its sizes.
    """

    name: str
    inputs: list[tuple[Ref, Sequence[DimLike]]]
    nodes: list[OnnxNode]
    outputs: list[tuple[Ref, Sequence[DimLike]]] = field(default_factory=list)


_INT32 = dict.fromkeys((dt.int8, dt.int16, dt.uint8, dt.uint16), dt.int32)
_INT64 = {**dict.fromkeys((dt.int8, dt.int16, dt.uint8, dt.uint16, dt.uint32), dt.int64), dt.uint64: dt.int64}
_SHORT = {dt.int16: dt.int32, dt.uint16: dt.int32}
_BF16 = {dt.bfloat16: dt.float32}
_WRAPPING = {**_INT64, **_BF16}  # sums and products modulo a power of two are the same in 64 bits
_MOVED = {**_SHORT, dt.uint64: dt.int64, dt.uint32: dt.int64, dt.bool_: dt.int32, **_BF16}
# Operator -> dtype -> the dtype in which it is computed instead, for kernels that runtimes lack or ONNX has not. The
# casts lose nothing, and what wraps around does so in the cast back.
_DETOURS: dict[str, dict[DType, DType]] = {
    "Where": _MOVED, "Expand": _BF16, "Pad": _MOVED, "Range": {**_INT64, dt.int16: dt.int32, **_BF16},
    "ReduceSum": _WRAPPING, "ReduceProd": _WRAPPING, "CumSum": _WRAPPING, "CumProd": _WRAPPING, "MatMul": _WRAPPING,
    "ReduceMax": {**_SHORT, dt.uint32: dt.int64, **_BF16}, "ReduceMin": {**_SHORT, dt.uint32: dt.int64, **_BF16},
    "ArgMax": {**_SHORT, dt.uint32: dt.int64, **_BF16}, "ArgMin": {**_SHORT, dt.uint32: dt.int64, **_BF16},
    "TopK": {dt.uint16: dt.int32, dt.uint32: dt.int64, **_BF16},
    "Max": {**_SHORT, **_BF16}, "Min": {**_SHORT, **_BF16}, "Clip": {**_SHORT, **_BF16}, "Relu": {**_INT32, **_BF16},
    "MaxPool": {**_SHORT, **_BF16}, "Unique": {**dict.fromkeys((*_INT64, dt.int32), dt.int64), **_BF16},
    "Trilu": _MOVED, "Pow": {**_INT32, dt.uint32: dt.int64, dt.uint64: dt.int64, **_BF16},
    "GatherND": _BF16, "ScatterElements": _BF16, "ScatterND": _BF16, "Tile": _BF16,
}
# Operator -> the number of its results that are values, before those that are indices, which no detour changes.
_INDICES = {"ArgMax": 0, "ArgMin": 0, "TopK": 1, "Unique": 1, "MaxPool": 1}


class Writer:
    """Collects the nodes of a model.

    Attributes:
        opset: the version of ONNX's operators.
        initializers: constants by name.
        place, prefix: the user's line, and the beginning of names, of the node that is being written.
        unchecked: the lines of assertions, which have no operator.
        shapes: the sizes of values that stand for those of the graph, by name.
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.initializers: dict[str, np.ndarray] = {}
        self.place, self.prefix = "", ""
        self.unchecked: list[str] = []
        self.shapes: dict[str, Sequence[DimLike]] = {}
        self._taken: set[str] = set()
        self._constants: dict[tuple[Any, ...], Ref] = {}
        self._blocks: list[list[OnnxNode]] = [[]]
        self._frames: list[_Frame] = [_Frame()]

    @property
    def nodes(self) -> list[OnnxNode]:
        """The nodes of the block that is being written."""
        return self._blocks[-1]

    # -- names ------------------------------------------------------------------------------------
    def name(self, wanted: str) -> str:
        """A name that nothing has yet, in the whole model: `wanted`, or with a number behind it."""
        tried, n = wanted, 1
        while tried in self._taken:
            tried, n = f"{wanted}_{n}", n + 1
        self._taken.add(tried)
        return tried

    # -- nodes ------------------------------------------------------------------------------------
    def op(self, kind: str, *inputs: Ref | None, dtype: DType | None = None, **attrs: Any) -> Ref:
        """Writes a node with one result.

        Args:
            kind: the operator.
            inputs: its operands; None for one that is left out.
            dtype: of the result; by default that of the first operand.
            attrs: its attributes.
        """
        return self.several(kind, inputs, [dtype], **attrs)[0]

    def several(self, kind: str, inputs: Sequence[Ref | None], dtypes: Sequence[DType | None],
                **attrs: Any) -> list[Ref]:
        """Writes a node with a result for each of `dtypes`, None for the dtype of the first operand."""
        first = next((x.dtype for x in inputs if x is not None), None)
        detours = _DETOURS.get(kind, {})
        results = [first if d is None else d for d in dtypes]
        ways = [None if d is None else detours.get(d, d) for d in results]
        given = [None if x is None else self.cast(x, detours.get(x.dtype, x.dtype)) for x in inputs]
        if kind == "Where":
            given[0] = inputs[0]
        indices = _INDICES.get(kind, len(results))
        ways[indices:] = results[indices:]
        made = self._written(kind, given, ways, attrs)
        return [self.cast(r, d) if d is not None else r for r, d in zip(made, results, strict=True)]

    def _written(self, kind: str, inputs: Sequence[Ref | None], dtypes: Sequence[DType | None],
                 attrs: dict[str, Any]) -> list[Ref]:
        name = self.name(f"{self.prefix}/{kind}" if self.prefix else kind)
        results = [name] if len(dtypes) == 1 else [self.name(f"{name}:{n}") for n in range(len(dtypes))]
        outputs = [Ref(r, d) for r, d in zip(results, dtypes, strict=True)]  # type: ignore[arg-type]
        names = ["" if x is None else x.name for x in inputs]
        while names and not names[-1]:
            names.pop()
        kept = {k: v for k, v in attrs.items() if v is not None}
        self.nodes.append(OnnxNode(kind, names, [r.name for r in outputs], kept, name, self.place))
        return outputs

    def cast(self, x: Ref, dtype: DType) -> Ref:
        """`x` as ONNX converts it; itself where it is of the dtype already."""
        if x.dtype is dtype:
            return x
        return self._written("Cast", [x], [dtype], {"to": ELEMENT_TYPES[dtype]})[0]

    # -- constants --------------------------------------------------------------------------------
    def constant(self, value: Any, dtype: DType) -> Ref:
        """A constant; equal ones are kept once."""
        array = np.array(value, dtype.np)
        text = array.tobytes() if dtype is not dt.string else repr(array.tolist())
        key = (dtype, array.shape, text)
        if key not in self._constants:
            stem = f"const_{array.item()}" if array.ndim == 0 and dtype is not dt.string else "const"
            self._constants[key] = self.initializer(stem, array, dtype)
        return self._constants[key]

    def initializer(self, wanted: str, array: np.ndarray, dtype: DType) -> Ref:
        """A constant with a name of its own."""
        name = self.name(wanted)
        self.initializers[name] = array
        return Ref(name, dtype)

    def value_of(self, x: Ref) -> np.ndarray | None:
        """The array of a constant; None for any other value."""
        return self.initializers.get(x.name)

    def ints(self, values: Sequence[int]) -> Ref:
        """A vector of int64."""
        return self.constant(list(values), dt.int64)

    # -- sizes ------------------------------------------------------------------------------------
    def bind(self, dims: Sequence[DimLike], value: Ref) -> None:
        """Notes where symbols can be read that stand alone in the dimensions of a value."""
        for axis, d in enumerate(dims):
            if isinstance(d, Dim) and (symbol := d.name_alone()) is not None and not self._is_bound(symbol):
                self._frames[-1].sources[symbol] = (value, axis)

    def bind_value(self, symbol: str, value: Ref) -> None:
        """Notes that a symbol is the value of an integer scalar."""
        size = self.op("Reshape", self.cast(value, dt.int64), self.ints([1]))
        self._frames[-1].sources[symbol] = (size, None)

    def _is_bound(self, symbol: str) -> bool:
        return any(symbol in frame.sources for frame in self._frames)

    def size(self, d: DimLike) -> Ref:
        """A size as a vector of one int64."""
        if not isinstance(d, Dim):
            return self.ints([d])
        for frame in reversed(self._frames):
            if d in frame.sizes:
                return frame.sizes[d]
        made = self._computed(d)
        self._frames[-1].sizes[d] = made
        return made

    def shape(self, dims: Sequence[DimLike]) -> Ref:
        """Sizes as a vector of int64."""
        if not any(isinstance(d, Dim) for d in dims):
            return self.ints([int(d) for d in dims])  # type: ignore[arg-type]
        parts: list[Ref] = []
        known: list[int] = []
        for d in dims:
            if isinstance(d, Dim):
                if known:
                    parts.append(self.ints(known))
                    known = []
                parts.append(self.size(d))
            else:
                known.append(int(d))
        if known:
            parts.append(self.ints(known))
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def scalar_size(self, d: DimLike, dtype: DType = dt.int64) -> Ref:
        """A size as a scalar."""
        if not isinstance(d, Dim):
            return self.constant(d, dtype)
        return self.cast(self.op("Reshape", self.size(d), self.ints([])), dtype)

    def reshaped(self, x: Ref, dims: Sequence[DimLike]) -> Ref:
        """`x` in another shape; one size may be -1."""
        open_sizes = sum(isinstance(d, Dim) for d in dims)
        numbers = [int(d) for d in dims if not isinstance(d, Dim)]
        if -1 in numbers:
            return self.op("Reshape", x, self.shape(dims))
        if open_sizes == 1 and 0 not in numbers:
            return self.op("Reshape", x, self.ints([-1 if isinstance(d, Dim) else int(d) for d in dims]))
        return self.op("Reshape", x, self.shape(dims), allowzero=1 if open_sizes or 0 in numbers else None)

    def _computed(self, d: Dim) -> Ref:
        if (symbol := d.name_alone()) is not None:
            return self._symbol(symbol)
        total: Ref | None = None
        for mono, factor in terms_of(d):
            part = self._product(mono, factor)
            total = part if total is None else self.op("Add", total, part)
        assert total is not None
        return total

    def _product(self, mono: tuple[Atom, ...], factor: int) -> Ref:
        made: Ref | None = None if factor != 1 and mono else self.ints([factor])
        if mono:
            made = self._atom(mono[0])
            for atom in mono[1:]:
                made = self.op("Mul", made, self._atom(atom))
            if factor != 1:
                made = self.op("Mul", made, self.ints([factor]))
        assert made is not None
        return made

    def _atom(self, atom: Atom) -> Ref:
        if atom.kind == "sym":
            return self.size(dm.symbol(atom.name))
        a = self.size(atom.a)
        if atom.kind == "pos":
            return self.op("Max", a, self.ints([0]))
        b = self.size(atom.b)
        rest = self.op("Mod", a, b)  # of the sign of the divisor, so that the quotient is rounded down
        return self.op("Div", self.op("Sub", a, rest), b)

    def _symbol(self, symbol: str) -> Ref:
        for frame in reversed(self._frames):
            if symbol in frame.sources:
                value, axis = frame.sources[symbol]
                if axis is None:
                    return value
                return self.op("Shape", value, dtype=dt.int64, start=axis, end=axis + 1)
        raise NoMeaning(f"nothing tells the size {symbol}", "give the sizes in the signature")

    # -- blocks -----------------------------------------------------------------------------------
    @contextmanager
    def frame(self) -> Iterator[None]:
        """Sizes that are noted inside are forgotten at the end: for a region that is written more than once."""
        self._frames.append(_Frame())
        try:
            yield
        finally:
            self._frames.pop()

    @contextmanager
    def apart(self, sizes: Mapping[str, Ref]) -> Iterator[None]:
        """Inside, the symbols are those of another graph: these alone are known."""
        frames, self._frames = self._frames, [_Frame({name: (ref, None) for name, ref in sizes.items()})]
        try:
            yield
        finally:
            self._frames = frames

    @contextmanager
    def block(self, name: str, inputs: Sequence[tuple[Ref, Sequence[DimLike]]] = ()) -> Iterator[Block]:
        """Nodes inside are those of a block."""
        made = Block(self.name(name), list(inputs), [])
        self._blocks.append(made.nodes)
        try:
            with self.frame():
                yield made
        finally:
            self._blocks.pop()

    def own(self, values: Sequence[Ref]) -> list[Ref]:
        """The values as results of nodes of the current block, each once, as the outputs of a block must be."""
        here = {name for node in self.nodes for name in node.outputs}
        owned: list[Ref] = []
        for x in values:
            if x.name not in here or x in owned:
                x = self._written("Identity", [x], [x.dtype], {})[0]
            owned.append(x)
        return owned


@dataclass(eq=False)
class _Frame:
    """What is known of sizes in a part of the model: where symbols are read, and sizes that were computed."""

    sources: dict[str, tuple[Ref, int | None]] = field(default_factory=dict)
    sizes: dict[Dim, Ref] = field(default_factory=dict)
