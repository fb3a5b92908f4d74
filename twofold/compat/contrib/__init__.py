"""`tf.contrib`: names of TensorFlow 1's contributed packages that programs still use."""

from typing import Any

from twofold._front.namespace import publish

from . import eager

__all__ = ["eager", "summary"]


def __getattr__(name: str) -> Any:
    if name in ("summary", "keras"):
        import importlib
        return importlib.import_module("twofold.keras" if name == "keras" else f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


publish(__name__)
