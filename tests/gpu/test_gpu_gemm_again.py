"""`gemmlab.gemm` on a GPU, calls like one before: streams, contexts, graphs, batches, and no wait in any of them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import UsageError

pytestmark = [pytest.mark.usefixtures("gpu"), pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def calls(torch: Any) -> dict[str, Callable[[], Any]]:
    """Ways to call it with operands whose elements are 2 and 3; all make a result of equal elements."""
    x, y = torch.full((96, 64), 2.0, device="cuda"), torch.full((64, 80), 3.0, device="cuda")
    many, out = torch.full((5, 96, 64), 2.0, device="cuda"), torch.zeros(96, 80, device="cuda")
    whole = torch.full((96, 80), 2.0 * 3 * 64, device="cuda")
    sums, columns = torch.zeros(96, 80, device="cuda"), torch.zeros(80, 96, device="cuda").t()
    return {
        "fresh": lambda: gemmlab.gemm(x, y),
        "scaled": lambda: gemmlab.gemm(x, y, alpha=0.5) * 2,
        "transposed": lambda: gemmlab.gemm(x, y.t(), trans_b=True),
        "out": lambda: gemmlab.gemm(x, y, out=out),
        "column-major out": lambda: gemmlab.gemm(x, y, out=columns),
        "added": lambda: gemmlab.gemm(x, y, alpha=2, beta=-1, c=torch.full((80,), 2.0 * 3 * 64, device="cuda")),
        "added whole": lambda: gemmlab.gemm(x, y, alpha=2, beta=-1, c=whole),
        "added to": lambda: gemmlab.gemm(x, y, alpha=2, beta=-1, c=sums, out=sums.fill_(2 * 3 * 64)),
        "batch by batch": lambda: gemmlab.gemm(many, y.expand(5, 64, 80).contiguous()),
        "batch by one": lambda: gemmlab.gemm(many, y),
        "by a vector": lambda: gemmlab.gemm(many, y[:, 0].contiguous()),
    }


NAMES = (
    "fresh", "scaled", "transposed", "out", "column-major out", "added", "added whole", "added to",
    "batch by batch", "batch by one", "by a vector",
)  # fmt: skip
ELEMENT = 2 * 3 * 64


@pytest.mark.parametrize("name", NAMES)
def test_again_and_again(torch: Any, name: str) -> None:
    call = calls(torch)[name]
    for _ in range(3):
        assert call().eq(ELEMENT).all()


@pytest.mark.parametrize("name", NAMES)
def test_on_another_stream_behind_what_is_queued_there(torch: Any, name: str) -> None:
    call = calls(torch)[name]
    call()
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        # The allocator's first block of a stream may be waited for.
        call()
        torch.cuda._sleep(200_000_000)
        found = call()
        assert not stream.query()
    stream.synchronize()
    assert found.eq(ELEMENT).all()


@pytest.mark.parametrize("name", NAMES)
def test_in_a_graph(torch: Any, name: str) -> None:
    """In the strictest mode of capture, which any wait and any allocation that is not torch's would end."""
    call = calls(torch)[name]
    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="global"):
        found = call()
    for _ in range(2):
        if name != "added to":
            found.zero_()
        graph.replay()
        torch.cuda.synchronize()
        assert found.eq(ELEMENT).all()


def test_a_product_in_a_graph_is_one_kernel_with_its_tickets(torch: Any) -> None:
    """A batch is one launch; one whose blocks share k sets its tickets to zero before."""
    from cuda.bindings import driver

    x, many = torch.ones(256, 256, device="cuda"), torch.ones(3, 256, 256, device="cuda")
    deep = torch.ones(64, 65536, device="cuda")
    try:
        graph = torch.cuda.CUDAGraph(keep_graph=True)
    except TypeError:
        pytest.skip("this torch does not show its graphs")
    for left, right, nodes in ((many, x, 1), (many, many, 1), (deep, deep.T, 2)):
        gemmlab.gemm(left, right)
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        with torch.cuda.graph(graph):
            gemmlab.gemm(left, right)
        status, _, count = driver.cuGraphGetNodes(driver.CUgraph(graph.raw_cuda_graph()))
        assert (int(status), int(count)) == (0, nodes)


