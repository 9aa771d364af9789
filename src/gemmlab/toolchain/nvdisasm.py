"""Disassemble cubins with NVIDIA's nvdisasm. It needs no driver and no GPU."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib import metadata
from pathlib import Path

from gemmlab.core.errors import CompileError, NoCompilerError
from gemmlab.toolchain import bounded_process as limited

_PACKAGES = ("nvidia-cuda-nvdisasm", "nvidia-cuda-nvcc-cu12")
_SECONDS, _SECONDS_A_MEGABYTE = 8.0, 20.0
"""Limits of nvdisasm's processor time in seconds: a fixed part, and one per megabyte of cubin. Together they are ten
times the time for valid code; with damaged code nvdisasm may hang.
"""


@cache
def tool() -> Path:
    """Return the program `nvdisasm`: that of an installed wheel, else the one on `PATH`. Raises `NoCompilerError`."""
    for package in _PACKAGES:
        try:
            files = metadata.files(package) or []
        except metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.stem == "nvdisasm":
                return Path(str(file.locate()))
    found = shutil.which("nvdisasm")
    if found is None:
        raise NoCompilerError(f"no nvdisasm to read machine code with: {remedy()}")
    return Path(found)


def remedy() -> str:
    """Return advice on how to get NVIDIA's compiler and disassembler here."""
    if sys.platform == "darwin":
        return "NVIDIA has none for macOS; run `gemmlab compile` on Linux or Windows and copy its cache folder"
    return "pip install 'gemmlab[cuda13]'"


def disassemble(cubin: bytes, kernel: str) -> str:
    """Return nvdisasm's text of a cubin: instructions of every function with source lines and encodings.

    `kernel` names the code in errors. Raises `CompileError` if the code cannot be read, or if nvdisasm takes much
    longer than for valid code of that size; `NoCompilerError` without nvdisasm.
    """
    try:
        program = tool()
    except NoCompilerError as error:
        raise NoCompilerError(f"{kernel}: {error}") from error
    seconds = _SECONDS + _SECONDS_A_MEGABYTE * len(cubin) / 1e6
    with tempfile.TemporaryDirectory(prefix="gemmlab-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        try:
            result = limited.run([str(program), "-g", "-hex", "-c", str(path)], seconds)
        except OSError as error:
            raise CompileError(f"{kernel}: nvdisasm did not run: {error}") from error
        except subprocess.TimeoutExpired as error:
            raise CompileError(
                f"{kernel}: nvdisasm did not read the machine code in {seconds:.0f} s; the cubin is damaged"
            ) from error
    if result.returncode:
        reason = result.stderr.strip().replace(str(path), "the cubin") or f"it ended with {result.returncode}"
        raise CompileError(f"{kernel}: nvdisasm cannot read the machine code: {reason}")
    return result.stdout
