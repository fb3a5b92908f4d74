"""Devices: their names, what there is, and where ops are asked to run.

There is the CPU. Asking for a GPU that is missing falls back to the CPU (soft placement), unless
`set_soft_placement(False)` makes it an error; an explicit copy to a missing GPU is always one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextvars import ContextVar
from typing import NamedTuple

__all__ = ["PhysicalDevice", "LogicalDevice", "device", "physical_devices", "logical_devices", "require_gpu",
           "soft_placement", "set_soft_placement", "FULL_NAME"]

FULL_NAME = "/job:localhost/replica:0/task:0/device:CPU:0"
_NAME = re.compile(r"(?:/job:\w+)?(?:/replica:\d+)?(?:/task:\d+)?/?(?:device:)?"
                   r"(?P<kind>cpu|gpu)(?::(?P<index>\d+|\*))?", re.IGNORECASE)
_requested: ContextVar[str | None] = ContextVar("twofold_device", default=None)
_soft = True


class PhysicalDevice(NamedTuple):
    """A device of this machine: `name` and `device_type`."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device as programs name it: `name` and `device_type`."""

    name: str
    device_type: str


def physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of this machine, all or of one type ("CPU", "GPU").

    >>> import twofold as tf
    >>> tf.config.list_physical_devices("CPU")
    [PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
    """
    devices = [PhysicalDevice("/physical_device:CPU:0", "CPU")]
    return [d for d in devices if device_type is None or d.device_type == device_type.upper()]


def logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices that programs may name, all or of one type."""
    return [LogicalDevice(d.name.replace("physical_device", "device"), d.device_type)
            for d in physical_devices(device_type)]


def soft_placement() -> bool:
    """Whether a missing device is replaced by the CPU."""
    return _soft


def set_soft_placement(enabled: bool) -> None:
    """Choose whether a missing device is replaced by the CPU or is an error."""
    global _soft
    _soft = bool(enabled)


def require_gpu(index: int) -> None:
    """Raise unless GPU number `index` exists.

    Raises:
        RuntimeError: it does not.
    """
    count = len(physical_devices("GPU"))
    if index >= count:
        raise RuntimeError(f"GPU:{index} is not available: this machine has {count} GPUs. "
                           "tf.config.list_physical_devices('GPU') lists them.")


def parse(name: str) -> tuple[str, int]:
    """`("CPU", 0)` for any spelling that TensorFlow knows, such as "/cpu:0", "GPU:1" or "/device:GPU:0".

    Raises:
        ValueError: the name is no device's.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"Malformed device specification {name!r}; expected a name such as '/cpu:0' or '/gpu:0'.")
    index = match["index"]
    return match["kind"].upper(), 0 if index in (None, "*") else int(index)


def device(name: str | None) -> Iterator[None]:
    """Run the ops of this block on the device `name`; None lifts an outer request. (`tf.device` is the block of it.)

    Raises:
        ValueError: the name is malformed. RuntimeError: the device is missing and soft placement is off.

    >>> import twofold as tf
    >>> with tf.device("/cpu:0"):
    ...     x = tf.constant(1.0)
    >>> x.device
    '/job:localhost/replica:0/task:0/device:CPU:0'
    """
    if name is not None:
        kind, index = parse(str(name))
        have = len(physical_devices(kind))
        if index >= have and not _soft:
            raise RuntimeError(f"{name} unknown device: this machine has {have} of type {kind}.")
    token = _requested.set(name)
    try:
        yield
    finally:
        _requested.reset(token)
