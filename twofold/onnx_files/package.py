"""The package `onnx`, which is optional: `pip install 'twofold[onnx]'`."""

from __future__ import annotations

from typing import Any

__all__ = ["onnx_package"]


def onnx_package() -> Any:
    """The module `onnx`.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import onnx
    except ImportError:
        raise ImportError("ONNX files need the package onnx: pip install 'twofold[onnx]'") from None
    return onnx
