"""Simulated AMX tiles: the instructions' bits, tiles of each thread, and nothing left of them for other tests."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gemmlab
from gemmlab import api
from gemmlab.codegen import runtime
from gemmlab.devices.cpu_tiles import tiles_refusal
from support.amx_model import add_products, parts_of
from support.simulated_tiles import simulated_tiles
from support.tile_instructions import SIMULATED, threads_with_tiles, tile_instructions

Array = npt.NDArray[np.float32]
_TILE = ctypes.c_int8
_MOVE = (_TILE, ctypes.c_void_p, ctypes.c_int64)
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "ldtilecfg": (ctypes.c_void_p,), "tilerelease": (), "tilezero": (_TILE,), "tileloadd64": _MOVE,
    "tilestored64": _MOVE, "tdpbf16ps": (_TILE, _TILE, _TILE),
}  # fmt: skip
SHAPE = np.array([1, *[0] * 15, *[64, 0] * 8, *[0] * 16, *[16] * 8, *[0] * 8], np.uint8)


@pytest.fixture
def simulated() -> Iterator[None]:
    with simulated_tiles() as refusal:
        if refusal:
            pytest.skip(refusal)
        yield


def run(name: str, *arguments: int) -> None:
    ctypes.CFUNCTYPE(None, *SIGNATURES[name])(tile_instructions()[SIMULATED + name])(*arguments)


def load(tile: int, words: npt.NDArray[Any]) -> None:
    run("tileloadd64", tile, words.ctypes.data, 64)


def stored(tile: int) -> Array:
    found = np.full((16, 20), np.nan, np.float32)
    run("tilestored64", tile, found.ctypes.data, 80)
    assert np.isnan(found[:, 16:]).all()
    return found[:, :16].copy()


def words_of(lower: Array, upper: Array) -> npt.NDArray[np.uint32]:
    """Two bfloat16 a word."""
    low, high = (np.ascontiguousarray(half).view(np.uint32) for half in (lower, upper))
    return low >> np.uint32(16) | high & np.uint32(0xFFFF0000)


def multiplied(c: Array, a: Array, b: Array) -> Array:
    """C + A B by the instruction, for 32 of k; k and k + 16 are neighbours."""
    run("ldtilecfg", SHAPE.ctypes.data)
    load(0, c)
    load(5, words_of(a[:, :16], a[:, 16:]))
    load(7, words_of(b[:16], b[16:]))
    run("tdpbf16ps", 0, 5, 7)
    found = stored(0)
    run("tilerelease")
    return found


@pytest.mark.usefixtures("simulated")
def test_a_product_of_tiles_has_the_bits_of_the_model() -> None:
    rng = np.random.default_rng(8)
    a, b = (parts_of(rng.standard_normal(shape).astype(np.float32))[0] for shape in ((16, 32), (32, 16)))
    c = rng.standard_normal((16, 16)).astype(np.float32)
    assert multiplied(c, a, b).tobytes() == add_products(c, a, b).tobytes()


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize(
    ("of_a", "of_b", "of_c", "expected"),
    [(2.0**-130, 2.0**20, 0, 0), (2.0**20, 2.0**-130, 0, 0), (2.0**-70, 2.0**-70, 0, 0), (0, 0, 2.0**-130, 0),
     (2.0**-70, 2.0**-56, 0, 2.0**-121), (np.inf, 1, 0, np.inf)],
)  # fmt: skip
def test_subnormal_numbers_are_zeros(of_a: float, of_b: float, of_c: float, expected: float) -> None:
    values = ((of_c, (16, 16)), (of_a, (16, 32)), (of_b, (32, 16)))
    assert (multiplied(*(np.full(shape, value, np.float32) for value, shape in values)) == expected).all()


@pytest.mark.usefixtures("simulated")
def test_each_thread_has_tiles_of_its_own() -> None:
    together = threading.Barrier(6, timeout=60)
    seen: list[tuple[bool, int]] = []

    def work(index: int) -> None:
        mine = np.full((16, 16), index, np.float32)
        run("ldtilecfg", SHAPE.ctypes.data)
        fresh = stored(3)
        load(3, mine)
        together.wait()
        count = threads_with_tiles()
        seen.append((not fresh.any() and bool((stored(3) == mine).all()), count))
        run("tilezero", 3)
        together.wait()
        run("tilerelease")

    workers = [threading.Thread(target=work, args=(index,)) for index in range(1, 7)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert seen == [(True, 6)] * 6
    assert threads_with_tiles() == 0


@pytest.mark.in_turns(20)
@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_a_call_leaves_no_thread_with_tiles(threads: int) -> None:
    a = np.random.default_rng(3).standard_normal((256, 256)).astype(np.float32)
    for value in (1.0, np.nan):
        a[3, 3] = value
        gemmlab.gemm(a, a, precision="bf16x6", threads=threads)
        assert threads_with_tiles() == 0


@pytest.mark.in_turns(20)
def test_other_tests_find_the_processor_as_it_was() -> None:
    one = np.ones((256, 256), np.float32)
    calls: list[Callable[[], Any]] = [
        lambda: gemmlab.gemm(one, one).tobytes(),
        lambda: gemmlab.gemm(one, one, precision="bf16x6").tobytes(),
        lambda: gemmlab.gemm(one, one, kernel="amx_bf16x6", precision="float32").tobytes(),
        lambda: gemmlab.explain_choice(one, one, precision="float32").kernel,
        lambda: (tiles_refusal(), api._entry, dict(api._products), runtime.runtime().workspace_bytes),
    ]

    def outcomes() -> list[Any]:
        return [outcome(call) for call in calls]

    before = outcomes()
    assert tiles_refusal() in before[1] if tiles_refusal() else before[1] == before[0]
    with simulated_tiles() as refusal:
        if refusal:
            pytest.skip(refusal)
        during = outcomes()
    assert during[1:4] == [during[0], during[0], "amx_bf16x6"]
    assert outcomes() == before


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except gemmlab.DeviceError as error:
        return str(error)
