"""The main loop of a kernel, found in its machine code: its instructions and costs for one iteration of a warp."""

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
"""Size of a partition's own instruction cache as measured on Turing (Jia et al.). Later sizes are unpublished, so a
larger loop is only a warning sign.
"""
SM_CACHE_BYTES = 128 << 10
"""Size of the next larger instruction cache, which an SM's partitions share, as measured on Volta (Jia et al.)."""
Name = TypeVar("Name", bound=str)
_MULTIPLY_ADDS = frozenset({"FFMA", "HMMA"})
_JUMPS = frozenset({"BRA", "BRX", "BRXU", "JMP", "CALL", "RET"})


@dataclass(frozen=True, slots=True)
class LoopReport:
    """A main loop. Unless stated otherwise, counts are instructions that a warp executes in one iteration other than
    the first and the last. Counts "in the code" count each of `instructions` once.
    """

    header: int
    """Byte address of the loop's first instruction."""
    lines: tuple[int, ...]
    """Source lines of the loop's arithmetic, ascending."""
    instructions: tuple[Instruction, ...] = field(repr=False)
    """Instructions that ran, by ascending address, without NOPs and those of inner loops."""
    iterations: int
    """Sum of the iterations of all warps."""
    mix: Mapping[str, float]
    """Opcode -> instructions per iteration, the most frequent first. Those always predicated off are `@!PT OPCODE`."""
    pipes: Mapping[Pipe, float]
    """Pipe -> instructions per iteration, the most frequent first, without those that are always predicated off."""
    code_bytes: int
    """Size of the code, including inner loops and paths that never ran."""
    never_ran: int
    """Number of instructions in the code that no warp executed, inner loops and NOPs included."""
    wide_shared: float
    """Number of LDS.128 instructions that a warp executes per iteration."""
    wide_global: float
    """Number of LDG.128 instructions and 16-byte asynchronous copies that a warp executes per iteration."""
    reuse_rate: float | None
    """Fraction of the arithmetic's register operands with `.reuse`; the next instruction need not read them again.
    `None` if no arithmetic reads a register."""
    conflicted: int
    """Instructions in the code whose sources lie in too few register banks."""
    conflict_cycles: int
    """Cycles that conflicts of register banks add to one pass over the code."""
    moved: int
    """Multiply-adds in the code that write their sum to a register other than that of their addend."""
    stall_cycles: int
    """Sum of the stalls in one pass over the code: the fewest cycles that a single warp needs."""
    yields: int
    """Instructions in the code that ask the scheduler to prefer another warp."""
    waits: int
    """Instructions in the code that wait for a dependency barrier."""
    jumps: int
    """Jumps in the code, without the one back to the header."""
    wavefronts: float
    """Wavefronts of shared memory per iteration of a warp."""
    l1_cycles: float
    """Fewest cycles for which an iteration of a warp occupies an SM's L1 by shared wavefronts and global requests."""
    barriers: float
    """Number of BAR instructions that a warp executes per iteration."""

    @property
    def executed(self) -> float:
        """Number of instructions that a warp executes per iteration, without NOPs."""
        return sum(self.mix.values())

    @property
    def ffma_share(self) -> float:
        return self.mix.get("FFMA", 0.0) / self.executed if self.executed else 0.0


def explain_loop(function: SassFunction, sites: Sequence[SiteCounters], arch: str) -> LoopReport | None:
    """Return the report of a kernel's main loop; `None` if no loop that ran contains its arithmetic.

    `sites` are the counters of a run of `function`.
    """
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
        """Return the cost of one iteration; `cost` gives the total of a site over all its executions."""
        return sum(weight[i.address] * cost(at[i.address]) / executed[i.address] for i in ran)

    def count(wanted: Callable[[Instruction], bool]) -> float:
        return sum(weight[i.address] for i in ran if wanted(i))

    return LoopReport(
        header=header,
        lines=tuple(sorted({i.line[1] for i in ran if i.line and metrics.flops(i)})),
        instructions=tuple(ran),
        iterations=executed[header],
        mix=_added(ran, weight, lambda i: f"@!PT {i.opcode}" if i.is_idle else i.opcode),
        pipes=_added([i for i in ran if not i.is_idle], weight, pipe),
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
    """Return an upper bound on the entries into the loop: executions of outer blocks that lead to its header."""
    before = [b for i, b in enumerate(graph.blocks) if loop.header in b.successors and i not in loop.blocks]
    return sum(executed[graph.function.instructions[block.stop - 1].address] for block in before)


def _weights(
    ran: Iterable[Instruction], executed: Mapping[int, int], iterations: int, entries: int
) -> dict[int, float]:
    """Return executions per iteration by address.

    The number is 1 for an instruction that is executed once in each iteration except the first or the last.
    """
    return {
        i.address: 1.0 if abs(executed[i.address] - iterations) <= entries else executed[i.address] / iterations
        for i in ran
    }


def moved_accumulators(instructions: Iterable[Instruction]) -> int:
    """Count multiply-adds that write their sum to a register other than that of their addend."""
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
    """Return the sum of the weights for each name, the largest first."""
    added: dict[Name, float] = {}
    for instruction in ran:
        added[name(instruction)] = added.get(name(instruction), 0.0) + weight[instruction.address]
    return dict(sorted(added.items(), key=lambda item: -item[1]))


def _goes_back(instruction: Instruction, header: int) -> bool:
    return any(operand.kind == "label" and operand.value == header for operand in instruction.operands)
