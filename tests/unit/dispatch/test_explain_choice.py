"""`gemmlab.explain_choice`: the choice in words, with or without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gemmlab
from gemmlab.core.errors import ArgumentTypeError, DeviceError, UsageError
from gemmlab.dispatch.choice_values import RULE


def test_explain_choice_without_a_gpu() -> None:
    found = gemmlab.explain_choice((512, 512), (512, 512), device="H200")
    said = str(found)
    for part in (
        "512x512x512 (nn), precision 'highest' on H200", "by record", "us measured", " more\n",
        "not mma_tf32_pipelined: computes in tf32", found.kernel,
    ):  # fmt: skip
        assert part in said
    assert found.to_json()["considered"][0]["kernel"] == found.kernel
    emulated = gemmlab.explain_choice((7, 100, 300), (300, 20), trans_a=False, device="emulated:sm_80")
    # Matrices by one are one tall matrix by it on a GPU; pairs of matrices are not.
    assert (emulated.where, emulated.basis, emulated.problem.split(" ")[0]) == ("A100", RULE, "700x20x300")
    assert gemmlab.explain_choice((7, 100, 300), (7, 300, 20), device="H200").problem.startswith("7*100x20x300 (nn)")
    assert "scaled to A100" in emulated.reason
    assert "(tn)" in gemmlab.explain_choice((300, 100), (300, 20), trans_a=True, device="H200").problem
    assert gemmlab.explain_choice((300,), (300,), device="H200").problem.startswith("1x1x300")
    assert gemmlab.explain_choice((0, 5), (5, 7), device="H200").considered[0].blocks == 0


def test_explain_choice_on_the_cpu() -> None:
    found = gemmlab.explain_choice((512, 512), (512, 512), device="cpu", precision="tf32")
    assert (found.kernel, found.where, found.considered) == ("threaded", "cpu", ())
    assert gemmlab.explain_choice((5, 5), (5, 5), device="cpu", kernel="packed").basis == "forced"


@pytest.mark.parametrize(
    ("arguments", "options", "error", "said"),
    [
        (((5, 6), (7, 8)), {}, UsageError, "do not fit"),
        (((5, 6), (6, 8)), {"device": "gpu"}, DeviceError, "no device 'gpu': cpu, cuda"),
        (((5, 6), (6, 8)), {"device": 5}, ArgumentTypeError, "device is 5; it must be a name"),
        (((5, 6), (6, 8)), {"device": "emulated:sm_70"}, DeviceError, "no emulator for sm_70"),
        (((5, 6.5), (6, 8)), {}, ArgumentTypeError, "neither an array nor a shape"),
        (((5, -6), (6, 8)), {}, ArgumentTypeError, "neither an array nor a shape"),
        (("56", (6, 8)), {}, ArgumentTypeError, "a is builtins.str"),
        (((5, 6), (6, 8)), {"device": "H200", "kernel": "wmma_tf32"}, UsageError, "computes in tf32, and precision"),
        (((5, 6), (6, 8)), {"device": "cpu", "kernel": "naive"}, UsageError, "naive runs on a GPU"),
    ],
)
def test_errors_of_explain_choice(
    arguments: tuple[Any, Any], options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        gemmlab.explain_choice(*arguments, **{"device": "H200", **options})


OWN = """
/* gemmlab
grid = "1"
threads = "1"
*/
#include "terms.cuh"
__global__ void mine(int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta,
                     float* C, int ldc)
{
    for (int i = 0; i < M * N; ++i) C[i] = terms(A, B);
}
"""


def test_the_order_of_a_file_of_the_caller_s_is_that_of_its_source(tmp_path: Path) -> None:
    """Files of one name may add in any order; the headers that they include count, and the facts beside them."""

    def order(folder: str, text: str = OWN, terms: str = "return A[0] * B[0];", facts: str = "") -> str:
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        (place / "mine.cu").write_text(text)
        header = f"__device__ float terms(const float* A, const float* B) {{ {terms} }}"
        (place / "terms.cuh").write_text(header)
        if facts:
            (place / "mine.toml").write_text(facts)
        found = gemmlab.explain_choice((4, 4), (4, 4), device="H200", kernel=str(place / "mine.cu"))
        return found.order

    first = order("first")
    assert order("same") == first
    others = {
        order("text", OWN.replace("C[i] = ", "C[i] = 0 + ")), order("header", terms="return B[0] * A[0];"),
        order("facts", facts='options = "-fmad=false"'), order("first", OWN.replace("++i", "i++")),
    }  # fmt: skip
    assert len({first, *others}) == 5
    assert all(len(each) == 12 for each in (first, *others))
