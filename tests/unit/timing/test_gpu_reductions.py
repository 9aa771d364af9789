"""How libraries' reductions are called on a GPU: with stand-ins for the libraries, as there is none here."""

from __future__ import annotations

import sys
import types
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.ops.sums_op import SumsOp
from gemmlab.ops.sums_problem import SumsProblem, middle_axis
from gemmlab.timing.contestants.contestant import UnsupportedError, Work
from gemmlab.timing.contestants.gpu_reductions import (
    CubCall,
    FreshResult,
    cupy_reduction,
    library_reduction,
    torch_reduction,
)
from gemmlab.timing.contestants.places import Place


class Memory:
    """A buffer of ours that a stand-in can see."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.values, self.nbytes, self.address = values, values.nbytes, int(values.ctypes.data)


def work(n: int, operator: str = "sum", op: str = "reduce") -> Work:
    problem = {"n": n, "operator": operator, "contents": "uniform"}
    return Work(op, problem, n, {"n": n, "operator": 0}, {}, {}, 1)


def buffers(n: int) -> dict[str, Any]:
    return {"x": Memory(np.arange(n, dtype=np.float32)), "out": Memory(np.zeros(1, np.float32))}


def array(buffer: Any, place: Place) -> Any:
    return np.lib.stride_tricks.as_strided(buffer.values, place.shape, [4 * step for step in place.strides])


def along_axes(problem: SumsProblem) -> tuple[Work, dict[str, Any], Any]:
    """The work, its buffers, and the buffer of the results as they must be."""
    op = SumsOp()
    data = op.fill(problem, np.random.default_rng(1))
    held: dict[str, Any] = {name: Memory(values.reshape(-1)) for name, values in data.items()}
    expected = op.reference(problem, data)["out"].values.reshape(-1)
    return Work("sums", problem.to_json(), problem.length, op.scalars(problem), {}, {}, 1), held, expected


ALONG = [
    middle_axis(5, 7, 3, "rising"), middle_axis(5, 7, 1, "rising"), middle_axis(1, 9, 1, "rising"),
    SumsProblem(((4, 1, 1), (3, 50, 6)), ((7, 4), (2, 300)), "rising"),
]  # fmt: skip


def test_cupy_makes_a_result_that_is_delivered_for_verification() -> None:
    cupy = SimpleNamespace(sum=np.sum, max=np.max, min=np.min)
    arrays: Any = SimpleNamespace(cupy=cupy, array=array)
    for operator, expected in (("sum", 45), ("max", 9), ("min", 0)):
        held = buffers(10)
        call = cupy_reduction(arrays, work(10, operator), held)
        call()
        assert held["out"].values[0] == 0
        call.deliver()
        assert held["out"].values[0] == expected


@pytest.mark.parametrize("problem", ALONG)
def test_each_sums_along_the_same_axes(problem: SumsProblem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemmlab, "sum", lambda x, axis, out: np.sum(x, axis=axis, out=out))
    packages: Any = SimpleNamespace(
        array=array, cupy=np, torch=SimpleNamespace(sum=lambda x, dim, out: np.sum(x, axis=dim, out=out))
    )
    for made in (torch_reduction, cupy_reduction, library_reduction):
        task, held, expected = along_axes(problem)
        call = made(packages, task, held)
        call()
        if isinstance(call, FreshResult):
            call.deliver()
        assert np.array_equal(held["out"].values, expected, equal_nan=True)


def test_what_no_package_is_asked_for() -> None:
    nothing: Any = None
    with pytest.raises(UnsupportedError, match=r"gemmlab\.sum adds"):
        library_reduction(nothing, work(10, "max"), buffers(10))
    task, held, _ = along_axes(middle_axis(2, 1, 3))
    with pytest.raises(UnsupportedError, match="nothing is summed"):
        torch_reduction(nothing, task, held)


def test_torch_reduces_along_the_one_axis() -> None:
    torch = SimpleNamespace(
        sum=lambda x, dim, out: np.sum(x, axis=dim, out=out), amax=lambda x, dim, out: np.max(x, axis=dim, out=out)
    )
    arrays: Any = SimpleNamespace(torch=torch, array=array)
    for operator, expected in (("sum", 45), ("max", 9)):
        held = buffers(10)
        torch_reduction(arrays, work(10, operator), held)()
        assert held["out"].values[0] == expected


class Reducer:
    """cuda-cccl's: the operator is an argument of later versions' calls."""

    def __call__(self, scratch: Any, x: Any, out: Any, op: Any, num_items: int, h_init: Any, stream: Any) -> int:
        assert (op, num_items, h_init[0], stream.__cuda_stream__()) == ("plus", 10, 0, (0, 77))
        assert x.__cuda_array_interface__["typestr"] == "<f4"
        assert x.__cuda_array_interface__["shape"] == (10,)
        if scratch is None:
            return 640
        assert scratch == "scratch of 640"
        calls.append(out)
        return 0


class OlderReducer:
    def __call__(self, scratch: Any, x: Any, out: Any, num_items: int, h_init: Any, stream: Any = None) -> int:
        return Reducer()(scratch, x, out, "plus", num_items, h_init, stream)


calls: list[Any] = []


@pytest.mark.parametrize("reducer", [Reducer, OlderReducer])
def test_cub_is_set_up_once_and_called_with_that(monkeypatch: pytest.MonkeyPatch, reducer: Any) -> None:
    calls.clear()
    module: Any = types.ModuleType("cuda.compute")
    module.OpKind = SimpleNamespace(PLUS="plus")
    module.make_reduce_into = lambda *_args: reducer()
    monkeypatch.setitem(sys.modules, "cuda.compute", module)
    device: Any = SimpleNamespace(activate=lambda: None, stream=77, allocate=lambda n: f"scratch of {n}", id="cuda:0")
    cub = CubCall(device)
    call = cub.prepare(work(10), buffers(10))
    call()
    call()
    assert len(calls) == 2
    with pytest.raises(UnsupportedError, match="only sums of CUB are timed"):
        cub.prepare(work(10, "max"), buffers(10))
    with pytest.raises(UnsupportedError, match="CUB has no gemm"):
        cub.prepare(work(10, op="gemm"), buffers(10))
