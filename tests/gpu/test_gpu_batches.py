"""Batches and groups on a GPU: right for all strides and shapes, in one launch, within a graph."""

from __future__ import annotations

from typing import Any

import pytest

import gemmlab
from gemmlab.devices.cuda import CudaDevice
from gemmlab.dispatch import batch_axes
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.batch import BatchOp
from gemmlab.verify.check import check_kernel

pytestmark = [pytest.mark.usefixtures("gpu"), pytest.mark.filterwarnings("ignore")]
BATCHES = (
    (4096, 16, 16, 16), (512, 32, 32, 32), (100, 100, 100, 100), (16, 512, 64, 512), (30, 300, 500, 200),
    (256, 1, 2048, 128), (200, 3, 130, 1000), (64, 500, 2, 300),
)  # fmt: skip
SHAPES = ((5, 7, 3), (1, 1, 1), (400, 333, 700), (64, 2, 900), (0, 4, 4), (4, 4, 0), (3, 1300, 50))


@pytest.mark.parametrize("kernel", ["batched", "grouped", "batched_rows"])
def test_the_whole_contract(gpu: CudaDevice, kernel: str) -> None:
    report = check_kernel(find_kernel(kernel), gpu, BatchOp())
    assert report.passed, report.explain()


def right(torch: Any, found: Any, x: Any, y: Any) -> None:
    exact, k = torch.matmul(x.double(), y.double()), x.shape[-1]
    bound = (k + 4) * 2.0**-24 * torch.matmul(x.double().abs(), y.double().abs()) + 1e-30
    assert ((found.double() - exact).abs() <= bound).all()


@pytest.mark.parametrize(("batch", "m", "n", "k"), BATCHES)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_a_batch_is_right_and_one_launch(batch: int, m: int, n: int, k: int, layout: str) -> None:
    torch = pytest.importorskip("torch")
    x, y = torch.rand(batch, m, k, device="cuda") - 0.5, torch.rand(batch, k, n, device="cuda") - 0.5
    x = x.mT.contiguous().mT if layout[0] == "t" else x
    y = y.mT.contiguous().mT if layout[1] == "t" else y
    for _ in range(2):
        right(torch, gemmlab.gemm(x, y), x, y)
    assert gemmlab.explain_choice(x, y).kernel.startswith("batched")


def test_heads_broadcasts_and_many_axes() -> None:
    torch = pytest.importorskip("torch")
    heads = (torch.rand(8, 100, 12, 64, device="cuda") - 0.5).transpose(1, 2)
    keys = (torch.rand(8, 90, 12, 64, device="cuda") - 0.5).transpose(1, 2)
    right(torch, gemmlab.gemm(heads, keys, trans_b=True), heads, keys.mT)
    many, one = torch.rand(2, 3, 2, 5, 3, 9, 20, device="cuda"), torch.rand(2, 1, 2, 1, 3, 20, 8, device="cuda")
    right(torch, gemmlab.gemm(many, one), many, one)
    left = torch.rand(33, 20, device="cuda")
    right(torch, gemmlab.gemm(left, many.mT), left, many.mT)


def test_reproducible_batches_have_the_bits_of_single_products() -> None:
    torch = pytest.importorskip("torch")
    x, y = torch.rand(9, 130, 333, device="cuda"), torch.rand(9, 333, 70, device="cuda")
    found = gemmlab.gemm(x, y, reproducible=True)
    for index in range(9):
        assert torch.equal(found[index], gemmlab.gemm(x[index], y[index], reproducible=True))


def test_a_group_is_right() -> None:
    torch = pytest.importorskip("torch")
    a = [torch.rand(m, k, device="cuda") - 0.5 for m, _, k in SHAPES] * 20
    b = [torch.rand(k, n, device="cuda") - 0.5 for _, n, k in SHAPES] * 20
    for found, x, y in zip(gemmlab.gemm_group(a, b), a, b, strict=True):
        right(torch, found, x, y)
    turned = [one.mT.contiguous().mT for one in b]
    for found, x, y in zip(gemmlab.gemm_group(a, turned), a, b, strict=True):
        right(torch, found, x, y)


@pytest.mark.parametrize("kind", ["batch", "group"])
def test_replays_of_a_graph(kind: str) -> None:
    torch = pytest.importorskip("torch")
    x, y = torch.rand(8, 60, 70, device="cuda"), torch.rand(8, 70, 50, device="cuda")

    def call() -> Any:
        return gemmlab.gemm(x, y) if kind == "batch" else torch.stack(gemmlab.gemm_group(list(x), list(y)))

    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = call()
    for _ in range(3):
        x.copy_(torch.rand_like(x))
        found.zero_()
        graph.replay()
        right(torch, found, x, y)


def test_more_blocks_than_a_grid_holds_are_several_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(batch_axes, "MOST_BLOCKS", 30)
    x, y = torch.rand(77, 40, 33, device="cuda"), torch.rand(77, 33, 41, device="cuda")
    right(torch, gemmlab.gemm(x, y), x, y)
