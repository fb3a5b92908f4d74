"""What gradients that were saved read of shapes, what is printed, and state of random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

import twofold as tf
from twofold.tracer.contents import content
from twofold.tracer.symbolic import SymbolicTensor

from .table import Call, op, tensor

__all__: list[str] = []


# -- shapes -------------------------------------------------------------------------------------------
def _sizes(value: Any) -> list[Any]:
    """The elements of a shape: integers, and sizes that only running tells.

    Raises:
        ValueError: one does not follow from the shapes of tensors.
    """
    if isinstance(value, np.ndarray):
        return list(value.tolist())
    elements = content(value.value, value.trace) if isinstance(value, SymbolicTensor) else value.numpy()
    if elements is None:
        raise ValueError("a shape that it reads does not follow from those of tensors")
    return list(elements.tolist())


@op("BroadcastGradientArgs", outputs=("r0", "r1"))
def _gradient_axes(call: Call, s0: Any, s1: Any) -> list[Any]:
    """The axes that a gradient is summed over, since an operand was repeated along them."""
    first, second = _sizes(s0), _sizes(s1)
    rank = max(len(first), len(second))
    first, second = [1] * (rank - len(first)) + first, [1] * (rank - len(second)) + second
    dtype = s0.dtype if isinstance(s0, np.ndarray) else s0.dtype.np
    axes: tuple[list[int], list[int]] = ([], [])
    for axis, (a, b) in enumerate(zip(first, second, strict=True)):
        one_a, one_b = isinstance(a, int) and a == 1, isinstance(b, int) and b == 1
        if one_a:
            axes[0].append(axis)
        if one_b:
            axes[1].append(axis)
    return [np.array(those, dtype) for those in axes]


@op("ConcatOffset")
def _offsets(call: Call, concat_dim: Any, shape: list[Any]) -> list[Any]:
    """Where each of several tensors begins in what they are joined to."""
    axis = int(np.asarray(tf.get_static_value(tensor(concat_dim))).item())
    before, out = tf.zeros([], tf.int32), []
    for one in shape:
        sizes = tensor(one)
        count = sizes.dims[0]
        out.append(tf.stack([before if n == axis % count else tf.zeros([], tf.int32) for n in range(count)]))
        before = before + sizes[axis]
    return out


# -- what is printed -----------------------------------------------------------------------------------
@op("PrintV2")
def _print(call: Call, input: Any) -> list[Any]:
    tf.print(tensor(input), output_stream=_stream(call.word("output_stream", "stderr")), end=call.word("end", "\n"))
    return []


def _stream(name: str) -> Any:
    import sys
    return sys.stdout if name == "stdout" else sys.stderr


# -- random numbers ------------------------------------------------------------------------------------
@op("StatelessRandomGetAlg")
def _algorithm(call: Call) -> list[Any]:
    return [np.array(1, np.int32)]


@op("StatelessRandomGetKeyCounterAlg", outputs=("key", "counter", "alg"))
def _key_counter_alg(call: Call, seed: Any) -> list[Any]:
    key, counter = tf.raw_ops.StatelessRandomGetKeyCounter(seed=tensor(seed))
    return [key, counter, np.array(1, np.int32)]
