"""Errors of wgmma groups in PTX: groups that are never closed, and registers that are used while still in flight.

These are registers of a result that are used, and registers of A that are written. The machine code does not show them,
because ptxas closes groups before waits, and inserts missing waits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from gemmlab.emulator.ptx_flow import Statement, flow_of, states_before
from gemmlab.emulator.ptx_warpgroups import NAME, WRITE
from gemmlab.sass.gmma_lines import MULTIPLY

_Key = TypeVar("_Key")
_Value = TypeVar("_Value", int, tuple[int, int])
OLDEST = 32
"""Largest number of groups closed since an issue that is counted; more count as this many."""
_CALL = re.compile(r"(?:@!?%\w+\s+)?call\b")
_COMMIT, _WAIT = re.compile(r"\bwgmma\.commit_group\b"), re.compile(r"\bwgmma\.wait_group\S*\s+(\d+)")


@dataclass(frozen=True, slots=True)
class Open:
    """PTX line numbers of a wait, and of a multiplication before it whose group no `wgmma.commit_group` closes."""

    wait: int
    multiplication: int


@dataclass(frozen=True, slots=True)
class InFlight:
    """PTX line numbers of a statement, and of a multiplication in flight whose registers it touches."""

    use: int
    multiplication: int
    wait: int
    """Line of the latest wait between the multiplication and the use; 0 if there is none."""
    left: int
    """Number of groups that this wait leaves in flight."""
    closed: int
    """Number of groups closed between the multiplication and the use, its own group included, or `OLDEST` if more."""
    writes_input: bool = False
    """True if the statement writes a register of A; false if it uses the result."""


@dataclass(frozen=True, slots=True)
class _State:
    ages: Mapping[int, int] = field(default_factory=dict)
    """Line of a multiplication in flight -> groups closed since its issue; 0 while its own group is open."""
    results: Mapping[str, int] = field(default_factory=dict)
    """Name of a register -> line of the multiplication whose result it may contain."""
    inputs: Mapping[str, int] = field(default_factory=dict)
    """Name of a register -> line of the last multiplication that reads A from it."""
    waits: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Line of a multiplication -> (line of the last wait after it, groups that the wait leaves in flight)."""

    def joined(self, other: _State) -> _State:
        ages = dict(other.ages)
        for line, age in self.ages.items():
            ages[line] = min(age, ages.get(line, age))
        results, inputs = _greater(self.results, other.results), _greater(self.inputs, other.inputs)
        return _State(ages, results, inputs, _greater(self.waits, other.waits))


def _greater(one: Mapping[_Key, _Value], two: Mapping[_Key, _Value]) -> dict[_Key, _Value]:
    found = dict(one)
    for name, value in two.items():
        found[name] = max(found.get(name, value), value)
    return found


@dataclass(frozen=True, slots=True)
class Groups:
    """The errors of a function's wgmma groups."""

    open: tuple[Open, ...]
    in_flight: tuple[InFlight, ...]
    multiplications: frozenset[int]
    """PTX line numbers of the multiplications."""
    flying: Mapping[int, int]
    """Line of a reachable statement -> line of the last multiplication that may be in flight before it; 0 if none."""

    def statement(self, line: int) -> int:
        """Return the PTX line where the reachable statement at or before a line begins; 0 if there is none."""
        return max((begun for begun in self.flying if begun <= line), default=0)


def groups_of(ptx: str, function: str) -> Groups:
    """Return the errors of a function's wgmma groups, in textual order.

    If the function calls others, groups that are never closed are not reported, because a called function may close
    them.
    """
    statements = flow_of(ptx, function)
    widths = {each.number: len(_registers(found)[0]) for each in statements if (found := MULTIPLY.search(each.text))}
    unclosed, uses = [], []
    flying: dict[int, int] = {}
    for statement, state in states_before(statements, _State(), _after, _State.joined):
        flying[statement.number] = max(state.ages, default=0)
        if _WAIT.search(statement.text):
            late = [line for line, age in state.ages.items() if age == 0]
            unclosed += [Open(statement.number, max(late))] if late else []
        for writes_input, lines in enumerate((_used(statement, state, widths), _overwritten(statement, state))):
            for line in lines:
                wait = state.waits.get(line, (0, 0))
                uses.append(InFlight(statement.number, line, *wait, state.ages[line], bool(writes_input)))
    calls = any(_CALL.match(statement.text) for statement in statements)
    return Groups(() if calls else tuple(unclosed), tuple(uses), frozenset(widths), flying)


def _after(state: _State, statement: Statement) -> _State:
    text, line = statement.text, statement.number
    multiplication, wait = MULTIPLY.search(text), _WAIT.search(text)
    if multiplication:
        target, left = _registers(multiplication)
        inputs = {**state.inputs, **dict.fromkeys(left, line)}
        waits = {each: at for each, at in state.waits.items() if each != line}
        return _State({**state.ages, line: 0}, {**state.results, **dict.fromkeys(target, line)}, inputs, waits)
    if _COMMIT.search(text):
        return replace(state, ages={each: min(age + 1, OLDEST) for each, age in state.ages.items()})
    if wait:
        ages = {each: age for each, age in state.ages.items() if age <= int(wait[1])}
        return replace(state, ages=ages, waits={**state.waits, **dict.fromkeys(ages, (line, int(wait[1])))})
    match = WRITE.match(text)
    if match is None:
        return state
    targets, sources = NAME.findall(match[3]), NAME.findall(match[4])
    results = {name: by for name, by in state.results.items() if name not in targets}
    if match[1] == "mov" and sources and sources[0] in state.results:
        # A register with a copy of a result counts as a register of the result.
        results |= dict.fromkeys(targets, state.results[sources[0]])
    return replace(state, results=results)


def _registers(multiplication: re.Match[str]) -> tuple[list[str], list[str]]:
    """Return the names of the registers of the result, and of A; none of A if it is in shared memory."""
    return NAME.findall(multiplication[1]), NAME.findall(multiplication[2] or "")


def _used(statement: Statement, state: _State, widths: Mapping[int, int]) -> list[int]:
    """Return the lines of the multiplications in flight whose results a statement uses.

    Copies do not count; nor does a multiplication that adds to a result of as many registers (`widths`, by line).
    """
    text = statement.text
    multiplication = MULTIPLY.search(text)
    if multiplication:
        target, left = _registers(multiplication)
        lines = {state.results[name] for name in left if name in state.results}
        added = {state.results[name] for name in target if name in state.results}
        lines |= {line for line in added if widths[line] != len(target)}
        return sorted(line for line in lines if line in state.ages)
    if "wgmma." in text or (text.split() or [""])[0].startswith("mov."):
        return []
    used = {state.results[name] for name in NAME.findall(text) if name in state.results}
    return sorted(line for line in used if line in state.ages)


def _overwritten(statement: Statement, state: _State) -> list[int]:
    """Return the lines of the multiplications in flight that read A from registers that a statement writes.

    Copies do not count, because the compiler places them anywhere; nor do multiplications.
    """
    match = WRITE.match(statement.text)
    if match is None or match[1] in {"mov", "wgmma"}:
        return []
    lines = {state.inputs[name] for name in NAME.findall(match[3]) if name in state.inputs}
    return sorted(line for line in lines if line in state.ages)
