"""The GPU architecture that code needs, as kernel files state it: `sm_80` (or newer), `sm_90a` (no other), or `sm_100f`
(its family: the same major version, and no older minor version).
"""

from __future__ import annotations

import re
from functools import cache

_ARCH = re.compile(r"sm_(\d+)([af]?)")


def number_of(arch: str) -> int:
    """Return the number in the name of an architecture: 90 for `sm_90a`, 120 for `sm_120`."""
    return int(arch.removeprefix("sm_").rstrip("af"))


def is_only(needed: str) -> bool:
    """Return whether code that needs `needed` runs on that architecture or its family alone: the name ends in `a` or
    `f`.
    """
    return needed.endswith(("a", "f"))


@cache
def runs(needed: str, target: str) -> bool:
    """Return whether GPUs of architecture `target` run code that needs `needed`.

    Code for `sm_80` runs on `sm_80` and newer. Code for `sm_90a` runs on `sm_90` and `sm_90a` only: it may use
    instructions that no other architecture has. Code for `sm_100f` runs on `sm_100`, `sm_103` and their variants. If
    `needed` is empty, the code runs everywhere. A `target` that is no such name runs no other code.
    """
    least, actual = _ARCH.fullmatch(needed), _ARCH.fullmatch(target)
    if least is None or actual is None:
        return least is None
    if least[2] == "a":
        return actual[1] == least[1] and actual[2] in ("", "a")
    found, wanted = int(actual[1]), int(least[1])
    return found >= wanted and (not least[2] or found // 10 == wanted // 10)
