"""One plain verdict on a kernel that failed: what kind of fault it has, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gemmlab.core.hazard import RACE, Hazard
from gemmlab.core.race_causes import leading_kind
from gemmlab.kernels.claims import OF_EXERCISE
from gemmlab.verify.condition import Condition, contradicted
from gemmlab.verify.hazard_sentences import alignment_hint, sentence_on
from gemmlab.verify.nan_hint import NAN_BEFORE

PASSED = "pass"
SOLVED = "solved"
"""Kind of the verdict on an exercise that passes."""
STOPPED = "stopped"
UNEXPECTED = "not as expected"
OVERFLOW = "index overflow"
EDGES = "wrong at edges"
ROWS = "wrong at unaligned rows"
EVERYWHERE = "wrong everywhere"
SOMEWHERE = "wrong"
WRITES = "writes outside"
OF_RESULTS = frozenset({PASSED, SOLVED, STOPPED, UNEXPECTED, OVERFLOW, EDGES, ROWS, EVERYWHERE, SOMEWHERE})
"""Kinds of verdicts on results and figures; every other kind is a forbidden access, or another hazard."""
_ROWS: Mapping[str, tuple[str, str]] = {"a": ("M", "K"), "b": ("K", "N"), "c": ("M", "M")}
"""Operand -> extent that is its number of stored rows if the problem does not transpose it, and if it does."""
_RARE = 4
"""A kernel is called wrong everywhere if it fails at least this many cases for each case that it passes."""
_ONLY = {EDGES: "at ragged edges only: ", ROWS: "at unaligned rows only: ", SOMEWHERE: ""}
"""Kind of the verdict on wrong results -> the words before conditions of that kind in a verdict on another fault."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The kind of fault in a word or two, and a sentence on it, which may be empty."""

    kind: str
    text: str

    def __str__(self) -> str:
        """Return kind and sentence."""
        return f"{self.kind.upper()}: {self.text}" if self.text else self.kind.upper()


@dataclass(frozen=True, slots=True)
class Faults:
    """Everything that a verdict is made of."""

    cases: int
    wrong: Sequence[Any]
    """The problems with wrong results."""
    failing: Sequence[Any]
    """The problems with wrong results, forbidden writes or hazards."""
    passing: Sequence[Any]
    """The problems at which nothing was wrong."""
    outside: Sequence[str]
    """A sentence for each place with a forbidden write (`Violation`)."""
    hazards: Sequence[Sequence[Hazard]]
    """The hazards of each failing case."""
    far: Sequence[tuple[str, Any, Sequence[Hazard]]]
    """For each failing case with rows far apart (`far_rows`): the operand, the problem and the hazards."""
    claims: Sequence[str]
    """Statements of the kernel's file that do not hold."""
    others: Sequence[str]
    """Sentences about faults of other kinds."""


def verdict_of(faults: Faults, conditions: Sequence[Condition] | None, *, probed: bool) -> Verdict:
    """Return the verdict on a kernel that failed. `conditions` is the result of `passes_where`; `probed` is False if
    that was not run.
    """
    found = _near(faults, conditions, probed=probed)
    if found is not None:
        overflow = f"index overflow: {_overflow(faults.far)}" if faults.far else ""
        return Verdict(found.kind, "; ".join(filter(None, [found.text, overflow])))
    if faults.far:
        return Verdict(OVERFLOW, _overflow(faults.far))
    if faults.claims:
        return Verdict(UNEXPECTED, f"the results are right; {_not_as_expected(faults.claims[0])}")
    return Verdict(SOMEWHERE, next(iter(faults.others), ""))


def _not_as_expected(claim: str) -> str:
    """Return the claim of a kernel's file that does not hold, or the exercise, whose criteria the report lists."""
    if claim.startswith(OF_EXERCISE):
        return unsolved(claim.removeprefix(OF_EXERCISE).partition(":")[0])
    return f"its file expects something else: {claim}"


def unsolved(exercise: str) -> str:
    """Return the words for an exercise of which a criterion is not met."""
    return f"exercise {exercise} is not solved"


