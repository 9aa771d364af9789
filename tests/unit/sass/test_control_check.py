"""The check of control codes: compiled code passes, and each kind of fault is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from gemmlab.core.errors import UsageError
from gemmlab.sass.checking.control_codes import Finding, check_function
from gemmlab.sass.checking.latencies import latencies
from gemmlab.sass.instruction import Control, Instruction, SassFunction
from gemmlab.sass.register_accesses import ASYNCHRONOUS, UnknownAccessError
from support.changed_code import subject
from support.cuda_source import needs_compiler
from support.sass_corpus import functions

pytestmark = needs_compiler

ARCHS = ("sm_80", "sm_89", "sm_90")
KERNELS = ("naive", "thread_tile_2d", "async_copy", "reduce_peak")


def changed(
    function: SassFunction, change: Callable[[Instruction], Control | None], arch: str = "sm_80"
) -> tuple[Instruction, tuple[Finding, ...]]:
    """The first instruction for which `change` gives other control codes, and what the check finds then."""
    code = list(function.instructions)
    for index, instruction in enumerate(code):
        control = change(instruction)
        if control is not None:
            code[index] = replace(instruction, control=control)
            return instruction, check_function(replace(function, instructions=tuple(code)), arch)
    raise AssertionError("no such instruction")


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_compiled_code_passes(kernel: str, arch: str) -> None:
    size = "64" if kernel != "reduce_peak" else "4096"
    assert check_function(subject(kernel, arch, size).function, arch) == ()


@pytest.mark.in_turns(20)
def test_a_wait_bit_that_is_cleared_is_found() -> None:
    function = subject("naive", "sm_80", "64").function

    def cleared(instruction: Instruction) -> Control | None:
        if instruction.opcode == "FFMA" and instruction.control.wait_mask:
            return replace(instruction.control, wait_mask=0)
        return None

    consumer, found = changed(function, cleared)
    assert "not waited for" in {finding.fault for finding in found}
    assert consumer.address in {finding.consumer.address for finding in found}
    assert "is not waited for" in found[0].reason
    assert "LDG" in {finding.producer.opcode for finding in found}


@pytest.mark.in_turns(20)
def test_a_stall_that_is_too_short_names_the_latency() -> None:
    function = subject("naive", "sm_80", "64").function
    code = function.instructions

    def lowered(instruction: Instruction) -> Control | None:
        following = code[min(instruction.address // 16 + 1, len(code) - 1)]
        if instruction.opcode == "FFMA" == following.opcode and instruction.control.stall >= 4:
            return replace(instruction.control, stall=1)
        return None

    _, found = changed(function, lowered)
    (finding,) = (one for one in found if one.consumer.opcode == "FFMA")
    assert finding.fault == "too early"
    assert finding.reason == "read after 1 cycles; FFMA to FFMA (value): 4 cycles on sm_80"


@pytest.mark.in_turns(20)
def test_an_operand_overwritten_before_it_was_read_is_found() -> None:
    function = subject("async_copy", "sm_80", "64").function

    def unguarded(instruction: Instruction) -> Control | None:
        if instruction.opcode in ("STS", "STG", "LDGSTS") and instruction.control.read_barrier != 7:
            return replace(instruction.control, read_barrier=7)
        return None

    _, found = changed(function, unguarded)
    assert found
    assert {finding.fault for finding in found} == {"overwritten too early"}


def test_a_reuse_flag_on_a_register_that_changes_is_found() -> None:
    function = subject("naive", "sm_80", "64").function
    code = list(function.instructions)
    place = next(
        n for n, (one, two) in enumerate(pairwise(code))
        if one.opcode == "FFMA" == two.opcode and not two.control.wait_mask
    )  # fmt: skip
    # The first writes the register that it flags, and the second reads it in the same place.
    one, two = code[place], code[place + 1]
    result = one.operands[0]
    code[place] = replace(one, operands=(result, replace(result, reuse=True), *one.operands[2:]))
    code[place + 1] = replace(two, operands=(two.operands[0], result, *two.operands[2:]))
    found = check_function(replace(function, instructions=tuple(code)), "sm_80")
    assert "reuse" in {finding.fault for finding in found}


def test_asynchronous_instructions_are_refused_by_name() -> None:
    function = next(
        function
        for function in functions("hopper", "sm_90a").values()
        if any(instruction.opcode == "HGMMA" for instruction in function.instructions)
    )
    with pytest.raises(UnknownAccessError, match="is asynchronous: HGMMA"):
        check_function(function, "sm_90a")


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("kernel", ["wgmma_tf32", "by_tile"])
def test_the_rest_of_asynchronous_code_is_checked(kernel: str) -> None:
    function = subject(kernel, "sm_90a", "64").function
    assert any(instruction.opcode in ASYNCHRONOUS for instruction in function.instructions)
    assert not [one for one in check_function(function, "sm_90a", partly=True) if one.certain]
    without = [replace(one, control=replace(one.control, wait_mask=0)) for one in function.instructions]
    found = check_function(replace(function, instructions=tuple(without)), "sm_90a", partly=True)
    assert "not waited for" in {one.fault for one in found}
    assert not {one.consumer.opcode for one in found} & ASYNCHRONOUS


def test_an_architecture_without_latencies_is_refused() -> None:
    function = subject("naive", "sm_80", "64").function
    with pytest.raises(UsageError, match=r"no latencies of sm_75 are recorded; there are those of sm_80"):
        check_function(function, "sm_75")


@pytest.mark.in_turns(20)
def test_a_barrier_is_seen_two_cycles_after_it_is_set() -> None:
    # An H200 reads the old value if the wait comes a cycle after the instruction that sets the barrier.
    function = subject("reduce_interleaved", "sm_90", "65536").function
    code = function.instructions

    def lowered(instruction: Instruction) -> Control | None:
        control, following = instruction.control, code[min(instruction.address // 16 + 1, len(code) - 1)]
        waits = following.control.wait_mask >> control.write_barrier & 1
        return replace(control, stall=1) if waits and control.stall == 2 and instruction.opcode == "MUFU" else None

    setter, found = changed(function, lowered, "sm_90")
    assert {(one.producer.address, one.fault) for one in found} == {(setter.address, "waited for too early")}
    assert found[0].reason == "the wait for SB0 comes less than 2 cycles after it is set"


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("stall", "right"), [(6, True), (5, False), (3, False)])
def test_a_load_keeps_away_from_the_blocks_barrier(stall: int, right: bool, arch: str) -> None:
    # With 5 cycles an H200 gave other sums; ptxas leaves 6, for each architecture.
    function = subject("vector_load", arch, "128").function
    code = function.instructions

    def lowered(instruction: Instruction) -> Control | None:
        following = code[min(instruction.address // 16 + 1, len(code) - 1)]
        meets = instruction.opcode == "BAR" and following.opcode == "LDS" and instruction.control.stall == 6
        return replace(instruction.control, stall=stall) if meets else None

    barrier, found = changed(function, lowered, arch)
    assert [one for one in found if one.producer.address != barrier.address] == []
    assert (not found) is right
    assert all((one.fault, one.register, one.certain) == ("too early", "the barrier", True) for one in found)


def test_second_words_and_addends_have_latencies_of_their_own() -> None:
    rows = latencies("sm_90").rows
    assert rows["IMAD.WIDE", "R+1", "read", "MOV", "value"] > rows["IMAD.WIDE", "R", "read", "MOV", "value"]
    assert rows["IMAD.WIDE", "R", "read", "IMAD.WIDE", "addend"] < rows["IMAD.WIDE", "R", "read", "IMAD.WIDE", "value"]
    # The second word of a wide addend is read later than the first.
    assert [rows["IMAD", "R", "read", "IMAD.HI", part] for part in ("addend", "addend+1")] == [4, 2]


@pytest.mark.parametrize("arch", ARCHS)
def test_every_record_has_the_same_sorts_of_rows(arch: str) -> None:
    rows = latencies(arch).rows
    assert {row[1] for row in rows} == {"R", "R+1", "UR", "P", "UP", "B"}
    assert {row[4] for row in rows} == {"", "guard", "value", "addend", "addend+1", "address", "all"}


def test_a_kind_of_few_rows_has_a_least_latency_by_its_values() -> None:
    # No result of HFMA2.MMA is recorded as a value before 6 cycles, and few are addends; a part is read 2 cycles later.
    found = latencies("sm_90")._latency(("HFMA2.MMA", "R", "read", "IMAD.HI", "addend"))
    assert found is not None
    assert (found.cycles, found.least) == (10, 4)
