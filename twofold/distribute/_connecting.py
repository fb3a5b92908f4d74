"""Processes that their user has started, without `mpiexec`, as one program: `TF_CONFIG` says which there are.

The first process starts a process manager at its address (`_process_manager.py`), to which all come. When all are
there, MPI connects them. Those that a launcher has started come to one, too, for signs of life alone. From then on a
thread of each listens for what becomes of the others: where one is lost, or
fails, all end, with one message that names it, also those that wait in a call of MPI's. What MPI moves is
`_transport.py`'s.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import twofold as tf
from twofold._front.together import locks

from . import _process_manager as manager

__all__ = ["Cluster", "Members", "cluster_of", "connect", "give_up", "look_after"]

_PATIENCE = 300.0  # seconds for all processes to come
_SOON = 5.0  # the same, where they are there and need no more than connect
_TOLD = 10.0  # seconds after which a process says whom it waits for
_LAST = 10.0  # seconds that an exchange may go on after a process has come to its end
_LAUNCHERS = ("PMI_FD", "PMI_PORT", "PMI_RANK", "PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE")
_NAMES = {"chief": 0, "worker": 1}


class Cluster(NamedTuple):
    """The processes of a program, in order.

    Attributes:
        names: what they do, such as "worker 1".
        addresses: theirs.
        rank: the number of this one.
    """

    names: tuple[str, ...]
    addresses: tuple[str, ...]
    rank: int

    def of(self, ranks: Any) -> str:
        """Processes by name and address."""
        return ", ".join(f"{self.names[n]} ({self.addresses[n]})" for n in ranks)


def cluster_of(resolver: Any) -> Cluster | None:
    """The processes that train together, this one among them, as a resolver tells: the chief first, then workers.

    None where this process is alone: no cluster, an evaluator, or a launcher of MPI's has started it, which knows.

    Raises:
        ValueError: the cluster does not have the task, or it is one that no strategy here has.
    """
    spec, kind, number = resolver.cluster_spec().as_dict(), resolver.task_type, resolver.task_id
    if not spec or any(name in os.environ for name in _LAUNCHERS):
        return None
    if kind == "evaluator":
        return None
    if kind is None:
        raise ValueError(f"The cluster {_short(spec)} does not say which process this is: TF_CONFIG needs a `task` "
                         "with `type` and `index`.")
    if kind not in _NAMES:
        raise ValueError(f"A task of type {kind!r} takes no part in MultiWorkerMirroredStrategy: there are chief, "
                         "worker and evaluator.")
    tasks = {(job, n): address for job in _NAMES for n, address in enumerate(spec.get(job, ()))}
    number = 0 if number is None else number
    if len(spec.get("chief", ())) > 1:
        raise ValueError(f"A cluster has at most one chief; got {_short(spec)}.")
    if (kind, number) not in tasks:
        raise ValueError(f"This process is said to be {kind} {number}, which the cluster {_short(spec)} does not "
                         "have.")
    if len(set(tasks.values())) < len(tasks):
        raise ValueError(f"Two tasks of the cluster {_short(spec)} have the same address.")
    if len(tasks) == 1:
        return None
    for address in tasks.values():
        _host_and_port(address)
    return Cluster(tuple(f"{job} {n}" for job, n in tasks), tuple(tasks.values()), list(tasks).index((kind, number)))


def _short(spec: Any) -> str:
    text = str(spec)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _host_and_port(address: str) -> tuple[str, int]:
    """The parts of an address.

    Raises:
        ValueError: it has other parts.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdecimal()) or not 0 < int(port[:6]) < 1 << 16:
        raise ValueError(f"The address of a task must be host:port; got {address!r}.")
    return host.strip("[]"), int(port)


def connect(cluster: Cluster, patience: float | None = None) -> Members:
    """Connects the processes of a program, when all have come; MPI is ready then.

    Args:
        cluster: the processes.
        patience: seconds to wait for them; None for as long as `TWOFOLD_CLUSTER_TIMEOUT` says, or five minutes.
    Raises:
        DeadlineExceededError: not all have come.
        FailedPreconditionError: the processes contradict each other, or MPI cannot connect them.
        UnavailableError: one is gone again, or the first one's address cannot be used.
    """
    end = time.monotonic() + (_patience() if patience is None else patience)
    mpi = _unused_mpi()
    members = Members(cluster)
    try:
        members.gather(end)
        members.watch()
        _begin(mpi, members, end)
    except BaseException:
        members.close()
        raise
    atexit.register(members.leave)
    return members


