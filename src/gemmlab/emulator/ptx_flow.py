"""Control flow of a function's PTX: its statements, and the statements that may follow each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from gemmlab.emulator.ptx_scopes import Scopes
from gemmlab.toolchain.ptxas_log import body_of

_LABEL = re.compile(r"([$\w]+):(?!:)")
_BRANCH = re.compile(r"(@!?%?\w+\s+)?bra(?:\.uni)?\s+([$\w]+)\s*;")
_END = re.compile(r"(?:ret|exit|trap)\s*;")
_ASIDE = (".loc", ".pragma", ".file")
State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of PTX."""

    number: int
    """Number of the PTX line where the statement begins, from 1."""
    text: str
    after: tuple[int, ...]
    """Indices of the statements that may follow."""


def flow_of(ptx: str, function: str) -> list[Statement]:
    """Return a function's statements in textual order, without declarations and directives."""
    lines: list[tuple[int, str]] = []
    labels: dict[str, list[int]] = {}
    for number, text in _pieces(ptx, function):
        label = _LABEL.fullmatch(text)
        if label:
            labels.setdefault(label[1], []).append(len(lines))
        elif not text.startswith("."):
            lines.append((number, text))
    found = []
    for index, (number, text) in enumerate(lines):
        branch = _BRANCH.match(text)
        onward = () if _END.match(text) or (branch and not branch[1]) else (index + 1,)
        # Inline assembly may use one name for several labels, each within its own braces. The nearest one is meant.
        places = sorted(labels.get(branch[2], ()) if branch else (), key=lambda place: abs(place - index))
        after = tuple(place for place in (*onward, *places[:1]) if place < len(lines))
        found.append(Statement(number, text, after))
    return found


def _pieces(ptx: str, function: str) -> Iterator[tuple[int, str]]:
    """Yield (number of the first line, text) of each label (`"$L_1:"`) and statement.

    A line of inline assembly may have several statements, and a statement may take several lines. Registers that
    braces within the body declare have names of their own.
    """
    pending, begun, scopes = "", 0, Scopes()
    for number, line in body_of(ptx, function):
        text = line.partition("//")[0]
        if text.lstrip().startswith(_ASIDE):
            continue
        for part in text.replace(";", ";\n").splitlines():
            rest = part if pending else _entered(part, scopes)
            while not pending and (label := _LABEL.match(rest)):
                yield number, label[0]
                rest = _entered(rest[label.end() :], scopes)
            begun = begun if pending else number
            pending = f"{pending} {rest}".strip()
            if pending.endswith(";"):
                yield begun, scopes.named_apart(pending)
                pending = ""


def _entered(text: str, scopes: Scopes) -> str:
    """Return a text without the braces that it begins with, which open and close scopes."""
    rest = text.lstrip(" \t{}")
    scopes.cross(text[: len(text) - len(rest)])
    return rest


def states_before(
    statements: list[Statement], start: State, step: Callable[[State, Statement], State],
    join: Callable[[State, State], State],
) -> Iterable[tuple[Statement, State]]:  # fmt: skip
    """Yield (statement, state before it) for each statement that can be reached: a forward analysis of data flow.

    `step` returns the state after a statement, `join` the state for two paths that meet. Joined states must not grow
    without limit.
    """
    before: dict[int, State] = {0: start} if statements else {}
    waiting = list(before)
    while waiting:
        place = waiting.pop()
        after = step(before[place], statements[place])
        for to in statements[place].after:
            new = after if to not in before else join(before[to], after)
            if to not in before or new != before[to]:
                before[to] = new
                waiting.append(to)
    for place in sorted(before):
        yield statements[place], before[place]
