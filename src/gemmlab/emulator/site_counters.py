"""The counters of each instruction of a launch. Those of instructions that never run are made once for each kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gemmlab.core import counters as core
from gemmlab.core.counters import SiteCounters
from gemmlab.sass.instruction import Instruction
from gemmlab.sass.vector_registers import WARPGROUP_OPCODES

_SITES = {
    "LDS": core.SHARED_LOAD,
    "LDSM": core.SHARED_LOAD,
    "STS": core.SHARED_STORE,
    "ATOMS": core.SHARED_ATOMIC,
    "LDG": core.GLOBAL_LOAD,
    "LD": core.GLOBAL_LOAD,
    "STG": core.GLOBAL_STORE,
    "ST": core.GLOBAL_STORE,
    "ATOMG": core.GLOBAL_ATOMIC,
    "ATOM": core.GLOBAL_ATOMIC,
    "RED": core.GLOBAL_ATOMIC,
    "REDG": core.GLOBAL_ATOMIC,
    "LDL": core.LOCAL_LOAD,
    "STL": core.LOCAL_STORE,
    "LDGSTS": core.ASYNC_COPY,
    "LDC": core.CONSTANT_LOAD,
    "ULDC": core.CONSTANT_LOAD,
    "TLD": core.TEXTURE_LOAD,
    "TEX": core.TEXTURE_LOAD,
    "BAR": core.BARRIER,
    **dict.fromkeys(WARPGROUP_OPCODES, core.MATRIX_OPERANDS),
}
_IN_SHARED = {"LD": core.SHARED_LOAD, "ST": core.SHARED_STORE, "ATOM": core.SHARED_ATOMIC}


def site_counters(
    instruction: Instruction, counts: Mapping[str, int], pattern: tuple[int | None, ...] = ()
) -> SiteCounters:
    """Return an instruction's counters; `counts` has values by field name, `pattern` its last access pattern."""
    file, line = instruction.line or ("", 0)
    return SiteCounters(
        address=instruction.address, opcode=instruction.name, text=instruction.text, file=file, line=line,
        kind=kind_of(instruction, counts), pattern=pattern, **counts,
    )  # fmt: skip


def unexecuted(instructions: Iterable[Instruction]) -> tuple[SiteCounters, ...]:
    """Return the counters of each instruction for a launch that does not execute it."""
    return tuple(site_counters(instruction, {}) for instruction in instructions)


def kind_of(instruction: Instruction, known: Mapping[str, int]) -> str:
    """Return the kind of an instruction: its access to memory, a barrier, or empty for any other and for an idle one.

    A generic access (LD, ST, ATOM) is one of shared memory if all its addresses were in shared memory, else of global
    memory, also if it never ran. `known` has the instruction's counters by field name.
    """
    if instruction.is_idle:
        return ""
    in_shared = known.get("requests", 0) and not known.get("sectors", 0)
    return (_IN_SHARED if in_shared else _SITES).get(instruction.opcode) or _SITES.get(instruction.opcode, "")
