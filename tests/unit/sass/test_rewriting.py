"""Main loops that are written anew: the bits of the compiler's, sound control codes, few reads of three; refusals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from gemmlab.core.errors import UsageError
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.kernels.catalog import find_kernel
from gemmlab.sass.banks import bank_reads
from gemmlab.sass.blocks import flow_graph
from gemmlab.sass.checking.control_codes import check_function
from gemmlab.sass.checking.register_room import excess
from gemmlab.sass.instruction import Instruction, SassFunction
from gemmlab.sass.parse import parse
from gemmlab.sass.rewriting.compiled_loop import CompiledLoop, compiled_loops
from gemmlab.sass.rewriting.placement import placed
from gemmlab.sass.rewriting.register_cells import registers
from gemmlab.sass.rewriting.register_plan import LIMIT, planned
from gemmlab.sass.rewriting.temporaries import Named, named, twins_of
from gemmlab.sass.rewriting.variant import FASTEST
from gemmlab.sass.rewriting.written_loop import rewritten, written
from gemmlab.toolchain.cubin import read_cubin
from gemmlab.toolchain.line_tables import read_line_tables
from gemmlab.toolchain.nvdisasm import disassemble
from gemmlab.verify.changed_code import Build, build_of
from peak_loop.variants import VARIANTS
from support.changed_code import subject
from support.cuda_source import needs_compiler
from support.sass_corpus import written as listing

pytestmark = needs_compiler
ARCH = "sm_90"
LOOPS = {"nn": 2, "nt": 1, "tn": 2, "tt": 2}
"""Loops by layout: one for operands that come as float4, and one for others where that makes a difference."""
every_layout = pytest.mark.parametrize("layout", sorted(LOOPS))
every_variant = pytest.mark.parametrize("variant", sorted(VARIANTS))


NARROW = {"BN": 128, "BLOCKS": 6}
"""The tile of 128 x 128, on few blocks."""


@cache
def rung(size: str, layout: str = "nn", *, narrow: bool = False) -> Build:
    return build_of(find_kernel("peak_simt"), ARCH, f"{size}:{layout}", NARROW if narrow else {})


@cache
def anew(layout: str) -> tuple[bytes, SassFunction]:
    made = rung("128x256x40", layout)
    code = rewritten(made.artifact.code, made.function)
    return code, parse(disassemble(code, "anew"))[made.function.name]


def loops(layout: str = "nn") -> list[CompiledLoop]:
    return compiled_loops(rung("128x256x40", layout).function)


@pytest.mark.in_turns(20)
@every_layout
def test_every_loop_of_every_layout_is_written_anew(layout: str) -> None:
    code, function = anew(layout)
    assert len(loops(layout)) == LOOPS[layout]
    assert check_function(function, ARCH) == ()
    stated = read_cubin(code, "anew").functions[function.name].registers
    assert stated == LIMIT + 2
    assert excess(function, ARCH, stated) is None
    for loop in loops(layout):
        body = body_of(function, loop)
        assert len(body) < loop.stop - loop.start
        assert not any(one.is_idle for one in body)
        # The second of two iterations: the first begins with an empty operand cache.
        reads = bank_reads([*body, *body], ARCH)[len(body) :]
        three = [sum(some) for one, some in zip(body, reads, strict=True) if one.opcode == "FFMA"].count(3)
        assert three <= 16


def body_of(function: SassFunction, loop: CompiledLoop) -> tuple[Instruction, ...]:
    """The written loop in the place of a compiled one."""
    graph = flow_graph(function)
    (block,) = (
        one
        for number, one in enumerate(graph.blocks)
        if number in one.successors and loop.start <= one.start < loop.stop
    )
    return function.instructions[block.start : block.stop]


@pytest.mark.in_turns(20)
@every_layout
def test_written_instructions_have_the_lines_of_those_that_they_replace(layout: str) -> None:
    made, (code, function) = rung("128x256x40", layout), anew(layout)
    was, lines = (read_line_tables(cubin, "anew").functions[function.name] for cubin in (made.artifact.code, code))
    inside: set[int] = set()
    for loop in loops(layout):
        theirs, ours = made.function.instructions[loop.start : loop.stop], body_of(function, loop)
        for opcode in ("FFMA", "LDS", "LDGSTS", "BAR", "BRA"):
            found = {lines.places(one.address) for one in ours if one.opcode == opcode}
            assert found
            assert found <= {was.places(one.address) for one in theirs if one.opcode == opcode}
        fragments = {was.places(one.address) for one in theirs if one.opcode == "LDS" and not one.is_idle}
        assert {lines.places(one.address) for one in ours if one.opcode == "LDS"} == fragments
        inside.update(range(loop.start, loop.stop + loop.room))
    outside = [one.address for one in function.instructions if one.address // 16 not in inside]
    assert [lines.places(address) for address in outside] == [was.places(address) for address in outside]


@pytest.mark.in_turns(20)
@every_layout
@pytest.mark.parametrize("size", ["128x256x40", "129x261x77", "3x5x1", "140x270x8"])
def test_a_written_loop_has_the_bits_of_the_compilers(size: str, layout: str) -> None:
    made, device = rung(size, layout), EmulatedDevice(ARCH)
    right = made.run(made.artifact.code, device)
    assert np.isfinite(right.view(np.float32)).all()
    assert np.array_equal(made.run(anew(layout)[0], device), right)


@pytest.mark.slow
@pytest.mark.parametrize("size", ["150x161x67", "128x256x40"])
@every_layout
def test_a_narrower_tile_is_written_anew_too(size: str, layout: str) -> None:
    made, device = rung(size, layout, narrow=True), EmulatedDevice(ARCH)
    code = rewritten(made.artifact.code, made.function)
    # Pairs that are only closer than recorded are the compiler's own, outside the loops.
    found, known = (
        check_function(one, ARCH) for one in (parse(disassemble(code, "narrow"))[made.function.name], made.function)
    )
    assert {one.consumer.address for one in found} <= {one.consumer.address for one in known}
    assert np.array_equal(made.run(code, device), made.run(made.artifact.code, device))


def test_temporaries_share_registers_only_where_too_few_are_free() -> None:
    code = listing("IMAD R4, R8, 0x14, RZ", "IADD3 R9, R9, R4, RZ", "IMAD R6, R8, 0x18, RZ", "IADD3 R9, R9, R6, RZ")

    def places(free: list[int], some: Sequence[Instruction]) -> list[int]:
        found = named(some, (), frozenset({8, 9}), free, {})
        return [new for one in found for old, new in one.writes.items() if old != 9]

    assert places([20, 21], code.instructions) == [20, 21]
    assert places([20], code.instructions) == [20, 20]
    late = listing("IMAD R4, R8, 0x14, RZ", "STS [R4], R9", "IMAD R6, R8, 0x18, RZ", "IADD3 R9, R9, R6, RZ")
    with pytest.raises(UsageError, match="no register is left for R6"):
        places([20], late.instructions)


@pytest.mark.parametrize(
    ("line", "twins"),
    [
        ("LDG.E R2, desc[UR4][R8.64]", True),
        # The copy keeps the address of which the source goes on.
        ("IADD3 R4, R4, 0x10, RZ", False),
        ("IMAD.WIDE R4, R6, 0x10, R4", False),
        # The copy gets a value of its own.
        ("@P0 IADD3 R9, R9, 0x1, RZ", False),
        ("MOV R8, R4", False),
    ],
)
def test_a_copy_is_its_source_only_if_neither_is_written(line: str, twins: bool) -> None:
    code = listing("MOV R8, R4", line, "MOV R9, R5", "STS [R7], R8")
    expected = {8: 4, 9: 5} if twins else {}
    assert twins_of(code.instructions, frozenset({4, 5, 6, 7})) == expected


@pytest.mark.slow
@every_variant
def test_every_variant_has_them_too(variant: str) -> None:
    made, device = rung("128x256x40"), EmulatedDevice(ARCH)
    code = rewritten(made.artifact.code, made.function, VARIANTS[variant])
    assert np.array_equal(made.run(code, device), made.run(made.artifact.code, device))
    function = parse(disassemble(code, variant))[made.function.name]
    assert check_function(function, ARCH) == ()


@pytest.mark.in_turns(20)
@every_variant
def test_every_sum_is_in_the_bank_of_its_variant(variant: str) -> None:
    chosen = VARIANTS[variant]
    plan = planned(loops()[0], chosen)
    assert len(set(plan.sums.values())) == 128
    banks = {(total + (place[0] if chosen.by_columns else place[1])) % 2 for place, total in plan.sums.items()}
    assert banks == ({0} if chosen.wrong_bank else {1})
    assert max(plan.sums.values()) < LIMIT
    fragments = {register for some in (*plan.a, *plan.b) for register in some.values()}
    assert not fragments & set(plan.sums.values())
    assert len(fragments) == 48


@pytest.mark.in_turns(20)
def test_other_loops_are_refused_with_what_they_lack() -> None:
    with pytest.raises(UsageError, match="no loop of one block with 16 x 8 x 8 FFMAs"):
        compiled_loops(subject("thread_tile_2d", ARCH, "33").function)


@pytest.mark.in_turns(20)
def test_too_few_registers_are_refused() -> None:
    with pytest.raises(UsageError, match="free quads below R176"):
        planned(loops()[0], VARIANTS["split"], 176)


@pytest.mark.in_turns(20)
def test_a_source_without_reserved_words_is_refused() -> None:
    made = rung("128x256x40").function
    plain = tuple(replace(one, opcode="NOP") if one.opcode == "PMTRIG" else one for one in made.instructions)
    with pytest.raises(UsageError, match="pmevent reserves 0"):
        written(replace(made, instructions=plain))


@pytest.mark.in_turns(20)
def test_a_jump_over_the_loop_is_refused() -> None:
    """Code after the loop moves, so only the loop itself may branch there."""
    made = rung("128x256x40").function
    (first, *_), branch = loops(), next(one for one in made.instructions if one.opcode == "BRA" and one.operands)
    label = next(operand for operand in branch.operands if operand.kind == "label")
    jump = replace(branch, predicate=None, operands=(replace(label, value=16 * first.stop),))
    code = [jump if one is branch else one for one in made.instructions]
    with pytest.raises(UsageError, match="the code behind the main loop is entered from elsewhere too"):
        compiled_loops(replace(made, instructions=tuple(code)))


@pytest.mark.in_turns(20)
def test_a_loop_that_waits_twice_is_refused() -> None:
    loop = loops()[0]
    plan = planned(loop, FASTEST)
    wait = next(one for one in plan.others if one.instruction.opcode == "DEPBAR")
    with pytest.raises(UsageError, match="2 DEPBAR in its main loop, not one"):
        placed(loop, replace(plan, others=(*plan.others, wait)))


def test_work_that_would_come_too_early_is_refused() -> None:
    """Integer work comes before the next stage's address: it must not overwrite what that is computed from."""
    loop = loops()[0]
    plan = planned(loop, FASTEST)
    following = plan.following_a
    (read, *_) = sorted(registers(following.instruction, writes=False))
    work = next(one for one in plan.others if one.instruction.opcode == "IADD3")
    (result,) = registers(work.instruction, writes=True)
    late = replace(work.instruction, address=following.instruction.address + 16)
    bad = Named(late, work.reads, {result: following.reads.get(read, read)})
    with pytest.raises(UsageError, match=r"IADD3 .* overwrites what LEA .* reads"):
        placed(loop, replace(plan, others=(*plan.others, bad)))
