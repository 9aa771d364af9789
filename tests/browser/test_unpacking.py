"""The page's script unpacks what Python packed, with every kind of block that zlib writes."""

from __future__ import annotations

import base64
import random
import zlib
from pathlib import Path

import pytest

from gemmlab.pages.document import packed
from support.chromium import Browser

_RANDOM = random.Random(7)  # noqa: S311 - texts of a test
TEXTS = {
    "nothing": "",
    "one letter": "x",
    "fixed codes": "abcabcabcabc, ä and 漢",
    "one distance": "a" * 100_000,
    "many lengths": "".join("abcdefgh"[: _RANDOM.randrange(9)] * _RANDOM.randrange(60) for _ in range(3000)),
    "far back": (words := "".join(map(chr, _RANDOM.choices(range(32, 0x2FF), k=30_000)))) + words[:500],
    "code": "".join(f"0x{16 * row:04x} FFMA R{row % 128}, R{row % 7}, R{row % 61}\n" for row in range(9000)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_text_comes_back_as_it_was(browser: Browser, own: Path, name: str) -> None:
    browser.open(own.as_uri())
    assert browser.run(f"gemmlab.unpacked('{packed(TEXTS[name])}')") == TEXTS[name]


@pytest.mark.parametrize("level", [0, 1, 9])
@pytest.mark.parametrize("strategy", [zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE, zlib.Z_FIXED])
@pytest.mark.sampled(12)
def test_every_kind_of_block_is_read(browser: Browser, own: Path, level: int, strategy: int) -> None:
    text = TEXTS["code"] + TEXTS["many lengths"]
    writer = zlib.compressobj(level, zlib.DEFLATED, zlib.MAX_WBITS, 9, strategy)
    data = writer.compress(text[:70_000].encode()) + writer.flush(zlib.Z_FULL_FLUSH)
    data += writer.compress(text[70_000:].encode()) + writer.flush()
    browser.open(own.as_uri())
    assert browser.run(f"gemmlab.unpacked('{base64.b64encode(data).decode()}')") == text
