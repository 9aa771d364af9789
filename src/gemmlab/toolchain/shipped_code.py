"""Machine code in the installed package, for machines without CUDA's compiler and disassembler.

`machine_code/TARGET/KERNEL-ALIAS.xz` is a compressed artifact with its texts, in the cache's format. The alias is the
source key (`build_cuda.source_of`), a digest of text, options and architecture: after an edit of a source, its shipped
code is not found. An edited header is detected by the list of files that the compiler read. The files are made when a
wheel is built (`hatch_build.py`); a checkout has none. They are trusted like the package's Python code.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gemmlab.core.program import Artifact, Program
from gemmlab.toolchain.cache import decode, encode
from gemmlab.toolchain.include_path import IncludePath
from gemmlab.toolchain.searched import as_it_was

FOLDER = Path(__file__).parents[1] / "machine_code"
_ALIAS_DIGITS = 32
"""Digits of the alias in a file's name: enough to distinguish any two, and short enough for paths on Windows."""
_READ = ("log", "sass")
"""The texts that are shipped. PTX would be a third of the whole, and nothing but a reader needs it."""


def find(program: Program, alias: str, path: IncludePath) -> Artifact | None:
    """Return the shipped code of a program with the source key `alias`, and headers in the folders of `path`.

    `None` if none was shipped for exactly this source, configuration and architecture.
    """
    # Some builds of Python lack lzma. It is imported only if there is no compiler and the cache lacks the code.
    import lzma

    try:
        found = decode(lzma.decompress(_file(FOLDER, program, alias).read_bytes()))
        return found if found.searched is not None and as_it_was(found.searched, path) else None
    except (OSError, ValueError, KeyError, TypeError, lzma.LZMAError):
        return None


def put(folder: Path, program: Program, alias: str, artifact: Artifact) -> Path:
    """Write an artifact's file below `folder`, and return its path. In an installed package `find` reads `FOLDER`."""
    import lzma

    # Code whose main loop gemmlab rewrote has no log.
    short = replace(artifact, texts={name: artifact.texts.get(name, "") for name in _READ})
    path = _file(folder, program, alias)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(encode(short, level=0)))
    return path


def targets() -> dict[str, int]:
    """Return architecture -> number of kernel instances that are shipped for it."""
    return {folder.name: len(list(folder.glob("*.xz"))) for folder in sorted(FOLDER.glob("sm_*"))}


def _file(folder: Path, program: Program, alias: str) -> Path:
    return folder / program.target / f"{program.kernel}-{alias[:_ALIAS_DIGITS]}.xz"
