"""`tf.experimental`: values of classes of one's own that are made of tensors, what public functions do with these;
NumPy's functions (`numpy`); and the exchange of memory with other libraries (`dlpack`)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from twofold._front.namespace import publish
from twofold.eager.tensor import Tensor, wrap
from twofold.eager.variable import Variable
from twofold.ir import dtypes as dt
from twofold.ir.errors import InvalidArgumentError

from .._front import extension_type as _extension_type
from .._front import mapping as _mapping  # noqa: F401  (what tf.map_fn does with rows of such values)
from .._front.api import public
from .._front.dispatch import (
    dispatch_for_api,
    dispatch_for_binary_elementwise_apis,
    dispatch_for_binary_elementwise_assert_apis,
    dispatch_for_unary_elementwise_apis,
    unregister_dispatch_for,
)
from .._front.extension_type import BatchableExtensionType, ExtensionType, ExtensionTypeBatchEncoder

__all__ = ["BatchableExtensionType", "DynamicRaggedShape", "ExtensionType", "ExtensionTypeBatchEncoder", "Optional",
           "RowPartition", "dispatch_for_api",
           "dispatch_for_binary_elementwise_apis", "dispatch_for_binary_elementwise_assert_apis",
           "dispatch_for_unary_elementwise_apis", "dlpack", "dtensor", "extension_type", "numpy",
           "unregister_dispatch_for"]


@public
def _to_dlpack(tf_tensor: Any) -> Any:
    """A DLPack capsule over a tensor's memory, which must not be written.

    Args:
        tf_tensor: a tensor or variable of numbers, on the host or on a GPU.
    Returns:
        A capsule, for one `from_dlpack` of any library.
    Raises:
        TypeError: it is no tensor. InvalidArgumentError: DLPack has no such numbers.

    >>> import twofold as tf
    >>> capsule = tf.experimental.dlpack.to_dlpack(tf.constant([1.0, 2.0]))
    """
    value = tf_tensor._read_tensor() if isinstance(tf_tensor, Variable) else tf_tensor
    if not isinstance(value, Tensor):
        raise TypeError(f"The argument to `to_dlpack` must be a TF tensor, not {type(tf_tensor).__name__}")
    try:
        return value.__dlpack__()
    except BufferError as error:
        raise InvalidArgumentError(f"to_dlpack: {value.dtype.name}: {error}") from error


@public
def _from_dlpack(dlcapsule: Any) -> Tensor:
    """A tensor over the memory of another library's array: without a copy on a GPU, and with one on the host, where
    others might write to it.

    Args:
        dlcapsule: an array with the methods `__dlpack__` and `__dlpack_device__`, such as one of PyTorch or CuPy; or a
            capsule of one on the host.
    Raises:
        ValueError: its elements are not row-major, or of no dtype of ours or DLPack's. TypeError: it is neither.

    >>> import numpy as np
    >>> import twofold as tf
    >>> tf.experimental.dlpack.from_dlpack(np.array([1.0, 2.0])).numpy().tolist()
    [1.0, 2.0]
    """
    given = dlcapsule if hasattr(dlcapsule, "__dlpack_device__") else _Capsule(dlcapsule)
    kind, _ = given.__dlpack_device__()
    if int(kind) == 1:  # the host
        try:
            array = np.array(np.from_dlpack(given))
        except BufferError as error:
            raise InvalidArgumentError(f"from_dlpack: {error}") from error
        return wrap(array.astype(dt.from_numpy(array.dtype).np, copy=False))
    from twofold.runtime import cuda_exchange

    return wrap(cuda_exchange.from_dlpack(given))


class _Capsule:
    """A capsule as an array that has one."""

    def __init__(self, capsule: Any) -> None:
        if type(capsule).__name__ != "PyCapsule":
            raise TypeError("from_dlpack: expected an array with __dlpack__, or a capsule; got "
                            f"{type(capsule).__name__}")
        from twofold.runtime import cuda_exchange

        self._capsule, self._device = capsule, cuda_exchange.device_of(capsule)

    def __dlpack__(self, **settings: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


class dlpack:
    """DLPack: memory that libraries share."""

    to_dlpack = staticmethod(_to_dlpack)
    from_dlpack = staticmethod(_from_dlpack)


class extension_type:
    """Functions on values of extension types."""

    as_dict = staticmethod(_extension_type.as_dict)


if TYPE_CHECKING:
    from .._ragged.row_partition import RowPartition as RowPartition
    from .._ragged.shape import DynamicRaggedShape as DynamicRaggedShape
    from ..data._optional import Optional as Optional

_LATER = {"DynamicRaggedShape": "_ragged.shape", "Optional": "data._optional", "RowPartition": "_ragged.row_partition"}


def __getattr__(name: str) -> Any:
    if name in ("dtensor", "numpy"):
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LATER:
        return getattr(importlib.import_module(f"twofold.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


publish(__name__)
