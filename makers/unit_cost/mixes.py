"""Loops of FFMAs beside memory instructions, and loops with barriers: what is varied, and the cycles of a turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass, field
from itertools import product

import numpy as np
import numpy.typing as npt

WORD_BYTES, SHARED_BYTES = 4, 45056
ROOM = {1: 200 << 10, 2: 110 << 10, 4: 55 << 10}
"""Blocks an SM -> bytes of dynamic shared memory with which just so many fit on an SM of an H200."""
RECORD = 4
"""Words of 64 bits of a warp's record: clock at its start and end, SM, nanoseconds at its start."""
NEAR, FAR = "L1", "L2"


@dataclass(frozen=True, slots=True)
class Counts:
    """Instructions of a turn of `mix` in makers/unit_kernels/mixes.cu, in the order of its template's parameters.

    `*_words` are the words that a lane takes, `*_step` the words from lane to lane; 0 is a broadcast.
    """

    fmas: int = 0
    loads: int = 0
    load_words: int = 1
    load_step: int = 1
    stores: int = 0
    store_words: int = 1
    store_step: int = 1
    globals: int = 0
    global_words: int = 1
    global_step: int = 1
    copies: int = 0
    copy_words: int = 1
    copy_from: int = 1
    copy_to: int = 1
    bypass: int = 0
    load_mod: int = 32
    """Lane l loads from shared memory as lane `l % load_mod // load_div`; lanes that are alike take the same words."""
    load_div: int = 1

    @property
    def span(self) -> int:
        """Words of global memory that a warp takes in a turn."""
        return 32 * (self.globals * max(1, self.global_step) + self.copies * self.copy_from)


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop in one launch: so many warps a block, so many blocks an SM."""

    kernel: str
    """Name expression of the kernel."""
    warps: int
    blocks: int = 1
    source: str = ""
    """The place of the words that its global loads and copies read: `NEAR`, `FAR`, or empty for a loop without them."""
    span: int = 0
    counts: Counts = field(default_factory=Counts)

    @property
    def label(self) -> str:
        return f"{self.kernel} warps={self.warps} blocks={self.blocks} {self.source}".strip()

    @property
    def smem_bytes(self) -> int:
        return ROOM[self.blocks] if self.kernel.startswith("barriers") else SHARED_BYTES


def _mixes() -> Iterator[tuple[Counts, tuple[str, ...]]]:
    """Yield the counts of each loop without barriers, and where its words of global memory are."""
    for fmas in (32, 64):
        yield Counts(fmas), ("",)
    for words in (1, 2, 4):
        yield Counts(loads=16, load_words=words, load_step=words), ("",)
        for loads in (4, 8, 16):
            yield Counts(64, loads, words, words), ("",)
        yield Counts(globals=16, global_words=words, global_step=words), (NEAR, FAR)
        yield Counts(64, globals=4, global_words=words, global_step=words), (NEAR, FAR)
        copied = Counts(copies=16, copy_words=words, copy_from=words, copy_to=words)
        yield copied, (NEAR, FAR)
        yield Counts(64, copies=4, copy_words=words, copy_from=words, copy_to=words), (NEAR, FAR)
    for step in (0, 2, 4):
        yield Counts(loads=16, load_step=step), ("",)
    for step, mod, div in (
        (8, 32, 1),
        (16, 32, 1),
        (8, 8, 1),
        (4, 8, 1),
        (4, 32, 8),
        (4, 32, 4),
        (8, 32, 8),
        (4, 16, 2),
        (32, 32, 8),
    ):
        yield Counts(loads=16, load_words=4, load_step=step, load_mod=mod, load_div=div), ("",)
        yield Counts(loads=16, load_words=1, load_step=step, load_mod=mod, load_div=div), ("",)
    for words, step in ((1, 2), (1, 4), (1, 8), (1, 32), (1, 33), (2, 4), (4, 8), (4, 16), (4, 36)):
        yield Counts(stores=16, store_words=words, store_step=step), ("",)
    for words in (1, 4):
        yield Counts(loads=16, load_words=4, load_step=0), ("",)
        yield Counts(stores=16, store_words=words, store_step=words), ("",)
        yield Counts(64, stores=4, store_words=words, store_step=words), ("",)
        yield Counts(loads=8, load_words=words, load_step=words, stores=8, store_words=words, store_step=words), ("",)
    yield Counts(64, 8, 4, 0), ("",)
    for step in (0, 2, 8, 32):
        yield Counts(globals=16, global_step=step), (NEAR,)
    yield Counts(globals=8, loads=8), (NEAR, FAR)
    yield Counts(loads=8, load_words=4, load_step=4, globals=4, global_words=4, global_step=4), (NEAR, FAR)
    yield Counts(copies=16, copy_words=4, copy_from=4, copy_to=4, bypass=1), (NEAR, FAR)
    yield Counts(64, copies=4, copy_words=4, copy_from=4, copy_to=4, bypass=1), (NEAR, FAR)
    yield Counts(copies=16, copy_to=4), (NEAR, FAR)
    yield Counts(copies=16, copy_from=8), (NEAR, FAR)
    yield Counts(copies=16, copy_from=8, copy_to=4), (FAR,)
    for copies in (4, 8, 16):
        yield Counts(loads=16, load_words=4, load_step=4, copies=copies), (NEAR, FAR)
        yield (
            Counts(loads=16, load_words=4, load_step=4, copies=copies, copy_words=4, copy_from=4, copy_to=4, bypass=1),
            (FAR,),
        )
    yield Counts(loads=16, copies=8), (FAR,)
    for copies in (1, 2, 4):
        yield Counts(128, 8, 4, 4, copies=copies), (FAR,)
        yield Counts(128, 8, 4, 4, copies=copies, copy_words=4, copy_from=4, copy_to=4, bypass=1), (FAR,)
        yield Counts(128, 8, 4, 4, globals=copies, global_words=4, global_step=4), (FAR,)
    yield Counts(128, 8, 4, 4), ("",)
    yield Counts(128, 8, 4, 4, stores=4), ("",)


BARRIERS = ((1, 0, 0, 0), (1, 32, 0, 0), (2, 16, 8, 1), (2, 8, 16, 2), (2, 64, 16, 1))
"""Barriers, FFMAs, loads from and stores to shared memory of a turn."""


CODE = (512, 1024, 1536, 1792, 2048, 2304, 2560, 3072, 4096, 8192, 16384)
"""FFMAs of a turn of code without loads, each 16 bytes: 8 to 256 KiB."""


def loops() -> list[Loop]:
    """Return every loop that is measured."""
    found = list[Loop]()
    for counts, sources in dict.fromkeys(_mixes()):
        kernel = f"mix<{', '.join(map(str, astuple(counts)))}>"
        found += [Loop(kernel, warps, 1, source, counts.span, counts) for source in sources for warps in (8, 16)]
    found += [Loop(one.kernel, 4, 1, "", 0, one.counts) for one in found[:4:2]]
    for rows, columns in ((8, 8), (16, 8)):
        for snake, held in product((0, 1), repeat=2):
            kernel = f"outer<{rows}, {columns}, {snake}, {held}>"
            found += [Loop(kernel, warps) for warps in (4, 8)]
    for numbers in BARRIERS:
        kernel = f"barriers<{', '.join(map(str, numbers))}>"
        found += [Loop(kernel, warps, blocks) for blocks in ROOM for warps in (2, 4, 8, 16, 32) if warps * blocks <= 64]
    return found + [Loop(f"code<{fmas}>", warps) for fmas in CODE for warps in (4, 8)]


def cycles_by_sm(records: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return, for each SM, the cycles from the first start of its warps to their last end.

    `records` has a row of `RECORD` words for each warp.
    """
    found = []
    for sm in np.unique(records[:, 2]):
        mine = records[records[:, 2] == sm]
        found.append(int(mine[:, 1].max()) - int(mine[:, 0].min()))
    return np.array(found)
