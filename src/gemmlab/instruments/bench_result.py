"""The result of a bench: its record, and the rows, ratios and verdict computed from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gemmlab.core.notebook_view import Display, View
from gemmlab.core.records import Record, to_json
from gemmlab.core.tabular import Row, Tabular, flat
from gemmlab.core.words import counted
from gemmlab.instruments.page_grids import grid_of
from gemmlab.pages.parts import headline
from gemmlab.pages.tables import bench_table, count_table
from gemmlab.results.count_rows import CountRow, wrong_counts
from gemmlab.results.summary import OURS, Summary, Verdict, all_notes
from gemmlab.timing.configurations import ConfigTable


@dataclass(frozen=True, slots=True, repr=False)
class BenchResult(Display, Tabular):
    """The result of `gemmlab.bench`: times, or on an emulated device counts."""

    record: Record
    """Every sample or counter, with the environment of the measurement."""
    summary: Summary | None = None
    """Medians and ratios; `None` if nothing is timed."""
    counts: tuple[CountRow, ...] = ()
    """Counters of each kernel and problem on an emulated device."""
    verdict: Verdict | None = None
    """The verdict on `target` and `floor`; `None` if neither was given."""
    configurations: tuple[ConfigTable, ...] = ()
    """Times of each configuration, if several were requested."""

    @property
    def wrong(self) -> list[str]:
        """Sentences about the first kind of fault found: wrong results, else nothing timed but peers, else missed
        targets. Empty if there is no fault.
        """
        if self.summary is None:
            return wrong_counts(self.counts)
        ours = [row for row in self.summary.rows if row.role in OURS]
        if wrong := [f"{row.contestant} at {row.label}" for row in ours if row.verified is False]:
            return [f"wrong result: {', '.join(wrong)}"]
        if not ours:
            return [f"only peers could be timed: {'; '.join(all_notes(self.record))}"]
        if self.verdict is not None and not self.verdict.passed:
            return [f"{len(self.verdict.failures)} targets missed: {self.verdict.failures[0]}"]
        return []

    def rows(self) -> list[Row]:
        """Return a row for each contestant, problem and thread count: microseconds, GFLOP/s, GB/s and ratios of speeds.

        On an emulated device each row has the counters of a kernel and problem.
        """
        if self.summary is None:
            return [flat(asdict(row)) for row in self.counts]
        return [_row(row) for row in self.summary.to_json()["rows"]]

    def _line(self) -> str:
        record, wrong = self.record, self.wrong
        where = record.device.get("name") or record.device.get("id")
        best = "; ".join(map(str, self.counts)) if self.summary is None else headline(record, self.summary)
        return " ".join([f"{record.op} on {where}:", *(wrong or [best or counted(len(record.results), "result")])])

    def _view(self) -> View:
        record, summary = self.record, self.summary
        table = count_table(record) if summary is None else bench_table(record, summary)
        best = "" if summary is None else headline(record, summary)
        targets = () if self.verdict is None else self.verdict.failures
        return View(
            f"{record.op} on {record.device.get('name') or record.device.get('id')}",
            "wrong" if self.wrong else "counted" if summary is None else "timed", False if self.wrong else None,
            tuple(filter(None, (best, *self.wrong, *targets))), (grid_of(table),), notes=(table.note, *record.notes),
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values, the record with every sample."""
        if self.summary is None:
            return {"record": to_json(self.record), "rows": [asdict(row) for row in self.counts]}
        verdict, tables = self.verdict, [asdict(table) for table in self.configurations]
        return {
            "record": to_json(self.record), "summary": self.summary.to_json(),
            **({"configurations": tables} if tables else {}),
            **({} if verdict is None
               else {"verdict": {"passed": verdict.passed, "failures": list(verdict.failures)}}),
        }  # fmt: skip


def _row(row: Mapping[str, Any]) -> Row:
    """Return a row of the summary as one level of columns, contestant and size first.

    A ratio to a peer is in the column `ratio.PEER`, its interval in `ratio.PEER.low` and `ratio.PEER.high`.
    """
    ratios = {f"ratio.{peer}{'' if part == 'value' else f'.{part}'}": number
              for peer, ratio in row["ratios"].items() for part, number in ratio.items()}  # fmt: skip
    first = {"contestant": row["contestant"], "size": row["label"]}
    return {**first, **flat({name: row[name] for name in row if name not in ("ratios", "contestant", "label")}),
            **ratios}  # fmt: skip
