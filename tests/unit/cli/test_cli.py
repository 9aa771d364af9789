from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

import gemmlab
from gemmlab.cli.answer import print_json
from gemmlab.cli.app import build_app
from gemmlab.core.errors import DeviceError, UsageError, WrongResultError
from gemmlab.core.precision import PRECISIONS
from gemmlab.kernels.catalog import ladder

VERBS = (
    "bench",
    "blas",
    "cache",
    "check",
    "climb",
    "compare",
    "compile",
    "doctor",
    "explain",
    "list",
    "new",
    "profile",
    "report",
    "sass",
    "schedule",
    "tune",
)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), list(arguments))


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself_and_each_of_its_options(verb: str) -> None:
    result = run(verb, "--help")
    assert result.exit_code == 0
    command = typer.main.get_command(build_app()).commands[verb]  # type: ignore[attr-defined]
    assert command.help
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    assert [option.name for option in options if not option.help] == []
    assert "as_json" in [option.name for option in options]


def test_there_are_no_other_verbs() -> None:
    assert sorted(typer.main.get_command(build_app()).commands) == sorted(VERBS)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["climb", "--sizes", "12x"], 2, "12x"),
        (["climb", "--sizes", "-4"], 2, "-4"),
        (["climb", "--threads", "0"], 2, "threads"),
        (["climb", "--op", "sort"], 2, "sort"),
        (["climb", "--peers", "nosuchlib"], 2, "nosuchlib"),
        (["climb", "--device", "cuda:999"], 3, "cuda"),
        (["climb", "--device", "emulated:sm_20"], 3, "sm_20"),
        (["list", "--op", "sort"], 2, "sort"),
        (["list", "--device", "tpu"], 3, "tpu"),
        (["check", "pakced"], 2, "packed"),
        (["check", "--sizes", "1x2"], 2, "1x2"),
        (["check", "--device", "cuda:999"], 3, "cuda"),
        (["bench", "pakced"], 2, "packed"),
        (["cache", "pakced"], 2, "packed"),
        (["bench", "--device", "tpu"], 3, "tpu"),
        (["nosuchverb"], 2, "nosuchverb"),
        (["list", "--nosuchoption"], 2, "nosuchoption"),
    ],
)
def test_usage_errors_end_with_their_code_and_name_the_thing(
    arguments: list[str], code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert not list(tmp_path.iterdir())


def app_that(raises: BaseException) -> typer.Typer:
    app = build_app()

    @app.command("fail")
    def fail(as_json: bool = typer.Option(False, "--json")) -> None:
        del as_json
        raise raises

    return app


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (WrongResultError("C[1, 2] is off"), 1, "gemmlab: C[1, 2] is off"),
        (UsageError("no"), 2, "gemmlab: no"),
        (DeviceError("none here"), 3, "gemmlab: none here"),
        (MemoryError("Unable to allocate 3 TiB"), 2, "gemmlab: not enough memory: Unable to allocate 3 TiB"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_errors_become_exit_codes(error: BaseException, code: int, said: str) -> None:
    result = CliRunner().invoke(app_that(error), ["fail"])
    assert result.exit_code == code
    assert result.stderr.strip() == said
    shown = CliRunner().invoke(app_that(error), ["--debug", "fail"])
    assert shown.exit_code == code
    assert ("Traceback" in shown.stderr) == bool(said)


def test_no_verb_prints_json_past_the_one_place() -> None:
    files = sorted(Path(gemmlab.__file__).parent.joinpath("cli").glob("*_cmd.py"))
    assert [file.name for file in files if "json.dumps" in file.read_text(encoding="utf-8")] == []
    assert len(files) >= len(VERBS)


@pytest.mark.parametrize(
    ("arguments", "kind", "code", "said"),
    [
        (["bench", "pakced", "--json"], "UsageError", 2, "did you mean packed"),
        (["cache", "--json", "--sizes", "1x2"], "UsageError", 2, "expected 3"),
        (["check", "--json", "--device", "tpu"], "DeviceError", 3, "no device named 'tpu'"),
        (["climb", "--op", "sort", "--json"], "UsageError", 2, "sort"),
        (["doctor", "--json", "--nosuchoption"], "NoSuchOption", 2, "--nosuchoption"),
        (["list", "--json", "--device", "tpu"], "DeviceError", 3, "tpu"),
        (["check", "--json", "--seed", "x"], "BadParameter", 2, "--seed"),
        (["nosuchverb", "--json"], "UsageError", 2, "nosuchverb"),
    ],
)
def test_with_json_an_error_is_a_document_too(arguments: list[str], kind: str, code: int, said: str) -> None:
    result = run(*arguments)
    error = json.loads(result.stdout)["error"]
    assert (error["type"], error["exit_code"], result.exit_code) == (kind, code, code)
    assert said in error["message"]
    assert said in result.stderr


def test_a_lack_of_memory_is_a_document_and_a_fault_of_ours_is_not() -> None:
    result = CliRunner().invoke(app_that(MemoryError("3 TiB")), ["fail", "--json"])
    assert json.loads(result.stdout) == {
        "error": {"type": "MemoryError", "message": "not enough memory: 3 TiB", "exit_code": 2}
    }
    assert CliRunner().invoke(app_that(KeyError("x")), ["fail", "--json"]).stdout == ""


def test_an_error_after_the_answer_prints_no_second_document() -> None:
    app = build_app()

    @app.command("late")
    def late(as_json: bool = typer.Option(False, "--json")) -> None:
        if as_json:
            print_json({"answer": 42})
        raise WrongResultError("missed")

    result = CliRunner().invoke(app, ["late", "--json"])
    assert json.loads(result.stdout) == {"answer": 42}
    assert (result.exit_code, result.stderr) == (1, "gemmlab: missed\n")


def test_version() -> None:
    assert run("--version").stdout == f"gemmlab {gemmlab.__version__}\n"


@pytest.mark.in_turns(20)
def test_list_is_the_catalog_in_ladder_order() -> None:
    kernels = json.loads(run("list", "--op", "gemm", "--device", "cpu", "--json").stdout)
    rungs = [kernel for kernel in kernels if kernel["step"] is not None]
    assert [kernel["id"] for kernel in rungs] == [kernel.id for kernel in ladder("gemm", "cpu")]
    assert [kernel["step"] for kernel in rungs] == [*range(1, len(rungs) + 1)]
    assert rungs[0]["after"] == ""
    for kernel in kernels:
        assert kernel["summary"]
        assert kernel["idea"]
        assert kernel["source"]
        assert not kernel["source"][0].isdigit()
        assert Path(kernel["file"]).is_file()
        assert kernel["file"].endswith(f"gemm_cpu/{kernel['id']}.py")
        assert "nn" in kernel["layouts"]
    table = run("list").stdout
    assert all(kernel["id"] in table and kernel["summary"] in table for kernel in kernels)
    assert table.index("gemm on cpu") < table.index("gemm on cuda") < table.index("reduce on cpu")


def test_list_tells_everything_of_a_kernel_by_name() -> None:
    told = run("list", "async_copy", "naive_ijk").stdout
    assert "STAGES=" in told
    assert "gemm_cuda/async_copy.cu" in told
    assert "gemm_cpu/naive_ijk.py" in told
    (kernel,) = json.loads(run("list", "async_copy", "--json").stdout)
    assert kernel["params"]["BM"] == 128
    assert run("list", "async_cop").exit_code == 2
    assert run("list", "async_copy", "--op", "gemm").exit_code == 2


def test_importing_gemmlab_imports_no_heavy_package() -> None:
    heavy = ("llvmlite", "typer", "rich", "altair", "vl_convert", "threadpoolctl", "platformdirs", "gemmlab.blas")
    program = f"import sys, gemmlab; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_climb_on_this_machine_writes_record_and_charts(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "climb"
    result = run(
        "climb", "--quick", "--sizes", "32,64", "--peers", "numpy", "--out", str(out), "--threads", "1", "--json"
    )
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    rungs = [row for row in answer["rows"] if row["role"] == "rung"]
    # A processor without AMX leaves out its rung.
    assert [row["name"] for row in rungs] == [kernel.id for kernel in ladder("gemm", "cpu") if not kernel.unavailable()]
    for row in rungs:
        assert row["verified"] is True
        assert row["gflops"] > 0
        assert row["to_peers"]["numpy"] > 0
    assert {"climb.json", "climb.png", "climb.svg"} < {path.name for path in out.iterdir()}
    assert {row["name"] for row in answer["counts"]} >= {"naive", "block_tile", "vector_load"}
    assert "naive_ijk" in (out / "climb.svg").read_text(encoding="utf-8")


def test_climb_says_where_it_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    result = run("climb", "--quick", "--sizes", "32", "--out", str(tmp_path / "file"))
    assert result.exit_code == 2
    assert "file" in result.stderr


@pytest.mark.in_turns(20)
def test_list_prints_the_ids_of_rungs_alone() -> None:
    done = run("list", "--rungs", "--op", "gemm", "--device", "cuda", "--precision", "tf32")
    tensor = [kernel.id for kernel in ladder("gemm", "cuda") if kernel.precision == "tf32"]
    assert done.stdout.split() == tensor
    assert [
        kernel["id"] for kernel in json.loads(run("list", "--rungs", "--precision", "tf32", "--json").stdout)
    ] == tensor
    said = run("list", "--precision", "half").stderr
    assert f"no precision named 'half'; precisions: {', '.join(PRECISIONS)}" in said
