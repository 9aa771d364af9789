"""Check that there is enough memory for given sizes, before any of it is allocated.

On Linux an allocation itself rarely fails: the system provides pages when they are first written, and kills the process
if none is left.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from gemmlab.ops.op import Op, Operand

_INPUT_BYTES = 8
"""Bytes that computing the reference needs for an element of an input besides its contents: its value in float64."""
_OUTPUT_BYTES = 5 * 8
"""Bytes that computing the reference needs for an element of an output besides its contents: product, magnitude, what
is added to the product, value and bound.
"""


def operand_bytes(op: Op, problem: Any) -> int:
    """Return the bytes of all operands of `problem`, the gaps between their rows included."""
    return sum(operand.element.nbytes * operand.rows * operand.ld for operand in op.operands(problem))


def reference_bytes(op: Op, problem: Any) -> int:
    """Return the least bytes that the operands' contents (`Op.fill`) and the float64 reference need at once."""
    return sum(one.rows * one.cols * (one.element.nbytes + _working_bytes(one)) for one in op.operands(problem))


def _working_bytes(operand: Operand) -> int:
    return _INPUT_BYTES if operand.role == "in" else _OUTPUT_BYTES


def check_bytes(op: Op, problem: Any) -> int:
    """Return the least bytes that a check of `problem` needs at once.

    They are those of `reference_bytes`, and twice those of every operand (`operand_bytes`): in the device's memory, and
    as a copy to compare with.
    """
    return reference_bytes(op, problem) + 2 * operand_bytes(op, problem)


def require_memory(nbytes: int, what: str) -> None:
    """Raise `MemoryError` if `what` needs more bytes than this machine has available."""
    available = available_bytes()
    if nbytes > available:
        raise MemoryError(f"{what} needs at least {in_words(nbytes)}; {in_words(available)} are available")


def available_bytes() -> int:
    """Return the bytes of memory that can be used without swapping; if they are not reported, all of the memory."""
    if sys.platform == "win32":
        from gemmlab.core.windows import available_memory

        return available_memory()
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        text = ""
    found = re.search(r"^MemAvailable:\s*(\d+) kB$", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def in_words(nbytes: int) -> str:
    """Return a number of bytes as text in MiB, or in GiB from 1 GiB on."""
    return f"{nbytes / 2**30:.1f} GiB" if nbytes >= 2**30 else f"{nbytes / 2**20:.1f} MiB"
