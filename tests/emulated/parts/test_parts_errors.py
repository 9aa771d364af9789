"""Products of 16-bit parts on emulated tensor cores: errors on every kind of data, and how each tile is computed."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from parts_runs import KERNELS, product

from gemmlab.core.precision import BY_TILE, F16X3
from gemmlab.kernels.kernel import Kernel
from support.parts_data import KINDS, NORMAL, Array, single_term
from support.parts_model import BLOCK, chain, errors, errors_of_halves, verdict, ways

M, N, K = 130, 70, 300
"""Two strips of rows, one of columns, two whole blocks of k and a part of one."""
HALVES_A_TILE, BFLOATS_A_TILE = 192, 384
"""Products of a tensor core for 128 of k of one tile, by warps."""
REPRESENTATION = 9.0
"""Units that two halves of each operand lose at most where `TwoHalves::suit` holds: docs/float32-on-tensor-cores.md."""
CUT_OFF = 84.2
"""Units that tensor cores cut off in the eight steps of 128 of k, of the terms of these."""
BY_TILES = [kernel for kernel in KERNELS if kernel.precision == BY_TILE]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.id)
each_kind = pytest.mark.parametrize("kind", KINDS)


def rng() -> np.random.Generator:
    return np.random.default_rng(17)


@pytest.mark.in_turns(20)
@pytest.mark.sampled(2)
@each_kind
@each_kernel
def test_errors_are_within_the_bound_of_any_order_of_sums(kernel: Kernel, kind: str) -> None:
    a, b = KINDS[kind](rng(), M, N, K)
    found = product(kernel, a, b).c
    assert np.isfinite(found).all()
    assert errors(found, a, b).max() <= K + 12


@pytest.mark.in_turns(20)
@pytest.mark.sampled(1)
@each_kind
@pytest.mark.parametrize("kernel", BY_TILES, ids=lambda kernel: kernel.id)
def test_each_tile_goes_the_way_that_its_operands_allow(kernel: Kernel, kind: str) -> None:
    a, b = KINDS[kind](rng(), M, N, K)
    found = product(kernel, a, b)
    halves, bfloats, exact = ways(a, b, apart=True)
    blocks = -(-K // BLOCK)
    assert (found.halves, found.bfloats) == (HALVES_A_TILE * blocks * halves, BFLOATS_A_TILE * blocks * bfloats)
    assert halves + bfloats + exact == 2
    _no_larger_than_of_a_chain(found.c, a, b)
    if not halves + bfloats:
        np.testing.assert_array_equal(found.c, chain(a, b))


@pytest.mark.in_turns(20)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["uniform", "wide", "wider"])
@pytest.mark.parametrize("depth", [128, 512, 1100])
@pytest.mark.parametrize("kernel", BY_TILES, ids=lambda kernel: kernel.id)
def test_positive_terms_have_no_larger_errors_than_a_chain(kernel: Kernel, depth: int, kind: str) -> None:
    """Tensor cores cut sums off, which adds up where all terms have one sign."""
    a, b = KINDS[kind](rng(), 70, 60, depth)
    _no_larger_than_of_a_chain(product(kernel, a, b).c, a, b)


def _no_larger_than_of_a_chain(c: Array, a: Array, b: Array) -> None:
    found, usual = errors(c, a, b), errors(chain(a, b), a, b)
    assert found.max() <= max(4.0, usual.max())
    assert np.sqrt((found**2).mean()) <= max(4.0, np.sqrt((usual**2).mean()))


@pytest.mark.in_turns(20)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["identity", "one-hot"])
@each_kernel
def test_a_single_term_is_exact_where_lines_are_thin(kernel: Kernel, kind: str) -> None:
    a, b = KINDS[kind](rng(), M, N, K)
    found = product(kernel, a, b)
    assert found.halves == 0
    assert errors(found.c, a, b).max() == 0


@pytest.mark.in_turns(20)
@each_kernel
def test_a_single_term_is_exact_by_bfloat16_and_off_by_two_units_by_halves(kernel: Kernel) -> None:
    a, b = single_term(rng(), M, N, K)
    assert ways(a, b) == (2, 0, 0)
    found = product(kernel, a, b)
    worst = errors(found.c, a, b).max()
    if kernel.precision in {F16X3, BY_TILE}:
        assert found.halves > 0
        assert 0 < worst <= 2
    else:
        assert worst == 0


def test_the_kinds_meet_every_way() -> None:
    seen = [ways(*make(rng(), M, N, K), apart=True) for make in KINDS.values()]
    assert all(any(counts[way] for counts in seen) for way in range(3))
    assert ways(*KINDS["huge element"](rng(), M, N, K)) == (0, 0, 2)
    assert ways(*KINDS["huge element"](rng(), M, N, K), apart=True) == (2, 0, 0)
    assert {ways(*KINDS[kind](rng(), M, N, K))[0] for kind in ("normal", "uniform", "integers")} == {2}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "uniform", "wide", "cancellation"])
@pytest.mark.parametrize("kernel", BY_TILES, ids=lambda kernel: kernel.id)
def test_long_sums_have_smaller_errors_than_a_chain(kernel: Kernel, kind: str) -> None:
    a, b = KINDS[kind](rng(), 128, 64, 2048)
    found, beside = (errors(c, a, b) for c in (product(kernel, a, b, config={"BN": 64}).c, chain(a, b)))
    assert found.max() <= max(4.0, beside.max())
    assert np.sqrt(np.mean(found**2)) <= max(4.0, np.sqrt(np.mean(beside**2)))


@pytest.mark.in_turns(20)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 15, 16, 17, 64, 127, 128, 129])
@each_kernel
def test_any_depth(kernel: Kernel, k: int) -> None:
    a, b = NORMAL(rng(), 65, 66, k)
    assert errors(product(kernel, a, b).c, a, b).max() <= k + 12


@pytest.mark.in_turns(20)
def test_two_halves_lose_no_more_than_the_page_proves() -> None:
    """The inequality of `TwoHalves::suit`: 8 units for elements that halves hold, 1 for those that they do not."""
    (kernel,) = (kernel for kernel in KERNELS if kernel.precision == F16X3)
    held = 0
    for kind, make in KINDS.items():
        a, b = make(rng(), M, N, K)
        if ways(a, b)[0] < 2:
            continue
        held += 1
        most = REPRESENTATION + CUT_OFF + 1 + -(-K // BLOCK)
        assert errors(product(kernel, a, b).c, a, b).max() <= most, kind
        # What the parts lose, without what sums lose: an upper bound on it holds element by element.
        assert errors_of_halves(a, b).max() <= REPRESENTATION, kind
    assert held >= 4


def test_the_verdicts_are_those_of_a_row_at_a_time() -> None:
    x = np.ones((2, 256), np.float32)
    x[1, 130] = 2.0**-29
    found = verdict(x, strip=1)
    assert (found.wide.tolist(), found.small.tolist()) == ([False, True], [False, False])
    x[1, 128:161] = 2.0**-13
    assert verdict(x, strip=1).small.tolist() == [False, True]
    x[0, 120] = np.inf
    assert verdict(x, strip=2).unfit.tolist() == [True]
    x[0, :97] = 0
    assert verdict(x, strip=1).thin.tolist() == [True, False]
    assert verdict(x, strip=2).odd == (0,)
    assert not verdict(x, strip=2, odd=False).unfit.any()
