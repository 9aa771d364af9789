"""Tables and lists of a study, as a page shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gemmlab.core.numerals import plain
from gemmlab.pages.charts import Drawing
from gemmlab.pages.circumstances import Lines
from gemmlab.pages.studies import Study
from gemmlab.pages.tables import Cell, Table
from gemmlab.results.climb_rows import digits, short_size


@dataclass(frozen=True, slots=True)
class StudyTables:
    """The values of a study that the template uses."""

    explanation: Mapping[str, Any] | None
    """`Study.explanation`; `None` for a CPU kernel."""
    code_sha256: str
    hazards: tuple[str, ...]
    prediction: str
    """The predicted time in a sentence; empty if there is none."""
    reliability: str
    terms: Table | None
    """Terms of the predicted time; `None` without a prediction."""
    roofline: Table | None
    accesses: Table | None
    groups: Mapping[str, Lines]
    """Group of figures -> its figures as (name, text)."""
    loop: str
    """The main loop as text, one instruction per line; empty if there is none."""
    drawings: tuple[Drawing, ...]
    undrawn: str
    """Reason why drawing the pictures failed; empty if it did not."""


def tables_of(study: Study) -> StudyTables:
    """Return the tables of a study; for a CPU kernel only its pictures."""
    if study.explanation is None:
        return StudyTables(None, "", (), "", "", None, None, None, {}, "", study.drawings, study.undrawn)
    groups: dict[str, Lines] = {}
    for group, name, text in study.figures:
        groups[group] = (*groups.get(group, ()), (name, text))
    loop, prediction = study.explanation["main_loop"], study.prediction
    return StudyTables(
        study.explanation, study.explanation["code_sha256"], study.hazards,
        "" if prediction is None else _predicted(prediction), "" if prediction is None else prediction["reliability"],
        None if prediction is None else _terms(prediction), _roofline(study.explanation["roofline"]),
        _accesses(study.explanation["accesses"]), groups, "" if loop is None else _code(loop), study.drawings,
        study.undrawn,
    )  # fmt: skip


def _predicted(prediction: Mapping[str, Any]) -> str:
    speed = f"{digits(prediction['speed'])} {prediction['unit']}"
    where = f"{short_size(prediction['size'])} on {prediction['gpu']}"
    return f"{digits(prediction['time_us'] / 1e3)} ms at {where}, {speed}; most of it: {prediction['binds']}."


def _roofline(found: Mapping[str, Any]) -> Table:
    rows = [
        (
            Cell(level["name"]), _range(level["bytes_least"], level["bytes_most"], ",.0f"),
            _range(level["intensity_least"], level["intensity_most"], ".3g"), Cell(f"{level['gbs']:,.0f}"),
            _range(level["gflops_least"], level["gflops_most"], ",.0f"), Cell(level["how"]),
        )
        for level in found["levels"]
    ]  # fmt: skip
    inside = (Cell(found["inside_by"]), Cell(""), Cell(""), Cell(""), Cell(f"{found['inside_gflops']:,.0f}"),
              Cell(f"main loop, of a peak of {found['peak_gflops']:,.0f}"))  # fmt: skip
    headings = ("level", "bytes", "FLOP/B", "peak GB/s", "GFLOP/s at most", "how")
    return Table(f"Roofline on {found['model']}", headings, (*rows, inside), frozenset({0, 5}))


def _terms(prediction: Mapping[str, Any]) -> Table:
    rows = tuple(
        (Cell(name), Cell(plain(us)), Cell(f"{us / prediction['time_us']:.1%}"))
        for name, us in prediction["terms"].items()
        if us
    )
    return Table("What the predicted time is made of", ("term", "µs", "of the time"), rows)


def _accesses(found: list[Mapping[str, Any]]) -> Table:
    rows = []
    for row in found:
        ideal = row["wavefronts_ideal"] if row["wavefronts"] else row["sectors_ideal"]
        rows.append((
            Cell(f"{row['file']}:{row['line']}"), Cell(row["opcode"]), Cell(f"{row['requests']:,}"),
            Cell(plain(row["sectors_per_request"], 3) if row["sectors"] else ""),
            Cell(f"{row['wavefronts']:,}" if row["wavefronts"] else ""), Cell(f"{ideal:,}"),
            Cell(f"{row['excess']:,}"), Cell(f"{row['share']:.1%}"),
        ))  # fmt: skip
    headings = ("line", "opcode", "requests", "sectors / request", "wavefronts", "ideal", "excess", "of L1 time")
    note = "Ideal and excess: wavefronts of shared memory, sectors of 32 bytes of global memory."
    return Table("Memory by place in the source", headings, tuple(rows), frozenset({0, 1}), note)


def _code(loop: Mapping[str, Any]) -> str:
    return "\n".join(f"{i['address']:#06x} {i['line'] or '':>5} {i['stall']:>3}  {i['text']}"
                     for i in loop["instructions"])  # fmt: skip


def _range(low: float, high: float, form: str) -> Cell:
    first, last = format(low, form), format(high, form)
    return Cell(first) if first == last else Cell(f"{first} to {last}", key=low)
