"""A block for each GPU rung's section: its counters beside those of the rung below, its bound, speed,
code and source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from blocks.counted import FMA, ISSUE, L1, Counted
from blocks.diffs import link
from blocks.gpu_counts import COUNTS, FIGURES, number, rung_counts
from blocks.gpu_times import CONFIGS, TIMES, TOP
from blocks.markdown import markdown_table
from blocks.records import load, matching
from blocks.speeds import VENDOR, Speed, Speeds, below, rungs, square
from gemmlab.core.gpu import limits, occupancy
from gemmlab.kernels.kernel import Kernel
from gemmlab.precompile.sweep import block_of
from gemmlab.results.climb_rows import digits, percent, times


def rung_block(kernel: Kernel) -> str:
    """Return the block of one rung; lines whose record does not exist are left out."""
    parts = [_counters(kernel), *(f"**{name}.** {text}" for name, text in _lines(kernel).items() if text)]
    return "\n\n".join(part for part in parts if part)


def _lines(kernel: Kernel) -> dict[str, str]:
    config = ", ".join(f"`{name}` {value}" for name, value in kernel.params.items())
    return {
        "Configuration": f"{config}.",
        "Bound": _bound(kernel),
        "Occupancy": _occupancy(kernel),
        "Measured": _measured(kernel),
        "Best configuration": _best(kernel),
        "Code": _code(kernel),
        "Source": f"{kernel.source}.",
    }


def _code(kernel: Kernel) -> str:
    return f"{link(kernel)}." if kernel.after else ""


def _counters(kernel: Kernel) -> str:
    """Return a table of a rung's counters beside those of the rung below; empty if the rung was not counted."""
    record = load(COUNTS)
    rows = {} if record is None else rung_counts(record)
    if kernel.id not in rows:
        return ""
    lower = below(kernel)
    seen = [rows[one.id] for one in (lower, kernel) if one is not None and one.id in rows]
    lines = []
    for heading, figure in {**FIGURES, **_DEMANDS}.items():
        cells = [figure(item) for item in seen]
        if any(cell not in ("", "0", "0.0%") for cell in cells):
            lines.append([heading, *cells])
    return markdown_table(["for 1000 multiply-adds", *(f"`{item.kernel}`" for item in seen)], lines)


def _unit(unit: str) -> Callable[[Counted], str]:
    def cycles(item: Counted) -> str:
        text = number(item.demand()[unit])
        return f"**{text}**" if item.bound_by == unit else text

    return cycles


_DEMANDS = {f"cycles: {unit}": _unit(unit) for unit in (FMA, ISSUE, L1)}


def _bound(kernel: Kernel) -> str:
    record = load(COUNTS)
    rows = {} if record is None else rung_counts(record)
    if kernel.id not in rows:
        return ""
    mine, lower = rows[kernel.id], below(kernel)
    said = f"By {mine.bound_by}: {percent(mine.peak_share)} of the multiply-add peak at most"
    if lower is None or lower.id not in rows:
        return f"{said}."
    before = rows[lower.id]
    return f"{said} (`{before.kernel}`: by {before.bound_by}, {percent(before.peak_share)})."


def _occupancy(kernel: Kernel) -> str:
    """Return sentences on the number of blocks of the default configuration that fit on an SM, by each limit; empty if
    the rung was not counted.
    """
    record = load(COUNTS)
    rows = {} if record is None else rung_counts(record)
    if kernel.id not in rows:
        return ""
    item = rows[kernel.id]
    threads, dynamic_bytes = block_of(kernel, kernel.params)
    registers, smem_bytes = item.resources["registers"], item.resources["static_smem_bytes"] + dynamic_bytes
    fit = occupancy(limits(item.arch), registers, smem_bytes, threads)
    allowed = ", ".join(f"{name} {count}" for name, count in fit.allowed.items())
    return (
        f"{registers} registers a thread, {smem_bytes:,} bytes of shared memory and "
        f"{threads} threads a block. Blocks that an SM of {item.arch} has room for, by limit: {allowed}. So "
        f"{fit.blocks} {'block' if fit.blocks == 1 else 'blocks'}, {fit.warps} of {fit.warps_per_sm} warps, "
        f"{percent(fit.fraction)}; {' and '.join(fit.binding)} {'binds' if fit.binding == ('smem',) else 'bind'}."
    )


def _measured(kernel: Kernel) -> str:
    record = load(TIMES)
    speeds = None if record is None else Speeds(record)
    speed = None if speeds is None else speeds.rung(kernel.id, square(TOP))
    if speeds is None or speed is None:
        return ""
    lower, vendor = below(kernel), speeds.at(VENDOR, speed.size)
    beside = None if lower is None else speeds.rung(lower.id, speed.size)
    said = [f"{digits(speed.tflops)} TFLOP/s at {TOP}" if speed.right else "wrong"]
    if lower is not None and beside is not None:
        said.append(f"{times(speed.to(beside).value)} x {lower.id}")
    if vendor is not None:
        said.append(f"{times(speed.to(vendor).value)} x cuBLAS")
    return f"{', '.join(said)}."


def _best(kernel: Kernel) -> str:
    """Return the fastest configuration that was timed in the first record with this rung, and its gain over the
    default; empty if none was timed.
    """
    mine: list[Speed] = []
    for name in matching(CONFIGS):
        record = load(name)
        if record is not None and not mine:
            found = Speeds(record).all
            mine = [s for s in found if s.kernel == kernel.id and s.size == square(TOP) and s.right]
    reference = next((speed for speed in mine if speed.config == kernel.params), None)
    best = min(mine, key=lambda speed: speed.time_us, default=None)
    if best is None:
        return ""
    gain = "" if reference is None else f", {times(best.to(reference).value)} x the configuration above in the same run"
    return f"{_config(best)}: {digits(best.tflops)} TFLOP/s at {TOP}{gain}."


def _config(speed: Speed) -> str:
    return ", ".join(f"`{name}` {value}" for name, value in speed.config.items())


BLOCKS: Mapping[str, Callable[[], str]] = {f"rung-{kernel.id}": partial(rung_block, kernel) for kernel in rungs()}
