"""Find and run Nsight Compute's command line, and explain why it cannot count."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from gemmlab.core.errors import PeerError, ProfilerError
from gemmlab.core.precision import FLOAT32
from gemmlab.core.time_limit import current_limit
from gemmlab.timing.peers import Spec
from gemmlab.timing.process import importable_here
from gemmlab.timing.worker_setup import worker_environment
from gemmlab.toolchain.code_archive import SWITCH

TROUBLE = {
    "ERR_NVGPUCTRPERM": "the driver lets only administrators count: run as root, start the container with "
    "--cap-add=SYS_ADMIN, or load the driver with NVreg_RestrictProfilingToAdminUsers=0",
    "nsight-compute-lock": "its lock file belongs to another user: remove it, or set TMPDIR to a folder of your own",
    "Profiling is not supported": "this version is too old for the GPU, or the GPU too old for it: install another one",
    "driver resource": "another profiler or DCGM is counting: end it, or pause it with `dcgmi profile --pause`",
}
"""Text in an error message of ncu -> the remedy for the user."""
_ELSEWHERE = ("cuda/bin/ncu", "cuda-*/bin/ncu"), ("nsight-compute/*/ncu",)
_FOLDERS = Path("/usr/local"), Path("/opt/nvidia")
_GROUPS = hasattr(os, "killpg")
"""True if the system has process groups, so that a program can be killed with all its children."""


def find_ncu(ncu: str = "ncu") -> str:
    """Return the path of Nsight Compute's command line, from the PATH or, for the name `ncu`, from the usual folders.

    Raises `ProfilerError` when it is not installed.
    """
    path = shutil.which(ncu)
    if path is None and ncu == "ncu":
        found = [file for folder, names in zip(_FOLDERS, _ELSEWHERE, strict=True)
                 for name in names for file in folder.glob(name) if os.access(file, os.X_OK)]  # fmt: skip
        path = str(max(found)) if found else None
    if path is None:
        raise ProfilerError(f"no Nsight Compute here: {ncu} is not on the PATH (--ncu names it; it comes with CUDA)")
    return path


def version(ncu: str) -> str:
    """Return `"Version 2025.3.1.0 (build 36398880)"`; raise `ProfilerError` for a program that prints nothing."""
    lines = run([ncu, "--version"]).strip().splitlines()
    if not lines:
        raise ProfilerError(f"{ncu} prints no version: is it Nsight Compute?")
    return lines[-1].strip()


def run(command: Sequence[str], precision: str = FLOAT32) -> str:
    """Run ncu and return its standard output. `precision` is the type to which a profiled library may round its inputs.

    Raises `ProfilerError` when it cannot be started or may not count (`TROUBLE`), `PeerError` with the end of its
    output when it fails, `TimeLimitError` when the current time limit passes.
    """
    # The package's machine code has no line tables, which are needed to count samples by source line.
    inherited = {**os.environ, "LC_ALL": "C", "PYTHONPATH": importable_here(), SWITCH: "1"}
    environment = worker_environment(Spec("ncu", "ncu", precision=precision), 1, inherited)
    try:
        done = _finished(command, environment)
    except OSError as error:
        raise ProfilerError(f"{command[0]} could not be started: {error.strerror or error}") from error
    output = done.stdout + done.stderr
    # Without permission to count, ncu may still exit with the code of the program it ran.
    for line in (line for line in output.splitlines() if line.startswith("==ERROR==")):
        for words, advice in TROUBLE.items():
            if words in line:
                raise ProfilerError(f"Nsight Compute may not count here ({line[9:].strip()[:160]}): {advice}")
    if done.returncode:
        raise PeerError(f"{Path(command[0]).name} failed: {output[-3000:]}")
    return done.stdout


def _finished(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; kill it and its children and raise `TimeLimitError` at the current time limit."""
    limit = current_limit()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", env=environment,
        start_new_session=_GROUPS,
    ) as process:  # fmt: skip
        try:
            out, err = process.communicate(timeout=None if limit is None else limit.left)
        except BaseException as error:
            if _GROUPS:
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            if limit is not None and isinstance(error, subprocess.TimeoutExpired):
                raise limit.error(Path(command[0]).name, "it and the profiled program were ended") from None
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)
