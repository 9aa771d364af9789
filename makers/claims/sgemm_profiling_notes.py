"""The Chinese notes that profile five SGEMM kernels with Nsight Compute."""

from __future__ import annotations

from blocks.speeds import extent
from claims.claim import Claim, Finding, Source, judged
from claims.evidence import Evidence
from claims.small_runs import COMPILER_OPTIONS, FAST_MATH_OFF, FAST_MATH_ON

PREDICTED = 2 * 1024**2 / (2 * 32 * 1024 * 4 + 1024 * 4)
"""Operations for each byte that a block with a tile of 32 x 32 moves, if K is 1024 and C is written once: the source's
7.87.
"""
L1_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
WAVEFRONTS, IDEAL = "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"
LAST = "warp_tile_double_buffer"
"""The source's last kernel."""
LSU = "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active"
THROUGHPUT = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"


def _intensity(e: Evidence) -> Finding:
    c = e.count("block_tile")
    counted = 2 * c.fmas / (c.read_bytes + c.written_bytes)
    return judged(
        c.k == 1024 and abs(counted - PREDICTED) < 0.01,
        f"{counted:.2f} FLOP per byte at K {c.k}; the formula gives {PREDICTED:.2f}",
    )


def _conflicts(e: Evidence) -> Finding:
    names = ("block_tile", "thread_tile_2d", "warp_tile")
    excess = [e.count(name).excess / e.count(name).wavefronts for name in names]
    holds = excess[0] == 0 and excess[1] > 0.2 and excess[2] < excess[1] / 2
    return judged(holds, ", ".join(f"{name} {share:.1%}" for name, share in zip(names, excess, strict=True)))


def _fma_pipe(e: Evidence) -> Finding:
    share = e.peak_share(4096, "thread_tile_2d")
    return judged(0.2 <= share <= 0.3, f"{share:.1%} of the multiply-add peak")


def _efficient_loads(e: Evidence) -> Finding:
    # Lanes read A down a column and B along a row, one float each: like the stores of naive_strided and of naive.
    strided, along = (e.count(name).facts["global_store_sectors_per_request"] for name in ("naive_strided", "naive"))
    share = 2 * along / (strided + along)
    return judged(
        abs(share - 0.22) < 0.01,
        f"{along:.0f} + {along:.0f} sectors would suffice, {strided:.0f} + {along:.0f} are moved: {share:.1%}",
    )


def _throughput_falls(e: Evidence) -> Finding:
    gain = e.ratio(2048, "vector_load", "thread_tile_2d")
    before, after = (e.profiled(2048, name, THROUGHPUT) for name in ("thread_tile_2d", "vector_load"))
    return judged(
        gain > 1 and after < before, f"throughput {before:.1f}% before, {after:.1f}% after; {gain:.2f} x as fast"
    )


def _arbitration(e: Evidence) -> Finding:
    # The counts are of loads and stores together; if these have no excess, loads have none.
    clean = [
        one
        for one in e.rungs_profiled()
        if 0 < one.counts.get(WAVEFRONTS, 0) == one.counts.get(IDEAL) and L1_CONFLICTS in one.metrics
    ]
    by_counter = sorted(clean, key=lambda one: -one.metrics[L1_CONFLICTS])
    some = [one for one in by_counter if one.metrics[L1_CONFLICTS] > 0]
    sizes = sorted({one.size for one in clean}, key=extent)
    most = [next(one for one in by_counter if one.size == size) for size in sizes]
    shown = ", ".join(f"{one.metrics[L1_CONFLICTS]:,.0f} in {one.name} at {extent(one.size)}" for one in most)
    return judged(bool(some), f"above 0 in {len(some)} of {len(clean)} launches; the largest at each size: {shown}")


def _meets_cublas(e: Evidence) -> Finding:
    ratios = {n: e.ratio(n, "warp_tile_double_buffer", "cublas") for n in (1024, 2048, 4096)}
    return judged(max(ratios.values()) >= 1, ", ".join(f"{ratio:.2f} x at {n}" for n, ratio in ratios.items()))


def _stall_shares(e: Evidence, reason: str) -> dict[str, float]:
    found = {}
    for name in (LAST, "cublas"):
        cycles = e.profile(2048, name).stall_cycles
        found[name] = cycles[reason] / sum(cycles.values())
    return found


def _not_selected(e: Evidence) -> Finding:
    ours, theirs = _stall_shares(e, "not_selected").values()
    return judged(ours > theirs, f"{ours:.1%} of a warp's cycles, cuBLAS {theirs:.1%}")


