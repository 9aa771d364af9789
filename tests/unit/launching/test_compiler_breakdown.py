"""Foreign code is compiled in a child process, which may break down without harm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import CompileError
from gemmlab.core.program import Program
from gemmlab.kernels.catalog import find_kernel
from gemmlab.launching.source import CudaText
from gemmlab.toolchain import apart, compilation, compile_child
from gemmlab.toolchain.compile_child import message, program_of
from support.cuda_source import needs_compiler

BREAKS_NVRTC = "template <typename T> __global__ void k(Lacking<T>* p) { p[0] = 1; }\n"
SOURCE = 'extern "C" __global__ void k(float* p) { p[threadIdx.x] = VALUE; }\n'


def program(value: str, path: str = "") -> Program:
    return CudaText(SOURCE.replace("VALUE", value), path).program("k", "sm_90", ("-DN=4",))


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_breakdown_of_the_compiler_is_an_error_with_what_it_says_of_the_source() -> None:
    with pytest.raises(CompileError, match=r"k<float>\) for sm_90 does not compile: the compiler itself crashed"):
        gemmlab.launch(BREAKS_NVRTC, "k<float>", 1, 32, [np.zeros(32, np.float32)], device="emulated")
    with pytest.raises(CompileError, match=r"k\.cu:1: error: "):
        gemmlab.launch(BREAKS_NVRTC, "k<float>", 1, 32, [np.zeros(32, np.float32)], device="emulated")


@pytest.mark.in_turns(20)
@needs_compiler
def test_the_same_code_comes_from_the_child_as_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own.h").write_text("#define TWO 2\n")
    monkeypatch.chdir(tmp_path)
    given = program('\n#include "own.h"\nTWO + N', "k.cu")
    Path("k.cu").write_text(given.emit())
    assert apart.is_foreign(given)
    assert apart.compile_apart(given) == compilation.compile_cubin(given)


@pytest.mark.in_turns(20)
@needs_compiler
def test_errors_are_those_of_the_compiler_and_the_child_goes_on() -> None:
    with pytest.raises(CompileError, match='identifier "x" is undefined'):
        apart.compile_apart(program("x"))
    (child,) = apart._children.idle
    assert apart.compile_apart(program("1")).entry == "k"
    assert apart._children.idle == [child]


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_child_serves_the_tests_of_one_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    served = list[int]()
    for name, value in (("PYTEST_CURRENT_TEST", "this one"), ("PYTEST_CURRENT_TEST", "the next one"), ("OTHER", "1")):
        monkeypatch.setenv(name, value)
        assert apart.compile_apart(program("1")).entry == "k"
        (child,) = apart._children.idle
        served.append(child.pid)
    assert served[0] == served[1] != served[2]


@pytest.mark.in_turns(20)
@needs_compiler
def test_threads_have_children_of_their_own_and_a_child_that_ended_is_replaced() -> None:
    with ThreadPoolExecutor(2) as pool:
        found = [*pool.map(apart.compile_apart, map(program, "123"))]
    assert len({artifact.digest for artifact in found}) == 3
    for child in apart._children.idle:
        os.kill(child.pid, signal.SIGTERM)
        child.wait()
    assert apart.compile_apart(program("4")).entry == "k"


def test_rungs_are_compiled_here() -> None:
    rung = find_kernel("naive")
    assert not apart.is_foreign(rung.program(rung.instances(rung.configure())[0], "sm_90"))
    assert apart.is_foreign(program("1"))


def test_a_program_survives_its_journey(monkeypatch: pytest.MonkeyPatch) -> None:
    given, folders = program("5"), list[Any]()
    monkeypatch.setattr(os, "chdir", folders.append)
    found = program_of(message(given))
    assert (found, found.emit(), folders) == (given, given.emit(), [str(Path.cwd())])


def test_without_an_interpreter_to_start_all_is_compiled_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    assert not apart.is_foreign(program("1"))


@pytest.mark.in_turns(20)
def test_a_child_whose_parent_has_ended_ends_without_a_word() -> None:
    data = message(program("1"))
    command = [sys.executable, "-m", compile_child.__name__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        # As when the parent is killed during the compilation.
        child.stdout.close()
        compile_child.write(child.stdin, data)
        said = child.stderr.read()
        assert child.wait(60) == 0
    assert said == b""
