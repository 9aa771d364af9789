"""The distribution as a user gets it: a wheel, in an empty environment, used from another folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import gemmlab

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "gemmlab"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`bin` of an environment that holds the wheel and sees this one's dependencies, but not this checkout."""
    home = tmp_path_factory.mktemp("empty")
    venv.create(home, with_pip=False, symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    # A folder named in a .pth joins sys.path without its own .pth files being read: the editable install stays unseen.
    (site / "outer.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    python = home / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    done = subprocess.run(install, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return home / "bin"


def run(installed: Path, tmp_path: Path, *command: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["GEMMLAB_CACHE_DIR"] = str(tmp_path / "cache")
    line = [str(installed / command[0]), *command[1:]]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    shipped = set(zipfile.ZipFile(wheel).namelist())
    files = {
        f"gemmlab/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "gemmlab/py.typed" in files
    assert files <= shipped
    assert {"gemmlab/recorded/h200/climb-cuda.json", "gemmlab/recorded/h200/ncu.json"} <= shipped
    assert not [name for name in shipped if name.startswith(("tests/", "src/"))]


def test_wheel_metadata(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    text = archive.read(metadata).decode()
    assert f"\nVersion: {gemmlab.__version__}\n" in text
    assert "\nLicense-Expression: MIT\n" in text
    assert "\nProvides-Extra: peers\n" in text
    assert any(name.endswith("/licenses/LICENSE") for name in archive.namelist())


def test_installed_package_is_not_the_checkout(installed: Path, tmp_path: Path) -> None:
    where = run(installed, tmp_path, "python", "-c", "import gemmlab; print(gemmlab.__file__)").strip()
    assert Path(where).is_relative_to(installed.parent)


def test_installed_command_lists_the_ladder(installed: Path, tmp_path: Path) -> None:
    kernels = json.loads(run(installed, tmp_path, "gemmlab", "list", "--op", "gemm", "--device", "cpu", "--json"))
    steps = [kernel["step"] for kernel in kernels if kernel["step"] is not None]
    assert len(steps) >= 7
    assert steps == sorted(steps)


def test_installed_library_multiplies(installed: Path, tmp_path: Path) -> None:
    program = """
import numpy as np, gemmlab
rng = np.random.default_rng(0)
a, b = rng.standard_normal((37, 53), dtype=np.float32), rng.standard_normal((53, 29), dtype=np.float32)
c = gemmlab.gemm(a, b)
print(np.abs(c - a.astype(float) @ b.astype(float)).max() < 1e-4, c.dtype, c.shape)
"""
    assert run(installed, tmp_path, "python", "-c", program).split(None, 2) == ["True", "float32", "(37, 29)\n"]


def test_module_runs_as_the_command(installed: Path, tmp_path: Path) -> None:
    assert run(installed, tmp_path, "python", "-m", "gemmlab", "--version").strip() == f"gemmlab {gemmlab.__version__}"
