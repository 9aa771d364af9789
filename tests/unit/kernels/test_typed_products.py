"""Products of halves, float64 and whole numbers: types from the signature, verdicts, errors that are rejected."""

from __future__ import annotations

from pathlib import Path

import pytest

import gemmlab
from gemmlab.core.errors import UsageError
from gemmlab.devices.select import open_device
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.ops.catalog import find_op
from gemmlab.verify.check import check_kernel
from gemmlab.verify.check_report import CheckReport
from support.cuda_source import needs_compiler
from support.typed_kernels import ERRORS, KINDS, OPS, kernel_file

SIZES = "1x1x1,3x5x7,17x16x33,64,33x70x129"


def report(path: Path, sizes: str = "") -> CheckReport:
    kernel = user_kernel(path)
    op = find_op(kernel.op)
    return check_kernel(kernel, open_device("emulated:sm_80"), op, cases=op.parse_sizes(sizes) if sizes else None)


@pytest.mark.parametrize("kind", KINDS)
def test_types_come_from_the_signature(tmp_path: Path, kind: str) -> None:
    kernel = user_kernel(kernel_file(tmp_path, kind))
    assert kernel.op == OPS[kind]
    assert find_op(kernel.op).name == kernel.op
    assert kernel.align == min(operand.element.nbytes for operand in find_op(kernel.op).operands(problem(kernel.op)))


def problem(op: str) -> object:
    return find_op(op).parse_sizes("8")[0]


NAMED = [
    ("using T = half;", "T", "float16"), ("typedef half T;", "T", "float16"),
    ("#define DTYPE half", "DTYPE", "float16"), ("#define DTYPE float", "DTYPE", "float32"),
    ("namespace mine {\nusing Word = std::int8_t; typedef Word T; }\nusing namespace mine;", "T", "int8"),
    ("", "nv_half", "float16"), ("", "nv_bfloat16", "bfloat16"), ("", "std::int8_t", "int8"),
    ("", "unsigned", "uint32"), ("", "uint32_t", "uint32"),
    ("", "unsigned short", "uint16"), ("", "long long", "int64"), ("", "int64_t", "int64"),
]  # fmt: skip


OF_ONE_TYPE = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
STATED
/* gemmlab
grid = "ceil_div(N, 16), ceil_div(M, 16)"
threads = "16, 16"
*/
__global__ void whole(const NAME* A, const NAME* B, NAME* C, int M, int N, int K) {
    const int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || col >= N) return;
    NAME sum = 0;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
