"""Files of CUDA kernels, whole ones and ones in which facts and code do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.core.program import Launch
from gemmlab.kernels.cuda_kernel import shipped_kernel
from gemmlab.kernels.kernel import NO_MEMORY, Kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem

OP = GemmOp()

GOOD = """/* gemmlab
summary = "s"
idea = "i."
source = "x"
op = "gemm"
params = { BM = 8 }
require = ["BM > 0"]
grid = "ceil_div(M, BM) * N"
threads = "BM"
*/
template <int BM>
__global__ void mine(int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb, float beta,
                     float* C, int ldc) {}
"""


def launches(kernel: Kernel, problem: GemmProblem) -> list[Launch]:
    scalars = OP.scalars(problem)
    instance = kernel.instantiate(kernel.configure(), scalars)
    bound: dict[str, Any] = {**scalars, "a": "a", "b": "b", "c": "c", "threads": np.int64(1), **NO_MEMORY}
    return kernel.launches(instance, bound)


def shipped(tmp_path: Path, text: str, folder: str = "gemm_cuda") -> Kernel:
    path = tmp_path / folder / "mine.cu"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return shipped_kernel(path)


def test_a_file_is_all_there_is_to_a_kernel(tmp_path: Path) -> None:
    kernel = shipped(tmp_path, GOOD)
    assert (kernel.id, kernel.op, kernel.device, kernel.step, kernel.arch) == ("mine", "gemm", "cuda", None, "")
    (launch,) = launches(kernel, GemmProblem(20, 3, 1))
    assert (launch.grid, launch.threads) == ((9, 1, 1), (8, 1, 1))


TEMPLATE, PARAMS, OPERATION = "template <int BM>", "{ BM = 8 }", 'op = "gemm"'
FIRST = "__global__ void mine(int M"
MISFITS = [
    (GOOD, "__global__ void mine() {}", "gemm_cuda/mine.cu: no `/* gemmlab` comment"),
    ('idea = "i."\n', "", "gemm_cuda/mine.cu: idea is not stated"),
    ('threads = "BM"', "", "gemm_cuda/mine.cu: threads is not stated"),
    ("void mine(", "void yours(", "gemm_cuda/mine.cu: 0 kernels named mine, as the file is"),
    (FIRST, f"__global__ void mine(float* X) {{}}\n{TEMPLATE}\n{FIRST}", "2 kernels named mine"),
    # template and parameters
    (TEMPLATE, "template <int BM, int BN>", "mine.cu:6: params: template parameter BN of mine is missing (stated: BM)"),
    (TEMPLATE, "template <int BN, int BM>", "template parameter BN of mine is missing"),
    (TEMPLATE, "template <int BN = 3, int BM = 4>", "template parameter BN needs a value, as BM has"),
    (TEMPLATE, "template <typename T, int BM>", "T of the template is a type"),
    (TEMPLATE, "constexpr int BM = 8;", "mine.cu:6: params: BM is no parameter of mine's template (it has none)"),
    (PARAMS, "{ BM = 8, XX = 3 }", "template (it has BM), and the file has no `#ifndef XX`"),
    # configurations
    (PARAMS, "{ BM = 0 }", "mine.cu:6: params: the default configuration {'BM': 0} is not legal: BM > 0"),
    (PARAMS, "{ BM = 2048 }", "is not legal: 2048 x 1 x 1 threads a block; 1 to 1024 are possible"),
    ('["BM > 0"]', '["8 // (BM - 8)"]', "is not legal: expression '8 // (BM - 8)': column 1: division by zero"),
    (OPERATION, f"{OPERATION}\ntune = {{ BM = {list(range(1, 99))} }}", "mine.cu:6: tune: more than 96 legal"),
    (
        OPERATION,
        f'{OPERATION}\nexpect = [{{ config = {{ BM = 0 }}, that = "a" }}]',
        "expect: mine: BM=0 breaks the kernel's constraints: BM > 0",
    ),
    (OPERATION, f'{OPERATION}\ntransposes = ["nn", "nt"]', "transposes: needs a template parameter or an argument TR"),
    # arguments
    ("float* C", "bool* C", "mine.cu: args: argument 'bool* C' of mine("),
    ("int ldc", "int64 ldc", "argument 'int64 ldc' of mine("),
    ("int ldc", "int rows", "'int rows' is none of them"),
]


@pytest.mark.parametrize(("old", "new", "said"), MISFITS)
def test_a_file_that_does_not_fit_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(UsageError) as caught:
        shipped(tmp_path, GOOD.replace(old, new))
    assert said in str(caught.value)
    assert "mine.cu" in str(caught.value)


def test_the_folder_says_which_operation(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"reduce_cuda/mine\.cu:5: op: 'gemm', in the folder of 'reduce'"):
        shipped(tmp_path, GOOD, "reduce_cuda")


def test_an_architecture_with_a_letter_is_the_only_one(tmp_path: Path) -> None:
    kernel = shipped(tmp_path, GOOD.replace('op = "gemm"', 'op = "gemm"\narch = "sm_90a"'))
    # Its GPUs run it: they are asked for what they are, without the letter.
    for target in ("sm_90a", "sm_90"):
        assert kernel.program(kernel.configure(), target).target == "sm_90a"
    for target in ("sm_89", "sm_100", "sm_100a", "sm_90f"):
        with pytest.raises(DeviceError, match=f"mine is for sm_90a, not for {target}; `gemmlab compile --arch sm_90a`"):
            kernel.program(kernel.configure(), target)


@pytest.mark.parametrize(
    ("grid", "threads", "said"),
    [
        ("M - 9", "BM", r"mine: grid \(-4, 1, 1\) of \(8, 1, 1\) threads with 0 bytes of shared memory cannot be"),
        ("M // (N - 6)", "BM", "mine: expression .*: column 1: division by zero"),
        ("M", "BM * (N - 6)", "cannot be launched"),
    ],
)
def test_a_geometry_that_makes_no_sense_is_refused(tmp_path: Path, grid: str, threads: str, said: str) -> None:
    text = GOOD.replace("ceil_div(M, BM) * N", grid).replace('threads = "BM"', f'threads = "{threads}"')
    with pytest.raises(UsageError, match=said):
        launches(shipped(tmp_path, text), GemmProblem(5, 6, 7))


def test_shared_memory_and_alignment_are_computed(tmp_path: Path) -> None:
    text = GOOD.replace('op = "gemm"', 'op = "gemm"\nalign = 16\nsmem_bytes = "4 * BM * K"')
    kernel = shipped(tmp_path, text)
    (launch,) = launches(kernel, GemmProblem(8, 8, 8))
    assert launch.smem_bytes == 256
    assert kernel.align == 16
    assert kernel.refusal(kernel.params, OP.scalars(GemmProblem(8, 8, 8))) == ""
    why = kernel.refusal(kernel.params, OP.scalars(GemmProblem(8, 6, 8)))
    assert why == "ldb * 4 % 16 == 0 (rows are aligned to 16 bytes)"


def test_a_requirement_on_the_problem_restricts_it(tmp_path: Path) -> None:
    kernel = shipped(tmp_path, GOOD.replace('["BM > 0"]', '["BM > 0", "M % BM == 0", "beta == 0"]'))
    assert [restriction.that.text for restriction in kernel.restrictions] == ["M % BM == 0", "beta == 0"]
    assert kernel.refusal({"BM": 8}, OP.scalars(GemmProblem(16, 3, 3))) == ""
    assert kernel.refusal({"BM": 32}, OP.scalars(GemmProblem(16, 3, 3))) == "M % BM == 0"
    assert kernel.refusal({"BM": 8}, OP.scalars(GemmProblem(16, 3, 3, 1.0, 2.0))) == "beta == 0"
