"""Generic accesses are counted in the memory that they reach; instructions that no lane executes are no accesses."""

from __future__ import annotations

import numpy as np
import pytest

import gemmlab
from gemmlab.analysis.explanation import explain
from gemmlab.analysis.subject import machine
from gemmlab.core.counters import GLOBAL_LOAD, GLOBAL_STORE, SHARED_LOAD, SHARED_STORE
from gemmlab.kernels.catalog import find_kernel
from support.cuda_source import needs_compiler

SOURCE = """
__device__ __noinline__ float load(const float* p) {
    float x;
    asm volatile("ld.f32 %0, [%1];" : "=f"(x) : "l"(p));
    return x;
}
__device__ __noinline__ void store(float* p, float x) { *p = x; }
extern "C" __global__ void in_shared(float* out, const float* in, int stride) {
    __shared__ float tile[1024];
    for (int i = threadIdx.x; i < 1024; i += 32) tile[i] = in[i];
    __syncthreads();
    store(tile + threadIdx.x * stride, 1.0f);
    __syncthreads();
    out[threadIdx.x] = load(tile + threadIdx.x * stride);
}
extern "C" __global__ void in_global(float* out, const float* in, int stride) {
    store(out + threadIdx.x, load(in + threadIdx.x * stride));
}
"""


@needs_compiler
@pytest.mark.parametrize(("stride", "wavefronts"), [(1, 1), (2, 2), (32, 32)])
def test_generic_accesses_to_shared_memory_have_its_bank_conflicts(stride: int, wavefronts: int) -> None:
    args = [np.zeros(32, np.float32), np.zeros(1024, np.float32), stride]
    done = gemmlab.launch(SOURCE, "in_shared", 1, 32, args, device="emulated")
    assert done.counters is not None
    sites = {site.kind: site for site in done.counters.sites if site.base_opcode in ("LD", "ST")}
    assert set(sites) == {SHARED_LOAD, SHARED_STORE}
    assert {(site.requests, site.wavefronts, site.wavefronts_ideal) for site in sites.values()} == {(1, wavefronts, 1)}
    facts = done.counters.facts()
    assert (facts["shared_load_excess"], facts["global_load_requests"]) == (wavefronts - 1, 32)


@pytest.mark.in_turns(20)
@needs_compiler
def test_generic_accesses_to_global_memory_have_its_sectors() -> None:
    args = [np.zeros(32, np.float32), np.zeros(64, np.float32), 2]
    done = gemmlab.launch(SOURCE, "in_global", 1, 32, args, device="emulated")
    assert done.counters is not None
    found = {site.kind: site.sectors for site in done.counters.sites if site.base_opcode in ("LD", "ST")}
    assert found == {GLOBAL_LOAD: 8, GLOBAL_STORE: 4}


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_idle_loads_around_asynchronous_copies_are_no_narrow_shared_loads(arch: str) -> None:
    explained = explain(find_kernel("async_copy"), *machine(arch), {})
    idle = [site for site in explained.subject.counters.sites if site.text.startswith("@!PT LDS")]
    assert idle
    assert {(site.kind, site.requests) for site in idle} == {("", 0)}
    assert explained.loop is not None
    assert explained.loop.mix["LDS"] == explained.loop.wide_shared
    assert explained.loop.mix["@!PT LDS"] > 0
    assert all("narrower than 16 bytes" not in finding.text for finding in explained.findings)
