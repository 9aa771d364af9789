"""A GEMM by wgmma on the emulator: right in every type, swizzle and place of A; each bug in it is found, with lines."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from wgmma_forms import BITS, ROWS, Form
from wgmma_gemm import BUGS, MODES, chunks_of, gemm_source, shared_bytes
from wgmma_tiles import LAYOUTS, assemble

import gemmlab
from gemmlab.emulator.asynchronous.engine import LANDING
from gemmlab.launching.launched import Launched

DEVICE = "emulated:sm_90a"
F16 = Form("f16", "f16", "f32", 64)
FORMS = (
    F16, Form("bf16", "bf16", "f32", 32), Form("tf32", "tf32", "f32", 24), Form("e4m3", "e4m3", "f32", 16),
    Form("e5m2", "e4m3", "f32", 16), Form("s8", "s8", "s32", 48), Form("u8", "s8", "s32", 16, saturate=True),
    Form("f16", "f16", "f16", 32), Form("e4m3", "e5m2", "f16", 8), Form("f16", "f16", "f32", 256),
    Form("f16", "f16", "f32", 64, registers=True), Form("tf32", "tf32", "f32", 16, registers=True),
    Form("s8", "u8", "s32", 8, registers=True), Form("e5m2", "e5m2", "f16", 16, registers=True),
)  # fmt: skip


def operand(kind: str, numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Whole numbers of at most 3 in size as the words of a type."""
    if kind in {"s8", "u8"}:
        return np.ascontiguousarray(numbers.astype(np.int8)).view(np.uint32)
    magnitude = np.abs(numbers)
    exponent = np.where(magnitude > 1, 1, 0)
    fraction = np.where(magnitude == 3, 1 << LAYOUTS[kind][1] - 1, 0).astype(np.uint64)
    bits = assemble(kind, (numbers < 0).astype(np.uint64), exponent, fraction)
    return np.ascontiguousarray(np.where(numbers == 0, bits.dtype.type(0), bits)).view(np.uint32)


def product(done: Launched) -> np.ndarray[Any, Any]:
    """C, as words."""
    assert isinstance(done.outputs, list)
    words: np.ndarray[Any, Any] = done.outputs[2]
    return words


def multiply(form: Form, mode: str, size: tuple[int, int, int], options: tuple[str, ...] = ()) -> tuple[Launched, bool]:
    """Launch the GEMM for rows, columns and depth; return whether the product is exact beside what the launch gave."""
    rows, columns, depth = size
    random = np.random.default_rng(5)
    low = 0 if "u8" in (form.a, form.b) else -3
    a, b = (random.integers(low, 4, (extent, depth)) for extent in (rows, columns))
    out = np.zeros((rows, columns // (2 if form.sums == "f16" else 1)), np.uint32)
    done = gemmlab.launch(
        gemm_source(form, mode), "gemm",
        args=[operand(form.a, a), operand(form.b, b), out, np.int32(out.shape[1]), np.int32(chunks_of(form, depth))],
        grid=(columns // form.columns, rows // ROWS), threads=128, smem_bytes=shared_bytes(form, mode), device=DEVICE,
        arch="sm_90a", options=list(options),
    )  # fmt: skip
    dtype = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[form.sums]
    return done, bool(np.array_equal(product(done).view(dtype).astype(np.int64), a @ b.T))


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.sampled(3)
def test_the_product_is_exact_and_has_no_hazard(form: Form, mode: str) -> None:
    depth = 3 * 8 * 16 * MODES[mode][1] // BITS[form.a]
    done, exact = multiply(form, mode, (2 * ROWS, 2 * form.columns, depth))
    assert exact
    assert done.hazards == ()


@pytest.mark.in_turns(20)
def test_each_warp_counts_its_instructions() -> None:
    done, _exact = multiply(F16, "128", (128, 128, 256))
    assert done.counters is not None
    counts = {
        name: sum(site.executed for site in done.counters.sites if site.base_opcode == name) for name in ("HGMMA",)
    }
    assert counts == {"HGMMA": 4 * 4 * 256 // 16}


LINES = gemm_source(F16, "128").splitlines()


def line_of(text: str) -> int:
    """Number of the only line with this text."""
    (found,) = (number for number, line in enumerate(LINES, 1) if text in line)
    return found


KINDS = {
    "NO_WAIT": "wgmma", "NO_PUBLISHING": "wgmma", "NO_PROXY_FENCE": "proxy", "LATE_PROXY_FENCE": "proxy",
}  # fmt: skip


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("bug", BUGS)
@pytest.mark.sampled(9)
def test_a_bug_is_reported_with_both_lines(bug: str) -> None:
    done, _exact = multiply(F16, "128", (64, 64, 512), (f"-D{bug}",))
    assert done.hazards
    first = next(hazard for hazard in done.hazards if hazard.kind == KINDS[bug])
    assert {hazard.kind for hazard in done.hazards} <= {KINDS[bug], "race"}
    assert first.line == line_of('asm volatile("{.reg .pred keep')
    assert first.other_line == line_of("*(uint4 *)(stage")
    assert "STS" in first.message


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("change", ["NO_BARRIER", "FENCE_BEHIND_BARRIER"])
def test_what_is_right_without_looking_so(change: str) -> None:
    """A wait of one warp is a wait of its warpgroup; and fences by all readers are as good as those by all writers."""
    done, exact = multiply(F16, "128", (64, 64, 512), (f"-D{change}",))
    assert exact
    assert done.hazards == ()


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("seed", range(6))
def test_the_product_is_the_same_whenever_multiplications_land(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LANDING, str(seed))
    done, exact = multiply(F16, "64", (128, 128, 256))
    assert exact
    assert done.hazards == ()


@pytest.mark.in_turns(20)
def test_a_stage_that_is_overwritten_gives_another_result_at_another_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    results = set()
    for seed in ("", "1", "2", "3"):
        monkeypatch.setenv(LANDING, seed)
        done, _exact = multiply(F16, "128", (64, 64, 512), ("-DNO_WAIT",))
        results.add(product(done).tobytes())
    assert len(results) > 1


def test_an_operand_outside_of_shared_memory_is_reported() -> None:
    form = F16
    random = np.zeros((64, 64 // 2), np.uint32)
    out = np.zeros((64, 64), np.uint32)
    done = gemmlab.launch(
        gemm_source(form, "128"), "gemm", args=[random, random, out, np.int32(64), np.int32(8)], grid=1, threads=128,
        smem_bytes=8192, device=DEVICE,
    )  # fmt: skip
    assert {hazard.kind for hazard in done.hazards or ()} == {"out of bounds"}
    fields = r"\(start 0x[0-9a-f]+, leading 16 B, stride 1,024 B, swizzle 128\)"
    words = re.compile(f"16-byte read of shared memory by the descriptor of [AB] {fields} at byte")
    assert any(words.search(hazard.message) for hazard in done.hazards or ())
