"""The conformance kernels as what can be called: built once a file, described by strings that each cubin carries."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, reduce
from pathlib import Path

import numpy as np
from edges import DTYPES, Bits, values

from gemmlab.core.program import Artifact, Program
from gemmlab.toolchain.build_cuda import build
from gemmlab.toolchain.cubin import read_cubin

HERE = Path(__file__).parent
HEADER = "elementwise.cuh"
FILES = tuple(sorted(path.stem for path in HERE.glob("*.cu")))
ELEMENTS, THREADS = 512, 256
_ARGUMENT = re.compile(r"(?P<role>[=+@]?)(?P<kind>[a-z]\w*)(?P<scalar>:=)?(?:(?P<how>[*:])(?P<count>\d+))?")


@dataclass(frozen=True, slots=True)
class Argument:
    """One parameter of a kernel, or several scalars alike."""

    kind: str
    """`"n"`, or a kind of values."""
    role: str
    """`"in"`, `"out"`, `"inout"`, `"texture"`, `"scalar"` or `"n"`."""
    count: int = 1
    """Values; for a scalar, parameters."""
    texels: int = 1
    """Values in a texel."""

    def bits(self, seed: str) -> Bits:
        """Its values before the launch."""
        if self.role == "out":
            return np.zeros(self.count, DTYPES.get(self.kind, np.uint32))
        return values(self.kind, seed, self.count)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far results may lie from the recorded ones: any one of these bounds is enough."""

    ulp: int = 0
    rel: float = 0.0
    abs: float = 0.0
    sum: float = 0.0
    """Of a matrix product, relative to |A| |B| + |C|; added to `rel`."""


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel with everything that a launch of it needs."""

    file: str
    kernel: str
    arguments: tuple[Argument, ...]
    n: int
    grid: tuple[int, int, int]
    threads: tuple[int, int, int]
    smem_bytes: int
    near: Tolerance

    def inputs(self) -> list[Bits]:
        """Bits of each argument but `n`."""
        return [
            argument.bits(f"{self.kernel} {place}")
            for place, argument in enumerate(self.arguments)
            if argument.role != "n"
        ]

    def input_sum(self) -> int:
        """CRC of the bits that the kernel is given."""
        return reduce(lambda total, bits: zlib.crc32(bits.tobytes(), total), self.inputs(), 0)


@cache
def artifact_of(file: str, arch: str) -> Artifact:
    """All kernels of one file, compiled or from the cache."""
    path = HERE / f"{file}.cu"
    program = Program(
        kernel=f"conformance {file}", language="cuda", target=arch, entry="nothing", fingerprint=file,
        emit=path.read_text, path=str(path), headers={HEADER: (HERE / HEADER).read_text()},
    )  # fmt: skip
    return build(program)


def kernel_artifact(case: Case, arch: str) -> Artifact:
    """The file's cubin with one kernel as its entry, and only that kernel's disassembly."""
    whole = artifact_of(case.file, arch)
    sass = _sections(case.file, arch)[case.kernel]
    return replace(whole, kernel=case.kernel, entry=case.kernel, texts={"sass": sass})


@cache
def _sections(file: str, arch: str) -> dict[str, str]:
    head, *rest = re.split(r"(?m)^(?=//-+ \.text\.)", artifact_of(file, arch).texts["sass"])
    named = ((re.match(r"//-+ \.text\.(\S+)", part), part) for part in rest)
    return {match[1]: head + part for match, part in named if match}


def cases(arch: str) -> Iterator[Case]:
    """Every kernel that `arch` has."""
    for file in FILES:
        yield from of_file(file, arch)


@cache
def of_file(file: str, arch: str) -> tuple[Case, ...]:
    """The kernels of one file that `arch` has, by name."""
    cubin = read_cubin(artifact_of(file, arch).code, file)
    said = {
        name: variable.data.rstrip(b"\0").decode()
        for name, variable in cubin.symbols.items()
        if name.endswith(("__args", "__shape", "__near"))
    }
    named = sorted(name.removesuffix("__args") for name in said if name.endswith("__args"))
    return tuple(
        _case(file, name, said[f"{name}__args"], said.get(f"{name}__shape", ""), said.get(f"{name}__near", ""))
        for name in named
    )


def _case(file: str, kernel: str, described: str, shaped: str, near: str) -> Case:
    shape = dict(part.split("=") for part in shaped.split())
    n = int(shape.get("n", ELEMENTS))
    threads = _triple(shape.get("threads", str(THREADS)))
    blocks = str(-(-n // int(np.prod(threads))))
    return Case(
        file, kernel, tuple(_argument(word, n) for word in described.split()), n,
        grid=_triple(shape.get("grid", blocks)), threads=threads, smem_bytes=int(shape.get("shared", 0)),
        near=_tolerance(dict(part.split("=") for part in near.split())),
    )  # fmt: skip


def _argument(word: str, n: int) -> Argument:
    if word == "n":
        return Argument("n", "n")
    match = _ARGUMENT.fullmatch(word)
    assert match, word
    times = int(match["count"] or 1)
    if match["scalar"]:
        return Argument(match["kind"], "scalar", times)
    role = {"": "in", "=": "out", "+": "inout", "@": "texture"}[match["role"]]
    return Argument(match["kind"], role, times if match["how"] == ":" else n * times, times)


def _triple(text: str) -> tuple[int, int, int]:
    x, y, z = (*(int(part) for part in text.split("x")), 1, 1)[:3]
    return x, y, z


def _tolerance(said: dict[str, str]) -> Tolerance:
    powers = {name: 2.0 ** int(said[name]) for name in ("rel", "abs", "sum") if name in said}
    return Tolerance(ulp=int(said.get("ulp", 0)), **powers)
