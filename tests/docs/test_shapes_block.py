"""The blocks on the suite of shapes: ratios, means and the worst as records of known times have them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import build_tables
from blocks import gpu_floor, shapes
from blocks.records import ROOT
from gemmlab.core.records import Method, Record, Result, Sample
from gemmlab.ops.gemm import GemmOp
from gemmlab.plots.chart import save
from gemmlab.plots.shape_ratios import ShapeRatio, shape_ratios

OP = GemmOp()
PAGES = {"shapes-readme": "README.md", "shapes": "docs/library.md"}


def timed(name: str, size: str, us: float, *, verified: bool = True) -> Result:
    (problem,) = OP.parse_sizes(size)
    samples = tuple(Sample(0, round_, us * (1 + round_ / 100), 9, 1, ()) for round_ in range(3))
    facts = {"role": "peer", "library": name.title(), "version": "1"}
    return Result(name, problem.to_json(), problem.label, OP.flops(problem), 1, facts, samples, verified)


def record(*results: Result) -> Record:
    method = Method(7, 1, 7000.0, 3000.0, 0.0, 16, interleaved=True, seed=0, mode="cold")
    device = {"id": "cuda:0", "name": "A GPU", "facts": {"driver": "580"}}
    return Record("bench", "gemm", {"time_utc": "2026-11-22T", "gemmlab": "1"}, device, method, results)


RECORD = record(
    timed("gemmlab", "64", 10.0), timed("torch", "64", 20.0), timed("cupy", "64", 15.0),
    timed("cublas", "64", 12.0), timed("cublaslt", "64", 10.0),
    timed("gemmlab", "128", 10.0), timed("torch", "128", 9.0), timed("cupy", "128", 5.0, verified=False),
    timed("gemmlab", "1024:nt", 50.0), timed("cupy", "1024:nt", 200.0),
    timed("gemmlab", "77", 1.0), timed("torch", "77", 9.0),
    timed("torch", "256", 1.0),
)  # fmt: skip


def test_each_shape_is_compared_with_the_faster_right_rival() -> None:
    found = {row.shape.text: (row.fastest, round(row.ratio().value, 3)) for row in shapes.rows([RECORD])}
    # 77 is no shape of the suite, and at 256 the library call was not timed.
    assert found == {"64": ("cupy", 1.5), "128": ("torch", 0.9), "1024:nt": ("cupy", 4.0)}


def test_families_count_equally_and_name_their_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "least_us", lambda _: 5.0)
    said = shapes.family_table(shapes.rows([RECORD]))
    squares, layouts, all_of_them, _, note = said.splitlines()[2:]
    assert squares == "| squares | 2 | 1.162 (1.162-1.162) | 2.35 | 0.90 | `128` | 1.00 |"
    assert layouts == "| layouts | 1 | 4.000 (4.000-4.000) | 40.40 | 4.00 | `1024:nt` |  |"
    assert "16 algorithms" in note
    # The mean of 1.162 and 4, not that of three shapes.
    assert all_of_them == "| all, families weighted equally | 3 | 2.156 | 9.74 |  |  |  |"


def test_a_product_takes_at_least_its_reading_and_its_multiply_adds() -> None:
    little = Result("gemmlab", {}, "", 0, 1, {}, (), None, bytes=0)
    much, long = replace(little, bytes=2**26), replace(little, flops=58 * 10**9)
    launch = gpu_floor.least_us(little)
    assert 3.0 < launch < 6.0
    assert 20.0 < gpu_floor.least_us(much) < 30.0
    assert gpu_floor.least_us(long) == pytest.approx(1000.0 + launch)
    assert gpu_floor.least_us(replace(much, flops=58 * 10**9)) == gpu_floor.least_us(long)


def test_every_shape_is_in_the_page_of_the_library() -> None:
    said = shapes.library_block([RECORD])
    assert "| `64` | 10.1 | 0.0519 | 1.500 (1.500-1.500) | cupy | 2.00 | 1.50 | 1.20 | 1.00 |" in said
    assert "| `128` | 10.1 | 0.415 | 0.900 (0.900-0.900) | torch | 0.90 |  |  |  |" in said
    assert "<summary>layouts: operands stored transposed</summary>" in said
    assert "Torch 1, Cupy 1, Cublas 1, Cublaslt 1; all in float32" in said
    assert "A GPU, driver 580, 2026-11-22" in shapes.readme_block([RECORD])
    wrong = record(timed("gemmlab", "64", 1.0, verified=False), timed("torch", "64", 2.0))
    assert "`64` **wrong**" in shapes.library_block([wrong])


def test_without_a_record_the_blocks_say_so() -> None:
    assert shapes.readme_block([]) == shapes.library_block([]) == shapes.readme_block([record()]) == shapes.NOTHING


@pytest.mark.in_turns(20)
def test_the_plot_names_the_worst_of_each_family(tmp_path: Path) -> None:
    points = [ShapeRatio("squares", "64", 1.5, "cupy"), ShapeRatio("squares", "128", 0.9, "torch"),
              ShapeRatio("deep", "1x1x1048576", 12.0, "torch")]  # fmt: skip
    save(shape_ratios(points), tmp_path / "plot.svg")
    drawn = (tmp_path / "plot.svg").read_text(encoding="utf-8")
    assert "128" in drawn
    assert "1x1x1048576" in drawn
    assert ">64<" not in drawn


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("block", PAGES)
def test_the_pages_have_what_the_records_say(block: str) -> None:
    page = (ROOT / PAGES[block]).read_text(encoding="utf-8")
    assert f"<!-- begin {block} -->\n\n{build_tables.BLOCKS[block]()}\n" in page, "run `make tables`"
