"""Is there memory for the sizes asked for? Estimated before any is allocated.

Pages come when they are first written, and by then the only answer to a lack of them would be a kill.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.ops.op import Op

_INPUT_BYTES = FLOAT_BYTES + 8
"""An element of an input while the reference is computed: its contents, and in float64."""
_OUTPUT_BYTES = FLOAT_BYTES + 6 * 8
"""An element of an output likewise: value, magnitude, bound and steps towards them."""


def operand_bytes(op: Op, problem: Any) -> int:
    """Bytes of all operands of `problem`, once."""
    return sum(FLOAT_BYTES * operand.rows * operand.ld for operand in op.operands(problem))


def reference_bytes(op: Op, problem: Any) -> int:
    """Bytes that the contents and the float64 reference of `problem` need at once, at least."""
    return sum(o.rows * o.cols * (_INPUT_BYTES if o.role == "in" else _OUTPUT_BYTES) for o in op.operands(problem))


def check_bytes(op: Op, problem: Any) -> int:
    """Bytes that a check of `problem` needs at once, at least: every operand has a second copy to compare with."""
    return reference_bytes(op, problem) + 2 * operand_bytes(op, problem)


def require_memory(nbytes: int, what: str) -> None:
    """`MemoryError` that names `what` when it needs more bytes than the machine has left."""
    available = available_bytes()
    if nbytes > available:
        raise MemoryError(f"{what} needs at least {in_words(nbytes)}; {in_words(available)} are available")


def available_bytes() -> int:
    """Bytes that can be allocated without swapping; all memory if the system does not say."""
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
    """Bytes in MiB, or in GiB from one on."""
    return f"{nbytes / 2**30:.1f} GiB" if nbytes >= 2**30 else f"{nbytes / 2**20:.1f} MiB"
