"""The order of a ladder, determined by the `after` of each rung.

First comes the main line, from the rung with `after = ""` to the last one. Then come the branches, beginning with those
that leave the last rung of the line, by name if several leave one rung. A branch is a line again, followed by its own
branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from gemmlab.core.errors import UsageError
from gemmlab.core.words import nearest
from gemmlab.kernels.kernel import Kernel


class PlaceError(UsageError):
    """An error in the order of a ladder. It does not occur if the kernels `misplaced` are left out; another one may."""

    def __init__(self, message: str, *misplaced: Kernel) -> None:
        super().__init__(message)
        self.misplaced = misplaced


START = ""
"""The `after` of the first rung of a ladder."""


def in_order(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Return kernels sorted by operation and device, and within these in ladder order, with their `step`. Kernels that
    are no rungs follow the ladder of their operation and device, by id.

    Raises `PlaceError`, which names the files, for an id or alias that two kernels have, for `after` that names no rung
    of the same ladder, for two rungs that continue one, for a circle, for a ladder without a first rung, and for a
    branch without `after`.
    """
    _require_own_names(kernels)
    found = list[Kernel]()
    by_ladder = sorted(kernels, key=lambda kernel: (kernel.op, kernel.device, kernel.id))
    for (op, device), group in groupby(by_ladder, key=lambda kernel: (kernel.op, kernel.device)):
        members = list(group)
        rungs = _climbed([kernel for kernel in members if kernel.after is not None], f"{op} on {device}")
        found += [replace(rung, step=step) for step, rung in enumerate(rungs, start=1)]
        found += [_no_rung(kernel) for kernel in members if kernel.after is None]
    return found


def file_of(kernel: Kernel) -> str:
    """Return the kernel's file with its folder, as messages name it."""
    return f"{kernel.path.parent.name}/{kernel.path.name}"


def _require_own_names(kernels: Sequence[Kernel]) -> None:
    named = dict[str, Kernel]()
    for kernel in kernels:
        if kernel.id in named:
            both = f"{file_of(named[kernel.id])} and {file_of(kernel)}"
            raise PlaceError(f"two kernels named {kernel.id}: {both}", kernel)
        named[kernel.id] = kernel
    for kernel in kernels:
        for alias in kernel.aliases:
            if alias in named:
                other = named[alias]
                of = f"{other.id} ({file_of(other)})"
                raise PlaceError(f"{file_of(kernel)}: alias {alias!r} is a name of {of}", kernel)
            named[alias] = kernel


def _no_rung(kernel: Kernel) -> Kernel:
    if kernel.branch:
        raise PlaceError(f"{file_of(kernel)}: a branch without `after`, which names the rung that it leaves", kernel)
    return kernel


def _climbed(rungs: Sequence[Kernel], ladder: str) -> list[Kernel]:
    """Return the rungs of one ladder in order, from `rungs` sorted by id. Raises `PlaceError`; `ladder` is its name
    there.
    """
    known = {rung.id: rung for rung in rungs}
    following = dict[str, Kernel]()
    branches = dict[str, list[Kernel]]()
    for rung in rungs:
        before = rung.after or START
        if before != START and before not in known:
            wrong = f"{file_of(rung)}: after = {before!r} is no rung of {ladder}; {nearest(before, known)}"
            raise PlaceError(wrong, rung)
        if rung.branch:
            branches.setdefault(before, []).append(rung)
        elif before in following:
            raise PlaceError(_both_follow(following[before], rung, before, ladder), rung)
        else:
            following[before] = rung
    order = [*_from(START, following, branches)]
    placed = {rung.id for rung in order}
    if left := {rung.id: rung for rung in rungs if rung.id not in placed}:
        raise PlaceError(f"the ladder of {ladder} runs in a circle: {_circle(left)}", *left.values())
    if order and START not in following:
        raise PlaceError(f"no rung begins the ladder of {ladder}: {file_of(order[0])} is a branch", *order)
    return order


def _from(before: str, following: Mapping[str, Kernel], branches: Mapping[str, Sequence[Kernel]]) -> Iterator[Kernel]:
    """Yield the rungs after the rung `before`: the line to its end, then all branches, from the line's end back to
    `before`.
    """
    line = list[Kernel]()
    place = before
    while place in following:
        line.append(following[place])
        place = line[-1].id
    yield from line
    for left in (*(rung.id for rung in reversed(line)), before):
        for branch in branches.get(left, ()):
            yield branch
            yield from _from(branch.id, following, branches)


def _both_follow(first: Kernel, second: Kernel, before: str, ladder: str) -> str:
    what = f"continue {before}" if before != START else f"begin the ladder of {ladder}"
    return f"{file_of(first)} and {file_of(second)} both {what}; `branch = true` makes one of them a side branch"


def _circle(left: Mapping[str, Kernel]) -> str:
    """Return a circle among rungs of `left`, which no line from a first rung reaches: `a.cu after b, b.cu after a`."""
    way, place = list[str](), next(iter(left))
    while place not in way:
        way.append(place)
        place = str(left[place].after)
    return ", ".join(f"{file_of(left[name])} after {left[name].after}" for name in way[way.index(place) :])
