"""Compare two records of one operation: find the cases that became faster, slower, stayed the same or are ambiguous.

A case is one contestant at one size with one thread count.

The records were taken at different times, perhaps on two machines of one model, so that their samples cannot be paired:
each record is resampled by itself (`stats.ratio_of_medians`), and its medians are divided. Speeds relative to a peer or
the probe of the peak in the same record (`relative_to`) cancel changes of the machine between the records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gemmlab.core.errors import RecordError, UsageError
from gemmlab.core.notebook_view import Display, View, grid
from gemmlab.core.records import Record, Result
from gemmlab.core.stats import Ratio, combine_ratios, quotient, spread
from gemmlab.core.tabular import Row, Tabular, flat
from gemmlab.core.words import assignments, nearest
from gemmlab.results.comparability import require_comparable, sameness_warnings
from gemmlab.results.record_cases import Key, Side, reference_for, timings
from gemmlab.results.summary import OURS

SAME, FASTER, SLOWER, AMBIGUOUS, WRONG, MENDED = "same", "faster", "slower", "ambiguous", "wrong", "mended"
THRESHOLD = 3.0
"""Smallest difference in percent that counts. Records of the same code minutes apart on an H200 differ by up to 1 %."""
FEWEST_SAMPLES = 3
"""A case with fewer samples than this in either record is ambiguous: the spread of two samples is unknown."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case in both records. `ratio` is of speeds, new to old: above 1 it became faster."""

    key: Key
    role: str
    verdict: str
    """`"same"`, `"faster"`, `"slower"`, `"ambiguous"`, `"wrong"` (in the new record) or `"mended"` (wrong before)."""
    ratio: Ratio
    old_us: float
    new_us: float
    same_code: bool | None
    """True if both ran the same machine code; `None` if either record does not contain its digest."""
    regression: bool
    """True for a kernel or call of gemmlab that is slower (`ignore_same_code` aside), or wrong and not wrong before."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mean:
    """Geometric mean of one contestant's ratios over the problems in both records, without wrong and mended cases."""

    contestant: str
    role: str
    threads: int
    problems: int
    ratio: Ratio


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Display, Tabular):
    """The result of `compare`."""

    threshold: float
    relative_to: str
    cases: tuple[Case, ...]
    means: tuple[Mean, ...]
    """Means of the contestants. With `relative_to`, the reference's own mean has role `"reference"` and is not
    relative.
    """
    only_old: tuple[Key, ...]
    only_new: tuple[Key, ...]
    without_reference: tuple[Key, ...]
    """Cases left out because the reference was not measured beside them in both records."""
    warnings: tuple[str, ...]

    @property
    def regressions(self) -> tuple[Case, ...]:
        """The cases whose `regression` is True."""
        return tuple(case for case in self.cases if case.regression)

    def _counts(self) -> str:
        found = Counter(case.verdict for case in self.cases)
        return ", ".join(f"{count} {verdict}" for verdict, count in found.most_common())

    def _line(self) -> str:
        return f"{self._counts()}; regressions: {len(self.regressions)}"

    def _view(self) -> View:
        rows = (
            (case.key.contestant, case.key.label, case.verdict, case.ratio.value, case.ratio.low, case.ratio.high,
             case.old_us, case.new_us, "; ".join(case.notes))
            for case in sorted(self.cases, key=lambda case: case.ratio.value)
        )  # fmt: skip
        names = ("contestant", "size", "verdict", "times as fast", "from", "to", "old us", "new us", "")
        return View(self._counts(), "regressions" if self.regressions else "no regression", not self.regressions,
                    grids=(grid(names, rows, texts=(0, 1, 2, 8)),), notes=self.warnings)  # fmt: skip

    def rows(self) -> list[Row]:
        """Return a row for each case: the ratio of speeds, new to old, with its 95 % interval, and its verdict."""
        return [flat(_plain(case)) for case in self.cases]

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON values, ratios as value, low and high."""
        return {
            "threshold": self.threshold,
            "relative_to": self.relative_to,
            "regressions": len(self.regressions),
            "cases": [_plain(case) for case in self.cases],
            "means": [{**asdict(mean), "ratio": _interval(mean.ratio)} for mean in self.means],
            "only_old": [asdict(key) for key in self.only_old],
            "only_new": [asdict(key) for key in self.only_new],
            "without_reference": [asdict(key) for key in self.without_reference],
            "warnings": list(self.warnings),
        }


def compare(
    old: Record, new: Record, *, threshold: float = THRESHOLD, relative_to: str = "", other_device: bool = False,
    ignore_same_code: bool = False,
) -> Comparison:  # fmt: skip
    """Compare every case that is in both records.

    A case is slower or faster if the 95 % interval of its ratio lies beyond `threshold` percent, the same if the
    interval lies within the threshold on both sides, else ambiguous, as with fewer than `FEWEST_SAMPLES` samples. A
    case whose result is wrong in either record is wrong or mended instead. With `relative_to`, the name of a peer or
    `probe`, speeds are divided by its speed. With `ignore_same_code`, a slower case with the same machine code is no
    regression.

    Raises `RecordError` for records of other kinds or of two operations, with invalid times or without a case to
    compare, and `UsageError` for a threshold outside [0, 100) or for different devices unless `other_device`.
    """
    if not 0 <= threshold < 100:
        raise UsageError(f"a threshold of {threshold:g} %: from 0 to below 100")
    require_comparable(old, new, other_device=other_device)
    before, after = Side(old), Side(new)
    common = [key for key in after.cases if key in before.cases]
    if not common:
        raise RecordError(_nothing_in_common(before, after))
    limit = float(np.log1p(threshold / 100))
    cases, references, missing = list[Case](), list[Key](), list[Key]()
    for key in common:
        beside = reference_for(relative_to, before, after, key)
        if beside is None:
            missing.append(key)
        elif beside == key.contestant:
            references.append(key)
        else:
            cases.append(_case(key, before, after, beside, limit, ignore_same_code=ignore_same_code))
    if not cases:
        hint = nearest(relative_to, _references(before, after), "in both are")
        raise RecordError(f"nothing to compare: no case was measured beside {relative_to!r} in both records; {hint}")
    changed = [(case.key, case.role, case.ratio) for case in cases if case.verdict not in (WRONG, MENDED)]
    changed += [(key, "reference", quotient(after.speed(key, ""), before.speed(key, ""))) for key in references]
    return Comparison(
        threshold=threshold, relative_to=relative_to, cases=tuple(cases), means=_means(changed),
        only_old=tuple(key for key in before.cases if key not in after.cases),
        only_new=tuple(key for key in after.cases if key not in before.cases),
        without_reference=tuple(missing),
        warnings=(*sameness_warnings(old, new, threshold), *_of_code(cases)),
    )  # fmt: skip


def missing_cases(old: Record, found: Comparison) -> tuple[Key, ...]:
    """Return the cases of gemmlab's kernels and library calls that only the old record contains."""
    ours = {(r.contestant, r.label, r.threads) for r in old.results if r.facts.get("role") in OURS}
    return tuple(key for key in found.only_old if (key.contestant, key.label, key.threads) in ours)


