"""One plain verdict on a kernel that failed: what kind of fault it has, and where."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmlab.core.hazard import BARRIER, RACE, TWO_WRITES, Hazard
from gemmlab.kernels.claims import demand
from gemmlab.verify.condition import Condition, contradicted
from gemmlab.verify.missing_barrier import lines_of, missing_barriers
from gemmlab.verify.race_causes import (
    Place,
    barrier_words,
    declared_as,
    faulty_barrier,
    leading_kind,
    same_element,
)

PASSED = "pass"
SOLVED = "solved"
"""An exercise that passes."""
STOPPED = "stopped"
UNEXPECTED = "not as expected"
OVERFLOW = "index overflow"
EDGES = "wrong at edges"
EVERYWHERE = "wrong everywhere"
SOMEWHERE = "wrong"
WRITES = "writes outside"
_ROWS: Mapping[str, tuple[str, str]] = {"a": ("M", "K"), "b": ("K", "N"), "c": ("M", "M")}
"""The number of rows of an operand as it is stored, and of its transpose."""
_RARE = 4
"""A kernel is called wrong everywhere if it fails at least this many cases for each case that it passes."""
_SPOKEN = frozenset({"mbarrier", "cluster", "async copy", "proxy", "tensor map"})
_INSTRUCTION = re.compile(r" \([A-Z][\w.]*\)$")
_ONLY = "at ragged edges only: "


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
        claim = faults.claims[0]
        return Verdict(UNEXPECTED, f"the results are right; {demand(claim)} something else: {claim}")
    return Verdict(SOMEWHERE, next(iter(faults.others), ""))


def _near(faults: Faults, conditions: Sequence[Condition] | None, *, probed: bool) -> Verdict | None:
    """Return the verdict, rows far apart and the file's statements aside; `None` if nothing else is wrong."""
    kinds = Counter(kind for case in faults.hazards for kind in dict.fromkeys(hazard.kind for hazard in case))
    if kinds:
        kind = leading_kind(faults.hazards, kinds.most_common(1)[0][0])
        every = [hazard for case in faults.hazards for hazard in case]
        edges = _edges(faults, conditions) if probed and kind != RACE else ""
        if kind == RACE:
            text = _race(faults)
        elif kind == BARRIER and (place := faulty_barrier(every)) is not None:
            text = _barrier(place, every)
        else:
            first = next(hazard for hazard in every if hazard.kind == kind)
            text = _of_hazard(first) + declared_as(first) + _headline(first)
        return Verdict(kind, "; ".join(filter(None, [text, edges, _results(faults)])))
    if faults.outside and not faults.wrong:
        edges = _edges(faults, conditions) if probed else ""
        return Verdict(WRITES, "; ".join(filter(None, [faults.outside[0], edges])))
    if faults.wrong:
        return _wrong(faults, conditions, probed=probed)
    return None


def _wrong(faults: Faults, conditions: Sequence[Condition] | None, *, probed: bool) -> Verdict:
    first = faults.wrong[0].label
    if probed and conditions is None and _hardly_any_passes(faults):
        return Verdict(EVERYWHERE, f"at whole tiles, too; the smallest case is {first}")
    edges = _edges(faults, conditions) if probed else ""
    if not edges or not conditions:
        return Verdict(SOMEWHERE, f"{len(faults.wrong)} of {faults.cases} cases, the first one {first}")
    if all(condition.ragged for condition in conditions):
        return Verdict(EDGES, edges.removeprefix(_ONLY))
    return Verdict(SOMEWHERE, edges)


def _hardly_any_passes(faults: Faults) -> bool:
    """Return whether nearly all cases fail, not counting passing ones with an extent of 0: they have no products."""
    full = [problem for problem in faults.passing if all(getattr(problem, name, 1) for name in "mnk")]
    return _RARE * len(full) <= len(faults.failing)


def _edges(faults: Faults, conditions: Sequence[Condition] | None) -> str:
    """Return `passes where K % 16 == 0`, or `fails where K % 8 == 3`.

    Empty without conditions, or if a failing case fulfils them.
    """
    if not conditions or contradicted(conditions, faults.failing):
        return ""
    only = _ONLY if all(condition.ragged for condition in conditions) else ""
    if len(conditions) == 1 and conditions[0].opposite:
        return f"{only}fails where {conditions[0].opposite}"
    return f"{only}passes where {' and '.join(condition.text for condition in conditions)}"


def _of_hazard(hazard: Hazard) -> str:
    return f"{hazard.array} at {hazard.place}" if hazard.array else hazard.place


def _headline(hazard: Hazard) -> str:
    """Return the first clause of the message of a hazard of asynchronous operations; `""` for others, whose kind and
    place suffice.
    """
    if hazard.kind not in _SPOKEN:
        return ""
    return f": {_INSTRUCTION.sub('', hazard.message.partition('; ')[0])}"


def _barrier(place: Place, hazards: Sequence[Hazard]) -> str:
    """Return a sentence on the barrier that not all threads reach, and the arrays that race because of it."""
    races = _arrays([hazard for hazard in hazards if hazard.kind == RACE])
    follows = f"; {races} race because of that" if races else ""
    return f"not all threads reach {barrier_words(place)}: it stands under a condition, or in divergent code{follows}"


def _arrays(hazards: Sequence[Hazard]) -> str:
    return " and ".join(dict.fromkeys(hazard.array for hazard in hazards if hazard.array))


def _race(faults: Faults) -> str:
    """Return a sentence on the arrays that race in one case, with the cause: a missing barrier or two writes."""
    races = next(found for case in faults.hazards if (found := [one for one in case if one.kind == RACE]))
    arrays = _arrays(races) or f"{races[0].space} memory".lstrip()
    every = (one for case in faults.hazards for one in case)
    barrier = missing_barriers(every).get(lines_of(races[0]), "")
    file = Path(races[0].file).name
    missing = f"; missing in {file}: {barrier}" if barrier else ""
    # Where the kernel reads the element first, for beta, the read races too; the second writer is the cause of both.
    writes = next((one for one in races if TWO_WRITES in one.message), None)
    if writes is not None:
        return f"{writes.array or arrays}, at {Path(writes.file).name}:{writes.line}: {TWO_WRITES}"
    # An index that goes too far may make other arrays race as well, and before this one.
    for one in (one for case in faults.hazards for one in case):
        if twice := same_element(one):
            return f"{one.array or arrays}, at {Path(one.file).name}:{one.line}: {twice}"
    return f"{arrays}, at {races[0].place}, accessed without an order{missing}"


def _results(faults: Faults) -> str:
    return "" if faults.wrong else "the results are right all the same"


def _overflow(far: Sequence[tuple[str, Any, Sequence[Hazard]]]) -> str:
    parts, conditions = [], list[str]()
    for name, problem, hazards in far:
        line = next((f" ({_of_hazard(hazard).rpartition(' at ')[2]})" for hazard in hazards if hazard.line), "")
        parts.append(f"the offset of a row of {name.upper()}, row * ld{name}, is computed in 32 bits{line}")
        rows = _ROWS[name][bool(getattr(problem, f"trans_{name}", 0))]
        conditions.append(f'"{rows} * ld{name} < 2**31"')
    cure = f"make one factor 64 bits wide, as static_cast<long long>(row) * ld{far[0][0]}"
    such = "such matrix" if len(parts) == 1 else "such matrices"
    return f"{'; '.join(parts)}: {cure}, or say that it takes no {such}: require = [{', '.join(conditions)}]"
