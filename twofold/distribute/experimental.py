"""`tf.distribute.experimental`: options of communication, and older names."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from twofold._front.namespace import publish
from twofold.ir.errors import UnimplementedError

from ._strategy import MirroredStrategy, MultiWorkerMirroredStrategy, ValueContext

__all__ = ["CentralStorageStrategy", "CollectiveCommunication", "CommunicationImplementation", "CommunicationOptions",
           "MultiWorkerMirroredStrategy", "ParameterServerStrategy", "TPUStrategy", "ValueContext"]


class CommunicationImplementation(enum.Enum):
    """Who exchanges values; it has no effect here: MPI does."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


CollectiveCommunication = CommunicationImplementation


class CommunicationOptions:
    """How values of replicas are exchanged.

    Args:
        bytes_per_pack: values are exchanged together up to so many bytes; 0 for what the strategy says, or 4 MB.
        timeout_seconds: how long to wait for the processes that `TF_CONFIG` names to come; None for the usual.
        implementation: accepted, without effect.

    >>> import twofold as tf
    >>> tf.distribute.experimental.CommunicationOptions(bytes_per_pack=1 << 20).bytes_per_pack
    1048576
    """

    def __init__(self, bytes_per_pack: int = 0, timeout_seconds: float | None = None,
                 implementation: Any = CommunicationImplementation.AUTO) -> None:
        if bytes_per_pack < 0:
            raise ValueError(f"`bytes_per_pack` must be >= 0; got {bytes_per_pack}.")
        self.bytes_per_pack, self.timeout_seconds = int(bytes_per_pack), timeout_seconds
        self.implementation = CommunicationImplementation(implementation)


class CentralStorageStrategy(MirroredStrategy):
    """One replica on each of several devices of this process, as `MirroredStrategy`, with the same results.

    In TensorFlow variables are in one place, and here each replica has a copy.

    Args:
        compute_devices: as `MirroredStrategy`'s `devices`.
        parameter_device: accepted, without effect.

    >>> import twofold as tf
    >>> tf.distribute.experimental.CentralStorageStrategy(["/cpu:0"]).num_replicas_in_sync
    1
    """

    def __init__(self, compute_devices: Sequence[str] | None = None, parameter_device: str | None = None) -> None:
        del parameter_device
        super().__init__(compute_devices)


class ParameterServerStrategy:
    """Refused: there are no parameter servers here; `MultiWorkerMirroredStrategy` trains on several machines.

    Args:
        args, kwargs: without effect.
    Raises:
        UnimplementedError: always.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise UnimplementedError(None, None, "There are no parameter servers in twofold: use "
                                  "tf.distribute.MultiWorkerMirroredStrategy, started by mpiexec.")


class TPUStrategy:
    """Refused: there is no support for TPUs.

    Args:
        args, kwargs: without effect.
    Raises:
        UnimplementedError: always.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise UnimplementedError(None, None, "twofold has no support for TPUs: use tf.distribute.OneDeviceStrategy or "
                                  "tf.distribute.MultiWorkerMirroredStrategy.")


publish(__name__)
