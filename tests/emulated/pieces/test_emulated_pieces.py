"""Products in pieces by the machine code of a GPU's kernels: the bits of one launch over the whole matrices."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gemmlab
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.kernels.bound import bind
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.pieces import large_product
from support.cuda_source import needs_compiler
from support.least_pieces import in_two_runs, smallest
from support.stores import Store

Float32Array = npt.NDArray[np.float32]
pytestmark = [needs_compiler, pytest.mark.timeout(300)]
RNG = np.random.default_rng(31)


def values(*shape: int) -> Float32Array:
    """Some rows much larger or smaller than others, so that kernels with verdicts decide by tile."""
    found = RNG.random(shape, dtype=np.float32) - np.float32(0.5)
    found[shape[0] // 3] *= np.float32(2.0**40)
    found[-1] *= np.float32(2.0**-60)
    return found


def whole(
    kernel: str, config: Mapping[str, int], arch: str, a: Float32Array, b: Float32Array, c: Float32Array,
    factors: tuple[float, float], layout: str,
) -> Float32Array:  # fmt: skip
    """One launch, or the launches of one product."""
    (m, n), k = c.shape, a.shape[layout[0] == "n"]
    problem = GemmProblem(m, n, k, *factors).with_layout(layout)
    device, out = EmulatedDevice(arch), c.copy()
    arrays = {"a": a.reshape(-1), "b": b.reshape(-1), "c": out.reshape(-1)}
    bound = bind(find_kernel(kernel), device, GemmOp(), problem, arrays, config=config)
    bound.run()
    bound.download("c", out.reshape(-1))
    return out


CASES: dict[str, tuple[str, dict[str, int], str, tuple[int, int, int], str]] = {
    "a chain": ("vector_load", {}, "sm_80", (270, 400, 36), "nn"),
    "stages": ("async_copy", {}, "sm_80", (300, 530, 40), "nn"),
    "turned operands": ("async_copy", {}, "sm_80", (300, 530, 33), "tt"),
    "k in three parts": ("split_k", {"SPLITS": 3}, "sm_80", (290, 270, 100), "tn"),
    "groups along k": ("split_k", {"KGROUPS": 4, "SPLITS": 1}, "sm_80", (290, 270, 70), "nn"),
    "a few rows": ("narrow_strip", {"STRIP": 16, "SPLITS": 2}, "sm_80", (16, 530, 100), "nt"),
    "a few columns": ("narrow_strip", {"STRIP": 16, "SPLITS": 2}, "sm_80", (401, 16, 100), "nn"),
    "an odd number of columns": ("narrow_strip", {}, "sm_80", (60, 261, 36), "nn"),
    "rows off 16 bytes": ("row_product", {}, "sm_80", (60, 261, 36), "nn"),
    "a column": ("dot_product", {"SPLITS": 2}, "sm_80", (300, 1, 2100), "nn"),
    "parts in TF32": ("mma_tf32x3", {}, "sm_80", (270, 140, 50), "nn"),
    "parts in halves": ("mma_f16x3", {}, "sm_80", (270, 140, 50), "nt"),
    "by tile": ("by_tile", {"BN": 64, "STAGES": 4, "SLICE": 128}, "sm_90", (270, 140, 150), "nn"),
    "halves": ("f16x3", {"SLICE": 128}, "sm_90", (140, 270, 150), "nt"),
}
SLOW = {"by tile", "halves"}
LOWEST = {"mma_tf32x3": "tf32x3", "mma_f16x3": "f16x3", "by_tile": "float32", "f16x3": "f16x3"}


@pytest.mark.parametrize("chunks", [None, (10, 6), (70, 131)])
@pytest.mark.parametrize("case", [pytest.param(case, marks=[pytest.mark.slow] * (case in SLOW)) for case in CASES])
def test_pieces_have_the_bits_of_one_launch(
    case: str, chunks: tuple[int, int] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if they are whole chunks of a store, which begin within tiles, and the call is interrupted."""
    monkeypatch.setattr(large_product, "cut", smallest)
    kernel, config, arch, (m, n, k), layout = CASES[case]
    a = values(*((k, m) if layout[0] == "t" else (m, k)))
    b = values(*((n, k) if layout[1] == "t" else (k, n)))
    if kernel == "by_tile":
        # More columns of this kind would be computed in one way in one piece, and in another in two.
        b[:, 9:] = RNG.random((k, n - 9), dtype=np.float32)
    c, factors = values(m, n), (1.5, 0.5)
    how: dict[str, Any] = {
        "kernel": kernel, "config": config or None, "precision": LOWEST.get(kernel, "highest"),
        "trans_a": layout[0] == "t", "trans_b": layout[1] == "t",
    }  # fmt: skip
    out = np.full((m, n), np.nan, np.float32)
    how |= {"a": a, "b": b, "c": c, "alpha": factors[0], "beta": factors[1], "device": f"emulated:{arch}"}
    if chunks is None:
        counts: list[int] = []
        gemmlab.gemm(**how, out=out, progress=lambda _done, count: counts.append(count))
        assert counts[-1] > 1
    else:
        store = Store(out, chunks)
        complete, count = in_two_runs(1, **how, out=store, checkpoint=tmp_path / "journal")
        assert 0 < complete < count
        assert store.whole_chunks_were_written()
    expected = whole(kernel, find_kernel(kernel).configure(config), arch, a, b, c, factors, layout)
    assert np.isfinite(expected).all()
    assert np.array_equal(out.view(np.uint32), expected.view(np.uint32))