def _near(faults: Faults, conditions: Sequence[Condition] | None, *, probed: bool) -> Verdict | None:
    """Return the verdict, rows far apart and the file's statements aside; `None` if nothing else is wrong."""
    kinds = Counter(kind for case in faults.hazards for kind in dict.fromkeys(hazard.kind for hazard in case))
    if kinds:
        kind = leading_kind(faults.hazards, kinds.most_common(1)[0][0])
        edges = _edges(faults, conditions) if probed and kind != RACE else ""
        key = "" if "align = " in edges else alignment_hint(faults.hazards)
        parts = [sentence_on(kind, faults.hazards), edges, key, _results(faults)]
        return Verdict(kind, "; ".join(filter(None, parts)))
    if faults.outside and not faults.wrong:
        edges = _edges(faults, conditions) if probed else ""
        return Verdict(WRITES, "; ".join(filter(None, [faults.outside[0], edges])))
    if faults.wrong:
        return _wrong(faults, conditions, probed=probed)
    return None


def _wrong(faults: Faults, conditions: Sequence[Condition] | None, *, probed: bool) -> Verdict:
    first = faults.wrong[0].label
    if probed and conditions is None and _hardly_any_passes(faults):
        return Verdict(EVERYWHERE, f"at whole tiles, too; the smallest case is {first}{_nan_everywhere(faults)}")
    needed = _needed(faults, conditions) if probed else ""
    if not needed or not conditions:
        cases = f"{len(faults.wrong)} of {faults.cases} cases, the first one {first}"
        return Verdict(SOMEWHERE, f"{cases}{_nan_everywhere(faults)}")
    kind = _kind_of(conditions)
    if kind != SOMEWHERE:
        return Verdict(kind, needed)
    return Verdict(kind, "; ".join(filter(None, [needed, _nan_read(faults, conditions)])))


def _nan_everywhere(faults: Faults) -> str:
    """Return `; ` and what held NaN before the call, if that is the cause in every wrong case; else empty."""
    hints = [other.partition("; ")[0] for other in faults.others if NAN_BEFORE in other]
    return f"; {hints[0]}" if len(hints) >= len(faults.wrong) else ""


def _nan_read(faults: Faults, conditions: Sequence[Condition]) -> str:
    """Return what held NaN, for a kernel that is wrong where a factor is 0; empty if nothing did."""
    of_zero = any(condition.text.endswith("!= 0") for condition in conditions)
    hints = (other.partition("; ")[0] for other in faults.others if NAN_BEFORE in other)
    return next(hints, "") if of_zero else ""


def _hardly_any_passes(faults: Faults) -> bool:
    """Return whether nearly all cases fail, not counting passing ones with an extent of 0: they have no products."""
    full = [problem for problem in faults.passing if all(getattr(problem, name, 1) for name in "mnk")]
    return _RARE * len(full) <= len(faults.failing)


def _edges(faults: Faults, conditions: Sequence[Condition] | None) -> str:
    """Return the sentence of `_needed`; before it stands whether the fault is at edges or unaligned rows only."""
    needed = _needed(faults, conditions)
    return f"{_ONLY[_kind_of(conditions)]}{needed}" if needed and conditions else ""


def _needed(faults: Faults, conditions: Sequence[Condition] | None) -> str:
    """Return `passes where K % 16 == 0`, or `fails where K % 8 == 3`.

    Empty without conditions, or if a failing case fulfils them.
    """
    if not conditions or contradicted(conditions, faults.failing):
        return ""
    if len(conditions) == 1 and conditions[0].opposite:
        return f"fails where {conditions[0].opposite}"
    return f"passes where {' and '.join(condition.text for condition in conditions)}"


def _kind_of(conditions: Sequence[Condition]) -> str:
    """Return the kind of the verdict on results that are right under the conditions."""
    if all(condition.of_rows or condition.of_addresses for condition in conditions):
        return ROWS
    return EDGES if all(condition.ragged for condition in conditions) else SOMEWHERE


def _results(faults: Faults) -> str:
    return "" if faults.wrong else "the results are right all the same"


def _overflow(far: Sequence[tuple[str, Any, Sequence[Hazard]]]) -> str:
    parts, conditions = [], list[str]()
    for name, problem, hazards in far:
        line = next((f" ({hazard.place})" for hazard in hazards if hazard.line), "")
        parts.append(f"the offset of a row of {name.upper()}, row * ld{name}, is computed in 32 bits{line}")
        rows = _ROWS[name][bool(getattr(problem, f"trans_{name}", 0))]
        conditions.append(f'"{rows} * ld{name} < 2**31"')
    cure = f"make one factor 64 bits wide, as static_cast<long long>(row) * ld{far[0][0]}"
    such = "such matrix" if len(parts) == 1 else "such matrices"
    return f"{'; '.join(parts)}: {cure}, or say that it takes no {such}: require = [{', '.join(conditions)}]"
