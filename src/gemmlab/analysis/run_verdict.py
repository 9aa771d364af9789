"""The outcome of an explained run in one line: whether it was right, and what limits it."""

from __future__ import annotations

from gemmlab.analysis.explanation import Explanation
from gemmlab.analysis.subject import Subject
from gemmlab.core.race_causes import leading_kind
from gemmlab.core.words import counted


def run_verdict(explained: Explanation) -> str:
    """Return the verdict: `"Right at 256x256x256. Bound by L1: at most 8,299 GFLOP/s."`.

    If there are hazards, it begins with their number and the first one of the kind that causes the others
    (`leading_kind`), followed by whether results are right all the same; else with "Wrong" for wrong results. A launch
    of any code has no reference, so its results are not judged.
    """
    subject, roofline = explained.subject, explained.roofline
    if subject.hazards:
        kind = leading_kind([subject.hazards], subject.hazards[0].kind)
        first = next((hazard for hazard in subject.hazards if hazard.kind == kind), subject.hazards[0])
        outcome = f"{counted(len(subject.hazards), 'hazard')}, the first one {first.kind}"
        outcome += f" at {first.place}" if first.line else ""
        outcome += f"; {_result_words(subject)}" if subject.kernel is not None else ""
    elif subject.kernel is None:
        outcome = "No hazard in this launch; its results were not compared with anything"
    else:
        outcome = f"Wrong at {subject.size.label}" if subject.wrong else f"Right at {subject.size.label}"
    return f"{outcome}. Bound by {roofline.bound_by}: at most {roofline.bound:,.0f} {subject.unit}."


def _result_words(subject: Subject) -> str:
    size = subject.size.label
    return f"results are wrong at {size}" if subject.wrong else f"the results are right at {size} all the same"
