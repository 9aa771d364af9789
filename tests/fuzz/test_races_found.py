"""Whether a race in global memory is found does not hang on the order of blocks and warps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from support.trials import Trials

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from gemmlab import launch
from gemmlab.emulator import resident
from gemmlab.emulator.loop import ROUNDS

# Each block takes the part of another one, so that the parts run in any order. A part reads one of the `count` words
# of each row and writes another one; what it reads belongs to a part `reach` further on, of its own block or not.
SOURCE = """
extern "C" __global__ void parts(const int* order, int* x, int count, int reach, int same) {
    const int part = order[blockIdx.x], i = part * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const int from = (i + reach) % count;
    const int seen = x[from];
    x[i] = same ? 1 : i + seen + 2;
}
extern "C" __global__ void handed(const int* order, int* x, int* done, int fenced) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        x[order[blockIdx.x]] = 1 + blockIdx.x;
        if (fenced) __threadfence();
        last = atomicAdd(done, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) x[gridDim.x + threadIdx.x] = threadIdx.x < gridDim.x ? x[threadIdx.x] : 0;
}
"""


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Set the instructions a warp executes before the next one's turn."""
    plain = resident.Resident.run

    def change(turn: int) -> None:
        def run(self: resident.Resident, asked: int = turn, most: int = ROUNDS) -> int:
            return plain(self, asked, most)

        monkeypatch.setattr(resident.Resident, "run", run)

    return change


@pytest.mark.in_turns(4)
def test_a_race_is_found_in_any_order(trials: Trials, turns: Callable[[int], None]) -> None:
    for rng in trials:
        turns(int(rng.integers(1, 200)))
        blocks, threads = int(rng.integers(2, 7)), int(rng.integers(1, 5)) * 32
        order = rng.permutation(blocks).astype(np.int32)
        count = blocks * threads
        # A lane's own word, or that of another warp or block: two lanes of a warp are not looked at.
        reach = int(rng.choice([0, 32, threads, count - 32])) % count
        same = int(rng.integers(2))
        hazards = races("parts", blocks, threads, [order, np.ones(count, np.int32), count, reach, same])
        assert bool(hazards) == (reach != 0 and not same), (order, reach, same, hazards)
        fenced = int(rng.integers(2))
        args = [order, np.zeros(blocks + threads, np.int32), np.zeros(1, np.int32), fenced]
        hazards = races("handed", blocks, threads, args)
        assert bool(hazards) == (not fenced), (order, hazards)


def races(kernel: str, blocks: int, threads: int, args: list[Any]) -> tuple[str, ...]:
    ran = launch(SOURCE, kernel, blocks, threads, args, device="emulated:sm_90", races=True)
    assert {hazard.kind for hazard in ran.hazards or ()} <= {"race"}
    return tuple(hazard.explain() for hazard in ran.hazards or ())
