"""Bind a kernel to a device: build and load it, pass it operands, and allocate the other memory that a call needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.counters import Counters, Observation, merge
from gemmlab.core.errors import UsageError
from gemmlab.core.program import Launch
from gemmlab.devices.device import Buffer, CountingDevice, Device, Loaded, SequenceDevice
from gemmlab.devices.texels import matrix_texture
from gemmlab.kernels.instances import load
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.names import map_over, texture_over
from gemmlab.ops.footprint import require_memory
from gemmlab.ops.op import Op, Problem
from gemmlab.toolchain.constant_values import with_constants

_WORD = 4
_NAN_BYTE = 0xFF
"""Four of these bytes are a NaN, so that reading unwritten memory shows in the result."""


@dataclass(frozen=True, slots=True)
class BoundKernel:
    """A kernel with its arguments on a device, ready to run again and again."""

    device: Device
    loaded: Loaded
    launches: tuple[Launch, ...]
    buffers: Mapping[str, Buffer]
    """The operands by name, as the caller passed them."""
    workspace: Buffer
    tickets: Buffer | None = None
    """Words that each execution leaves zero; `None` for a kernel without tickets."""

    def run(self) -> None:
        """Execute the kernel once: all of its launches."""
        for launch in self.launches:
            self.device.launch(self.loaded, launch)

    def time(self, repeats: int, inner: int = 1) -> list[float]:
        """Return `repeats` times of one execution in microseconds, each the mean over `inner` executions in a row.

        If a device cannot time several launches together, the sum of their separate times is returned.
        """
        if len(self.launches) > 1 and isinstance(self.device, SequenceDevice):
            return self.device.time_launches(self.loaded, self.launches, repeats, inner)
        totals = [0.0] * repeats
        for launch in self.launches:
            for index, time_us in enumerate(self.device.time(self.loaded, launch, repeats, inner)):
                totals[index] += time_us
        return totals

    def observe(self, *, races: bool = False, filling: int | None = None) -> Observation:
        """Execute once and return what `CountingDevice.observe` returns, for all launches together.

        Raises `UsageError` if the device does not count.
        """
        device = self.device
        if not isinstance(device, CountingDevice):
            raise UsageError(f"the device {device.id} counts nothing")
        if not self.launches:
            return Observation(Counters(self.loaded.artifact.entry, device.id, ()))
        return merge([device.observe(self.loaded, launch, races=races, filling=filling) for launch in self.launches])

    def nonzero_tickets(self) -> int:
        """Return the number of tickets that are not zero: 0 after an execution of a right kernel, which resets them."""
        if self.tickets is None:
            return 0
        words = np.empty(self.tickets.nbytes // _WORD, np.uint32)
        self.device.download(self.tickets, words)
        return int(np.count_nonzero(words))

    def download(self, name: str, out: npt.NDArray[np.float32]) -> None:
        """Copy operand `name` from the device into the C-contiguous array `out`, unless they share memory."""
        self.device.download(self.buffers[name], out)


@dataclass(frozen=True, slots=True)
class PlacedKernel:
    """A kernel in one configuration on one device; code is built and loaded when a problem first needs it."""

    kernel: Kernel
    device: Device
    config: Mapping[str, int]
    loaded: dict[tuple[tuple[str, int], ...], Loaded] = field(default_factory=dict)
    """Loaded code by the kernel's compile-time parameters, as sorted (name, value) pairs. Some may depend on the
    problem, so there can be several entries.
    """
    with_constants: dict[tuple[Any, ...], Loaded] = field(default_factory=dict, kw_only=True)
    """The code that was bound last, if `__constant__` variables have values in it, by its digest and these values."""

    def bind(
        self, op: Op, problem: Problem, buffers: Mapping[str, Buffer], *, threads: int = 1,
        workspace: Buffer | None = None,
    ) -> BoundKernel:  # fmt: skip
        """Return the kernel bound to a problem; `buffers` has each operand's memory on the device by name.

        `workspace` is that of an earlier binding, to be used again; by default it is allocated.

        Raises `CompileError`, `DeviceError`, `MemoryError`, and `UsageError` for a problem that the kernel does not
        take and for an impossible launch.
        """
        scalars = op.scalars(problem)
        if why := self.kernel.refusal(self.config, scalars):
            raise UsageError(f"{self.kernel.id} does not take {problem.label}: {why}")
        instance = self.kernel.instantiate(self.config, scalars)
        loaded = self._with_constants(instance, scalars)
        if workspace is None:
            workspace = self._workspace(max(1, self.kernel.workspace_bytes(problem, instance)))
        tickets = self._tickets(self.kernel.tickets(problem, instance))
        bound = {**scalars, **buffers, "threads": np.int64(threads), "workspace": workspace, "tickets": tickets}
        for operand in op.operands(problem):
            bound[map_over(operand.name)] = buffers[operand.name]
            if (name := texture_over(operand.name)) in self.kernel.args:
                bound[name] = np.uint64(matrix_texture(self.device, buffers[operand.name], operand.ld))
        launches = tuple(self.kernel.launches(instance, bound, threads))
        if not launches and any(
            operand.role != "in" and operand.rows * operand.cols for operand in op.operands(problem)
        ):
            raise UsageError(_no_blocks(self.kernel, problem))
        return BoundKernel(self.device, loaded, launches, buffers, workspace, tickets)

    def _with_constants(self, instance: Mapping[str, int], scalars: Mapping[str, Any]) -> Loaded:
        """Return the loaded code in which `__constant__` variables have the kernel's values for a problem."""
        loaded = self.code(instance)
        if not self.kernel.constants:
            return loaded
        values = {name: value(instance, scalars) for name, value in self.kernel.constants.items()}
        key = (loaded.artifact.digest, *(value.tobytes() for value in values.values()))
        if key not in self.with_constants:
            try:
                artifact = with_constants(loaded.artifact, values)
            except UsageError as error:
                raise UsageError(f"{self.kernel.path.name}: constants: {error}") from None
            # Values may differ from problem to problem, so only the last code stays.
            self.with_constants.clear()
            self.with_constants[key] = self.device.load(artifact)
        return self.with_constants[key]

    def code(self, instance: Mapping[str, int]) -> Loaded:
        """Return the loaded code for the parameters that `Kernel.instantiate` gives. Raises as `load` does."""
        key = tuple(sorted(instance.items()))
        if key not in self.loaded:
            self.loaded[key] = load(self.kernel, self.device, instance)
        return self.loaded[key]

    def _workspace(self, nbytes: int) -> Buffer:
        require_memory(nbytes, f"{self.kernel.id}'s workspace")
        if self.kernel.zeroed_workspace:
            return self.device.upload(np.zeros(nbytes, np.uint8))
        # A device that counts detects reads of unwritten memory itself.
        if "tickets" in self.kernel.args and not isinstance(self.device, CountingDevice):
            return self.device.upload(np.full(nbytes, _NAN_BYTE, np.uint8))
        return self.device.allocate(nbytes)

    def _tickets(self, words: int) -> Buffer | None:
        if "tickets" not in self.kernel.args:
            return None
        require_memory(_WORD * words, f"{self.kernel.id}'s tickets")
        return self.device.upload(np.zeros(max(1, words), np.uint32))


