"""`gemmlab.gemm` of arrays on a GPU: their package's result, its stream, layouts in place, beyond 2^31."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gemmlab
from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.dispatch import regions
from gemmlab.dispatch.regions import workspace_of
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm_problem import GemmProblem
from support.gpu_arrays import OnlyDlpack

pytestmark = [pytest.mark.usefixtures("gpu"), pytest.mark.filterwarnings("ignore")]
RNG = np.random.default_rng(13)
SHAPES = (
    (1, 1, 1),
    (5, 7, 3),
    (64, 64, 64),
    (129, 200, 77),
    (512, 512, 512),
    (1000, 3, 2000),
    (3, 1000, 2000),
    (300, 300, 0),
)


def uniform(*shape: int) -> npt.NDArray[np.float32]:
    return RNG.random(shape, dtype=np.float32) - np.float32(0.5)


def close(found: Any, a: Any, b: Any, alpha: float = 1.0, added: Any = 0.0, digits: float = 2.0**-24) -> None:
    """By the elementwise bound of the contract, or with inputs of fewer digits."""
    left, right = np.asarray(a, np.float64), np.asarray(b, np.float64)
    bound = (left.shape[-1] + 4) * 2.0**-24 + (2.0**-9 if digits > 2.0**-24 else 0.0)
    magnitude = abs(alpha) * (np.abs(left) @ np.abs(right)) + np.abs(added)
    assert np.all(np.abs(np.asarray(found, np.float64) - (alpha * (left @ right) + added)) <= bound * magnitude + 1e-30)


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_torch_in_and_out(m: int, n: int, k: int) -> None:
    torch = pytest.importorskip("torch")
    a, b = uniform(m, k), uniform(k, n)
    x, y = torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()
    found = gemmlab.gemm(x, y)
    assert (type(found), found.dtype, tuple(found.shape), found.device) == (
        torch.Tensor,
        torch.float32,
        (m, n),
        x.device,
    )
    close(found.cpu().numpy(), a, b)


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_cupy_in_and_out(m: int, n: int, k: int) -> None:
    cupy = pytest.importorskip("cupy")
    a, b = uniform(m, k), uniform(k, n)
    found = gemmlab.gemm(cupy.asarray(a), cupy.asarray(b))
    assert (type(found), found.dtype, found.shape) == (cupy.ndarray, np.float32, (m, n))
    close(cupy.asnumpy(found), a, b)


def forms(torch: Any, values: npt.NDArray[np.float32]) -> list[Any]:
    """One matrix as it may lie in memory: rows, columns, part of wider rows off 16 bytes, and gaps that need a copy."""
    m, n = values.shape
    x = torch.from_numpy(values).cuda()
    wide = torch.full((m, n + 5), float("nan"), device="cuda")
    wide[:, 1 : n + 1] = x
    gaps = torch.full((m, 2 * n), float("nan"), device="cuda")
    gaps[:, ::2] = x
    return [x, x.t().contiguous().t(), wide[:, 1 : n + 1], gaps[:, ::2]]


def test_any_layout() -> None:
    torch = pytest.importorskip("torch")
    a, b, c = uniform(150, 70), uniform(70, 130), uniform(150, 130)
    for x in forms(torch, a):
        for y in forms(torch, b):
            close(gemmlab.gemm(x, y).cpu().numpy(), a, b)
            close(gemmlab.gemm(x.t(), y.t(), trans_a=True, trans_b=True).cpu().numpy(), a, b)
        for out in forms(torch, c)[:3]:
            result = gemmlab.gemm(x, forms(torch, b)[0], alpha=0.5, beta=2, c=out, out=out)
            assert result is out
            close(out.cpu().numpy(), a, b, alpha=0.5, added=2.0 * c)


def test_padding_of_a_result_survives() -> None:
    torch = pytest.importorskip("torch")
    x, wide = torch.ones(40, 40, device="cuda"), torch.full((40, 50), 7.0, device="cuda")
    gemmlab.gemm(x, x, out=wide[:, 3:43])
    assert wide[:, 3:43].eq(40).all()
    assert wide[:, :3].eq(7).all()
    assert wide[:, 43:].eq(7).all()


def test_batches_and_vectors() -> None:
    torch = pytest.importorskip("torch")
    for left, right in (((3, 20, 30), (30, 10)), ((20, 30), (4, 30, 10)), ((2, 1, 20, 30), (3, 30, 10)), ((30,), (30,)),
                        ((20, 30), (30,)), ((30,), (5, 30, 10)), ((0, 20, 30), (30, 10))):  # fmt: skip
        x, y = torch.rand(left, device="cuda"), torch.rand(right, device="cuda")
        found = gemmlab.gemm(x, y)
        expected = torch.matmul(x.double(), y.double())
        assert found.shape == expected.shape
        assert torch.allclose(found.double(), expected, rtol=1e-5)
    c = torch.rand(10, device="cuda")
    found = gemmlab.gemm(x := torch.rand(20, 30, device="cuda"), y := torch.rand(30, 10, device="cuda"), beta=3, c=c)
    assert torch.allclose(found.double(), x.double() @ y.double() + 3 * c.double(), rtol=1e-5)


def test_every_kernel_that_can_be_forced() -> None:
    torch = pytest.importorskip("torch")
    from gemmlab.kernels.catalog import ladder

    a, b = uniform(200, 100), uniform(100, 152)
    x, y = torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()
    for kernel in ladder("gemm", "cuda"):
        found = gemmlab.gemm(x, y, kernel=kernel.id, precision="tf32").cpu().numpy()
        close(found, a, b, digits=2.0**-11 if kernel.precision == "tf32" else 2.0**-24)


def test_tf32_only_when_asked_for() -> None:
    torch = pytest.importorskip("torch")
    a = uniform(2048, 2048)
    x = torch.from_numpy(a).cuda()
    close(gemmlab.gemm(x, x).cpu().numpy(), a, a)
    close(gemmlab.gemm(x, x, precision="tf32").cpu().numpy(), a, a, digits=2.0**-11)
    assert gemmlab.explain_choice(x, x).considered[0].precision == "float32"


@pytest.mark.parametrize("off", [0, 1, 4])
def test_rows_off_16_bytes_at_other_addresses(off: int) -> None:
    """The second call has the plan of the first; operands that begin off 16 bytes have another."""
    torch = pytest.importorskip("torch")
    for m, n, k in ((523, 333, 701), (523, 333, 701), (1030, 515, 66)):
        x, y = (torch.randn(off + rows * cols, device="cuda")[off:].view(rows, cols) for rows, cols in ((m, k), (k, n)))
        found = gemmlab.gemm(x, y, precision="tf32").cpu().numpy()
        close(found, x.cpu().numpy(), y.cpu().numpy(), digits=2.0**-11)


def test_what_explain_choice_says_here() -> None:
    torch = pytest.importorskip("torch")
    x = torch.zeros(4096, 4096, device="cuda")
    found = gemmlab.explain_choice(x, x)
    assert found.where == torch.cuda.get_device_name(0)
    if "H200" in found.where:
        assert found.basis == "record"


def test_it_is_queued_behind_what_makes_its_input_and_nothing_is_waited_for() -> None:
    torch = pytest.importorskip("torch")
    x = torch.zeros(512, 512, device="cuda")
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        # The first on a stream takes memory for its results, and may take its time.
        gemmlab.gemm(x, x)
        stream.synchronize()
        torch.cuda._sleep(200_000_000)
        x.fill_(1)
        found = gemmlab.gemm(x, x)
        assert not stream.query()
    stream.synchronize()
    assert found.eq(512).all()


def test_cupy_on_a_stream_of_its_own() -> None:
    cupy = pytest.importorskip("cupy")
    x = cupy.zeros((256, 256), cupy.float32)
    gemmlab.gemm(x, x)
    cupy.cuda.get_current_stream().synchronize()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        x.fill(1)
        found = gemmlab.gemm(x, x)
        stream.synchronize()
        assert bool((found == 256).all())


def test_an_array_that_only_speaks_dlpack() -> None:
    torch, cupy = pytest.importorskip("torch"), pytest.importorskip("cupy")

    x = torch.ones(64, 64, device="cuda")
    assert bool((cupy.asarray(gemmlab.gemm(OnlyDlpack(x), OnlyDlpack(x))) == 64).all())


def test_many_streams_and_threads_at_once() -> None:
    torch = pytest.importorskip("torch")
    arrays = [torch.full((300, 300), float(k), device="cuda") for k in range(1, 9)]
    torch.cuda.synchronize()
    wrong: list[int] = []

    def work(index: int) -> None:
        x, stream = arrays[index], torch.cuda.Stream()
        with torch.cuda.stream(stream):
            results = [gemmlab.gemm(x, x) for _ in range(100)]
        stream.synchronize()
        wrong.extend(index for result in results if not result.eq(300.0 * (index + 1) ** 2).all())

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(arrays))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_gradients_are_not_lost_in_silence() -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(8, 8, device="cuda", requires_grad=True)
    with pytest.raises(ArgumentTypeError, match="grad"):
        gemmlab.gemm(x, x)
    assert gemmlab.gemm(x.detach(), x.detach()).eq(8).all()


def test_errors_leave_everything_usable() -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(8, 8, device="cuda")
    for options, error in (
        ({"out": x}, UsageError), ({"kernel": "nobody"}, UsageError), ({"threads": 2}, UsageError),
        ({"kernel": "wmma_tf32"}, UsageError), ({"out": np.ones((8, 8), np.float32)}, ArgumentTypeError),
    ):  # fmt: skip
        with pytest.raises(error):
            gemmlab.gemm(x, x, **options)
    with pytest.raises(ArgumentTypeError, match="lies on no GPU"):
        gemmlab.gemm(x, np.ones((8, 8), np.float32))
    assert gemmlab.gemm(x, x).eq(8).all()


def test_tensors_of_the_host_stay_there_and_do_not_mix() -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(8, 8, device="cuda")
    assert gemmlab.gemm(x, x).is_cuda
    for host in (x.cpu(), x.cpu().pin_memory()):
        found = gemmlab.gemm(host, host)
        assert not found.is_cuda
        assert found.eq(8).all()
        for a, b, options in ((x, host, {}), (host, x, {}), (host, host, {"out": x}), (x, x, {"out": host})):
            with pytest.raises(ArgumentTypeError, match="lies on no GPU"):
                gemmlab.gemm(a, b, **options)
    with pytest.raises(ArgumentTypeError, match=r"a is numpy\.ndarray and out is torch\.Tensor on a GPU"):
        gemmlab.gemm(np.ones((8, 8), np.float32), np.ones((8, 8), np.float32), out=x)


def test_arrays_of_jax_never_change() -> None:
    jax, numpy = pytest.importorskip("jax"), pytest.importorskip("jax.numpy")
    if jax.default_backend() not in ("cuda", "gpu"):
        pytest.skip("this JAX has no GPU")
    x = numpy.ones((8, 8))
    with pytest.raises(TypeError, match=r"out, a .* on a GPU, is read-only"):
        gemmlab.gemm(x, x, out=numpy.zeros((8, 8)))


def test_operands_on_two_gpus_are_refused() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    with pytest.raises(gemmlab.DeviceError, match="one GPU is needed"):
        gemmlab.gemm(torch.ones(8, 8, device="cuda:0"), torch.ones(8, 8, device="cuda:1"))
    x = torch.ones(8, 8, device="cuda:1")
    assert gemmlab.gemm(x, x).eq(8).all()


def test_beyond_two_to_the_31_elements() -> None:
    """Each element of the left matrix tells its row; the last ones lie past the reach of 32 bits."""
    torch = pytest.importorskip("torch")
    m, k, n = (1 << 20) + 3, 2050, 32
    if torch.cuda.mem_get_info()[0] < 4 * (m * k + m * n) + (1 << 30):
        pytest.skip("too little GPU memory is free")
    rows = (torch.arange(m, device="cuda") % 251).float()
    x, y = rows[:, None].expand(m, k).contiguous(), torch.ones(k, n, device="cuda")
    found = gemmlab.gemm(x, y)
    assert found.eq((rows * k)[:, None]).all()
    del x, found
    # Others may run beside.
    torch.cuda.empty_cache()


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("beta", [0.0, 1.5])
def test_regions_give_the_bits_of_one_piece(monkeypatch: pytest.MonkeyPatch, layout: str, beta: float) -> None:
    """1000 x 900 in regions of 512 x 512 and smaller, two slices of k; one row holds a NaN."""
    torch = pytest.importorskip("torch")
    a, b = torch.randn(1000, 700, device="cuda"), torch.randn(700, 900, device="cuda")
    a[600, 5], added = torch.nan, torch.randn(1000, 900, device="cuda")
    left, right = (x.t().contiguous() if turn == "t" else x for x, turn in zip((a, b), layout, strict=True))
    how: dict[str, Any] = {
        "trans_a": layout[0] == "t", "trans_b": layout[1] == "t", "precision": "float32", "kernel": "by_tile",
    }  # fmt: skip
    onto: dict[str, Any] = {"beta": beta, "c": added if beta else None}
    whole = gemmlab.gemm(left, right, config={"SLICE": 512}, **how, **onto)
    kernel = find_kernel("by_tile")
    config = kernel.configure({"SLICE": 512})
    monkeypatch.setattr(regions, "MOST_BYTES", workspace_of(kernel, config, GemmProblem(512, 512, 700)))
    # Another configuration of equal meaning, so that the plan is not the stored one.
    cut = gemmlab.gemm(left, right, config={"SLICE": 512, "BLOCKS": 131}, **how, **onto)
    assert gemmlab.explain_choice(left, right, config={"SLICE": 512, "BLOCKS": 131}, **how).regions is not None
    assert torch.equal(whole.view(torch.int32), cut.view(torch.int32))
