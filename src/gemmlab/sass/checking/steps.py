"""Each instruction's registers, guard, barriers and queue, for the check of control codes.

An instruction without a fixed latency waits in the queue of a unit, such as shared memory, and signals its completion
by a dependency barrier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gemmlab.sass.cells import PREDICATE, UNIFORM, UNIFORM_PREDICATE
from gemmlab.sass.instruction import Control, Instruction, SassFunction
from gemmlab.sass.register_accesses import ASYNCHRONOUS, Access, Accesses, UnknownAccessError, accesses_of

Queue = Literal["shared", "global", "texture", "xu", "constant", "special", "vote", "double", "slow"]
_QUEUES: dict[Queue, str] = {
    "shared": "LDS LDSM STS STSM ATOMS SHFL MATCH MOVM",
    "global": "LDG STG LD ST LDL STL ATOM ATOMG RED REDG LDGSTS CCTL",
    "texture": "TEX TLD TLD4 TXD TXQ TMML SULD SUST SUATOM SURED",
    "xu": "MUFU I2F F2I F2F FRND POPC FLO BREV I2I I2IP FCHK",
    "constant": "LDC LDCU",
    "special": "S2R S2UR B2R CS2UR",
    "vote": "REDUX CREDUX",
    "double": "DADD DMUL DFMA DSETP DMNMX",
    "slow": "DMMA QSPC LDGDEPBAR BMOV R2B",
}
_QUEUE_OF: dict[str, Queue] = {opcode: queue for queue, opcodes in _QUEUES.items() for opcode in opcodes.split()}
_SLOW_R2UR = 0x3C2
"""Opcode bits of `R2UR` on sm_80 and sm_89, where it needs a dependency barrier.

On sm_90 they are 0x2ca, and `R2UR` has a fixed latency.
"""
_IN_ORDER: frozenset[Queue] = frozenset({"shared", "texture", "xu", "constant", "special", "vote", "double"})
"""Queues whose results are complete in the order of issue."""
_READ_TOGETHER: dict[Queue, Queue] = {"global": "shared"}
"""Queue -> the queue with which it shares one order of reading operands. Each queue reads in the order of issue."""
NO_BARRIER = 7
BARRIER = UNIFORM_PREDICATE + 8
"""A cell that stands for the block's barrier.

`BAR` writes it, and instructions of the queues `shared` and `global` read it.
"""
_MEMORY: frozenset[Queue] = frozenset({"shared", "global"})


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction with its registers, guard and queue."""

    instruction: Instruction
    kind: str
    """Opcode with the modifiers that change its latency, such as `IMAD.WIDE`."""
    reads: tuple[tuple[int, Access], ...]
    """(cell, access of the operand) for each cell that the instruction reads."""
    writes: tuple[int, ...]
    """Cells that the instruction writes."""
    guard: tuple[int, bool] | None
    """(cell of the guard, true if it is negated); `None` without a guard, and for `PT`, negated or not."""
    queue: Queue | None
    """Queue of an instruction without a fixed latency; `None` for one with a fixed latency."""

    @property
    def control(self) -> Control:
        return self.instruction.control

    @property
    def in_order(self) -> bool:
        """True if the instruction has a queue whose results are complete in the order of issue."""
        return self.queue in _IN_ORDER

    @property
    def reading(self) -> Queue | None:
        """The queue in whose order the instruction reads operands; `None` if it reads them at issue."""
        return None if self.queue is None else _READ_TOGETHER.get(self.queue, self.queue)

    @property
    def late_reads(self) -> tuple[int, ...]:
        """Vector registers that the instruction may read after issue; it reads all other operands at issue."""
        if self.queue is None:
            return ()
        return tuple(cell for cell, access in self.reads if cell < UNIFORM and access.part != "guard")


def step_of(instruction: Instruction, *, fixed_doubles: bool = True, partly: bool = False) -> Step:
    """Return the step of an instruction; float64 operations have a fixed latency if `fixed_doubles`.

    Raises `UnknownAccessError` if the registers of the instruction are not known. With `partly`, the step of an
    asynchronous one has no registers.
    """
    left_out = partly and instruction.opcode in ASYNCHRONOUS
    accesses = Accesses((), ()) if left_out else accesses_of(instruction)
    guard = instruction.predicate
    always = guard is None or guard.index == NO_BARRIER
    first = PREDICATE if guard is not None and guard.kind == "pred" else PREDICATE + 8
    queue = queue_of(instruction)
    if queue == "double" and fixed_doubles:
        queue = None
    after_barrier = (Access(BARRIER, 1, -1, "all"),) if queue in _MEMORY else ()
    return Step(
        instruction=instruction,
        kind=kind_of(instruction),
        reads=tuple((cell, access) for access in (*accesses.reads, *after_barrier) for cell in access.cells),
        writes=(
            (BARRIER,)
            if instruction.opcode == "BAR"
            else tuple(cell for access in accesses.writes for cell in access.cells)
        ),
        guard=None if always or guard is None else (first + guard.index, guard.invert),
        queue=queue,
    )


def kind_of(instruction: Instruction) -> str:
    """Return the opcode with the modifiers that change its latency."""
    opcode, names = instruction.opcode, instruction.modifiers
    if opcode in ("HMMA", "IMMA"):
        return ".".join((opcode, *(name for name in names if name.isdigit() or name in ("TF32", "F16", "F32"))))
    extra = [name for name in ("WIDE", "HI", "MMA") if name in names and opcode in ("IMAD", "UIMAD", "HFMA2")]
    return ".".join((opcode, *extra))


def queue_of(instruction: Instruction) -> Queue | None:
    """Return the queue of an instruction; `None` if it has a fixed latency.

    Float64 operations have a queue, although on some chips their latency is fixed (see `steps_of`).
    """
    if instruction.opcode == "R2UR":
        return "special" if instruction.encoding & 0xFFF == _SLOW_R2UR else None
    return _QUEUE_OF.get(instruction.opcode)


def steps_of(function: SassFunction, *, partly: bool = False) -> tuple[Step, ...]:
    """Return the steps of a function. Raises `UnknownAccessError`, which names every opcode with unknown registers.

    With `partly`, steps of asynchronous instructions have no registers.
    Float64 operations have a fixed latency (sm_90) if none of the function sets a write barrier. Otherwise (sm_80,
    sm_89) their results are complete in the order of issue, and a barrier on the last of several covers the others.
    """
    found, unknown = [], dict[str, str]()
    fixed = all(
        instruction.control.write_barrier == NO_BARRIER
        for instruction in function.instructions
        if queue_of(instruction) == "double"
    )
    for instruction in function.instructions:
        try:
            found.append(step_of(instruction, fixed_doubles=fixed, partly=partly))
        except UnknownAccessError as error:
            unknown.setdefault(instruction.opcode, str(error))
    if unknown:
        raise UnknownAccessError(f"{function.name}: {'; '.join(unknown.values())}")
    return tuple(found)
