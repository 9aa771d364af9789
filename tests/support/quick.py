"""The quick run of the suite (`make test`): slow tests are left out, long lists of cases are thinned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pytest

QUICK = "--quick"
MARKERS = (
    "slow: left out by --quick",
    "sampled(n): --quick runs n of the test's cases instead of 1",
)
CASES = 1
"""Cases of a test that the quick run takes: the last of its list. More are spread over the list."""


def is_chosen(index: int, count: int, wanted: int) -> bool:
    """Return whether case `index` of `count` is one of `wanted` cases that are spread evenly over the list."""
    if wanted >= count:
        return True
    if wanted == 1:
        return index == count - 1
    return index in {round(step * (count - 1) / (wanted - 1)) for step in range(wanted)}


def split(items: Iterable[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests of the quick run and the rest, both in their order."""
    families = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        families[item.nodeid.partition("[")[0]].append(item)
    quick, rest = list[pytest.Item](), list[pytest.Item]()
    for family in families.values():
        cases = [item for item in family if item.get_closest_marker("slow") is None]
        rest += [item for item in family if item.get_closest_marker("slow") is not None]
        for index, item in enumerate(cases):
            sampled = item.get_closest_marker("sampled")
            chosen = is_chosen(index, len(cases), CASES if sampled is None else int(sampled.args[0]))
            (quick if chosen else rest).append(item)
    return quick, rest
