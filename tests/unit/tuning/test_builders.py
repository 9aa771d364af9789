"""Waiting for compilers."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from gemmlab.kernels.by_name import named_kernel
from gemmlab.tuning.builders import Builders, Code

KEYS = [(name, "sm_90", ()) for name in "abc"]


@pytest.fixture
def builders(monkeypatch: pytest.MonkeyPatch) -> Builders:
    found = Builders(named_kernel("naive"), 1)
    monkeypatch.setattr(found, "_under_way", {key: Future[Code]() for key in KEYS})
    return found


@pytest.mark.parametrize(("done", "expected"), [((), 0), ((1,), 1), ((2,), 2), ((1, 2), 1)])
def test_the_first_that_is_compiled_is_returned(builders: Builders, done: tuple[int, ...], expected: int) -> None:
    for index in done:
        builders._under_way[KEYS[index]].set_result(Code(1.0))
    assert builders.soonest(KEYS, 0.01) == expected
