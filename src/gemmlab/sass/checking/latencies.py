"""Recorded latencies of results without a barrier: the least cycles between a producer and a consumer.

`recorded/sm_XX.json` has a row for each pair of instruction kinds: the producer's kind and register file, whether the
consumer reads or overwrites the result, the consumer's kind and the part of its operand, and the fewest cycles between
their issues. A row is the least distance that ptxas leaves in the catalog and some other kernels
(`makers/sass_latencies.py`), so it may be longer than the hardware needs, but never shorter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
"""The most cycles of a tight row: one so short that it may show the latency itself.

Arithmetic, predicates and uniform registers take at most 13 cycles. A longer row only shows that ptxas had no reason to
put the two instructions closer together.
"""
POOL = 4
"""The fewest rows of a pool (`_pool_of_row`) from which the least latency of its results is inferred."""
LATER = 2
"""The most cycles by which an instruction reads some operands later than those of part `value`.

Such operands are the second word of an addend, and all predicates (part `all`).
"""
_ALONE = frozenset({"ULDC", "UMOV", "R2UR", "VOTEU"})
"""Kinds whose latency is not that of the others on their pipe."""
_FOLDER = Path(__file__).parent / "recorded"
_FAMILY = {"sm_86": "sm_80", "sm_87": "sm_80", "sm_90a": "sm_90"}
"""Architecture -> the architecture whose rows are used for it."""
Row = tuple[str, str, str, str, str]
"""(producer's kind, its register file, relation, consumer's kind, part of the consumer's operand).

The file is `R`, `UR`, `P` or `UP`, `R+1` for the second word of a wide product, or `B` for the block's barrier. The
relation is `read` or `overwrite`. The part is `guard`, `value`, `address`, `all`, or `addend` for the third source of
a multiply-add of integers, with `addend+1` for its second word; empty if the consumer overwrites the result.
"""


@dataclass(frozen=True, slots=True)
class Latency:
    """The least cycles from a producer's issue to a consumer's."""

    cycles: int
    source: str
    """Text with the pair of kinds, the cycles and the architecture; it says if they are estimated or measured."""
    least: int
    """Cycles below which the pair is a sure fault: results of this kind take so long, whatever reads them, or a write
    would come before the one that it replaces. 0 or less if no number of cycles is a sure fault.

    A pair between `least` and `cycles` may be correct: perhaps the recorded code has no such pair.
    """


@dataclass(frozen=True)
class Latencies:
    """The recorded latencies of one architecture.

    `rows` has the cycles of each recorded pair of kinds; `method` is a sentence that says how they were found.
    """

    arch: str
    method: str
    rows: Mapping[Row, int]
    measured: Mapping[Row, int] = field(default_factory=dict)
    """Row -> the fewest cycles with which a GPU gave the right results, where fewer gave wrong ones."""
    _found: dict[Row, Latency | None] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Results of `of` so far, by row: code has few different rows among many meetings."""

    def of(self, meeting: Meeting, producer: Step, consumer: Step) -> Latency | None:
        """Return the latency for a meeting of these two; `None` if no row has the producer's kind, file and relation.

        A tight row for a result that is read is the latency. Otherwise the latency is estimated from the producer's
        tight rows for this part: the least of those whose consumer has the same pipe, else the (lower) median of all;
        without tight rows it is the least of the producer's rows for any part. A row for the pair itself is an upper
        bound of the estimate.
        """
        row = row_of(meeting, producer, consumer)
        if row not in self._found:
            self._found[row] = self._latency(row)
        return self._found[row]

    def _latency(self, row: Row) -> Latency | None:
        cycles = self.rows.get(row)
        alike = self._alike.get(row[:3], {})
        if not alike:
            return None
        least = self._least(row)
        if cycles is not None and cycles <= TIGHT and row[2] == "read":
            text = f"{row[0]} to {row[3]} ({row[4] or row[2]}): {cycles} cycles on {self.arch}"
            return Latency(cycles, text + (", measured" if self.measured.get(row) == cycles else ""), least)
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

    def _least(self, row: Row) -> int:
        """Return the cycles below which a pair is a sure fault, 0 if that is not known.

        For a result that is read, this is the least of all producers on the same pipe, with this register file and this
        part; if there are fewer than `POOL` of them, the least for part `value`, less `LATER`. It is what a GPU needed
        if that was measured and is more. For a result that is overwritten, the consumer's own result must be written
        later: the number is one more than the cycles that the earlier result takes, less those that the consumer's
        takes.
        """
        kind, file, relation, consumer, _ = row
        if relation == "read":
            least = self._least_of_pool(row) or self._least_of_pool((*row[:4], "value")) - LATER
            return max(self.measured.get(row, 0), least)
        first, second = (self._result(producer, file) for producer in (kind, consumer))
        return 0 if first is None or second is None else first - second + 1

    def _least_of_pool(self, row: Row) -> int:
        pool = self._pools.get(_pool_of_row(row), ())
        return min(pool) if len(pool) >= POOL else 0

    def _result(self, kind: str, file: str) -> int | None:
        """Return the least cycles until a result of `kind` in `file` is read by any consumer; `None` if unrecorded."""
        return min(self._alike.get((kind, file, "read"), {}).values(), default=None)

    @cached_property
    def _alike(self) -> Mapping[tuple[str, str, str], Mapping[Row, int]]:
        """(producer's kind, register file, relation) -> the rows with all three, and their cycles."""
        found: dict[tuple[str, str, str], dict[Row, int]] = {}
        for row, cycles in self.rows.items():
            found.setdefault(row[:3], {})[row] = cycles
        return found

    @cached_property
    def _pools(self) -> Mapping[tuple[str, str, str, bool, str], Sequence[int]]:
        """Pool (`_pool_of_row`) -> cycles of each of its rows."""
        found: dict[tuple[str, str, str, bool, str], list[int]] = {}
        for row, cycles in self.rows.items():
            found.setdefault(_pool_of_row(row), []).append(cycles)
        return found


def _pool_of_row(row: Row) -> tuple[str, str, str, bool, str]:
    """Return the key of the pool of a row; the results of all rows of a pool are taken to have the same latency.

    It is (register file, relation, producer's pipe or kind, true for an address that the consumer reads late, part).
    The units of shared and global memory read addresses later than others do; other addresses count as part `value`.
    """
    kind, file, relation, reader, part = row
    late = part == "address" and pipe_of(reader) == "lsu"
    return file, relation, _pool(kind), late, "value" if part == "address" else part


def _pipe(kind: str) -> str:
    opcode, _, variant = kind.partition(".")
    return f"{pipe_of(opcode)} {variant}"


def _pool(kind: str) -> str:
    return kind if kind in _ALONE else _pipe(kind)


def row_of(meeting: Meeting, producer: Step, consumer: Step) -> Row:
    """Return the row whose cycles apply to a meeting of these two instructions."""
    # For an overwritten register the time of the new result counts, which depends on the consumer's kind alone.
    return (
        producer.kind,
        _file(meeting.cell, producer),
        meeting.relation,
        consumer.kind,
        _part(meeting.access, meeting.cell, consumer),
    )


def _part(access: Access | None, cell: int, consumer: Step) -> str:
    if access is None:
        return ""
    if access.part not in ("guard", "value", "all"):
        return "address"
    if access.part != "value" or access.operand != _addend(consumer.instruction):
        return access.part
    # A multiply-add of integers reads its third source later than its factors, its second word later still.
    return "addend" if cell == access.first else "addend+1"


def _addend(instruction: Instruction) -> int | None:
    if instruction.opcode != "IMAD":
        return None
    sources = [n for n, one in enumerate(instruction.operands) if one.kind in ("reg", "ureg", "imm", "const")]
    return sources[3] if len(sources) > 3 else None


def _file(cell: int, producer: Step) -> str:
    if cell < UNIFORM:
        # The second word of a wide product is complete later than the first.
        return "R+1" if producer.kind == "IMAD.WIDE" and cell != producer.writes[0] else "R"
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
    rows, measured = (
        {(kind, file, relation, consumer, part): cycles for kind, file, relation, consumer, part, cycles in found}
        for found in (data["rows"], data.get("measured", ()))
    )
    return Latencies(arch, data["method"], rows, measured)
