"""Products larger than the memory allowed, on a real GPU: bits, bound, pinned arrays, files, resumption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gemmlab
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.cuda_driver import open_driver
from stream_rate import pinned_arrays
from support.least_pieces import in_two_runs
from support.paths import ROOT
from support.stores import Store

Float32Array = npt.NDArray[np.float32]
pytestmark = pytest.mark.usefixtures("gpu")
RNG = np.random.default_rng(37)
RESUME = """
import os, signal, sys
import numpy as np
import gemmlab
folder, at = sys.argv[1], int(sys.argv[2])
files = {name: np.memmap(f"{folder}/{name}", np.float32, mode, shape=(3000, 3000))
         for name, mode in (("a", "r"), ("b", "r"), ("out", "r+"))}
def progress(done, count):
    print(done, flush=True)
    if done == at:
        os.kill(os.getpid(), signal.SIGKILL)
gemmlab.gemm(**files, device="cuda:0", memory_bytes=40 << 20, checkpoint=f"{folder}/journal", progress=progress)
"""


def uniform(*shape: int) -> Float32Array:
    return RNG.random(shape, dtype=np.float32) - np.float32(0.5)


class Counts:
    """A progress function that keeps the number of all pieces."""

    last = 0

    def __call__(self, _done: int, count: int) -> None:
        self.last = count


def bits(x: Any) -> npt.NDArray[np.uint32]:
    return np.ascontiguousarray(x).view(np.uint32)


def least(a: Any, b: Any, **how: Any) -> int:
    plan = gemmlab.explain_choice(a, b, device="cuda:0", memory_bytes=1 << 40, **how).pieces
    assert plan is not None
    return plan.least_bytes


@pytest.mark.parametrize(
    ("extents", "how"),
    [
        ((3000, 2900, 1500), {}),
        ((2999, 3001, 777), {"trans_a": True, "trans_b": True}),
        ((16, 50000, 900), {}),
        ((50001, 12, 901), {}),
        ((40000, 1, 500), {}),
        ((2500, 2600, 4000), {"kernel": "split_k", "config": {"SPLITS": 5}}),
        ((3000, 2900, 1500), {"precision": "float32"}),
        ((3001, 2903, 1501), {"precision": "f16x3"}),
        ((3001, 2903, 1501), {"precision": "bf16x9"}),
        ((3000, 2900, 1500), {"precision": "tf32x3"}),
        ((3000, 2900, 1500), {"precision": "tf32"}),
    ],
)
def test_the_bits_of_one_piece(extents: tuple[int, int, int], how: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    m, n, k = extents
    a = uniform(*((k, m) if how.get("trans_a") else (m, k)))
    b = uniform(*((n, k) if how.get("trans_b") else (k, n)))
    c = uniform(m, n)
    plan = gemmlab.explain_choice(a, b, device="cuda:0", memory_bytes=1 << 40, **how)
    forced: dict[str, Any] = {"kernel": plan.kernel, "config": plan.config} if "kernel" not in how else {}
    added: tuple[dict[str, Any], ...] = ({}, {"alpha": 1.5, "beta": 0.25})
    x, y, z = (torch.from_numpy(each).cuda() for each in (a, b, c))
    for factors in added:
        whole = gemmlab.gemm(x, y, c=z if factors else None, **{**how, **forced}, **factors)
        counts = Counts()
        found = gemmlab.gemm(
            a, b, c=c if factors else None, device="cuda:0", memory_bytes=2 * least(a, b, **how), **how, **factors,
            progress=counts,
        )  # fmt: skip
        assert counts.last > 1
        assert np.array_equal(bits(found), bits(whole.cpu().numpy()))


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("kind", ["pinned", "pageable", "file", "torch"])
def test_the_bound_is_kept(gpu: CudaDevice, kind: str, tmp_path: Path) -> None:
    size, allowed = 6000, 64 << 20
    gpu.activate()
    with pinned_arrays(open_driver(), *[(size, size)] * 3) as pinned:
        pinned[0][:], pinned[1][:] = uniform(size, size), uniform(size, size)
        arrays: list[Any] = pinned
        if kind == "pageable":
            arrays = [x.copy() for x in pinned]
        if kind == "file":
            arrays = [np.memmap(tmp_path / str(i), np.float32, "w+", shape=x.shape) for i, x in enumerate(pinned)]
            for to, x in zip(arrays, pinned, strict=True):
                to[:] = x
        if kind == "torch":
            arrays = [pytest.importorskip("torch").from_numpy(x) for x in pinned]
        gemmlab.gemm(pinned[0][:300], pinned[1], device="cuda:0", memory_bytes=allowed)
        before, _ = gpu.memory.room()
        free: list[int] = []
        gemmlab.gemm(
            *arrays[:2], out=arrays[2], device="cuda:0", memory_bytes=allowed,
            progress=lambda _done, _count: free.append(gpu.memory.room()[0]),
        )  # fmt: skip
        # The driver gives out memory by 2 MiB; code that is loaded counts as well.
        assert 8 << 20 < before - min(free) <= allowed + (8 << 20)
        whole = gemmlab.gemm(pinned[0], pinned[1], device="cuda:0")
        assert np.array_equal(bits(np.asarray(arrays[2])), bits(whole))


def test_a_nan_stays_where_it_is_in_one_piece() -> None:
    a, b = uniform(2000, 700), uniform(700, 2100)
    a[1999, 3], b[5, 1000], a[7, 9] = np.nan, np.inf, -np.inf
    found = gemmlab.gemm(a, b, device="cuda:0", memory_bytes=2 * least(a, b))
    whole = gemmlab.gemm(a, b, device="cuda:0")
    np.testing.assert_array_equal(found, whole)


def test_a_killed_process_is_resumed(tmp_path: Path) -> None:
    for name in ("a", "b", "out"):
        made = np.memmap(tmp_path / name, np.float32, "w+", shape=(3000, 3000))
        made[:] = np.nan if name == "out" else uniform(3000, 3000)
        made.flush()

    def run(at: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", RESUME, str(tmp_path), str(at)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100, env=environment)

    killed = run(3)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    complete = (tmp_path / "journal").read_bytes().count(b"\n") - 1
    assert complete >= 3
    resumed = run(-1)
    assert resumed.returncode == 0, resumed.stderr
    assert int(resumed.stdout.split()[0]) == complete
    files = [np.memmap(tmp_path / name, np.float32, "r", shape=(3000, 3000)) for name in ("a", "b", "out")]
    assert np.array_equal(bits(files[2]), bits(gemmlab.gemm(files[0], files[1], device="cuda:0")))


@pytest.mark.parametrize("chunks", [(1000, 1000), (10, 6), (700, 130)])
@pytest.mark.parametrize("how", [{}, {"precision": "float32"}, {"precision": "f16x3"}, {"precision": "tf32x3"}])
def test_pieces_of_whole_chunks_in_two_runs(chunks: tuple[int, int], how: dict[str, Any], tmp_path: Path) -> None:
    """They begin within tiles, and have the bits of pieces that do not."""
    m, n, k = 5000, 4900, 300
    a, b = uniform(m, k), uniform(k, n)
    out = Store(np.full((m, n), np.nan, np.float32), chunks)
    how = {**how, "device": "cuda:0", "memory_bytes": 40 << 20}
    complete, count = in_two_runs(1, a=a, b=b, out=out, checkpoint=tmp_path / "journal", **how)
    assert 0 < complete < count
    assert np.array_equal(bits(out.values), bits(gemmlab.gemm(a, b, **how)))


@pytest.mark.usefixtures("alone")
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_three_operands_of_3_gb_in_1_gb(tmp_path: Path) -> None:
    record = tmp_path / "rate.json"
    command = [sys.executable, str(ROOT / "makers" / "stream_rate.py"), str(record), "--sizes", "27648"]
    done = subprocess.run(
        [*command, "--memory-mib", "1024", "--kinds", "pinned", "--rounds", "1"],
        capture_output=True, text=True, check=False, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = json.loads(record.read_text())["results"]
    assert found["same_bits"]
    assert found["operand_bytes"] > 3e9
    assert found["taken_bytes"] <= found["memory_bytes"] + (8 << 20)
