"""The 128 bytes of tensor maps: fields at their places, decoding, and the driver's bytes where they are recorded."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from gemmlab.core.errors import UsageError
from gemmlab.core.tensor_map import BY_NAME, TYPES, ElementType, TiledMap, decode, packed_strides

RECORD = Path(__file__).parents[3] / "benchmarks/results/h200/tensor_maps.json"
MAP = TiledMap(
    BY_NAME["BFLOAT16"], 0x7F1234567800, (4096, 512, 3), (8192, 1 << 37), (64, 128, 2), (1, 2, 3), swizzle=128,
    promotion=256, fill="nan",
)  # fmt: skip


def test_every_field_is_at_the_place_that_tensormap_replace_changes() -> None:
    data = MAP.encode()
    word, strides, upper = struct.unpack_from("<I", data, 8)[0], struct.unpack_from("<4I", data, 12), data[28]
    assert len(data) == 128
    assert struct.unpack_from("<Q", data)[0] == MAP.address
    assert (word >> 4 & 7, word >> 7 & 15, word >> 11 & 3, word >> 13 & 3, word >> 15 & 1) == (2, 10, 0, 3, 1)
    assert (strides[0], strides[1], upper) == (8192 >> 4, (1 << 33) & 0xFFFFFFFF, 2 << 4)
    assert struct.unpack_from("<5I", data, 32) == (4095, 511, 2, 0, 0)
    assert struct.unpack_from("<I", data, 52)[0] & 0x7FFF == 0 | 1 << 3 | 2 << 6
    assert (data[55], data[56], data[57]) == (63, 127, 1)


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
def test_decoding_reverses_encoding(kind: ElementType) -> None:
    plain = replace(MAP, type=kind, fill="zeros", box=(16, 5, 7), swizzle=0)
    for tensor in (plain, replace(plain, shape=(7,), strides=(), box=(16,), element_strides=(8,))):
        assert decode(tensor.encode()) == tensor


def test_bytes_that_are_no_map_are_refused() -> None:
    with pytest.raises(UsageError, match="no map for tiled copies"):
        decode(b"\xff" * 128)
    with pytest.raises(UsageError, match="16 bytes; a map has 128"):
        decode(bytes(16))


def test_a_map_in_words() -> None:
    assert MAP.describe() == (
        "BFLOAT16 4096 x 512 x 3 (innermost first) at 0x7f1234567800, box 64 x 128 x 2, swizzle 128, promotion 256,"
        " fill nan, element strides 1 x 2 x 3"
    )
    assert MAP.copied == (64, 64, 1)
    assert MAP.nbytes == 64 * 64 * 2
    assert packed_strides((10, 3, 2), 4) == (40, 120)


@pytest.mark.skipif(not RECORD.exists(), reason="no record of the driver's maps: makers/tensor_map_probe.py on a GPU")
def test_the_drivers_bytes_and_refusals_are_ours() -> None:
    rows = json.loads(RECORD.read_text())["maps"]
    wrong = []
    for row in rows:
        shape, strides, box, steps = (tuple(row[name]) for name in ("shape", "strides", "box", "element_strides"))
        tensor = TiledMap(
            BY_NAME[row["type"]], row["address"], shape, strides, box, steps, row["interleave"], row["swizzle"],
            row["promotion"], row["fill"],
        )  # fmt: skip
        try:
            ours = tensor.encode().hex()
        except UsageError as error:
            ours = str(error)
        if ("bytes" in row and ours != row["bytes"]) or ("bytes" not in row and not ours.startswith("tensor map")):
            wrong.append((tensor.describe(), ours, row.get("bytes", row.get("refused"))))
    assert not wrong, f"{len(wrong)} of {len(rows)}: {wrong[:3]}"
