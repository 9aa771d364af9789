"""How products are handed to libraries on a GPU: with stand-ins that compute here, as there is no GPU.

Every layout, leading dimensions beyond the row, batches with strides and with a matrix that all products share.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import PeerError
from gemmlab.ops.catalog import find_op
from gemmlab.timing.contestants import cublas, cublaslt, gpu_arrays
from gemmlab.timing.contestants.contestant import Contestant, UnsupportedError, Work
from gemmlab.timing.contestants.cpu_library import LibraryCall, NumpyCall
from gemmlab.timing.contestants.cublaslt import CublasLtCall
from gemmlab.timing.contestants.from_spec import make_contestant
from gemmlab.timing.contestants.gpu_arrays import BareArrays, installed_arrays
from gemmlab.timing.contestants.gpu_library import CublasCall, CupyCall, GpuCall, Library, LibraryOnGpu, TorchCall
from gemmlab.timing.contestants.gpu_reductions import FreshResult
from gemmlab.timing.contestants.places import stored
from gemmlab.verify.elementwise import compare
from support.column_major import FakeCublas, FakeCublasLt
from support.small_products import BATCHES, LAYOUTS, Device, K, M, Memory, N, any_device, product, result


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """torch and CuPy, on NumPy."""

    def strided(words: Any, shape: Any, strides: Any) -> Any:
        return np.lib.stride_tricks.as_strided(words, shape, strides)

    def added(c: Any, a: Any, b: Any, *, beta: float, alpha: float, out: Any) -> None:
        assert out is c
        out[...] = alpha * (a @ b) + beta * c

    def of_rank(rank: int, call: Any) -> Any:
        def checked(*operands: Any, **options: Any) -> Any:
            assert all(x.ndim == rank for x in operands)
            return call(*operands, **options)

        return checked

    switch = SimpleNamespace(allow_tf32=None)
    torch: Any = SimpleNamespace(
        cuda=SimpleNamespace(
            set_device=lambda _n: None, set_stream=lambda s: setattr(torch, "stream", s),
            ExternalStream=lambda handle, device: (handle, device),
        ),
        backends=SimpleNamespace(cuda=SimpleNamespace(matmul=switch)), float32=np.float32, __version__="2",
        version=SimpleNamespace(cuda="13"), as_tensor=lambda buffer, **_where: buffer.values,
        as_strided=lambda words, shape, strides, first: strided(words[first:], shape, tuple(4 * s for s in strides)),
        mm=of_rank(2, np.matmul), bmm=of_rank(3, np.matmul), matmul=lambda a, b: a @ b, addmm=of_rank(2, added),
        baddbmm=of_rank(3, added), stream=None,
    )  # fmt: skip
    cupy: Any = SimpleNamespace(
        cuda=SimpleNamespace(
            Device=lambda _n: SimpleNamespace(use=lambda: None),
            ExternalStream=lambda *given: SimpleNamespace(use=lambda: setattr(cupy, "stream", given)),
        ),
        asarray=lambda buffer: buffer.values, float32=np.float32, matmul=np.matmul,
        lib=SimpleNamespace(stride_tricks=SimpleNamespace(as_strided=strided)), stream=None,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    return SimpleNamespace(torch=torch, cupy=cupy)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_library_computes_every_place(
    layout: str, batch: tuple[str, int] | None, played: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    lt = FakeCublasLt()
    monkeypatch.setattr(ctypes, "CDLL", lambda path, **_options: lt if "Lt" in path else FakeCublas())
    libraries: list[Library] = [
        TorchCall(any_device()), CupyCall(any_device()), CublasCall("libcublas.so", any_device()),
        CublasLtCall("libcublasLt.so", any_device(lt)),
    ]  # fmt: skip
    assert played.torch.stream == (9, 0)
    assert played.cupy.stream == (9, 0)
    for library in libraries:
        work, buffers, expected = product(layout, batch)
        before = work.flat["c"].copy()
        call = library.prepare(work, buffers)
        call()
        if isinstance(call, FreshResult):
            call.deliver()
        np.testing.assert_allclose(result(work), expected, rtol=1e-5)
        result(work)[...] = 0
        changed = before != work.flat["c"]
        assert changed.sum() == expected.size, "nothing between rows and matrices is written"


@pytest.mark.usefixtures("played")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_group_is_one_call_or_a_loop(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    op = find_op("group")
    (problem,) = op.parse_sizes(f"2*5/9/1x7/3/8x4/6/2:{layout}:ld+1")
    contents = op.fill(problem, np.random.default_rng(1))
    expected = op.reference(problem, contents)["c"]
    monkeypatch.setattr(ctypes, "CDLL", lambda _path, **_options: FakeCublas())
    groups: list[int] = []

    def group(a: Any, b: Any, *, out: Any, trans_a: bool = False, trans_b: bool = False, **_rest: Any) -> None:
        groups.append(len(a))
        for x, y, z in zip(a, b, out, strict=True):
            z[...] = (x.T if trans_a else x) @ (y.T if trans_b else y)

    monkeypatch.setattr(gemmlab, "gemm_group", group, raising=False)
    monkeypatch.setattr(gpu_arrays, "find_spec", lambda name: name if name == "cupy" else None)
    libraries: list[Any] = [
        TorchCall(any_device()), CupyCall(any_device()), CublasCall("libcublas.so", any_device()),
        LibraryOnGpu(any_device()), LibraryCall(), NumpyCall(),
    ]  # fmt: skip
    for library in libraries:
        flat = {name: values[0].copy() for name, values in contents.items()}
        work = Work("group", problem.to_json(), op.flops(problem), op.scalars(problem), flat, {}, 1)
        buffers: Any = {name: Memory(values) for name, values in flat.items()}
        host = isinstance(library, LibraryCall | NumpyCall)
        (library.prepare(work).run if host else library.prepare(work, buffers))()
        assert compare("c", flat["c"][np.newaxis], expected, 6).mismatch is None, library
    assert groups == [6, 6]


@pytest.mark.parametrize("batch", [None, ("", 3)])
def test_scalars_reach_the_libraries_that_have_them(
    batch: tuple[str, int] | None, played: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _path, **_options: FakeCublas())
    libraries: list[Library] = [TorchCall(any_device()), CublasCall("libcublas.so", any_device())]
    for library in libraries:
        work, buffers, expected = product("nt", batch, 0.5, -2.0)
        library.prepare(work, buffers)()
        np.testing.assert_allclose(result(work), expected, rtol=1e-5)
    work, buffers, _ = product("nn", batch, 0.5)
    with pytest.raises(UnsupportedError, match="no alpha and beta"):
        CupyCall(any_device()).prepare(work, buffers)
    assert played.torch.backends.cuda.matmul.allow_tf32 is False


@pytest.mark.usefixtures("played")
def test_torch_has_no_scalars_for_a_matrix_that_all_products_share() -> None:
    work, buffers, _ = product("nn", ("b", 3), 0.5)
    with pytest.raises(UnsupportedError, match="baddbmm has no matrix that all products share"):
        TorchCall(any_device()).prepare(work, buffers)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_cpu_computes_batches_too(layout: str, batch: tuple[str, int] | None) -> None:
    contestants: list[Contestant] = [NumpyCall(), LibraryCall()]
    for contestant in contestants:
        work, _, expected = product(layout, batch)
        contestant.prepare(work).run()
        np.testing.assert_allclose(result(work), expected, rtol=1e-5)


def test_the_fastest_usable_algorithm_is_timed_and_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    lt = FakeCublasLt()
    monkeypatch.setattr(ctypes, "CDLL", lambda _path: lt)
    device = any_device(lt)
    contestant = CublasLtCall("/somewhere/libcublasLt.so.13", device)
    work, buffers, _ = product("nn", None)
    call = contestant.prepare(work, buffers)
    assert lt.ran == [0, 0, 1, 1, 3]  # each one first untimed; the last one fails
    assert device.timed == [1, 5, 1, 5]
    call()
    assert lt.ran[-1] == 1
    again = contestant.prepare(work, buffers)
    again()
    assert (lt.asked, lt.ran[-1], len(lt.ran)) == (1, 1, 7)
    facts = contestant.facts()
    assert (facts["heuristic"], facts["heuristics"], facts["version"]) == (2, 3, "13.1.2")
    assert {"compute": 68, "scale": 0, 3: 0, 4: 0} in lt.things


def test_a_long_algorithm_is_timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lt = FakeCublasLt()
    monkeypatch.setattr(ctypes, "CDLL", lambda _path: lt)
    monkeypatch.setattr(Device, "us", {0: cublaslt.LONG_US, 1: 2 * cublaslt.LONG_US})
    device = any_device(lt)
    work, buffers, _ = product("nn", None)
    CublasLtCall("libcublasLt.so", device).prepare(work, buffers)()
    assert device.timed == [1, 1]
    assert lt.ran == [0, 1, 3, 0]


def test_extents_beyond_32_bits_are_refused() -> None:
    work, _, _ = product("nn", None)
    work = Work("gemm", {}, 1, {**work.scalars, "ldb": 2**31}, {}, {}, 1)
    with pytest.raises(UnsupportedError, match="an extent is above 2147483647"):
        cublas.require_int32_extents(work)


def test_an_algorithm_is_not_chosen_by_adding_to_the_result_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _path: FakeCublasLt())
    work, buffers, _ = product("nn", None, 1.0, 1.0)
    with pytest.raises(UnsupportedError, match="beta 0 only"):
        CublasLtCall("libcublasLt.so", any_device()).prepare(work, buffers)


def test_a_missing_library_is_named() -> None:
    with pytest.raises(PeerError, match=r"libnosuch\.so does not load"):
        CublasLtCall("/nowhere/libnosuch.so", any_device())


@pytest.mark.parametrize("batch", BATCHES)
def test_the_library_call_gets_arrays_as_they_are_stored(
    batch: tuple[str, int] | None, played: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[Any, Any, dict[str, Any]]] = []
    monkeypatch.setattr(gemmlab, "gemm", lambda a, b, **options: calls.append((a, b, options)), raising=False)
    monkeypatch.setattr(gpu_arrays, "find_spec", lambda name: name if name == "torch" else None)
    library = LibraryOnGpu(any_device())
    work, buffers, expected = product("tn", batch)
    library.prepare(work, buffers)()
    a, b, options = calls[0]
    assert options.keys() == {"out", "trans_a"}
    np.testing.assert_allclose(a.swapaxes(-1, -2) @ b, expected if batch else expected[0], rtol=1e-5)
    assert options["out"].shape == ((batch[1], M, N) if batch else (M, N))
    assert library.facts()["arrays"] == "torch"
    assert played.torch.stream == (9, 0)
    work, buffers, _ = product("nn", batch, 0.5, 2.0)
    library.prepare(work, buffers)()
    options = calls[1][2]
    assert options["c"] is options["out"]
    assert (options["alpha"], options["beta"]) == (0.5, 2.0)
    # A kernel's precision is handed on as the request that it is the lowest for.
    for precision, request, named in (("tf32", "tf32", "float32, TF32"), ("by_tile", "float32", "by_tile")):
        lower = LibraryOnGpu(any_device(), precision=precision)
        lower.prepare(work, buffers)()
        assert calls[-1][2]["precision"] == request
        assert lower.facts()["core_type"] == named
    LibraryOnGpu(any_device(), reproducible=True).prepare(work, buffers)()
    assert calls[-1][2]["reproducible"] is True


def test_arrays_are_those_of_an_installed_package(played: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    for installed, name in ((("torch", "cupy"), "torch"), (("cupy",), "cupy"), ((), "__cuda_array_interface__")):
        monkeypatch.setattr(gpu_arrays, "find_spec", lambda name, names=installed: name if name in names else None)
        assert installed_arrays(any_device()).name == name
    assert played.cupy.stream == (9, 0)


def test_a_bare_array_names_its_memory_and_our_stream() -> None:
    work, buffers, _ = product("nn", ("", 3))
    place = stored(work, "a")
    interface = BareArrays(any_device()).array(buffers["a"], place).__cuda_array_interface__
    assert interface["shape"] == (3, M, K)
    assert interface["strides"] == (4 * work.scalars["stride_a"], 4 * work.scalars["lda"], 4)
    assert (interface["stream"], interface["data"]) == (9, (buffers["a"].address, False))
    later = BareArrays(any_device()).array(buffers["a"], replace(place, first=3)).__cuda_array_interface__
    assert later["data"] == (buffers["a"].address + 12, False)


def test_the_library_call_on_a_gpu_is_a_contestant_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "gemmlab.timing.contestants.gpu_library"
    monkeypatch.setattr(f"{module}.open_device", lambda _device, _mode: any_device())
    monkeypatch.setattr(f"{module}.CudaDevice", Device)
    monkeypatch.setattr(gpu_arrays, "find_spec", lambda _name: None)
    contestant = make_contestant({"kind": "gemmlab", "device": "cuda:0", "mode": "cold"})
    assert isinstance(contestant, GpuCall)
    assert contestant.facts()["device"] == "cuda:0"
    assert isinstance(make_contestant({"kind": "gemmlab", "device": "cpu"}), LibraryCall)
