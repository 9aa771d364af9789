"""Passes over a main loop: the same results, sound control codes, and what each is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gemmlab.core.errors import UsageError
from gemmlab.core.log import LOG
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.sass.checking import control_codes
from gemmlab.sass.checking.control_codes import check_function, distances
from gemmlab.sass.checking.latencies import latencies
from gemmlab.sass.checking.steps import Step, step_of, steps_of
from gemmlab.sass.instruction import Control, SassFunction
from gemmlab.sass.ordering import loop_passes
from gemmlab.sass.ordering.codes import repaired, replace_code, with_control
from gemmlab.sass.ordering.dependences import predecessors
from gemmlab.sass.ordering.loop_order import new_order
from gemmlab.sass.ordering.loop_passes import PASSES, main_blocks, ordered
from gemmlab.sass.ordering.registers import loop_conflicts, single_registers, with_registers
from gemmlab.sass.parse import parse
from gemmlab.sass.writing.cubin_code import with_words
from gemmlab.sass.writing.slots import EncodingError
from gemmlab.toolchain.nvdisasm import disassemble
from support.changed_code import subject
from support.cuda_source import needs_compiler
from support.sass_corpus import written

pytestmark = needs_compiler

CHOICES = [choice for count in range(len(PASSES) + 1) for choice in combinations(PASSES, count)]


@pytest.mark.in_turns(20)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("arch", ["sm_90", "sm_80", "sm_89"])
@pytest.mark.parametrize("kernel", ["maxas_64", "async_copy", "thread_tile_2d"])
def test_all_passes_keep_every_bit_and_pass_the_check(kernel: str, arch: str) -> None:
    build = subject(kernel, arch, "65")
    made = ordered(build.function, arch)
    assert list(made.order) != sorted(made.order)
    code = with_words(build.artifact.code, build.function, made.words, made.order)
    (function,) = parse(disassemble(code, kernel)).values()
    assert check_function(function, arch) == ()
    device = EmulatedDevice(arch)
    assert np.array_equal(build.run(code, device), build.run(build.artifact.code, device))


@pytest.mark.slow
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(CHOICES))
def test_any_choice_of_passes_keeps_every_bit(passes: tuple[str, ...]) -> None:
    build = subject("maxas_64", "sm_90", "65")
    made = ordered(build.function, "sm_90", passes)
    code = with_words(build.artifact.code, build.function, made.words, made.order)
    device = EmulatedDevice("sm_90")
    assert np.array_equal(build.run(code, device), build.run(build.artifact.code, device))


@pytest.mark.in_turns(20)
def test_no_pass_changes_nothing() -> None:
    build = subject("maxas_64", "sm_90", "65")
    made = ordered(build.function, "sm_90", ())
    assert with_words(build.artifact.code, build.function, made.words, made.order) == build.artifact.code
    assert made.before == made.after


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("choice", [(True, True), (True, False), (False, True), (False, False)])
def test_an_order_keeps_what_depends_on_what(choice: tuple[bool, bool]) -> None:
    function = subject("maxas_64", "sm_90", "65").function
    block = main_blocks(function)[0]
    steps = steps_of(function)[block.start : block.stop]
    order = new_order(steps, by_operands=choice[0], spread=choice[1])
    place = {old: new for new, old in enumerate(order)}
    assert sorted(order) == list(range(len(steps)))
    for later, earlier in enumerate(predecessors(steps)):
        assert all(place[one] < place[later] for one in earlier)


NO_BARRIERS = Control(stall=1, yield_=True, write_barrier=7, read_barrier=7, wait_mask=0, reuse=0)


def _with_barriers(function: SassFunction, controls: Mapping[int, Control]) -> list[Step]:
    """Return steps with these control codes by index, and without barriers at all others."""
    return [step_of(replace(one, control=controls.get(n, NO_BARRIERS))) for n, one in enumerate(function.instructions)]


def test_an_access_stays_behind_the_load_whose_barrier_guards_it() -> None:
    function = written(
        "LDS.128 R28, [R63]", "LDS.128 R64, [R62]", "FFMA R1, R2, R3, R1", "LDS.128 R16, [R61]",
        "FFMA R149, R64, R28, R149", "FFMA R150, R64, R2, R150", "EXIT",
    )  # fmt: skip
    apart = predecessors(
        _with_barriers(function, {0: replace(NO_BARRIERS, write_barrier=0), 1: replace(NO_BARRIERS, write_barrier=2)})
    )
    assert 3 not in apart[4] | apart[5]
    steps = _with_barriers(function, {3: replace(NO_BARRIERS, write_barrier=1)})
    shared = predecessors(steps)
    assert 3 in shared[4] & shared[5]
    assert 3 not in shared[2]
    order = new_order(steps, by_operands=True, spread=True)
    assert order.index(3) < min(order.index(4), order.index(5))


def test_a_write_stays_behind_the_barrier_that_says_the_register_is_read() -> None:
    function = written("STS [R4], R5", "STS [R6], R7", "FFMA R5, R2, R3, R1", "FFMA R8, R2, R3, R1", "EXIT")
    assert 1 not in predecessors(_with_barriers(function, {0: replace(NO_BARRIERS, read_barrier=0)}))[2]
    shared = predecessors(_with_barriers(function, {1: replace(NO_BARRIERS, read_barrier=0)}))
    assert 1 in shared[2]
    assert 1 not in shared[3]


@pytest.mark.in_turns(20)
def test_the_compilers_order_stays_where_no_control_codes_fit(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    function = subject("thread_tile_2d", "sm_90", "65").function

    def backwards(steps: Sequence[Step], **_: bool) -> list[int]:
        return [*range(len(steps) - 2, -1, -1), len(steps) - 1]

    monkeypatch.setattr(loop_passes, "new_order", backwards)
    with caplog.at_level("INFO", LOG.name):
        made = ordered(function, "sm_90", ["memory"])
    assert made.order == tuple(range(len(made.order)))
    assert check_function(made.function, "sm_90", distances(function)) == ()
    assert "the compiler's order stays: " in caplog.text


@pytest.mark.in_turns(20)
def test_ffma_order_and_reuse_flags_raise_the_reuse_rate() -> None:
    made = ordered(subject("maxas_64", "sm_90", "65").function, "sm_90", ("ffma", "reuse", "stalls"))
    assert made.after.reuse_rate > made.before.reuse_rate
    assert made.after.stall_cycles <= made.before.stall_cycles


@pytest.mark.in_turns(20)
def test_what_there_is_no_pass_for_is_named() -> None:
    with pytest.raises(UsageError, match=r"no pass 'magic'; there are registers, ffma"):
        ordered(subject("maxas_64", "sm_90", "65").function, "sm_90", ["magic"])


@pytest.mark.in_turns(20)
def test_registers_in_one_bank_are_exchanged() -> None:
    build = subject("vector_load", "sm_90", "65")
    code = build.function.instructions
    block = main_blocks(build.function)[0]
    free = single_registers(code)
    # The compiler left no conflicts here, so some are made first.
    tried = (dict(zip(free, np.random.default_rng(seed).permutation(free), strict=True)) for seed in range(40))
    numbers = next(one for one in tried if sum(loop_conflicts(code[block.start : block.stop], one, "sm_90")) > 2)
    numbers = {old: int(new) for old, new in numbers.items()}
    function = replace_code(build.function, [with_registers(each, numbers) for each in code])
    made = ordered(function, "sm_90", ["registers"])
    assert made.after.conflict_cycles < made.before.conflict_cycles
    device = EmulatedDevice("sm_90")
    cubin = with_words(build.artifact.code, function, made.words, made.order)
    assert np.array_equal(build.run(cubin, device), build.run(build.artifact.code, device))


@pytest.mark.in_turns(20)
def test_pairs_closer_than_the_record_may_stay_and_come_no_closer(monkeypatch: pytest.MonkeyPatch) -> None:
    function = subject("thread_tile_2d", "sm_90", "65").function
    compiled = distances(function)
    # As if the record had been made of code that never leaves less than 15 cycles.
    longer = {row: max(cycles, 15) for row, cycles in latencies("sm_90").rows.items()}
    monkeypatch.setattr(control_codes, "latencies", lambda arch: replace(latencies(arch), rows=longer))
    assert {finding.fault for finding in check_function(function, "sm_90")} == {"too early"}
    assert check_function(function, "sm_90", compiled) == ()
    made = ordered(function, "sm_90")
    assert made.unrecorded > 0
    old = dict(enumerate(made.order))
    for (first, second, relation), left in distances(made.function).items():
        assert left >= min(15, compiled.get((old[first], old[second], relation), 15))


@pytest.mark.in_turns(20)
def test_a_shorter_stall_than_the_compilers_is_mended() -> None:
    function = subject("thread_tile_2d", "sm_90", "65").function
    compiled = distances(function)
    first, second, _ = next(key for key, left in compiled.items() if key[1] == key[0] + 1 and left >= 4)
    code = list(function.instructions)
    code[first] = with_control(code[first], replace(code[first].control, stall=1, yield_=True))
    assert check_function(replace_code(function, code), "sm_90", compiled)
    made = repaired(function, code, "sm_90", compiled)
    assert distances(replace_code(function, made))[first, second, "read"] >= 4


@pytest.mark.in_turns(20)
def test_a_fault_of_barriers_is_refused() -> None:
    function = subject("thread_tile_2d", "sm_90", "65").function
    code = [with_control(one, replace(one.control, wait_mask=0)) for one in function.instructions]
    with pytest.raises(EncodingError, match="faults already"):
        ordered(replace_code(function, code), "sm_90")
