"""`gemmlab compare`: what it prints, its JSON, its chart, and how it ends."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from gemmlab.core.records import Record, save_record
from support.measured_records import record, result

OLD = record(
    result("kernel:[bold]a", [[10, 10.1, 10.2]] * 3),
    result("kernel:a[BM=64]", [[10, 10.1, 10.2]] * 3),
    result("mkl", [[7, 7.1, 7.2]] * 3, role="peer"),
    result("kernel:lost", [[7, 7.1, 7.2]] * 3),
)  # fmt: skip


def times(scale: float, source: Record = OLD) -> Record:
    """The first contestant slower by a factor, and the last one gone."""
    first = source.results[0]
    changed = replace(first, samples=tuple(replace(s, time_us=scale * s.time_us) for s in first.samples))
    return replace(source, results=(changed, *source.results[1:3]))


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(build_app(), ["compare", *map(str, arguments)])


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    found = {}
    for name, what in (("old", OLD), ("slow", times(1.5)), ("equal", times(1.01)), ("sums", replace(OLD, op="reduce"))):
        found[name] = tmp_path / f"{name}.json"
        save_record(what, found[name])
    return found


def test_a_regression_ends_with_1_and_is_named(files: dict[str, Path]) -> None:
    done = run(files["old"], files["slow"])
    assert done.exit_code == 1
    said = " ".join(done.stdout.split())
    for part in (
        "slower! [bold]a 64³",
        "0.667",
        "1 slower, 2 same",
        "without a partner: 1 case of OLD, 0 of NEW",
        "only in OLD: lost",
        "!: a regression",
    ):
        assert part in said
    assert "gemmlab: 1 regression: kernel:[bold]a at 64x64x64, 1 thread: slower, 0.667" in done.stderr


def test_a_time_that_is_none_is_named_with_file_contestant_and_size(files: dict[str, Path]) -> None:
    for time, said in ((-5.0, "-5"), (math.nan, "nan")):
        save_record(record(result("mkl", [[7]], role="peer"), result("kernel:a", [[10, time]])), files["equal"])
        done = run(files["old"], files["equal"])
        assert done.exit_code == 2
        where = f"{files['equal']}: 'kernel:a' at '64x64x64': a time of {said} µs is not a positive number"
        assert done.stderr.strip().splitlines() == [f"gemmlab: {where}"]


@pytest.mark.in_turns(20)
def test_no_regression_ends_with_0(files: dict[str, Path]) -> None:
    done = run(files["old"], files["equal"])
    assert (done.exit_code, "regression" in done.stdout) == (0, False)
    assert "a[BM=64]" not in done.stdout
    assert "a[BM=64]" in run(files["old"], files["equal"], "--all").stdout
    assert run(files["old"], files["slow"], "--threshold", "60").exit_code == 0
    assert run(files["old"], files["equal"], "--relative-to", "mkl").exit_code == 0


def test_what_is_gone_counts_when_asked(files: dict[str, Path]) -> None:
    done = run(files["old"], files["equal"], "--require-all")
    assert done.exit_code == 1
    assert "1 regression: kernel:lost at 64x64x64 is gone" in done.stderr


def test_json_is_the_whole_answer(files: dict[str, Path]) -> None:
    done = run(files["old"], files["slow"], "--json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert (found["regressions"], found["threshold"], found["relative_to"]) == (1, 3.0, "")
    case = found["cases"][0]
    assert (case["contestant"], case["verdict"], case["regression"]) == ("kernel:[bold]a", "slower", True)
    assert (case["label"], case["threads"], case["mode"], case["role"]) == ("64x64x64", 1, "warm", "rung")
    assert case["ratio"]["low"] <= case["ratio"]["value"] == pytest.approx(1 / 1.5)
    assert [key["contestant"] for key in found["only_old"]] == ["kernel:lost"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ('{"schema": "gemmlab.record/9"}', "newer gemmlab"),
        ('{"schema": "gemmlab.record/1"}', "missing"),
        ("[]", "not a gemmlab record"),
        (None, "cannot read the record"),
    ],
)
def test_what_is_no_record_ends_with_2(files: dict[str, Path], tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "bad.json"
    if text is not None:
        path.write_text(text)
    for order in ((files["old"], path), (path, files["old"])):
        done = run(*order, "--json")
        assert done.exit_code == 2
        assert said in json.loads(done.stdout)["error"]["message"]


@pytest.mark.in_turns(20)
def test_usage_errors_end_with_2(files: dict[str, Path], tmp_path: Path) -> None:
    for arguments, said in (
        ((files["old"], files["sums"]), "one record is of gemm, the other of reduce"),
        ((files["old"], files["slow"], "--threshold", "-1"), "a threshold of -1 %"),
        ((files["old"], files["slow"], "--relative-to", "nobody"), "beside 'nobody'"),
        ((files["old"], files["slow"], "--plot", tmp_path / "x.pdf"), "no chart format '.pdf'"),
        ((files["old"], files["slow"], "--plot", tmp_path / "none" / "x.svg"), "cannot write the chart"),
    ):
        done = run(*arguments)
        assert (done.exit_code, said in done.stderr) == (2, True), done.output


@pytest.mark.in_turns(20)
def test_a_chart_of_the_ratios(files: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "ratios.svg"
    assert run(files["old"], files["slow"], "--plot", path).exit_code == 1
    text = path.read_text()
    for part in ("<svg", "[bold]a 64³", "slower", "same"):
        assert part in text
