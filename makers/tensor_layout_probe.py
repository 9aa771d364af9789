"""Record the places where tensor copies, interleaved ones above all, put each element, and the bytes that they count.

    python makers/tensor_layout_probe.py [--device cuda:0] [--out tests/data/tensor_layouts.npz]

Elements are numbered, so each word of shared memory names its element. The first word of an entry is the number of
bytes, the others are shared memory up to the last word that was written. The entry of a refused copy has no words.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab import TensorMap, launch
from gemmlab.core.errors import GemmlabError, UsageError

ROOT = Path(__file__).parents[1]
KERNELS = ROOT / "tests/emulated/asynchronous/look.cu"
RECORD = ROOT / "tests/data/tensor_layouts.npz"
UNTOUCHED = 0xEEEEEEEE
WORDS = 8192
SHAPES = {3: (6, 8, 64), 4: (3, 6, 8, 64), 5: (2, 3, 4, 6, 64)}
CORNERS = ((0, 0, 0), (16, 2, 1), (8, 0, 0), (1, 0, 0), (0, -1, 0), (0, 6, 5), (48, 0, 0), (-8, 0, 0))
Words = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Look:
    """One tensor copy."""

    kind: str
    interleave: int
    swizzle: int
    box: tuple[int, ...]
    """Extents of the box, in the order of the array's axes."""
    corner: tuple[int, ...]
    """Coordinates of the box's first element, the innermost first."""
    fill: str = "zeros"
    steps: tuple[int, ...] | None = None
    """Element strides, in the order of the array's axes; `None` for 1 along each."""

    @property
    def name(self) -> str:
        """The entry's name in the record."""
        numbers = " ".join(",".join(map(str, each)) for each in (self.box, self.corner, self.steps or ()))
        return f"{self.kind} {self.interleave} {self.swizzle} {self.fill} {numbers}"

    @property
    def array(self) -> npt.NDArray[Any]:
        """The array to copy from; its elements are their numbers, from 1 on."""
        dtype = np.uint32 if self.kind.endswith("32") else np.uint16
        shape = SHAPES[len(self.box)]
        return np.arange(1, 1 + int(np.prod(shape)), dtype=np.uint32).astype(dtype).reshape(shape)

    def tensor(self) -> TensorMap:
        """Return the tensor map of the copy."""
        return TensorMap(self.array, self.box, swizzle=self.swizzle, interleave=self.interleave, fill=self.fill,
                         dtype=self.kind, element_strides=self.steps)  # fmt: skip

    def words(self, device: str, expected: int = 0) -> Words:
        """Return the record's entry from a device. `expected` is the number of bytes of the copy; if it is 0, the
        kernel finds the number out. Raises `GemmlabError`.
        """
        corner = [np.int32(value) for value in (*self.corner, 0, 0, 0, 0)][:5]
        args = [
            self.tensor(),
            np.zeros(WORDS, np.uint32),
            np.full(1, expected, np.uint32),
            *corner,
            np.uint32(expected),
        ]
        done: Any = launch(KERNELS, f"look{len(self.box)}", 1, 64, args, device=device)
        memory, count = done.outputs[1:3]
        touched = np.flatnonzero(memory != UNTOUCHED)
        return np.concatenate([count, memory[: touched[-1] + 1 if touched.size else 0]])


