"""The machine code of a cubin as text, by NVIDIA's disassembler. Needs no driver and no GPU."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib import metadata
from pathlib import Path

from gemmlab.core.errors import CompileError, NoCompilerError

_PACKAGES = ("nvidia-cuda-nvdisasm", "nvidia-cuda-nvcc-cu12")
_TIMEOUT_S = 120.0


@cache
def tool() -> Path:
    """The `nvdisasm` program: that of an installed wheel, else the one on `PATH`. Raises `NoCompilerError`."""
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
    """How to get NVIDIA's compiler and disassembler here."""
    if sys.platform == "darwin":
        return "NVIDIA has none for macOS; run `gemmlab compile` on Linux or Windows and copy its cache folder"
    return "pip install 'gemmlab[cuda13]'"


def disassemble(cubin: bytes, kernel: str) -> str:
    """Instructions of every function with source lines (`-g`) and encodings (`-hex`).

    `kernel` names the code in errors. Raises `CompileError` when it cannot be read, `NoCompilerError` without the tool.
    """
    program = tool()
    with tempfile.TemporaryDirectory(prefix="gemmlab-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        try:
            result = subprocess.run(
                [str(program), "-g", "-hex", "-c", str(path)],
                capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=_TIMEOUT_S, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CompileError(f"{kernel}: nvdisasm did not run: {error}") from error
    if result.returncode:
        reason = result.stderr.strip().replace(str(path), "the cubin") or f"it ended with {result.returncode}"
        raise CompileError(f"{kernel}: nvdisasm cannot read the machine code: {reason}")
    return result.stdout
