"""Live vector registers: those whose value some later instruction may still read.

The analysis is the usual backward one over the control flow graph (Aho, Lam, Sethi and Ullman, "Compilers", 9.2.5). A
predicated instruction may leave its result unchanged, so it ends no live range. A call reads the registers that the
called function may read before it writes them, and without a predicate ends the live ranges of those that the function
may write. At a return, a register is live if it is live after one of the calls. The stack pointer R1 is live everywhere
if the first instruction sets it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gemmlab.sass.blocks import successors
from gemmlab.sass.instruction import STACK_POINTER, Instruction, SassFunction
from gemmlab.sass.vector_registers import registers_of

_NOTHING = (0, 0)


def live_registers(function: SassFunction) -> tuple[frozenset[int], ...]:
    """Return, for each instruction, the registers that it writes or that are live right before or right after it.

    Their number is the number of registers in use at the instruction, as in `nvdisasm -plr`.
    """
    code = _code_of(function)
    summaries = _summaries(code)
    live = _solved(code, summaries, 0)
    behind = 0
    for place in code.calls:
        behind |= live[place + 1]
    if code.calls:
        live = _solved(code, summaries, behind)
    always = frozenset({STACK_POINTER}) if code.writes and code.writes[0] >> STACK_POINTER & 1 else frozenset()
    return tuple(
        always | _numbers(live[place] | _joined(live, code.after[place]) | code.writes[place])
        for place in range(len(code.reads))
    )


@dataclass(frozen=True, slots=True)
class _Code:
    """A function's instructions by index: masks of their registers (bit r for register r), and possible successors."""

    reads: Sequence[int]
    writes: Sequence[int]
    ends: Sequence[int]
    """Registers whose live range the instruction ends: those that it writes without a predicate."""
    after: Sequence[Sequence[int]]
    """Indices of the instructions that may run next; none for a return."""
    calls: Mapping[int, int]
    """Index of a call -> index of the first instruction of the called function."""
    returns: frozenset[int]
    predicated: frozenset[int]


def _code_of(function: SassFunction) -> _Code:
    code, end = function.instructions, len(function.instructions)
    sets = [registers_of(instruction) for instruction in code]
    writes = [_mask(written) for _, written in sets]
    return _Code(
        reads=[_mask(read) for read, _ in sets], writes=writes,
        ends=[0 if i.predicate is not None else mask for i, mask in zip(code, writes, strict=True)],
        after=[[to for to in successors(function, i) if 0 <= to <= end] if i.opcode != "RET" else [] for i in code],
        calls={place: to for place, i in enumerate(code) if (to := _target(i)) is not None and to < end},
        returns=frozenset(place for place, i in enumerate(code) if i.opcode == "RET"),
        predicated=frozenset(place for place, i in enumerate(code) if i.predicate is not None),
    )  # fmt: skip


def _target(instruction: Instruction) -> int | None:
    if instruction.opcode != "CALL":
        return None
    return next((o.value // 16 for o in instruction.operands if o.kind == "label" and o.value >= 0), None)


def _summaries(code: _Code) -> dict[int, tuple[int, int]]:
    """Return two masks of registers for each called function: those that it may read before it writes them, and those
    that it may write. The key is the index of the function's first instruction.
    """
    found = dict.fromkeys(code.calls.values(), _NOTHING)
    changed = bool(found)
    while changed:
        live = _solved(code, found, 0)
        now = {first: (live[first], _written(code, first, found)) for first in found}
        changed, found = now != found, now
    return found


def _written(code: _Code, first: int, summaries: Mapping[int, tuple[int, int]]) -> int:
    """Return a mask of the registers that the function at index `first` and the functions it calls may write."""
    written, visited, waiting = 0, {first}, [first]
    while waiting:
        place = waiting.pop()
        if place >= len(code.writes):
            continue
        written |= code.writes[place] | summaries.get(code.calls.get(place, -1), _NOTHING)[1]
        fresh = [to for to in code.after[place] if to not in visited]
        visited.update(fresh)
        waiting += fresh
    return written


def _solved(code: _Code, summaries: Mapping[int, tuple[int, int]], behind_returns: int) -> list[int]:
    """Return masks of the registers that are live before each instruction, and a last 0 for the end of the code.

    `behind_returns` is the mask of registers that are live after a return.
    """
    live = [0] * (len(code.reads) + 1)
    changed = True
    while changed:
        changed = False
        for place in range(len(code.reads) - 1, -1, -1):
            leaving = behind_returns if place in code.returns else _joined(live, code.after[place])
            read, written = summaries.get(code.calls.get(place, -1), _NOTHING)
            ends = code.ends[place] | (0 if place in code.predicated else written)
            before = code.reads[place] | read | leaving & ~ends
            changed |= before != live[place]
            live[place] = before
    return live


def _joined(live: Sequence[int], places: Sequence[int]) -> int:
    found = 0
    for place in places:
        found |= live[place]
    return found


def _mask(registers: frozenset[int]) -> int:
    return sum(1 << register for register in registers)


def _numbers(mask: int) -> frozenset[int]:
    return frozenset(number for number in range(mask.bit_length()) if mask >> number & 1)
