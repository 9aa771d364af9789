"""Products of anything beside float64: `gemmlab.gemm` on one pair of matrices and on stacks of them."""

import pytest
from products import check_products

from support.trials import Trials


def test_products(trials: Trials) -> None:
    for rng in trials:
        check_products(rng)


@pytest.mark.in_turns(20)
def test_larger_products(trials: Trials) -> None:
    for rng in trials:
        check_products(rng, large=True)