def look_after(mpi: Any) -> Members | None:
    """Signs of life of processes that a launcher has started, and that MPI has connected; None where they cannot be
    given.

    Args:
        mpi: `mpi4py.MPI`.
    """
    world = mpi.COMM_WORLD
    rank, size, host = world.Get_rank(), world.Get_size(), socket.gethostname()
    hosts = world.allgather(host)
    listener, about = None, None
    if rank == 0:
        with contextlib.suppress(OSError):
            listener = socket.create_server(("127.0.0.1" if set(hosts) == {host} else "", 0), backlog=1024)
            name, port = listener.getsockname()
            about = f"{host if name == '0.0.0.0' else name}:{port}", secrets.token_hex(16)
    about = world.bcast(about)
    if about is None:
        return None
    members = Members(Cluster(tuple(f"process {n} of {size}" for n in range(size)), tuple(hosts), rank), *about)
    try:
        members.gather(time.monotonic() + _SOON, listener)
    except (tf.errors.OpError, OSError):
        members.close()
    if not world.allreduce(not members.ended, mpi.LAND):
        members.close()
        return None
    members.watch()
    atexit.register(members.leave)
    return members


def _patience() -> float:
    text = os.environ.get("TWOFOLD_CLUSTER_TIMEOUT", "")
    try:
        seconds = float(text or _PATIENCE)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < threading.TIMEOUT_MAX:
        raise ValueError(f"TWOFOLD_CLUSTER_TIMEOUT must be a number of seconds; got {text!r}.")
    return seconds


def _unused_mpi() -> Any:
    """MPI, which has not begun yet.

    Raises:
        FailedPreconditionError: it has, or it is one that processes cannot come to by themselves.
        ImportError: there is none.
    """
    import mpi4py
    mpi4py.rc.initialize, mpi4py.rc.finalize = False, True  # without effect where MPI has begun
    from mpi4py import MPI
    if MPI.Is_initialized():
        raise tf.errors.FailedPreconditionError(
            None, None, "MPI has begun in this process, before the processes of TF_CONFIG were connected: make the "
                        "strategy first, or start all processes by mpiexec.")
    library = MPI.Get_library_version()
    if not any(name in library for name in ("MPICH", "Intel(R) MPI", "MVAPICH")):
        raise tf.errors.FailedPreconditionError(
            None, None, "Processes that TF_CONFIG names are connected by MPICH and its relatives (pip install mpich). "
                        f"This is {library.splitlines()[0][:60]!r}: start the processes by its mpiexec.")
    return MPI


def _begin(mpi: Any, members: Members, end: float) -> None:
    """Begins MPI, which finds the process manager by its environment."""
    sock = members.connection(end, mpi=True)
    sock.settimeout(None)
    os.environ.update(PMI_FD=str(sock.detach()), PMI_RANK=str(members.cluster.rank),
                      PMI_SIZE=str(len(members.cluster.names)))
    try:
        mpi.Init_thread(mpi.THREAD_MULTIPLE)
    finally:
        for name in ("PMI_FD", "PMI_RANK", "PMI_SIZE"):  # programs that this one starts are none of the cluster's
            del os.environ[name]


