"""The code of the experiments: compiled without a GPU, carried in one file, and loaded."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.program import Artifact, Program
from gemmlab.toolchain.cache import decode
from gemmlab.toolchain.compilation import compile_cubin
from sass_on_gpu import packed
from unit_cost import latencies, mixes, rungs

ARCH = "sm_90"
FOLDER = Path(__file__).parents[1] / "unit_kernels"
STAMPS = "stamps.cuh"
TOUCH, NOTHING, ARGUMENTS, READ_FAR = "touch", "nothing", "arguments", "read_far"
MIXES = ("mix", "barriers", "outer", "code")
"""Templates in mixes.cu."""


def names() -> list[str]:
    """Return the name expression of each kernel, without the rungs."""
    found = [loop.kernel for loop in mixes.loops()]
    found += [case.kernel for case in latencies.behind()] + [case.kernel for case in latencies.loaded()]
    found += [TOUCH, NOTHING, ARGUMENTS, READ_FAR]
    return list(dict.fromkeys(found))


def compiled(name: str) -> Artifact:
    """Compile one kernel of `FOLDER`."""
    own = dict.fromkeys((NOTHING, ARGUMENTS, READ_FAR), "launching.cu")
    file = "mixes.cu" if name.partition("<")[0] in MIXES else own.get(name, "latencies.cu")
    source, stamps = ((FOLDER / one).read_text("utf-8") for one in (file, STAMPS))
    return compile_cubin(Program(name, "cuda", ARCH, name, "", partial(str, source), headers={STAMPS: stamps}))


def write(out: Path) -> None:
    """Compile every kernel and every rung with its stores, and write all of them to one file."""
    stamps = (FOLDER / STAMPS).read_text("utf-8")
    codes = {name: packed(compiled(name)) for name in names()}
    codes |= {rung.label: packed(rungs.compiled(rung, stamps, ARCH)) for rung in rungs.rungs()}
    save(out, codes)
    print(f"{len(codes)} kernels, {out.stat().st_size:,} bytes")


def save(out: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays of any names to one file."""
    numbered = {f"array_{n}": values for n, values in enumerate(arrays.values())}
    with out.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, names=np.array(list(arrays)), **numbered)


def read(prepared: Path) -> dict[str, Artifact]:
    """Return the code by name."""
    with np.load(prepared) as file:
        return {str(name): decode(file[f"array_{n}"].tobytes()) for n, name in enumerate(file["names"])}
