"""Deadlocks at mbarriers: what each one lacks, and who waits for it."""

from __future__ import annotations

from gemmlab.core.words import counted
from gemmlab.emulator.asynchronous.block_state import BlockState
from gemmlab.emulator.asynchronous.finding import MBARRIER, Finding, Findings
from gemmlab.emulator.asynchronous.mbarrier import Mbarrier
from gemmlab.emulator.asynchronous.mbarrier_waits import waiting_groups
from gemmlab.emulator.layout import LANES


def report_waits(block: BlockState, findings: Findings) -> None:
    """Add a finding for each mbarrier of a block that a group of lanes waits for."""
    waits: dict[int, list[tuple[int, int, int]]] = {}
    for warp, site, lanes, address in waiting_groups(block):
        waits.setdefault(address, []).append((warp, site, lanes))
    for address, groups in waits.items():
        mbarrier = block.mbarriers.get(address)
        if mbarrier is None:
            continue
        warp, site, lanes = groups[0]
        warps = ", ".join(str(each) for each in dict.fromkeys(group[0] for group in groups))
        never = f"{counted(len(groups), 'group')} of threads (warp {warps}) never {'go' if groups[1:] else 'goes'} on"
        text = f"{never}: {mbarrier.describe()}; they wait for parity {mbarrier.word.phase}"
        text += mbarrier.came + _hint(mbarrier)
        thread = warp * LANES + (lanes & -lanes).bit_length() - 1
        findings.add(Finding(MBARRIER, text, block.linear, thread, site, _cause(mbarrier), address, state=True))


def _cause(mbarrier: Mbarrier) -> int:
    """The instruction that a deadlock at an mbarrier may be due to: a copy of a wrong size, else the last arrival."""
    return mbarrier.landed[-1].site if mbarrier.came else mbarrier.last


def _hint(mbarrier: Mbarrier) -> str:
    """A hint about an mbarrier that nobody has arrived at yet."""
    fresh = mbarrier.completed == 0 and mbarrier.word.pending == mbarrier.word.expected
    if not fresh or mbarrier.last >= 0 or mbarrier.word.transactions:
        return ""
    return "; nobody has arrived yet: a wait for an empty stage, which is to pass at first, tests parity 1"
