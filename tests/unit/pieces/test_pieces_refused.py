"""What a product in pieces refuses, before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gemmlab
from gemmlab.core.errors import ArgumentTypeError, DeviceError, GemmlabError, UsageError
from support.gpu_arrays import OnGpu
from support.stores import Hdf5Store, MemoryStore, PlacedStore, Store

Float32Array = npt.NDArray[np.float32]
A, B = np.ones((40, 30), np.float32), np.ones((30, 20), np.float32)


def out(shape: tuple[int, ...] = (40, 20), dtype: Any = np.float32) -> npt.NDArray[Any]:
    return np.full(shape, 7, dtype)


def read_only() -> npt.NDArray[Any]:
    made = out()
    made.flags.writeable = False
    return made


class NoStore:
    shape, dtype = (40, 20), np.dtype(np.float32)

    def __getitem__(self, _place: Any) -> None: ...


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        ({"out": out((20, 40))}, UsageError, r"out has shape \(20, 40\); the result has \(40, 20\)"),
        ({"out": out((20,))}, UsageError, "out has shape"),
        ({"out": Store(out((20, 40)))}, UsageError, r"out has shape \(20, 40\); the result has \(40, 20\)"),
        ({"out": out(dtype=np.float64)}, ArgumentTypeError, "out has dtype float64"),
        ({"out": Store(out(dtype=np.float64))}, ArgumentTypeError, "out has dtype float64"),
        ({"out": read_only()}, UsageError, "out is read-only"),
        ({"out": NoStore()}, ArgumentTypeError, "out is NoStore, which cannot be written to"),
        ({"a": Store(A.astype(np.float64))}, ArgumentTypeError, "a has dtype float64"),
        ({"a": A[:, :29]}, UsageError, "k is 29 on the left and 30 on the right"),
        ({"a": A[None]}, UsageError, "takes matrices of two axes; a and b have 3 and 2"),
        ({"a": OnGpu(A)}, UsageError, "a lies on a GPU; with device or memory_bytes"),
        ({"b": gemmlab.pack(B)}, UsageError, "b is packed"),
        ({"a": [[1.0]]}, ArgumentTypeError, "not a NumPy array"),
        ({"beta": 1.0}, UsageError, "there is no c"),
        ({"beta": 1.0, "c": Store(np.ones((40, 1), np.float32))}, UsageError, "in a store must have the result's"),
        ({"device": "cuda:x"}, DeviceError, "no device named"),
        ({"device": "H200"}, DeviceError, "no device named 'H200'; .*; only explain_choice takes the model of a GPU"),
        ({"device": 3}, ArgumentTypeError, "device is 3; it must be a name"),
        ({"progress": 3}, ArgumentTypeError, "progress is 3"),
        ({"checkpoint": 3}, ArgumentTypeError, "checkpoint is 3"),
        ({"memory_bytes": True}, UsageError, "memory_bytes is True"),
        ({"memory_bytes": 1000}, UsageError, "memory_bytes is 1,000; 40 x 20 with 30 terms takes at least"),
        ({"precision": "low"}, UsageError, "precision is 'low'"),
        ({"kernel": "naive"}, UsageError, "naive runs on a GPU"),
        ({"threads": 0}, UsageError, "threads is 0"),
        ({"threads": 1, "device": "emulated:sm_80"}, UsageError, "threads are for a product on the CPU"),
    ],
)
def test_refused(how: dict[str, Any], error: type[GemmlabError], words: str) -> None:
    given = {"a": A, "b": B, "out": out(), "memory_bytes": 1 << 20, **how}
    with pytest.raises(error, match=words):
        gemmlab.gemm(**given)
    result = given["out"]
    if not isinstance(result, NoStore):
        assert np.all(getattr(result, "values", result) == 7)


def test_a_result_that_shares_memory_or_a_file_with_an_operand(tmp_path: Path) -> None:
    both = np.full((100, 100), 7, np.float32)
    with pytest.raises(UsageError, match="out shares memory with a"):
        gemmlab.gemm(both[:40, :30], B, out=both[20:60, :20], memory_bytes=1 << 20)
    a = np.memmap(tmp_path / "x", np.float32, "w+", shape=(100, 100))
    again = np.memmap(tmp_path / "x", np.float32, "r+", shape=(40, 20), offset=4 * 2000)
    with pytest.raises(UsageError, match=r"out and a are mapped from the same part of .*/x; give out a part"):
        gemmlab.gemm(a[:40, :30], B, out=again, memory_bytes=1 << 20)
    with pytest.raises(UsageError, match="out and c are mapped from the same part"):
        gemmlab.gemm(A, B, c=a[20:60, :20], beta=1.0, out=again, memory_bytes=1 << 20)
    one = Store(np.ones((30, 30), np.float32))
    with pytest.raises(UsageError, match="out is b; give it an array of its own"):
        gemmlab.gemm(np.ones((30, 30), np.float32), one, out=one, memory_bytes=1 << 20)
    apart = np.memmap(tmp_path / "x", np.float32, "r+", shape=(40, 20), offset=4 * 9000)
    gemmlab.gemm(a[:40, :30], B, out=apart, memory_bytes=1 << 20)
    assert np.all(both == 7)


def test_a_c_that_is_mapped_again_is_the_result(tmp_path: Path) -> None:
    c = np.memmap(tmp_path / "c", np.float32, "w+", shape=(40, 20))
    c[:] = 3
    same = np.memmap(tmp_path / "c", np.float32, "r+", shape=(40, 20))
    gemmlab.gemm(A, B, c=c, beta=2.0, out=same, memory_bytes=1 << 20)
    assert np.all(same == 36)


def test_no_array_is_needed_for_an_empty_result() -> None:
    assert gemmlab.gemm(A[:0], B, memory_bytes=1).shape == (0, 20)


def test_without_k_or_alpha_operands_are_not_read() -> None:
    class Unread(Store):
        def __getitem__(self, place: Any) -> npt.NDArray[Any]:
            raise AssertionError(place)

    c = np.full((40, 20), 2, np.float32)
    found = gemmlab.gemm(Unread(A), Unread(B), c=c, alpha=0, beta=0.5, memory_bytes=1 << 20)
    assert np.all(found == 1)
    assert np.all(gemmlab.gemm(A[:, :0], B[:0], memory_bytes=1 << 20) == 0)
    assert gemmlab.gemm(A, B, c=Unread(c), device="cpu")[0, 0] == 30


@pytest.mark.parametrize("name", ["a", "b", "c", "out"])
def test_an_array_of_a_store_in_a_plain_call(name: str) -> None:
    arrays: dict[str, Any] = {"a": A, "b": B, "c": out(), "out": out()}
    stored = Store(arrays[name], chunks=(10, 10))
    words = rf"{name} is .*Store, not a NumPy array; .*; with memory_bytes=, gemm multiplies arrays of a store"
    with pytest.raises(ArgumentTypeError, match=words):
        gemmlab.gemm(**{**arrays, name: stored}, beta=1)


def in_store(root: str, path: str = "") -> PlacedStore:
    return PlacedStore(np.full((30, 30), 7, np.float32), root, path)


@pytest.mark.parametrize("spelling", ["link", "./s", "../{folder}/s", "{whole}/s"])
def test_a_result_in_the_store_of_an_operand_under_another_spelling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s").mkdir()
    (tmp_path / "link").symlink_to("s")
    root = spelling.format(folder=tmp_path.name, whole=tmp_path)
    square = np.ones((30, 30), np.float32)
    for a, out in (
        (in_store("s"), in_store(root)),
        (in_store("s", "group/x"), in_store(root, "group/x")),
        (in_store("s/group", "x"), in_store(root, "group/x")),
        (Hdf5Store(square, "s", "/x"), Hdf5Store(np.full((30, 30), 7, np.float32), root, "/x")),
    ):
        with pytest.raises(UsageError, match="out is a; give it an array of its own"):
            gemmlab.gemm(a, square, out=out, memory_bytes=1 << 20)
        assert np.all(out.values == 7)
    apart = in_store(root, "group/y")
    gemmlab.gemm(in_store("s", "group/x"), square, out=apart, memory_bytes=1 << 20)
    assert np.all(apart.values == 210)
    # The same place is the result itself if it is c.
    kept = np.ones((30, 30), np.float32)
    gemmlab.gemm(square, square, c=PlacedStore(kept, "s"), beta=2, out=PlacedStore(kept, root), memory_bytes=1 << 20)
    assert np.all(kept == 32)


def test_two_stores_in_memory_are_two() -> None:
    square = np.ones((30, 30), np.float32)
    out = MemoryStore(square.copy())
    gemmlab.gemm(MemoryStore(square), square, out=out, memory_bytes=1 << 20)
    assert np.all(out.values == 30)


def test_a_store_that_is_open_for_reading_only(tmp_path: Path) -> None:
    """Refused before an operand is read, and before there is a journal."""

    class Unread(Store):
        def __getitem__(self, place: Any) -> npt.NDArray[Any]:
            raise AssertionError(place)

    journal = tmp_path / "journal"
    for made in (
        PlacedStore(out(), str(tmp_path / "s"), read_only=True),
        Hdf5Store(out(), str(tmp_path / "s"), "/x", "r"),
    ):
        with pytest.raises(UsageError, match=r"out \(.*s(:/x)?\) is open for reading only; open it with mode 'r\+'"):
            gemmlab.gemm(Unread(A), Unread(B), out=made, memory_bytes=1 << 20, checkpoint=journal)
        assert np.all(made.values == 7)
    assert not journal.exists()


def test_arrays_of_zarr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zarr = pytest.importorskip("zarr")
    monkeypatch.chdir(tmp_path)
    a = zarr.create_array("s.zarr", shape=(30, 30), chunks=(10, 10), dtype="f4")
    a[:] = 1
    (tmp_path / "link").symlink_to("s.zarr")
    for root in ("link", f"../{tmp_path.name}/s.zarr", tmp_path / "s.zarr"):
        with pytest.raises(UsageError, match="out is a; give it an array of its own"):
            gemmlab.gemm(a, a, out=zarr.open_array(root, mode="r+"), memory_bytes=1 << 20)
    with pytest.raises(UsageError, match="is open for reading only"):
        gemmlab.gemm(a[:], a[:], out=zarr.open_array("link", mode="r"), memory_bytes=1 << 20, checkpoint="journal")
    fleeting = zarr.create_array({}, shape=(30, 30), chunks=(10, 10), dtype="f4")
    with pytest.raises(UsageError, match="checkpoint needs an out that outlives this process"):
        gemmlab.gemm(a, a, out=fleeting, memory_bytes=1 << 20, checkpoint="journal")
    assert not (tmp_path / "journal").exists()
    assert np.all(a[:] == 1)
