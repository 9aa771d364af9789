"""Removal of host code from users' CUDA files: `main()`, launches, bindings to torch, and what only these need.

nvcc passes such code to another compiler; NVRTC has none and would refuse it. Here it becomes white space, so that
every line keeps its number. Kernels, device functions and everything that they name stay. A file without code that only
a host can compile is unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from gemmlab.kernels.cuda_file.file_items import Item, expanded, items_of, macros_of
from gemmlab.kernels.cuda_file.tokens import Token, directives, pieces, tokens

_OF_DEVICE = frozenset(("__global__", "__device__", "__constant__", "__shared__", "__managed__"))
_HOST_NAME = re.compile(
    r"cuda(?:Malloc|Memcpy|Memset|Free|Event|Device|Stream|Get|Set|Func|Create|Peek|Launch|Occupancy|Host|Error)\w*"
    r"|cu(?:blas|dnn|rand|sparse)[A-Z]\w*|TORCH_\w+|PYBIND11_\w+|cout|cerr|fprintf|fopen|FILE|getenv"
    r"|__host__|throw|try|catch|typeid|dynamic_cast|<<<"
)
"""Words that occur only in host code, unless what they are in is marked for a device."""
_HOST_CALL = re.compile(r"main|s?rand|exit")
"""More such words if they are in a function or in the call of a macro."""
_HOST_SPACES = frozenset(("torch", "at", "c10", "pybind11", "py", "chrono", "filesystem"))
"""Namespaces that only code for the host uses."""
_HOST_STD = re.compile(
    r"\w*(?:stream|streambuf|filebuf|string|string_view)|\w*_(?:engine|distribution|error|ptr|lock|iterator)|c(?:in|out|err"
    r"|log)|endl|flush|set(?:w|fill|precision)|hex|dec|fixed|scientific|boolalpha|ios|ios_base|mt19937\w*|random_device"
    r"|minstd_rand\w*|seed_seq|vector|(?:unordered_)?(?:multi)?(?:map|set)|(?:forward_)?list|deque|queue|priority_queue"
    r"|stack|bitset|function|bind|make_(?:unique|shared)|j?thread|this_thread|\w*mutex|lock_guard|condition_variable\w*"
    r"|future|promise|async|packaged_task|exception|bad_\w+|invalid_argument|out_of_range|chrono|filesystem|to_string"
    r"|sto[ifdlu]\w*|(?:stable_)?sort|iota|accumulate|inner_product|generate\w*|fill\w*|copy\w*|transform|for_each|shuffle"
    r"|(?:max|min|minmax)_element|count_if|find_if|any_of|all_of|back_inserter|getenv|exit|abort|terminate|system|printf"
    r"|rand|srand|FILE|optional|variant|any|span|regex|locale|allocator|atomic\w*|complex|valarray"
)
"""Names in the namespace `std` that no header here has for a device."""
_MAY_BE_HOST = re.compile(
    rf"\b(?:{_HOST_NAME.pattern.removesuffix('|<<<')})\b|<<<|\bstd\s*::\s*(?:{_HOST_STD.pattern})\b"
    rf"|\b(?:{'|'.join(sorted(_HOST_SPACES))})\s*::"
)
"""Matches a text of which some item may be for a host alone."""
_SPACE = re.compile(r"(using\s+)?\bnamespace\s+(\w+)")
_KNOWN_SPACES = frozenset(("std", "cuda", "nvcuda", "cooperative_groups", "cub", "thrust", "nv", "cute", "cutlass"))
"""Namespaces of CUDA's headers."""


@dataclass(frozen=True, slots=True)
class CodeText:
    """The text of a file or of a header."""

    text: str
    of_host: bool = False
    """True if it includes a header that only a host has."""
    foreign: bool = False
    """True for a header of a library that is written for NVRTC, too."""


