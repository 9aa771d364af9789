"""Records that blocks of a page are made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from blocks import records


def test_a_record_is_read_if_it_is_there_and_of_its_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    assert records.load_json("some.json", "gemmlab.some/1") is None
    (tmp_path / "some.json").write_text('{"schema": "gemmlab.some/1", "figure": 3}', encoding="utf-8")
    assert records.load_json("some.json", "gemmlab.some/1") == {"schema": "gemmlab.some/1", "figure": 3}
    with pytest.raises(ValueError, match=r"some\.json: schema 'gemmlab\.some/1', not gemmlab\.some/2"):
        records.load_json("some.json", "gemmlab.some/2")
