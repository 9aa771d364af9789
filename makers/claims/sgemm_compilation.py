"""The Chinese compilation: maxas, GPU GEMM by tiles and prefetch, SGEMM on AVX2. Its reductions have a page."""

from __future__ import annotations

from statistics import median

from blocks.cpu_sizes import LADDER, NARROW, TILES, WIDEST
from claims.claim import Claim, Finding, Source, judged, untestable
from claims.evidence import Evidence
from claims.small_runs import AT_128, COMPILER_OPTIONS, ONE_BLOCK, PAST_128, SASS_VARIANTS, STREAMS, TWO_BLOCKS

SIZES = (64, 128, 256, 512, 1024)
TEXTURE_HITS = "l1tex__t_sector_hit_rate.pct"


def _ninety_one(e: Evidence) -> Finding:
    ratio = e.ratio(4096, "double_buffer", "cublas", {"BM": 64, "BN": 64, "BK": 8, "TM": 8, "TN": 8})
    return judged(ratio >= 0.9, f"{ratio:.2f} x cuBLAS")


def _ninety_six(e: Evidence) -> Finding:
    ratio = e.ratio(4096, "conflict_free", "cublas", {"LANE_MAP": 0})
    return judged(ratio >= 0.955, f"{ratio:.2f} x cuBLAS")


def _main_loop(e: Evidence) -> Finding:
    c = e.count("double_buffer")
    ratio = c.opcodes["FFMA"] / c.opcodes["LDS"]
    return judged(abs(ratio - 512 / 32) < 0.2, f"{ratio:.2f} FFMAs per shared load")


def _demand(_e: Evidence) -> Finding:
    gib_s = 64 * 128 * 16 * 1.216e9 / 520 / 2**30
    return judged(abs(gib_s - 285) < 1, f"{gib_s:.0f} GiB/s")


def _crossover(e: Evidence) -> Finding:
    ratios = {n: e.ratio(n, "maxas_256", "maxas_64") for n in (512, 1024, 2048, 4096)}
    return judged(ratios[512] < 1 < ratios[4096], ", ".join(f"{ratio:.2f} x at {n}" for n, ratio in ratios.items()))


def _switches(e: Evidence) -> Finding:
    names = ("SPLIT", "COALESCE", "LANE_MAP")
    whole, *without = e.times(4096, ("maxas_256", {}), *(("maxas_256", {name: 0}) for name in names))
    ratios = {name: speed.to(whole).value for name, speed in zip(names, without, strict=True)}
    holds = abs(ratios["SPLIT"] - 1) <= 0.02 and abs(ratios["COALESCE"] - 1) <= 0.02 and ratios["LANE_MAP"] < 0.98
    return judged(holds, ", ".join(f"without {name} {ratio:.3f} x" for name, ratio in ratios.items()))


def _cpu_swap(e: Evidence) -> Finding:
    gain = e.cpu("loop_reorder_ikj").gflops / e.cpu("naive_ijk").gflops
    return judged(7 <= gain <= 14, f"{gain:.1f} x the GFLOP/s")


def _cpu_swap_at_one_size(e: Evidence) -> Finding:
    names = ("kernel:loop_reorder_ikj", "kernel:naive_ijk")
    gains = {n: e.cpu_ratio(LADDER, n, *names) for n in SIZES}
    rising = gains[SIZES[-1]] > gains[SIZES[0]]
    said = ", ".join(f"{gain:.1f} x at {n}" for n, gain in gains.items())
    return judged(rising and gains[512] >= 7, said)


def _onednn_at_128(e: Evidence) -> Finding:
    ratios = {n: e.cpu_ratio(TILES, n, WIDEST, "onednn") for n in SIZES[1:]}
    said = ", ".join(f"{ratio:.2f} x at {n}" for n, ratio in ratios.items())
    return judged(ratios[128] < 0.9 and ratios[128] == min(ratios.values()), said)


