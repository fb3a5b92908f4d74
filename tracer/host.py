"""Calls of Python from inside of a graph: `host` nodes, and the gradient of `tf.py_function`.

In eager execution such a call is just made. In a trace it is a node with an effect: it runs in every call of the
function, in program order, with tensors that have values. Results have the ranks that were declared; where only a
dtype is known, `set_shape` must tell the rank before anything else is done with them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from twofold.eager import convert, record
from twofold.eager.tape import GradientTape
from twofold.eager.tensor import Tensor, wrap
from twofold.ir import dims as dm
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir.dims import DimLike, Shape
from twofold.ir.recent import Recent
from twofold.ir.spec import ShapeLike, TensorShape, TensorSpec, spec

from .symbolic import SymbolicTensor
from .trace import Trace, current, location
from .types import Cotangent, PythonFunction, PythonValue

__all__ = ["call", "carried", "differentiable", "drop_unranked", "Unranked"]


class Unranked(SymbolicTensor):
    """A traced tensor of unknown rank, until `set_shape` is told."""

    __slots__ = ("_late",)

    _late: g.Value

    @property
    def value(self) -> g.Value:
        """The value in the graph."""
        if self._late.dims is None:
            self._no_value("it was computed by Python, and its rank is not known; give Tout as tf.TensorSpec, or call "
                           "set_shape first")
        return self._late

    @value.setter
    def value(self, value: g.Value) -> None:
        self._late = value

    @property
    def shape(self) -> TensorShape:
        """The shape as far as it is known."""
        return TensorShape(None) if self._late.dims is None else super().shape

    @property
    def dtype(self) -> dt.DType:
        """The element type."""
        return self._late.dtype

    def set_shape(self, shape: ShapeLike) -> None:
        """Set the shape; the rank must be known, sizes may be None."""
        static = TensorShape(shape)
        if self._late.dims is None and static.rank is not None:
            self._late.dims = tuple([self.trace.fresh("h") if d is None else d for d in static.dims or ()])
        elif static.rank is not None:
            super().set_shape(static)

    def __repr__(self) -> str:
        return f"<tf.Tensor 'host:{self._late.index}' shape={self.shape} dtype={self.dtype.name}>"

    __str__ = __repr__


def call(fn: PythonFunction, name: str, operands: Sequence[Tensor], results: Sequence[TensorSpec]) -> list[Tensor]:
    """The results of `fn` for tensors: now, or in every run of the function that is traced.

    Args:
        fn: called with eager tensors; gives a tuple or list of tensors or of what converts to them.
        name: its name in errors.
        operands: tensors.
        results: specs of its results; of unknown rank where a spec has none.
    """
    trace = current()
    if trace is None:
        returned = fn(*operands)
        return [convert.as_tensor(r, dtype=s.dtype) for r, s in zip(returned, results, strict=True)]
    return staged(trace, fn, name, operands, results)


def staged(trace: Trace, fn: PythonFunction, name: str, operands: Sequence[Tensor], results: Sequence[TensorSpec],
           smooth: bool = False) -> list[Tensor]:
    """A `host` node; recorders are not told.

    Args:
        smooth: whether gradients pass through `fn` when it runs under a tape.
    """
    outlines = [_Outline(None if s.dims is None else _own(trace, s.dims), s.dtype) for s in results]
    node = trace.graph.add(g.HOST, [trace.lift(t) for t in operands], {"fn": fn, "name": name, "smooth": smooth},
                           [spec(o.dims or (), o.dtype) for o in outlines], (), location())
    tensors: list[Tensor] = []
    for value, outline in zip(node.outputs, outlines, strict=True):
        if outline.dims is None:
            value.dims = None  # type: ignore[assignment]  # until `set_shape`; passes never see such a value
        tensor = SymbolicTensor.__new__(SymbolicTensor if outline.dims is not None else Unranked)
        tensor.value, tensor.trace = value, trace
        tensors.append(tensor)
    return tensors


def carried(tensor: Tensor, handle: Callable[[np.ndarray], Tensor]) -> bool:
    """Let a result of unknown rank go through the graph as the scalar string that `handle` gives for its array.

    Returns:
        False for all other tensors, which stay as they are.
    """
    if not isinstance(tensor, Unranked) or tensor._late.dims is not None:
        return False
    value = tensor._late
    node, at, dtype = value.node, value.index, value.dtype
    assert node is not None
    fn = node.attrs["fn"]

    def run(*tensors: Tensor) -> list[PythonValue]:
        results = list(fn(*tensors))
        results[at] = handle(convert.as_tensor(results[at], dtype=dtype)._array)
        return results
    node.attrs = {**node.attrs, "fn": run}
    value.dims, value.dtype = (), dt.string
    return True


def drop_unranked(graph: g.Graph) -> None:
    """Leave results out whose rank was never told: nothing can have used them."""
    for node in graph.walk():
        if node.op is g.HOST and any(v.dims is None for v in node.outputs):
            ranked = [i for i, v in enumerate(node.outputs) if v.dims is not None]
            node.attrs = {**node.attrs, "fn": _only(node.attrs["fn"], ranked)}
            node.outputs = [node.outputs[i] for i in ranked]
            for n, value in enumerate(node.outputs):
                value.index = n


def _only(fn: PythonFunction, numbers: Sequence[int]) -> PythonFunction:
    """`fn` with some of its results alone."""
    def call(*tensors: Tensor) -> list[PythonValue]:
        results = fn(*tensors)
        return [results[i] for i in numbers]
    return call


class _Outline:
    """Dtype and sizes of a result; dims are None where the rank is unknown."""

    __slots__ = ("dims", "dtype")

    def __init__(self, dims: Shape | None, dtype: dt.DType) -> None:
        self.dims, self.dtype = dims, dtype


def _own(trace: Trace, dims: Sequence[DimLike]) -> Shape:
    """Declared sizes, with a symbol of the trace for each that was given as None."""
    return tuple([trace.fresh("h") if isinstance(d, dm.Dim) and d.name_alone() == f"d{i}" else d
                  for i, d in enumerate(dims)])


def differentiable(fn: PythonFunction, name: str, operands: Sequence[Tensor],
                   results: Sequence[TensorSpec]) -> list[Tensor]:
    """Like `call`, with a gradient: tapes see through `fn` when it runs eagerly, and a trace calls its gradient."""
    trace = current()
    if trace is None:
        return call(fn, name, operands, results)
    if not record.active.get():
        return staged(trace, fn, name, operands, results, smooth=True)
    taped = _Taped(fn)
    *outputs, token = staged(trace, taped.forward, name, operands, [*results, TensorSpec((), dt.int64)])
    smooth = [i for i, t in enumerate(operands) if t.dtype.is_differentiable]
    wanted = [o for o, t in enumerate(results) if t.dtype.is_differentiable]

    def vjp(cts: Sequence[Cotangent]) -> list[Cotangent]:
        from twofold.ir.grad import zeros_like
        seeds = [zeros_like(outputs[o]) if (ct := cts[o]) is None else ct for o in wanted]
        specs = [TensorSpec(operands[i].dims, operands[i].dtype) for i in smooth]
        here = current()
        assert here is not None
        staged_gradients = staged(here, taped.backward(smooth, wanted), f"gradient of {name}", [token, *seeds], specs)
        gradients: list[Cotangent] = [None] * len(operands)
        for i, gradient in zip(smooth, staged_gradients, strict=True):
            gradients[i] = gradient
        return gradients
    record.record_custom(vjp, tuple(operands), tuple(outputs))
    return outputs


class _Taped:
    """A Python function that keeps the tape of each call until its gradient is asked for."""

    MOST = 256  # tapes whose gradient nobody asked for

    def __init__(self, fn: PythonFunction) -> None:
        self._fn = fn
        self._tapes: Recent[int, tuple[GradientTape, tuple[Tensor, ...], list[Tensor]]] = Recent(self.MOST)
        self._numbers = itertools.count()

    def forward(self, *tensors: Tensor) -> list[Tensor]:
        """The results, and the number of the tape."""
        with GradientTape() as tape:
            tape.watch(tensors)
            outputs = [convert.as_tensor(r) for r in self._fn(*tensors)]
        number = next(self._numbers)
        self._tapes.remember(number, (tape, tensors, outputs))
        return [*outputs, wrap(np.array(number, np.int64))]

    def backward(self, smooth: Sequence[int], wanted: Sequence[int]) -> Callable[..., list[Cotangent]]:
        """The function that gives the gradients of a call by those of its operands that have any."""
        def gradients(token: Tensor, *cts: Tensor) -> list[Cotangent]:
            tape, tensors, outputs = self._tapes.pop(int(token))
            return tape.gradient([outputs[o] for o in wanted], [tensors[i] for i in smooth], list(cts),
                                 unconnected_gradients="zero")
        return gradients
