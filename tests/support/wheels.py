"""Wheels of this checkout, and the interpreters that they are for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path


def build_wheel(
    python: Path, source: Path, folder: Path, wanted: str, repository: str = ""
) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Return the build's output, and the wheel.

    `wanted` names kernels whose machine code it has, or is `none`. `repository` is that of links on the package page.
    """
    command = [str(python), "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
    environment = {**os.environ, "GEMMLAB_MACHINE_CODE": wanted, "GEMMLAB_REPOSITORY": repository}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100, env=environment)
    return done, next(folder.glob("*.whl"), folder)


def interpreter(version: str) -> Path | None:
    """Return an interpreter of that version, such as `3.12`: this one, one on the path or one of pyenv's."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return Path(sys.executable)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    installed = sorted(pyenv.glob(f"{version}.*/bin/python"))
    named = shutil.which(f"python{version}")
    found = [*reversed(installed), *([Path(named)] if named else [])]
    return next((python for python in found if _is(python, version)), None)


def _is(python: Path, version: str) -> bool:
    shown = subprocess.run([str(python), "--version"], capture_output=True, text=True, check=False)
    return shown.stdout.startswith(f"Python {version}.")
