"""Basic blocks and control flow graph of a function."""

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
    """A basic block: consecutive instructions from `start` up to but excluding `stop`, as indices into the function."""

    start: int
    stop: int
    successors: tuple[int, ...]
    """Indices of the blocks that may run next. After a call, this is the block behind the call, not the callee."""


@dataclass(frozen=True, slots=True)
class FlowGraph:
    """The control flow graph of a function, its blocks by ascending address."""

    function: SassFunction
    blocks: tuple[Block, ...]
    entries: tuple[int, ...]
    """Indices of the first blocks of the kernel and of each device function in its section."""

    def instructions(self, *blocks: int) -> Iterator[Instruction]:
        """Yield the instructions of the blocks with these indices, by ascending address."""
        for index in sorted(blocks):
            block = self.blocks[index]
            yield from self.function.instructions[block.start : block.stop]


def flow_graph(function: SassFunction) -> FlowGraph:
    """Return the control flow graph of a function.

    A block ends after a branch, a call, a return or an exit. A block begins at the target of each branch and at the
    start of each function in the section. BSSY, BSYNC, WARPSYNC and BAR end no block. After a conditional branch,
    return or exit, control may also continue with the next instruction. An indexed branch whose targets nvdisasm did
    not find may go to any label.
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
    """Yield the indices of the instructions that may run right after an instruction.

    A call continues behind itself. A return or exit has no successor unless it is conditional: on its guard, on a
    predicate operand or on a vote. An index may be that of the end of the function, where there is no instruction.
    """
    opcode = instruction.opcode
    if opcode not in _LEAVING or not _always(instruction):
        yield instruction.address // 16 + 1
    if opcode in _JUMPS:
        yield from (o.value // 16 for o in instruction.operands if o.kind == "label" and o.value != UNRESOLVED)
    elif opcode in _INDEXED:
        targets = instruction.targets or tuple(function.labels.values())
        yield from sorted({target // 16 for target in targets})


def _always(instruction: Instruction) -> bool:
    # A branch can also be conditional on a predicate among its operands ("BRA UP0, `(.L)", "EXIT P0") or on a vote of
    # the warp ("BRA.DIV UR4, `(.L)", "BRA.U.ANY `(.L)").
    conditions = [operand for operand in instruction.operands if operand.kind in ("pred", "upred")]
    if instruction.predicate is not None:
        conditions.append(instruction.predicate)
    voted = {"DIV", "CONV", "ANY", "ALL"} & set(instruction.modifiers)
    return not voted and all(operand.index == PT and not operand.invert for operand in conditions)
