"""Words that exercises of all kinds share, and the reasons why some rungs have no exercise."""

from __future__ import annotations

from collections.abc import Mapping

SOLVED_WHEN = "Solved when the results are right, and gemmlab check counts:"
"""The line before the criteria of an exercise."""
NO_EXERCISE: Mapping[str, str] = {
    "bf16x6": "Its six products are those of the exercise of `mma_bf16x6`, its two launches those of `tf32_images`.",
    "bf16x9": "It is `bf16x6` with the three products that the exercise of `mma_bf16x6` leaves out.",
    "reduce_vector": "It has nothing to choose: its vectors are as wide as the processor's, and its chains are fixed. "
    "The exercise of `reduce_accumulators` is about such chains.",
    "reduce_threaded": "It has nothing to choose: its 64 parts are fixed, so that the result is the same on any number "
    "of threads. The exercise of `reduce_scalar` is about parts.",
    "sum_staged": "Its one step, lines to shared memory before they are added, is the kernel. The exercise of "
    "`sum_short_rows` is about teams, which it does not have.",
    "tf32_split_k": "Its ring is that of `tma_pipeline`, and its parts and tickets are those of `split_k`; both have "
    "an exercise.",
}
"""The reason why a rung has no exercise, by the rung's id; the rung's page says it, too."""
