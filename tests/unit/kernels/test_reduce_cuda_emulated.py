"""The reduction's CUDA kernels run from their machine code: right at the edges, counted as their files say."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemmlab import launch
from gemmlab.core.counters import SHARED_LOAD, Observation
from gemmlab.devices.device import Device
from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import find_kernel, ladder
from gemmlab.kernels.cuda_file.instance import COMMON
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.op import Float32Array
from gemmlab.ops.reduce import ReduceOp, ReduceProblem
from gemmlab.toolchain.cubin import read_cubin
from gemmlab.verify.check import check_kernel
from gemmlab.verify.expectations import judge_claims
from gemmlab.verify.guarded_run import GuardedRun
from support.cuda_source import needs_compiler

pytestmark = needs_compiler
OP = ReduceOp()
RUNGS = ladder("reduce", "cuda")
each_rung = pytest.mark.parametrize("kernel", [pytest.param(kernel, id=kernel.id) for kernel in RUNGS])
ARCHITECTURES = ("sm_80", "sm_89", "sm_90")
LENGTHS = (0, 1, 3, 4, 31, 100, 255, 256, 257, 511, 513, 1025, 3001)


@cache
def device(arch: str = "sm_90") -> Device:
    return open_device(f"emulated:{arch}")


def edge_cases() -> list[ReduceProblem]:
    cases = [ReduceProblem(n, ("sum", "max", "min")[index % 3]) for index, n in enumerate(LENGTHS)]
    cases += [ReduceProblem(2000, "sum", contents) for contents in ("rising", "cancelling", "nan", "opposed", "huge")]
    return [*cases, ReduceProblem(700, "max", "nan"), ReduceProblem(700, "min", "infinite"), ReduceProblem(70_003)]


def run(kernel: Kernel, x: Float32Array, operator: str = "sum", shift: int = 0, **config: int) -> tuple[Any, Any]:
    """What the machine code makes of `x`, starting `shift` floats off, and what was noticed."""
    problem = ReduceProblem(x.size, operator)
    contents = {"x": x.reshape(1, -1), "out": np.full((1, 1), np.nan, np.float32)}
    case = GuardedRun(place(kernel, device(), config), OP, problem, contents, shift=shift)
    seen = case.run()
    assert isinstance(seen, Observation)
    return case.guarded["out"].contents()[0, 0], seen


@pytest.mark.in_turns(20)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@each_rung
def test_a_kernel_is_right_at_every_edge_and_commits_no_hazard(kernel: Kernel, arch: str) -> None:
    report = check_kernel(kernel, device(arch), OP, cases=edge_cases())
    assert report.passed, report.explain()
    assert report.cases == len(edge_cases())


@pytest.mark.in_turns(20)
@pytest.mark.sampled(4)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@each_rung
def test_what_a_file_expects_is_what_is_counted(kernel: Kernel, arch: str) -> None:
    judged = list(judge_claims(kernel, device(arch), OP))
    assert len(judged) == len(kernel.expect)
    assert [one.broken for one in judged if one.broken] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel_id", "config"),
    [
        ("reduce_interleaved", {"BLOCK": 128}), ("reduce_interleaved", {"BLOCK": 1024}),
        ("reduce_unroll_last_warp", {"BLOCK": 128}), ("reduce_unroll_last_warp", {"BLOCK": 1024}),
        ("reduce_unrolled", {"BLOCK": 128}), ("reduce_unrolled", {"BLOCK": 1024}),
        ("reduce_grid_stride", {"BLOCK": 128, "BLOCKS": 3}), ("reduce_shuffle", {"BLOCK": 1024, "BLOCKS": 2}),
        ("reduce_shuffle", {"BLOCK": 128, "BLOCKS": 1}),
        # Few blocks: whole turns of all loads, then a part of one.
        ("reduce_peak", {"BLOCK": 128, "BLOCKS": 3, "LOADS": 2, "ALONE": 100}),
        ("reduce_peak", {"BLOCK": 128, "BLOCKS": 1, "LOADS": 16}),
        # More blocks than threads in the one that comes last.
        ("reduce_peak", {"BLOCK": 128, "BLOCKS": 300, "LOADS": 4, "ALONE": 0}),
    ],
)  # fmt: skip
def test_other_configurations_are_right_too(kernel_id: str, config: dict[str, int]) -> None:
    report = check_kernel(find_kernel(kernel_id), device(), OP, config=config, cases=edge_cases())
    assert report.passed, report.explain()


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("shift", range(5))
@each_rung
def test_a_start_may_lie_anywhere(kernel: Kernel, shift: int) -> None:
    for n in (2, 5, 1030):
        value, seen = run(kernel, np.arange(1, n + 1, dtype=np.float32), shift=shift)
        assert value == n * (n + 1) / 2
        assert seen.hazards == ()


@each_rung
def test_the_same_bits_every_time(kernel: Kernel) -> None:
    x = np.random.default_rng(5).standard_normal(40_000).astype(np.float32)
    first, second = (run(kernel, x)[0] for _ in range(2))
    assert first.tobytes() == second.tobytes()


@pytest.mark.in_turns(20)
def test_the_last_block_leaves_the_count_as_it_was_found() -> None:
    x, out = np.ones(4096, np.float32), np.empty(1, np.float32)
    here, config = device(), {"BLOCK": 128, "BLOCKS": 4, "ALONE": 0}
    buffers = {"x": here.upload(x), "out": here.upload(out)}
    bound = place(find_kernel("reduce_peak"), here, config).bind(OP, ReduceProblem(x.size), buffers)
    for _ in range(3):
        bound.run()
        bound.download("out", out)
        assert out[0] == 4096
        assert bound.nonzero_tickets() == 0
        parts = np.empty(4, np.float32)
        here.download(bound.workspace, parts)
        assert parts.tolist() == [1024] * 4


@pytest.mark.in_turns(20)
def test_executions_share_no_memory_of_the_program() -> None:
    """What two launches at once could meet in is in the workspace alone: the code's only variables are constants."""
    for kernel in RUNGS:
        instance = kernel.instantiate(kernel.configure(), OP.scalars(ReduceProblem(1)))
        made = read_cubin(device().build(kernel.program(instance, "sm_90")).code, kernel.id)
        variables = {name for name, found in made.symbols.items() if found.section.startswith(".nv.global")}
        constants = {"SUM", "MAX", "MIN", "WARP", "ALL_LANES", "_ZN7Meeting13FIRST_PARTIALE"}
        assert "SUM" in variables <= constants


