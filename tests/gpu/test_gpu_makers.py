"""The makers that time many kernels, on a real GPU at a few small products."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.paths import ROOT

pytestmark = pytest.mark.usefixtures("gpu")


def run(maker: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / "makers" / f"{maker}.py"), *arguments],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_sweep_times_right_kernels(tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    kernels = ("naive", "vector_load:3", "async_copy", "split_k", "stream_k", "narrow_strip")
    said = run("sweep_kernels", str(path), "--kernels", *kernels, "--sizes", "256,35x70x2048:nt,7x300x1000:ld+1")
    assert "all timed" in said
    header, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert header["schema"] == "gemmlab.sweep/1"
    timed = [line for line in lines if "us" in line]
    assert len(timed) >= 10
    assert all(line["right"] for line in timed)
    assert not [line for line in lines if line.get("right") is False]
    assert all(0.5 < line["least_us"] <= line["us"] < 1e5 for line in timed)


def test_a_regret_is_at_least_1(tmp_path: Path) -> None:
    path = tmp_path / "regret.json"
    said = run("regret", "11", str(path), "--shapes", "3", "--largest", "300", "--rounds", "3")
    assert "3 products: median" in said
    record = json.loads(path.read_text())
    assert record["left"] == 0
    assert all(shape["regret"] >= 1.0 and shape["considered"] > 5 for shape in record["shapes"])
