"""The launches that a GPU and the emulator must agree on to the bit: the rungs, and the kernels of other kinds."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent / "foreign")]

import test_foreign  # noqa: E402
import test_foreign_models  # noqa: E402

from gemmlab.kernels.bound import bind  # noqa: E402
from gemmlab.kernels.catalog import find_kernel  # noqa: E402
from gemmlab.ops.catalog import find_op  # noqa: E402
from support.cuda_calls import Array, CudaFile  # noqa: E402

RUNGS = ("naive", "block_tile", "vector_load")
SIZES = "128x128x64,100x77x53,1x1x1,33x65x17,64x64x64,3x130x31"
"""On the tile and off it."""
SEED = 3


@dataclass(frozen=True, slots=True)
class Result:
    """What one launch left behind."""

    name: str
    outputs: list[Array]
    approximate: bool = False
    """Whether special functions (MUFU) were executed, as far as the device counts."""


def launches(device: Any) -> Iterator[Result]:
    """Every launch, in a fixed order."""
    yield from rungs(device)
    yield from foreign(device)


def rungs(device: Any) -> Iterator[Result]:
    """The three rungs in every layout they read in place, with alpha and beta that are not 1 and 0 too."""
    op = find_op("gemm")
    for rung in RUNGS:
        kernel = find_kernel(rung)
        for size in op.parse_sizes(SIZES):
            for problem in op.in_layouts(size, kernel.layouts):
                arrays = op.fill(problem, np.random.default_rng(SEED))
                flat = {name: array.reshape(-1) for name, array in arrays.items()}
                bound = bind(kernel, device, op, problem, flat)
                bound.run()
                out = np.empty_like(flat["c"])
                bound.download("c", out)
                yield Result(f"{rung} {problem.label} {problem.layout}", [out])


def foreign(device: Any) -> Iterator[Result]:
    """Every call that the tests of foreign kernels make, by file, kernel and number."""
    files: dict[str, CudaFile] = {}
    made: list[Result] = []

    def call(name: str, kernel: str, grid: Any, threads: Any, *args: Any, smem_bytes: int = 0) -> list[Array]:
        file = files.setdefault(name, CudaFile(device, HERE.parent / "foreign" / f"{name}.cu"))
        ran = file.run(kernel, grid, threads, args, smem_bytes)
        approximate = ran.counters is not None and ran.counters.executed("MUFU") > 0
        made.append(Result(f"{name} {kernel} {len(made)}", [np.copy(out) for out in ran.outputs], approximate))
        return ran.outputs

    for test, arguments in tests():
        test(call, **arguments)
    yield from made


def tests() -> Iterator[tuple[Callable[..., None], dict[str, Any]]]:
    """Each test function of the foreign kernels with each set of its parameters."""
    for name, test in [*vars(test_foreign).items(), *vars(test_foreign_models).items()]:
        if not name.startswith("test_"):
            continue
        marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
        choices = []
        for mark in marks:
            names = (
                [each.strip() for each in mark.args[0].split(",")] if isinstance(mark.args[0], str) else mark.args[0]
            )
            rows = [row if len(names) > 1 else (row,) for row in mark.args[1]]
            choices.append([dict(zip(names, row, strict=True)) for row in rows])
        for chosen in itertools.product(*choices):
            yield test, {key: value for part in chosen for key, value in part.items()}
