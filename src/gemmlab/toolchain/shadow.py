"""A copy of the headers that a program reads. Each begins with a `#line` that states its virtual path, so that the
compiled code is the same on every machine.

The copy has the same folders as the include path, so that the compiler's search finds the copies of the files that it
found in the real folders. If a header is included by an absolute path, the compiler gets a text of that name instead,
which includes the copy.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from gemmlab.toolchain.host_headers import HOST_HEADERS
from gemmlab.toolchain.include_path import IncludePath, absolute
from gemmlab.toolchain.virtual_files import virtual

_DEEP = "up/" * 8
"""Folders around each folder of the copy, so that a name with `..` that leaves it stays within the copy."""
_BOM = b"\xef\xbb\xbf"


class Shadow:
    """Copies of a program's own headers under `root`, and the folder `stand_ins` with substitutes for host headers."""

    def __init__(self, root: Path, path: IncludePath) -> None:
        self._root, self._path = absolute(str(root)), path
        self._copies: dict[str, str] = {}
        self.stand_ins = f"{self._root}/stand-ins"
        for folder in {"", *(name.rpartition("/")[0] for name in HOST_HEADERS)}:
            Path(self.stand_ins, folder).mkdir(exist_ok=True, parents=True)
        for name, text in HOST_HEADERS.items():
            Path(self.stand_ins, name).write_bytes(f'#line 1 "{virtual(name)}"\n{text}'.encode())

    @property
    def folders(self) -> list[str]:
        """The folders of the copy that stand for those of the include path, in its order."""
        return [self._folder(number) for number in self._path.folders]

    @property
    def redirections(self) -> dict[str, str]:
        """Absolute path of each copied file -> a text that includes the copy, to pass to the compiler as a header."""
        return {file: f'#include "{copy}"\n' for file, copy in self._copies.items()}

    def copy(self, data: Mapping[str, bytes]) -> None:
        """Copy files: path -> contents. A file with several names has one copy with links, as `#pragma once`
        requires.
        """
        made: dict[tuple[int, int], str] = {}
        for file, content in data.items():
            facts = Path(file).stat()
            for place in self._path.places(file):
                copy = self._copy_of(place)
                first = made.setdefault((facts.st_dev, facts.st_ino), copy)
                if first == copy:
                    _write(copy, f'#line 1 "{virtual(place)}"\n'.encode() + content.removeprefix(_BOM))
                else:
                    _link(first, copy)
                self._copies.setdefault(file, copy)

    def originals(self, opened: Iterable[str]) -> list[str]:
        """Return the paths of the originals of opened copies, and other opened files as they are.

        Names of `redirections` are left out.
        """
        known = {copy: file for file in self._copies for copy in map(self._copy_of, self._path.places(file))}
        return [known.get(file, file) for file in opened if file not in self._copies]

    def _copy_of(self, place: str) -> str:
        if Path(place).is_absolute():
            return f"{self._root}/at/{place.replace(':', '').lstrip('/')}"
        number, _, name = place.partition("/")
        return f"{self._folder(int(number))}/{name}"

    def _folder(self, number: int) -> str:
        return f"{self._root}/{number}/{_DEEP}in"


def _write(path: str, data: bytes) -> None:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def _link(first: str, second: str) -> None:
    Path(second).parent.mkdir(parents=True, exist_ok=True)
    if not Path(second).exists():
        os.link(first, second)
