"""The block on each rung under the roofline of device memory, by the bytes of DRAM that Nsight Compute measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blocks.gpu_counts import GPU
from blocks.markdown import markdown_table
from blocks.profiles import PROFILES, Profile, profiles
from blocks.speeds import rungs, square
from gemmlab.core.gpu import model
from gemmlab.core.precision import FLOAT32
from gemmlab.results.climb_rows import digits, percent

SIZE = 4096
_MOVED = ("dram__bytes_read.sum", "dram__bytes_write.sum")
_TIME_NS = "gpu__time_duration.sum"


def dram_block() -> str:
    """Return a table with one line for each profiled rung and for the library: bytes of DRAM, operations for each byte,
    the roof at that intensity, and the speed.
    """
    order = [kernel.id for kernel in rungs()]
    found = [one for one in profiles() if one.size == square(SIZE) and {*_MOVED, _TIME_NS} <= set(one.metrics)]
    mine = sorted((one for one in found if one.name in order), key=lambda one: order.index(one.name))
    mine += [one for one in found if one.is_library and one.facts.get("precision", FLOAT32) == FLOAT32]
    if not mine:
        return f"*Not measured yet: there is no record benchmarks/results/{PROFILES}.*"
    gpu = model(GPU)
    peak, rate = gpu.peak_gflops / 1e3, gpu.memory_gbs / 1e3
    heading = [
        "", "GB of DRAM", "FLOP a byte", "the roof there, TFLOP/s", "reached", "of the roof", "of the memory's rate",
    ]  # fmt: skip
    note = (
        f"At {SIZE}³, bytes read and written as Nsight Compute measured them; the least possible is "
        f"{12 * SIZE**2 / 1e9:.2f} GB. The roof is the smaller of {peak:.1f} TFLOP/s and {rate:.1f} TB/s times the "
        "intensity. Times are those under the profiler."
    )
    return "\n\n".join([markdown_table(heading, [_line(one, peak, rate) for one in mine]), note])


def _line(one: Profile, peak: float, rate: float) -> list[str]:
    moved, seconds = sum(one.metrics[name] for name in _MOVED), one.metrics[_TIME_NS] / 1e9
    flops = 2 * SIZE**3
    intensity, reached = flops / moved, flops / seconds / 1e12
    roof = min(peak, rate * intensity)
    name = f"`{one.name}`" if one.is_library else f"[`{one.name}`](#{one.name})"
    return [name, f"{moved / 1e9:.2f}", f"{intensity:,.0f}", digits(roof), digits(reached), percent(reached / roof),
            percent(moved / seconds / 1e12 / rate)]  # fmt: skip


BLOCKS: Mapping[str, Callable[[], str]] = {"gpu-dram-roofline": dram_block}
