"""Roofline charts of a page: one per GPU, with the kernels that are explained for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gemmlab.core import gpu
from gemmlab.ops.catalog import unit_of
from gemmlab.ops.op import GFLOPS
from gemmlab.pages.charts import Drawing
from gemmlab.pages.sections import Section
from gemmlab.plots.chart import specification
from gemmlab.plots.roofline import RooflinePoint, roofline_chart

_CAPTION = "Bytes moved: from the least, if caches catch all they can (the mark), to the most, if they catch nothing. "
_COUNTED = "Counted on the emulator; speeds are the most that main loop and memory allow."
_TIMED = (
    "Counted on the emulator; speeds are measured at the largest size if exactly this code was timed on that GPU, else "
    "they are the most that main loop and memory allow."
)


def roof_drawings(sections: Sequence[Section]) -> Iterator[Drawing]:
    """Yield a roofline chart for each GPU, with the kernels explained for it whose speed is in GFLOP/s."""
    groups: dict[str, list[tuple[Section, Mapping[str, Any]]]] = {}
    for one in sections:
        explanation = None if one.study is None else one.study.explanation
        if explanation is not None and unit_of(explanation["op"]) == GFLOPS:
            groups.setdefault(explanation["gpu"], []).append((one, explanation))
    for name, members in groups.items():
        model = gpu.model(name)
        gbs = {"L1": model.l1_gbs, "L2": model.l2_gbs, "DRAM": model.memory_gbs}
        found = {explanation["roofline"]["peak_gflops"] for _, explanation in members}
        peaks = {"FMA peak" if peak == model.peak_gflops else "tensor peak": peak for peak in sorted(found)}
        spec = specification(roofline_chart([_placed(one, explanation) for one, explanation in members], gbs, peaks))
        timed = any(one.measured is not None for one, _ in members)
        yield Drawing(f"Roofline on {name}", _CAPTION + (_TIMED if timed else _COUNTED), _pointed(spec), "curves")


def _placed(one: Section, explanation: Mapping[str, Any]) -> RooflinePoint:
    # The last level of a name wins, which is that of the larger size: a size that fits into caches says little of DRAM.
    levels = {level["name"].partition(" ")[0]: level for level in explanation["roofline"]["levels"]}
    intensity = {name: (level["intensity_least"], level["intensity_most"]) for name, level in levels.items()}
    return RooflinePoint(
        one.id, explanation["roofline"]["bound_gflops"] if one.measured is None else one.measured, intensity
    )


def _pointed(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the specification with tooltips that name the kernel, and without its title.

    Tooltips are needed because many marks lie close together.
    """
    layers = []
    for layer in spec["layer"]:
        encoding = dict(layer["encoding"])
        if "shape" in encoding:
            encoding["tooltip"] = [
                {"field": "kernel", "type": "nominal", "title": "kernel"},
                {"field": "level", "type": "nominal", "title": "bytes moved by"},
                {"field": "x", "type": "quantitative", "title": "operations a byte", "format": ".3~g"},
                {"field": "y", "type": "quantitative", "title": "TFLOP/s", "format": ".3~g"},
            ]
        layers.append({**layer, "encoding": encoding})
    return {name: value for name, value in {**spec, "layer": layers}.items() if name != "title"}
