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


def repeated_waits(function: SassFunction) -> RepeatedWaits:
    """The waits of a function: of each, what its failing branch reaches without passing where a success goes on."""
    graph = flow_graph(function)
    again: set[int] = set()
    branches: set[int] = set()
    for block in graph.blocks:
        code = function.instructions[block.start : block.stop]
        if len(block.successors) != 2 or not _asks(code):
            continue
        following, target = _ways(graph, block.stop, block.successors)
        guard = code[-1].predicate
        assert guard is not None
        failed, done = (target, following) if guard.invert else (following, target)
        branches.add(code[-1].address)
        again |= {insn.address for each in _reached(graph, failed, done) for insn in graph.instructions(each)}
    return RepeatedWaits(frozenset(again), frozenset(branches))


def _ways(graph: FlowGraph, stop: int, successors: tuple[int, ...]) -> tuple[int, int]:
    """The block behind a branch, and that at its target."""
    first, second = successors
    return (first, second) if graph.blocks[first].start == stop else (second, first)


def _asks(code: tuple[Instruction, ...]) -> bool:
    """Return whether the last branch's predicate is the answer of a wait in the same block."""
    guard = code[-1].predicate
    if code[-1].opcode != "BRA" or guard is None:
        return False
    for insn in reversed(code[:-1]):
        if any((each.kind, each.index) == (guard.kind, guard.index) for each in insn.operands[:2]):
            return TESTS.get(insn.opcode, "") in insn.modifiers
    return False


def _reached(graph: FlowGraph, start: int, end: int) -> set[int]:
    """Blocks on paths from `start` that do not pass `end`."""
    found: set[int] = set()
    left = [start]
    while left:
        block = left.pop()
        if block != end and block not in found:
            found.add(block)
            left += graph.blocks[block].successors
    return found
