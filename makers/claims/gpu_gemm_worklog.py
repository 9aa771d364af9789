"""The Chinese worklog of a GPU GEMM: shared memory to cp.async, block swizzle and WMMA."""

from __future__ import annotations

from claims.claim import Claim, Finding, Source, judged
from claims.evidence import Evidence
from claims.small_runs import BLOCK_TO_SM, in_first_wave, same_place
from gemmlab.core.program import Config

CP_ASYNC: Config = {"BM": 128, "BN": 128, "BK": 8, "TM": 8, "TN": 8, "STAGES": 2, "TURN_ASYNC": 0}
"""The configuration of `async_copy` that is the source's kernel: two stages, B by cp.async, A through registers,
because it is transposed.
"""
CONFLICTS_OF: dict[str, Config] = {"async_copy": {}, "wmma_tf32_pipelined": {"MODULO": 1}}
ARCHITECTURES = ("sm_80", "sm_89", "sm_90")
HIT_RATE = "lts__t_sector_hit_rate.pct"


def _tile_traffic(e: Evidence) -> Finding:
    c = e.count("block_tile")
    words, formula = c.read_bytes / 4 / c.fmas, 1 / c.config["BM"] + 1 / c.config["BN"]
    return judged(words == formula, f"{words:.4f} words per multiply-add; the formula gives {formula:.4f}")


def _no_conflicts(e: Evidence) -> Finding:
    before, after = e.count("double_buffer"), e.count("conflict_free")
    excess = [c.facts["shared_load_excess"] / c.facts["shared_load_wavefronts"] for c in (before, after)]
    return judged(
        excess[0] > 0 and excess[1] == 0, f"excess wavefronts of loads {excess[0]:.1%} before, {excess[1]:.1%} after"
    )


def _two_passes(e: Evidence) -> Finding:
    c = e.count("conflict_free")
    passes = c.facts["shared_load_wavefronts"] / c.facts["shared_load_requests"]
    return judged(passes == 2, f"{passes:.2f} wavefronts per load")


def _eight_passes(e: Evidence) -> Finding:
    # Half of the loads read As, where 16 lanes read the same one of two float4: two passes. The others read Bs.
    c = e.count("double_buffer")
    mean = c.facts["shared_load_wavefronts"] / c.facts["shared_load_requests"]
    return judged(2 * mean - 2 == 8, f"{mean:.2f} wavefronts per load of both, {2 * mean - 2:.2f} per load of B's tile")


def _unrolled(e: Evidence) -> Finding:
    gain = e.ratio(4096, "naive", "naive", {"UNROLL": 16}, {"UNROLL": 1})
    return judged(gain > 1.02, f"{gain:.2f} x")


def _unrolled_too_far(e: Evidence) -> Finding:
    ratio = e.ratio(4096, "naive", "naive", {"UNROLL": 1024}, {"UNROLL": 16})
    return judged(ratio < 0.98, f"{ratio:.2f} x")


def _blocks_on_sms(e: Evidence) -> Finding:
    found = e.small_run(*BLOCK_TO_SM)
    runs = found["runs"]
    first = min(in_first_wave(run) for run in runs)
    later = same_place(runs[0], runs[1])
    return judged(
        first >= 0.95 and later <= 0.5,
        f"of the first {runs[0]['resident']:,} blocks {first:.0%} start before all others; of the later ones "
        f"{later:.0%} are on the same SM in a second launch ({found['device']})",
    )


def _conflict_free_is_faster(e: Evidence) -> Finding:
    gain = e.ratio(4096, "conflict_free", "double_buffer")
    return judged(gain > 1.05, f"{gain:.2f} x")


def _cp_async(e: Evidence) -> Finding:
    ratio = e.ratio(4096, "async_copy", "conflict_free", CP_ASYNC)
    return judged(abs(ratio - 1) <= 0.05, f"{ratio:.3f} x")


def _stages_and_conflicts(e: Evidence) -> Finding:
    excess = {
        name: {stages: e.count(name, {"STAGES": stages, **config}).excess for stages in (2, 3, 4)}
        for name, config in CONFLICTS_OF.items()
    }
    return judged(
        all(len(set(by.values())) == 1 for by in excess.values()),
        "; ".join(f"excess wavefronts of {name} by stages: {_by(by)}" for name, by in excess.items()),
    )


