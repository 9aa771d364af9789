"""`gemmlab.gemm` of arrays on a GPU, with driver and kernels played by Python: what is launched where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab import kernels
from gemmlab.core.errors import UsageError
from gemmlab.dispatch import choice
from gemmlab.kernels.catalog import find_kernel
from support.cuda_source import needs_compiler
from support.gemm_driver import GemmDriver, transposed
from support.gemm_on_gpu import A, B, C, close, emulate, forms, played_driver, uniform
from support.gpu_arrays import OnGpu


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[GemmDriver]:
    yield from played_driver(monkeypatch)


def test_one_launch_on_the_arrays_own_stream(driver: GemmDriver) -> None:
    found = gemmlab.gemm(OnGpu(A, 77), OnGpu(B, 77))
    close(found, A @ B)
    assert found.__cuda_array_interface__["stream"] == 77
    (launch,) = driver.launches
    assert launch[-1] == 77
    assert not driver.events


def test_a_c_without_axes_is_added_to_the_product_of_two_vectors(driver: GemmDriver) -> None:
    for _ in range(3):
        close(gemmlab.gemm(OnGpu(A[0]), OnGpu(B[:, 0]), beta=2, c=OnGpu(np.array(3.0, np.float32))), A[0] @ B[:, 0] + 6)
    assert len(driver.launches) == 3


@pytest.mark.parametrize("of_a", forms(A))
@pytest.mark.parametrize("of_b", forms(B))
@pytest.mark.parametrize("of_out", forms(C))
def test_every_layout_is_read_and_written_in_place(driver: GemmDriver, of_a: str, of_b: str, of_out: str) -> None:
    """No package is known here that could copy, and outputs keep what lies between their rows."""
    out = forms(C)[of_out]
    around = None if out.base is None else out.base.copy()
    result = gemmlab.gemm(OnGpu(forms(A)[of_a]), OnGpu(forms(B)[of_b]), alpha=0.5, beta=2, c=(o := OnGpu(out)), out=o)
    assert result is o
    close(o, 0.5 * A @ B + 2 * C)
    assert len(driver.launches) == 1
    if around is not None and np.isnan(around).any():
        assert np.isnan(np.asarray(out.base)[np.isnan(around)]).all()


def test_transposed_operands_go_to_kernels_that_read_them(driver: GemmDriver) -> None:
    close(gemmlab.gemm(OnGpu(A), OnGpu(C), trans_a=True), A.T @ C)
    close(gemmlab.gemm(OnGpu(A.T), OnGpu(C)), A.T @ C)
    close(gemmlab.gemm(OnGpu(A), OnGpu(B.T), trans_b=True), A @ B)
    assert [transposed(launch[0]) for launch in driver.launches] == [(True, False), (True, False), (False, False)]


def test_a_column_major_result_is_the_product_the_other_way_round(driver: GemmDriver) -> None:
    out = OnGpu(np.empty((8, 12), np.float32).T)
    close(gemmlab.gemm(OnGpu(A.T.copy().T), OnGpu(B.T.copy().T), out=out), A @ B)
    # (C^T) = (B^T) (A^T), all of them row-major.
    assert transposed(driver.launches[0][0]) == (False, False)


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 5, 7), (3, 7, 2)), ((5, 7), (4, 7, 2)), ((2, 1, 5, 7), (3, 7, 2)), ((7,), (7,)), ((5, 7), (7,)),
        ((7,), (7, 5)), ((3, 5, 7), (7,)), ((7,), (3, 7, 5)), ((0, 7), (7, 5)), ((5, 0), (0, 6)), ((5, 7), (7, 0)),
        ((0, 5, 7), (7, 2)), ((1, 7), (7, 1)),
    ],
)  # fmt: skip
def test_shapes_are_those_of_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    left, right = uniform(*a), uniform(*b)
    close(gemmlab.gemm(OnGpu(left), OnGpu(right)), np.asarray(left @ right))


def test_c_is_put_into_a_fresh_result_first(driver: GemmDriver) -> None:
    close(gemmlab.gemm(OnGpu(A, 7), OnGpu(B, 7), beta=3, c=OnGpu(C, 7)), A @ B + 3 * C)
    assert driver.events == [("cuMemcpyDtoDAsync", 7)]
    # With beta 0 it is not read.
    close(gemmlab.gemm(OnGpu(A, 7), OnGpu(B, 7), c=OnGpu(np.full_like(C, np.nan), 7)), A @ B)
    assert len(driver.events) == 1


def test_alpha_0_reads_neither(driver: GemmDriver) -> None:
    nothing = np.full_like(A, np.nan)
    close(gemmlab.gemm(OnGpu(nothing), OnGpu(B), alpha=0, beta=2, c=OnGpu(C)), 2 * C)
    assert len(driver.launches) == 1


def test_the_result_s_stream_waits_for_those_of_operands(driver: GemmDriver) -> None:
    gemmlab.gemm(OnGpu(A, 7), OnGpu(B, 8))
    assert driver.events == [("cuEventRecord", 8), ("cuStreamWaitEvent", 7)]
    driver.events.clear()
    gemmlab.gemm(OnGpu(A, 7), OnGpu(B, None), out=OnGpu(np.empty_like(C), 9))
    assert driver.events == [("cuEventRecord", 7), ("cuStreamWaitEvent", 9)]


def test_the_caller_s_context_is_current_again(driver: GemmDriver) -> None:
    driver.contexts.append("another GPU's")
    gemmlab.gemm(OnGpu(A), OnGpu(B))
    assert "context of 1" in driver.contexts
    assert driver.contexts[-1] == "another GPU's"


def test_a_shape_is_chosen_and_loaded_once(driver: GemmDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    real, chosen = choice.choose, list[Any]()

    def choose(*arguments: Any, **options: Any) -> Any:
        chosen.append(arguments)
        return real(*arguments, **options)

    monkeypatch.setattr(choice, "choose", choose)
    for alpha in (1.0, 2.0):
        close(gemmlab.gemm(OnGpu(A), OnGpu(B), alpha=alpha), alpha * A @ B)
    assert len(chosen) == 1
    assert driver.modules == 1


def test_kernel_and_config_force(driver: GemmDriver) -> None:
    close(gemmlab.gemm(OnGpu(A), OnGpu(B), kernel="naive", config={"BM": 16}), A @ B)
    assert driver.launches[-1][0] == "naive<16, 32, 16>"
    close(gemmlab.gemm(OnGpu(A), OnGpu(B), kernel="async_copy", config={"STAGES": 2}), A @ B)
    assert driver.launches[-1][0].startswith("async_copy<128, 256, 8, 16, 8, 2,")
    # Shared memory beyond the usual is asked for, as for any launch.
    close(gemmlab.gemm(OnGpu(A), OnGpu(B), kernel="async_copy", config={"STAGES": 4}), A @ B)
    assert driver.attributes[-1][1] == 4 * 4 * 8 * (128 + 256 + 8)


def test_a_file_of_one_s_own(driver: GemmDriver, tmp_path: Path) -> None:
    shipped = Path(kernels.__file__).parent / "gemm_cuda" / "naive.cu"
    close(gemmlab.gemm(OnGpu(A), OnGpu(B), kernel=str(shipped)), A @ B)
    assert driver.launches[-1][0] == "naive<32, 32, 16>"
    picky = tmp_path / "picky.cu"
    text = shipped.read_text().replace("naive(", "picky(").replace('"BM >= 1"', '"BM >= 1", "beta == 0"')
    picky.write_text(re.sub(r"expect = \[.*?\n\]\n", "", text, flags=re.DOTALL))
    close(gemmlab.gemm(OnGpu(A), OnGpu(B), alpha=2, kernel=str(picky)), 2 * A @ B)
    with pytest.raises(UsageError, match=r"picky does not take .*beta == 0"):
        gemmlab.gemm(OnGpu(A), OnGpu(B), beta=1, c=OnGpu(C), kernel=str(picky))
    with pytest.raises(UsageError, match=r"nobody\.cu"):
        gemmlab.gemm(OnGpu(A), OnGpu(B), kernel="nobody.cu")


def test_tf32_runs_only_where_it_was_asked_for(driver: GemmDriver) -> None:
    big = OnGpu(np.zeros((2048, 2048), np.float32))
    driver.multiply = lambda *_: None
    gemmlab.gemm(big, big)
    gemmlab.gemm(big, big, precision="tf32")
    ran = [find_kernel(launch[0].partition("<")[0]).precision for launch in driver.launches]
    assert ran == ["float32", "tf32"]
    with pytest.raises(UsageError, match="mma_tf32_pipelined computes in tf32, and precision is 'highest'"):
        gemmlab.gemm(big, big, kernel="mma_tf32_pipelined")


def test_explain_choice_of_arrays_says_what_would_run_there(driver: GemmDriver) -> None:
    found = gemmlab.explain_choice(OnGpu(A), OnGpu(B.T), trans_b=True)
    assert (found.basis, found.where, found.problem.split(",")[0]) == ("rule", "A GPU", "12x8x20 (nn)")
    assert int(find_kernel(found.kernel).arch.removeprefix("sm_")) <= 90
    assert not driver.launches
    gemmlab.gemm(OnGpu(A), OnGpu(B.T), trans_b=True)
    assert driver.launches[0][0].startswith(f"{found.kernel}<")
    assert gemmlab.explain_choice(OnGpu(A), OnGpu(B), kernel="naive").basis == "forced"


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(("of_a", "of_b"), [("rows", "rows"), ("columns", "part of rows"), ("of columns", "columns")])
def test_machine_code_computes_what_the_launch_says(
    driver: GemmDriver, monkeypatch: pytest.MonkeyPatch, of_a: str, of_b: str
) -> None:
    a, b, out = forms(A)[of_a], forms(B)[of_b], C.copy()
    ran = emulate(driver, monkeypatch, out, a, b)
    gemmlab.gemm(OnGpu(a), OnGpu(b), alpha=0.5, beta=-2, c=(o := OnGpu(out)), out=o, kernel="vector_load")
    assert ran == [launch[0] for launch in driver.launches] != []
    close(o, 0.5 * A @ B - 2 * C)
