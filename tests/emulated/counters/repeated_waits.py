"""The instructions whose counts depend on how often a wait is tried again, by the flow of the machine code."""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.sass.blocks import FlowGraph, flow_graph
from gemmlab.sass.instruction import Instruction, SassFunction

TESTS = {"SYNCS": "PHASECHK", "USETMAXREG": "TRY_ALLOC"}
"""Instructions that answer by a predicate whether a wait is over, each with the modifier that says so."""


@dataclass(frozen=True, slots=True)
class RepeatedWaits:
    """Addresses, in bytes from the function's start."""

    again: frozenset[int]
    """Instructions that run after a wait has failed, and before it succeeds."""
    branches: frozenset[int]
    """Branches on the answer of a wait: how many threads take them depends on the answer."""
    timed: frozenset[int]
    """Instructions whose number neither side bounds: polls that never block, waits for registers, and both ways of a
    branch on whether a warp's lanes are together, which waits that end at other times take apart.
    """


def repeated_waits(function: SassFunction) -> RepeatedWaits:
    """The waits of a function: of each, what its failing branch reaches without passing where a success goes on."""
    graph = flow_graph(function)
    again: set[int] = set()
    branches: set[int] = set()
    timed = _of_lanes_apart(graph)
    for block in graph.blocks:
        code = function.instructions[block.start : block.stop]
        if len(block.successors) != 2 or not _asks(code):
            continue
        following, target = _ways(graph, block.stop, block.successors)
        guard = code[-1].predicate
        assert guard is not None
        failed, done = (target, following) if guard.invert else (following, target)
        branches.add(code[-1].address)
        found = {insn.address for each in _reached(graph, failed, {done}) for insn in graph.instructions(each)}
        blocks = any("TRYWAIT" in insn.modifiers for insn in code if insn.opcode in TESTS)
        (again if blocks else timed).update(found)
    return RepeatedWaits(frozenset(again), frozenset(branches), frozenset(timed))


def _of_lanes_apart(graph: FlowGraph) -> set[int]:
    """Addresses from `BRA.DIV` to where its two ways meet again."""
    found: set[int] = set()
    for number, block in enumerate(graph.blocks):
        last = graph.function.instructions[block.stop - 1]
        if last.opcode != "BRA" or "DIV" not in last.modifiers:
            continue
        following, target = _ways(graph, block.stop, block.successors)
        side = _reached(graph, target, _reached(graph, following, set()))
        meeting = {each for one in side for each in graph.blocks[one].successors} - side
        blocks = {number} | side | _reached(graph, following, meeting)
        found |= {insn.address for each in blocks for insn in graph.instructions(each)}
    return found


def _ways(graph: FlowGraph, stop: int, successors: tuple[int, ...]) -> tuple[int, int]:
    """The block behind a branch, and that at its target."""
    first, second = successors
    return (first, second) if graph.blocks[first].start == stop else (second, first)


def _asks(code: tuple[Instruction, ...]) -> bool:
    """Return whether the last branch's predicate is the answer of a wait in the same block."""
    guard = code[-1].predicate
    if code[-1].opcode != "BRA" or guard is None:
        return False
    wanted = {(guard.kind, guard.index)}
    for insn in reversed(code[:-1]):
        if not any((each.kind, each.index) in wanted for each in insn.operands[:2]):
            continue
        if insn.opcode != "PLOP3":
            return TESTS.get(insn.opcode, "") in insn.modifiers
        # The answer of USETMAXREG is a predicate of the warp, which is copied to one of its lanes.
        wanted = {(each.kind, each.index) for each in insn.operands[2:] if each.kind in {"pred", "upred"}}
    return False


def _reached(graph: FlowGraph, start: int, ends: set[int]) -> set[int]:
    """Blocks on paths from `start` that do not pass `ends`."""
    found: set[int] = set()
    left = [start]
    while left:
        block = left.pop()
        if block not in ends and block not in found:
            found.add(block)
            left += graph.blocks[block].successors
    return found
