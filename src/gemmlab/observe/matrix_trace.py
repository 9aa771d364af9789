"""Map the addresses of a recorded launch to elements of matrices, words and banks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from gemmlab.core.program import Artifact, Launch
from gemmlab.core.trace import LANES, Access, Trace
from gemmlab.devices.emulated import MODELS, EmulatedDevice
from gemmlab.kernels.bound import PlacedKernel
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.op import Operand
from gemmlab.sass.instruction import SassFunction
from gemmlab.sass.parse import parse

WORD = 4
BANKS = 32


@dataclass(frozen=True, slots=True)
class Element:
    """One element of an operand, by its row and column as stored."""

    operand: str
    row: int
    col: int


@dataclass(frozen=True, slots=True)
class Matrix:
    """An operand and its address in global memory."""

    operand: Operand
    address: int

    @property
    def end(self) -> int:
        """The first address after the last element."""
        of = self.operand
        return self.address + of.element.nbytes * ((of.rows - 1) * of.ld + of.cols if of.rows and of.cols else 0)

    def element(self, address: int) -> Element | None:
        """Return the element at an address; `None` outside the matrix or in the padding between rows."""
        if not self.address <= address < self.end:
            return None
        row, col = divmod((address - self.address) // self.operand.element.nbytes, self.operand.ld)
        return Element(self.operand.name, row, col) if col < self.operand.cols else None


@dataclass(frozen=True, slots=True)
class Moves:
    """The elements of one operand that a kernel loaded or stored, in order.

    Entry i of each array belongs to one element moved by one lane: its row and column in the matrix, and the warp
    and lane in the block.
    """

    row: npt.NDArray[np.int64]
    col: npt.NDArray[np.int64]
    warp: npt.NDArray[np.int64]
    lane: npt.NDArray[np.int64]

    @property
    def thread(self) -> npt.NDArray[np.int64]:
        """Numbers of the threads in the block, x fastest."""
        return self.warp * LANES + self.lane

    def where(self, mask: npt.NDArray[Any]) -> Moves:
        """Return the entries that a mask or an array of indices selects."""
        return Moves(self.row[mask], self.col[mask], self.warp[mask], self.lane[mask])


@dataclass(frozen=True, slots=True)
class KernelTrace:
    """The trace of one launch of a kernel, with the matrices that its addresses belong to."""

    placed: PlacedKernel = field(repr=False)
    """The kernel on the emulated device, its code loaded."""
    problem: Any
    artifact: Artifact = field(repr=False)
    launch: Launch = field(repr=False)
    """The launch with the most blocks among those of one execution."""
    matrices: Mapping[str, Matrix]
    """Operand name (`a`, `b`, `c`, or `x` and `out`) -> matrix."""
    resident: int
    """Number of blocks that all multiprocessors of `gpu` together run at once; at least 1."""
    trace: Trace = field(repr=False)

    @property
    def gpu(self) -> str:
        """The GPU model for which `resident` is computed, by the architecture of the code."""
        return MODELS[self.arch]

    @property
    def kernel(self) -> Kernel:
        """The kernel that ran."""
        return self.placed.kernel

    @property
    def config(self) -> Mapping[str, int]:
        """The configuration in which the kernel ran."""
        return self.placed.config

    @property
    def arch(self) -> str:
        """The architecture of the code, `"sm_90"`."""
        return cast("EmulatedDevice", self.placed.device).arch

    @property
    def function(self) -> SassFunction:
        """The machine code; a step's `site.address` is an address in it."""
        return parse(self.artifact.texts["sass"])[self.artifact.entry]

    @property
    def result(self) -> Matrix | None:
        """The matrix that the kernel writes; `None` unless there is exactly one."""
        results = [matrix for matrix in self.matrices.values() if matrix.operand.role != "in"]
        return results[0] if len(results) == 1 else None

    def element(self, address: int) -> Element | None:
        """Return the element at a global address; `None` if it belongs to no operand."""
        return next((found for m in self.matrices.values() if (found := m.element(address)) is not None), None)

    def elements(self, access: Access, lane: int) -> tuple[Element, ...]:
        """Return the elements that one lane of an access to global memory moves, one per word of 4 bytes.

        Words that belong to no operand are left out.
        """
        words = (self.element(address) for address in access.bytes_of(lane)[::WORD])
        return tuple(word for word in words if word is not None)

    def operand_of(self, access: Access) -> str:
        """Return the operand that the first active lane of a global access reads or writes; empty if there is none."""
        found = self.element(access.addresses[access.lanes[0]])
        return found.operand if found is not None and access.space == "global" else ""

    def moves(self, name: str, accesses: Iterable[Access]) -> Moves:
        """Return the elements of the operand `name` that the global accesses among `accesses` move.

        Elements of the operand must have 4 bytes.
        """
        matrix, parts = self.matrices[name], [np.empty((5, 0), np.int64)]
        for width, same in _by_width(accesses).items():
            start = np.array([access.addresses for access in same], np.int64)
            on = np.array([access.on for access in same], np.int64)[:, None] >> np.arange(LANES) & 1
            address = start[:, :, None] + np.arange(0, width, WORD)
            inside = (address >= matrix.address) & (address < matrix.end) & (on != 0)[:, :, None]
            which, lane, _word = np.nonzero(inside)
            row, col = np.divmod((address[inside] - matrix.address) // WORD, matrix.operand.ld)
            warp = np.array([access.warp for access in same], np.int64)[which]
            order = np.array([access.order for access in same], np.int64)[which]
            parts.append(np.stack([order, row, col, warp, lane])[:, col < matrix.operand.cols])
        found = np.concatenate(parts, axis=1)
        _order, row, col, warp, lane = found[:, np.argsort(found[0], kind="stable")]
        return Moves(row, col, warp, lane)

    def word(self, address: int) -> int:
        """Return the index of the word at a shared address, counted from the start of the block's own memory."""
        return (address - self.trace.shared_low) // WORD


def bank(address: int) -> int:
    """Return the shared-memory bank of an address."""
    return address // WORD % BANKS


def tile_of_block(kernel_trace: KernelTrace) -> tuple[int, int] | None:
    """Return the numbers of rows and columns of the tile of the result that the traced blocks write.

    `None` if the kernel does not write exactly one operand, if the blocks write nothing of it, or if they do not write
    every element of these rows in these columns.
    """
    if kernel_trace.result is None:
        return None
    moves = kernel_trace.moves(
        kernel_trace.result.operand.name, (access for access in kernel_trace.trace.accesses if access.store)
    )
    rows, cols = np.unique(moves.row).size, np.unique(moves.col).size
    places = np.unique(moves.row * kernel_trace.result.operand.ld + moves.col).size
    return (rows, cols) if places and rows * cols == places else None


def _by_width(accesses: Iterable[Access]) -> dict[int, list[Access]]:
    found: dict[int, list[Access]] = {}
    for access in accesses:
        if access.space == "global":
            found.setdefault(access.width, []).append(access)
    return found
