"""The lines of a source that index an operand without its leading dimension."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gemmlab.core.hazard_source import source_text
from gemmlab.core.source_loops import without_comments
from gemmlab.verify.condition import Condition

_CUDA = (".cu", ".cuh")


def with_lines(conditions: Sequence[Condition] | None, path: Path) -> Sequence[Condition] | None:
    """Return the conditions; one that an operand's rows must lie without gaps gets the lines of `lines_without`.

    `path` is the kernel's file; if it is not CUDA, or there are no such lines, nothing is changed. `None` stays `None`.
    """
    if conditions is None or path.suffix not in _CUDA:
        return conditions
    text = without_comments(source_text(str(path)))
    return [_with_line(condition, text, path.name) for condition in conditions]


def _with_line(condition: Condition, text: str, file: str) -> Condition:
    found = lines_without(text, condition.packed) if condition.packed else []
    if not found:
        return condition
    places = " and ".join(f"{file}:{line}" for line in found)
    name, verb = condition.packed, "index" if len(found) > 1 else "indexes"
    return replace(condition, text=f"{condition.text} ({places} {verb} {name.upper()} without ld{name})")


def lines_without(text: str, operand: str) -> list[int]:
    """Return the numbers of the lines, from 1 on, that index an operand by a product without its leading dimension.

    `text` has no comments. If there is no such line the fault is elsewhere, as in a pointer that was moved before.
    """
    subscript = re.compile(rf"\b{operand.upper()}\s*\[")
    found = []
    for start in subscript.finditer(text):
        depth, end = 1, start.end()
        while depth and end < len(text):
            depth += (text[end] == "[") - (text[end] == "]")
            end += 1
        index = text[start.end() : end - 1]
        if "*" in index and not re.search(rf"\bld{operand}\b", index):
            found.append(text.count("\n", 0, start.start()) + 1)
    return list(dict.fromkeys(found))
