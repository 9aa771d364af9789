"""What wgmma gives on a device, for every form: bits of small tiles, checksums of many, and maps of descriptors."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from wgmma_forms import ROWS, Form, source
from wgmma_maps import IMAGE, MAPS, Map, descriptors, images, numbers, one_hot
from wgmma_maps import source as map_source
from wgmma_tiles import LEAST, categories, chunks, fragments, matrix, tile

import gemmlab

RAW_TILES, CHECKED_TILES, LEAST_TILES = 6, 32, 24
"""Tiles of each category whose bits are recorded, those of which there are checksums of rows, and those of the least
numbers."""
ARCH = "sm_90a"
FLOATS = (("f16", "f16"), ("bf16", "bf16"), ("tf32", "tf32"), ("e4m3", "e4m3"), ("e5m2", "e5m2"), ("e4m3", "e5m2"),
          ("e5m2", "e4m3"))  # fmt: skip
HALVES = (("f16", "f16"), ("e4m3", "e4m3"), ("e5m2", "e5m2"), ("e4m3", "e5m2"))
LATER = ("e5m2", "e4m3")
"""The pair whose FP16 sums the first record lacks."""
INTEGERS = (("s8", "s8"), ("u8", "u8"), ("s8", "u8"), ("u8", "s8"))
Bits = npt.NDArray[np.unsignedinteger]
Names = list[tuple[str, int]]
Job = Callable[[str], Bits]
"""Takes a device's name."""


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
    """Signs, and A from registers."""
    for signs in ((-1, 1), (1, -1), (-1, -1)):
        yield Form("f16", "f16", "f32", 8, negate=signs)
    yield Form("bf16", "bf16", "f32", 8, negate=(-1, 1), registers=True)
    yield Form("tf32", "tf32", "f32", 8, negate=(1, -1))
    yield Form("e4m3", "e5m2", "f16", 8, negate=(-1, 1))
    for a, b, sums in (("f16", "f16", "f32"), ("tf32", "tf32", "f32"), ("e5m2", "e4m3", "f32"), ("u8", "s8", "s32")):
        yield Form(a, b, sums, 8, registers=True)


def widths() -> Iterator[Form]:
    """Every number of columns but 8 and 64."""
    for columns in range(16, 257, 8):
        if columns != 64:
            yield Form("f16", "f16", "f32", columns)


def more_forms() -> list[Form]:
    """Signs and A from registers of every pair, and the pair that has no FP16 sums in the first record."""
    pairs = [(a, b, "f32") for a, b in FLOATS] + [(a, b, "f16") for a, b in (*HALVES, LATER)]
    found = [Form(*pair, 8, negate=signs) for pair in pairs for signs in ((-1, 1), (1, -1), (-1, -1))]
    found += [Form(*pair, 8, registers=True, negate=signs) for pair in pairs for signs in ((1, 1), (-1, -1))]
    for a, b in INTEGERS:
        found += [Form(a, b, "s32", 8, registers=True, saturate=saturate) for saturate in (False, True)]
    return found


def more_jobs(code: Callable[[], bytes] = bytes) -> Mapping[str, Job]:
    """Return the functions of a record apart, which is small: checksums of tiles, and all bits of the later pair.

    `code` gives the machine code of `more_source`; without it each form is compiled alone.
    """
    later, wide = Form(*LATER, "f16", 8), Form(*LATER, "f16", 64)

    def given(what: Callable[..., Bits], form: Form, names: Names) -> Job:
        return lambda device: what(device, form, names, code())

    return {form.name: given(tile_sums, form, raw_names(form)) for form in more_forms()} | {
        f"bits_{later.name}": given(run, later, raw_names(later)),
        f"least_{later.name}": given(run, later, least_names()),
        f"sums_{wide.name}": given(checksums, wide, checked_names(wide)),
    }


def more_source() -> str:
    """The kernels of `more_jobs` in one text."""
    return source([*more_forms(), Form(*LATER, "f16", 8), Form(*LATER, "f16", 64)])


