"""`tf.TensorArray`: tensors written one by one under numbers, in eager execution and in staged loops.

Eagerly it is a list. In a trace it is one tensor with the items along its first axis, which loops carry like any
other; where the array may grow, the tensor has room for more items than there are, and doubles when it is full.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsInt, TypeAlias

from twofold.eager import convert
from twofold.eager.tensor import Tensor
from twofold.eager.variable import Variable
from twofold.ir import dtypes as dt
from twofold.ir import errors, ops
from twofold.ir.dims import Dim, DimLike
from twofold.ir.spec import ShapeLike, TensorShape
from twofold.ir.symbols import symbols_in

from .composite import Composite
from .conditional import branch, zeros
from .following import apart
from .symbolic import SymbolicTensor
from .trace import current
from .types import PythonValue

__all__ = ["TensorArray"]

#: an integer, or a scalar integer tensor
Integer: TypeAlias = SupportsInt | Tensor


class TensorArray(Composite):
    """Tensors of one dtype, written under numbers and read back, or put together.

    Write as `array = array.write(i, value)`: in a staged loop only the result has the value.

    Args:
        dtype: of the items.
        size: how many there are to begin with, an integer or a scalar tensor.
        dynamic_size: whether writing beyond the end makes the array longer.
        clear_after_read, tensor_array_name, handle, flow, colocate_with_first_write_call, name: have no effect.
        infer_shape: whether all items must have one shape.
        element_shape: the shape of the items, where it is known.

    >>> import twofold as tf
    >>> array = tf.TensorArray(tf.float32, size=2)
    >>> array = array.write(0, 10.0).write(1, 20.0)
    >>> array.stack().numpy().tolist()
    [10.0, 20.0]
    """

    def __init__(self, dtype: dt.DTypeLike, size: Integer | None = None, dynamic_size: bool | None = None,
                 clear_after_read: bool | None = None, tensor_array_name: str | None = None,
                 handle: PythonValue = None, flow: PythonValue = None, infer_shape: bool = True,
                 element_shape: ShapeLike = None,
                 colocate_with_first_write_call: bool = True, name: str | None = None) -> None:
        self._dtype = dt.as_dtype(dtype)
        self._grows = bool(dynamic_size)
        self._shape = TensorShape(element_shape)
        self._uniform = infer_shape
        self._items: list[Tensor | None] | None = None
        self._buffer: Tensor | None = None  # in a trace: items along the first axis, once the shape of one is known
        self._unsized = False  # in a trace: whether only the first item that a loop writes tells the size of all
        self._length: Any = None  # in a trace, and only there: how many items there are, an int32 scalar
        count = 0 if size is None else size
        if current() is None:
            self._items = [None] * int(count)
            return
        self._length = ops.cast(convert.as_tensor(count), dtype=dt.int32)
        if self._shape.dims is not None and None not in self._shape.dims:
            self._buffer = self._empty(self._shape.dims)

    # -- what it is -------------------------------------------------------------------------------
    @property
    def dtype(self) -> dt.DType:
        """The dtype of the items."""
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        """Whether writing beyond the end makes the array longer."""
        return self._grows

    @property
    def element_shape(self) -> TensorShape:
        """The shape of the items, as far as it is known."""
        if self._buffer is not None:
            return TensorShape([None if isinstance(d, Dim) else d for d in self._buffer.dims[1:]])
        return self._shape

    def size(self, name: str | None = None) -> Tensor:
        """How many items there are, a scalar int32 tensor."""
        return convert.as_tensor(len(self._items), dt.int32) if self._items is not None else self._length

    def identity(self) -> TensorArray:
        """The same array."""
        return self

    def close(self, name: str | None = None) -> None:
        """Has no effect: an array needs no closing."""

    # -- one item ---------------------------------------------------------------------------------
    def write(self, index: Integer, value: PythonValue, name: str | None = None) -> TensorArray:
        """The array with an item written.

        Args:
            index: the number of the item, an integer or a scalar integer tensor.
            value: of the array's dtype.
        Raises:
            tf.errors.OutOfRangeError: there is no such item, and the array does not grow.
            ValueError: the value's shape is not that of the items.
        """
        item = self._item(value)
        if self._items is not None and not self._deferred(index, item):
            self._write_now(int(index), item)
            return self
        return self._staged()._written(_number(index), item)

    def _deferred(self, index: Integer, item: Tensor) -> bool:
        return isinstance(index, SymbolicTensor) or isinstance(item, SymbolicTensor) or current() is not None

    def _item(self, value: PythonValue) -> Tensor:
        item = value._read_tensor() if isinstance(value, Variable) else convert.as_tensor(
            value, None if isinstance(value, Tensor) else self._dtype)
        if item.dtype is not self._dtype:
            raise errors.InvalidArgumentError(f"TensorArray: dtype is {self._dtype.name} but the item has dtype "
                                              f"{item.dtype.name}.\n  {errors.user_line()}")
        if not self.element_shape.is_compatible_with(item.shape) and self._uniform:
            raise ValueError(f"TensorArray: incompatible shape for value ({item.shape}), expected "
                             f"({self.element_shape}).\n  {errors.user_line()}")
        return item

    def _write_now(self, index: int, item: Tensor) -> None:
        items = self._items
        assert items is not None
        if index < 0 or (index >= len(items) and not self._grows):
            raise errors.OutOfRangeError(f"TensorArray: tried to write to index {index} but the array is not "
                                         f"resizeable and its size is {len(items)}.\n  {errors.user_line()}")
        items.extend([None] * (index + 1 - len(items)))
        if self._uniform and self._shape.dims is None:
            self._shape = item.shape
        items[index] = apart(item)

    def _written(self, index: Tensor, item: Tensor) -> TensorArray:
        buffer = self._empty(item.dims) if self._buffer is None else self._buffer
        if self._unsized:
            buffer = _sized(buffer, item)
        length = self._length
        if self._grows:
            room = ops.shape(buffer, out_type=dt.int32)[0]
            more = ops.add(index, 1)
            buffer = _grown(buffer, room, more)
            length = ops.maximum(length, more)
        place = ops.reshape(index, shape=(1, 1))
        written = ops.tensor_scatter(buffer, place, ops.reshape(item, shape=(1, *item.dims)), mode="update")
        return self._with(written, length)

    def _scattered(self, places: Tensor, items: Tensor) -> TensorArray:
        buffer = self._empty(items.dims[1:]) if self._buffer is None else self._buffer
        length = self._length
        if self._grows:
            more = ops.add(ops.reduce_max(places), 1)
            buffer = _grown(buffer, ops.shape(buffer, out_type=dt.int32)[0], more)
            length = ops.maximum(length, more)
        places = ops.reshape(places, shape=(*places.dims, 1))
        return self._with(ops.tensor_scatter(buffer, places, items, mode="update"), length)

    def read(self, index: Integer, name: str | None = None) -> Tensor:
        """The item with a number.

        Raises:
            tf.errors.OutOfRangeError: there is no such item. tf.errors.InvalidArgumentError: in a traced function.
        """
        if self._items is not None and current() is None:
            place = int(index)
            if not 0 <= place < len(self._items):
                raise errors.OutOfRangeError(f"TensorArray: tried to read from index {place} but the array's size is "
                                             f"{len(self._items)}.\n  {errors.user_line()}")
            return apart(self._filled()[place])
        return ops.gather(self._staged()._whole_buffer(), _number(index))

    def _popped(self) -> tuple[TensorArray, Tensor]:
        """The array without its last item, and that item."""
        staged = self._staged()
        last = ops.subtract(staged._length, 1)
        buffer = staged._whole_buffer()
        return staged._with(buffer, last), ops.gather(buffer, last)

    # -- many items -------------------------------------------------------------------------------
    def stack(self, name: str | None = None) -> Tensor:
        """All items along a new first axis."""
        if self._items is not None and current() is None:
            items = self._filled()
            if not items:
                return zeros((0, *self._known_shape()), self._dtype)
            return convert.as_tensor(items)
        array = self._staged()
        return array._cut(array._whole_buffer()) if self._grows else array._whole_buffer()

    def gather(self, indices: PythonValue, name: str | None = None) -> Tensor:
        """The items with some numbers (a vector of integers) along a new first axis."""
        return ops.gather(self.stack(), convert.as_tensor(indices))

    def concat(self, name: str | None = None) -> Tensor:
        """All items joined along their first axis."""
        if self._items is not None and current() is None:
            return ops.concat(*self._filled(), axis=0)
        stacked = self.stack()
        return ops.reshape(stacked, shape=(stacked.dims[0] * stacked.dims[1], *stacked.dims[2:]))

    def unstack(self, value: PythonValue, name: str | None = None) -> TensorArray:
        """The array with the slices of a tensor along its first axis as items."""
        items = convert.as_tensor(value, None if isinstance(value, (Tensor, Variable)) else self._dtype)
        if self._items is not None and current() is None:
            self._items = [items[i] for i in range(items.dims[0])]
            return self
        return self._with(items, ops.shape(items, out_type=dt.int32)[0])

    def scatter(self, indices: PythonValue, value: PythonValue, name: str | None = None) -> TensorArray:
        """The array with the slices of `value` along its first axis written under `indices`."""
        places = convert.as_tensor(indices)
        items = convert.as_tensor(value, None if isinstance(value, (Tensor, Variable)) else self._dtype)
        if self._items is not None and not self._deferred(places, items):
            array = self
            for n in range(places.dims[0]):
                array = array.write(places[n], items[n])
            return array
        return self._staged()._scattered(ops.cast(places, dtype=dt.int32), items)

    def split(self, value: PythonValue, lengths: PythonValue, name: str | None = None) -> TensorArray:
        """The array with parts of a tensor of the given lengths along its first axis as items."""
        whole = convert.as_tensor(value, None if isinstance(value, (Tensor, Variable)) else self._dtype)
        array, start = self, 0
        for n, length in enumerate(convert.as_tensor(lengths).numpy().tolist()):
            array = array.write(n, whole[start:start + length])
            start += length
        return array

    # -- inside -----------------------------------------------------------------------------------
    def _filled(self) -> list[Tensor]:
        """The items, zeros for those that were never written."""
        items = self._items or ()
        written = [item for item in items if item is not None]
        if len(written) == len(items):
            return written
        empty = zeros(self._known_shape(), self._dtype)
        return [empty if item is None else item for item in items]

    def _known_shape(self) -> tuple[int, ...]:
        """The shape of the items, which must be known."""
        sizes = [d for d in self._shape.dims or () if d is not None]
        if self._shape.dims is None or None in self._shape.dims:
            raise errors.InvalidArgumentError("TensorArray: an item was never written, and the shape of the items is "
                                              f"not known: give element_shape.\n  {errors.user_line()}")
        return tuple(sizes)

    def _staged(self) -> TensorArray:
        """The array as a tensor, where it comes from eager execution as a list."""
        if self._items is None:
            return self
        array = self._with(None, convert.as_tensor(len(self._items), dt.int32))
        if any(item is not None for item in self._items):
            array._buffer = convert.as_tensor(self._filled())
        elif self._shape.dims is not None and None not in self._shape.dims:
            array._buffer = array._empty(self._shape.dims)
        return array

    def _empty(self, dims: Sequence[DimLike | None]) -> Tensor:
        return ops.fill(zeros((), self._dtype), shape=(_size(self._length), *dims))

    def _whole_buffer(self) -> Tensor:
        """The items along the first axis, with all the room there is."""
        if self._buffer is None:
            self._buffer = self._empty(self._known_shape())
        return self._buffer

    def _cut(self, buffer: Tensor) -> Tensor:
        """The items alone, without the room behind them."""
        places = ops.range_(convert.as_tensor(0, dt.int32), self._length, convert.as_tensor(1, dt.int32))
        return ops.gather(buffer, places)

    def _with(self, buffer: Tensor | None, length: Tensor) -> TensorArray:
        array = TensorArray.__new__(TensorArray)
        array.__dict__.update(self.__dict__)
        array._items, array._buffer, array._length = None, buffer, length
        return array

    # -- in control flow --------------------------------------------------------------------------
    def parts(self) -> list[Any]:  # tensors, which callers take for leaves of any kind
        array = self._staged()
        return [array._length] if array._buffer is None else [array._length, array._buffer]

    def rebuilt(self, parts: list[Any]) -> TensorArray:  # likewise
        return self._with(parts[1] if len(parts) > 1 else None, parts[0])

    def form(self) -> object:
        return TensorArray, self._dtype, self._grows, len(self.parts()) > 1

    def adapted(self, before: PythonValue) -> PythonValue:
        """The array before a loop with room for the items that the loop writes, whose shape is known only now."""
        if not isinstance(before, TensorArray) or self._buffer is None:
            return before
        before = before._staged()
        outer = _outer_symbols()
        dims = [0 if isinstance(d, Dim) and not d.symbols() <= outer else d for d in self._buffer.dims[1:]]
        if before._buffer is not None:
            return before
        adapted = before._with(before._empty(dims), before._length)
        adapted._unsized = adapted._unsized or dims != list(self._buffer.dims[1:])
        return adapted

    def invariants(self) -> list[TensorShape | None]:
        """The shape of the buffer with None where a loop may change it: the first size of an array that grows."""
        parts = self.parts()
        if len(parts) == 1:
            return [None]
        if not self._grows and not self._unsized:
            return [None, None]
        sizes = [None if self._unsized or isinstance(d, Dim) else d for d in parts[1].dims]
        return [None, TensorShape([None if self._grows else sizes[0], *sizes[1:]])]


def _outer_symbols() -> frozenset[str]:
    """The symbols of sizes that are known where a loop begins."""
    names: frozenset[str] = frozenset()
    trace = current()
    while trace is not None:
        names |= symbols_in([*trace.graph.inputs, *[v for node in trace.graph.nodes for v in node.outputs]])
        trace = trace.parent
    return names


def _size(number: Integer) -> DimLike:
    """A scalar tensor as a size."""
    if not isinstance(number, SymbolicTensor):
        return int(number)
    trace = current()
    assert trace is not None, "a symbolic tensor is of a trace"
    return trace.sizes_of(ops.reshape(number, shape=(1,)))[0]


def _number(index: Integer) -> Tensor:
    """An index as an int32 scalar."""
    return ops.cast(ops.reshape(convert.as_tensor(index), shape=()), dtype=dt.int32)


def _sized(buffer: Tensor, item: Tensor) -> Tensor:
    """A buffer for items like `item`: one without elements gets room for them, as nothing was written before."""
    room, *sizes = buffer.dims
    if len(sizes) != len(item.dims):
        raise errors.ShapeError(None, "TensorArray", f"TensorArray: the item has shape {item.shape}, but the items "
                                f"before have rank {len(sizes)}.\n  {errors.user_line()}")
    empty = ops.equal(ops.size(buffer, out_type=dt.int64), convert.as_tensor(0, dt.int64))
    sized = branch(empty, lambda: ops.fill(zeros((), buffer.dtype), shape=(room, *item.dims)),
                   lambda: ops.identity(buffer), "TensorArray.write")
    return ops.reshape(sized, shape=(room, *item.dims))


def _grown(buffer: Tensor, room: Tensor, needed: Tensor) -> Tensor:
    """A buffer with room for `needed` items: twice as many as before, where it is too small."""
    def larger() -> Tensor:
        count = ops.maximum(ops.multiply(room, 2), needed)
        more = _size(ops.subtract(count, room))
        return ops.concat(buffer, ops.fill(zeros((), buffer.dtype), shape=(more, *buffer.dims[1:])), axis=0)
    return branch(ops.less(room, needed), larger, lambda: ops.identity(buffer), "TensorArray.write")


