"""How libraries' reductions are called on a GPU: with stand-ins for the libraries, as there is none here."""

from __future__ import annotations

import sys
import types
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gemmlab.timing.contestants.contestant import UnsupportedError, Work
from gemmlab.timing.contestants.gpu_reductions import CubCall, cupy_reduction, torch_reduction


class Memory:
    """A buffer of ours that a stand-in can see."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.values, self.nbytes, self.address = values, values.nbytes, int(values.ctypes.data)


def work(n: int, operator: str = "sum", op: str = "reduce") -> Work:
    problem = {"n": n, "operator": operator, "contents": "uniform"}
    return Work(op, problem, n, {"n": n, "operator": 0}, {}, {}, 1)


def buffers(n: int) -> dict[str, Any]:
    return {"x": Memory(np.arange(n, dtype=np.float32)), "out": Memory(np.zeros(1, np.float32))}


def test_cupy_puts_the_result_where_it_is_asked_to() -> None:
    cupy = SimpleNamespace(asarray=lambda b: b.values, float32=np.float32, sum=np.sum, max=np.max, min=np.min)
    for operator, expected in (("sum", 45), ("max", 9), ("min", 0)):
        held = buffers(10)
        cupy_reduction(cupy, work(10, operator), held)()
        assert held["out"].values[0] == expected


def test_torch_reduces_along_the_one_axis() -> None:
    asked: list[Any] = []

    def as_tensor(buffer: Any, device: str) -> Any:
        asked.append(device)
        return buffer.values

    torch = SimpleNamespace(
        as_tensor=as_tensor, float32=np.float32,
        sum=lambda x, dim, out: np.sum(x, axis=dim, out=out), amax=lambda x, dim, out: np.max(x, axis=dim, out=out),
    )  # fmt: skip
    for operator, expected in (("sum", 45), ("max", 9)):
        held = buffers(10)
        torch_reduction(torch, "cuda:1", work(10, operator), held)()
        assert held["out"].values[0] == expected
    assert set(asked) == {"cuda:1"}


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
    with pytest.raises(UnsupportedError, match="CUB is asked for sums only"):
        cub.prepare(work(10, "max"), buffers(10))
    with pytest.raises(UnsupportedError, match="CUB has no gemm"):
        cub.prepare(work(10, op="gemm"), buffers(10))
