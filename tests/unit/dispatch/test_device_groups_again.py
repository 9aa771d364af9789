"""`gemmlab.gemm_group` on a GPU again: groups of known layouts are not looked at, products with long sums included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.dispatch import cuda_groups
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.cuda_operands import Checked, checked_call
from support.gemm_driver import GemmDriver
from support.gemm_on_gpu import Float32Array, close, played_driver, uniform, values
from support.gpu_arrays import OnGpu, Tensor, play_torch
from support.groups_on_gpu import SHAPES, tensors


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[GemmDriver]:
    play_torch(monkeypatch, 99)
    yield from played_driver(monkeypatch)


def test_the_same_group_again_is_not_looked_at(driver: GemmDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    a = [uniform(m, k) for m, _, k in SHAPES if m] * 12
    b = [uniform(k, n) for m, n, k in SHAPES if m] * 12
    b[3] = np.asfortranarray(b[3])
    driver.contexts.append("context of 1")
    gemmlab.gemm_group(tensors(a), tensors(b))
    assert len(driver.launches) == 3
    monkeypatch.setattr(cuda_groups, "checked_call", lambda *_: pytest.fail("looked at"))
    before = len(driver.contexts)
    for alpha in (1.0, 2, 0.5):
        again = gemmlab.gemm_group(tensors([x.copy("K") for x in a]), tuple(tensors(b)), alpha=alpha)
        for result, left, right in zip(again, a, b, strict=True):
            close(result, alpha * left @ right)
    assert len(driver.launches) == 12
    assert len(driver.contexts) == before
    driver.contexts.append("another GPU's")
    gemmlab.gemm_group(tensors(a), tensors(b))
    assert driver.contexts[-1] == "another GPU's"


def test_what_differs_of_a_group_is_looked_at(driver: GemmDriver) -> None:
    a, b = [uniform(4, 6), uniform(5, 7)], [uniform(6, 3), uniform(7, 2)]
    c, square = [uniform(4, 3), uniform(5, 2)], [uniform(6, 6), uniform(7, 7)]
    for _ in range(2):
        for result, left, right in zip(gemmlab.gemm_group(tensors(a), tensors(b)), a, b, strict=True):
            close(result, left @ right)
        for turned in (False, True):
            found = gemmlab.gemm_group(tensors(a), tensors(square), trans_b=turned)
            for result, left, right in zip(found, a, square, strict=True):
                close(result, left @ (right.T if turned else right))
        found = gemmlab.gemm_group(tensors(a), tensors(b), c=tensors(c), beta=2.0)
        for result, left, right, added in zip(found, a, b, c, strict=True):
            close(result, left @ right + 2 * added)
        with pytest.raises(UsageError, match="there is no c"):
            gemmlab.gemm_group(tensors(a), tensors(b), beta=2.0)
        with pytest.raises(UsageError, match="b has 1 arrays"):
            gemmlab.gemm_group(tensors(a), tensors(b[:1]))
        with pytest.raises(ArgumentTypeError, match="product 1: b has dtype float64"):
            gemmlab.gemm_group(tensors(a), tensors([b[0], b[1].astype(np.float64)]))
        with pytest.raises(ArgumentTypeError, match=r"trans_a is 1\.5"):
            gemmlab.gemm_group(tensors(a), tensors(b), trans_a=1.5)  # type: ignore[arg-type]
    assert len(driver.launches) == 8


def watched(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """From now on this list gets every product that is checked."""
    looked = list[Call]()

    def watch(call: Call) -> Checked:
        looked.append(call)
        return checked_call(call)

    monkeypatch.setattr(cuda_groups, "checked_call", watch)
    return looked


def rooms(*forms: Any) -> list[Any]:
    """A result for each product of `SHAPES` with elements, each in the next of these forms."""
    shapes = [(m, n) for m, n, _ in SHAPES if m * n]
    return tensors([forms[at % len(forms)](shape, np.float32) for at, shape in enumerate(shapes)])


def in_columns(shape: tuple[int, int], dtype: Any) -> Float32Array:
    return np.empty(shape, dtype, order="F")


@pytest.mark.usefixtures("driver")
def test_the_same_group_into_out_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    a = [uniform(m, k) for m, n, k in SHAPES if m * n]
    b = [uniform(k, n) for m, n, k in SHAPES if m * n]
    # Results in columns are computed transposed.
    gemmlab.gemm_group(tensors(a), tensors(b), out=rooms(np.empty, in_columns))
    looked = watched(monkeypatch)
    for kind in (list, tuple):
        for alpha in (1.0, -2.0):
            out = kind(rooms(np.empty, in_columns))
            found = gemmlab.gemm_group(tensors([x.copy() for x in a]), tensors(b), out=out, alpha=alpha)
            assert type(found) is list
            assert all(one is other for one, other in zip(found, out, strict=True))
            for result, left, right in zip(found, a, b, strict=True):
                close(result, alpha * left @ right)
    assert not looked
    # Other layouts of results, none at all, and the other order of layouts.
    for given in (rooms(np.empty), None, rooms(in_columns, np.empty)):
        found = gemmlab.gemm_group(tensors(a), tensors(b), out=given)
        assert given is None or all(one is other for one, other in zip(found, given, strict=True))
        for result, left, right in zip(found, a, b, strict=True):
            close(result, left @ right)
        assert len(looked) == len(a)
        looked.clear()


def test_results_of_a_known_group_must_lie_apart(driver: GemmDriver) -> None:
    a, b = [uniform(5, 7) for _ in range(3)], [uniform(7, 3) for _ in range(3)]
    room = np.empty((8, 5, 3), np.float32)
    x, y, out = tensors(a), tensors(b), tensors([room[0], room[4], room[1]])
    gemmlab.gemm_group(x, y, out=out)
    after = len(driver.launches)
    room[...] = -7
    inside = Tensor(room.ravel()[63:98].reshape(5, 7))
    refused: list[tuple[str, dict[str, Any]]] = [
        (r"out\[2\] shares memory with out\[0\]", {"out": [*out[:2], out[0]]}),
        (r"out\[1\] shares memory with out\[0\]", {"out": [out[0], Tensor(room.ravel()[9:24].reshape(5, 3)), out[1]]}),
        (r"out\[1\] shares memory with a\[2\]", {"a": [*x[:2], inside]}),
        (r"product 1: out shares memory with a", {"a": [x[0], inside, x[2]]}),
        (r"out has 2 arrays, and a has 3", {"out": out[:2]}),
        (r"out has 0 arrays, and a has 3", {"out": []}),
        (r"product 1: out has shape", {"out": [out[0], Tensor(room[3, :4]), out[2]]}),
    ]
    for words, given in refused:
        with pytest.raises(UsageError, match=words):
            gemmlab.gemm_group(**{"a": x, "b": y, "out": out, **given})
    with pytest.raises(ArgumentTypeError, match=r"product 2: out is numpy\.ndarray, which lies on no GPU"):
        gemmlab.gemm_group(x, y, out=[*out[:2], room[3]])
    assert (room == -7).all()
    assert len(driver.launches) == after
    gemmlab.gemm_group(x, y, out=[*out[:2], OnGpu(room[3])])
    for at, left, right in zip((0, 4, 3), a, b, strict=True):
        close(OnGpu(room[at]), left @ right)


def test_alternating_columns_are_looked_at_once(driver: GemmDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """They lie apart, although each result reaches over the other."""
    a, b, wide = [uniform(5, 7) for _ in range(2)], [uniform(7, 3) for _ in range(2)], np.empty((5, 6), np.float32)
    out = tensors([wide[:, :3], wide[:, 3:]])
    gemmlab.gemm_group(tensors(a), tensors(b), out=out)
    monkeypatch.setattr(cuda_groups, "checked_call", lambda *_: pytest.fail("looked at"))
    wide[...] = np.nan
    gemmlab.gemm_group(tensors(a), tensors(b), out=out)
    assert len(driver.launches) == 2
    np.testing.assert_allclose(wide, np.hstack([a[0] @ b[0], a[1] @ b[1]]), rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("driver")
def test_a_known_group_at_addresses_off_16_bytes_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The choice whether a product is faster alone depends on them."""
    room = np.zeros(4 + 8 * 8 + 3, np.float32)
    start = -(room.ctypes.data // 4) % 4
    left = [room[start + at :][:64].reshape(8, 8) for at in (0, 1)]
    left[1][...] = uniform(8, 8)
    right = uniform(8, 3)
    looked = watched(monkeypatch)
    for one in (left[1], left[1], left[0], left[0]):
        (found,) = gemmlab.gemm_group(tensors([one]), tensors([right]))
        close(found, one @ right)
    assert len(looked) == 2


def test_long_sums_have_launches_of_their_own_and_are_found_again(
    driver: GemmDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others would wait for them."""
    shapes = [(1, 8, 4096), (37, 16, 4096), (128, 8, 4096), (64, 64, 32), (40, 33, 70), (5, 7, 3)]
    a, b = [uniform(m, k) for m, _, k in shapes], [uniform(n, k) for _, n, k in shapes]
    for again in (False, True):
        if again:
            monkeypatch.setattr(cuda_groups, "checked_call", lambda *_: pytest.fail("looked at"))
        for out in (None, tensors([np.full((m, n), np.nan, np.float32) for m, n, _ in shapes])):
            driver.launches.clear()
            found = gemmlab.gemm_group(tensors(a), tensors(b), out=out, trans_b=True, alpha=2.0 if again else 1.0)
            for result, left, right in zip(found, a, b, strict=True):
                np.testing.assert_allclose(values(result), (1 + again) * left @ right.T, rtol=1e-3, atol=1e-3)
            names = [name.partition("<")[0] for name, *_ in driver.launches]
            assert names.count("grouped") == 1
            assert len(names) == 4
            assert {stream for *_, stream in driver.launches} == {99}


def test_all_products_with_long_sums_are_found_again(driver: GemmDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = tensors([uniform(1, 4096), uniform(37, 4096)]), tensors([uniform(8, 4096), uniform(16, 4096)])
    gemmlab.gemm_group(a, b, trans_b=True)
    assert not any("grouped" in name for name, *_ in driver.launches)
    monkeypatch.setattr(cuda_groups, "checked_call", lambda *_: pytest.fail("looked at"))
    for result, left, right in zip(gemmlab.gemm_group(a, b, trans_b=True), a, b, strict=True):
        np.testing.assert_allclose(values(result), left.values @ right.values.T, rtol=1e-3, atol=1e-3)
