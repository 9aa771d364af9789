"""Triton's machine code for the product that `makers/triton_beside.py` times, run on the emulator where Triton is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemmlab import launch
from triton_contestants import TILES

triton: Any = pytest.importorskip("triton")
TILE = TILES[-1]
EXTENTS = {"BM": TILE[0], "BN": TILE[1], "BK": TILE[2], "GROUP": 2}


@pytest.mark.parametrize("precision", ["tf32x3", "bf16x6", "bf16x6 by hand"])
def test_every_element_is_as_good_as_float32(precision: str, tmp_path: Path) -> None:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from triton_product import KERNEL

    names = ["a", "b", "c", "m", "n", "k", *EXTENTS, "PRECISION"]
    types = dict(zip(names, ["*fp32"] * 3 + ["i32"] * 3 + ["constexpr"] * 5, strict=True))
    constants = {(names.index(name),): value for name, value in {**EXTENTS, "PRECISION": precision}.items()}
    source = ASTSource(KERNEL, types, constants, {(index,): [["tt.divisibility", 16]] for index in range(6)})
    code = triton.compile(source, GPUTarget("cuda", 90, 32), {"num_stages": TILE[3], "num_warps": TILE[4]})
    cubin = tmp_path / "product.cubin"
    cubin.write_bytes(code.asm["cubin"])

    random, (m, n, k) = np.random.default_rng(3), (320, 192, 256)  # a strip of rows of tiles is cut off
    a, b = (random.standard_normal(shape, np.float32) for shape in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, np.float32)
    # Triton appends two addresses of scratch memory, which this kernel does not use.
    done = launch(
        cubin, "tiled_product", m // TILE[0] * (n // TILE[1]), 32 * TILE[4],
        [a, b, c, np.int32(m), np.int32(n), np.int32(k), None, None],
        smem_bytes=code.metadata.shared, device="emulated:sm_90a",
    )  # fmt: skip
    assert not done.hazards
    assert isinstance(done.outputs, tuple | list)
    found = next(each for each in done.outputs if each.shape == (m, n))
    error = abs(found - a.astype(float) @ b.astype(float)) / (abs(a).astype(float) @ abs(b).astype(float))
    assert error.max() < 8 * 2.0**-24
