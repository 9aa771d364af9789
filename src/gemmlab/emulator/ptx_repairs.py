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
from gemmlab.toolchain.ptxas_log import serialized

_WAIT_INJECTED = re.compile(
    r"wgmma\.wait_group is injected in around line (\d+) by compiler to allow use of registers defined by GMMA in "
    r"function '([^']+)'"
)
_SERIALIZED = re.compile(r"non wgmma instructions (?:reading|defining) (?:accumulator|input) registers")
_RIGHT = "and the machine code is right"
_PUT_IN = f"ptxas put in a wait, {_RIGHT}"
_EACH = f"ptxas put in a wait after each multiplication, {_RIGHT}"
KIND = "wgmma"


def hazards_of(log: str, ptx: str, function: str, kernel: str) -> tuple[Hazard, ...]:
    """Return the hazards in a function's PTX and in ptxas's messages `log`.

    `function` is its mangled name, `kernel` its name in the hazards.
    """
    groups = groups_of(ptx, function)
    lines = [int(match[1]) for match in _WAIT_INJECTED.finditer(log) if match[2] == function]
    remark = serialized(log, ptx, function)
    serialised = remark is not None and _SERIALIZED.match(remark.text) is not None
    # ptxas also waits before a multiplication whose accumulator it copies itself: two accumulators of zeros are one
    # value to it. Nothing is wrong then, but such a wait may make others needless that the PTX lacks.
    needed = [line for line in lines if groups.statement(line) not in groups.multiplications]
    late = [*_late(needed, groups, ptx, kernel)]
    reported = {_places(each) for each in late}
    repair = _EACH if serialised else _PUT_IN if len(needed) < len(lines) else ""
    early = [each for each in _early(groups, ptx, kernel, repair) if _places(each) not in reported]
    return (*late, *early, *_open(groups, ptx, kernel), *_unfenced(ptx, function, kernel))


def _late(lines: list[int], groups: Groups, ptx: str, kernel: str) -> Iterator[Hazard]:
    """Yield a hazard for each PTX line in `lines`, at which ptxas inserted a wait.

    It describes the last use of a result in flight up to that line, if one is found in the PTX.
    """
    for line in lines:
        known = [each for each in groups.in_flight if each.use <= line and not each.writes_input]
        use = max(known, key=lambda each: each.use, default=None)
        if use is None:
            message = (
                "a multiplication is in flight where its registers are used or the kernel ends: no wgmma.wait_group"
            )
            message += f" before; {_PUT_IN}"
            yield hazard_at(KIND, kernel, ptx, line, groups.flying.get(groups.statement(line), 0), message)
        else:
            yield _touch(use, ptx, kernel, _PUT_IN)


def _places(hazard: Hazard) -> tuple[int, str, int, str]:
    return hazard.line, hazard.called_from, hazard.other_line, hazard.other_called_from


def _early(groups: Groups, ptx: str, kernel: str, repair: str) -> Iterator[Hazard]:
    """Yield a hazard for each source line that writes a register of A of a multiplication in flight, by multiplication.

    If `repair` is not empty, yield one also for each line that uses a result in flight: ptxas put in waits that may be
    for that use, and `repair` says so in words.
    """
    uses = [each for each in groups.in_flight if repair or each.writes_input]
    found = {(line_in_words(ptx, each.use), each.multiplication): each for each in reversed(uses)}
    for each in reversed(found.values()):
        yield _touch(each, ptx, kernel, repair or "ptxas may take another register for it, or not")


def _touch(use: InFlight, ptx: str, kernel: str, repair: str) -> Hazard:
    """Return the hazard of an early access to registers; `repair` says in words what ptxas put in."""
    if not use.wait:
        what = (
            "a register of A is written while the multiplication may read it"
            if use.writes_input
            else "the result of a multiplication in flight is used"
        )
        message = f"{what} before wgmma.wait_group; {repair}"
        return hazard_at(KIND, kernel, ptx, use.use, use.multiplication, message)
    return hazard_at(KIND, kernel, ptx, use.wait, use.multiplication, _too_weak(use, ptx, repair))


def _too_weak(use: InFlight, ptx: str, repair: str) -> str:
    if not use.closed:
        return f"the wait is for closed groups, and this multiplication is in none; {repair}"
    touches = "writes a register of A" if use.writes_input else "uses its result"
    return (
        f"wgmma.wait_group {use.left} leaves the multiplication in flight, and {line_in_words(ptx, use.use)} {touches}:"
        f" wgmma.wait_group {use.closed - 1} is needed; {repair}"
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
