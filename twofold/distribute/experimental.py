"""`tf.distribute.experimental`: options of communication, and older names."""

from __future__ import annotations

import enum
from typing import Any

from twofold._front.namespace import publish
from twofold.ir.errors import UnimplementedError

from ._strategy import MultiWorkerMirroredStrategy, ValueContext

__all__ = ["CollectiveCommunication", "CommunicationImplementation", "CommunicationOptions",
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
        timeout_seconds: accepted, without effect.
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
