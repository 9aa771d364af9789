"""Record on which SM each block of a launch ran and when it began, in two launches, for a claim about block swizzles.

    python makers/block_to_sm.py [--device cuda:0] [--out benchmarks/results/h200/block-to-sm.json]

The blocks are like those of a product: 256 threads, 48 KiB of shared memory, microseconds of multiply-adds, a little
more or fewer from block to block. It takes a second on a GPU. On the emulator (`--device emulated:sm_90 --blocks 8`)
the kernel runs, but there is one virtual SM, and no record is written.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import gemmlab
from blocks.records import RESULTS
from claims.small_runs import BLOCK_TO_SM, in_first_wave, same_place
from gemmlab.core.errors import GemmlabError
from gemmlab.devices.device_name import parse_device
from gemmlab.devices.select import open_device

THREADS, SMEM_BYTES, RUNS = 256, 49_152, 2
SOURCE = r"""
extern "C" __global__ void __launch_bounds__(256) where(unsigned* sm, unsigned long long* start, float* sink, int steps)
{
    extern __shared__ float held[];
    if (threadIdx.x == 0) {
        unsigned mine;
        unsigned long long now;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(mine));
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        sm[blockIdx.x] = mine;
        start[blockIdx.x] = now;
    }
    held[threadIdx.x] = threadIdx.x;
    float sum = blockIdx.x;
    // Loads of a product come from L2 or from memory: no two blocks take equally long.
    const int mine = steps + blockIdx.x * 2654435761u % 64 * (steps / 512);
    for (int i = 0; i < mine; ++i) sum = sum * 0.999f + held[threadIdx.x];
    if (sum == -1.0f) *sink = sum;
}
"""


def run(device: str, blocks: int, steps: int) -> tuple[list[int], list[int]]:
    """Return the SM of each block, and the time at which each began, in nanoseconds after the first one."""
    arguments = (np.zeros(blocks, np.uint32), np.zeros(blocks, np.uint64), np.zeros(1, np.float32), np.int32(steps))
    outputs: Any = gemmlab.launch(
        SOURCE, "where", blocks, THREADS, arguments, device=device, smem_bytes=SMEM_BYTES
    ).outputs
    sm, start = (np.asarray(output) for output in outputs[:2])
    return sm.tolist(), (start - start.min()).tolist()


def resident(device: str) -> int:
    """Return how many blocks the GPU runs at the same time, by its shared memory and threads."""
    facts = open_device(device).describe().facts
    by_memory = int(facts["smem_per_sm"]) // (SMEM_BYTES + int(facts["smem_reserved"]))
    return min(by_memory, int(facts["threads_per_sm"]) // THREADS) * int(facts["sms"])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--blocks", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=8192)
    parser.add_argument("--out", type=Path, default=RESULTS / BLOCK_TO_SM[0])
    chosen = parser.parse_args(arguments)
    try:
        run(chosen.device, chosen.blocks, chosen.steps)  # compiles, and warms up
        runs: list[dict[str, Any]] = []
        on_gpu = parse_device(chosen.device).family == "cuda"
        fit = resident(chosen.device) if on_gpu else chosen.blocks // 2
        for _ in range(RUNS):
            sm, start = run(chosen.device, chosen.blocks, chosen.steps)
            runs.append({"resident": fit, "sm": sm, "start": start})
    except GemmlabError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"{fit} blocks at a time on {len(set(runs[0]['sm']))} SMs; in the first wave {in_first_wave(runs[0]):.1%}, "
          f"on the same SM again {same_place(*runs):.1%}")  # fmt: skip
    if on_gpu:
        record = {"schema": BLOCK_TO_SM[1], "device": open_device(chosen.device).describe().name, "runs": runs}
        chosen.out.write_text(json.dumps(record) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
