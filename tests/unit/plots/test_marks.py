"""Marks in a chart differ, for as many kernels as a ladder has."""

from __future__ import annotations

from gemmlab.kernels.catalog import ladder
from gemmlab.plots.chart import specification
from gemmlab.plots.marks import marks
from gemmlab.plots.roofline import RooflinePoint, roofline_chart
from support.picture_charts import svg_texts


def test_every_rung_has_a_mark_of_its_own() -> None:
    count = len(ladder("gemm", "cuda"))
    assert len(set(marks(count))) == count
    assert marks(3) == ["circle", "square", "triangle-up"]
    assert len(marks(100)) == 100


def test_a_roofline_of_a_whole_ladder_is_drawn_with_them() -> None:
    names = [rung.id for rung in ladder("gemm", "cuda")]
    points = [RooflinePoint(name, 1000.0 + place, {"L1": (1.0, 2.0)}) for place, name in enumerate(names)]
    chart = roofline_chart(points, {"L1": 30000.0}, {"FMA peak": 60000.0})
    scale = specification(chart)["layer"][-1]["encoding"]["shape"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == dict(zip(names, marks(len(names)), strict=True))
    assert set(names) <= set(svg_texts(chart))
