"""An emulated GPU as the carrier of a large product: the kernels and slots of a GPU, one operation after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.devices.device import Window
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.dispatch.piece_plan import OPERANDS, PiecePlan
from gemmlab.emulator.memory_map import Allocation
from gemmlab.kernels.bound import place
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.pieces.block_sources import Block, Source
from gemmlab.pieces.gpu_limits import piece_problem
from gemmlab.pieces.route import Step


class EmulatedCarrier:
    """The `Carrier` (`pieces.carrier`) of an emulated GPU."""

    def __init__(
        self, device: EmulatedDevice, plan: PiecePlan, kernel: Kernel, config: Mapping[str, int],
        factors: tuple[float, float],
    ) -> None:  # fmt: skip
        self._device, self._plan, self._factors = device, plan, factors
        self._placed = place(kernel, device, config)
        self._slots: dict[str, list[Allocation]] = {
            name: [device.allocate(max(1, room.nbytes)) for _ in range(room.slots)] for name, room in plan.rooms.items()
        }

    def load(self, name: str, slot: int, source: Source, block: Block, *, row: int, clear: bool) -> None:
        buffer, width = self._slots[name][slot], self._plan.rooms[name].cols
        if clear:
            self._device.write(Window(buffer, 0, buffer.nbytes), np.zeros(buffer.nbytes, np.uint8))
        values = np.empty((block.rows, block.cols), np.float32)
        source.read(block, values)
        # Copy row by row: memory between rows stays unwritten.
        parts = [values] if block.cols == width else list(values)
        for number, part in enumerate(parts, row):
            if part.nbytes:
                self._device.write(Window(buffer, FLOAT_BYTES * width * number, part.nbytes), part)

    def multiply(self, step: Step) -> None:
        problem = piece_problem(self._plan, *self._plan.computed(step.row, step.col), *self._factors)
        buffers = {name: self._slots[name][slot] for name, slot in zip(OPERANDS, step.slots, strict=True)}
        self._placed.bind(GemmOp(), problem, buffers).run()

    def store(
        self, slot: int, at: tuple[int, int], target: Source, block: Block, done: Callable[[], None]
    ) -> None:  # fmt: skip
        width = self._plan.rooms["c"].cols
        values = np.empty((block.rows, block.cols), np.float32)
        for number, row in enumerate(values):
            first = FLOAT_BYTES * (width * (at[0] + number) + at[1])
            self._device.read(Window(self._slots["c"][slot], first, row.nbytes), row)
        target.write(block, values)
        done()

    def finish(self) -> None:
        """Do nothing: all work is done when a call returns."""

    def close(self) -> None:
        for buffers in self._slots.values():
            for buffer in buffers:
                self._device.free(buffer)
        self._slots.clear()
