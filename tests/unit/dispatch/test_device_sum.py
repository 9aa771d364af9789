"""`gemmlab.sum` of arrays on a GPU, with driver and packages played by Python: one launch, on what and where."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gemmlab
from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.devices import cuda, cuda_driver
from gemmlab.devices.cuda_driver import Driver
from gemmlab.dispatch import cuda_sums
from support.cuda_source import needs_compiler
from support.fake_driver import FakeModule
from support.gpu_arrays import Array, OnGpu, Tensor, play_cupy, play_torch

pytestmark = needs_compiler
LEGACY, PER_THREAD = 1, 2


class OlderOnGpu(OnGpu):
    version = 2


def words(address: int, count: int) -> npt.NDArray[np.float32]:
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(address)) if count else np.empty(0, np.float32)


def reduce_peak(n: int, x: int, out: int, workspace: int) -> None:
    """As the kernel's arguments have it."""
    count, start, end, meeting = (ctypes.c_int64.from_address(address).value for address in (n, x, out, workspace))
    assert ctypes.c_uint32.from_address(meeting).value == 0
    words(end, 1)[0] = words(start, count).sum()


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeModule]:
    fake = FakeModule(params=(8, 8, 8, 8), threads=1024, kernels={"reduce_peak": reduce_peak})
    for module in (cuda, cuda_driver, cuda_sums):
        monkeypatch.setattr(module, "open_driver", lambda: Driver(fake))
    monkeypatch.setattr(cuda_sums, "_sums", {})
    yield fake
    cuda_sums._sums.clear()


def value(result: Any) -> float:
    shown = result.__cuda_array_interface__
    assert (shown["shape"], shown["typestr"], shown["version"]) == ((), "<f4", 3)
    return float(words(shown["data"][0], 1)[0])


def test_all_elements_in_one_launch_on_the_arrays_own_stream(driver: FakeModule) -> None:
    x = np.arange(70_000, dtype=np.float32) / 1000
    found = gemmlab.sum(OnGpu(x, stream=77))
    assert value(found) == x.sum()
    assert found.__cuda_array_interface__["stream"] == 77
    (launch,) = driver.launches
    assert launch[1:] == (35, 1, 1, 512, 1, 1, 0, 77)


@pytest.mark.parametrize("array", [OnGpu, OlderOnGpu])
def test_without_a_stream_of_its_own_it_is_the_default_stream(driver: FakeModule, array: type[OnGpu]) -> None:
    found = gemmlab.sum(array(np.ones(5, np.float32)))
    assert value(found) == 5
    assert found.__cuda_array_interface__["stream"] == driver.launches[0][-1] == LEGACY


CUBE = np.arange(2 * 3 * 5, dtype=np.float32).reshape(2, 3, 5)


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    "x",
    [
        CUBE, CUBE.T, CUBE[1], CUBE[1, 1:], CUBE[::-1, :, ::-1], CUBE.transpose(1, 0, 2), CUBE[:, :, :0],
        CUBE[1, 2, 3:4], np.full((), 4, np.float32), np.empty(0, np.float32), np.asfortranarray(CUBE)[:, :, 2:],
    ],
)  # fmt: skip
def test_whatever_fills_its_memory(x: npt.NDArray[np.float32]) -> None:
    assert value(gemmlab.sum(OnGpu(x))) == x.sum()
    assert value(gemmlab.sum(OnGpu(x), tuple(range(x.ndim)))) == x.sum()


@pytest.mark.usefixtures("driver")
def test_axes_of_one_element_may_be_kept() -> None:
    found = gemmlab.sum(OnGpu(np.ones((1, 6), np.float32)), axis=-1)
    assert found.__cuda_array_interface__["shape"] == (1,)
    assert words(found.__cuda_array_interface__["data"][0], 1)[0] == 6
    found = gemmlab.sum(OnGpu(np.ones((2, 6), np.float32)), keepdims=True)
    assert found.__cuda_array_interface__["shape"] == (1, 1)


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    ("x", "options", "error", "said"),
    [
        (CUBE[:, ::2], {}, UsageError, r"strides .* has gaps or overlaps in memory; on a GPU pass a contiguous copy"),
        (CUBE[..., 1], {}, UsageError, "has gaps or overlaps in memory"),
        (np.broadcast_to(CUBE[:1], CUBE.shape), {}, UsageError, "has gaps or overlaps in memory"),
        (np.lib.stride_tricks.as_strided(CUBE, (2, 3), (4, 4)), {}, UsageError, "has gaps or overlaps in memory"),
        (CUBE, {"axis": 0}, UsageError, r"all elements are summed into one, not into shape \(3, 5\)"),
        (CUBE[:, :0], {"axis": 1}, UsageError, r"not into shape \(2, 5\)"),
        (CUBE, {"axis": 3}, UsageError, "axis 3 of an array of 3 axes"),
        (CUBE, {"out": CUBE}, UsageError, "out is for arrays on the CPU"),
        (CUBE, {"threads": 2}, UsageError, "threads are for arrays on the CPU"),
        (np.ones(4), {}, ArgumentTypeError, "sum: x has dtype float64, not float32"),
        (np.ones(4, np.int32), {}, ArgumentTypeError, "sum: x has dtype int32, not float32"),
    ],
)
def test_what_a_gpu_cannot_sum_is_said(x: Any, options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        gemmlab.sum(OnGpu(x), **options)


def test_each_stream_has_a_workspace_and_keeps_it(driver: FakeModule) -> None:
    used: list[int] = []
    driver.kernels["reduce_peak"] = lambda *args: used.append(ctypes.c_int64.from_address(args[3]).value)
    results = [gemmlab.sum(OnGpu(CUBE, stream)) for stream in (7, 8, 7, LEGACY, PER_THREAD, PER_THREAD)]
    assert used[0] == used[2] != used[1]
    assert used[4] == used[5]
    assert len(set(used)) == 4
    # And one piece of memory for each result.
    assert len(driver.memory) == 4 + len(results)


def test_the_caller_s_context_is_current_again(driver: FakeModule) -> None:
    driver.contexts.append("another GPU's")
    gemmlab.sum(OnGpu(CUBE))
    assert "context of 1" in driver.contexts
    assert driver.contexts[-1] == "another GPU's"


def test_a_tensor_comes_back_as_a_tensor_on_torch_s_stream(driver: FakeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    play_torch(monkeypatch, 99)
    found = gemmlab.sum(Tensor(CUBE))
    assert isinstance(found, Tensor)
    assert (found.values.shape, float(found.values)) == ((), CUBE.sum())
    assert driver.launches[0][-1] == 99
    with pytest.raises(UsageError, match=r"pass x\.contiguous\(\)"):
        gemmlab.sum(Tensor(CUBE[:, 1]))
    with pytest.raises(UsageError, match=r"torch\.sum\(x, dim=\.\.\.\) does"):
        gemmlab.sum(Tensor(CUBE), 0)
    with pytest.raises(ArgumentTypeError, match=r"x\.float\(\) converts it"):
        gemmlab.sum(Tensor(np.ones(3)))


def test_a_cupy_array_comes_back_as_one_on_cupy_s_stream(driver: FakeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    play_cupy(monkeypatch, 0)
    found = gemmlab.sum(Array(CUBE))
    assert isinstance(found, Array)
    assert float(found.values) == CUBE.sum()
    assert driver.launches[0][-1] == LEGACY
    with pytest.raises(UsageError, match=r"pass cupy\.ascontiguousarray\(x\)"):
        gemmlab.sum(Array(CUBE[:, 1]))
