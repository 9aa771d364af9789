"""Roofline chart of explained kernels on one GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gemmlab.analysis.arithmetic import BY_NAME, FMA, PEAKS
from gemmlab.analysis.explanation import Explanation
from gemmlab.analysis.roofline import RooflineReport
from gemmlab.core.errors import UsageError
from gemmlab.plots.roofline import RooflinePoint, roofline_chart

if TYPE_CHECKING:
    import altair as alt


_PEAKS = {"HGMMA": "tensor peak (16 bits)", "HMMA.16": "tensor peak (16 bits)", "IMMA": "tensor peak (8 bits)",
          "IGMMA": "tensor peak (8 bits)", "DMMA": "tensor peak (double)", "FADD": "peak of additions",
          "FMUL": "peak of products"}  # fmt: skip
"""Name of arithmetic -> name of its peak, where several kinds of arithmetic on one pipe have different peaks."""


def under_roof(explained: Sequence[Explanation], measured: Mapping[str, float] | None = None) -> alt.LayerChart:
    """Draw each kernel at its speed and at its operations per byte of L1, L2 and DRAM.

    The speed is that of `measured`, in GFLOP/s by kernel id, or else the kernel's bound. Raises `UsageError` without
    kernels, and for kernels that were explained for different GPUs.
    """
    models = {one.subject.model.name: one.subject.model for one in explained}
    if len(models) != 1:
        raise UsageError(f"a roofline shows one GPU, not {', '.join(models) or 'none'}")
    (model,) = models.values()
    times = measured or {}
    kernels = [_placed(one.subject.name, one.roofline, times.get(one.subject.name)) for one in explained]
    gbs = {"L1": model.l1_gbs, "L2": model.l2_gbs, "DRAM": model.memory_gbs}
    subtitle = ["Bytes moved: from where caches catch all they can (the mark) to where they catch nothing"]
    if any(kernel.name not in times for kernel in kernels):
        subtitle.insert(0, "Counted on the emulator; speeds that were not measured are the most that is possible")
    peaks = {_peak(one): one.roofline.peak_gflops for one in explained}
    return roofline_chart(kernels, gbs, peaks, title=f"Roofline on {model.name}", subtitle=subtitle)


def _peak(explained: Explanation) -> str:
    if explained.issue is None:
        return PEAKS[FMA]
    arithmetic = explained.issue.arithmetic
    return _PEAKS.get(arithmetic, PEAKS[BY_NAME[arithmetic].pipe])


def _placed(name: str, report: RooflineReport, measured: float | None) -> RooflinePoint:
    # Of levels with the same name the last one is used, that of the larger size: a small size fits into caches, so it
    # shows little about DRAM.
    levels = {level.name.partition(" ")[0]: level for level in report.levels}
    intensity = {name: (level.intensity_least, level.intensity_most) for name, level in levels.items()}
    return RooflinePoint(name, report.bound_gflops if measured is None else measured, intensity)
