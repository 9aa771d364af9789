"""The definitions and declarations of a CUDA file outside of functions and classes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise

from gemmlab.kernels.cuda_file.tokens import CONDITIONS, Token

_TYPE_KEYS = frozenset(("class", "struct", "union", "enum"))
_ATTRIBUTES = re.compile(r"__\w+|alignas|decltype|noexcept|explicit|requires|asm|static_assert|operator")
"""Words that may stand before a parenthesis, and are neither the name of a function nor of a macro that defines one."""
_KEYWORDS = frozenset((
    *_TYPE_KEYS, "typedef", "using", "const", "constexpr", "static", "inline", "extern", "unsigned", "signed", "int",
    "char", "short", "long", "bool", "float", "double", "void", "auto", "sizeof", "alignof", "static_cast", "typename",
    "template",
))  # fmt: skip
_DEFINE = re.compile(r"#\s*define\s+(\w+)(.*)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Item:
    """A definition or declaration outside of functions and classes."""

    tokens: Sequence[Token]
    kind: str
    """`"function"`, `"operator"`, `"type"`, `"constant"`, `"variable"`, `"macro"` (a call of a macro), `"assertion"`,
    `"directive"` (`using namespace`) or `"assembly"`.
    """
    names: frozenset[str]
    """The names that it defines; empty for a call of a macro, for an operator, and if it defines none."""

    @property
    def words(self) -> frozenset[str]:
        """All identifiers and keywords in it."""
        return frozenset(token.text for token in self.tokens if token.is_name)

    @property
    def calls(self) -> frozenset[str]:
        """The names in it, except for those that it defines, that are followed by `(` or `<`, or are an argument."""
        texts = ("", *(token.text for token in self.tokens))
        followed = zip(texts, self.tokens, texts[2:], strict=False)
        return frozenset(
            one.text for before, one, after in followed
            if one.is_name and (after in ("(", "<") or (before in ("(", ",", "<") and after in (")", ",", ">")))
        ) - self.names  # fmt: skip


def macros_of(found: Iterable[Token]) -> dict[str, frozenset[str]]:
    """Return, for each macro that the file defines, the names in its text, and `"{"`, `";"` and `"<<<"` if these occur
    in it.

    `found` are the file's tokens with directives. A macro that is defined more than once has the names of all texts.
    """
    macros: dict[str, frozenset[str]] = {}
    for token in found:
        if token.is_directive and (match := _DEFINE.match(token.text)):
            braces = frozenset(mark for mark in ("{", ";", "<<<") if mark in match[2])
            macros[match[1]] = macros.get(match[1], frozenset()) | frozenset(_NAME.findall(match[2])) | braces
    return macros


def expanded(words: frozenset[str], macros: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the words, and those in the texts of macros among them, and of macros in these texts."""
    whole, pending = set(words), [word for word in words if word in macros]
    while pending:
        new = macros[pending.pop()] - whole
        whole |= new
        pending += [word for word in new if word in macros]
    return frozenset(whole)


def items_of(found: Sequence[Token], macros: Mapping[str, frozenset[str]]) -> Iterator[Item]:
    """Yield the items of a file, those in namespaces, too, in order; `found` are its tokens."""
    words = [token for token in found if not token.is_directive or token.text in CONDITIONS]
    item: list[Token] = []
    index = 0
    while index < len(words):
        token = words[index]
        if token.text in CONDITIONS and not item:
            index += 1
            continue
        if token.text == "{" and _opens_scope(item):
            item, index = [], index + 1
            continue
        if token.text == "}":
            # The end of a namespace.
            item, index = [], index + 1
            continue
        end = _closing(words, index) if token.text in ("(", "{", "[") else index
        item += words[index : end + 1]
        index = end + 1
        following = words[index] if index < len(words) else None
        if token.text == ";" or (token.text == "{" and _is_function(item)) or _is_macro_call(item, following, macros):
            yield _item(item)
            item = []


def _opens_scope(head: Sequence[Token]) -> bool:
    words = [token.text for token in head if token.text not in CONDITIONS]
    return "namespace" in words[:2] or words == ["extern", '""']


def _closing(words: Sequence[Token], start: int) -> int:
    """Return the index of the bracket that closes the one at `start`; if none does, the index of the last token.

    If `#if` and `#else` are among the tokens, the compiler has to choose a branch: brackets of the last branch count.
    """
    opening = words[start].text
    closing = {"(": ")", "{": "}", "[": "]"}[opening]
    depth, saved = 0, list[int]()
    for index in range(start, len(words)):
        match words[index].text:
            case "#if":
                saved.append(depth)
            case "#else" if saved:
                depth = saved[-1]
            case "#endif" if saved:
                saved.pop()
            case mark if mark == opening:
                depth += 1
            case mark if mark == closing:
                depth -= 1
                if not depth:
                    return index
    return len(words) - 1


def _is_function(item: Sequence[Token]) -> bool:
    """Return whether an item whose last token closes a pair of braces is a function with its body, and so complete."""
    head = _outside(item[: next(index for index, token in enumerate(item) if token.text == "{")])
    if "=" in head or "typedef" in head:
        return False
    return "(" in head and (not _TYPE_KEYS & {*head} or head[-1] == ")")


