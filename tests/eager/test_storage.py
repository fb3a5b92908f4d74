"""Elements of tensors are read through one accessor, which a backend with memory of its own redirects."""

from __future__ import annotations

import ast
import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from house.tree import ROOT, shipped_modules

import twofold as tf
from twofold.codegen import library
from twofold.eager import placing, stacks
from twofold.eager.tensor import Tensor, redirect, wrap
from twofold.ir import dtypes as dt
from twofold.ir import graph as g
from twofold.ir import ops
from twofold.ir.spec import spec
from twofold.runtime import lowerings  # noqa: F401 - registers them
from twofold.runtime.cpu import CPU

ASKED = {"shape", "ndim", "size", "dtype", "nbytes"}
READERS = {"bool", "int", "float", "complex", "len", "iter", "list", "tuple", "str", "repr"}


class Far:
    """Memory that the host cannot read."""

    def __init__(self, array: np.ndarray) -> None:
        self._kept = array
        self.shape, self.ndim, self.size = array.shape, array.ndim, array.size
        self.dtype, self.nbytes = array.dtype, array.nbytes


@pytest.fixture
def reads() -> Iterator[list[Any]]:
    """What is read, while memory is far away."""
    read: list[Any] = []

    def copy_from(memory: Any) -> np.ndarray:
        read.append(memory)
        return memory._kept if isinstance(memory, Far) else memory
    redirect(copy_from)
    try:
        yield read
    finally:
        redirect(None)


@pytest.mark.parametrize("value, use, expected", [
    pytest.param(2.5, float, 2.5, id="float"),
    pytest.param(7, int, 7, id="int"),
    pytest.param(True, bool, True, id="bool"),
    pytest.param(3, round, 3, id="round"),
    pytest.param(2, lambda t: "abc"[t], "c", id="index"),
    pytest.param(2.5, lambda t: t.numpy(), 2.5, id="numpy of a scalar"),
    pytest.param([1, 2], lambda t: t.numpy(), [1, 2], id="numpy"),
    pytest.param([1, 2], np.asarray, [1, 2], id="array"),
    pytest.param([1, 2], lambda t: np.asarray(t, np.int8), [1, 2], id="array of another type"),
    pytest.param([1, 2], np.from_dlpack, [1, 2], id="dlpack"),
    pytest.param([1, 2], str, "tf.Tensor([1 2], shape=(2,), dtype=int64)", id="str"),
    pytest.param([1, 2], repr, "<tf.Tensor: shape=(2,), dtype=int64, numpy=array([1, 2])>", id="repr"),
    pytest.param(2.5, lambda t: f"{t:.2f}", "2.50", id="format"),
    pytest.param([1, 2], lambda t: copy.deepcopy(t)._array, [1, 2], id="deepcopy"),
    pytest.param([1, 2], lambda t: pickle.loads(pickle.dumps(t))._array, [1, 2], id="pickle"),
    pytest.param([1, 2], tf.get_static_value, [1, 2], id="static value"),
    pytest.param([1, 2], lambda t: tf.strings.format("{}", t).numpy(), b"[1 2]", id="summary"),
])
def test_elements_are_read_through_the_accessor(reads: list[Any], value: Any, use: Callable[[Any], Any],
                                                expected: Any) -> None:
    far = Far(np.array(value))
    got = use(wrap(far))  # type: ignore[arg-type]
    assert np.array_equal(got, expected) and far in reads


def test_asking_for_the_shape_reads_nothing(reads: list[Any]) -> None:
    t = wrap(Far(np.ones((2, 3), np.float32)))  # type: ignore[arg-type]
    assert (t.shape, t.dims, t.ndim, t.dtype, len(t)) == ([2, 3], (2, 3), 2, tf.float32, 2) and not reads


def test_host_memory_is_read_in_place() -> None:
    array = np.ones(3)
    assert Tensor._array is Tensor._memory and wrap(array)._array is array


def test_a_push_writes_only_memory_that_a_push_made(reads: list[Any]) -> None:
    far = Far(np.zeros(4))
    first = stacks.push(wrap(far), wrap(np.ones(2)), 1, add=False)  # type: ignore[arg-type]
    assert first._array.tolist() == [0, 1, 1, 0] and far._kept.tolist() == [0] * 4
    second = stacks.push(first, wrap(np.full(2, 3.0)), 2, add=True)
    assert second._array.tolist() == [0, 1, 4, 3] and np.shares_memory(first._array, second._array)
    assert stacks.pop(second, 1, (2,))._array.tolist() == [1, 4]


class Asked(CPU):
    """The processor, noting the memory that it is asked for."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []

    def allocator(self, shape: Any, dtype: np.dtype) -> Any:
        self.shapes.append(shape)
        return super().allocator(shape, dtype)


def test_structured_ops_get_their_memory_from_the_backend() -> None:
    attrs = {"axis": 0, "batch_dims": 0}
    x, places = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([2, 0])
    node = g.Node(ops.gather, [g.Value(x.shape, dt.float32), g.Value(places.shape, dt.int64)], attrs,
                  [spec((2, 3), dt.float32)])
    backend = Asked()
    placer = placing.EagerPlacer(ops.gather, node, backend)
    library.lowering("gather")(placer)
    result = placer.finished()([x, places])
    assert np.array_equal(result, x[places]) and (2, 3) in backend.shapes


def test_nothing_else_reads_memory() -> None:
    """Elsewhere `_memory` is handed on, or asked for what it is, so that no read passes the accessor by."""
    wrong = []
    for path in shipped_modules():
        name = str(path.relative_to(ROOT))
        if name.split("/")[0] in ("eager", "tracer", "twofold") and name != "eager/tensor.py":
            read = [x for node in ast.walk(ast.parse(path.read_text())) for x in _looked_into(node)]
            wrong += [f"{name}:{x.lineno}" for x in read if isinstance(x, ast.Attribute) and x.attr == "_memory"]
    assert not wrong, f"read a tensor's elements by `_array`: {wrong}"


def _looked_into(node: ast.AST) -> list[Any]:
    """What a piece of Python needs more of than to hand it on or ask for its shape."""
    if isinstance(node, ast.Attribute) and node.attr not in ASKED or isinstance(node, ast.Subscript):
        return [node.value]
    if isinstance(node, ast.Call):
        fn = node.func
        if isinstance(fn, ast.Name) and fn.id in READERS or isinstance(fn, ast.Attribute) and isinstance(
                fn.value, ast.Name) and fn.value.id == "np":
            return node.args
    return [node.left] if isinstance(node, ast.BinOp) else []
