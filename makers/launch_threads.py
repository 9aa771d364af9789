"""Compare the time of one launch on the emulator with that of several at once, one in each of some threads.

    python makers/launch_threads.py [--threads 2] [--seconds 2] [--rounds 5]

The two are measured in turns. It prints the median ratio of their times (1 if launches run fully in parallel), and the
number of cores that the launches had. On a machine that does other work, fewer cores make the ratio larger.
"""

from __future__ import annotations

import argparse
import math
import threading
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

import gemmlab

SOURCE = """
extern "C" __global__ void product(int n, const float* a, const float* b, float* c) {
    __shared__ float left[16][16], right[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        left[y][x] = a[row * n + k + x];
        right[y][x] = b[(k + y) * n + column];
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += left[y][i] * right[i][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
"""


def launched(n: int) -> bytes:
    """Launch a product of two n x n matrices on the emulator, n a multiple of 16; return the bytes of the result."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((n, n), dtype=np.float32) for _ in range(2))
    args = (n, a, b, np.zeros((n, n), np.float32))
    outputs: Any = gemmlab.launch(SOURCE, "product", (n // 16, n // 16), (16, 16), args, device="emulated").outputs
    result: bytes = outputs[2].tobytes()
    return result


def at_once(n: int, threads: int) -> tuple[float, float]:
    """Return the seconds until `threads` launches at once have ended, and the processor time that they took."""
    running = [threading.Thread(target=launched, args=(n,)) for _ in range(threads)]
    start, busy = time.perf_counter(), time.process_time()
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return time.perf_counter() - start, time.process_time() - busy


def size_for(seconds: float) -> int:
    """Return the extent, a multiple of 16, whose product takes about `seconds`."""
    n = 64
    while True:
        spent, _ = at_once(n, 1)
        if spent > seconds / 8:
            return max(16, 16 * round(n / 16 * math.cbrt(seconds / spent)))
        n *= 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line: measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2.0, help="that one launch takes alone")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args(arguments)
    launched(64)
    n = size_for(asked.seconds)
    print(f"products of {n} x {n} x {n}; {asked.threads} at once")
    ratios = []
    for _ in range(asked.rounds):
        (alone, busy), (both, busy_both) = at_once(n, 1), at_once(n, asked.threads)
        ratios.append(both / alone)
        print(
            f"one {alone:.2f} s ({busy / alone:.2f} cores), {asked.threads} at once {both:.2f} s "
            f"({busy_both / both:.2f} cores), ratio {both / alone:.2f}, "
            f"processor time a launch {busy_both / asked.threads / busy:.2f} times that of one"
        )
    print(f"median ratio {median(ratios):.2f}")


if __name__ == "__main__":
    main()
