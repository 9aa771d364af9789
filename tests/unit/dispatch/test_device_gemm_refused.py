"""What `gemmlab.gemm` does not take of arrays on a GPU, and what it says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import ArgumentTypeError, DeviceError, UsageError
from support.gemm_driver import GemmDriver
from support.gemm_on_gpu import A, B, C, played_driver, uniform
from support.gpu_arrays import OnGpu, Tensor, play_torch


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[GemmDriver]:
    yield from played_driver(monkeypatch)


@pytest.mark.usefixtures("driver")
def test_an_array_that_does_not_show_its_memory_says_why() -> None:
    class Requiring(OnGpu):
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            raise RuntimeError("requires grad")

    said = "does not show its memory: requires grad"
    for a, b in ((Requiring(A), OnGpu(B)), (OnGpu(A), Requiring(B))):
        with pytest.raises(ArgumentTypeError, match=said):
            gemmlab.gemm(a, b)
    with pytest.raises(ArgumentTypeError, match=said):
        gemmlab.sum(Requiring(A))


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    ("a", "b", "options", "error", "said"),
    [
        (A, B.astype(np.float64), {}, ArgumentTypeError, "b has dtype float64, not float32"),
        (A, B, {"out": OnGpu(C.astype(np.float64))}, ArgumentTypeError, "out has dtype float64, not float32; pass"),
        (np.ones((), np.float32), B, {}, UsageError, "a is a scalar"),
        (A, A, {}, UsageError, "do not fit: k is 20 on the left and 12 on the right"),
        (A, B[:, 0:0].reshape(20, 0)[..., None], {}, UsageError, "do not fit"),
        (A, B, {"threads": 2}, UsageError, "threads are for arrays on the CPU"),
        (A, B, {"precision": "half"}, UsageError, "precision is 'half'"),
        (A, B, {"kernel": "nobody"}, UsageError, "no kernel named 'nobody'"),
        (A, B, {"kernel": "packed"}, UsageError, "packed runs on a CPU; the operands lie on a GPU"),
        (A, B, {"kernel": "reduce_peak"}, UsageError, "reduce_peak is a kernel for reduce"),
        (A, B, {"kernel": 7}, ArgumentTypeError, "kernel is 7"),
        (A, B, {"kernel": "naive", "config": {"QQ": 1}}, UsageError, "unknown parameter 'QQ'"),
        (A, B, {"kernel": "naive", "config": {"BM": 1000}}, UsageError, "constraints"),
        (A, B, {"config": {"BM": "x"}}, ArgumentTypeError, "BM in config is 'x'"),
        (A, B, {"config": [1]}, ArgumentTypeError, r"config is \[1\]"),
        (A, B.T.copy(), {"trans_b": True, "kernel": "naive"}, UsageError, "naive reads layouts nn; .* are nt"),
        (np.repeat(A, 2, 1)[:, ::2], B, {}, UsageError, "rows or columns of a must be contiguous"),
        (A, B, {"beta": 1.0}, UsageError, "there is no c"),
        (A, B, {"beta": 1.0, "c": OnGpu(uniform(5, 5))}, UsageError, "does not broadcast"),
        (A, B, {"beta": 1.0, "c": OnGpu(C[:1])}, UsageError, "it must be contiguous and of the result's shape"),
        (A, B, {"out": OnGpu(C[1:])}, UsageError, r"out has shape \(11, 8\); the result has \(12, 8\)"),
        (A, B, {"out": OnGpu(uniform(24, 16)[::2, ::2])}, UsageError, "out .* its columns must be contiguous"),
        (A, B, {"out": C}, ArgumentTypeError, "out is numpy.ndarray, which lies on no GPU"),
        (A, B, {"alpha": "1"}, ArgumentTypeError, "alpha is '1'"),
    ],
)  # fmt: skip
def test_errors(a: Any, b: Any, options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        gemmlab.gemm(OnGpu(a), OnGpu(b), **options)


@pytest.mark.usefixtures("driver")
def test_host_and_gpu_do_not_mix() -> None:
    for a, b, name in ((A, OnGpu(B), "a"), (OnGpu(A), B, "b")):
        with pytest.raises(ArgumentTypeError, match=f"{name} is numpy.ndarray, which lies on no GPU"):
            gemmlab.gemm(a, b)


@pytest.mark.usefixtures("driver")
def test_what_torch_negates_when_it_reads_is_refused() -> None:
    class Negated(Tensor):
        def is_neg(self) -> bool:
            return True

    with pytest.raises(ArgumentTypeError, match=r"a is negated .*; a\.resolve_neg\(\) does it now"):
        gemmlab.gemm(Negated(A), OnGpu(B))


@pytest.mark.usefixtures("driver")
def test_an_out_that_overlaps_or_cannot_be_written() -> None:
    square = uniform(12, 12)
    with pytest.raises(UsageError, match="out shares memory with a"):
        gemmlab.gemm(OnGpu(square), OnGpu(uniform(12, 12)), out=OnGpu(square))
    room = uniform(13, 12)
    with pytest.raises(UsageError, match="out shares memory with c"):
        gemmlab.gemm(OnGpu(square), OnGpu(square), beta=1, c=OnGpu(room[1:]), out=OnGpu(room[:-1]))
    fixed = uniform(12, 8)
    fixed.flags.writeable = False
    with pytest.raises(TypeError, match=r"out, a .*OnGpu on a GPU, is read-only"):
        gemmlab.gemm(OnGpu(A), OnGpu(B), out=OnGpu(fixed))
    with pytest.raises(UsageError, match="elements of out share memory"):
        gemmlab.gemm(OnGpu(A), OnGpu(B), out=OnGpu(np.lib.stride_tricks.as_strided(uniform(40), (12, 8), (4, 4))))


def off_4_bytes(x: Any) -> OnGpu:
    """The same matrix, which begins one byte later than a float may."""
    room = np.zeros(x.nbytes + 1, np.uint8)
    view = np.ndarray(x.shape, np.float32, room, 1)
    view[...] = x
    return OnGpu(view)


@pytest.mark.usefixtures("driver")
def test_an_operand_that_begins_off_4_bytes_is_named() -> None:
    needed = "needs operands that begin on 4 bytes"
    flat, tall = OnGpu(np.empty((12, 8), np.float32)), OnGpu(np.empty((12, 8), np.float32, order="F"))
    for out in (None, flat, tall):
        with pytest.raises(UsageError, match=f"{needed}; a begins at 0x[0-9a-f]+$"):
            gemmlab.gemm(off_4_bytes(A), OnGpu(B), out=out)
        with pytest.raises(UsageError, match=f"{needed}; b begins at 0x[0-9a-f]+$"):
            gemmlab.gemm(OnGpu(A), off_4_bytes(B), out=out)
    with pytest.raises(UsageError, match=f"{needed}; a begins at 0x.*, out begins at 0x"):
        gemmlab.gemm(off_4_bytes(A), OnGpu(B), out=off_4_bytes(C))
    with pytest.raises(UsageError, match=f"gemm_group: product 1: grouped {needed}; b begins at 0x"):
        gemmlab.gemm_group([OnGpu(A), OnGpu(A)], [OnGpu(B), off_4_bytes(B)], out=[flat, tall])


class Vast:
    """A matrix that only says that it is so large. Its memory is apart from that with another number."""

    def __init__(self, number: int, m: int, n: int, ld: int = 0) -> None:
        self.shape = m, n
        self.__cuda_array_interface__ = {
            "shape": self.shape, "typestr": "<f4", "data": (number << 45, False), "strides": (4 * (ld or n), 4),
            "version": 3, "stream": 1,
        }  # fmt: skip


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    ("a", "b"),
    [
        (Vast(1, 2**31, 4), Vast(2, 4, 4)), (Vast(1, 4, 4), Vast(2, 4, 2**31)),
        (Vast(1, 4, 2**31 + 3), Vast(2, 2**31 + 3, 4)), (Vast(1, 4, 20, 2**31), Vast(2, 20, 4)),
    ],
)  # fmt: skip
def test_sizes_above_32_bits_are_refused_alike_by_a_call_and_its_explanation(a: Vast, b: Vast) -> None:
    said = "above 2147483647, the largest that kernels on a GPU take"
    with pytest.raises(UsageError, match=said) as explained:
        gemmlab.explain_choice(a, b, device="H200")
    with pytest.raises(UsageError, match=said) as called:
        gemmlab.gemm(a, b, out=Vast(3, a.shape[0], b.shape[1]))
    assert str(called.value) == str(explained.value)


def test_a_forked_process_is_told_what_is_wrong(driver: GemmDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    play_torch(monkeypatch, 99)
    x, y, out = Tensor(A), Tensor(B), Tensor(C.copy())
    gemmlab.gemm(x, y, out=out)
    here = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here + 1)
    monkeypatch.setattr(driver, "ctx_get_current", lambda: (3, None))
    with pytest.raises(DeviceError, match=r"cuCtxGetCurrent failed: .*NOT_INITIALIZED; a forked process"):
        gemmlab.gemm(x, y, out=out)


class Placed(OnGpu):
    """Says by DLPack on which GPU it lies."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 3


@pytest.mark.usefixtures("driver")
def test_operands_on_two_gpus_of_which_one_says_so_itself() -> None:
    with pytest.raises(DeviceError, match="a lies on cuda:1, b lies on cuda:3; one GPU is needed"):
        gemmlab.gemm(OnGpu(A), Placed(B))


def test_memory_of_a_pool_belongs_to_no_context(driver: GemmDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "ctx_get_device", lambda: (201, None))
    with pytest.raises(DeviceError, match="a lies on cuda:0, b lies on cuda:3; one GPU is needed"):
        gemmlab.gemm(OnGpu(A), Placed(B))


def test_operands_on_two_gpus(driver: GemmDriver) -> None:
    driver.placed[B.ctypes.data] = 0
    with pytest.raises(DeviceError, match="a lies on cuda:1, b lies on cuda:0; one GPU is needed"):
        gemmlab.gemm(OnGpu(A), OnGpu(B))
