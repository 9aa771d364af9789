"""Kernels as people write them, unchanged: what is told from their text, what has to be said, what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemmlab.core.errors import UsageError
from gemmlab.core.program import Launch
from gemmlab.devices.select import open_device
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.cuda_file.host_code import without_host_code
from gemmlab.kernels.fitting import with_factors
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.user_kernel import starting_text, user_kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.toolchain.build_cuda import build
from gemmlab.verify.check import check_kernel
from support.cuda_source import needs_compiler
from support.paths import DATA

OP = GemmOp()
FOLDER = DATA / "user_kernels"
FLAGS: dict[str, dict[str, Any]] = {
    "sgemm_with_main": {"grid": "ceil_div(M, 16), ceil_div(N, 16)", "threads": "16, 16"},
    "square_only": {},
    "always_reads": {},
    "as_published": {
        "kernel": "mine::sgemm", "grid": "ceil_div(N, 16), ceil_div(M, 16)", "threads": "16, 16",
    },
    "extern_c": {"grid": "min(ceil_div(M * N, 256), 64)", "threads": 256},
    "thread_tile": {},
    "column_major": {
        "kernel": "sgemm_nn", "args": "N,M,K,alpha,B,ldb,A,lda,beta,C,ldc", "params": {"BLOCK_SIZE": 8},
        "grid": "ceil_div(N, BLOCK_SIZE), ceil_div(M, BLOCK_SIZE)", "threads": "BLOCK_SIZE, BLOCK_SIZE",
    },
    "typed_template": {
        "kernel": "matmul<float>", "grid": "ceil_div(N, 16), ceil_div(M, 16)", "threads": "16, 16",
    },
}  # fmt: skip
each_file = pytest.mark.parametrize("name", FLAGS)


def kernel_of(name: str) -> Kernel:
    return user_kernel(FOLDER / f"{name}.cu", **FLAGS[name])


def launch_of(kernel: Kernel, problem: GemmProblem) -> Launch:
    scalars = OP.scalars(problem)
    bound: dict[str, Any] = {**scalars, "a": "a", "b": "b", "c": "c"}
    (launch,) = kernel.launches(kernel.instantiate(kernel.configure(), scalars), bound)
    return launch


def test_every_file_is_tried() -> None:
    assert {path.stem for path in FOLDER.glob("*.cu")} == set(FLAGS)


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
    text = without_host_code((FOLDER / f"{name}.cu").read_text(encoding="utf-8"))
    assert kernel.program(kernel.configure(), "sm_90").emit() == text


@pytest.mark.in_turns(6)
@needs_compiler
@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90"])
@each_file
def test_it_compiles_as_it_is(name: str, arch: str) -> None:
    kernel = kernel_of(name)
    made = build(kernel.program(kernel.configure(), arch))
    assert made.resources["spill_stores"] == 0
    if name == "extern_c":
        assert made.entry == "gemm_kernel"


@pytest.mark.in_turns(6)
@needs_compiler
@pytest.mark.parametrize("shape", [(64, 64, 64), (33, 35, 31), (128, 64, 16), (48, 48, 48), (5, 0, 3), (1, 1, 1)])
@each_file
def test_it_is_right_where_it_is_meant_to_be(name: str, shape: tuple[int, int, int]) -> None:
    kernel = kernel_of(name)
    _m, n, k = shape
    cases = [
        problem
        for alpha, beta in ((1.0, 0.0), (0.5, -1.0), (0.0, 1.0))
        for problem in (GemmProblem(*shape, alpha, beta), GemmProblem(*shape, alpha, beta, k + 1, n + 2, n + 3))
    ]
    cases = [with_factors(kernel, OP, case) for case in cases]
    refused = [kernel.refusal(kernel.configure(), OP.scalars(case)) for case in cases]
    if all(refused):
        with pytest.raises(UsageError, match="takes none of the sizes"):
            check_kernel(kernel, open_device("emulated"), OP, cases=cases)
        return
    report = check_kernel(kernel, open_device("emulated"), OP, cases=cases)
    assert report.passed, report.explain()
    assert report.cases == refused.count("")
    assert sum(report.refused.values()) == len(refused) - report.cases
    assert all(why in report.explain() for why in refused)


DEFAULTS = """
template <int TILE = 16, bool ROUNDED = false>
__global__ void product(const float* A, const float* B, float* C, int M, int N, int K) {
    const long long col = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (long long k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = ROUNDED ? roundf(sum) : sum;
}
"""


def test_a_misspelt_counter_is_found_before_anything_runs(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    text = starting_text(path)
    line = next(number for number, each in enumerate(text.splitlines(), 1) if each.startswith("expect"))
    path.write_text(text.replace("global_store_sectors_per", "global_store_sector_per"), encoding="utf-8")

    def nothing_runs(_done: int, _total: int) -> None:
        raise AssertionError

    said = f"mine.cu:{line}: expect: .*no value named 'global_store_sector_per_request'; did you mean global_store_sec"
    with pytest.raises(UsageError, match=said):
        check_kernel(user_kernel(path), open_device("emulated"), OP, progress=nothing_runs)


def test_parameters_are_template_arguments_or_macros() -> None:
    kernel = kernel_of("thread_tile")
    assert len(list(kernel.configurations())) > 1
    assert kernel.program(kernel.configure({"BM": 32, "BN": 32, "TM": 4}), "sm_90").entry.endswith("<32, 32, 8, 4>")
    with pytest.raises(UsageError, match=r"constraints: BM \* BK == BM \* BN // TM"):
        kernel.configure({"TM": 16})
    macro = kernel_of("column_major")
    program = macro.program(macro.configure({"BLOCK_SIZE": 32}), "sm_90")
    assert "-DBLOCK_SIZE=32" in program.options
    assert launch_of(macro, GemmProblem(17, 33, 5)).grid == (5, 3, 1)


@pytest.mark.in_turns(6)
@needs_compiler
def test_a_template_whose_parameters_have_defaults_needs_no_instance(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(DEFAULTS, encoding="utf-8")
    kernel = user_kernel(path, grid="ceil_div(N, 16), ceil_div(M, 16)", threads="16, 16")
    assert kernel.program(kernel.configure(), "sm_90").entry == "product<>"
    assert check_kernel(kernel, open_device("emulated"), OP, cases=[GemmProblem(17, 33, 5)]).passed


def test_one_argument_may_stand_for_all_extents() -> None:
    launch = launch_of(kernel_of("square_only"), GemmProblem(48, 48, 48))
    assert launch == Launch(("a", "b", "c", np.int32(48)), (3, 3, 1), (16, 16, 1))


def test_facts_come_from_header_toml_and_flags_in_this_order(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    body = "__global__ void mine(int N, float* A, float* B, float* C) {}\n"
    path.write_text('/* gemmlab\ngrid = "N"\nthreads = 1\nsummary = "from the header"\n*/\n' + body, encoding="utf-8")
    assert launch_of(user_kernel(path), GemmProblem(7, 7, 7)).grid == (7, 1, 1)
    (tmp_path / "mine.toml").write_text('grid = "2 * N"', encoding="utf-8")
    assert launch_of(user_kernel(path), GemmProblem(7, 7, 7)).grid == (14, 1, 1)
    assert user_kernel(path).summary == "from the header"
    (tmp_path / "other.toml").write_text('grid = "3 * N"', encoding="utf-8")
    assert launch_of(user_kernel(path, facts=tmp_path / "other.toml"), GemmProblem(7, 7, 7)).grid == (21, 1, 1)
    assert launch_of(user_kernel(path, grid="4 * N"), GemmProblem(7, 7, 7)).grid == (28, 1, 1)
    assert launch_of(find_kernel(str(path)), GemmProblem(7, 7, 7)).grid == (14, 1, 1)


def test_a_requirement_takes_the_place_of_what_is_implied() -> None:
    kernel = user_kernel(FOLDER / "extern_c.cu", grid="M", threads=256, require=["beta == 1"])
    assert [restriction.that.text for restriction in kernel.restrictions] == ["beta == 1"]


def test_headers_beside_the_file_are_found(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "square_only.cu", tmp_path / "square.cuh")
    path = tmp_path / "mine.cu"
    path.write_text('#include "square.cuh"\n__global__ void mine(int N, float* A, float* B, float* C) {}\n')
    kernel = user_kernel(path, grid=1, threads=1)
    assert kernel.program({}, "sm_90").path == str(path)


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
    assert "gemm has M, N, K, lda, ldb, ldc, TRANS_A, TRANS_B, alpha, beta, A, B, C" in message


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
    ("typed_template", {"kernel": "matmul<float; x>", **ONE}, "is not an instance of a template"),
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


def test_files_that_are_no_kernels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.cu: No such file"):
        user_kernel(tmp_path / "none.cu")
    with pytest.raises(UsageError, match=r"none\.cu"):
        find_kernel(str(tmp_path / "none.cu"))
    (tmp_path / "empty.cu").write_text("int main() { return 0; }")
    with pytest.raises(UsageError, match=r"empty\.cu: no __global__ function is defined there"):
        user_kernel(tmp_path / "empty.cu")
