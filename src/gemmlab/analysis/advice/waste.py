"""Advice on faults and wasted work: wrong results, hazards, spills, atomics, double precision, partial tiles."""

from __future__ import annotations

from gemmlab.analysis.advice.row import Advice

WASTE = (
    Advice(
        "wrong result", "wrong > 0", "2000",
        "Its result is wrong at this size: {wrong_words} The other figures describe what it does, not what it should.",
        "`gemmlab check` tells where it is wrong, and for which sizes.",
    ),
    Advice(
        "hazards", "hazards > 0", "1000",
        "Kinds of accesses that a kernel must not make: {hazards:.0f}. {trust_words}",
        "Mend the first hazard before anything else: the others may follow from it.",
    ),
    Advice(
        "serialized wgmma", "wgmma_serialized > 0", "50",
        "ptxas lets the kernel wait after each warpgroup multiplication: {serialized_words}.",
        "Leave the accumulators alone between the first multiplication and the wait, and start them by a scale-d of 0 "
        "or before a loop that runs at least once.",
    ),
    Advice(
        "ignored setmaxnreg", "setmaxnreg_ignored > 0", "10",
        "ptxas ignored setmaxnreg: {ignored_words}",
        "State the threads of a block by `__launch_bounds__(threads, 1)`.",
    ),
    Advice(
        "spills", "spill_bytes > 0", "20 + spill_bytes",
        "{spill_bytes:.0f} bytes a thread are spilled to local memory ({registers:.0f} registers a thread), used most: "
        "{local_place}, {local_worst_pct:.0f} % of L1's time.",
        "Fewer results a thread, less unrolling, or `__launch_bounds__` that leaves more registers.",
    ),
    Advice(
        # In a kernel that spills, the accesses to local memory are the spills.
        "local memory", "local_pct > 0 and spill_bytes == 0", "local_pct",
        "{local_place}: an array of the thread lies in local memory ({stack_bytes:.0f} bytes of stack); this line's "
        "accesses to it take {local_worst_pct:.0f} % of L1's time. It is no spill: registers cannot be indexed.",
        "Unroll the loops over it completely, so that the compiler knows each index; or keep it in shared memory.",
    ),
    Advice(
        # L2 executes them, one after another where addresses collide: the cost is at least twice what L1 counts.
        "atomics", "atomic_pct > 0", "min(95, 2 * atomic_pct)",
        "{atomic_place}: atomic operations take {atomic_worst_pct:.0f} % of L1's time, and more in L2, which executes "
        "those on the same address one after another.",
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
        "beyond the edges", "of_product > 0 and loop_ffma > 0 and loop_hmma == 0 and useful_pct < 67",
        "200 - useful_pct",
        "{useful_pct:.2g} % of the multiply-adds that are executed belong to the product; the others are of tiles that "
        "reach beyond its edges.",
        "Smaller tiles for such a size. Do not extrapolate from this size to larger ones: explain one of them instead.",
    ),
)  # fmt: skip
