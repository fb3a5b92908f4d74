"""Running compiled graphs on tensors: the nodes that native code leaves to Python, and errors at the user's line.

`executable(graph)` gives what `runtime/program.py` makes of a graph, with eager kernels behind it. Recorders are not
told of what happens inside: who calls a compiled graph records it as one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from twofold.ir import graph as g
from twofold.ir import groups
from twofold.ir.dims import evaluate
from twofold.ir.dtypes import from_numpy
from twofold.ir.errors import InvalidArgumentError, line_text, of_values, op_error
from twofold.ir.op import Op
from twofold.ir.replay import resolve
from twofold.ir.types import Attrs
from twofold.runtime import devices
from twofold.runtime.calls import NodeFailure
from twofold.runtime.log import log

from . import constructs, dispatch, record
from .tensor import Tensor, wrap

if TYPE_CHECKING:
    from twofold.codegen.backend import Backend
    from twofold.runtime.program import Executable, Improve, KnownSizes

__all__ = ["asks_where", "backend_for", "executable", "execute", "execute_on", "failed", "failed_alone", "on_backend",
           "place", "Host", "NodeFailure"]

#: says on which backend a run with this memory takes place; None for the processor
Choose: TypeAlias = "Callable[[Sequence[Any]], Backend | None]"
_choose: list[Choose] = []


def place(choose: Choose | None) -> None:
    """Has `execute` ask where to run from now on; with None all runs are on the processor."""
    _choose[:] = [] if choose is None else [choose]
    if choose is None:
        _program_of.cache_clear()


def executable(graph: g.Graph, donate: dict[int, int] | None = None, improve: Improve | None = None,
               label: str = "", backend: Backend | None = None, sizes: Mapping[str, int] | None = None) -> Executable:
    """The program of `graph`, on the processor unless a backend is named; see `runtime.program.Executable`."""
    from twofold.runtime.cpu import cpu  # imports compilers, which eager code does not need
    from twofold.runtime.program import Executable

    backend = cpu if backend is None else backend
    return Executable(graph, Host(backend), backend, donate, improve, label, sizes)


def asks_where() -> bool:
    """Whether runs may take place elsewhere than on the processor."""
    return bool(_choose)


def backend_for(memory: Sequence[Any]) -> Backend | None:
    """Of the GPU on which a run with this memory takes place; None for the processor."""
    return _choose[-1](memory) if _choose else None


def execute(program: Executable, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of a compiled graph, which runs where its inputs lie, or where `tf.device` says. Inputs stay what
    they are, also where the program is given memory.

    Raises:
        InvalidArgumentError: a check failed, with the user's line.
    """
    if _choose:
        program, arrays = _placed(program, arrays)
    if program.donated:
        arrays = list(arrays)
        for number in program.donated.values():
            arrays[number] = arrays[number].copy()
    try:
        return execute_on(program, arrays)
    except NodeFailure as failure:
        raise failed(failure) from None


