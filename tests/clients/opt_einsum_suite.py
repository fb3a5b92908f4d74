"""opt_einsum: its tests, of which those of backends meet TensorFlow."""

from __future__ import annotations

from clients.suites import Client

CLIENT = Client(
    name="opt_einsum",
    version="3.4.0",
    tag="v3.4.0",
    repository="https://github.com/dgasmith/opt_einsum",
    needs=("opt_einsum==3.4.0",),
    tests=("opt_einsum/tests/test_backends.py", "opt_einsum/tests/test_contract.py"),
    example="opt_einsum",
    from_source=True,
    what="backends and contractions",
)
