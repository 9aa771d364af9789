"""Verdicts follow from records, and each claim of the sources has one."""

from __future__ import annotations

from dataclasses import replace

import pytest

import time_claims
from blocks.claims_page import SOURCES, claims_block
from blocks.gpu_times import TIMES
from blocks.profiles import profiles
from blocks.records import ROOT, load
from blocks.speeds import VENDOR
from blocks.tensor_code import TIMES as STAGE_TIMES
from claims import evidence as evidence_module
from claims.claim import Claim, Verdict, finding, judged
from claims.evidence import CONFIG_COUNTS, COUNTS, Evidence, Missing
from count_configurations import missing
from gemmlab.core.records import Record, Result
from gemmlab.timing.peers import Spec

CLAIMS = [claim for source in SOURCES for claim in source.claims]


def claim(words: str) -> Claim:
    (found,) = (one for one in CLAIMS if words in one.said)
    return found


def with_records(monkeypatch: pytest.MonkeyPatch, **records: Record | None) -> None:
    monkeypatch.setattr(evidence_module, "load", lambda name: records.get(name.replace("/", "_").partition(".")[0]))


@pytest.mark.in_turns(20)
def test_every_claim_is_on_the_page_with_a_verdict() -> None:
    page = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    assert claims_block() in page
    for one in CLAIMS:
        found = finding(one)
        assert f"| {one.said} | {one.tested} | **{found.verdict}** |" in page
        assert one.tested or found.verdict in (Verdict.UNTESTABLE, Verdict.OPEN)
        assert found.figure


@pytest.mark.in_turns(20)
def test_what_the_emulator_can_count_has_been_counted() -> None:
    assert missing() == [], "run `make counts`"


def test_what_a_gpu_could_time_for_open_claims_is_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    times = load(TIMES)
    assert times is not None
    with_records(monkeypatch, h200_gemm=replace(times, results=()), h200_reduce=load("h200/reduce.json"))
    open_ones = [one for one in map(finding, CLAIMS) if one.times]
    assert open_ones
    wanted = time_claims.missing()
    awaited = {(label, who) for one in open_ones for label, contestants in one.times for who, _config in contestants}
    assert {(label, who) for label, contestants in wanted.items() for who, _config in contestants} == awaited
    for contestants in wanted.values():
        assert all(contestants.count(one) == 1 for one in contestants)
    # The library need not be installed where there is no GPU.
    monkeypatch.setattr(time_claims, "parse_contestant", lambda name, *_where: Spec(name, name))
    plan = time_claims.plan(wanted)
    assert {problem.label for problem in plan.problems} == set(wanted)
    for problem in plan.problems:
        taking_turns = [spec for spec in plan.contestants if plan.only(spec.name, problem)]
        assert len(taking_turns) == len(wanted[problem.label])
    assert plan.only("probe", plan.problems[0])


