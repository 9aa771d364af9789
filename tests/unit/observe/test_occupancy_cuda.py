"""Occupancy against what CUDA itself says: the calculator of its toolkit, and what Nsight Compute saw on a GPU."""

from __future__ import annotations

import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import numpy as np
import pytest

from gemmlab.core.gpu import GpuLimits, limits, occupancy
from gemmlab.observe.profile_reader import load_profiles
from support.paths import DATA, RESULTS

HEADER = "cuda_occupancy.h"
PROFILES = RESULTS / "h200" / "ncu.json"


def include_folder() -> Path | None:
    """Where the header lies: in the runtime's wheel, or in an installed toolkit."""
    try:
        packaged = [Path(str(path.locate())) for path in files("nvidia-cuda-runtime") or () if path.name == HEADER]
    except PackageNotFoundError:
        packaged = []
    installed = [
        path / HEADER for path in (Path("/usr/local/cuda/include"), *Path("/usr/local").glob("cuda-*/include"))
    ]
    return next((path.parent for path in (*packaged, *installed) if path.is_file()), None)


@pytest.fixture(scope="module")
def calculator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler, include = shutil.which("cc"), include_folder()
    if compiler is None or include is None:
        pytest.skip(f"no {'C compiler' if compiler is None else HEADER} here")
    program = tmp_path_factory.mktemp("occupancy") / "calculator"
    subprocess.run([compiler, f"-I{include}", str(DATA / "occupancy.c"), "-o", str(program)], check=True)
    return program


def line(chip: GpuLimits, registers: int, smem: int, threads: int) -> str:
    major, minor = divmod(int(chip.arch[3:]), 10)
    return " ".join(map(str, (
        major, minor, chip.warps_per_sm, chip.registers_per_sm, chip.smem_per_sm, chip.static_smem_per_block,
        chip.smem_per_block, chip.smem_reserved, registers, smem, threads,
    )))  # fmt: skip


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90"])
def test_blocks_are_those_of_the_toolkits_calculator(arch: str, calculator: Path) -> None:
    chip, random = limits(arch), np.random.default_rng(0)
    asked = [
        (int(random.integers(1, 256)), int(smem), int(random.integers(1, 1025)))
        for smem in (*([0] * 500), *random.integers(0, chip.smem_per_block, 1500, endpoint=True))
    ]
    told = subprocess.run(
        [calculator], input="\n".join(line(chip, *one) for one in asked), capture_output=True, text=True, check=True
    ).stdout.splitlines()
    ours = [occupancy(chip, *one) for one in asked]
    # A launch that asks for more registers than a block may have is refused: no block is resident.
    assert [int(row.split()[0]) for row in told] == [found.blocks for found in ours]


def test_blocks_are_those_that_the_gpu_allowed() -> None:
    compared = set()
    for launch in load_profiles(PROFILES).profiles:
        seen = {name.removeprefix("launch__"): value for name, value in launch.metrics.items()}
        if launch.is_library or "occupancy_limit_registers" not in seen:
            continue
        resources = launch.facts["resources"]
        found = occupancy(limits("sm_90"), int(seen["registers_per_thread"]), 0, int(seen["block_size"]))
        assert resources["registers"] == seen["registers_per_thread"]
        assert found.allowed["registers"] == seen["occupancy_limit_registers"]
        assert found.allowed["warps"] == seen["occupancy_limit_warps"]
        assert found.allowed["blocks"] == seen["occupancy_limit_blocks"]
        compared.add(launch.contestant)
    assert len(compared) >= 15
