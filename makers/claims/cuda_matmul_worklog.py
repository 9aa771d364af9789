"""The Korean worklog on CUDA matmul: six kernels, occupancy by hand, conflicts counted, times by size."""

from __future__ import annotations

from collections.abc import Sequence

from blocks.counted import Counted
from claims.claim import Claim, Finding, Source, judged
from claims.evidence import Evidence, Missing, Timed
from gemmlab.core.gpu import limits, occupancy
from gemmlab.core.program import Config

N = 4096
TILES_64: Config = {"BM": 64, "BN": 64}
SIZES = tuple(range(256, N + 1, 128))


def _cycles(e: Evidence) -> Finding:
    before, after = (sum(e.profile(2048, name).stall_cycles.values()) for name in ("block_tile", "thread_tile_1d"))
    return judged(after < 0.75 * before, f"{before:.2f} to {after:.2f}")


def _naive_wins_at_256(e: Evidence) -> Finding:
    names = ("thread_tile_1d", "thread_tile_2d", "vector_load")
    naive, *tiled = e.times(256, ("naive", {}), *((name, TILES_64) for name in names))
    ratios = {name: naive.to(other).value for name, other in zip(names, tiled, strict=True)}
    return judged(min(ratios.values()) > 1, ", ".join(f"{ratio:.2f} x {name}" for name, ratio in ratios.items()))


def _crossing(e: Evidence) -> Finding:
    # By wave quantisation the two cross back and forth. The size from which the larger tile always wins counts.
    larger_wins: dict[int, bool] = {}
    awaited: list[tuple[str, Sequence[Timed]]] = []
    for n in SIZES:
        try:
            larger_wins[n] = e.ratio(n, "vector_load", "vector_load", {"BM": 128, "BN": 128}, TILES_64) > 1
        except Missing as missing:
            awaited += missing.times
    if max(larger_wins, default=0) < N or len(larger_wins) < 4:
        what = "times of `vector_load` with tiles of 64 and of 128 by size, up to 4096, in h200/claims.json"
        raise Missing(what, times=awaited)
    lost = [n for n, wins in larger_wins.items() if not wins]
    first, last = next((n for n, wins in larger_wins.items() if wins), None), max(lost, default=0)
    return judged(
        first is not None and first <= 2048 and 1024 <= last <= 2048,
        f"128 is first faster at {first}, 64 last at {last or 'no size'} (in the source: 1408 and 1664)",
    )


def _padding(e: Evidence) -> Finding:
    excess = {pad: e.count("vector_load", {**TILES_64, "PAD": pad}).excess for pad in (0, 4)}
    return judged(
        excess[4] > excess[0], f"{excess[0]:,.0f} excess wavefronts without padding, {excess[4]:,.0f} with 4 floats"
    )


def _transposition(e: Evidence) -> Finding:
    ratio = e.ratio(N, "vector_load", "vector_load", {}, {"TRANSPOSE_A": 0})
    return judged(abs(ratio - 1) <= 0.03, f"{ratio:.3f} x")


def _occupancy(_e: Evidence) -> Finding:
    fit = occupancy(limits("sm_86"), registers=37, smem_bytes=8192, threads=1024)
    return judged(
        (fit.warps, fit.warps_per_sm) == (32, 48), f"{fit.warps} of {fit.warps_per_sm} warps: {fit.fraction:.1%}"
    )


def _conflicts_2d(e: Evidence) -> Finding:
    c = e.count("thread_tile_2d", TILES_64)
    loads = _conflicts(c, "ld")
    return judged(loads == 402_653_184, f"{loads:,.0f}, counted at {c.size} and scaled to {N}")


def _conflicts_vector(e: Evidence) -> Finding:
    c = e.count("vector_load", TILES_64)
    loads, stores = _conflicts(c, "ld"), _conflicts(c, "st")
    return judged(
        (loads, stores) == (268_435_456, 33_554_432),
        f"{loads:,.0f} loads and {stores:,.0f} stores, counted at {c.size} and scaled to {N}",
    )


