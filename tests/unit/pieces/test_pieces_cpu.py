"""Products in pieces on a CPU: the bits of one piece, whatever the pieces, the layouts and the kind of arrays."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gemmlab
from gemmlab.core.errors import UsageError
from gemmlab.kernels.catalog import all_kernels
from gemmlab.pieces import large_product
from support.amx_model import needs_tiles
from support.least_pieces import smallest
from support.stores import DecodingStore, Store

Float32Array = npt.NDArray[np.float32]
RNG = np.random.default_rng(29)


def uniform(*shape: int) -> Float32Array:
    return RNG.random(shape, dtype=np.float32) - np.float32(0.5)


def least(m: int, n: int, k: int, **how: Any) -> int:
    return least_of((m, k), (k, n), **how)


def least_of(a: Any, b: Any, **how: Any) -> int:
    plan = gemmlab.explain_choice(a, b, device="cpu", memory_bytes=1 << 40, **how).pieces
    assert plan is not None
    return plan.least_bytes


def same_bits(found: Any, expected: Float32Array) -> None:
    assert np.array_equal(np.asarray(found).view(np.uint32), expected.view(np.uint32))


@settings(max_examples=40, deadline=None)
@given(
    extents=st.tuples(st.integers(0, 420), st.integers(0, 300), st.integers(0, 90)), share=st.floats(0, 1),
    factors=st.sampled_from([(1.0, 0.0), (0.5, 0.0), (1.0, 1.0), (-2.0, 0.25), (0.0, 2.0)]),
    forms=st.tuples(*[st.sampled_from(["rows", "columns", "part", "gaps"])] * 3), reproducible=st.booleans(),
    stored=st.sampled_from(["array", "store"]),
)  # fmt: skip
def test_pieces_have_the_bits_of_one_piece(
    extents: tuple[int, int, int], share: float, factors: tuple[float, float], forms: tuple[str, str, str],
    *, reproducible: bool, stored: str,
) -> None:  # fmt: skip
    m, n, k = extents
    alpha, beta = factors
    a, b, c = (form(uniform(*shape), how) for shape, how in zip(((m, k), (k, n), (m, n)), forms, strict=True))
    if stored == "store":
        a, b, c = (np.ascontiguousarray(x) for x in (a, b, c))
    how: dict[str, Any] = {"alpha": alpha, "beta": beta, "reproducible": reproducible}
    expected = gemmlab.gemm(a, b, c=c, **how)
    low = least_of(a, b, reproducible=reproducible)
    allowed = max(1, int(low + share * 4 * (m * k + k * n + m * n)))
    out = np.full((m, n), np.nan, np.float32)
    wrap = Store if stored == "store" else lambda x: x
    found = gemmlab.gemm(wrap(a), wrap(b), c=wrap(c), out=out, memory_bytes=allowed, **how)
    assert found is out
    same_bits(out, expected)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("m", [1, 2, 500])
def test_pieces_of_a_reproducible_column_have_the_bits_of_one_piece(m: int, order: Any) -> None:
    a, b = np.array(uniform(m, 900), order=order), uniform(900, 1)
    expected = gemmlab.gemm(a, b, reproducible=True)
    allowed = least(m, 1, 900, reproducible=True)
    same_bits(gemmlab.gemm(a, b, memory_bytes=allowed, reproducible=True), expected)


def form(x: Float32Array, how: str) -> Float32Array:
    m, n = x.shape
    if how == "columns":
        return np.asfortranarray(x)
    wide = np.full((m, 2 * n + 3), np.nan, np.float32)
    place = wide[:, 2 : n + 2] if how == "part" else wide[:, : 2 * n : 2]
    if how == "rows":
        return x
    place[...] = x
    return place


@pytest.mark.in_turns(20)
def test_each_kernel_of_the_cpu_has_the_bits_of_one_piece() -> None:
    a, b = uniform(200, 1500), uniform(1500, 150)
    for kernel in all_kernels():
        if kernel.op == "gemm" and kernel.device == "cpu" and not kernel.unavailable():
            how: dict[str, Any] = {"kernel": kernel.id, "precision": "tf32"}
            found = gemmlab.gemm(a, b, memory_bytes=least(200, 150, 1500), **how)
            same_bits(found, gemmlab.gemm(a, b, **how))


@needs_tiles
@pytest.mark.sampled(2)
@pytest.mark.parametrize("precision", ["float32", "bf16x3", "bf16x6", "bf16x9"])
@pytest.mark.parametrize("extents", [(600, 700, 300), (257, 900, 500), (130, 900, 300), (1, 700, 300), (700, 1, 300)])
def test_tiles_have_the_bits_of_one_piece(
    extents: tuple[int, int, int], precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some blocks have numbers that parts do not hold, and are computed by multiply-adds."""
    monkeypatch.setattr(large_product, "cut", smallest)
    m, n, k = extents
    a, b, c = uniform(m, k), uniform(k, n), uniform(m, n)
    a[m // 3] *= np.float32(1e-38)
    b[:, -1] *= np.float32(2.0**100)
    a[-1, 2], a[m // 2, 1] = 1e-40, np.inf
    how: dict[str, Any] = {"c": c, "alpha": 1.5, "beta": 0.25, "precision": precision}
    counts: list[int] = []
    found = gemmlab.gemm(a, b, memory_bytes=1 << 30, progress=lambda _done, count: counts.append(count), **how)
    assert counts[-1] > 1
    expected = gemmlab.gemm(a, b, **how)
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    same_bits(np.nan_to_num(found), np.nan_to_num(expected))


def test_a_file_larger_than_the_memory_allowed(tmp_path: Path) -> None:
    m, n, k = 1000, 900, 700
    files: dict[str, Any] = {name: np.memmap(tmp_path / name, np.float32, "w+", shape=shape)
             for name, shape in (("a", (m, k)), ("b", (k, n)), ("out", (m, n)))}  # fmt: skip
    files["a"][:], files["b"][:] = uniform(m, k), uniform(k, n)
    plan = gemmlab.explain_choice(files["a"], files["b"], device="cpu", memory_bytes=2_000_000).pieces
    assert plan is not None
    assert plan.least_bytes < plan.device_bytes <= 2_000_000 < files["a"].nbytes
    seen: list[tuple[int, int]] = []
    gemmlab.gemm(**files, memory_bytes=2_000_000, progress=lambda *now: seen.append(now))
    assert seen == [(done, plan.count) for done in sorted({now for now, _ in seen})]
    assert seen[-1] == (plan.count, plan.count)
    same_bits(files["out"], gemmlab.gemm(np.asarray(files["a"]), np.asarray(files["b"])))


def test_no_more_than_the_plan_is_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    from gemmlab.pieces import cpu_carrier

    taken: list[int] = []

    class Counted:
        def __getattr__(self, name: str) -> Any:
            return getattr(np, name)

        @staticmethod
        def zeros(shape: tuple[int, int], dtype: Any) -> Any:
            made = np.zeros(shape, dtype)
            taken.append(made.nbytes)
            return made

    monkeypatch.setattr(cpu_carrier, "np", Counted())
    a, b = Store(uniform(600, 400)), Store(uniform(400, 500))
    gemmlab.gemm(a, b, memory_bytes=900_000)
    assert 0 < sum(taken) <= 900_000
    plan = gemmlab.explain_choice((600, 400), (400, 500), device="cpu", memory_bytes=900_000).pieces
    assert plan is not None
    assert sum(taken) == plan.device_bytes
    assert 4 * sum(rows * cols for rows, cols in a.reads + b.reads) == plan.bytes_in


def traced(**call: Any) -> int:
    """Return the most bytes of arrays and Python objects that a product takes."""
    gc.collect()
    tracemalloc.start()
    try:
        gemmlab.gemm(**call)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("resumable", [False, True])
@pytest.mark.parametrize("chunks", [(100, 100), (300, 20), (512, 512), (900, 1000)])
def test_chunks_of_stores_are_within_the_memory_allowed(
    chunks: tuple[int, int], tmp_path: Path, *, resumable: bool
) -> None:
    a, b, c, out = (DecodingStore(uniform(1000, 1000), chunks) for _ in range(4))
    how: dict[str, Any] = {"a": a, "b": b, "c": c, "beta": 0.5, "out": out}
    journal: dict[str, Any] = {"checkpoint": tmp_path / "journal"} if resumable else {}
    with pytest.raises(UsageError, match=r"for pieces of [0-9]+ x [0-9]+ and [0-9,]+ for chunks of stores") as refused:
        gemmlab.gemm(**how, **journal, memory_bytes=1000)
    low = int(str(refused.value).split("at least ")[1].split(", for")[0].replace(",", ""))
    gemmlab.gemm(uniform(9, 9), uniform(9, 9), memory_bytes=1 << 20)
    for allowed in (low, 2 * low, 5 * low):
        (tmp_path / "journal").unlink(missing_ok=True)
        # Besides arrays, some objects of Python.
        assert traced(**how, **journal, memory_bytes=allowed) <= allowed + 300_000
    same_bits(out.values, gemmlab.gemm(a.values, b.values, c=c.values, beta=0.5))


@pytest.mark.in_turns(20)
def test_chunks_of_zarr_are_within_the_memory_allowed(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    n, allowed = 1500, 14 << 20
    a, b, out = (zarr.create_array(str(tmp_path / name), shape=(n, n), chunks=(500, 500), dtype="f4") for name in "abo")
    a[:], b[:] = uniform(n, n), uniform(n, n)
    gemmlab.gemm(a, b, out=out, memory_bytes=allowed)
    assert traced(a=a, b=b, out=out, memory_bytes=allowed) <= allowed + 500_000
    same_bits(out[:], gemmlab.gemm(a[:], b[:]))


def test_a_nan_and_an_infinity_are_data() -> None:
    a, b = uniform(300, 200), uniform(200, 250)
    a[5, 7], a[270, 1], b[3, 240] = np.nan, np.inf, -np.inf
    low = least(300, 250, 200)
    found = gemmlab.gemm(a, b, memory_bytes=low)
    expected = gemmlab.gemm(a, b)
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("how", [{}, {"device": "cpu"}, {"memory_bytes": 1 << 20}])
def test_a_call_in_pieces_is_one_after_a_plain_call_too(how: dict[str, Any]) -> None:
    """The compiled entry, which is there after the first call, knows of no pieces."""
    a, b = np.ones((30, 40), np.float32), np.ones((40, 20), np.float32)
    seen: list[tuple[int, int]] = []
    gemmlab.gemm(a, b)
    gemmlab.gemm(a, b, progress=lambda complete, every: seen.append((complete, every)), **how)
    assert seen[-1][0] == seen[-1][1] > 0
    with pytest.raises(UsageError, match="checkpoint"):
        gemmlab.gemm(a, b, checkpoint="/nowhere/at/all/file")


def test_c_may_be_the_result_itself() -> None:
    a, b, c = uniform(300, 60), uniform(60, 200), uniform(300, 200)
    expected = gemmlab.gemm(a, b, c=c, beta=0.5)
    assert gemmlab.gemm(a, b, c=c, beta=0.5, out=c, memory_bytes=least(300, 200, 60) + 100_000) is c
    same_bits(c, expected)


def test_chunks_are_read_whole() -> None:
    a = Store(uniform(96, 64), chunks=(16, 16))
    gemmlab.gemm(a, uniform(64, 40), memory_bytes=1 << 20)
    assert all(rows % 16 == 0 for rows, _ in a.reads)


def test_arrays_of_torch_give_one_of_torch() -> None:
    torch = pytest.importorskip("torch")
    a, b = torch.rand(100, 40), torch.rand(40, 90)
    found = gemmlab.gemm(a, b, memory_bytes=least(100, 90, 40))
    assert isinstance(found, torch.Tensor)
    same_bits(found.numpy(), gemmlab.gemm(a.numpy(), b.numpy()))


@pytest.mark.in_turns(20)
def test_arrays_of_zarr(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    a, b = uniform(200, 120), uniform(120, 150)
    stored = [zarr.create_array(str(tmp_path / name), shape=shape, chunks=(50, 30), dtype="f4")
              for name, shape in (("a", a.shape), ("b", b.shape), ("c", (200, 150)))]  # fmt: skip
    stored[0][:], stored[1][:] = a, b
    gemmlab.gemm(*stored[:2], out=stored[2], memory_bytes=least(200, 150, 120) + 50_000)
    same_bits(stored[2][:], gemmlab.gemm(a, b))
    with pytest.raises(UsageError, match="out is a; give it an array of its own"):
        gemmlab.gemm(zarr.open_array(str(tmp_path / "c")), uniform(150, 150), out=stored[2], memory_bytes=1 << 30)
