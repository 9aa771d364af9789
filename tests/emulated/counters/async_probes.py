"""Right kernels of the asynchronous machine for a profiler, some of them often, since waits repeat by chance."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

EMULATED = Path(__file__).parents[1]
sys.path[:0] = [str(EMULATED / name) for name in ("asynchronous", "wgmma", "conformance")]

from buggy_launches import launches  # noqa: E402 - it lies in another folder
from wgmma_forms import Form  # noqa: E402
from wgmma_gemm import MODES, chunks_of, gemm_source, shared_bytes  # noqa: E402

from gemmlab import TensorMap, launch  # noqa: E402
from gemmlab.launching import Launched  # noqa: E402

ASYNCHRONOUS = EMULATED / "asynchronous"
OFTEN = 20
REPEATING = ("pipeline", "no_cluster_store")
"""Beginnings of the names of launches whose waits are tried again by chance."""


@dataclass(frozen=True, slots=True)
class AsyncProbe:
    """A launch by keywords of `gemmlab.launch`."""

    name: str
    keywords: dict[str, Any]
    times: int = 1

    def run(self, device: str, **more: Any) -> Launched:
        return launch(**self.keywords, device=device, **more)


def async_probes() -> Iterator[AsyncProbe]:
    """All of them, in the order in which they are profiled."""
    for each in launches():
        if not each.bug:
            yield AsyncProbe(str(each), each.keywords, OFTEN if each.name.startswith(REPEATING) else 1)
    yield from _boxes()
    yield from _products()
    numbers = np.ones(64 * 9, np.float32)
    yield _probe("mbarriers.cu", "ring", 96, numbers, np.zeros(64, np.float32), np.int32(9), times=OFTEN)
    yield _probe("mbarriers.cu", "phases", 64, numbers, np.zeros(64, np.float32), times=OFTEN)
    tile, flat = TensorMap(np.ones((4, 32), np.float32), (1, 32)), np.ones(64, np.float32)
    yield _probe("clusters.cu", "multicast", 32, tile, flat, np.zeros(512, np.float32), grid=(2, 2))
    yield _probe("clusters.cu", "neighbours", 64, np.ones(256, np.uint32), np.zeros(256, np.uint32), grid=4)
    yield _probe("clusters.cu", "remote", 32, np.zeros(32, np.uint32), grid=4)
    yield _probe("clusters.cu", "send", 32, np.ones(64, np.uint32), np.zeros(64, np.uint32), grid=2)
    a, b, c = (np.ones(shape, np.float32) for shape in ((100, 160), (150, 72), (100, 72)))
    maps = TensorMap(a, (32, 16), swizzle=64, shape=(100, 150)), TensorMap(b, (8, 32)), TensorMap(c, (32, 32))
    yield _probe("pipeline.cu", "right", 160, *maps, np.int32(160), grid=(4, 3), times=OFTEN)


def _boxes() -> Iterator[AsyncProbe]:
    for swizzle in (0, 32, 64, 128):
        array = np.ones((40, 64), np.float32)
        tensor = TensorMap(array, (16, (swizzle or 64) // 4), swizzle=swizzle)
        nbytes = 16 * (swizzle or 64)
        for place, at in (("inside", (8, 8)), ("edge", (60, 33))):
            numbers = [np.int32(value) for value in (*at, 0, 0, 0, nbytes)]
            yield _probe("tensors.cu", "show2", 64, tensor, np.zeros(nbytes, np.uint8), *numbers, smem_bytes=40960,
                         said=f"{swizzle} {place}")  # fmt: skip
            numbers = [np.int32(value) for value in (*at, nbytes)]
            for kernel in ("put0", "put1"):
                yield _probe("tensors.cu", kernel, 64, tensor, np.zeros(nbytes, np.uint8), *numbers, smem_bytes=40960,
                             said=f"{swizzle} {place}")  # fmt: skip


def _products() -> Iterator[AsyncProbe]:
    forms = [Form("f16", "f16", "f32", columns) for columns in (8, 64, 256)]
    forms += [Form("tf32", "tf32", "f32", 64), Form("e4m3", "e4m3", "f32", 64), Form("s8", "s8", "s32", 64)]
    forms += [Form("f16", "f16", "f32", 64, registers=True)]
    for form in forms:
        for mode in MODES:
            depth = 2 * chunks_of(form, 1024)
            operands = [np.zeros((rows, depth), np.uint32) for rows in (64, form.columns)]
            args = [*operands, np.zeros((64, form.columns), np.uint32), np.int32(form.columns), np.int32(depth // 4)]
            yield AsyncProbe(f"product {form.name} {mode}", {
                "source": gemm_source(form, mode), "kernel": "gemm", "grid": 1, "threads": 128, "args": args,
                "smem_bytes": shared_bytes(form, mode), "arch": "sm_90a",
            })  # fmt: skip


def _probe(file: str, kernel: str, threads: int, *args: Any, grid: Any = 1, times: int = 1, said: str = "",
           smem_bytes: int = 0) -> AsyncProbe:  # fmt: skip
    keywords = {"source": ASYNCHRONOUS / file, "kernel": kernel, "grid": grid, "threads": threads, "args": list(args),
                "smem_bytes": smem_bytes}  # fmt: skip
    return AsyncProbe(f"{file.removesuffix('.cu')} {kernel} {said}".strip(), keywords, times)
