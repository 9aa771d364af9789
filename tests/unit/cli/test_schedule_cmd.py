"""`gemmlab schedule`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from gemmlab.cli.schedule_cmd import _remarks
from gemmlab.sass.checking import control_codes
from gemmlab.sass.checking.latencies import latencies
from gemmlab.sass.instruction import SassFunction
from gemmlab.sass.ordering.loop_passes import LoopFacts, Ordered
from gemmlab.sass.writing.register_count import with_register_count
from gemmlab.toolchain.cubin import read_cubin
from gemmlab.verify import changed_code
from support.changed_code import subject
from support.cuda_source import needs_compiler
from support.paths import DATA

pytestmark = needs_compiler


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("kernel", ["thread_tile_2d", str(DATA / "user_kernels" / "thread_tile.cu")])
def test_a_cubin_is_written_that_check_passes(kernel: str, tmp_path: Path) -> None:
    file = tmp_path / "made.cubin"
    command = ["schedule", kernel, "--out", str(file), "--sizes", "128", "--json"]
    ended = CliRunner().invoke(build_app(), command)
    assert ended.exit_code == 0, ended.output
    answer = json.loads(ended.output)
    assert answer["after"]["ffmas"] == answer["before"]["ffmas"] > 0
    assert CliRunner().invoke(build_app(), ["check", str(file)]).exit_code == 0


def test_a_kernel_of_the_cpu_is_refused() -> None:
    ended = CliRunner().invoke(build_app(), ["schedule", "threaded"])
    assert ended.exit_code != 0
    assert "machine code of GPU kernels" in str(ended.exception) + ended.output


@pytest.mark.in_turns(20)
def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    for file, said in ((tmp_path, "it is a folder"), (tmp_path / "none" / "x.cubin", "No such file")):
        ended = CliRunner().invoke(build_app(), ["schedule", "thread_tile_2d", "--out", str(file), "--sizes", "33"])
        assert ended.exit_code == 2
        assert f"cannot write {file}: {said}" in " ".join((str(ended.exception) + ended.output).split())


@pytest.mark.in_turns(20)
def test_code_without_room_for_its_registers_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = subject("thread_tile_2d", "sm_90", "33")
    stated = read_cubin(made.artifact.code, "made").functions[made.function.name].registers
    code = with_register_count(made.artifact.code, made.function.name, stated - 2)
    few = replace(made, artifact=replace(made.artifact, code=code))
    monkeypatch.setattr(changed_code, "build_of", lambda *_: few)
    file = tmp_path / "made.cubin"
    ended = CliRunner().invoke(build_app(), ["schedule", "thread_tile_2d", "--out", str(file), "--sizes", "33"])
    assert ended.exit_code == 2
    assert f"the cubin states {stated - 2} registers a thread" in " ".join(
        (str(ended.exception) + ended.output).split()
    )
    assert not file.exists()


@pytest.mark.in_turns(20)
def test_the_table_says_what_was_done(tmp_path: Path) -> None:
    file = tmp_path / "made.cubin"
    ended = CliRunner().invoke(build_app(), ["schedule", "thread_tile_2d", "--out", str(file), "--sizes", "33"])
    assert ended.exit_code == 0, ended.output
    assert "operands from the operand cache" in ended.output
    assert "no fault in the control codes" in ended.output


@pytest.mark.in_turns(20)
def test_pairs_that_the_record_lacks_are_no_fault_of_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if the record had been made of code that never leaves less than 15 cycles.
    longer = {row: max(cycles, 15) for row, cycles in latencies("sm_90").rows.items()}
    monkeypatch.setattr(control_codes, "latencies", lambda arch: replace(latencies(arch), rows=longer))
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(build_app(), ["schedule", "thread_tile_2d", "--sizes", "33"])
    assert ended.exit_code == 0, ended.output
    assert "of instructions had no recorded latency" in ended.output
    assert (tmp_path / "thread_tile_2d-sm_90.cubin").exists()


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(
    ("name", "problem"),
    [("thread_tile", "at 192x192x136"), ("square_only", "at 144x144x144")],
)
def test_a_kernel_of_whole_tiles_runs_on_a_problem_that_it_takes(name: str, problem: str, tmp_path: Path) -> None:
    file = str(DATA / "user_kernels" / f"{name}.cu")
    ended = CliRunner().invoke(build_app(), ["schedule", file, "--out", str(tmp_path / "made.cubin")])
    assert ended.exit_code == 0, ended.output
    assert problem in ended.output


def test_a_kernel_that_takes_no_such_problem_asks_for_sizes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(changed_code, "fitted", lambda *_: [])
    file = str(DATA / "user_kernels" / "square_only.cu")
    ended = CliRunner().invoke(build_app(), ["schedule", file, "--out", str(tmp_path / "made.cubin")])
    assert ended.exit_code == 2
    assert "does not take 129x129x129" in ended.stderr
    assert "for example --sizes 256" in ended.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.in_turns(20)
def test_the_compilers_order_stays_where_no_pass_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["schedule", "thread_tile_2d", "--sizes", "33", "--passes", "reuse"]
    ended = CliRunner().invoke(build_app(), command)
    assert ended.exit_code == 0, ended.output
    assert "no pass helps: the compiler's order stays" in ended.output
    assert "nothing is written" in ended.output
    assert not list(tmp_path.iterdir())
    answer = json.loads(CliRunner().invoke(build_app(), [*command, "--json"]).output)
    assert (answer["file"], answer["order"], answer["better"]) == (None, "compiler", [])
    ended = CliRunner().invoke(build_app(), [*command, "--out", "made.cubin"])
    assert "made.cubin: the compiler's own code" in ended.output
    assert (tmp_path / "made.cubin").read_bytes() == subject("thread_tile_2d", "sm_90", "33").artifact.code


def test_what_is_worse_than_the_compilers_order_is_said() -> None:
    def facts(rate: float, stalls: int) -> LoopFacts:
        return LoopFacts(10, 8, rate, 0, stalls)

    made = Ordered(SassFunction("f", (), {}), (), (), facts(0.25, 963), facts(0.5, 967))
    assert (made.better, made.worse) == (("reuse_rate",), ("stall_cycles",))
    assert [*_remarks(made)] == ["worse than the compiler's order: cycles by stall counts (963 to 967)"]
