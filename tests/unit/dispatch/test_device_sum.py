"""`gemmlab.sum` of arrays on a GPU, with driver and packages played by Python: which launches, on what and where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gemmlab
from gemmlab import sums
from gemmlab.core.errors import ArgumentTypeError, DeviceError, UsageError
from gemmlab.devices import cuda_context, cuda_driver
from gemmlab.devices.cuda_driver import Driver
from gemmlab.dispatch import cuda_sum_calls, cuda_sums, cuda_sums_again, scratch
from support.cuda_source import needs_compiler
from support.gpu_arrays import Array, OnGpu, Tensor, play_cupy, play_torch
from support.sums_on_gpu import SumDriver, words

pytestmark = needs_compiler
LEGACY, PER_THREAD = 1, 2
Floats = npt.NDArray[np.float32]


class OlderOnGpu(OnGpu):
    version = 2


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[SumDriver]:
    fake = SumDriver()
    for module in (cuda_context, cuda_driver, cuda_sum_calls, scratch):
        monkeypatch.setattr(module, "open_driver", lambda: Driver(fake))
    monkeypatch.setattr(cuda_sums, "_sums", {})
    for known in ("_entries", "_packages"):
        monkeypatch.setattr(cuda_sums_again, known, {})
    yield fake
    cuda_sums._sums.clear()


def values(result: Any) -> Floats:
    shown = result.__cuda_array_interface__
    assert (shown["typestr"], shown["version"], shown["strides"]) == ("<f4", 3, None)
    return words(shown["data"][0], int(np.prod(shown["shape"]))).reshape(shown["shape"])


def test_all_elements_in_one_launch_on_the_arrays_own_stream(driver: SumDriver) -> None:
    x = np.arange(70_000, dtype=np.float32) / 1000
    found = gemmlab.sum(OnGpu(x, stream=77))
    assert values(found) == x.sum()
    assert found.__cuda_array_interface__["stream"] == 77
    (launch,) = driver.launches
    assert launch == ("reduce_peak", 35, 1, 1, 512, 1, 1, 0, 77)


@pytest.mark.parametrize("array", [OnGpu, OlderOnGpu])
def test_without_a_stream_of_its_own_it_is_the_default_stream(driver: SumDriver, array: type[OnGpu]) -> None:
    found = gemmlab.sum(array(np.ones(5, np.float32)))
    assert values(found) == 5
    assert found.__cuda_array_interface__["stream"] == driver.launches[0][-1] == LEGACY


CUBE = np.arange(2 * 3 * 5, dtype=np.float32).reshape(2, 3, 5)
FOLDED = np.lib.stride_tricks.as_strided(np.zeros(20, np.float32), (3, 5), (4, 4))
WIDE = np.arange(2 * 3 * 4 * 2 * 3 * 2 * 3 * 2, dtype=np.float32).reshape(2, 3, 4, 2, 3, 2, 3, 2)
"""Alternate axes cannot be joined: four of terms and four of results, more than one launch sums along."""


@pytest.mark.in_turns(20)
@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    "x",
    [
        CUBE, CUBE.T, CUBE[1], CUBE[1, 1:], CUBE[::-1, :, ::-1], CUBE.transpose(1, 0, 2), CUBE[:, :, :0],
        CUBE[1, 2, 3:4], np.full((), 4, np.float32), np.empty(0, np.float32), np.asfortranarray(CUBE)[:, :, 2:],
        CUBE[:, ::2], CUBE[..., 1], CUBE[:, ::-2, 1:4], np.broadcast_to(CUBE[:1], CUBE.shape),
        np.lib.stride_tricks.as_strided(CUBE, (2, 3), (4, 4)), np.broadcast_to(np.float32(2), (7, 2)),
    ],
)  # fmt: skip
def test_any_strides_are_summed_in_place(x: Floats) -> None:
    assert values(gemmlab.sum(OnGpu(x))) == x.sum()
    assert values(gemmlab.sum(OnGpu(x), tuple(range(x.ndim)))) == x.sum()
    assert np.array_equal(values(gemmlab.sum(OnGpu(x), ())), x)
    for axis in range(x.ndim):
        assert np.array_equal(values(gemmlab.sum(OnGpu(x), axis - x.ndim)), x.sum(axis=axis))
        assert np.array_equal(values(gemmlab.sum(OnGpu(x), [axis], keepdims=True)), x.sum(axis=axis, keepdims=True))


@pytest.mark.parametrize(
    ("x", "axes", "kernels"),
    [
        (np.ones((4, 5), np.float32), 1, ["sum_rows"]),
        (np.ones((4, 5), np.float32), 0, ["sum_columns"]),
        (np.ones((4, 5, 6), np.float32), 1, ["sum_columns"]),
        # A nest of terms, and rows of elements that lie apart.
        (np.ones((4, 5, 6), np.float32), (0, 2), ["sum_columns"]),
        (np.ones((4, 50), np.float32)[:, ::2], None, ["sum_rows"]),
        (np.ones((1 << 17, 16), np.float32), 1, ["sum_short_rows"]),
        # Four axes of terms: the innermost first, for seven of results, of which three are walked by the host.
        (WIDE, (0, 2, 4, 6), ["sum_columns"] * 8 + ["sum_rows"]),
        (WIDE[::-1, :, :, ::-1, :, ::-1], (1,), ["sum_columns"] * 4),
        (np.ones((3, 4), np.float32)[:, :0], 0, []),
        (np.ones((3, 4), np.float32)[:, :0], 1, ["sum_rows"]),
    ],
)
def test_the_kernel_follows_from_the_axes(driver: SumDriver, x: Floats, axes: Any, kernels: list[str]) -> None:
    found = gemmlab.sum(OnGpu(x), axes)
    assert np.array_equal(values(found), x.sum(axis=axes))
    assert [launch[0] for launch in driver.launches] == kernels
    gemmlab.sum(OnGpu(x), axes)
    assert driver.modules <= len(set(kernels))


@pytest.mark.in_turns(20)
@pytest.mark.usefixtures("driver")
def test_out_receives_the_sums_wherever_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    play_torch(monkeypatch, 9)
    want = CUBE.sum(axis=1)
    room = np.full((5, 4), np.nan, np.float32)
    # In place; with gaps; backwards, which is a copy; over x itself, which is one, too.
    for out in (np.empty((2, 5), np.float32), room.T[:2], room.T[2:][::-1]):
        target = Tensor(out)
        assert gemmlab.sum(Tensor(CUBE), 1, out=target) is target
        assert np.array_equal(out, want)
    x = CUBE.copy()
    gemmlab.sum(Tensor(x), 1, out=Tensor(x[:, 0]))
    assert np.array_equal(x[:, 0], want)
    whole = np.empty((1, 1, 1), np.float32)
    gemmlab.sum(Tensor(CUBE), keepdims=True, out=Tensor(whole))
    assert whole == CUBE.sum()


def test_out_of_an_unknown_package_is_written_in_place(driver: SumDriver) -> None:
    out = np.empty((5, 3), np.float32).T
    gemmlab.sum(OnGpu(CUBE, 4), 0, out=OnGpu(out, 4))
    assert np.array_equal(out, CUBE.sum(axis=0))
    assert len(driver.launches) == 1
    with pytest.raises(UsageError, match="out must not share memory with x"):
        gemmlab.sum(OnGpu(CUBE), 0, out=OnGpu(CUBE[0]))


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    ("x", "options", "error", "said"),
    [
        (CUBE, {"axis": 3}, UsageError, "axis 3 of an array of 3 axes"),
        (CUBE, {"axis": (1, -2)}, UsageError, "an axis is there twice"),
        (CUBE, {"axis": 1.0}, ArgumentTypeError, "axis is 1.0, not a whole number"),
        (CUBE, {"out": CUBE}, ArgumentTypeError, "out.* is .*numpy"),
        (CUBE, {"out": OnGpu(CUBE)}, UsageError, r"out has shape \(2, 3, 5\); the result has \(\)"),
        (CUBE, {"out": OnGpu(np.zeros(()))}, ArgumentTypeError, "out has dtype float64, not float32"),
        (CUBE, {"threads": 2}, UsageError, "threads are for arrays on the CPU"),
        (CUBE, {"keepdims": "no"}, ArgumentTypeError, "keepdims is 'no'; it must be True or False"),
        (CUBE, {"axis": True}, ArgumentTypeError, "axis is True, not a whole number"),
        (CUBE, {"axis": 0, "out": OnGpu(FOLDED)}, UsageError, "elements of out share memory with each other"),
        (np.ones(4), {}, ArgumentTypeError, "sum: x has dtype float64, not float32"),
        (np.ones(4, np.int32), {}, ArgumentTypeError, "sum: x has dtype int32, not float32"),
        (np.ones(3, [("a", "f4"), ("b", "i1")])["a"], {}, UsageError, "strides .* must be multiples of 4"),
    ],
)
def test_what_a_gpu_cannot_sum_is_said(x: Any, options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        gemmlab.sum(OnGpu(x), **options)


def test_two_gpus_are_refused(driver: SumDriver) -> None:
    x, out = np.ones((2, 2), np.float32), np.empty(2, np.float32)
    driver.__class__ = type("Two", (SumDriver,), {"ordinal_of": lambda _, place: int(place == x.ctypes.data)})
    with pytest.raises(DeviceError, match="x lies on cuda:1, out lies on cuda:0; one GPU is needed"):
        gemmlab.sum(OnGpu(x), 0, out=OnGpu(out))


MANY = np.ones(70_000, np.float32)


def test_each_stream_has_a_workspace_and_keeps_it(driver: SumDriver) -> None:
    results = [gemmlab.sum(OnGpu(MANY, stream)) for stream in (7, 8, 7, LEGACY, PER_THREAD, PER_THREAD)]
    used = driver.scratch
    assert used[0] == used[2] != used[1]
    assert used[4] == used[5]
    assert len(set(used)) == 4
    # And one piece of memory for each result.
    assert len(driver.memory) == 4 + len(results)


def test_a_captured_sum_has_memory_of_its_graph(driver: SumDriver) -> None:
    """A replay may run beside sums on the stream that was captured."""
    gemmlab.sum(OnGpu(MANY, 7))
    driver.capturing.add(7)
    gemmlab.sum(OnGpu(MANY, 7))
    assert not {*driver.scratch[0]} & {*driver.scratch[1]}
    assert driver.cleared == [(driver.scratch[1][1], 1, 7)]


def test_a_large_workspace_is_the_package_s(driver: SumDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    play_torch(monkeypatch, 9)
    x = np.ones((4096, 4096), np.float32)
    found = gemmlab.sum(Tensor(x), 0)
    assert np.array_equal(found.values, x.sum(axis=0))
    ((workspace, tickets),) = driver.scratch
    near = [start for start in driver.memory if start <= tickets < start + len(driver.memory[start])]
    assert near
    assert not [start for start in driver.memory if start <= workspace < start + len(driver.memory[start])]


@pytest.mark.parametrize(("play", "array"), [(play_torch, Tensor), (play_cupy, Array)])
def test_a_repeated_call_is_neither_checked_nor_planned(
    driver: SumDriver, monkeypatch: pytest.MonkeyPatch, play: Any, array: Any
) -> None:
    play(monkeypatch, 9)
    first = gemmlab.sum(array(CUBE), (0, 2), keepdims=True)
    monkeypatch.setattr(sums, "device_array", None)
    found = gemmlab.sum(array(CUBE + 1), (0, 2), keepdims=True)
    assert found.values.shape == first.values.shape
    assert np.array_equal(found.values, (CUBE + 1).sum(axis=(0, 2), keepdims=True))
    assert driver.launches[1][1:] == driver.launches[0][1:]
    assert driver.contexts[-1] == "the caller's"
    # Another layout, other axes, an axis that only equals one, and `out` are checked.
    for x, options in ((CUBE.T, {"axis": (0, 2), "keepdims": True}), (CUBE, {"axis": 1}), (CUBE, {"axis": (0.0, 2)}),
                       (CUBE, {"axis": (0, 2), "keepdims": True, "out": array(first.values)})):  # fmt: skip
        with pytest.raises(TypeError):
            gemmlab.sum(array(x), **options)


def test_the_caller_s_context_is_current_again(driver: SumDriver) -> None:
    driver.contexts.append("another GPU's")
    gemmlab.sum(OnGpu(CUBE))
    assert "context of 1" in driver.contexts
    assert driver.contexts[-1] == "another GPU's"


def test_a_tensor_comes_back_as_a_tensor_on_torch_s_stream(driver: SumDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    play_torch(monkeypatch, 99)
    found = gemmlab.sum(Tensor(CUBE))
    assert isinstance(found, Tensor)
    assert (found.values.shape, float(found.values)) == ((), CUBE.sum())
    assert driver.launches[0][-1] == 99
    assert np.array_equal(gemmlab.sum(Tensor(CUBE[:, 1]), 0).values, CUBE[:, 1].sum(axis=0))
    with pytest.raises(ArgumentTypeError, match=r"x\.float\(\) converts it"):
        gemmlab.sum(Tensor(np.ones(3)))


def test_a_cupy_array_comes_back_as_one_on_cupy_s_stream(driver: SumDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    play_cupy(monkeypatch, 0)
    found = gemmlab.sum(Array(CUBE), (0, 2))
    assert isinstance(found, Array)
    assert np.array_equal(found.values, CUBE.sum(axis=(0, 2)))
    assert driver.launches[0][-1] == LEGACY
