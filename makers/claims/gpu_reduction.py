"""The Chinese compilation's chapter on GPU reduction, after Mark Harris' slides."""

from __future__ import annotations

from claims.claim import Claim, Finding, Source, judged
from claims.evidence import Evidence

COUNTS = "emulated/reduce.json"
BLOCKS_OF_256 = 256 + 1
"""The number of blocks of the counted problem, 2^16 elements with 256 threads: 256 blocks leave one value each, and one
more adds these.
"""
ARTICLE_S_SIZE = str(32 << 20)


def _excess(e: Evidence, rung: str) -> float:
    facts = e.facts(COUNTS, rung)
    return facts["shared_load_excess"] + facts["shared_store_excess"]


def _divergence(e: Evidence) -> Finding:
    before, after = (e.facts(COUNTS, f"reduce_{name}")["instructions"] for name in ("interleaved", "strided_index"))
    ratio = e.ratio(ARTICLE_S_SIZE, "reduce_strided_index", "reduce_interleaved")
    return judged(ratio >= 1.1, f"{ratio:.2f} x; {before:,.0f} instructions before, {after:,.0f} after")


def _sixteen_ways(e: Evidence) -> Finding:
    # Two loads in each step. The wavefronts of all steps if the ways of the conflict doubled up to 16, then as counted.
    article = 2 * (4 * 2 + 2 * 4 + 8 + 16 + 8 + 4 + 2 + 1) + 1
    counted = e.facts(COUNTS, "reduce_strided_index")["shared_load_wavefronts"] / BLOCKS_OF_256
    return judged(
        counted == article,
        f"{counted:.0f} wavefronts of loads per block; with 16 in the fourth step there would be {article}",
    )


def _no_conflicts(e: Evidence) -> Finding:
    before, after = (_excess(e, f"reduce_{name}") for name in ("strided_index", "sequential"))
    return judged(before > 0 and after == 0, f"{before:,.0f} excess wavefronts before, {after:,.0f} after")


def _blocks_halve(e: Evidence) -> Finding:
    before, after = (e.facts(COUNTS, f"reduce_{name}")["barriers"] for name in ("sequential", "first_add"))
    ratio = e.ratio(ARTICLE_S_SIZE, "reduce_first_add", "reduce_sequential")
    return judged(ratio >= 1.3, f"{ratio:.2f} x; {before:,.0f} barriers before, {after:,.0f} after")


def _last_warp(e: Evidence) -> Finding:
    before, after = (e.facts(COUNTS, f"reduce_{name}")["barriers"] for name in ("first_add", "unroll_last_warp"))
    ratio = e.ratio(ARTICLE_S_SIZE, "reduce_unroll_last_warp", "reduce_first_add")
    return judged(ratio >= 1.1, f"{ratio:.2f} x; {before:,.0f} barriers before, {after:,.0f} after")


def _unrolled(e: Evidence) -> Finding:
    ratio = e.ratio(ARTICLE_S_SIZE, "reduce_unrolled", "reduce_unroll_last_warp")
    return judged(ratio >= 1.3, f"{ratio:.3f} x")


def _chosen_blocks(e: Evidence) -> Finding:
    ratio = e.ratio(ARTICLE_S_SIZE, "reduce_grid_stride", "reduce_unrolled")
    return judged(ratio >= 1.05, f"{ratio:.2f} x; 65,536 blocks before, 1,024 after")


def _shuffles(e: Evidence) -> Finding:
    before, after = (e.facts(COUNTS, f"reduce_{name}")["shared_load_requests"] for name in ("grid_stride", "shuffle"))
    ratio = e.ratio(ARTICLE_S_SIZE, "reduce_shuffle", "reduce_grid_stride")
    return judged(ratio >= 1.02, f"{ratio:.3f} x; {before:,.0f} shared loads before, {after:,.0f} after")


SOURCE = Source(
    name="Chinese compilation on GPU reduction",
    about="Seven steps that follow Mark Harris' slides (G80), then shuffles; 32 million floats, 256 threads, no times. "
    "Times here are at that size, counts at 65,536 elements.",
    claims=(
        Claim(
            "The first kernel's main fault is divergence; packing the threads that add removes most of it.",
            "Speed of `reduce_strided_index` relative to `reduce_interleaved`: 1.1 x or more. (Most of the saved "
            "instructions belong to the remainder, not to divergence.)", _divergence,
        ),
        Claim(
            "Strided indices cause bank conflicts of 2, 4, 8, then 16 ways.",
            "Wavefronts of shared loads per block of `reduce_strided_index`. (From the fourth step on at most 16 "
            "lanes load, "
            "from 2 banks, so 8 ways is the most.)", _sixteen_ways,
        ),
        Claim(
            "Adding the upper half to the lower half leaves no bank conflicts.",
            "Excess wavefronts of `reduce_sequential`: none.", _no_conflicts,
        ),
        Claim(
            "Adding once while loading puts idle threads to work.",
            "Speed of `reduce_first_add` relative to `reduce_sequential`: 1.3 x or more.", _blocks_halve,
        ),
        Claim(
            "Barriers while a single warp is at work are a great waste.",
            "Speed of `reduce_unroll_last_warp` relative to `reduce_first_add`: 1.1 x or more.", _last_warp,
        ),
        Claim(
            "A fully unrolled loop is 1.41 x as fast on a G80; whether it still is remains to be seen.",
            "Speed of `reduce_unrolled` relative to `reduce_unroll_last_warp`: 1.3 x or more.", _unrolled,
        ),
        Claim(
            "A suitable number of blocks, fewer than the elements would fill, is faster.",
            "Speed of `reduce_grid_stride` relative to `reduce_unrolled`: 1.05 x or more.", _chosen_blocks,
        ),
        Claim(
            "Shuffles in place of shared memory make reductions much better still.",
            "Speed of `reduce_shuffle` relative to `reduce_grid_stride`: 1.02 x or more.", _shuffles,
        ),
    ),
)  # fmt: skip
