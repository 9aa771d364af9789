"""Instruction words as nvdisasm prints them, without a cubin around them."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from gemmlab.sass.instruction import Instruction
from gemmlab.sass.parse import parse
from gemmlab.toolchain.nvdisasm import tool


def disassembled(words: Sequence[int], arch: str, folder: Path) -> tuple[Instruction, ...]:
    """The instructions of these words for an architecture such as sm_90."""
    raw = folder / "raw.bin"
    raw.write_bytes(b"".join(word.to_bytes(16, "little") for word in words))
    command = [str(tool()), "-b", arch.upper().replace("_", "").rstrip("A"), "-hex", str(raw)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    lines = [line for line in text.splitlines() if "/*" in line]
    return parse("\n".join([".text.f:", *lines]))["f"].instructions
