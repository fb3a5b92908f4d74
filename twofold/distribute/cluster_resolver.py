"""`tf.distribute.cluster_resolver`: which processes there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twofold._front.namespace import publish

if TYPE_CHECKING:
    from ._transport import Group

__all__ = ["MpiClusterResolver"]


class MpiClusterResolver:
    """The processes that MPI connects, all of which are workers.

    Args:
        group: the processes.
    """

    task_type = "worker"

    def __init__(self, group: Group) -> None:
        self.task_id, self._size = group.rank, group.size

    def cluster_spec(self) -> dict[str, list[str]]:
        """A name for each process, in a dict by what they are for."""
        return {"worker": [f"rank:{n}" for n in range(self._size)]}


publish(__name__)
