"""The record of blind mutations has the index of every mutation that changed bits, and can be judged again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

import sass_mutations
from support.cuda_source import needs_compiler

ROWS = [(2, "same"), (3, "changed"), (4, "same"), (7, "fault"), (8, "changed")]


def test_ranges_are_as_few_as_possible() -> None:
    assert sass_mutations.ranges([]) == []
    assert sass_mutations.ranges([8, 2, 3, 4, 7]) == [[2, 5], [7, 9]]


def test_a_record_gives_the_states_again() -> None:
    record = {"ran": [[2, 5], [7, 9]], "differing": {"changed": [3, 8], "fault": [7]}}
    assert sass_mutations.rows_of(record) == ROWS == sass_mutations.rows_of({"rows": [list(row) for row in ROWS]})


def test_a_record_without_indices_is_refused() -> None:
    with pytest.raises(SystemExit, match="not their indices"):
        sass_mutations.rows_of({"states": {"same": 3}})


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_judged_record_can_be_judged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sass_mutations, "ProcessPoolExecutor", _Here)
    states, first, second = (tmp_path / name for name in ("states.json", "first.json", "second.json"))
    digests = [sass_mutations.build(number).artifact.digest for number in range(len(sass_mutations.SUBJECTS))]
    # Mutations 4, 10 and 16 change the smallest kernel.
    rows = [(4, "changed"), (10, "same"), (16, "fault")]
    states.write_text(json.dumps({"digests": digests, "rows": rows}), encoding="utf-8")
    sass_mutations.judge(states, first)
    sass_mutations.judge(first, second)
    assert first.read_text(encoding="utf-8") == second.read_text(encoding="utf-8")
    record: dict[str, Any] = json.loads(first.read_text(encoding="utf-8"))
    assert record["differing"] == {"changed": [4], "fault": [16]}
    assert record["ran"] == [[4, 5], [10, 11], [16, 17]]
    assert record["states"] == {"changed": 1, "same": 1, "fault": 1}
    assert record["changed_and_accused"] + len(record["changed_and_not_accused"]) == 2
    assert set(record["changed_and_uncertain"]) <= {4, 16}


class _Here:
    """A pool that judges in this process."""

    def __init__(self, **_: object) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @staticmethod
    def map(
        function: Callable[[tuple[int, str]], dict[str, Any]], rows: Iterable[tuple[int, str]], **_: object
    ) -> Iterator[dict[str, Any]]:
        return map(function, rows)
