"""Memory accesses by source line: requests, sectors, wavefronts and L1 cycles, actual and ideal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

from gemmlab.core.counters import (
    CONSTANT_LOAD,
    GLOBAL_KINDS,
    LOCAL_LOAD,
    LOCAL_STORE,
    SHARED_KINDS,
    TEXTURE_LOAD,
    Counters,
    SiteCounters,
)

SECTOR = 32
SECTORS_IN_A_LINE = 4
"""Sectors of 32 bytes in a cache line; L1 looks up and delivers one line per cycle."""
_IN_SECTORS = frozenset({*GLOBAL_KINDS, LOCAL_LOAD, LOCAL_STORE, TEXTURE_LOAD})
_IN_WAVEFRONTS = frozenset(SHARED_KINDS)
_BYTES = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1, "16": 2, "8": 1}


@dataclass(frozen=True, slots=True)
class AccessRow:
    """Counts over a launch: of all instructions of one opcode in a source line, or of one instruction alone."""

    file: str
    line: int
    opcode: str
    kind: str
    instructions: int
    """Number of instructions in the code, however often they were executed."""
    requests: int
    sectors: int
    sectors_ideal: int
    """Sectors if each lane accessed bytes of its own and all these bytes were adjacent; at least one per request. The
    actual number is smaller if lanes share addresses. Equal to `sectors` for shared memory, and for textures, whose
    instructions do not state the number of bytes.
    """
    sectors_distinct: int
    """Sectors that no earlier access of the same wave of blocks requested (`SiteCounters`)."""
    wavefronts: int
    """Wavefronts of shared memory."""
    wavefronts_ideal: int
    """Wavefronts of shared memory without bank conflicts."""
    cycles: int
    """Fewest cycles for which the accesses occupy L1, added up over all SMs (`l1_cycles`)."""
    share: float
    """`cycles` divided by the sum of the `cycles` of all rows; 0 if that sum is 0."""
    address: int = -1
    """Byte address of the first of the instructions; -1 if unknown."""

    @property
    def sectors_per_request(self) -> float:
        return self.sectors / self.requests if self.requests else 0.0

    @property
    def sectors_coalesced(self) -> int:
        """The smaller one of `sectors` and `sectors_ideal`."""
        return min(self.sectors, self.sectors_ideal)

    @property
    def excess(self) -> int:
        """Wavefronts that bank conflicts add (shared memory, asynchronous copies), or sectors beyond the ideal
        (others).
        """
        if self.kind in _IN_WAVEFRONTS:
            return self.wavefronts - self.wavefronts_ideal
        return max(0, self.sectors - self.sectors_ideal)


def access_rows(counters: Counters) -> list[AccessRow]:
    """Return a row for each opcode of a source line that accessed memory, the costliest first.

    Constants and barriers are left out, and operands that matrix instructions read from shared memory.
    """
    groups: dict[tuple[str, int, str], list[SiteCounters]] = {}
    for site in _sites(counters):
        groups.setdefault((site.file, site.line, site.opcode), []).append(site)
    return _rows(groups.values())


def instruction_rows(counters: Counters) -> list[AccessRow]:
    """Return a row for each instruction that accessed memory, the costliest first.

    A row for a whole source line (`access_rows`) may hide an inefficient access behind an efficient one.
    """
    return _rows([site] for site in _sites(counters))


def rows_by_address(counters: Counters) -> dict[int, AccessRow]:
    """Return the row of each instruction that accessed memory, by the instruction's address."""
    sites = _sites(counters)
    total = sum(l1_cycles([site]) for site in sites)
    return {site.address: _row([site], total) for site in sites}


def _sites(counters: Counters) -> list[SiteCounters]:
    known = _IN_SECTORS | _IN_WAVEFRONTS
    return [site for site in counters.sites if site.requests and site.kind in known]


def _rows(groups: Iterable[list[SiteCounters]]) -> list[AccessRow]:
    groups = list(groups)
    total = sum(l1_cycles(sites) for sites in groups)
    rows = [_row(sites, total) for sites in groups]
    return sorted(rows, key=lambda row: (-row.cycles, row.file, row.line, row.opcode))


def l1_cycles(sites: Iterable[SiteCounters]) -> int:
    """Return the fewest cycles for which the accesses of these sites occupy L1, added up over all SMs.

    A wavefront of shared memory takes one cycle. A request of global, local or texture memory takes one cycle per four
    sectors, at least one; sectors scattered over more lines take longer, but the counts do not show that. An
    asynchronous copy takes the larger of the two numbers. Constants take none, because they have another cache.
    """
    return sum(_cycles(site) for site in sites)


def _cycles(site: SiteCounters) -> int:
    if site.kind == CONSTANT_LOAD:
        return 0
    reading = max(site.requests, -(-site.sectors // SECTORS_IN_A_LINE)) if site.kind in _IN_SECTORS else 0
    return max(reading, site.wavefronts)


def _row(sites: list[SiteCounters], total: int) -> AccessRow:
    kind, opcode = sites[0].kind, sites[0].opcode
    threads = sum(site.predicated_on_threads for site in sites)
    requests = sum(site.requests for site in sites)
    needed = max(requests, -(-threads * width_of(opcode) // SECTOR))
    sectors = sum(site.sectors for site in sites)
    cycles = l1_cycles(sites)
    return AccessRow(
        file=PurePath(sites[0].file).name, line=sites[0].line, opcode=opcode, kind=kind, instructions=len(sites),
        requests=requests,
        sectors=sectors,
        sectors_ideal=sectors if kind == TEXTURE_LOAD or kind not in _IN_SECTORS else needed,
        sectors_distinct=sum(site.sectors_distinct for site in sites),
        wavefronts=sum(site.wavefronts for site in sites),
        wavefronts_ideal=sum(site.wavefronts_ideal for site in sites),
        cycles=cycles,
        share=cycles / total if total else 0.0,
        address=sites[0].address,
    )  # fmt: skip


def width_of(opcode: str) -> int:
    """Return the bytes that a lane accesses by an opcode with its modifiers, such as `"LDG.E.128"`; 4 by default."""
    return next((_BYTES[part] for part in opcode.split(".")[1:] if part in _BYTES), 4)
