"""Kinds of machines, as the planner and whoever runs graphs see them: a `Backend` answers for one; and lowerings of
ops, which `lowering` registers.

A backend says which nodes it runs and how they enter a plan, from how much work its threads share a step, and runs
plans over memory of its own. What it knows besides, such as instructions and addresses, stays behind these questions.
Lowerings whose kernels are loop IR serve every backend (`EVERY`); those that need what a backend alone has, such as the
processor's way to sort, belong to it.

The processor's backend is `runtime/cpu.py`'s, the one that runs loop IR as it is `runtime/reference.py`'s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from twofold.ir import graph as g
from twofold.ir.dims import Dim, DimLike
from twofold.ir.precision import FAST

from .target import CACHES

if TYPE_CHECKING:  # eager execution imports this module, and plans nothing at first
    from .fused_base import FusedKernel
    from .layout import Layout
    from .operands import LibraryKey, Run
    from .placer import Placer
    from .plan import Plan, Shares
    from .units import Group, Source

__all__ = ["Backend", "Lower", "Lowering", "CompiledGraph", "EVERY", "INTERRUPTED", "AGAIN", "lowering"]

INTERRUPTED = 1 << 62  # the status of a run that a signal has ended in one of its loops
AGAIN = 1 << 61  # that of one that is to be run again by better code, from its beginning

Lower: TypeAlias = "Callable[[Placer], None]"  # asks for the kernels that a node becomes
DeviceMemory: TypeAlias = Any  # whatever a backend keeps arrays in


class Lowering(NamedTuple):
    """How an op becomes kernels; `handles` says for which of the op's nodes in graphs, on a backend."""

    handles: Callable[[g.Node, Backend], bool]
    lower: Lower


class CompiledGraph(Protocol):
    """A compiled graph."""

    @property
    def donated(self) -> dict[int, int]:
        """Output number -> the number of the input whose memory it takes, which a call overwrites."""

    def __call__(self, arrays: Sequence[DeviceMemory], sizes: dict[str, int]) -> list[DeviceMemory]:
        """The outputs for row-major arrays.

        Raises:
            NodeFailure: a check failed.
        """


EVERY: dict[str, Lowering] = {}  # by the name of the op


