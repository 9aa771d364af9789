"""The Maxwell design with operands stored as halves: `gemmlab.launch` of the rungs' files with `-DHALF=1`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gemmlab.core.counters import Counters
from gemmlab.kernels.catalog import find_kernel
from gemmlab.launching import launch
from gemmlab.sass.parse import parse
from support.cuda_source import needs_compiler

pytestmark = needs_compiler
HALVES = "-DHALF=1"
each_rung = pytest.mark.parametrize("rung", ["maxas_64", "maxas_256"])


def operand(rng: np.random.Generator, rows: int, cols: int, ld: int) -> npt.NDArray[Any]:
    """Halves with NaN between the end of a row and the next row."""
    stored = np.full((rows, ld), np.nan, np.float16)
    stored[:, :cols] = rng.standard_normal((rows, cols))
    return stored


def run(
    rung: str, layout: str, a: npt.NDArray[Any], b: npt.NDArray[Any], c: npt.NDArray[Any], k: int, beta: float,
    texture: bool, *options: str,
) -> tuple[npt.NDArray[Any], Counters]:  # fmt: skip
    kernel: Any = find_kernel(rung)
    m, n = c.shape
    a_texels, b_texels = (a.reshape(-1, 4), b.reshape(-1, 4)) if texture else (a, b)
    over: list[Any] = [a_texels, b_texels] if texture else [0, 0]
    sizes = [kernel.params[name] for name in ("BM", "BN", "BK", "SPLIT", "LANE_MAP", "COALESCE", "TEXTURE")]
    flags = ["true" if letter == "t" else "false" for letter in layout]
    blocks = -(-m // sizes[0]) * -(-n // sizes[1])
    done = launch(
        kernel.path, f"{rung}<{', '.join(map(str, [*sizes, *flags]))}>", blocks, sizes[0] * sizes[1] // 64,
        [m, n, k, 1.5, a_texels, a.shape[1], b_texels, b.shape[1], beta, c, n, *over],
        device="emulated:sm_90", options=options,
    )  # fmt: skip
    assert done.hazards == ()
    assert isinstance(done.outputs, list)
    assert done.counters is not None
    return done.outputs[2], done.counters


@pytest.mark.in_turns(20)
@each_rung
@pytest.mark.sampled(2)
@pytest.mark.parametrize("layout", ["tn", "nt", "nn", "tt"])
@pytest.mark.parametrize(("texture", "odd"), [(True, 0), (False, 0), (False, 1)])
def test_halves_give_the_product_of_the_numbers_they_hold(rung: str, layout: str, texture: bool, odd: int) -> None:
    rng = np.random.default_rng(3)
    m, n, k = 140, 68, 20
    a = operand(rng, *((k, m, m + 4 + odd) if layout[0] == "t" else (m, k, k + 4 + odd)))
    b = operand(rng, *((n, k, k + 8 + odd) if layout[1] == "t" else (k, n, n + 8 + odd)))
    c = rng.standard_normal((m, n)).astype(np.float32)
    result, counted = run(rung, layout, a, b, c, k, -0.5, texture, HALVES)

    left = (a[:, :m].T if layout[0] == "t" else a[:, :k]).astype(np.float64)
    right = (b[:, :k].T if layout[1] == "t" else b[:, :n]).astype(np.float64)
    bound = (k + 4) * 2.0**-24 * (1.5 * abs(left) @ abs(right) + 0.5 * abs(c))
    assert (abs(result - (1.5 * left @ right - 0.5 * c)) <= bound).all()
    facts = counted.facts()
    assert (facts["texture_load_requests"] > 0) == texture
    # Only storage differs: floats that hold the same numbers give the same bits.
    wide, _ = run(rung, layout, a.astype(np.float32), b.astype(np.float32), c, k, -0.5, texture)
    assert (result.view(np.uint32) == wide.view(np.uint32)).all()


@pytest.mark.in_turns(20)
@each_rung
def test_halves_are_half_of_the_sectors(rung: str) -> None:
    rng = np.random.default_rng(4)
    a, b = operand(rng, 128, 128, 128), operand(rng, 128, 128, 128)
    c = np.full((128, 128), np.nan, np.float32)
    result, halves = run(rung, "tn", a, b, c, 128, 0.0, True, HALVES)
    assert np.isfinite(result).all()
    _, floats = run(rung, "tn", a.astype(np.float32), b.astype(np.float32), c, 128, 0.0, True)
    assert halves.facts()["texture_load_requests"] == floats.facts()["texture_load_requests"]
    assert 2 * halves.facts()["texture_load_sectors"] == floats.facts()["texture_load_sectors"]


@pytest.mark.in_turns(20)
def test_the_texture_unit_converts() -> None:
    kernel: Any = find_kernel("maxas_64")
    done = launch(
        kernel.path, "maxas_64<64, 64, 8, 1, 1, 1, 1, true, false>", 1, 64,
        [0, 0, 0, 1.0, None, 1, None, 1, 0.0, None, 1, 0, 0], device="emulated:sm_90", options=[HALVES],
    )  # fmt: skip
    listed = parse(done.artifact.texts["sass"])[done.artifact.entry].instructions
    found = Counter(instruction.opcode for instruction in listed)
    # Four halves converted for each of the 8-byte loads of the other way, none for the 12 fetches.
    assert found["TLD"] == 12
    loads = sum(i.opcode == "LDG" and "64" in i.modifiers for i in listed)
    scalar = sum(i.opcode == "LDG" and "U16" in i.modifiers for i in listed)
    assert found["HADD2"] == 4 * loads + scalar
    assert loads == 12
