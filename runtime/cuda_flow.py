"""Branches and loops of a plan that a GPU goes through by itself: one launch for each (`codegen/gpu_flow.py`).

They are recorded and compiled once for a plan, when sizes come up for which they suit a block of threads.
"""

from __future__ import annotations

from typing import NamedTuple

from twofold.codegen import gpu_flow
from twofold.codegen.gpu_flow import FlowKernel
from twofold.codegen.plan import Branch, Plan, Step, While

from . import locks
from .cuda_code import LoadedKernel, function
from .cuda_device import Gpu
from .cuda_places import Place, PlanPlaces
from .cuda_work import KernelLaunch

__all__ = ["FlowLaunch", "FlowLaunches"]


class FlowLaunch(NamedTuple):
    """The launch of some control flow.

    Attributes:
        can_fail: whether a check in it can fail.
        tests: whether it reads status words, which must have been set before.
    """

    launch: KernelLaunch
    can_fail: bool
    tests: bool


class _Made(NamedTuple):
    """Control flow that is compiled; its step stands for it where launches are told of."""

    flow: FlowKernel
    loaded: LoadedKernel
    step: Step


class FlowLaunches:
    """The control flow of a plan on one GPU."""

    def __init__(self, plan: Plan, gpu: Gpu) -> None:
        self._plan, self._gpu = plan, gpu
        self._lock = locks.RLock()
        self._made: dict[int, _Made | str] = {}  # by the identity of a part of the plan

    def launch(self, part: Branch | While, places: PlanPlaces, status: Place | None) -> FlowLaunch | str:
        """The launch that goes through a part of the plan, for some sizes; in words why there is none.

        Args:
            status: where the plan's status words lie; None where it has none.
        """
        why = gpu_flow.unfit(self._plan, part, places.number)
        if why is not None:
            return why
        made = self._compiled(part)
        if isinstance(made, str):
            return made
        words = [1, 0, 0 if status is None else status, *map(places.word, made.flow.arguments)]
        launch = KernelLaunch(made.loaded, *made.loaded.shape(1), words, made.step)
        return FlowLaunch(launch, any(step.codes for step in made.step.inside), made.flow.tests)

    def _compiled(self, part: Branch | While) -> _Made | str:
        with self._lock:
            made = self._made.get(id(part))
            if made is None:
                made = self._made[id(part)] = self._make(gpu_flow.flow_kernel(self._plan, part), part)
            return made

    def _make(self, flow: FlowKernel, part: Branch | While) -> _Made | str:
        if len(flow.arguments) > gpu_flow.MOST_ARGUMENTS:
            return "it has more arguments than a kernel may"
        step = Step(flow.kernel, [], 1, 1, node=part.node, inside=[self._plan.steps[n] for n in flow.steps])
        return _Made(flow, function(self._gpu, flow.kernel, 1 + len(flow.arguments)), step)
