"""Programs that hang are ended, and none outlives the process that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gemmlab.core.errors import CompileError
from gemmlab.toolchain import bounded_process as limited
from gemmlab.toolchain import nvdisasm

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="runs shell commands")


def running(process: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def gone(process: int) -> bool:
    """Whether a process ends within some seconds."""
    for _ in range(200):
        if not running(process):
            return True
        time.sleep(0.05)
    return False


def test_output_and_exit_code_come_back() -> None:
    done = limited.run(["sh", "-c", "echo out; echo err >&2; exit 3"], 10)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")


@pytest.mark.in_turns(20)
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel counts the time there")
def test_what_computes_for_ever_is_ended_after_its_processor_time() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        limited.run(["sh", "-c", "while :; do :; done"], 1)


@pytest.mark.in_turns(20)
def test_what_sleeps_is_ended_with_all_that_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited, "PATIENCE", 1)
    note = tmp_path / "process"
    with pytest.raises(subprocess.TimeoutExpired):
        limited.run(["sh", "-c", f"sleep 1000 & echo $! > {note}; wait"], 1)
    assert gone(int(note.read_text()))


@pytest.mark.in_turns(20)
def test_a_disassembler_that_hangs_is_a_named_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvdisasm"
    tool.write_text("#!/bin/sh\nsleep 1000\n")
    tool.chmod(0o755)
    monkeypatch.setattr(nvdisasm, "tool", lambda: tool)
    monkeypatch.setattr(nvdisasm, "_SECONDS", 0.2)
    with pytest.raises(
        CompileError, match=r"mine: nvdisasm did not read the machine code in .* s; the cubin is damaged"
    ):
        nvdisasm.disassemble(b"code", "mine")


@pytest.mark.skipif(not limited._tie(), reason="needs util-linux's setpriv")
def test_a_program_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "process"
    source = "import sys; from gemmlab.toolchain import bounded_process; bounded_process.run(sys.argv[1:], 1000)"
    command = ["sh", "-c", f"echo $$ > {note}; exec sleep 1000"]
    with subprocess.Popen([sys.executable, "-c", source, *command]) as parent:
        while not (note.exists() and note.read_text().strip()):
            time.sleep(0.05)
        child = int(note.read_text())
        assert running(child)
        os.kill(parent.pid, signal.SIGKILL)
    assert gone(child)
