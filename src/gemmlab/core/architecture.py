"""The GPU architectures that code needs, as kernel files state them: `sm_80` or newer, `sm_90a` alone."""

from __future__ import annotations

import re

_ARCH = re.compile(r"sm_(\d+)([af]?)")


def is_only(needed: str) -> bool:
    """Return whether code runs on that architecture alone: its name has a letter."""
    return needed.endswith(("a", "f"))


def runs(needed: str, target: str) -> bool:
    """Return whether GPUs of architecture `target` run code that needs `needed`.

    Those of `sm_90` run code for `sm_90a`, which has instructions that no other architecture has. Code that needs no
    architecture, the empty text, runs everywhere.
    """
    if is_only(needed):
        return target in (needed, needed.rstrip("af"))
    least, actual = _ARCH.fullmatch(needed), _ARCH.fullmatch(target)
    return least is None or (actual is not None and int(actual[1]) >= int(least[1]))