def test_a_thread_in_which_no_context_is_current(torch: Any) -> None:
    from cuda.bindings import driver

    x = torch.ones(64, 64, device="cuda")
    out = gemmlab.gemm(x, x)
    gemmlab.gemm(x, x, out=out)
    seen = list[Any]()

    def work() -> None:
        before = int(driver.cuCtxGetCurrent()[1])
        found = gemmlab.gemm(x, x, out=out)
        seen.append((before == int(driver.cuCtxGetCurrent()[1]), bool(found.eq(64).all())))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(True, True)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_is_told_and_the_parent_goes_on(torch: Any) -> None:
    x, out = torch.ones(64, 64, device="cuda"), torch.zeros(64, 64, device="cuda")
    gemmlab.gemm(x, x, out=out)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        said = "nothing"
        try:
            gemmlab.gemm(x, x, out=out)
        except gemmlab.DeviceError as error:
            said = str(error)
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert "a forked process cannot use a GPU" in pipe.read()
    os.waitpid(child, 0)
    assert gemmlab.gemm(x, x).eq(64).all()


def test_an_out_that_overlaps_is_refused_again(torch: Any) -> None:
    room = torch.ones(300, 100, device="cuda")
    square = torch.ones(100, 100, device="cuda")
    for _ in range(2):
        assert gemmlab.gemm(room[:100], square, out=room[200:]).eq(100).all()
        with pytest.raises(UsageError, match="out shares memory with a"):
            gemmlab.gemm(room[:100], square, out=room[50:150])


def test_memory_of_the_host_does_not_grow(torch: Any) -> None:
    import resource

    x, many = torch.ones(32, 32, device="cuda"), torch.ones(4, 32, 32, device="cuda")

    def most_kib_after(rounds: int) -> int:
        for index in range(rounds):
            gemmlab.gemm(x, x)
            if not index % 10:
                gemmlab.gemm(many, many)
        torch.cuda.synchronize()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    first = most_kib_after(2_000)
    assert most_kib_after(50_000) - first < 8 << 10


def test_cupy_again_on_streams_and_in_a_graph() -> None:
    cupy = pytest.importorskip("cupy")
    x, out = cupy.ones((64, 64), cupy.float32), cupy.zeros((64, 64), cupy.float32)
    for _ in range(2):
        assert bool((gemmlab.gemm(x, x) == 64).all())
        assert bool((gemmlab.gemm(x, x, out=out) == 64).all())
    with cupy.cuda.Stream(non_blocking=True) as stream:
        gemmlab.gemm(x, x, out=out)
        stream.begin_capture()
        gemmlab.gemm(x, x, out=out)
        graph = stream.end_capture()
        x.fill(2)
        graph.launch(stream)
        stream.synchronize()
    assert bool((out == 4 * 64).all())


def test_a_result_of_ours_goes_to_others_by_dlpack(torch: Any) -> None:
    from support.gpu_arrays import OnlyDlpack

    x = torch.full((64, 64), 2.0, device="cuda")
    ours = gemmlab.gemm(OnlyDlpack(x), OnlyDlpack(x))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        assert torch.from_dlpack(ours).eq(256).all()
    cupy = pytest.importorskip("cupy")
    assert bool((cupy.from_dlpack(ours) == 256).all())


def test_numba_in_and_out() -> None:
    cuda = pytest.importorskip("numba.cuda")
    x, stream = cuda.to_device(np.full((64, 64), 2, np.float32)), cuda.stream()
    first = gemmlab.gemm(x, x).copy_to_host()
    y = cuda.to_device(np.full((64, 64), 3, np.float32), stream=stream)
    found = gemmlab.gemm(gemmlab.gemm(y, y), y)
    second = found.copy_to_host()
    cuda.synchronize()
    assert type(found) is type(x)
    assert np.all(first == 256)
    assert np.all(second == 64 * 3 * 64 * 9)


def test_jax_in_and_out() -> None:
    """Operands that JAX is still making and that nobody keeps; what it makes of the result. All are powers of two."""
    jax = pytest.importorskip("jax")
    numpy = pytest.importorskip("jax.numpy")
    x = numpy.ones((512, 512), numpy.float32)
    if "cuda" not in str(x.device):
        pytest.skip("this JAX has no GPU")
    made = jax.jit(lambda v: (v @ v) / 512)
    for k in (1, 2, 4, 8) * 5:
        found = gemmlab.gemm(made(x * k), made(x))
        assert isinstance(found, jax.Array)
        assert np.all(np.asarray(made(found)) == np.float32((512 * k * k) ** 2))
