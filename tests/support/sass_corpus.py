"""Machine code to test against: the kernels of tests/data/sass for every architecture they were compiled for, and
functions of a few lines written by hand.
"""

from __future__ import annotations

import lzma
from collections.abc import Mapping
from functools import cache

from gemmlab.sass.instruction import Instruction, SassFunction
from gemmlab.sass.parse import parse
from support.paths import DATA

_FOLDER = DATA / "sass"
FILES = ("arithmetic", "control", "halves", "hopper", "loops", "memory", "tensor", "warps")


@cache
def texts(name: str) -> dict[str, str]:
    """Architecture -> what nvdisasm printed of that source file."""
    whole = lzma.decompress((_FOLDER / f"{name}.sass.xz").read_bytes()).decode()
    return {part[: part.index("\n")]: f"\t.target\t{part}" for part in whole.split("\t.target\t")[1:]}


@cache
def functions(name: str, arch: str) -> Mapping[str, SassFunction]:
    return parse(texts(name)[arch])


@cache
def everything() -> list[tuple[str, str, Instruction]]:
    """Architecture, file and kernel, instruction: all there are."""
    return [
        (arch, f"{name}/{function.name}", instruction)
        for name in FILES
        for arch in texts(name)
        for function in functions(name, arch).values()
        for instruction in function.instructions
    ]


def written(*lines: str) -> SassFunction:
    """A function of these instructions with zero encodings; "a: " before one is label ".L_a", "$f$g: " a function."""
    printed = [".text.f:"]
    for i, line in enumerate(lines):
        *labels, text = line.split(": ")
        printed += [f"{label}:" if label.startswith("$") else f".L_{label}:" for label in labels]
        printed += [f"/*{16 * i:04x}*/ {text} ; /* 0x{0:016x} */", f"/* 0x{0:016x} */"]
    return parse("\n".join(printed))["f"]
