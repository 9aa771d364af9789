"""The examples run as they are, in a folder of their own, and use nothing but what is public."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import gemmlab
from gemmlab.core.errors import DeviceError, NoCompilerError
from gemmlab.devices.select import open_device
from gemmlab.timing.process import importable_here
from gemmlab.toolchain import nvdisasm

EXAMPLES = Path(__file__).parents[2] / "examples"
OPTIONAL = {"gemmlab.torch", "gemmlab.dask", "gemmlab.distributed"}
"""Modules that are public and have to be imported by name, since they need a package that gemmlab does not."""
SCRIPTS = sorted(path for path in EXAMPLES.rglob("*.py") if path.parent.name != "operations")
"""Those of operations are no scripts: `test_operations.py` has them."""
GPU, EMULATOR = "a GPU", "the emulator"
NEEDS = {
    "torch_training_step.py": ["torch"],
    "distributed_gemm.py": ["torch"],
    "cupy_gemm.py": ["cupy", GPU],
    "own_kernel.py": ["cuda.bindings.nvrtc", EMULATOR],
    "emulator_in_a_test_suite.py": ["cuda.bindings.nvrtc", EMULATOR],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the examples, away from the repository, and beside it the command, also where it is not installed."""
    command = tmp_path / "bin" / "gemmlab"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gemmlab "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return Path(shutil.copytree(EXAMPLES, tmp_path / "examples"))


def missing(need: str) -> str | None:
    """Why something is not here."""
    if need in {GPU, EMULATOR}:
        try:
            open_device("cuda" if need == GPU else "emulated")
            if need == EMULATOR:
                nvdisasm.tool()
        except (DeviceError, NoCompilerError) as error:
            return str(error)
        return None
    try:
        return None if find_spec(need) else f"there is no {need}"
    except ModuleNotFoundError as error:
        return str(error)


def run(*line: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command with this Python's `gemmlab` found first."""
    found = os.pathsep.join([str(cwd.parent / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    env = os.environ | {"PATH": found, "PYTHONPATH": importable_here()}
    return subprocess.run(line, capture_output=True, text=True, check=False, cwd=cwd, env=env, timeout=110)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_an_example_runs(script: Path, folder: Path) -> None:
    for reason in map(missing, NEEDS.get(script.name, [])):
        if reason is not None:
            pytest.skip(reason)
    line: list[str | Path] = [sys.executable, folder / script.relative_to(EXAMPLES)]
    if "import pytest" in script.read_text(encoding="utf-8"):
        line[1:1] = ["-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = run(*line, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()


@pytest.mark.slow
def test_a_ci_step_knows_a_regression(folder: Path) -> None:
    step = ("sh", folder / "compare_in_ci.sh", "baseline.json")
    assert run(*step, cwd=folder).returncode == 0
    baseline = folder / "baseline.json"
    taken = json.loads(baseline.read_text(encoding="utf-8"))

    def after(speed: float) -> subprocess.CompletedProcess[str]:
        """The step with a baseline in which the kernel was that much faster."""
        record = json.loads(json.dumps(taken))
        for result in record["results"]:
            if result["contestant"] == "kernel:packed":
                times = result["samples"]["time_us"]
                times[:] = [time_us / speed for time_us in times]
        baseline.write_text(json.dumps(record), encoding="utf-8")
        return run(*step, cwd=folder)

    slower, faster = after(4.0), after(0.25)
    assert slower.returncode == 1, slower.stdout + slower.stderr
    assert "1 slower" in slower.stdout
    assert faster.returncode == 0, faster.stdout + faster.stderr
    assert "1 faster" in faster.stdout


@pytest.mark.parametrize("path", [*SCRIPTS, *EXAMPLES.glob("*.sh")], ids=lambda path: path.name)
def test_an_example_is_short_and_listed(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < 60
    assert f"{path.name})" in (EXAMPLES / "README.md").read_text(encoding="utf-8")


def test_what_is_listed_is_there() -> None:
    links = re.findall(r"\]\(([^)]+)\)", (EXAMPLES / "README.md").read_text(encoding="utf-8"))
    assert [link for link in links if not (EXAMPLES / link).exists()] == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_an_example_uses_public_names_alone(script: Path) -> None:
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert {name.name for name in node.names if name.name.startswith("gemmlab.")} <= OPTIONAL
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gemmlab"):
            assert node.module == "gemmlab"
            assert {name.name for name in node.names} <= set(gemmlab.__all__)
        elif isinstance(node, ast.Attribute):
            assert not node.attr.startswith("_")
            if isinstance(node.value, ast.Name) and node.value.id == "gemmlab":
                assert node.attr in gemmlab.__all__ or f"gemmlab.{node.attr}" in OPTIONAL
