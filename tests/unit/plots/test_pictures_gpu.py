"""Pictures of GPU kernels: what they are drawn of, against facts found by hand; and that all can be drawn."""

from __future__ import annotations

from typing import Any

import pytest

from gemmlab.core.trace import Access
from gemmlab.observe.access_patterns import pattern_of
from gemmlab.plots.pictures.bank_map import BankMap, bank_map, chosen
from gemmlab.plots.pictures.lane_map import LaneMap, flips_of, lane_map
from gemmlab.plots.pictures.owners import Area
from gemmlab.plots.pictures.thread_data import Map, maps
from gemmlab.plots.pictures.tile_hierarchy import blocks_of, threads_of
from gemmlab.plots.pictures.transactions import requests, sectors_of
from support.cuda_source import needs_compiler
from support.picture_subjects import subject


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


@pytest.mark.in_turns(20)
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


@pytest.mark.in_turns(20)
@needs_compiler
def test_the_tile_hierarchy_of_quarters() -> None:
    traced = subject("conflict_free").trace
    owners = threads_of(traced)
    # Warps of 64 x 32, four beside each other; a lane's quarters are 32 rows and 16 columns apart, in z-order.
    places = {(0, 0): (0, 0), (3, 3): (0, 0), (0, 4): (0, 1), (4, 0): (0, 2), (0, 8): (0, 16), (32, 16): (0, 0),
              (0, 32): (1, 0), (64, 0): (4, 0), (127, 127): (7, 31)}  # fmt: skip
    assert {place: owners[place] for place in places} == places
    assert blocks_of(traced) == [Area(row, col, 128, 128) for row in (0, 128) for col in (0, 128)]


@pytest.mark.in_turns(20)
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


@pytest.mark.in_turns(20)
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


@pytest.mark.in_turns(20)
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
