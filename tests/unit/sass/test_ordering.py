"""Passes over a main loop: the same results, sound control codes, and what each is for."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gemmlab.core.errors import UsageError
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.sass.checking.control_codes import check_function
from gemmlab.sass.checking.steps import steps_of
from gemmlab.sass.ordering.codes import replace_code
from gemmlab.sass.ordering.dependences import predecessors
from gemmlab.sass.ordering.loop_order import new_order
from gemmlab.sass.ordering.loop_passes import PASSES, main_block, ordered
from gemmlab.sass.ordering.registers import loop_conflicts, single_registers, with_registers
from gemmlab.sass.parse import parse
from gemmlab.sass.writing.cubin_code import with_words
from gemmlab.toolchain.nvdisasm import disassemble
from support.changed_code import subject
from support.cuda_source import needs_compiler

pytestmark = needs_compiler

CHOICES = [choice for count in range(len(PASSES) + 1) for choice in combinations(PASSES, count)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("arch", ["sm_90", "sm_80", "sm_89"])
@pytest.mark.parametrize("kernel", ["maxas_64", "async_copy", "thread_tile_2d"])
def test_all_passes_keep_every_bit_and_pass_the_check(kernel: str, arch: str) -> None:
    build = subject(kernel, arch, "65")
    made = ordered(build.function, arch)
    code = with_words(build.artifact.code, build.function, made.words, made.order)
    (function,) = parse(disassemble(code, kernel)).values()
    assert check_function(function, arch) == ()
    device = EmulatedDevice(arch)
    assert np.array_equal(build.run(code, device), build.run(build.artifact.code, device))


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(CHOICES))
def test_any_choice_of_passes_keeps_every_bit(passes: tuple[str, ...]) -> None:
    build = subject("maxas_64", "sm_90", "65")
    made = ordered(build.function, "sm_90", passes)
    code = with_words(build.artifact.code, build.function, made.words, made.order)
    device = EmulatedDevice("sm_90")
    assert np.array_equal(build.run(code, device), build.run(build.artifact.code, device))


def test_no_pass_changes_nothing() -> None:
    build = subject("maxas_64", "sm_90", "65")
    made = ordered(build.function, "sm_90", ())
    assert with_words(build.artifact.code, build.function, made.words, made.order) == build.artifact.code
    assert made.before == made.after


@pytest.mark.parametrize("choice", [(True, True), (True, False), (False, True), (False, False)])
def test_an_order_keeps_what_depends_on_what(choice: tuple[bool, bool]) -> None:
    function = subject("maxas_64", "sm_90", "65").function
    block = main_block(function)
    steps = steps_of(function)[block.start : block.stop]
    order = new_order(steps, by_operands=choice[0], spread=choice[1])
    place = {old: new for new, old in enumerate(order)}
    assert sorted(order) == list(range(len(steps)))
    for later, earlier in enumerate(predecessors(steps)):
        assert all(place[one] < place[later] for one in earlier)


def test_ffma_order_and_reuse_flags_raise_the_reuse_rate() -> None:
    made = ordered(subject("maxas_64", "sm_90", "65").function, "sm_90", ("ffma", "reuse", "stalls"))
    assert made.after.reuse_rate > made.before.reuse_rate
    assert made.after.stall_cycles <= made.before.stall_cycles


def test_what_there_is_no_pass_for_is_named() -> None:
    with pytest.raises(UsageError, match=r"no pass 'magic'; there are registers, ffma"):
        ordered(subject("maxas_64", "sm_90", "65").function, "sm_90", ["magic"])


def test_registers_in_one_bank_are_exchanged() -> None:
    build = subject("vector_load", "sm_90", "65")
    code = build.function.instructions
    block = main_block(build.function)
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
