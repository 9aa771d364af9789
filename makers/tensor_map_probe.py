"""Record the CUDA driver's encodings of tensor maps, and the results of copies whose values only a GPU can tell.

    python makers/tensor_map_probe.py [--device cuda:0] [--out benchmarks/results/h200/tensor_maps.json]

Each map is stored with its parameters and its 128 bytes, or with the driver's refusal. Each copied box is stored as it
arrives in shared memory. `tests/unit/core/test_tensor_map.py` compares gemmlab's encoder with the record.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from gemmlab import TensorMap, launch
from gemmlab.core.errors import GemmlabError
from gemmlab.core.tensor_map import BY_NAME, FILLS, INTERLEAVES, PROMOTIONS, SWIZZLES, TYPES, TiledMap
from gemmlab.devices.device import TensorMapDevice
from gemmlab.devices.select import open_device

SECONDS = 5
"""Time limit of one launch."""
ROOT = Path(__file__).parents[1]
KERNELS = ROOT / "tests/emulated/asynchronous/tensors.cu"
BASE = TiledMap(BY_NAME["FLOAT16"], 0x7F0000000000, (512, 300), (1024,), (64, 32), (1, 1))


def fixed_maps() -> Iterator[TiledMap]:
    """Yield `BASE`, maps that differ from it in one field or a few, and maps at the driver's limits on either side."""
    yield BASE
    for kind in TYPES:
        inner = 16 // kind.nbytes
        yield replace(BASE, type=kind, shape=(16, 300), strides=(16 * kind.nbytes,), box=(inner, 4))
    small = replace(BASE, box=(16, 32))
    yield from (replace(small, promotion=value) for value in PROMOTIONS)
    yield from (replace(small, swizzle=value) for value in SWIZZLES)
    yield from (replace(small, fill=value) for value in FILLS)
    deep = replace(BASE, shape=(64, 300, 7), strides=(128, 128 * 300), box=(16, 4, 2), element_strides=(1, 1, 1))
    yield from (replace(deep, interleave=value, swizzle=32 * (value == 32)) for value in INTERLEAVES)
    yield from (replace(deep, interleave=value, box=(8, 4, 2)) for value in INTERLEAVES)
    yield from (replace(BASE, address=address) for address in (0, 16, 24, 1 << 40, 0x7FFFFFFFFFF0))
    yield from (replace(BASE, shape=(extent, 5)) for extent in (0, 1, 8, 1 << 32, (1 << 32) + 1))
    yield from (replace(BASE, strides=(stride,)) for stride in (0, 8, 16, 1040, (1 << 40) - 16, 1 << 40))
    yield from (replace(BASE, box=box) for box in ((0, 4), (4, 4), (12, 4), (256, 256), (264, 4), (8, 257), (8, 0)))
    yield from (replace(BASE, element_strides=steps) for steps in ((1, 0), (1, 8), (1, 9), (2, 1), (8, 8)))
    yield from (replace(BASE, swizzle=32, box=(extent, 4)) for extent in (8, 16, 24))
    yield replace(BASE, type=BY_NAME["INT32"], fill="nan", box=(16, 4))
    yield replace(BASE, strides=(512,))  # smaller than a row
    yield replace(deep, strides=(192, 128 * 300))  # not a multiple of the stride before