def jobs() -> Mapping[str, Mapping[str, Job]]:
    """Return the functions that record, by file and array."""
    return {
        "maps": {what.name: partial(one_map, what=what) for what in MAPS},
        "bits": {form.name: partial(run, form=form, names=raw_names(form)) for form in (*forms(8), *variants())},
        "sums": {form.name: partial(checksums, form=form, names=checked_names(form)) for form in forms(64)}
        | {form.name: partial(checksums, form=form, names=[("near", 0)]) for form in widths()},
        "least": {form.name: partial(run, form=form, names=least_names()) for form in forms(8) if form.sums != "s32"},
    }


def raw_names(form: Form) -> Names:
    """The tiles whose bits are recorded: categories and numbers."""
    return [(category, number) for category in categories(form) for number in range(RAW_TILES)]


def checked_names(form: Form) -> Names:
    """The tiles of which checksums are recorded."""
    return [(category, number) for category in categories(form) for number in range(CHECKED_TILES)]


def least_names() -> Names:
    """Tiles of products near and below the least number of the accumulator."""
    return [(LEAST, number) for number in range(LEAST_TILES)]


def run(device: str, form: Form, names: Names, code: bytes = b"") -> Bits:
    """The accumulators of tiles after one multiplication: tiles x 64 x columns. `code` has the form's kernel, if it is
    compiled already.
    """
    tiles = [tile(form, *name) for name in names]
    arguments = [
        np.concatenate([chunks(each.a).reshape(-1) for each in tiles]),
        np.concatenate([chunks(each.b).reshape(-1) for each in tiles]),
        np.concatenate([fragments(form, each.sums).reshape(-1) for each in tiles]),
    ]
    words = _launch(device, code or source([form]), form.name, arguments, len(tiles), 0)[2].reshape(len(tiles), -1)
    return np.stack([matrix(form, each) for each in words])


def _launch(device: str, code: str | bytes, name: str, args: list[Any], blocks: int, smem: int) -> list[Any]:
    done = gemmlab.launch(
        code, name, args=args, grid=blocks, threads=128, smem_bytes=smem, device=device,
        arch=ARCH if device.startswith("cuda") and isinstance(code, str) else None,
    )  # fmt: skip
    if done.hazards:
        raise RuntimeError(f"{name}: {done.hazards[0].explain()}")
    assert isinstance(done.outputs, list)
    return done.outputs


def sums_of(found: Bits) -> Bits:
    """CRC-32 of each row of each tile."""
    return np.array([[zlib.crc32(row.tobytes()) for row in each] for each in found], np.uint32)


def tile_sums(device: str, form: Form, names: Names, code: bytes = b"") -> Bits:
    """CRC-32 of each tile, for the four warps' rows apart: tiles x 4."""
    found = run(device, form, names, code)
    return np.array([[zlib.crc32(part.tobytes()) for part in np.split(each, 4)] for each in found], np.uint32)


def checksums(device: str, form: Form, names: Names, code: bytes = b"") -> Bits:
    """Checksums of the rows of tiles."""
    return sums_of(run(device, form, names, code))


def one_map(device: str, what: Map) -> Bits:
    """For every descriptor the index of the element that each accumulator shows: 64 (of B: depth) x columns."""
    words = np.array([each.word for each in descriptors()], np.uint64)
    shape = (len(words), 128, what.form.words)
    total = np.zeros(shape, np.int64)
    smem = IMAGE + ROWS * 32
    for image, factor in images(what):
        out = np.zeros(shape, np.uint32)
        args = [image.view(np.uint32), one_hot(what).view(np.uint32), words, out]
        found = _launch(device, map_source(what), what.name, args, len(words), smem)[3]
        total += factor * numbers(what, found.reshape(-1))
    indices = np.stack([matrix(what.form, each.astype(np.uint32)) for each in total])
    return indices[:, : what.form.depth if what.side == "b" else ROWS].astype(np.uint16)
