"""`precision=` on a CPU: which kernel serves it, with AMX and without."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab import api
from gemmlab.codegen.amx.amx_product import slower
from gemmlab.core.hardware import cpu_info
from gemmlab.devices import cpu_tiles
from gemmlab.devices.cpu import CpuDevice
from gemmlab.dispatch import cpu_precision
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.cpu_gemm import load_product
from gemmlab.dispatch.cpu_precision import CpuWay, cpu_way, forced_way
from gemmlab.dispatch.precision_rule import REQUESTS
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.rungs_on import rungs_on
from support.amx_model import needs_tiles

BY_BFLOATS = ("bf16x9", "bf16x6", "bf16x3")
LARGE = (512, 512, 512)


def forced(kernel: str | None, config: dict[str, int] | None, precision: str, extents: tuple[int, int, int]) -> CpuWay:
    return forced_way(Call(None, None, precision=precision, kernel=kernel, config=config), extents)


@pytest.fixture
def without_tiles(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A processor of the same kind without AMX."""
    info = replace(cpu_info(), features=cpu_info().features - {"amx_tile", "amx_bf16"}, name="A Processor")
    monkeypatch.setattr(cpu_tiles, "cpu_info", lambda: info)
    monkeypatch.setattr(api, "_products", {})
    monkeypatch.setattr(api, "_entries", {})
    for cached in (cpu_tiles.tiles_refusal, load_product):
        cached.cache_clear()
    yield
    for cached in (cpu_tiles.tiles_refusal, load_product):
        cached.cache_clear()


@needs_tiles
def test_float32_is_by_tiles_from_where_they_are_faster() -> None:
    large, small = cpu_way("float32", LARGE), cpu_way("float32", (32, 512, 512))
    assert (large.kernel.id, dict(large.config)) == ("amx_bf16x6", {"LANES": 0, "PRODUCTS": 6, "EVERYWHERE": 0})
    assert small.kernel.id == "threaded"
    assert slower(32, 512, 512)
    assert not slower(*LARGE)


@needs_tiles
def test_a_small_product_in_float32_has_the_bits_of_multiply_adds() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((64, 2, 33, 35), np.float32), rng.standard_normal((35, 37), np.float32)
    for left in (a, a[0, 0]):
        assert gemmlab.gemm(left, b, precision="float32").tobytes() == gemmlab.gemm(left, b).tobytes()


@needs_tiles
@pytest.mark.parametrize("precision", BY_BFLOATS)
def test_bfloat16_parts_are_forced_at_every_size(precision: str) -> None:
    way = cpu_way(precision, (3, 4, 5))
    assert (way.kernel.id, way.config["EVERYWHERE"]) == ("amx_bf16x6", 1)
    assert way.kernel.precision_in(way.config) == precision
    explained = gemmlab.explain_choice((3, 5), (5, 4), precision=precision, device="cpu")
    assert explained.kernel == "amx_bf16x6"


@pytest.mark.parametrize("precision", ["highest", "f16x3", "tf32"])
def test_other_requests_are_multiply_adds(precision: str) -> None:
    assert cpu_way(precision, LARGE).kernel.id == "threaded"


def test_three_products_are_never_chosen_for_float32() -> None:
    assert "bf16x3" not in REQUESTS["float32"]
    assert cpu_way("float32", LARGE).config.get("PRODUCTS", 6) == 6


@needs_tiles
def test_one_order_of_sums_means_multiply_adds() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((200, 300), np.float32), rng.standard_normal((300, 250), np.float32)
    pinned = gemmlab.gemm(a, b, precision="float32", reproducible=True)
    assert pinned.tobytes() == gemmlab.gemm(a, b).tobytes()
    assert gemmlab.explain_choice(a, b, precision="float32", reproducible=True).kernel == "threaded"


@needs_tiles
def test_a_kernel_of_less_precision_must_be_asked_for() -> None:
    one = np.ones((40, 40), np.float32)
    with pytest.raises(gemmlab.UsageError, match="amx_bf16x6 computes in bf16x6, and precision is 'highest'"):
        gemmlab.gemm(one, one, kernel="amx_bf16x6")
    with pytest.raises(gemmlab.UsageError, match="amx_bf16x6 computes in bf16x3, and precision is 'float32'"):
        gemmlab.gemm(one, one, kernel="amx_bf16x6", config={"PRODUCTS": 3}, precision="float32")
    assert (gemmlab.gemm(one, one, kernel="amx_bf16x6", precision="float32") == 40).all()


