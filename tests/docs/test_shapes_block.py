"""The blocks on the suite of shapes: ratios, means and the worst as records of known times have them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import build_tables
from blocks import gpu_floor, shapes, suite_costs
from blocks.records import ROOT
from gemmlab.core.records import Method, Record, Result, Sample
from gemmlab.ops.catalog import find_op
from gemmlab.plots.chart import save
from gemmlab.plots.shape_ratios import ShapeRatio, shape_ratios

BLOCKS = ("shapes", "shapes-strips", "shapes-reproducible", "shapes-tf32")
PAGES = {"shapes-readme": "README.md", **dict.fromkeys(BLOCKS, "docs/library.md")}


def timed(name: str, size: str, us: float, *, op: str = "gemm", verified: bool | None = True) -> Result:
    what = find_op(op)
    (problem,) = what.parse_sizes(size)
    samples = tuple(Sample(0, round_, us * (1 + round_ / 100), 9, 1, ()) for round_ in range(3))
    facts = {"role": "peer", "library": name.title(), "version": "1"}
    flops, nbytes = what.flops(problem), what.bytes_moved(problem)
    return Result(name, problem.to_json(), problem.label, flops, 1, facts, samples, verified, bytes=nbytes)


def record(*results: Result, op: str = "gemm", day: str = "2026-11-22") -> Record:
    method = Method(7, 1, 7000.0, 3000.0, 0.0, 16, interleaved=True, seed=0, mode="cold")
    device = {"id": "cuda:0", "name": "A GPU", "facts": {"driver": "580"}}
    return Record("bench", op, {"time_utc": f"{day}T", "gemmlab": "1"}, device, method, results)


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
    assert squares == "| squares | 2 | 1.162 (1.162-1.162) | 2.35 | 0.900 | `128` | 1.00 | 2026-11-22 |"
    assert layouts == "| layouts | 1 | 4.000 (4.000-4.000) | 40.40 | 4.000 | `1024:nt` |  | 2026-11-22 |"
    assert "16 algorithms" in note
    # The mean of 1.162 and 4, not that of three shapes.
    assert all_of_them == "| all, families weighted equally | 3 | 2.156 | 9.74 |  |  |  |  |"


def test_each_record_has_its_day_and_says_if_results_were_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "least_us", lambda _: 5.0)
    pointers = record(
        timed("gemmlab", "64*128", 10.0, op="group", verified=None), timed("torch", "64*128", 9.4972, op="group"),
        op="group", day="2026-11-30",
    )  # fmt: skip
    batch = record(timed("gemmlab", "64*128", 1.0, op="batch"), timed("torch", "64*128", 2.0, op="batch"), op="batch")
    found = shapes.rows([pointers, batch])
    assert [(row.shape.family, row.date) for row in found] == [("batches", "2026-11-22"), ("groups", "2026-11-30")]
    batches, groups, *_ = shapes.family_table(found).splitlines()[2:]
    assert batches.endswith("| 2.000 | `64*128` |  | 2026-11-22 |")
    # 0.9497 is less than 0.95.
    assert groups.endswith("| 0.949 | `64*128` |  | 2026-11-30 |")
    said = shapes.library_block([batch, pointers])
    assert (
        "Batches: Measured on A GPU, driver 580, 2026-11-22, gemmlab 1, cold caches, 1 process of 7 rounds. Gro" in said
    )
    assert "2026-11-30, gemmlab 1, cold caches, 1 process of 7 rounds. Results were not verified in this run." in said


def test_strips_are_compared_with_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite_costs, "reading_us", lambda nbytes: nbytes / 4e6)
    nbytes = 4 * (4096 * 4096 + 2 * 16 * 4096)
    flops = 2 * 64 * 4096 * 4096
    said = suite_costs.strips(record(
        timed("gemmlab", "16x4096x4096", nbytes / 4e6 / 0.9), timed("gemmlab", "4096x64x4096", flops / 58e6),
        timed("gemmlab", "1024", 9.0), timed("torch", "1x4096x4096", 9.0),
    ))  # fmt: skip
    assert "1 of 2 reach their aim" in said
    assert "| **89.1%** | 90% |" in said
    assert "| 99.0% | 85% |" in said
    assert "1024`" not in said
    assert suite_costs.strips(record()) == ""


def test_the_cost_of_reproducible_is_a_ratio_of_times() -> None:
    said = suite_costs.reproducible(record(
        timed("gemmlab", "64", 10.0), timed("gemmlab:reproducible", "64", 12.5),
        timed("gemmlab", "1x1x1048576", 1.0), timed("gemmlab:reproducible", "1x1x1048576", 80.0),
        timed("gemmlab", "128", 1.0),
    ))  # fmt: skip
    assert "| squares | 1 | 1.250 (1.250-1.250) | 1.25 | 1.25 | `64` |" in said
    assert "| all shapes | 2 | 10.000 (10.000-10.000) | 40.62 | 80.00 | `1x1x1048576` |" in said
    assert suite_costs.reproducible(RECORD) == ""


def test_tf32_is_beside_the_faster_library_with_tf32() -> None:
    said = suite_costs.rounded(record(
        timed("gemmlab:tf32", "64", 10.0), timed("torch:tf32", "64", 20.0), timed("cublas:tf32", "64", 15.0),
        timed("gemmlab:tf32", "1024:nt", 10.0, verified=False), timed("torch:tf32", "1024:nt", 9.0),
        timed("cublas:tf32", "1024:nt", 5.0, verified=False),
    ))  # fmt: skip
    assert "| squares | 1 | 1.500 (1.500-1.500) | 1.500 | `64` | cublas:tf32 |" in said
    assert "| layouts | 1 | 0.900 (0.900-0.900) | 0.900 | `1024:nt` | torch:tf32 |" in said
    assert "**Wrong at 1024:nt.**" in said
    assert suite_costs.rounded(RECORD) == ""


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