def without_host_code(files: Sequence[CodeText], named: str = "") -> list[str]:
    """Return the texts of a file and its headers with white space in place of host code; `named` is the instance that
    will be compiled.

    A text in which a host is needed for nothing stays the same. If one of the files that are not `foreign` needs a
    host, all of them lose what no device code names; `foreign` ones only lose what a host alone can compile.
    """
    own = [_parsed(file.text) for file in files if not file.foreign]
    need = any(file.of_host for file in files if not file.foreign) or any(one.of_host for one in own)
    risky = [file for file in files if file.foreign and (file.of_host or _may_be_host(file.text))]
    if not need and not risky:
        return [file.text for file in files]
    macros = dict[str, frozenset[str]]()
    for file in files:
        for name, words in macros_of(directives(file.text)).items():
            macros[name] = macros.get(name, frozenset()) | words
    spaces = (
        {found[2] for file in files for found in _SPACE.finditer(file.text) if not found[1]} if need else set[str]()
    )
    stays = _Needed(own, macros, _KNOWN_SPACES | spaces).found(named) if need else set[int]()
    left = list[str]()
    for file in files:
        if file.foreign:
            left.append(_without_host_items(file.text, macros) if file in risky else file.text)
        else:
            parsed = _parsed(file.text)
            removed = [item for item in parsed.items if id(item) not in stays] if need else []
            left.append(_blanked(file.text, parsed, removed))
    return left


@dataclass(frozen=True, slots=True, eq=False)
class _Parsed:
    """A text's tokens with directives, its items, and whether only a host can compile one of them."""

    tokens: Sequence[Token]
    items: Sequence[Item]
    of_host: bool


@lru_cache(maxsize=64)
def _parsed(text: str) -> _Parsed:
    found = list(pieces(text))
    macros = macros_of(found)
    items = list(items_of(found, macros))
    return _Parsed(found, items, any(_is_of_host(item, macros) for item in items))


@lru_cache(maxsize=1024)
def _may_be_host(text: str) -> bool:
    return _MAY_BE_HOST.search(text) is not None


def _without_host_items(text: str, macros: Mapping[str, frozenset[str]]) -> str:
    parsed = _parsed(text)
    of_host = _host_items(parsed.items, macros)
    return _blanked(text, parsed, [item for item in parsed.items if id(item) in of_host])


@dataclass(slots=True)
class _Needed:
    """The search for the items that device code needs among those of the `files`; `macros` and `spaces`, the names of
    namespaces, are those of all files.
    """

    files: Sequence[_Parsed]
    macros: Mapping[str, frozenset[str]]
    spaces: frozenset[str]
    _words: set[str] = field(default_factory=set)
    """The names that needed items name directly or by a macro."""
    _calls: set[str] = field(default_factory=set)
    """Those of them that may name functions."""
    _stays: set[int] = field(default_factory=set)
    """The needed items, by `id`."""

    def found(self, named: str) -> set[int]:
        """Return the `id` of each item that the marked ones or the instance `named` need, and of the marked ones."""
        items = [item for one in self.files for item in one.items]
        of_host = _host_items(items, self.macros)
        types = frozenset(name for item in items if item.kind == "type" for name in item.names)
        self._words |= {token.text for token in tokens(named)}
        self._calls |= self._words
        for item in items:
            if item.kind == "assembly" or (
                _is_marked(item, self.macros) and not (item.kind == "type" and _of_std(item))
            ):
                self._add(item)
        waiting = [item for item in items if id(item) not in self._stays]
        while more := [item for item in waiting if self._is_needed(item, types, of_host)]:
            for item in more:
                self._add(item)
            waiting = [item for item in waiting if id(item) not in self._stays]
        self._add_rules(waiting, of_host)
        return self._stays

    def _add(self, item: Item) -> None:
        self._stays.add(id(item))
        whole = expanded(item.words, self.macros)
        self._words |= whole
        self._calls |= item.calls | (whole - item.words)

    def _is_needed(self, item: Item, types: frozenset[str], of_host: set[int]) -> bool:
        match item.kind:
            case "type":
                return bool(item.names & self._words)
            case "constant":
                return bool(item.names & self._words) and id(item) not in of_host
            case "function":
                return bool(item.names & self._calls) and id(item) not in of_host
            case "operator":
                named = item.words & types
                return (not named or bool(named & self._words)) and id(item) not in of_host
            case "macro":
                made = expanded(item.words, self.macros) & {"struct", "class", "using", "typedef", "constexpr"}
                return bool(made) and id(item) not in of_host
        return False

    def _add_rules(self, items: Sequence[Item], of_host: set[int]) -> None:
        """Add the assertions on what stays, and the directives for namespaces that exist."""
        removed = {name for item in items for name in item.names}
        for item in items:
            outer = {token.text for token in item.tokens[2:3]}
            stays = not removed & item.words if item.kind == "assertion" else outer <= self.spaces - removed
            if item.kind in ("assertion", "directive") and stays and id(item) not in of_host:
                self._add(item)


