"""Removal of host code from users' CUDA files: `main()`, launches, bindings to torch.

nvcc passes such code to another compiler; NVRTC has none and would refuse it. Here it becomes white space, so that
every line keeps its number. Kernels, device functions and everything that they name stay. A file without code that only
a host can run is unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from gemmlab.kernels.cuda_file.file_items import HOST_SPACES, Item, expanded, items_of, macros_of
from gemmlab.kernels.cuda_file.tokens import Token, pieces

_OF_DEVICE = frozenset(("__global__", "__device__", "__constant__", "__shared__", "__managed__"))
_HOST_CALL = re.compile(
    r"main|cuda(?:Malloc|Memcpy|Memset|Free|Event|Device|Stream|Get|Set|Func|Create|Peek|Launch|Occupancy|Host)\w*"
    r"|cu(?:blas|dnn|rand|sparse)[A-Z]\w*|TORCH_\w+|PYBIND11_\w+|cout|cerr|fprintf|fopen|exit|rand|srand|getenv"
)
"""Names that occur only in host code."""


@lru_cache(maxsize=16)
def without_host_code(text: str) -> str:
    """Return the text with white space in place of host code; the same text if a host is needed for none of it."""
    found = list(pieces(text))
    macros = macros_of(found)
    items = list(items_of(found, macros))
    if not any(item.kind in ("function", "macro") and _is_of_host(item, macros) for item in items):
        return text
    needed = _needed(items, macros)
    spans = [(item.tokens[0].start, item.tokens[-1].end) for item in items if item not in needed]
    return _blanked(text, spans, [token for token in found if token.is_directive])


def _needed(items: Sequence[Item], macros: Mapping[str, frozenset[str]]) -> list[Item]:
    """Return the items for a device, and all that these need directly or indirectly, in the order of the file."""
    stays = [item.kind == "rule" or bool(expanded(_head(item), macros) & _OF_DEVICE) for item in items]
    while True:
        roots = [item for item, stay in zip(items, stays, strict=True) if stay]
        words = expanded(frozenset().union(*(item.words for item in roots)), macros)
        calls = frozenset().union(*(item.calls for item in roots)) | (words - {word for i in roots for word in i.words})
        more = [
            stay or (bool(item.names & (calls if item.kind == "function" else words)) and _may_stay(item, macros))
            for item, stay in zip(items, stays, strict=True)
        ]
        if more == stays:
            return roots
        stays = more


def _may_stay(item: Item, macros: Mapping[str, frozenset[str]]) -> bool:
    return item.kind in ("type", "constant") or (item.kind == "function" and not _is_of_host(item, macros))


def _head(item: Item) -> frozenset[str]:
    """Return the names in an item before the body if it is a function, else all names in it."""
    if item.kind != "function":
        return item.words
    body = next((index for index, token in enumerate(item.tokens) if token.text == "{"), len(item.tokens))
    return frozenset(token.text for token in item.tokens[:body] if token.is_name)


def _is_of_host(item: Item, macros: Mapping[str, frozenset[str]]) -> bool:
    """Return whether only a host can run an item: it launches kernels, allocates memory, prints to a file."""
    if expanded(_head(item), macros) & _OF_DEVICE:
        return False
    marks = "".join(token.text for token in item.tokens if token.text in "<(")
    words = expanded(item.words, macros)
    return "<<<" in marks or bool(words & HOST_SPACES) or any(map(_HOST_CALL.fullmatch, words))


def _blanked(text: str, spans: Sequence[tuple[int, int]], directives: Sequence[Token]) -> str:
    """Return the text with spaces in place of `spans` (offsets of start and end); line ends and directives stay."""
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
