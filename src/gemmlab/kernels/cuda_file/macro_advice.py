"""Advice for an expression of a header that uses a macro of the file, which the launch does not know."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gemmlab.core.errors import UsageError
from gemmlab.core.expr import Expression


def require_no_macro(text: str, expression: Expression, known: Iterable[str]) -> None:
    """Raise `UsageError`, with what to write, if an expression has a name that is not `known` and a macro of a file's
    `text`.

    A macro that the file defines in any case can be no parameter: `#ifndef` lets it be one.
    """
    for name in sorted({*expression.names} - {*known}):
        found = re.search(rf"^[ \t]*#[ \t]*define[ \t]+{name}\b(?!\()[ \t]*(.*)", text, re.MULTILINE)
        if found is None:
            continue
        value = found[1].partition("//")[0].partition("/*")[0].strip().strip("()")
        number = value if value.isdecimal() else "1"
        write = f"write {number}, or " if value.isdecimal() else ""
        guard = "" if re.search(rf"#[ \t]*ifndef[ \t]+{name}\b", text) else f"`#ifndef {name}` before its #define and "
        raise UsageError(
            f"expression {expression.text!r}: {name} is a macro of the file, which the launch does not know: "
            f"{write}state it as a parameter, with {guard}`params = {{ {name} = {number} }}` in the header"
        )
