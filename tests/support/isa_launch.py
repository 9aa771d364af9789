"""CUDA kernels compiled without a driver and run by the emulator, for any architecture it has code for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gemmlab.emulator.isa  # noqa: F401  (fills the table of opcodes)
from gemmlab.core import gpu
from gemmlab.core.errors import NoCompilerError
from gemmlab.core.program import Launch, Program
from gemmlab.emulator.image import load_image
from gemmlab.emulator.launching import geometry_of
from gemmlab.emulator.machine import Outcome, run
from gemmlab.emulator.memory_map import MemoryMap
from gemmlab.sass.instruction import SassFunction
from gemmlab.sass.parse import parse
from gemmlab.toolchain import build_cuda
from gemmlab.toolchain.cubin import Cubin, read_cubin

Code = tuple[Cubin, Mapping[str, SassFunction]]


@cache
def compiled(source: str, entry: str, arch: str, options: tuple[str, ...] = ()) -> Code:
    """All kernels of a source; `entry` is any of them. Skips the test where there is no compiler."""
    program = Program(
        kernel="isa", language="cuda", target=arch, entry=entry, fingerprint="", emit=lambda: source, options=options
    )
    try:
        artifact = build_cuda.build(program)
    except NoCompilerError as error:
        pytest.skip(str(error))
    return read_cubin(artifact.code, "isa"), parse(artifact.texts["sass"])


def launch(
    code: Code,
    kernel: str,
    arrays: Sequence[npt.NDArray[Any]],
    *scalars: np.generic,
    grid: tuple[int, int, int] = (1, 1, 1),
    threads: tuple[int, int, int] = (64, 1, 1),
) -> Outcome:
    """Run once. Arrays, which are the first arguments, are copied to the device and back."""
    cubin, functions = code
    memory = MemoryMap()
    image = load_image(cubin, functions, kernel, memory)
    buffers = [memory.allocate(array.nbytes) for array in arrays]
    for buffer, array in zip(buffers, arrays, strict=True):
        memory.write(buffer, array)
    request = Launch(args=(*buffers, *scalars), grid=grid, threads=threads)
    geometry = geometry_of(image, request, gpu.limits(cubin.arch), wave_blocks=4, check_races=True)
    outcome = run(image.code, geometry, memory, resident_limit=4)
    for buffer, array in zip(buffers, arrays, strict=True):
        array.reshape(-1).view(np.uint8)[:] = buffer.data[: array.nbytes]
    return outcome