def _head(item: Item) -> frozenset[str]:
    """Return the names in an item before the body if it is a function, else all names in it."""
    if item.kind not in ("function", "operator"):
        return item.words
    body = next((index for index, token in enumerate(item.tokens) if token.text == "{"), len(item.tokens))
    return frozenset(token.text for token in item.tokens[:body] if token.is_name)


def _is_marked(item: Item, macros: Mapping[str, frozenset[str]]) -> bool:
    return bool(expanded(_head(item), macros) & _OF_DEVICE)


def _host_items(items: Iterable[Item], macros: Mapping[str, frozenset[str]]) -> set[int]:
    """Return the `id` of each item that only a host can compile, by itself or because it names such a type."""
    more, left = list[Item](), list[Item]()
    for item in items:
        (more if _is_of_host(item, macros) else left).append(item)
    found, types = set[int](), set[str]()
    while more:
        found |= {id(item) for item in more}
        types |= {name for item in more if item.kind == "type" for name in item.names}
        more = [item for item in left if item.words & types and not _is_marked(item, macros)]
        left = [item for item in left if item not in more]
    return found


def _is_of_host(item: Item, macros: Mapping[str, frozenset[str]]) -> bool:
    """Return whether only a host can compile an item: it launches kernels, allocates memory, has strings."""
    if _is_marked(item, macros):
        return item.kind == "type" and _of_std(item)
    words = expanded(item.words, macros)
    calls = item.kind in ("function", "macro") and any(map(_HOST_CALL.fullmatch, words))
    spaces = bool(_HOST_SPACES & {one.text for one, two in pairwise(item.tokens) if two.text == "::"})
    of_space = item.kind == "directive" and bool(_HOST_SPACES & words)
    launches = any(
        one.text == two.text == three.text == "<" and three.start == one.start + 2
        for one, two, three in zip(item.tokens, item.tokens[1:], item.tokens[2:], strict=False)
    )
    return launches or any(map(_HOST_NAME.fullmatch, words)) or calls or spaces or of_space or _of_std(item)


def _of_std(item: Item) -> bool:
    """Return whether an item names something of `std` that no device has."""
    parts = zip(item.tokens, item.tokens[1:], item.tokens[2:], strict=False)
    return any(
        one.text == "std" and two.text == "::" and _HOST_STD.fullmatch(three.text) is not None
        for one, two, three in parts
    )


def _blanked(text: str, parsed: _Parsed, removed: Iterable[Item]) -> str:
    """Return the text with spaces in place of the items that are gone; line ends and directives stay."""
    spans = [(item.tokens[0].start, item.tokens[-1].end) for item in removed]
    directives = [token for token in parsed.tokens if token.is_directive]
    parts, done = list[str](), 0
    for start, end in spans:
        parts.append(text[done:start])
        inside = [token for token in directives if start <= token.start < end]
        at = start
        for token in inside:
            parts += [_spaces(text[at : token.start]), text[token.start : token.end]]
            at = token.end
        parts.append(_spaces(text[at:end]))
        done = end
    return "".join([*parts, text[done:]])


def _spaces(text: str) -> str:
    return re.sub(r"[^\r\n]", " ", text)
