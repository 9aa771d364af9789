"""The archive: machine code of the tuned kernels for GPUs, in the package and in a checkout.

With it times do not depend on the installed compiler. `GEMMLAB_COMPILE=1` requests the installed compiler's code
instead.

`gpu_code/TARGET/KERNEL.xz` has the cubins of a kernel, each once, without line tables and PTX, which no GPU reads. A
kernel whose main loops are written anew keeps its line tables, since no compiler can make them.
`gpu_code/TARGET/index.json` has, for each kernel, source keys (`build_cuda.source_of`) with the digests of their
cubins, and the marks of the headers that the compiler read (`searched`). So code is found only for exactly the source
from which it was compiled: not after an edit of the file or a header, nor for another configuration.
`makers/gpu_code.py` writes both, and a test fails if they are older than the sources.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from gemmlab.core.program import Artifact, Program
from gemmlab.toolchain.cubin import digest
from gemmlab.toolchain.elf import read_elf
from gemmlab.toolchain.include_path import IncludePath
from gemmlab.toolchain.searched import as_it_was

FOLDER = Path(__file__).parents[1] / "gpu_code"
SWITCH = "GEMMLAB_COMPILE"
"""The environment variable that with the value 1 requests compilation instead of the archive's code."""
_DIGITS = 32
"""Digits of a source key in the index: enough to tell any two apart."""
_PTX = (".nv_debug",)
_LINES = (".debug_line", ".debug_str")
"""`_PTX` and `_LINES` are beginnings of the names of sections that no GPU reads. A cubin from the archive has zeros
there, but in `_LINES` only if its line tables are not kept.
"""
_FACTS = ("entry", "digest", "compiler", "resources", "exports")


@dataclass(frozen=True, slots=True)
class Made:
    """Code for the archive: an artifact, and its source key (`build_cuda.source_of`)."""

    source: str
    artifact: Artifact
    lines: bool = False
    """True if the archive is to keep the line tables of the cubin."""


def find(program: Program, source: str, path: IncludePath) -> Artifact | None:
    """Return the archive's code of a program with the source key `source`, and headers in the folders of `path`.

    `None` if there is none for exactly this source and these headers, if it cannot be read (a damaged file, no lzma),
    or if `GEMMLAB_COMPILE=1` requests compilation. The code has no texts.
    """
    known = _index(FOLDER, program.target).get(program.kernel)
    name = known["sources"].get(source[:_DIGITS]) if known and os.environ.get(SWITCH) != "1" else None
    if known is None or name is None or not as_it_was(known["searched"], path):
        return None
    found = _codes(FOLDER, program.target, program.kernel).get(name)
    return None if found is None else replace(found, searched=known["searched"])


def put(
    folder: Path, target: str, kernel: str, members: Collection[Made], earlier: Mapping[str, Artifact]
) -> dict[str, Any]:
    """Write the cubins of one kernel for an architecture, and return the kernel's part of the index.

    `earlier` has the cubins in the archive by digest. If all digests are the same, and no line tables are kept, the
    file is not written, so an edit that leaves the machine code as it is changes only the index. Even a comment may
    change it: NVRTC 13.5 orders the instructions of a few programs by it. Raises `ValueError` if `members` were
    compiled with different headers.
    """
    import lzma

    cut: dict[str, Artifact] = {}
    sources: dict[str, str] = {}
    searched: dict[str, str] | None = None
    for member in sorted(members, key=lambda one: one.artifact.entry):
        artifact = member.artifact
        marks = dict(artifact.searched or {})
        if searched not in (None, marks):
            raise ValueError(f"{kernel} for {target}: its instances were compiled with different headers")
        searched = marks
        sources[member.source[:_DIGITS]] = artifact.digest
        cut[artifact.digest] = artifact if member.lines else earlier.get(artifact.digest, artifact)
    place = folder / target / f"{kernel}.xz"
    compilers = sorted({one.compiler for one in cut.values()})
    index = {"compilers": compilers, "sources": sources, "searched": searched or {}}
    lines = any(member.lines for member in members)
    if place.is_file() and cut.keys() == earlier.keys() and not lines:
        return index
    head, codes = [], []
    for one in cut.values():
        holes, code = _without(_PTX if lines else (*_PTX, *_LINES), one)
        facts = {name: getattr(one, name) for name in _FACTS}
        head.append({**facts, "resources": dict(one.resources), "bytes": len(code), "holes": holes})
        codes.append(code)
    data = json.dumps(head, sort_keys=True).encode() + b"\n" + b"".join(codes)
    place.parent.mkdir(parents=True, exist_ok=True)
    # Machine words are 16 bytes long.
    words = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 0, "lp": 4, "pb": 4}]
    place.write_bytes(lzma.compress(data, filters=words))
    return index


