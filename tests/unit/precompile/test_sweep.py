"""A sweep's record that is damaged is refused with its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gemmlab.core.errors import RecordError
from gemmlab.precompile.sweep import SCHEMA, load_sweep

ROWS = [[8, 40, "0123456789ab"], [16, 64, "ba9876543210"]]


def record(**changed: Any) -> dict[str, Any]:
    kernels = {"block_tile": {"params": ["BK"], "archs": {"sm_80": ROWS}}}
    return {"schema": SCHEMA, "figures": ["registers", "code"], "kernels": kernels, **changed}


@pytest.mark.parametrize(
    "data",
    [
        [],
        {"schema": SCHEMA},
        record(figures=["registers"]),
        record(figures=5),
        record(kernels=[]),
        record(kernels={"block_tile": []}),
        record(kernels={"block_tile": {"params": ["BK"], "archs": [ROWS]}}),
        record(kernels={"block_tile": {"params": ["BK"], "archs": {"sm_80": [None]}}}),
    ],
)
def test_a_damaged_record_is_told_with_its_name(data: Any, tmp_path: Path) -> None:
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps(record()))
    assert [row.figures["registers"] for row in load_sweep(path)] == [40, 64]
    path.write_text(json.dumps(data))
    with pytest.raises(RecordError, match=r"sweep\.json is no gemmlab\.compile-sweep/1, or damaged"):
        load_sweep(path)


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[" * 100_000], ids=["cut", "bytes", "deep"])
def test_a_file_that_is_not_json_is_told_with_its_name(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "sweep.json"
    path.write_bytes(content)
    with pytest.raises(RecordError, match=r"sweep\.json is no"):
        load_sweep(path)
    with pytest.raises(RecordError, match=r"cannot read the record .*absent\.json"):
        load_sweep(tmp_path / "absent.json")
