"""Hazards of a launch: recorded events, grouped by source lines, and the places where the launch could not go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain

import numpy as np

from gemmlab.core.hazard import Hazard, Mention
from gemmlab.emulator import warpgroup_words
from gemmlab.emulator.asynchronous.finding import MBARRIER
from gemmlab.emulator.geometry import Geometry
from gemmlab.emulator.hazard_order import Rank, Ranked, in_order
from gemmlab.emulator.hazard_words import (
    SPACES,
    Event,
    file_of,
    instruction_at,
    lanes_in_words,
    line_of,
    message,
    position,
    space_of,
    stalled,
)
from gemmlab.emulator.image import Image, plain_name
from gemmlab.emulator.instruction_layout import Insn, Kind, Space
from gemmlab.emulator.layout import LANES
from gemmlab.emulator.machine import Outcome
from gemmlab.emulator.out_of_line import call_site
from gemmlab.emulator.register_waits import register_waits
from gemmlab.emulator.wgmma_early_access import touches
from gemmlab.emulator.wgmma_layout import WARPGROUP

NAMES = {
    Kind.OUT_OF_BOUNDS: "out of bounds",
    Kind.MISALIGNED: "misaligned",
    Kind.UNWRITTEN: "unwritten",
    Kind.RACE_BLOCK: "race",
    Kind.RACE_WARP: "race",
    Kind.RACE_GRID: "race",
    Kind.RACE_CLUSTER: "race",
    Kind.BARRIER: "barrier",
    Kind.ASYNC: "async copy",
    Kind.TRAP: "trap",
    Kind.TEXTURE: "texture",
    Kind.WARP_SYNC: "warp sync",
    Kind.SHUFFLE: "warp sync",
    Kind.CALL: "call",
    Kind.ENDED: "cluster",
    **warpgroup_words.NAMES,
}
_NO_ADDRESS = warpgroup_words.NO_ADDRESS.union({
    Kind.BARRIER, Kind.TRAP, Kind.TEXTURE, Kind.WARP_SYNC, Kind.SHUFFLE,
})  # fmt: skip
"""Kinds of events whose `address` field holds something other than a memory address."""
_ACCESSES = frozenset(NAMES) - _NO_ADDRESS - {Kind.CALL}
"""Kinds of events that are accesses to memory."""


def hazards(image: Image, geometry: Geometry, outcome: Outcome) -> Iterator[Hazard]:
    """Yield all hazards of one launch, causes first."""
    found = chain(
        _findings(image, geometry, outcome),
        _events(image, geometry, outcome),
        _touches(image, outcome),
        _unmet(image, geometry, outcome),
        _lone_warps(image, geometry, outcome),
        register_waits(image, geometry, outcome),
        _stalls(image, geometry, outcome),
    )
    return in_order(found)


def _events(image: Image, geometry: Geometry, outcome: Outcome) -> Iterator[Ranked]:
    """Yield one hazard for each kind and pair of source lines; without line information, for each pair of instructions.

    A hazard describes the first event of its group and gives the number of events. An instruction records only its
    first events, and counts all. If its recorded events are all in one group, that group's number includes those that
    were only counted. Races between warps or blocks of a cluster, for want of a barrier, come first. If a pair of
    lines races both between warps and within one, this is one hazard, described as a race between warps. Reads before
    a copy is complete are left out at instructions for which the engine has findings of them.
    """
    groups: dict[tuple[object, ...], list[Event]] = {}
    # The engine of asynchronous operations has explained these, with both lines.
    explained = {finding.site for finding in outcome.findings if finding.kind == NAMES[Kind.ASYNC]}
    for event in (Event(*event) for event in outcome.events.tolist()):
        if event.kind == Kind.ASYNC and event.site in explained:
            continue
        groups.setdefault((NAMES[event.kind], event.kind == Kind.RACE_GRID, *_places(image, event)), []).append(event)
    mixed = Counter(site for group in groups.values() for site in {event.site for event in group})
    for group in sorted(groups.values(), key=_without_barrier, reverse=True):
        first = next((event for event in group if event.kind == Kind.RACE_BLOCK), group[0])
        noted = {site: _noted(outcome, site) for site in {event.site for event in group} if mixed[site] == 1}
        file, other_file = (file_of(image, site) for site in (first.site, first.other))
        shared = first.kind in _ACCESSES and space_of(first) == SPACES[Space.SHARED]
        hazard = Hazard(
            kind=NAMES[first.kind],
            kernel=plain_name(image.function.name),
            block=position(first.block, geometry.grid),
            thread=position(first.thread, geometry.threads),
            address=None if first.kind in _NO_ADDRESS else first.address,
            file=file,
            line=line_of(
                image, call_site(image.code.instructions, first.site) if first.kind == Kind.WARP_SYNC else first.site
            ),
            other_file=other_file if other_file != file else "",
            other_line=line_of(image, first.other),
            count=sum(noted.values()) + sum(1 for event in group if event.site not in noted),
            message=message(image, geometry, outcome.reach, first),
            space=space_of(first) if first.kind in _ACCESSES else "",
            array=geometry.shared_array(first.address) if shared else "",
            owner=geometry.owner(first.address, first.block) if shared else "",
            instruction=instruction_at(image, first.site).address,
            other_instruction=_address(image, first.other),
        )
        yield Ranked(hazard, Rank.RACE if _without_barrier(group) else Rank.OTHER, first.site, first.other)


def _places(image: Image, event: Event) -> tuple[object, object]:
    """Return the two source lines of an event, or instructions where a line is unknown.

    For a race, in which neither access is the first, the order is that of the instructions in the code.
    """
    first, second = (line_of(image, site) or ("at", site) for site in (event.site, event.other))
    return (second, first) if NAMES[event.kind] == "race" and event.other < event.site else (first, second)


def _without_barrier(group: list[Event]) -> bool:
    return any(event.kind in {Kind.RACE_BLOCK, Kind.RACE_CLUSTER} for event in group)


def _address(image: Image, index: int) -> int:
    """Return the byte address of an instruction; -1 for an index out of range."""
    code = image.code.instructions
    return code[index].address if 0 <= index < len(code) else -1


def _noted(outcome: Outcome, site: int) -> int:
    return int(outcome.records[site, Insn.EVENTS : Insn.EVENTS + 8].copy().view(np.int64)[0])


def _findings(image: Image, geometry: Geometry, outcome: Outcome) -> Iterator[Ranked]:
    """Yield the errors in the use of asynchronous operations that their engine found."""
    for finding in outcome.findings:
        file, other_file = (file_of(image, site) for site in (finding.site, finding.other))
        hazard = Hazard(
            kind=finding.kind,
            kernel=plain_name(image.function.name),
            block=position(finding.block, geometry.grid),
            thread=position(finding.thread, geometry.threads),
            address=finding.address,
            file=file,
            line=line_of(image, finding.site),
            other_file=other_file if finding.other >= 0 and other_file != file else "",
            other_line=line_of(image, finding.other),
            count=finding.count,
            message=f"{finding.message} ({instruction_at(image, finding.site).name})",
            # The message of an mbarrier has its name.
            array="" if finding.address is None or finding.kind == MBARRIER else geometry.shared_array(finding.address),
            owner="" if finding.address is None else geometry.owner(finding.address, finding.block),
            mentions=tuple(_mention(image, words, site) for words, site in finding.mentions),
            instruction=_address(image, finding.site),
            other_instruction=_address(image, finding.other),
        )
        yield Ranked(hazard, finding.rank, finding.site, finding.other, finding.subject)


def _mention(image: Image, words: str, site: int) -> Mention:
    return Mention(words, file_of(image, site), line_of(image, site), instruction=_address(image, site))


def _touches(image: Image, outcome: Outcome) -> Iterator[Ranked]:
    """Yield a hazard for each early access to registers of a warpgroup multiplication (`wgmma_early_access`).

    The instruction accesses them while the multiplication is in flight, or writes them before it without a fence
    between. Only instructions that ran count.
    """
    if not image.warpgroups:
        return
    code = image.code.instructions
    executed = outcome.records[:, Insn.EXECUTED : Insn.EXECUTED + 8].copy().view(np.int64)[:, 0]
    for touch in touches(code, (executed > 0).tolist()):
        hazard = Hazard(
            kind="wgmma",
            kernel=plain_name(image.function.name),
            block=(0, 0, 0),
            thread=(0, 0, 0),
            address=None,
            file=file_of(image, touch.site),
            line=line_of(image, touch.site),
            other_line=line_of(image, touch.multiplication),
            count=int(executed[touch.site]),
            message=warpgroup_words.in_flight_message(
                code[touch.site].name, code[touch.multiplication].name, fence=touch.fence
            ),
            instruction=code[touch.site].address,
            other_instruction=code[touch.multiplication].address,
        )
        yield Ranked(hazard, Rank.RACE, touch.site, touch.multiplication, touch.fence)


def _unmet(image: Image, geometry: Geometry, outcome: Outcome) -> Iterator[Ranked]:
    """Yield one hazard for each instruction at which, in a deadlock, lanes wait for other lanes of their mask."""
    for site in dict.fromkeys(each[2] for each in outcome.unmet):
        block, thread, _, lanes = next(each for each in outcome.unmet if each[2] == site)
        hazard = Hazard(
            kind=NAMES[Kind.WARP_SYNC],
            kernel=plain_name(image.function.name),
            block=position(block, geometry.grid),
            thread=position(thread, geometry.threads),
            address=None,
            file=(image.code.instructions[site].line or ("", 0))[0],
            line=line_of(image, call_site(image.code.instructions, site)),
            count=sum(each[2] == site for each in outcome.unmet),
            message=f"{lanes_in_words(lanes)} of the warp, which the mask names, never reaches it",
            instruction=_address(image, site),
        )
        yield Ranked(hazard, Rank.END, site, subject="unmet")


def _lone_warps(image: Image, geometry: Geometry, outcome: Outcome) -> Iterator[Ranked]:
    """Yield the warpgroups that a deadlock splits: some warps wait for a multiplication that the others never issue."""
    if not image.warpgroups:
        return
    waits = [place for place in outcome.blocked if instruction_at(image, place[2]).opcode == "WARPGROUP"]
    for group, (block, warp, site) in {(place[0], place[1] // WARPGROUP): place for place in reversed(waits)}.items():
        others = [
            (index, at)
            for where, index, at in outcome.blocked
            if (where, index // WARPGROUP) == group and instruction_at(image, at).opcode != "WARPGROUP"
        ]
        if not others:
            continue
        never = ", ".join(f"warp {index}, which is at line {line_of(image, at)}" for index, at in others)
        hazard = Hazard(
            kind="warpgroup", kernel=plain_name(image.function.name), block=position(block, geometry.grid),
            thread=position(warp * LANES, geometry.threads), address=None, file=file_of(image, site),
            line=line_of(image, site), message=f"it waits for a multiplication that its warpgroup lacks of {never}",
            instruction=_address(image, site),
        )  # fmt: skip
        yield Ranked(hazard, Rank.END, site, subject="alone")


def _stalls(image: Image, geometry: Geometry, outcome: Outcome) -> Iterator[Ranked]:
    for kind, places in ((outcome.stopped, outcome.blocked), ("residency", outcome.awaited)):
        if not places:
            continue
        linear, warp, index = places[0]
        instruction = instruction_at(image, index)
        file, line = instruction.line or ("", 0)
        hazard = Hazard(
            kind=kind,
            kernel=plain_name(image.function.name),
            block=position(linear, geometry.grid),
            thread=position(warp * LANES, geometry.threads),
            address=None,
            file=file,
            line=line,
            count=len(places),
            message=stalled(kind, places, geometry),
            instruction=_address(image, index),
        )
        yield Ranked(hazard, Rank.END, index)