def _stage_three(e: Evidence) -> Finding:
    more, counted = [], []
    for arch in ARCHITECTURES:
        integer = {stages: e.stages(arch, stages, 1).integer for stages in (2, 3, 4)}
        more.append(integer[3] - max(integer[2], integer[4]))
        counted.append(integer[3] - e.stages(arch, 3, 0).integer)
    three = e.stages(ARCHITECTURES[-1], 3, 1)
    return judged(
        min(more) >= 1,
        f"{_span(more)} more, of {three.all:.0f} per block; a counter instead of the remainder saves {_span(counted)}",
    )


def _stage_three_is_slow(e: Evidence) -> Finding:
    by_remainder, counted = ({stages: e.staged(stages, modulo) for stages in (2, 3, 4)} for modulo in (1, 0))
    slower = {stages: by_remainder[stages].to(by_remainder[3]).value - 1 for stages in (2, 4)}
    gain = {stages: counted[stages].to(by_remainder[stages]).value - 1 for stages in (2, 3, 4)}
    return judged(
        min(slower.values()) > 0.02 and gain[3] > 0.02 and max(gain[2], gain[4]) <= 0.02,
        f"time of 3 stages over that of 2 {slower[2]:+.1%}, of 4 {slower[4]:+.1%}; gain of the counter with 2, 3, 4 "
        f"stages: {', '.join(f'{part:+.1%}' for part in gain.values())}",
    )


def _source_test(e: Evidence) -> Finding:
    model = {n: e.source_test(n, "0 to 1", "TF32, rounded") for n in (256, 512, 1024, 2048)}
    ran = e.source_test(256, "0 to 1", "`wmma_tf32` on emulated:sm_90")
    mixed = e.source_test(256, "-1 to 1", "float32")
    bits = e.source_test(2048, "0 to 1", "BF16, rounded (8 bits)")
    coarser = "also pass" if bits.passes else "do not"
    return judged(
        ran.passes and all(row.passes for row in model.values()),
        f"{ran.error:.1e} at 256 with numbers from 0 to 1; in the model {model[2048].error:.1e} at 2048, where inputs "
        f"of 8 "
        f"bits {coarser}; with numbers from -1 to 1 float32 itself has {mixed.error:.0e}",
    )


def _shape(e: Evidence) -> Finding:
    found = {arch: next(iter(e.shapes("wmma_tf32", arch).loop)) for arch in ARCHITECTURES}
    return judged(
        set(found.values()) == {"HMMA.1684.F32.TF32"}, ", ".join(f"{name} on {arch}" for arch, name in found.items())
    )


def _l2_hits(e: Evidence) -> Finding:
    at = {n: e.profiled(n, "async_copy", HIT_RATE) for n in (2048, 4096)}
    return judged(at[2048] >= 90 and 40 <= at[4096] <= 60, f"{at[2048]:.1f}% at 2048, {at[4096]:.1f}% at 4096")


def _l2_gain(e: Evidence) -> Finding:
    gain = {n: e.profiled(n, "block_swizzle", HIT_RATE) - e.profiled(n, "async_copy", HIT_RATE) for n in (2048, 4096)}
    return judged(
        0 <= gain[2048] < 1 and 2 <= gain[4096] <= 6, f"{gain[2048]:+.1f} points at 2048, {gain[4096]:+.1f} at 4096"
    )


def _swizzle(e: Evidence) -> Finding:
    ratio = {n: e.ratio(n, "block_swizzle", "async_copy") for n in (2048, 4096)}
    return judged(
        max(abs(r - 1) for r in ratio.values()) <= 0.02, f"{ratio[2048]:.3f} x at 2048, {ratio[4096]:.3f} x at 4096"
    )


def _hundredfold(e: Evidence) -> Finding:
    (naive_1024,), (naive, best) = e.times(1024, ("naive", {})), e.times(2048, ("naive", {}), ("conflict_free", {}))
    fall, gain = naive.tflops / naive_1024.tflops, best.to(naive).value
    return judged(
        gain >= 50 and fall < 0.5,
        f"{gain:.1f} x; naive at 2048 is {fall:.2f} x as fast as at 1024, not {75.3 / 643:.2f} x",
    )