def _stall_wait(e: Evidence) -> Finding:
    ours, theirs = _stall_shares(e, "wait").values()
    return judged(theirs > ours, f"cuBLAS {theirs:.1%} of a warp's cycles, our kernel {ours:.1%}")


def _lsu(e: Evidence) -> Finding:
    ours, theirs = (e.profiled(2048, name, LSU) for name in (LAST, "cublas"))
    return judged(ours < theirs, f"{ours:.1f}% of the peak, cuBLAS {theirs:.1f}%")


def _dram_intensity(e: Evidence) -> Finding:
    moved = sum(e.profiled(2048, "warp_tile", f"dram__bytes_{way}.sum") for way in ("read", "write"))
    intensity = 2 * 2048**3 / moved
    return judged(
        abs(intensity / 232.67 - 1) <= 0.1, f"{intensity:.1f} FLOP per byte of DRAM, {moved / 1e6:.1f} MB moved"
    )


def _fast_math(e: Evidence) -> Finding:
    found = e.small_run(*COMPILER_OPTIONS)
    plain, fast = (found["rows"][name] for name in (FAST_MATH_OFF, FAST_MATH_ON))
    gain = plain["time_us"] / fast["time_us"]
    return judged(
        gain > 1.02, f"{gain:.3f} x, {fast['instructions']:,} instructions in the code with it and "
        f"{plain['instructions']:,} without ({found['device']})",
    )  # fmt: skip


SOURCE = Source(
    name="Chinese SGEMM profiling notes",
    about="Five kernels under Nsight Compute, the last one compared with cuBLAS; the GPU is not named.",
    claims=(
        Claim(
            "Tiles of 32 x 32 have an intensity of 7.87 FLOP per byte at 1024 (predicted; 7.77 measured).",
            "FLOP divided by the bytes of the sectors that `block_tile` reads and writes with K 1024: within "
            "0.01.", _intensity,
        ),
        Claim(
            "Shared tiles have no bank conflicts, 2D thread tiles have many, warp tiles have few.",
            "Share of excess wavefronts in shared memory: 0, more than 20%, and less than half of that.", _conflicts,
        ),
        Claim(
            "With 2D thread tiles the FMA pipes are busy for 25% of the time.",
            "Share of the multiply-add peak that `thread_tile_2d` reaches at 4096: 20 to 30%.", _fma_pipe,
        ),
        Claim(
            "When lanes load A down a column, 22% of the global loads are efficient.",
            "Counted sectors of a strided and of a contiguous request: ideal divided by actual, for equal numbers of "
            "both, "
            "within one point.", _efficient_loads,
        ),
        Claim(
            "Vector loads lower memory throughput and raise the speed.",
            "At 2048 `vector_load` has a lower memory throughput (Nsight Compute) than `thread_tile_2d`, and is "
            "faster.", _throughput_falls,
        ),
        Claim(
            "The hardware's counter of bank conflicts shows conflicts even if no addresses conflict.",
            "Profiled launches of rungs with no excess wavefronts in shared memory: the counter is above 0 in some of "
            "them.",
            _arbitration,
        ),
        Claim(
            "Warp tiles with a double buffer are faster than cuBLAS.",
            "Speed of `warp_tile_double_buffer` relative to cuBLAS at 1024, 2048 and 4096: 1.00 x or more at one of "
            "them.",
            _meets_cublas,
        ),
        Claim(
            "Warp tiles have an intensity of 232.67 FLOP per byte at 2048.",
            "FLOP of `warp_tile` divided by the bytes of DRAM that Nsight Compute measured at 2048: within 10%. (The "
            "source does not say which memory's roofline it read.)", _dram_intensity,
        ),
        Claim(
            "With a double buffer a larger share of warps is ready but not selected than in cuBLAS.",
            "Nsight Compute's share of `not_selected` in a warp's cycles at 2048, `warp_tile_double_buffer` beside "
            "cuBLAS: larger.", _not_selected,
        ),
        Claim(
            "cuBLAS waits more for instructions of fixed latency (stall wait).",
            "The share of `wait` at 2048: larger in cuBLAS.", _stall_wait,
        ),
        Claim(
            "The load/store unit (LSU) is less busy than in cuBLAS.",
            "Nsight Compute's use of the LSU pipe at 2048, `warp_tile_double_buffer` beside cuBLAS: lower.", _lsu,
        ),
        Claim(
            "The compiler's fast-math option shortens such waits.",
            "Speed of `warp_tile_double_buffer` at 4096 compiled with `--use_fast_math` relative to without: more "
            "than 1.02 x.", _fast_math,
        ),
    ),
)  # fmt: skip
