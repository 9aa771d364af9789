"""The loop in which the kernel computes, as its machine code says: what it is made of, for one iteration of a warp."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from gemmlab.analysis.access_sites import l1_cycles
from gemmlab.core.counters import SiteCounters
from gemmlab.sass import metrics
from gemmlab.sass.banks import conflict_cycles
from gemmlab.sass.blocks import FlowGraph, flow_graph
from gemmlab.sass.instruction import RZ, Instruction, SassFunction
from gemmlab.sass.loops import Loop, main_loop
from gemmlab.sass.pipes import Pipe, pipe

LOOP_CACHE_BYTES = 16 << 10
"""Of a partition's own instruction cache, as measured on Turing (Jia et al.); unpublished since, so a warning sign."""
SM_CACHE_BYTES = 128 << 10
"""Of the next one, which the partitions share (Jia et al., Volta)."""
Name = TypeVar("Name", bound=str)
_MULTIPLY_ADDS = frozenset({"FFMA", "HMMA"})
_JUMPS = frozenset({"BRA", "BRX", "JMP", "CALL", "RET"})


@dataclass(frozen=True, slots=True)
class LoopReport:
    """One loop. Counts without another word are instructions executed an iteration and warp; an iteration is one in the
    midst of the loop.
    """

    header: int
    """Address of its first instruction."""
    lines: tuple[int, ...]
    """Of the source, in rising order, that its arithmetic comes from."""
    instructions: tuple[Instruction, ...] = field(repr=False)
    """That ran, inner loops left out, in order of address."""
    iterations: int
    """Of all warps together."""
    mix: Mapping[str, float]
    """By opcode, the most frequent first."""
    pipes: Mapping[Pipe, float]
    code_bytes: int
    """Inner loops and paths that never ran included."""
    never_ran: int
    """Instructions of the loop."""
    wide_shared: float
    """LDS.128."""
    wide_global: float
    """LDG.128 and 16-byte asynchronous copies."""
    reuse_rate: float | None
    """The part of the arithmetic's register operands that are kept for the next instruction."""
    conflicted: int
    """Instructions in the code whose sources lie in too few register banks."""
    conflict_cycles: int
    """What that adds to one pass over the code."""
    moved: int
    """Multiply-adds in the code whose sum goes to another register than it came from."""
    stall_cycles: int
    """Sum of the stall fields of one pass: what a warp alone needs at least."""
    yields: int
    """Instructions in the code at which the scheduler is asked to prefer another warp."""
    waits: int
    """Instructions in the code that wait for a dependency barrier."""
    jumps: int
    """In the code, the one back to the header apart."""
    wavefronts: float
    """Of shared memory."""
    l1_cycles: float
    """Of an SM's L1 at least: those wavefronts, and global requests."""
    barriers: float

    @property
    def executed(self) -> float:
        """All, padding apart."""
        return sum(self.mix.values())

    @property
    def ffma_share(self) -> float:
        return self.mix.get("FFMA", 0.0) / self.executed if self.executed else 0.0


def explain_loop(function: SassFunction, sites: Sequence[SiteCounters], arch: str) -> LoopReport | None:
    """The main loop of a kernel that was counted; `None` where it computes in no loop."""
    executed = {site.address: site.executed for site in sites}
    loop = main_loop(function, executed)
    if loop is None:
        return None
    graph = flow_graph(function)
    whole = list(graph.instructions(*loop.blocks))
    ran = [i for i in graph.instructions(*loop.own) if executed[i.address] and i.opcode != "NOP"]
    header = function.instructions[graph.blocks[loop.header].start].address
    weight = _weights(ran, executed, executed[header], _entries(graph, loop, executed))
    at = {site.address: site for site in sites}
    conflicts = [cycles for block in sorted(loop.own) for cycles in _conflicts(graph.instructions(block), at, arch)]

    def each(cost: Callable[[SiteCounters], float]) -> float:
        """Of all instructions an iteration, `cost` being what a site came to over all its executions."""
        return sum(weight[i.address] * cost(at[i.address]) / executed[i.address] for i in ran)

    def count(wanted: Callable[[Instruction], bool]) -> float:
        return sum(weight[i.address] for i in ran if wanted(i))

    return LoopReport(
        header=header,
        lines=tuple(sorted({i.line[1] for i in ran if i.line and metrics.flops(i)})),
        instructions=tuple(ran),
        iterations=executed[header],
        mix=_added(ran, weight, lambda i: i.opcode),
        pipes=_added(ran, weight, pipe),
        code_bytes=metrics.code_bytes(whole),
        never_ran=sum(not executed[i.address] for i in whole),
        wide_shared=count(lambda i: i.opcode == "LDS" and "128" in i.modifiers),
        wide_global=count(lambda i: i.opcode in ("LDG", "LDGSTS") and "128" in i.modifiers),
        reuse_rate=metrics.reuse_rate(ran),
        conflicted=sum(cycles > 0 for cycles in conflicts),
        conflict_cycles=sum(conflicts),
        moved=moved_accumulators(ran),
        stall_cycles=sum(i.control.stall for i in ran),
        yields=sum(not i.control.yield_ for i in ran),
        waits=sum(i.control.wait_mask != 0 for i in ran),
        jumps=sum(i.opcode in _JUMPS and not _goes_back(i, header) for i in ran),
        wavefronts=each(lambda site: site.wavefronts),
        l1_cycles=each(lambda site: l1_cycles([site])),
        barriers=count(lambda i: i.opcode == "BAR"),
    )


def _entries(graph: FlowGraph, loop: Loop, executed: Mapping[int, int]) -> int:
    """How often the loop was entered at most: what leads to its header from outside."""
    before = [b for i, b in enumerate(graph.blocks) if loop.header in b.successors and i not in loop.blocks]
    return sum(executed[graph.function.instructions[block.stop - 1].address] for block in before)


def _weights(
    ran: Iterable[Instruction], executed: Mapping[int, int], iterations: int, entries: int
) -> dict[int, float]:
    """Executions an iteration. What only a loop's first or last round leaves out, or adds, counts as once."""
    return {
        i.address: 1.0 if abs(executed[i.address] - iterations) <= entries else executed[i.address] / iterations
        for i in ran
    }


def moved_accumulators(instructions: Iterable[Instruction]) -> int:
    """Multiply-adds that leave their sum in another register than the one they added to."""
    return sum(
        i.opcode in _MULTIPLY_ADDS
        and i.operands[0].kind == i.operands[-1].kind == "reg"
        and i.operands[-1].index not in (RZ, i.operands[0].index)
        for i in instructions
    )


def _conflicts(block: Iterable[Instruction], at: Mapping[int, SiteCounters], arch: str) -> list[int]:
    return conflict_cycles([i for i in block if at[i.address].executed], arch)


def _added(
    ran: Iterable[Instruction], weight: Mapping[int, float], name: Callable[[Instruction], Name]
) -> dict[Name, float]:
    """Weights by name, the largest first."""
    added: dict[Name, float] = {}
    for instruction in ran:
        added[name(instruction)] = added.get(name(instruction), 0.0) + weight[instruction.address]
    return dict(sorted(added.items(), key=lambda item: -item[1]))


def _goes_back(instruction: Instruction, header: int) -> bool:
    return any(operand.kind == "label" and operand.value == header for operand in instruction.operands)
