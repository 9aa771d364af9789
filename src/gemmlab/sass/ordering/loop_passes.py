"""The passes over a main loop, each of which can be left out, and their effect on the loop's figures.

A compiler makes several versions of a main loop, for example one for each form of guards. Which one runs depends on the
problem, so the passes go over all of them (`main_blocks`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

from gemmlab.core.errors import UsageError
from gemmlab.core.log import notice
from gemmlab.sass.banks import conflict_cycles
from gemmlab.sass.blocks import Block, flow_graph
from gemmlab.sass.checking.control_codes import Distances, check_function, distances, unrecorded_pairs
from gemmlab.sass.checking.reuse import sources
from gemmlab.sass.checking.steps import steps_of
from gemmlab.sass.instruction import Instruction, SassFunction
from gemmlab.sass.loops import find_loops, main_loop
from gemmlab.sass.ordering.codes import UnmendedError, least_stalls, repaired, replace_code, reuse_flags
from gemmlab.sass.ordering.loop_order import new_order
from gemmlab.sass.ordering.registers import better_banks, with_registers
from gemmlab.sass.writing.slots import EncodingError

PASSES = ("registers", "ffma", "memory", "reuse", "stalls")
"""Names of the passes. `registers` runs first, then `ffma` and `memory` together, then `stalls`, and `reuse` last.

`registers` exchanges registers between banks; `ffma` puts FFMAs with shared operands beside each other; `memory`
spreads all other instructions among the FFMAs; `reuse` sets the FFMAs' reuse flags; `stalls` lowers their stalls.
"""
_ALIKE = 0.9
"""Least FFMAs of another version of the main loop, as a fraction of those of the first version."""
_FIGURES = ("reuse_rate", "conflict_cycles", "stall_cycles")
"""Fields of `LoopFacts` that the passes change; they are compared before and after."""


@dataclass(frozen=True, slots=True)
class LoopFacts:
    """Figures of a main loop's largest block, for one iteration of a warp."""

    instructions: int
    ffmas: int
    reuse_rate: float
    """Fraction of the register sources of FFMAs that are read from the operand cache; 0 without FFMAs."""
    conflict_cycles: int
    """Cycles lost to bank conflicts."""
    stall_cycles: int
    """Sum of the stalls: the least cycles for one warp alone."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """A function after the passes: words and order for `with_words`, and the loop's figures before and after."""

    function: SassFunction
    words: tuple[int, ...]
    """Instruction words by old index, as `with_words` takes them."""
    order: tuple[int, ...]
    """Old index of the instruction at each new index."""
    before: LoopFacts
    after: LoopFacts
    unrecorded: int = 0
    """Number of pairs of instructions in the compiler's code without a recorded latency, or closer than that."""

    @property
    def better(self) -> tuple[str, ...]:
        """Names of the figures that are better in the new order than in the compiler's."""
        return tuple(name for name in _FIGURES if self._gain(name) > 0)

    @property
    def worse(self) -> tuple[str, ...]:
        """Names of the figures that are worse in the new order than in the compiler's."""
        return tuple(name for name in _FIGURES if self._gain(name) < 0)

    def _gain(self, name: str) -> float:
        more = float(getattr(self.after, name) - getattr(self.before, name))
        return more if name == "reuse_rate" else -more


