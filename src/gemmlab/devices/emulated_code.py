"""Decode machine code for the emulator, and find the hazards that only the code's PTX shows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

from gemmlab.core.hazard import Hazard
from gemmlab.core.program import Artifact
from gemmlab.emulator.image import Image, load_image, names_variables, plain_name
from gemmlab.emulator.memory_map import MemoryMap
from gemmlab.emulator.ptx_mbarriers import unfenced_mbarriers
from gemmlab.emulator.ptx_repairs import hazards_of
from gemmlab.emulator.ptx_volatile import mark_volatile
from gemmlab.emulator.shared_variables import shared_variables
from gemmlab.sass.gmma_lines import relined
from gemmlab.sass.parse import parse
from gemmlab.toolchain import disassembly
from gemmlab.toolchain.cubin import Cubin, read_cubin


@dataclass(frozen=True, slots=True)
class EmulatedLoaded:
    """A kernel decoded for the emulator."""

    artifact: Artifact
    image: Image = field(repr=False)


def decoded(artifact: Artifact, cubin: Cubin, memory: MemoryMap) -> EmulatedLoaded:
    """Decode machine code. Its global variables, if it has any, are allocated in `memory`.

    Raises `UsageError` that names an instruction unknown to the emulator, `NoCompilerError` if the artifact has no
    disassembly and no disassembler is installed.
    """
    # Without `sass` there was no disassembler when the code was built or fetched. If there is still none, `text_of`
    # raises an error that names its package.
    sass = artifact.texts.get("sass") or disassembly.text_of(artifact.code, artifact.kernel)
    ptx = artifact.texts.get("ptx", "")
    functions = relined(parse(sass), ptx)
    if names_variables(cubin, functions):
        return EmulatedLoaded(artifact, _with_ptx(load_image(cubin, functions, artifact.entry, memory), ptx))
    return EmulatedLoaded(artifact, _placeless_image(artifact.code, artifact.kernel, sass, ptx, artifact.entry))


def hazards_of_ptx(loaded: EmulatedLoaded) -> tuple[Hazard, ...]:
    """Return the hazards that the PTX of a kernel shows and its machine code does not."""
    texts, image = loaded.artifact.texts, loaded.image
    return _hazards_of_ptx(
        texts.get("ptx", ""), texts.get("log", ""), image.function.name, image.warpgroups, image.asynchronous
    )


@lru_cache(maxsize=64)
def _hazards_of_ptx(ptx: str, log: str, name: str, warpgroups: bool, asynchronous: bool) -> tuple[Hazard, ...]:
    """Return the hazards that `ptx` and the compiler's `log` show in the kernel `name`.

    `warpgroups` and `asynchronous` are those of the kernel's `Image`. The result is cached, because reading PTX
    takes longer than many launches.
    """
    found: list[Hazard] = []
    if ptx and warpgroups:
        found += hazards_of(log, ptx, name, plain_name(name))
    if ptx and asynchronous:
        found += unfenced_mbarriers(ptx, name, plain_name(name))
    return tuple(found)


@lru_cache(maxsize=16)
def _placeless_image(code: bytes, kernel: str, sass: str, ptx: str, entry: str) -> Image:
    """Return the image of code without global variables, which is the same for every memory.

    It is cached, because decoding takes longer than many launches.
    """
    return _with_ptx(load_image(read_cubin(code, kernel), relined(parse(sass), ptx), entry, MemoryMap()), ptx)


def _with_ptx(image: Image, ptx: str) -> Image:
    """Return a copy of an image with what only the PTX shows: volatile accesses, and the variables in shared memory."""
    function = image.function
    variables = shared_variables(ptx, function.name, function.static_smem_bytes)
    return replace(mark_volatile(image, ptx), shared_variables=variables)