def _avx2_tile(e: Evidence) -> Finding:
    shares = {n: e.cpu_share(TILES, n, NARROW) for n in (256, 512, 1024)}
    return judged(min(shares.values()) >= 0.41, ", ".join(f"{share:.1%} at {n}" for n, share in shares.items()))


def _cpu_peak(e: Evidence) -> Finding:
    share = e.cpu("microkernel").peak_share or 0.0
    return judged(
        share >= 69.12 / 80, f"{share:.1%} of the measured peak; in the source {69.12 / 80:.1%} of the computed peak"
    )


def _only_assembly(e: Evidence) -> Finding:
    ratios = {n: e.ratio(n, "async_copy", "cublas") for n in (1024, 2048, 4096)}
    return judged(
        max(ratios.values()) < 1, "async_copy, in CUDA C++: "
        + ", ".join(f"{ratio:.2f} x cuBLAS at {n}" for n, ratio in ratios.items()),
    )  # fmt: skip


def _texture_hits(e: Evidence) -> Finding:
    rates = {name: e.profiled(4096, name, TEXTURE_HITS) for name in ("maxas_64", "maxas_256")}
    return judged(max(rates.values()) <= 5, ", ".join(f"{rate:.0f}% in {name}" for name, rate in rates.items()))


def _few_warps(e: Evidence) -> Finding:
    found = e.small_run(*COMPILER_OPTIONS)
    whole, past = (found["rows"][name] for name in (AT_128, PAST_128))
    two, one = (found["rows"][name]["time_us"] for name in (TWO_BLOCKS, ONE_BLOCK))
    ratio = whole["time_us"] / past["time_us"]
    return judged(
        ratio >= 0.95,
        f"{ratio:.3f} x with {past['registers']} registers instead of {whole['registers']}, both without launch "
        f"bounds; {two / one:.3f} x with one block an SM instead of two, both with them ({found['device']})",
    )  # fmt: skip


def _streams(e: Evidence) -> Finding:
    found = e.small_run(*STREAMS)
    times = {name: row["time_us"] for name, row in found["rows"].items()}
    gain = times["maxas_64, one stream"] / times["maxas_256, several streams"]
    return judged(
        gain > 1.02, f"{gain:.2f} x; maxas_256 on one stream {times['maxas_256, one stream']:.0f} us, on "
        f"{found['streams']} streams {times['maxas_256, several streams']:.0f} us ({found['device']})",
    )  # fmt: skip


def _scheduling(e: Evidence) -> Finding:
    found = e.small_run(*SASS_VARIANTS)
    rows = {row["passes"]: row for row in found["rows"] if row["kernel"] == "maxas_64"}
    compiled, passes = median(rows["compiled"]["us"]), "ffma+reuse"
    order = rows[passes]
    gain = compiled / median(order["us"])
    before, after = (order[when]["reuse_rate"] for when in ("before", "after"))
    return judged(
        after > before and 1.005 <= gain <= 1.02,
        f"`maxas_64`, passes {passes}: reuse {before:.1%} to {after:.1%}, speed {gain:.3f} x at {found['size']} "
        f"({found['device']})",
    )  # fmt: skip


