"""The result of a run as counters of each site under Nsight Compute's names, and hazards with their source lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gemmlab.core import counters as core
from gemmlab.core.counters import Counters, Hazard, Metric, Observation, SiteCounters
from gemmlab.core.words import counted
from gemmlab.emulator.barriers import BARRIERS, NO_SUCH_BARRIER
from gemmlab.emulator.copy_counts import counted_here
from gemmlab.emulator.endless_loops import PATIENCE
from gemmlab.emulator.image import OUTSIDE, Image, plain_name
from gemmlab.emulator.instruction_layout import Insn, Kind, Space
from gemmlab.emulator.layout import LANES
from gemmlab.emulator.machine import Outcome
from gemmlab.emulator.memory_map import Reach
from gemmlab.emulator.out_of_line import call_site
from gemmlab.emulator.resident import Geometry
from gemmlab.emulator.warp_syncs import NOT_NAMED
from gemmlab.sass.instruction import Instruction

NAMES = {
    Kind.OUT_OF_BOUNDS: "out of bounds",
    Kind.MISALIGNED: "misaligned",
    Kind.UNWRITTEN: "unwritten",
    Kind.RACE_BLOCK: "race",
    Kind.RACE_WARP: "race",
    Kind.RACE_GRID: "race",
    Kind.BARRIER: "barrier",
    Kind.ASYNC: "async copy",
    Kind.TRAP: "trap",
    Kind.TEXTURE: "texture",
    Kind.WARP_SYNC: "warp sync",
    Kind.SHUFFLE: "warp sync",
    Kind.CALL: "call",
    Kind.ENDED: "cluster",
}
_NO_ADDRESS = frozenset({Kind.BARRIER, Kind.TRAP, Kind.TEXTURE, Kind.WARP_SYNC, Kind.SHUFFLE})
"""Kinds of events whose `address` field holds something else."""
SPACES = {Space.GLOBAL: "global", Space.SHARED: "shared", Space.LOCAL: "local", Space.CONSTANT: "constant"}
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
}
ON, ON_BY_SITE = "smsp__thread_inst_executed_pred_on.sum", "thread_inst_executed_true"
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
    hazards = (
        *_events(image, geometry, outcome),
        *_findings(image, geometry, outcome),
        *_unmet(image, geometry, outcome),
        *_stalls(image, geometry, outcome),
    )
    extra = _threads_on(image, outcome, sites)
    if geometry.asynchronous:
        retried = outcome.records[:, Insn.RETRIED : Insn.RETRIED + 8].copy().view(np.int64)
        extra[RETRIED] = Metric(int(retried.sum()))
    return Observation(Counters(image.function.name, origin, sites, extra), hazards)


def _threads_on(image: Image, outcome: Outcome, sites: tuple[SiteCounters, ...]) -> dict[str, Metric]:
    """Threads predicated on, counted in two ways. For `@P0 BRA P1` the hardware's counter of a whole launch has the
    threads for which both hold; Nsight Compute's counter by instruction has those for which P0 holds, and so do sites.
    """
    skipped = outcome.records[:, Insn.NOT_TAKEN : Insn.NOT_TAKEN + 8].copy().view(np.int64)[:, 0]
    branches = (index for index, instruction in enumerate(image.code.instructions) if instruction.opcode in BRANCHES)
    by_site = sum(site.predicated_on_threads for site in sites)
    return {ON_BY_SITE: Metric(by_site), ON: Metric(by_site - sum(int(skipped[index]) for index in branches))}


def _sites(image: Image, outcome: Outcome) -> Iterator[SiteCounters]:
    names = _COUNTED | _PAGE
    columns = [outcome.records[:, at : at + 8].copy().view(np.int64)[:, 0].tolist() for at in names.values()]
    for instruction, *counts in zip(image.code.instructions, *columns, strict=True):
        file, line = instruction.line or ("", 0)
        known = dict(zip(names, counts, strict=True))
        if not counted_here(instruction):
            known |= dict.fromkeys(_PAGE, 0)
        yield SiteCounters(
            address=instruction.address,
            opcode=instruction.name,
            text=instruction.text,
            file=file,
            line=line,
            kind=_SITES.get(instruction.opcode, ""),
            **known,
        )


@dataclass(frozen=True, slots=True)
class _Event:
    """One recorded hazard event."""

    kind: int
    site: int
    other: int
    block: int
    thread: int
    address: int
    extra: int
    other_block: int


def _events(image: Image, geometry: Geometry, outcome: Outcome) -> Iterator[Hazard]:
    """One hazard for each kind and pair of source lines (of instructions, without line information).

    It describes the first event and gives the number of events. An instruction records only its first events and counts
    the rest; if all its recorded events are in one group, they enter with that count.
    """
    # The engine of asynchronous operations has explained these with both lines.
    explained = {finding.site for finding in outcome.findings if finding.kind == NAMES[Kind.ASYNC]}
    events = [
        event
        for event in (_Event(*row) for row in outcome.events.tolist())
        if event.kind != Kind.ASYNC or event.site not in explained
    ]
    groups: dict[tuple[object, ...], list[_Event]] = {}
    for event in events:
        places = (_line(image, event.site) or ("at", event.site), _line(image, event.other) or ("at", event.other))
        apart = event.kind if event.kind in (Kind.RACE_WARP, Kind.RACE_GRID) else 0
        groups.setdefault((NAMES[event.kind], apart, *places), []).append(event)
    mixed = Counter(site for group in groups.values() for site in {event.site for event in group})
    for group in groups.values():
        first = group[0]
        noted = {site: _noted(outcome, site) for site in {event.site for event in group} if mixed[site] == 1}
        instruction = _instruction(image, first.site)
        yield Hazard(
            kind=NAMES[first.kind],
            kernel=plain_name(image.function.name),
            block=_position(first.block, geometry.grid),
            thread=_position(first.thread, geometry.threads),
            address=None if first.kind in _NO_ADDRESS else first.address,
            file=instruction.line[0] if instruction.line else "",
            line=_line(
                image, call_site(image.code.instructions, first.site) if first.kind == Kind.WARP_SYNC else first.site
            ),
            other_line=_line(image, first.other),
            count=sum(noted.values()) + sum(1 for event in group if event.site not in noted),
            message=_message(image, geometry, outcome.reach, first),
        )


def _findings(image: Image, geometry: Geometry, outcome: Outcome) -> Iterator[Hazard]:
    """The errors in the use of asynchronous operations."""
    for finding in outcome.findings:
        yield Hazard(
            kind=finding.kind,
            kernel=plain_name(image.function.name),
            block=_position(finding.block, geometry.grid),
            thread=_position(finding.thread, geometry.threads),
            address=finding.address,
            file=(_instruction(image, finding.site).line or ("", 0))[0],
            line=_line(image, finding.site),
            other_line=_line(image, finding.other),
            count=finding.count,
            message=f"{finding.message} ({_instruction(image, finding.site).name})",
        )


def _noted(outcome: Outcome, site: int) -> int:
    return int(outcome.records[site, Insn.EVENTS : Insn.EVENTS + 8].copy().view(np.int64)[0])


def _message(image: Image, geometry: Geometry, memory: Reach, event: _Event) -> str:
    kind, extra, address = event.kind, event.extra, event.address
    instruction = _instruction(image, event.site)
    if kind == Kind.TRAP:
        return _stopped(OUTSIDE.get(address, ""))
    if kind == Kind.CALL:
        return _ASTRAY[extra]
    if kind == Kind.TEXTURE:
        return f"a fetch through {address}, which is no texture object"
    if kind == Kind.BARRIER:
        if extra == NO_SUCH_BARRIER:
            return f"barrier {address}: a block has barriers 0 to {BARRIERS - 1}"
        if extra & 1:
            return "the barrier was passed without threads that had already ended"
        return "a barrier in divergent code: not all threads of the warp reach it together"
    if kind == Kind.SHUFFLE:
        return f"a shuffle reads from lane {address}, which does not take part in it"
    if kind == Kind.WARP_SYNC:
        lanes = _lanes_in_words(address)
        if extra == NOT_NAMED:
            return f"{lanes} of the warp takes part and is not in the mask"
        return f"{lanes} of the warp, which the mask names, ended without reaching it"
    width, space = extra & 0xFF, SPACES[extra >> 16 & 0xFF]
    verb = "write" if extra & 0x100 else "read"
    what = f"{width}-byte {verb} of {space} memory"
    if kind in {Kind.RACE_BLOCK, Kind.RACE_WARP, Kind.RACE_GRID}:
        fellow = _position(extra >> 32, geometry.threads)
        there = _instruction(image, event.other).name if event.other >= 0 else "?"
        if kind == Kind.RACE_GRID:
            block = _position(event.other_block, geometry.grid)
            return (
                f"{what} ({instruction.name}) and an access by thread {fellow} of block {block} ({there}) with nothing"
                " between that orders blocks: an atomic or a flag with __threadfence, or the end of a launch"
            )
        missing = "no barrier" if kind == Kind.RACE_BLOCK else "no warp-level synchronisation"
        return f"{what} ({instruction.name}) and an access by thread {fellow} ({there}) with {missing} between"
    if kind == Kind.OUT_OF_BOUNDS:
        return what + _bounds(geometry, memory, space, address)
    if kind == Kind.ENDED:
        return f"{what} of a block of the cluster that has ended"
    if kind == Kind.MISALIGNED:
        return f"{what} at an address that is no multiple of {width}"
    if kind == Kind.ASYNC:
        return f"{what} that an asynchronous copy has not brought yet: no wait for it came before"
    return f"{what} that nothing has written"


def _lanes_in_words(mask: int) -> str:
    """A lane mask in words: `"lane 3"`, `"lane 16 (and 15 more)"`."""
    lanes = [lane for lane in range(LANES) if mask >> lane & 1]
    return f"lane {lanes[0]}" + (f" (and {len(lanes) - 1} more)" if len(lanes) > 1 else "")


_ASTRAY = {
    Kind.CALLED: "a call to an address that is no function",
    Kind.RETURNED: "a return to an address that is no instruction",
    Kind.JUMPED: "a jump to an address that is no instruction",
    Kind.RAN_ON: "it goes to where no instruction is",
}


def _stopped(called: str) -> str:
    if called == "__assertfail":
        return "an assertion failed"
    return f"it calls {called}, which is not emulated" if called else "the kernel stopped itself"


def _bounds(geometry: Geometry, memory: Reach, space: str, address: int) -> str:
    if space == "shared":
        return f" at byte {address - geometry.shared_low} of {geometry.shared_bytes}"
    if space == "local":
        return f" at byte {address} of {geometry.local_bytes}"
    if space == "constant":
        return f" at byte {_signed32(address)} of the {geometry.constant_bytes} that __constant__ variables take"
    found = memory.find(address)
    if found is None:
        return ", in no allocation"
    return f" at byte {_signed(address - found.address)} of an allocation of {found.nbytes}"


def _signed(offset: int) -> int:
    return offset if offset < 1 << 35 else offset - (1 << 36)


def _signed32(offset: int) -> int:
    return offset if offset < 1 << 31 else offset - (1 << 32)


def _unmet(image: Image, geometry: Geometry, outcome: Outcome) -> Iterator[Hazard]:
    """Warp-level synchronisations that wait for lanes of their mask in a deadlock, one hazard for each instruction."""
    for site in dict.fromkeys(each[2] for each in outcome.unmet):
        block, thread, _, lanes = next(each for each in outcome.unmet if each[2] == site)
        yield Hazard(
            kind=NAMES[Kind.WARP_SYNC],
            kernel=plain_name(image.function.name),
            block=_position(block, geometry.grid),
            thread=_position(thread, geometry.threads),
            address=None,
            file=(image.code.instructions[site].line or ("", 0))[0],
            line=_line(image, call_site(image.code.instructions, site)),
            count=sum(each[2] == site for each in outcome.unmet),
            message=f"{_lanes_in_words(lanes)} of the warp, which the mask names, never reaches it",
        )


def _stalls(image: Image, geometry: Geometry, outcome: Outcome) -> Iterator[Hazard]:
    for kind, places in ((outcome.stopped, outcome.blocked), ("residency", outcome.awaited)):
        if not places:
            continue
        linear, warp, index = places[0]
        instruction = _instruction(image, index)
        file, line = instruction.line or ("", 0)
        yield Hazard(
            kind=kind,
            kernel=plain_name(image.function.name),
            block=_position(linear, geometry.grid),
            thread=_position(warp * LANES, geometry.threads),
            address=None,
            file=file,
            line=line,
            count=len(places),
            message=_stalled(kind, places, geometry),
        )


def _stalled(kind: str, places: tuple[tuple[int, int, int], ...], geometry: Geometry) -> str:
    match kind:
        case core.CLUSTER:
            return f"a grid of {geometry.grid} blocks is not made of clusters of {geometry.cluster}: no GPU launches it"
        case "deadlock":
            blocks = {block for block, *_ in places}
            return f"{counted(len(places), 'warp')} of {counted(len(blocks), 'block')} can never go on"
        case "endless loop":
            return "what decides where its warps go is the same again, at the same place: it never ends"
        case core.UNFINISHED:
            return f"given up: no block should need so many instructions; if this one does, {PATIENCE} allows more"
        case _:
            return "waited for a block with a higher number, which need not be resident at the same time"


def _instruction(image: Image, index: int) -> Instruction:
    """The instruction at an index; for an index out of range, which damaged code may lead to, the nearest one."""
    return image.code.instructions[max(0, min(index, len(image.code.instructions) - 1))]


def _line(image: Image, index: int) -> int:
    if not 0 <= index < len(image.code.instructions):
        return 0
    line = image.code.instructions[index].line
    return line[1] if line else 0


def _position(linear: int, extent: tuple[int, int, int]) -> tuple[int, int, int]:
    x, y, _z = extent
    return linear % x, linear // x % y, linear // (x * y)
