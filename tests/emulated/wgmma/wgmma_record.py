"""What wgmma gives on a device, for every form: bits of small tiles, checksums of many, and maps of descriptors."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from wgmma_forms import ROWS, Form, source
from wgmma_maps import IMAGE, MAPS, Map, descriptors, images, numbers, one_hot
from wgmma_maps import source as map_source
from wgmma_tiles import categories, chunks, fragments, matrix, tile

import gemmlab

RAW_TILES, CHECKED_TILES = 6, 32
"""Tiles of each category whose bits are recorded, and those of which there are checksums of rows."""
ARCH = "sm_90a"
FLOATS = (("f16", "f16"), ("bf16", "bf16"), ("tf32", "tf32"), ("e4m3", "e4m3"), ("e5m2", "e5m2"), ("e4m3", "e5m2"),
          ("e5m2", "e4m3"))  # fmt: skip
HALVES = (("f16", "f16"), ("e4m3", "e4m3"), ("e5m2", "e5m2"), ("e4m3", "e5m2"))
INTEGERS = (("s8", "s8"), ("u8", "u8"), ("s8", "u8"), ("u8", "s8"))
Bits = npt.NDArray[np.unsignedinteger]


def forms(columns: int) -> Iterator[Form]:
    """Every pair of types with every accumulator."""
    for a, b in FLOATS:
        yield Form(a, b, "f32", columns)
    for a, b in HALVES:
        yield Form(a, b, "f16", columns)
    for a, b in INTEGERS:
        yield Form(a, b, "s32", columns)
        yield Form(a, b, "s32", columns, saturate=True)


def variants() -> Iterator[Form]:
    """Signs, A from registers, and every number of columns."""
    for signs in ((-1, 1), (1, -1), (-1, -1)):
        yield Form("f16", "f16", "f32", 8, negate=signs)
    yield Form("bf16", "bf16", "f32", 8, negate=(-1, 1), registers=True)
    yield Form("tf32", "tf32", "f32", 8, negate=(1, -1))
    yield Form("e4m3", "e5m2", "f16", 8, negate=(-1, 1))
    for a, b, sums in (("f16", "f16", "f32"), ("tf32", "tf32", "f32"), ("e5m2", "e4m3", "f32"), ("u8", "s8", "s32")):
        yield Form(a, b, sums, 8, registers=True)
    for columns in range(16, 257, 8):
        yield Form("f16", "f16", "f32", columns)


def run(device: str, form: Form, names: list[tuple[str, int]], code: str) -> Bits:
    """The accumulators of tiles (category, number) after one multiplication: tiles x 64 x columns."""
    tiles = [tile(form, *name) for name in names]
    arguments = [
        np.concatenate([chunks(each.a).reshape(-1) for each in tiles]),
        np.concatenate([chunks(each.b).reshape(-1) for each in tiles]),
        np.concatenate([fragments(form, each.sums).reshape(-1) for each in tiles]),
    ]
    words = _launch(device, code, form.name, arguments, len(tiles), 0)[2].reshape(len(tiles), -1)
    return np.stack([matrix(form, each) for each in words])


def _launch(device: str, code: str, name: str, args: list[Any], blocks: int, smem: int) -> list[Any]:
    done = gemmlab.launch(
        code, name, args=args, grid=blocks, threads=128, smem_bytes=smem, device=device,
        arch=ARCH if device.startswith("cuda") else None,
    )  # fmt: skip
    if done.hazards:
        raise RuntimeError(f"{name}: {done.hazards[0].explain()}")
    return done.outputs


def raw_names(form: Form) -> list[tuple[str, int]]:
    """The tiles whose bits are recorded."""
    return [(category, number) for category in categories(form) for number in range(RAW_TILES)]


def checked_names(form: Form) -> list[tuple[str, int]]:
    """The tiles of which checksums are recorded."""
    return [(category, number) for category in categories(form) for number in range(CHECKED_TILES)]


def sums_of(found: Bits) -> npt.NDArray[np.uint32]:
    """CRC-32 of each row of each tile."""
    return np.array([[zlib.crc32(np.ascontiguousarray(row)) for row in each] for each in found], np.uint32)


def bits_of_tiles(device: str) -> Iterator[tuple[str, Bits]]:
    """Bits of small tiles by the form's name."""
    small = [*forms(8), *(each for each in variants() if each.columns == 8)]
    code = source(small)
    for form in small:
        yield form.name, run(device, form, raw_names(form), code)


def sums_of_tiles(device: str) -> Iterator[tuple[str, npt.NDArray[np.uint32]]]:
    """Checksums of rows by the form's name: many tiles of 64 columns, and one tile of every other width."""
    many = list(forms(64))
    code = source(many)
    for form in many:
        yield form.name, sums_of(run(device, form, checked_names(form), code))
    others = [form for form in variants() if form.columns not in (8, 64)]
    code = source(others)
    for form in others:
        yield form.name, sums_of(run(device, form, [("near", 0)], code))


def maps(device: str) -> Iterator[tuple[str, npt.NDArray[np.uint16]]]:
    """By the map's name, for every descriptor the index of the element of each accumulator: 64 x columns."""
    code = map_source()
    for what in MAPS:
        yield what.name, one_map(device, what, code)


def one_map(device: str, what: Map, code: str) -> npt.NDArray[np.uint16]:
    """One map. A's elements beyond those that it selects are of the first row of accumulators again."""
    words = np.array([each.word for each in descriptors()], np.uint64)
    shape = (len(words), 128, what.form.words)
    total = np.zeros(shape, np.int64)
    smem = IMAGE + ROWS * 32
    for image, factor in images(what):
        out = np.zeros(shape, np.uint32)
        args = [image.view(np.uint32), one_hot(what).view(np.uint32), words, out]
        total += factor * numbers(what, _launch(device, code, what.name, args, len(words), smem)[3].reshape(-1))
    found = np.stack([matrix(what.form, each.astype(np.uint32)) for each in total])
    return found[:, : what.form.depth if what.side == "b" else ROWS].astype(np.uint16)
