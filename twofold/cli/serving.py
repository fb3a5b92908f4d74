"""`twofold serve FOLDER`: saved models and native libraries over HTTP, by TensorFlow Serving's REST API."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .common import Failure, Misuse, say, say_json

__all__ = ["add", "run"]

_MEGABYTE = 1 << 20


def add(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("folder", metavar="FOLDER", help="models with versions (FOLDER/NAME/1), one model (FOLDER/1), "
                        "or one saved model")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at (%(default)s)")
    parser.add_argument("--port", type=int, default=8501, help="the port, or 0 for any that is free (%(default)s)")
    for name, default, kind, about in _NUMBERS:
        parser.add_argument(f"--{name}", metavar="N", type=kind, default=default,
                            help=about if default is None else f"{about} (%(default)s)")
    parser.add_argument("--nan", action="store_true", help="take NaN, Infinity and -Infinity in requests")


# Name, default, kind and meaning of the numbers; all are above 0, but for those in _MAY_BE_0.
_NUMBERS: list[tuple[str, float | int | None, Any, str]] = [
    ("batch-window", 0.0, float, "milliseconds that a request may wait for others to be joined with"),
    ("batch-rows", 64, int, "up to how many rows requests are joined; 1 joins none"),
    ("workers", 2, int, "threads that run models"),
    ("max-body", 16.0, float, "megabytes (2**20 bytes) that a body may have"),
    ("queue", 256, int, "requests that may be in the server at a time; more are refused with 429"),
    ("timeout", 30.0, float, "seconds that a request may take"),
    ("poll", 1.0, float, "seconds between looks at the folder"),
    ("latest", None, int, "serve so many versions of each model, the highest first; all by default"),
    ("drain", 0.5, float, "seconds for which a server that is stopping still takes requests"),
    ("stop-timeout", 30.0, float, "seconds after which a server that is stopping gives up requests"),
]
_MAY_BE_0 = {"batch-window", "drain"}


def run(args: argparse.Namespace) -> None:
    """Serves until the process is told to stop."""
    for name, *_ in _NUMBERS:
        value = getattr(args, name.replace("-", "_"))
        if value is not None and not (value > 0 or (value == 0 and name in _MAY_BE_0)):
            raise Misuse(f"--{name} must be {'0 or more' if name in _MAY_BE_0 else 'more than 0'}; got {value}")
    if not 0 <= args.port <= 65535:
        raise Misuse(f"--port must be from 0 to 65535; got {args.port}")
    folder = Path(args.folder)
    if not folder.is_dir():
        raise Failure(f"{args.folder} is no folder")
    _check_packages()
    from twofold.serve.server import listening, serve, service
    from twofold.serve.settings import Settings

    settings = Settings(
        window=args.batch_window / 1000, rows=args.batch_rows, workers=args.workers,
        body=int(args.max_body * _MEGABYTE), queue=args.queue, timeout=args.timeout, poll=args.poll,
        latest=args.latest, nan=args.nan, drain=args.drain, stop=args.stop_timeout)
    bound = listening(args.host, args.port)
    made = service(folder, settings)

    def started() -> None:
        host, port = bound.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        models = {m.name: sorted(n for n, v in m.versions.items() if v.servable) for m in made.models.models.values()}
        if args.json:
            say_json({"address": address, "models": models})
        else:
            say(f"serving at {address}", *[f"  {name}: {', '.join(map(str, numbers)) or 'no version is available'}"
                                           for name, numbers in sorted(models.items())])
        _flush()
    serve(made, bound, settings, started)


def _flush() -> None:
    import sys
    sys.stdout.flush()


def _check_packages() -> None:
    """Raises an error where the extra is not installed."""
    import importlib.util

    missing = [name for name in ("prometheus_client", "starlette", "uvicorn") if importlib.util.find_spec(name) is None]
    if missing:
        raise Failure(f"a server needs {', '.join(missing)}: pip install 'twofold[serve]'")
