"""`tf.distribute.cluster_resolver`: which processes there are, and which of them this one is."""

from __future__ import annotations

import abc
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import twofold as tf
from twofold._formats.reading import parsed_json
from twofold._front.namespace import publish
from twofold.ir.errors import DataLossError

if TYPE_CHECKING:
    from ._transport import Group

__all__ = ["ClusterResolver", "MpiClusterResolver", "SimpleClusterResolver", "TFConfigClusterResolver"]

_LONGEST = 4 << 20  # bytes of TF_CONFIG: a hundred thousand addresses


class ClusterResolver(abc.ABC):
    """The base of what tells which processes run a program, and which of them this one is.

    Attributes:
        task_type, task_id: this process's job and its number there; None where it is in no cluster.
        environment: where it runs, as programs are told; empty by default.
    """

    task_type: Any = None
    task_id: Any = None
    environment: Any = ""

    @abc.abstractmethod
    def cluster_spec(self) -> Any:
        """The processes, a `tf.train.ClusterSpec`."""

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The address of a task, by default of this process; empty where it is in no cluster.

        Args:
            task_type, task_id: the task.
            rpc_layer: what is written before the address, with `://`.
        """
        kind = self.task_type if task_type is None else task_type
        number = self.task_id if task_id is None else task_id
        if kind is None or number is None:
            return ""
        address = self.cluster_spec().task_address(kind, number)
        return f"{rpc_layer}://{address}" if rpc_layer else address

    def num_accelerators(self, task_type: str | None = None, task_id: int | None = None,
                         config_proto: Any = None) -> dict[str, int]:
        """How many accelerators this process has, by kind; `task_type`, `task_id` and `config_proto` have no effect."""
        del task_type, task_id, config_proto
        count = len(tf.config.list_logical_devices("GPU"))
        return {"GPU": count} if count else {}


class SimpleClusterResolver(ClusterResolver):
    """Processes that the program names.

    Args:
        cluster_spec: all processes, a `tf.train.ClusterSpec`.
        master: what `master` gives without arguments.
        task_type, task_id: this process's job and its number there.
        environment: see the attribute.
        num_accelerators: what `num_accelerators` gives; by default what there is.
        rpc_layer: what `master` writes before an address.

    >>> import twofold as tf
    >>> cluster = tf.train.ClusterSpec({"worker": ["a:2222", "b:2222"]})
    >>> resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, task_type="worker", task_id=1)
    >>> resolver.master(), resolver.task_id
    ('b:2222', 1)
    """

    def __init__(self, cluster_spec: Any, master: str = "", task_type: str | None = None, task_id: int | None = None,
                 environment: str = "", num_accelerators: dict[str, int] | None = None,
                 rpc_layer: str | None = None) -> None:
        if not isinstance(cluster_spec, tf.train.ClusterSpec):
            raise TypeError(f"cluster_spec must be a `tf.train.ClusterSpec`; got {cluster_spec!r}.")
        self._spec, self._master, self._accelerators = cluster_spec, master, num_accelerators
        self.task_type, self.task_id, self.environment, self.rpc_layer = task_type, task_id, environment, rpc_layer

    def cluster_spec(self) -> Any:
        return self._spec

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        if task_type is None and task_id is None and self._master:
            return self._master
        return super().master(task_type, task_id, rpc_layer or self.rpc_layer)

    def num_accelerators(self, task_type: str | None = None, task_id: int | None = None,
                         config_proto: Any = None) -> dict[str, int]:
        """What was given; `task_type`, `task_id` and `config_proto` have no effect."""
        return super().num_accelerators() if self._accelerators is None else self._accelerators


class TFConfigClusterResolver(ClusterResolver):
    """The processes that the environment variable `TF_CONFIG` names, in JSON.

    It holds the addresses of all processes by job, and says which of them this one is:
    `{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}}`. It is read each time
    something is asked; without it there is no cluster.

    Args:
        task_type, task_id: in place of what the variable says.
        rpc_layer: what `master` writes before an address.
        environment: in place of what the variable says.

    >>> import os
    >>> import twofold as tf
    >>> os.environ["TF_CONFIG"] = '{"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}}'
    >>> resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    >>> resolver.task_type, resolver.task_id, resolver.cluster_spec().num_tasks("worker")
    ('worker', 1, 2)
    >>> del os.environ["TF_CONFIG"]
    """

    def __init__(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None,
                 environment: str | None = None) -> None:
        self._type, self._id, self._environment, self.rpc_layer = task_type, task_id, environment, rpc_layer

    def cluster_spec(self) -> Any:
        """The processes, a `tf.train.ClusterSpec`, empty without `TF_CONFIG`.

        Raises:
            ValueError: the variable holds no JSON, or no cluster.
        """
        cluster = _config().get("cluster", {})
        try:
            if not isinstance(cluster, Mapping) or not all(isinstance(tasks, list) for tasks in cluster.values()):
                raise TypeError("`cluster` must be an object of jobs, each with a list of addresses.")
            return tf.train.ClusterSpec(cluster)
        except TypeError as error:
            raise ValueError(f"TF_CONFIG: {error}") from None

    @property
    def task_type(self) -> str | None:
        """This process's job; None where nothing says it.

        Raises:
            ValueError: it is no text.
        """
        kind = _task().get("type") if self._type is None else self._type
        if kind is not None and not isinstance(kind, str):
            raise ValueError(f"TF_CONFIG: the type of `task` must be a text, such as \"worker\"; got {kind!r}.")
        return kind

    @property
    def task_id(self) -> int | None:
        """This process's number in its job; None where nothing says it.

        Raises:
            ValueError: it is no number.
        """
        number = _task().get("index") if self._id is None else self._id
        if isinstance(number, str) and number.isascii() and number.isdecimal() and len(number) < 10:
            return int(number)
        if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
            raise ValueError(f"TF_CONFIG: the index of `task` must be an integer; got {number!r}.")
        return number

    @property
    def environment(self) -> str:
        """Where the process runs, as the variable says."""
        return str(_config().get("environment", "") if self._environment is None else self._environment)

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        return super().master(task_type, task_id, rpc_layer or self.rpc_layer)


def _config() -> dict[str, Any]:
    """What `TF_CONFIG` holds; nothing where it is not there.

    Raises:
        ValueError: it holds something else than an object in JSON.
    """
    text = os.environ.get("TF_CONFIG", "")
    if not text.strip():
        return {}
    if len(text) > _LONGEST:
        raise ValueError(f"TF_CONFIG has {len(text)} characters; at most {_LONGEST} are read.")
    try:
        config: dict[str, Any] = parsed_json(text, "TF_CONFIG")
    except DataLossError as error:
        raise ValueError(f"TF_CONFIG must be an object in JSON, with `cluster` and `task`: {error} It begins with "
                         f"{text[:80]!r}.") from None
    return config


def _task() -> dict[str, Any]:
    task = _config().get("task", {})
    if not isinstance(task, dict):
        raise ValueError(f"TF_CONFIG: `task` must be an object with `type` and `index`; got {task!r}.")
    return task


class MpiClusterResolver(ClusterResolver):
    """The processes that `mpiexec` has started, all of which are workers.

    Args:
        group: the processes.
    """

    task_type = "worker"

    def __init__(self, group: Group) -> None:
        self.task_id, self._size = group.rank, group.size

    def cluster_spec(self) -> Any:
        """The processes, a `tf.train.ClusterSpec`, with a name for each in place of an address."""
        return tf.train.ClusterSpec({"worker": [f"rank:{n}" for n in range(self._size)]})


publish(__name__)
