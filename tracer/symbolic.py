"""`SymbolicTensor`, which stands for a tensor while a function is traced.

It is a `Tensor` without a value: dtype and shape are known, sizes may be unknown, and ops on it become nodes of the
trace's graph. Asking for its value is an error that names the user's line; the tracer turns it into a fallback.
What follows of the elements of small integer tensors is `tracer/contents.py`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np

from twofold.eager.tensor import Tensor
from twofold.eager.variable import Variable
from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike, Shape
from twofold.ir.dtypes import DType
from twofold.ir.errors import user_line
from twofold.ir.op import interpreter
from twofold.ir.spec import ShapeLike, TensorShape
from twofold.runtime import devices

from .contents import KnownElements, content
from .operation import Operation, operation_of
from .shapes import Relaxed, shape_of

__all__ = ["SymbolicTensor", "SymbolicValueError", "TraceLike", "symbolic"]


class TraceLike(KnownElements, Protocol):
    """The part of a `Trace` that its tensors need, and the modules that `Trace` itself stands on.

    Attributes:
        graph: the graph under construction.
        relaxed: the sizes that it leaves open by our choice, or None.
        captured: the tensors and variables from outside that the last inputs of the graph stand for.
    """

    graph: g.Graph
    relaxed: Relaxed | None

    @property
    def parent(self) -> TraceLike | None: ...

    @property
    def captured(self) -> Sequence[Tensor | Variable]: ...

    def fresh(self, stem: str = "n") -> Dim:
        """A size that nothing is known of, under a name of its own."""

    def sizes_of(self, tensor: SymbolicTensor) -> Shape:
        """The elements of an integer tensor as sizes."""

    def parts_of(self, tensor: SymbolicTensor) -> list[DimLike | Tensor]:
        """The elements of an integer tensor, flat."""

    def assume_shape(self, tensor: SymbolicTensor, shape: TensorShape) -> None:
        """Record that a tensor has a shape."""

    def tensor_of(self, value: g.Value) -> SymbolicTensor:
        """The tensor that stands for a value of the graph."""


class SymbolicValueError(TypeError):
    """The value of a traced tensor was asked for.

    Attributes:
        asked: what asked for it, and how; empty where it was no tensor that was asked.
        where: the user's line.
    """

    asked = where = ""


class NumpyError(SymbolicValueError, AttributeError):
    """`.numpy()` of a traced tensor was called, a method that such tensors do not have in TensorFlow."""


class SymbolicTensor(Tensor):
    """A tensor of a function that is being traced: shape and dtype, and a value only when the function runs."""

    __slots__ = ("value", "trace")

    value: g.Value
    trace: TraceLike

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.value.dtype

    @property
    def dims(self) -> Shape:  # type: ignore[override]  # a tensor outside of traces has no unknown sizes
        """The shape for shape rules: integers, and Dims for unknown sizes."""
        return self.value.dims

    @property
    def shape(self) -> TensorShape:
        """The shape, with None for sizes that are known only when the function runs."""
        return shape_of(self.value.dims, self.trace.relaxed)

    def get_shape(self) -> TensorShape:
        """The shape; the same as `.shape`."""
        return self.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.value.dims)

    @property
    def name(self) -> str:
        """The name of what computes it, with the number of its result, as in "add:0"."""
        node = self.value.node
        return f"{(self.value.name or 'input') if node is None else node.op.name}:{self.value.index}"

    @property
    def graph(self) -> g.Graph:
        """The graph that it is a value of."""
        return self.trace.graph

    @property
    def op(self) -> Operation:
        """The operation that computes it; of an input of the function, one of the type "Placeholder"."""
        return operation_of(self.value, self.trace, self.name.rpartition(":")[0])

    def set_shape(self, shape: ShapeLike) -> None:
        """Assert that the value has this shape, which `.shape` tells from here on.

        Raises:
            ValueError: it cannot have it.
        """
        self.trace.assume_shape(self, TensorShape(shape))

    def sizes(self) -> Shape:
        """The elements of an integer tensor as sizes, flat: known numbers and Dims, or new unknown ones."""
        return self._under_way().sizes_of(self)

    def parts(self) -> list[DimLike | Tensor]:
        """The elements of an integer tensor, flat: numbers, Dims, and scalar tensors for what only running can tell."""
        return self._under_way().parts_of(self)

    def _under_way(self) -> TraceLike:
        """The trace that stages ops now: that of the tensor, or of a region in it."""
        under_way: Any = interpreter()  # a `Trace`, whose type is defined above this module, or any other interpreter
        return under_way if hasattr(under_way, "sizes_of") else self.trace

    def known_elements(self) -> tuple[int, ...] | None:
        """The elements of an integer tensor, flat, where constants tell them all; else None."""
        elements = content(self.value, self.trace)
        if elements is None or any(isinstance(x, Dim) for x in elements.ravel()):
            return None
        return tuple(elements.ravel().tolist())

    @property
    def device(self) -> str:
        """Where a run takes place is decided then, for all of the function: by `tf.device`, or where its inputs lie."""
        return devices.FULL_NAME

    @property
    def __cuda_array_interface__(self) -> NoReturn:
        raise AttributeError("a traced tensor has no memory")

    def cpu(self) -> Tensor:
        """This tensor: a function runs in one place."""
        return self

    def gpu(self, gpu_index: int = 0) -> Tensor:
        """This tensor: a function runs in one place.

        Raises:
            RuntimeError: there is no such GPU.
        """
        devices.require_gpu(gpu_index)
        return self

    @property
    def _memory(self) -> NoReturn:  # type: ignore[override]  # an attribute of other tensors
        self._no_value("needs its value")

    _array = _memory

    def _no_value(self, what: str, error: type[SymbolicValueError] = SymbolicValueError) -> NoReturn:
        where = user_line()
        raised = error(
            f"{self!r} has no value while tf.function traces: {what}.\n  Hint: use tf ops (tf.cond, tf.print, "
            f"tf.py_function), or take this part out of the function.\n  {where}")
        raised.asked, raised.where = what, where
        raise raised

    def numpy(self) -> Any:
        """Not available: a traced tensor has no value."""
        if self.value.node is not None and (constant := g.constant_of(self.value)) is not None:
            return constant[()] if constant.ndim == 0 else constant.copy()
        elements = content(self.value, self.trace)
        if elements is not None and not any(isinstance(x, Dim) for x in elements.ravel()):
            return elements.astype(self.dtype.np)[()]
        self._no_value(".numpy() was called", NumpyError)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        self._no_value("NumPy was asked to read it")

    def __bool__(self) -> bool:
        self._no_value("Python was asked whether it is true")

    def __int__(self) -> int:
        self._no_value("int() was called")

    def __float__(self) -> float:
        self._no_value("float() was called")

    def __complex__(self) -> complex:
        self._no_value("complex() was called")

    def __index__(self) -> int:
        elements = content(self.value, self.trace)
        if elements is not None and elements.size == 1 and isinstance(elements.item(), int):
            return elements.item()
        self._no_value("Python was asked to use it as an integer")

    def __len__(self) -> int:
        if not self.value.dims:
            raise TypeError("Scalar tensor has no `len()`")
        if isinstance(self.value.dims[0], Dim):
            self._no_value("len() was called, and its first size is unknown: use tf.shape(x)[0]")
        return self.value.dims[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.value.dims:
            raise TypeError("Cannot iterate over a scalar tensor.")
        if isinstance(self.value.dims[0], Dim):
            self._no_value("Python iterated over it, and its first size is unknown")
        return (self[i] for i in range(self.value.dims[0]))

    def __hash__(self) -> int:
        raise TypeError("Tensor is unhashable. Instead, use tensor.ref() as the key.")

    def __deepcopy__(self, memo: object) -> SymbolicTensor:
        return self

    def __reduce__(self) -> NoReturn:
        self._no_value("it was pickled")

    def __str__(self) -> str:
        return f'Tensor("{self.name}", shape={self.shape}, dtype={self.dtype.name})'

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={self.shape} dtype={self.dtype.name}>"

    def __format__(self, spec: str) -> str:
        return str(self).__format__(spec)


def symbolic(value: g.Value, trace: TraceLike) -> SymbolicTensor:
    """The tensor that stands for `value` of the graph of `trace`."""
    t: SymbolicTensor = SymbolicTensor.__new__(SymbolicTensor)
    t.value, t.trace = value, trace
    return t
