"""Claims that wait for small runs on a GPU are open until the record is there, and then decided by it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import block_to_sm
import compiler_options
import streams
import time_claims
from blocks.claims_page import SOURCES
from blocks.dram_roofline import dram_block
from claims import evidence as evidence_module
from claims.claim import Finding, Verdict, finding
from claims.small_runs import (
    AT_128,
    BLOCK_TO_SM,
    COMPILER_OPTIONS,
    FAST_MATH_OFF,
    FAST_MATH_ON,
    ONE_BLOCK,
    PAST_128,
    STREAMS,
    TWO_BLOCKS,
    in_first_wave,
    same_place,
)
from gemmlab.devices.select import open_device
from support.cuda_source import needs_compiler

CLAIMS = {
    BLOCK_TO_SM: "no one can predict which SM", COMPILER_OPTIONS: "More than 128 registers",
    STREAMS: "several streams fill",
}  # fmt: skip


def decided(words: str, monkeypatch: pytest.MonkeyPatch, record: Mapping[str, Any] | None) -> Finding:
    (claim,) = (one for source in SOURCES for one in source.claims if words in one.said)
    monkeypatch.setattr(evidence_module, "load_json", lambda *_where: record)
    return finding(claim)


@pytest.mark.parametrize(("run", "words"), list(CLAIMS.items()))
def test_a_claim_waits_for_its_run(run: tuple[str, str, str], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, _schema, maker = run
    found = decided(words, monkeypatch, None)
    assert found.verdict is Verdict.OPEN
    assert found.figure == f"needs {name}, not measured yet: `python makers/{maker}`"
    assert (Path(block_to_sm.__file__).parent / maker).is_file()


def blocks(sms: list[int], start: list[int]) -> dict[str, Any]:
    return {"resident": 2, "sm": sms, "start": start}


def test_the_order_of_blocks_decides_by_both_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    ordered, other = blocks([0, 1, 0, 1], [0, 0, 5, 6]), blocks([0, 1, 1, 0], [0, 0, 5, 6])
    assert in_first_wave(ordered) == 1
    assert in_first_wave(blocks([0, 1, 0, 1], [0, 7, 5, 6])) == 0.5
    assert (same_place(ordered, ordered), same_place(ordered, other)) == (1, 0)
    words = CLAIMS[BLOCK_TO_SM]
    assert decided(words, monkeypatch, {"device": "G", "runs": [ordered, other]}).verdict is Verdict.CONFIRMED
    assert decided(words, monkeypatch, {"device": "G", "runs": [ordered, ordered]}).verdict is Verdict.REFUTED


def test_registers_past_128_decide_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(past: float) -> dict[str, Any]:
        times = {AT_128: 100.0, PAST_128: past, TWO_BLOCKS: 100.0, ONE_BLOCK: 110.0, FAST_MATH_OFF: 50.0,
                 FAST_MATH_ON: 50.0}  # fmt: skip
        shown = {name: {"time_us": us, "registers": 127, "instructions": 9} for name, us in times.items()}
        return {"device": "G", "rows": shown}

    words = CLAIMS[COMPILER_OPTIONS]
    assert decided(words, monkeypatch, rows(101.0)).verdict is Verdict.CONFIRMED
    assert decided(words, monkeypatch, rows(120.0)).verdict is Verdict.REFUTED
    assert decided("fast-math option", monkeypatch, rows(101.0)).verdict is Verdict.REFUTED


def test_streams_decide_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(several: float) -> dict[str, Any]:
        times = {"maxas_64, one stream": 100.0, "maxas_256, one stream": 150.0, "maxas_256, several streams": several}
        return {"device": "G", "streams": 8, "rows": {name: {"time_us": us} for name, us in times.items()}}

    assert decided(CLAIMS[STREAMS], monkeypatch, rows(60.0)).verdict is Verdict.CONFIRMED
    assert decided(CLAIMS[STREAMS], monkeypatch, rows(99.0)).verdict is Verdict.REFUTED


@needs_compiler
@pytest.mark.slow
def test_every_variant_of_the_compiler_options_is_right_and_keeps_its_cap() -> None:
    rows = compiler_options.measured(open_device("emulated:sm_90"), 128, timed=False)
    assert all(row["right"] for row in rows.values())
    assert all(row["registers"] <= row["cap"] for row in rows.values() if "cap" in row)
    assert rows[PAST_128]["registers"] > 128 >= rows[TWO_BLOCKS]["registers"]
    assert {TWO_BLOCKS, ONE_BLOCK, AT_128, PAST_128, FAST_MATH_OFF, FAST_MATH_ON} <= set(rows)


@pytest.mark.in_turns(20)
@needs_compiler
def test_the_places_of_blocks_are_recorded() -> None:
    sms, start = block_to_sm.run("emulated:sm_90", 4, 512)
    assert (sms, len(start), min(start)) == ([0] * 4, 4, 0)


def test_a_run_without_a_gpu_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    assert streams.main([]) == 3
    assert "torch is not installed" in capsys.readouterr().err


def test_times_that_are_new_are_put_beside_those_that_are_there(tmp_path: Path) -> None:
    path = tmp_path / "claims.json"
    assert time_claims.free(path) == path
    path.touch()
    assert time_claims.free(path) == tmp_path / "claims-2.json"
    (tmp_path / "claims-2.json").touch()
    assert time_claims.free(path) == tmp_path / "claims-3.json"


def test_no_rung_is_faster_than_the_roof_of_device_memory() -> None:
    rows = [line.split(" | ") for line in dram_block().splitlines() if line.startswith(("| [`", "| `"))]
    assert len(rows) > 10
    assert all(0 < float(row[5].rstrip("%")) <= 100 for row in rows)
