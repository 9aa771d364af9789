"""Arrivals that an mbarrier lacks in a deadlock: who did not arrive, at which line, and what keeps them from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gemmlab.emulator.asynchronous.block_state import BlockState
from gemmlab.emulator.asynchronous.host_words import narrow
from gemmlab.emulator.asynchronous.mbarrier import Mbarrier
from gemmlab.emulator.asynchronous.warp_words import threads_in_words, warps_in_words
from gemmlab.emulator.layout import FULL, LANES, Warp
from gemmlab.emulator.shared_variables import variable_at
from gemmlab.sass.instruction import Instruction

Lanes = Mapping[tuple[int, int], int]
"""(rank of a block in the cluster, index of a warp in the block) -> mask of lanes of that warp."""
WaitingWarps = Mapping[tuple[int, int], tuple[Mbarrier, int]]
"""(number of a block in the grid, index of a warp in it) -> (mbarrier that it waits for, index of the instruction)."""
_NO_EXPECT = frozenset({"A1T0", "ART0", "A0TX"})
"""Modifiers of the arrivals that do not raise the number of bytes that an mbarrier expects."""
_ENDS = frozenset({"BRA", "EXIT", "RET"})
_SINCE = "arrived in the phase before and not in this one"
_SINCE_ENDED = "arrived in the phase before, and ended then"
EMPTY = "a wait for an empty stage, which is to pass at first, tests parity 1"


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The arrivals that an mbarrier lacks, in words for a message."""

    words: str
    other: int
    """Index of the instruction of the most recent arrival at this mbarrier, or at one like it; -1 if there was none."""
    mentions: tuple[tuple[str, int], ...] = ()
    """Other instructions that the message lists: (words, index of the instruction)."""
    follows: bool = False
    """True if the threads that should arrive wait elsewhere or have not come so far: then another wait is the cause."""


