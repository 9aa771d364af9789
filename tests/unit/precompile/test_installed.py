"""The wheel with its dependencies in an empty environment of every supported Python: no compiler, no checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import cuda_source
from support.cuda_source import needs_compiler
from support.paths import ROOT
from support.wheels import build_wheel, interpreter

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

VERSIONS = ("3.11", "3.12", "3.13")
NO_INDEX = ("Could not find a version", "No matching distribution", "Connection", "Temporary failure", "timed out")
"""Words of pip where the dependencies cannot be had."""
PRODUCT = """
import numpy as np, gemmlab
rng = np.random.default_rng(0)
a, b = rng.standard_normal((37, 53), dtype=np.float32), rng.standard_normal((53, 29), dtype=np.float32)
assert np.abs(gemmlab.gemm(a, b) - a.astype(float) @ b.astype(float)).max() < 1e-4
print("right")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    wanted = "naive" if not cuda_source._missing() else "none"
    done, built = build_wheel(Path(sys.executable), ROOT, tmp_path_factory.mktemp("dist"), wanted)
    assert done.returncode == 0, done.stdout + done.stderr
    return built


@pytest.fixture(scope="module", params=VERSIONS)
def environment(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`bin` of an environment in which pip has installed the wheel and what it depends on, and nothing else."""
    python = interpreter(request.param)
    if python is None:
        pytest.skip(f"no Python {request.param} here")
    home = tmp_path_factory.mktemp(f"python{request.param}")
    subprocess.run([str(python), "-m", "venv", str(home)], check=True)
    install = [str(home / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", str(wheel)]
    done = subprocess.run(install, capture_output=True, text=True, check=False, timeout=400, env=clean())
    if done.returncode and any(words in done.stderr for words in NO_INDEX):
        pytest.skip(f"the dependencies cannot be had: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stdout + done.stderr
    return home / "bin"


def clean() -> dict[str, str]:
    """The environment without what names packages of others."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GEMMLAB", "VIRTUAL"))}


def run(environment: Path, folder: Path, *command: str) -> str:
    done = subprocess.run(
        [str(environment / command[0]), *command[1:]], capture_output=True, text=True, check=False, cwd=folder,
        env={**clean(), "GEMMLAB_CACHE_DIR": str(environment.parent / "cache")}, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_product_is_right(environment: Path, tmp_path: Path) -> None:
    assert run(environment, tmp_path, "python", "-W", "error", "-c", PRODUCT) == "right\n"


def test_there_is_no_compiler(environment: Path, tmp_path: Path) -> None:
    packages = run(environment, tmp_path, "pip", "list", "--disable-pip-version-check")
    assert "gemmlab" in packages
    assert not [line for line in packages.splitlines() if line.startswith(("nvidia", "cuda"))]


@needs_compiler
def test_a_kernel_is_checked_without_a_word_on_devices(environment: Path, tmp_path: Path) -> None:
    assert "PASS" in run(environment, tmp_path, "gemmlab", "check", "naive")


def test_a_report_is_written(environment: Path, tmp_path: Path) -> None:
    record = ROOT / "benchmarks" / "results" / "h200" / "climb-cuda.json"
    run(
        environment, tmp_path, "gemmlab", "report", str(record), "--kernels", "naive", "--no-explain", "--out", "r.html"
    )
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Vega-Lite: Copyright" in page
