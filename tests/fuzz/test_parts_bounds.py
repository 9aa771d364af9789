"""A search for operands that deceive the verdicts of `by_tile`: small elements of A against large ones of B."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, target
from hypothesis import strategies as st

from support.parts_model import Array, errors_of_halves, ways
from support.trials import Trials

ROWS = 3
MOST = 9.0
"""Units that halves may lose where verdicts allow them: 8 of elements that they hold, 1 of those that they do not."""

layouts = st.fixed_dictionaries({
    "k": st.sampled_from([1, 2, 3, 5, 16, 127, 128]),
    "few": st.tuples(st.integers(0, 100), st.integers(0, 100)),
    "apart": st.tuples(st.integers(0, 45), st.integers(0, 45)),
    "between": st.tuples(st.integers(0, 13), st.integers(0, 13)),
    "meet": st.integers(-100, 100),
    "bits": st.tuples(st.integers(0, 2**23 - 1), st.integers(0, 2**23 - 1)),
    "seed": st.integers(0, 2**16),
})  # fmt: skip
"""Two operands: how many per cent of their elements are small, by which power of two, how far the others lie apart, how
far the small ones of B lie behind those of A, and the bits of fractions."""


def operands(
    k: int, few: tuple[int, int], apart: tuple[int, int], between: tuple[int, int], meet: int, bits: tuple[int, int],
    seed: int,
) -> tuple[Array, Array]:  # fmt: skip
    """A (rows x k) and the transpose of B (rows x k)."""
    rng = np.random.default_rng(seed)
    found = []
    for operand in range(2):
        place = (np.arange(k) + operand * meet * k // 100) % k
        small = place < few[operand] * k // 100
        exponent = np.where(small, -apart[operand], -rng.integers(0, between[operand] + 1, k))
        fraction = (bits[operand] ^ rng.integers(0, 8, (ROWS, k))) * 2.0**-23
        # The largest element is there, whatever the others are.
        exponent[~small & (np.cumsum(~small) == 1)] = 0
        found.append(np.ldexp(1 + fraction, exponent).astype(np.float32))
    return found[0], found[1]


def allowed_error(a: Array, b: Array) -> float:
    """The units that halves lose, 0 where the verdicts do not allow them."""
    return float(errors_of_halves(a, np.ascontiguousarray(b.T)).max()) if ways(a, b.T)[0] else 0.0


@pytest.mark.in_turns(20)
@settings(max_examples=300)
@given(layouts)
def test_no_operands_are_found_for_which_halves_lose_more_than_the_bound(layout: dict[str, object]) -> None:
    error = allowed_error(*operands(**layout))  # type: ignore[arg-type]
    target(error)
    assert error <= MOST


@pytest.mark.in_turns(20)
def test_climbing_from_random_operands_finds_none_either(trials: Trials) -> None:
    """Each trial changes one element of one operand after the other, and keeps what makes the error larger."""
    for rng in trials:
        k = int(rng.choice([4, 16, 64, 128]))
        a, b = (np.ldexp(1 + rng.random((1, k)), -rng.integers(0, 30, k)).astype(np.float32) for _ in "ab")
        best = allowed_error(a, b)
        for _ in range(200):
            tried = a.copy(), b.copy()
            which, at = tried[int(rng.integers(2))], int(rng.integers(k))
            which[0, at] = np.ldexp(1 + rng.random(), -int(rng.integers(0, 45)))
            if (error := allowed_error(*tried)) >= best:
                (a, b), best = tried, error
        assert best <= MOST, (a, b)


def test_what_the_verdicts_refuse_can_lose_more() -> None:
    """Without the verdicts halves would be far beyond the bound: the search looks where there is something to find."""
    a, b = operands(128, (50, 50), (40, 40), (0, 0), 50, (0x355555, 0x2AAAAB), 0)
    assert allowed_error(a, b) == 0.0
    assert errors_of_halves(a, np.ascontiguousarray(b.T)).max() > 10 * MOST
