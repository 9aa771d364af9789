"""The main loop's figures against counts by hand, on code that was compiled once and kept."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from gemmlab.analysis.arithmetic import FMA, TENSOR, WGMMA, WGMMA_TF32
from gemmlab.analysis.issue_slots import ALU, ISSUE, L1, explain_issue, in_words, peak_gflops
from gemmlab.analysis.main_loop import LoopReport, explain_loop, moved_accumulators
from gemmlab.core.counters import SiteCounters
from gemmlab.core.gpu import limits, model
from gemmlab.sass.instruction import SassFunction
from support.sass_corpus import functions, written

_KINDS = {"LDS": "shared load", "STS": "shared store", "LDG": "global load", "BAR": "barrier"}


def counted(function: SassFunction, executed: dict[int, int] | int = 8, wavefronts: int = 1) -> list[SiteCounters]:
    """As if every instruction, or each at its address, had run so often; shared accesses take so many wavefronts."""
    sites = []
    for i in function.instructions:
        times = executed if isinstance(executed, int) else executed.get(i.address, 0)
        shared = i.opcode in ("LDS", "STS")
        sites.append(
            SiteCounters(
                i.address, i.name, kind=_KINDS.get(i.opcode, ""), executed=times,
                requests=times if i.opcode in _KINDS and i.opcode != "BAR" else 0,
                wavefronts=times * wavefronts if shared else 0,
                sectors=16 * times if i.opcode == "LDG" else 0,
            )
        )  # fmt: skip
    return sites


def explained(function: SassFunction, arch: str = "sm_90") -> LoopReport:
    found = explain_loop(function, counted(function), arch)
    assert found is not None
    return found


@dataclass(frozen=True)
class ByHand:
    """Counted on paper in the listing that `nvdisasm -g -hex -c` printed, from the label to the branch back.

    `stall`: bits [108:105] of each encoding added up. `yields`: bit 109 clear. `waits`: bits [121:116] not zero.
    `reused` of `read`: `.reuse` among the vector registers that FFMA, FADD, FMUL, IMAD, IADD3, VIADD, MOV, ISETP and
    FSETP read, RZ left out. `moved`: FFMA whose first and last register differ.
    """

    mix: dict[str, int]
    wide_shared: int
    wide_global: int
    reused: int
    read: int
    moved: int
    stall: int
    yields: int
    waits: int
    barriers: int = 0


DOT = {"IMAD": 2, "MOV": 2, "LDG": 2, "IADD3": 5, "ISETP": 1, "FFMA": 4, "BRA": 1}
OUTER = {"LDS": 2, "IADD3": 3, "ISETP": 1, "FFMA": 16, "BRA": 1}
ROTATE = {"IADD3": 1, "FFMA": 3, "ISETP": 1, "MOV": 1, "BRA": 1}
NEIGHBOURS = {"STS": 1, "IADD3": 1, "BAR": 2, "ISETP": 1, "LDS": 2, "FADD": 1, "FMUL": 2, "FSETP": 1, "BRA": 1}
DOT_90 = {"IMAD": 1, "MOV": 3, "LDG": 2, "VIADD": 1, "IADD3": 4, "ISETP": 1, "FFMA": 4, "BRA": 1}
OUTER_90 = {"LDS": 2, "UIADD3": 1, "IADD3": 2, "ISETP": 1, "FFMA": 16, "BRA": 1}
ROTATE_90 = {"UIADD3": 1, "FFMA": 3, "ISETP": 1, "MOV": 1, "BRA": 1}
NEIGHBOURS_90 = {**NEIGHBOURS, "UIADD3": 1, "IADD3": 0}
# What is read: dot 12 by FFMA, 2 IMAD, 2 MOV, 5 IADD3 (one each, beside RZ and literals), 1 ISETP, or 1 IMAD, 3 MOV,
# 1 VIADD, 4 IADD3. outer 48, 3 IADD3 or 2, 1 ISETP. rotate 6, 1 IADD3 or none, 1 ISETP, 1 MOV. neighbours 2 FADD,
# 2 FMUL, 1 FSETP, 1 ISETP, 1 IADD3 or none.
HAND = {
    ("dot", "sm_80"): ByHand(DOT, 0, 2, 0, 22, 4, 41, 5, 1),
    ("dot", "sm_89"): ByHand(DOT, 0, 2, 0, 22, 4, 41, 5, 1),
    ("dot", "sm_90"): ByHand(DOT_90, 0, 2, 0, 22, 4, 41, 5, 1),
    ("outer", "sm_80"): ByHand(OUTER, 2, 0, 9, 52, 0, 46, 4, 4),
    ("outer", "sm_89"): ByHand(OUTER, 2, 0, 12, 52, 0, 31, 1, 4),
    ("outer", "sm_90"): ByHand(OUTER_90, 2, 0, 12, 51, 0, 34, 1, 3),
    ("rotate", "sm_80"): ByHand(ROTATE, 0, 0, 0, 9, 3, 22, 2, 1),
    ("rotate", "sm_89"): ByHand(ROTATE, 0, 0, 0, 9, 3, 22, 2, 1),
    ("rotate", "sm_90"): ByHand(ROTATE_90, 0, 0, 0, 8, 3, 24, 2, 2),
    ("neighbours", "sm_80"): ByHand(NEIGHBOURS, 0, 0, 0, 7, 0, 44, 4, 2, 2),
    ("neighbours", "sm_89"): ByHand(NEIGHBOURS, 0, 0, 0, 7, 0, 44, 4, 2, 2),
    ("neighbours", "sm_90"): ByHand(NEIGHBOURS_90, 0, 0, 0, 6, 0, 43, 2, 2, 2),
}


@pytest.mark.parametrize(("name", "arch"), list(HAND))
def test_figures_equal_the_count_by_hand(name: str, arch: str) -> None:
    hand, found = HAND[name, arch], explained(functions("loops", arch)[name], arch)
    assert dict(found.mix) == {opcode: count for opcode, count in hand.mix.items() if count}
    whole = sum(hand.mix.values())
    assert (found.executed, found.code_bytes, found.never_ran) == (whole, 16 * whole, 0)
    assert found.ffma_share == pytest.approx(hand.mix.get("FFMA", 0) / whole)
    assert (found.wide_shared, found.wide_global) == (hand.wide_shared, hand.wide_global)
    assert found.reuse_rate == pytest.approx(hand.reused / hand.read)
    assert (found.moved, found.stall_cycles, found.yields, found.waits) == (
        hand.moved, hand.stall, hand.yields, hand.waits,
    )  # fmt: skip
    assert found.barriers == hand.barriers
    assert (found.conflicted, found.conflict_cycles, found.jumps) == (0, 0, 0)


def test_an_fma_slot_for_each_instruction_of_an_outer_product() -> None:
    # sm_90: 16 FFMA of 23 instructions; 1 ISETP and 2 IADD3 on the integer pipe, which is half as wide; UIADD3 is of
    # the uniform one.
    loop = explained(functions("loops", "sm_90")["outer"])
    issue = explain_issue(loop, limits("sm_90"))
    assert issue is not None
    assert (issue.cycles[ISSUE], issue.cycles[FMA], issue.cycles[ALU]) == (23, 16, 6)
    # Two shared wavefronts, one for each LDS, and four partitions that share the pipe.
    assert issue.cycles[L1] == 8
    assert issue.busiest == ISSUE
    assert issue.best == pytest.approx(16 / 23)
    first = in_words(issue, loop, limits("sm_90"))[0]
    slots = "23 issue slots, which alone would allow 70% of FMA peak"
    assert first == f"16 FFMA to 2 LDS.128 + 4 integer + 1 other: {slots}"


def test_half_the_lanes_make_the_fma_pipe_the_limit() -> None:
    # sm_80 has 64 lanes an SM: two cycles for each of 16 FFMA, more than 23 slots.
    loop = explained(functions("loops", "sm_80")["outer"], "sm_80")
    issue = explain_issue(loop, limits("sm_80"))
    assert issue is not None
    assert (issue.cycles[ISSUE], issue.cycles[FMA], issue.busiest, issue.best) == (23, 32, FMA, 1)


@pytest.mark.parametrize(
    ("shape", "arithmetic", "cycles", "peak_tflops"),
    [("64x128x16.F32", WGMMA, 128, 1), ("64x128x8.F32.TF32", WGMMA_TF32, 128, 0.5)],
)
def test_products_of_warpgroups(shape: str, arithmetic: str, cycles: float, peak_tflops: float) -> None:
    # Two of 64 x 128 x 16, of which a warp has a quarter: 131,072 operations, and a partition does 1024 a cycle, or 512
    # in TF32, whose instructions are half as deep.
    one = f"HGMMA.{shape} R24, gdesc[UR16], R24"
    function = written(f"a: {one}", one, "@P0 BRA `(.L_a)", "EXIT")
    loop = explain_loop(function, counted(function), "sm_90")
    assert loop is not None
    issue = explain_issue(loop, limits("sm_90"))
    assert issue is not None
    assert (issue.arithmetic, issue.count, issue.cycles[TENSOR], issue.work) == (arithmetic, 2, cycles, cycles)
    assert issue.busiest == TENSOR
    h200 = model("H200")
    assert peak_gflops(arithmetic, h200) == pytest.approx(peak_tflops * 4096 * h200.sms * h200.boost_mhz / 1e3)
    assert "of tensor peak" in in_words(issue, loop, limits("sm_90"))[0]


def test_wavefronts_can_outweigh_the_arithmetic() -> None:
    function = functions("loops", "sm_90")["outer"]
    loop = explain_loop(function, counted(function, wavefronts=8), "sm_90")
    assert loop is not None
    issue = explain_issue(loop, limits("sm_90"))
    assert issue is not None
    assert (issue.cycles[L1], issue.busiest, issue.best) == (64, L1, 0.25)
    assert issue.busiest_inside == ISSUE
    assert issue.best_inside == pytest.approx(16 / 23)


LOOP = (
    "MOV R9, 0x1",
    "a: FFMA R0, R1, R2, R0",
    "@P1 BRA `(.L_b)",
    "FFMA R3, R1, R2, R3",
    "b: FFMA R4, R1, R2, R5",
    "@P0 BRA `(.L_a)",
    "EXIT",
)


def weighted(*executed: int) -> LoopReport:
    function = written(*LOOP)
    found = explain_loop(function, counted(function, {16 * n: times for n, times in enumerate(executed)}), "sm_90")
    assert found is not None
    return found


def test_what_runs_now_and_then_counts_in_part() -> None:
    # Entered twice, 32 iterations, the middle block in a quarter of them.
    found = weighted(2, 32, 32, 8, 32, 32, 2)
    assert (found.iterations, found.mix["FFMA"], found.jumps) == (32, 2.25, 1)


def test_what_only_the_last_round_leaves_out_counts_as_once() -> None:
    assert weighted(2, 32, 32, 30, 32, 32, 2).mix["FFMA"] == 3


def test_what_never_ran_is_left_out() -> None:
    found = weighted(2, 32, 32, 0, 32, 32, 2)
    assert (found.mix["FFMA"], found.never_ran, found.code_bytes) == (2, 1, 80)


def test_a_sum_that_changes_its_register() -> None:
    lines = ("FFMA R0, R1, R2, R0", "FFMA R0, R1, R2, R3", "FFMA R0, R1, R2, RZ", "FADD R0, R1, R2",
             "HMMA.1688.F32.TF32 R4, R8, R12, R16")  # fmt: skip
    assert [moved_accumulators([i]) for i in written(*lines).instructions] == [0, 1, 0, 0, 1]


def test_no_loop_no_report() -> None:
    function = written("FFMA R0, R1, R2, R3", "EXIT")
    assert explain_loop(function, counted(function), "sm_90") is None
