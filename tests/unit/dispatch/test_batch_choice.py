"""How a batch is computed on a GPU, and why: a pure function of the problem."""

from __future__ import annotations

import numpy as np
import pytest

import gemmlab
from gemmlab.dispatch import batch_choice
from gemmlab.dispatch.choice_values import FORCED, RECORD, RULE
from gemmlab.dispatch.measurements import shipped_table
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.batch import BatchOp, BatchProblem


def tile(batch: int, *extents: int, **how: object) -> tuple[int, int]:
    m, n, k = extents
    found = gemmlab.explain_choice((batch, m, k), (batch, k, n), device="H200", **how)  # type: ignore[arg-type]
    assert found.kernel == "batched"
    return found.config["BM"], found.config["BN"]


def test_small_products_get_small_tiles_and_large_ones_large_tiles() -> None:
    assert tile(512, 32, 32, 32) == (32, 32)
    assert tile(64, 128, 128, 128)[0] <= 64
    assert tile(128, 512, 512, 512)[1] >= 128


def test_the_reason_names_both_ways() -> None:
    found = gemmlab.explain_choice((64, 96, 80), (64, 80, 72), device="H200")
    assert (found.kernel, found.basis) == ("batched", RULE)
    assert found.problem == "64*96x72x80 (nn), precision 'highest'"
    assert found.reason.startswith("by rule: one launch is estimated at ")
    assert " a launch for each product at 64 x " in found.reason
    assert {one.kernel for one in found.considered} == {"batched"}
    assert [one.us for one in found.considered] == sorted(one.us for one in found.considered)


def test_a_batch_that_was_timed_is_chosen_by_record() -> None:
    """The rule alone would take 16 warps, which need half as long again for lines along k."""
    q, keys = np.empty((256, 1, 128), np.float32), np.empty((256, 2048, 128), np.float32).swapaxes(1, 2)
    found = gemmlab.explain_choice(q, keys, device="H200")
    assert (found.kernel, found.basis) == ("batched_rows", RECORD)
    assert found.reason.startswith("by record: one launch is measured at ")
    assert found.config["WARPS"] == 4
    assert all(one.measured for one in found.considered)
    assert gemmlab.explain_choice(q, keys, device="L4").basis == RULE


@pytest.mark.parametrize("along", [False, True])
def test_strips_have_figures_for_each_order_of_lines(along: bool) -> None:
    entries = shipped_table(batch_choice.FILE).entries
    domains = {one.domain for one in entries if one.kernel == "batched_rows"}
    assert len(domains) == 2
    lines = np.empty((300, 1000, 96) if along else (300, 96, 1000), np.float32)
    q, wide = np.empty((300, 1, 96), np.float32), lines.swapaxes(1, 2) if along else lines
    found = gemmlab.explain_choice(q, wide, device="H200")
    assert (found.kernel, found.basis) == ("batched_rows", RULE)
    strips = [one.config for one in found.considered if one.kernel == "batched_rows"]
    assert len(strips) == len({tuple(one.items()) for one in strips}), "figures of one order only"


@pytest.mark.parametrize("device", ["H200", "L4", "emulated:sm_80"])
def test_any_gpu_from_sm_80_on(device: str) -> None:
    assert gemmlab.explain_choice((9, 32, 32), (9, 32, 32), device=device).kernel == "batched"


def test_what_is_one_product_is_chosen_as_one() -> None:
    for left, right in (((1, 64, 64), (1, 64, 64)), ((8, 64, 64), (64, 64)), ((0, 64, 64), (0, 64, 64))):
        assert gemmlab.explain_choice(left, right, device="H200").kernel != "batched"


def test_a_kernel_that_the_caller_names_runs_for_each() -> None:
    found = gemmlab.explain_choice((8, 64, 64), (8, 64, 64), device="H200", kernel="naive")
    assert (found.kernel, found.basis) == ("naive", FORCED)


def test_tensor_cores_win_over_one_launch_where_products_are_large() -> None:
    large, small = (4, 4096, 4096), (64, 64, 64)
    assert gemmlab.explain_choice(large, large, device="H200", precision="tf32").kernel != "batched"
    assert gemmlab.explain_choice(small, small, device="H200", precision="tf32").kernel == "batched"


def test_figures_are_of_legal_configurations() -> None:
    for entry in shipped_table(batch_choice.FILE).entries:
        kernel = find_kernel(entry.kernel)
        config = kernel.configure(entry.config)
        assert entry.layouts == kernel.layouts
        scalars = {**BatchOp().scalars(BatchProblem(64, 64, 64, batch=3)), **dict.fromkeys("abc", np.uint64(0))}
        (launch,) = kernel.launches(kernel.instantiate(config, scalars), scalars)
        assert entry.threads == launch.threads[0]
        assert entry.grid == kernel.grid
        assert entry.in_order == kernel.in_order(config)


def test_a_few_rows_are_read_and_not_tiled() -> None:
    for m, n, layout in ((1, 2048, "nt"), (4, 512, "nn"), (700, 2, "nn")):
        left, right = (256, m, 128), (256, n, 128) if layout == "nt" else (256, 128, n)
        found = gemmlab.explain_choice(left, right, trans_b=layout == "nt", device="H200")
        assert found.kernel == "batched_rows"
        assert found.config["ROWS"] >= min(m, n)
        assert found.order not in ("", "k")
        again = gemmlab.explain_choice(left, right, trans_b=layout == "nt", device="H200", reproducible=True)
        assert (again.kernel, again.order) == ("batched", "k")
