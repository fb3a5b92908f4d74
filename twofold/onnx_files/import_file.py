"""Reading ONNX files: from a path or bytes to a checked `Model`.

A file is data from anywhere. It is parsed by the package `onnx`'s messages alone, nothing of it is run, imported or
unpickled, and what is made of it is bounded by its size.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from twofold._formats.reading import opened, reads
from twofold.ir.errors import FailedPreconditionError

from .import_graph import Model, Reader, domain_of
from .import_tensors import ExternalData, Room
from .package import onnx_package

__all__ = ["read_model"]


def read_model(source: Any) -> tuple[Model, str]:
    """The model of a file or of bytes, and what messages call it.

    Raises:
        NotFoundError: there is no such file. DataLossError: it is damaged. FailedPreconditionError: it was made for ops
            that are newer than the package `onnx`.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _parsed(bytes(source), ExternalData(None), "ONNX model"), "ONNX model"
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"import_onnx takes the path of a file or its bytes; got {type(source).__name__}.")
    name = os.fspath(source)
    with opened(source) as file:
        data = file.read()
    return _parsed(data, ExternalData(Path(name).parent), name), name


def _parsed(data: bytes, external: ExternalData, name: str) -> Model:
    onnx = onnx_package()
    decode_error: type[Exception] = importlib.import_module("google.protobuf.message").DecodeError
    with reads(name, ImportError):
        proto = onnx.ModelProto()
        try:
            proto.ParseFromString(data)
        except decode_error as e:
            raise ValueError(f"it is no ONNX model: {e}") from None
        if not proto.HasField("graph") or not proto.opset_import:
            raise ValueError("it is no ONNX model: it has no graph, or names no set of ops")
        versions = {domain_of(o.domain): o.version for o in proto.opset_import}
        newest = onnx.defs.onnx_opset_version()
        if versions.get("", 1) > newest:
            raise FailedPreconditionError(None, None, f"{name} uses ops of version {versions['']}; the package onnx "
                                          f"knows them up to {newest}. A newer one may read it.")
        if any(v < 1 for v in versions.values()):
            raise ValueError(f"versions of sets of ops are {versions}")
        room = Room(len(data))
        reader = Reader(versions, external, room)
        functions = {(domain_of(f.domain), f.name): reader.function(f) for f in proto.functions}
        return Model(reader.graph(proto.graph), functions, versions, room)
