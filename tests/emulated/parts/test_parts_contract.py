"""The contract of a product, kept by kernels of several launches: alpha, beta, layouts, slices of k, small tiles."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from parts_runs import KERNELS, device, product

from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm_problem import LAYOUTS
from support.parts_data import KINDS, NORMAL, Array
from support.parts_model import errors

M, N, K = 130, 70, 300
SLICED = {"SLICE": 128}
"""Three slices of K."""
NARROW = {"BN": 64, "STAGES": 3}
"""Tiles of 128 x 64."""
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.id)


def operands(kind: str = "normal") -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(31)
    return (*KINDS[kind](rng, M, N, K), rng.standard_normal((M, N)).astype(np.float32))


def close(found: Array, a: Array, b: Array, alpha: float, beta: float, c: Array, slices: int = 1) -> None:
    """Assert the elementwise bound; each slice of k is added to C with a rounding of its own."""
    with np.errstate(invalid="ignore"):
        added = beta * c.astype(np.float64) if beta else np.zeros(c.shape)
    exact = alpha * (a.astype(np.float64) @ b) + added
    magnitude = abs(alpha) * (np.abs(a).astype(np.float64) @ np.abs(b)) + np.abs(added)
    assert (np.abs(found - exact) <= (K + 12 + 2 * slices) * 2.0**-24 * magnitude).all()


@pytest.mark.in_turns(20)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("config", [{}, SLICED], ids=["whole", "sliced"])
@pytest.mark.parametrize(("alpha", "beta"), [(0.5, -1.5), (-1.0, 0.0), (1.0, 1.0)])
@each_kernel
def test_alpha_and_beta(kernel: Kernel, alpha: float, beta: float, config: dict[str, int]) -> None:
    a, b, c = operands()
    if beta == 0.0:
        c[...] = np.nan
    found = product(kernel, a, b, alpha=alpha, beta=beta, c=c, config=config).c
    close(found, a, b, alpha, beta, np.nan_to_num(c), slices=3)


@pytest.mark.in_turns(20)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("config", [{}, SLICED], ids=["whole", "sliced"])
@each_kernel
def test_without_a_product_operands_are_not_read(kernel: Kernel, config: dict[str, int]) -> None:
    a, b, c = operands()
    a[...], b[...] = np.nan, np.nan
    np.testing.assert_array_equal(product(kernel, a, b, alpha=0.0, beta=-2.0, c=c, config=config).c, -2 * c)
    nothing = product(kernel, a, b, alpha=0.0, beta=0.0, c=np.full_like(c, np.nan), config=config).c
    np.testing.assert_array_equal(nothing, np.zeros_like(c))


@pytest.mark.in_turns(20)
@pytest.mark.sampled(1)
@each_kernel
def test_an_empty_sum_is_beta_c(kernel: Kernel) -> None:
    _, _, c = operands()
    a, b = np.zeros((M, 0), np.float32), np.zeros((0, N), np.float32)
    np.testing.assert_array_equal(product(kernel, a, b, beta=3.0, c=c).c, 3 * c)


@pytest.mark.in_turns(20)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["normal", "wider", "huge element"])
@each_kernel
def test_slices_of_k_add_up(kernel: Kernel, kind: str) -> None:
    a, b, c = operands(kind)
    found = product(kernel, a, b, beta=1.0, c=c, config=SLICED).c
    close(found, a, b, 1.0, 1.0, c, slices=3)


@pytest.mark.in_turns(20)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["normal", "wider"])
@pytest.mark.parametrize(
    ("layout", "tile"),
    [*(pytest.param(layout, {}, id=layout) for layout in LAYOUTS), pytest.param("tt", NARROW, id="tt BN=64")],
)
@each_kernel
def test_layouts_and_tiles_change_no_bit(kernel: Kernel, layout: str, kind: str, tile: dict[str, int]) -> None:
    """Parts, scales and the order of sums do not depend on how operands lie, nor on the width of a tile, as long as the
    tile is computed the same way.
    """
    a, b, _ = operands(kind)
    found = product(kernel, a, b, layout=layout, config=tile).c
    plain = product(kernel, a, b).c
    assert errors(found, a, b).max() <= K + 12
    if kind == "normal" or not tile:
        np.testing.assert_array_equal(found.view(np.uint32), plain.view(np.uint32))


@pytest.mark.in_turns(20)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("config", [{"BLOCKS": 1}, {"BLOCKS": 2, "GROUP": 1}, SLICED | {"BLOCKS": 3}], ids=str)
@each_kernel
def test_a_product_repeats_bit_by_bit_whatever_blocks_run(kernel: Kernel, config: dict[str, int]) -> None:
    a, b = NORMAL(np.random.default_rng(37), 259, 133, 257)
    a[1, 3] = 2.0**70  # one strip of rows goes another way
    sliced = {name: value for name, value in config.items() if name == "SLICE"}
    once, again = (product(kernel, a, b, config=chosen).c for chosen in (config, sliced))
    np.testing.assert_array_equal(once.view(np.uint32), again.view(np.uint32))


def test_the_device_is_the_architecture_that_they_are_for() -> None:
    assert {kernel.arch for kernel in KERNELS} == {device().target({})}
