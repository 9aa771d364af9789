"""Rewrite the facts that a shipped kernel states in its file: keys of a CUDA file's header, keyword arguments of
`cpu_kernel`.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from gemmlab.core.errors import UsageError
from gemmlab.kernels.catalog import SOURCE_SUFFIX

Fact = str | bool | None
_HEADER = re.compile(r"/\*[ \t]*gemmlab[ \t]*\n(.*?)\*/", re.DOTALL)


def restated(path: Path, facts: Mapping[str, Fact]) -> str:
    """Return the text of a shipped kernel's file with these facts by name; a fact that is `None` is removed.

    A fact that the file did not state follows `after`. The file itself is not changed. Raises `UsageError` for a file
    without statements.
    """
    text = path.read_text(encoding="utf-8")
    return _in_header(path, text, facts) if path.suffix == SOURCE_SUFFIX else _in_descriptor(path, text, facts)


def _in_header(path: Path, text: str, facts: Mapping[str, Fact]) -> str:
    header = _HEADER.search(text)
    if header is None:
        raise UsageError(f"{path}: no `/* gemmlab` comment")
    lines = header[1].splitlines()
    for key, value in facts.items():
        start, end = _statement(lines, key)
        if value is not None and start == end:
            start = end = _statement(lines, "after")[1]
        lines[start:end] = [] if value is None else [f"{key} = {json.dumps(value, ensure_ascii=False)}"]
    return text[: header.start(1)] + "\n".join(lines) + "\n" + text[header.end(1) :]


def _statement(lines: list[str], key: str) -> tuple[int, int]:
    """Return the index of the first line that states a key, and of the line after the last; equal if none does."""
    for start, line in enumerate(lines):
        if re.match(rf"{key}\s*=", line):
            for end in range(start + 1, len(lines) + 1):
                try:
                    tomllib.loads("\n".join(lines[start:end]))
                except tomllib.TOMLDecodeError:
                    continue
                return start, end
    return len(lines), len(lines)


def _in_descriptor(path: Path, text: str, facts: Mapping[str, Fact]) -> str:
    for key, value in facts.items():
        call = _descriptor(path, text)
        lines = text.splitlines(keepends=True)
        found = next((keyword for keyword in call.keywords if keyword.arg == key), None)
        line = (
            ""
            if value is None
            else f"    {key}={json.dumps(value, ensure_ascii=False) if value is not True else True},\n"
        )
        if found is not None:
            # Every keyword of a descriptor begins a line of its own.
            lines[found.lineno - 1 : found.value.end_lineno] = [line] if line else []
        elif line:
            after = next(keyword for keyword in call.keywords if keyword.arg == "after")
            lines.insert(after.value.end_lineno or after.lineno, line)
        text = "".join(lines)
    return text


def _descriptor(path: Path, text: str) -> ast.Call:
    for part in ast.parse(text).body:
        if isinstance(part, ast.Assign) and isinstance(part.value, ast.Call):
            targets = [target.id for target in part.targets if isinstance(target, ast.Name)]
            if targets == ["KERNEL"]:
                return part.value
    raise UsageError(f"{path}: no `KERNEL = cpu_kernel(...)`")
