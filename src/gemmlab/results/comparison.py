"""Two records of the same kind of measurement: what became faster, what slower, and what nobody can tell.

The two were taken at two times, perhaps on two machines of one model, so that no moment of one belongs to a moment of
the other: each is resampled by itself (`stats.ratio_of_medians`), and its medians are divided. What was measured beside
a case in its own record, a peer or the FMA probe, takes out what the machine did in the meantime (`relative_to`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gemmlab.core.errors import RecordError, UsageError
from gemmlab.core.records import Record, Result
from gemmlab.core.stats import Ratio, combine_ratios, quotient, spread
from gemmlab.core.words import nearest
from gemmlab.results.comparability import require_comparable, sameness_warnings
from gemmlab.results.record_cases import Key, Side, reference_for, timings
from gemmlab.results.summary import OURS

SAME, FASTER, SLOWER, AMBIGUOUS, WRONG, MENDED = "same", "faster", "slower", "ambiguous", "wrong", "mended"
THRESHOLD = 3.0
"""Percent. Records of the same code taken minutes apart on an H200 differ by up to one."""
FEWEST_SAMPLES = 3
"""In either record; of two nobody can tell how far they spread."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case that both records have. `ratio` is of speeds, new to old: above 1 it became faster."""

    key: Key
    role: str
    verdict: str
    ratio: Ratio
    old_us: float
    new_us: float
    same_code: bool | None
    """Whether both ran the same machine code; `None` where a record does not say."""
    regression: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mean:
    """Geometric mean of one contestant's ratios over the problems that both records have."""

    contestant: str
    role: str
    threads: int
    problems: int
    ratio: Ratio


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything `compare` finds."""

    threshold: float
    relative_to: str
    cases: tuple[Case, ...]
    means: tuple[Mean, ...]
    """With `relative_to` its own, whose role here is `"reference"`, is the only one that is not relative."""
    only_old: tuple[Key, ...]
    only_new: tuple[Key, ...]
    without_reference: tuple[Key, ...]
    """Left out: what they should be judged by was not measured beside them in both records."""
    warnings: tuple[str, ...]

    @property
    def regressions(self) -> tuple[Case, ...]:
        """Cases of ours that are surely slower, or wrong since."""
        return tuple(case for case in self.cases if case.regression)

    def to_json(self) -> dict[str, Any]:
        """JSON values; ratios as value, low, high."""
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
    """Judge every case that both records have.

    An interval (95 %) that lies beyond `threshold` percent on one side is slower or faster, one within it on both sides
    is the same, and any other is ambiguous. With `relative_to`, the name of a peer or `probe`, speeds are those beside
    it. Raises `RecordError` for records that nothing can be said of, `UsageError` for other devices unless allowed.
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


def gone(old: Record, found: Comparison) -> tuple[Key, ...]:
    """The cases of ours that only the old record has."""
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
        notes.append(f"other configuration: {_config(old)}, then {_config(new)}")
    role = str(new.facts.get("role", ""))
    slower = verdict == SLOWER and not (same_code and ignore_same_code)
    regression = role in OURS and (slower or (verdict == WRONG and old.verified is not False))
    old_us, new_us = (spread(list(timings(result).values())).median for result in (old, new))
    return Case(key, role, verdict, ratio, old_us, new_us, same_code, regression, tuple(notes))


def _verdict(ratio: Ratio, limit: float) -> str:
    """`limit` is a logarithm: a third faster and a quarter slower are the same distance."""
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
    why = "that difference is the machine's, its driver's or of what ran beside it"
    what = "--relative-to judges beside a peer, --ignore-same-code lets them pass"
    return [f"{len(unchanged)} of the slower cases ran the same machine code in both: {why}. {what}"]


def _nothing_in_common(before: Side, after: Side) -> str:
    modes = [", ".join(sorted({key.mode for key in side.cases})) for side in (before, after)]
    if modes[0] != modes[1] and all(modes):
        return f"nothing to compare: caches were {modes[0]} in one and {modes[1]} in the other"
    return "nothing to compare: no contestant was timed at one size, with one thread count, in both records"


def _references(before: Side, after: Side) -> list[str]:
    """Names that both records can be judged beside."""
    found = [{result.contestant for result in side.beside.values()} for side in (before, after)]
    return sorted({name if name.startswith("kernel:") else name.partition(":")[0] for name in found[0] & found[1]})


def _config(result: Result) -> str:
    config = result.facts.get("config")
    return " ".join(f"{name}={value}" for name, value in config.items()) if isinstance(config, Mapping) else "unknown"


def _plain(case: Case) -> dict[str, Any]:
    known = {name: value for name, value in asdict(case).items() if name not in ("key", "ratio")}
    return {**asdict(case.key), **known, "ratio": _interval(case.ratio)}


def _interval(ratio: Ratio) -> dict[str, float]:
    return {"value": ratio.value, "low": ratio.low, "high": ratio.high}