def write_index(folder: Path, target: str, kernels: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the index of an architecture: kernel -> result of `put`, one line for each source key."""
    path = folder / target / "index.json"
    path.write_text(json.dumps(kernels, indent=0, sort_keys=True) + "\n", encoding="utf-8")


def codes_of(target: str, kernel: str) -> Mapping[str, Artifact]:
    """Return the cubins of a kernel in the archive, by digest."""
    return _codes(FOLDER, target, kernel)


def contents() -> dict[str, dict[str, Any]]:
    """Return a summary of the archive by architecture: numbers of `instances` and `bytes`, `compilers`, and a `digest`
    of the digests of all cubins.
    """
    found = {}
    for folder in sorted(FOLDER.glob("sm_*")):
        kernels = _index(FOLDER, folder.name).values()
        codes = sorted({code for one in kernels for code in one["sources"].values()})
        found[folder.name] = {
            "instances": sum(len(one["sources"]) for one in kernels),
            "bytes": sum(file.stat().st_size for file in folder.iterdir()),
            "compilers": sorted({name for one in kernels for name in one["compilers"]}),
            "digest": hashlib.sha256(" ".join(codes).encode()).hexdigest(),
        }
    return found


@cache
def _index(folder: Path, target: str) -> Mapping[str, Any]:
    try:
        index: Mapping[str, Any] = json.loads((folder / target / "index.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return index


@cache
def _codes(folder: Path, target: str, kernel: str) -> Mapping[str, Artifact]:
    """Return the cubins of a kernel by digest. Damaged ones are left out; without the file or lzma there are none."""
    # Some builds of Python lack lzma; with them kernels are compiled.
    try:
        import lzma

        data = lzma.decompress((folder / target / f"{kernel}.xz").read_bytes())
    except (ImportError, OSError, lzma.LZMAError):
        return {}
    line, _, codes = data.partition(b"\n")
    found, at = dict[str, Artifact](), 0
    for facts in json.loads(line):
        holes, length = facts.pop("holes"), facts.pop("bytes")
        code = _with_holes(codes[at : at + length], holes)
        at += length
        if digest(code, kernel) == facts["digest"]:
            exports = tuple(facts.pop("exports"))
            found[facts["digest"]] = Artifact(
                kernel=kernel, kind="cubin", target=target, code=code, exports=exports, **facts
            )
    return found


def _without(names: tuple[str, ...], artifact: Artifact) -> tuple[list[tuple[int, int]], bytes]:
    """Return (offset, length) in bytes of the sections whose names begin with one of `names`, in order, and the cubin
    without these sections.
    """
    sections = read_elf(artifact.code, artifact.kernel).sections
    holes = sorted((one.start, len(one.data)) for one in sections if one.data and one.name.startswith(names))
    parts, at = [], 0
    for start, length in holes:
        parts.append(artifact.code[at:start])
        at = start + length
    return holes, b"".join([*parts, artifact.code[at:]])


def _with_holes(code: bytes, holes: Iterable[tuple[int, int]]) -> bytes:
    """Return a cubin with zeros in place of the sections that `_without` left out."""
    parts, at, left_out = [], 0, 0
    for start, length in holes:
        parts += [code[at : start - left_out], bytes(length)]
        at, left_out = start - left_out, left_out + length
    return b"".join([*parts, code[at:]])
