"""GPflow: the tests of its package."""

from __future__ import annotations

from clients.suites import Client

CLIENT = Client(
    name="gpflow",
    version="2.9.2",
    tag="v2.9.2",
    repository="https://github.com/GPflow/GPflow",
    needs=("gpflow==2.9.2", "tf_keras==2.21.0", "tensorboard>=2.15"),
    tests=("tests/gpflow",),
    example="gpflow",
    from_source=True,
    what="all of `tests/gpflow`",
)
