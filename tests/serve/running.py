"""Servers in processes of their own, for tests, and a client that is not the library's."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from quick.start import python

__all__ = ["BODY", "Server", "answer_of", "serving", "until"]

BODY = {"instances": [[1.0, 0.0, 0.0, 0.0]]}  # for the default signature
_LONG = 120  # seconds after which a test gives up


class Server:
    """A server that runs.

    Attributes:
        process: of it.
        port: where it listens.
    """

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process, self.port = process, port

    def connection(self) -> http.client.HTTPConnection:
        """A new connection."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=_LONG)

    def request(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
                ) -> tuple[int, Any, dict[str, str]]:
        """Status, document and headers of a response; a document is written as JSON, an iterator in
        pieces."""
        with contextlib.closing(self.connection()) as connection:
            data = body if body is None or isinstance(body, (bytes, Iterator)) else json.dumps(body).encode()
            connection.request(method, path, data, headers or {})
            return answer_of(connection)

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        """Status and document for a body."""
        return self.request("POST", f"/v1/models/{path}", body)[:2]

    def get(self, path: str) -> tuple[int, Any]:
        """Status and document."""
        return self.request("GET", path)[:2]

    def metric(self, line: str) -> float:
        """A number that Prometheus reads; 0 where there is none yet."""
        text = self.get("/metrics")[1]
        found = re.search(rf"^{re.escape(line)} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    def stop(self) -> int:
        """Tells it to stop, and what it ended with."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_LONG)


def answer_of(connection: http.client.HTTPConnection) -> tuple[int, Any, dict[str, str]]:
    """Status, document and headers of the response that a connection gives."""
    response = connection.getresponse()
    text = response.read().decode()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return response.status, json.loads(text) if "json" in headers.get("content-type", "") else text, headers


@contextlib.contextmanager
def serving(folder: Path, *options: str) -> Iterator[Server]:
    """A server of a folder's models, on a port that is free."""
    process = subprocess.Popen(python("-m", "twofold", "serve", str(folder), "--port", "0", *options),
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("serving at "), line
        yield Server(process, int(line.rsplit(":", 1)[1]))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def until(condition: Callable[[], bool]) -> None:
    """Waits for a condition."""
    end = time.monotonic() + _LONG
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("what was waited for did not come about")
        time.sleep(0.01)
