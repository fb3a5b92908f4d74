"""eagerpy: its tests of the backend `tensorflow`."""

from __future__ import annotations

from clients.suites import Client

CLIENT = Client(
    name="eagerpy",
    version="0.30.0",
    tag="v0.30.0",
    repository="https://github.com/jonasrauber/eagerpy",
    needs=("eagerpy==0.30.0",),
    tests=("tests",),
    arguments=("--backend=tensorflow",),
    example="eagerpy",
    from_source=True,
    what="all, with the backend `tensorflow`",
)