class Members:
    """The processes of a program, as this one knows them.

    Args:
        cluster: their names.
        at: the address of their process manager; by default that of the first.
        digest: what all must have in common; by default their names and addresses.
    """

    def __init__(self, cluster: Cluster, at: str = "", digest: str = "") -> None:
        self.cluster, self._at = cluster, at or cluster.addresses[0]
        self._digest = digest or hashlib.sha256(repr((cluster.names, cluster.addresses)).encode()).hexdigest()
        self._manager: Any = None
        self._socket: Any = None
        self._words: Any = ()
        self._missing = [n for n in range(len(cluster.names)) if n != cluster.rank]
        self._changed = locks.Condition()
        self.ended = False
        self.exchange: Any = None  # what says which exchange is in progress, if any

    # -- coming together --------------------------------------------------------------------------
    def gather(self, end: float, listener: socket.socket | None = None) -> None:
        """Waits until all are there.

        Args:
            end: the time to give up.
            listener: where the first process is listening, if it is.
        """
        if self.cluster.rank == 0:
            about = {"digest": self._digest, "names": self.cluster.names, "mpi": listener is None}
            with _listener(self.cluster) if listener is None else listener as there:
                self._manager = _started(there, about)
        self._socket = self.connection(end)
        self._words = _Words(self._socket)
        _forget_in_child(self)
        told = time.monotonic() + _TOLD
        while True:
            self._socket.settimeout(max(0.01, min(end, told) - time.monotonic()))
            try:
                word = next(self._words, None)
            except TimeoutError:
                if time.monotonic() >= end:
                    self._say(late=self._missing)
                    raise self._late() from None
                sys.stderr.write(f"twofold: waiting for {self.cluster.of(self._missing)}\n")
                told = end
                continue
            if word is None:
                raise tf.errors.UnavailableError(None, None, f"{self.cluster.of([0])} was lost before all had come.")
            if "error" in word:
                raise tf.errors.FailedPreconditionError(None, None, word["error"])
            if "start" in word:
                return
            self._missing = word["missing"]
            if "late" in word:
                raise self._late()

    def _late(self, why: str = "") -> Exception:
        return tf.errors.DeadlineExceededError(
            None, None, f"These processes of TF_CONFIG have not come in time: {self.cluster.of(self._missing)}{why}. "
                        "Each must be started with the same cluster and its own task. TWOFOLD_CLUSTER_TIMEOUT says how "
                        "many seconds to wait.")

    def connection(self, end: float, mpi: bool = False) -> socket.socket:
        """A connection to the process manager, at the address of the first process.

        Args:
            end: the time to give up.
            mpi: whether it is for MPI, and not this process's sign of life.
        """
        address = _host_and_port(self._at)
        told = time.monotonic() + _TOLD
        while True:
            try:
                sock = socket.create_connection(address, timeout=max(0.1, min(5.0, end - time.monotonic())))
                break
            except OSError as error:  # not there yet
                if time.monotonic() >= end:
                    self._missing = [0]
                    raise self._late(f" ({error})") from None
            if time.monotonic() >= told:
                sys.stderr.write(f"twofold: waiting for {self.cluster.of([0])}\n")
                told = end
            time.sleep(0.05)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        manager.kept_alive(sock)
        hello = {"words": manager.WORDS, "digest": self._digest, "rank": self.cluster.rank, "mpi": mpi}
        sock.sendall(json.dumps(hello).encode() + b"\n")
        return sock

    # -- being together ---------------------------------------------------------------------------
    def watch(self) -> None:
        """Has a thread listen for what becomes of the others."""
        self._socket.settimeout(None)
        threading.Thread(target=self._listen, name="twofold-cluster", daemon=True).start()

    def _listen(self) -> None:
        for word in self._words:
            if "left" in word:
                threading.Thread(target=self._look_after, args=(word["left"],), daemon=True).start()
                continue
            if "end" in word:
                break
            self._stop(self._told(word))
        else:
            if not self.ended:
                self._stop(f"the connection to {self.cluster.of([0])} was lost")
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def _told(self, word: dict[str, Any]) -> str:
        """What became of a process, in words."""
        if "lost" in word:
            return f"{self.cluster.of([word['lost']])} was lost"
        if "failed" in word:
            return f"{self.cluster.of([word['failed']])} ended with an error ({word['error']})"
        return str(word.get("error", word))

    def _look_after(self, left: int) -> None:
        """A process has come to its end: an exchange with it, other than the last one, would never end."""
        end, seen = 0.0, None
        while not self.ended:
            now = None if self.exchange is None else self.exchange()
            if now is None or now != seen:
                end, seen = time.monotonic() + _LAST, now
            elif time.monotonic() > end:
                why = f"{self.cluster.of([left])} has come to its end, and is waited for in an exchange: all " \
                      "must come to the same exchanges"
                self._say(failed=why)
                self._stop(why)
            time.sleep(0.1)

    def _stop(self, why: str) -> None:
        """Ends this process at once, wherever it is."""
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        with contextlib.suppress(Exception):
            sys.stderr.write(f"twofold: {why}; therefore {self.cluster.of([self.cluster.rank])} ends, too.\n")
            sys.stderr.flush()
        give_up()

    def _say(self, **what: Any) -> None:
        with contextlib.suppress(OSError):
            self._socket.sendall(json.dumps(what).encode() + b"\n")

    def fail(self, error: BaseException) -> None:
        """Tells all others that this one has failed, which ends them."""
        self._say(failed=f"{type(error).__name__}: {error}"[:500])

    def leave(self) -> None:
        """Waits for all others to come to their end, before MPI does, which would not notice where one is lost."""
        self._say(bye=True)
        try:
            with self._changed:
                self._changed.wait_for(lambda: self.ended)
        except KeyboardInterrupt as error:
            self.fail(error)
            give_up()
        self._socket.close()

    def close(self) -> None:
        """Gives up before the processes are connected."""
        self.ended = True
        if self._socket is not None:
            self._socket.close()
        if self._manager is not None:
            with contextlib.suppress(OSError):
                self._manager.stdin.close()
            try:
                self._manager.wait(2)
            except subprocess.TimeoutExpired:
                self._manager.kill()
                self._manager.wait()


