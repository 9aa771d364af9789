"""Virtual paths: the compiler sees every source and header in a folder `/gemmlab`, which exists nowhere.

File names go into line information and from there into the cubin. With real names, the same source and compiler would
give other bytes in every checkout, and a cache filled elsewhere would name files that do not exist here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from gemmlab.core.program import Program
from gemmlab.toolchain.host_headers import HOST_HEADERS
from gemmlab.toolchain.include_path import IncludePath, include_path
from gemmlab.toolchain.searched import ABSENT, Searched

ROOT = "/gemmlab"
_UNSAFE = re.compile(r"[^\w.+/-]", re.ASCII)
_PATH = re.compile(rf"{ROOT}/[\w.+/-]+", re.ASCII)
_LINE = re.compile(r"^(/[^\n(]*)\((\d+)\):", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CompilerInput:
    """A program's texts as the compiler gets them, and the folders (`path`) in which it searches for other headers."""

    main: str
    """The source's virtual path."""
    source: str
    headers: Mapping[str, str]
    """Name in `#include` -> text, which begins with a `#line` that states its virtual path."""
    path: IncludePath
    real: Mapping[str, str]
    """Virtual path of each text -> its real name."""

    def localise(self, text: str, searched: Searched) -> str:
        """Return `text` with real names in place of virtual paths.

        `searched` has the places of files that were read. Unknown virtual paths stay.
        """
        read = {virtual(place): self.path.real(place) for place, mark in searched.items() if mark != ABSENT}
        real = {**self.real, **{name: path for name, path in read.items() if path is not None}}
        return _PATH.sub(lambda match: real.get(match[0], match[0]), text)

    def localise_errors(self, log: str, searched: Searched) -> str:
        """Return a compiler's log with real names, and `path:line:` in place of `path(line):`."""
        return self.localise(_LINE.sub(r"\1:\2:", log), searched)


def place(program: Program) -> CompilerInput:
    """Collect a program's texts and give each its virtual path. Raises `CompileError` if its source cannot be made."""
    name = program.path or f"{program.kernel}.cu"
    source = program.source()
    main = virtual(PurePath(name).name)
    headers = {include: f'#line 1 "{virtual(include)}"\n{text}' for include, text in program.headers.items()}
    real = {virtual(include): include for include in (*HOST_HEADERS, *headers)} | {main: name}
    return CompilerInput(main, source, headers, include_path(program.path, program.options), real)


def virtual(name: str) -> str:
    """Return the virtual path of a text by its name, or of a file by its place (see `include_path`)."""
    # `..` in names could give two headers of one program the same place.
    return f"{ROOT}/{_UNSAFE.sub('_', name.lstrip('/')).replace('../', '_/')}"
