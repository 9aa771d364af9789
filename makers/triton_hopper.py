"""Run Triton's machine code for Hopper on the emulator, and print a row for each kernel.

    python makers/triton_hopper.py

The interpreter must have gemmlab and `triton`; it needs no GPU. Operands of products are small whole numbers, so each
element must equal the sum rounded once; softmax and attention are compared within a tolerance. The exit code is 1 if a
result is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from gemmlab import launch
from triton_hopper_kernels import attention, copied, described_product, product, softmax

Array = npt.NDArray[Any]
Row = tuple[str, bool, list[str]]
"""A kernel's name, whether it is right, and the hazards' kinds and messages."""
TILES = {"fp16": (64, 64, 64), "bf16": (128, 64, 64), "fp32": (64, 64, 32), "fp8e4nv": (64, 128, 64),
         "fp8e5": (64, 64, 64), "i8": (64, 64, 64)}  # fmt: skip
"""Type -> rows, columns and depth of a product's tile."""
PRODUCTS = (
    ("fp16", 4, 1, True), ("fp16", 4, 2, True), ("fp16", 4, 3, True), ("fp16", 8, 3, True), ("fp16", 8, 4, True),
    ("fp16", 4, 3, False), ("bf16", 4, 3, True), ("bf16", 8, 3, True), ("fp32", 4, 2, True), ("fp32", 8, 3, True),
    ("fp32", 4, 3, False), ("fp8e4nv", 4, 3, True), ("fp8e4nv", 8, 4, True), ("fp8e5", 4, 3, True), ("i8", 4, 3, True),
    ("i8", 8, 2, True), ("i8", 4, 2, False),
)  # fmt: skip
"""Type, warps, stages, and whether the compiler may take addresses and extents for multiples of 16."""
DESCRIBED = (("fp16", 4, 3, False), ("bf16", 8, 2, False), ("fp16", 4, 3, True))
"""Products by tensor descriptors: type, warps, stages, and whether warps are specialised."""
SIZE, ODD_SIZE = (208, 144, 336), (199, 131, 301)
"""Rows, columns and depth of products: multiples of 16, or not."""
CODES = {"bf16": (np.float32, 16), "fp8e5": (np.float16, 8)}
"""Types that are the upper bits of a wider one, and how many bits below are cut off: those of small whole numbers are
zeros.
"""
E4M3 = np.array([0, 0x38, 0x40, 0x44], np.uint8)
"""Whole number -> its byte as E4M3."""


def ran(
    folder: Path, function: Any, grid: tuple[int, ...], arrays: Mapping[str, tuple[str, Array]],
    numbers: Mapping[str, int], constants: Mapping[str, Any], *, warps: int = 4, stages: int = 3, aligned: bool = True,
) -> tuple[Array, list[str]]:  # fmt: skip
    """Compile a kernel and launch it; return its last array, and the hazards' kinds and messages.

    `arrays` has each array's type in Triton with its elements.
    """
    types = {name: f"*{kind}" for name, (kind, _) in arrays.items()} | dict.fromkeys(numbers, "i32")
    places = {name: (index,) for index, name in enumerate(function.arg_names)}
    hints = {places[name]: [["tt.divisibility", 16]] for name in types} if aligned else {}
    values = {places[name]: value for name, value in constants.items()}
    source = ASTSource(function, types | dict.fromkeys(constants, "constexpr"), values, hints)
    made = triton.compile(source, GPUTarget("cuda", 90, 32), {"num_warps": warps, "num_stages": stages})
    file, facts = folder / "kernel.cubin", made.metadata
    file.write_bytes(made.asm["cubin"])
    # Triton appends pointers to scratch memory, in which tensor descriptors are made.
    sizes = [getattr(facts, name, 0) * int(np.prod(grid)) for name in ("global_scratch_size", "profile_scratch_size")]
    scratch = [np.zeros(size, np.uint8) if size else None for size in sizes]
    done = launch(
        file, facts.name, grid, 32 * facts.num_warps,
        [*(array for _, array in arrays.values()), *map(np.int32, numbers.values()), *scratch],
        smem_bytes=facts.shared, device="emulated:sm_90a", timeout_s=120,
    )  # fmt: skip
    found: Any = done.outputs
    return found[len(arrays) - 1], [f"{each.kind}: {each.explain()}" for each in done.hazards or ()]


def stored(values: npt.NDArray[np.int64], kind: str) -> Array:
    """Return whole numbers up to 3 as the elements of a type."""
    if kind in CODES:
        wide, bits = CODES[kind]
        codes = np.uint16 if bits == 16 else np.uint8
        return (values.astype(wide).view(f"u{np.dtype(wide).itemsize}") >> bits).astype(codes)
    if kind == "fp8e4nv":
        return E4M3[np.abs(values)] | np.where(values < 0, 0x80, 0).astype(np.uint8)
    return values.astype({"fp32": np.float32, "fp16": np.float16, "i8": np.int8}[kind])


