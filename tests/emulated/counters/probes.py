"""The counter probes: patterns of addresses, and launches in a fixed order for a profiler and for the emulator."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

HERE = Path(__file__).parent
ORACLE = HERE.parents[1] / "data" / "h200-shared-wavefronts.csv"
PROBES, PATTERNS, BRANCHES = HERE / "probes.cu", HERE / "gemm_patterns.cu", HERE / "branches.cu"
COPIES = HERE / "copies.cu"
GLOBAL_WORDS = 32 * 64
Words = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Measured:
    """One warp's shared access as the oracle has it."""

    op: str
    """`"ld"` or `"st"`."""
    length: int
    """Words a lane."""
    words: tuple[int, ...]
    wavefronts: int
    ideal: int


@dataclass(frozen=True, slots=True)
class Probe:
    """One launch."""

    name: str
    file: Path
    kernel: str
    args: tuple[Any, ...]
    grid: tuple[int, int] = (1, 1)
    threads: int = 32


def oracle() -> list[Measured]:
    """The patterns measured on an H200."""
    with ORACLE.open(newline="") as rows:
        return [
            Measured(
                row["op"], int(row["width_words"]), tuple(map(int, row["word_index_of_lane_0_to_31"].split())),
                int(row["wavefronts"]), int(row["wavefronts_ideal"]),
            )
            for row in csv.DictReader(rows)
        ]  # fmt: skip


def shared_patterns(length: int) -> dict[str, Words]:
    """Word of each lane for accesses of 1, 2 or 4 words, by name."""
    lane = np.arange(32, dtype=np.int32)
    found = {f"stride_{stride}": lane * stride * length % 4096 for stride in (1, 2, 4, 8, 16, 32)}
    found["broadcast"] = 0 * lane + 8
    found["two_words"] = lane % 2 * 64
    found["reversed"] = (31 - lane) * length
    found["padded_column"] = lane * 33 // length * length
    found["z_order"] = ((lane & 1) | (lane >> 1 & 2) | (lane >> 2 & 4)) * length
    found["z_order_other"] = ((lane >> 1 & 1) | (lane >> 2 & 2) | (lane >> 2 & 4)) * length
    found["scan_8"] = lane % 8 * length * 2
    found["rows_of_8"] = lane // 8 * length * 2
    # Pairs of lanes that share an address, in one half of the warp only, or without and with conflicts in its halves.
    found["pairs_in_one_half"] = np.where(lane < 16, lane // 2 * length, lane * length)
    found["pairs_with_conflicts"] = np.where(lane < 16, lane // 2 * length, lane // 8 * 32)
    return {name: words.astype(np.int32) for name, words in found.items()}


def global_patterns(length: int) -> dict[str, Words]:
    """Word of each lane in global memory, aligned for the width, by name."""
    lane = np.arange(32, dtype=np.int32)
    found = {f"stride_{stride}": lane * stride * length for stride in (1, 2, 4, 8, 16)}
    found |= {f"offset_{offset}": lane * length + offset * length for offset in (1, 3, 7)}
    found["broadcast"] = 0 * lane + 40
    found["reversed"] = (31 - lane) * length
    found["scattered"] = lane * 37 % 64 * 8 * length // length
    return {name: (words % (GLOBAL_WORDS - 8)).astype(np.int32) for name, words in found.items()}


def probes() -> Iterator[Probe]:
    """Every launch, in the order in which they are profiled."""
    out, room = np.zeros(32, np.float32), np.zeros(GLOBAL_WORDS, np.float32)
    for length in (1, 2, 4):
        for name, words in shared_patterns(length).items():
            yield Probe(f"shared_load_{length}_{name}", PROBES, f"shared_load<{length}>", (words, out))
            yield Probe(f"shared_store_{length}_{name}", PROBES, f"shared_store<{length}>", (words, out))
        some = np.where(np.arange(32) % 3 == 0, -1, shared_patterns(length)["stride_4"]).astype(np.int32)
        yield Probe(f"shared_load_{length}_some", PROBES, f"shared_load_some<{length}>", (some, out))
        for name, words in global_patterns(length).items():
            yield Probe(f"global_load_{length}_{name}", PROBES, f"global_load<{length}>", (words, room, out))
            yield Probe(f"global_store_{length}_{name}", PROBES, f"global_store<{length}>", (words, room))
    for stride in (1, 3, 33):
        where = (np.arange(32) * stride + 5).astype(np.int32)
        data, result = np.zeros(2048, np.uint8), np.zeros(32, np.uint8)
        yield Probe(f"global_load_byte_{stride}", PROBES, "global_load_byte", (where, data, result))
    where, cells = (np.arange(128) * 7 % 96).astype(np.int32), np.zeros(96, np.uint32)
    yield Probe("atomics", PROBES, "atomics", (where, cells, np.zeros(64, np.uint32)), threads=128)
    yield Probe(
        "ragged", PROBES, "ragged", (np.ones(500, np.float32), np.zeros(500, np.float32), np.int32(500)), (6, 1), 96
    )
    yield from branches()
    n = 128
    square = [np.ones((n, n), np.float32) for _ in range(3)]
    for kernel in ("tiled_2d", "tiled_2d_vector"):
        yield Probe(kernel, PATTERNS, kernel, (*square, np.int32(n)), (n // 64, n // 64), 64)


def branches() -> Iterator[Probe]:
    """A branch on two predicates of which the first holds for 20 lanes, and the second for all or for none."""
    first, second = (np.where(np.arange(32) < lanes, 2, 0).astype(np.int32) for lanes in (20, 32))
    for name, bound in (("hold", 2), ("fail", 3)):
        args = (first, second, np.int32(bound), np.zeros(32, np.float32))
        yield Probe(f"two_predicates_{name}", BRANCHES, "two_predicates", args)


def copies() -> Iterator[Probe]:
    """Asynchronous copies: what `copy_rule` says of them is known of whole kernels only."""
    lane = np.arange(32)
    data = np.arange(GLOBAL_WORDS, dtype=np.float32)
    for bytes_, bypass, guarded in ((16, 1, 0), (16, 1, 1), (16, 0, 0), (8, 0, 0), (4, 0, 0), (4, 0, 1)):
        words = bytes_ // 4
        straight = lane * words
        patterns = {f"off_{shift}": (straight, straight + shift) for shift in (0, 4, 8, 12, 28)}
        # Rows of 64 bytes to rows of 80, as padded tiles have them; each lane from a line of its own to neighbours;
        # a row turned to a column; and all to one bank.
        patterns["rows_of_80"] = lane * words // 16 * 64 + straight % 16, lane * words // 16 * 20 + straight % 16
        patterns["a_line_each"] = lane * 32 + 8 * (lane % 2), straight
        patterns["turned"] = lane // 8 * 64 + lane % 8 * words, lane % 8 * 132 + lane // 8 * words
        patterns["one_bank"] = straight, lane * 32 % 1024
        for name, (source, target) in patterns.items():
            args = (source.astype(np.int32), target.astype(np.int32), data, np.zeros(32, np.float32))
            kernel = f"copy<{bytes_}, {bypass}, {guarded}>"
            yield Probe(f"{kernel} {name}", COPIES, kernel, args)
