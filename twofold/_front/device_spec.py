"""Names of devices in parts."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["DeviceSpec"]

_PARTS = ("job", "replica", "task", "device_type", "device_index")
_PART = re.compile(r"job:(?P<job>[^/]+)|replica:(?P<replica>\d+)|task:(?P<task>\d+)|"
                   r"(?:device:)?(?P<device_type>[A-Za-z_]+)(?::(?P<device_index>\d+|\*))?")


class DeviceSpec:
    """The name of a device in parts, of which any may be missing.

    Args:
        job: the name of the job that the process belongs to.
        replica, task: their numbers.
        device_type: such as "CPU" or "GPU".
        device_index: the device's number.

    >>> import twofold as tf
    >>> spec = tf.DeviceSpec(job="worker", task=1, device_type="GPU", device_index=0)
    >>> spec.to_string()
    '/job:worker/task:1/device:GPU:0'
    >>> with tf.device(tf.DeviceSpec(device_type="CPU", device_index=0)):
    ...     print(tf.constant(1.0).device)
    /job:localhost/replica:0/task:0/device:CPU:0
    """

    __slots__ = ("_device_index", "_device_type", "_job", "_replica", "_task")

    def __init__(self, job: str | None = None, replica: int | None = None, task: int | None = None,
                 device_type: str | None = None, device_index: int | None = None) -> None:
        self._job = None if job is None else str(job)
        self._replica, self._task = (None if n is None else int(n) for n in (replica, task))
        known = device_type is not None and device_type.upper() in ("CPU", "GPU")
        self._device_type = device_type.upper() if known and device_type is not None else device_type
        self._device_index = None if device_index is None else int(device_index)

    @property
    def job(self) -> str | None:
        """The name of the job."""
        return self._job

    @property
    def replica(self) -> int | None:
        """The number of the replica."""
        return self._replica

    @property
    def task(self) -> int | None:
        """The number of the task."""
        return self._task

    @property
    def device_type(self) -> str | None:
        """What kind of device it is."""
        return self._device_type

    @property
    def device_index(self) -> int | None:
        """The device's number."""
        return self._device_index

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """The parts of a name.

        Args:
            spec: such as "/job:worker/replica:0/task:1/device:CPU:0" or "/GPU:0".
        Raises:
            ValueError: a part is none of those.

        >>> import twofold as tf
        >>> tf.DeviceSpec.from_string("/job:ps/device:CPU:3").device_index
        3
        """
        return cls(**_parsed(spec))

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """The parts of a name; this object stays as it is.

        Args:
            spec: see `from_string`.
        """
        return self.from_string(spec)

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """A name with the parts of another, and this one's where that has none.

        Args:
            dev: the other.

        >>> import twofold as tf
        >>> tf.DeviceSpec(job="ps", task=2).make_merged_spec(tf.DeviceSpec(task=1)).to_string()
        '/job:ps/task:1'
        """
        theirs = {name: getattr(dev, name) for name in _PARTS if getattr(dev, name) is not None}
        return self.replace(**theirs)

    def replace(self, **kwargs: Any) -> DeviceSpec:
        """A name with some parts others.

        Args:
            kwargs: the parts by their names.
        """
        return type(self)(**{**{name: getattr(self, name) for name in _PARTS}, **kwargs})

    def to_string(self) -> str:
        """The name."""
        text = "".join(f"/{name}:{getattr(self, name)}" for name in _PARTS[:3] if getattr(self, name) is not None)
        if self._device_type is None:
            return text
        return f"{text}/device:{self._device_type}:{'*' if self._device_index is None else self._device_index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self.to_string() == other.to_string()

    def __hash__(self) -> int:
        return hash(self.to_string())

    def __repr__(self) -> str:
        parts = [f"{name}={getattr(self, name)!r}" for name in _PARTS if getattr(self, name) is not None]
        return f"tf.DeviceSpec({', '.join(parts)})"


def _parsed(spec: str) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    for part in filter(None, str(spec).split("/")):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"Unknown attribute {part.partition(':')[0]!r} is encountered while parsing the device "
                             f"spec: {spec!r}.")
        given = {name: value for name, value in match.groupdict().items() if value is not None and value != "*"}
        if given.keys() & parts.keys():
            raise ValueError(f"Multiple device types are not allowed while parsing the device spec: {spec}.")
        parts |= given
    return parts
