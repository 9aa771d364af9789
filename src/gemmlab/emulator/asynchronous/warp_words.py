"""Warps and threads of a block in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gemmlab.core.words import counted
from gemmlab.emulator.asynchronous.host_words import lanes_of
from gemmlab.emulator.layout import FULL, LANES

_NAMED = 4
"""Largest number of threads that a message names one by one, if their numbers are not consecutive."""


def warps_in_words(warps: Iterable[int]) -> str:
    """Return `warp 3` or `warps 0 to 3 and 8`."""
    return _ranges("warp", sorted(dict.fromkeys(warps)))


def threads_in_words(lanes: Mapping[tuple[int, int], int]) -> str:
    """Return `thread 77`, `warps 0 to 7` or `threads 5, 37, 69, 101 and 4 others`.

    `lanes` are masks, by their block's rank in the cluster and their warp; ranks are named if there are several.
    """
    ranks = sorted({rank for rank, _warp in lanes})
    parts = []
    for rank in ranks:
        mine = {warp: mask for (owner, warp), mask in sorted(lanes.items()) if owner == rank}
        parts.append(_of_block(mine) + (f" of block {rank} of the cluster" if ranks[1:] else ""))
    return " and ".join(parts)


def _of_block(masks: Mapping[int, int]) -> str:
    if all(mask == FULL for mask in masks.values()):
        return warps_in_words(masks)
    threads = [warp * LANES + lane for warp, mask in masks.items() for lane in lanes_of(mask)]
    if len(threads) <= _NAMED or _consecutive(threads):
        return _ranges("thread", threads)
    named = ", ".join(str(thread) for thread in threads[:_NAMED])
    return f"threads {named} and {counted(len(threads) - _NAMED, 'other')}"


def _consecutive(numbers: list[int]) -> bool:
    return numbers[-1] - numbers[0] == len(numbers) - 1


def _ranges(noun: str, numbers: list[int]) -> str:
    runs = list[list[int]]()
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    plural = "s" if len(numbers) > 1 else ""
    return f"{noun}{plural} {', '.join(parts[:-1])}{' and ' if parts[1:] else ''}{parts[-1]}"
