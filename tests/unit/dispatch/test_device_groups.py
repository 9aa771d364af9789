"""`gemmlab.gemm_group` on a GPU: products of different shapes in one launch, checked before anything is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import ArgumentTypeError, DeviceError, UsageError
from support.cuda_source import needs_compiler
from support.gemm_driver import GemmDriver
from support.gemm_on_gpu import Float32Array, close, emulate, forms, played_driver, uniform, values
from support.gpu_arrays import OnGpu, Tensor, play_torch
from support.groups_on_gpu import SHAPES, tensors


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[GemmDriver]:
    play_torch(monkeypatch, 99)
    yield from played_driver(monkeypatch)


def pairs() -> tuple[list[Float32Array], list[Float32Array]]:
    return [uniform(m, k) for m, _, k in SHAPES], [uniform(k, n) for _, n, k in SHAPES]


def test_all_shapes_in_one_launch(driver: GemmDriver) -> None:
    a, b = pairs()
    found = gemmlab.gemm_group(tensors(a), tensors(b))
    assert len(driver.launches) == 1
    assert driver.launches[0][0].startswith("grouped<")
    assert driver.launches[0][-1] == 99
    for result, left, right in zip(found, a, b, strict=True):
        assert isinstance(result, Tensor)
        close(result, left @ right)


def test_c_and_out_and_factors(driver: GemmDriver) -> None:
    a, b = pairs()
    c = [uniform(m, n) for m, n, _ in SHAPES]
    for result, left, right, added in zip(
        gemmlab.gemm_group(tensors(a), tensors(b), c=tensors(c), alpha=2, beta=-0.5), a, b, c, strict=True
    ):
        close(result, 2 * left @ right - added / 2)
    out = tensors([np.full((m, n), np.nan, np.float32) for m, n, _ in SHAPES])
    found = gemmlab.gemm_group(tensors(a), tensors(b), out=out)
    assert all(one is other for one, other in zip(found, out, strict=True))
    own = tensors(c)
    gemmlab.gemm_group(tensors(a), tensors(b), c=own, out=own, beta=1.0)
    for index, (left, right) in enumerate(zip(a, b, strict=True)):
        close(out[index], left @ right)
    assert len(driver.launches) == 3


def test_an_empty_group_and_one_of_empty_results(driver: GemmDriver) -> None:
    assert gemmlab.gemm_group([], []) == []
    (found,) = gemmlab.gemm_group([OnGpu(uniform(0, 3))], [OnGpu(uniform(3, 2))])
    assert found.shape == (0, 2)
    assert not driver.launches


def test_more_products_than_a_launch_takes_and_stacks(driver: GemmDriver) -> None:
    a, b = [uniform(2, 3) for _ in range(130)], [uniform(3, 4) for _ in range(130)]
    for result, left, right in zip(gemmlab.gemm_group(tensors(a), tensors(b)), a, b, strict=True):
        close(result, left @ right)
    assert len(driver.launches) == 3
    many, one = uniform(5, 2, 3), uniform(2, 3)
    stacked, single = gemmlab.gemm_group(tensors([many, one]), tensors([uniform(5, 3, 4), one.T.copy()]))
    close(single, one @ one.T)
    assert stacked.shape == (5, 2, 4)
    assert len(driver.launches) == 4


@pytest.mark.usefixtures("driver")
def test_a_stack_beside_an_empty_product_is_right_when_it_is_repeated() -> None:
    """It has as many products of two matrices as the group has results."""
    many, right = uniform(2, 5, 7), uniform(2, 7, 3)
    a, b = tensors([many, uniform(0, 4)]), tensors([right, uniform(4, 4)])
    for _ in range(2):
        stacked, empty = gemmlab.gemm_group(a, b)
        close(stacked, many @ right)
        assert empty.shape == (0, 4)


@pytest.mark.in_turns(20)
def test_a_large_product_is_computed_alone_if_tensor_cores_are_faster(driver: GemmDriver) -> None:
    small, large = uniform(40, 50), uniform(1024, 1024)
    arrays = [small, large, small]
    for _ in range(2):
        driver.launches.clear()
        others = tensors([small.T.copy(), large, small.T.copy()])
        found = gemmlab.gemm_group(tensors(arrays), others, precision="float32")
        for result, left, right in zip(found, arrays, others, strict=True):
            np.testing.assert_allclose(values(result), left @ right.values, rtol=1e-3, atol=1e-3)
        *own, together = (name.partition("<")[0] for name, *_ in driver.launches)
        assert set(own) == {"by_tile"}
        assert together == "grouped"
        assert {stream for *_, stream in driver.launches} == {99}


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("how", [{}, {"precision": "float32", "reproducible": True}])
def test_a_large_product_is_computed_together_if_multiply_adds_compute_it_anyway(
    driver: GemmDriver, how: dict[str, Any]
) -> None:
    small, large = uniform(40, 50), uniform(1024, 1024)
    gemmlab.gemm_group(tensors([small, large]), tensors([small.T.copy(), large]), **how)
    assert [name.partition("<")[0] for name, *_ in driver.launches] == ["grouped"]


@pytest.mark.parametrize("left", forms(uniform(6, 9)))
def test_a_launch_for_each_layout(driver: GemmDriver, left: str) -> None:
    x, y = forms(uniform(6, 9)), forms(uniform(9, 4))
    found = gemmlab.gemm_group([OnGpu(x[left])] * len(y), [OnGpu(one) for one in y.values()])
    for result in found:
        close(result, x[left] @ y["rows"])
    assert len(driver.launches) == 2


def test_a_bad_product_is_named_and_nothing_is_written(driver: GemmDriver) -> None:
    a, b = tensors([uniform(5, 7)] * 3), tensors([uniform(7, 3)] * 3)
    room = np.full((8, 5, 3), -7, np.float32)
    out = [Tensor(one) for one in room[:3]]
    gaps = Tensor(np.full((5, 6), -7, np.float32)[:, ::2])
    wide = Tensor(np.broadcast_to(uniform(5, 1), (5, 3)))
    refused: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (UsageError, "product 1: op.a. of shape", {"a": [a[0], Tensor(uniform(5, 6)), a[2]]}),
        (UsageError, "product 2: out has shape", {"out": [*out[:2], Tensor(room[3, :4])]}),
        (UsageError, "product 2: out has strides .* must be contiguous", {"out": [*out[:2], gaps]}),
        (ArgumentTypeError, "product 0: b has dtype float64", {"b": [Tensor(np.ones((7, 3))), *b[1:]]}),
        (ArgumentTypeError, "product 1: b is builtins.int", {"b": [b[0], 5, b[2]]}),
        (UsageError, "product 2: there is no c|product 2: beta is 1", {"c": [*out[:2], None], "beta": 1.0}),
        (UsageError, "product 1: c has strides", {"c": [out[0], OnGpu(wide.values), out[2]], "beta": 1.0}),
        (UsageError, r"out\[2\] shares memory with out\[0\]", {"out": [*out[:2], out[0]]}),
        (UsageError, r"out\[1\] shares memory with a\[2\]", {"a": [*a[:2], Tensor(room[1, :, :1])],
                                                            "b": [*b[:2], Tensor(uniform(1, 3))]}),
        (UsageError, r"out\[2\] shares memory with c\[0\]", {"c": [out[2], *out[1:]], "beta": 1.0}),
        (UsageError, "product 0: threads", {"threads": 2}),
        (UsageError, "precision is 'half'", {"precision": "half"}),
        (UsageError, "b has 2 arrays, and a has 3", {"b": b[:2]}),
        (UsageError, "out has 4 arrays", {"out": [*out, out[0]]}),
        (ArgumentTypeError, "a is support.gpu_arrays.Tensor; it must be a list or a tuple", {"a": a[0]}),
    ]  # fmt: skip
    for error, words, given in refused:
        with pytest.raises(error, match=words):
            gemmlab.gemm_group(**{"a": a, "b": b, "out": out, **given})
    assert (room == -7).all()
    assert not driver.launches
    gemmlab.gemm_group(a, b, out=out)
    assert (room[:3] != -7).any()


def test_operands_on_two_gpus(driver: GemmDriver) -> None:
    a, b = tensors([uniform(5, 7)] * 2), tensors([uniform(7, 3)] * 2)
    other = uniform(7, 3)
    driver.placed[other.ctypes.data] = 0
    with pytest.raises(DeviceError, match=r"b\[1\] lies on cuda:0"):
        gemmlab.gemm_group(a, [b[0], OnGpu(other)])


def test_streams_of_all_arrays_are_waited_for(driver: GemmDriver) -> None:
    a, b = uniform(5, 7), uniform(7, 3)
    found = gemmlab.gemm_group([OnGpu(a, 3), OnGpu(a, 4)], [OnGpu(b, 3), OnGpu(b, 5)])
    for result in found:
        close(result, a @ b)
    assert driver.launches[0][-1] == 3
    waits = [stream for what, stream in driver.events if what == "cuStreamWaitEvent"]
    # The second result's stream waits for its operand, the launch's for it, and in turn.
    assert waits == [4, 3, 4]


@pytest.mark.in_turns(20)
@needs_compiler
def test_machine_code_of_a_group(driver: GemmDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices of seven shapes in one piece of memory for each operand, with rows of other lengths between them."""
    left, right = uniform(90, 80), uniform(90, 140)
    out = np.full((300, 140), -7, np.float32)
    ran = emulate(driver, monkeypatch, out, left, right)
    a = [left[i : i + m, i : i + k] for i, (m, _, k) in enumerate(SHAPES)]
    b = [right[i : i + k, i : i + n] for i, (_, n, k) in enumerate(SHAPES)]
    written = np.zeros(out.shape, np.bool_)
    results, row = [], 0
    for m, n, _ in SHAPES:
        results.append(out[row : row + m, 2 : n + 2])
        written[row : row + m, 2 : n + 2] = True
        row += m + 1
    gemmlab.gemm_group([OnGpu(x) for x in a], [OnGpu(x) for x in b], out=[OnGpu(x) for x in results], alpha=0.5)
    for result, x, y in zip(results, a, b, strict=True):
        np.testing.assert_allclose(result, 0.5 * x @ y, rtol=1e-4, atol=1e-5)
    assert (out[~written] == -7).all()
    assert len(ran) == 1
