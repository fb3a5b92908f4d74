"""Calls of a compiled function on a GPU, with arguments as in a call before: what was found then is not asked again.

A `PlacedCall` is to GPUs what a variant is to the processor (`runtime/program_call.py`), in Python: it compares the
arguments with what they must be, and hands the memory of all inputs to the program for these sizes
(`runtime/cuda_program.py`). Whatever else there is, such as recorders, watchers or memory elsewhere, it leaves to the
way that all calls can go.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from twofold.eager import executing, record
from twofold.eager.tensor import Tensor, wrap
from twofold.eager.variable import Variable
from twofold.ir import nest, surroundings
from twofold.ir.replay import bind_sizes
from twofold.ir.spec import TensorSpec
from twofold.runtime import claims, devices, tensor_cores
from twofold.runtime.cuda import CUDA
from twofold.runtime.cuda_device import DeviceArray
from twofold.runtime.cuda_program import CudaProgram, SizedProgram

from . import watching
from .running import accept, are_plain
from .traced import Traced, referent
from .types import Args, Structure

__all__ = ["PlacedCall", "placed_call"]

#: its type; of a tensor the shape, the dtype and the type of its memory, else what it must equal, with a float's sign
_Argument = tuple[Any, Any, Any, Any]


class PlacedCall:
    """A trace on one GPU, for arguments of certain shapes."""

    def __init__(self, traced: Traced, program: SizedProgram, arguments: Sequence[_Argument],
                 captured: Sequence[DeviceArray | None], asked: bool) -> None:
        """Args:
            program: of the trace, for the sizes of these arguments.
            captured: the memory of each tensor that is captured; None for variables.
            asked: whether nothing but a block of `tf.device` says that it runs on the GPU.
        """
        self._traced, self._program, self._asked = traced, program, asked
        self._gpu, self._request = program.gpu, devices.Request("GPU", program.gpu.index)
        self._tensor_cores, self._around = tensor_cores.enabled(), surroundings.around()
        self._arguments, self._count, self._captured = arguments, len(arguments), captured
        self._variables: list[Variable | weakref.ref[Variable]] = [
            c for c in traced._captures if not isinstance(c, Tensor)]
        shapes = [(v.dims, v.dtype.np) for v in traced.graph.inputs[len(traced.specs):]]
        self._shapes = [s for s, m in zip(shapes, captured, strict=True) if m is None]
        self._results = len(traced.graph.outputs) - len(traced.updates)
        self._packed = _packer(traced)

    def __call__(self, args: Args) -> Structure:
        """The result for the arguments of a call; NotImplemented where it is not one of these, and nothing was done.

        Raises:
            InvalidArgumentError: a check failed, with the user's line.
        """
        request = devices.requested()
        if (request is None and self._asked) or (request is not None and request != self._request) or (
                len(args) != self._count or record.active.get() or watching.watchers or
                devices.logs_placement() or tensor_cores.enabled() is not self._tensor_cores or
                surroundings.around() != self._around):
            return NotImplemented
        memory = self._given(args)
        if memory is None:
            return NotImplemented
        traced = self._traced
        try:
            if not traced.updates:
                outs = self._ran(memory)
                return NotImplemented if outs is None else self._packed([wrap(m) for m in outs])
            with claims.claimed(traced.claim):
                outs = self._ran(memory)
                if outs is None:
                    return NotImplemented
                tensors = [wrap(m) for m in outs]
                claims.commit(tuple(traced.assigned), tuple(tensors[self._results:]))
            return self._packed(tensors[:self._results])
        except executing.NodeFailure as failure:
            raise executing.failed(failure) from None

    def _given(self, args: tuple[Any, ...]) -> list[DeviceArray] | None:
        """The memory of the tensors among the arguments, on the GPU; None where these are others."""
        memory: list[Any] = []
        for a, (kind, first, second, place) in zip(args, self._arguments, strict=True):
            if type(a) is not kind:
                return None
            if kind is not Tensor:
                if a != first or (kind is float and math.copysign(1.0, a) != second):  # -0.0 equals 0.0
                    return None
                continue
            m = a._memory
            if type(m) is not place or m.shape != first or m.dtype != second or (
                    place is DeviceArray and m.owner.gpu is not self._gpu):
                return None
            memory.append(m)
        return [m if type(m) is DeviceArray else self._gpu.copy_to(m) for m in memory]

    def _ran(self, memory: list[DeviceArray]) -> list[DeviceArray] | None:
        """The outputs of the program; None where a variable does not lie on the GPU, or has another shape."""
        if not self._captured:
            return self._program(memory)
        variables: tuple[Variable, ...] = tuple([referent(v) for v in self._variables])
        values: Iterator[Any] = iter(claims.snapshot(variables) if variables else ())
        expected = iter(self._shapes)
        for m in self._captured:
            if m is None:
                value = next(values)._memory
                if type(value) is not DeviceArray or value.owner.gpu is not self._gpu or (
                        (value.shape, value.dtype) != next(expected)):
                    return None
                m = value
            memory.append(m)
        return self._program(memory)


def _packer(traced: Traced) -> Callable[[list[Tensor]], Structure]:
    """What makes the result of a trace of its tensors: `traced.packed`, or less where that is plain."""
    result: Any = traced.result
    children = list(result.values()) if type(result) is dict else result if type(result) in (tuple, list) else ()
    if not children or any(type(child) is not TensorSpec for child in children):
        return traced.packed
    if type(result) is not dict:
        return type(result)
    numbers = {key: n for n, key in enumerate(nest.keys_of(result))}
    places = [(key, numbers[key]) for key in result]
    return lambda tensors: {key: tensors[n] for key, n in places}


def placed_call(traced: Traced, args: Args, leaves: Sequence[Tensor]) -> PlacedCall | None:
    """What serves calls with arguments like these; None where they do not run on a GPU as one program of known sizes.

    Args:
        args: of a call, all by position.
        leaves: the tensors among them.
    """
    captured = [c if isinstance(c, Tensor) else c._kept() for c in traced.captures]
    inputs = [*leaves, *captured]
    memory: list[Any] = [t._memory for t in inputs]
    backend = executing.backend_for(memory)
    if not isinstance(backend, CUDA) or not are_plain(args, leaves) or traced._loose or traced.spared:
        return None
    program = executing.on_backend(traced.runner.program, backend).whole
    if not isinstance(program, CudaProgram) or program.donated or not accept(traced.assigned, traced.graph):
        return None
    sizes: dict[str, Any] = {}
    for value, m in zip(traced.graph.inputs, memory, strict=True):
        bind_sizes(value.dims, m.shape, sizes)
    held = [backend.gpu.keep(m) if isinstance(c, Tensor) else None
            for c, m in zip(traced.captures, memory[len(leaves):], strict=True)]
    asked = all(isinstance(m, np.ndarray) for m in memory)
    return PlacedCall(traced, program.sized(sizes), [_argument(a) for a in args], held, asked)


def _argument(given: Any) -> _Argument:
    """What an argument must be to be like this one."""
    if type(given) is not Tensor:
        return type(given), given, math.copysign(1.0, given) if type(given) is float else None, None
    memory = given._memory
    return Tensor, memory.shape, memory.dtype, type(memory)
