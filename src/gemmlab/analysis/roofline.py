"""Roofline of a kernel: operations per byte at L1, L2 and DRAM, and the speed that each level allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gemmlab.analysis.access_sites import SECTOR, l1_cycles
from gemmlab.analysis.copied_bytes import Copied
from gemmlab.analysis.issue_slots import IssueReport, peak_gflops
from gemmlab.analysis.subject import Size
from gemmlab.core.counters import GLOBAL_KINDS, GLOBAL_STORE, LOCAL_LOAD, LOCAL_STORE, TEXTURE_LOAD, Counters
from gemmlab.core.gpu import GpuModel
from gemmlab.core.precision import FLOAT32, PRECISIONS, PRODUCTS

NO_COPIES = Copied()
L1_BYTES = 128
"""Bytes that an SM's L1 transfers in a cycle; every wavefront takes a whole cycle."""


@dataclass(frozen=True, slots=True)
class Level:
    """One level of memory. Caches nearer to the SMs catch all they can for `bytes_least`, nothing for `bytes_most`."""

    name: str
    bytes_least: int
    bytes_most: int
    gbs: float
    """Peak bandwidth in GB/s."""
    gflops_most: float
    """GFLOP/s that the bandwidth allows, with `bytes_least`."""
    gflops_least: float
    """GFLOP/s that the bandwidth allows, with `bytes_most`."""
    intensity_most: float
    """Operations per byte, with `bytes_least`."""
    intensity_least: float
    """Operations per byte, with `bytes_most`."""
    how: str
    """Words that say how both numbers of bytes were counted."""


@dataclass(frozen=True, slots=True)
class RooflineReport:
    """All memory levels at the size that was run, and L2 and DRAM also at the scaled size if it differs."""

    label: str
    """The size that was run."""
    model: str
    """The name of the GPU."""
    peak_gflops: float
    """Peak of the main loop's arithmetic in GFLOP/s, the FMA peak of float32 if it is unknown. If the precision
    replaces each product by several products of parts (`PRODUCTS`), the arithmetic's peak is divided by their number.
    """
    inside_gflops: float
    """GFLOP/s that the main loop's issue slots and pipes allow if no access to memory caused a wait; `peak_gflops` if
    the arithmetic is unknown."""
    inside_by: str
    """The unit that limits `inside_gflops`: issue slots, a pipe, or the FMA peak if the arithmetic is unknown."""
    levels: tuple[Level, ...]
    bound_by: str
    """The limit that allows the least speed: `inside_by`, or a memory level with its least traffic. L2 and DRAM count
    at the scaled size.
    """
    bound_gflops: float
    bound: float
    """`bound_gflops` converted to the operation's own unit."""
    doubtful: tuple[str, ...]
    """Memory levels other than `bound_by` that would allow less than the bound if no access hit a cache."""

    @property
    def l2(self) -> Level:
        """L2 at the scaled size if there is one, else at the size that was run."""
        return [level for level in self.levels if level.name.startswith("L2")][-1]


def explain_roofline(
    counters: Counters, model: GpuModel, issue: IssueReport | None, size: Size, scaled: Size,
    precision: str = FLOAT32, copied: Copied = NO_COPIES,
) -> RooflineReport:  # fmt: skip
    """Return the roofline report of a run at `size`, extrapolated to `scaled`.

    `counters` are those of the run; their `sectors_distinct` are the least traffic between L2 and the SMs. `issue=None`
    means that the main loop has no known arithmetic: then the FMA peak is used as its limit. `precision` is the
    kernel's, and `copied` has the bytes that the copy engine copies into shared memory.
    """
    levels = tuple(_levels(counters, model, size, scaled, copied))
    peak, inside = model.peak_gflops, model.peak_gflops
    by = "FMA peak" if precision in PRECISIONS else "FMA peak of float32 (the loop has none of its own)"
    if issue is not None and (known := peak_gflops(issue.arithmetic, model)) is not None:
        # The roofline counts operations of the product; each may take several operations of the tensor cores.
        known /= PRODUCTS.get(precision, 1)
        peak, inside, by = known, known * issue.best_inside, issue.busiest_inside
    # The small size is run only for its counters. Its traffic with cold caches means little, and results are too large
    # a part of it. So the bound is that of the larger size.
    deciding = [level for level in levels if level.name not in _passed_over(size, scaled)]
    allowed = {by: inside, **{level.name: level.gflops_most for level in deciding}}
    bound_by = min(allowed, key=lambda name: allowed[name])
    bound = allowed[bound_by]
    doubtful = tuple(level.name for level in deciding if level.gflops_least < bound and level.name != bound_by)
    return RooflineReport(size.label, model.name, peak, inside, by, levels, bound_by, bound,
                          bound * size.work / size.flops, doubtful)  # fmt: skip


def _passed_over(size: Size, scaled: Size) -> tuple[str, ...]:
    return ("L2", _dram(size)) if scaled.label != size.label else ()


def _dram(size: Size) -> str:
    return f"DRAM at {size.label}"


def _levels(counters: Counters, model: GpuModel, size: Size, scaled: Size, copied: Copied) -> Iterator[Level]:
    label, flops, needed = size.label, size.flops, size.bytes_moved
    touching = counters.of_kind(*GLOBAL_KINDS, LOCAL_LOAD, LOCAL_STORE, TEXTURE_LOAD)
    most = SECTOR * sum(site.sectors for site in touching) + copied.most
    least = SECTOR * sum(site.sectors_distinct for site in touching) + copied.least
    if copied.unknown:
        # The sizes of these copies are not known, but every operand passes through L2 at least once.
        least, most = max(least, needed), max(most, needed)
    moved = L1_BYTES * l1_cycles(counters.sites)
    also = f", and {copied.words}" if copied.words else ""
    moved += copied.least
    yield _level("L1", flops, moved, moved, model.l1_gbs,
                 f"shared wavefronts, global requests and sectors as counted{also}")  # fmt: skip
    yield _level("L2", flops, least, most, model.l2_gbs,
                 f"each block's sectors once, to every sector asked for{also}")  # fmt: skip
    moved_bytes = max(most, needed)
    yield _level(_dram(size), flops, needed, moved_bytes, model.memory_gbs,
                 "operands once, to everything that L2 is asked for")  # fmt: skip
    if scaled.label != label:
        # With the same tiles, sectors read grow in proportion to the operations. Each result is written once, no matter
        # how many terms it has, so sectors written grow in proportion to the operands.
        written = SECTOR * sum(site.sectors_distinct for site in counters.of_kind(GLOBAL_STORE))
        once, every = (_grown(moved - written, written, size, scaled) for moved in (least, most))
        how = f"the same, scaled from {label}"
        yield _level(f"L2 at {scaled.label}", scaled.flops, once, every, model.l2_gbs, how)
        yield _level(_dram(scaled), scaled.flops, scaled.bytes_moved, max(every, scaled.bytes_moved), model.memory_gbs,
                     how)  # fmt: skip


def _grown(read: int, written: int, size: Size, scaled: Size) -> int:
    return round(read * scaled.flops / size.flops + written * scaled.bytes_moved / size.bytes_moved)


def _level(name: str, flops: int, least: int, most: int, gbs: float, how: str) -> Level:
    high, low = flops / max(least, 1), flops / max(most, 1)
    return Level(name, least, most, gbs, high * gbs, low * gbs, high, low, how)
