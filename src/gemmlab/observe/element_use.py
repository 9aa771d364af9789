"""Record when a running CPU kernel uses each element of its operands, and where their packed copies lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import UsageError
from gemmlab.devices.cpu import CpuBuffer
from gemmlab.devices.probed_cpu import ProbedCpu
from gemmlab.kernels.bound import BoundKernel
from gemmlab.kernels.kernel import Kernel
from gemmlab.observe.probe_run import bind_probed
from gemmlab.ops.op import Op, Operand, Problem
from gemmlab.probes import touches as probe
from gemmlab.probes.cachesim import LINE, STOP, CacheProbe, Caches

Times = npt.NDArray[np.int64]
PACKED = "workspace"
"""The argument in which a kernel stores its packed copies."""
_LEFT_OVER = 0x7FC0DEAD
"""Bits of a NaN that fills the workspace before the kernel runs, to detect floats that it never wrote."""


@dataclass(frozen=True, slots=True)
class Packed:
    """One read of a float of the workspace. A float may hold different elements over time."""

    offset: int
    """Offset in floats from the workspace's start."""
    time: int
    """Index of the access."""
    operand: str
    """The operand of which the float is a copied element; empty if it is no copy."""
    row: int
    col: int
    written: bool
    """True if the kernel wrote the float before; a kernel must not use a float that it did not write."""


@dataclass(frozen=True, slots=True)
class ElementUse:
    """The element accesses of one run. Times are indices of accesses, from 1; 0 means never."""

    accesses: int
    first: Mapping[str, Times]
    """Operand -> time of the first use of each element, rows by columns."""
    last: Mapping[str, Times]
    """Operand -> time of the last use of each element, rows by columns."""
    workspace: Times = field(repr=False)
    """Time of the first use of each float of the workspace; empty without a workspace."""
    packed: tuple[Packed, ...] = field(repr=False)
    """The first reads of the workspace, in order: at most as many as `notes` of `find_element_use` says.

    A read that finds the same value as the read of that float before is left out.
    """


def find_element_use(
    kernel: Kernel, op: Op, problem: Problem, config: Mapping[str, int] | None = None, notes: int = 0
) -> ElementUse:
    """Run the kernel once on one thread, on inputs whose elements are numbered consecutively.

    `notes` is the largest number of reads of the workspace to record. Raises the errors of `cache_misses.simulate`, and
    `UsageError` for too many operands or, with `notes`, for an operand whose first element has a number beyond 2^24.
    """
    chosen = kernel.configure(config)
    operands = op.operands(problem)
    room = kernel.workspace_bytes(problem, chosen) // 4 if PACKED in kernel.args else 0
    floats = [*(operand.rows * operand.ld for operand in operands), room]
    head = probe.FIRST + probe.STRETCHES * probe.STRETCH_WORDS
    if len(operands) >= probe.STRETCHES:
        raise UsageError(f"{op.name} has {len(operands)} operands; at most {probe.STRETCHES - 1} can be recorded")
    words = head + probe.TABLE_WORDS * sum(floats) + probe.NOTE_WORDS * notes
    device = ProbedCpu(probe.Touches(words))
    numbers = _numbered(operands)
    if notes and any(first > 1 << 24 for _operand, first in numbers):
        raise UsageError(f"{problem.label}: elements have numbers only up to 2^24")
    contents = {operand.name: _contents(operand, first) for operand, first in numbers}
    bound = bind_probed(kernel, op, problem, device, chosen, contents)
    if room:
        _workspace(bound).view(np.uint32)[:] = _LEFT_OVER
    tables = np.cumsum([head, *(probe.TABLE_WORDS * count for count in floats)]).tolist()
    addresses = [bound.buffers[operand.name].address for operand in operands]
    device.state[:] = 0
    device.state[probe.ROOM], device.state[probe.NOTES] = notes, tables[-1]
    for number, (address, count, table) in enumerate(zip(addresses, floats, tables, strict=False)):
        _stretch(device.state, number, address, count, table)
    if room:
        _stretch(device.state, probe.WORKSPACE, _workspace(bound).ctypes.data, room, tables[-2])
    bound.run()
    times = [_times(device.state, operand, table) for operand, table in zip(operands, tables, strict=False)]
    return ElementUse(
        int(device.state[probe.TIME]),
        {operand.name: pair[0] for operand, pair in zip(operands, times, strict=True)},
        {operand.name: pair[1] for operand, pair in zip(operands, times, strict=True)},
        device.state[tables[-2] : tables[-1] : probe.TABLE_WORDS].copy(),
        tuple(_packed(device.state, tables[-1], numbers)),
    )


