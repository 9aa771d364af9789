"""Records travel to JSON and back unharmed; anything else is refused by name."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmlab.core.environment import describe_environment
from gemmlab.core.errors import RecordError
from gemmlab.core.records import SCHEMA, Method, Record, Result, Sample, from_json, load_record, save_record, to_json

TEXT = st.text(max_size=8)
COUNT = st.integers(0, 2**40)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | COUNT | FINITE | TEXT, lambda inner: st.lists(inner, max_size=2), max_leaves=4
)
FACTS = st.dictionaries(TEXT, JSON_VALUES, max_size=3)
NOTES = st.lists(TEXT, max_size=2).map(tuple)
TIMES = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
SAMPLES = st.builds(Sample, COUNT, COUNT, TIMES, COUNT, COUNT, st.lists(FINITE, max_size=3).map(tuple))
RESULTS = st.builds(
    Result,
    contestant=TEXT,
    problem=FACTS,
    label=TEXT,
    flops=COUNT,
    threads=COUNT,
    facts=FACTS,
    samples=st.lists(SAMPLES, max_size=2).map(tuple),
    verified=st.none() | st.booleans(),
    max_error_ratio=st.none() | FINITE | st.just(math.inf),
    notes=NOTES,
)
METHODS = st.builds(Method, COUNT, COUNT, FINITE, FINITE, FINITE, COUNT, st.booleans(), COUNT, NOTES)
RECORDS = st.builds(
    Record,
    kind=st.sampled_from(["bench", "climb", "check"]),
    op=TEXT,
    environment=FACTS,
    device=FACTS,
    method=st.none() | METHODS,
    results=st.lists(RESULTS, max_size=2).map(tuple),
    notes=NOTES,
)
EXAMPLE = Record(
    kind="bench",
    op="gemm",
    environment={"numpy": "2"},
    device={},
    method=Method(15, 3, 3000.0, 1000.0, 20.0, 16, True, 0),
    results=(
        Result("numpy", {"m": 2}, "2x2x2", 16, 1, samples=(Sample(0, 1, 2.5, 3, 1, (2.5, 2.25, 0.1)),)),
        Result("mkl", {"m": 2}, "2x2x2", 16, 1, verified=False, max_error_ratio=math.inf),
    ),
)


@pytest.mark.in_turns(20)
@given(RECORDS)
def test_round_trip(record: Record) -> None:
    text = json.dumps(to_json(record), allow_nan=False)
    assert from_json(json.loads(text)) == record


def test_every_raw_sample_survives_beside_the_summary(tmp_path: Path) -> None:
    save_record(EXAMPLE, tmp_path / "r.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.json", "r.json.gz"]
    assert load_record(tmp_path / "r.json.gz") == EXAMPLE
    short = load_record(tmp_path / "r.json")
    assert short.results[0].samples == (Sample(0, 1, 2.5, 3, 1),)
    assert dataclasses.replace(short, results=()) == dataclasses.replace(EXAMPLE, results=())


def test_a_summary_has_a_line_for_each_result_with_its_median(tmp_path: Path) -> None:
    save_record(EXAMPLE, tmp_path / "r.json")
    rows = [line for line in (tmp_path / "r.json").read_text(encoding="utf-8").splitlines() if "contestant" in line]
    assert len(rows) == 2
    assert '"median_us": 2.5' in rows[0]
    assert "raw_us" not in rows[0]


def test_a_compressed_record_can_be_written_alone(tmp_path: Path) -> None:
    save_record(EXAMPLE, tmp_path / "r.json.gz")
    assert [path.name for path in tmp_path.iterdir()] == ["r.json.gz"]
    assert load_record(tmp_path / "r.json.gz") == EXAMPLE


def test_a_record_without_raw_times_leaves_none_of_another_beside_it(tmp_path: Path) -> None:
    save_record(EXAMPLE, tmp_path / "r.json")
    counted = dataclasses.replace(EXAMPLE, results=(dataclasses.replace(EXAMPLE.results[1]),))
    save_record(counted, tmp_path / "r.json")
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]
    assert load_record(tmp_path / "r.json") == counted


def test_a_record_of_version_0_1_0_is_read() -> None:
    """Its samples are objects, one each."""
    text = """{"schema": "gemmlab.record/1", "kind": "bench", "op": "gemm", "environment": {"numpy": "2"}, "device": {},
        "method": {"rounds": 15, "processes": 3, "min_time_us": 3000.0, "warm_up_us": 1000.0, "inner_us": 20.0,
            "raw_limit": 16, "interleaved": true, "seed": 0, "notes": [], "mode": "warm"},
        "results": [
            {"contestant": "numpy", "problem": {"m": 2}, "label": "2x2x2", "flops": 16, "threads": 1, "facts": {},
                "samples": [{"process": 0, "round": 1, "time_us": 2.5, "calls": 3, "inner": 1,
                    "raw_us": [2.5, 2.25, 0.1]}]},
            {"contestant": "mkl", "problem": {"m": 2}, "label": "2x2x2", "flops": 16, "threads": 1,
                "samples": [], "verified": false, "max_error_ratio": "inf"}
        ]}"""
    assert from_json(json.loads(text)) == EXAMPLE


@pytest.mark.parametrize("damage", [b"", b"\x1f\x8b\x08", b"no gzip"])
def test_a_damaged_compressed_record_is_refused(damage: bytes, tmp_path: Path) -> None:
    (tmp_path / "r.json.gz").write_bytes(damage)
    with pytest.raises(RecordError, match=r"r\.json\.gz"):
        load_record(tmp_path / "r.json.gz")


def test_a_cut_compressed_record_is_refused(tmp_path: Path) -> None:
    save_record(EXAMPLE, tmp_path / "r.json.gz")
    (tmp_path / "r.json.gz").write_bytes((tmp_path / "r.json.gz").read_bytes()[:-12])
    with pytest.raises(RecordError, match="cannot read"):
        load_record(tmp_path / "r.json.gz")


def test_a_failed_write_leaves_the_old_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_record(EXAMPLE, tmp_path / "r.json")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(RecordError, match="No space left"):
        save_record(Record("check", "gemm", {}, {}, None, ()), tmp_path / "r.json")
    assert load_record(tmp_path / "r.json.gz") == EXAMPLE
    assert load_record(tmp_path / "r.json").op == EXAMPLE.op
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.json", "r.json.gz"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"nowhere.r\.json"):
        save_record(EXAMPLE, tmp_path / "nowhere" / "r.json")
    with pytest.raises(RecordError, match="cannot read"):
        load_record(tmp_path / "nowhere" / "r.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ('{"schema": "gemmlab.record/1", ', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("\x00\x01", "not JSON"),
        ("[]", "not a gemmlab record"),
        ('{"schema": "other/1"}', "not a gemmlab record"),
        ('{"schema": "gemmlab.record/x"}', "not a gemmlab record"),
        ('{"schema": "gemmlab.record/3"}', "newer gemmlab"),
        ('{"schema": "gemmlab.record/1"}', "record.kind is missing"),
    ],
)
def test_refused_files(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(RecordError, match=said):
        load_record(path)


def test_bytes_that_are_not_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(b"\xff\xfe\x80")
    with pytest.raises(RecordError, match="not JSON"):
        load_record(path)


def _places(value: Any) -> list[tuple[Any, Any]]:
    items = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [(value, key) for key, _ in items] + [place for _, item in items for place in _places(item)]


@given(st.data())
def test_a_damaged_record_is_read_or_refused_never_a_crash(data: st.DataObject) -> None:
    document = json.loads(json.dumps(to_json(EXAMPLE)))
    container, key = data.draw(st.sampled_from(_places(document)))
    if data.draw(st.booleans()):
        del container[key]
    else:
        container[key] = data.draw(st.sampled_from([None, True, -1, 1.5, "x", [], {}, [[1]], {"a": 1}]))
    try:
        read = from_json(document)
    except RecordError:
        return
    assert from_json(json.loads(json.dumps(to_json(read)))) == read


def test_the_place_of_the_damage_is_named() -> None:
    document = to_json(EXAMPLE)
    document["results"][0]["samples"]["time_us"][0] = "fast"
    with pytest.raises(RecordError, match=r"record\.results\[0\]\.samples\[0\]\.time_us is malformed"):
        from_json(document)


@pytest.mark.parametrize("number", [10**400, -(10**400)])
def test_a_number_that_no_float_holds_is_malformed(number: int) -> None:
    document = to_json(EXAMPLE)
    document["method"]["min_time_us"] = number
    with pytest.raises(RecordError, match=r"record\.method\.min_time_us is malformed"):
        from_json(document)


def test_fields_of_later_minor_versions_are_ignored() -> None:
    assert from_json({**to_json(EXAMPLE), "added_later": 1}) == EXAMPLE


def test_the_schema_comes_first() -> None:
    assert next(iter(to_json(EXAMPLE).items())) == ("schema", SCHEMA)


def test_environment_says_what_changes_speed_and_hides_folders() -> None:
    seen = describe_environment(
        ["/usr/bin/gemmlab", "bench", "--peers", "mine=/home/someone/lib.so"],
        {"OPENBLAS_CORETYPE": "Zen", "GEMMLAB_CACHE_DIR": "/home/someone/cache", "SECRET": "x"},
    )
    assert seen["variables"] == {"OPENBLAS_CORETYPE": "Zen", "GEMMLAB_CACHE_DIR": "cache"}
    assert seen["command"] == ["gemmlab", "bench", "--peers", "mine=lib.so"]
    assert {"time_utc", "gemmlab", "python", "numpy", "os", "cpu", "load_average"} <= seen.keys()
    json.dumps(seen, allow_nan=False)
