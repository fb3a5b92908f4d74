"""The process manager of processes that were started without `mpiexec`: a program of its own, beside the first of them.

Each process comes with two connections. One gives MPI what it asks of a process manager: the PMI protocol of MPICH,
version 1.1, by which processes tell one another their addresses (P. Balaji and others, "PMI: A Scalable Parallel
Process-Management Interface for Extreme-Scale Systems", 2010). The other is a sign of life: where it ends without a
word, the process was lost, and all others are told. No data pass here. It imports nothing of the package, so that it is
there at once, and ends with the last connection. Who starts it and connects is `_connecting.py`'s.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import sys
import time
from typing import Any

LONGEST = 1 << 20  # bytes of a line
WORDS = "twofold 1"  # what a connection begins with


def main() -> None:
    """Manages the processes that the first line of the standard input names, with the socket of that number."""
    about = json.loads(sys.stdin.buffer.readline())
    Manager(socket.socket(fileno=int(sys.argv[1])), about["digest"], about["names"], about["mpi"]).run()


class Connection:
    """A connection of a process: what has come, and what it is for.

    Attributes:
        rank: the number of the process; -1 before it has said it.
        alive: whether it is the sign of life, and not MPI's.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.socket, self.rank, self.alive = sock, -1, False
        self._read = b""

    def lines(self) -> list[bytes] | None:
        """The lines that have come; None where there will be no more."""
        try:
            data = self.socket.recv(1 << 16)
        except OSError:
            data = b""
        if not data or len(self._read) > LONGEST:
            return None
        *lines, self._read = (self._read + data).split(b"\n")
        return lines

    def tell(self, line: str) -> None:
        """Sends a line; a process that is gone is noticed where its connection is read."""
        with contextlib.suppress(OSError):
            self.socket.sendall(line.encode() + b"\n")

    def say(self, **what: Any) -> None:
        """Sends an object on the sign of life."""
        self.tell(json.dumps(what))


