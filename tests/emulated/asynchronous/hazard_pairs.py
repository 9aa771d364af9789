"""Pairs of kernels, with a bug and without: what is said of each that has a bug, and how it is launched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gemmlab import TensorMap

IN = np.arange(256, dtype=np.float32)
BOX = TensorMap(np.arange(8 * 32, dtype=np.float32).reshape(8, 32), (8, 32), swizzle=128)

UNSWIZZLED = TensorMap(np.arange(16 * 64, dtype=np.float32).reshape(16, 64), (8, 32))
PLAIN = TensorMap(np.arange(16 * 32, dtype=np.float32).reshape(16, 32), (16, 32))


@dataclass(frozen=True)
class Pair:
    """A kernel's name without its ending, and what is said of the bad one."""

    name: str
    kind: str
    line: str
    other: str
    words: str
    reads: bool = False
    grid: int = 1
    follows: frozenset[str] = frozenset()
    """Kinds that are reported as well."""

    def __str__(self) -> str:
        return self.name

    @property
    def file(self) -> str:
        """The file of both kernels."""
        return next(file for file, names in FILES.items() if self.name in names)


FILES = {
    "proxies.cu": ("fence_of_writers", "fence_too_late", "fence_before_load", "unrolled"),
    "stages.cu": (
        "barrier_before_load", "stage_still_read", "others_wait", "load_over_store", "no_wait", "store_at_end",
        "load_at_end", "swizzle_base", "unwritten_part",
    ),
    "mbarrier_misuse.cu": (
        "parity", "many_arrivals", "few_arrivals", "few_bytes", "polled", "unknown_barrier", "hidden_barrier",
        "no_barrier", "spoilt_barrier", "overflow",
    ),
    "cluster_misuse.cu": ("cluster_end", "late_arrival", "cluster_hang", "cluster_init"),
    "expectations.cu": ("overflow_of_two",),
    "relaxed_arrivals.cu": ("relaxed_init", "split_init"),
    "rings.cu": (
        "ring_without_empty", "ring_same_parity", "ring_empty_parity", "ring_full_parity", "small_box", "store_before",
        "map_by_value", "no_cluster", "no_cluster_store", "no_cluster_own",
    ),
    "cluster_races.cu": (
        "neighbour_loop", "block_barrier_only", "owner_reads", "histogram", "one_warp_waits", "async_store",
        "async_sum", "sum_of_nothing", "copy_source", "copy_target", "copy_sum", "neighbour_ends", "sender_ends",
        "relaxed_arrival",
    ),
}  # fmt: skip
HANG = frozenset({"deadlock"})
LOST = frozenset({"mbarrier", "deadlock", "async copy", "race"})
"""What a ring out of step leads to."""
PAIRS = [
    Pair("fence_of_writers", "proxy", "STORE", "WRITER", "without a proxy fence"),
    Pair("fence_too_late", "proxy", "SENT", "UNSEEN", "between its write and what orders the two"),
    Pair("fence_before_load", "proxy", "LOAD", "FIRST", "overwrites shared memory that thread 0", reads=True),
    Pair("barrier_before_load", "race", "AGAIN", "READER", "may still read", reads=True),
    Pair("stage_still_read", "race", "LATE", "REUSE", "while a bulk operation still reads it"),
    Pair("others_wait", "race", "OWN", "OTHERS", "its own thread's groups, so only thread 0 can"),
    Pair("load_over_store", "race", "OVER", "UNDER", "while a bulk store still reads it", reads=True),
    Pair(
        "parity",
        "async copy",
        "EARLY",
        "",
        "tested parity 0, and the copy belongs to the phase of parity 1",
        True,
        follows=frozenset({"race"}),
    ),
    Pair("no_wait", "async copy", "UNWAITED", "COPY", "has not waited for its mbarrier", reads=True),
    Pair("many_arrivals", "mbarrier", "MANY", "", "too many arrivals: 128 where 127 of 128 are missing"),
    Pair(
        "few_arrivals",
        "mbarrier",
        "",
        "",
        "lacks 1 of 128 arrivals; they wait for parity 0; thread 77 has not arrived",
        follows=HANG,
    ),
    Pair("polled", "deadlock", "", "", "4 warps of 1 block can never go on"),
    Pair(
        "few_bytes",
        "mbarrier",
        "",
        "",
        "is told to expect 512 bytes in phase 0, and 256 came",
        reads=True,
        follows=HANG,
    ),
    Pair("unknown_barrier", "mbarrier", "", "INIT", "before a barrier of the block makes its initialisation known"),
    Pair("hidden_barrier", "mbarrier", "USER", "HIDDEN", "neither fence.mbarrier_init nor", reads=True),
    Pair("no_barrier", "mbarrier", "", "", "no mbarrier was initialised here"),
    Pair("spoilt_barrier", "mbarrier", "", "", "overwritten by ordinary stores"),
    Pair("overflow", "mbarrier", "", "", "1048576 bytes are expected in one phase; an mbarrier counts to 1048575"),
    Pair("overflow_of_two", "mbarrier", "TOO_MUCH", "NEARLY_ALL", "1048576 bytes are expected in one phase"),
    Pair("store_at_end", "async copy", "", "", "before a bulk store has read its shared memory"),
    Pair("load_at_end", "async copy", "", "", "before a bulk copy into its shared memory has landed", reads=True),
    Pair("swizzle_base", "misaligned", "", "", "no multiple of 1024, where the pattern of swizzle 128 begins"),
    Pair("unrolled", "proxy", "UNROLLED", "EACH", "without a proxy fence"),
    Pair("unwritten_part", "unwritten", "", "PART", "a bulk store reads shared memory that nothing has written"),
    Pair("cluster_end", "cluster", "GONE", "", "of a block of the cluster that has ended", grid=2),
    Pair("late_arrival", "cluster", "", "", "an access to block 0 of the cluster, which may have ended", grid=2),
    Pair(
        "cluster_hang",
        "cluster",
        "TOGETHER",
        "",
        "the cluster's barrier lacks warp 2 of block 1",
        grid=2,
        follows=frozenset({"deadlock", "mbarrier"}),
    ),
    Pair("cluster_init", "mbarrier", "", "", "before the cluster's barrier makes its initialisation known", grid=2),
    Pair("relaxed_init", "mbarrier", "EARLY_USE", "NOT_FENCED", "before fence.mbarrier_init, which", grid=2),
    Pair("split_init", "mbarrier", "BEFORE_WAIT", "BEHIND_WAIT", "before a barrier of the block makes", grid=2),
    Pair("neighbour_loop", "race", "NEIGHBOUR", "REWRITTEN", "of block (1, 0, 0) (STS) of the cluster", grid=2),
    Pair("block_barrier_only", "race", "TOO_EARLY", "AGAIN_STORED", "cluster.sync() (barrier.cluster)", grid=2),
    Pair("owner_reads", "race", "OWNER", "FAR_STORE", "of block (1, 0, 0) (ST.E) of the cluster", grid=2),
    Pair("histogram", "race", "BIN", "SUM", "(ATOM.E.ADD.STRONG.GPU) and an access by thread", grid=2),
    Pair(
        "one_warp_waits",
        "race",
        "SENT_FAR",
        "NOT_WAITED",
        "nothing between that orders the blocks",
        grid=2,
        follows=frozenset({"unwritten"}),
    ),
    Pair(
        "async_store",
        "async copy",
        "BEFORE_STORE",
        "ASYNC_STORE",
        "has not waited for its mbarrier",
        grid=2,
        follows=frozenset({"race"}),
    ),
    Pair("async_sum", "race", "ASYNC_SUM", "BEFORE_SUM", "an asynchronous store overwrites", grid=2),
    Pair("sum_of_nothing", "unwritten", "OF_NOTHING", "", "a reduction into shared memory", grid=2),
    Pair("copy_source", "race", "SOURCE", "SOURCE_AGAIN", "while a bulk operation still reads it", grid=2),
    Pair("copy_target", "race", "TARGET", "TARGET_READ", "may still read: nothing orders", grid=2),
    Pair(
        "copy_sum",
        "async copy",
        "SUM_EARLY",
        "FAR_SUM",
        "has not waited for its mbarrier",
        grid=2,
        follows=frozenset({"race"}),
    ),
    Pair("neighbour_ends", "cluster", "LAST_VISIT", "", "block 1 of the cluster, which may have ended", grid=2),
    Pair("sender_ends", "cluster", "SENDER", "", "before a copy from its shared memory", grid=2),
    Pair("relaxed_arrival", "race", "NOT_RELEASED", "HELD_BACK", "nothing between that orders the blocks", grid=2),
    Pair("ring_without_empty", "race", "REFILL", "REFILL", "no wait is between, such as", True, follows=LOST),
    Pair("ring_same_parity", "race", "REFILL", "", "again, and passed a phase early", True, follows=LOST),
    Pair("ring_empty_parity", "mbarrier", "", "", "which is to pass at first, tests parity 1", True, follows=LOST),
    Pair("ring_full_parity", "async copy", "CONSUMED", "", "tested parity 1, and the copy belongs", True, follows=LOST),
    Pair(
        "small_box",
        "mbarrier",
        "",
        "SMALL_BOX",
        "the mbarrier cells[0] is told to expect 2,048 bytes in phase 0, and 1,024 came",
        follows=HANG,
    ),
    Pair("store_before", "out of bounds", "BEFORE", "", "a tensor store that begins before the tensor, at [-4, 0]"),
    Pair("map_by_value", "tensor map", "COPIED_MAP", "", "`const __grid_constant__ CUtensorMap`"),
    Pair("no_cluster", "out of bounds", "ALONE", "", "block 1 of a cluster, but the launch has none"),
    Pair("no_cluster_store", "cluster", "ALONE_STORE", "", "block 1 of a cluster, but the launch has none"),
    Pair("no_cluster_own", "cluster", "ALONE_OWN", "", "st.async in a launch without a cluster"),
]


def arguments(pair: Pair) -> list[object]:
    out = np.zeros(256, np.float32)
    if pair.name in {"small_box", "store_before", "map_by_value"}:
        return [UNSWIZZLED, out]
    if pair.name == "unwritten_part":
        return [PLAIN]
    return [BOX, out] if pair.name == "swizzle_base" else [IN, out] if pair.reads else [out]