def test_a_verdict_follows_its_record(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = load(COUNTS)
    assert counts is not None
    traffic = claim("cut the words read from global memory")
    assert finding(traffic).verdict is Verdict.CONFIRMED
    more = {"global_load_sectors": 1e9}
    results = [
        replace(r, facts={**r.facts, "facts": {**r.facts["facts"], **more}})
        for r in counts.results
        if "facts" in r.facts
    ]
    with_records(monkeypatch, emulated_counters=replace(counts, results=tuple(results)))
    assert finding(traffic).verdict is Verdict.REFUTED
    assert finding(traffic).records == (COUNTS,)
    with_records(monkeypatch)
    found = finding(traffic)
    assert found.verdict is Verdict.OPEN
    assert f"`block_tile` ({CONFIG_COUNTS})" in found.figure
    assert found.count == ("block_tile", {})


def test_the_verdict_on_three_stages_follows_the_times(monkeypatch: pytest.MonkeyPatch) -> None:
    times = load(STAGE_TIMES)
    assert times is not None
    slow = claim("makes three stages slower")
    assert finding(slow).records == (STAGE_TIMES,)

    def timed(result: Result, us: float) -> Result:
        return replace(result, samples=tuple(replace(sample, time_us=us) for sample in result.samples))

    # As the source has it: only three stages by remainder are slow.
    as_claimed = tuple(
        timed(r, 1300.0 if (config := r.facts.get("config", {})).get("STAGES") == 3 and config["MODULO"] else 1200.0)
        for r in times.results
    )
    with_records(monkeypatch, **{"h200_tf32-stages": replace(times, results=as_claimed)})
    assert finding(slow).verdict is Verdict.CONFIRMED
    with_records(
        monkeypatch, **{"h200_tf32-stages": replace(times, results=tuple(timed(r, 1200.0) for r in times.results))}
    )
    assert finding(slow).verdict is Verdict.REFUTED
    with_records(monkeypatch)
    assert finding(slow).verdict is Verdict.OPEN


def test_the_counter_of_bank_conflicts_is_asked_of_every_profiled_rung(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = claim("counter of bank conflicts")
    found = [one for one in profiles() if not one.is_library]
    name = next(iter(metric for metric in found[0].metrics if "bank_conflicts" in metric and "_ld" in metric))
    silent = [replace(one, metrics={**one.metrics, name: 0.0}) for one in found]
    monkeypatch.setattr(evidence_module, "profiles", lambda: tuple(silent))
    assert finding(counter).verdict is Verdict.REFUTED
    loud = [replace(one, metrics={**one.metrics, name: 7.0}) if one.name == "warp_tile" else one for one in silent]
    monkeypatch.setattr(evidence_module, "profiles", lambda: tuple(loud))
    assert finding(counter).verdict is Verdict.CONFIRMED
    # Where addresses do conflict, the counter says nothing about the claim.
    loud = [replace(one, metrics={**one.metrics, name: 7.0}) if one.name == "vector_load" else one for one in silent]
    monkeypatch.setattr(evidence_module, "profiles", lambda: tuple(loud))
    assert finding(counter).verdict is Verdict.REFUTED
    monkeypatch.setattr(evidence_module, "profiles", tuple)
    assert finding(counter).verdict is Verdict.OPEN


def test_a_wrong_kernel_is_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = load(COUNTS)
    assert counts is not None
    wrong = tuple(replace(result, verified=False) for result in counts.results)
    with_records(monkeypatch, emulated_counters=replace(counts, results=wrong))
    assert finding(claim("cut the words read from global memory")).verdict is Verdict.OPEN


def test_times_are_compared_within_a_record_only(monkeypatch: pytest.MonkeyPatch) -> None:
    times = load(TIMES)
    assert times is not None
    ratio = Evidence().ratio(1024, "block_tile", VENDOR)
    assert 0 < ratio < 1
    assert Evidence().ratio(1024, VENDOR, "block_tile") == pytest.approx(1 / ratio)
    ours = replace(times, results=tuple(r for r in times.results if r.contestant != VENDOR))
    theirs = replace(times, results=tuple(r for r in times.results if r.contestant == VENDOR))
    monkeypatch.setattr(evidence_module, "matching", lambda pattern: [pattern.replace("*", "")])
    with_records(monkeypatch, h200_gemm=ours, h200_configs=theirs)
    with pytest.raises(Missing, match="in one record"):
        Evidence().ratio(1024, "block_tile", VENDOR)


def test_what_is_not_known_is_missing_and_no_error() -> None:
    with pytest.raises(Missing, match="the rung `no_such_rung`"):
        Evidence().count("no_such_rung")
    with pytest.raises(Missing, match="`no_such_rung` in"):
        Evidence().cpu("no_such_rung")
    with pytest.raises(Missing, match="counts of `naive`"):
        Evidence().facts("no/such.json", "naive")
    assert Evidence().facts(COUNTS, "naive")["global_store_sectors_per_request"] == 4
    with pytest.raises(Missing, match="a profile of"):
        Evidence().profile(12345, "naive")


def test_judged_needs_a_reason_to_confirm() -> None:
    assert judged(holds=True, figure="1").verdict is Verdict.CONFIRMED
    assert judged(holds=False, figure="1").verdict is Verdict.REFUTED
