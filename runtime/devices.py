"""Devices: their names, what there is, and where ops are asked to run.

There is the CPU, and the GPUs that NVIDIA's driver knows (`cuda_device.py`). Asking for a GPU that is missing falls
back to the CPU (soft placement), unless `set_soft_placement(False)` makes it an error; an explicit copy to a missing
GPU is always one. How ops come to run elsewhere is the affair of who runs them, who is told when a GPU is first asked
for (`when_asked`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from . import native

if TYPE_CHECKING:
    from .cuda_device import Gpu

__all__ = ["PhysicalDevice", "LogicalDevice", "Request", "canonical", "details", "device", "full_name", "log_placement",
           "logical_cpus", "logical_devices", "logs_placement", "memory_info", "number_of", "physical_devices",
           "placed", "require_gpu", "requested", "reset_memory_stats", "set_logical_cpus", "soft_placement",
           "set_soft_placement", "when_asked", "FULL_NAME"]

_TASK = "/job:localhost/replica:0/task:0"
FULL_NAME = f"{_TASK}/device:CPU:0"
_NAME = re.compile(r"(?:/job:\w+)?(?:/replica:\d+)?(?:/task:\d+)?/?(?:device:)?"
                   r"(?P<kind>cpu|gpu)(?::(?P<index>\d+|\*))?", re.IGNORECASE)
_soft = True
_cpus = 1  # that programs may name: parts of the one that there is
_logged = False  # whether it is told where what runs
_starters: list[Callable[[], None]] = []


class Request(NamedTuple):
    """What `tf.device` asks for: "CPU" or "GPU", and which."""

    kind: str
    number: int


_requested: ContextVar[Request | None] = ContextVar("twofold_device", default=None)


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
    if device_type is None or device_type.upper() == "GPU":
        from . import cuda_device  # which programs without GPUs do without

        devices += [PhysicalDevice(f"/physical_device:GPU:{n}", "GPU") for n in range(len(cuda_device.gpus()))]
    return [d for d in devices if device_type is None or d.device_type == device_type.upper()]


def logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices that programs may name, all or of one type."""
    devices = [LogicalDevice(d.name.replace("physical_device", "device"), d.device_type)
               for d in physical_devices(device_type)]
    more = range(1, _cpus) if device_type is None or device_type.upper() == "CPU" else ()
    return [*devices[:1], *[LogicalDevice(f"/device:CPU:{n}", "CPU") for n in more], *devices[1:]]


def logical_cpus() -> int:
    """How many CPUs programs may name."""
    return _cpus


def set_logical_cpus(count: int) -> None:
    """Sets how many CPUs programs may name; all of them are the same processor and memory."""
    global _cpus
    _cpus = count


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


def canonical(name: str) -> str:
    """The full name of a device, for any spelling of it; see `parse`."""
    kind, index = parse(name)
    return f"{_TASK}/device:{kind}:{index}"


def device(name: str | LogicalDevice | None) -> Iterator[None]:
    """Run the ops of this block on a device, or that of its name; None lifts an outer request. (`tf.device` is the
    block of it.)

    Raises:
        ValueError: the name is malformed. RuntimeError: the device is missing and soft placement is off.

    >>> import twofold as tf
    >>> with tf.device("/cpu:0"):
    ...     x = tf.constant(1.0)
    >>> x.device
    '/job:localhost/replica:0/task:0/device:CPU:0'
    """
    written = getattr(name, "to_string", None)  # of a `tf.DeviceSpec`
    named = name.name if isinstance(name, LogicalDevice) else name if written is None else written()
    request = None if named is None else _checked(str(named))
    token = _requested.set(request)
    on_gpu = request is not None and request.kind == "GPU"
    if on_gpu:
        _start()
        native.change_tracers(1)  # native entries know of the host alone
    try:
        yield
    finally:
        _requested.reset(token)
        if on_gpu:
            native.change_tracers(-1)


def number_of(name: str) -> int | None:
    """The number of the GPU that a name asks for, on which tensors may lie from now on; None for the CPU.

    Raises:
        ValueError: the name is malformed. RuntimeError: the device is missing and soft placement is off.
    """
    request = _checked(name)
    if request.kind == "CPU":
        return None
    _start()
    return request.number


def _start() -> None:
    for start in _starters:
        start()


def _checked(name: str) -> Request:
    """What a name asks for; the CPU in the place of what is missing.

    Raises:
        ValueError: the name is malformed. RuntimeError: the device is missing and soft placement is off.
    """
    kind, index = parse(name)
    have = _cpus if kind == "CPU" else len(physical_devices(kind))
    if index < have:
        return Request(kind, 0 if kind == "CPU" else index)
    if not _soft:
        raise RuntimeError(f"{name} unknown device: this machine has {have} of type {kind}.")
    return Request("CPU", 0)


def requested() -> Request | None:
    """What the innermost block asks for; None where nothing does."""
    return _requested.get()


def when_asked(start: Callable[[], None]) -> None:
    """Has `start` called whenever a block asks for a GPU, before it begins."""
    _starters.append(start)


def full_name(index: int | None) -> str:
    """The name of GPU number `index` as tensors tell it; of the CPU where that is None."""
    return FULL_NAME if index is None else f"{_TASK}/device:GPU:{index}"


def memory_info(name: str) -> dict[str, int]:
    """Bytes of a GPU's memory that tensors hold: now ("current"), and the most that they held at once ("peak").

    Args:
        name: of the GPU, such as "GPU:0".
    Raises:
        ValueError: it names no GPU of this machine.

    >>> import twofold as tf
    >>> if tf.config.list_physical_devices("GPU"):
    ...     tf.config.experimental.get_memory_info("GPU:0")["current"] >= 0
    """
    held = _gpu(name).statistics()
    return {"current": held.in_use, "peak": held.peak}


def reset_memory_stats(name: str) -> None:
    """Has the peak of `get_memory_info` begin with what is held now.

    Args:
        name: of the GPU, such as "GPU:0".
    Raises:
        ValueError: it names no GPU of this machine.
    """
    _gpu(name).forget_peak()


def details(device: PhysicalDevice) -> dict[str, Any]:
    """What is known of a device, for a GPU its name and its compute capability, such as (9, 0).

    Args:
        device: one of `tf.config.list_physical_devices`.
    """
    kind, index = parse(device.name.removeprefix("/physical_device:"))
    if kind != "GPU":
        return {}
    gpu = _gpu(f"GPU:{index}")
    return {"device_name": gpu.name, "compute_capability": gpu.capability}


def _gpu(name: str) -> Gpu:
    from . import cuda_device

    kind, index = parse(str(name))
    gpu = cuda_device.gpu(index) if kind == "GPU" else None
    if gpu is None:
        raise ValueError(f"{name!r} is no GPU of this machine; tf.config.list_physical_devices('GPU') lists them")
    return gpu


def log_placement(enabled: bool) -> None:
    """Choose whether a line on stderr tells of each op that runs on its own, and of each run of a function, where it
    runs.

    Args:
        enabled: whether it does from now on.
    """
    global _logged
    if bool(enabled) == _logged:
        return
    _logged = bool(enabled)
    _start()
    native.change_tracers(1 if _logged else -1)


def logs_placement() -> bool:
    """Whether it is told where what runs."""
    return _logged


def placed(what: str, index: int | None) -> None:
    """Tells that something runs on GPU number `index`, or on the CPU, where that is asked for."""
    if _logged:
        sys.stderr.write(f"Executing op {what} in device {full_name(index)}\n")
