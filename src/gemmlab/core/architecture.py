"""The GPU architecture that code needs, as kernel files state it: `sm_80` (or newer), or `sm_90a` (no other)."""

from __future__ import annotations

import re

_ARCH = re.compile(r"sm_(\d+)([af]?)")


def is_only(needed: str) -> bool:
    """Return whether code that needs `needed` runs on that architecture alone: the name ends in `a` or `f`."""
    return needed.endswith(("a", "f"))


def runs(needed: str, target: str) -> bool:
    """Return whether GPUs of architecture `target` run code that needs `needed`.

    Code for `sm_80` runs on `sm_80` and newer. Code for `sm_90a` runs on `sm_90` and `sm_90a` only: it may use
    instructions that no other architecture has. If `needed` is empty, the code runs everywhere.
    """
    if is_only(needed):
        return target in (needed, needed.rstrip("af"))
    least, actual = _ARCH.fullmatch(needed), _ARCH.fullmatch(target)
    return least is None or (actual is not None and int(actual[1]) >= int(least[1]))
