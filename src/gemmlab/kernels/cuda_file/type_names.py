"""The names that a CUDA file gives to types, by `using`, `typedef` or a macro."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from gemmlab.kernels.cuda_file.signature import Argument, Signature, type_text
from gemmlab.kernels.cuda_file.tokens import pieces

_DEFINE = re.compile(r"#\s*define\s+([A-Za-z_]\w*)[ \t]+([A-Za-z_:][\w: \t]*)", re.ASCII)
_MACRO_OPTION = re.compile(r"-D([A-Za-z_]\w*)=([A-Za-z_:][\w: \t]*)", re.ASCII)


def type_names(texts: Iterable[str], options: Iterable[str] = ()) -> dict[str, str]:
    """Return the type, without qualifiers, by each name that one of the texts gives it outside of functions or in them.

    A macro that `options` define has that value. A name with several types, as by `#if`, is left out.
    """
    found: dict[str, set[str]] = {}
    for text in texts:
        for name, stated in _stated(text):
            found.setdefault(name, set()).add(stated)
    chosen = {name: types.pop() for name, types in found.items() if len(types) == 1}
    macros = filter(None, map(_MACRO_OPTION.fullmatch, options))
    return chosen | {match[1]: type_text(match[2].split()) for match in macros}


def with_types(signature: Signature, names: Mapping[str, str]) -> Signature:
    """Return the signature with the types that its arguments' types are names of; template parameters stay."""
    known = {name: stated for name, stated in names.items() if name not in {p.name for p in signature.template}}
    return replace(signature, args=tuple(_resolved(argument, known) for argument in signature.args))


def _resolved(argument: Argument, names: Mapping[str, str]) -> Argument:
    base = argument.type.rstrip("*")
    stars = argument.type[len(base) :]
    visited = set[str]()
    while base in names and base not in visited:
        visited.add(base)
        base = names[base]
    return replace(argument, type=base + stars)


def _stated(text: str) -> Iterator[tuple[str, str]]:
    """Yield each name of a type, and the type, that a text states."""
    statement: list[str] = []
    for piece in pieces(text):
        if piece.is_directive:
            macro = _DEFINE.fullmatch(piece.text)
            if macro is not None:
                yield macro[1], type_text(macro[2].split())
        elif piece.text in (";", "{", "}"):
            match statement:
                case ["using", name, "=", *stated] if _is_plain(stated):
                    yield name, type_text(stated)
                case ["typedef", *stated, name] if _is_plain(stated):
                    yield name, type_text(stated)
            statement = []
        else:
            statement.append(piece.text)


def _is_plain(words: list[str]) -> bool:
    return bool(words) and all(word[0].isalpha() or word[0] == "_" or word == "::" for word in words)