def _is_macro_call(item: Sequence[Token], following: Token | None, macros: Mapping[str, frozenset[str]]) -> bool:
    """Return whether an item is complete as a call of a macro with arguments, which expands to a definition.

    `following` is the next token. A macro that another file defines counts if its name is in capitals and nothing
    follows on its line.
    """
    name = item[0]
    if not name.is_name or len(item) < 3 or item[1].text != "(" or item[-1].text != ")":
        return False
    if _ATTRIBUTES.fullmatch(name.text) or _closing(item, 1) < len(item) - 1:
        return False
    if following is not None and following.text in ("{", ";", ":", "const", "->"):
        return False
    if name.text in macros:
        return bool({"{", ";"} & expanded(macros[name.text], macros))
    return name.text.isupper() and (following is None or following.line > item[-1].line)


def _item(item: list[Token]) -> Item:
    words = _outside(item)
    first = words[0]
    for kind, here in (
        ("assertion", first == "static_assert"), ("assembly", first in ("asm", "__asm__")),
        ("directive", first == "using" and "namespace" in words), ("macro", item[-1].text == ")"),
    ):  # fmt: skip
        if here:
            return Item(item, kind, frozenset())
    if item[-1].text == "}":
        names = frozenset[str]() if "operator" in words else frozenset(_function_names(words))
        return Item(item, "operator" if "operator" in words else "function", names)
    if "enum" in words:
        return Item(item, "type", frozenset(token.text for token in item if token.is_name) - _KEYWORDS)
    # `namespace cg = cooperative_groups;` stays where a device needs the name, as an alias of a type does.
    if {"using", "typedef", "namespace", "concept", *_TYPE_KEYS} & {*words}:
        return Item(item, "type", frozenset((*_type_names(_without_lists(words)), *_pointer_names(item))) - _KEYWORDS)
    constant = {"const", "constexpr"} & {*words}
    return Item(item, "constant" if constant else "variable", frozenset(_variable_names(words)) - _KEYWORDS)


def _type_names(words: Sequence[str]) -> Iterator[str]:
    """Yield the names of the classes or the alias that an item declares, and of variables declared with them."""
    if "using" in words and "=" in words:
        yield from _names_before(words[: words.index("=") + 1], "=")
        return
    for index, word in enumerate(words):
        if word in _TYPE_KEYS:
            named = (each for each in words[index + 1 :] if _NAME.fullmatch(each) and not _ATTRIBUTES.fullmatch(each))
            yield from (name for name in [next(named, None)] if name is not None)
    yield from _names_before(words, "=,;[)")


def _without_lists(words: Sequence[str]) -> list[str]:
    """Return the words without what stands between `<` and `>`, which are brackets in the declaration of a type."""
    left, depth = list[str](), 0
    for word in words:
        depth += word == "<"
        if not depth:
            left.append(word)
        depth -= word == ">" and depth > 0
    return left


def _pointer_names(item: Sequence[Token]) -> Iterator[str]:
    """Yield the name of a type of pointers to functions, which stands in parentheses: `typedef void (*call)(int)`."""
    for one, two, three in zip(item, item[1:], item[2:], strict=False):
        if one.text == "*" and two.is_name and three.text == ")" and item[0].text == "typedef":
            yield two.text


def _names_before(words: Sequence[str], marks: str) -> Iterator[str]:
    return (name for name, mark in pairwise(words) if mark in marks and _NAME.fullmatch(name))


def _variable_names(words: Sequence[str]) -> Iterator[str]:
    """Yield the names of the variables that a declaration declares, or of the functions."""
    declared = False
    for index, word in enumerate(words):
        if word in ("=", ";", "[", "{", "(", ",") and not declared:
            yield _name_before(words, index)
        declared = (declared or word in ("=", "[", "{", "(")) and word != ","


def _function_names(words: Sequence[str]) -> Iterator[str]:
    """Yield the name of a function: the word before its arguments."""
    names = (_name_before(words, index) for index, mark in enumerate(words) if mark == "(")
    yield from islice((name for name in names if _NAME.fullmatch(name) and not _ATTRIBUTES.fullmatch(name)), 1)


def _name_before(words: Sequence[str], index: int) -> str:
    """Return the word before that of an index, or before the arguments of a specialised template that end there."""
    before = index - 1
    if before > 0 and words[before] == ">":
        depths = accumulate({"<": -1, ">": 1}.get(word, 0) for word in reversed(words[:index]))
        before -= next((count for count, depth in enumerate(depths, 1) if not depth), before)
    return words[max(before, 0)]


def _outside(item: Sequence[Token]) -> list[str]:
    """Return the words of an item outside of brackets and of the lists of template parameters, with their brackets."""
    words, index = list[str](), 0
    item = [token for token in item if token.text not in CONDITIONS]
    while index < len(item):
        text = item[index].text
        words.append(text)
        if text in ("(", "{", "["):
            index = _closing(item, index)
            words.append(item[index].text)
        elif text == "<" and words[-2:-1] == ["template"]:
            index = _template_end(item, index)
            words.append(item[index].text)
        index += 1
    return words


def _template_end(item: Sequence[Token], start: int) -> int:
    depth = 0
    for index in range(start, len(item)):
        depth += {"<": 1, ">": -1}.get(item[index].text, 0)
        if not depth:
            return index
    return len(item) - 1