def _case(key: Key, before: Side, after: Side, beside: str, limit: float, *, ignore_same_code: bool) -> Case:
    old, new = before.cases[key], after.cases[key]
    ratio = quotient(after.speed(key, beside), before.speed(key, beside))
    few = min(len(old.samples), len(new.samples)) < FEWEST_SAMPLES
    verdict, notes = (AMBIGUOUS, ["too few samples"]) if few else (_verdict(ratio, limit), [])
    codes = [result.facts.get("code_sha256") for result in (old, new)]
    same_code = None if None in codes else codes[0] == codes[1]
    if new.verified is False:
        verdict = WRONG
        notes += ["wrong before, too"] if old.verified is False else []
    elif old.verified is False:
        verdict = MENDED
    if old.facts.get("config") != new.facts.get("config"):
        notes.append(f"different configuration: {_config(old)}, then {_config(new)}")
    role = str(new.facts.get("role", ""))
    slower = verdict == SLOWER and not (same_code and ignore_same_code)
    regression = role in OURS and (slower or (verdict == WRONG and old.verified is not False))
    old_us, new_us = (spread(list(timings(result).values())).median for result in (old, new))
    return Case(key, role, verdict, ratio, old_us, new_us, same_code, regression, tuple(notes))


def _verdict(ratio: Ratio, limit: float) -> str:
    """Return the verdict on a ratio of speeds. The threshold `limit` is a logarithm, so that r and 1/r are alike."""
    low, high = np.log(ratio.low), np.log(ratio.high)
    if high < -limit:
        return SLOWER
    if low > limit:
        return FASTER
    return SAME if -limit <= low and high <= limit else AMBIGUOUS


def _means(changed: list[tuple[Key, str, Ratio]]) -> tuple[Mean, ...]:
    groups: dict[tuple[str, str, int], list[Ratio]] = {}
    for key, role, ratio in changed:
        groups.setdefault((key.contestant, role, key.threads), []).append(ratio)
    return tuple(Mean(*group, len(ratios), combine_ratios(ratios)) for group, ratios in groups.items())


def _of_code(cases: list[Case]) -> list[str]:
    unchanged = [case for case in cases if case.same_code and case.verdict == SLOWER]
    if not unchanged:
        return []
    why = "the difference comes from the machine, its driver or other work on it"
    what = "--relative-to compares speeds relative to a peer, --ignore-same-code accepts them"
    return [f"{len(unchanged)} of the slower cases ran the same machine code in both: {why}. {what}"]


def _nothing_in_common(before: Side, after: Side) -> str:
    modes = [", ".join(sorted({key.mode for key in side.cases})) for side in (before, after)]
    if modes[0] != modes[1] and all(modes):
        return f"nothing to compare: caches were {modes[0]} in one and {modes[1]} in the other"
    return "nothing to compare: no contestant was timed at one size, with one thread count, in both records"


def _references(before: Side, after: Side) -> list[str]:
    """Return the names that `relative_to` may have for these records."""
    found = [{result.contestant for result in side.beside.values()} for side in (before, after)]
    return sorted({name if name.startswith("kernel:") else name.partition(":")[0] for name in found[0] & found[1]})


def _config(result: Result) -> str:
    config = result.facts.get("config")
    return assignments(config) if isinstance(config, Mapping) else "unknown"


def _plain(case: Case) -> dict[str, Any]:
    known = {name: value for name, value in asdict(case).items() if name not in ("key", "ratio")}
    return {**asdict(case.key), **known, "ratio": _interval(case.ratio)}


def _interval(ratio: Ratio) -> dict[str, float]:
    return {"value": ratio.value, "low": ratio.low, "high": ratio.high}
