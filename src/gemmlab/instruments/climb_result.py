"""The result of a climb: for each device the rows of its ladder, timed or counted."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gemmlab.core.records import Record
from gemmlab.core.tabular import Row, Tabular, flat
from gemmlab.instruments.predicted_rows import PredictedRow
from gemmlab.results.climb_rows import ClimbRow, climb_rows
from gemmlab.results.count_rows import CountRow
from gemmlab.results.shipped_records import where_recorded


@dataclass(frozen=True, slots=True, repr=False)
class ClimbPart:
    """The results of one device's ladder."""

    record: Record
    times: tuple[ClimbRow, ...] = ()
    counts: tuple[CountRow, ...] = ()
    notes: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    """A sentence for each wrong result."""
    files: tuple[Path, ...] = ()
    elsewhere: Record | None = None
    """A recorded climb of the same ladder on a GPU, shown when none is here."""
    predicted: tuple[PredictedRow, ...] = ()
    """For a counted ladder: predicted times on a GPU."""
    unpredicted: tuple[str, ...] = ()
    """Notes on rungs without a prediction."""


@dataclass(frozen=True, slots=True, repr=False)
class ClimbResult(Tabular):
    """The result of `gemmlab.climb`."""

    parts: tuple[ClimbPart, ...]
    """One for each device."""

    @property
    def _devices(self) -> list[tuple[ClimbPart, Any]]:
        return [(part, part.record.device.get("id")) for part in self.parts]

    @property
    def wrong(self) -> list[str]:
        """A sentence for each wrong result."""
        return [line for part in self.parts for line in part.wrong]

    @property
    def files(self) -> list[Path]:
        """The files that were written: records and charts."""
        return [path for part in self.parts for path in part.files]

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
