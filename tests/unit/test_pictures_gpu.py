"""Pictures of GPU kernels: what they are drawn of, against facts found by hand; and that all can be drawn."""

from __future__ import annotations

import html
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cuda_source import needs_compiler
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from gemmlab.core.errors import UsageError
from gemmlab.core.trace import Access
from gemmlab.kernels.catalog import find_kernel
from gemmlab.measure.patterns import pattern_of
from gemmlab.plots.chart import render, specification
from gemmlab.plots.pictures.bank_map import BankMap, bank_map, chosen
from gemmlab.plots.pictures.block_order import Order, order_of, turns
from gemmlab.plots.pictures.catalog import all_drawings, find_drawing, pictures_for
from gemmlab.plots.pictures.cells import Area, Piece, crowded, pieces, ranges
from gemmlab.plots.pictures.drawing import Subject
from gemmlab.plots.pictures.lane_map import LaneMap, flips_of, lane_map
from gemmlab.plots.pictures.reduction_tree import rounds
from gemmlab.plots.pictures.thread_data import Map, maps
from gemmlab.plots.pictures.tile_hierarchy import blocks_of, threads_of
from gemmlab.plots.pictures.transactions import requests, sectors_of

TRACED = ("thread_data", "tile_hierarchy", "lane_map", "block_order", "reduction_tree", "transactions", "bank_map")


@cache
def subject(kernel: str, **config: int) -> Subject:
    return Subject(find_kernel(kernel), config=config)


def asked(kernel: str) -> dict[tuple[str, bool], Access]:
    traced = subject(kernel).trace
    return {(traced.operand_of(access), access.store): access for access in requests(traced)}


def drawn(kernel: str) -> dict[str, Map]:
    return {each.operand: each for each in maps(subject(kernel).trace)}


@needs_compiler
@pytest.mark.parametrize(
    ("kernel", "operand", "store", "sectors", "used", "lanes"),
    [
        ("naive", "a", False, 1, 4, 32),  # a broadcast of one word
        ("naive", "b", False, 4, 32, 8),
        ("naive", "c", True, 4, 32, 8),
        ("naive_strided", "a", False, 32, 4, 1),  # a row of A a lane
        ("naive_strided", "b", False, 1, 4, 32),
        ("naive_strided", "c", True, 32, 4, 1),
        ("vector_load", "b", False, 16, 32, 2),  # 16 bytes a lane, 32 lanes in a row
    ],
)
def test_a_request_and_its_sectors(kernel: str, operand: str, store: bool, sectors: int, used: int, lanes: int) -> None:
    access = asked(kernel)[operand, store]
    found = sectors_of(access)
    assert len(found) == sectors == pattern_of(access).sectors
    assert {(sector.used, len(sector.lanes)) for sector in found} == {(used, lanes)}