def execute_on(program: Executable, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of a compiled graph on the backend that it is for.

    Raises:
        NodeFailure: a check failed.
    """
    token = record.active.set(())
    try:
        return program(arrays)
    finally:
        record.active.reset(token)


def _placed(program: Executable, arrays: Sequence[Any]) -> tuple[Executable, Sequence[Any]]:
    """The program for the backend on which a run takes place, and the inputs in memory that it takes."""
    from twofold.runtime import cuda
    from twofold.runtime.cpu import cpu

    backend = (backend_for(arrays) or cpu) if program.moves else program.backend
    devices.placed(program.graph.name, getattr(getattr(backend, "gpu", None), "index", None))
    if backend is cpu:
        arrays = [cuda.copy_from(a) for a in arrays]
    return on_backend(program, backend), arrays


def on_backend(program: Executable, backend: Backend) -> Executable:
    """The program for a backend."""
    return program if program.backend is backend else program.on(backend, Host(backend))


def failed_alone(failure: NodeFailure, op: Op, inputs: Sequence[Tensor]) -> Exception:
    """The error that a user sees for a failed check of an op that ran alone."""
    return of_values(op_error(InvalidArgumentError, op.name, failure.code, op.operands(inputs)))


def failed(failure: NodeFailure) -> Exception:
    """The error that a user sees for a failed check of compiled code."""
    if failure.op is None:
        return of_values(InvalidArgumentError(None, None, failure.code))
    if failure.loc is None:
        return of_values(op_error(InvalidArgumentError, failure.op, failure.code))
    # The call's own line is where it went wrong for the caller; the op's line is where it did in the function.
    text = f"{failure.op}: {failure.code}\n  {line_text(*failure.loc)}"
    return of_values(InvalidArgumentError(None, failure.op, text))


_told: set[tuple[Backend, Op]] = set()


def _sized(backend: Backend, op: Op, arrays: Sequence[Any], attrs: Attrs) -> list[Any] | None:
    """The results of an op whose values decide their sizes, where the backend computes it (`sized.py`)."""
    from . import sized

    if len(arrays) != 1 or not arrays[0].size or arrays[0].dtype.hasobject:
        return None
    made = sized.made(op, from_numpy(arrays[0].dtype), arrays[0].ndim, attrs)
    if made is None:
        return None
    graph, longer = made
    outputs: list[Any] = _program_of(graph, backend)(arrays)  # memory of the backend
    *results, count = outputs
    rows = int(backend.copy_from(count).item())
    return [result.leading(rows) if more else result for result, more in zip(results, longer, strict=True)]


@functools.lru_cache(256)
def _program_of(graph: g.Graph, backend: Backend) -> Executable:
    return executable(graph, backend=backend)


class Host:
    """Runs nodes that need Python; their regions are compiled for a backend when they are first run."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._regions: dict[g.Graph, Executable] = {}

    def __call__(self, node: g.Node, arrays: list[np.ndarray], sizes: KnownSizes) -> Sequence[np.ndarray]:
        op = node.op
        if isinstance(op, Op):
            return self.op(node, op, arrays, sizes)
        if op is g.COND:
            taken = bool(self.on_host(arrays[:1])[0])
            return self.region(node.regions[0] if taken else node.regions[1])(arrays[1:], sizes)
        if op is g.WHILE:
            return self.loop(node, arrays, sizes)
        if op is g.CALL:
            own = {name: evaluate((size,), sizes)[0] for name, size in node.attrs["sizes"]}
            return self.region(node.regions[0])(arrays, own)
        if not getattr(node.attrs.get("fn"), "on_device", False):  # else it is Python that takes tensors anywhere
            arrays = self.on_host(arrays)
        return self.on_device(constructs.run_construct(node, [wrap(a) for a in arrays], sizes))

    def on_host(self, arrays: Sequence[Any]) -> list[np.ndarray]:
        """Arrays of the backend as ones of the host."""
        return list(arrays) if self.backend.is_host else [self.backend.copy_from(a) for a in arrays]

    def on_device(self, tensors: Sequence[Tensor]) -> list[Any]:
        """The memory of tensors, wherever that is, as memory of the backend; dtypes of the host stay where they are."""
        if self.backend.is_host:
            return [t._array for t in tensors]
        return [t._memory if t.dtype.stays_on_host else self.backend.copy_to(t._memory) for t in tensors]

    def op(self, node: g.Node, op: Op, arrays: list[np.ndarray], sizes: KnownSizes) -> Sequence[np.ndarray]:
        attrs = {k: resolve(v, sizes) for k, v in node.attrs.items()} if sizes else node.attrs
        made = None if self.backend.is_host else _sized(self.backend, op, arrays, attrs)
        if made is not None:
            return made
        try:
            result = dispatch.eager.on_host(op, tuple([wrap(a) for a in self.on_host(arrays)]), attrs)
        except InvalidArgumentError as error:
            if node.loc is None:
                raise
            first = error.message.split("\n  At ", 1)[0]
            raise of_values(type(error)(None, op.name, first + constructs.where(node))) from None
        results: tuple[Tensor, ...] = result if isinstance(result, tuple) else (result,)
        self.tell(op)
        return self.on_device(results)

    def begin(self, node: g.Node, arrays: list[np.ndarray], sizes: KnownSizes) -> Callable[[], Sequence[Any]]:
        """Begins an exchange with other replicas; what is given waits for its results."""
        attrs, name = {k: resolve(v, sizes) for k, v in node.attrs.items()} if sizes else node.attrs, node.op.name
        stays = not self.backend.is_host and groups.takes(name, arrays, attrs)
        pending = groups.begin(name, arrays if stays else self.on_host(arrays), attrs)

        def end() -> Sequence[Any]:
            return self.on_device([wrap(np.asarray(a, v.dtype.np) if isinstance(a, np.ndarray | np.generic) else a)
                                   for a, v in zip(pending.wait(), node.outputs, strict=True)])
        return end

    def tell(self, op: Op) -> None:
        """Says once of each op that a backend of other memory leaves it to the host."""
        if self.backend.is_host or (self.backend, op) in _told:
            return
        _told.add((self.backend, op))
        log("device", f"{op.name} runs on the host, for {self.backend.key()}")

    def loop(self, node: g.Node, arrays: list[np.ndarray], sizes: KnownSizes) -> Sequence[np.ndarray]:
        test, body = self.region(node.regions[0]), self.region(node.regions[1])
        count = node.attrs["carried"]
        carried, rest = arrays[:count], arrays[count:]
        while bool(self.on_host(test([*carried, *rest], sizes))[0]):
            carried = body([*carried, *rest], sizes)
        return carried

    def region(self, graph: g.Graph) -> Executable:
        runnable = self._regions.get(graph)
        if runnable is None:
            from twofold.runtime.program import Executable

            runnable = self._regions[graph] = Executable(graph, self, self.backend)
        return runnable