"""


def named_types(folder: Path, stated: str, name: str) -> Path:
    """Write a product of matrices of the type `name`, which `stated` gives to it."""
    path = folder / "whole.cu"
    path.write_text(OF_ONE_TYPE.replace("STATED", stated).replace("NAME", name))
    return path


@pytest.mark.parametrize(("stated", "name", "element"), NAMED)
def test_types_have_many_names(tmp_path: Path, stated: str, name: str, element: str) -> None:
    kernel = user_kernel(named_types(tmp_path, stated, name))
    assert kernel.op == {"float32": "gemm"}.get(element, f"gemm:{element}")


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(("stated", "name"), [("using T = half;", "T"), ("", "unsigned"), ("", "long long")])
def test_products_of_named_types_are_right(tmp_path: Path, stated: str, name: str) -> None:
    found = report(named_types(tmp_path, stated, name), "3x5x7,17x16x33")
    assert found.passed, found.explain()


@pytest.mark.parametrize(
    ("stated", "options"),
    [
        ("#ifndef T\n#define T float\n#endif", ["-DT=half"]),
        ('#include "types.cuh"', []),
    ],
)
def test_types_come_from_options_and_headers_too(tmp_path: Path, stated: str, options: list[str]) -> None:
    (tmp_path / "types.cuh").write_text("#pragma once\ntypedef half T;\n")
    assert user_kernel(named_types(tmp_path, stated, "T"), options=options).op == "gemm:float16"


def test_a_type_of_the_template_is_not_one_of_the_file(tmp_path: Path) -> None:
    path = named_types(tmp_path, "using T = half;", "T")
    path.write_text(path.read_text().replace("__global__", "template <typename T> __global__"))
    assert user_kernel(path, kernel="whole<double>").op == "gemm:float64"


def test_a_type_that_no_operation_has_is_named(tmp_path: Path) -> None:
    path = named_types(tmp_path, "using T = unsigned long long;", "T")
    with pytest.raises(
        UsageError, match=r"'unsigned long long\* A' of .*: no operation has operands of uint64; there are"
    ):
        user_kernel(path)
    path = named_types(tmp_path, "#if MANY\nusing T = half;\n#else\nusing T = float;\n#endif", "T")
    with pytest.raises(UsageError, match=r"'T\* A' of .*: pointers are float.* or names that the file gives to these"):
        user_kernel(path)


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
def test_products_of_each_type_are_right(tmp_path: Path, kind: str) -> None:
    found = report(kernel_file(tmp_path, kind))
    assert found.passed, found.explain()
    assert found.padded > 5
    assert found.cases > 120


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.sampled(1)
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("kind", ["half_in_half", "brain", "whole"])
def test_errors_are_rejected(tmp_path: Path, kind: str, error: str) -> None:
    if kind == "whole" and error == "C read for beta 0":
        pytest.skip("0 times any whole number is 0")
    found = report(kernel_file(tmp_path, kind, error))
    assert not found.passed
    first = found.failures[0]
    assert first.mismatches or first.violations or first.notes or first.hazards


@pytest.mark.in_turns(20)
@needs_compiler
def test_sums_in_halves_are_allowed_unless_the_file_states_float32(tmp_path: Path) -> None:
    assert report(kernel_file(tmp_path, "half_in_half"), SIZES).passed
    strict = report(kernel_file(tmp_path, "half_in_half", lines='precision = "float32"'), "256x64x120")
    assert not strict.right
    assert report(kernel_file(tmp_path, "half_in_float", lines='precision = "float32"'), "256x64x120").passed


def test_rows_are_aligned_by_the_bytes_of_their_elements(tmp_path: Path) -> None:
    kernel = user_kernel(kernel_file(tmp_path, "mixed", lines="align = 16"))
    words = [restriction.that.text for restriction in kernel.restrictions]
    assert {"lda * 2 % 16 == 0", "ldb * 2 % 16 == 0", "ldc * 4 % 16 == 0"} <= {*words}


def test_whole_factors_take_whole_numbers_alone(tmp_path: Path) -> None:
    kernel = user_kernel(kernel_file(tmp_path, "whole_scaled"))
    assert not kernel.restrictions
    kernel = user_kernel(kernel_file(tmp_path, "whole"))
    assert [restriction.that.text for restriction in kernel.restrictions] == ["alpha % 1 == 0", "beta % 1 == 0"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('precision = "tf32"', "'tf32' is none of float16, float64, float32, bfloat16, which gemm:float16 has"),
        ('precision = "half"', "'half' is none of float32, "),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        user_kernel(kernel_file(tmp_path, "half_in_half", lines=line))


STORAGE = """/* gemmlab
grid = "ceil_div(N, 16), ceil_div(M, 16)"
threads = "16, 16"
LINE*/
#include <cuda_fp8.h>
__global__ void stored(int M, int N, int K, const __nv_fp8_storage_t* A, const unsigned char* B, float* C) {
    const long long row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || col >= N) return;
    float sum = 0;
    for (long long k = 0; k < K; ++k)
        sum += __half2float(__nv_cvt_fp8_to_halfraw(A[row * K + k], __NV_E5M2))
             * __half2float(__nv_cvt_fp8_to_halfraw(B[k * N + col], __NV_E5M2));
    C[row * N + col] = sum;
}
"""


@pytest.mark.in_turns(20)
@needs_compiler
def test_bytes_are_of_the_format_that_the_operation_states(tmp_path: Path) -> None:
    path = tmp_path / "stored.cu"
    path.write_text(STORAGE.replace("LINE", 'op = "gemm:float8_e5m2,float8_e5m2,float32"\n'), encoding="utf-8")
    assert user_kernel(path).op == "gemm:float8_e5m2,float8_e5m2,float32"
    found = report(path, SIZES)
    assert found.passed, found.explain()
    assert found.precision == user_kernel(path).precision != "float32"
    path.write_text(STORAGE.replace("LINE", 'op = "gemm:float8_e4m3fn,float8_e4m3fn,float32"\n'), encoding="utf-8")
    assert not report(path, SIZES).right
    path.write_text(STORAGE.replace("LINE", ""), encoding="utf-8")
    with pytest.raises(UsageError, match="bytes of either format; state which: op = "):
        user_kernel(path)


def test_an_operation_without_other_types_says_so() -> None:
    with pytest.raises(UsageError, match="x is of float16; the operation reduce takes only float32"):
        find_op("reduce:float16")
    with pytest.raises(UsageError, match="their products are not whole"):
        find_op("gemm:float16,float16,int32")
    with pytest.raises(UsageError, match="one type, or one for each of a, b, c"):
        find_op("gemm:int8,int8")
    with pytest.raises(UsageError, match="no type of numbers named 'float8'"):
        find_op("gemm:float8")


def test_bytes_that_may_be_8_bit_floats_are_asked_for(tmp_path: Path) -> None:
    path, line = tmp_path / "stored.cu", 'precision = "float32"\n'
    source = STORAGE.replace("__nv_fp8_storage_t", "unsigned char")
    path.write_text(source.replace("LINE", line), encoding="utf-8")
    with pytest.raises(
        UsageError, match="unsigned char is read as uint8, whose precision is int32; for 8-bit"
    ) as refused:
        user_kernel(path)
    op = str(refused.value).partition(" write ")[2].partition(" (")[0]
    path.write_text(source.replace("LINE", f"{op}\n{line}"), encoding="utf-8")
    assert user_kernel(path).op == "gemm:float8_e4m3fn,float8_e4m3fn,float32"


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_kernel_of_one_layout_is_counted_and_explained_in_it(tmp_path: Path) -> None:
    path = kernel_file(tmp_path, "half_in_float", lines='transposes = ["nt"]')
    path.write_text(
        path.read_text(encoding="utf-8").replace("B[k * ldb + col]", "B[col * ldb + k]"),
        encoding="utf-8",
    )
    assert gemmlab.bench(path, device="emulated:sm_80", sizes=64).counts[0].verified
    assert gemmlab.explain(path, sizes=64).sound
    assert gemmlab.check(path, device="emulated:sm_80", sizes=SIZES).passed
