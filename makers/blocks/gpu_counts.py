"""Blocks of the emulator's counts: all rungs beside each other, and the unit that bounds each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blocks.counted import FMA, ISSUE, L1, Counted, counted
from blocks.gpu_times import TIMES, TOP
from blocks.markdown import markdown_table
from blocks.records import from_record, load
from blocks.speeds import Speeds, rungs, square
from gemmlab.core.gpu import model
from gemmlab.core.records import Record
from gemmlab.results.climb_rows import digits, percent, short_size

COUNTS = "emulated/counters.json"
GPU = "H200"


FIGURES: Mapping[str, Callable[[Counted], str]] = {
    "warp instructions": lambda c: number(c.per_1000(c.facts["instructions"])),
    "of them FFMA": lambda c: percent(c.fma_share),
    "global requests": lambda c: number(c.per_1000(c.requests)),
    "global bytes read": lambda c: number(c.per_1000(c.read_bytes)),
    "sectors a store": lambda c: number(c.facts["global_store_sectors_per_request"]),
    "shared wavefronts": lambda c: number(c.per_1000(c.wavefronts)),
    "of them excess": lambda c: percent(c.excess / c.wavefronts) if c.wavefronts else "",
    "FFMAs of a warp a barrier": lambda c: number(c.opcodes["FFMA"] / bars) if (bars := c.facts["barriers"]) else "",
}
"""Heading -> a function that returns a counter's text; counts are for 1000 multiply-adds."""


def number(value: float) -> str:
    """Return a number as text: with three digits below 1000, with commas from 1000 on, 0 as `0`."""
    return f"{value:,.0f}" if value >= 1000 or not value else digits(value)


def rung_counts(record: Record) -> dict[str, Counted]:
    """Return the counts of the float32 rungs by id, the lowest rung first."""
    found = {item.kernel: item for item in counted(record)}
    return {kernel.id: found[kernel.id] for kernel in rungs() if kernel.id in found}


def counter_table(record: Record) -> str:
    """Return a table with one line for each rung: its counters for 1000 multiply-adds."""
    rows = rung_counts(record)
    lines = [[f"[`{name}`](#{name})", *(figure(c) for figure in FIGURES.values())] for name, c in rows.items()]
    return "\n\n".join([markdown_table(["rung", *FIGURES], lines), counted_on(record)])


def demand_table(record: Record) -> str:
    """Return a table with one line for each rung: the least cycles of each unit, the speed that they allow, and the
    measured speed.
    """
    gpu, times = model(GPU), load(TIMES)
    lines = []
    for name, c in rung_counts(record).items():
        needs = c.demand()
        longest = max(needs, key=lambda unit: needs[unit])
        cells = [f"**{digits(need)}**" if unit == longest else digits(need) for unit, need in needs.items()]
        speed = Speeds(times).rung(name, square(TOP)) if times else None
        peak = Speeds(times).peak_tflops(square(TOP)) if times else None
        bound = c.peak_share * (peak or gpu.peak_gflops / 1e3)
        lines.append([
            f"[`{name}`](#{name})", *cells, digits(c.read_bytes / c.fmas * bound / 2), digits(bound),
            "" if speed is None else digits(speed.tflops), "" if speed is None else percent(speed.tflops / bound),
        ])  # fmt: skip
    heading = [
        "rung",
        FMA,
        ISSUE,
        L1,
        "reads at the bound, TB/s",
        "bound, TFLOP/s",
        f"measured at {TOP}",
        "of the bound",
    ]
    note = (
        f"Cycles an SM of {gpu.limits.arch} needs at least for 1000 multiply-adds, by unit; the largest, in bold, "
        f"bounds the rung. {counted_on(record)}"
    )
    return "\n\n".join([markdown_table(heading, lines), note])


def counted_on(record: Record) -> str:
    """Return a sentence with the device, sizes and compilers of a counting record."""
    compilers = sorted({str(result.facts["compiler"]) for result in record.results if "compiler" in result.facts})
    sizes = sorted({short_size(result.label) for result in record.results})
    return f"Counted for 1000 multiply-adds on {record.device.get('id')} at {', '.join(sizes)}, {', '.join(compilers)}."


BLOCKS: Mapping[str, Callable[[], str]] = {
    "gpu-counters": from_record(COUNTS, counter_table),
    "gpu-demand": from_record(COUNTS, demand_table),
}
