"""Clusters on the emulator: special registers, distributed shared memory, remote mbarriers, multicast."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from async_runs import DEVICE, HERE, ran

from gemmlab import TensorMap, launch
from gemmlab.core.errors import DeviceError, UsageError

FILE = "clusters.cu"
u32 = np.uint32
NUMBERS = np.random.default_rng(3).integers(0, 1000, 512).astype(u32)


@pytest.mark.in_turns(20)
def test_places_in_a_grid_of_clusters() -> None:
    grid, cluster = (4, 6, 4), (2, 3, 2)
    (out,) = ran(FILE, "places", 1, np.zeros(96 * 15, u32), grid=grid, wide_clusters=True)
    rows = out.reshape(96, 15)
    for block, row in enumerate(rows.tolist()):
        place = block % 4, block // 4 % 6, block // 24
        inner = [at % size for at, size in zip(place, cluster, strict=True)]
        outer = [at // size for at, size in zip(place, cluster, strict=True)]
        rank = inner[0] + 2 * (inner[1] + 3 * inner[2])
        assert row == [rank, 12, *inner, *cluster, *outer, 2, 2, 2, 1], place


@pytest.mark.in_turns(20)
def test_blocks_read_write_and_add_in_their_neighbours_memory() -> None:
    out = ran(FILE, "neighbours", 64, NUMBERS, np.zeros(512, u32), grid=8)[1]
    for cluster in range(2):
        values = NUMBERS[cluster * 256 :][:256].reshape(4, 64)
        for rank in range(4):
            want = values[rank] * 2 + values[(rank + 2) % 4][::-1]
            want[0] += values[rank].sum() + 100 * rank
            want[1] += max(values[rank].max(), 100 * rank)
            assert np.array_equal(out[(4 * cluster + rank) * 64 :][:64], want)


@pytest.mark.in_turns(20)
def test_remote_arrivals_and_asynchronous_stores() -> None:
    (out,) = ran(FILE, "remote", 32, np.zeros(32, u32), grid=4)
    minimum = (1 << 32) - 5
    for rank, row in enumerate(out.reshape(4, 8).tolist()):
        assert row == [rank, 1001 + rank, minimum, 1000, rank * 7, rank * 7, rank * 7, rank]


def test_multicast_to_all_and_to_some_blocks() -> None:
    array = np.arange(4 * 32, dtype=np.float32).reshape(4, 32)
    plain = np.arange(64, dtype=np.float32) * 1000
    out = ran(FILE, "multicast", 32, TensorMap(array, (1, 32)), plain, np.zeros(4 * 128, np.float32), grid=(2, 2))[2]
    for block in range(4):
        want = array.copy()
        if block > 1:
            want[:2] += plain.reshape(2, 32)
        assert np.array_equal(out.reshape(4, 4, 32)[block], want)


def test_copies_and_reductions_between_blocks() -> None:
    out = ran(FILE, "send", 32, NUMBERS[:64], np.zeros(64, u32), grid=2)[1]
    assert np.array_equal(out[:32], NUMBERS[32:64] + 7)
    assert np.array_equal(out[32:], NUMBERS[:32])


def test_threads_that_have_ended_do_not_hold_the_barrier() -> None:
    (out,) = ran(FILE, "early", 64, np.zeros(128, u32), grid=2)
    assert np.flatnonzero(out).tolist() == [*range(32), *range(64, 128)]


def test_more_than_eight_blocks_need_the_attribute() -> None:
    with pytest.raises((UsageError, DeviceError)) as caught:
        ran(FILE, "many", 1, np.zeros(32, u32), grid=32)
    if DEVICE.startswith("emulated"):
        assert "a cluster of 16 blocks; there may be up to 8, up to 16 with wide_clusters=True" in str(caught.value)
    (out,) = ran(FILE, "many", 1, np.zeros(32, u32), grid=32, wide_clusters=True)
    assert out.tolist() == [*range(16)] * 2


def test_clusters_of_the_launch() -> None:
    (out,) = ran(FILE, "ranks", 1, np.zeros(12, u32), grid=(4, 3), cluster=(2, 3))
    assert out.tolist() == [0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5]
    with pytest.raises(UsageError, match="compiled for clusters of"):
        ran(FILE, "many", 1, np.zeros(32, u32), grid=32, cluster=4)


@pytest.mark.in_turns(20)
def test_other_architectures_have_no_clusters() -> None:
    with pytest.raises(UsageError, match="sm_80 has no clusters"):
        launch(HERE / "old.cu", "copies", 1, 32, [np.zeros(1, u32)] * 3, device="emulated:sm_80", cluster=2)


def test_generic_addresses_of_every_space() -> None:
    out, spaces = ran(FILE, "generic", 32, np.zeros(6, np.float32), np.zeros(6, u32), grid=2)
    own, total = [0, 11, 10], sum(range(32))
    assert spaces.tolist() == own * 2
    assert out.tolist() == [total, total + 32, total, total + 32, total + 32 + 1000, total + 1000]


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("kernel", ["flags", "counted", "locked"])
def test_flags_and_locks_order_blocks(kernel: str) -> None:
    (out,) = ran("cluster_orders.cu", kernel, 128, np.zeros(256, np.float32), grid=2)
    each = np.arange(256, dtype=np.float32) % 128
    want = {"flags": np.array([2, 1] + [0] * 254), "counted": each, "locked": np.array([2] + [0] * 255)}[kernel]
    assert np.array_equal(out, want)


@pytest.mark.in_turns(20)
def test_sums_of_several_blocks_in_one_place() -> None:
    (out,) = ran("cluster_orders.cu", "summed", 128, np.zeros(128, np.float32), grid=4)
    assert np.array_equal(out, 4 * (np.arange(128) + 1100))
