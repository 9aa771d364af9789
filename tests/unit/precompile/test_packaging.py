"""The distribution as a user gets it: a wheel, in an empty environment, used from another folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import hatch_build
import pytest
from hatch_readme import with_absolute_links

import gemmlab
from gemmlab.kernels.catalog import ladder
from support import cuda_source
from support.cuda_source import needs_compiler
from support.paths import ROOT
from support.wheels import build_wheel

pytestmark = pytest.mark.slow

PACKAGE = ROOT / "src" / "gemmlab"
SHIPPED = "naive"
"""The kernel whose machine code the wheel of these tests has: all of them would take minutes to compile."""
MOST_BYTES = 3_000_000
"""The bound on a wheel without machine code; docs/installing.md states the size."""
COMPILER = ("cuda", "nvidia", "gemmlab", "__editable__")
"""How the names begin of what is left out of the environment that the wheel is installed in."""


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    wanted = SHIPPED if not cuda_source._missing() else "none"
    folder = tmp_path_factory.mktemp("dist")
    done, built = build_wheel(Path(sys.executable), ROOT, folder, wanted, "https://example.org/gemmlab/v0/")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr, built


@pytest.fixture(scope="module")
def wheel(build: tuple[str, Path]) -> Path:
    return build[1]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`bin` of an environment with the wheel and this one's packages, without the CUDA compiler and this checkout."""
    home = tmp_path_factory.mktemp("empty")
    venv.create(home, with_pip=False, symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    outer = tmp_path_factory.mktemp("outer")
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith(COMPILER):
            (outer / entry.name).symlink_to(entry)
    # A folder named in a .pth joins sys.path.
    (site / "outer.pth").write_text(f"{outer}\n", encoding="utf-8")
    python = home / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    done = subprocess.run(install, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return home / "bin"


def run(installed: Path, tmp_path: Path, *command: str) -> str:
    done = attempt(installed, tmp_path, *command)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def attempt(installed: Path, tmp_path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["GEMMLAB_CACHE_DIR"] = str(installed.parent / "cache")
    line = [str(installed / command[0]), *command[1:]]
    return subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment, timeout=100)


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
    for name in ("LICENSE", "THIRD_PARTY.md"):
        assert any(found.endswith(f"/licenses/{name}") for found in archive.namelist())


def test_no_link_of_the_package_page_is_relative(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    page = archive.read(metadata).decode().partition("\n\n")[2]
    targets = re.findall(r"\]\(([^()\s]+)\)", page)
    assert targets
    assert all(target.startswith(("https://", "http://", "#")) for target in targets)
    pictures = re.findall(r"!\[[^\]]*\]\(([^()\s]+)\)", page)
    assert pictures
    for picture in pictures:
        assert picture.startswith("https://example.org/gemmlab/v0/")
        assert Path(ROOT, picture.removeprefix("https://example.org/gemmlab/v0/").removesuffix("?raw=true")).is_file()


def test_without_an_address_the_package_page_has_no_pictures_and_no_dead_links() -> None:
    page = with_absolute_links((ROOT / "README.md").read_text(encoding="utf-8"), "")
    assert "gemmlab.gemm" in page
    assert "![" not in page
    assert not [target for target in re.findall(r"\]\(([^()\s]+)\)", page) if not target.startswith(("http", "#"))]


def test_the_wheel_without_machine_code_is_small(wheel: Path) -> None:
    parts = zipfile.ZipFile(wheel).infolist()
    code = ("/machine_code/", "/gpu_code/")
    package = sum(part.compress_size for part in parts if not any(folder in part.filename for folder in code))
    assert package < MOST_BYTES


def test_a_wheel_beyond_its_bound_is_refused(tmp_path: Path) -> None:
    large = tmp_path / "large.whl"
    large.touch()
    os.truncate(large, hatch_build.MOST_BYTES + 1)
    assert "at most" in hatch_build.too_large(large)
    os.truncate(large, hatch_build.MOST_BYTES)
    assert hatch_build.too_large(large) == ""


def test_installed_package_is_not_the_checkout(installed: Path, tmp_path: Path) -> None:
    where = run(installed, tmp_path, "python", "-c", "import gemmlab; print(gemmlab.__file__)").strip()
    assert Path(where).is_relative_to(installed.parent)


def test_installed_command_lists_the_ladder(installed: Path, tmp_path: Path) -> None:
    kernels = json.loads(run(installed, tmp_path, "gemmlab", "list", "--op", "gemm", "--device", "cpu", "--json"))
    steps = [kernel["step"] for kernel in kernels if kernel["step"] is not None]
    assert steps == [kernel.step for kernel in ladder("gemm", "cpu")]


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


def test_compilers_are_not_there(installed: Path, tmp_path: Path) -> None:
    found = json.loads(run(installed, tmp_path, "gemmlab", "doctor", "--quick", "--json"))
    assert found["cuda_compiler"]["compiler"] is None
    assert {name for name, version in found["compilers"].items() if version} <= {"llvmlite", "llvm"}


@needs_compiler
def test_shipped_code_is_checked_counted_and_explained(installed: Path, tmp_path: Path) -> None:
    emulated = "--device", "emulated:sm_90"
    assert "PASS" in run(installed, tmp_path, "gemmlab", "check", SHIPPED, *emulated, "--sizes", "33x17x9")
    counted = json.loads(run(installed, tmp_path, "gemmlab", "bench", SHIPPED, *emulated, "--sizes", "64", "--json"))
    (result,) = counted["record"]["results"]
    assert result["facts"]["compiler"].startswith("NVRTC ")
    told = run(installed, tmp_path, "gemmlab", "explain", SHIPPED)
    assert "registers a thread" in told
    shipped = json.loads(run(installed, tmp_path, "gemmlab", "doctor", "--quick", "--json"))["machine_code"]
    assert shipped == {"sm_80": 1, "sm_89": 1, "sm_90": 1}


def test_what_was_not_shipped_names_the_package_to_install(installed: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.cu"
    run(installed, tmp_path, "gemmlab", "new", str(own))
    emulated = "--device", "emulated:sm_90"
    config = ["check", SHIPPED, "--config", "BM=8", *emulated]
    for command in (config, ["check", str(own), *emulated], ["explain", "block_tile"]):
        failed = attempt(installed, tmp_path, "gemmlab", *command)
        assert failed.returncode == 2
        assert "pip install 'gemmlab[cuda13]'" in failed.stdout + failed.stderr
        assert "Traceback" not in failed.stderr


@needs_compiler
def test_an_edited_kernel_never_runs_the_code_of_the_old_one(installed: Path, tmp_path: Path) -> None:
    (path,) = installed.parent.glob(f"lib/*/site-packages/gemmlab/kernels/gemm_cuda/{SHIPPED}.cu")
    text = path.read_text(encoding="utf-8")
    check = "gemmlab", "check", SHIPPED, "--device", "emulated:sm_90", "--sizes", "16"
    try:
        path.write_text(text.replace("sum_depth", "sum_depth ", 1), encoding="utf-8")
        assert path.read_text(encoding="utf-8") != text
        assert attempt(installed, tmp_path, *check).returncode == 2
    finally:
        path.write_text(text, encoding="utf-8")
    assert attempt(installed, tmp_path, *check).returncode == 0


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source as it comes in an archive: no environment beside it."""
    folder = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE", "THIRD_PARTY.md", "hatch_build.py", "hatch_readme.py"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(PACKAGE, folder / "src" / "gemmlab", ignore=shutil.ignore_patterns("__pycache__"))
    recorded = Path("benchmarks", "results", "h200")
    shutil.copytree(ROOT / recorded, folder / recorded)
    return folder


@needs_compiler
def test_a_build_that_compiles_says_how_far_it_is(build: tuple[str, Path]) -> None:
    told = re.findall(r"Machine code of the GPU kernels: (.*)", build[0])
    planned = int(told[0].removesuffix(" instances to compile, or to read from the cache"))
    steps = [*range(10, planned, 10), planned]
    assert told[1:-1] == [f"{done} of {planned} done" for done in steps]
    assert re.fullmatch(rf"{planned} instances, [0-9.]+ MB", told[-1])


def test_nothing_is_compiled_unless_it_was_asked_for(bare: Path, tmp_path: Path) -> None:
    # This environment has the compiler, and that changes nothing.
    done, built = build_wheel(Path(sys.executable), bare, tmp_path, "")
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    (line,) = (line for line in said.splitlines() if "achine code" in line)
    assert line.startswith("This wheel has no machine code of the GPU kernels; `make wheel`, or GEMMLAB_MACHINE_CODE=")
    assert not [name for name in zipfile.ZipFile(built).namelist() if "/machine_code/" in name]


@pytest.mark.parametrize("wanted", ["require", SHIPPED])
def test_machine_code_that_was_asked_for_and_cannot_be_made_is_an_error(
    installed: Path, bare: Path, tmp_path: Path, wanted: str
) -> None:
    done, built = build_wheel(installed / "python", bare, tmp_path, wanted)
    assert done.returncode != 0
    assert "cuda-bindings" in done.stdout + done.stderr or "no CUDA compiler" in done.stdout + done.stderr
    assert built == tmp_path
