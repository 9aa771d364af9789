"""Recorded latencies of results without a barrier: the least cycles between a producer and a consumer.

`recorded/sm_XX.json` has a row for each pair of instruction kinds: the producer's kind and register file, whether the
consumer reads or overwrites the result, the consumer's kind and the part of its operand, and the fewest cycles between
their issues. A row is the least distance that ptxas leaves in any kernel of the catalog (`makers/sass_latencies.py`),
so it may be longer than the hardware needs, but never shorter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from statistics import median_low

from gemmlab.core.errors import UsageError
from gemmlab.sass.cells import PREDICATE, UNIFORM, UNIFORM_PREDICATE
from gemmlab.sass.checking.steps import BARRIER, Step
from gemmlab.sass.checking.tracker import Meeting
from gemmlab.sass.instruction import Instruction
from gemmlab.sass.pipes import pipe_of
from gemmlab.sass.register_accesses import Access

TIGHT = 15
"""Most cycles of a tight row, which may show a latency: arithmetic, predicates and uniform registers take at most 13.

A longer row only shows that ptxas had no reason to put the two instructions closer together.
"""
_FOLDER = Path(__file__).parent / "recorded"
_FAMILY = {"sm_86": "sm_80", "sm_87": "sm_80", "sm_90a": "sm_90"}
"""Architecture -> the architecture whose rows are used for it."""
Row = tuple[str, str, str, str, str]
"""(producer's kind, its register file, relation, consumer's kind, part of the consumer's operand).

The file is `R`, `UR`, `P` or `UP`, `R+1` for the second word of a wide product, or `B` for the block's barrier. The
relation is `read` or `overwrite`. The part is `guard`, `value`, `address`, `all`, or `addend` for the third source of
a multiply-add of integers; empty if the consumer overwrites the result.
"""
_SECOND, _ADDEND = "+1", "addend"


@dataclass(frozen=True, slots=True)
class Latency:
    """The least cycles from a producer's issue to a consumer's."""

    cycles: int
    source: str
    """The record's row as text; the text says if `cycles` is estimated."""
    least: int
    """The least cycles of any row with this producer, relation and part, 0 without one. A closer pair is a sure fault.

    A pair between `least` and `cycles` may be correct: perhaps the catalog has no such pair.
    """


@dataclass(frozen=True)
class Latencies:
    """The rows of one architecture, in cycles."""

    arch: str
    method: str
    rows: Mapping[Row, int]
    _found: dict[Row, Latency | None] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The latencies that were asked for. A row determines its latency, and code has few rows among many meetings."""

    def of(self, meeting: Meeting, producer: Step, consumer: Step) -> Latency | None:
        """Return the latency for a meeting of these two; `None` if no row has the producer's kind, file and relation.

        A tight row for a result that is read is the latency. Otherwise the latency is estimated from the producer's
        tight rows for this part: the least of those whose consumer has the same pipe, else the median of all, else the
        least row of any kind. A row for the pair itself is an upper bound of the estimate.
        """
        row = row_of(meeting, producer, consumer)
        if row not in self._found:
            self._found[row] = self._latency(row if self.fine else _coarse(row))
        return self._found[row]

    @cached_property
    def fine(self) -> bool:
        """True if the record tells second words and addends apart."""
        return any(_SECOND in row[1] for row in self.rows)

    def _latency(self, row: Row) -> Latency | None:
        cycles = self.rows.get(row)
        alike = {other: number for other, number in self.rows.items() if other[:3] == row[:3]}
        if not alike:
            return None
        least = min((number for other, number in alike.items() if other[4] == row[4]), default=0)
        if cycles is not None and cycles <= TIGHT and row[2] == "read":
            return Latency(cycles, f"{row[0]} to {row[3]} ({row[4] or row[2]}): {cycles} cycles on {self.arch}", least)
        tight = {other: number for other, number in alike.items() if number <= TIGHT and other[4] == row[4]}
        same_pipe = [number for other, number in tight.items() if _pipe(other[3]) == _pipe(row[3])]
        # Matrix instructions have no tight rows; ptxas leaves the least of their distances everywhere.
        estimate = min(same_pipe) if same_pipe else median_low(tight.values()) if tight else min(alike.values())
        estimate = estimate if cycles is None else min(estimate, cycles)
        return Latency(
            estimate,
            f"{row[0]} to {row[3]} ({row[4] or row[2]}): {estimate} cycles on {self.arch}, estimated",
            min(least, estimate),
        )


def _pipe(kind: str) -> str:
    opcode, _, variant = kind.partition(".")
    return f"{pipe_of(opcode)} {variant}"


def row_of(meeting: Meeting, producer: Step, consumer: Step) -> Row:
    """Return the key of the row of a meeting."""
    # For an overwritten register the time of the new result counts, which depends on the consumer's kind alone.
    return (
        producer.kind,
        _file(meeting.cell, producer),
        meeting.relation,
        consumer.kind,
        _part(meeting.access, consumer),
    )


def _coarse(row: Row) -> Row:
    """Return the key of a row in a record that does not tell second words and addends apart."""
    return row[0], row[1].removesuffix(_SECOND), row[2], row[3], "value" if row[4] == _ADDEND else row[4]


def _part(access: Access | None, consumer: Step) -> str:
    if access is None:
        return ""
    if access.part not in ("guard", "value", "all"):
        return "address"
    # A multiply-add of integers reads its third source later than its factors.
    return _ADDEND if access.part == "value" and access.operand == _addend(consumer.instruction) else access.part


def _addend(instruction: Instruction) -> int | None:
    if instruction.opcode != "IMAD":
        return None
    sources = [n for n, one in enumerate(instruction.operands) if one.kind in ("reg", "ureg", "imm", "const")]
    return sources[3] if len(sources) > 3 else None


def _file(cell: int, producer: Step) -> str:
    if cell < UNIFORM:
        # The second word of a wide product is complete later than the first.
        return f"R{_SECOND}" if producer.kind == "IMAD.WIDE" and cell != producer.writes[0] else "R"
    if cell < PREDICATE:
        return "UR"
    if cell == BARRIER:
        return "B"
    return "P" if cell < UNIFORM_PREDICATE else "UP"


@cache
def latencies(arch: str) -> Latencies:
    """Return the rows of an architecture such as `"sm_90"`, read once. Raises `UsageError` if there are none for it."""
    path = _FOLDER / f"{_FAMILY.get(arch, arch)}.json"
    if not path.exists():
        known = ", ".join(sorted(file.stem for file in _FOLDER.glob("*.json")))
        raise UsageError(f"no latencies of {arch} are recorded; there are those of {known}")
    data = json.loads(path.read_text(encoding="utf-8"))
    rows: dict[Row, int] = {}
    for kind, file, relation, consumer, part, cycles in data["rows"]:
        rows[kind, file, relation, consumer, part] = cycles
    return Latencies(arch, data["method"], rows)
