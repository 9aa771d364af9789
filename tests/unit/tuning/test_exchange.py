"""Kernel Tuner's cache files and T4 results: written, read again, and taken by Kernel Tuner itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gemmlab.core.errors import RecordError
from gemmlab.tuning.exchange import read_any, write_cache, write_t4
from gemmlab.tuning.replay import ReplayBench
from gemmlab.tuning.search import Search
from gemmlab.tuning.strategies import Halving, run_within_budget
from support.made_up_spaces import valley

RECORD = valley(faults=0.1, wrong=0.1, noise=0.01)


@pytest.mark.parametrize("write", [write_cache, write_t4])
def test_a_space_comes_back(tmp_path: Path, write: Callable[..., None]) -> None:
    write(RECORD, tmp_path / "a.json")
    found = read_any(tmp_path / "a.json")
    assert found.space == RECORD.space
    for place, one in enumerate(RECORD.outcomes):
        assert found.median_us(place) == pytest.approx(RECORD.median_us(place))
        assert bool(found.outcomes[place].fault) == bool(one.fault)
        assert found.outcomes[place].verify_s == pytest.approx(one.verify_s)


@pytest.mark.in_turns(20)
def test_a_cache_that_kernel_tuner_left_open_is_replayed(tmp_path: Path) -> None:
    write_cache(RECORD, tmp_path / "a.json")
    text = (tmp_path / "a.json").read_text().rstrip().removesuffix("}\n}") + ","
    (tmp_path / "b.json").write_text(text)
    record = read_any(tmp_path / "b.json")
    search = Search(record.space, ReplayBench(record), 200.0)
    run_within_budget(Halving(), search)
    best = search.best()
    assert best is not None
    assert record.median_us(best.place) <= 1.05 * record.best_us


def test_results_follow_the_schema_of_t4(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    tuner = pytest.importorskip("kernel_tuner")
    schema = Path(tuner.__file__).parent / "schema" / "T4" / "1.0.0" / "results-schema.json"
    write_t4(RECORD, tmp_path / "a.json")
    jsonschema.validate(json.loads((tmp_path / "a.json").read_text()), json.loads(schema.read_text()))


@pytest.mark.parametrize("text", ["", "{}", '{"cache": 3}', '{"schema_version": "9.0.0", "results": [{}]}', "[1]"])
def test_other_files_are_refused_with_their_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(RecordError, match=r"a\.json|version 9"):
        read_any(tmp_path / "a.json")
