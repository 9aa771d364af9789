"""Rungs with stores of the SM and of clocks at the start and the end of each block, and around each barrier."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from gemmlab.core.program import Artifact, Program
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.toolchain.compilation import compile_cubin

SIZES = (512, 1024, 2048)
STEPS, SKIPPED = 64, 64
"""Clocks around barriers that a warp stores, and those that it passes before."""
_HELPERS = """
__device__ __forceinline__ void stamp_step(unsigned* steps, unsigned& count, int blocks)
{
    const unsigned place = count++ - SKIPPED;
    if (place < STEPS && blockIdx.x < blocks && first_lane()) {
        unsigned now;
        asm volatile("mov.u32 %0, %%clock;" : "=r"(now)::"memory");
        const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x, warps = (blockDim.x * blockDim.y + 31) / 32;
        steps[(blockIdx.x * warps + thread / 32) * STEPS + place] = now;
    }
}
"""


@dataclass(frozen=True, slots=True)
class Rung:
    """A rung in one configuration; with `steps` it also stores the clocks before and behind each barrier."""

    kernel: str
    config: Mapping[str, int] = field(default_factory=dict)
    steps: bool = False

    @property
    def label(self) -> str:
        values = ",".join(f"{name}={value}" for name, value in self.config.items())
        return f"{self.kernel}[{values}]{' steps' if self.steps else ''}"


def _configured(kernel: str, names: str, rows: str) -> list[Rung]:
    keys = names.split()
    return [Rung(kernel, dict(zip(keys, map(int, row.split()), strict=True))) for row in rows.split("/")]


def rungs() -> list[Rung]:
    """Return the configurations that the record `configs.json` has of five rungs, and some of them with steps."""
    tiles = "BM BN BK TM TN"
    found = [
        *_configured(
            "warp_tile", "BM BN BK WM WN WNITER ORDER",
            "128 64 8 64 64 2 1/64 64 8 64 64 4 0/64 128 8 64 64 2 1/64 64 16 64 32 2 0/128 64 8 64 32 2 0/"
            "64 64 8 64 32 2 1/64 128 8 64 32 2 0/128 128 16 64 64 2 0",
        ),
        *_configured(
            "block_tile", "BM BN BK UNROLL",
            "8 64 8 4/16 64 8 64/8 32 8 64/8 64 64 64/16 32 16 4/8 32 64 4/16 64 64 4",
        ),
        *_configured(
            "thread_tile_2d", f"{tiles} UNROLL",
            "64 64 8 4 8 64/64 64 16 4 4 4/64 64 8 8 8 4/128 64 16 8 4 64/64 128 8 8 4 4/64 64 8 8 4 64/"
            "128 128 16 4 8 4",
        ),
        *_configured(
            "register_stage", tiles,
            "64 64 16 8 8/64 64 16 4 4/64 128 16 4 8/128 64 16 4 8/64 64 8 4 8/64 128 16 8 4/64 64 8 8 4",
        ),
        *_configured(
            "conflict_free", f"{tiles} LANE_MAP",
            "256 64 8 16 8 1/128 256 8 16 8 0/64 64 8 8 8 1/64 128 8 8 8 0/64 64 8 16 8 1/64 64 8 16 8 0/"
            "64 256 8 16 8 1",
        ),
    ]  # fmt: skip
    timed = ((0, 3, 6), (0, 1, 3), (0, 2, 5), (0, 4), (2, 4))
    names = list(dict.fromkeys(one.kernel for one in found))
    for name, places in zip(names, timed, strict=True):
        mine = [one for one in found if one.kernel == name]
        found += [replace(mine[place], steps=True) for place in places]
    return found


def problem_of(size: int) -> GemmProblem:
    """Return the square product of this extent."""
    (problem,) = GemmOp().parse_sizes(str(size))
    return problem


def compiled(rung: Rung, stamps: str, arch: str) -> Artifact:
    """Compile a rung with the stores; `stamps` is the text of stamps.cuh. Raises `CompileError`."""
    kernel = find_kernel(rung.kernel)
    scalars = GemmOp().scalars(problem_of(SIZES[0]))
    program = kernel.program(kernel.instantiate(kernel.configure(rung.config), scalars), arch)
    return compile_cubin(replace(program, emit=partial(str, patched(program, rung, stamps)), fingerprint=""))


def patched(program: Program, rung: Rung, stamps: str) -> str:
    """Return the source of a rung with three more parameters: where clocks of warps and of their barriers go, and how
    many blocks store the latter.
    """
    text = program.source()
    helpers = _HELPERS.replace("SKIPPED", str(SKIPPED)).replace("STEPS", str(STEPS))
    found = re.search(rf"\b{rung.kernel}\(\s*int M[^)]*", text)
    if found is None:
        raise SystemExit(f"{rung.kernel}: its source has no kernel with the parameters of a product")
    start, opened = text.rindex("template", 0, found.start()), text.index("{", found.end())
    before, parameters = text[:start], text[start : found.end()]
    body = text[opened + 1 :]
    end = _end_of(body)
    inside, after = body[:end], body[end:]
    if rung.steps:
        step = "stamp_step(stamped, stamp_count, stamping)"
        inside = inside.replace("__syncthreads();", f"{{ {step}; __syncthreads(); {step}; }}")
    more = ", unsigned long long* when, unsigned* stamped, int stamping)"
    opening = "{\n    stamp_start(when);\n    [[maybe_unused]] unsigned stamp_count = 0;\n"
    head = f"{before}{stamps.replace('#pragma once', '')}{helpers}{parameters}{more}"
    return f"{head}\n{opening}{inside}\n    stamp_end(when);\n{after}"


def _end_of(body: str) -> int:
    """Return the place of the brace that closes the function whose text behind the opening brace is `body`."""
    depth = 1
    for place, letter in enumerate(body):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if not depth:
            return place
    raise SystemExit("a brace is missing")
