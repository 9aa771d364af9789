"""Every hazard of the asynchronous machine: a kernel that has it is reported with its lines, and its twin is not."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from async_runs import HERE, hazards, line_of, outputs
from hazard_pairs import PAIRS, Pair, arguments

from gemmlab import launch
from gemmlab.emulator.asynchronous.engine import LANDING


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.sampled(len(PAIRS) // 6)
def test_the_bug_is_reported_with_its_lines(pair: Pair) -> None:
    found = hazards(pair.file, f"{pair.name}_bad", 128, *arguments(pair), grid=pair.grid)
    said = [hazard.explain() for hazard in found]
    mine = [hazard for hazard in found if hazard.kind == pair.kind and pair.words in hazard.message]
    assert mine, said
    if pair.line:
        assert line_of(pair.file, pair.line) in {hazard.line for hazard in mine}, said
    if pair.other:
        assert line_of(pair.file, pair.other) in {hazard.other_line for hazard in mine}, said
    assert {hazard.kind for hazard in found} <= {pair.kind} | pair.follows, said


@pytest.mark.parametrize("seed", ["", "4"])
@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.sampled(len(PAIRS) // 6)
def test_the_right_kernel_has_no_hazard(pair: Pair, seed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LANDING, seed)
    found = hazards(pair.file, f"{pair.name}_good", 128, *arguments(pair), grid=pair.grid)
    assert not found, [hazard.explain() for hazard in found]


def test_instructions_of_one_line_are_one_hazard() -> None:
    (found,) = hazards("proxies.cu", "unrolled_bad", 128, np.zeros(256, np.float32))
    assert found.count == 4


def test_a_race_with_a_bulk_store_names_the_wait_that_orders_it() -> None:
    found = hazards("stages.cu", "others_wait_bad", 128, np.zeros(256, np.float32))
    said = [hazard.message for hazard in found if hazard.line == line_of("stages.cu", "OTHERS")]
    assert said
    assert all("has to wait for its group (cp.async.bulk.wait_group.read), with a barrier" in each for each in said)


def test_the_cause_comes_first() -> None:
    (pair,) = (each for each in PAIRS if each.name == "parity")
    found = hazards(pair.file, "parity_bad", 128, *arguments(pair))
    assert [hazard.kind for hazard in found] == ["async copy", "race", "async copy"]
    assert "the wait before tested parity 0" in found[0].message
    assert "the block ends" in found[2].message


def test_a_launch_goes_on_after_an_arrival_at_a_block_that_has_ended() -> None:
    done = launch(
        HERE / "cluster_misuse.cu", "late_arrival_bad", 2, 128, [np.zeros(256, np.float32)], device="emulated:sm_90"
    )
    assert [hazard.kind for hazard in done.hazards or ()] == ["cluster"]
    assert outputs(done)[0].all()


@pytest.mark.parametrize("name", ["cluster_end", "late_arrival", "neighbour_ends", "sender_ends"])
@pytest.mark.sampled(4)
def test_an_access_to_a_block_that_ended_names_the_line_where_it_ended(name: str) -> None:
    pair = next(each for each in PAIRS if each.name == name)
    found = hazards(pair.file, f"{name}_bad", 128, *arguments(pair), grid=2)
    (mention,) = (each for hazard in found for each in hazard.mentions)
    assert mention.words == f"block {int(name == 'neighbour_ends')} of the cluster ends"
    assert mention.file.endswith(pair.file)
    lines = (HERE / pair.file).read_text().splitlines()
    begin = next(number for number, line in enumerate(lines, 1) if f"void {name}(" in line)
    end = lines.index("}", begin) + 1
    instance = lines.index(f"CLUSTERS({name})") + 1
    assert begin < mention.line <= end or mention.line == instance


def test_what_lies_before_the_tensor_is_not_stored() -> None:
    pair = next(each for each in PAIRS if each.name == "store_before")
    done = launch(HERE / pair.file, "store_before_bad", 1, 128, arguments(pair), device="emulated:sm_90")
    tensor = next(each for each in outputs(done) if each.shape == (16, 64))
    assert (tensor[:8, :28] == 1).all()
    assert tensor[0, 28] == 28
    assert tensor[8, 0] == 8 * 64


def test_helpers_of_ones_own_file_are_named_with_their_callers() -> None:
    pair = next(each for each in PAIRS if each.name == "ring_full_parity")
    found = hazards(pair.file, "ring_full_parity_bad", 128, *arguments(pair))[0]
    ring, wait, called = (f"rings.cu:{line_of('rings.cu', mark)}" for mark in ("FULL_WAIT", "HELPER", "FULL_RING"))
    assert found.called_from.startswith(f"{called}, from rings.cu:")
    assert found.other_called_from == f"{wait}, from {ring}, from {found.called_from}"
