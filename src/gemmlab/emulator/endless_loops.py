"""Detect blocks that never end, by a proof, and blocks that run longer than is sensible.

The proof compares the state that decides where the warps go: at each place the predicates and registers on which later
branches depend, found from the instructions that ran meanwhile (`sass.cells.deciding`). If that state contains neither
memory nor time, the same values at the same places repeat forever, whatever else the loop computes (even in the same
registers, if they are overwritten before a branch reads them). `for (k = 0; k < K;) sum += A[k];` is proved endless
after one iteration, though `sum` never repeats. A loop with a moving counter never repeats its values, so a kernel
that would end is never reported.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import UsageError
from gemmlab.core.hazard import UNFINISHED
from gemmlab.core.time_limit import TimeLimit
from gemmlab.emulator.decode import Code
from gemmlab.emulator.geometry import Bytes
from gemmlab.emulator.instruction_layout import Insn
from gemmlab.emulator.layout import Status, Warp
from gemmlab.emulator.memory_map import Reach
from gemmlab.emulator.units import Unit
from gemmlab.sass.cells import PREDICATE, UNIFORM, UNIFORM_PREDICATE, deciding

PATIENCE = "GEMMLAB_EMULATOR_PATIENCE"
"""Environment variable: the most instructions of a block, and of all blocks waiting for it. A launch that exceeds it
is abandoned.
"""
TIMED_OUT = "time limit"
"""Reason of a launch that ran out of time. It says nothing about the kernel."""
_ENDED = (Status.DONE, Status.FAULT, Status.BLOCKED)
_WINDOW, _STEPS = 1000, 20_000
"""Instructions of a warp from which the running code is determined, and those among which a repeat is searched for."""

_CHEAP = 1 << 20
"""Instructions that a waiting block executes until it is found to spin: they are not counted against the patience."""


class StoppedError(Exception):
    """The launch is abandoned: it never ends, or takes too long."""

    def __init__(self, why: str, places: tuple[tuple[int, int, int], ...] = ()) -> None:
        super().__init__(why)
        self.why = why
        """Reason, as in `Outcome.stopped`."""
        self.places = places


class Watch:
    """Checks, at intervals, that the blocks of one launch make progress and that its time limit has not passed."""

    def __init__(self, code: Code, records: Bytes, patience: int, limit: TimeLimit | None = None) -> None:
        self.finished = 0
        """Number of blocks that have ended."""
        self._limit = limit
        self._instructions = code.instructions
        self._executed = records[:, Insn.EXECUTED : Insn.EXECUTED + 8]
        self._patience, self._waited = patience, 0
        self._next = _WINDOW
        """Instructions of one block before its next check. The interval doubles after each check without a result, so
        that all checks together take little time."""
        self._columns: dict[frozenset[int], npt.NDArray[np.int64]] = {}
        self._analyses: dict[bytes, list[frozenset[int]] | None] = {}

    def look(self, resident: Unit) -> int:
        """Return `SPENT` if the block may go on, else the `Status` with which it ended.

        Raises `StoppedError` if it never ends, or not in time.
        """
        self.require_time()
        executed = resident.executed
        if executed + self._waited > self._patience:
            raise StoppedError(UNFINISHED, _places(resident))
        if executed < self._next:
            return Status.SPENT
        self._next = 2 * executed
        before = self._counts()
        status = resident.run(_WINDOW, 1)
        decides = self._decides(before)
        if status in _ENDED or decides is None:
            return status if status in _ENDED else Status.SPENT
        first, place, anchor, meetings = -1, -1, b"", 0
        for _ in range(_STEPS):
            self.require_time()
            status = resident.run(1, 1)
            if status in _ENDED:
                return status
            states = resident.states
            if first < 0 and Status.SPENT in states:
                # Choose a warp that does not merely wait for others, and the place where it is now.
                first = states.index(Status.SPENT)
                place = resident.pc(first)
            if first < 0 or resident.pc(first) != place or states[first] != Status.SPENT:
                continue
            meetings += 1
            now = self._state(resident, decides)
            if now == anchor and self._decides(before) is decides:
                raise StoppedError("endless loop", _places(resident))
            # Stored at meetings 1, 2, 4, 8, ...: one of them falls inside the cycle, with the next one
            # more than a round later.
            anchor = now if meetings & (meetings - 1) == 0 else anchor
        return Status.SPENT

    def require_time(self) -> None:
        """Raise `StoppedError` if the time limit has passed."""
        if self._limit is not None and self._limit.passed:
            raise StoppedError(TIMED_OUT)

    @property
    def instructions(self) -> int:
        """Instructions executed so far by all warps of the launch."""
        return int(self._counts().sum())

    def waits(self, resident: Unit) -> None:
        """Count the instructions, beyond `_CHEAP`, of a block that has to wait for another one."""
        self._waited += max(0, resident.executed - _CHEAP)

    def _state(self, resident: Unit, decides: list[frozenset[int]]) -> bytes:
        """The positions of all warps and the values that decide which way they go from there."""
        parts = [resident.barriers()]
        for index, places in enumerate(resident.next_places()):
            cells = frozenset[int]().union(*(decides[place] for place in places if place < len(decides)))
            if cells not in self._columns:
                self._columns[cells] = _columns(cells, resident.size)
            parts.append(resident.warps[index, self._columns[cells]].tobytes())
        return b"".join(parts)

    def _counts(self) -> npt.NDArray[np.int64]:
        return self._executed.copy().view(np.int64)[:, 0]

    def _decides(self, before: npt.NDArray[np.int64]) -> list[frozenset[int]] | None:
        """The deciding registers and predicates at each instruction, from the instructions that ran since `before`."""
        ran = self._counts() != before
        key = ran.tobytes()
        if key not in self._analyses:
            self._analyses[key] = deciding(self._instructions, ran.tolist())
        return self._analyses[key]


def patience(memory: Reach, blocks: int) -> int:
    """Return the most instructions that a block may execute before its launch is abandoned.

    By default the number grows with the memory: one thread that multiplies matrices filling the memory needs a fifth of
    words^1.5 multiply-adds. That allowance is divided among the blocks. The environment variable `PATIENCE` replaces
    it; raises `UsageError` if its value is not a number.
    """
    setting = os.environ.get(PATIENCE, "")
    if not setting:
        words: int = memory.nbytes // 4
        return (1 << 25) + 4 * math.isqrt(words**3) // blocks
    if not setting.isdecimal():
        raise UsageError(f"{PATIENCE}={setting}: a number of instructions is needed")
    return int(setting)


def settled(resident: Unit, watch: Watch) -> int:
    """Run a block until it ends or needs another block to go on: it is blocked, or repeats its state."""
    visited: set[bytes] = set()
    excuses = 0
    while True:
        epoch = resident.epoch
        status = resident.run(_PRIME) if 0 < len(visited) <= _OFTEN else resident.run()
        if status in (Status.PAUSED, Status.SPENT):
            ended = watch.look(resident)
            status = status if ended == Status.SPENT else ended
        if status == Status.FAULT:
            raise StoppedError("trap")
        if status == Status.PAUSED:
            continue
        if status == Status.BLOCKED and excuses < _EXCUSES:
            # Waits for mbarriers have a time limit. If they all pass it and come back, nothing is left to wait for.
            state = resident.state()
            if state not in visited and resident.excuse():
                visited.add(state)
                excuses += 1
                continue
            return status
        if status != Status.SPENT:
            return status
        if resident.epoch != epoch:
            visited.clear()
            excuses = 0
            continue
        # A round without changes. Take short turns of a prime length: equal states then mean a loop.
        state = resident.state()
        if state in visited:
            return Status.SPENT
        visited.add(state)
        if len(visited) > _MOST:
            visited.clear()


_EXCUSES = 10_000
"""Times that waits for mbarriers pass their time limit, with nothing done meanwhile, before the block is abandoned."""
_PRIME, _OFTEN, _MOST = 997, 63, 256
"""Instructions of a short turn while states are compared; number of short turns before full ones; states stored."""


def _places(resident: Unit) -> tuple[tuple[int, int, int], ...]:
    """Return the positions of the block's warps; warps that execute come before those that wait for others."""
    states = resident.states
    return tuple(sorted(resident.places(), key=lambda place: states[place[1]] != Status.SPENT))


def _columns(cells: Iterable[int], size: int) -> npt.NDArray[np.int64]:
    """Offsets of a warp's bytes that hold its groups' positions, what they wait for, and the values of `cells`."""
    parts = [range(Warp.PC, Warp.EXEC), range(Warp.EXITED, Warp.BUDGET), range(Warp.GROUPS, Warp.SYNCS),
             range(Warp.GROUP, Warp.PREDICATES), range(Warp.CONVERGENCE, Warp.TID)]  # fmt: skip
    for cell in sorted(cells):
        if cell >= UNIFORM_PREDICATE:
            start, count = Warp.predicate(cell - UNIFORM_PREDICATE, uniform=True), 4
        elif cell >= PREDICATE:
            start, count = Warp.predicate(cell - PREDICATE), 4
        elif cell >= UNIFORM:
            start, count = Warp.uniform(cell - UNIFORM), 4
        else:
            start, count = Warp.register(cell), 128
        if start + count <= size:
            parts.append(range(start, start + count))
    return np.array([at for part in parts for at in part], np.int64)
