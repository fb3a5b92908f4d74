"""`tf.config`: devices, threads and how ops are run."""

from __future__ import annotations

from typing import Any

from twofold._front.namespace import publish
from twofold.runtime import devices, tensor_cores, threads
from twofold.tracer import options

from ._front.api import public

__all__ = ["LogicalDevice", "LogicalDeviceConfiguration", "PhysicalDevice", "experimental",
           "experimental_functions_run_eagerly", "experimental_run_functions_eagerly", "functions_run_eagerly",
           "get_logical_device_configuration", "get_soft_device_placement", "get_visible_devices",
           "list_logical_devices", "list_physical_devices", "optimizer", "run_functions_eagerly",
           "set_logical_device_configuration", "set_soft_device_placement", "threading"]

list_physical_devices = public(devices.physical_devices)
list_logical_devices = public(devices.logical_devices)
get_soft_device_placement = public(devices.soft_placement)
set_soft_device_placement = public(devices.set_soft_placement)
get_visible_devices = list_physical_devices
LogicalDevice, PhysicalDevice = devices.LogicalDevice, devices.PhysicalDevice


class LogicalDeviceConfiguration:
    """A part of a device, as `set_logical_device_configuration` takes it.

    Args:
        memory_limit, experimental_priority, experimental_device_ordinal: accepted, without effect.
    """

    def __init__(self, memory_limit: int | None = None, experimental_priority: int | None = None,
                 experimental_device_ordinal: int | None = None) -> None:
        self.memory_limit, self.experimental_priority = memory_limit, experimental_priority
        self.experimental_device_ordinal = experimental_device_ordinal


@public
def set_logical_device_configuration(device: Any, logical_devices: Any) -> None:
    """Has a CPU appear as several, so that programs for several devices can be tried.

    They share the processor's cores and memory: tensors of all of them lie on "CPU:0".

    Args:
        device: of `list_physical_devices("CPU")`.
        logical_devices: a `LogicalDeviceConfiguration` for each.
    Raises:
        ValueError: the device is no CPU, or there is no configuration.

    >>> import twofold as tf
    >>> cpu, = tf.config.list_physical_devices("CPU")
    >>> tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    >>> [device.name for device in tf.config.list_logical_devices("CPU")]
    ['/device:CPU:0', '/device:CPU:1']
    >>> tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()])
    """
    if getattr(device, "device_type", None) != "CPU":
        raise ValueError(f"Only a CPU can appear as several devices here; got {device!r}.")
    if not logical_devices:
        raise ValueError("set_logical_device_configuration: logical_devices must name at least one device.")
    devices.set_logical_cpus(len(logical_devices))


@public
def get_logical_device_configuration(device: Any) -> list[LogicalDeviceConfiguration] | None:
    """The parts that a device appears as; None where it is one.

    Args:
        device: of `list_physical_devices`.
    """
    count = devices.logical_cpus() if getattr(device, "device_type", None) == "CPU" else 1
    return None if count == 1 else [LogicalDeviceConfiguration() for _ in range(count)]


@public
def run_functions_eagerly(run_eagerly: bool) -> None:
    """Make every `tf.function` run its Python function op by op, for debugging; or trace again.

    Args:
        run_eagerly: whether functions run eagerly from now on.
    """
    options.set_run_eagerly(bool(run_eagerly))


@public
def functions_run_eagerly() -> bool:
    """Whether every `tf.function` runs its Python function op by op.

    >>> import twofold as tf
    >>> tf.config.functions_run_eagerly()
    False
    """
    return options.runs_eagerly()


class threading:
    """How many threads an op may use."""

    @staticmethod
    def get_intra_op_parallelism_threads() -> int:
        """The number of threads that large ops share."""
        return threads.get_num_threads()

    @staticmethod
    def set_intra_op_parallelism_threads(num_threads: int) -> None:
        """Set the number of threads that large ops share; 0 chooses by the machine.

        Results never depend on it.
        """
        threads.set_num_threads(num_threads or threads.available_cpus())

    @staticmethod
    def get_inter_op_parallelism_threads() -> int:
        """Always 1: ops run one after another."""
        return 1

    @staticmethod
    def set_inter_op_parallelism_threads(num_threads: int) -> None:
        """Accepted, without effect: ops run one after another."""


experimental_run_functions_eagerly, experimental_functions_run_eagerly = run_functions_eagerly, functions_run_eagerly


class experimental:
    """Names that TensorFlow also has here."""

    list_physical_devices = list_physical_devices
    run_functions_eagerly = run_functions_eagerly
    functions_run_eagerly = functions_run_eagerly
    list_logical_devices = list_logical_devices
    VirtualDeviceConfiguration = LogicalDeviceConfiguration
    get_virtual_device_configuration = get_logical_device_configuration
    set_virtual_device_configuration = set_logical_device_configuration
    get_visible_devices = get_visible_devices
    get_memory_info = staticmethod(public(devices.memory_info))
    reset_memory_stats = staticmethod(public(devices.reset_memory_stats))
    get_device_details = staticmethod(public(devices.details))
    enable_tensor_float_32_execution = staticmethod(public(tensor_cores.enable))
    tensor_float_32_execution_enabled = staticmethod(public(tensor_cores.enabled))

    @staticmethod
    def set_memory_growth(device: Any, enable: bool) -> None:
        """Accepted, without effect: memory is taken as it is needed."""

    @staticmethod
    def get_memory_growth(device: Any) -> bool:
        """Always true: memory is taken as it is needed; `device` has no effect."""
        return True

    @staticmethod
    def get_memory_usage(device: str) -> int:
        """The bytes that tensors take on a GPU now."""
        return int(devices.memory_info(device)["current"])

    @staticmethod
    def enable_op_determinism() -> None:
        """Accepted, without effect: results are the same to the bit in every run."""

    @staticmethod
    def get_synchronous_execution() -> bool:
        """Always true: ops run at once, or in the order of the program."""
        return True

    @staticmethod
    def set_synchronous_execution(enable: Any) -> None:
        """Accepted, without effect: `enable` is true."""

    @staticmethod
    def get_device_policy() -> str:
        """Always "silent": operands are moved to where an op runs."""
        return "silent"

    @staticmethod
    def set_device_policy(device_policy: Any) -> None:
        """Accepted, without effect: `device_policy` is "silent"."""


class optimizer:
    """Settings of TensorFlow's graph optimisers; all functions are optimised here."""

    @staticmethod
    def get_jit() -> str:
        """Always "": there is no XLA, and every function is compiled."""
        return ""

    @staticmethod
    def set_jit(enabled: Any) -> None:
        """Accepted, without effect: every function is compiled; `enabled` says nothing."""

    @staticmethod
    def get_experimental_options() -> dict[str, Any]:
        """No options."""
        return {}

    @staticmethod
    def set_experimental_options(options: Any) -> None:
        """Accepted, without effect: all passes run whatever `options` are."""


publish(__name__)