def _span(values: list[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"


def _by(values: dict[int, float], form: str = ",.0f") -> str:
    return ", ".join(f"{key}: {value:{form}}" for key, value in values.items())


SOURCE = Source(
    name="Chinese GPU GEMM worklog",
    about="Seven techniques one by one, then cp.async, block swizzle and TF32 through WMMA; RTX 4050 Laptop (sm_89).",
    claims=(
        Claim(
            "Tiles in shared memory cut the words read from global memory from 2 to 1/BM + 1/BN per multiply-add.",
            "Sectors that `block_tile` requests: equal to the formula.", _tile_traffic,
        ),
        Claim(
            "Reading 8 x 8 fragments as four 4 x 4, lanes in z-order, removes the bank conflicts of shared loads.",
            "Excess wavefronts of loads in `double_buffer` (some) and `conflict_free` (none).", _no_conflicts,
        ),
        Claim(
            "In z-order a warp's 128-bit load takes two transactions.",
            "Wavefronts per shared load in `conflict_free`: exactly 2.", _two_passes,
        ),
        Claim(
            "Before, with 8 floats of a thread side by side, it takes eight.",
            "Wavefronts per shared load of `double_buffer`, whose loads of A's tile take two: exactly 8 for B's.",
            _eight_passes,
        ),
        Claim(
            "Without the conflicts the kernel is clearly faster.",
            "Speed of `conflict_free` relative to `double_buffer` at 4096: more than 1.05 x.", _conflict_free_is_faster,
        ),
        Claim(
            "cp.async with two stages is no faster than staging through registers.",
            "Speed of `async_copy`, as in the source (two stages, A through registers), relative to `conflict_free` at "
            "4096: within 5%.", _cp_async,
        ),
        Claim(
            "The L2 hit rate is 96% at 2048 and 50% at 4096.",
            "Nsight Compute's hit rate of `async_copy`: 90% or more at 2048, 40 to 60% at 4096.", _l2_hits,
        ),
        Claim(
            "Block swizzle gains under one point of L2 hit rate at 2048 and about four at 4096.",
            "Hit rate of `block_swizzle` minus that of `async_copy`: 0 to 1 points at 2048, 2 to 6 at 4096.", _l2_gain,
        ),
        Claim(
            "Block swizzle hardly changes the speed.",
            "Speed of `block_swizzle` relative to `async_copy` at 2048 and 4096: within 2%.", _swizzle,
        ),
        Claim(
            "The number of stages does not change bank conflicts.",
            "Excess wavefronts of `async_copy` and of `wmma_tf32_pipelined` with 2, 3 and 4 stages: equal.",
            _stages_and_conflicts,
        ),
        Claim(
            "Three stages need more integer instructions than two and four, because of the remainder by 3.",
            "Integer instructions of `wmma_tf32_pipelined` (`MODULO` 1) per warp and k-block, on three architectures: "
            "at least one more with 3 stages than with 2 and 4.", _stage_three,
        ),
        Claim(
            "That remainder makes three stages slower than two and four.",
            "`wmma_tf32_pipelined` at 4096: with the remainder (`MODULO` 1) 3 stages are more than 2% slower than 2 "
            "and "
            "than 4, and a counter (`MODULO` 0) gains more than 2% only with 3 stages.", _stage_three_is_slow,
        ),
        Claim(
            "The best kernel is 101 x naive at 2048.",
            "Speed of `conflict_free` (the source's best) relative to `naive` at 2048: 50 x or more; and `naive` "
            "loses more "
            "than half of its speed from 1024 to 2048, as in the source (643 to 75 GFLOP/s), which explains the "
            "factor.", _hundredfold,
        ),
        Claim(
            "Unrolling a loop of few instructions makes it faster.",
            "Speed of `naive` at 4096 with `UNROLL` 16 relative to 1: more than 1.02 x.", _unrolled,
        ),
        Claim(
            "Unrolling too far fills the instruction cache and makes it slower.",
            "Speed of `naive` at 4096 with `UNROLL` 1024 relative to 16: less than 0.98 x.", _unrolled_too_far,
        ),
        Claim(
            "Blocks start in the order of their numbers; once some have ended, no one can predict which SM gets "
            "which block, so a swizzle helps little.",
            "The SM and the start of each block, in two launches: of the blocks that start first, as many as fit, 95% "
            "or more have the lowest numbers; of the later ones half or fewer run on the same SM both times.",
            _blocks_on_sms,
        ),
        Claim(
            "TF32 through WMMA passes a test of 1e-6 relative to the dot length.",
            "The source's own test, on `wmma_tf32` at 256 and on a model of it up to 2048, with numbers of one sign "
            "(the "
            "source does not say which numbers).", _source_test,
        ),
        Claim(
            "A TF32 product of WMMA becomes HMMA of the shape m16n8k4.",
            "Machine code of `wmma_tf32` for three architectures.", _shape,
        ),
    ),
)  # fmt: skip
