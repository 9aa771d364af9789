"""Puts machine code of the GPU kernels into the wheel, so that the emulator runs them where no CUDA compiler is.

Compiling takes minutes, so it is done only where `GEMMLAB_MACHINE_CODE` asks for it, as `make wheel` does:

- nothing: without machine code, and the build says so;
- `none`: the same without a word;
- `require`: the compiler is a requirement of the build, which fails where it cannot be had;
- `naive,reduce_peak`: these kernels alone, or failure.

It is made by the environment that builds, or by the checkout's `.venv`, which `make install` fills: whichever has the
compiler. An editable install gets none: its sources change, and shipped code counts only for the source it was made of.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_WITHOUT = (
    "This wheel has no machine code of the GPU kernels; `make wheel`, or GEMMLAB_MACHINE_CODE=require in the "
    "environment of the build, compiles it (minutes)"
)
MOST_BYTES = 27_000_000
"""The bound on a wheel. With all machine code it has some 26 MB, of which the emulator's code is 20 MB."""
_LOOK = """
from gemmlab.precompile import shipping
from gemmlab.toolchain import cache, nvdisasm, nvrtc
nvrtc.compiler(), nvdisasm.tool(), cache.cache_dir()
"""


class MachineCodeHook(BuildHookInterface[BuilderConfig]):
    """Runs `gemmlab.precompile.shipping` and adds what it made."""

    _folder: tempfile.TemporaryDirectory[str] | None = None

    def dependencies(self) -> list[str]:
        """What `require` needs beside hatchling: the package's own needs and the compiler."""
        if _wanted() != "require":
            return []
        project = self.metadata.core
        return [*project.dependencies, *project.optional_dependencies["cuda13"]]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the files and name the folder they are in; `version` is `"standard"` or `"editable"`."""
        wanted = _wanted()
        if version == "editable" or wanted == "none":
            return
        if not wanted:
            self.app.display_warning(_WITHOUT)
            return
        python, why = self._compiling_python()
        if python is None:
            self.app.abort(f"GEMMLAB_MACHINE_CODE={wanted}, and {why}")
            return
        self._folder = tempfile.TemporaryDirectory(prefix="gemmlab-machine-code-")
        kernels = wanted.split(",") if wanted != "require" else []
        self._make(python, self._folder.name, kernels)
        build_data["force_include"][self._folder.name] = "gemmlab/machine_code"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """The wheel is written; refuse one that is too large."""
        if self._folder is not None:
            self._folder.cleanup()
        if problem := too_large(Path(artifact_path)):
            Path(artifact_path).unlink()
            self.app.abort(problem)

    def _make(self, python: Path, folder: str, kernels: list[str]) -> None:
        """Compile, and pass on what is said of it as it is said: nobody waits for minutes in silence."""
        command = [str(python), "-m", "gemmlab.precompile.shipping", folder, *kernels]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self._environment()
        ) as making:
            for line in making.stdout or ():
                self.app.display_info(line.rstrip())
        if making.returncode:
            self.app.abort("the GPU kernels' machine code could not be made, as said above")

    def _compiling_python(self) -> tuple[Path | None, str]:
        """The interpreter whose environment has the compiler, else what the first one lacks."""
        own = Path(self.root, ".venv", *(("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")))
        lacks = []
        for python in filter(Path.is_file, (Path(sys.executable), own)):
            looked = self._run(python, "-c", _LOOK)
            if not looked.returncode:
                return python, ""
            lacks.append(looked.stderr.strip().rsplit("\n", 1)[-1])
        return None, lacks[0]

    def _run(self, python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(python), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=self._environment())

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(Path(self.root, "src"))}


def too_large(wheel: Path) -> str:
    """Return what is wrong with the size of a wheel; empty if it is within its bound."""
    size = wheel.stat().st_size
    return "" if size <= MOST_BYTES else f"{wheel.name} has {size / 1e6:.1f} MB; at most {MOST_BYTES / 1e6:.0f} may be"


def _wanted() -> str:
    return os.environ.get("GEMMLAB_MACHINE_CODE", "").strip()
