"""Kernels with tensor maps in a library call: addresses change from call to call, and some operands have no map."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import UsageError
from gemmlab.dispatch import choice, cuda_again
from gemmlab.dispatch.choice import choose
from gemmlab.dispatch.measurements import Figures, Measurement, shipped_table
from gemmlab.dispatch.waves import gpu_model
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm_problem import GemmProblem
from support.gemm_driver import GemmDriver
from support.gemm_on_gpu import Float32Array, close, played_driver, uniform
from support.gpu_arrays import Tensor, play_torch

KERNEL = find_kernel("persistent")
MAPPED = Measurement(
    kernel=KERNEL.id, precision=KERNEL.precision, layouts=KERNEL.layouts, arch=KERNEL.arch, config=KERNEL.params,
    threads=384, registers=168, smem=196_672, grid=KERNEL.tiles, figures=Figures(0.1, 1e-6, 1e-6), steps=KERNEL.steps,
    align=KERNEL.align, require=tuple(one.that.text for one in KERNEL.restrictions), in_order=False,
)  # fmt: skip
TABLE = replace(shipped_table(), entries=(*shipped_table().entries, MAPPED))
FASTEST: dict[str, Any] = {"precision": "tf32"}


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[GemmDriver]:
    play_torch(monkeypatch, 7)
    monkeypatch.setattr(choice, "shipped_table", lambda: TABLE)
    yield from played_driver(monkeypatch)


def off_16_bytes(x: Float32Array) -> Float32Array:
    """The same matrix a float further in memory; its rows stay as far apart as in `placed`."""
    return placed(x, 1)


def placed(x: Float32Array, first: int = 0) -> Float32Array:
    """A copy that begins so many floats behind a multiple of 16 bytes, with rows that are multiples apart."""
    rows, cols = x.shape
    ld = -(-cols // 4) * 4
    flat = np.full(rows * ld + 8, np.nan, np.float32)
    start = -flat.ctypes.data // 4 % 4 + first
    whole = flat[start : start + rows * ld].reshape(rows, ld)
    whole[:, :cols] = x
    return whole[:, :cols]


def mapped(driver: GemmDriver) -> list[bool]:
    """Return, for each launch, True if it ran the kernel with tensor maps."""
    return ["persistent" in launch[0] for launch in driver.launches]


def test_each_call_s_own_addresses_are_in_the_maps(driver: GemmDriver) -> None:
    for _ in range(3):
        a, b, out = (placed(uniform(*shape)) for shape in ((12, 20), (20, 8), (12, 8)))
        gemmlab.gemm(Tensor(a), Tensor(b), out=Tensor(out), **FASTEST)
        close(Tensor(out), a @ b)
    assert mapped(driver) == [True] * 3
    assert len(cuda_again._entries) == 1


@pytest.mark.parametrize("layout", ["nn", "nt", "tt"])
def test_layouts_and_scalars(driver: GemmDriver, layout: str) -> None:
    a, b, c = uniform(12, 20), uniform(20, 8), uniform(12, 8)
    left = placed(a.T) if layout[0] == "t" else placed(a)
    right = placed(b.T) if layout[1] == "t" else placed(b)
    for alpha, beta in ((1.0, 0.0), (0.5, 2.0)):
        out = placed(c)
        flags: Any = {"trans_a": layout[0] == "t", "trans_b": layout[1] == "t"}
        at = Tensor(out)
        gemmlab.gemm(Tensor(left), Tensor(right), c=at, out=at, alpha=alpha, beta=beta, **flags, **FASTEST)
        close(Tensor(out), np.float32(alpha) * (a @ b) + np.float32(beta) * c)
    assert mapped(driver) == [True] * 2


def test_operands_without_a_map_get_another_kernel(driver: GemmDriver) -> None:
    """Rows or beginnings off 16 bytes, also after a call whose operands are alike but for their addresses."""
    a, b = uniform(12, 20), uniform(20, 8)
    out = placed(uniform(12, 8))
    calls = [
        (placed(a), placed(b), True),
        (off_16_bytes(a), placed(b), False),
        (placed(a), off_16_bytes(b), False),
        (placed(a), placed(b), True),
        (uniform(12, 21)[:, :20], placed(b), False),
    ]  # fmt: skip
    for left, right, _ in calls:
        gemmlab.gemm(Tensor(left), Tensor(right), out=Tensor(out), **FASTEST)
        close(Tensor(out), left @ right)
    assert mapped(driver) == [name for *_, name in calls]


@pytest.mark.usefixtures("driver")
def test_a_kernel_that_is_named_says_what_it_needs() -> None:
    a, b = placed(uniform(12, 20)), placed(uniform(20, 8))
    with pytest.raises(UsageError, match="persistent needs operands that begin on 16 bytes; a begins at 0x"):
        gemmlab.gemm(Tensor(off_16_bytes(a)), Tensor(b), kernel="persistent", **FASTEST)
    with pytest.raises(UsageError, match=r"persistent does not take .*: lda \* 4 % 16 == 0 \(rows of a tensor map"):
        gemmlab.gemm(Tensor(uniform(12, 21)[:, :20]), Tensor(b), kernel="persistent", **FASTEST)


def test_a_choice_says_why_it_is_refused() -> None:
    where = gpu_model("H200")
    problem = GemmProblem(520, 512, 512)
    assert choose(problem, where, TABLE, precision="tf32").kernel == "persistent"
    found = choose(problem, where, TABLE, precision="tf32", aligned=False)
    assert found.kernel != "persistent"
    assert found.refused["persistent"] == "needs operands that begin on 16 bytes"
    odd = choose(GemmProblem(520, 511, 512), where, TABLE, precision="tf32")
    assert odd.refused["persistent"] == "needs ldb * 4 % 16 == 0"
