"""Several CPUs of this process, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import twofold as tf

__all__ = ["logical_cpus"]


@contextmanager
def logical_cpus(count: int) -> Iterator[list[str]]:
    """Has the process have so many logical CPUs for a block; gives their names."""
    cpu, = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
    try:
        yield [device.name for device in tf.config.list_logical_devices("CPU")]
    finally:
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()])
