"""A web server on this machine that gives the files of a folder, for tests of what downloads."""

from __future__ import annotations

import contextlib
import functools
import http.server
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["serving"]


@contextlib.contextmanager
def serving(folder: Path, headers: Mapping[str, str] | None = None) -> Iterator[tuple[str, list[str]]]:
    """Serve a folder until the block ends.

    Args:
        headers: that each answer has besides.
    Returns:
        The address, with a slash at its end, and the paths that are asked for.
    """
    asked: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            asked.append(self.path)

        def end_headers(self) -> None:
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            super().end_headers()

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
