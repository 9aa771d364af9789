"""Record how tensor copies of the types TFLOAT32, TFLOAT32_FTZ, FLOAT32_FTZ and FLOAT32 change values.

    python makers/tensor_rounding_probe.py [--device cuda:0] [--out tests/data/tensor_rounding.npz]

Each entry is the exclusive or of the GPU's words and those of a guess: every bit is recorded, and a right guess, all
zeros, takes no space. `tests/emulated/asynchronous/test_rounding.py` compares the emulator with the record.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab import TensorMap, launch

ROOT = Path(__file__).parents[1]
KERNELS = ROOT / "tests/emulated/asynchronous/rounding.cu"
RECORD = ROOT / "tests/data/tensor_rounding.npz"
BOX = (32, 256)
COUNT = 1 << 20
KINDS = ("float32", "float32_ftz", "tfloat32", "tfloat32_ftz")
SIGN, INFINITY, TF32 = 0x80000000, 0x7F800000, 0xFFFFE000
Words = npt.NDArray[np.uint32]


def values(seed: int, count: int = COUNT) -> Words:
    """Return `count` bit patterns of float32: fractions near rounding edges with every exponent and both signs,
    subnormal numbers, NaNs and infinities, then random bits. With a seed other than 0 the former are shuffled.
    """
    random = np.random.default_rng(seed)
    exponents = np.arange(256, dtype=np.uint32) << 23
    upper = np.array([0, 1, 0x155, 0x3FE, 0x3FF], np.uint32) << 13
    lower = np.array([0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF], np.uint32)
    edges = (exponents[:, None, None] | upper[:, None] | lower).reshape(-1)
    small, large = (random.integers(0, 1 << 23, 1 << 14, np.uint32) | exponent for exponent in (0, 0xFF << 23))
    some = np.concatenate([edges, edges | SIGN, small, small | SIGN, large, large | SIGN]).astype(np.uint32)
    if seed:
        random.shuffle(some)
    return np.concatenate([some, random.integers(0, 1 << 32, count, np.uint32)])[:count]


def flushed(words: Words) -> Words:
    """Return the words with subnormal numbers replaced by zeros of the same sign."""
    return np.where((words & (0xFF << 23)) == 0, words & SIGN, words).astype(np.uint32)


@dataclass(frozen=True, slots=True)
class Case:
    """Copies of all values in one type."""

    operation: str
    """`"load"`, `"store"` or `"add"`."""
    kind: str

    @property
    def name(self) -> str:
        return f"{self.operation}_{self.kind}"

    def words(self, device: str) -> Words:
        """Return the words that the copies leave on a device: shared memory after loads, else the array."""
        given = values(0)
        shape = (-1, BOX[1])
        kept = values(1) if self.operation == "add" else given if self.operation == "load" else np.zeros_like(given)
        tensor = TensorMap(kept.view(np.float32).reshape(shape), BOX, dtype=self.kind)
        other = np.zeros_like(given) if self.operation == "load" else given
        done: Any = launch(KERNELS, f"{self.operation}_all", COUNT // (BOX[0] * BOX[1]), 256, [tensor, other],
                           device=device)  # fmt: skip
        found = done.outputs[1 if self.operation == "load" else 0]
        words: Words = np.ascontiguousarray(found).view(np.uint32).reshape(-1)
        return words

    def guess(self) -> Words:
        """Return a guess at the words, as an H200 left them: loads as TF32 round to nearest even, and sums in `_FTZ`
        types treat subnormal numbers as 0.
        """
        given, kept = values(0), values(1)
        if self.operation == "add":
            flush = flushed if self.kind.endswith("ftz") else np.asarray
            with np.errstate(all="ignore"):
                total = flush(kept).view(np.float32) + flush(given).view(np.float32)
            return np.where(np.isnan(total), np.uint32(0x7FFFFFFF), flush(total.view(np.uint32))).astype(np.uint32)
        if not self.kind.startswith("t") or self.operation == "store":
            return given
        nearest = (given + np.uint32(0xFFF) + (given >> 13 & 1)) & np.uint32(TF32)
        return np.where((given & ~np.uint32(SIGN)) > INFINITY, np.uint32(0x7FFFE000), nearest).astype(np.uint32)


def cases() -> Iterator[Case]:
    """Yield every operation in every type, except sums in TF32, which PTX does not have."""
    for kind in KINDS:
        yield Case("load", kind)
        yield Case("store", kind)
        if not kind.startswith("t"):
            yield Case("add", kind)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--out", type=Path, default=RECORD)
    arguments = parser.parse_args()
    found = {}
    for case in cases():
        found[case.name] = case.words(arguments.device) ^ case.guess()
        print(f"{case.name}: {np.count_nonzero(found[case.name])} of {COUNT} differ from the guess")
        np.savez_compressed(arguments.out, **found)  # type: ignore[arg-type]
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
