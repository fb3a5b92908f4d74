"""What a server is told when it starts."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """How a server behaves.

    Attributes:
        window: seconds that a request may wait for others to be joined with.
        rows: up to how many rows requests are joined.
        workers: how many threads run models.
        body: bytes that the body of a request may have.
        queue: how many requests may be in the server at a time, being read, waiting or running.
        timeout: seconds that a request may take, from its first byte to its result.
        poll: seconds between looks at the folder.
        latest: how many versions of a model are served, the highest first; None for all.
        nan: whether requests may hold NaN, Infinity and -Infinity, which JSON has not.
        drain: seconds in which a server that is told to stop still takes new requests, while it says that it is not
            ready.
        stop: seconds after which requests that are still at work are given up when the server stops.
    """

    window: float = 0.0
    rows: int = 64
    workers: int = 2
    body: int = 16 << 20
    queue: int = 256
    timeout: float = 30.0
    poll: float = 1.0
    latest: int | None = None
    nan: bool = False
    drain: float = 0.5
    stop: float = 30.0