class Manager:
    """Gathers the processes of a program, serves MPI, and tells all when one is lost.

    Args:
        listener: where they come.
        digest: of their cluster, which all must have.
        names: theirs.
        mpi: whether MPI comes, too, as it does where nobody else manages the processes.
    """

    def __init__(self, listener: socket.socket, digest: str, names: list[str], mpi: bool) -> None:
        self._listener, self._digest, self._names, self._mpi = listener, digest, names, mpi
        self._ready = selectors.DefaultSelector()
        self._ready.register(listener, selectors.EVENT_READ)
        self._ready.register(sys.stdin.buffer, selectors.EVENT_READ)
        self._there: dict[int, Connection] = {}  # signs of life
        self._left: set[int] = set()  # those that have come to their end
        self._started = self._over = False
        self._why: dict[str, Any] = {}
        self._job = f"twofold_{os.getpid()}_{time.time_ns():x}"  # MPI names what processes share by it
        self._values: dict[str, str] = {}
        self._waiting: list[Connection] = []
        self._served: list[Connection] = []  # those of MPI's

    def run(self) -> None:
        """Works until all processes are gone."""
        while not (self._started and self._over) or self._there or self._served:  # MPI takes leave last
            for key, _ in self._ready.select():
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is sys.stdin.buffer:
                    self._ready.unregister(sys.stdin.buffer)  # the first process has ended
                    if not self._started:
                        return
                else:
                    self._hear(key.data)

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        kept_alive(sock)
        sock.settimeout(5)
        self._ready.register(sock, selectors.EVENT_READ, Connection(sock))

    def _hear(self, connection: Connection) -> None:
        """What a connection has to say."""
        lines = connection.lines()
        if lines is None:
            self._ready.unregister(connection.socket)
            connection.socket.close()
            self._gone(connection)
            return
        for line in lines:
            try:
                if connection.rank < 0:
                    self._greet(connection, json.loads(line))
                elif connection.alive:
                    self._word(connection, json.loads(line))
                else:
                    self._serve(connection, dict(part.split("=", 1) for part in line.decode().split()))
            except (ValueError, KeyError, TypeError, RecursionError):  # not one of ours
                connection.socket.shutdown(socket.SHUT_RDWR)
                return

    # -- gathering --------------------------------------------------------------------------------
    def _greet(self, connection: Connection, hello: Any) -> None:
        """Takes a process in, or refuses it, and with it all others."""
        rank = hello["rank"]
        if not isinstance(rank, int) or not 0 <= rank < len(self._names):
            raise ValueError(hello)
        if hello["words"] != WORDS:
            self._refuse(connection, f"{self._names[rank]} has another version of twofold than {self._names[0]}.")
            return
        if hello["digest"] != self._digest:
            self._refuse(connection, f"{self._names[rank]} has another cluster in its TF_CONFIG than {self._names[0]}: "
                                     "all must have the same.")
            return
        connection.rank, connection.alive = rank, not hello["mpi"]
        if hello["mpi"]:
            self._served.append(connection)
            if len(self._served) == len(self._names):
                self._close()
            return
        if rank in self._there:
            self._refuse(connection, f"Two processes say in TF_CONFIG that they are {self._names[rank]}.")
            return
        self._there[rank] = connection
        if self._over:  # before it came
            connection.say(**self._why)
        else:
            self._count()

    def _count(self) -> None:
        """Tells all who is missing, or that they can start."""
        missing = [n for n in range(len(self._names)) if n not in self._there]
        self._started = not missing
        if self._started and not self._mpi:
            self._close()
        for other in self._there.values():
            other.say(**({"missing": missing} if missing else {"start": len(self._names)}))

    def _close(self) -> None:
        """All are there: nobody else comes."""
        self._ready.unregister(self._listener)
        self._listener.close()

    def _refuse(self, connection: Connection, why: str) -> None:
        connection.say(error=why)
        self._end(error=why)

    # -- signs of life ----------------------------------------------------------------------------
    def _word(self, connection: Connection, word: Any) -> None:
        """A process has come to its end, in one way or the other."""
        if "failed" in word:
            del self._there[connection.rank]  # which knows it
            self._end(failed=connection.rank, error=str(word["failed"]))
        elif "late" in word and connection.rank == 0:
            self._end(late=True, missing=word["late"])
        elif "bye" in word:
            self._left.add(connection.rank)
            if len(self._left) == len(self._names):
                self._end(end=True)
                return
            for rank, other in self._there.items():
                if rank not in self._left:
                    other.say(left=connection.rank)

    def _gone(self, connection: Connection) -> None:
        if connection in self._served:
            self._served.remove(connection)
        if self._there.get(connection.rank) is not connection or not connection.alive:
            return
        del self._there[connection.rank]
        if self._started:
            self._end(lost=connection.rank)
        elif not self._over:  # it may come again
            self._count()

    def _end(self, **why: Any) -> None:
        """Tells all why there is no more; once, since the end of one is that of others."""
        if self._over:
            return
        self._over, self._why = True, why
        for connection in self._there.values():
            connection.say(**why)
        if "end" not in why:  # who begins with MPI does not wait any more
            for connection in self._served:
                with contextlib.suppress(OSError):
                    connection.socket.shutdown(socket.SHUT_RDWR)

    # -- MPI --------------------------------------------------------------------------------------
    def _serve(self, connection: Connection, asked: dict[str, str]) -> None:
        """Answers a request of MPI's."""
        kind = asked["cmd"]
        if kind == "barrier_in":
            self._waiting.append(connection)
            if len(self._waiting) == len(self._names):
                for one in self._waiting:
                    one.tell("cmd=barrier_out rc=0")
                self._waiting.clear()
        elif kind == "abort":
            self._end(failed=connection.rank, error="MPI ended it")
        elif kind == "put":
            self._values[asked["key"]] = asked["value"]
            connection.tell("cmd=put_result rc=0")
        elif kind == "get":
            value = self._values.get(asked["key"])
            connection.tell("cmd=get_result rc=1" if value is None else f"cmd=get_result rc=0 value={value}")
        else:
            connection.tell(self._facts()[kind])

    def _facts(self) -> dict[str, str]:
        return {
            "init": "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1",
            "get_maxes": "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024",
            "get_appnum": "cmd=appnum rc=0 appnum=0",
            "get_universe_size": f"cmd=universe_size rc=0 size={len(self._names)}",
            "get_my_kvsname": f"cmd=my_kvsname rc=0 kvsname={self._job}",
            "finalize": "cmd=finalize_ack rc=0",
        }


def kept_alive(sock: socket.socket) -> None:
    """Has the system ask every few seconds whether the other side is there, and end the connection where it is not."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 20000)):
        if hasattr(socket, name):  # Linux; elsewhere the system's own times hold
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


if __name__ == "__main__":
    main()
