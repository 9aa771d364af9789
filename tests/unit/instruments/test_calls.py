"""The instruments as calls of Python: arguments as Python writes them, frozen results in every form."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import gemmlab
from gemmlab.cli.app import build_app
from gemmlab.core.tabular import Tabular
from gemmlab.instruments.bench_result import BenchResult
from gemmlab.instruments.check_result import CheckResult
from support.cuda_source import needs_compiler
from support.measured_records import record, result

SOURCE = """
__global__ void mine(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
  if (row < M && col < N) {
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = alpha * sum + (beta == 0.0f ? 0.0f : beta * C[row * N + col]);
  }
}
"""
FACTS = {"grid": "ceil_div(N, 16), ceil_div(M, 16)", "threads": "16, 16"}


def command(*arguments: str) -> Any:
    done = CliRunner().invoke(build_app(), arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def same_figures(one: CheckResult, other: dict[str, Any]) -> bool:
    """True if the two checks agree in everything but their duration."""
    ours = one.to_json()
    for report in (*ours["reports"], *other["reports"]):
        report.pop("seconds")
    return bool(json.loads(json.dumps(ours)) == other)


def test_check_is_the_command() -> None:
    checked = gemmlab.check("naive_ijk", sizes=[7, (3, 4, 6)], seed=3)
    assert checked.passed
    assert checked.reports[0].cases == 2
    assert same_figures(
        checked, json.loads(command("check", "naive_ijk", "--sizes", "7,3x4x6", "--seed", "3", "--json"))
    )


def test_check_tells_its_progress_and_leaves_the_log_silent(caplog: pytest.LogCaptureFixture) -> None:
    steps: list[tuple[str, int, int]] = []
    gemmlab.check("naive_ijk", sizes=[3, 4], progress=lambda *step: steps.append(step))
    assert steps[-1] == ("naive_ijk", 2, 2)
    assert not caplog.records


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_kernel_is_its_text_or_its_file(tmp_path: Path) -> None:
    text = gemmlab.check(SOURCE, sizes=5, device="emulated", facts=FACTS)
    assert text.passed
    path = tmp_path / "mine.cu"
    path.write_text(SOURCE)
    file = gemmlab.check(path, sizes=5, device="emulated", facts=FACTS)
    assert file.passed
    assert file.reports[0].subject == text.reports[0].subject == "mine"


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(
    ("last", "result", "hazards"),
    [
        ("= sum;", "PASS", ""),
        ("= sum + (K % 16 == 0 ? 0 : 1);", "WRONG AT EDGES", ""),
        ("= sum + 0 * A[M * K];", "RIGHT", "OUT OF BOUNDS"),
        ("= 2 * sum + 0 * A[M * K];", "WRONG", "OUT OF BOUNDS"),
    ],
)
def test_results_and_hazards_are_two_columns(last: str, result: str, hazards: str) -> None:
    source = SOURCE.replace("float alpha, ", "").replace("float beta, ", "")
    source = f"{source[: source.index('= alpha')]}{last}\n  }}\n}}\n"
    found = gemmlab.check(source, device="emulated", facts=FACTS)
    (row,) = found.rows()
    assert (row["result"], row["hazards"]) == (result, hazards), found
    (report,) = found.to_json()["reports"]
    assert (report["result"], report["hazard_kinds"]) == (result.lower(), [hazards.lower()] if hazards else [])
    assert repr(found).endswith(f"mine: {result}{hazards and ', '}{hazards}>")


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_kernel_that_does_not_compile_is_in_the_errors() -> None:
    found = gemmlab.check(SOURCE.replace("float sum", "flaot sum"), sizes=5, device="emulated", facts=FACTS)
    assert not found.passed
    (error,) = found.errors.values()
    assert 'identifier "flaot" is undefined' in str(error)
    assert [row["result"] for row in found.rows()] == ["ERROR"]


@pytest.mark.in_turns(20)
@needs_compiler
def test_bench_on_the_emulator_counts() -> None:
    found = gemmlab.bench("naive", sizes=32, device="emulated")
    assert isinstance(found, BenchResult)
    assert found.summary is None
    assert found.wrong == []
    (row,) = found.rows()
    assert (row["name"], row["size"], row["verified"]) == ("naive", "32x32x32", True)
    assert json.loads(command("bench", "naive", "--sizes", "32", "--device", "emulated", "--json"))["rows"][0] == (
        found.to_json()["rows"][0] | {"notes": []}
    )


@pytest.mark.slow
def test_bench_times() -> None:
    texts: list[str] = []
    found = gemmlab.bench(
        "naive_ijk",
        sizes=16,
        peers="none",
        naive=False,
        rounds=2,
        processes=1,
        progress=lambda *step: texts.append(step[0]),
    )
    assert [row["contestant"] for row in found.rows()] == ["kernel:naive_ijk"]
    assert found.rows()[0]["median_us"] > 0
    assert texts


@pytest.mark.in_turns(20)
@needs_compiler
def test_explain_predicts_and_holds_two() -> None:
    one = gemmlab.explain("naive", sizes=64)
    assert one.sound
    assert one.findings
    row = one.rows()[0]
    assert (row["kernel"], row["gpu"], row["size"]) == ("naive", "H200", "64x64x64")
    assert row["predicted_us"] > 0
    both = gemmlab.explain("naive", "block_tile", sizes=64)
    assert [row["kernel"] for row in both.rows()] == ["naive", "block_tile"]


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_kernel_page_is_written(tmp_path: Path) -> None:
    page = gemmlab.explain("naive", sizes=64).to_html(tmp_path / "page.html")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    # The verdict stands before everything else.
    verdict = text.index('<p class="verdict">Right at 64x64x64. Bound by ')
    assert text.index("<h1>") < verdict < min(text.index('id="about"'), text.index('id="findings"'))
    with pytest.raises(gemmlab.UsageError, match="does not exist"):
        gemmlab.explain("naive", sizes=64).to_html(tmp_path / "nowhere" / "page.html")


@pytest.mark.in_turns(20)
@needs_compiler
def test_profile_counts_on_the_emulator_and_loads_a_record() -> None:
    counted = gemmlab.profile("naive", sizes=32, device="emulated")
    assert counted.rows()[0]["smsp__inst_executed.sum"] > 0
    assert counted.to_json()["profiles"][0]["contestant"] == "kernel:naive"
    loaded = gemmlab.profile("naive", load="h200", sizes=2048)
    assert loaded.record is None
    assert {row["contestant"] for row in loaded.rows()} >= {"naive"}


@needs_compiler
@pytest.mark.slow
def test_climb_counts_and_writes_only_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = gemmlab.climb("reduce", device="emulated", sizes=1024)
    assert found.rows()[0]["device"] == "emulated:sm_90"
    assert found.files == list(tmp_path.iterdir()) == []
    assert gemmlab.climb("reduce", device="emulated", sizes=1024, out="here").files == [
        Path("here/climb-emulated.json")
    ]


def test_climb_without_a_device_takes_those_that_have_a_ladder() -> None:
    found = gemmlab.climb("sums", sizes="4x64x1", peers="", quick=True)
    assert [part.record.op for part in found.parts] == ["sums"]
    assert found.rows()[0]["device"] != "cpu"


def test_two_records_are_compared() -> None:
    times = [[100.0 + 0.1 * n for n in range(9)]]
    old, new = (record(result("kernel:naive", [[factor * time for time in times[0]]])) for factor in (1.0, 0.5))
    (row,) = gemmlab.compare(old, new).rows()
    assert (row["contestant"], row["verdict"], row["regression"]) == ("kernel:naive", "faster", False)
    assert row["ratio.value"] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: gemmlab.check("nosuchkernel"), "nosuchkernel"),
        (lambda: gemmlab.check(3), "kernel is 3; it must be an id"),  # type: ignore[arg-type]
        (lambda: gemmlab.check("naive_ijk", sizes=2.5), "sizes 2.5: whole numbers"),  # type: ignore[arg-type]
        (lambda: gemmlab.check("naive_ijk", facts=FACTS), "name the .cu file"),
        (lambda: gemmlab.check("naive_ijk", timeout_s=-1), "a positive number of seconds"),
        (lambda: gemmlab.climb("sums", device="cpu"), "no ladder of sums for cpu; it has one for cuda or emulated"),
        (lambda: gemmlab.check(op="sums", device="cpu"), "no ladder of sums for cpu; it has one for cuda or emulated"),
        (lambda: gemmlab.climb("batch"), "no ladder of batch for cpu$"),
        (lambda: gemmlab.bench("packed", configs=3, device="emulated"), "nothing is timed"),
        (lambda: gemmlab.explain("packed"), "packed is a kernel for cpu"),
        (lambda: gemmlab.profile(load="h200", config={"BM": 3}), "load shows a record"),
    ],
)
def test_bad_requests(call: Any, said: str) -> None:
    with pytest.raises(gemmlab.UsageError, match=said):
        call()


@pytest.mark.in_turns(20)
def test_rows_are_the_csv() -> None:
    found: Tabular = gemmlab.check("naive_ijk", sizes=3)
    (line,) = csv.DictReader(io.StringIO(found.to_csv()))
    assert line["kernel"] == "naive_ijk"
    assert (line["cases"], line["error"]) == ("1", "")
    with pytest.raises(gemmlab.UsageError, match="package is 'numpy'; it must be one of pandas, polars"):
        found.to_dataframe("numpy")


@pytest.mark.parametrize("package", ["pandas", "polars"])
@pytest.mark.in_turns(20)
def test_rows_are_the_data_frame(package: str) -> None:
    pytest.importorskip(package)
    found: Tabular = gemmlab.check("naive_ijk", sizes=3)
    frame = found.to_dataframe(package)
    assert type(frame).__module__.startswith(package)
    assert list(frame.columns) == list(found.rows()[0])
    assert list(frame["cases"]) == [1]


def test_without_a_package_for_frames_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gemmlab.core.tabular.find_spec", lambda _name: None)
    with pytest.raises(gemmlab.UsageError, match="pandas or polars is not installed"):
        gemmlab.check("naive_ijk", sizes=3).to_dataframe()


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "naive_ijk", "--sizes", "3"],
        ["list"],
        ["list", "naive"],
        ["profile", "--load", "h200"],
        ["cache", "naive_ijk", "--sizes", "16"],
        ["doctor", "--quick"],
        pytest.param(["sass", "naive"], marks=needs_compiler),
        pytest.param(["sass", "naive", "--diff", "arch=sm_80"], marks=needs_compiler),
        pytest.param(["explain", "naive", "--sizes", "64"], marks=needs_compiler),
        pytest.param(["bench", "naive", "--sizes", "32", "--device", "emulated"], marks=needs_compiler),
    ],
    ids=" ".join,
)
@pytest.mark.sampled(19)
def test_csv_has_a_line_of_names_and_a_line_a_row(arguments: list[str]) -> None:
    first, *rows = csv.reader(io.StringIO(command(*arguments, "--csv")))
    assert len(set(first)) == len(first)
    assert rows
    assert {len(row) for row in rows} == {len(first)}


@pytest.mark.parametrize(
    "verb",
    [
        "check",
        "bench",
        "cache",
        "climb",
        "compare a b",
        "doctor",
        "explain naive",
        "list",
        "profile",
        "sass naive",
        "tune",
    ],
)
def test_json_and_csv_exclude_each_other(verb: str) -> None:
    done = CliRunner().invoke(build_app(), [*verb.split(), "--json", "--csv"])
    assert done.exit_code == 2, done.output
    assert "--json, --csv: name one of them" in done.stderr
