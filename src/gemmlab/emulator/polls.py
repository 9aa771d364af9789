"""Counts of a cooperative launch without repeated polls, by which a block asks again and again whether the others have
come.

How often a GPU polls depends on time, which the emulator does not know. Of each wait, the first poll that fails and the
one that succeeds are counted, as if the block had slept between them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gemmlab.emulator.decode import Code
from gemmlab.emulator.geometry import Bytes
from gemmlab.emulator.instruction_layout import Insn
from gemmlab.emulator.units import Unit

BRANCHES = frozenset({"BRA", "JMP"})
_COUNTERS = (
    Insn.EXECUTED, Insn.ACTIVE, Insn.PREDICATED_ON, Insn.REQUESTS, Insn.SECTORS, Insn.WAVEFRONTS, Insn.IDEAL,
    Insn.FRESH, Insn.CONFLICTS, Insn.PAGE_WAVEFRONTS, Insn.PAGE_IDEAL, Insn.PAGE_SECTORS, Insn.RETRIED,
)  # fmt: skip
"""The counters of every instruction; branches also have `NOT_TAKEN`."""
_LONGEST = 4096
"""The most instructions of a warp between two equal states of a block that polls."""


class Polls:
    """The counters of a cooperative launch, from which repeated polls are taken away."""

    def __init__(self, code: Code, records: Bytes) -> None:
        self.repeated = 0
        """Number of polls taken away so far: turns of the loops in which blocks poll."""
        self._wide = records.view(np.int64)
        branches = [index for index, one in enumerate(code.instructions) if one.opcode in BRANCHES]
        rows = np.arange(len(records)).repeat(len(_COUNTERS))
        columns = np.tile(np.array(_COUNTERS) // 8, len(records))
        self._places = (
            np.concatenate([rows, np.array(branches, np.int64)]),
            np.concatenate([columns, np.full(len(branches), Insn.NOT_TAKEN // 8)]),
        )
        self._before, self._epoch = self._counts(), 0

    def begin(self, unit: Unit, *, anew: bool) -> None:
        """Remember the counts before a unit runs; `anew` if it has not run before."""
        self._before, self._epoch = self._counts(), -1 if anew else unit.epoch

    def forget(self, unit: Unit) -> None:
        """Take away the counts of the polls that a unit repeats, if that is what it has done since `begin`, at last.

        The unit runs one more poll for that, and stops at the beginning of the next. Nothing is changed if its state
        does not repeat.
        """
        epoch = unit.epoch
        start, state, places = self._counts(), unit.state(), list[int]()
        for steps in range(1, _LONGEST):
            places.append(sum(map(sum, unit.next_places())))
            unit.run(1, 1)
            if unit.epoch != epoch:
                return
            if unit.state() == state:
                break
            if steps & (steps - 1) == 0:
                # A state before the cycle never comes again, so later ones are compared with one within it.
                start, state, places = self._counts(), unit.state(), []
        else:
            return
        once = self._counts() - start
        counted = once > 0
        if not counted.any():
            return
        for _ in range(places.index(min(places))):
            unit.run(1, 1)
        now = self._counts()
        # A poll that succeeds does not take the branch back, so the smallest quotient is the number of those that fail.
        failed = int(((now - self._before)[counted] // once[counted]).min())
        first = self._epoch != epoch
        more = max(0, failed - first)
        self._wide[self._places] = now - more * once
        self.repeated += more

    def _counts(self) -> npt.NDArray[np.int64]:
        found: npt.NDArray[np.int64] = self._wide[self._places]
        return found
