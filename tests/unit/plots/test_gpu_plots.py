from __future__ import annotations

import html
import re

import pytest

from gemmlab.core.records import Record, Result, Sample
from gemmlab.plots.chart import BLACK, render, specification
from gemmlab.plots.gpu_ladder import LARGEST, climb_colour, ladder_at, rungs_by_size

ORDER = ["naive", "block_tile", "unmeasured"]


def result(contestant: str, role: str, n: int, tflops: float, precision: str = "float32") -> Result:
    flops = 2 * n**3
    samples = tuple(Sample(0, turn, flops / tflops / 1e6, 1, 1, ()) for turn in range(3))
    return Result(contestant, {}, f"{n}x{n}x{n}", flops, 1, {"role": role, "precision": precision}, samples)


def record(*sizes: int) -> Record:
    results = [
        made
        for n in sizes
        for made in (
            result("kernel:naive", "rung", n, 6.0), result("kernel:block_tile", "rung", n, 9.0),
            result("kernel:mma", "rung", n, 200.0, "tf32"), result("cublas", "peer", n, 51.0),
            result("cublas-tf32", "peer", n, 338.0, "tf32"), result("probe", "peak", n, 64.9),
        )
    ]  # fmt: skip
    return Record("bench", "gemm", {}, {"id": "cuda:0", "name": "a GPU"}, None, tuple(results))


def texts(svg: bytes) -> list[str]:
    return [html.unescape(found) for found in re.findall(r"<(?:text|tspan)[^>]*>([^<]+)</", svg.decode())]


def test_the_ladder_at_a_size_has_float32_in_tflops_with_shares_of_the_peak() -> None:
    shown = texts(render(specification(ladder_at(record(4096), ORDER, "4096x4096x4096")), ".svg"))
    joined = " ".join(shown)
    for wanted in ("6.00 (9.2%)", "9.00 (13.9%)", "51.0 (78.6%)", "FMA peak 65", "The climb on a GPU"):
        assert wanted in joined
    assert "TFLOP/s" in joined
    assert not [text for text in shown if "mma" in text or "tf32" in text or "unmeasured" in text or "thread" in text]
    assert [text for text in shown if text in ("cublas", *ORDER)] == ["naive", "block_tile", "cublas"]
    assert len([text for text in shown if "4096³" in text]) == 1, "the axis tells the size"


def test_lines_are_rungs_from_the_highest_down_below_the_vendor() -> None:
    spec = specification(rungs_by_size(record(256, 512), ORDER))
    colours = spec["layer"][1]["encoding"]["color"]["scale"]
    assert colours["domain"] == ["cublas", "block_tile", "naive"]
    assert colours["range"] == [BLACK, climb_colour(1), climb_colour(0)]
    assert "TFLOP/s (float32)" in texts(render(spec, ".svg"))


def test_many_sizes_take_a_linear_axis_up_to_the_largest_shown() -> None:
    few, many = (specification(rungs_by_size(record(*sizes), ORDER)) for sizes in ((256, 512), range(256, 8193, 128)))
    scales = [spec["layer"][0]["encoding"]["x"]["scale"] for spec in (few, many)]
    assert [scale.get("type") for scale in scales] == ["log", None]
    assert many["layer"][0]["encoding"]["x"]["axis"]["values"] == list(range(512, LARGEST + 1, 512))
    (rows,) = many["datasets"].values()
    assert max(row["size"] for row in rows) == LARGEST


@pytest.mark.parametrize(("height", "colour"), [(-1, "#440154"), (0, "#440154"), (0.5, "#21918c"), (2, "#cdb90a")])
def test_colours_climb(height: float, colour: str) -> None:
    assert climb_colour(height) == colour
