"""A run in which a register that is read too early has a poison value, and a predicate the opposite value.

The emulator finishes each instruction before the next one, so code with wrong control codes gives the right results.
Here a Python function is called before every instruction. It counts each warp's cycles by the stalls, and if an
instruction reads a register before its latency or barrier has passed, the instruction reads poison in the lanes that
wrote the register. This is slow, and meant for small launches of code whose control codes may be wrong. The rules are
those of `sass.checking`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gemmlab.emulator.decode import Bytes, Code
from gemmlab.emulator.instruction_layout import Insn
from gemmlab.emulator.layout import FULL, LANES, Block, Status, Warp
from gemmlab.sass.cells import PREDICATE, UNIFORM, UNIFORM_PREDICATE
from gemmlab.sass.checking.control_codes import Fault, fault_of
from gemmlab.sass.checking.latencies import Latencies, latencies
from gemmlab.sass.checking.steps import steps_of
from gemmlab.sass.checking.tracker import Meeting, State, Tracker
from gemmlab.sass.instruction import SassFunction

POISON = 0x7FBADBAD
"""The value of a register that is read too early; as a float it is not a number."""
_HANDLER = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)


@dataclass(frozen=True, slots=True)
class PoisonRead:
    """A read or write of a register or predicate that came too early; `producer` and `consumer` are indices of
    instructions.
    """

    fault: Fault
    producer: int
    consumer: int
    cell: int
    reason: str


@dataclass(slots=True)
class _Warp:
    """The pending results of one warp. `lanes`: index of a producer -> mask of the lanes that executed it, at its last
    execution.
    """

    block: int
    tracker: Tracker
    lanes: dict[int, int] = field(default_factory=dict)


class PoisonWatch:
    """Machine code (`code`) that calls a Python function before every instruction, and what that function `found`."""

    def __init__(self, code: Code, arch: str, warps: int | None = None) -> None:
        """Prepare a run; only the first `warps` warps of each block are checked, by default all.

        Raises `UnknownAccessError` for code with instructions whose registers are not known, and `UsageError` if no
        latencies of `arch` are recorded.
        """
        self._watched = warps
        self._steps = steps_of(SassFunction(code.name, code.instructions, {}))
        self._known: Latencies = latencies(arch)
        self._warps: dict[int, _Warp] = {}
        self._error: BaseException | None = None
        self.found: dict[tuple[str, int, int, int], PoisonRead] = {}
        records = code.records.copy()
        self._handlers = [_HANDLER(_word(row, Insn.HANDLER, np.int64)) for row in records]
        self._guards = [(_word(row, Insn.GUARD, np.int64), _word(row, Insn.GUARD_XOR, np.int32)) for row in records]
        # The compiled loop has only the address of this object, which must exist until the run ends.
        self._callback = _HANDLER(self._before)
        address = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        for row in records[:-1]:
            row[Insn.HANDLER : Insn.HANDLER + 8].view(np.int64)[0] = address
            row[Insn.GUARD : Insn.GUARD + 8].view(np.int64)[0] = Warp.predicate(7)
            row[Insn.GUARD_XOR : Insn.GUARD_XOR + 4].view(np.int32)[0] = 0
        self.code = replace(code, records=records)

    def require_sound(self) -> None:
        """Raise the exception, if any, that ended the run in the Python function called before each instruction.

        It could not pass through the compiled code that called the function.
        """
        if self._error is not None:
            raise self._error

    def _before(self, warp: int, insn: int, active: int) -> int:
        try:
            return self._step(warp, insn, active)
        except BaseException as error:  # noqa: BLE001 - compiled code is the caller
            self._error = error
            return Status.FAULT

    def _step(self, address: int, insn: int, active: int) -> int:
        number = ctypes.c_int64.from_address(insn + Insn.INDEX).value
        if self._watched is not None and ctypes.c_int64.from_address(address + Warp.INDEX).value >= self._watched:
            lanes = active & self._guard(address, number)
            return int(self._handlers[number](address, insn, lanes)) if lanes else Status.GO
        warp = self._warp(address)
        tracker = warp.tracker
        tracker.wait(number)
        early = [m for m in tracker.meet(number) if self._too_early(warp, m, active)]
        saved = _poison(address, [(m.cell, warp.lanes[m.producer]) for m in early if _is_guard(m)])
        lanes = active & self._guard(address, number)
        _restore(saved, frozenset())
        if not lanes:
            tracker.skip(number)
            return Status.GO
        early = [m for m in early if _is_guard(m) or warp.lanes[m.producer] & lanes or m.cell >= UNIFORM]
        for meeting in early:
            self._note(meeting)
        saved = _poison(address, [(m.cell, warp.lanes[m.producer]) for m in early if m.relation == "read"])
        tracker.issue(number)
        warp.lanes[number] = lanes
        status = self._handlers[number](address, insn, lanes)
        written = frozenset(self._steps[number].writes)
        _restore(saved, written, lanes)
        # If an older result arrives after a newer one, the register stays poisoned.
        _poison(address, [(m.cell, lanes) for m in early if m.relation == "overwrite" and not m.operand])
        return int(status)

    def _warp(self, address: int) -> _Warp:
        block = ctypes.c_int64.from_address(ctypes.c_int64.from_address(address + Warp.BLOCK).value + Block.LINEAR)
        known = self._warps.get(address)
        if known is None or known.block != block.value:
            known = self._warps[address] = _Warp(block.value, Tracker(self._steps, State()))
        return known

    def _guard(self, address: int, number: int) -> int:
        offset, flip = self._guards[number]
        return ctypes.c_uint32.from_address(address + offset).value ^ flip & FULL

    def _too_early(self, warp: _Warp, meeting: Meeting, active: int) -> bool:
        if meeting.cell < UNIFORM and not warp.lanes.get(meeting.producer, 0) & active:
            return False
        return fault_of(meeting, self._steps, self._known) is not None

    def _note(self, meeting: Meeting) -> None:
        verdict = fault_of(meeting, self._steps, self._known)
        if verdict is not None:
            key = (verdict[0], meeting.producer, meeting.consumer, meeting.cell)
            self.found[key] = PoisonRead(*key, verdict[1])


def _is_guard(meeting: Meeting) -> bool:
    return meeting.access is not None and meeting.access.part == "guard"


def _word(row: Bytes, at: int, type_: type[np.int64 | np.int32]) -> int:
    return int(row[at : at + np.dtype(type_).itemsize].view(type_)[0])


@dataclass(frozen=True, slots=True)
class _Saved:
    cell: int
    address: int
    words: tuple[int, ...]


def _poison(warp: int, cells: Iterable[tuple[int, int]]) -> list[_Saved]:
    """Poison the cells of a warp, given as (cell, lane mask) pairs, and return the old values.

    Registers get `POISON`, predicates are inverted; uniform ones have no lanes, so their mask is not used.
    """
    saved = []
    for cell, lanes in cells:
        words = _words(warp, cell)
        saved.append(_Saved(cell, ctypes.addressof(words), tuple(words)))
        if cell < UNIFORM:
            for lane in range(LANES):
                if lanes >> lane & 1:
                    words[lane] = POISON
        elif cell < PREDICATE:
            words[0] = POISON
        else:
            words[0] ^= lanes if cell < UNIFORM_PREDICATE else FULL
    return saved


def _restore(saved: Sequence[_Saved], written: frozenset[int], lanes: int = 0) -> None:
    """Restore the old values of cells, except what the instruction wrote: in the cells of `written` the lanes of the
    mask `lanes`, or all of a uniform cell.
    """
    for one in reversed(saved):
        words = (ctypes.c_uint32 * len(one.words)).from_address(one.address)
        if one.cell not in written:
            words[:] = [*one.words]
        elif one.cell < UNIFORM:
            for lane, value in enumerate(one.words):
                if not lanes >> lane & 1:
                    words[lane] = value
        elif PREDICATE <= one.cell < UNIFORM_PREDICATE:
            words[0] = words[0] & lanes | one.words[0] & ~lanes & FULL


def _words(warp: int, cell: int) -> ctypes.Array[ctypes.c_uint32]:
    if cell < UNIFORM:
        return (ctypes.c_uint32 * LANES).from_address(warp + Warp.register(cell))
    if cell < PREDICATE:
        return (ctypes.c_uint32 * 1).from_address(warp + Warp.uniform(cell - UNIFORM))
    uniform = cell >= UNIFORM_PREDICATE
    index = cell - (UNIFORM_PREDICATE if uniform else PREDICATE)
    return (ctypes.c_uint32 * 1).from_address(warp + Warp.predicate(index, uniform=uniform))
