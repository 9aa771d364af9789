"""One plain verdict on each kind of mistake in the file that `gemmlab new` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmlab.devices.select import open_device
from gemmlab.kernels.user_kernel import starting_text, user_kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.verify.check import check_kernel
from gemmlab.verify.verdict import Faults, verdict_of
from support.cuda_source import needs_compiler
from support.edited_file import edited

OP = GemmOp()


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(
    ("edit", "operand"),
    [
        (("static_cast<long long>(row) * lda", "row * lda"), "A"),
        (("static_cast<long long>(k) * ldb", "k * ldb"), "B"),
        (("static_cast<long long>(row) * ldc", "row * ldc"), "C"),
        (("static_cast<long long>(row) * lda", "unsigned(row) * unsigned(lda)"), "A"),
    ],
)
def test_an_offset_of_32_bits_is_caught(tmp_path: Path, edit: tuple[str, str], operand: str) -> None:
    report = edited(tmp_path, edit)
    assert str(report.verdict).startswith(f"INDEX OVERFLOW: the offset of a row of {operand}, row * ld")
    assert len(report.failures) == 1
    assert "=1073741824" in report.failures[0].problem


@pytest.mark.in_turns(20)
@needs_compiler
def test_every_operand_whose_offsets_overflow_has_its_line_and_its_condition(tmp_path: Path) -> None:
    wide = "static_cast<long long>({}) * ld{}"
    report = edited(
        tmp_path,
        *((wide.format(row, name), f"{row} * ld{name}") for row, name in (("row", "a"), ("k", "b"), ("row", "c"))),
    )
    text = str(report.verdict)
    assert [text.count(f"row * ld{name}, is computed in 32 bits") for name in "abc"] == [1, 1, 1]
    # The line follows from a hazard; the accesses to B have none.
    assert [text.count(f"row * ld{name}, is computed in 32 bits (mine.cu:") for name in "ac"] == [1, 1]
    assert text.endswith('such matrices: require = ["M * lda < 2**31", "K * ldb < 2**31", "M * ldc < 2**31"]')


def test_the_condition_of_a_transposed_operand_is_of_the_rows_that_are_stored() -> None:
    turned = GemmProblem(5, 5, 5, trans_a=True, trans_b=True)
    far = [(name, turned, ()) for name in "abc"]
    text = verdict_of(Faults(3, (), (), (), (), (), far, (), ()), None, probed=False).text
    assert text.endswith('require = ["K * lda < 2**31", "N * ldb < 2**31", "M * ldc < 2**31"]')


@pytest.mark.in_turns(20)
@needs_compiler
def test_another_fault_hides_no_overflow_and_the_hint_names_what_is_read(tmp_path: Path) -> None:
    report = edited(
        tmp_path, ("    if (alpha != 0.0f)\n    ", ""), ("static_cast<long long>(row) * ldc", "row * ldc")
    )  # fmt: skip
    text = str(report.verdict)
    unused = "a and b held NaN before the call, because this problem makes no use of them: they must not be read"
    assert text.startswith(f"WRONG: passes where alpha != 0; {unused}; index overflow: the offset of a row of C, row *")
    # Without beta the output holds NaN, too, but the kernel does not read it.
    hints = [line for line in report.details().splitlines() if "held NaN" in line]
    assert hints
    assert all('state always_reads = ["A", "B"]' in line for line in hints)


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_kernel_that_always_reads_its_output_is_right_where_beta_is_not_0(tmp_path: Path) -> None:
    text = str(edited(tmp_path, ("if (beta != 0.0f) result", "result")).verdict)
    assert text.startswith("WRONG: passes where beta != 0; c held NaN before the call, because nothing is added to it:")


@pytest.mark.in_turns(20)
@needs_compiler
def test_an_index_with_another_leading_dimension_is_named(tmp_path: Path) -> None:
    text = str(edited(tmp_path, ("(k) * ldb", "(k) * lda")).verdict)
    assert text.startswith("OUT OF BOUNDS: B is read outside its bounds at mine.cu:")
    assert ", which indexes B without ldb" in text


@pytest.mark.in_turns(20)
@needs_compiler
def test_vector_loads_need_rows_and_addresses(tmp_path: Path) -> None:
    text = str(edited(tmp_path, ("B[static_cast<long long>(k) * ldb + col]", VECTOR)).verdict)
    assert "passes where N % 4 == 0 and ldb % 4 == 0 and arrays begin at multiples of 16 bytes (align = 16)" in text


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_kernel_that_reads_c_at_no_guard_is_told_everything_that_it_needs(tmp_path: Path) -> None:
    """No case of a product is right, so nothing shows beforehand that beta must not be 0."""
    report = edited(tmp_path, ("    if (row >= M || col >= N) return;\n", ""), ("if (beta != 0.0f) result", "result"))
    assert "passes where M % 16 == 0 and N % 16 == 0 and beta != 0" in str(report.verdict)


@pytest.mark.in_turns(20)
@needs_compiler
def test_the_key_for_misaligned_accesses_is_named_beside_another_fault(tmp_path: Path) -> None:
    """At whole tiles it is wrong, too, so no condition on addresses is found."""
    loads = ("B[static_cast<long long>(k) * ldb + col]", VECTOR)
    text = str(edited(tmp_path, loads, ("alpha * sum", "2 * alpha * sum")).verdict)
    assert "passes where" not in text
    assert "if operands and their rows always begin at multiples of 16 bytes, state align = 16" in text


@pytest.mark.in_turns(20)
@needs_compiler
def test_alternatives_are_found_beside_a_factor_of_0_that_hides_the_fault(tmp_path: Path) -> None:
    wrong = edited(tmp_path, ("alpha * sum", "(M > 40 && N > 40 ? 2 : 1) * alpha * sum"))
    assert str(wrong.verdict) == "WRONG: passes where M <= 40 or N <= 40"


VECTOR = (
    "(((const float4*)(B + static_cast<long long>(k) * ldb))[col / 4].x * (col % 4 == 0)"
    + "".join(
        f" + ((const float4*)(B + static_cast<long long>(k) * ldb))[col / 4].{axis} * (col % 4 == {place})"
        for place, axis in ((1, "y"), (2, "z"), (3, "w"))
    )
    + ")"
)


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_missing_guard_is_out_of_bounds_at_the_edges(tmp_path: Path) -> None:
    report = edited(tmp_path, ("    if (row >= M || col >= N) return;\n", ""))
    text = str(report.verdict)
    assert text.startswith("OUT OF BOUNDS: C is read outside its bounds at mine.cu:")
    assert "at ragged edges only: passes where M % 16 == 0 and N % 16 == 0" in text
    listed = [line for line in report.explain().splitlines() if line.startswith("  in ")]
    assert len({line.partition("(array")[0].partition(": ")[2] for line in listed}) == len(listed)
    assert any("that would be C[1, 0], and C is 1 x 1" in line for line in listed)


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_broken_expectation_is_no_wrong_result(tmp_path: Path) -> None:
    report = edited(tmp_path, ("per_request == 4", "per_request == 5"))
    assert report.right
    assert str(report.verdict).startswith(
        "NOT AS EXPECTED: the results are right; its file expects something else: mine"
    )
    # The statement is told once, with what was counted.
    assert report.explain().count("per_request == 5") == 1


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_hazard_in_a_header_names_the_line_that_calls_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    text = starting_text(path).replace("    *c = result;\n", "    put(c + (row == M - 1 ? ldc : 0), result);\n")
    assert "put(" in text
    (tmp_path / "put.cuh").write_text("__device__ inline void put(float* to, float value)\n{\n    *to = value;\n}\n")
    head, _, rest = text.partition("*/")
    path.write_text(f'{head}*/\n#include "put.cuh"\n{rest}')
    (line,) = (n for n, one in enumerate(path.read_text().splitlines(), 1) if "put(c" in one)
    report = check_kernel(user_kernel(path), open_device("emulated"), OP)
    assert f"put.cuh:3 called from mine.cu:{line}" in str(report.verdict)
    assert f" called from mine.cu:{line} (array C" in report.explain()


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_kernel_may_state_that_its_offsets_fit_32_bits(tmp_path: Path) -> None:
    edits = ("static_cast<long long>(row) * lda", "row * lda"), ("<= 1024", '<= 1024", "M * lda < 2**31')
    assert str(edited(tmp_path, *edits).verdict) == "PASS"
