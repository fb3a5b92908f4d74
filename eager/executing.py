"""Running compiled graphs on tensors: the nodes that native code leaves to Python, and errors at the user's line.

`executable(graph)` gives what `runtime/program.py` makes of a graph, with eager kernels behind it. Recorders are not
told of what happens inside: who calls a compiled graph records it as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from twofold.ir import graph as g
from twofold.ir.dims import evaluate
from twofold.ir.errors import InvalidArgumentError, line_text, of_values, op_error
from twofold.ir.op import Op
from twofold.ir.replay import resolve
from twofold.runtime.calls import NodeFailure

from . import constructs, dispatch, record
from .tensor import Tensor, wrap

if TYPE_CHECKING:
    from twofold.codegen.backend import Backend
    from twofold.runtime.program import Executable, Improve, KnownSizes

__all__ = ["executable", "execute", "failed", "Host"]


def executable(graph: g.Graph, donate: dict[int, int] | None = None, improve: Improve | None = None,
               label: str = "", backend: Backend | None = None, sizes: Mapping[str, int] | None = None) -> Executable:
    """The program of `graph`, on the processor unless a backend is named; see `runtime.program.Executable`."""
    from twofold.runtime.cpu import cpu  # imports compilers, which eager code does not need
    from twofold.runtime.program import Executable

    backend = cpu if backend is None else backend
    return Executable(graph, Host(backend), backend, donate, improve, label, sizes)


def execute(program: Executable, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of a compiled graph.

    Raises:
        InvalidArgumentError: a check failed, with the user's line.
    """
    token = record.active.set(())
    try:
        return program(arrays)
    except NodeFailure as failure:
        raise failed(failure) from None
    finally:
        record.active.reset(token)


def failed(failure: NodeFailure) -> Exception:
    """The error that a user sees for a failed check of compiled code."""
    if failure.op is None:
        return of_values(InvalidArgumentError(None, None, failure.code))
    if failure.loc is None:
        return of_values(op_error(InvalidArgumentError, failure.op, failure.code))
    # The call's own line is where it went wrong for the caller; the op's line is where it did in the function.
    text = f"{failure.op}: {failure.code}\n  {line_text(*failure.loc)}"
    return of_values(InvalidArgumentError(None, failure.op, text))


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
            return self.region(node.regions[0] if arrays[0] else node.regions[1])(arrays[1:], sizes)
        if op is g.WHILE:
            return self.loop(node, arrays, sizes)
        if op is g.CALL:
            own = {name: evaluate((size,), sizes)[0] for name, size in node.attrs["sizes"]}
            return self.region(node.regions[0])(arrays, own)
        return [t._memory for t in constructs.run_construct(node, [wrap(a) for a in arrays], sizes)]

    def op(self, node: g.Node, op: Op, arrays: list[np.ndarray], sizes: KnownSizes) -> Sequence[np.ndarray]:
        attrs = {k: resolve(v, sizes) for k, v in node.attrs.items()} if sizes else node.attrs
        try:
            result = dispatch.eager.apply(op, tuple([wrap(a) for a in arrays]), attrs)
        except InvalidArgumentError as error:
            if node.loc is None:
                raise
            first = error.message.split("\n  At ", 1)[0]
            raise of_values(type(error)(None, op.name, first + constructs.where(node))) from None
        results: tuple[Tensor, ...] = result if isinstance(result, tuple) else (result,)
        return [t._memory for t in results]

    def loop(self, node: g.Node, arrays: list[np.ndarray], sizes: KnownSizes) -> Sequence[np.ndarray]:
        test, body = self.region(node.regions[0]), self.region(node.regions[1])
        count = node.attrs["carried"]
        carried, rest = arrays[:count], arrays[count:]
        while test([*carried, *rest], sizes)[0]:
            carried = body([*carried, *rest], sizes)
        return carried

    def region(self, graph: g.Graph) -> Executable:
        runnable = self._regions.get(graph)
        if runnable is None:
            from twofold.runtime.program import Executable

            runnable = self._regions[graph] = Executable(graph, self, self.backend)
        return runnable
