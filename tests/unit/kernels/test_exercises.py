"""Exercises of rungs: the file to start from fails by its hidden checks, a right solution passes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gemmlab.cli.app import build_app
from gemmlab.core.errors import UsageError
from gemmlab.core.hazard import RACE
from gemmlab.devices.select import open_device
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.exercise import Exercise, exercise_ids, find_exercise
from gemmlab.kernels.user_kernel import starting_text, user_kernel
from gemmlab.ops.catalog import find_op
from gemmlab.verify.check import check_kernel
from gemmlab.verify.check_report import CheckReport
from gemmlab.verify.verdict import SOLVED
from support.cuda_source import needs_compiler

SOLUTIONS = Path(__file__).parents[2] / "data" / "exercises"


def judged(path: Path) -> CheckReport:
    kernel = user_kernel(path)
    arch = kernel.arch if kernel.arch.endswith("a") else "sm_90"
    return check_kernel(kernel, open_device(f"emulated:{arch}"), find_op(kernel.op))


@pytest.mark.parametrize("rung", exercise_ids())
def test_an_exercise_belongs_to_a_rung_and_hides_its_checks(rung: str, tmp_path: Path) -> None:
    exercise, path = find_exercise(rung), tmp_path / "mine.cu"
    path.write_text(text := starting_text(path, rung), encoding="utf-8")
    kernel = user_kernel(path)
    assert find_kernel(rung).step is not None
    assert kernel.op == find_kernel(rung).op
    assert [one.that.text for one in kernel.expect] == [
        one if isinstance(one, str) else one["that"] for one in exercise.expect
    ]
    assert text.startswith(f"// Exercise for {rung}. ")
    assert "expect =" not in text
    criteria = exercise.criteria()
    assert len(criteria) >= len(exercise.expect)
    assert all(f"//   - {one}\n" in text for one in criteria)
    # Plain units: one figure, one number.
    assert [one for one in criteria if " * " in one or "//" in one] == []
    assert "my_kernel" not in text
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("rung", exercise_ids())
def test_the_file_to_start_from_fails_by_the_checks_of_the_exercise(rung: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(starting_text(path, rung), encoding="utf-8")
    report = judged(path)
    assert not report.passed
    # One begins with a race, which stops the check before its counters are looked at.
    claims = [claim for failure in report.failures for claim in failure.claims]
    assert report.verdict.kind == RACE or any(claim.startswith(f"exercise {rung}: ") for claim in claims)


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("rung", exercise_ids())
def test_a_right_solution_passes(rung: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text((SOLUTIONS / f"{rung}.cu").read_text(encoding="utf-8").replace("my_kernel", "mine"))
    report = judged(path)
    assert report.passed, report.explain()
    assert report.verdict.kind == SOLVED
    assert "  the exercise is solved:\n    met: " in report.explain()


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_loop_may_ask_whether_there_is_a_next_tile(tmp_path: Path) -> None:
    path, text = tmp_path / "mine.cu", (SOLUTIONS / "unguarded.cu").read_text(encoding="utf-8")
    for old, new in (
        ("my_kernel", "mine"),
        (";; left -= 16", "; left > 0; left -= 16"),
        ("        if (left == 16) break;\n", ""),
        ("a_next = *(a += 16);", "if (left > 16) a_next = *(a += 16);"),
        ("b_next = *(b += 16 * N);", "if (left > 16) b_next = *(b += 16 * N);"),
    ):
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    report = judged(path)
    assert report.passed, report.explain()


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(
    ("rung", "whole", "half"),
    [
        ("warp_tile", "x * 4 + j / 4 * 64 + j % 4", "x * 8 + j"),
        (
            "warp_tile",
            (
                "for (int j = 0; j < 8; j += 4)\n            *reinterpret_cast<float4*>(&C[row_of(i) * N + col_of(j)]) "
                "= *reinterpret_cast<const float4*>(&sums[i][j]);"
            ),
            "for (int j = 0; j < 8; ++j) C[row_of(i) * N + col_of(j)] = sums[i][j];",
        ),
    ],
)
def test_half_a_solution_fails(rung: str, whole: str, half: str, tmp_path: Path) -> None:
    path, text = tmp_path / "mine.cu", (SOLUTIONS / f"{rung}.cu").read_text(encoding="utf-8")
    assert whole in text
    path.write_text(text.replace(whole, half).replace("my_kernel", "mine"), encoding="utf-8")
    report = judged(path)
    assert report.right
    assert not report.passed
    assert any("NOT MET" in one for one in report.criteria)


def test_every_solution_has_an_exercise_and_every_exercise_a_solution() -> None:
    assert [path.stem for path in sorted(SOLUTIONS.glob("*.cu"))] == exercise_ids()


def test_an_exercise_that_does_not_exist_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no exercise for 'naiv'; did you mean naive"):
        find_exercise("naiv")
    path = tmp_path / "mine.cu"
    path.write_text(starting_text(path, "naive").replace('exercise = "naive"', 'exercise = "none"'))
    with pytest.raises(UsageError, match="no exercise for 'none'"):
        user_kernel(path)


def test_an_exercise_is_refused_where_nothing_counts(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(starting_text(path, "naive"), encoding="utf-8")
    kernel = user_kernel(path)
    with pytest.raises(UsageError, match="mine is an exercise, which counters judge: --device emulated, not cpu"):
        check_kernel(kernel, open_device("cpu"), find_op(kernel.op))


def test_the_checks_are_added_to_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    stated = 'exercise = "naive"\nexpect = ["barriers == 0"]'
    path.write_text(starting_text(path, "naive").replace('exercise = "naive"', stated))
    first, *others = user_kernel(path).expect
    assert (first.that.text, first.where.partition(":")[0]) == ("barriers == 0", "mine.cu")
    assert {one.where for one in others} == {"exercise naive"}


@pytest.mark.in_turns(20)
def test_the_command_writes_an_exercise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = json.loads(run("new", "--exercise", "naive", "--json").stdout)
    assert (written["file"], written["kernel"]) == ("my_naive.cu", "my_naive")
    assert written["next"] == ["gemmlab check my_naive.cu --device emulated"]
    assert re.search(r"__global__ void my_naive\(", (tmp_path / "my_naive.cu").read_text(encoding="utf-8"))
    assert run("new", "other.cu", "--exercise", "block_tile").exit_code == 0
    assert (tmp_path / "other.cu").is_file()
    for wrong in (["nothing"], ["naive"], ["naive", "--rung", "mine", "--after", "naive"]):
        assert run("new", "--exercise", *wrong).exit_code == 2


@pytest.mark.in_turns(20)
@needs_compiler
def test_check_names_the_exercise_that_is_not_solved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("new", "--exercise", "reduce_sequential").exit_code == 0
    result = run("check", "my_reduce_sequential.cu", "--device", "emulated")
    assert result.exit_code == 1
    said = " ".join(result.output.split())
    verdict = "my_reduce_sequential: NOT AS EXPECTED: the results are right; exercise reduce_sequential is not solved"
    assert f"{verdict} met: shared load requests: 25 (at most 25) at 256" in said
    assert "NOT MET: shared load excess: 70 (exactly 0) at 256" in said
    assert said.count("shared load excess: 70 (exactly 0)") == 1
    assert "what the exercise requires" not in said


def run(*arguments: str) -> Result:
    """Return the result of a command line."""
    return CliRunner().invoke(build_app(), [*arguments])


def test_an_exercise_has_a_file_name_of_its_own() -> None:
    assert Exercise("naive", "Do it.", "", ()).file_name == "my_naive.cu"


@pytest.mark.in_turns(20)
@needs_compiler
def test_an_exercise_at_stated_sizes_says_that_its_criteria_were_not_judged(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(starting_text(path, "block_tile"), encoding="utf-8")
    kernel = user_kernel(path)
    op = find_op(kernel.op)
    report = check_kernel(kernel, open_device("emulated"), op, cases=op.parse_sizes("32"))
    assert report.passed
    assert "criteria were not judged" in report.explain()