def random_maps(count: int) -> Iterator[TiledMap]:
    """Yield maps with random fields, most of them valid; none is interleaved."""
    rng = random.Random(7)  # noqa: S311 - test data
    for _ in range(count):
        rank, kind = rng.randint(1, 5), rng.choice(TYPES)
        swizzle = rng.choice(SWIZZLES)
        inner = rng.choice((16, 32, 64, 128, 256)) if not swizzle else swizzle >> rng.randint(0, 1)
        strides, stride = [], 0
        for _axis in range(rank - 1):
            stride = max(stride, 16) * rng.choice((1, 2, 3, 5, 64, 1000)) % (1 << 40) // 16 * 16
            strides.append(stride)
        yield TiledMap(
            kind, rng.randrange(1 << 36) * 256, tuple(rng.randint(1, 1 << rng.randint(1, 32)) for _ in range(rank)),
            tuple(strides), (max(1, inner // kind.nbytes), *(rng.randint(1, 256) for _ in range(rank - 1))),
            tuple(rng.randint(1, 8) for _ in range(rank)), 0, swizzle, rng.choice(PROMOTIONS),
            rng.choice(FILLS) if kind.floating else "zeros",
        )  # fmt: skip


def encoded(device: TensorMapDevice, tensor: TiledMap) -> dict[str, Any]:
    """Return a map's parameters with the driver's bytes or its refusal."""
    row = asdict(tensor) | {"type": tensor.type.name}
    try:
        return row | {"bytes": device.tensor_map(tensor).hex()}
    except (GemmlabError, ValueError, OverflowError) as error:
        return row | {"refused": str(error)}


def boxes() -> Iterator[tuple[str, TensorMap, tuple[int, ...], int]]:
    """Yield (name, map, coordinates, bytes) of copies whose results only a GPU can tell."""
    edges = np.array(
        [0x3F800FFF, 0x3F801000, 0x3F801001, 0x3F803000, 0x00000001, 0x80000001, 0x007FFFFF, 0x7F800000, 0x7FC00001,
         0x7F800001, 0xFFC12345, 0x3F80FFFF, 0x7F7FFFFF, 0x00800000, 0x00801FFF, 0xBF801000], np.uint32,
    ).view(np.float32)  # fmt: skip
    edge_rows = np.tile(edges, (32, 4))
    for kind in ("tfloat32", "tfloat32_ftz", "float32_ftz", "float32"):
        yield f"type {kind}", TensorMap(edge_rows, (4, 64), dtype=kind), (0, 0), 4 * 64 * 4
        yield f"fill {kind}", TensorMap(edge_rows, (4, 64), dtype=kind, fill="nan"), (32, 30), 4 * 64 * 4
    for kind, dtype in (("float16", np.uint16), ("bfloat16", np.uint16), ("float64", np.float64)):
        array = np.ones((8, 16), dtype)
        yield f"fill {kind}", TensorMap(array, (4, 16), dtype=kind, fill="nan"), (8, 6), 4 * 16 * array.itemsize


def copied(name: str, tensor: TensorMap, at: tuple[int, ...], nbytes: int, device: str) -> dict[str, Any]:
    """Return the record of a box as it arrives in shared memory, or of the error. With a wrong `nbytes` the launch
    times out.
    """
    numbers = [np.int32(value) for value in (*at, 0, 0, 0, 0, 0)][:5]
    args = [tensor, np.full(nbytes, 0xEE, np.uint8), *numbers, np.int32(nbytes)]
    row = {"name": name, "input": np.ascontiguousarray(tensor.array).tobytes().hex()}
    limits: dict[str, Any] = {"device": device, "smem_bytes": 40960, "timeout_s": SECONDS}
    try:
        outputs: Any = launch(KERNELS, f"show{len(at)}", 1, 64, args, **limits).outputs
    except GemmlabError as error:
        return row | {"refused": str(error)}
    return row | {"bytes": outputs[1].tobytes().hex()}


def copied_apart(number: int, device: str) -> dict[str, Any]:
    """Return the record of box `number` as `copied` does, from another process: a copy that hangs breaks the CUDA
    context of its process.
    """
    command = [sys.executable, __file__, "--device", device, "--box", str(number)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20 * SECONDS)
    if done.returncode:
        return {"name": str(number), "refused": done.stderr.strip().splitlines()[-1:]}
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/h200/tensor_maps.json")
    parser.add_argument("--box", type=int, help="only print the record of this box")
    arguments = parser.parse_args()
    if arguments.box is not None:
        name, tensor, at, nbytes = list(boxes())[arguments.box]
        print(json.dumps(copied(name, tensor, at, nbytes, arguments.device)))
        return
    device = open_device(arguments.device)
    if not isinstance(device, TensorMapDevice):
        raise SystemExit(f"{arguments.device} has no tensor maps")
    maps = [encoded(device, tensor) for tensor in (*fixed_maps(), *random_maps(400))]
    record = {"schema": "gemmlab.tensor-maps/1", "maps": maps}
    arguments.out.write_text(json.dumps(record, indent=1) + "\n")
    print(f"{len(maps)} maps, {sum('bytes' in row for row in maps)} encoded")
    record["boxes"] = [copied_apart(number, arguments.device) for number in range(len(list(boxes())))]
    arguments.out.write_text(json.dumps(record, indent=1) + "\n")
    print(f"{len(record['boxes'])} boxes; wrote {arguments.out}")


if __name__ == "__main__":
    main()
