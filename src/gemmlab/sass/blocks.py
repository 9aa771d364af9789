"""Basic blocks of a function: where control enters and leaves, as its branches say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gemmlab.sass.instruction import PT, UNRESOLVED, Instruction, SassFunction

_JUMPS = frozenset({"BRA", "JMP"})
_INDEXED = frozenset({"BRX", "BRXU", "JMX", "JMXU"})
_LEAVING = _JUMPS | _INDEXED | {"EXIT", "RET", "KILL"}
_ENDING = _LEAVING | {"CALL"}


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions that run one after the other: those from `start` up to `stop`, as indices into the function."""

    start: int
    stop: int
    successors: tuple[int, ...]
    """Indices of blocks. A call goes on behind itself: its callee has blocks of its own."""


@dataclass(frozen=True, slots=True)
class FlowGraph:
    """A function's blocks in order of address."""

    function: SassFunction
    blocks: tuple[Block, ...]
    entries: tuple[int, ...]
    """The first blocks of the kernel and of each device function in its section."""

    def instructions(self, *blocks: int) -> Iterator[Instruction]:
        """The instructions of the blocks with these indices, in order."""
        for index in sorted(blocks):
            block = self.blocks[index]
            yield from self.function.instructions[block.start : block.stop]


def flow_graph(function: SassFunction) -> FlowGraph:
    """The function cut into basic blocks.

    A block ends at a branch, a call, a return or an exit and before every place that one of them names. Barriers that
    make a warp converge (BSSY, BSYNC, WARPSYNC, BAR) go on behind themselves, as does whatever a predicate guards. An
    indexed branch whose targets nvdisasm did not find may go to any label.
    """
    code = function.instructions
    following = [tuple(successors(function, instruction)) for instruction in code]
    entries = {0} | {address // 16 for name, address in function.labels.items() if not name.startswith(".L_")}
    leaders = set(entries)
    for i, instruction in enumerate(code):
        if instruction.opcode in _ENDING:
            leaders |= {i + 1, *following[i]}
    starts = sorted(leader for leader in leaders if leader < len(code))
    number = {start: index for index, start in enumerate(starts)}
    blocks = tuple(
        Block(start, stop, tuple(dict.fromkeys(number[target] for target in following[stop - 1] if target in number)))
        for start, stop in zip(starts, [*starts[1:], len(code)], strict=True)
    )
    return FlowGraph(function, blocks, tuple(number[entry] for entry in sorted(entries) if entry in number))


def successors(function: SassFunction, instruction: Instruction) -> Iterator[int]:
    """Indices of the instructions that may run next within the function."""
    opcode = instruction.opcode
    if opcode not in _LEAVING or not _always(instruction):
        yield instruction.address // 16 + 1
    if opcode in _JUMPS:
        yield from (o.value // 16 for o in instruction.operands if o.kind == "label" and o.value != UNRESOLVED)
    elif opcode in _INDEXED:
        targets = instruction.targets or tuple(function.labels.values())
        yield from sorted({target // 16 for target in targets})


def _always(instruction: Instruction) -> bool:
    # A branch is also conditional by a predicate among its operands ("BRA UP0, `(.L)", "EXIT P0") and by a
    # vote of the warp ("BRA.DIV UR4, `(.L)", "BRA.U.ANY `(.L)").
    conditions = [operand for operand in instruction.operands if operand.kind in ("pred", "upred")]
    if instruction.predicate is not None:
        conditions.append(instruction.predicate)
    voted = {"DIV", "CONV", "ANY", "ALL"} & set(instruction.modifiers)
    return not voted and all(operand.index == PT and not operand.invert for operand in conditions)
