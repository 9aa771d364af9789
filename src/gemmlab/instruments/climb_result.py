"""The result of a climb: for each device the rows of its ladder, timed or counted."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from gemmlab.core.notebook_view import Display, Grid, View, grid
from gemmlab.core.numerals import plain
from gemmlab.core.records import Record
from gemmlab.core.tabular import Row, Tabular, flat
from gemmlab.instruments.page_grids import grid_of
from gemmlab.instruments.predicted_rows import PredictedRow
from gemmlab.pages.tables import climb_table, count_table
from gemmlab.plots.chart import svg
from gemmlab.plots.ladder import climb_chart
from gemmlab.results.climb_rows import ClimbRow, climb_rows
from gemmlab.results.count_rows import CountRow
from gemmlab.results.shipped_records import where_recorded


@dataclass(frozen=True, slots=True, repr=False)
class ClimbPart(Display):
    """The results of one device's ladder."""

    record: Record
    times: tuple[ClimbRow, ...] = ()
    counts: tuple[CountRow, ...] = ()
    notes: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    """A text for each rung with a wrong result or another fault, and for each other wrong result of gemmlab's own."""
    files: tuple[Path, ...] = ()
    elsewhere: Record | None = None
    """A recorded climb of the same ladder on a GPU, if `"cuda"` was requested and this machine has no GPU."""
    predicted: tuple[PredictedRow, ...] = ()
    """For a counted ladder: predicted times on a GPU."""
    unpredicted: tuple[str, ...] = ()
    """Notes on rungs without a prediction."""

    @property
    def place(self) -> str:
        """The device's name."""
        return str(self.record.device.get("name") or self.record.device.get("id"))

    def _line(self) -> str:
        rungs = [row for row in self.times if row.role == "rung"]
        fastest = max(rungs, key=lambda row: row.speed, default=None)
        top = "" if fastest is None else f", the fastest {fastest.name} with {plain(fastest.speed)} {fastest.unit}"
        counted = f"rungs counted: {len(self.counts)}" if self.counts else f"rungs timed: {len(rungs)}{top}"
        return f"{self.record.op} on {self.place}; {counted}{'; WRONG results' if self.wrong else ''}"

    def _grids(self) -> tuple[Grid, ...]:
        own = climb_table(self.record) if self.times else count_table(self.record)
        predicted = grid(
            ("predicted", "GPU", "size", "us", "speed", "unit", "mostly"),
            ((row.name, row.gpu, row.size, row.time_us, row.speed, row.unit, row.mostly) for row in self.predicted),
            "Predicted, not measured", texts=(0, 1, 2, 5, 6),
        )  # fmt: skip
        return (replace(grid_of(own), caption=self.place), *([predicted] if self.predicted else []))

    def _view(self) -> View:
        return View(
            self._line(), "wrong" if self.wrong else "", False if self.wrong else None, self.wrong, self._grids(),
            ((svg(climb_chart(self.record)), "The ladder"),) if self.times else (),
            notes=(*self.record.notes, *self.notes, *self.unpredicted),
        )  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class ClimbResult(Display, Tabular):
    """The result of `gemmlab.climb`."""

    parts: tuple[ClimbPart, ...]
    """One for each device."""

    @property
    def _devices(self) -> list[tuple[ClimbPart, Any]]:
        return [(part, part.record.device.get("id")) for part in self.parts]

    @property
    def wrong(self) -> list[str]:
        """`ClimbPart.wrong` of all parts."""
        return [line for part in self.parts for line in part.wrong]

    @property
    def files(self) -> list[Path]:
        """The files that were written: records and charts."""
        return [path for part in self.parts for path in part.files]

    def _line(self) -> str:
        return "; ".join(part._line() for part in self.parts)  # noqa: SLF001 - the same file's

    def _repr_html_(self) -> str:
        return "".join(part._repr_html_() for part in self.parts)

    def rows(self) -> list[Row]:
        """Return a row for each rung, library call and peer on each device: times in microseconds, or counters."""
        return [
            {"device": device, **flat(row)}
            for part, device in self._devices
            for row in (*map(asdict, part.times), *map(asdict, part.counts))
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        recorded = next((part.elsewhere for part in self.parts if part.elsewhere is not None), None)
        return {
            "rows": [row | {"device": device} for part, device in self._devices for row in map(asdict, part.times)],
            "counts": [row | {"device": device} for part, device in self._devices for row in map(asdict, part.counts)],
            "predicted": [asdict(row) for part in self.parts for row in part.predicted],
            "notes": [note for part in self.parts for note in (*part.record.notes, *part.notes, *part.unpredicted)],
            "files": list(map(str, self.files)),
            **({} if recorded is None else {"recorded": _recorded(recorded)}),
        }


def _recorded(record: Record) -> dict[str, Any]:
    """Return a climb recorded on another machine as JSON values."""
    return {"where": where_recorded(record), "rows": [asdict(row) for row in climb_rows(record)]}
