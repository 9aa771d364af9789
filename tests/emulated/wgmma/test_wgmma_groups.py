"""Multiplications whose groups or warpgroups are not whole are reported with the lines of the code that is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

import gemmlab
from gemmlab.core.hazard import Hazard

FILE = Path(__file__).with_name("wgmma_groups.cu")
LINES = FILE.read_text().splitlines()


def line_of(mark: str) -> int:
    (found,) = (number for number, line in enumerate(LINES, 1) if line.endswith(f"// {mark}"))
    return found


def hazards(kernel: str, threads: int = 128, grid: int = 1) -> list[Hazard]:
    """Those of a launch."""
    done = gemmlab.launch(
        FILE, kernel, args=[np.ones(2048, np.float32)], grid=grid, threads=threads, device="emulated:sm_90a"
    )
    return list(done.hazards or ())


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("kernel", ["whole", "in_turn", "left_behind_wait", "refilled_behind_wait", "chain_waited"])
@pytest.mark.sampled(5)
def test_right_kernels_have_no_hazard(kernel: str) -> None:
    assert hazards(kernel) == []


@pytest.mark.parametrize("kernel", ["whole", "in_turn"])
@pytest.mark.sampled(2)
def test_two_warpgroups_have_no_hazard(kernel: str) -> None:
    assert hazards(kernel, 256) == []


@pytest.mark.parametrize(("threads", "warps"), [(96, "3 warps"), (64, "2 warps"), (160, "1 warp")])
@pytest.mark.sampled(3)
def test_a_block_that_ends_within_a_warpgroup_is_reported(threads: int, warps: str) -> None:
    (found,) = hazards("whole", threads)
    assert (found.kind, found.line) == ("warpgroup", line_of("multiply"))
    assert found.called_from == f"wgmma_groups.cu:{line_of('issued')}"
    assert f"the block has {warps} of this warpgroup" in found.message


def test_a_group_that_nothing_closes_is_reported_though_ptxas_closed_it() -> None:
    (found,) = hazards("not_committed")
    assert (found.kind, found.line, found.other_line) == ("wgmma", line_of("wait"), line_of("multiply"))
    assert "no wgmma.commit_group between" in found.message
    assert found.called_from == f"wgmma_groups.cu:{line_of('waits for nothing')}"
    assert found.other_called_from == f"wgmma_groups.cu:{line_of('never committed')}"
    assert found.called_text.endswith("// waits for nothing")
    assert found.other_called_text.endswith("// never committed")


def test_a_wait_that_leaves_too_many_groups_is_named() -> None:
    (found,) = hazards("one_left")
    assert (found.kind, found.line, found.other_line) == ("wgmma", line_of("wait"), line_of("multiply"))
    assert "wgmma.wait_group 1 leaves the multiplication in flight" in found.message
    assert "wgmma.wait_group 0 is needed" in found.message
    assert f"wgmma_groups.cu:{line_of('used')}" in found.message
    assert found.called_from == f"wgmma_groups.cu:{line_of('leaves one')}"
    assert found.other_called_from == f"wgmma_groups.cu:{line_of('left')}"


def test_a_result_used_in_flight_is_reported_where_ptxas_waits_after_each_multiplication() -> None:
    (found,) = hazards("added_early")
    assert (found.kind, found.line, found.other_line) == ("wgmma", line_of("wait"), line_of("multiply"))
    assert found.called_from == f"wgmma_groups.cu:{line_of('one too many')}"
    assert found.other_called_from == f"wgmma_groups.cu:{line_of('added')}"
    assert "wgmma.wait_group 0 is needed; ptxas put in a wait after each multiplication" in found.message


def test_two_results_of_zeros_are_right_though_ptxas_waits_between_them() -> None:
    assert hazards("zeros_once") == []
    assert hazards("zeros_waited") == []


def test_a_result_of_zeros_used_in_flight_is_reported_though_ptxas_waited_before_it() -> None:
    (found,) = hazards("zeros_early")
    assert (found.kind, found.line, found.other_line) == ("wgmma", line_of("used"), line_of("multiply"))
    assert found.called_from.startswith(f"wgmma_groups.cu:{line_of('zeros used')}")
    assert found.other_called_from.startswith(f"wgmma_groups.cu:{line_of('of zeros')}")
    assert "the result of a multiplication in flight is used before wgmma.wait_group" in found.message


def test_a_kernel_that_never_waits_is_reported_with_its_multiplication() -> None:
    (found,) = hazards("never_waited")
    assert (found.kind, found.line, found.other_line) == ("wgmma", line_of("ends"), line_of("multiply"))
    assert found.other_called_from == f"wgmma_groups.cu:{line_of('never waited')}"


def test_a_result_that_is_the_next_multiplications_a_needs_a_wait() -> None:
    (found,) = hazards("chain_early")
    assert (found.kind, found.line, found.other_line) == ("wgmma", line_of("next"), line_of("first"))


def test_a_register_of_a_that_is_written_in_flight_is_reported() -> None:
    (found,) = hazards("left_in_flight")
    assert (found.kind, found.line) == ("wgmma", line_of("left again"))
    assert "a register of A is written while the multiplication may read it" in found.message


def test_registers_that_nobody_releases_are_reported() -> None:
    first, second = hazards("starved", 384)
    assert (first.kind, second.kind) == ("setmaxnreg", "deadlock")
    assert first.line == line_of("starved")
    assert "setmaxnreg.inc to 240 registers: warps 4 to 11 of the block wait for more" in first.message


def test_a_copy_over_an_operand_is_reported_though_a_barrier_is_behind_the_issue() -> None:
    (found,) = hazards("refilled_in_flight")
    assert (found.kind, found.line, found.other_line) == ("race", line_of("refill"), line_of("multiply"))
    assert "overwrites shared memory that thread 0 may still read" in found.message


@pytest.mark.parametrize(("kernel", "operand"), [("left_beyond", "A"), ("right_beyond", "B")])
@pytest.mark.sampled(2)
def test_a_wrong_descriptor_is_named(kernel: str, operand: str) -> None:
    (found,) = hazards(kernel)
    assert (found.kind, found.line) == ("out of bounds", line_of("multiply"))
    what = f"16-byte read of shared memory by the descriptor of {operand} "
    assert f"{what}(start 0x3f000, leading 128 B, stride 256 B, no swizzle) at byte" in found.message


def test_an_operand_that_another_block_stores_needs_the_clusters_barrier() -> None:
    assert hazards("far_operand", grid=2) == []
    found = hazards("early_operand", grid=2)
    assert {hazard.kind for hazard in found} == {"race"}
    assert (found[0].line, found[0].other_line) == (line_of("multiply"), line_of("from afar"))
    assert "by the descriptor of" in found[0].message
    assert "(ST.E) of the cluster with nothing between" in found[0].message
