"""einops: its tests of tensors of TensorFlow, those of Keras's among them, and with backends of twofold's own."""

from __future__ import annotations

import dataclasses

from clients.suites import Client

CLIENT = Client(
    name="einops",
    version="0.8.2",
    tag="v0.8.2",
    repository="https://github.com/arogozhnikov/einops",
    needs=("einops==0.8.2", "parameterized", "keras==3.15.1"),
    tests=("einops/tests",),
    settings={"EINOPS_TEST_BACKENDS": "numpy,tensorflow,tensorflow.keras"},
    example="einops",
    from_source=True,
    what="all, with the backends `tensorflow` and `tensorflow.keras`",
)
#: the same tests, with what `einops_backend.py` offers in the place of einops's backends of TensorFlow
OWN_BACKEND = dataclasses.replace(
    CLIENT, name="einops-twofold", example=None,
    # it runs with the backend `tensorflow` alone, by name
    arguments=("--deselect=einops/tests/test_layers.py::test_keras_layer",),
    here={"EINOPS_TEST_BACKENDS": "numpy,twofold,twofold.keras", "PYTEST_PLUGINS": "einops_backend"},
    what="the same, here with the backends `twofold` and `twofold.keras` of `tests/clients/einops_backend.py`",
)
