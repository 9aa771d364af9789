"""What to try, as data: a condition over a kernel's facts, what it means, what to do, and the rung that does it.

Facts are those of `facts.facts_of`. Conditions and weights are `core.expr` expressions; a weight estimates, in percent
of the running time, what is to be gained, and decides the order.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Advice:
    """One row of the table."""

    key: str
    when: str
    weight: str
    text: str
    """A format over the facts and `explanation.words_of`: the finding with its figure."""
    attempt: str
    """What to try."""
    rungs: tuple[str, ...] = ()
    """Kernels that do it; shown is the first of the same operation above the kernel's own step."""
    any_precision: bool = False
    """Whether a rung that rounds its inputs otherwise than the kernel does is shown too."""


ADVICE = (
    Advice(
        "wrong result", "wrong > 0", "2000",
        "Its result is wrong at this size: {wrong_words}. All that follows is of what it does, not of what it should.",
        "`gemmlab check` tells where it is wrong, and for which sizes.",
    ),
    Advice(
        "hazards", "hazards > 0", "1000",
        "{hazards:.0f} kinds of accesses that a kernel must not make: its figures and results cannot be trusted.",
        "`gemmlab check` names the first of each with its source line.",
    ),
    Advice(
        "spills", "spill_bytes > 0", "20 + spill_bytes",
        "{spill_bytes:.0f} bytes a thread are spilled to local memory ({registers:.0f} registers a thread), used most: "
        "{local_place}, {local_worst_pct:.0f} % of L1's time.",
        "Fewer results a thread, less unrolling, or `__launch_bounds__` that leaves more registers.",
    ),
    Advice(
        # Of a kernel that spills, local memory is that.
        "local memory", "local_pct > 0 and spill_bytes == 0", "local_pct",
        "{local_place}: an array of the thread lies in local memory ({stack_bytes:.0f} bytes of stack); this line's "
        "accesses to it take {local_worst_pct:.0f} % of L1's time. It is no spill: registers cannot be indexed.",
        "Unroll the loops over it completely, so that the compiler knows each index; or keep it in shared memory.",
    ),
    Advice(
        # L2 carries them out, one after another where they meet: at least twice what L1 counts.
        "atomics", "atomic_pct > 0", "min(95, 2 * atomic_pct)",
        "{atomic_place}: atomic operations take {atomic_worst_pct:.0f} % of L1's time, and more in L2, which carries "
        "them out one after another where they meet.",
        "Add up in registers, then in the block by shuffles or shared memory, and do one atomic at the end; or write "
        "partial sums that a second pass adds.",
    ),
    Advice(
        "double precision", "loop_double > 0", "double_pct",
        "{loop_double:.4g} instructions in double precision and {loop_conversions:.4g} conversions (F2F) are among the "
        "main loop's {loop_slots:.4g}: their pipes are busy for {double_pct:.0f} % of an iteration. An SM begins "
        "{fp64_lanes:.0f} such operations a clock, where it begins {fma_lanes:.0f} FFMA.",
        "Keep to float: constants with an f (`1.0f`), `fmaf`, float variables; where a sum needs more digits, add in "
        "float over a tile, and in double from tile to tile.",
    ),
    Advice(
        "beyond the edges", "loop_ffma > 0 and loop_hmma == 0 and useful_pct < 67", "200 - useful_pct",
        "{useful_pct:.2g} % of the multiply-adds that are executed belong to the product; the others are of tiles that "
        "reach beyond its edges.",
        "Smaller tiles for such a size. What is told of larger sizes from this one is of no use: explain one of them.",
    ),
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
        "Pad the tile's rows, or change which lane stores what (a tile that is turned on its way in).",
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
        # Three of four loads would go, and as many stores to shared memory.
        "narrow global loads", "global_narrow_pct > 50 and shared_wavefronts > 0",
        "1 + 3 * issue_pct * loop_narrow_ldg // (2 * max(1, loop_slots))",
        "{global_narrow_pct:.0f} % of the requests to global memory read less than 16 bytes a lane.",
        "Load float4 where base and rows are aligned.",
        ("vector_load", "reduce_peak"),
    ),
    Advice(
        "two barriers", "loop_barriers >= 2 and loop_ffma + loop_hmma > 0", "5 + 5 * (partition_warps <= 4)",
        "{loop_barriers:.3g} barriers an iteration of the main loop: loading and computing take turns.",
        "Two buffers in shared memory: the next tile is on its way while this one is used, with one barrier.",
        ("double_buffer", "warp_tile_double_buffer", "wmma_tf32_pipelined"),
    ),
    Advice(
        "tiles through registers", "loop_ldg > 0 and loop_sts > 0 and async_copies == 0 and loop_ffma + loop_hmma > 0",
        "3",
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
        "barriers of a tree", "8 * shared_store_requests > load_sectors and barriers > 0 and loop_ffma + loop_hmma < 1",
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
        "More results a thread (16 x 8) halve the loads; past that only tensor cores, with inputs of 11 bits.",
        ("async_copy", "peak_simt", "wmma_tf32"),
        any_precision=True,
    ),
)  # fmt: skip