def _listener(cluster: Cluster) -> socket.socket:
    """A socket that listens at the first process's address."""
    host, port = _host_and_port(cluster.addresses[0])
    try:
        local = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0]
        # a name that others know may be a proxy's, as in Kubernetes
        own = str(local) if str(local).startswith("127.") or local == "::1" else ""
        family = socket.AF_INET6 if ":" in own else socket.AF_INET
        return socket.create_server((own, port), family=family, backlog=1024)
    except OSError as error:
        raise tf.errors.UnavailableError(None, None, f"The address of {cluster.of([0])} cannot be used: {error}."
                                         ) from None


def _started(listener: socket.socket, about: dict[str, Any]) -> subprocess.Popen[bytes]:
    """The process manager, with the socket where it listens, and what it is told."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(Path(manager.__file__)), str(listener.fileno())], stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=None if about["mpi"] else subprocess.DEVNULL,
        pass_fds=[listener.fileno()], start_new_session=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps(about).encode() + b"\n")
    process.stdin.flush()
    return process


def give_up() -> None:
    """Ends this process at once, and gives back the memory that MPICH shares between processes of a machine: where they
    do not end as MPI wants, it stays."""
    with contextlib.suppress(OSError), open("/proc/self/maps") as maps:
        for path in {line.split()[-1] for line in maps}:
            if not path.startswith("/dev/shm/mpich_shm_"):
                continue
            with contextlib.suppress(OSError):
                os.unlink(path)
    os._exit(1)


class _Words:
    """What the process manager says on a connection, an object after another; a timeout does not end it.

    Args:
        sock: the connection.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._socket, self._read = sock, b""

    def __iter__(self) -> _Words:
        return self

    def __next__(self) -> dict[str, Any]:
        while b"\n" not in self._read:
            data = self._received()
            if not data or len(self._read) > manager.LONGEST:
                raise StopIteration
            self._read += data
        line, self._read = self._read.split(b"\n", 1)
        try:
            word: dict[str, Any] = json.loads(line)
        except ValueError:
            raise tf.errors.UnavailableError(None, None, "Somebody else answers at the first process's address: "
                                             f"{line[:80]!r}.") from None
        return word

    def _received(self) -> bytes:
        try:
            return self._socket.recv(1 << 16)
        except TimeoutError:
            raise
        except OSError:
            return b""


def _forget_in_child(members: Members) -> None:
    """A child that the program forks is none of the processes, and does not keep a connection whose end is to tell that
    this one is lost."""
    def forget() -> None:
        members._socket.close()
        members.ended = True
    os.register_at_fork(after_in_child=forget)
