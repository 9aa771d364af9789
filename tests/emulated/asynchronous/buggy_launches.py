"""Every launch of a kernel with a bug of the asynchronous world, and of its right twin, for other tools to look at."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

WGMMA = Path(__file__).parents[1] / "wgmma"
sys.path[:0] = [str(WGMMA), str(WGMMA.parent / "conformance")]

import wgmma_pipeline  # noqa: E402 - it lies in another folder
from buggy_launch import BuggyLaunch  # noqa: E402
from buggy_places import place_launches  # noqa: E402
from hazard_pairs import IN, PAIRS, arguments  # noqa: E402
from wgmma_forms import Form  # noqa: E402
from wgmma_gemm import BUGS, chunks_of, gemm_source, shared_bytes  # noqa: E402

from gemmlab import TensorMap  # noqa: E402

REGISTERS = {"no_fence": 128, "late_write": 128, "no_wait": 128, "some_lanes": 128, "three_warps": 128,
             "stuck_warp": 128, "greedy": 384}  # fmt: skip
"""Kernels of `wgmma_misuse.cu` with a bug, and their threads."""
GROUPS = {"not_committed": 128, "one_left": 128, "added_early": 128, "left_in_flight": 128, "refilled_in_flight": 128,
          "left_beyond": 128, "right_beyond": 128, "starved": 384, "early_operand": 128, "zeros_early": 128,
          "never_waited": 128, "chain_early": 128}  # fmt: skip
"""Kernels of `wgmma_groups.cu` with a bug, and their threads."""
WHOLE = ("whole", "in_turn", "left_behind_wait", "refilled_behind_wait", "far_operand", "zeros_waited", "chain_waited")
"""Kernels of `wgmma_groups.cu` without a bug."""
CAUSES = ("run_ahead", "never_empty", "some_never", "wrong_stage", "ends_early", "expects_more", "expects_less",
          "one_block", "no_cluster_sync")  # fmt: skip
"""Kernels of `causes.cu` without their endings; each has a bug and a right twin."""
CLUSTERS = {"early_operand": 2, "far_operand": 2}
"""Kernels of `wgmma_groups.cu` that run in clusters, and their blocks."""


def launches() -> Iterator[BuggyLaunch]:
    """All of them; a name is there once with the bug, and once without where it has a twin of its own."""
    yield from _pairs()
    yield from _causes()
    yield from place_launches()
    yield from _registers()
    yield from _groups()
    yield from _products()
    yield from _pipelines()


def _pairs() -> Iterator[BuggyLaunch]:
    for pair in PAIRS:
        for bug in (True, False):
            kernel = f"{pair.name}_{'bad' if bug else 'good'}"
            yield BuggyLaunch(pair.name, bug, {
                "source": Path(__file__).with_name(pair.file), "kernel": kernel, "grid": pair.grid, "threads": 128,
                "args": arguments(pair),
            })  # fmt: skip


def _causes() -> Iterator[BuggyLaunch]:
    for name in CAUSES:
        out = np.zeros(256, np.float32)
        for bug in (True, False):
            yield BuggyLaunch(f"cause {name}", bug, {
                "source": Path(__file__).with_name("causes.cu"), "kernel": f"{name}_{'bad' if bug else 'good'}",
                "grid": 2 if name in {"one_block", "no_cluster_sync"} else 1, "threads": 128,
                "args": [out] if name == "no_cluster_sync" else [IN, out],
            })  # fmt: skip


def _registers() -> Iterator[BuggyLaunch]:
    for kernel, threads in (REGISTERS | {"right": 128, "fair": 384}).items():
        yield _on_ones(f"wgmma {kernel}", kernel in REGISTERS, "wgmma_misuse.cu", kernel, threads, 512)


def _groups() -> Iterator[BuggyLaunch]:
    for kernel, threads in GROUPS.items():
        yield _on_ones(f"groups {kernel}", True, "wgmma_groups.cu", kernel, threads, 2048)
    for threads in (64, 96, 160):
        yield _on_ones(f"groups whole {threads} threads", True, "wgmma_groups.cu", "whole", threads, 2048)
    for kernel in WHOLE:
        yield _on_ones(f"groups {kernel}", False, "wgmma_groups.cu", kernel, 128, 2048)


def _on_ones(name: str, bug: bool, file: str, kernel: str, threads: int, words: int) -> BuggyLaunch:
    """A launch of one block, or of one cluster, on an array of ones."""
    return BuggyLaunch(name, bug, {
        "source": WGMMA / file, "kernel": kernel, "grid": CLUSTERS.get(kernel, 1), "threads": threads,
        "args": [np.ones(words, np.float32)], "arch": "sm_90a",
    })  # fmt: skip


def _products() -> Iterator[BuggyLaunch]:
    form, size = Form("f16", "f16", "f32", 64), 512
    operands = [np.full((64, size // 2), 0x3C003C00, np.uint32) for _ in range(2)]
    args = [*operands, np.zeros((64, 64), np.uint32), np.int32(64), np.int32(chunks_of(form, size))]
    for bug in ("", *BUGS):
        yield BuggyLaunch(f"product {bug or 'right'}", bool(bug), {
            "source": gemm_source(form, "128"), "kernel": "gemm", "grid": 1, "threads": 128, "args": args,
            "smem_bytes": shared_bytes(form, "128"), "options": [f"-D{bug}"] if bug else [], "arch": "sm_90a",
        })  # fmt: skip


def _pipelines() -> Iterator[BuggyLaunch]:
    a, b = (np.ones((128, 640), np.float16) for _ in range(2))
    maps = [TensorMap(each, (128, wgmma_pipeline.DEPTH), swizzle=128) for each in (a, b)]
    args = [*maps, np.zeros((128, 128), np.float32), np.int32(128), np.int32(640 // wgmma_pipeline.DEPTH)]
    for bug in ("", "EARLY_RELEASE", "WRONG_PARITY"):
        yield BuggyLaunch(f"pipeline {bug or 'right'}", bool(bug), {
            "source": wgmma_pipeline.source(), "kernel": "pipeline", "grid": 1, "threads": 384, "args": args,
            "smem_bytes": wgmma_pipeline.SHARED, "options": [f"-D{bug}"] if bug else [], "arch": "sm_90a",
        })  # fmt: skip
