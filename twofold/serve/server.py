"""The process: it loads, listens, and stops without losing a request.

Told to stop (SIGTERM, SIGINT), a server says at `/readyz` that it is not ready, and with each response that its
connection ends; for a short while it still takes what comes. Then it takes no new connection (`door.py`), reads what
those that there are have sent, finishes what is inside, and ends with status 0. A second signal ends it at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from .app import Service
from .batching import Runner
from .door import shut
from .metrics import Metrics
from .models import Models
from .settings import Settings

__all__ = ["listening", "serve", "service"]

_LOG = logging.getLogger("twofold.serve")
_BACKLOG = 2048  # connections that the system holds until they are taken
_LAST = 0.25  # seconds in which connections that were just made may send their requests
_IDLE = 75  # seconds after which a connection without requests is closed


def service(folder: Path, settings: Settings) -> Service:
    """What answers requests for the models of a folder, all of them loaded, and looks at the folder from now on.

    What becomes of models is logged to standard error.

    Raises:
        OSError: the folder cannot be read. ImportError: the extra `serve` is not installed.
    """
    logging.basicConfig(stream=sys.stderr, format="twofold: %(message)s")
    _LOG.setLevel(logging.INFO)
    metrics = Metrics()
    models = Models(folder, settings.latest, metrics)
    models.refresh()
    models.watch(settings.poll)
    return Service(models, settings, metrics, Runner(settings.workers, settings.rows, settings.window, metrics))


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is any that is free.

    Raises:
        OSError: the address is taken, or not this machine's.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM,
                                                            flags=socket.AI_PASSIVE)[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(_BACKLOG)
    except OSError:
        made.close()
        raise
    return made


def serve(service: Service, bound: socket.socket, settings: Settings, started: Callable[[], None]) -> None:
    """Serves until the process is told to stop.

    Args:
        service: what answers.
        bound: a socket that listens.
        settings: how long stopping may take.
        started: called when requests are taken.
    """
    asyncio.run(_serve(service, bound, settings, started))
    service.models.close()
    if not service.runner.close():
        _LOG.error("calls that did not end in time are given up")
        logging.shutdown()
        os._exit(1)  # the interpreter would wait for their threads


async def _serve(service: Service, bound: socket.socket, settings: Settings, started: Callable[[], None]) -> None:
    import uvicorn

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield  # they are `_Stop`'s

    server = Server(uvicorn.Config(
        service.application(), log_level="warning", access_log=False, lifespan="off", server_header=False,
        timeout_keep_alive=_IDLE, timeout_graceful_shutdown=max(1, round(settings.stop)), backlog=_BACKLOG))
    _Stop(service, server, bound, settings.drain).on_signals()
    serving = asyncio.ensure_future(server.serve([bound]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    started()
    await serving


class _Stop:
    """Stops a server step by step, at signals."""

    def __init__(self, service: Service, server: Any, bound: socket.socket, drain: float) -> None:
        self.service, self.server, self.bound, self.drain = service, server, bound, drain
        self.loop = asyncio.get_running_loop()

    def on_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._told)

    def _told(self, number: int, frame: FrameType | None) -> None:
        if self.service.stopping:
            self.server.force_exit = True
        self.service.stopping = True
        self.loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        if self.server.force_exit:
            self._end()
        else:
            self.loop.call_later(self.drain, self._shut)

    def _shut(self) -> None:
        shut(self.bound)
        self.loop.call_later(_LAST, self._end)

    def _end(self) -> None:
        self.server.should_exit = True
