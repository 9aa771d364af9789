"""Find the values exchanged between threads that contribute to the block's writes to global memory.

This is a liveness analysis, backwards through a trace, per register and lane: stored values are live, then the values
that they were computed from by arithmetic, shuffles and shared memory. Predicates and addresses do not count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from gemmlab.core.trace import LANES, Access, Step, lanes_of
from gemmlab.observe.matrix_trace import WORD, KernelTrace
from gemmlab.sass.instruction import RZ, Instruction, Operand

_SOURCES: Mapping[str, Callable[[int, int], int]] = {
    "DOWN": lambda lane, by: lane + by,
    "UP": lambda lane, by: lane - by,
    "BFLY": lambda lane, by: lane ^ by,
    "IDX": lambda _lane, by: by,
}


def contributions(kernel_trace: KernelTrace) -> Mapping[int, int]:
    """Return, for each shuffle and shared load, the mask of lanes whose value contributes to a write to global memory.

    Keys are indices of steps in the trace.
    """
    found = _Backwards()
    accesses = {(access.order, access.space): access for access in kernel_trace.trace.accesses}
    function = kernel_trace.function
    for order in range(len(kernel_trace.trace.steps) - 1, -1, -1):
        step = kernel_trace.trace.steps[order]
        instruction = function.at(step.site.address)
        shared, outside = accesses.get((order, "shared")), accesses.get((order, "global"))
        if shared is not None and shared.site.base_opcode != "LDGSTS":
            found.shared(order, instruction, shared)
        elif outside is not None:
            found.outside(instruction, outside)
        elif instruction.opcode == "SHFL":
            found.shuffle(order, step, instruction)
        else:
            found.arithmetic(step, instruction)
    return found.used


class _Backwards:
    """The registers and shared words that are live before the steps processed so far; steps are processed backwards."""

    def __init__(self) -> None:
        self.used: dict[int, int] = {}
        self._live: defaultdict[tuple[int, int], int] = defaultdict(int)
        """(warp, register) -> mask of lanes in which it is live."""
        self._words: set[int] = set()
        """Live words of shared memory."""

    def shared(self, order: int, instruction: Instruction, access: Access) -> None:
        """Process an access to shared memory, at step `order` of the trace.

        A load's words become live in the lanes where its result is live. A store's registers become live in the lanes
        that write to live words; these words become dead.
        """
        for part, register in enumerate(_moved(instruction, access)):
            words = {lane: access.addresses[lane] // WORD + part for lane in access.lanes}
            if access.store:
                mine = sum(1 << lane for lane, word in words.items() if word in self._words)
                self._words.difference_update(words.values())
                self._live[access.warp, register] |= mine
            else:
                mine = self._taken(access.warp, register, access.on)
                self._words.update(words[lane] for lane in lanes_of(mine))
                self.used[order] = self.used.get(order, 0) | mine

    def outside(self, instruction: Instruction, access: Access) -> None:
        """Process a global access: registers that it stores become live; those that it loads become dead, because their
        values come from outside the block.
        """
        for register in _moved(instruction, access):
            if access.store:
                self._live[access.warp, register] |= access.on
            else:
                self._taken(access.warp, register, access.on)

    def shuffle(self, order: int, step: Step, instruction: Instruction) -> None:
        """Process a shuffle: the source register becomes live in the lanes that live results come from.

        If the distance is not constant, these are all active lanes.
        """
        target, source = (operand.index for operand in _registers(instruction)[:2])
        mine = self._taken(step.warp, target, step.on)
        self.used[order] = mine
        mode = next((name for name in instruction.modifiers if name in _SOURCES), "")
        distance = next((operand.value for operand in instruction.operands if operand.kind == "imm"), None)
        if not mode or distance is None:
            self._live[step.warp, source] |= step.on if mine else 0
            return
        lanes = [_SOURCES[mode](lane, distance) for lane in lanes_of(mine)]
        # A lane whose source lies outside the warp keeps its own value, so nothing is exchanged.
        self._live[step.warp, source] |= sum(1 << lane for lane in set(lanes) if 0 <= lane < LANES)

    def arithmetic(self, step: Step, instruction: Instruction) -> None:
        """Process another instruction: its source registers become live in lanes where its result is live.

        The first operand is the result. If it is no register, or the zero register, nothing changes.
        """
        operands = instruction.operands
        if not operands or operands[0].kind != "reg" or operands[0].index == RZ:
            return
        mine = self._taken(step.warp, operands[0].index, step.on)
        for operand in operands[1:] if mine else ():
            if operand.kind == "reg" and operand.index != RZ:
                self._live[step.warp, operand.index] |= mine

    def _taken(self, warp: int, register: int, on: int) -> int:
        """Return the lanes of the mask `on` in which a written register is live, and make it dead in `on`.

        The value that it had before the write is overwritten, so nothing uses it.
        """
        mine = self._live[warp, register] & on
        self._live[warp, register] &= ~on
        return mine


def _moved(instruction: Instruction, access: Access) -> Sequence[int]:
    """Return the registers that an access loads or stores, one per word; empty for the zero register."""
    registers = _registers(instruction)
    if not registers:
        return ()
    first = registers[-1 if access.store else 0].index
    count = max(1, access.width // WORD)
    return () if first == RZ else range(first, first + count)


def _registers(instruction: Instruction) -> list[Operand]:
    return [operand for operand in instruction.operands if operand.kind == "reg"]
