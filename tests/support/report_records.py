"""Small records for the tests of pages: a GPU's bench, and one whose every string wants to be markup."""

from __future__ import annotations

from typing import Any

from gemmlab.core.records import Method, Record, Result, Sample

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&\"'`${7*7}{{7*7}}\u202eabc"
METHOD = Method(3, 1, 1e3, 1e3, 0.0, 4, interleaved=True, seed=0, notes=("caches are written over",), mode="cold")
GPU = {"id": "cuda:0", "name": "NVIDIA H200", "facts": {"sms": 132, "driver": "580.1", "compute_capability": "9.0"}}
SEEN = {"time_utc": "2026-11-21T12:00:00+00:00", "gemmlab": "0.1.0", "cpu": "a processor", "command": ["gemmlab"]}


def result(contestant: str, role: str, n: int, tflops: float, **facts: Any) -> Result:
    """One contestant at n x n x n, three samples."""
    flops = 2 * n**3
    samples = tuple(Sample(0, turn, flops / tflops / 1e6, 1, 1, (), 1980.0, 3201.0) for turn in range(3))
    return Result(contestant, {}, f"{n}x{n}x{n}", flops, 1, {"role": role, **facts}, samples, verified=True)


def gpu_bench(digest: str = "", *sizes: int, **facts: Any) -> Record:
    """Rungs, cuBLAS and the probe; `naive` has that digest."""
    config = {"BM": 32, "BN": 32, "UNROLL": 16}
    coded = {"code_sha256": digest, "config": config, "target": "sm_90", "compiler": "NVRTC 1"} | facts
    results = [
        made
        for n in sizes or (512, 1024)
        for made in (
            result("kernel:naive", "rung", n, 6.0, **(coded if digest else {})),
            result("kernel:block_tile", "rung", n, 9.0),
            result("kernel:vector_load", "rung", n, 36.0),
            result("cublas", "peer", n, 51.0, library="cuBLAS", version="13.1"),
            result("probe", "peak", n, 65.0),
        )
    ]  # fmt: skip
    return Record("bench", "gemm", SEEN, GPU, METHOD, tuple(results))


def hostile_record() -> Record:
    """What a malicious file could say, wherever a string is allowed."""
    results = [
        made
        for n in (256, 512, 1024)
        for made in (
            result(f"kernel:{HOSTILE}", "rung", n, 5.0, idea=HOSTILE, code_sha256=HOSTILE, compiler=HOSTILE),
            result("kernel:__proto__", "rung", n, 7.0, config={HOSTILE: HOSTILE}, target=HOSTILE),
            result("kernel:\ud800", "rung", n, 8.0, precision=HOSTILE),
            result(HOSTILE, "peer", n, 6.0, library=HOSTILE, version=HOSTILE),
            result(f"kernel:naive[{HOSTILE}]", "rung", n, 6.5),
        )
    ]  # fmt: skip
    counted = Result("kernel:counted", {}, HOSTILE, 1, 1, {
        "role": "rung", "origin": HOSTILE, "counters": {
            HOSTILE: {"value": 1, "confidence": HOSTILE, "why": HOSTILE}, "text": {"value": HOSTILE}, "list": [1],
        },
    }, verified=False, notes=(HOSTILE,))  # fmt: skip
    seen = {**SEEN, "cpu": HOSTILE, "command": [HOSTILE], "variables": {HOSTILE: HOSTILE}, "time_utc": HOSTILE}
    device = {"id": HOSTILE, "name": HOSTILE, "facts": {"driver": HOSTILE, "sms": HOSTILE}}
    return Record("bench", "gemm", seen, device, METHOD, (*results, counted), (HOSTILE,))
