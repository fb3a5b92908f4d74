"""Memory of GPUs shared with other libraries, without a copy: DLPack and the CUDA array interface, both ways.

Who takes an array of ours is told to wait for the work on it that we have handed in, and our work waits for that of
whoever gives one (`stream` in both protocols). The layouts of DLPack's structures are those of its header `dlpack.h`,
version 1.0 (https://dmlc.github.io/dlpack/latest/c_api.html); the array interface is version 3 of
https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any, Protocol

import ml_dtypes
import numpy as np

from .cuda_device import DeviceArray, Gpu, gpu, gpus
from .cuda_driver import NO_TIMES

__all__ = ["CUDA_DEVICE", "Giver", "borrowed", "capsule", "device_of", "from_dlpack", "interface"]

CUDA_DEVICE = 2  # kDLCUDA
_CODES = {"i": 0, "u": 1, "f": 2, "V": 4, "c": 5, "b": 6}  # DLDataTypeCode by NumPy's kind; bfloat16 is its "V"
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY
_LEGACY = 1  # the stream that others use by default, in the protocols and in the driver


class Giver(Protocol):
    """What has an array of a GPU to share, by DLPack."""

    def __dlpack__(self, *, stream: int | None = None) -> object: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


class _DLTensor(ctypes.Structure):
    """`DLTensor`."""

    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("number", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]


_Delete = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _DLManaged(ctypes.Structure):
    """`DLManagedTensor`, as before version 1."""

    _fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("delete", ctypes.c_void_p)]


class _DLVersioned(ctypes.Structure):
    """`DLManagedTensorVersioned`."""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("delete", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _DLTensor)]


_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.restype, _rename.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, (ctypes.c_void_p, ctypes.c_char_p)

_given: dict[int, tuple[object, ...]] = {}  # by the address of a managed tensor: all that must live as long
_NAMES = {False: b"dltensor", True: b"dltensor_versioned"}
_USED = {False: b"used_dltensor", True: b"used_dltensor_versioned"}


# -- giving -------------------------------------------------------------------------------------------
def interface(array: DeviceArray) -> dict[str, Any]:
    """The `__cuda_array_interface__` of an array.

    Raises:
        AttributeError: its elements are bfloat16, which the interface has no name for.
    """
    if array.dtype == _BFLOAT16:
        raise AttributeError("__cuda_array_interface__ has no name for bfloat16; DLPack has")
    return {"shape": array.shape, "typestr": array.dtype.str, "data": (array.address if array.size else 0, True),
            "strides": None, "stream": array.gpu.stream.value, "version": 3}


def capsule(array: DeviceArray, stream: int | None, versioned: bool) -> object:
    """A DLPack capsule over an array's memory.

    Args:
        stream: of whoever takes it, which waits for our work; -1 for no waiting.
        versioned: whether it is one of version 1, which says that the memory is not to be written.
    """
    if stream != -1:
        _follow(array.gpu, array.gpu.stream, ctypes.c_void_p(_LEGACY if stream in (None, 0) else stream))
    shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    strides = (ctypes.c_int64 * max(array.ndim, 1))(*[math.prod(array.shape[n + 1:]) for n in range(array.ndim)])
    tensor = _DLTensor(array.address, CUDA_DEVICE, array.gpu.index, array.ndim, _CODES[array.dtype.kind],
                     8 * array.dtype.itemsize, 1, shape, strides, 0)
    delete = ctypes.cast(_forget, ctypes.c_void_p)
    managed = _DLVersioned(1, 0, None, delete, _READ_ONLY, tensor) if versioned else _DLManaged(tensor, None, delete)
    address = ctypes.addressof(managed)
    _given[address] = (managed, shape, strides, array)
    return _new(address, _NAMES[versioned], ctypes.cast(_destroy, ctypes.c_void_p))


@_Delete
def _forget(address: int) -> None:
    """Lets go of what a capsule was over, when its taker is done."""
    _given.pop(address, None)


@_Delete
def _destroy(capsule: int) -> None:
    """Ends a capsule that nobody has taken."""
    for versioned, name in _NAMES.items():
        if _is_valid(capsule, name):
            get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
                ctypes.cast(_pointer, ctypes.c_void_p).value)  # type: ignore[arg-type]
            _given.pop(get(capsule, _NAMES[versioned]), None)


# -- taking -------------------------------------------------------------------------------------------
class _BorrowedMemory:
    """Memory of somebody else's, which lives as long as this does. It has an `Allocation`'s names."""

    __slots__ = ("gpu", "address", "size", "_keep", "_release", "__weakref__")

    def __init__(self, gpu: Gpu, address: int, keep: object, release: Any = None) -> None:
        self.gpu, self.address, self.size, self._keep, self._release = gpu, address, 0, keep, release

    def __del__(self) -> None:
        self.gpu.make_current()
        self.gpu.driver.status("cuStreamSynchronize", self.gpu.stream)  # our work may still read it
        if self._release is not None:
            self._release()


def borrowed(value: Any) -> DeviceArray:
    """The array that `value.__cuda_array_interface__` tells of, in its own memory.

    Raises:
        ValueError: its elements are not row-major, or of no dtype of ours. RuntimeError: it is on no GPU of ours.
    """
    told = value.__cuda_array_interface__
    shape, dtype, (address, _) = tuple(told["shape"]), np.dtype(told["typestr"]), told["data"]
    strides = told.get("strides")
    if strides is not None:
        _require_rows(shape, [s // dtype.itemsize for s in strides])
    device = _gpu_of(address)
    stream = told.get("stream")
    if stream is not None:
        _follow(device, ctypes.c_void_p(stream), device.stream)
    return DeviceArray(_BorrowedMemory(device, address, value), shape, dtype)  # type: ignore[arg-type]


def from_dlpack(value: Giver) -> DeviceArray:
    """The array that a DLPack object on a GPU has, in its own memory.

    Raises:
        ValueError: its elements are not row-major, or of no dtype of ours. RuntimeError: it is on no GPU of ours.
    """
    kind, number = value.__dlpack_device__()
    device = gpu(int(number)) if int(kind) == CUDA_DEVICE else None
    if device is None:
        raise RuntimeError(f"a DLPack object lies on device {int(kind)}:{int(number)}, which is none of ours")
    made: Any = value.__dlpack__(stream=device.stream.value)
    managed, versioned = _managed(made)
    tensor: _DLTensor = managed.tensor
    shape = [tensor.shape[n] for n in range(tensor.ndim)]
    dtype = _dtype(tensor)
    if tensor.strides:
        _require_rows(shape, [tensor.strides[n] for n in range(tensor.ndim)])
    _rename(made, _USED[versioned])

    def release() -> None:
        if managed.delete:
            _Delete(managed.delete)(ctypes.addressof(managed))
    owner = _BorrowedMemory(device, (tensor.data or 0) + tensor.offset, made, release)
    return DeviceArray(owner, shape, dtype)  # type: ignore[arg-type]


def device_of(capsule: object) -> tuple[int, int]:
    """The device of a capsule's memory, as `__dlpack_device__` tells it.

    Raises:
        ValueError: it is no DLPack capsule, or somebody has taken it.
    """
    tensor: _DLTensor = _managed(capsule)[0].tensor
    return tensor.device, tensor.number


def _managed(capsule: object) -> tuple[Any, bool]:
    """The structure that a capsule is over, and whether it is one of version 1.

    Raises:
        ValueError: as for `device_of`.
    """
    for versioned, kind in ((True, _DLVersioned), (False, _DLManaged)):
        if _is_valid(id(capsule), _NAMES[versioned]):
            return kind.from_address(_pointer(capsule, _NAMES[versioned])), versioned
    raise ValueError(f"{capsule!r} is no DLPack capsule, or was taken before")


def _dtype(tensor: _DLTensor) -> np.dtype:
    """NumPy's dtype of a DLPack tensor.

    Raises:
        ValueError: there is none.
    """
    kind = next((k for k, code in _CODES.items() if code == tensor.code), None)
    if kind == "V" and tensor.bits == 16:
        return _BFLOAT16
    if kind is None or kind == "V" or tensor.lanes != 1 or tensor.bits % 8:
        raise ValueError(f"a DLPack tensor has elements of type code {tensor.code} with {tensor.bits} bits and "
                         f"{tensor.lanes} lanes, which is no dtype here")
    return np.dtype(f"{kind}{tensor.bits // 8}")


def _require_rows(shape: Sequence[int], strides: Sequence[int]) -> None:
    """Raises ValueError unless elements lie row-major."""
    want = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != want and 0 not in shape:
            raise ValueError(f"an array of shape {list(shape)} with strides {list(strides)} (in elements) is not "
                             "row-major, as arrays on GPUs are here: make it contiguous first")
        want *= size


def _gpu_of(address: int) -> Gpu:
    """The GPU in whose memory an address lies.

    Raises:
        RuntimeError: it is none of ours.
    """
    known = gpus()
    number = ctypes.c_int()
    if known and not address:
        return known[0]
    if not known or known[0].driver.status("cuPointerGetAttribute", ctypes.byref(number), 9, address):
        raise RuntimeError(f"the memory at {address:#x} is on no GPU that this process knows")
    return known[number.value]


def _follow(device: Gpu, first: ctypes.c_void_p, then: ctypes.c_void_p) -> None:
    """Has the stream `then` wait for what the stream `first` has been given."""
    if first.value == then.value:
        return
    event = ctypes.c_void_p()
    with device:
        device.driver.cuEventCreate(ctypes.byref(event), NO_TIMES)
        device.driver.cuEventRecord(event, first)
        device.driver.cuStreamWaitEvent(then, event, 0)
        device.driver.cuEventDestroy_v2(event)