@dataclass(frozen=True, slots=True)
class CacheContents:
    """The contents of one core's caches at one moment of a run. A cache level is 1 for L1, 2 for L2 but not L1, and 0
    for neither.
    """

    after: int
    """Number of accesses before that moment; 0 stands for the end of the run."""
    level: Mapping[str, npt.NDArray[np.int8]]
    """Operand -> cache level of each element, rows by columns."""
    packed: npt.NDArray[np.int8]
    """Cache level of each float of the workspace; empty without a workspace."""


def cache_contents(
    kernel: Kernel, op: Op, problem: Problem, caches: Caches, after: int, config: Mapping[str, int] | None = None
) -> CacheContents:
    """Return the contents of the simulated caches after `after` accesses of one run, or at its end if `after` is 0.

    Raises the errors of `cache_misses.simulate`.
    """
    device = ProbedCpu(CacheProbe(caches))
    bound = bind_probed(kernel, op, problem, device, config)
    device.state[:] = 0
    device.state[STOP] = after
    bound.run()
    first_l1, first_l2, first_tlb = caches.tables
    # An entry of a table is (line + 1) * 2 + dirty, or 0 when empty.
    l1, l2 = (
        np.unique((device.state[low:high] >> 1) - 1) for low, high in ((first_l1, first_l2), (first_l2, first_tlb))
    )

    def levels(address: int, floats: int) -> npt.NDArray[np.int8]:
        lines = (address + 4 * np.arange(floats)) // LINE
        return np.where(np.isin(lines, l1), 1, np.where(np.isin(lines, l2), 2, 0)).astype(np.int8)

    level = {
        operand.name: levels(bound.buffers[operand.name].address, operand.rows * operand.ld)
        .reshape(operand.rows, operand.ld)[:, : operand.cols]
        for operand in op.operands(problem)
    }  # fmt: skip
    room = _workspace(bound) if PACKED in kernel.args else None
    return CacheContents(
        after, level, levels(room.ctypes.data, room.nbytes // 4) if room is not None else np.empty(0, np.int8)
    )


def _workspace(bound: BoundKernel) -> npt.NDArray[np.uint8]:
    if not isinstance(bound.workspace, CpuBuffer):
        raise TypeError(f"{bound.device.id} keeps its workspace elsewhere")
    return bound.workspace.array


def _stretch(state: Times, number: int, address: int, floats: int, table: int) -> None:
    at = probe.FIRST + number * probe.STRETCH_WORDS
    state[at : at + probe.STRETCH_WORDS] = address, address + 4 * floats, table


def _numbered(operands: Sequence[Operand]) -> list[tuple[Operand, int]]:
    """Return operands with the number of their first element; 0 for operands that are no inputs.

    Inputs are numbered from 1 on, each where the one before ends.
    """
    found, following = [], 1
    for operand in operands:
        found.append((operand, following if operand.role == "in" else 0))
        following += operand.rows * operand.cols if operand.role == "in" else 0
    return found


def _contents(operand: Operand, first: int) -> npt.NDArray[np.float32]:
    if not first:
        return np.zeros((operand.rows, operand.cols), np.float32)
    count = operand.rows * operand.cols
    return np.arange(first, first + count, dtype=np.float32).reshape(operand.rows, operand.cols)


def _times(state: Times, operand: Operand, table: int) -> tuple[Times, Times]:
    rows = state[table : table + probe.TABLE_WORDS * operand.rows * operand.ld]
    shaped = rows.reshape(operand.rows, operand.ld, probe.TABLE_WORDS)[:, : operand.cols]
    return shaped[..., 0].copy(), shaped[..., 1].copy()


def _packed(state: Times, table: int, numbers: list[tuple[Operand, int]]) -> Iterator[Packed]:
    count = min(int(state[probe.NOTED]), int(state[probe.ROOM]))
    notes = state[table : table + probe.NOTE_WORDS * count].reshape(count, probe.NOTE_WORDS)
    for offset, bits, time in notes.tolist():
        number = int(np.uint32(bits).view(np.float32)) if bits not in (_LEFT_OVER, 0) else 0
        for operand, first in numbers:
            if first and first <= number < first + operand.rows * operand.cols:
                row, col = divmod(number - first, operand.cols)
                yield Packed(offset, time, operand.name, row, col, written=True)
                break
        else:
            yield Packed(offset, time, "", 0, 0, written=bits != _LEFT_OVER)
