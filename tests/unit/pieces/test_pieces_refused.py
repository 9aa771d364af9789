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
from support.stores import Store

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
