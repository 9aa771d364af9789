"""Puts machine code of the GPU kernels into the wheel, so that the emulator runs them where no CUDA compiler is.

It is made by the environment that builds, or by the checkout's `.venv`, which `make install` fills: whichever has the
compiler. Where neither has, the wheel is built without and the build says so. `GEMMLAB_MACHINE_CODE` changes that:

- `require`: the compiler is a requirement of the build, which fails where it cannot be had;
- `none`: without machine code;
- `naive,reduce_peak`: these kernels alone, or failure.

An editable install gets none: its sources change, and shipped code counts only for the source it was made of.
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

_LOOK = """
from gemmlab.measure import shipping
from gemmlab.toolchain import cache, nvdisasm, nvrtc
nvrtc.compiler(), nvdisasm.tool(), cache.cache_dir()
"""


class MachineCodeHook(BuildHookInterface[BuilderConfig]):
    """Runs `gemmlab.measure.shipping` and adds what it made."""

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
        python, why = self._compiling_python()
        if python is None and wanted:
            self.app.abort(f"GEMMLAB_MACHINE_CODE={wanted}, and {why}")
        if python is None:
            self.app.display_warning(f"This wheel has no machine code of the GPU kernels: {why}")
            return
        self._folder = tempfile.TemporaryDirectory(prefix="gemmlab-machine-code-")
        kernels = wanted.split(",") if wanted and wanted != "require" else []
        made = self._run(python, "-m", "gemmlab.measure.shipping", self._folder.name, *kernels)
        if made.returncode:
            self.app.abort(f"the GPU kernels' machine code: {made.stderr.strip()}")
        self.app.display_info(f"Machine code of the GPU kernels: {made.stdout.strip()}")
        build_data["force_include"][self._folder.name] = "gemmlab/machine_code"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """The wheel is written."""
        if self._folder is not None:
            self._folder.cleanup()

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
        environment = {**os.environ, "PYTHONPATH": str(Path(self.root, "src"))}
        return subprocess.run([python, *arguments], capture_output=True, text=True, check=False, env=environment)


def _wanted() -> str:
    return os.environ.get("GEMMLAB_MACHINE_CODE", "").strip()
