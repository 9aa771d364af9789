"""CUDA C++ source as a compiler's tokens: without comments, strings and code that NVRTC never compiles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

_TOKEN = re.compile(
    r"""
      (?P<directive>^[ \t]*\#(?:\\\r?\n | //(?:\\\r?\n|[^\n])* | /\*.*?(?:\*/|\Z) | [^\n/\\] | [/\\])*)
    | (?P<space>[^\S\n]+ | \n | //(?:\\\n|[^\n])* | /\*.*?(?:\*/|\Z))
    | (?P<string>(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\(.*?\)(?P=fence)" | "(?:\\.|[^"\\\n])*"
        | '(?:\\.|[^'\\\n])*')
    | (?P<word>[A-Za-z_]\w* | \.?\d(?:[eEpP][+-]|[\w.'])*)
    | (?P<mark>::|.)
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL | re.ASCII,
)
_DIRECTIVE = re.compile(
    r"""
      (?P<directive>^[ \t]*\#(?:\\\r?\n | //(?:\\\r?\n|[^\n])* | /\*.*?(?:\*/|\Z) | [^\n/\\] | [/\\])*)
    | //(?:\\\n|[^\n])* | /\*.*?(?:\*/|\Z)
    | R"(?P<fence>[^()\\\s]{0,16})\(.*?\)(?P=fence)" | "(?:\\.|[^"\\\n])*" | \d['\w]* | '(?:\\.|[^'\\\n])*'
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL | re.ASCII,
)
"""A directive, or what may look like one within it: a comment or a literal."""
_COMMENT = re.compile(r"//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_CONDITION = re.compile(r"#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)", re.DOTALL)
_DEFINED = re.compile(r"(!?)\s*defined\s*\(?\s*(\w+)\s*\)?\Z")
CONDITIONS = ("#if", "#else", "#endif")
"""Tokens that stand for conditional directives whose condition only the compiler knows."""
_ALWAYS_DEFINED = ("__CUDACC_RTC__", "__CUDACC__", "__cplusplus")


class _Branch(Enum):
    """The present branch of a conditional directive."""

    COMPILED = 1
    SKIPPED = 2
    """Neither this branch nor one before it is compiled."""
    OVER = 3
    """A branch before it is compiled, so none after that is."""
    UNKNOWN = 4

    @staticmethod
    def of(truth: bool | None) -> _Branch:
        return _Branch.UNKNOWN if truth is None else _Branch.COMPILED if truth else _Branch.SKIPPED


@dataclass(frozen=True, slots=True)
class Token:
    """One word, mark or directive with its line, counted from 1. A string literal is `""`, whatever its text."""

    text: str
    line: int
    start: int = field(default=0, compare=False)
    """Offset of its first character in the text."""
    end: int = field(default=0, compare=False)
    """Offset of the character after its last one."""

    @property
    def is_name(self) -> bool:
        """True if it is an identifier or keyword."""
        return self.text[0].isalpha() or self.text[0] == "_"

    @property
    def is_directive(self) -> bool:
        """True if it is a whole directive, or one of `CONDITIONS`."""
        return len(self.text) > 1 and self.text[0] == "#"


def tokens(text: str) -> Iterator[Token]:
    """Yield the words and marks of `text` that may be compiled, in order, and `CONDITIONS` between them."""
    return (token for token in pieces(text) if not token.is_directive or token.text in CONDITIONS)


def pieces(text: str) -> Iterator[Token]:
    """Yield what `tokens` yields, and as one token each directive that may be compiled, such as `#define N 4` or
    `#include <mma.h>`; conditional ones (`#if` and its like) only as `tokens` does.
    """
    line = 1
    branches: list[_Branch] = []
    for found in _TOKEN.finditer(text):
        kind, written = found.lastgroup, found[0]
        if kind == "directive":
            directive = _COMMENT.sub(" ", written).strip()
            if _CONDITION.match(directive):
                yield from (Token(mark, line, *found.span()) for mark in _branch(directive, branches))
            elif _may_be_compiled(branches):
                yield Token(directive, line, *found.span())
        elif kind != "space" and _may_be_compiled(branches):
            yield Token('""' if kind in ("string", "fence") else written, line, *found.span())
        line += written.count("\n")


@lru_cache(maxsize=1024)
def directives(text: str) -> tuple[Token, ...]:
    """Return the directives among `pieces`, which takes a tenth of the time; their lines are 0."""
    found: list[Token] = []
    branches: list[_Branch] = []
    for match in _DIRECTIVE.finditer(text):
        if match.lastgroup == "directive":
            directive = _COMMENT.sub(" ", match[0]).strip()
            if _CONDITION.match(directive):
                for _ in _branch(directive, branches):
                    continue
            elif _may_be_compiled(branches):
                found.append(Token(directive, 0, *match.span()))
    return tuple(found)


def _may_be_compiled(branches: list[_Branch]) -> bool:
    return not {_Branch.SKIPPED, _Branch.OVER}.intersection(branches)


def _branch(directive: str, branches: list[_Branch]) -> Iterator[str]:
    """Yield the token of `CONDITIONS` for a conditional directive, if only the compiler knows the condition.

    `branches`, the present branch of each open `#if`, is updated.
    """
    match = _CONDITION.match(directive)
    if match is None:
        return
    word, rest = match[1], match[2].strip()
    if word.startswith("if"):
        branches.append(_Branch.of(_truth(word, rest)))
        if branches[-1] is _Branch.UNKNOWN:
            yield "#if"
    elif branches and word == "endif":
        if branches.pop() is _Branch.UNKNOWN:
            yield "#endif"
    elif branches:
        if branches[-1] is _Branch.UNKNOWN:
            yield "#else"
        elif branches[-1] is _Branch.SKIPPED:
            branch = _Branch.of(word == "else" or _truth("if", rest))
            branches[-1] = branch
            if branch is _Branch.UNKNOWN:
                yield "#if"
        else:
            branches[-1] = _Branch.OVER


def _truth(word: str, rest: str) -> bool | None:
    if word == "if":
        if rest in ("0", "1"):
            return rest == "1"
        match = _DEFINED.match(rest)
        if match is None or match[2] not in _ALWAYS_DEFINED:
            return None
        return not match[1]
    return (word == "ifdef") if rest in _ALWAYS_DEFINED else None
