"""The quick run of the suite (`make test`): slow tests are left out, long lists of cases are thinned.

What it leaves out changes from day to day, so that each test and each case that is not slow has its turn.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

QUICK, TURN = "--quick", "--quick-turn"
MARKERS = (
    "slow: left out by --quick",
    "sampled(n): --quick runs n of the test's cases instead of 1",
    "in_turns(n): --quick runs one in n of the tests of a file that are so marked",
)
CASES = 1
"""Cases of a test that the quick run takes. More are spread over the list."""


def is_chosen(index: int, count: int, wanted: int, turn: int) -> bool:
    """Return whether case `index` of `count` is one of the `wanted` cases of a turn. The cases are spread evenly over
    the list, and each turn takes the ones behind those of the turn before.
    """
    return wanted >= count or index in {(step * count // wanted + turn) % count for step in range(wanted)}


def split(items: Iterable[pytest.Item], turn: int) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests of the quick run of a turn and the rest, both in their order."""
    families = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        families[item.nodeid.partition("[")[0]].append(item)
    quick, rest = list[pytest.Item](), list[pytest.Item]()
    before = Counter[tuple[Path, int]]()
    for family in families.values():
        cases = [item for item in family if item.get_closest_marker("slow") is None]
        rest += [item for item in family if item.get_closest_marker("slow") is not None]
        own_turn = turn
        if cases and (turns := cases[0].get_closest_marker("in_turns")) is not None:
            place = (cases[0].path, int(turns.args[0]))
            # A file's name shifts its turns, so that all turns take about the same time.
            at = before[place] + zlib.crc32(cases[0].path.name.encode())
            before[place] += 1
            if (at - turn) % place[1]:
                rest += cases
                continue
            # The cases go on by one each time that the test runs: by n, some might never have their turn.
            own_turn = turn // place[1]
        for index, item in enumerate(cases):
            sampled = item.get_closest_marker("sampled")
            wanted = CASES if sampled is None else int(sampled.args[0])
            (quick if is_chosen(index, len(cases), wanted, own_turn) else rest).append(item)
    return quick, rest