@pytest.mark.in_turns(20)
def test_the_greatest_and_the_least_are_nan_where_any_is() -> None:
    for kernel in map(find_kernel, ("reduce_interleaved", "reduce_peak")):
        for operator, at in (("max", 0), ("min", 999), ("max", 500)):
            x = np.linspace(-3, 4, 1000, dtype=np.float32)
            assert run(kernel, x, operator)[0] == getattr(x, operator)()
            x[at] = np.nan
            assert np.isnan(run(kernel, x, operator)[0])


@pytest.mark.in_turns(20)
def test_conflicts_of_the_strided_index_step_by_step() -> None:
    """2, 4, 8, 8, 8, 4, 2 wavefronts for one, seen by ending the loop one step later each time."""
    text = (Path(find_kernel("reduce_strided_index").path)).read_text(encoding="utf-8")
    header = (COMMON / "reduce.cuh").read_text(encoding="utf-8")
    text = text.replace('#include "reduce.cuh"', header)
    loads, requests = [0], [0]
    ended = re.sub(r"stride < blockDim\.x; stride", "stride < N; stride", text)
    assert ended != text
    for steps in range(1, 9):
        done = launch(
            ended, "reduce_strided_index<256, 0>", grid=1, threads=256,
            args=(np.int64(2**steps), np.ones(256, np.float32), np.zeros(1, np.float32)), device="emulated:sm_90",
        )  # fmt: skip
        assert done.counters is not None
        sites = done.counters.of_kind(SHARED_LOAD)
        loads.append(sum(site.wavefronts for site in sites))
        requests.append(sum(site.requests for site in sites))
    # The last load is of the result.
    loads, requests = [max(0, v - 1) for v in loads], [max(0, v - 1) for v in requests]
    warps = [(b - a) // 2 for a, b in pairwise(requests)]
    wavefronts = [(b - a) // 2 for a, b in pairwise(loads)]
    assert warps == [4, 2, 1, 1, 1, 1, 1, 1]
    assert [w // count for w, count in zip(wavefronts, warps, strict=True)] == [2, 4, 8, 8, 8, 4, 2, 1]


VOLATILE = r"""
__global__ void article(float* in, float* out) {
    __shared__ float sdata[256];
    unsigned tid = threadIdx.x;
    sdata[tid] = in[tid];
    __syncthreads();
    for (unsigned s = blockDim.x / 2; s > 32; s >>= 1) {
        if (tid < s) sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
    if (tid < 32) {
        volatile float* cache = sdata;
        for (int s = 32; s > 0; s >>= 1) cache[tid] += cache[tid + s];
    }
    if (tid == 0) out[0] = sdata[0];
}
"""


@pytest.mark.in_turns(20)
def test_a_last_warp_that_trusts_in_volatile_is_a_race() -> None:
    done = launch(
        VOLATILE, "article", grid=1, threads=256, args=(np.ones(256, np.float32), np.zeros(1, np.float32)),
        device="emulated:sm_90",
    )  # fmt: skip
    assert done.hazards is not None
    assert {hazard.kind for hazard in done.hazards} == {"race"}
    assert all("cache[tid] +=" in VOLATILE.splitlines()[hazard.line - 1] for hazard in done.hazards)
