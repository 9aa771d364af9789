"""The `__global__` functions of a CUDA source file: their template parameters and arguments, read from the text.

This is no compiler: it reads the usual forms of such definitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gemmlab.kernels.cuda_file.tokens import Token, tokens

_ATTRIBUTES = frozenset(
    ("__launch_bounds__", "__maxnreg__", "__cluster_dims__", "__block_size__", "__attribute__", "__declspec", "alignas")
)
_QUALIFIERS = frozenset(("const", "volatile", "__restrict__", "__restrict", "restrict", "__grid_constant__", "struct"))
_OPEN, _CLOSE = "(<[{", ")>]}"


@dataclass(frozen=True, slots=True)
class TemplateParameter:
    """One parameter of a function template."""

    type: str
    """The parameter's type, as `"int"` or `"bool"`; `"typename"` or `"class"` if the parameter stands for a type."""
    name: str
    default: bool
    """True if the template states a default value."""

    @property
    def is_type(self) -> bool:
        """True if it stands for a type."""
        return self.type in ("typename", "class")


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a kernel. `type` is without qualifiers, as `"int"`, `"float*"` or `"unsigned long long"`."""

    type: str
    name: str

    @property
    def is_pointer(self) -> bool:
        """True if it takes an address."""
        return self.type.endswith("*")

    def __str__(self) -> str:
        return f"{self.type} {self.name}".strip()


@dataclass(frozen=True, slots=True)
class Signature:
    """One kernel as its definition states it; `line` is that of its name, counted from 1."""

    name: str
    """The name qualified by its namespaces, `"mine::sgemm"`."""
    template: tuple[TemplateParameter, ...]
    args: tuple[Argument, ...]
    line: int

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.args))})"


def signatures(text: str) -> list[Signature]:
    """Return every kernel that `text` defines, in order; those of equal name and arguments once.

    Declarations without a body are no definitions.
    """
    found: dict[tuple[str, tuple[Argument, ...]], Signature] = {}
    for head, scope in _heads(text):
        if any(token.text == "__global__" for token in head):
            signature = _signature(head, scope)
            if signature is not None:
                found.setdefault((signature.name, signature.args), signature)
    return list(found.values())


def _heads(text: str) -> Iterator[tuple[list[Token], str]]:
    """Yield the text before each `{` outside of functions and classes, with the namespaces that it is in."""
    scopes: list[str | None] = []
    """For each open brace the prefix that a namespace adds to names; `None` if no kernel can be defined within it."""
    head: list[Token] = []
    saved: list[tuple[list[str | None], list[Token]]] = []
    for token in tokens(text):
        match token.text:
            case "#if":
                saved.append((scopes.copy(), head.copy()))
            case "#else" if saved:
                scopes, head = saved[-1][0].copy(), saved[-1][1].copy()
            case "#endif" if saved:
                saved.pop()
            case "{":
                if None in scopes:
                    scopes.append(None)
                    continue
                yield head, "".join(scope or "" for scope in scopes)
                scopes.append(_scope(head))
                head = []
            case "}":
                if scopes:
                    scopes.pop()
                head = []
            case ";" if None not in scopes:
                head = []
            case _ if None not in scopes:
                head.append(token)


def _scope(head: Sequence[Token]) -> str | None:
    words = [token.text for token in head]
    if "namespace" in words:
        return "".join(f"{word}::" for word in words[words.index("namespace") + 1 :] if word != "::")
    return "" if words == ["extern", '""'] else None


def _signature(head: list[Token], scope: str) -> Signature | None:
    start, template = 0, list[TemplateParameter]()
    words = [token.text for token in head]
    while words[start : start + 2] == ["template", "<"]:
        end = _closing(words, start + 1)
        template += [_template_parameter(part) for part in _parts(words[start + 2 : end])]
        start = end + 1
    at = start
    while at + 1 < len(words):
        if words[at + 1] == "(" and head[at].is_name:
            end = _closing(words, at + 1)
            if words[at] not in _ATTRIBUTES:
                args = [_argument(part) for part in _parts(words[at + 2 : end])]
                parameters = tuple(argument for argument in args if argument.type != "void")
                return Signature(scope + words[at], tuple(template), parameters, head[at].line)
            at = end
        at += 1
    return None


def _closing(words: Sequence[str], start: int) -> int:
    """Return the index of the bracket that closes the one at `start`, or the number of words if none does.

    Within parentheses, square brackets and braces, `<` and `>` are comparisons.
    """
    opened: list[str] = []
    for index in range(start, len(words)):
        word = words[index]
        if word in ("(", "[", "{") or (word == "<" and opened[-1:] in ([], ["<"])):
            opened.append(word)
        elif word in (")", "]", "}") or (word == ">" and opened[-1:] == ["<"]):
            while opened and opened[-1] != _OPEN[_CLOSE.index(word)]:
                opened.pop()
            opened[-1:] = []
            if not opened:
                return index
    return len(words)


def _parts(words: Sequence[str]) -> list[list[str]]:
    """Return the words between commas that are outside of brackets; a default after `=` belongs to its part."""
    parts: list[list[str]] = [[]]
    index = 0
    while index < len(words):
        if words[index] == ",":
            parts.append([])
        elif words[index] in _OPEN:
            end = _closing(words, index)
            parts[-1] += words[index : end + 1]
            index = end
        else:
            parts[-1].append(words[index])
        index += 1
    return [part for part in parts if part]


def _template_parameter(words: list[str]) -> TemplateParameter:
    stated = words[: words.index("=")] if "=" in words else words
    named = len(stated) > 1
    kind = [word for word in (stated[:-1] if named else stated) if word not in _QUALIFIERS]
    return TemplateParameter(" ".join(kind), stated[-1] if named else "", len(stated) < len(words))


def _argument(words: list[str]) -> Argument:
    stated = [
        word
        for word in (words[: words.index("=")] if "=" in words else words)
        if word not in {*_QUALIFIERS, "typename"}
    ]
    stars = stated.count("*")
    if "[" in stated:
        stated, stars = stated[: stated.index("[")], stars + 1
    stated = [word for word in stated if word not in ("*", "(", ")")]
    # `unsigned` alone is a type without a name; two words of a built-in type are no name either.
    named = len(stated) > 1 and stated[-1] not in ("int", "long", "char", "short", "double", "float", "unsigned")
    base, name = (stated[:-1], stated[-1]) if named else (stated, "")
    return Argument(type_text(base) + "*" * stars, name)


def type_text(words: Sequence[str]) -> str:
    """Return the words of a type as `Argument.type` has them: without qualifiers and `std::`."""
    typename = " ".join(word for word in words if word not in _QUALIFIERS)
    return typename.replace(" :: ", "::").removeprefix(":: ").removeprefix("std::")
