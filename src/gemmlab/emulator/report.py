"""The result of a run: counters of each instruction under Nsight Compute's names, and hazards."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gemmlab.core import counters as core
from gemmlab.core.counters import Counters, Metric, Observation, SiteCounters
from gemmlab.emulator.copy_counts import counted_here
from gemmlab.emulator.geometry import Geometry
from gemmlab.emulator.hazards import hazards
from gemmlab.emulator.image import Image
from gemmlab.emulator.instruction_layout import Insn
from gemmlab.emulator.layout import LANES
from gemmlab.emulator.machine import Outcome
from gemmlab.emulator.memo import Memo
from gemmlab.emulator.polls import BRANCHES
from gemmlab.emulator.site_counters import kind_of, site_counters
from gemmlab.emulator.wgmma_wavefronts import gmma_wavefronts
from gemmlab.sass.vector_registers import WARPGROUP_OPCODES

_PATTERNS = frozenset({core.SHARED_LOAD, core.SHARED_STORE})
"""Kinds of instruction (`kind_of`) whose `SiteCounters.pattern` is reported; it is empty for all others."""
POLLED = "grid_polls_repeated.sum"
"""Name of the number of polls that blocks of a cooperative launch only repeated; no other count includes them."""
_COUNTED = {
    "executed": Insn.EXECUTED,
    "active_threads": Insn.ACTIVE,
    "predicated_on_threads": Insn.PREDICATED_ON,
    "requests": Insn.REQUESTS,
    "sectors_distinct": Insn.FRESH,
    "sectors": Insn.SECTORS,
    "wavefronts": Insn.WAVEFRONTS,
    "wavefronts_ideal": Insn.IDEAL,
    "bank_conflicts": Insn.CONFLICTS,
}
_PAGE = {
    "page_wavefronts": Insn.PAGE_WAVEFRONTS,
    "page_wavefronts_ideal": Insn.PAGE_IDEAL,
    "page_sectors": Insn.PAGE_SECTORS,
}


def observe(image: Image, geometry: Geometry, outcome: Outcome, origin: str) -> Observation:
    """Return the counters and hazards of one launch; `origin` is as in `Counters`."""
    sites = _sites(image, outcome)
    retried = outcome.records[:, Insn.RETRIED : Insn.RETRIED + 8].copy().view(np.int64)
    extra = {**_threads_on(image, outcome), core.WAITS_REPEATED: Metric(int(retried.sum()))}
    if geometry.cooperative:
        extra[POLLED] = Metric(outcome.polls)
    counters = Counters(image.function.name, origin, sites, extra)
    return Observation(counters, tuple(hazards(image, geometry, outcome)), stopped=bool(outcome.stopped))


def _threads_on(image: Image, outcome: Outcome) -> dict[str, Metric]:
    """Return the launch's counters of threads whose predicate is true.

    For `@P0 BRA P1` the hardware's counter of a whole launch counts threads for which both are true. Nsight Compute's
    counter by instruction, and so `SiteCounters`, count those for which P0 is true.
    """
    skipped, on = (
        outcome.records[:, at : at + 8].copy().view(np.int64)[:, 0] for at in (Insn.NOT_TAKEN, Insn.PREDICATED_ON)
    )
    branches = (index for index in np.flatnonzero(on).tolist() if image.code.instructions[index].opcode in BRANCHES)
    by_site = int(on.sum())
    return {
        core.THREADS_ON_BY_SITE: Metric(by_site),
        core.THREADS_ON: Metric(by_site - sum(int(skipped[index]) for index in branches)),
    }


def _sites(image: Image, outcome: Outcome) -> tuple[SiteCounters, ...]:
    """Return the counters of all instructions; those of instructions that did not run come from `Image.unexecuted`."""
    names = _COUNTED | _PAGE
    table = np.stack([outcome.records[:, at : at + 8].copy().view(np.int64)[:, 0] for at in names.values()], 1)
    found = list(image.unexecuted)
    for index in np.flatnonzero(table.any(1)).tolist():
        instruction = image.code.instructions[index]
        known = dict(zip(names, table[index].tolist(), strict=True))
        if not counted_here(instruction):
            known |= dict.fromkeys(_PAGE, 0)
        if instruction.opcode in WARPGROUP_OPCODES:
            known |= dict.fromkeys(("wavefronts", "wavefronts_ideal"), gmma_wavefronts(instruction, known["executed"]))
        pattern = _pattern(outcome.records[index]) if kind_of(instruction, known) in _PATTERNS else ()
        found[index] = site_counters(instruction, known, pattern)
    return tuple(found)


def _pattern(record: npt.NDArray[np.uint8]) -> tuple[int | None, ...]:
    """Return the last access of a memory instruction as `SiteCounters.pattern` has it; empty without one."""
    key, execute = (int(record[at : at + 4].view(np.int32)[0]) for at in (Memo.KEY, Memo.EXEC))
    if not key:
        return ()
    relative = record[Insn.PATTERN : Insn.PATTERN + 4 * LANES].view(np.int32).tolist()
    return tuple(at if execute >> lane & 1 else None for lane, at in enumerate(relative))
