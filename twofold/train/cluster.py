"""`ClusterSpec`: which processes run a program together, by what they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["ClusterSpec"]


class ClusterSpec:
    """The addresses of processes, by their jobs.

    Args:
        cluster: for each job the addresses of its tasks, in a list or in a dict by their numbers; or another
            `ClusterSpec`.
    Raises:
        TypeError: it is nothing of that kind.

    >>> import twofold as tf
    >>> cluster = tf.train.ClusterSpec({"worker": ["a:2222", "b:2222"], "chief": {0: "c:2222"}})
    >>> cluster.jobs, cluster.num_tasks("worker"), cluster.task_address("chief", 0)
    (['chief', 'worker'], 2, 'c:2222')
    """

    def __init__(self, cluster: ClusterSpec | Mapping[str, Sequence[str] | Mapping[int, str]]) -> None:
        if isinstance(cluster, ClusterSpec):
            self._jobs: dict[str, dict[int, str]] = {job: dict(tasks) for job, tasks in cluster._jobs.items()}
        elif isinstance(cluster, Mapping):
            self._jobs = {str(job): _tasks(job, tasks) for job, tasks in cluster.items()}
        else:
            raise TypeError("`cluster` must be a dictionary of jobs, each with a list of addresses or a dictionary of "
                            f"them by number; got {cluster!r}.")

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs, in alphabetical order."""
        return sorted(self._jobs)

    def as_dict(self) -> dict[str, Any]:
        """The addresses in a dict by job: a list of them, or a dict by number where numbers are left out."""
        return {job: list(tasks.values()) if list(tasks) == list(range(len(tasks))) else dict(tasks)
                for job, tasks in sorted(self._jobs.items())}

    def num_tasks(self, job_name: str) -> int:
        """How many tasks a job has."""
        return len(self._job(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The numbers of a job's tasks, in order."""
        return list(self._job(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of a task.

        Args:
            job_name: its job.
            task_index: its number there.
        Raises:
            ValueError: there is no such task.
        """
        tasks = self._job(job_name)
        if task_index not in tasks:
            raise ValueError(f"No task with index {task_index!r} in job {job_name!r}: there are {list(tasks)}.")
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """The addresses of a job's tasks, None where a number is left out."""
        tasks = self._job(job_name)
        return [tasks.get(n) for n in range(max(tasks, default=-1) + 1)]

    def _job(self, job_name: str) -> dict[int, str]:
        if job_name not in self._jobs:
            raise ValueError(f"No such job in cluster: {job_name!r}; there are {self.jobs}.")
        return self._jobs[job_name]

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Mapping):
            other = ClusterSpec(other)
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    def __hash__(self) -> int:
        return hash(str(self.as_dict()))

    def __repr__(self) -> str:
        return f"ClusterSpec({self.as_dict()!r})"


def _tasks(job: Any, tasks: Any) -> dict[int, str]:
    """A job's addresses by number."""
    if isinstance(tasks, Mapping):
        numbered = dict(tasks)
    elif isinstance(tasks, Sequence) and not isinstance(tasks, (str, bytes)):
        numbered = dict(enumerate(tasks))
    else:
        raise TypeError(f"The tasks of job {job!r} must be a list of addresses, or a dictionary of them by number; got "
                        f"{tasks!r}.")
    for number, address in numbered.items():
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise TypeError(f"The numbers of tasks of job {job!r} must be integers >= 0; got {number!r}.")
        if not isinstance(address, str):
            raise TypeError(f"The address of task {number} of job {job!r} must be a string; got {address!r}.")
    return dict(sorted(numbered.items()))
