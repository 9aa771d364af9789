"""Stall reasons of warps, as data: the warp states of Nsight Compute, their meaning, usual cause and remedy.

The list is that of the Chinese SGEMM profiling notes, which take it from Nsight Compute's profiling guide ("Warp Stall
Reasons"); words and advice are ours. Each state is counted twice: in all sampled cycles, and in the sampled cycles in
which the warp's partition issued nothing. Only the second kind costs time.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stall:
    """One state of a warp between two of its instructions."""

    key: str
    """Name of the state in the metrics of samples, such as `"long_scoreboard"`."""
    meaning: str
    """One sentence on what the warp does in this state."""
    cause: str
    """Usual cause of the state."""
    attempt: str
    """Remedy to try."""
    rungs: tuple[str, ...] = ()
    """Kernels that apply the remedy, as in `Advice.rungs`."""
    ratio: str = ""
    """Name of the state in the metric of cycles; empty if it equals `key`."""
    waits: bool = True
    """False for the two states in which a warp does not wait: `selected` and `not_selected`."""

    @property
    def name(self) -> str:
        """`key` in words, such as `"long scoreboard"`."""
        return self.key.replace("_", " ")

    @property
    def metric(self) -> str:
        """Name of the metric that counts samples of a warp in this state."""
        return f"smsp__pcsamp_warps_issue_stalled_{self.key}"

    @property
    def not_issued(self) -> str:
        """Name of the metric that counts only samples in which the partition issued nothing."""
        return f"{self.metric}_not_issued"

    @property
    def cycles(self) -> str:
        """Name of the metric of cycles in this state per issued instruction; it is counted without sampling."""
        return f"smsp__average_warps_issue_stalled_{self.ratio or self.key}_per_issue_active.ratio"


STALLS = (
    Stall(
        "barrier",
        "The warp has come to a barrier of its block and waits for the block's other warps.",
        "Warps come to `__syncthreads()` at different times: unequal work before it, or one slow load for all of them.",
        "One barrier a k-block instead of two, by a second buffer; equal work before it; smaller blocks, so that "
        "another one computes meanwhile.",
        ("double_buffer", "warp_tile_double_buffer", "reduce_unroll_last_warp", "reduce_shuffle"),
    ),
    Stall(
        "branch_resolving",
        "The warp has jumped, and waits until the target is known and its program counter is set.",
        "Short loops, and branches on which the lanes do not agree.",
        "Unroll; let a few instructions be predicated instead of jumped over; take conditions out of the loop.",
        ("reduce_strided_index", "reduce_unrolled"),
    ),
    Stall(
        "dispatch_stall",
        "The warp's instruction was ready, and the dispatcher held it back.",
        "Nsight Compute names no cause. Where multiply-adds follow each other, sources that lie in one register bank "
        "are the likely one.",
        "Look at the register banks of the main loop (`gemmlab explain`); another order of the multiply-adds lets "
        "`.reuse` serve an operand.",
    ),
    Stall(
        "drain",
        "The warp has ended, and waits for its stores to leave so that its place can be given away.",
        "Many results are written at the very end of short blocks, or they are scattered.",
        "Stores that coalesce and are 16 bytes wide; more work for each block, so that the end weighs less.",
        ("vector_load", "maxas_64", "reduce_grid_stride"),
    ),
    Stall(
        "imc_miss",
        "The warp waits for a constant that its cache did not have.",
        "The first use of kernel arguments and constants in a short kernel, or lanes that ask for different addresses, "
        "which are served one after another.",
        "Nothing in a long kernel. Let all lanes read the same constant; put tables into shared memory.",
    ),
    Stall(
        "lg_throttle",
        "The queue for instructions on global and local memory is full, and the warp waits to enter it.",
        "Many narrow or scattered accesses in a row, or spilled registers.",
        "Fewer and wider accesses, lanes side by side; tiles in shared memory; no spills.",
        ("naive", "block_tile", "vector_load", "reduce_sequential"),
    ),
    Stall(
        "long_scoreboard",
        "The warp needs what it asked of L1: data from global, local or texture memory.",
        "Loads are used soon after they are made, and come from L2 or DRAM.",
        "Load a k-block ahead, in registers or by cp.async; more loads under way; more warps; better reuse in caches.",
        ("block_tile", "double_buffer", "async_copy", "reduce_first_add", "reduce_peak"),
    ),
    Stall(
        "math_pipe_throttle",
        "The warp's instruction is ready, and the pipe that computes it is busy.",
        "All warps want the same pipe. Near the peak this is what is left.",
        "If the pipe does the work that is wanted, nothing. Otherwise fewer integer or special instructions; past the "
        "FMA pipe only tensor cores.",
        ("wmma_tf32",),
    ),
    Stall(
        "membar",
        "The warp waits at a memory fence until its writes can be seen.",
        "`__threadfence()` or an atomic operation with an order, while many writes are under way.",
        "Fewer fences, and of the block instead of the device where that is enough.",
    ),
    Stall(
        "mio_throttle",
        "The queue for shared memory, special functions and dynamic jumps is full, and the warp waits to enter it.",
        "Too many loads from shared memory for the arithmetic, most of them narrow.",
        "Several results a thread, so that a loaded word serves several multiply-adds; loads of 16 bytes; no bank "
        "conflicts.",
        ("thread_tile_2d", "register_stage", "conflict_free", "reduce_shuffle"),
    ),
    Stall(
        "misc",
        "The warp waits for something that has no name of its own.",
        "Rare events of the hardware.",
        "Nothing. If it is frequent, profile again.",
    ),
    Stall(
        "no_instructions",
        "The warp waits for its next instruction to be fetched.",
        "A kernel so short that its code is still cold, a loop larger than the instruction cache, or jumps to and fro.",
        "Unroll less; fewer jumps; more work for a launch.",
        (),
        "no_instruction",
    ),
    Stall(
        "not_selected",
        "The warp was ready to issue, but another warp was selected.",
        "There are more warps ready than a partition can issue from.",
        "Nothing: latency is hidden. Fewer warps with more registers each would do as well.",
        waits=False,
    ),
    Stall(
        "selected",
        "The warp issues an instruction.",
        "This is work, not waiting: one cycle for each instruction.",
        "Nothing. Fewer instructions for the same work, if it is most of what there is.",
        waits=False,
    ),
    Stall(
        "short_scoreboard",
        "The warp needs what it asked of shared memory or of the special functions.",
        "Words from shared memory are used soon after they are asked for, and bank conflicts make each wait longer.",
        "Fetch a step's fragments while the step before is computed; several results a thread; no bank conflicts.",
        ("register_stage", "double_buffer", "conflict_free", "reduce_shuffle"),
    ),
    Stall(
        "sleeping",
        "All threads of the warp are asleep, blocked or have yielded.",
        "`__nanosleep()` in a loop that waits for another block.",
        "Sleep shorter, and let the threads of a warp sleep together.",
    ),
    Stall(
        "tex_throttle",
        "The queue for texture fetches is full, and the warp waits to enter it.",
        "Many fetches in a row, each of a single texel.",
        "Wider fetches, fewer of them, or plain loads, which go another way into L1.",
        ("maxas_256",),
    ),
    Stall(
        "wait",
        "The warp waits the fixed number of cycles that the compiler wrote into the instruction before.",
        "Arithmetic that depends on the instruction just before it. In code that waits for little else it comes first.",
        "More independent work a thread; more warps; unrolling, so that independent instructions can stand between.",
        ("thread_tile_1d", "thread_tile_2d", "reduce_peak"),
    ),
    Stall(
        "warpgroup_arrive",
        "The warp waits at an instruction that joins the warps of a group for a matrix instruction, or for its result.",
        "On Hopper: the code waits for warpgroup matrix instructions one by one.",
        "Several of them under way at once; other warps that bring the data (warp specialisation).",
        (),
        "gmma",
    ),
)  # fmt: skip
