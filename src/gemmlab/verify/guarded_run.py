"""One run of a kernel on operands between guard bands, on any device, compared with the float64 reference."""

from __future__ import annotations

from collections.abc import Mapping

from gemmlab.core.counters import Observation
from gemmlab.core.program import Artifact
from gemmlab.devices.device import Buffer, CountingDevice
from gemmlab.kernels.bound import PlacedKernel
from gemmlab.ops.op import Contents, Expected, Op, Operand, Problem
from gemmlab.verify.elementwise import Comparison, compare
from gemmlab.verify.guards import GuardedBuffer


class GuardedRun:
    """The operands of one problem between guard bands (`guarded`), and runs of a kernel on a device's copy of them.

    A device that detects accesses out of bounds itself (`CountingDevice`) gets no guards. `shift` is the number of
    elements by which each operand begins off its allocation's alignment, rounded down to the alignment that the kernel
    requires. With `apart` the second operand is moved twice as far, the third one three times, and so on.
    """

    def __init__(
        self, placed: PlacedKernel, op: Op, problem: Problem, contents: Contents, *, shift: int = 0,
        apart: bool = True, threads: int = 1,
    ) -> None:  # fmt: skip
        self._placed, self._op, self._problem, self._threads = placed, op, problem, threads
        guards = not isinstance(placed.device, CountingDevice)
        shifts = {
            operand.name: _aligned(shift * (1 + index if apart else 1), placed.kernel.align, operand)
            for index, operand in enumerate(op.operands(problem))
        }
        self.guarded = {
            operand.name: GuardedBuffer(operand, contents[operand.name], shifts[operand.name], guards=guards)
            for operand in op.operands(problem)
        }
        self.nonzero_tickets = 0
        """Number of the kernel's tickets (counters in global memory) that the run did not leave zero."""
        self.artifact: Artifact | None = None
        """The code that ran."""
        self.places: dict[str, tuple[int, Operand | None]] = {}
        """Address of each array during the run, and the shape of those that are operands."""

    def _used_workspace(self) -> Buffer | None:
        """Execute a kernel that expects its workspace as its last launch left it, and return that workspace.

        Return `None`, without an execution, for any other kernel.
        """
        if not self._placed.kernel.zeroed_workspace:
            return None
        device = self._placed.device
        copies = {name: device.upload(guarded.words) for name, guarded in self.guarded.items()}
        try:
            inside = {name: guarded.inside(copies[name]) for name, guarded in self.guarded.items()}
            before = self._placed.bind(self._op, self._problem, inside, threads=self._threads)
            if isinstance(device, CountingDevice):
                before.observe()  # Hazards are those of the execution that follows.
            else:
                before.run()
        finally:
            for copy in copies.values():
                device.free(copy)
        return before.workspace

    def run(self, *, races: bool = False, filling: int | None = None) -> Observation | None:
        """Execute once and copy everything back, guards and inputs too; return the device's observation, if any.

        `races` and `filling` are those of `CountingDevice.observe`.
        """
        device = self._placed.device
        copies = {name: device.upload(guarded.words) for name, guarded in self.guarded.items()}
        try:
            inside = {name: guarded.inside(copies[name]) for name, guarded in self.guarded.items()}
            bound = self._placed.bind(
                self._op, self._problem, inside, threads=self._threads, workspace=self._used_workspace()
            )
            observation = None
            self.artifact = bound.loaded.artifact
            operands = {operand.name: operand for operand in self._op.operands(self._problem)}
            self.places = {name: (window.address, operands[name]) for name, window in inside.items()}
            self.places |= {
                name: (buffer.address, None)
                for name, buffer in (("workspace", bound.workspace), ("tickets", bound.tickets))
                if buffer is not None and name in self._placed.kernel.args
            }
            if isinstance(device, CountingDevice):
                observation = bound.observe(races=races, filling=filling)
            else:
                bound.run()
            self.nonzero_tickets = bound.nonzero_tickets()
            device.free(bound.workspace)
            if bound.tickets is not None:
                device.free(bound.tickets)
            for name, guarded in self.guarded.items():
                device.download(copies[name], guarded.words)
        finally:
            for copy in copies.values():
                device.free(copy)
        return observation


def compare_results(
    placed: PlacedKernel,
    op: Op,
    problem: Problem,
    contents: Contents,
    left: Mapping[str, GuardedBuffer],
) -> list[Comparison]:
    """Compare each output with the reference. `contents`: the operands before the run; `left`: the buffers after it."""
    scalars = op.scalars(problem)
    roundings = placed.kernel.roundings(placed.kernel.instantiate(placed.config, scalars), scalars)
    expected = op.reference(problem, contents, roundings, placed.kernel.precision_in(placed.config))
    return compare_all(op, problem, expected, left)


def compare_all(
    op: Op, problem: Problem, expected: Mapping[str, Expected], left: Mapping[str, GuardedBuffer]
) -> list[Comparison]:
    """Compare each output in `expected` with the contents of the buffers `left` by a run."""
    length = op.dot_length(problem)
    return [
        compare(name, left[name].contents(), values, length, left[name].operand.element)
        for name, values in expected.items()
    ]


def _aligned(shift: int, align: int, operand: Operand) -> int:
    """Return the largest number of elements, up to `shift`, whose bytes are a multiple of `align`."""
    step = max(1, align // operand.element.nbytes)
    return shift // step * step
