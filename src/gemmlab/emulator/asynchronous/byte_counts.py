"""Reports of an mbarrier that expects a wrong number of bytes: the line that states it, and the copies it gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemmlab.core.words import counted
from gemmlab.emulator.asynchronous.finding import MBARRIER, Finding, Findings
from gemmlab.emulator.asynchronous.mbarrier_phase import sizes_in_words
from gemmlab.emulator.hazard_order import Rank

if TYPE_CHECKING:
    from gemmlab.emulator.asynchronous.copies import Copy
    from gemmlab.emulator.asynchronous.mbarrier import Mbarrier


def report_too_few(mbarrier: Mbarrier, late: list[Copy]) -> None:
    """Report a phase that is to end while copies issued in it are under way: it was told to expect too few bytes."""
    phase = mbarrier.now
    total = phase.carried + sum(copy.nbytes for copy in late)
    what = f"the copies of this phase bring {total:,}: it ends before all have landed"
    report(mbarrier, late[0].findings, f"{what}, and waits for it pass too early", phase.landed + late)


def report_missing(mbarrier: Mbarrier, findings: Findings, waiting: int) -> None:
    """Report, in a deadlock, a phase that got fewer or more bytes than it was told to expect.

    `waiting` is the instruction at which threads wait for it.
    """
    phase = mbarrier.now
    came = f"{phase.carried:,} came" if phase.landed else "none came"
    more = [("they wait", waiting), *_elsewhere(mbarrier)]
    report(mbarrier, findings, f"{came}: those who wait for it never go on", phase.landed, more)


def report(
    mbarrier: Mbarrier, findings: Findings, what: str, copies: list[Copy], more: list[tuple[str, int]] | None = None
) -> None:
    """Add a finding for a wrong number of expected bytes, at the last line that states one, else at the first copy's.

    `what` ends the message. `copies` brought or will bring bytes. The mentions are the sizes of `copies`, the earlier
    statements, and then `more`: (words, index of the instruction) of each.
    """
    phase = mbarrier.now
    expectation = counted(phase.nbytes, "byte") if phase.expected else "no bytes"
    text = f"the {mbarrier.name} is told to expect {expectation} in phase {mbarrier.completed}, and {what}"
    mentions = sizes_in_words(copies)
    if phase.expected:
        first = phase.expected[-1]
        block, thread, site = first.block, first.thread, first.site
        mentions += [
            (f"before that, it is told to expect {counted(each.nbytes, 'byte')}", each.site)
            for each in phase.expected[:-1]
        ]
    else:
        block, thread, site = mbarrier.block.linear, copies[0].thread, copies[0].site
    other = copies[-1].site if copies else -1
    findings.add(
        Finding(
            MBARRIER, text, block, thread, site, other, mbarrier.address, order=Rank.BYTES,
            mentions=tuple(mentions + (more or [])),
        )
    )  # fmt: skip


def unexpected(copy: Copy) -> str:
    """Return words to end a message: the mbarrier of a copy in flight was not told to expect its bytes.

    They are empty if it was.
    """
    phase = copy.mbarrier.now
    if phase.nbytes >= phase.carried + copy.nbytes:
        return ""
    before = copy.mbarrier.before
    earlier = f"; in the phase before it was told {counted(before.nbytes, 'byte')}" if before.expected else ""
    return f", and the {copy.mbarrier.name} was not told to expect its {counted(copy.nbytes, 'byte')}{earlier}"


def _elsewhere(mbarrier: Mbarrier) -> list[tuple[str, int]]:
    """Return, as mentions, the multicasts that bring bytes to the mbarrier at the same place in other blocks, but not
    to this one.
    """
    found: dict[int, str] = {}
    here = {copy.site for copy in mbarrier.now.landed}
    mine, base = mbarrier.block, mbarrier.block.offset(mbarrier.address)
    for block in mine.cluster:
        for other in block.mbarriers.values():
            if block is mine or block.offset(other.address) != base:
                continue
            for copy in (*other.before.landed, *other.now.landed):
                if copy.blocks and not copy.blocks >> mine.rank & 1 and copy.site not in here:
                    found[copy.site] = f"a copy goes to {_blocks(copy.blocks)} of the cluster and not to this one"
    return [(words, site) for site, words in found.items()]


def _blocks(mask: int) -> str:
    ranks = [str(rank) for rank in range(mask.bit_length()) if mask >> rank & 1]
    return f"block {ranks[0]}" if len(ranks) == 1 else f"blocks {' and '.join(ranks)}"
