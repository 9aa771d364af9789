"""Kernels under the roofs of their GPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gemmlab.analysis.explanation import explain
from gemmlab.analysis.roofline_chart import under_roof
from gemmlab.analysis.subject import machine
from gemmlab.cli.explain_roofline import require_drawable, write_roofline
from gemmlab.core.errors import UsageError
from gemmlab.kernels.catalog import find_kernel
from gemmlab.plots.chart import specification
from gemmlab.plots.roofline import RooflinePoint, roofline_chart
from support.cuda_source import needs_compiler
from support.picture_charts import rows_of, svg_texts


def test_the_roofline_has_a_roof_a_level_and_a_mark_a_kernel_and_level() -> None:
    kernels = [
        RooflinePoint("low", 2000.0, {"L1": (0.5, 0.5), "DRAM": (10.0, 300.0)}),
        RooflinePoint("high", 40000.0, {"L1": (4.0, 4.0), "DRAM": (60.0, 900.0)}),
    ]
    chart = roofline_chart(kernels, {"L1": 30000.0, "DRAM": 4800.0}, {"FMA peak": 60000.0}, title="Roof")
    spec = specification(chart)
    roofs = rows_of(spec, 0)
    # Every point of a roof is its bandwidth times the intensity, and it ends at the peak, told in TFLOP/s.
    for level, gbs in (("L1", 30000.0), ("DRAM", 4800.0)):
        line = [row for row in roofs if row["level"] == level]
        assert all(row["y"] == pytest.approx(row["x"] * gbs / 1e3) for row in line)
        assert max(row["y"] for row in line) == pytest.approx(60.0)
    marks = rows_of(spec, -1)
    assert {(m["kernel"], m["level"], m["low"], m["x"], m["y"]) for m in marks} == {
        ("low", "L1", 0.5, 0.5, 2.0), ("low", "DRAM", 10.0, 300.0, 2.0),
        ("high", "L1", 4.0, 4.0, 40.0), ("high", "DRAM", 60.0, 900.0, 40.0),
    }  # fmt: skip
    assert {"Roof", "FMA peak 60", "low", "high", "L1", "DRAM"} <= set(svg_texts(chart))


@needs_compiler
def test_explained_kernels_lie_under_the_roofs_of_their_gpu(tmp_path: Path) -> None:
    naive, tiled = (explain(find_kernel(name), *machine(), {}, "64") for name in ("naive", "block_tile"))
    spec = specification(under_roof([naive, tiled], {"naive": 6280.0}))
    marks = {(mark["kernel"], mark["level"]): mark for mark in rows_of(spec, -1)}
    assert set(marks) == {(name, level) for name in ("naive", "block_tile") for level in ("L1", "L2", "DRAM")}
    for one, gflops in ((naive, 6280.0), (tiled, tiled.roofline.bound_gflops)):
        levels = {level.name: level for level in one.roofline.levels}
        for name, level in (("L1", "L1"), ("L2", "L2 at 4096x4096x4096"), ("DRAM", "DRAM at 4096x4096x4096")):
            mark = marks[one.subject.name, name]
            assert (mark["low"], mark["x"]) == (levels[level].intensity_least, levels[level].intensity_most)
            assert mark["y"] == pytest.approx(gflops / 1e3)
    write_roofline(tmp_path / "roof.svg", [naive])
    drawn = (tmp_path / "roof.svg").read_text(encoding="utf-8")
    assert {"Roofline on H200", "FMA peak 66.9", "naive"} <= set(re.findall(r"<text[^>]*>([^<]+)</text>", drawn))
    with pytest.raises(UsageError, match="one GPU"):
        under_roof([naive, explain(find_kernel("naive"), *machine("", "H100"), {}, "64")])


def test_a_roofline_that_could_not_be_written_is_refused_first(tmp_path: Path) -> None:
    require_drawable(None)
    require_drawable(tmp_path / "roof.html")
    with pytest.raises(UsageError, match=r"\.svg, \.png, \.html"):
        require_drawable(tmp_path / "roof.pdf")
    with pytest.raises(UsageError, match="no folder"):
        require_drawable(tmp_path / "none" / "roof.svg")
