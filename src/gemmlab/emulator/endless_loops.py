"""Detection of blocks that provably never end, and of blocks that execute too many instructions.

The proof compares the state that determines the control flow: the positions of all warps, and the predicates and
registers on which later branches depend, found from the instructions that ran (`sass.cells.deciding`). If these do not
depend on memory or time, a state that repeats once repeats forever, no matter what else the loop computes. For example,
`for (k = 0; k < K;) sum += A[k];` is proved endless after one iteration, although `sum` never repeats. A loop with a
counter that changes never repeats its state, so a kernel that would end is never reported.
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
"""Name of the environment variable that sets the most instructions that a block, together with the blocks that wait for
another one, may execute. A launch that exceeds the number is stopped.
"""
TIMED_OUT = "time limit"
"""`Outcome.stopped` of a launch that ran out of time. The kernel need not be wrong."""
_ENDED = (Status.DONE, Status.FAULT, Status.BLOCKED)
_WINDOW, _STEPS = 1000, 20_000
"""Instructions that each warp executes to show which code is running; then the most in which the block's state must
repeat for a proof."""

_CHEAP = 1 << 20
"""Instructions of a block that waits for another one that do not count against the patience."""


class StoppedError(Exception):
    """Error that stops a launch: it never ends, takes too long, cannot go on, or has a grid of partial clusters."""

    def __init__(self, why: str, places: tuple[tuple[int, int, int], ...] = ()) -> None:
        super().__init__(why)
        self.why = why
        """Reason, as in `Outcome.stopped`."""
        self.places = places
        """Positions of the warps, as from `Unit.places`."""


class Watch:
    """A check, at intervals, whether the blocks of a launch repeat their state, and whether its time limit passed."""

    def __init__(self, code: Code, records: Bytes, patience: int, limit: TimeLimit | None = None) -> None:
        self.finished = 0
        """Number of blocks that have ended."""
        self._limit = limit
        self._instructions = code.instructions
        self._executed = records[:, Insn.EXECUTED : Insn.EXECUTED + 8]
        self._patience, self._waited = patience, 0
        self._next = _WINDOW
        """Number of executed instructions from which on a block's next check is due: twice that of the previous check,
        of any block, so that all checks together take little time."""
        self._columns: dict[frozenset[int], npt.NDArray[np.int64]] = {}
        self._analyses: dict[bytes, list[frozenset[int]] | None] = {}

    def look(self, resident: Unit) -> int:
        """Check a block, if its next check is due; the check runs the block further.

        Return `SPENT` if the block can go on, else the `Status` with which it ended, failed or blocked. Raises
        `StoppedError` if the block never ends, executed too many instructions, or the time limit has passed.
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
            # The state to compare with is replaced at comparisons 1, 2, 4, 8, ... (Brent's algorithm): one of these is
            # inside the cycle, and the next is more than a round later.
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
        """Count against the patience all but the first `_CHEAP` instructions of a block that waits for another one."""
        self._waited += max(0, resident.executed - _CHEAP)

    def _state(self, resident: Unit, decides: list[frozenset[int]]) -> bytes:
        """Return the positions of all warps, and the values that determine their control flow from there, as bytes."""
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
        """Return the cells that determine the control flow at each instruction (`deciding`), `None` if unknown.

        `before` is the instructions' counters at the start of the check; an instruction ran if its counter differs now.
        """
        ran = self._counts() != before
        key = ran.tobytes()
        if key not in self._analyses:
            self._analyses[key] = deciding(self._instructions, ran.tolist())
        return self._analyses[key]


def patience(memory: Reach, blocks: int) -> int:
    """Return the most instructions that a block may execute before its launch is stopped.

    By default the number is 2^25 + 4 w^1.5 / `blocks`, where w is the size of `memory` in words of 4 bytes: if one
    thread multiplies matrices that fill the memory, it executes a fifth of w^1.5 multiply-adds. The environment
    variable `PATIENCE` replaces the whole number. Raises `UsageError` if its value is not a number.
    """
    setting = os.environ.get(PATIENCE, "")
    if not setting:
        words: int = memory.nbytes // 4
        return (1 << 25) + 4 * math.isqrt(words**3) // blocks
    if not setting.isdecimal():
        raise UsageError(f"{PATIENCE}={setting}: a number of instructions is needed")
    return int(setting)


def settled(resident: Unit, watch: Watch) -> int:
    """Run a unit until it ends, or cannot go on without another block; return `DONE`, `BLOCKED` or `SPENT`.

    It cannot go on if all its warps wait (`BLOCKED`), or if it repeats its state (`SPENT`). Raises `StoppedError` for a
    `FAULT`, such as a trap, and where `Watch.look` does.
    """
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
            # Waits for mbarriers have a time limit. If all of them time out and the state does not change, nothing
            # that the block waits for can come.
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
        # The round changed nothing that another thread could notice. Short turns of a prime length come next: then
        # equal states mean a loop.
        state = resident.state()
        if state in visited:
            return Status.SPENT
        visited.add(state)
        if len(visited) > _MOST:
            visited.clear()


_EXCUSES = 10_000
"""Most times in a row that a wait for an mbarrier may time out while all warps wait and nothing else changes."""
_PRIME, _OFTEN, _MOST = 997, 63, 256
"""Instructions of a short turn; most stored states with which turns are short; most states stored for comparison."""


def _places(resident: Unit) -> tuple[tuple[int, int, int], ...]:
    """Return the positions of the unit's warps; warps that execute come before those that wait for others."""
    found = [
        (block.states[warp] != Status.SPENT, (linear, warp, place))
        for block in resident.blocks
        for linear, warp, place in block.places()
    ]
    return tuple(place for _waits, place in sorted(found, key=lambda each: each[0]))


def _columns(cells: Iterable[int], size: int) -> npt.NDArray[np.int64]:
    """Return the offsets of a warp's bytes with its groups' positions and waits, and the values of `cells`."""
    parts = [range(Warp.PC, Warp.ACTIVE + 4), range(Warp.EXITED, Warp.STATE + 4), range(Warp.GROUPS, Warp.SYNCS),
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
