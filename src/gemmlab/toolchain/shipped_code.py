"""Machine code in the installed package, for machines without CUDA's compiler and disassembler.

`machine_code/TARGET/KERNEL-ALIAS.xz` is a compressed artifact in the cache's format, with the compiler's log and the
disassembly (`short_disassembly`). The alias is the source key (`build_cuda.source_of`), a digest of text, options and
architecture: after an edit of a source, its shipped code is not found. An edited header is detected by the list of
files that the compiler read. The files are made when a wheel is built (`hatch_build.py`); a checkout has none. They are
trusted like the package's Python code.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gemmlab.core.program import Artifact, Program
from gemmlab.toolchain.cache import decode, encode
from gemmlab.toolchain.elf import read_elf
from gemmlab.toolchain.include_path import IncludePath
from gemmlab.toolchain.line_tables import PTX, PTX_TEXT
from gemmlab.toolchain.searched import as_it_was
from gemmlab.toolchain.short_disassembly import restored, shortened

FOLDER = Path(__file__).parents[1] / "machine_code"
_ALIAS_DIGITS = 32
"""Digits of the alias in a file's name: enough to distinguish any two, and short enough for paths on Windows."""
_WITH_PTX = ("sm_90", "sm_90a")
"""The architectures whose code is shipped with the PTX that the cubin contains; commands show them by default.

PTX is a third of a file. Only a reader needs it, so the others' code has zeros there.
"""


def find(program: Program, alias: str, path: IncludePath) -> Artifact | None:
    """Return the shipped code of a program whose source key is `alias`.

    `None` if none was shipped for exactly this source, configuration and architecture, if the headers in the folders of
    `path` are not those that it was compiled with, if the file is damaged, or if this Python has no lzma.
    """
    try:
        import lzma
    except ImportError:  # some builds of Python lack it
        return None
    try:
        found = decode(lzma.decompress(_file(FOLDER, program, alias).read_bytes()))
        if found.searched is None or not as_it_was(found.searched, path):
            return None
        return replace(found, texts={**found.texts, "sass": restored(found.texts["sass"], found.code, found.kernel)})
    except (OSError, ValueError, KeyError, TypeError, lzma.LZMAError):
        return None


def put(folder: Path, program: Program, alias: str, artifact: Artifact) -> Path:
    """Write an artifact, which must have `sass` text, below `folder`, and return the file. In an installed package
    `find` reads `FOLDER`.
    """
    import lzma

    # Code whose main loop gemmlab rewrote has no log.
    texts = {
        "log": artifact.texts.get("log", ""),
        "sass": shortened(artifact.texts["sass"], artifact.code, program.kernel),
    }
    code = artifact.code if program.target in _WITH_PTX else _without_ptx(artifact)
    path = _file(folder, program, alias)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = encode(replace(artifact, code=code, texts=texts), level=0)
    path.write_bytes(lzma.compress(data, preset=lzma.PRESET_DEFAULT | lzma.PRESET_EXTREME))
    return path


def targets() -> dict[str, int]:
    """Return architecture -> number of kernel instances that are shipped for it."""
    return {folder.name: len(list(folder.glob("*.xz"))) for folder in sorted(FOLDER.glob("sm_*"))}


def _without_ptx(artifact: Artifact) -> bytes:
    """Return the cubin with zeros in place of the PTX text and of the table that refers to its lines."""
    code = bytearray(artifact.code)
    for section in read_elf(artifact.code, artifact.kernel).sections:
        if section.name in (PTX, PTX_TEXT):
            code[section.start : section.start + len(section.data)] = bytes(len(section.data))
    return bytes(code)


def _file(folder: Path, program: Program, alias: str) -> Path:
    return folder / program.target / f"{program.kernel}-{alias[:_ALIAS_DIGITS]}.xz"
