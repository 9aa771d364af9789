"""Compare the outputs that a contestant wrote to the shared operands with a reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gemmlab.ops.op import Contents, Expected
from gemmlab.timing.arena import Arena
from gemmlab.verify.elementwise import compare
from gemmlab.verify.nan_hint import explained


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict on one contestant's outputs for one problem."""

    right: bool
    error_ratio: float
    """The largest quotient of an element's error and its tolerance, over all outputs."""
    explanations: tuple[str, ...]
    """One text for every output that is wrong."""


def judge_outputs(arena: Arena, index: int, expected: Mapping[str, Expected], contents: Contents) -> Outcome:
    """Compare the current outputs of problem `index` with `expected`; `contents` are its operands before the call."""
    found = [
        compare(name, place.matrix(arena.memory), wanted, 1, place.operand.element)
        for name, wanted in expected.items()
        for place in [arena.placed[index][name]]
    ]
    wrong = tuple(explained(item.mismatch, contents) for item in found if item.mismatch is not None)
    return Outcome(not wrong, max(item.worst_ratio for item in found), wrong)
