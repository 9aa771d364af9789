"""Misuse of wgmma that ptxas repaired, found in PTX and in ptxas's messages; the machine code does not show it.

ptxas closes groups, inserts missing fences and waits, or makes a kernel wait after each multiplication. The PTX is
wrong nonetheless: another version of ptxas may not repair it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gemmlab.core.hazard import Hazard
from gemmlab.emulator.ptx_groups import Groups, InFlight, groups_of
from gemmlab.emulator.ptx_hazard import hazard_at, line_in_words
from gemmlab.emulator.ptx_warpgroups import unfenced

_WAIT_INJECTED = re.compile(
    r"wgmma\.wait_group is injected in around line (\d+) by compiler to allow use of registers defined by GMMA in "
    r"function '([^']+)'"
)
_RIGHT = "and the machine code is right"
_PUT_IN = f"ptxas put in a wait, {_RIGHT}"
KIND = "wgmma"


def hazards_of(log: str, ptx: str, function: str, kernel: str) -> tuple[Hazard, ...]:
    """Return the hazards in a function's PTX and in ptxas's messages `log`; `kernel` is the kernel's name in them."""
    groups = groups_of(ptx, function)
    lines = [int(match[1]) for match in _WAIT_INJECTED.finditer(log) if match[2] == function]
    return (*_late(lines, groups, ptx, kernel), *_open(groups, ptx, kernel), *_unfenced(ptx, function, kernel))


def _late(lines: list[int], groups: Groups, ptx: str, kernel: str) -> Iterator[Hazard]:
    """Yield a hazard for each PTX line in `lines`, at which ptxas inserted a wait.

    It describes the last use of a result in flight up to that line, if one is found in the PTX.
    """
    for line in lines:
        known = [each for each in groups.in_flight if each.use <= line]
        use = max(known, key=lambda each: each.use, default=None)
        if use is None:
            message = (
                "a multiplication is in flight where its registers are used or the kernel ends: no wgmma.wait_group"
            )
            message += f" before; {_PUT_IN}"
            yield hazard_at(KIND, kernel, ptx, line, 0, message)
        elif not use.wait:
            message = f"the result of a multiplication in flight is used before wgmma.wait_group; {_PUT_IN}"
            yield hazard_at(KIND, kernel, ptx, use.use, use.multiplication, message)
        else:
            yield hazard_at(KIND, kernel, ptx, use.wait, use.multiplication, _too_weak(use, ptx))


def _too_weak(use: InFlight, ptx: str) -> str:
    if not use.closed:
        return f"the wait is for closed groups, and this multiplication is in none; {_PUT_IN}"
    return (
        f"wgmma.wait_group {use.left} leaves the multiplication in flight, and {line_in_words(ptx, use.use)} uses its"
        f" result: wgmma.wait_group {use.closed - 1} is needed; {_PUT_IN}"
    )


def _open(groups: Groups, ptx: str, kernel: str) -> Iterator[Hazard]:
    """Yield a hazard for each wait after a multiplication whose group the PTX does not close."""
    for each in groups.open:
        message = (
            "no wgmma.commit_group between the multiplication and the wait, which is for closed groups only; ptxas"
            f" closed the group, {_RIGHT}"
        )
        yield hazard_at(KIND, kernel, ptx, each.wait, each.multiplication, message)


def _unfenced(ptx: str, function: str, kernel: str) -> Iterator[Hazard]:
    for missing in unfenced(ptx, function):
        message = (
            "a multiplication without wgmma.fence behind the last write of its registers; ptxas put one in, and the"
            " machine code is right"
        )
        yield hazard_at(KIND, kernel, ptx, missing.multiplication, missing.write, message)
