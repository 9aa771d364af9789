"""What somebody tries on the first day: short flags, examples, completion, a pipe that closes, a narrow terminal."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from gemmlab.cli.help_examples import EXAMPLES
from gemmlab.core.errors import DeviceError
from gemmlab.devices.select import open_device
from gemmlab.instruments import defaults
from support.cuda_source import needs_compiler
from support.paths import ROOT

VERBS: dict[str, Any] = typer.main.get_command(build_app()).commands  # type: ignore[attr-defined]


def gemmlab(*arguments: str, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "gemmlab", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, **environment}, cwd=ROOT,
    )  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_every_verb_has_an_example(verb: str) -> None:
    short, long = (CliRunner().invoke(build_app(), [verb, flag]) for flag in ("-h", "--help"))
    assert short.exit_code == 0
    assert short.stdout == long.stdout
    assert f"\n    gemmlab {verb} " in short.stdout
    assert [line for line in short.stdout.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize(("verb", "line"), [(verb, line) for verb, lines in EXAMPLES.items() for line in lines])
def test_every_example_can_be_read_by_its_verb(verb: str, line: str) -> None:
    program, named, *words = shlex.split(line)
    assert (program, named) == ("gemmlab", verb)
    VERBS[verb].make_context(verb, words)  # raises for an unknown option or a missing argument


@pytest.mark.in_turns(20)
def test_the_names_of_kernels_are_completed() -> None:
    asked = {"_GEMMLAB_COMPLETE": "complete_bash", "COMP_WORDS": "gemmlab check warp_tile", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-c", "from gemmlab.cli.app import main; main()"], capture_output=True, text=True, check=False,
        env={**os.environ, **asked},
    )  # fmt: skip
    assert done.stdout.split() == ["warp_tile", "warp_tile_double_buffer"]


@pytest.mark.in_turns(20)
def test_a_pipe_that_closes_is_no_wrong_result() -> None:
    with gemmlab("list") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        message = running.stderr.read()
        assert running.wait() == 141
    assert message == b""


def test_a_table_that_is_too_wide_is_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    from gemmlab.cli import console

    table = console.plain_table(["kernel", *(f"column{number}" for number in range(30))], 1)
    console.add_row(table, ["naive", *(f"{number}.125" for number in range(30))])
    console.table_console().print(table)
    printed = capsys.readouterr()
    for number in range(30):
        assert f"column{number}" in printed.out
        assert f"{number}.125" in printed.out
    assert "…" not in printed.out
    assert f"The terminal has {console.PIPE_WIDTH} columns; the table below needs" in printed.err


@needs_compiler
def test_a_bench_of_gpu_kernels_counts_where_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_gpu(name: str, mode: str | None = None) -> Any:
        if name == "cuda":
            raise DeviceError("no GPU in this test")
        return open_device(name, mode)

    monkeypatch.setattr(defaults, "open_device", without_gpu)
    done = CliRunner().invoke(build_app(), ["bench", "naive", "--sizes", "32"])
    assert done.exit_code == 0, done.output
    assert "no GPU in this test; so this is run on emulated:sm_90" in done.stderr
    assert "Counted, not timed, on emulated:sm_90" in done.stdout
