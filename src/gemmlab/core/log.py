"""The logger `gemmlab`: silent until a program gives it a handler, `logging.getLogger("gemmlab")`.

Debug lines say what came from the cache, what was compiled and in what time, which kernel a library call runs, and what
the bound of the cache removed. Nothing is logged on the way of a repeated call.
"""

from __future__ import annotations

import logging
import time

LOG = logging.getLogger("gemmlab")
LOG.addHandler(logging.NullHandler())


def elapsed_ms(started: float) -> float:
    """Return the milliseconds since `started`, a time of `time.perf_counter`."""
    return 1e3 * (time.perf_counter() - started)
