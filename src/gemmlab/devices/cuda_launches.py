"""Launches on one GPU, and their times measured by events."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.program import Launch
from gemmlab.core.time_limit import current_limit
from gemmlab.devices.cuda_code import (
    CudaLoaded,
    WordsLaunch,
    allow_clusters,
    allow_smem,
    argument_bytes,
    check_launch,
    launch_config,
)
from gemmlab.devices.cuda_driver import finished_in
from gemmlab.devices.cuda_storage import CudaStorage
from gemmlab.devices.cuda_timing import EventTimer


class CudaLaunches(CudaStorage):
    """Launches on a GPU; `mode` is the state of the caches for `time` (`cuda_timing`)."""

    def launch(self, loaded: CudaLoaded, launch: Launch) -> None:
        """Run once and wait for the end.

        Raises `KernelFaultError` if the kernel faults, `UsageError` or `DeviceError` for an impossible launch, and
        `TimeLimitError` when the time limit (`core.time_limit`) passes. In the last case the kernel still runs: only
        the end of the process ends it, and every later use of the device is refused.
        """
        enqueue = self.prepare(loaded, launch)
        limit = current_limit()
        with self._blaming(loaded.artifact.kernel):
            enqueue()
            if limit is None:
                self._driver("cuStreamSynchronize", self.stream)
            elif not finished_in(self._driver, self.stream, limit):
                self._lost = f"{loaded.artifact.kernel} still runs on {self.id} after its time limit"
                self._driver.occupied.append(self._context)
                blocks = math.prod(launch.grid)
                raise limit.error(
                    loaded.artifact.kernel, f"{self.id} does not report how many of {blocks:,} blocks have finished",
                    blocks=blocks,
                )  # fmt: skip

    def time(self, loaded: CudaLoaded, launch: Launch, repeats: int, inner: int = 1) -> list[float]:
        """Return `repeats` times of one run in microseconds, each the mean over `inner` runs (see
        `EventTimer.time`).
        """
        return self.time_launches(loaded, [launch], repeats, inner)

    def time_launches(
        self, loaded: CudaLoaded, launches: Sequence[Launch], repeats: int, inner: int = 1
    ) -> list[float]:
        """Time several launches of one kernel, queued on the stream one after the other, together as one run of
        `time`.
        """
        prepared = [self.prepare(loaded, launch) for launch in launches]

        def enqueue() -> None:
            for one in prepared:
                one()

        call = prepared[0] if len(prepared) == 1 else enqueue
        return self.time_enqueued(call, repeats, inner, loaded.artifact.kernel)

    def time_enqueued(
        self, enqueue: Callable[[], object], repeats: int, inner: int = 1, what: str = "a call"
    ) -> list[float]:
        """Time a function that queues work on `stream`, such as another library's call, as `time` does.

        `what` names the work if it faults.
        """
        self._enter()
        with self._blaming(what):
            return self._timer.time(enqueue, repeats, inner)

    def prepare(self, loaded: CudaLoaded, launch: Launch) -> Callable[[], None]:
        """Check a launch and return a function that queues it on `stream`; it keeps arguments and buffers alive.

        Raises `UsageError` or `DeviceError` for an impossible launch.
        """
        self._enter()
        kernel = loaded.artifact.kernel
        values = [argument_bytes(kernel, argument) for argument in launch.args]
        sizes = tuple(value.nbytes for value in values)
        check_launch(loaded, launch, sizes, self.name, int(self.facts["smem_per_block"]))
        allow_smem(self._driver, loaded, launch.smem_bytes)
        allow_clusters(self._driver, loaded, launch)
        pointers = np.array([value.ctypes.data for value in values], np.uint64)
        if launch.cluster is not None or launch.early or launch.cooperative:
            return self._prepare_described(loaded, launch, pointers, (values, launch.args))
        call, driver, where = self._driver.module.cuLaunchKernel, self._driver, pointers.ctypes.data
        extents = (*launch.grid, *launch.threads, launch.smem_bytes)

        def enqueue(_keep: Any = (values, launch.args, pointers)) -> None:
            (status,) = call(loaded.function, *extents, self.stream, where, 0)
            if status:
                raise driver.error(status, "cuLaunchKernel", kernel)

        return enqueue

    def _prepare_described(
        self, loaded: CudaLoaded, launch: Launch, pointers: npt.NDArray[np.uint64], alive: Any
    ) -> Callable[[], None]:
        config = launch_config(self._driver, launch, self.stream)

        def enqueue(_keep: Any = (alive, pointers)) -> None:
            what = loaded.artifact.kernel
            self._driver("cuLaunchKernelEx", config, loaded.function, pointers.ctypes.data, 0, what=what)

        return enqueue

    def words_launch(self, loaded: CudaLoaded, launch: Launch) -> WordsLaunch:
        """Return a checked launch that takes a stream, and arguments of the same sizes, anew at each call.

        `Launch.cluster` and `Launch.cooperative` are not supported. Raises as `prepare` does.
        """
        self._enter()
        sizes = tuple(argument_bytes(loaded.artifact.kernel, argument).nbytes for argument in launch.args)
        check_launch(loaded, launch, sizes, self.name, int(self.facts["smem_per_block"]))
        allow_smem(self._driver, loaded, launch.smem_bytes)
        return WordsLaunch(self._driver, loaded, launch)

    @cached_property
    def _timer(self) -> EventTimer:
        return EventTimer(self._driver, self.memory, self.stream, int(self.facts["l2_bytes"]), self.mode)
