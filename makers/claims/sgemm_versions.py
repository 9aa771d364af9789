"""The Chinese summary of seven SGEMM versions."""

from __future__ import annotations

from claims.claim import Claim, Finding, Source, judged
from claims.evidence import Evidence


def _reads(e: Evidence) -> Finding:
    c = e.count("naive")
    loads = 32 * c.facts["global_load_requests"] / c.outputs
    return judged(loads == 2 * c.k, f"{loads:,.0f} loads for K {c.k}")


def _fewer_requests(e: Evidence) -> Finding:
    before, after = (e.count(name).facts["global_load_requests"] for name in ("thread_tile_2d", "vector_load"))
    return judged(before == 4 * after, f"{before:,.0f} requests before, {after:,.0f} after")


def _four_times_the_bandwidth(e: Evidence) -> Finding:
    bytes_moved = [e.count(name).read_bytes for name in ("thread_tile_2d", "vector_load")]
    gain = e.ratio(4096, "vector_load", "thread_tile_2d") * bytes_moved[1] / bytes_moved[0]
    return judged(gain >= 3, f"{gain:.2f} x the bytes per second")


def _register_stage(e: Evidence) -> Finding:
    gain = e.ratio(4096, "register_stage", "vector_load")
    return judged(gain > 1.02, f"{gain:.3f} x")


def _double_buffer(e: Evidence) -> Finding:
    gain = e.ratio(4096, "double_buffer", "register_stage")
    return judged(gain > 1.02, f"{gain:.3f} x")


def _eighty_percent(e: Evidence) -> Finding:
    ratio = e.ratio(4096, "warp_tile", "cublas", {"BM": 128, "BN": 128, "BK": 16, "WM": 64, "WN": 64, "TM": 8, "TN": 4})
    return judged(ratio >= 0.8, f"{ratio:.2f} x cuBLAS")


SOURCE = Source(
    name="Chinese summary of SGEMM versions",
    about="Versions v0 to v6 with their ideas and parameters; no GPU is named and few figures are given.",
    claims=(
        Claim("The naive kernel loads 2K words per element of C.", "Loads of `naive` per element: exactly 2K.", _reads),
        Claim(
            "float4 loads need a quarter of the instructions.",
            "Global load requests of `thread_tile_2d` divided by those of `vector_load`: exactly 4.", _fewer_requests,
        ),
        Claim(
            "float4 quadruples the use of memory bandwidth.",
            "Bytes read per second by `vector_load` relative to `thread_tile_2d` at 4096: 3 x or more.",
            _four_times_the_bandwidth,
        ),
        Claim(
            "Fragments staged in registers hide the latency of shared memory.",
            "Speed of `register_stage` relative to `vector_load` at 4096: more than 1.02 x.", _register_stage,
        ),
        Claim(
            "Double buffering hides the latency of global memory.",
            "Speed of `double_buffer` relative to `register_stage` at 4096: more than 1.02 x.", _double_buffer,
        ),
        Claim(
            "128/128/16 with warp tiles of 64 x 64 reaches 80% of cuBLAS at 4096.",
            "Speed of `warp_tile` with those values relative to cuBLAS: 0.80 x or more.", _eighty_percent,
        ),
    ),
)  # fmt: skip
