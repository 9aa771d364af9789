"""One plain verdict on each kind of mistake: in kernels of Python, and in the file that `gemmlab new` writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gemmlab.core.expr import parse
from gemmlab.core.hazard import TWO_WRITES, Hazard
from gemmlab.devices.select import open_device
from gemmlab.kernels.claims import Restriction
from gemmlab.kernels.user_kernel import starting_text, user_kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.verify.check import check_kernel
from gemmlab.verify.check_report import CheckReport
from gemmlab.verify.missing_barrier import lines_of, missing_barriers
from gemmlab.verify.verdict import Faults, verdict_of
from support.cuda_source import needs_compiler
from support.fake_device import FakeDevice, Gemm, make_kernel, right
from support.racing_kernel import RACE

OP = GemmOp()
Wrong = Callable[[Gemm], bool]


def judge(wrong: Wrong, layouts: tuple[str, ...] = ("nn",), needed: tuple[str, ...] = ()) -> CheckReport:
    def body(call: Gemm) -> None:
        right(call)
        if call.c.size and wrong(call):
            call.c[0, 0] = np.float32(12345)

    device = FakeDevice()
    kernel = replace(
        make_kernel("fake", device, body, layouts), restrictions=tuple(Restriction(parse(text)) for text in needed)
    )
    return check_kernel(kernel, device, OP)


@pytest.mark.parametrize(
    ("wrong", "verdict"),
    [
        (lambda _: True, "WRONG EVERYWHERE: at whole tiles, too"),
        (lambda call: call.k % 16 != 0, "WRONG AT EDGES: passes where K % 16 == 0"),
        (lambda call: call.m % 4 or call.n % 8, "WRONG AT EDGES: passes where M % 4 == 0 and N % 8 == 0"),
        (lambda call: call.k % 24 != 0, "WRONG AT EDGES: passes where K % 24 == 0"),
        (lambda call: call.k % 4 in (1, 2), "WRONG AT EDGES: passes where K % 4 is 0 or 3"),
        (lambda call: call.ldc % 4 != 0, "WRONG AT EDGES: passes where ldc % 4 == 0"),
        (lambda call: call.ldc != call.n, "WRONG: passes where ldc is the length of a row"),
        (lambda call: call.n % 2 or call.ldc % 8, "WRONG AT EDGES: passes where N % 2 == 0 and ldc % 8 == 0"),
        (lambda call: call.k < 21, "WRONG: passes where K >= 21"),
        (lambda call: call.k % 2 or call.k < 30, "WRONG: passes where K % 2 == 0 and K >= 30"),
        (lambda call: call.beta != 0, "WRONG: passes where beta == 0"),
        (lambda call: call.alpha == 0, "WRONG: passes where alpha != 0"),
        (lambda call: call.m == 3 and call.n == 3, "WRONG: "),
        (lambda call: call.k % 3 == 1, "WRONG AT EDGES: fails where K % 3 == 1"),
        (lambda call: call.m % 8 == 3, "WRONG AT EDGES: fails where M % 8 == 3"),
        (lambda call: call.n % 16 in (3, 6), "WRONG AT EDGES: fails where N % 16 is 3 or 6"),
        (lambda call: call.k % 24 == 0, "WRONG: fails where K % 24 == 0"),
        (lambda call: call.k % 8 == 0, "WRONG: fails where K % 8 == 0"),
        (lambda call: call.k > 40, "WRONG: passes where K <= 40"),
        (lambda call: call.m > 40 and call.n > 40, "WRONG: passes where M <= 40 or N <= 40"),
        (lambda call: call.m % 4 and call.k % 4, "WRONG AT EDGES: passes where M % 4 == 0 or K % 4 == 0"),
        (lambda call: call.n % 8 and call.beta != 0, "WRONG: passes where N % 8 == 0 or beta == 0"),
        (lambda call: call.k < 30 and call.n % 2, "WRONG: passes where N % 2 == 0 or K >= 30"),
        # Three of which one suffices are no two; and two must hold wherever the kernel passes.
        (lambda call: call.m % 4 and call.n % 4 and call.k % 4, "WRONG: "),
        (lambda call: call.m % 4 and call.k % 4 and call.n < 90, "WRONG: "),
    ],
)
def test_a_wrong_kernel_is_judged_by_what_it_needs(wrong: Wrong, verdict: str) -> None:
    report = judge(wrong)
    assert str(report.verdict).startswith(verdict)
    assert report.explain().startswith(f"fake: {verdict}")
    assert report.to_json()["verdict"]["kind"] == report.verdict.kind


def test_no_condition_is_named_that_a_problem_outside_the_cases_contradicts() -> None:
    """This kernel passes in all cases with K >= 2, and fails at K = 193, which is none of them."""
    assert "where" not in str(judge(lambda call: call.k in (1, 193)).verdict)


def test_a_condition_is_tried_in_all_layouts() -> None:
    """The first eight failures end the cases before a transposed operand is read."""
    text = str(judge(lambda call: bool(call.n % 4 or (call.b.strides[1] > 4 and call.k % 4)), ("nn", "nt")).verdict)
    assert "where" not in text


def test_a_condition_is_found_for_a_kernel_that_reads_one_layout_alone() -> None:
    text = str(judge(lambda call: call.k % 16 != 0, ("nt",), ("TRANS_B == 1",)).verdict)
    assert text.startswith("WRONG AT EDGES: passes where K % 16 == 0")


def test_a_condition_is_found_for_a_kernel_without_factors_that_takes_whole_tiles() -> None:
    needed = (*(f"{name} % 64 == 0" for name in "MNK"), "alpha == 1", "beta == 0")
    text = str(judge(lambda call: call.k % 128 != 0, needed=needed).verdict)
    assert text.startswith("WRONG AT EDGES: passes where K % 128 == 0")


def test_a_right_kernel_passes() -> None:
    assert str(judge(lambda _: False).verdict) == "PASS"


def edited(tmp_path: Path, *edits: tuple[str, str]) -> CheckReport:
    """Check the file that `gemmlab new` writes, with some of its text replaced."""
    path = tmp_path / "mine.cu"
    text = starting_text(path)
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    return check_kernel(user_kernel(path), open_device("emulated"), OP)


@pytest.mark.in_turns(3)
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


@pytest.mark.in_turns(3)
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


@pytest.mark.in_turns(3)
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


@pytest.mark.in_turns(3)
@needs_compiler
def test_a_kernel_that_always_reads_its_output_is_right_where_beta_is_not_0(tmp_path: Path) -> None:
    text = str(edited(tmp_path, ("if (beta != 0.0f) result", "result")).verdict)
    assert text.startswith("WRONG: passes where beta != 0; c held NaN before the call, because nothing is added to it:")


@pytest.mark.in_turns(3)
@needs_compiler
def test_an_index_with_another_leading_dimension_is_named(tmp_path: Path) -> None:
    text = str(edited(tmp_path, ("(k) * ldb", "(k) * lda")).verdict)
    assert text.startswith("OUT OF BOUNDS: B is read outside its bounds at mine.cu:")
    assert ", which indexes B without ldb" in text


@pytest.mark.in_turns(3)
@needs_compiler
def test_vector_loads_need_rows_and_addresses(tmp_path: Path) -> None:
    text = str(edited(tmp_path, ("B[static_cast<long long>(k) * ldb + col]", VECTOR)).verdict)
    assert "passes where N % 4 == 0 and ldb % 4 == 0 and arrays begin at multiples of 16 bytes (align = 16)" in text


@pytest.mark.in_turns(3)
@needs_compiler
def test_a_kernel_that_reads_c_at_no_guard_is_told_everything_that_it_needs(tmp_path: Path) -> None:
    """No case of a product is right, so nothing shows beforehand that beta must not be 0."""
    report = edited(tmp_path, ("    if (row >= M || col >= N) return;\n", ""), ("if (beta != 0.0f) result", "result"))
    assert "passes where M % 16 == 0 and N % 16 == 0 and beta != 0" in str(report.verdict)


@pytest.mark.in_turns(3)
@needs_compiler
def test_the_key_for_misaligned_accesses_is_named_beside_another_fault(tmp_path: Path) -> None:
    """At whole tiles it is wrong, too, so no condition on addresses is found."""
    loads = ("B[static_cast<long long>(k) * ldb + col]", VECTOR)
    text = str(edited(tmp_path, loads, ("alpha * sum", "2 * alpha * sum")).verdict)
    assert "passes where" not in text
    assert "if operands and their rows always begin at multiples of 16 bytes, state align = 16" in text


@pytest.mark.in_turns(3)
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


@pytest.mark.in_turns(3)
@needs_compiler
def test_a_missing_guard_is_out_of_bounds_at_the_edges(tmp_path: Path) -> None:
    report = edited(tmp_path, ("    if (row >= M || col >= N) return;\n", ""))
    text = str(report.verdict)
    assert text.startswith("OUT OF BOUNDS: C is read outside its bounds at mine.cu:")
    assert "at ragged edges only: passes where M % 16 == 0 and N % 16 == 0" in text
    listed = [line for line in report.explain().splitlines() if line.startswith("  in ")]
    assert len({line.partition("(array")[0].partition(": ")[2] for line in listed}) == len(listed)
    assert any("that would be C[1, 0], and C is 1 x 1" in line for line in listed)


@pytest.mark.in_turns(3)
@needs_compiler
def test_a_broken_expectation_is_no_wrong_result(tmp_path: Path) -> None:
    report = edited(tmp_path, ("per_request == 4", "per_request == 5"))
    assert report.right
    assert str(report.verdict).startswith(
        "NOT AS EXPECTED: the results are right; its file expects something else: mine"
    )
    # The statement is told once, with what was counted.
    assert report.explain().count("per_request == 5") == 1


@pytest.mark.in_turns(3)
@needs_compiler
@pytest.mark.parametrize(
    ("without", "place"),
    [
        ("FIRST", "missing in race.cu: __syncthreads() between line 15 and line 17"),
        ("SECOND", "missing in race.cu: __syncthreads() in the loop at lines 12-19, after line 17 and before line 13"),
    ],
)
def test_a_race_names_the_arrays_and_the_place_of_the_missing_barrier(tmp_path: Path, without: str, place: str) -> None:
    path = tmp_path / "race.cu"
    path.write_text(RACE.replace(f"__syncthreads();  // {without}", f"// no __syncthreads() {without}"))
    report = check_kernel(user_kernel(path), open_device("emulated"), OP)
    text = str(report.verdict)
    assert text.startswith("RACE: threads access ")
    assert "Bs" in text
    assert place in text
    # As and Bs race, and the one barrier is named as one.
    told = [line for line in report.explain().splitlines() if line.startswith("  in ") and "()" in line]
    barrier = text.partition("missing in race.cu: ")[2].partition(";")[0]
    assert len(told) == 2
    assert told[0].endswith(f"; put {barrier}")
    assert told[1].endswith(f"; {barrier} orders these accesses, too")


@pytest.mark.in_turns(3)
@needs_compiler
def test_an_element_that_two_threads_write_lacks_no_barrier(tmp_path: Path) -> None:
    report = edited(tmp_path, ("static_cast<long long>(row) * ldc", "static_cast<long long>(row - row % 16) * ldc"))
    assert f"{TWO_WRITES}; " in f"{report.verdict}; "
    assert str(report.verdict).startswith("RACE: C, at mine.cu:")
    (line,) = (one for one in report.explain().splitlines()[1:] if TWO_WRITES in one)
    assert "and a write by thread (" in line
    assert "barrier" not in line
    assert "__syncthreads" not in line


def test_the_place_of_a_barrier_between_lines_of_two_files() -> None:
    race = replace(race_of(3, 9), other_file="b.cuh")
    assert [*places([race], "")] == ["__syncthreads() between a.cu:3 and b.cuh:9"]
    assert not places([replace(race, space="global")], "")
    assert not places([replace(race, message="the asynchronous proxy overwrites what may still be read")], "")


PIPELINE = """
void kernel() {
    tile[x] = A[x];  // 3
    for (int k = 0; k < K; ++k) {
        sum += tile[y];  // 5
        BARRIER
        tile[x] = A[k];  // 7
    }
    if (x)
        part[x] = sum;  // 10
    for (int half = 2; half; half /= 2)
        part[x] += part[x + half];  // 12
    do {
        part[x] += part[x + 1];  // 14
    } while (x < 2);
}
"""


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        # The barrier that is missing stands before the read in the loop: it orders both writes.
        ([(3, 5), (7, 5)], ["between line 4 and line 5"]),
        ([(7, 5), (3, 5)], ["between line 4 and line 5"]),
        ([(5, 7)], ["in the loop at lines 4-8, after line 7 and before line 5 is reached again"]),
        ([(3, 5), (10, 12)], ["between line 3 and line 5", "between line 10 and line 12"]),
        # No barrier fits between the rounds of a loop without braces.
        ([(12, 12), (10, 12)], ["before or after line 12, which different threads execute",
                                "between line 10 and line 12"]),
        ([(10, 14), (14, 14)], ["between line 13 and line 14"]),
    ],
)  # fmt: skip
def test_races_that_one_barrier_orders_have_one_place(lines: list[tuple[int, int]], told: list[str]) -> None:
    found = places([race_of(*pair) for pair in lines], PIPELINE.replace("BARRIER", "__syncthreads();"))
    assert found == [f"__syncthreads() {place}" for place in told]


def test_a_line_in_an_inner_loop_is_named_with_the_end_of_that_loop() -> None:
    text = PIPELINE.replace(
        "        tile[x] = A[k];  // 7\n", "        for (int i = 0; i < 4; ++i)\n            sum += tile[i];\n"
    )
    text = text.replace(
        "        sum += tile[y];  // 5\n        BARRIER\n", "        tile[x] = A[k];\n        __syncthreads();\n"
    )
    (place,) = places([race_of(8, 5)], text)
    assert place == (
        "__syncthreads() in the loop at lines 4-9, after the inner loop at lines 7-8 and before line 5 is reached again"
    )


def test_a_barrier_of_the_block_orders_a_warp_too() -> None:
    warp = replace(race_of(3, 5), message="__syncwarp() is missing")
    assert places([warp], PIPELINE) == ["__syncwarp() between line 3 and line 5"]
    assert places([warp, race_of(2, 5)], PIPELINE) == ["__syncthreads() between line 3 and line 5"]


def race_of(line: int, other: int) -> Hazard:
    message = "__syncthreads() is missing"
    return Hazard("race", "k", (0, 0, 0), (0, 0, 0), 0, "a.cu", line, other, message=message, space="shared")


def places(races: list[Hazard], text: str) -> list[str]:
    """The different places of barriers, in the order of the races."""
    found = missing_barriers(races, lambda _file: text)
    return [*dict.fromkeys(found[lines_of(race)] for race in races if lines_of(race) in found)]


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


@pytest.mark.in_turns(3)
@needs_compiler
def test_a_kernel_may_state_that_its_offsets_fit_32_bits(tmp_path: Path) -> None:
    edits = ("static_cast<long long>(row) * lda", "row * lda"), ("<= 1024", '<= 1024", "M * lda < 2**31')
    assert str(edited(tmp_path, *edits).verdict) == "PASS"