def looks() -> Iterator[Look]:
    """Yield the copies to record: types, extents of rows, corners inside and outside the array, element strides, 3 to 5
    dimensions.
    """
    for interleave, swizzle in ((16, 0), (32, 32), (0, 0)):
        for kind, size in (("uint16", 2), ("uint32", 4)):
            for nbytes in (16, 32, 64):
                extent = nbytes // size
                for corner in (
                    (0, 0, 0),
                    (16, 2, 1),
                    (8, 0, 0),
                    (1, 0, 0),
                    (0, -1, 0),
                    (0, 6, 5),
                    (48, 0, 0),
                    (-8, 0, 0),
                ):
                    yield Look(kind, interleave, swizzle, (2, 4, extent), corner)
        yield Look("uint16", interleave, swizzle, (1, 2, 4, 16), (0, 0, 0, 0))
        yield Look("uint16", interleave, swizzle, (2, 2, 4, 32), (16, 1, 2, 1))
        yield Look("uint16", interleave, swizzle, (1, 2, 2, 4, 16), (16, 1, 2, 1, 1))
        yield Look("float16", interleave, swizzle, (2, 4, 16), (0, 6, 5), fill="nan")
        yield Look("bfloat16", interleave, swizzle, (2, 4, 16), (56, 6, 5), fill="nan")
        yield Look("uint16", interleave, swizzle, (2, 4, 16), (0, 0, 0), steps=(1, 2, 1))
        yield Look("uint16", interleave, swizzle, (4, 4, 16), (0, 0, 0), steps=(3, 1, 1))
        yield Look("uint16", interleave, swizzle, (2, 4, 32), (0, 0, 0), steps=(1, 1, 2))
        for channels in (8, 16, 17, 24, 32, 64):
            for corner in ((0, 0, 0), (0, 5, 0)):
                yield Look("uint16", interleave, swizzle, (1, channels, 8), corner)
        for channels in (4, 5, 8, 16):
            yield Look("uint32", interleave, swizzle, (1, channels, 4), (0, 1, 0))
            yield Look("uint16", interleave, swizzle, (1, channels, 2, 8), (0, 1, 1, 0))
        yield Look("uint16", interleave, swizzle, (1, 32, 8), (0, 0, 0), steps=(1, 2, 1))
        yield Look("uint16", interleave, swizzle, (1, 32, 8), (0, 0, 0), steps=(1, 3, 1))
        yield Look("float32", interleave, swizzle, (1, 16, 8), (60, 7, 0), fill="nan")
    for swizzle in (32, 64, 128):
        for extent in (4, 8, 16):
            if 4 * extent < swizzle:
                yield Look("uint32", 0, swizzle, (2, 4, extent), (0, 0, 0))
                yield Look("float32", 0, swizzle, (2, 3, extent), (60, 6, 5), fill="nan")
    for swizzle in (64, 128):
        yield Look("uint16", 16, swizzle, (2, 4, 32), (0, 0, 0))


def entries(device: str, first: int) -> dict[str, Words]:
    """Return the entries of the copies from number `first` on, up to one that breaks the CUDA context, whose entry is
    empty.
    """
    found: dict[str, Words] = {}
    for look in list(looks())[first:]:
        try:
            found[look.name] = look.words(device)
        except UsageError as error:
            print(f"{look.name}: {error}")
            found[look.name] = np.zeros(0, np.uint32)
        except GemmlabError as error:
            print(f"{look.name}: {error}")
            return found | {look.name: np.zeros(0, np.uint32)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--out", type=Path, default=RECORD)
    parser.add_argument("--first", type=int, help="only the looks from this number up to the first that breaks")
    arguments = parser.parse_args()
    if arguments.first is not None:
        made = entries(arguments.device, arguments.first)
        np.savez_compressed(arguments.out, **made)  # type: ignore[arg-type]
        return
    every = [look.name for look in looks()]
    found: dict[str, Words] = {}
    part = arguments.out.with_suffix(".part.npz")
    while len(found) < len(every):
        command = [
            sys.executable,
            __file__,
            "--device",
            arguments.device,
            "--out",
            str(part),
            "--first",
            str(len(found)),
        ]
        subprocess.run(command, check=True, timeout=120)
        with np.load(part) as record:
            found |= dict(record)
        part.unlink()
        np.savez_compressed(arguments.out, **found)  # type: ignore[arg-type]
    print(f"{len(found)} copies, {sum(words.size > 1 for words in found.values())} of them done; wrote {arguments.out}")


if __name__ == "__main__":
    main()