def test_a_configuration_alone_is_for_the_kernel_of_the_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_precision, "tiles_refusal", lambda: "")
    for precision, products in (("bf16x3", 3), ("bf16x6", 6), ("bf16x9", 9)):
        for config in ({}, {"LANES": 16}, {"PRODUCTS": products}):
            way = forced(None, config, precision, (3, 4, 5))
            assert way.kernel.id == "amx_bf16x6"
            assert way.config == {"LANES": 0, "PRODUCTS": products, "EVERYWHERE": 1} | config
    large, small = forced(None, {}, "float32", LARGE), forced(None, {}, "float32", (32, 512, 512))
    assert (large.kernel.id, large.config["EVERYWHERE"], small.kernel.id) == ("amx_bf16x6", 0, "threaded")
    assert forced(None, {}, "highest", LARGE).kernel.id == "threaded"
    explained = gemmlab.explain_choice((3, 5), (5, 4), precision="bf16x9", config={"LANES": 16}, device="cpu")
    assert (explained.kernel, explained.basis, explained.config["PRODUCTS"]) == ("amx_bf16x6", "forced", 9)
    sizes: Any = (999, 500), (500, 999)
    pieces = gemmlab.explain_choice(*sizes, precision="float32", config={}, memory_bytes=4_000_000, device="cpu")
    assert pieces.pieces is not None
    assert (pieces.kernel, pieces.pieces.least, pieces.pieces.unit) == ("amx_bf16x6", (256, 256), 32)
    with pytest.raises(gemmlab.UsageError, match="amx_bf16x6 computes in bf16x9, and precision is 'bf16x6'"):
        forced(None, {"PRODUCTS": 9}, "bf16x6", LARGE)


def test_a_named_kernel_of_parts_has_the_products_of_the_precision() -> None:
    for precision, products in (("bf16x3", 3), ("bf16x6", 6), ("bf16x9", 9), ("float32", 6)):
        assert forced("amx_bf16x6", None, precision, LARGE).config["PRODUCTS"] == products


def test_a_named_kernel_of_parts_is_not_reproducible() -> None:
    one: Any = np.ones((40, 40), np.float32)
    for call in (gemmlab.gemm, gemmlab.explain_choice):
        with pytest.raises(gemmlab.UsageError, match=r"amx_bf16x6 takes other sums .*, which reproducible excludes"):
            call(one, one, kernel="amx_bf16x6", precision="bf16x6", reproducible=True)
    assert (gemmlab.gemm(one, one, kernel="threaded", precision="bf16x6", reproducible=True) == 40).all()


@needs_tiles
def test_a_configuration_alone_keeps_the_bits_of_the_precision() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((40, 50), np.float32), rng.standard_normal((50, 60), np.float32)
    for precision in BY_BFLOATS:
        expected = gemmlab.gemm(a, b, precision=precision).tobytes()
        ways: tuple[dict[str, Any], ...] = ({"config": {}}, {"config": {"LANES": 16}}, {"kernel": "amx_bf16x6"})
        for options in ways:
            assert gemmlab.gemm(a, b, precision=precision, **options).tobytes() == expected


@pytest.mark.usefixtures("without_tiles")
@pytest.mark.parametrize("precision", BY_BFLOATS)
def test_without_tiles_parts_are_refused_by_name(precision: str) -> None:
    one = np.ones((2, 2), np.float32)
    lack = r"amx_bf16x6 needs AMX tiles, and this processor \(A Processor\) has no amx_tile and no amx_bf16"
    for config in (None, {}, {"LANES": 8}):
        with pytest.raises(gemmlab.DeviceError, match=f"precision '{precision}' by {lack}"):
            gemmlab.gemm(one, one, precision=precision, config=config)
        with pytest.raises(gemmlab.DeviceError, match=f"precision '{precision}' by {lack}"):
            gemmlab.gemm(one, one, precision=precision, config=config, memory_bytes=10**6)
        with pytest.raises(gemmlab.DeviceError, match=lack):
            gemmlab.explain_choice(one, one, precision=precision, config=config)
    assert (gemmlab.gemm(one, one, precision=precision, kernel="threaded") == 2).all()


@pytest.mark.in_turns(20)
@pytest.mark.usefixtures("without_tiles")
def test_without_tiles_float32_is_multiply_adds_and_says_so() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((300, 300), np.float32), rng.standard_normal((300, 300), np.float32)
    assert gemmlab.gemm(a, b, precision="float32").tobytes() == gemmlab.gemm(a, b).tobytes()
    explained = gemmlab.explain_choice(a, b, precision="float32")
    assert explained.kernel == "threaded"
    assert "amx_bf16x6 needs AMX tiles, and this processor (A Processor) has no amx_tile" in explained.reason


@pytest.mark.usefixtures("without_tiles")
def test_without_tiles_the_rung_is_left_out_and_does_not_load() -> None:
    found = rungs_on("gemm", CpuDevice())
    assert "amx_bf16x6" not in [kernel.id for kernel in found.kernels]
    (line,) = found.left_out
    assert line.startswith("left out: amx_bf16x6: needs AMX tiles")
    kernel = find_kernel("amx_bf16x6")
    with pytest.raises(gemmlab.DeviceError, match="amx_bf16x6: needs AMX tiles"):
        kernel.program(kernel.configure(), CpuDevice().target({}))
