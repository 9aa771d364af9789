"""Batches on a GPU: how many launches there are, what they are given, and that one preparation serves all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import UsageError
from gemmlab.dispatch import batches, choice, cuda_again, cuda_gemm, cuda_operands
from gemmlab.dispatch.storage import Stored
from support.cuda_source import needs_compiler
from support.gemm_driver import GemmDriver
from support.gemm_on_gpu import Float32Array, close, emulate, played_driver, uniform
from support.gpu_arrays import OnGpu, Tensor, play_torch


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[GemmDriver]:
    play_torch(monkeypatch, 99)
    yield from played_driver(monkeypatch)


LEFT, RIGHT = uniform(6, 5, 7), uniform(6, 7, 3)


@pytest.mark.parametrize(
    ("left", "right", "launches"),
    [
        (LEFT, RIGHT, 6),
        (LEFT[0], RIGHT, 6),
        # All by one matrix are one tall matrix by it, so are several rows, and all by one vector.
        (LEFT, RIGHT[0], 1),
        (LEFT.reshape(2, 3, 5, 7), RIGHT[0], 1),
        (LEFT.reshape(2, 3, 5, 7), RIGHT[:1], 1),
        (LEFT, RIGHT[0, :, 0], 1),
        (LEFT[:, :1], RIGHT[0], 1),
        # The inner axis alone, and axes of one element.
        (LEFT.reshape(2, 3, 5, 7), RIGHT[:2, None], 2),
        (LEFT[:, None], RIGHT[:, None], 6),
        (LEFT[:1], RIGHT[:1], 1),
        # What does not follow evenly: a part of each, every other one, the same again, in the other order, columns.
        (LEFT[:, :4], RIGHT[0], 6),
        (LEFT[::2], RIGHT[0], 3),
        (np.broadcast_to(LEFT[0], LEFT.shape), RIGHT[0], 6),
        (LEFT[::-1], RIGHT[0], 6),
        (LEFT.swapaxes(0, 1), RIGHT[0], 5),
        (np.ascontiguousarray(LEFT.swapaxes(1, 2)).swapaxes(1, 2), RIGHT[0], 6),
        # Nothing to add up, and nothing at all.
        (LEFT[..., :0], RIGHT[0, :0], 1),
        (LEFT[:, :0], RIGHT[0], 0),
    ],
)
def test_one_launch_or_with_a_kernel_of_one_product_as_few_as_there_can_be(
    driver: GemmDriver, left: Float32Array, right: Float32Array, launches: int
) -> None:
    close(gemmlab.gemm(OnGpu(left), OnGpu(right)), left @ right)
    assert len(driver.launches) == driver.modules == min(launches, 1)
    assert all(launch[0].startswith("batched") == (launches > 1) for launch in driver.launches)
    driver.launches.clear()
    close(gemmlab.gemm(OnGpu(left), OnGpu(right), kernel="async_copy"), left @ right)
    assert len(driver.launches) == launches


def test_more_rows_than_a_kernel_counts_are_not_put_together(
    driver: GemmDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_MOST_ROWS", 15)
    left = LEFT.reshape(2, 3, 5, 7)
    close(gemmlab.gemm(OnGpu(left), OnGpu(RIGHT[0]), kernel="async_copy"), left @ RIGHT[0])
    assert len(driver.launches) == 2


def test_into_every_other_row_of_out_and_into_columns(driver: GemmDriver) -> None:
    expected = LEFT @ RIGHT[0]
    room = np.full((6, 7, 3), np.nan, np.float32)
    gemmlab.gemm(OnGpu(LEFT), OnGpu(RIGHT[0]), out=OnGpu(room[:, 1:6]))
    np.testing.assert_allclose(room[:, 1:6], expected, rtol=1e-4, atol=1e-5)
    assert np.isnan(room[:, [0, 6]]).all()
    assert len(driver.launches) == 1
    # Of columns that follow each other the transposes are rows that do: one right operand is then one left one.
    columns = np.full((6, 3, 5), np.nan, np.float32).swapaxes(1, 2)
    gemmlab.gemm(
        OnGpu(LEFT[0].copy()), OnGpu(np.ascontiguousarray(RIGHT.swapaxes(1, 2)).swapaxes(1, 2)), out=OnGpu(columns)
    )
    np.testing.assert_allclose(columns, LEFT[0] @ RIGHT, rtol=1e-4, atol=1e-5)
    assert len(driver.launches) == 2


def test_one_preparation_for_all_and_for_later_calls(driver: GemmDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    real, chosen = choice.choose, list[Any]()

    def choose(*given: Any, **how: Any) -> Any:
        chosen.append(given)
        return real(*given, **how)

    monkeypatch.setattr(choice, "choose", choose)
    close(gemmlab.gemm(Tensor(LEFT), Tensor(RIGHT)), LEFT @ RIGHT)
    assert len(chosen) == 1
    monkeypatch.setattr(cuda_operands, "request", lambda *_: pytest.fail("looked at"))
    close(gemmlab.gemm(Tensor(LEFT.copy()), Tensor(RIGHT), alpha=2.0), 2 * LEFT @ RIGHT)
    assert len(driver.launches) == 2
    assert len(chosen) == 1


def test_of_a_large_batch_the_steps_are_not_kept(driver: GemmDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_again, "_MOST_STEPS", 5)
    for _ in range(2):
        close(gemmlab.gemm(Tensor(LEFT), Tensor(RIGHT), kernel="async_copy"), LEFT @ RIGHT)
    assert not cuda_again._entries
    assert len(driver.launches) == 12
    close(gemmlab.gemm(Tensor(LEFT), Tensor(RIGHT)), LEFT @ RIGHT)
    assert len(cuda_again._entries) == 1


@pytest.mark.usefixtures("driver")
def test_all_matrices_begin_on_16_bytes_or_it_is_said_of_none(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[bool]()
    real = cuda_gemm.CudaGemm.plan

    def plan(self: cuda_gemm.CudaGemm, what: Stored, *how: Any) -> Any:
        seen.append(what.begins_on(16))
        return real(self, what, *how)

    monkeypatch.setattr(cuda_gemm.CudaGemm, "plan", plan)
    even, odd = uniform(3, 4, 8), np.lib.stride_tricks.as_strided(uniform(99), (3, 4, 8), (33 * 4, 32, 4))
    for left in (even, odd):
        ones = np.ones((3, 8, 4), np.float32)
        close(gemmlab.gemm(OnGpu(left), OnGpu(ones), kernel="async_copy"), left @ ones)
    assert seen == [True, False]


@pytest.mark.in_turns(20)
@needs_compiler
def test_machine_code_of_a_batch(driver: GemmDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """One launch for three pairs of matrices, one of one block for each, then one for the three by one."""
    left, right, out = uniform(3, 12, 20), uniform(3, 20, 8), np.full((3, 12, 8), np.nan, np.float32)
    ran = emulate(driver, monkeypatch, out, left, right)
    gemmlab.gemm(OnGpu(left), OnGpu(right), out=OnGpu(out))
    np.testing.assert_allclose(out, left @ right, rtol=1e-4, atol=1e-5)
    out.fill(np.nan)
    gemmlab.gemm(OnGpu(left), OnGpu(right), out=OnGpu(out), kernel="naive")
    np.testing.assert_allclose(out, left @ right, rtol=1e-4, atol=1e-5)
    gemmlab.gemm(OnGpu(left), OnGpu(right[1]), out=OnGpu(out), kernel="naive")
    np.testing.assert_allclose(out, left @ right[1], rtol=1e-4, atol=1e-5)
    assert len(ran) == 1 + 3 + 1


@pytest.mark.in_turns(20)
@needs_compiler
def test_machine_code_of_leading_axes(driver: GemmDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads beside each other, backward axes, broadcast ones and gaps, more axes than one launch has."""
    heads = uniform(2, 11, 3, 6).swapaxes(1, 2)
    keys = uniform(2, 9, 3, 6).swapaxes(1, 2)
    out = np.full((2, 11, 3, 9), np.nan, np.float32)
    ran = emulate(driver, monkeypatch, out, np.asarray(heads.base), np.asarray(keys.base))
    gemmlab.gemm(OnGpu(heads), OnGpu(keys), trans_b=True, out=OnGpu(out.swapaxes(1, 2)))
    np.testing.assert_allclose(out.swapaxes(1, 2), heads @ keys.swapaxes(-1, -2), rtol=1e-4, atol=1e-5)
    assert len(ran) == 1
    many, one = uniform(2, 2, 2, 3, 3, 4, 5), uniform(2, 1, 2, 1, 3, 5, 2)
    room = np.full((2, 2, 2, 3, 3, 4, 3), -7, np.float32)
    ran = emulate(driver, monkeypatch, room, many, one)
    gemmlab.gemm(OnGpu(many[:, :, ::-1]), OnGpu(one), alpha=2, out=OnGpu(room[..., :2]))
    np.testing.assert_allclose(room[..., :2], 2 * many[:, :, ::-1] @ one, rtol=1e-4, atol=1e-5)
    assert (room[..., 2] == -7).all()
    assert len(ran) == 2


def test_an_out_with_gaps_is_refused(driver: GemmDriver) -> None:
    out = np.empty((6, 5, 6), np.float32)[..., ::2]
    with pytest.raises(UsageError, match="rows or its columns must be contiguous"):
        gemmlab.gemm(OnGpu(LEFT), OnGpu(RIGHT), out=OnGpu(out))
    assert not driver.launches
