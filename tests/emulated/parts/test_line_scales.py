"""Scales and verdicts of whole rows and columns (`line_scales.cuh`): where halves multiply, and multiply-adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from parts_runs import product

from gemmlab.devices.select import open_device
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm_problem import LAYOUTS
from support.parts_data import NORMAL, Array
from support.parts_model import chain, errors

KERNEL = find_kernel("mma_f16x3")
M, N, K = 40, 36, 64
LINE = 33


def _times(count: int, factor: float) -> Callable[[Array], None]:
    """The first elements of a line multiplied by a factor."""

    def change(line: Array) -> None:
        line[:count] *= np.float32(factor)

    return change


def _wide_and_small(count: int) -> Callable[[Array], None]:
    """One element far below the largest, which makes the line wide, and others below 2^-12 of it, `count` in all."""

    def change(line: Array) -> None:
        line[:count] *= np.float32(2.0**-14)
        line[0] = 2.0**-30

    return change


HELD: Mapping[str, Callable[[Array], None]] = {
    "as they are": _times(0, 1.0), "2^-26 of the largest": _times(1, 2.0**-26), "wide": _times(1, 2.0**-30),
    "a quarter small": _wide_and_small(K // 4), "small, not wide": _times(40, 2.0**-20),
    "a quarter there": _times(3 * K // 4, 0.0), "nothing there": _times(K, 0.0),
    "largest": _times(K, 2.0**60), "least": _times(K, 2.0**-60),
}  # fmt: skip
NOT_HELD: Mapping[str, Callable[[Array], None]] = {
    "more than a quarter small": _wide_and_small(K // 4 + 1), "less than a quarter there": _times(3 * K // 4 + 1, 0.0),
    "too large": _times(K, 2.0**61), "too small": _times(K, 2.0**-61), "infinite": _times(1, np.inf),
}  # fmt: skip


def operands(change: Callable[[Array], None], of: str) -> tuple[Array, Array]:
    """A and B of magnitudes from 1 to 2 but for one row of A, or one column of B."""
    rng = np.random.default_rng(5)
    a, b = (rng.choice([-1, 1], shape) * (1 + rng.random(shape)) for shape in ((M, K), (K, N)))
    found = a.astype(np.float32), b.astype(np.float32)
    change(found[0][LINE] if of == "a" else found[1][:, LINE])
    return found


@pytest.mark.in_turns(20)
@pytest.mark.sampled(4)
@pytest.mark.parametrize("layout", ["nn", "tt"])
@pytest.mark.parametrize("of", ["a", "b"])
@pytest.mark.parametrize("kind", HELD)
def test_halves_multiply_what_they_hold(kind: str, of: str, layout: str) -> None:
    a, b = operands(HELD[kind], of)
    found = product(KERNEL, a, b, layout=layout, on=open_device("emulated:sm_80"))
    assert found.counters.executed("HMMA") > 0
    assert errors(found.c, a, b).max() <= max(4.0, errors(chain(a, b), a, b).max())


@pytest.mark.in_turns(20)
@pytest.mark.sampled(4)
@pytest.mark.parametrize("layout", ["nn", "tt"])
@pytest.mark.parametrize("of", ["a", "b"])
@pytest.mark.parametrize("kind", NOT_HELD)
def test_multiply_adds_do_the_rest(kind: str, of: str, layout: str) -> None:
    a, b = operands(NOT_HELD[kind], of)
    found = product(KERNEL, a, b, layout=layout, on=open_device("emulated:sm_80"))
    assert found.counters.executed("HMMA") == 0
    np.testing.assert_array_equal(found.c, chain(a, b))


@pytest.mark.in_turns(20)
def test_verdicts_on_both_operands_are_joined() -> None:
    """A row that is wide alone and a column that has many small elements alone are held; together they are not."""
    a, b = operands(HELD["wide"], "a")
    HELD["small, not wide"](b[:, LINE])
    assert product(KERNEL, a, b, on=open_device("emulated:sm_80")).counters.executed("HMMA") == 0


@pytest.mark.in_turns(20)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("exponents", [(40, -50), (-55, 55)])
def test_scales_of_lines_change_no_bit(exponents: tuple[int, int], layout: str) -> None:
    """Rows and columns times powers of two, each its own: results are the same times these."""
    a, b = NORMAL(np.random.default_rng(6), 150, 140, 70)
    rows, columns = 2.0 ** np.linspace(*exponents, 150).round(), 2.0 ** np.linspace(0, 30, 140).round()
    on = open_device("emulated:sm_80")
    plain = product(KERNEL, a, b, on=on).c
    scaled = product(
        KERNEL, (a * rows[:, None]).astype(np.float32), (b * columns).astype(np.float32), layout=layout, on=on
    ).c
    np.testing.assert_array_equal(scaled, plain * rows[:, None] * columns)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("k", [32, 64, 128, 300])
@pytest.mark.parametrize("kind", ["normal", "uniform"])
def test_errors_from_32_of_k_on(kind: str, k: int) -> None:
    rng = np.random.default_rng(7)
    a, b = NORMAL(rng, 130, 132, k)
    if kind == "uniform":
        a, b = rng.random(a.shape, np.float32), rng.random(b.shape, np.float32)
    found, beside = errors(product(KERNEL, a, b, on=open_device("emulated:sm_80")).c, a, b), errors(chain(a, b), a, b)
    assert found.max() <= max(4.0, beside.max())
    assert np.sqrt(np.mean(found**2)) <= max(1.0, np.sqrt(np.mean(beside**2)))