@needs_compiler
def test_which_thread_moves_which_element() -> None:
    found = drawn("vector_load")
    assert set(found) == {"A", "B", "C"}
    # A tile of 128 x 8 as float4s, two a row: warp w has 16 rows, and lanes go along them.
    a = found["A"]
    assert Area.around(a.warps) == Area(0, 0, 128, 8)
    assert all(who == (row // 16,) for (row, _col), who in a.warps.items())
    assert all(who == (2 * row + col // 4,) for (row, col), who in a.lanes.items())
    # B's 8 x 128: a warp a row.
    assert all(who == (row,) for (row, _col), who in found["B"].warps.items())
    assert all(who == (col // 4,) for (_row, col), who in found["B"].lanes.items())
    assert len(found["C"].warps) == 128 * 128


@needs_compiler
def test_what_all_lanes_read_is_owned_by_all() -> None:
    a = drawn("naive")["A"]
    assert set(a.lanes.values()) == {tuple(range(32))}
    assert {who for (row, _col), who in a.warps.items() if row == 7} == {(7,)}
    assert set(drawn("naive")["B"].warps.values()) == {tuple(range(32))}


@needs_compiler
def test_the_tile_hierarchy_of_quarters() -> None:
    traced = subject("conflict_free").trace
    owners = threads_of(traced)
    # Warps of 64 x 32, four beside each other; a lane's quarters are 32 rows and 16 columns apart, in z-order.
    places = {(0, 0): (0, 0), (3, 3): (0, 0), (0, 4): (0, 1), (4, 0): (0, 2), (0, 8): (0, 16), (32, 16): (0, 0),
              (0, 32): (1, 0), (64, 0): (4, 0), (127, 127): (7, 31)}  # fmt: skip
    assert {place: owners[place] for place in places} == places
    assert blocks_of(traced) == [Area(row, col, 128, 128) for row in (0, 128) for col in (0, 128)]


@needs_compiler
def test_bits_of_the_thread_number() -> None:
    quarters = lane_map(subject("conflict_free").trace)
    z_order = ((0, 4), (4, 0), (8, 0), (16, 0), (0, 8), (0, 32), (0, 64), (64, 0))
    assert quarters == LaneMap(z_order, own=(1 | 2 | 32, 1 | 2 | 16))
    scanned = lane_map(subject("conflict_free", LANE_MAP=0).trace)
    scan = ((0, 4), (0, 8), (4, 0), (8, 0), (16, 0), (0, 32), (0, 64), (64, 0))
    assert scanned == LaneMap(scan, own=quarters.own)
    naive = lane_map(subject("naive").trace)
    bits = tuple(1 << bit for bit in range(5))
    assert naive == LaneMap((*((0, bit) for bit in bits), *((bit, 0) for bit in bits)), own=(0, 0))


def test_what_is_not_linear() -> None:
    assert flips_of({0: (0, 0), 1: (0, 4), 2: (4, 0), 3: (4, 4)}) == ((0, 4), (4, 0))
    # A swizzle is linear, a rotation is not; nor are three threads, or numbers with holes.
    assert flips_of({0: (0, 0), 1: (0, 1), 2: (1, 1), 3: (1, 0)}) == ((0, 1), (1, 1))
    assert flips_of({n: (0, (n + 1) % 8) for n in range(8)}) is None
    assert flips_of({n: (0, n) for n in range(3)}) is None
    assert flips_of({0: (0, 0), 2: (0, 1)}) is None


@needs_compiler
def test_who_is_served_by_which_bank() -> None:
    loads = [found for found in chosen(subject("conflict_free").trace) if not found.access.store]
    assert {(found.wavefronts, found.ideal) for found in loads} == {(2, 2)}
    assert not any(one.late for found in loads for one in found.served)
    # Read in a scan, lanes that share words of Bs lie in different halves: four wavefronts, none of them full.
    scanned = [found for found in chosen(subject("conflict_free", LANE_MAP=0).trace) if not found.access.store]
    assert sorted(found.wavefronts for found in scanned) == [2, 4]
    # Eight neighbours a thread: 8 lanes read every 8th word, so every second one waits.
    worst = chosen(subject("vector_load").trace)[0]
    assert (worst.wavefronts, worst.ideal) == (8, 4)
    assert [one.lanes for one in worst.served if one.late] == [(4,), (5,), (6,), (7,), (12,), (13,), (14,), (15,),
        (20,), (21,), (22,), (23,), (28,), (29,), (30,), (31,)]  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("kernel", ["vector_load", "async_copy", "reduce_strided_index"])
def test_bank_maps_have_as_many_wavefronts_as_were_counted(kernel: str) -> None:
    trace = subject(kernel).trace.trace
    maps_by_pattern: dict[Any, BankMap] = {}
    wavefronts: dict[int, int] = {}
    for access in trace.accesses_of(space="shared"):
        lanes = access.lanes
        first = access.addresses[lanes[0]]
        apart = (access.addresses[lane] - first for lane in lanes)
        key = (access.width, access.store, access.on, first % 128, *apart)
        found = maps_by_pattern.setdefault(key, bank_map(access))
        assert {lane for one in found.served for lane in one.lanes} == set(lanes)
        wavefronts[access.site.address] = wavefronts.get(access.site.address, 0) + found.wavefronts
    assert wavefronts
    blocks = trace.grid[0]
    for site in trace.observation.counters.sites:
        if site.address in wavefronts and site.requests % blocks == 0:
            assert wavefronts[site.address] * blocks == site.wavefronts, site.text


@needs_compiler
def test_the_order_of_blocks() -> None:
    swizzled = subject("block_swizzle").order
    assert swizzled is not None
    found = order_of(swizzled)
    assert found is not None
    # 17 x 17 tiles in strips of 8, every second one walked upwards, the last of one column.
    down = range(17)
    strips = [*((row, col) for row in down for col in range(8)),
              *((row, col) for row in reversed(down) for col in range(8, 16)),
              *((row, 16) for row in down)]  # fmt: skip
    assert found == Order(tuple(strips), 132, "H200")
    assert [len(wave) for wave in found.waves()] == [132, 132, 25]
    plain = subject("naive").order
    assert plain is not None
    walked = order_of(plain)
    assert walked is not None
    assert walked.tiles == tuple((number % 23, number // 23) for number in range(23 * 23))


def test_only_turns_of_the_way_are_drawn() -> None:
    assert turns([(0, 0), (0, 1), (0, 2), (1, 2), (2, 2)]) == [(0, 0), (0, 2), (2, 2)]
    assert turns([(0, 0), (5, 5)]) == [(0, 0), (5, 5)]


@needs_compiler
@pytest.mark.parametrize(
    ("kernel", "steps"),
    [
        ("reduce_interleaved", [(128, 128), (64, 64), (32, 32), (16, 16), (8, 8), (4, 4), (2, 2), (1, 1), (1, 1)]),
        ("reduce_unroll_last_warp", [(128, 128), (64, 64), (32, 32), (16, 32), (8, 32), (4, 32), (2, 32), (1, 32)]),
        ("reduce_shuffle", [(128, 256), (64, 256), (32, 256), (16, 256), (8, 256), (8, 32), (4, 32), (2, 32), (1, 32)]),
    ],
)
def test_the_tree_and_who_works_for_nothing(kernel: str, steps: list[tuple[int, int]]) -> None:
    found = rounds(subject(kernel).trace)
    assert [(len(each.used), len(each.working)) for each in found] == steps


@needs_compiler
def test_which_threads_work_in_a_step() -> None:
    spread, packed = (rounds(subject(kernel).trace) for kernel in ("reduce_interleaved", "reduce_sequential"))
    for step in range(8):
        assert spread[step].working == set(range(0, 256, 2 << step))
        assert packed[step].working == set(range(128 >> step))


def test_elements_become_rectangles() -> None:
    owners = {(row, col): "a" if col < 3 else "b" for row in range(4) for col in range(5)} | {(1, 1): "c"}
    assert pieces(owners) == [
        Piece("a", 0, 0, 1, 3), Piece("b", 0, 3, 4, 2), Piece("a", 1, 0, 1, 1), Piece("c", 1, 1, 1, 1),
        Piece("a", 1, 2, 1, 1), Piece("a", 2, 0, 2, 3),
    ]  # fmt: skip
    # What lies apart in a column stays apart.
    assert pieces({(0, 0): 1, (2, 0): 1}) == [Piece(1, 0, 0, 1, 1), Piece(1, 2, 0, 1, 1)]
    board = {(row, col): (row + col) % 2 for row in range(64) for col in range(64)}
    assert crowded(board) == Area(0, 0, 16, 8)
    assert ranges([7, 0, 1, 2, 9]) == "0-2, 7, 9"


def texts(chart: Any) -> str:
    svg = render(specification(chart), ".svg").decode()
    return " ".join(html.unescape(found) for found in re.findall(r"<text[^>]*>([^<]+)</text>", svg))


@needs_compiler
@pytest.mark.parametrize(
    ("kernel", "shown"),
    [
        ("vector_load", {"thread_data": "A loaded first: warps", "tile_hierarchy": "C: blocks of 128 x 128",
                         "lane_map": "column 64", "block_order": "264 of 529 blocks run at once",
                         "transactions": "16 sectors in 4 lines, 512 of 512 bytes used",
                         "bank_map": "8 wavefronts, 4 at best"}),
        ("reduce_shuffle", {"reduction_tree": "128 of 256", "transactions": "LDG.E reads x", "bank_map": "LDS"}),
    ],
)  # fmt: skip
def test_every_picture_that_applies_is_drawn_and_small(kernel: str, shown: dict[str, str]) -> None:
    of = subject(kernel)
    applying = [name for name in TRACED if find_drawing(name).applies(of)]
    assert set(applying) == set(shown)
    for picture in pictures_for(of, applying):
        assert len(json.dumps(specification(picture.chart))) < 60_000, picture.name
        assert shown[picture.name] in texts(picture.chart), picture.name
        assert picture.title
        assert picture.caption.endswith(".")


@needs_compiler
def test_pictures_of_many_pieces_are_small_too() -> None:
    # Its threads copy A element by element, and its blocks are the largest.
    of = subject("block_swizzle")
    for name in ("thread_data", "tile_hierarchy", "block_order"):
        assert len(json.dumps(specification(find_drawing(name).draw(of)))) < 60_000, name


def test_the_catalog() -> None:
    names = [drawing.name for drawing in all_drawings()]
    assert set(TRACED) <= set(names)
    assert len(set(names)) == len(names)
    assert [drawing.place for drawing in all_drawings()] == sorted(drawing.place for drawing in all_drawings())
    folder = Path(__file__).parents[2] / "src" / "gemmlab" / "plots" / "pictures"
    assert all((folder / f"{name}.py").exists() for name in names)
    with pytest.raises(UsageError, match="did you mean bank_map"):
        find_drawing("bank_mop")
    with pytest.raises(UsageError, match="packed: there is nothing to draw as bank_map"):
        pictures_for(subject("packed"), ["bank_map"])


def explain(*arguments: str) -> Any:
    return CliRunner().invoke(build_app(), ["explain", *arguments])


OWN = """
__global__ void product(int M, int N, int K, const float *A, const float *B, float *C) {
    int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y;
    float sum = 0;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
"""


@needs_compiler
def test_explain_draws_pictures_of_an_own_file(tmp_path: Path) -> None:
    source, folder = tmp_path / "mine.cu", tmp_path / "new" / "pictures"
    source.write_text(OWN)
    flags = ("--grid", "ceil_div(N, 32), M", "--threads", "32", "--sizes", "64x64x16")
    result = explain(str(source), *flags, "--pictures", str(folder), "--picture", "lane_map", "--format", "svg",
                     "--format", "png", "--picture", "transactions")  # fmt: skip
    assert result.exit_code == 0, result.output
    files = ["lane_map.png", "lane_map.svg", "transactions.png", "transactions.svg"]
    assert sorted(path.name for path in folder.iterdir()) == files
    assert all(str(folder / name) in result.stdout for name in files)
    assert "<svg" in (folder / "lane_map.svg").read_text()
    assert "Findings" in result.stdout


def test_pictures_of_a_cpu_kernel_are_all_there_is(tmp_path: Path) -> None:
    result = explain("naive_ijk", "--pictures", str(tmp_path), "--json")
    assert result.exit_code == 0, result.output
    (one,) = json.loads(result.stdout)["kernels"]
    assert one["kernel"] == "naive_ijk"
    assert {Path(file) for picture in one["pictures"] for file in picture["files"]} == set(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["naive", "--picture", "lane_map"], "name a folder with --pictures"),
        (["naive", "--format", "svg"], "name a folder with --pictures"),
        (["naive", "block_tile", "--pictures", "DIR"], "name one kernel"),
        (["naive", "--pictures", "DIR", "--format", "gif"], "one of svg, png, html"),
        (["naive", "--pictures", "DIR", "--picture", "lane_mop"], "did you mean lane_map"),
        (["naive", "--pictures", "DIR/file/below"], "cannot make the folder"),
    ],
)
def test_what_makes_no_sense_is_told_before_anything_runs(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "file").write_text("")
    result = explain(*(part.replace("DIR", str(tmp_path)) for part in arguments))
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
