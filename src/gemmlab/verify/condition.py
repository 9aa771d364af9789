"""A property of problems that a kernel needs, in words and as a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gemmlab.kernels.names import shown


@dataclass(frozen=True, slots=True)
class Condition:
    """A property that a problem needs for a kernel to be right: a text, and a function of the problem."""

    text: str
    """The property in words, such as `K % 16 == 0`."""
    holds: Callable[[Any], bool]
    ragged: bool = False
    """True if it is about extents or rows that are no multiples of a tile."""
    of_rows: bool = False
    """True if it is about the distance from a row to the next."""
    of_addresses: bool = False
    """True if it is about the addresses of arrays. A problem does not have them, so `holds` is always true."""
    opposite: str = ""
    """The property of the problems that fail, such as `K % 8 == 3`, if it is simpler than `text`; else empty."""
    packed: str = ""
    """The operand whose rows must lie without gaps, if it is about that."""
    either: tuple[Condition, ...] = ()
    """The properties of which one suffices, if the condition is made of several."""


def contradicted(conditions: Sequence[Condition], failing: Sequence[Any]) -> bool:
    """Return whether one of the failing problems fulfils all conditions. False if a condition is about addresses."""
    if any(condition.of_addresses for condition in conditions):
        return False
    return any(all(condition.holds(problem) for condition in conditions) for problem in failing)


def of_remainders(name: str, multiple: int, right: Sequence[int]) -> Condition:
    """Return the condition that extent `name` modulo `multiple` is one of `right`, with the least divisor for it."""
    rests = frozenset(right)
    for each in range(1, multiple):
        if multiple % each == 0 and all((rest % each in rests) == (rest in rests) for rest in range(multiple)):
            multiple, rests = each, frozenset(rest for rest in rests if rest < each)
            break
    subject = f"{shown(name)} % {multiple} "
    listed, wrong = sorted(rests), [rest for rest in range(multiple) if rest not in rests]
    text, opposite = _one_of(subject, listed), ""
    if len(wrong) < len(listed):
        opposite = _one_of(subject, wrong)
        text = f"{subject}!= {wrong[0]}" if len(wrong) == 1 else f"{subject}is not {_alternatives(wrong)}"
    return Condition(text, lambda problem: getattr(problem, name) % multiple in rests, ragged=True, opposite=opposite)


def _one_of(subject: str, rests: Sequence[int]) -> str:
    return f"{subject}== {rests[0]}" if len(rests) == 1 else f"{subject}is {_alternatives(rests)}"


def _alternatives(rests: Sequence[int]) -> str:
    return " or ".join(map(str, rests))
