"""Launches of many kinds from many threads at once, and what each came to, to compare with the same one alone."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import gemmlab
from gemmlab.devices.device import Device

SOURCE = """
__device__ int total;
__device__ int table[64];

extern "C" __global__ void axpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
extern "C" __global__ void beyond(int n, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i + n] + 1;
}
extern "C" __global__ void counted(int n, int* out) {
    if (threadIdx.x < n) table[threadIdx.x & 63] = n;
    int before = atomicAdd(&total, 1);
    out[blockIdx.x * blockDim.x + threadIdx.x] = before + table[threadIdx.x & 63];
}
extern "C" __global__ void textured(int n, cudaTextureObject_t from, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = tex1Dfetch<float>(from, (i * 7 + n) % n);
}
extern "C" __global__ void races(int n, int* out) {
    __shared__ int word[32];
    word[threadIdx.x % 32] = n + threadIdx.x;
    out[blockIdx.x * blockDim.x + threadIdx.x] = word[(threadIdx.x + 1) % 32];
}
extern "C" __global__ void reversed(int n, const int* x, int* out) {
    __shared__ int tile[256];
    tile[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x] * n;
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void stopped(int n, int* out) {
    out[threadIdx.x] = n;
    if (blockIdx.x == 1) __trap();
}
extern "C" __global__ void strided(int n, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < n; ++k) y[i] += x[(i * 32 + k) % 1024];
}
extern "C" __global__ void spins(int n, volatile int* flag, int* out) {
    if (blockIdx.x + 1 < gridDim.x) while (flag[blockIdx.x + 1] != n) {}
    out[blockIdx.x] = blockIdx.x;
    __threadfence();
    flag[blockIdx.x] = n;
}
"""


@dataclass(frozen=True)
class Job:
    """One launch."""

    kernel: str
    grid: int
    threads: int
    args: Sequence[Any]

    def run(self, device: str | Device) -> tuple[Any, ...]:
        """Launch it; everything that must be the same each time: output bytes, counters, hazards."""
        done: Any = gemmlab.launch(SOURCE, self.kernel, self.grid, self.threads, self.args, device=device)
        return [output.tobytes() for output in done.outputs], done.counters, done.hazards


def jobs(rng: np.random.Generator, count: int) -> list[Job]:
    """Random ones, some of them with a mistake that is a hazard."""
    return [_job(rng, str(rng.choice(list(_MAKERS)))) for _ in range(count)]


def _job(rng: np.random.Generator, kernel: str) -> Job:
    grid, threads = int(rng.integers(1, 6)), 32 * int(rng.integers(1, 5))
    return Job(kernel, grid, threads, _MAKERS[kernel](rng, int(rng.integers(1, 40)), grid * threads))


def _floats(rng: np.random.Generator, size: int) -> Any:
    return rng.standard_normal(size, dtype=np.float32)


def _whole(rng: np.random.Generator, size: int) -> Any:
    return rng.integers(0, 1 << 20, size, dtype=np.int32)


_MAKERS: dict[str, Callable[[np.random.Generator, int, int], Sequence[Any]]] = {
    "axpy": lambda rng, n, size: (size - n, float(n), _floats(rng, size), _floats(rng, size)),
    "beyond": lambda rng, n, size: (n, _floats(rng, size), _floats(rng, size)),
    "counted": lambda rng, n, size: (n, _whole(rng, size)),
    "textured": lambda rng, n, size: (n, _floats(rng, 64 * n), _floats(rng, size)),
    "races": lambda rng, n, size: (n, _whole(rng, size)),
    "reversed": lambda rng, n, size: (n, _whole(rng, size), _whole(rng, size)),
    "stopped": lambda rng, n, size: (n, _whole(rng, size)),
    "strided": lambda rng, n, size: (n, _floats(rng, 1024), _floats(rng, size)),
    "spins": lambda rng, n, size: (n, np.zeros(size, np.int32), _whole(rng, size)),
}


def differing(work: Sequence[Job], threads: int, rounds: int, device: str | Device = "emulated:sm_90") -> list[str]:
    """Run all jobs `rounds` times, divided among the threads; those that came out as they do not alone."""
    alone = {id(job): job.run(device) for job in work}
    wrong: list[str] = []
    start = threading.Barrier(threads)

    def share(number: int) -> None:
        start.wait()
        for turn in range(rounds):
            for job in work[(number + turn) % threads :: threads]:
                try:
                    same = job.run(device) == alone[id(job)]
                    told = "another outcome"
                except Exception as error:  # noqa: BLE001 - whatever it is, it is wrong
                    same, told = False, repr(error)
                if not same:
                    wrong.append(f"{job.kernel} <<<{job.grid}, {job.threads}>>>: {told}")

    together(share, threads)
    return wrong


def together(share: Callable[[int], None], threads: int) -> None:
    """Call `share(0)` to `share(threads - 1)`, each in a thread of its own, with turns as short as Python allows."""
    with _short_turns():
        running = [threading.Thread(target=share, args=(number,)) for number in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()


@contextmanager
def _short_turns() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