class Backend(ABC):
    """A kind of machine.

    Attributes:
        name: what it is called.
        own: the lowerings that it alone has, by the name of the op.
        reorders: whether its products can leave the axes of a result in another order, where what reads it wants that.
        most_batches: how many batch dimensions its products take; None for any number.
        caches: what loops are tiled for.
        is_host: whether its memory is the host's.
        tensor_cores: whether it has tensor cores of the kind that we know.
        fast: whether all products of floats may be as these give them, not to the bit.
    """

    name = ""
    is_host = True
    tensor_cores = False
    fast = False
    reorders = False
    most_batches: int | None = None
    caches = CACHES

    own: dict[str, Lowering]

    # -- planning ---------------------------------------------------------------------------------
    @abstractmethod
    def prepare(self) -> None:
        """Loads the lowerings; called before a graph is looked at."""

    def lowering(self, name: str) -> Lowering | None:
        """How nodes of the op `name` enter a plan, where some do by a lowering."""
        return self.own.get(name) or EVERY.get(name)

    def lowered(self, node: g.Node) -> Lower | None:
        """The function that lowers a structured node into a plan; None where the node is a unit itself."""
        lowering = self.lowering(node.op.name)
        return lowering.lower if lowering is not None and lowering.handles(node, self) else None

    def kernels_of(self, group: Group, stored: Sequence[g.Value],
                   overwrites: dict[g.Value, g.Value]) -> list[FusedKernel]:
        """The kernels that compute a fused group; see `fused.kernels_of`."""
        from .fused import kernels_of

        return kernels_of(group, stored, overwrites, self.caches)

    @abstractmethod
    def product(self, p: Placer, out: g.Value, left: Source, right: Source, layout: Layout | None) -> list[Run]:
        """The runs of a matrix product of real numbers, with arguments as `Placer.product` takes them."""

    def by_tensor_cores(self, node: g.Node) -> bool:
        """Whether products of floats that a node consists of are those of tensor cores: where there are some, and the
        node, or the program as a whole, asks for them."""
        return self.tensor_cores and (self.fast or node.attrs.get("precision") == FAST)

    def finished(self, run: Run, group: Group, stored: Sequence[g.Value], overwrites: dict[g.Value, g.Value],
                 product: g.Value, kept: bool) -> Run:
        """A run of a product, which has `tiles`, with an epilogue that computes a group; see `epilogues.finished`."""
        from .epilogues import finished

        return finished(run, group, stored, overwrites, product, kept)

    def begun(self, run: Run, groups: Mapping[g.Value, Group]) -> Run:
        """A run of a product, in which operands that groups make are computed as they are loaded, where it says that it
        can do so (`operands.Loads`); itself if it loads none of them."""
        return run

    def supports(self, node: g.Node) -> bool:
        """Whether a node can be part of a plan."""
        if node.op in (g.CONSTANT, g.SIZE):
            return node.op is g.SIZE or node.attrs["value"].dtype != object
        if any(v.dtype.name == "string" for v in (*node.inputs, *node.outputs)):
            return False
        if isinstance(node.op, g.Construct):
            if node.op in (g.PUSH, g.POP, g.ASSERT):
                return self.lowered(node) is not None
            return node.op in (g.COND, g.WHILE) and _is_steady(node) and all(
                self.supports(inner) for region in node.regions for inner in region.nodes)
        if node.op.view is not None or node.op.body is not None or node.op.reduction is not None:
            return True
        return self.lowered(node) is not None

    def wider(self, keys: Collection[LibraryKey]) -> dict[LibraryKey, LibraryKey]:
        """For each library kernel of a plan that another one of the plan can replace, the key of the other one, by its
        own key."""
        return {}

    @abstractmethod
    def shares(self, work: DimLike) -> Shares | None:
        """How threads may share a step of `work` simple operations; None where one thread runs it."""

    def threads(self) -> int:
        """For how many threads at most steps are planned that run block by block of rows (`row_blocks.py`)."""
        return 1

    def shares_rounds(self, works: Sequence[int], parts: int) -> Shares | None:
        """How threads may share a loop as a whole (`loop_rows.py`); None where they do not.

        Args:
            works: simple operations of each step of a round.
            parts: how many parts the loop falls into at most.
        """
        return None

    # -- running ----------------------------------------------------------------------------------
    @abstractmethod
    def key(self) -> str:
        """The part of a cache key that has all that compiled plans depend on besides their graph."""

    @abstractmethod
    def compile(self, plan: Plan) -> CompiledGraph:
        """A callable that runs a plan."""

    @abstractmethod
    def program(self, graph: g.Graph, donate: dict[int, int], origin: g.Graph, label: str,
                sizes: Mapping[str, int]) -> CompiledGraph:
        """A callable that runs a graph of supported nodes, which is planned for it unless that was done before.

        Args:
            donate: output number -> number of an input whose memory it may take; not used where a run could fail
                after memory given away was written.
            origin: the graph that passes made `graph` of, by which it is kept.
            label: stands for those passes.
            sizes: what symbols stand for in the first run, as far as that is known. It may tell how good code should
                be, and nothing else.
        """

    def stored(self, graph: g.Graph, donate: dict[int, int], label: str, improve: Callable[[], g.Graph]
               ) -> CompiledGraph | None:
        """The compiled program that `program` kept for the graph `origin`, if there is one; `improve` gives what passes
        make of it, for code that is made later."""
        return None

    @abstractmethod
    def empty(self, shape: Sequence[int], dtype: np.dtype) -> DeviceMemory:
        """Memory for an array, uninitialised."""

    def allocator(self, shape: Sequence[int], dtype: np.dtype) -> Callable[[tuple[int, ...], np.dtype], Any]:
        """The function that gives such memory, called with the same shape and dtype: for those who need it often."""
        return self.empty

    def keep(self, memory: DeviceMemory) -> None:
        """Tells that runs will be given this memory again, of whatever backend: what has to be copied may be kept for
        as long as it lives."""
        return  # whose memory is the host's copies nothing

    @abstractmethod
    def copy_to(self, array: np.ndarray) -> DeviceMemory:
        """The backend's memory with the elements of an array of the host."""

    @abstractmethod
    def copy_from(self, memory: DeviceMemory) -> np.ndarray:
        """An array of the host with the elements of the backend's memory."""


def _is_steady(node: g.Node) -> bool:
    """Whether the sizes of what control flow carries and gives are known before it begins."""
    outside = {name for v in node.inputs for d in v.dims if isinstance(d, Dim) for name in d.symbols()}
    if any(isinstance(d, Dim) and not d.symbols() <= outside for r in node.regions for v in r.inputs for d in v.dims):
        return False  # a region has a name of its own for a size
    if node.op is g.COND:
        return all(r.outputs[n].dims == v.dims for r in node.regions for n, v in enumerate(node.outputs))
    test, body = node.regions
    count = node.attrs["carried"]
    return all(v.dims == w.dims == out.dims == body.inputs[n].dims == test.inputs[n].dims
               for n, (v, w, out) in enumerate(zip(node.inputs[:count], body.outputs, node.outputs, strict=True)))


def lowering(*names: str, handles: Callable[[g.Node, Backend], bool] = lambda node, backend: True,
             table: dict[str, Lowering] = EVERY) -> Callable[[Lower], Lower]:
    """Registers the decorated function of a `Placer` as the lowering of the ops `names`.

    Args:
        handles: which of their nodes in graphs, on a backend.
        table: of a backend, where it needs kernels that others have not.
    """
    def add(lower: Lower) -> Lower:
        for name in names:
            table[name] = Lowering(handles, lower)
        return lower
    return add
