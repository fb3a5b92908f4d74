"""What the array API standard asks of tensors beside operators: their namespace, a move to a device, and `mT`.

The namespace is imported when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

from twofold.eager.tensor import Tensor

from .api import told
from .scopes import device as _device

__all__ = ["connect"]


@told
def _namespace(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """The module of the array API standard, `twofold.array_api`.

    Args:
        api_version: the version of the standard, such as "2024.12"; any that there is by default.
    Raises:
        ValueError: the version is later than that of the module.
    """
    namespace = importlib.import_module("twofold.array_api")
    if api_version is not None and api_version > namespace.__array_api_version__:
        raise ValueError(f"twofold.array_api is of version {namespace.__array_api_version__}; got {api_version!r}.")
    return namespace


@told
def _to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor on a device.

    Args:
        device: the name of one, as `.device` gives it or `tf.device` takes it.
        stream: must be None.
    Raises:
        ValueError: a stream is given.
    """
    if stream is not None:
        raise ValueError("to_device: streams are not supported.")
    import twofold as tf

    with _device(device):
        return tf.identity(self)


def _matrix_transpose(self: Tensor) -> Tensor:
    import twofold as tf

    if self.ndim < 2:
        raise ValueError(f"mT: a tensor of rank {self.ndim} holds no matrices.")
    return tf.linalg.matrix_transpose(self)


def connect() -> None:
    """Give tensors what the standard asks for."""
    Tensor.__array_namespace__ = _namespace  # type: ignore[attr-defined]
    Tensor.to_device = _to_device  # type: ignore[attr-defined]
    Tensor.mT = property(_matrix_transpose, doc="Matrices with rows and columns exchanged.")  # type: ignore[attr-defined]
