"""The cases of one record, by what makes them the same case in another, and how fast each was."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from gemmlab.core.records import Record, Result, require_times
from gemmlab.core.stats import Ratio, ratio_of_medians
from gemmlab.results.summary import BASELINE

PEAK = "peak"
"""Role of the FMA probe."""


@dataclass(frozen=True, slots=True)
class Key:
    """What makes two results the same case. A configuration that was named is part of the contestant's name."""

    contestant: str
    label: str
    threads: int
    mode: str


def timings(result: Result) -> dict[tuple[int, int], float]:
    """Time of each turn, by process and round."""
    return {(sample.process, sample.round): sample.time_us for sample in result.samples}


class Side:
    """One record, by case: `cases`, and with them the probe in `beside`."""

    def __init__(self, record: Record) -> None:
        mode = record.method.mode if record.method else ""
        self.beside: dict[tuple[str, int, str], Result] = {}
        self.cases: dict[Key, Result] = {}
        for result in record.results:
            role = str(result.facts.get("role", ""))
            # The naive kernel beside a bench is timed by itself, a few times: no case.
            if not result.samples or role == BASELINE:
                continue
            self.beside[result.label, result.threads, result.contestant] = result
            if role != PEAK:
                where = str(result.facts.get("mode") or mode)
                self.cases[Key(result.contestant, result.label, result.threads, where)] = result
        # One seed a record: its cases draw the same rounds, and a record beside itself draws the same twice.
        require_times(record)
        times = np.array([sample.time_us for result in record.results for sample in result.samples])
        self.seed = zlib.crc32(times.tobytes())

    def speed(self, key: Key, beside: str) -> Ratio:
        """Executions a microsecond, or to those of what was measured `beside`."""
        own = timings(self.cases[key])
        others = timings(self.beside[key.label, key.threads, beside]) if beside else dict.fromkeys(own, 1.0)
        return ratio_of_medians(others, own, seed=self.seed)

    def has_beside(self, key: Key, name: str) -> bool:
        """Whether it took turns with the case."""
        found = self.beside.get((key.label, key.threads, name))
        return found is not None and bool(timings(found).keys() & timings(self.cases[key]).keys())


def reference_for(name: str, before: Side, after: Side, key: Key) -> str | None:
    """What a case is judged beside in both records: `""` for nothing, `None` where it should be and is not there.

    `openblas` also means `openblas:best` where there is only that.
    """
    if not name:
        return ""
    at = (key.label, key.threads)
    present = [who for *where, who in after.beside if tuple(where) == at and who.partition(":")[0] == name]
    chosen = name if (*at, name) in after.beside else present[0] if len(present) == 1 else ""
    return chosen if chosen and before.has_beside(key, chosen) and after.has_beside(key, chosen) else None
