"""Regions of C and slices of k: products whose workspace would be too large."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gemmlab
from gemmlab.dispatch import regions
from gemmlab.dispatch.regions import MOST_BYTES, Regions, regions_of, workspace_of
from gemmlab.dispatch.slices import sliced, workspace_for
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm_problem import GemmProblem
from support.gemm_driver import GemmDriver
from support.gemm_on_gpu import close, played_driver, uniform
from support.gpu_arrays import OnGpu

BY_TILE = find_kernel("by_tile")
KERNELS = ("by_tile", "f16x3", "bf16x6", "bf16x9", "tf32_images")


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[GemmDriver]:
    yield from played_driver(monkeypatch)


@given(
    kernel=st.sampled_from(KERNELS), m=st.integers(1, 200_000), n=st.integers(1, 200_000), k=st.integers(1, 70_000),
    turned=st.tuples(st.booleans(), st.booleans()),
)  # fmt: skip
def test_regions_cover_the_result_once_and_keep_the_workspace_small(
    kernel: str, m: int, n: int, k: int, turned: tuple[bool, bool]
) -> None:
    found, problem = find_kernel(kernel), GemmProblem(m, n, k, trans_a=turned[0], trans_b=turned[1])
    config = sliced(found, found.configure({}), problem)
    assert config is not None
    nbytes, cut = workspace_for(found, config, problem)
    assert nbytes <= MOST_BYTES
    if cut is None:
        assert workspace_of(found, config, problem) <= MOST_BYTES
        return
    starts = list(cut.starts())
    assert len(starts) == cut.count > 1
    assert sum(rows * columns for *_, rows, columns in starts) == m * n
    assert all(row % 128 == 0 and column % 128 == 0 for row, column, *_ in starts)
    assert all(workspace_of(found, config, GemmProblem(rows, columns, k)) <= MOST_BYTES for *_, rows, columns in starts)
    assert max(row + rows for row, _, rows, _ in starts) == m


def test_a_large_product_keeps_long_slices() -> None:
    config = BY_TILE.configure({})
    square = GemmProblem(16384, 16384, 16384)
    assert sliced(BY_TILE, config, square) == config
    assert workspace_for(BY_TILE, config, square).regions == Regions(16384, 16384, 8192, 8192)
    # 8192 squared needs no region, and a slice that nothing is gained by cutting stays whole.
    assert workspace_for(BY_TILE, config, GemmProblem(8192, 8192, 8192)).regions is None
    # Many rows and few columns: the columns, which every region converts again, are cheap.
    assert workspace_for(BY_TILE, config, GemmProblem(1 << 20, 256, 4096)).regions == Regions(1 << 20, 256, 20992, 256)


def test_the_fewest_elements_are_converted() -> None:
    found = regions_of(BY_TILE, BY_TILE.configure({}), GemmProblem(12288, 12288, 12288))
    assert found is not None
    assert sorted((found.down, found.across)) == [1, 2]


def test_no_region_is_small_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "MOST_BYTES", 1 << 10)
    assert sliced(BY_TILE, BY_TILE.configure({}), GemmProblem(300, 300, 300)) is None


def test_the_choice_names_its_regions() -> None:
    found = gemmlab.explain_choice((16384, 16384), (16384, 16384), precision="float32", device="H200")
    assert found.regions == Regions(16384, 16384, 8192, 8192)
    assert found.workspace_bytes <= MOST_BYTES
    assert "4 regions of C, each of at most 8,192 x 8,192, one after another" in str(found)
    assert found.to_json()["regions"]["rows"] == 8192


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_regions_are_computed_in_turn_with_one_workspace(
    driver: GemmDriver, monkeypatch: pytest.MonkeyPatch, turned: tuple[bool, bool]
) -> None:
    """300 x 400 in regions of 256 x 256 and smaller; strips of rows and columns of operands with padding."""
    config = BY_TILE.configure({"SLICE": 128})
    monkeypatch.setattr(regions, "MOST_BYTES", workspace_of(BY_TILE, config, GemmProblem(256, 256, 40)))
    a, b = uniform(300, 44)[:, :40], uniform(40, 404)[:, :400]
    given_a, given_b = (OnGpu(np.ascontiguousarray(x.T) if turn else x) for x, turn in zip((a, b), turned, strict=True))
    how: dict[str, Any] = {"kernel": "by_tile", "precision": "float32", "config": {"SLICE": 128}}
    for _ in range(2):
        close(gemmlab.gemm(given_a, given_b, trans_a=turned[0], trans_b=turned[1], **how), a @ b)
    # Three launches for each of four regions.
    assert len(driver.launches) == 2 * 3 * 4
    assert len({workspace for workspace, _ in driver.scratch[:4]}) == 1
    assert driver.lent == {}


def test_each_product_of_a_batch_has_its_regions(driver: GemmDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    config = BY_TILE.configure({"SLICE": 128})
    monkeypatch.setattr(regions, "MOST_BYTES", workspace_of(BY_TILE, config, GemmProblem(128, 128, 40)))
    a, b = uniform(2, 130, 40), uniform(2, 40, 140)
    how: dict[str, Any] = {"kernel": "by_tile", "precision": "float32", "config": {"SLICE": 128}}
    close(gemmlab.gemm(OnGpu(a), OnGpu(b), **how), a @ b)
    assert len(driver.launches) == 2 * 3 * 4
