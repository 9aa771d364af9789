"""Advice on memory accesses: coalescing, reuse, bank conflicts, widths."""

from __future__ import annotations

from gemmlab.analysis.advice.row import Advice

MEMORY = (
    Advice(
        "uncoalesced loads", "2 * load_worst_ideal < load_worst_sectors", "load_excess_pct",
        "{load_place}: global loads take {load_worst_sectors:.3g} sectors a request where the same bytes side by side "
        "take {load_worst_ideal:.3g}, and {load_worst_pct:.0f} % of L1's time.",
        "Let neighbouring lanes read neighbouring addresses.",
        ("naive", "reduce_sequential"),
    ),
    Advice(
        "uncoalesced stores", "4 * store_worst_sectors > 5 * store_worst_ideal", "store_excess_pct",
        "{store_place}: global stores take {store_worst_sectors:.3g} sectors a request where the same bytes side by "
        "side take {store_worst_ideal:.3g}, and {store_worst_pct:.0f} % of L1's time.",
        "Let neighbouring lanes write neighbouring addresses, if need be by way of shared memory.",
        ("maxas_64", "naive"),
    ),
    Advice(
        "no reuse", "shared_wavefronts == 0 and reuse_possible >= 8", "load_coalesced_pct",
        "Every operand comes from global memory each time: even with coalesced accesses L2 is asked for up to "
        "{reuse_possible:.0f} times the bytes that the operands have.",
        "Bring tiles into shared memory, and use each element several times from there.",
        ("block_tile",),
    ),
    Advice(
        "little work a load", "loop_ffma > 0 and loop_hmma == 0 and loop_lds > 0 and 4 * loop_words > loop_ffma",
        "l1_pct - load_conflict_pct",
        "{loop_ffma:.4g} FFMA to {loop_words:.4g} words that each lane reads from shared memory in the main loop.",
        "Let a thread own several results, so that a word in a register serves several of them.",
        ("thread_tile_2d", "thread_tile_1d"),
    ),
    Advice(
        "load conflicts", "20 * shared_load_excess > shared_load_wavefronts", "load_conflict_pct",
        "{load_conflict_place}: bank conflicts add {load_conflict_worst_excess:.0f} % to the wavefronts of these "
        "shared loads, which take {load_conflict_worst_pct:.0f} % of L1's time; {shared_load_excess_pct:.0f} % "
        "over all.",
        "Let the lanes of a quarter warp read neighbouring pieces of 16 bytes or the same ones.",
        ("conflict_free", "warp_tile", "mma_tf32_pipelined", "reduce_sequential"),
    ),
    Advice(
        "store conflicts", "20 * shared_store_excess > shared_store_wavefronts", "store_conflict_pct",
        "{store_conflict_place}: bank conflicts add {store_conflict_worst_excess:.0f} % to the wavefronts of these "
        "shared stores, which take {store_conflict_worst_pct:.0f} % of L1's time; {shared_store_excess_pct:.0f} % "
        "over all.",
        "{store_cure}",
        ("conflict_free", "async_copy", "reduce_sequential"),
    ),
    Advice(
        "copy conflicts", "20 * async_copy_excess > async_copy_wavefronts", "copy_conflict_pct",
        "{copy_conflict_place}: bank conflicts add {copy_conflict_worst_excess:.0f} % to the wavefronts with which "
        "these asynchronous copies write; {async_copy_excess_pct:.0f} % over all.",
        "Let the lanes of a quarter warp write to neighbouring pieces of 16 bytes: another padding, or a swizzle.",
        ("async_copy", "mma_tf32_pipelined"),
    ),
    Advice(
        "narrow shared loads", "2 * loop_narrow_lds > loop_wide_lds and loop_ffma + loop_hmma > 0",
        "(l1_pct - load_conflict_pct) * loop_narrow_lds // (2 * loop_lds + 1)",
        "{loop_narrow_lds:.4g} of {loop_lds:.4g} shared loads in the main loop are narrower than 16 bytes a lane.",
        "Lay the tiles so that what a thread reads next lies side by side, and load float4.",
        ("register_stage", "vector_load", "mma_tf32_pipelined"),
    ),
    Advice(
        # Wide accesses would save three of four loads, and as many stores to shared memory.
        "narrow global loads", "global_narrow_pct > 50 and shared_wavefronts > 0",
        "1 + 3 * issue_pct * loop_narrow_ldg // (2 * max(1, loop_slots))",
        "{global_narrow_pct:.0f} % of the requests to global memory read less than 16 bytes a lane.",
        "Load float4 where base and rows are aligned.",
        ("vector_load", "reduce_peak"),
    ),
)  # fmt: skip
