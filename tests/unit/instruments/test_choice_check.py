"""Exercises that choose values: the file to start from fails by its hidden checks, a right solution passes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import gemmlab
from gemmlab.cli.app import build_app
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.choice_exercise import choice_ids, find_choice, kernel_with_values
from gemmlab.verify.verdict import SOLVED, UNEXPECTED
from support.paths import DATA

SOLUTIONS = DATA / "exercises"


@pytest.mark.parametrize("rung", choice_ids())
def test_the_file_to_start_from_fails_and_hides_its_checks(rung: str, tmp_path: Path) -> None:
    exercise, path = find_choice(rung), tmp_path / "mine.toml"
    path.write_text(text := exercise.text(), encoding="utf-8")
    assert find_kernel(rung).device == "cpu"
    assert "expect" not in text
    assert all(f"#   - {one}\n" in text for one in exercise.requests())
    assert max(map(len, text.splitlines())) <= 120
    (report,) = gemmlab.check(str(path)).reports
    assert report.right
    assert report.verdict.kind == UNEXPECTED
    assert report.verdict.text.endswith(f"exercise {rung} is not solved")
    # Each criterion is told once.
    assert all(str(report.explain()).count(one) == 1 for one in report.criteria)
    assert ("results" in report.verdict.text) == exercise.computes
    assert ("with results that are right" in report.details()) == exercise.computes


@pytest.mark.parametrize("rung", choice_ids())
def test_a_right_solution_passes(rung: str) -> None:
    found = gemmlab.check(str(SOLUTIONS / f"{rung}.toml"))
    assert found.passed, str(found)
    (report,) = found.reports
    assert report.verdict.kind == SOLVED
    assert "the exercise is solved:\n    met: " in report.explain()


def test_every_exercise_has_a_solution() -> None:
    assert [path.stem for path in sorted(SOLUTIONS.glob("*.toml"))] == choice_ids()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("exercise = ", "Invalid value"),
        ('exercise = "packed"', "nothing else"),
        ("KC = 4", "a solution begins with"),
        ('exercise = "packed"\n[sizes]\nKC = 4', r"a table \[blocks\], nothing else"),
        ('exercise = "packed"\n[blocks]\nMC = 4', "there is no MC to choose; to be chosen: KC, NC"),
        ('exercise = "packed"\n[blocks]\nKC = -1', "KC = -1 is no whole number from 1 to 65536"),
        ('exercise = "blas_naive"\n[sizes]\nLAYOUT = "ab"', "LAYOUT = 'ab' is none of nn, nt, tn, tt"),
        ('exercise = "pack"\n[blocks]\nKC = 4', "no exercise for 'pack'; did you mean packed"),
        ('exercise = "packed"\n[blocks]\nKC = ' + "1" * 5000, "Exceeds the limit"),
        ('exercise = "packed"\n[blocks]\nKC = 0x' + "1" * 5000, "int of 19,997 bits is no whole number from"),
        ('exercise = "packed"\nblocks = ' + "[" * 5000, "recursion|nested"),
        ('exercise = "amx_bf16x6"\n[products]\nA1B1 = 2', "A1B1 = 2 is no whole number from 0 to 1"),
        ('exercise = "reduce_accumulators"\n[parameters]\nACCUMULATORS = 99', "mine.toml: reduce_accumulators: "),
    ],
)
def test_a_file_that_is_no_solution_is_named(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(gemmlab.UsageError, match=said) as raised:
        kernel_with_values(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert str(raised.value).count("mine.toml") == 1


@pytest.mark.in_turns(20)
def test_the_commands_write_and_judge_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    written = json.loads(run(build_app(), ["new", "--exercise", "cache_block", "--json"]).stdout)
    assert written["file"] == "my_cache_block.toml"
    assert run(build_app(), ["check", "my_cache_block.toml"]).exit_code == 1
    text = Path("my_cache_block.toml").read_text(encoding="utf-8")
    for blocks, misses in ((text, 64), (text.replace("KC = 64", "KC = 8"), 10)):
        Path("my_cache_block.toml").write_text(blocks, encoding="utf-8")
        shown = run(build_app(), [*written["next"][0].split()[1:], "--json"])
        assert json.loads(shown.stdout)["rows"][0]["l1_misses"] == pytest.approx(misses, abs=1)
    for wrong in (["my_cache_block.toml", "naive_ijk"], ["my_cache_block.toml", "--sizes", "64"]):
        refused = run(build_app(), ["check", *wrong])
        assert refused.exit_code == 2
        assert "checked alone" in refused.stderr
    assert run(build_app(), ["new", "--exercise", "packed", "mine.cu"]).exit_code == 2
    assert "in a file as my_packed.toml" in run(build_app(), ["new", "--exercise", "packed", "mine.cu"]).stderr


@pytest.mark.parametrize("left_out", ["A1B3", "A2B2", "A3B1", "A1B1"])
def test_fewer_products_than_six_are_refused(left_out: str, tmp_path: Path) -> None:
    path, text = tmp_path / "mine.toml", (SOLUTIONS / "amx_bf16x6.toml").read_text(encoding="utf-8")
    path.write_text(text.replace(f"{left_out} = 1", f"{left_out} = 0"), encoding="utf-8")
    (report,) = gemmlab.check(str(path)).reports
    assert not report.passed
    assert any(one.startswith("NOT MET: largest error") for one in report.criteria)
    assert "right" not in report.details()


def test_the_figures_of_a_solution_are_those_of_its_exercise(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(find_choice("threaded").text(), encoding="utf-8")
    refused = CliRunner().invoke(build_app(), ["cache", str(path)])
    assert refused.exit_code == 2
    assert "the exercise is not about caches" in refused.stderr


@pytest.mark.parametrize("command", ["explain", "sass", "bench"])
def test_commands_that_take_no_solution_name_those_that_do(command: str) -> None:
    refused = CliRunner().invoke(build_app(), [command, "my_packed.toml"])
    assert refused.exit_code == 2
    assert "gemmlab check my_packed.toml judges it, gemmlab cache my_packed.toml shows its misses" in refused.stderr