@dataclass(frozen=True, slots=True)
class ArrivalCode:
    """A kernel's instructions, searched for arrivals at mbarriers."""

    instructions: Sequence[Instruction]
    executed: Sequence[int]
    """The number of executions of each instruction."""

    def idle(self, site: int) -> list[int]:
        """Return the indices of the arrivals that never ran and that a wait at `site` may be for.

        If the wait is that of a thread that fills a stage (`copies_next`), these are arrivals of readers, which expect
        no bytes; else they are arrivals that tell an mbarrier to expect bytes.
        """
        fills = not self.copies_next(site)
        return [
            at
            for at, each in enumerate(self.instructions)
            if _arrives(each) and not self.executed[at] and _expects(each) == fills
        ]

    def copies_next(self, site: int) -> bool:
        """Return whether the next arrival in the code after a wait tells an mbarrier to expect bytes.

        Then it is the wait of a thread that is to fill a stage.
        """
        following = self._next_arrival(site)
        return following is not None and _expects(following)

    def _next_arrival(self, site: int) -> Instruction | None:
        """Return the first arrival that may run after a wait: the one on the shortest path; `None` if there is none."""
        visited, front = {site}, [site]
        while front:
            following = [to for at in front for to in self._after(at) if to not in visited]
            if found := next((self.instructions[at] for at in following if _arrives(self.instructions[at])), None):
                return found
            visited.update(following)
            front = [*dict.fromkeys(following)]
        return None

    def _after(self, at: int) -> list[int]:
        """Return the indices of the instructions that may run right after instruction `at`.

        After a call or a computed jump, this is taken to be the next instruction.
        """
        instruction = self.instructions[at]
        found = [] if instruction.opcode in _ENDS and instruction.predicate is None else [at + 1]
        if instruction.opcode == "BRA":
            found += [operand.value // 16 for operand in instruction.operands if operand.kind == "label"]
        return [to for to in found if 0 <= to < len(self.instructions)]


@dataclass(frozen=True, slots=True)
class Deadlock:
    """All mbarriers that warps of a launch wait for in a deadlock."""

    waits: WaitingWarps
    code: ArrivalCode

    def arrivals(self, mbarrier: Mbarrier, site: int, warp: int) -> Arrivals:
        """Return the arrivals that an mbarrier lacks, and why; warp `warp` waits for it at instruction `site`."""
        if mbarrier.now.arrivals:
            return self._some(mbarrier)
        if mbarrier.before.arrivals:
            return self._none_in_this_phase(mbarrier)
        return self._none_ever(mbarrier, site, warp)

    def _some(self, mbarrier: Mbarrier) -> Arrivals:
        now, before = mbarrier.now.arrivals, mbarrier.before.arrivals
        known = before or dict.fromkeys(now, FULL)
        absent = {key: left for key, all_ in known.items() if (left := all_ & ~now.get(key, 0) & _alive(mbarrier, key))}
        # In a first phase nobody knows who is to arrive: perhaps one lane of each warp.
        if not absent or not (before or sum(map(int.bit_count, absent.values())) == mbarrier.word.pending):
            return Arrivals(f"only {threads_in_words(now)} arrived", mbarrier.last)
        one = sum(map(int.bit_count, absent.values())) == 1
        others = f"{'has' if one else 'have'} not arrived, unlike others of {'its warp' if one else 'their warps'}"
        since = _SINCE if before else others
        # Where a warp has passed the arrival, lanes that did not arrive are the cause.
        obstacles, follows = self._obstacles(mbarrier, {key: lanes for key, lanes in absent.items() if key not in now})
        return Arrivals(f"{threads_in_words(absent)} {since}", mbarrier.last, obstacles, follows)

    def _none_in_this_phase(self, mbarrier: Mbarrier) -> Arrivals:
        before = mbarrier.before.arrivals
        obstacles, follows = self._obstacles(mbarrier, before)
        since = _SINCE_ENDED if _ended(mbarrier, before) else _SINCE
        return Arrivals(f"{threads_in_words(before)} {since}", mbarrier.last, obstacles, follows)

    def _none_ever(self, mbarrier: Mbarrier, site: int, warp: int) -> Arrivals:
        nobody = "nobody has arrived yet"
        if mbarrier.tests.get(warp) is None and not mbarrier.now.expected and self.code.copies_next(site):
            return Arrivals(f"{nobody}: {EMPTY}", -1)
        for twin in _twins(mbarrier):
            if twin.sites:
                mentions = tuple((f"threads arrive at the {twin.name}", at) for at in twin.sites)
                obstacles, follows = self._obstacles(twin, twin.now.arrivals or twin.before.arrivals)
                return Arrivals(nobody, twin.last, mentions + obstacles, follows)
        if idle := self.code.idle(site):
            return Arrivals(nobody, -1, tuple(("no thread has reached the arrival", at) for at in idle), follows=True)
        if not self.code.copies_next(site):
            return Arrivals(nobody, -1)
        what = "no line of the kernel arrives there: the readers of a stage have to, when they have read"
        return Arrivals(f"{nobody}, and {what}", -1)

    def _obstacles(self, mbarrier: Mbarrier, lanes: Lanes) -> tuple[tuple[tuple[str, int], ...], bool]:
        """Return, as mentions, where the warps in `lanes` wait for other mbarriers, and whether any does."""
        found: dict[tuple[str, int], list[int]] = {}
        for rank, warp in lanes:
            there = mbarrier.block.cluster[rank]
            waits = self.waits.get((there.linear, warp))
            if waits is not None and waits[0] is not mbarrier:
                found.setdefault((waits[0].name, waits[1]), []).append(warp)
        mentions = [(f"{warps_in_words(warps)} {'wait' if warps[1:] else 'waits'} for the {name}", site)
                for (name, site), warps in found.items()]  # fmt: skip
        return tuple(mentions), bool(found)


def _expects(arrival: Instruction) -> bool:
    """Return whether an arrival tells its mbarrier to expect bytes."""
    return arrival.opcode == "SYNCS" and not _NO_EXPECT & set(arrival.modifiers)


def _arrives(instruction: Instruction) -> bool:
    return instruction.opcode == "ARRIVES" or (instruction.opcode == "SYNCS" and "ARRIVE" in instruction.modifiers)


def _alive(mbarrier: Mbarrier, key: tuple[int, int]) -> int:
    """Return the mask of a warp's lanes that exist: the last warp of a block may have fewer threads than lanes."""
    block: BlockState = mbarrier.block.cluster[key[0]]
    exists = min(LANES, block.resident.threads - LANES * key[1])
    return FULL >> LANES - exists


def _twins(mbarrier: Mbarrier) -> list[Mbarrier]:
    """Return the other mbarriers with the same number of expected arrivals that are in the same array of the kernel, or
    at the same place in the cluster's other blocks.
    """
    block, at = mbarrier.block, mbarrier.block.offset(mbarrier.address)
    geometry = block.resident.geometry
    mine = variable_at(geometry.variables, at - geometry.shared_low)
    alike = [
        other
        for other in block.mbarriers.values()
        if mine is not None and mine.of_words and mine.holds(block.offset(other.address) - geometry.shared_low)
    ]
    far = [other for there in block.cluster if there is not block for other in there.mbarriers.values()
           if there.offset(other.address) == at]  # fmt: skip
    return [other for other in alike + far if other is not mbarrier and other.word.expected == mbarrier.word.expected]


def _ended(mbarrier: Mbarrier, keys: Iterable[tuple[int, int]]) -> bool:
    """Return whether all warps in `keys`, each (rank of the block in the cluster, index in the block), have ended."""
    cluster = mbarrier.block.cluster
    return all(narrow(cluster[rank].warp(warp) + Warp.EXITED) == FULL for rank, warp in keys)
