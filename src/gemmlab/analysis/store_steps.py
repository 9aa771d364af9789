"""The remedy for bank conflicts of stores, from the strides between lanes' addresses in shared memory.

The addresses of the lanes of a store mostly form runs of equal length, with one stride from lane to lane within a run
and another from the first lane of a run to the first lane of the next. If a tile is transposed while it is loaded, one
of the two strides is the length of a row. An odd length alone is not enough: runs that have no conflicts within
themselves may conflict with each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gemmlab.analysis.access_sites import AccessRow, width_of
from gemmlab.core.counters import SHARED_KINDS, Counters
from gemmlab.core.words import counted
from gemmlab.observe.access_patterns import pattern_at

_WORD, _BANKS = 4, 32
_OTHER_LANES = "change which lane stores what"
UNKNOWN = f"Let lanes that store together reach different banks: another row length, or {_OTHER_LANES}."
"""The remedy if the lanes' addresses are not known, do not form runs, or have no conflicts."""


@dataclass(frozen=True, slots=True)
class Strides:
    """The strides of the lanes of a store, in words."""

    of_lanes: int
    """Words from one lane to the next within a run."""
    run: int
    """Number of lanes in a run."""
    of_runs: int
    """Words from the first lane of a run to the first lane of the next; 0 if all lanes are one run."""

    @property
    def rows(self) -> tuple[int, ...]:
        """Lengths in words that rows of the array may have, in the order in which they are tried.

        They are the shorter stride, if it divides the longer one and has at least 32 words, and the longer stride.
        """
        short, long = sorted((self.of_lanes, self.of_runs))
        return (short, long) if short >= _BANKS and long % short == 0 else (long,)

    def at(self, lane: int) -> int:
        """Return the offset of a lane's address in words, 0 for the first lane."""
        return lane % self.run * self.of_lanes + lane // self.run * self.of_runs

    def padded(self, row: int, pad: int, lanes: Iterable[int]) -> dict[int, int]:
        """Return the offset of each lane's address in bytes after `pad` words are added to each row of `row` words."""
        return {lane: _WORD * (at + at // row * pad) for lane in lanes for at in (self.at(lane),)}


def cure_of_stores(counters: Counters, worst: Iterable[AccessRow]) -> str:
    """Return the remedy for the first of the `worst` stores that has a known one, in words; else `UNKNOWN`.

    Each row of `worst` is one instruction's. `counters` are those of an emulated run: only they have the lanes'
    addresses (`SiteCounters.pattern`), without which the remedy is `UNKNOWN`.
    """
    patterns = {site.address: site.pattern for site in counters.sites}
    widest = max((width_of(site.opcode) for site in counters.of_kind(*SHARED_KINDS) if site.requests), default=_WORD)
    for row in worst:
        addresses = {lane: at for lane, at in enumerate(patterns.get(row.address, ())) if at is not None}
        if (found := cure(addresses, width_of(row.opcode), widest)) != UNKNOWN:
            return found
    return UNKNOWN


def cure(addresses: Mapping[int, int], width: int, widest: int = _WORD) -> str:
    """Return the remedy for bank conflicts of a store, in words; `UNKNOWN` without conflicts or without runs of lanes.

    `addresses` has each lane's byte offset, `width` is the bytes that a lane stores. `widest` is the width in bytes of
    the kernel's widest access of shared memory. That may be an access of this array, and must stay aligned: if the
    length of rows is a multiple of `widest`, the padded length is one too. A padding is named only if it removes every
    conflict, counted by the emulator's own rule. The rows of the array are not known: the stride that is padded may be
    one row or several.
    """
    strides = _strides(addresses)
    if strides is None or _conflicts(addresses, width) == 0:
        return UNKNOWN
    unit = max(1, width // _WORD)
    tried = ((row, pad) for row in strides.rows for pad in range(unit, _BANKS, unit)
             if row * _WORD % widest or pad * _WORD % widest == 0)  # fmt: skip
    found = next(((row, pad) for row, pad in tried if not _conflicts(strides.padded(row, pad, addresses), width)), None)
    cause = f"Neighbouring lanes store {counted(strides.of_lanes, 'word')} apart"
    if strides.of_runs:
        cause = (
            f"Runs of {strides.run} lanes meet in the same banks: {counted(strides.of_lanes, 'word')} from lane to "
            f"lane, {counted(strides.of_runs, 'word')} from run to run"
        )
    if found is None:
        alignable = any(row * _WORD % widest == 0 for row in strides.rows) and widest > width
        which = f" that keeps accesses of {widest} bytes aligned" if alignable else ""
        return f"{cause}. No padding of rows{which} parts them: {_OTHER_LANES}."
    row, pad = found
    return f"{cause}. Pad rows so that {row} words become {row + pad}, or {_OTHER_LANES}."


def _strides(addresses: Mapping[int, int]) -> Strides | None:
    """Return the strides of a store's lanes.

    `None` if lanes are missing between the first and the last, if addresses descend or are no multiples of 4 bytes, and
    if they do not form runs.
    """
    count = len(addresses)
    if count < 2 or [*addresses] != list(range(count)) or any(at % _WORD for at in addresses.values()):
        return None
    words = [at // _WORD for at in addresses.values()]
    step = words[1] - words[0]
    run = next((lane for lane in range(1, count) if words[lane] - words[lane - 1] != step), count)
    found = Strides(step, run, words[run] - words[0] if run < count else 0)
    if min(found.of_lanes, found.of_runs) < 0 or any(found.at(lane) != word for lane, word in enumerate(words)):
        return None
    return found


def _conflicts(addresses: Mapping[int, int], width: int) -> int:
    pattern = pattern_at(addresses, width, store=True)
    return pattern.wavefronts - pattern.ideal
