"""Listings: lines through inlining, columns of figures, pins and pictures of a user's kernel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gemmlab.analysis.explanation import Explanation
from gemmlab.analysis.listing.code import Code, Row, code_of
from gemmlab.analysis.listing.kernel_listing import Listing, explained_listing, static_listing
from gemmlab.analysis.listing.pins import FINDING, HAZARD
from gemmlab.kernels.catalog import find_kernel
from gemmlab.toolchain import build_cuda
from support.cuda_source import needs_compiler
from support.page_kernels import LOADS, STORE_OF_A, explained, user_file

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Explanation:
    return explained(str(user_file(tmp_path_factory.mktemp("own"))))


@pytest.fixture(scope="module")
def listing(run: Explanation) -> Listing:
    return explained_listing(run)


def lines(row: Row) -> list[str]:
    return [f"{Path(file).name}:{line}" for file, line in row.places]


def rows_of(code: Code, opcode: str) -> list[Row]:
    return [row for row in code.rows if row.instruction.opcode == opcode]


@pytest.mark.in_turns(20)
def test_a_line_of_a_header_names_its_call_sites(listing: Listing) -> None:
    loads = {tuple(lines(row)) for row in rows_of(listing.code, "LDG")}
    assert {("helper.cuh:3", f"mine.cu:{STORE_OF_A}"), ("helper.cuh:3", "mine.cu:9")} <= loads
    assert [Path(file).name for file in listing.code.files] == ["mine.cu", "helper.cuh"]
    assert [source.name for source in listing.sources] == ["mine.cu", "helper.cuh"]
    assert dict(listing.sources[1].lines)[3].strip().startswith("return row < height")


@pytest.mark.in_turns(20)
def test_every_column_has_the_figures_of_the_run(listing: Listing, run: Explanation) -> None:
    executed = listing.column("executions")
    assert executed is not None
    assert executed.values == {site.address: site.executed for site in run.subject.counters.sites}
    excess = listing.column("excess")
    assert excess is not None
    (store,) = [row for row in rows_of(listing.code, "STS") if lines(row)[0] == f"mine.cu:{STORE_OF_A}"]
    # 64 blocks of 32 warps, 8 tiles along K, 32 wavefronts where one would do.
    assert excess.values == {store.address: 64 * 32 * 8 * 31}
    lanes = listing.column("lanes")
    assert lanes is not None
    assert lanes.values[store.address] == 32


def test_predicted_cycles_are_all_of_the_time(listing: Listing) -> None:
    time, cycles, data = (listing.column(name) for name in ("time", "cycles", "dependency"))
    assert time is not None
    assert cycles is not None
    assert data is not None
    assert sum(time.values.values()) == pytest.approx(100)
    assert all(cycles.values[address] >= data.values[address] >= 0 for address in cycles.values)
    # A warp waits at the barrier for the slowest of 32, whose stores conflict.
    (barrier,) = rows_of(listing.code, "BAR")
    assert max(time.values, key=lambda address: time.values[address]) == barrier.address


def test_hazards_and_findings_are_pinned(listing: Listing) -> None:
    hazards = [pin for pin in listing.pins if pin.kind == HAZARD]
    assert {line for pin in hazards for _, line in pin.lines} == {STORE_OF_A, 9, LOADS}
    assert all(pin.addresses for pin in hazards)
    assert all("/" not in pin.text.split(" (array")[0].split("`")[0] for pin in hazards)
    by_key = {pin.key: pin for pin in listing.pins if pin.kind == FINDING}
    (address,) = by_key["store conflicts"].addresses
    assert listing.code.rows[address // 16].instruction.opcode == "STS"
    narrow = {listing.code.rows[a // 16].instruction.opcode for a in by_key["narrow shared loads"].addresses}
    assert narrow == {"LDS"}
    assert by_key["wrong result"].addresses == ()


def test_a_picture_shows_the_worst_access(listing: Listing) -> None:
    (store,) = [row for row in rows_of(listing.code, "STS") if lines(row)[0] == f"mine.cu:{STORE_OF_A}"]
    (picture,) = [one for one in listing.pictures if one.address == store.address]
    assert (picture.space, picture.cost, picture.best, picture.width) == ("shared", 32, 1, 4)
    assert len({transfer.bank for transfer in picture.transfers}) == 1
    assert [offset for offset in picture.offsets if offset is not None] == [128 * lane for lane in range(32)]
    loads = [one for one in listing.pictures if one.space == "global" and not one.store]
    assert {(one.cost, one.best) for one in loads} == {(4, 4)}


def test_a_static_listing_has_loops_banks_and_registers() -> None:
    kernel = find_kernel("conflict_free")
    artifact = build_cuda.build(kernel.program(kernel.configure({}), "sm_90"))
    code = code_of(artifact, kernel.configure({}))
    assert code.rows[-1].instruction.opcode == "BRA", "padding is left out"
    assert code.most_live <= code.registers
    inside = [row for row in code.rows if row.depth]
    assert {row.loop for row in inside} == {span.first for span in code.loops}
    multiply = [row for row in inside if row.instruction.opcode == "FFMA"]
    assert all(sum(row.banks) <= 3 for row in multiply)
    assert any(sum(row.banks) < 3 for row in multiply), "reuse spares a read"
    assert any("fma.rn.f32" in code.ptx[row.ptx_line - 1] for row in multiply)
    assert static_listing(code).columns == ()


@pytest.mark.in_turns(20)
def test_code_without_lines_is_listed_too() -> None:
    kernel = find_kernel("reduce_peak")
    artifact = build_cuda.build(kernel.program(kernel.configure({}), "sm_90"))
    bare = artifact.code.replace(b".debug_line\0", b".Debug_line\0")
    text = "\n".join(line for line in artifact.texts["sass"].splitlines() if "//## File" not in line)
    code = code_of(replace(artifact, code=bare, texts={"sass": text}))
    assert all(row.places == () for row in code.rows)
    assert static_listing(code).sources == ()
