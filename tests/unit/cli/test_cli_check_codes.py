"""`gemmlab check` on machine code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import gemmlab
from gemmlab.cli.app import build_app
from gemmlab.sass.writing.cubin_code import with_words
from gemmlab.sass.writing.register_count import with_register_count
from gemmlab.toolchain.cubin import read_cubin
from support.changed_code import subject
from support.cuda_source import needs_compiler
from support.paths import DATA

pytestmark = needs_compiler


def test_sound_code_ends_with_0(tmp_path: Path) -> None:
    file = tmp_path / "naive.cubin"
    file.write_bytes(subject("naive", "sm_80", "64").artifact.code)
    ended = CliRunner().invoke(build_app(), ["check", str(file)])
    assert ended.exit_code == 0, ended.output
    assert "no fault in the control codes" in ended.output


@pytest.mark.in_turns(20)
def test_faults_are_listed_and_end_with_1(tmp_path: Path) -> None:
    made = subject("naive", "sm_80", "64")
    words = [instruction.encoding & ~(0x3F << 116) for instruction in made.function.instructions]
    file = tmp_path / "wrong.cubin"
    file.write_bytes(with_words(made.artifact.code, made.function, words))
    ended = CliRunner().invoke(build_app(), ["check", str(file), "--json"])
    assert ended.exit_code == 1
    (answer,) = json.loads(ended.output)
    assert {finding["fault"] for finding in answer["findings"]} >= {"not waited for"}
    assert "not waited for: R" in CliRunner().invoke(build_app(), ["check", str(file)]).output


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90"])
def test_fewer_registers_than_the_code_needs_are_a_fault(arch: str, tmp_path: Path) -> None:
    made = subject("naive", arch, "64")
    stated = read_cubin(made.artifact.code, "naive").functions[made.function.name].registers
    file = tmp_path / "few.cubin"
    file.write_bytes(with_register_count(made.artifact.code, made.function.name, stated))
    assert file.read_bytes() == made.artifact.code
    file.write_bytes(with_register_count(made.artifact.code, made.function.name, stated - 1))
    ended = CliRunner().invoke(build_app(), ["check", str(file)])
    assert ended.exit_code == 1
    assert "1 fault in the control codes and registers" in ended.output
    assert f"no room: R{stated - 3}\n" in ended.output
    reason = f"the cubin states {stated - 1} registers a thread, and code that uses R{stated - 3} needs {stated}"
    assert reason in ended.output
    (answer,) = json.loads(CliRunner().invoke(build_app(), ["check", str(file), "--json"]).output)
    assert [finding["fault"] for finding in answer["findings"]] == ["no room"]


@pytest.mark.in_turns(20)
def test_code_for_a_debugger_is_refused_by_name(tmp_path: Path) -> None:
    source = 'extern "C" __global__ void one(float* x) { x[threadIdx.x] *= 2.0f; }'
    x = np.zeros(32, np.float32)
    done = gemmlab.launch(source, "one", 1, 32, [x], device="emulated:sm_90", options=["--device-debug"])
    file = tmp_path / "debug.cubin"
    file.write_bytes(done.artifact.code)
    ended = CliRunner().invoke(build_app(), ["check", str(file)])
    assert ended.exit_code == 2
    assert "not checked: no instruction states a stall or a barrier" in ended.output


@pytest.mark.in_turns(20)
def test_machine_code_of_another_compiler_is_judged() -> None:
    ended = CliRunner().invoke(build_app(), ["check", str(DATA / "cuda_12_9_sm_90a.cubin")])
    assert ended.exit_code == 0, ended.output
    assert "not checked, because their latencies are not recorded: UPRMT" in ended.output


@pytest.mark.in_turns(20)
def test_asynchronous_instructions_are_named_and_the_others_checked(tmp_path: Path) -> None:
    file, made = tmp_path / "wgmma.cubin", subject("wgmma_tf32", "sm_90a", "64")
    file.write_bytes(made.artifact.code)
    ended = CliRunner().invoke(build_app(), ["check", str(file)])
    assert ended.exit_code == 0, ended.output
    assert "asynchronous, so that only their stalls and waits are checked: HGMMA, " in ended.output
    words = [instruction.encoding & ~(0x3F << 116) for instruction in made.function.instructions]
    file.write_bytes(with_words(made.artifact.code, made.function, words))
    ended = CliRunner().invoke(build_app(), ["check", str(file)])
    assert ended.exit_code == 1
    assert "not waited for" in ended.output


def test_kernels_and_cubins_are_not_mixed(tmp_path: Path) -> None:
    ended = CliRunner().invoke(build_app(), ["check", "naive", str(tmp_path / "a.cubin")])
    assert ended.exit_code == 2
    assert "name no kernels with them" in str(ended.exception) + ended.output