def ordered(function: SassFunction, arch: str, passes: Collection[str] = PASSES) -> Ordered:
    """Return a compiled function after the passes over the largest block of each version of its main loop.

    Pairs of instructions that are closer in the compiler's code than their recorded latency may stay as close, but not
    come closer. If no control codes make the new order correct, the compiler's order stays, and a notice says why.

    Raises `UsageError` for an unknown pass, a function without a main loop or an architecture without recorded
    latencies, and `UnknownAccessError` for asynchronous instructions. Raises `EncodingError` if an instruction cannot
    be encoded, if the compiler's control codes have faults, or if no control codes are correct for the compiler's order
    either.
    """
    if unknown := sorted(set(passes) - set(PASSES)):
        raise UsageError(f"no pass {unknown[0]!r}; there are {', '.join(PASSES)}")
    compiled = distances(function)
    faults = check_function(function, arch, compiled)
    if faults:
        raise EncodingError(f"its control codes have faults already: {faults[0]}")
    blocks = main_blocks(function)
    block = blocks[0]
    steps = steps_of(function)
    code = list(function.instructions)
    if "registers" in passes:
        # Registers are renamed in the whole function, so that the versions must share the best numbers of the first.
        numbers = better_banks(code[block.start : block.stop], code, arch)
        code = [with_registers(one, numbers) for one in code]
    order = compilers = tuple(range(len(code)))
    if {"ffma", "memory"} & set(passes):
        for one in blocks:
            inner = new_order(steps[one.start : one.stop], by_operands="ffma" in passes, spread="memory" in passes)
            order = (*order[: one.start], *(one.start + number for number in inner), *order[one.stop :])
    coded = partial(_coded, function, code, blocks, arch, compiled, passes)
    try:
        made = coded(order)
    except UnmendedError as error:
        # `new_order` knows the barriers of its block alone.
        notice(f"the compiler's order stays: {error}")
        order = compilers
        made = coded(order)
    words = [0] * len(made)
    for new, old in enumerate(order):
        words[old] = made[new].encoding
    before = _facts(function.instructions[block.start : block.stop], arch)
    after = _facts(made[block.start : block.stop], arch)
    unrecorded = unrecorded_pairs(function, arch)
    return Ordered(replace_code(function, made), tuple(words), order, before, after, unrecorded)


def _coded(
    function: SassFunction, code: Sequence[Instruction], blocks: Sequence[Block], arch: str, compiled: Distances,
    passes: Collection[str], order: Sequence[int],
) -> tuple[Instruction, ...]:  # fmt: skip
    """Return the code in `order` (old indices), after the passes over control codes, with codes that pass the check.

    Raises `UnmendedError` if there are none.
    """
    made = list(replace_code(function, [code[old] for old in order]).instructions)
    for block in blocks:
        places = range(block.start, block.stop)
        if "stalls" in passes:
            made = least_stalls(made, [n for n in places[:-1] if made[n].opcode == "FFMA"])
        if "reuse" in passes:
            made = reuse_flags(made, places)
    place = {old: new for new, old in enumerate(order)}
    moved = {(place[first], place[second], relation): left for (first, second, relation), left in compiled.items()}
    return repaired(function, made, arch, moved)


def main_blocks(function: SassFunction) -> tuple[Block, ...]:
    """Return the largest block of the main loop, then those of its other versions by address.

    Another version is a loop whose largest block has nearly as many FFMAs (`_ALIKE`). Raises `UsageError` if there is
    no loop with floating-point work.
    """
    loop = main_loop(function)
    if loop is None:
        raise UsageError(f"{function.name} has no main loop: no loop does floating-point work")
    graph = flow_graph(function)
    largest = [max((graph.blocks[index] for index in one.own), key=lambda block: block.stop - block.start)
               for one in (loop, *find_loops(graph)) if one.own]  # fmt: skip
    least = _ALIKE * _ffmas(function, largest[0])
    others = {one for one in largest if one != largest[0] and least and _ffmas(function, one) >= least}
    return largest[0], *sorted(others, key=lambda block: block.start)


def _ffmas(function: SassFunction, block: Block) -> int:
    return sum(one.opcode == "FFMA" for one in function.instructions[block.start : block.stop])


def _facts(code: Sequence[Instruction], arch: str) -> LoopFacts:
    ffmas = [one for one in code if one.opcode == "FFMA"]
    reads = served = 0
    cached: dict[int, int] = {}
    for one in code:
        for place, operand in sources(one):
            if one.opcode == "FFMA":
                reads += 1
                served += cached.get(place) == operand.index
            cached.pop(place, None)
            if operand.reuse:
                cached[place] = operand.index
    return LoopFacts(
        instructions=len(code), ffmas=len(ffmas), reuse_rate=served / reads if reads else 0.0,
        conflict_cycles=sum(conflict_cycles(code, arch)), stall_cycles=sum(one.control.stall for one in code),
    )  # fmt: skip
