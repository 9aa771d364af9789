"""Float64 references by torch on a GPU: which products it computes, and that a bench on a GPU uses it."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gemmlab.core.precision import TF32
from gemmlab.devices.device_name import DeviceName
from gemmlab.instruments.bench_request import BenchRequest
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.timing import float64_on_gpu
from gemmlab.timing.float64_on_gpu import NOTE, product_on_gpu

BIG = 40


class OnGpu:
    """A tensor of a torch that computes here and counts its products."""

    def __init__(self, values: Any, torch: Any) -> None:
        self.values, self.torch = values, torch

    def to(self, where: str) -> OnGpu:
        self.torch.places.add(where)
        return self

    def __matmul__(self, other: OnGpu) -> OnGpu:
        self.torch.products += 1
        return OnGpu(self.values @ other.values, self.torch)

    def cpu(self) -> OnGpu:
        return self

    def numpy(self) -> Any:
        return self.values


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    played: Any = SimpleNamespace(products=0, places=set(), emptied=0)

    def empty_cache() -> None:
        played.emptied += 1

    played.cuda = SimpleNamespace(is_available=lambda: True, empty_cache=empty_cache)
    played.from_numpy = lambda values: OnGpu(values, played)
    monkeypatch.setitem(sys.modules, "torch", played)
    monkeypatch.setattr(float64_on_gpu, "find_spec", lambda name: name)
    monkeypatch.setattr(float64_on_gpu, "FEWEST", BIG**3)
    return played


@pytest.mark.parametrize("precision", ["float32", TF32])
@pytest.mark.parametrize("contents", ["uniform", "special"])
def test_large_finite_products_are_torch_s(precision: str, contents: str, torch: Any) -> None:
    product = product_on_gpu(1)
    assert product is not None
    for problem, large in ((GemmProblem(BIG, BIG, BIG, trans_b=True, contents=contents), contents == "uniform"),
                           (GemmProblem(BIG, BIG, BIG - 1, contents=contents), False)):  # fmt: skip
        torch.products = 0
        inputs = GemmOp().fill(problem, np.random.default_rng(0))
        found, usual = (op.reference(problem, inputs, precision=precision)["c"] for op in (GemmOp(product), GemmOp()))
        np.testing.assert_allclose(found.values, usual.values, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(found.bound, usual.bound, rtol=1e-13)
        assert torch.products == 2 * large
    assert torch.places <= {"cuda:1"}


def test_a_product_that_does_not_fit_into_the_gpu_s_memory_is_numpy_s(torch: Any) -> None:
    class OutOfMemoryError(RuntimeError):
        pass

    def refuse(_values: Any) -> Any:
        raise OutOfMemoryError("CUDA out of memory")

    torch.OutOfMemoryError, torch.from_numpy = OutOfMemoryError, refuse
    product = product_on_gpu(0)
    assert product is not None
    a, b = np.random.default_rng(0).random((2, BIG, BIG))
    np.testing.assert_array_equal(product(a, b), a @ b)


def test_torch_does_not_keep_the_memory_of_a_product(torch: Any) -> None:
    """The contestants' processes may need it."""
    product = product_on_gpu(0)
    assert product is not None
    product(np.ones((BIG, BIG)), np.ones((BIG, BIG)))
    assert (torch.products, torch.emptied) == (1, 1)


def test_without_torch_or_its_gpu_numpy_computes(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.cuda.is_available = lambda: False
    assert product_on_gpu(0) is None
    monkeypatch.setattr(float64_on_gpu, "find_spec", lambda _name: None)
    assert product_on_gpu(0) is None


@pytest.mark.parametrize(("op", "verify", "used"), [("gemm", True, 1), ("gemm", False, 0), ("batch", True, 0)])
def test_a_bench_on_a_gpu_verifies_with_it(op: str, *, verify: bool, used: int, torch: Any) -> None:
    device: Any = SimpleNamespace(device_name=DeviceName("cuda", "2"))
    request = BenchRequest(
        device, [], op, None, f"{BIG}", "none", "1", 1, 1, 0, 9.0, verify, False, [], None, reproducible=True
    )  # fmt: skip
    plan = request.plan()
    assert [spec.name for spec in plan.contestants] == ["gemmlab", "gemmlab:reproducible"]
    assert [spec.reproducible for spec in plan.contestants] == [False, True]
    assert list(plan.notes) == [NOTE] * used
    (problem,) = plan.problems
    plan.op.reference(problem, plan.op.fill(problem, np.random.default_rng(0)))
    assert torch.products == 2 * used
    assert torch.places == ({"cuda:2"} if used else set())
