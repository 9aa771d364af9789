"""Pins: hazards and findings with the instructions and source lines that they are about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gemmlab.analysis.access_sites import rows_by_address
from gemmlab.analysis.advice import ADVICE
from gemmlab.analysis.explanation import Explanation
from gemmlab.analysis.findings import Finding
from gemmlab.analysis.listing.code import Row
from gemmlab.analysis.worst_sites import KINDS, worst_rows
from gemmlab.core.hazard import Hazard
from gemmlab.sass.instruction import Instruction, SourceLine
from gemmlab.sass.pipes import pipe

HAZARD, FINDING = "hazard", "finding"
_OPCODES: Mapping[str, tuple[str, ...]] = {
    "loop_barriers": ("BAR",), "loop_narrow_lds": ("LDS",), "loop_words": ("LDS",), "loop_sts": ("STS", "LDG"),
    "loop_xu": ("I2F", "F2I", "I2FP", "MUFU"), "loop_narrow_ldg": ("LDG", "LDGSTS"),
}  # fmt: skip
"""Figure of the main loop that a finding uses -> the opcodes that it counts."""
_INTEGER, _DOUBLE = ("alu", "fmaheavy", "uniform"), ("fp64",)
_PIPES: Mapping[str, tuple[str, ...]] = {"loop_integer": _INTEGER, "loop_double": _DOUBLE}


@dataclass(frozen=True, slots=True)
class Pin:
    """One hazard or finding and its place in the code."""

    kind: str
    """`HAZARD` or `FINDING`."""
    key: str
    text: str
    advice: str
    rung: str
    """Id of a kernel on the ladder that applies the advice; empty if there is none."""
    addresses: tuple[int, ...]
    """Byte addresses of the instructions. A finding about the whole main loop has only the address of the loop's first
    instruction, and one about the whole kernel has none.
    """
    lines: tuple[SourceLine, ...]
    """Source lines of the instructions, without the calls of inlined functions. For a hazard of two accesses, the lines
    of both; empty if unknown.
    """


def pins_of(explained: Explanation, rows: Sequence[Row]) -> tuple[Pin, ...]:
    """Return the pins of a kernel's hazards and findings, hazards first."""
    hazards = [_of_hazard(hazard, rows) for hazard in explained.subject.hazards]
    return (*hazards, *(_of_finding(finding, explained, rows) for finding in explained.findings))


def _of_hazard(hazard: Hazard, rows: Sequence[Row]) -> Pin:
    lines = [(hazard.file, hazard.line)]
    if hazard.other_line:
        lines.append((hazard.other_file or hazard.file, hazard.other_line))
    found = tuple(row.address for row in rows if row.places[:1] and row.places[0] in lines and _may_cause(row, hazard))
    text = hazard.without_folders().explain()
    return Pin(HAZARD, hazard.kind, text, "", "", found, tuple(lines) if hazard.line else ())


def _may_cause(row: Row, hazard: Hazard) -> bool:
    """Return True if an instruction may have caused a hazard; hazards in a memory space are caused by accesses only."""
    return not hazard.space or pipe(row.instruction) in ("lsu", "tex", "tma", "tensor")


def _of_finding(finding: Finding, explained: Explanation, rows: Sequence[Row]) -> Pin:
    addresses = tuple(_addresses(finding, explained))
    wanted = set(addresses)
    lines = dict.fromkeys(row.places[0] for row in rows if row.address in wanted and row.places)
    return Pin(
        FINDING, finding.key, finding.text, f"{finding.attempt} {finding.gain}", finding.rung, addresses, tuple(lines)
    )


def _addresses(finding: Finding, explained: Explanation) -> Iterable[int]:
    text = next((row.text for row in ADVICE if row.key == finding.key), "")
    apart = rows_by_address(explained.subject.counters)
    for name in KINDS:
        if f"{{{name}_place}}" in text:
            worst = worst_rows(list(apart.values()), name)
            return [address for address, row in apart.items() if any(row is one for one in worst)]
    loop = explained.loop
    if loop is None:
        return ()
    for name in finding.figures:
        if found := [i.address for i in loop.instructions if _counts(i, name)]:
            return found
    # The loop as a whole.
    return (loop.header,) if any(name.startswith(("loop_", "issue_")) for name in finding.figures) else ()


def _counts(instruction: Instruction, name: str) -> bool:
    if instruction.is_idle or ("128" in instruction.modifiers and "narrow" in name):
        return False
    return instruction.opcode in _OPCODES.get(name, ()) or pipe(instruction) in _PIPES.get(name, ())
