"""Deadlocks at mbarriers: what each mbarrier lacks, why that does not come, and who waits; causes come first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gemmlab.emulator.asynchronous.absent_arrivals import ArrivalCode, Arrivals, Deadlock, WaitingWarps
from gemmlab.emulator.asynchronous.block_state import BlockState
from gemmlab.emulator.asynchronous.byte_counts import report_missing
from gemmlab.emulator.asynchronous.finding import MBARRIER, Finding, Findings
from gemmlab.emulator.asynchronous.mbarrier import Mbarrier
from gemmlab.emulator.asynchronous.mbarrier_waits import waiting_groups
from gemmlab.emulator.asynchronous.warp_words import threads_in_words, warps_in_words
from gemmlab.emulator.layout import LANES


@dataclass(frozen=True, slots=True)
class Wait:
    """An mbarrier that groups of lanes of its block wait for."""

    mbarrier: Mbarrier
    groups: tuple[tuple[int, int, int], ...]
    """(index of the warp in the block, index of the instruction, mask of lanes) of each group that waits."""
    ahead: int
    """Number of the phase that the groups wait for, if it is over and the current one has the same parity; else -1."""

    @property
    def warps(self) -> list[int]:
        """Indices in the block of the warps that wait."""
        return list(dict.fromkeys(warp for warp, _site, _lanes in self.groups))

    @property
    def who(self) -> str:
        """Words for the warps that wait: `warps 1 and 2 never go on`."""
        ranges = warps_in_words(self.warps)
        return f"{ranges} never {'go' if len(self.warps) > 1 else 'goes'} on"

    @property
    def thread(self) -> int:
        """Index in the block of the lowest thread of the first group that waits."""
        warp, _site, lanes = self.groups[0]
        return warp * LANES + (lanes & -lanes).bit_length() - 1

    @property
    def site(self) -> int:
        """Index of the instruction at which the first group waits."""
        return self.groups[0][1]


def report_waits(blocks: Iterable[BlockState], findings: Findings, code: ArrivalCode) -> WaitingWarps:
    """Add a finding for each mbarrier that a group of lanes waits for; return where each of the warps waits."""
    waits = [wait for block in blocks for wait in _waits(block)]
    where = {
        (wait.mbarrier.block.linear, warp): (wait.mbarrier, site)
        for wait in waits
        for warp, site, _lanes in wait.groups
    }
    deadlock, later = Deadlock(where, code), list[tuple[Wait, Arrivals]]()
    for wait in waits:
        mbarrier = wait.mbarrier
        if mbarrier.word.pending == 0 and mbarrier.word.transactions:
            report_missing(mbarrier, findings, wait.site)
        elif wait.ahead >= 0:
            _report_ahead(wait, findings)
        else:
            later.append((wait, deadlock.arrivals(mbarrier, wait.site, wait.warps[0])))
    for wait, arrivals in sorted(later, key=lambda each: each[1].follows):
        they = "they wait" if wait.warps[1:] else "it waits"
        text = f"{wait.who}: {wait.mbarrier.describe()}; {they} for parity {wait.mbarrier.word.phase}"
        _add(findings, wait, f"{text}; {arrivals.words}", arrivals.other, arrivals.mentions)
    return where


def _waits(block: BlockState) -> Iterator[Wait]:
    """Yield a `Wait` for each mbarrier and phase that groups wait for: the current phase, or one that is over."""
    found: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for warp, site, lanes, address in waiting_groups(block):
        mbarrier = block.mbarriers.get(address)
        if mbarrier is not None:
            found.setdefault((address, _phase_over(mbarrier, warp)), []).append((warp, site, lanes))
    for (address, over), groups in found.items():
        yield Wait(block.mbarriers[address], tuple(groups), over)


def _phase_over(mbarrier: Mbarrier, warp: int) -> int:
    """Return the number of the phase that a waiting warp means, if it is over and the current one has the same parity;
    else -1.

    A warp means the phase after the last one of which it knows that it has ended.
    """
    test = mbarrier.tests.get(warp)
    meant = 0 if test is None else test[2]
    behind = mbarrier.completed - meant
    return meant if behind > 0 and behind % 2 == 0 else -1


def _report_ahead(wait: Wait, findings: Findings) -> None:
    """Report groups that wait for a phase that is over: others began a later one of the same parity meanwhile."""
    mbarrier = wait.mbarrier
    threads = threads_in_words(mbarrier.now.arrivals or mbarrier.before.arrivals)
    many = wait.warps[1:]
    text = (
        f"{warps_in_words(wait.warps)} {'wait' if many else 'waits'} for phase {wait.ahead} of the {mbarrier.name},"
        f" which is over: it is in phase {mbarrier.completed}, of the same parity {mbarrier.word.phase}; {threads} did"
        f" not wait for {'them' if many else 'it'} before arriving again: between the reads of a stage and the next"
        ' copy into it, __syncthreads() is missing, or an mbarrier at which its readers arrive ("empty")'
    )
    _add(findings, wait, text, mbarrier.last, ())


def _add(findings: Findings, wait: Wait, text: str, other: int, mentions: tuple[tuple[str, int], ...]) -> None:
    mbarrier = wait.mbarrier
    findings.add(
        Finding(
            MBARRIER, text, mbarrier.block.linear, wait.thread, wait.site, other, mbarrier.address, state=True,
            mentions=mentions,
        )
    )  # fmt: skip
