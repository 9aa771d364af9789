"""Sums of arrays of other packages: `gemmlab.sum` on a GPU.

A sum is one launch on the caller's stream, or a few for an array of many axes. A call copies nothing to the host and
does not wait.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gemmlab import kernels
from gemmlab.arrays.on_gpu import DeviceArray
from gemmlab.arrays.packages import Package
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.cuda_code import WordsLaunch
from gemmlab.dispatch.axis_plans import AxisPlan, Stage, axis_plan
from gemmlab.dispatch.scratch import Fresh, Needs, ScratchMemory
from gemmlab.kernels.cuda_kernel import shipped_kernel
from gemmlab.kernels.instances import Instance, LoadedCode, instance_for
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.catalog import find_op

_KERNELS = Path(str(kernels.__file__)).parent
_MOST_SUMS = 1024
_ALIGNED = 256
_POINTERS = ("x", "out", "workspace", "tickets")


@dataclass(frozen=True, slots=True)
class _Launches:
    """The launches of one stage, ready for any addresses."""

    launch: WordsLaunch
    at: tuple[int, ...]
    """Positions of `_POINTERS` among the arguments; only the first two if the kernel has no scratch memory."""
    steps: tuple[tuple[int, int], ...]
    """The launches of the stage, as in `Stage.steps`."""


@dataclass(frozen=True, slots=True)
class PreparedSum:
    """A sum for one layout, ready for any addresses."""

    plan: AxisPlan
    launches: tuple[_Launches, ...]
    needs: Needs | None
    """Scratch memory, which begins with the results that one stage passes to the next; `None` if no launch needs
    any.
    """
    between: int
    """Bytes that one stage passes to the next, rounded up to 256; 0 for a single stage."""

    def enqueue(self, x: int, out: int, stream: int, workspace: int, tickets: int) -> None:
        """Queue the launches on a stream of the current context, for these addresses."""
        source = x + self.plan.first
        for index, stage in enumerate(self.launches, start=1):
            target = out if index == len(self.launches) else workspace
            block = stage.launch.take()
            words, at = block.words, stage.at
            if len(at) > 2:
                words[at[2]], words[at[3]] = workspace + self.between, tickets
            for from_x, from_out in stage.steps:
                words[at[0]], words[at[1]] = source + from_x, target + from_out
                stage.launch.enqueue(stream, block)
            stage.launch.give(block)
            source = target


class CudaSums:
    """Sums of float32 on one GPU, with the stored preparation for each layout."""

    def __init__(self, ordinal: int) -> None:
        self.device = CudaDevice(ordinal)
        self.scratch = ScratchMemory(self.device)
        self._code = LoadedCode(self.device)
        self._prepared: dict[tuple[Any, ...], PreparedSum] = {}

    def prepared(
        self, found: DeviceArray, axes: Sequence[int], *, keepdims: bool, out_strides: tuple[int, ...] | None
    ) -> PreparedSum:  # fmt: skip
        """Return the sum for arrays with the shape and strides of `found`. Raises `DeviceError` and `CompileError`.

        The result has `out_strides` in bytes; `None` stands for C order.
        """
        key = found.shape, found.strides, tuple(axes), keepdims, out_strides
        known = self._prepared.get(key)
        if known is None:
            plan = axis_plan(found.shape, found.strides, axes, keepdims=keepdims, out_strides=out_strides)
            if len(self._prepared) >= _MOST_SUMS:
                self._prepared.clear()
            known = self._prepared[key] = self._prepare(plan)
        return known

    def run(
        self, prepared: PreparedSum, x: int, out: int, stream: int, package: Package | None, fresh: Fresh | None
    ) -> None:  # fmt: skip
        """Queue a sum on a stream of the current context; `x` and `out` are addresses.

        `fresh` makes an array of `package` for scratch memory; without it the driver allocates.
        """
        needs = prepared.needs
        if needs is None:
            prepared.enqueue(x, out, stream, 0, 0)
            return
        scratch = self.scratch.take(needs, stream, package, fresh)
        try:
            prepared.enqueue(x, out, stream, scratch.workspace, scratch.tickets)
        finally:
            scratch.give_back()

    def _prepare(self, plan: AxisPlan) -> PreparedSum:
        between = -(-FLOAT_BYTES * plan.between // _ALIGNED) * _ALIGNED
        workspace = tickets = 0
        launches = []
        for stage in plan.stages:
            kernel = _kernel(stage.op, stage.kernel)
            scalars = find_op(stage.op).scalars(stage.problem)
            instance = instance_for(kernel, kernel.configure(stage.config), scalars)
            workspace = max(workspace, kernel.workspace_bytes(stage.problem, instance.parameters))
            tickets = max(tickets, kernel.tickets(stage.problem, instance.parameters))
            launches.append(self._launches(instance, stage))
        needs = Needs(between + workspace, tickets, between > 0) if between + workspace else None
        return PreparedSum(plan, tuple(launches), needs, between)

    def _launches(self, instance: Instance, stage: Stage) -> _Launches:
        (launch,) = instance.launches
        loaded = self._code.load(instance.kernel, instance.parameters)
        return _Launches(self.device.words_launch(loaded, launch), instance.places(*_POINTERS), stage.steps)


@cache
def _kernel(op: str, name: str) -> Kernel:
    return shipped_kernel(_KERNELS / f"{op}_cuda" / f"{name}.cu")


_sums: dict[int, CudaSums] = {}
_lock = threading.Lock()


def sums_on(ordinal: int) -> CudaSums:
    """Return the one `CudaSums` of the GPU with this number. Raises `DeviceError` without such a GPU."""
    with _lock:
        if ordinal not in _sums:
            _sums[ordinal] = CudaSums(ordinal)
        return _sums[ordinal]
