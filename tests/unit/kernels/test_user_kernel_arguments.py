"""Arguments of people's own kernels: common manners are understood, others are asked for, wrong ones are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemmlab.core.errors import UsageError
from gemmlab.core.program import Launch
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.cuda_file.host_code import CodeText, without_host_code
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.ops.gemm import GemmProblem
from support.users_files import FOLDER, kernel_of, launch_of


@pytest.mark.parametrize(
    ("name", "entry", "args", "restrictions"),
    [
        ("sgemm_with_main", "sgemm", "m n k alpha a b beta c",
         ["lda == max(1, K)", "ldb == max(1, N)", "ldc == max(1, N)"]),
        ("square_only", "MatMulShared", "a b c m",
         ["M % 16 == 0", "M == N", "N == K", "lda == max(1, K)", "ldb == max(1, N)", "ldc == max(1, N)", "alpha == 1",
          "beta == 0"]),
        ("always_reads", "always_reads", "m n k alpha a b beta c",
         ["lda == max(1, K)", "ldb == max(1, N)", "ldc == max(1, N)", "alpha != 0", "beta != 0"]),
        ("extern_c", "gemm_kernel", "m n k alpha a lda b ldb c ldc", ["beta == 0"]),
        ("thread_tile", "sgemm1DBlocktiling<64, 64, 8, 8>", "m n k alpha a b beta c",
         ["M % BM == 0", "N % BN == 0", "K % BK == 0", "lda == max(1, K)", "ldb == max(1, N)", "ldc == max(1, N)"]),
        ("column_major", "mine::sgemm_nn", "n m k alpha b ldb a lda beta c ldc", []),
        ("typed_template", "matmul<float>", "a b c m n k",
         ["lda == max(1, K)", "ldb == max(1, N)", "ldc == max(1, N)", "alpha == 1", "beta == 0"]),
    ],
)  # fmt: skip
def test_arguments_are_told_and_what_is_lacking_restricts(
    name: str, entry: str, args: str, restrictions: list[str]
) -> None:
    kernel = kernel_of(name)
    assert (kernel.id, kernel.op, kernel.device, kernel.step) == (name, "gemm", "cuda", None)
    assert kernel.program(kernel.configure(), "sm_90").entry == entry
    assert kernel.args == tuple(args.split())
    assert [restriction.that.text for restriction in kernel.restrictions] == restrictions
    (text,) = without_host_code([CodeText((FOLDER / f"{name}.cu").read_text(encoding="utf-8"))])
    assert kernel.program(kernel.configure(), "sm_90").emit() == text


def test_one_argument_may_stand_for_all_extents() -> None:
    launch = launch_of(kernel_of("square_only"), GemmProblem(48, 48, 48))
    assert launch == Launch(("a", "b", "c", np.int32(48)), (3, 3, 1), (16, 16, 1))


MANNERS = [
    ("int M, int N, int K, float alpha, float *A, float *B, float beta, float *C", "m n k alpha a b beta c"),
    ("const float* d_A, const float* d_B, float* d_C, int m, int n, int k", "a b c m n k"),
    ("float* dA, int ldda, float* dB, int lddb, float* dC, int lddc, size_t M, size_t N, size_t K", None),
    ("float* A_d, float* B_d, float* C_d, int N", "a b c m"),
    ("float* a, float* b, float* c, int size", "a b c m"),
    ("float4* matA, float4* matB, float4* matC, unsigned width", "a b c m"),
    ("float* dev_a, float* dev_b, float* dev_c, int M, int N, int K, int stride_a, int stride_b, int stride_c",
     "a b c m n k lda ldb ldc"),
    ("bool transA, bool transB, int M, int N, int K, float* A, int lda, float* B, int ldb, float* C, int ldc",
     "trans_a trans_b m n k a lda b ldb c ldc"),
    ("int M, int N, int K, double alpha, float* A, float* B, double beta, float* C", "m n k alpha a b beta c"),
    ("int M, int N, float* A, float* B, float* C", None),
    ("int N, int size, float* A, float* B, float* C", None),
    ("float* M, float* N, float* P, int Width", None),
    ("int M, int N, int K, float* A, float* B, float* C, int flag", None),
    ("int M, int m, int N, int K, float* A, float* B, float* C", None),
    ("int M, int N, int K, float* A, float* C", None),
    ("int M, int N, int K, float A, float* B, float* C", None),
    ("", None),
]  # fmt: skip


@pytest.mark.parametrize(("signature", "expected"), MANNERS)
def test_common_manners_are_told_and_others_are_asked_for(signature: str, expected: str | None, tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(f"__global__ void mine({signature}) {{}}\n", encoding="utf-8")
    if expected is not None:
        assert user_kernel(path, grid=1, threads=1).args == tuple(expected.split())
        return
    with pytest.raises(UsageError) as caught:
        user_kernel(path, grid=1, threads=1)
    message = str(caught.value)
    assert message.startswith("mine.cu: args: arguments of mine(")
    assert "gemm has M, N, K, lda, ldb, ldc, TRANS_A, TRANS_B, SHORT_SUMS, alpha, beta, A, B, C" in message


def test_what_could_not_be_told_is_listed_with_how_to_say_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text("__global__ void mine(int M, int N, int kk, float* A, float* B, float* C) {}\n", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        user_kernel(path, grid=1, threads=1)
    message = str(caught.value)
    assert "'int kk' is none of them; K was not found" in message
    assert "found: M is M, N is N, A is A, B is B, C is C" in message
    assert message.endswith('args = ["M", "N", "?", "A", "B", "C"], or --args M,N,?,A,B,C')
    assert user_kernel(path, grid=1, threads=1, args="M,N,K,A,B,C").args == ("m", "n", "k", "a", "b", "c")


def test_arguments_may_be_computed() -> None:
    kernel = user_kernel(FOLDER / "extern_c.cu", grid=1, threads=256, args="M,N,K // 2,alpha,A,lda * 1,B,ldb,C,ldc")
    assert kernel.args == ("m", "n", "K // 2", "alpha", "a", "lda * 1", "b", "ldb", "c", "ldc")
    launch = launch_of(kernel, GemmProblem(3, 4, 10))
    assert launch.args[:3] == (3, 4, 5)
    assert isinstance(launch.args[2], np.uint32)
    with pytest.raises(UsageError, match=r"extern_c: -1 does not fit in 'unsigned int k'"):
        launch_of(user_kernel(FOLDER / "extern_c.cu", grid=1, threads=1, args="M,N,K-11,alpha,A,lda,B,ldb,C,ldc"),
                  GemmProblem(3, 4, 10))  # fmt: skip


ONE = {"grid": 1, "threads": 1}
WRONG: list[tuple[str, dict[str, Any], str]] = [
    (
        "sgemm_with_main",
        {},
        'grid and threads of the launch of sgemm are not stated; pass --grid "ceil_div(N, 32), ceil_',
    ),
    (
        "sgemm_with_main",
        {"grid": "M"},
        'threads of the launch of sgemm are not stated; pass --threads "32, 32" (for example, for blocks of 32 x 32)',
    ),
    ("sgemm_with_main", {"grid": "M", "threads": "tid"}, "--threads: expression 'tid': no value named 'tid'"),
    ("column_major", ONE, "several kernels; name one with --kernel or `kernel = ...` (line 11: mine::sgemm_nn("),
    ("column_major", {"kernel": "sgem"}, "--kernel: no kernel named 'sgem' in column_major.cu (line 11: mine::"),
    ("column_major", {"kernel": "unrelated", **ONE}, "arguments of unrelated(int* counter) cannot all be"),
    ("column_major", {"kernel": "mine::sgemm_nn", **ONE}, "'int ldda' is none of them"),
    ("typed_template", ONE, 'T of the template is a type; state the instance, "matmul<float>"'),
    ("typed_template", {"kernel": "matmul<float; x>", **ONE}, "--kernel: 'matmul<float; x>' is not an instance of"),
    ("extern_c", {"args": "M,N,K", **ONE}, "--args: 3 names for the 10 arguments of gemm_kernel("),
    ("extern_c", {"args": "M,N,K,A,A,lda,B,ldb,C,ldc", **ONE}, "'A' cannot be 'float alpha' of"),
    ("extern_c", {"args": "M,N,K,alpha,A,lda,A,ldb,C,ldc", **ONE}, "B is missing from M, N, K, "),
    ("extern_c", {"args": "M,N,Q,alpha,A,lda,B,ldb,C,ldc", **ONE}, "no value named 'Q'"),
    ("extern_c", {"params": {"BM": 3}, **ONE}, "BM is no parameter of gemm_kernel's template"),
    ("extern_c", {"op": "sort"}, "--op: no operation named 'sort'"),
]


@pytest.mark.parametrize(("name", "flags", "said"), WRONG)
def test_what_is_missing_or_wrong_is_said(name: str, flags: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        user_kernel(FOLDER / f"{name}.cu", **flags)
    assert said in str(caught.value)


def test_an_instance_that_is_none_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    facts = '/* gemmlab\nkernel = "matmul<float; x>"\ngrid = "1"\nthreads = "1"\n*/\n'
    path.write_text(facts + (FOLDER / "typed_template.cu").read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(UsageError, match=r"mine\.cu:2: kernel: 'matmul<float; x>' is not an instance of a template"):
        user_kernel(path)


def test_files_that_are_no_kernels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.cu: No such file"):
        user_kernel(tmp_path / "none.cu")
    with pytest.raises(UsageError, match=r"none\.cu"):
        find_kernel(str(tmp_path / "none.cu"))
    (tmp_path / "empty.cu").write_text("int main() { return 0; }")
    with pytest.raises(UsageError, match=r"empty\.cu: no __global__ function is defined there"):
        user_kernel(tmp_path / "empty.cu")
