"""Assemble PTX to machine code with NVIDIA's ptxas. It needs no driver and no GPU."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from gemmlab.core.errors import CompileError, NoCompilerError
from gemmlab.toolchain import bounded_process as limited

_NEWER = re.compile(r"Unsupported \.version (\d+\.\d+); current version is '(\d+\.\d+)'")
_TOO_NEW = "SM version specified by .target is higher than default SM version"
_TARGET = re.compile(rb"^\s*\.target\s+(\w+)", re.MULTILINE)
_RELEASE = re.compile(r"\brelease (\d+\.\d+)")
_SECONDS, _SECONDS_A_MEGABYTE = 60.0, 300.0
"""Limits of ptxas's processor time in seconds: a fixed part, and one per megabyte of PTX."""


def assemble(ptx: bytes, arch: str, name: str) -> bytes:
    """Return the cubin of PTX for an architecture (`"sm_90a"`); `name` names the PTX in errors.

    Raises `CompileError` with the assembler's message, with both versions if the PTX is newer than the assembler, with
    both architectures if the PTX is for a newer one, and if ptxas does not run or reaches its time limit;
    `NoCompilerError` if there is no `ptxas` on `PATH`.
    """
    program = shutil.which("ptxas")
    if program is None:
        raise NoCompilerError(
            f"{name}: no ptxas on PATH to assemble PTX with; it comes with the CUDA toolkit (NVRTC takes CUDA C++ only)"
        )
    with tempfile.TemporaryDirectory(prefix="gemmlab-") as folder:
        source, made = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_bytes(ptx)
        seconds = _SECONDS + _SECONDS_A_MEGABYTE * len(ptx) / 1e6
        try:
            result = limited.run([program, f"-arch={arch}", "-lineinfo", str(source), "-o", str(made)], seconds)
        except OSError as error:
            raise CompileError(f"{name}: ptxas did not run: {error}") from error
        except subprocess.TimeoutExpired as error:
            raise CompileError(f"{name}: ptxas did not finish in {seconds:.0f} s") from error
        if result.returncode or not made.is_file():
            message = (result.stderr or result.stdout).strip().replace(str(source), name)
            if newer := _NEWER.search(message):
                reader = f"{program}{release(program)} reads none above {newer[2]}"
                raise CompileError(
                    f"{name} is PTX of version {newer[1]}, and {reader}: use ptxas of the CUDA release that wrote the "
                    f"file or of a newer one, or let that one write PTX {newer[2]}"
                )
            if _TOO_NEW in message and (target := _TARGET.search(ptx)):
                raise CompileError(f"{name} is PTX for {target[1].decode()} or newer, not for {arch}")
            raise CompileError(
                f"{name} for {arch} does not assemble:\n{message or f'ptxas ended with {result.returncode}'}"
            )
        return made.read_bytes()


@cache
def release(program: str = "ptxas") -> str:
    """Return the release of a ptxas as words, ` of CUDA 13.0`; empty if it does not print it."""
    try:
        found = _RELEASE.search(limited.run([program, "--version"], _SECONDS).stdout)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return f" of CUDA {found[1]}" if found else ""
