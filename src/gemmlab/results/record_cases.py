"""The cases of one record, by a key that identifies the same case in another record, and their speeds."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from gemmlab.core.records import Record, Result, require_times
from gemmlab.core.stats import Ratio, ratio_of_medians
from gemmlab.results.summary import BASELINE

PEAK = "peak"
"""Role of the probe of the device's peak (FMA or memory rate)."""


@dataclass(frozen=True, slots=True)
class Key:
    """The identity of a case: results of two records are compared if their keys are equal.

    A configuration that was requested is part of the contestant's name, as in `kernel:ID[BM=64]`.
    """

    contestant: str
    label: str
    threads: int
    mode: str


def timings(result: Result) -> dict[tuple[int, int], float]:
    """Return the time of each sample in microseconds, by process and round."""
    return {(sample.process, sample.round): sample.time_us for sample in result.samples}


class Side:
    """One of two compared records. Raises `RecordError` if a sample's time is not a positive number.

    `cases` maps keys to results; `beside` maps (size, threads, contestant) to the same results and those of the probe.
    Results without samples, and the naive kernel of a bench, are in neither.
    """

    def __init__(self, record: Record) -> None:
        mode = record.method.mode if record.method else ""
        self.beside: dict[tuple[str, int, str], Result] = {}
        self.cases: dict[Key, Result] = {}
        for result in record.results:
            role = str(result.facts.get("role", ""))
            # The naive kernel of a bench is timed separately and only a few times: it is no case.
            if not result.samples or role == BASELINE:
                continue
            self.beside[result.label, result.threads, result.contestant] = result
            if role != PEAK:
                where = str(result.facts.get("mode") or mode)
                self.cases[Key(result.contestant, result.label, result.threads, where)] = result
        # The seed depends only on the record, so that its cases are resampled by the same rounds, and a record compared
        # with itself gives ratios of exactly 1.
        require_times(record)
        times = np.array([sample.time_us for result in record.results for sample in result.samples])
        self.seed = zlib.crc32(times.tobytes())

    def speed(self, key: Key, beside: str) -> Ratio:
        """Return the executions per microsecond of a case; with `beside`, divided by those of that contestant."""
        own = timings(self.cases[key])
        others = timings(self.beside[key.label, key.threads, beside]) if beside else dict.fromkeys(own, 1.0)
        return ratio_of_medians(others, own, seed=self.seed)

    def has_beside(self, key: Key, name: str) -> bool:
        """Return whether contestant `name` was timed in turns with the case."""
        found = self.beside.get((key.label, key.threads, name))
        return found is not None and bool(timings(found).keys() & timings(self.cases[key]).keys())


def reference_for(name: str, before: Side, after: Side, key: Key) -> str | None:
    """Return the contestant that a case's speed is relative to in both records.

    The result is `""` if `name` is empty, and `None` if the reference is missing beside the case in either record.
    A name such as `openblas` also means `openblas:best` if the new record has only that one beside the case.
    """
    if not name:
        return ""
    at = (key.label, key.threads)
    present = [who for *where, who in after.beside if tuple(where) == at and who.partition(":")[0] == name]
    chosen = name if (*at, name) in after.beside else present[0] if len(present) == 1 else ""
    return chosen if chosen and before.has_beside(key, chosen) and after.has_beside(key, chosen) else None
