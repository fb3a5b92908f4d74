"""TensorLy: all of its tests with the backend `tensorflow`."""

from __future__ import annotations

from clients.suites import Client

CLIENT = Client(
    name="tensorly",
    version="0.9.0",
    tag="0.9.0",
    repository="https://github.com/tensorly/tensorly",
    needs=("tensorly==0.9.0",),
    tests=("tensorly/tests", "tensorly/tenalg"),
    settings={"TENSORLY_BACKEND": "tensorflow"},
    example="tensorly",
    from_source=True,
    what="of its backend, tensors and products, with the backend `tensorflow`",
)
