"""`gemmlab.sum` of arrays on a GPU: their package's result, its stream, many streams at once, beyond 2^31 elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import UsageError
from support.gpu_arrays import OnlyDlpack

pytestmark = [pytest.mark.usefixtures("gpu"), pytest.mark.filterwarnings("ignore")]
RNG = np.random.default_rng(3)
LENGTHS = (0, 1, 5, 4097, 16_384, 16_385, 1_000_003)


def uniform(n: int) -> Any:
    return RNG.random(n, dtype=np.float32) - np.float32(0.5)


def tolerance(x: Any) -> float:
    return 60 * 2.0**-24 * float(np.abs(x).sum(dtype=np.float64))


@pytest.mark.parametrize("n", LENGTHS)
def test_torch_in_and_out(n: int) -> None:
    torch = pytest.importorskip("torch")
    values = uniform(n)
    x = torch.from_numpy(values).cuda()
    found = gemmlab.sum(x)
    assert (type(found), found.dtype, found.shape, found.device) == (torch.Tensor, torch.float32, (), x.device)
    assert abs(float(found) - values.sum(dtype=np.float64)) <= tolerance(values)
    assert gemmlab.sum(x, keepdims=True).shape == (1,)
    assert float(gemmlab.sum(x[1:])) == pytest.approx(float(values[1:].sum(dtype=np.float64)), abs=tolerance(values))


@pytest.mark.parametrize("n", LENGTHS)
def test_cupy_in_and_out(n: int) -> None:
    cupy = pytest.importorskip("cupy")
    values = uniform(n)
    found = gemmlab.sum(cupy.asarray(values))
    assert (type(found), found.dtype, found.shape) == (cupy.ndarray, np.float32, ())
    assert abs(float(found) - values.sum(dtype=np.float64)) <= tolerance(values)


def test_axes_in_any_order_and_what_leaves_gaps() -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(60, dtype=torch.float32, device="cuda").reshape(3, 4, 5)
    assert float(gemmlab.sum(x.permute(2, 0, 1))) == float(gemmlab.sum(x, (0, 1, 2))) == 1770
    with pytest.raises(UsageError, match=r"x\.contiguous\(\) does"):
        gemmlab.sum(x[:, 1])
    assert float(gemmlab.sum(x[:, 1].contiguous())) == float(x[:, 1].sum())


def test_an_array_that_only_speaks_dlpack() -> None:
    torch, cupy = pytest.importorskip("torch"), pytest.importorskip("cupy")

    found = gemmlab.sum(OnlyDlpack(torch.arange(100, dtype=torch.float32, device="cuda")))
    assert float(cupy.asarray(found)) == 4950


def test_it_is_queued_behind_what_makes_its_input_and_nothing_is_waited_for() -> None:
    torch = pytest.importorskip("torch")
    x = torch.zeros(1 << 20, device="cuda")
    gemmlab.sum(x)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        # The first on a stream sets its workspace up, and may take its time.
        gemmlab.sum(x)
        stream.synchronize()
        torch.cuda._sleep(200_000_000)
        x.fill_(1)
        found = gemmlab.sum(x)
        assert not stream.query()
    stream.synchronize()
    assert float(found) == 1 << 20


def test_many_streams_at_once() -> None:
    torch = pytest.importorskip("torch")
    arrays = [torch.full((3_000_001,), float(k), device="cuda") for k in range(1, 9)]
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in arrays]
    expected = [float(gemmlab.sum(x)) for x in arrays]
    found: list[list[Any]] = [[] for _ in arrays]
    for _ in range(200):
        for x, stream, results in zip(arrays, streams, found, strict=True):
            with torch.cuda.stream(stream):
                results.append(gemmlab.sum(x))
    torch.cuda.synchronize()
    assert [{float(value) for value in results} for results in found] == [{value} for value in expected]


def test_beyond_two_to_the_31_elements() -> None:
    """Ones and a few that tell where they stood; every one past the reach of 32 bits counts."""
    torch = pytest.importorskip("torch")
    n = 2**31 + 3
    if torch.cuda.mem_get_info()[0] < 4 * n + (1 << 30):
        pytest.skip(f"{4 * n / 2**30:.0f} GiB of GPU memory are not free")
    x = torch.ones(n, dtype=torch.float32, device="cuda")
    odd = {0: 2.0**13, 2**30 + 1: -(2.0**14), 2**31 - 1: 2.0**15, 2**31: 2.0**16, n - 1: 2.0**17}
    for place, value in odd.items():
        x[place] = value
    exact = n - len(odd) + math.fsum(odd.values())
    # What threads and blocks leave are whole numbers below 2^24, and exact. Only the sums of blocks are rounded, to
    # multiples of 256 at the end: an odd element that is missing is far more than that.
    assert abs(float(gemmlab.sum(x)) - exact) <= 2.0**11
    assert abs(float(gemmlab.sum(x[1:])) - (exact - odd[0])) <= 2.0**11
    del x
    # Others may run beside.
    torch.cuda.empty_cache()
