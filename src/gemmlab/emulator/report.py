"""The result of a run: counters of each instruction under Nsight Compute's names, and hazards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
from gemmlab.emulator.wgmma_registers import OPCODES as GMMA
from gemmlab.emulator.wgmma_registers import gmma_wavefronts
from gemmlab.sass.instruction import Instruction

_SITES = {
    "LDS": core.SHARED_LOAD,
    "LDSM": core.SHARED_LOAD,
    "STS": core.SHARED_STORE,
    "ATOMS": core.SHARED_ATOMIC,
    "LDG": core.GLOBAL_LOAD,
    "LD": core.GLOBAL_LOAD,
    "STG": core.GLOBAL_STORE,
    "ST": core.GLOBAL_STORE,
    "ATOMG": core.GLOBAL_ATOMIC,
    "ATOM": core.GLOBAL_ATOMIC,
    "RED": core.GLOBAL_ATOMIC,
    "REDG": core.GLOBAL_ATOMIC,
    "LDL": core.LOCAL_LOAD,
    "STL": core.LOCAL_STORE,
    "LDGSTS": core.ASYNC_COPY,
    "LDC": core.CONSTANT_LOAD,
    "ULDC": core.CONSTANT_LOAD,
    "TLD": core.TEXTURE_LOAD,
    "TEX": core.TEXTURE_LOAD,
    "BAR": core.BARRIER,
    **dict.fromkeys(GMMA, core.MATRIX_OPERANDS),
}
_IN_SHARED = {"LD": core.SHARED_LOAD, "ST": core.SHARED_STORE, "ATOM": core.SHARED_ATOMIC}
_PATTERNS = frozenset({core.SHARED_LOAD, core.SHARED_STORE})
"""Kinds of access whose memo is about shared memory."""
RETRIED = "mbarrier_waits_repeated.sum"
"""Name of the number of executions that only repeated a wait for an mbarrier; no other count includes them."""
BRANCHES = frozenset({"BRA", "JMP"})
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
    """The counters and hazards of one launch."""
    sites = tuple(_sites(image, outcome))
    extra = _threads_on(image, outcome, sites)
    if geometry.asynchronous:
        retried = outcome.records[:, Insn.RETRIED : Insn.RETRIED + 8].copy().view(np.int64)
        extra[RETRIED] = Metric(int(retried.sum()))
    return Observation(Counters(image.function.name, origin, sites, extra), tuple(hazards(image, geometry, outcome)))


def _threads_on(image: Image, outcome: Outcome, sites: tuple[SiteCounters, ...]) -> dict[str, Metric]:
    """Threads predicated on, counted in two ways. For `@P0 BRA P1` the hardware's counter of a whole launch has the
    threads for which both hold; Nsight Compute's counter by instruction has those for which P0 holds, and so do sites.
    """
    skipped = outcome.records[:, Insn.NOT_TAKEN : Insn.NOT_TAKEN + 8].copy().view(np.int64)[:, 0]
    branches = (index for index, instruction in enumerate(image.code.instructions) if instruction.opcode in BRANCHES)
    by_site = sum(site.predicated_on_threads for site in sites)
    return {
        core.THREADS_ON_BY_SITE: Metric(by_site),
        core.THREADS_ON: Metric(by_site - sum(int(skipped[index]) for index in branches)),
    }


def _kind(instruction: Instruction, known: Mapping[str, int]) -> str:
    """Return the kind of a site; of a generic access (LD, ST, ATOM) that of the memory that all its addresses were in.

    One that was in several memories counts as global.
    """
    if instruction.is_idle:
        return ""
    in_shared = known["requests"] and not known["sectors"]
    return (_IN_SHARED if in_shared else _SITES).get(instruction.opcode) or _SITES.get(instruction.opcode, "")


def _sites(image: Image, outcome: Outcome) -> Iterator[SiteCounters]:
    names = _COUNTED | _PAGE
    columns = [outcome.records[:, at : at + 8].copy().view(np.int64)[:, 0].tolist() for at in names.values()]
    for index, (instruction, *counts) in enumerate(zip(image.code.instructions, *columns, strict=True)):
        file, line = instruction.line or ("", 0)
        known = dict(zip(names, counts, strict=True))
        if not counted_here(instruction):
            known |= dict.fromkeys(_PAGE, 0)
        if instruction.opcode in GMMA:
            known |= dict.fromkeys(("wavefronts", "wavefronts_ideal"), gmma_wavefronts(instruction, known["executed"]))
        kind = _kind(instruction, known)
        yield SiteCounters(
            address=instruction.address,
            opcode=instruction.name,
            text=instruction.text,
            file=file,
            line=line,
            kind=kind,
            pattern=_pattern(outcome.records[index]) if kind in _PATTERNS else (),
            **known,
        )


def _pattern(record: npt.NDArray[np.uint8]) -> tuple[int | None, ...]:
    """Return the last access of a memory instruction as `SiteCounters.pattern` has it; empty without one."""
    key, execute = (int(record[at : at + 4].view(np.int32)[0]) for at in (Memo.KEY, Memo.EXEC))
    if not key:
        return ()
    relative = record[Insn.PATTERN : Insn.PATTERN + 4 * LANES].view(np.int32).tolist()
    return tuple(at if execute >> lane & 1 else None for lane, at in enumerate(relative))
