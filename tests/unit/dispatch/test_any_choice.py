"""The choice for any product on any GPU: it can run, and no precision is lower than the caller asks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmlab.core.architecture import runs
from gemmlab.core.errors import UsageError
from gemmlab.dispatch.choice import choose, forced
from gemmlab.dispatch.measurements import Figures, shipped_table
from gemmlab.dispatch.waves import gpu_model
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm_problem import LAYOUTS, GemmProblem

TABLE = shipped_table()
H200 = gpu_model("H200")
SIZES = st.integers(0, 20_000)
MODELS = st.sampled_from(["H200", "A100", "L4", "RTX 4090", "T4"])


@given(SIZES, SIZES, SIZES, st.sampled_from(LAYOUTS), MODELS, st.sampled_from(["highest", "tf32"]))
@settings(max_examples=60, deadline=None)
def test_whatever_is_chosen_can_run_and_is_no_worse_than_asked(
    m: int, n: int, k: int, layout: str, model: str, precision: str
) -> None:
    where = gpu_model(model)
    found = choose(GemmProblem(m, n, k).with_layout(layout), where, TABLE, precision=precision)
    kernel = find_kernel(found.kernel)
    assert layout in kernel.layouts
    assert kernel.precision == "float32" or precision == "tf32"
    assert runs(kernel.arch, where.limits.arch)
    assert kernel.configure(found.config) == dict(found.config)
    # What was measured comes before the estimates of its precision, corrected ones before others, the fastest first.
    for each in {candidate.precision for candidate in found.considered}:
        mine = [candidate for candidate in found.considered if candidate.precision == each]
        corrected = any(candidate.corrected for candidate in mine)
        order = [(not one.measured, corrected and not one.measured and not one.corrected, one.us) for one in mine]
        assert order == sorted(order)
    assert all(candidate.resident >= 1 or not m * n for candidate in found.considered)


@pytest.mark.parametrize(
    ("model", "kernel"), [("H200", "mma_tf32x3"), ("A100", "mma_tf32x3"), ("L4", "mma_tf32x3"), ("T4", "")]
)
def test_tf32x3_takes_its_rung_wherever_it_runs(model: str, kernel: str) -> None:
    for problem in (GemmProblem(4096, 4096, 4096), GemmProblem(3, 5, 7, trans_b=True)):
        found = choose(problem, gpu_model(model), TABLE, precision="tf32x3")
        assert found.kernel == kernel if kernel else find_kernel(found.kernel).precision == "float32"


def test_precision_is_never_lower_than_asked() -> None:
    big = GemmProblem(4096, 4096, 4096)
    assert choose(big, H200, TABLE, precision="tf32").kernel == "persistent"
    assert choose(big, gpu_model("A100"), TABLE, precision="tf32").kernel == "mma_tf32_pipelined"
    found = choose(big, H200, TABLE, precision="highest")
    assert {candidate.precision for candidate in found.considered} == {"float32"}
    assert "tf32, which is lower than requested" in found.refused["mma_tf32_pipelined"]
    with pytest.raises(UsageError, match="precision is 'double'"):
        choose(big, H200, TABLE, precision="double")
    # Its two stages just fit an L4. Three would not.
    assert choose(big, gpu_model("L4"), TABLE, precision="tf32").kernel == "mma_tf32_pipelined"
    larger = [replace(one, smem=144 << 10) if one.kernel == "mma_tf32_pipelined" else one for one in TABLE.entries]
    small = choose(big, gpu_model("L4"), replace(TABLE, entries=tuple(larger)), precision="tf32")
    assert small.kernel.startswith("wmma_tf32")
    assert "registers or shared memory than L4 has" in small.refused["mma_tf32_pipelined"]


def test_where_nothing_can_run_it_is_said_why() -> None:
    with pytest.raises(UsageError, match=r"no kernel can compute 5x6x7 on V100: .*block_tile: needs sm_75"):
        choose(GemmProblem(5, 6, 7), gpu_model("V100"), TABLE, precision="highest")


@pytest.mark.parametrize("model", ["T4", "A100", "H200"])
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (8, 8, 8), (1, 9000, 70), (9000, 3, 8), (512, 512, 512), (16384, 16384, 16384)]
)
@pytest.mark.parametrize("reproducible", [False, True])
def test_where_nothing_was_measured_for_a_product_something_runs(
    model: str, shape: tuple[int, int, int], reproducible: bool
) -> None:
    """No GPU is without a kernel because of the domains."""
    found = choose(GemmProblem(*shape), gpu_model(model), TABLE, precision="highest", reproducible=reproducible)
    assert runs(find_kernel(found.kernel).arch, gpu_model(model).limits.arch)
    assert not reproducible or (found.order == "k" and all(one.in_order for one in found.considered))


def test_a_forced_configuration_of_the_chosen_kernel() -> None:
    problem = GemmProblem(4096, 4096, 4096)
    usual = choose(problem, H200, TABLE, precision="highest")
    found = forced(None, {"STAGES": 4}, problem, H200, TABLE, precision="highest")
    assert (found.kernel, dict(found.config), found.basis) == (usual.kernel, {**usual.config, "STAGES": 4}, "forced")


def test_an_odd_gpu_is_chosen_for_all_the_same() -> None:
    tiny = replace(H200, name="tiny", sms=1, mhz=500.0, known="")
    found = choose(GemmProblem(64, 64, 64), tiny, TABLE, precision="highest")
    assert found.considered[0].rounds >= 1


def test_reproducible_takes_only_kernels_that_add_in_the_order_of_k() -> None:
    split = replace(
        TABLE.entries[0], kernel="naive", grid=("SPLITS",), steps="ceil_div(K, SPLITS)", parts=(1, 64),
        figures=Figures(0.0, 0.01, 0.01), domain="", in_order=True, times_us={},
    )  # fmt: skip
    table = replace(TABLE, entries=(split, *(replace(e, in_order=False) for e in TABLE.entries[1:])))
    problem = GemmProblem(64, 64, 65536)
    usual = choose(problem, H200, table, precision="highest")
    assert usual.config["SPLITS"] == 64
    assert usual.order not in ("", "k")
    assert usual.order == choose(problem, H200, table, precision="highest").order
    assert usual.order != choose(GemmProblem(64, 64, 65535), H200, table, precision="highest").order
    pinned = choose(problem, H200, table, precision="highest", reproducible=True)
    assert (pinned.kernel, pinned.config["SPLITS"], pinned.order) == ("naive", 1, "k")
    assert {one.kernel for one in pinned.considered} == {"naive"}
    assert "does not add in the order of k" in pinned.refused[TABLE.entries[1].kernel]
    with pytest.raises(UsageError, match=r"wmma_tf32.* computes in tf32"):
        forced("wmma_tf32", None, problem, H200, TABLE, "highest", True)
    with pytest.raises(UsageError, match="does not add in the order of k"):
        forced("wmma_tf32", None, problem, H200, TABLE, "tf32", True)
