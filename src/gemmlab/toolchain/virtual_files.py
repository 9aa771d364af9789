"""Where the compiler believes that sources lie: in a folder that is the same on every machine.

File names go into line information and from there into the cubin. With names of one machine, the same source and
compiler would give other bytes in every checkout, and a cache filled elsewhere would name files that are not here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from gemmlab.core.errors import CompileError
from gemmlab.core.program import Program
from gemmlab.toolchain.includes import reach

ROOT = "/gemmlab"
_UNSAFE = re.compile(r"[^\w.+/-]", re.ASCII)
_PATH = re.compile(rf"{ROOT}/[\w.+/-]+", re.ASCII)
_LINE = re.compile(r"^(/[^\n(]*)\((\d+)\):", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Placed:
    """A program's source and headers as the compiler gets them."""

    main: str
    """The source's virtual path."""
    source: str
    headers: Mapping[str, str]
    """Text by the name that `#include` calls it; each begins by saying what its virtual path is."""
    real: Mapping[str, str]
    """Virtual path -> the name that people know."""
    elsewhere: bool
    """Whether it includes headers that are not among these."""

    def localise(self, text: str) -> str:
        """`text` with real names in place of virtual paths."""
        return _PATH.sub(lambda match: self.real.get(match[0], match[0]), text)

    def localise_errors(self, log: str) -> str:
        """A compiler's log with real names, and `path:line:` in place of `path(line):`."""
        return self.localise(_LINE.sub(r"\1:\2:", log))


def place(program: Program) -> Placed:
    """Collect a program's files and give each its virtual path. Raises `CompileError`."""
    name = program.path or f"{program.kernel}.cu"
    try:
        source = program.emit()
    except Exception as error:
        raise CompileError(f"{program.kernel} for {program.target}: {type(error).__name__}: {error}") from error
    reached = reach(source, program.path, program.headers, program.options)
    main = _virtual(PurePath(name).name)
    headers = {include: f'#line 1 "{_virtual(include)}"\n{text}' for include, text in reached.headers.items()}
    real = {_virtual(include): str(reached.paths.get(include, include)) for include in headers} | {main: name}
    return Placed(main, source, headers, real, bool(reached.elsewhere))


def _virtual(name: str) -> str:
    # Dots that lead upwards would give two headers of one program the same place.
    return f"{ROOT}/{_UNSAFE.sub('_', name).replace('../', '_/')}"
