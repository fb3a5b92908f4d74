"""einops: its tests of tensors of TensorFlow, those of Keras's among them."""

from __future__ import annotations

from clients.suites import Client

CLIENT = Client(
    name="einops",
    version="0.8.2",
    tag="v0.8.2",
    repository="https://github.com/arogozhnikov/einops",
    needs=("einops==0.8.2", "parameterized", "keras==3.15.1"),
    tests=("einops/tests",),
    settings={"EINOPS_TEST_BACKENDS": "numpy,tensorflow,tensorflow.keras"},
    from_source=True,
    what="all, with the backends `tensorflow` and `tensorflow.keras`",
)
