"""Ops on GPUs: where each runs, and how.

An op runs where `tf.device` says, else where its operands are: on the GPU of the first that lies on one. Operands that
lie elsewhere are copied there, as TensorFlow does. An op alone is a program of one node, made once for each op,
attributes, dtypes and shapes; what a GPU has no kernel for runs on the host, and is told of once (`executing.Host`).

Nothing of this costs anything as long as no program asks for a GPU: `start` takes the place of eager execution's door
when the first one does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from twofold.ir import graph as g
from twofold.ir import precision
from twofold.ir.op import Op
from twofold.ir.recent import Recent
from twofold.ir.types import Attrs, Results
from twofold.runtime import devices, locks

from . import convert, executing
from .dispatch import eager, inferred
from .record import active, record_custom, tell
from .tensor import Tensor, redirect, wrap

if TYPE_CHECKING:
    from twofold.runtime.cuda import CUDA
    from twofold.runtime.program import Executable

__all__ = ["moved", "start", "stop"]

_Program: TypeAlias = "tuple[Callable[[Sequence[Any]], list[Any]], bool, Attrs]"

_PROGRAMS = 4096
_lock = locks.RLock()
_started = False
_programs: Recent[Hashable, _Program] = Recent(_PROGRAMS)


def start() -> None:
    """Has all ops ask from now on where they are to run."""
    global _started
    with _lock:
        if _started:
            return
        from twofold.runtime import cuda

        redirect(cuda.copy_from)
        executing.place(_backend)
        eager.apply = _apply  # type: ignore[method-assign]  # the door of eager execution
        _started = True


def stop() -> None:
    """Has eager execution be on the host alone again, as before `start`: for tests, when no tensor is on a GPU."""
    global _started
    with _lock:
        if _started:
            redirect(None)
            executing.place(None)
            del eager.apply
            _programs.clear()
            _started = False


def moved(tensor: Tensor, index: int | None) -> Tensor:
    """The tensor on GPU number `index`, or on the host where that is None; itself where it is there. Texts stay on the
    host."""
    from twofold.runtime import cuda

    memory: Any = tensor._memory
    if cuda.index_of(memory) == index or tensor.dtype.stays_on_host:
        return tensor
    if index is None:
        return _followed(tensor, wrap(cuda.copy_from(memory)))
    start()
    return _followed(tensor, wrap(cuda.backend_of(index).gpu.here(memory)))


def _followed(tensor: Tensor, copy: Tensor) -> Tensor:
    """A copy of a tensor, of which recorders know that it is one."""
    if active.get() and tensor.dtype.is_differentiable:
        record_custom(list, (tensor,), (copy,))
    return copy


def _backend(memory: Sequence[Any]) -> CUDA | None:
    """The GPU on which what takes this memory is to run; None for the host."""
    from twofold.runtime import cuda

    asked = devices.requested()
    if asked is not None:
        return None if asked.kind == "CPU" else cuda.backend_of(asked.number)
    return next((cuda.backend_of(index) for m in memory if (index := cuda.index_of(m)) is not None), None)


def _apply(op: Op, inputs: tuple[Any, ...], attrs: Attrs) -> Results:
    """Run `op` now, where it is to run; see `ir.op.apply`."""
    inputs = convert.operands(op, inputs)
    backend = _backend([t._memory for t in inputs])
    if backend is None or any(t.dtype.stays_on_host for t in inputs):
        devices.placed(op.name, None)
        return eager.on_host(op, tuple([moved(t, None) for t in inputs]), attrs)
    devices.placed(op.name, backend.gpu.index)
    run, single, attrs = _program(backend, op, inputs, precision.stated(op, inputs, attrs))
    try:
        results = run([t._memory for t in inputs])
    except executing.NodeFailure as failure:
        raise executing.failed_alone(failure, op, inputs) from None
    outputs = tuple(map(wrap, results))
    if active.get():
        tell(op, attrs, inputs, outputs)
    return outputs[0] if single else outputs


def _program(backend: CUDA, op: Op, inputs: tuple[Tensor, ...], attrs: Attrs) -> _Program:
    """The program of one op, whether it has one result, and all of its attributes."""
    key = (backend, op, tuple([(t.dtype, t.dims) for t in inputs]), *attrs.items())
    try:
        made = _programs.get(key)
    except TypeError as error:
        raise TypeError(f"{op.name}: an attribute is not hashable: {attrs!r}") from error
    if made is None:
        made = _programs.remember(key, _made(backend, op, inputs, attrs))
    return made


def _made(backend: CUDA, op: Op, inputs: tuple[Tensor, ...], attrs: Attrs) -> _Program:
    attrs, specs, single = inferred(op, inputs, attrs)
    graph = g.Graph(op.name)
    values = [graph.add_input(t.dims, t.dtype) for t in inputs]
    graph.outputs = list(graph.add(op, values, attrs, specs).outputs)
    return _runner(executing.executable(graph, backend=backend), backend), single, attrs


def _runner(program: Executable, backend: CUDA) -> Callable[[Sequence[Any]], list[Any]]:
    """What runs a graph of known sizes on memory of any device."""
    if program.whole is None:
        return functools.partial(executing.execute_on, program)
    sized, here = program.whole.sized({}), backend.gpu.here  # type: ignore[attr-defined]  # a GPU's
    return lambda memory: sized([here(m) for m in memory])