SOURCE = Source(
    name="Chinese compilation on SGEMM",
    about="maxas translated (GM204), GEMM by tiles and prefetch (V100), reduction, SGEMM for AVX2 (one core).",
    claims=(
        Claim(
            "Without assembly, tiles of 64/64/8 with 8 x 8 results per thread and prefetch reach 91% of cuBLAS.",
            "Speed of `double_buffer` with those tiles relative to cuBLAS at 4096: 0.90 x or more.", _ninety_one,
        ),
        Claim(
            "With the conflict-free lane map (a scan) it reaches 96 to 97% at 4096.",
            "Speed of `conflict_free` with `LANE_MAP` 0 relative to cuBLAS at 4096: 0.955 x or more.", _ninety_six,
        ),
        Claim(
            "The main loop has 512 FFMAs and 32 shared loads.",
            "FFMAs per shared load of `double_buffer`: 16, within 0.2.", _main_loop,
        ),
        Claim(
            "With 64 threads per block the design needs 285 GiB/s of a GM204, more than its 224.",
            "The source's demand model with its own figures.", _demand,
        ),
        Claim(
            "64 threads per block are best for small products, 256 for large ones.",
            "Speed of `maxas_256` relative to `maxas_64`: slower at 512, faster at 4096.", _crossover,
        ),
        Claim(
            "For large K, only the lane map of maxas's ideas matters; halves of the block that load one matrix each "
            "and "
            "coalesced stores do not.",
            "Speed of `maxas_256` at 4096 with one switch off: within 2% without `SPLIT` or `COALESCE`, slower by "
            "more than "
            "2% without `LANE_MAP`.",
            _switches,
        ),
        Claim(
            "CUDA C++ stays at 96 to 97% of cuBLAS; only assembly equals or passes it.",
            "Speed of `async_copy`, which has no assembly beyond cp.async, relative to cuBLAS at 1024, 2048 and 4096: "
            "below 1 at all of them.", _only_assembly,
        ),
        Claim(
            "Loads of four floats through textures leave the texture cache a hit rate of 1 to 2%.",
            "Nsight Compute's hit rate of the L1 and texture cache at 4096 in `maxas_64` and `maxas_256`: 5% or less. "
            "(The two are one cache here, and a Maxwell's was smaller.)", _texture_hits,
        ),
        Claim(
            "More than 128 registers leave half of the warps, which costs little: independent instructions hide "
            "latency.",
            "Speed of `maxas_256` at 4096 with as many registers as the compiler likes, relative to at most 128: 0.95 "
            "x or more.", _few_warps,
        ),
        Claim(
            "Where there is other work, several streams fill the SMs better than small tiles do.",
            "Products of 512: `maxas_256` on several streams relative to `maxas_64` on one: more than 1.02 x.",
            _streams,
        ),
        Claim(
            "Reordering FFMAs raises the share of reuse flags from 39 to 47% and the speed by about 1%.",
            "Passes `ffma` and `reuse` of `gemmlab schedule` over `maxas_64`: a larger share of operands from the "
            "operand cache, and 0.5 to 2% more speed.", _scheduling,
        ),
        Claim(
            "On Maxwell the hand-written loop reaches 98% of the peak.",
            "", untestable("no Maxwell GPU is available, and newer GPUs lack its register banks and dual issue"),
        ),
        Claim(
            "Exchanging two loops of the naive CPU product makes it ten times as fast.",
            "`loop_reorder_ikj` against `naive_ijk` in the recorded climb, each at its own size: 7 to 14 x.", _cpu_swap,
        ),
        Claim(
            "The larger the matrices, the more the exchanged loops gain: 5.7 x at 64, 12 x at 512, 18 x at 1024.",
            "`loop_reorder_ikj` against `naive_ijk`, size by size: 7 x or more at 512, more at 1024 than at 64.",
            _cpu_swap_at_one_size,
        ),
        Claim(
            "At 128 the AVX2 kernel is far behind oneDNN (0.64 x), elsewhere near it (0.83 to 1.07 x).",
            "Speed of `microkernel` relative to oneDNN, both with the widest vectors: below 0.9 x at 128, and lowest "
            "there of 128 to 1024.", _onednn_at_128,
        ),
        Claim(
            "A 16 x 6 tile in 15 AVX2 registers comes within 14 to 18% of the peak from 256 on.",
            "`microkernel` with `LANES=8` at 256, 512 and 1024: 41% or more of the FMA peak of AVX-512, whose vectors "
            "are twice as wide.", _avx2_tile,
        ),
        Claim(
            "The packed AVX2 kernel reaches 69.12 of 80 GFLOP/s on one core.",
            "Share of the peak that `microkernel` reaches: no less.", _cpu_peak,
        ),
    ),
)  # fmt: skip
