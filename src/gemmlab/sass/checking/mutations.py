"""Random changes of machine code: a lower stall, a cleared wait bit, two adjacent instructions swapped.

They test that the check of control codes, and the emulator's poison mode, find changes that break a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gemmlab.sass.blocks import flow_graph
from gemmlab.sass.instruction import Control, Instruction, SassFunction
from gemmlab.sass.register_accesses import Access, UnknownAccessError, accesses_of
from gemmlab.sass.writing.slots import EncodingError
from gemmlab.sass.writing.word import decode, encode

KINDS = ("stall", "wait", "swap")
_FIXED_IN_PLACE = frozenset({"BSSY", "WARPSYNC", "BAR", "DEPBAR", "LDGDEPBAR", "MEMBAR", "NOP", "CALL", "BRA", "EXIT"})
_MEMORY = ("ST", "LD", "AT", "RE")


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change: the instruction words and the order for `with_words`, with a description."""

    kind: str
    address: int
    """Byte address of the changed instruction, or of the first of two that are swapped."""
    text: str
    words: tuple[int, ...]
    """Instruction words by old index."""
    order: tuple[int, ...]
    """Old index of the instruction at each new index."""


def applied(function: SassFunction, change: Mutation) -> SassFunction:
    """Return the function after a change, without a disassembler: only addresses, words and control codes change."""
    code = []
    for new, old in enumerate(change.order):
        one, word = function.instructions[old], change.words[old]
        code.append(replace(one, address=16 * new, encoding=word, control=Control.of(word)))
    return SassFunction(function.name, tuple(code), function.labels)


def mutation(function: SassFunction, rng: np.random.Generator) -> Mutation:
    """Return a random change. Raises `EncodingError` if 1000 attempts find nothing to change."""
    code = function.instructions
    for _ in range(1000):
        kind, place = KINDS[int(rng.integers(len(KINDS)))], int(rng.integers(len(code) - 1))
        made = _changed(function, kind, place, rng)
        if made is not None:
            return made
    raise EncodingError(f"{function.name}: no instruction can be changed")


def _changed(function: SassFunction, kind: str, place: int, rng: np.random.Generator) -> Mutation | None:
    code = function.instructions
    instruction, following = code[place], code[place + 1]
    order, words = list(range(len(code))), [each.encoding for each in code]
    control = instruction.control
    if kind == "swap":
        if not _may_swap(function, place):
            return None
        order[place], order[place + 1] = order[place + 1], order[place]
        return Mutation(kind, instruction.address, f"{instruction.text} / {following.text}", tuple(words), tuple(order))
    if kind == "stall":
        if control.stall < 2:
            return None
        control = replace(control, stall=int(rng.integers(1, control.stall)))
    else:
        bits = [bit for bit in range(6) if control.wait_mask >> bit & 1]
        if not bits:
            return None
        control = replace(control, wait_mask=control.wait_mask & ~(1 << bits[int(rng.integers(len(bits)))]))
    try:
        words[place] = encode(decode(instruction).with_control(control))
    except EncodingError:
        return None
    return Mutation(kind, instruction.address, f"{instruction.text}: {control}", tuple(words), tuple(order))


def _may_swap(function: SassFunction, place: int) -> bool:
    """Return whether instruction `place` and the next one may be swapped, if control codes are ignored.

    They may if they are independent, may move (`_FIXED_IN_PLACE` has opcodes that may not), are in one block, and
    neither is the block's last instruction. Control codes stay with their instructions, so a swap may make them wrong.
    """
    pair = function.instructions[place : place + 2]
    if any(each.opcode in _FIXED_IN_PLACE for each in pair) or not independent(*pair):
        return False
    return any(place in range(block.start, block.stop - 2) for block in flow_graph(function).blocks)


def independent(first: Instruction, second: Instruction) -> bool:
    """Return whether two adjacent instructions give the same results in either order, as far as their registers show.

    Latencies are ignored, and so are the effects of barriers and branches. The result is false if both access memory
    (surfaces and textures not included), or if the registers of one are not known.
    """
    try:
        one, two = accesses_of(first), accesses_of(second)
    except UnknownAccessError:
        return False
    reads, writes = ([_cells(one.reads), _cells(two.reads)], [_cells(one.writes), _cells(two.writes)])
    if writes[0] & (reads[1] | writes[1]) or writes[1] & reads[0]:
        return False
    memory = [any(each.opcode.startswith(prefix) for prefix in _MEMORY) for each in (first, second)]
    return not all(memory)


def _cells(accesses: Sequence[Access]) -> set[int]:
    return {cell for access in accesses for cell in access.cells}