def operands(kind: str, size: tuple[int, int, int]) -> tuple[dict[str, tuple[str, Array]], dict[str, int], Array]:
    """Return a product's arrays and extents, and what the last array must become."""
    random, (m, n, k) = np.random.default_rng(7), size
    a, b = (random.integers(-3, 4, shape) for shape in ((m, k), (k, n)))
    wide, of_c = (np.int32, "i32") if kind == "i8" else (np.float32, "fp32")
    given = {"a": (kind, stored(a, kind)), "b": (kind, stored(b, kind)), "c": (of_c, np.full((m, n), 77, wide))}
    return given, dict(zip("mnk", size, strict=True)), (a @ b).astype(wide)


def products(folder: Path) -> Iterator[Row]:
    """Every product by pointers."""
    for kind, warps, stages, aligned in PRODUCTS:
        size = SIZE if aligned else ODD_SIZE
        given, numbers, wanted = operands(kind, size)
        constants = {**dict(zip(("ROWS", "COLUMNS", "DEPTH"), TILES[kind], strict=True)), "WHOLE": kind == "i8"}
        grid = -(-size[1] // TILES[kind][1]), -(-size[0] // TILES[kind][0])
        found, said = ran(folder, product, grid, given, numbers, constants, warps=warps, stages=stages, aligned=aligned)
        words = f"{kind}, {warps} warps, {stages} stages, {'aligned' if aligned else 'not aligned'}"
        yield f"product {words}", bool((found == wanted).all()), said


def by_descriptors(folder: Path) -> Iterator[Row]:
    """Every kernel with tensor descriptors."""
    m, n, _ = SIZE
    for kind, warps, stages, special in DESCRIBED:
        given, numbers, wanted = operands(kind, SIZE)
        constants = {"ROWS": 128, "COLUMNS": 64, "DEPTH": 64, "SPECIAL": special}
        grid = -(-n // 64), -(-m // 128)
        found, said = ran(folder, described_product, grid, given, numbers, constants, warps=warps, stages=stages)
        words = f"{kind}, {warps} warps, {stages} stages{', specialised warps' if special else ''}"
        yield f"product by descriptors, {words}", bool((found == wanted).all()), said
    x = np.arange(m * n, dtype=np.float32).reshape(m, n)
    both = {"x": ("fp32", x), "y": ("fp32", np.zeros_like(x))}
    found, said = ran(folder, copied, (-(-n // 64), -(-m // 64)), both, {"m": m, "n": n}, {"ROWS": 64, "COLUMNS": 64})
    yield "copy by TMA", bool((found == x).all()), said


def within_a_tolerance(folder: Path) -> Iterator[Row]:
    """Softmax and attention."""
    random = np.random.default_rng(3)
    x = random.standard_normal((37, 1000)).astype(np.float32)
    both = {"x": ("fp32", x), "y": ("fp32", np.zeros_like(x))}
    found, said = ran(folder, softmax, (37,), both, {"columns": 1000}, {"WIDTH": 1024}, aligned=False)
    powers = np.exp(x - x.max(1, keepdims=True))
    yield "softmax", bool(np.abs(found - powers / powers.sum(1, keepdims=True)).max() < 1e-6), said
    rows, depth = 256, 64
    q, k, v = (random.standard_normal((rows, depth)).astype(np.float16) for _ in range(3))
    for causal in (False, True):
        given = {name: ("fp16", array) for name, array in zip("qkv", (q, k, v), strict=True)}
        given["out"] = "fp32", np.zeros((rows, depth), np.float32)
        constants = {"ROWS": 64, "STEP": 64, "DEPTH": depth, "CAUSAL": causal}
        found, said = ran(folder, attention, (rows // 64,), given, {"rows": rows}, constants)
        scores = q.astype(np.float64) @ k.T.astype(np.float64) / np.sqrt(depth)
        weights = np.exp(np.where(np.tri(rows, dtype=bool), scores, -np.inf) if causal else scores)
        wanted = weights / weights.sum(1, keepdims=True) @ v.astype(np.float64)
        yield f"attention{', causal' if causal else ''}", bool(np.abs(found - wanted).max() < 5e-3), said


def main() -> int:
    wrong = 0
    parts: tuple[Callable[[Path], Iterator[Row]], ...] = (products, by_descriptors, within_a_tolerance)
    with TemporaryDirectory() as folder:
        for part in parts:
            for name, right, said in part(Path(folder)):
                wrong += not right
                reported = "; ".join(dict.fromkeys(said)) or "nothing"
                print(f"| {name} | {'right' if right else 'wrong'} | {reported} |", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