def _no_blocks(kernel: Kernel, problem: Problem) -> str:
    grid = ", ".join(kernel.grid)
    cut = re.search(r"(\w+) *// *(\w+)", grid)
    multiple = f"{cut[1]} % {cut[2]} == 0" if cut else "..."
    return (
        f'{kernel.id}: grid = "{grid}" has no blocks for {problem.label}, whose result is not empty: use ceil_div, or '
        f'state with require = ["{multiple}"] that the kernel takes no other sizes'
    )


def place(kernel: Kernel, device: Device, config: Mapping[str, int] | None = None) -> PlacedKernel:
    """Return the kernel for a device in a configuration (by default its own), without building it.

    Raises `UsageError` for an illegal configuration.
    """
    return PlacedKernel(kernel, device, kernel.configure(config))


def bind(
    kernel: Kernel,
    device: Device,
    op: Op,
    problem: Problem,
    arrays: Mapping[str, npt.NDArray[np.float32]],
    *,
    config: Mapping[str, int] | None = None,
    threads: int = 1,
) -> BoundKernel:
    """Return a kernel bound to a problem, with copies of the operands on the device; on a CPU, with the operands
    themselves.

    `arrays` has, by each operand's name, a contiguous one-dimensional float32 array that starts at the operand's first
    element and spans all its rows. Raises as `PlacedKernel.bind` and `place` do.
    """
    buffers = {operand.name: device.upload(arrays[operand.name]) for operand in op.operands(problem)}
    return place(kernel, device, config).bind(op, problem, buffers, threads=threads)
