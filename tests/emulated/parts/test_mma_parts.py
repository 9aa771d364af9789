"""Parts split in registers, for `mma.sync`: errors on every kind of data, special values, and the contract."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from parts_runs import product
from test_parts_special import ieee, same_places

from gemmlab.core.precision import TF32X3
from gemmlab.devices.select import open_device
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm_problem import LAYOUTS
from support.parts_data import KINDS, NORMAL
from support.parts_model import chain, errors

ARCHS = ("sm_80", "sm_90")
M, N, K = 140, 132, 160
KERNELS = [find_kernel(name) for name in ("mma_tf32x3", "mma_bf16x6", "mma_f16x3")]
SMALLER = {"BM": 64, "WN": 32}
"""Tiles of 64 x 128."""
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.id)
each_arch = pytest.mark.parametrize("arch", ARCHS)


def rng() -> np.random.Generator:
    return np.random.default_rng(41)


@pytest.mark.in_turns(20)
@pytest.mark.sampled(2)
@each_arch
@pytest.mark.parametrize("kind", KINDS)
@each_kernel
def test_errors_are_those_of_a_chain_or_a_few_units(kernel: Kernel, kind: str, arch: str) -> None:
    """Three TF32 products lose up to 8 units of a single term, six of bfloat16 up to 4. Halves lose as much as TF32,
    but thin lines are not theirs.
    """
    a, b = KINDS[kind](rng(), M, N, K)
    found = errors(product(kernel, a, b, on=open_device(f"emulated:{arch}")).c, a, b)
    beside = errors(chain(a, b), a, b)
    assert found.max() <= max(8.0 if kernel.precision == TF32X3 else 4.0, beside.max())
    assert np.sqrt(np.mean(found**2)) <= max(1.0, np.sqrt(np.mean(beside**2)))


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("kind", ["identity", "one-hot"])
def test_a_single_term_is_exact_by_bfloat16(kind: str) -> None:
    a, b = KINDS[kind](rng(), M, N, K)
    np.testing.assert_array_equal(product(find_kernel("mma_bf16x6"), a, b, on=open_device("emulated:sm_80")).c, a @ b)


@pytest.mark.in_turns(20)
@pytest.mark.sampled(2)
@each_arch
@pytest.mark.parametrize("kind", ["huge element", "tiny by huge", "subnormal", "largest"])
@each_kernel
def test_tiles_that_parts_do_not_hold_are_computed_exactly(kernel: Kernel, kind: str, arch: str) -> None:
    a, b = KINDS[kind](rng(), 128, 128, 64)
    on = open_device(f"emulated:{arch}")
    np.testing.assert_array_equal(product(kernel, a, b, on=on).c, chain(a, b))


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@each_kernel
def test_a_special_value_stays_in_its_row_or_column(kernel: Kernel, value: float) -> None:
    a, b = NORMAL(rng(), 260, 140, 40)
    clean = product(kernel, a, b, on=open_device("emulated:sm_80")).c
    a[131, 20] = value
    a[3, 39], b[20, 11] = 0, 0
    found = product(kernel, a, b, on=open_device("emulated:sm_80")).c
    same_places(found, ieee(a, b))
    # Tiles without a new value have their bits, but for the row and the column of the new zeros.
    rest = np.ones((260, 140), bool)
    rest[128:], rest[3], rest[:, 11] = False, False, False
    np.testing.assert_array_equal(found[rest].view(np.uint32), clean[rest].view(np.uint32))


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("k", [1, 3, 8, 15, 31, 32, 33, 65])
@each_kernel
def test_any_depth(kernel: Kernel, k: int) -> None:
    a, b = NORMAL(rng(), 65, 66, k)
    assert errors(product(kernel, a, b, on=open_device("emulated:sm_80")).c, a, b).max() <= k + 12


@pytest.mark.in_turns(20)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("tile", [{}, SMALLER], ids=["128", "64"])
@each_kernel
def test_layouts_and_tiles_change_no_bit(kernel: Kernel, layout: str, tile: dict[str, int]) -> None:
    a, b = NORMAL(rng(), M, N, K)
    on = open_device("emulated:sm_80")
    found, plain = (
        product(kernel, a, b, layout=way, config=config, on=on).c for way, config in ((layout, tile), ("nn", {}))
    )
    np.testing.assert_array_equal(found.view(np.uint32), plain.view(np.uint32))


@pytest.mark.in_turns(20)
@each_kernel
def test_alpha_and_beta(kernel: Kernel) -> None:
    a, b = NORMAL(rng(), M, N, K)
    c = rng().standard_normal((M, N)).astype(np.float32)
    found = product(kernel, a, b, alpha=0.5, beta=-1.5, c=c, on=open_device("emulated:sm_80")).c
    exact = 0.5 * (a.astype(np.float64) @ b) - 1.5 * c
    magnitude = 0.5 * (np.abs(a).astype(np.float64) @ np.abs(b)) + np.abs(1.5 * c)
    assert (np.abs(found - exact) <= 14 * 2.0**-24 * magnitude).all()


@pytest.mark.in_turns(20)
@each_kernel
def test_without_a_product_operands_are_not_read(kernel: Kernel) -> None:
    a, b = np.full((M, K), np.nan, np.float32), np.full((K, N), np.nan, np.float32)
    c = rng().standard_normal((M, N)).astype(np.float32)
    on = open_device("emulated:sm_80")
    np.testing.assert_array_equal(product(kernel, a, b, alpha=0.0, beta=-2.0, c=c, on=on).c, -2 * c)
