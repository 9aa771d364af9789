"""The logger `gemmlab`: silent until a program gives it a handler, `logging.getLogger("gemmlab")`.

Debug lines report whether code came from the cache or the package, compilations with their times, the kernel that
`gemmlab.gemm` chose for a call, and entries removed because the cache was full. A repeated call logs nothing. Remarks
that accompany a result are messages of level INFO, which the command line prints on standard error.
"""

from __future__ import annotations

import logging
import time

LOG = logging.getLogger("gemmlab")
LOG.addHandler(logging.NullHandler())


def notice(text: str) -> None:
    """Log a remark on a result at level INFO."""
    LOG.info("%s", text)


def elapsed_ms(started: float) -> float:
    """Return the milliseconds since `started`, a time of `time.perf_counter`."""
    return 1e3 * (time.perf_counter() - started)
