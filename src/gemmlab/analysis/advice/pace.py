"""Advice on issue rate: barriers, latency, occupancy, instructions other than arithmetic, and roofs."""

from __future__ import annotations

from gemmlab.analysis.advice.row import Advice

PACE = (
    Advice(
        "two barriers", "loop_barriers >= 2 and loop_ffma + loop_hmma > 0 and not loop_alternates",
        "5 + 5 * (partition_warps <= 4)",
        "{loop_barriers:.3g} barriers an iteration of the main loop: loading and computing take turns.",
        "Two buffers in shared memory: the next tile is on its way while this one is used, with one barrier.",
        ("double_buffer", "warp_tile_double_buffer", "wmma_tf32_pipelined"),
    ),
    Advice(
        "needless barrier", "loop_barriers >= 2 and loop_ffma + loop_hmma > 0 and loop_alternates", "2",
        "{loop_barriers:.3g} barriers an iteration of the main loop, though it has several buffers: what it writes to "
        "shared memory goes to other places than in the iteration before.",
        "One barrier may be enough if the next tile is written after it: wait for the tile that comes next, "
        "__syncthreads(), then write into the buffer that all threads have read, and compute.",
        ("double_buffer", "warp_tile_double_buffer", "async_copy"),
    ),
    Advice(
        "tiles through registers",
        "loop_ldg > 0 and loop_sts > 0 and async_copies == 0 and loop_ffma + loop_hmma > 0 and arch >= 80", "3",
        "Tiles pass through registers on their way in: {loop_ldg:.3g} LDG and {loop_sts:.3g} STS an iteration.",
        "cp.async (LDGSTS) from sm_80 on: no registers, several stages under way.",
        ("async_copy", "wmma_tf32_pipelined"),
    ),
    Advice(
        "latency shows", "loop_slots > 0 and fill_pct < 100", "(100 - fill_pct) // 4",
        "{partition_warps:.3g} warps a partition ({occupancy_pct:.0f} % occupancy) issue "
        "{loop_slots_together:.4g} instructions in the {loop_stall:.4g} cycles that one of them needs at least.",
        "More warps (see what limits them), or more independent work a thread.",
        ("thread_tile_2d", "reduce_peak"),
    ),
    Advice(
        "low occupancy", "occupancy_pct < 25 and 2 * issue_best_pct < 170", "(25 - occupancy_pct) // 3",
        "{warps:.0f} warps of {most_warps:.0f} are resident, limited by {binding}.",
        "Smaller tiles or fewer registers; or work that does not need warps to hide latency: copies and fragments "
        "fetched a step ahead.",
        ("double_buffer", "async_copy"),
    ),
    Advice(
        "integer work", "loop_slots > 0 and 8 * loop_integer > loop_slots and loop_ffma + loop_hmma > 0",
        "issue_pct * loop_integer // loop_slots",
        "{loop_integer:.4g} of {loop_slots:.4g} issue slots of the main loop are integer work.",
        "Compute addresses before the loop and move them by constants; unroll; compile extents in.",
        ("maxas_256", "register_stage", "mma_tf32_pipelined"),
    ),
    Advice(
        "division", "loop_xu > 0 and loop_division > 0", "15",
        "The loop divides integers or takes a remainder: {loop_xu:.3g} conversions and reciprocals an iteration.",
        "Step through indices that need no division.",
        ("reduce_strided_index",),
    ),
    Advice(
        "idle lanes", "threads_per_instruction < 26", "(32 - threads_per_instruction) * 3",
        "{threads_per_instruction:.1f} of 32 lanes take part in an instruction on average.",
        "Give the lanes that work neighbouring numbers, so that whole warps are busy or done.",
        ("reduce_sequential", "reduce_first_add", "reduce_grid_stride"),
    ),
    Advice(
        "barriers of a tree",
        "of_sum > 0 and 8 * shared_store_requests > load_sectors and barriers > 0 and loop_ffma + loop_hmma < 1",
        "10",
        "{barriers:.0f} waits of warps at barriers and {shared_store_requests:.0f} shared stores to "
        "{global_load_requests:.0f} global loads: the tree costs as much as the reading.",
        "Add more elements a thread before the tree, and end it with warp shuffles.",
        ("reduce_shuffle", "reduce_peak"),
    ),
    Advice(
        "register banks", "50 * conflict_cycles > loop_slots and loop_slots > 0", "100 * conflict_cycles // loop_slots",
        "{conflicted:.0f} instructions of the main loop read all their sources from one register bank: "
        "{conflict_cycles:.0f} cycles an iteration.",
        "Another order of the multiply-adds, so that `.reuse` serves an operand, or other registers.",
    ),
    Advice(
        "large loop", "loop_bytes > cache_bytes", "2 + 20 * (loop_bytes > sm_cache_bytes)",
        "The main loop has {loop_bytes:.0f} bytes of code, more than the {cache_bytes:.0f} that a partition's "
        "instruction cache is known to have had; sizes since Turing are unpublished.",
        "Unroll less.",
    ),
    Advice(
        "L2 traffic", "bound_by_l2 > 0", "30",
        "L2 delivers too little: {l2_intensity:.3g} operations a byte at best, {l2_needed:.3g} are needed.",
        "Larger tiles, or blocks in an order in which neighbours share operands.",
        ("block_swizzle", "async_copy", "block_tile"),
    ),
    Advice(
        "memory bound", "bound_by_dram > 0", "1",
        "Device memory is the limit: each operand moves once at {dram_gbs:.0f} GB/s.",
        "Nothing gains more than keeping the memory busy: wide loads, many of them under way.",
        ("reduce_peak",),
    ),
    Advice(
        "near the roof", "issue_best_pct >= 85 and loop_ffma > 0 and loop_hmma == 0 and loop_double == 0",
        "(100 - issue_best_pct) // 2 + 1",
        "The main loop can reach {issue_best_pct:.0f} % of the FMA peak; {loop_other:.4g} of its {loop_slots:.4g} "
        "issue slots are not FFMA.",
        "More results a thread (16 x 8) halve the loads, and machine code in another order loses fewer cycles; past "
        "that only tensor cores, with inputs of 11 bits.",
        ("async_copy", "peak_simt", "wmma_tf32"),
        any_precision=True,
    ),
)  # fmt: skip