def _conflicts(c: Counted, what: str) -> float:
    """Return the bank conflicts of shared loads (`"ld"`) or stores (`"st"`), scaled to a product of `N`. These are the
    hardware counter's value if no other access competes.
    """
    return c.metrics[f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{what}.sum"] * N**3 / c.fmas


def _shared_words(e: Evidence) -> Finding:
    # The compiler joins words, so what a warp's FFMAs cost in requests falls even faster than the words do.
    names = ("block_tile", "thread_tile_1d", "thread_tile_2d")
    loads = [e.count(name).per_1000(e.count(name).facts["shared_load_wavefronts"]) for name in names]
    return judged(
        loads == sorted(loads, reverse=True), ", ".join(f"{name} {x:.1f}" for name, x in zip(names, loads, strict=True))
    )


def _counter_of_tiles(e: Evidence) -> Finding:
    return _hardware_counts(e, "block_tile", 0, 34_046_671)


def _counter_of_columns(e: Evidence) -> Finding:
    return _hardware_counts(e, "thread_tile_1d", 78_468, 7_390_414)


def _hardware_counts(e: Evidence, kernel: str, loads: int, stores: int) -> Finding:
    # The counter also counts conflicts of arbitration, which do not follow from addresses and differ between GPUs.
    names = [f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{way}.sum" for way in ("ld", "st")]
    ours, by_address = (
        [e.profiled(N, kernel, name) for name in names],
        [e.count(kernel).metrics[name] for name in names],
    )
    near = all(abs(mine - theirs) <= 0.25 * theirs for mine, theirs in zip(ours, (loads, stores), strict=True))
    return judged(
        near, f"{ours[0]:,.0f} of loads and {ours[1]:,.0f} of stores on an H200; by addresses alone "
        f"{by_address[0]:,.0f} and {by_address[1]:,.0f}",
    )  # fmt: skip


def _tiles_gain(e: Evidence) -> Finding:
    gain = e.ratio(N, "block_tile", "naive")
    return judged(gain >= 1.3, f"{gain:.2f} x")


def _columns_gain(e: Evidence) -> Finding:
    gain = e.ratio(N, "thread_tile_1d", "block_tile")
    return judged(2.5 <= gain <= 3.5, f"{gain:.2f} x")


def _squares_gain(e: Evidence) -> Finding:
    gain = e.ratio(N, "thread_tile_2d", "thread_tile_1d", TILES_64)
    return judged(1.4 <= gain <= 1.8, f"{gain:.2f} x")


def _best_share(_e: Evidence) -> Finding:
    share = 15.358 / 19.641
    return judged(abs(share - 0.8919) < 0.005, f"15.358 of 19.641 TFLOP/s is {share:.1%}")


SOURCE = Source(
    name="Korean worklog on CUDA matmul",
    about="After a well-known English worklog: six kernels from naive to warp tiles on an RTX 3080 (sm_86).",
    claims=(
        Claim(
            "From shared tiles to 1D thread tiles, cycles per issued instruction fall from 36.05 to 19.43.",
            "Nsight Compute's warp cycles per issued instruction of `block_tile` and `thread_tile_1d` at 2048: less "
            "by a "
            "quarter or more.", _cycles,
        ),
        Claim(
            "The words read from shared memory per element fall from 2K to 9K/8 to K/4.",
            "The `expect` lines of the three rungs check the exact words. Here: wavefronts of their loads per 1000 "
            "multiply-adds, fewer from rung to rung.", _shared_words,
        ),
        Claim(
            "At 256 the naive kernel beats the kernels with tiles of 64.",
            "Speed of `naive` relative to `thread_tile_1d`, `thread_tile_2d` and `vector_load` with tiles of 64 at "
            "256: "
            "faster than each.", _naive_wins_at_256,
        ),
        Claim(
            "Tiles of 64 are faster up to about 1300, tiles of 128 from 1400 on, with exceptions up to 1700.",
            "`vector_load` with both tiles by size: 128 is faster for the first time at 2048 or below, 64 for the "
            "last time "
            "between 1024 and 2048.", _crossing,
        ),
        Claim(
            "Padding the rows of A's tile increased bank conflicts.",
            "Excess wavefronts of `vector_load` with tiles of 64: more with `PAD` 4 than with 0.", _padding,
        ),
        Claim(
            "Transposing A's tile gains nothing by itself.",
            "Speed of `vector_load` with `TRANSPOSE_A` relative to without, at 4096: within 3%.", _transposition,
        ),
        Claim(
            "37 registers per thread, 8 KiB and 1024 threads per block give an occupancy of 67% on an RTX 3080.",
            "This package's occupancy arithmetic with those figures, for sm_86.", _occupancy,
        ),
        Claim(
            "2D thread tiles of 64/64/8 have 402,653,184 conflicts of shared loads at 4096.",
            "The emulator's count of bank conflicts of shared loads in `thread_tile_2d` with those tiles, which reads "
            "As and Bs at the source's addresses. (The source's 100,663,296 conflicts of stores come from an order of "
            "copying that no rung has.)",
            _conflicts_2d,
        ),
        Claim(
            "With vector loads there are 268,435,456 conflicts of loads and 33,554,432 of stores.",
            "The emulator's count of `vector_load` with tiles of 64.", _conflicts_vector,
        ),
        Claim(
            "With shared tiles the hardware counts 34,046,671 conflicts of stores and none of loads.",
            "Nsight Compute's counters of bank conflicts for `block_tile` at 4096: each within 25%.", _counter_of_tiles,
        ),
        Claim(
            "With 1D thread tiles it counts 78,468 conflicts of loads and 7,390,414 of stores.",
            "The same for `thread_tile_1d`: each within 25%.", _counter_of_columns,
        ),
        Claim(
            "Shared tiles gain 30% or more over the naive kernel.",
            "Speed of `block_tile` relative to `naive` at 4096: 1.3 x or more.", _tiles_gain,
        ),
        Claim(
            "1D thread tiles are about 3 x as fast as shared tiles.",
            "Speed of `thread_tile_1d` relative to `block_tile` at 4096: 2.5 to 3.5 x.", _columns_gain,
        ),
        Claim(
            "2D thread tiles are about 1.6 x as fast as 1D thread tiles.",
            "Speed of `thread_tile_2d` with tiles of 64 relative to `thread_tile_1d` at 4096: 1.4 to 1.8 x.",
            _squares_gain,
        ),
        Claim(
            "The warp-tile kernel reaches 89.19% of cuBLAS.",
            "The source's own figures, divided.", _best_share,
        ),
    ),
)  # fmt: skip
