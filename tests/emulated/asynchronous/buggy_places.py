"""Launches of kernels whose bug is a wrong place: of a copy, of a tensor map or its box, of a swizzle's pattern."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from buggy_launch import BuggyLaunch

from gemmlab import TensorMap

HERE = Path(__file__).parent
SWIZZLES = {
    "stores_by_threads": ("from_start_128", (128, 0, 0), 0, 1, (0,)),
    "stores_by_rows": ("from_start_64", (256, 8, 0), 0, 2, (1,)),
    "wrong_offset": ("from_start_32", (0, 0, 0), 1, 0, (0,)),
    "of_b": ("as_b_128", (640, 8, 1), 0, 5, ()),
    "of_a_copy": ("copied_128", (128, 0, 0), 1, 0, ()),
}
"""Name -> kernel of `wgmma_swizzle.cu`; distance, first row and step; wrong and right base offset; more arguments."""
COPIES = {
    "source": (8, 0, 64), "destination": (0, 8, 64), "read_beyond": (64, 0, 208), "write_beyond": (0, 1024, 64),
}  # fmt: skip
"""Name -> shift of the source, offset of the destination, and size of a bulk copy, in bytes."""
EXTENTS = {"replaced": 8, "replaced_by_uneven_rows": 3}
"""Name -> the innermost extent that `map_misuse.cu` puts into its map; the first is right."""
Arguments = list[Any]


def place_launches() -> Iterator[BuggyLaunch]:
    """All of them; each bug has a right twin."""
    for name, (kernel, place, wrong, right, more) in SWIZZLES.items():
        for bug, base in ((True, wrong), (False, right)):
            yield BuggyLaunch(f"swizzle {name}", bug, {
                "source": HERE.parent / "wgmma/wgmma_swizzle.cu", "kernel": kernel, "grid": 1, "threads": 128,
                "args": [_tile(kernel), np.zeros(64, np.float32), *map(np.int32, (*place, base, *more))],
                "smem_bytes": 1 << 15, "arch": "sm_90a",
            })  # fmt: skip
    for name, places in COPIES.items():
        yield _one_thread(f"bulk {name}", True, "wrong", [np.zeros(256, np.uint8), *map(np.uint32, places)])
    yield _one_thread("bulk", False, "wrong", [np.zeros(256, np.uint8), *map(np.uint32, (0, 0, 64))])
    plane, line = TensorMap(np.zeros((8, 16), np.float32), (4, 4)), TensorMap(np.zeros(128, np.float32), (4,))
    yield _one_thread("map off_its_place", True, "no_map", [plane, np.int32(16)])
    yield _one_thread("map of_one_dimension", True, "no_map", [line, np.int32(0)])
    for name, extent in EXTENTS.items():
        yield BuggyLaunch(f"map {name}", name != "replaced", {
            "source": HERE / "map_misuse.cu", "kernel": "box_of_bytes", "grid": 1, "threads": 32, "arch": "sm_90a",
            "args": [TensorMap(np.ones((4, 512), np.float32), (4, 4)), np.zeros(16, np.uint64),
                     np.zeros(32, np.float32), np.int32(extent)],
        })  # fmt: skip
    for kernel in ("show2", "put0"):
        for bug in (True, False):
            yield BuggyLaunch(f"coordinate {kernel}", bug, {
                "source": HERE / "tensors.cu", "kernel": kernel, "grid": 1, "threads": 64,
                "args": _box(kernel, 2 if bug else 4), "smem_bytes": 40960,
            })  # fmt: skip


def _tile(kernel: str) -> Any:
    """Ones in 72 rows as wide as a kernel's swizzle, or a tensor map of them."""
    data = np.ones((72, int(kernel.rpartition("_")[2]) // 2), np.float16)
    return TensorMap(data, data.shape, swizzle=128) if kernel.startswith("copied") else data


def _one_thread(name: str, bug: bool, kernel: str, args: Arguments) -> BuggyLaunch:
    return BuggyLaunch(name, bug, {
        "source": HERE / "bulk.cu", "kernel": kernel, "grid": 1, "threads": 1, "args": args,
    })  # fmt: skip


def _box(kernel: str, column: int) -> Arguments:
    """Arguments of the copy of a box that begins at a column."""
    tensor = TensorMap(np.ones((8, 32), np.float32), (4, 16))
    places = (column, 0, 0, 0, 0, 256) if kernel == "show2" else (column, 0, 256)
    return [tensor, np.zeros(256, np.uint8), *map(np.int32, places)]
