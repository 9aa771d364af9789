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


def close(found: Any, values: Any, axes: Any, *, keepdims: bool = False) -> bool:
    """Return True if sums along axes are within the bound of the float64 sums of a NumPy array."""
    want = values.sum(axis=axes, dtype=np.float64, keepdims=keepdims)
    bound = 100 * 2.0**-24 * np.abs(values).sum(axis=axes, dtype=np.float64, keepdims=keepdims)
    return found.shape == want.shape and bool((np.abs(found - want) <= bound).all())


SHAPES = (
    (1, 4096), (4096, 1), (64, 65_536), (65_536, 64), (1 << 18, 16), (16, 1 << 18), (1000, 1001), (300_000, 3),
    (64, 128, 65), (7, 1, 9, 33), (5, 3, 2, 7, 4, 3, 2),
)  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_along_every_axis_and_pair_of_axes(shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    values = RNG.standard_normal(shape).astype(np.float32)
    x = torch.from_numpy(values).cuda()
    pairs = [(a, b) for a in range(len(shape)) for b in range(a)]
    for axes in (*range(len(shape)), *pairs, tuple(range(len(shape))), ()):
        keepdims = axes == 0
        found = gemmlab.sum(x, axes, keepdims=keepdims)
        assert close(found.cpu().numpy(), values, axes, keepdims=keepdims), axes
        again = gemmlab.sum(x, axes, keepdims=keepdims)
        assert again.cpu().numpy().tobytes() == found.cpu().numpy().tobytes()


def test_views_are_summed_in_place() -> None:
    torch = pytest.importorskip("torch")
    values = RNG.standard_normal((130, 260, 37)).astype(np.float32)
    x = torch.from_numpy(values).cuda()
    views = [
        (x[:, ::2], values[:, ::2]), (x[1:, :, 3:], values[1:, :, 3:]), (x.permute(2, 0, 1), values.transpose(2, 0, 1)),
        (x[..., 4], values[..., 4]), (x[:, :1].expand(130, 70, 37), np.broadcast_to(values[:, :1], (130, 70, 37))),
        (x.transpose(0, 2)[:, 5:250:3], values.transpose(2, 1, 0)[:, 5:250:3]),
    ]  # fmt: skip
    for view, same in views:
        for axes in (None, 0, 1, -1, (0, same.ndim - 1)):
            assert close(gemmlab.sum(view, axes).cpu().numpy(), same, axes)


def test_an_array_of_cupy_in_backward_order() -> None:
    cupy = pytest.importorskip("cupy")
    values = RNG.standard_normal((40, 50, 60)).astype(np.float32)
    x = cupy.asarray(values)[::-1, :, ::-2]
    for axes in (None, 0, 1, 2, (0, 2), (0, 1)):
        assert close(gemmlab.sum(x, axes).get(), values[::-1, :, ::-2], axes)


def test_out_receives_the_sums_wherever_it_lies() -> None:
    torch = pytest.importorskip("torch")
    values = RNG.standard_normal((200, 300)).astype(np.float32)
    x = torch.from_numpy(values).cuda()
    wide = torch.full((300, 4), torch.nan, device="cuda")
    for out in (torch.empty(300, device="cuda"), wide[:, 1]):
        assert gemmlab.sum(x, 0, out=out) is out
        assert close(out.cpu().numpy(), values, 0)
    assert int(wide.isnan().sum()) == 900
    # Over the array itself: what is read is read before it is written.
    gemmlab.sum(x, 1, out=x[:, 0])
    assert close(x[:, 0].cpu().numpy(), values, 1)
    with pytest.raises(UsageError, match=r"out has shape \(3,\); the result has \(200,\)"):
        gemmlab.sum(x, 1, out=torch.empty(3, device="cuda"))


def test_replays_of_a_graph_beside_sums_on_its_stream() -> None:
    """Both meet in tickets: a graph has its own."""
    torch = pytest.importorskip("torch")
    x, other = torch.rand(3_000_001, device="cuda"), torch.rand(1 << 22, 16, device="cuda")
    expected, columns = float(gemmlab.sum(x)), gemmlab.sum(other, 0).cpu().numpy()
    stream, beside = torch.cuda.Stream(), torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        gemmlab.sum(x), gemmlab.sum(other, 0)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        captured, captured_columns = gemmlab.sum(x), gemmlab.sum(other, 0)
    for _ in range(50):
        with torch.cuda.stream(beside):
            graph.replay()
        with torch.cuda.stream(stream):
            eager, eager_columns = gemmlab.sum(x), gemmlab.sum(other, 0)
        torch.cuda.synchronize()
        assert float(eager) == float(captured) == expected
        for each in (eager_columns, captured_columns):
            assert each.cpu().numpy().tobytes() == columns.tobytes()


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
