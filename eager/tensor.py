"""`Tensor`: an immutable array with a dtype, a shape and a device.

Owns the object, its memory, and how it shows itself to Python and NumPy. Operators are attached by
`eager/operators.py`; how values become tensors is `eager/convert.py`'s; nothing here runs an op.

A tensor has two faces. `_memory` is what kernels and programs of the backend take and give: elsewhere it is handed on,
or asked for its shape, dtype and size, never for its elements. `_array` is its elements on the host, and how all of the
library reads them. They are one object, in one slot, while memory is NumPy's; a backend with memory of its own has
`redirect` tell how that is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from twofold.ir import dtypes as dt
from twofold.ir import errors
from twofold.ir.dtypes import DType
from twofold.ir.op import tracing
from twofold.ir.spec import ShapeLike, TensorShape
from twofold.runtime import devices
from twofold.runtime.buffers import export_buffers

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["NumpyValue", "Tensor", "TensorRef", "wrap", "alias", "beside", "moved_by", "redirect", "text_of",
           "where_asked"]

NumpyValue: TypeAlias = Any  # an array, or a NumPy scalar where the rank is 0

_attached: Any = None  # stands for the operators before a type checker


class Tensor:
    """A multi-dimensional array of one dtype whose value never changes.

    Tensors are made by ops such as `tf.constant`, not by calling this class.

    >>> import twofold as tf
    >>> x = tf.constant([[1.0, 2.0]])
    >>> x
    <tf.Tensor: shape=(1, 2), dtype=float32, numpy=array([[1., 2.]], dtype=float32)>
    >>> print(x * 3)
    tf.Tensor([[3. 6.]], shape=(1, 2), dtype=float32)
    """

    # Native entries set only `_memory`; `_id` appears when a tape first sees the tensor, `_device` off the CPU.
    __slots__ = ("_memory", "_id", "_device", "__weakref__", "__dict__")
    __array_priority__ = 100  # NumPy arrays leave `array + tensor` to the tensor

    #: the operators that classes which stand for tensors pass on, as TensorFlow lists them
    OVERLOADABLE_OPERATORS = frozenset(f"__{name}__" for name in (
        "abs", "add", "and", "eq", "floordiv", "ge", "getitem", "gt", "invert", "le", "lt", "matmul", "mod", "mul",
        "ne", "neg", "or", "pow", "radd", "rand", "rfloordiv", "rmatmul", "rmod", "rmul", "ror", "rpow", "rsub",
        "rtruediv", "rxor", "sub", "truediv", "xor"))

    _memory: np.ndarray  # or an object with an array's shape, ndim, size, dtype and nbytes
    _array: np.ndarray  # see `redirect`
    _id: int

    if TYPE_CHECKING:  # `eager/operators.py` attaches them
        __getitem__ = __neg__ = __pos__ = __abs__ = __invert__ = _attached
        __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = _attached
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = _attached
        __and__ = __or__ = __xor__ = __rand__ = __ror__ = __rxor__ = __lt__ = __le__ = __gt__ = __ge__ = _attached

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("tensors are made by tf.constant, tf.convert_to_tensor and other ops, not by tf.Tensor(...)")

    # -- what it is -------------------------------------------------------------------------------
    @property
    def dtype(self) -> DType:
        """The element type, such as `tf.float32`."""
        dtype = self._memory.dtype
        return dt.BY_NUMBER.get(dtype.num) or dt.from_numpy(dtype)

    @property
    def shape(self) -> TensorShape:
        """The shape, a `tf.TensorShape`."""
        return TensorShape._of(self._memory.shape)

    @property
    def dims(self) -> tuple[int, ...]:
        """The shape as a plain tuple, for shape rules."""
        return self._memory.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._memory.ndim

    @property
    def graph(self) -> Any:
        """The graph that is being built, in which a tensor with a value is a constant.

        Raises:
            AttributeError: ops run at once.
        """
        trace = tracing()
        if trace is None:
            raise AttributeError("Tensor.graph is undefined when eager execution is enabled.")
        return trace.public_graph

    @property
    def device(self) -> str:
        """The full name of the device that holds the value."""
        return devices.full_name(_index_of(self))

    def get_shape(self) -> TensorShape:
        """The shape; the same as `.shape`."""
        return TensorShape._of(self._memory.shape)

    def set_shape(self, shape: ShapeLike) -> None:
        """Check that the value has this shape.

        Raises:
            ValueError: it has another.
        """
        if not self.shape.is_compatible_with(shape):
            raise ValueError(f"Tensor's shape {self.shape} is not compatible with supplied shape {TensorShape(shape)}.")

    def ref(self) -> TensorRef:
        """A hashable reference to this tensor, for use as a key: tensors themselves compare by element."""
        return TensorRef(self)

    # -- to Python and NumPy ----------------------------------------------------------------------
    def numpy(self) -> NumpyValue:
        """The value as a NumPy array of its own, or as a NumPy scalar when the rank is 0."""
        a = self._array
        return a[()] if a.ndim == 0 else a.copy()

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if dtype is not None and np.dtype(dtype) != self._memory.dtype:
            if copy is False:
                raise ValueError(f"a tensor of {self.dtype.name} needs a copy to become an array of {np.dtype(dtype)}")
            return self._array.astype(dtype)
        return self._array.copy() if copy else readonly(self._array)

    def __buffer__(self, flags: int) -> memoryview:
        return readonly(self._array).data

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:  # a capsule
        if _index_of(self) is not None:
            from twofold.runtime import cuda_exchange

            memory: Any = self._memory
            return cuda_exchange.capsule(memory, stream, max_version is not None and max_version[0] >= 1)
        if max_version is None or max_version[0] < 1:  # only version 1 can say that memory is read-only
            return self._array.copy().__dlpack__()
        return readonly(self._array).__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        index = _index_of(self)
        if index is not None:
            from twofold.runtime import cuda_exchange

            return cuda_exchange.CUDA_DEVICE, index
        return self._array.__dlpack_device__()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """How other libraries find the elements on a GPU."""
        if _index_of(self) is None:
            raise AttributeError("a tensor in host memory has no __cuda_array_interface__")
        from twofold.runtime import cuda_exchange

        memory: Any = self._memory
        return cuda_exchange.interface(memory)

    def __bool__(self) -> bool:
        try:
            return bool(self._array)
        except ValueError:
            raise ValueError(errors.no_truth(self)) from None

    def __int__(self) -> int:
        return int(self._one("int"))

    def __float__(self) -> float:
        return float(self._one("float"))

    def __complex__(self) -> complex:
        return complex(self._one("complex"))

    def __index__(self) -> int:
        if not self.dtype.is_integer:
            raise TypeError(f"only a tensor of an integer converts to index; this one has dtype {self.dtype.name}")
        return self._one("index").__index__()

    def __round__(self, ndigits: int | None = None) -> float:
        return round(self._one("round").item(), ndigits)

    def _one(self, what: str) -> NumpyValue:
        if self._memory.size != 1:
            raise TypeError(f"only a tensor of one element converts to {what}; this one has shape {self.shape}")
        return self._array.reshape(())[()]

    def __len__(self) -> int:
        if not self._memory.ndim:
            raise TypeError("Scalar tensor has no `len()`")
        return self._memory.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self._memory.ndim:
            raise TypeError("Cannot iterate over a scalar tensor.")
        return (self[i] for i in range(self._memory.shape[0]))

    def __hash__(self) -> int:
        raise TypeError("Tensor is unhashable. Instead, use tensor.ref() as the key.")

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: object) -> Tensor:
        return wrap(self._array.copy())

    def __reduce__(self) -> tuple[Callable[[np.ndarray], Tensor], tuple[np.ndarray]]:
        return (wrap, (self._array,))

    def __str__(self) -> str:
        return f"tf.Tensor({text_of(self._array)}, shape={self._array.shape}, dtype={self.dtype.name})"

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape={self._array.shape}, dtype={self.dtype.name}, numpy={text_of(self._array, True)}>"

    def __format__(self, spec: str) -> str:
        value = self._array[()]
        return value.__format__(spec) if spec else str(value.item() if self._is_number() else value)

    def _is_number(self) -> bool:
        return self._memory.ndim == 0 and self._memory.dtype != object

    # -- devices ----------------------------------------------------------------------------------
    def cpu(self) -> Tensor:
        """A copy in host memory; this tensor itself when it is there."""
        return _movers[-1](self, None)

    def gpu(self, gpu_index: int = 0) -> Tensor:
        """A copy on a GPU; this tensor itself when it is there.

        Raises:
            RuntimeError: there is no such GPU.
        """
        devices.require_gpu(gpu_index)
        return _movers[-1](self, gpu_index)


export_buffers(Tensor, "_memory")


Move: TypeAlias = "Callable[[Tensor, int | None], Tensor]"  # to the GPU of a number, or to the host
_movers: list[Move] = []


def moved_by(move: Move) -> None:
    """Says what copies tensors between devices."""
    _movers.append(move)


def where_asked(tensor: Tensor) -> Tensor:
    """A tensor that was made of a value of the host, on the device that `tf.device` asks for; in a trace itself, as a
    value that is known there belongs to no device."""
    asked = devices.requested()
    if asked is None or type(tensor) is not Tensor or tracing() is not None:
        return tensor
    return _movers[-1](tensor, asked.number if asked.kind == "GPU" else None)


def beside(tensor: Tensor, other: Tensor) -> Tensor:
    """A tensor on the device of another one."""
    if type(tensor._memory) is type(other._memory) is np.ndarray:
        return tensor
    return _movers[-1](tensor, _index_of(other))


def _index_of(tensor: Tensor) -> int | None:
    gpu = getattr(tensor._memory, "gpu", None)
    return None if gpu is None else gpu.index


def redirect(read: Callable[[np.ndarray], np.ndarray] | None) -> None:
    """Says how the elements of tensors are read on the host.

    Args:
        read: gives an array of the host for a tensor's memory, such as a backend's `copy_from`; None where the memory
            is such an array: then it takes no longer than reading a slot.
    """
    Tensor._array = Tensor._memory if read is None else property(lambda t: read(t._memory))  # type: ignore


redirect(None)


class TensorRef:
    """A key that stands for one tensor or variable object: equal only to references to the same object."""

    __slots__ = ("_object", "__weakref__")

    def __init__(self, target: object):
        self._object = target

    def deref(self) -> Any:  # of the type that whoever made the reference knows
        """The object referred to."""
        return self._object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorRef) and other._object is self._object

    def __lt__(self, other: object) -> bool:  # structures are flattened in the order of sorted keys
        return id(self._object) < id(other._object) if isinstance(other, TensorRef) else NotImplemented

    def __hash__(self) -> int:
        return id(self._object)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._object!r}>"


def wrap(memory: Any) -> Tensor:
    """A tensor on `memory`, an array of the host or of another device, which must never be written again."""
    t = Tensor.__new__(Tensor)
    t._memory = memory
    return t


def alias(tensor: Tensor) -> Tensor:
    """Another tensor on the same memory, which tapes tell from the first."""
    t = Tensor.__new__(Tensor)
    t._memory = tensor._memory
    return t


def readonly(array: np.ndarray) -> np.ndarray:
    """A view of a tensor's memory that cannot be written."""
    view = array.view()
    view.flags.writeable = False
    return view


def text_of(array: np.ndarray, is_repr: bool = False) -> str:
    """An array's text as tensors show it: an array of several lines starts on a line of its own."""
    if array.ndim == 0:
        value = array[()]
        return repr(value) if isinstance(value, bytes) else str(value)
    text = repr(array) if is_repr else str(array)
    return "\n" + text if "\n" in text else text


