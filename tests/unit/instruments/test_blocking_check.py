"""Exercises about blocks: the file to start from fails by its hidden checks, a right solution passes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import gemmlab
from gemmlab.cli.app import build_app
from gemmlab.kernels.blocking_exercise import blocking_ids, find_blocking, read_solution
from gemmlab.kernels.catalog import find_kernel
from gemmlab.verify.verdict import UNEXPECTED
from support.paths import DATA

SOLUTIONS = DATA / "exercises"


@pytest.mark.parametrize("rung", blocking_ids())
def test_the_file_to_start_from_fails_and_hides_its_checks(rung: str, tmp_path: Path) -> None:
    exercise, path = find_blocking(rung), tmp_path / "mine.toml"
    path.write_text(text := exercise.text(), encoding="utf-8")
    assert find_kernel(rung).device == "cpu"
    assert "expect" not in text
    assert max(map(len, text.splitlines())) <= 120
    (report,) = gemmlab.check(str(path)).reports
    assert report.right
    assert report.verdict.kind == UNEXPECTED
    assert f"exercise {rung}: " in report.verdict.text


@pytest.mark.parametrize("rung", blocking_ids())
def test_a_right_solution_passes(rung: str) -> None:
    found = gemmlab.check(str(SOLUTIONS / f"{rung}.toml"))
    assert found.passed, str(found)


def test_every_exercise_has_a_solution() -> None:
    assert [path.stem for path in sorted(SOLUTIONS.glob("*.toml"))] == blocking_ids()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("exercise = ", "Invalid value"),
        ('exercise = "packed"', "nothing else"),
        ('exercise = "packed"\n[blocks]\nMC = 4', "MC = 4; the blocks are KC, NC"),
        ('exercise = "packed"\n[blocks]\nKC = 0', "KC = 0; the blocks are"),
        ('exercise = "pack"\n[blocks]\nKC = 4', "no exercise for 'pack'; did you mean packed"),
    ],
)
def test_a_file_that_is_no_solution_is_named(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(gemmlab.UsageError, match=said):
        read_solution(path)


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
