"""The element types of ONNX beside ours: the one table that both ways read."""

from __future__ import annotations

from twofold.ir import dtypes as dt
from twofold.ir.dtypes import DType

__all__ = ["ELEMENT_TYPES", "DTYPES", "ELEMENT_NAMES"]

# dtype -> number of `onnx.TensorProto.DataType`, which files carry and which never changes.
ELEMENT_TYPES: dict[DType, int] = {
    dt.float32: 1, dt.uint8: 2, dt.int8: 3, dt.uint16: 4, dt.int16: 5, dt.int32: 6, dt.int64: 7, dt.string: 8,
    dt.bool_: 9, dt.float16: 10, dt.float64: 11, dt.uint32: 12, dt.uint64: 13, dt.complex64: 14, dt.complex128: 15,
    dt.bfloat16: 16,
}
DTYPES: dict[int, DType] = {number: dtype for dtype, number in ELEMENT_TYPES.items()}

# What ONNX calls the numbers, those without a dtype of ours included, for messages.
ELEMENT_NAMES: dict[int, str] = {
    1: "float", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
    10: "float16", 11: "double", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
    17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4",
    23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2",
}
