"""Contestants that run on any device of gemmlab: a kernel, and the probe of the device's peak."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from weakref import WeakValueDictionary

from gemmlab.devices.device import Buffer, ClockedDevice, Device, PeakDevice, ReadingDevice
from gemmlab.devices.select import open_device
from gemmlab.ops.op import GBS, GFLOPS
from gemmlab.timing.contestants.contestant import Calls, Prepared, Turn, UnsupportedError, Work
from gemmlab.timing.families import family_of


class Attachment(Protocol):
    """A computation bound to buffers of a device; it can be executed again and again."""

    def run(self) -> None:
        """Execute once and wait."""

    def time(self, repeats: int, inner: int = 1) -> list[float]:
        """Return `repeats` times in microseconds, each the mean over `inner` executions in a row."""


@dataclass
class OnDevice:
    """A prepared contestant whose operands are copied to the device, unless the device computes in host memory."""

    device: Device
    work: Work
    outputs: Sequence[str]
    attach: Callable[[Mapping[str, Buffer]], Attachment]
    """(operand name -> buffer) -> the computation bound to these buffers."""
    attached_to: dict[str, Buffer] = field(default_factory=dict)
    attached: Attachment | None = None

    def run(self) -> None:
        """Upload the operands, execute once, download the outputs.

        Inputs are uploaded only once for all contestants of this process, outputs each time.
        """
        self.attached = None
        there = self.work.uploaded
        for name, flat in self.work.flat.items():
            if name in self.outputs and name in there:
                self.device.free(there.pop(name))
            if name not in there:
                there[name] = self.device.upload(flat)
        self._ready().run()
        for name in self.outputs:
            self.device.download(there[name], self.work.flat[name])

    def turn(self, *, min_us: float, warm_us: float, inner_us: float, raw_limit: int) -> Turn:
        """Take a turn on the operands that the latest `run` of any contestant uploaded; without one, `run` first."""
        if not self.work.uploaded:
            self.run()
        attached = self._ready()
        calls = Calls(attached.run, attached.time, self.work.before)
        turn = calls.turn(min_us=min_us, warm_us=warm_us, inner_us=inner_us, raw_limit=raw_limit)
        return with_clocks(self.device, turn)

    def _ready(self) -> Attachment:
        """Return the computation bound to the current buffers, bound again if another contestant has replaced some."""
        there = self.work.uploaded
        if self.attached is None or any(self.attached_to[name] is not buffer for name, buffer in there.items()):
            self.attached, self.attached_to = self.attach(there), dict(there)
        return self.attached


_OPEN: WeakValueDictionary[tuple[str, str], Any] = WeakValueDictionary()
"""(device name, mode) -> device that the kernels of this process share, as long as one of them holds it."""


def _device(name: str, mode: str) -> Device:
    device: Device | None = _OPEN.get((name, mode))
    if device is None:
        device = _OPEN[name, mode] = open_device(name, mode)
    return device


class KernelCall:
    """One kernel of the catalog or of a user's file, timed by its device."""

    def __init__(
        self, kernel: str, config: Mapping[str, int], device: str = "cpu", mode: str = "warm",
        flags: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        from gemmlab.kernels.bound import place
        from gemmlab.kernels.by_name import kernel_named

        self._placed = place(kernel_named(kernel, flags), _device(device, mode), config or None)
        self._mode = mode
        self._facts: dict[str, Any] = {}

    def prepare(self, work: Work) -> Prepared:
        from gemmlab.ops.catalog import find_op

        kernel = self._placed.kernel
        op = find_op(work.op)
        problem = op.problem_from_json(work.problem)
        if why := kernel.refusal(self._placed.config, op.scalars(problem)):
            raise UnsupportedError(f"{kernel.id} does not take {problem.label}: {why}")
        if work.threads > 1 and not kernel.threaded:
            raise UnsupportedError(f"{kernel.id} runs on one thread, not {work.threads}")

        def attach(buffers: Mapping[str, Buffer]) -> Attachment:
            bound = self._placed.bind(op, problem, buffers, threads=work.threads)
            artifact = bound.loaded.artifact
            self._facts = {
                "target": artifact.target, "compiler": artifact.compiler, "code_sha256": artifact.digest,
                "resources": dict(artifact.resources),
            }  # fmt: skip
            return bound

        outputs = [operand.name for operand in op.operands(problem) if operand.role != "in"]
        return OnDevice(self._placed.device, work, outputs, attach)

    def facts(self) -> dict[str, Any]:
        from gemmlab.core.version import __version__

        device = self._placed.device
        workers = {"thread_runtime": "own workers"} if family_of(device.family).host_threads else {}
        return {
            "library": "gemmlab", "version": __version__, **workers, "device": device.id, "mode": self._mode,
            "config": dict(self._placed.config), **self._facts,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class PeakTurn:
    """A probe of the peak, prepared for a problem: its time is what the problem would take at the measured rate."""

    device: Device
    measure: Callable[[int, float], float]
    """(threads, seconds to measure) -> rate in GFLOP/s or GB/s."""
    threads: int
    amount: int
    """The problem's floating-point operations or bytes."""

    def run(self) -> None:
        self.measure(self.threads, 1e-3)

    def turn(self, *, min_us: float, warm_us: float, inner_us: float, raw_limit: int) -> Turn:  # noqa: ARG002
        time_us = self.amount / (self.measure(self.threads, min_us / 1e6) * 1e3)
        return with_clocks(self.device, Turn(time_us, 1, 1, [time_us]))


class PeakProbe:
    """A probe of the limit of an operation on a device: its FMA peak, or the rate at which it reads memory.

    On a CPU the limit is that of the threads in use.
    """

    def __init__(self, device: str = "cpu", mode: str = "warm") -> None:
        self._device = open_device(device, mode)
        self._what = ""

    def prepare(self, work: Work) -> Prepared:
        from gemmlab.ops.catalog import find_op

        device, op = self._device, find_op(work.op)
        self._what, (kind, measure) = op.limit, _MEASURED[op.unit]
        if not isinstance(device, kind):
            raise UnsupportedError(f"the {self._what} of {device.id} cannot be measured")
        amount = op.work(op.problem_from_json(work.problem))
        return PeakTurn(device, getattr(device, measure), work.threads, amount)

    def facts(self) -> dict[str, Any]:
        return {"library": "gemmlab", "core_type": f"{self._what} of the device", "device": self._device.id}


_MEASURED: Mapping[str, tuple[type, str]] = {
    GFLOPS: (PeakDevice, "measure_peak"),
    GBS: (ReadingDevice, "measure_read"),
}
"""Unit of an operation's speed -> the device protocol that can measure its limit, and the method's name."""


def with_clocks(device: object, turn: Turn) -> Turn:
    """Return the turn with the device's current clocks added, if the device reports them."""
    clocks = device.clocks() if isinstance(device, ClockedDevice) else None
    if clocks is None:
        return turn
    return replace(turn, clock_mhz=clocks.sm_mhz, memory_mhz=clocks.memory_mhz, throttle=clocks.throttle)
