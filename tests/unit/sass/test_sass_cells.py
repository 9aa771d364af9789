"""What instructions are said to read and write, against what they do on the emulator."""

from __future__ import annotations

import numpy as np
import pytest

from gemmlab.emulator.form import UnsupportedError
from gemmlab.sass.cells import CALCULATING, PREDICATE, UNIFORM, UNIFORM_PREDICATE, Use, deciding, replaced, use_of
from gemmlab.sass.instruction import Instruction
from gemmlab.sass.register_accesses import ASYNCHRONOUS, accesses_of
from support.isa_harness import REGISTERS, Rig, program
from support.sass_corpus import everything

OUTSIDE = frozenset({"LD", "ST", "ATOM", "RED", "TLD", "LEPC", "QSPC", "CALL", "BAR", "B2R", "BPT", "ELECT"})
"""Opcodes that begin like these need more than registers, or are none that anyone asks about."""
FULL = 0xFFFFFFFF


def forms(arch: str) -> list[Instruction]:
    """One instruction of each opcode with its modifiers and kinds of operands."""
    found: dict[object, Instruction] = {}
    for of, _where, instruction in everything():
        outside = any(instruction.opcode.lstrip("U").startswith(name) for name in OUTSIDE)
        if of == arch and not outside and not any(operand.kind == "mem" for operand in instruction.operands):
            found.setdefault((instruction.name, *(operand.kind for operand in instruction.operands)), instruction)
    return list(found.values())


def scramble(rig: Rig, rng: np.random.Generator, kept: frozenset[int] = frozenset()) -> None:
    """Any values in all cells but those kept."""
    for file, first in ((rig.r, 0), (rig.ur, UNIFORM), (rig.p, PREDICATE), (rig.up, UNIFORM_PREDICATE)):
        for index in range(len(file)):
            if first + index not in kept:
                word = rng.integers(0, 1 << 32, file[index].shape, np.uint32)
                file[index] = word if file is not rig.up else np.uint32(FULL * int(word & 1))


def state(rig: Rig) -> dict[int, bytes]:
    files = ((rig.r, 0), (rig.ur, UNIFORM), (rig.p, PREDICATE), (rig.up, UNIFORM_PREDICATE))
    return {first + index: file[index].tobytes() for file, first in files for index in range(len(file))}


@pytest.mark.slow
def test_nothing_else_is_written_and_nothing_else_counts() -> None:
    tried = 0
    for instruction in [*forms("sm_80"), *forms("sm_90")]:
        rig, rng, use = Rig(), np.random.default_rng(tried), use_of(instruction)
        scramble(rig, rng)
        before = state(rig)
        try:
            rig.execute(instruction)
        except UnsupportedError:
            continue
        after = state(rig)
        changed = {cell for cell in after if after[cell] != before[cell]}
        assert changed <= use.writes, instruction.text
        exact = _exact(instruction)
        assert changed <= exact.writes, instruction.text
        # The same again, with other values in whatever it is said not to read, or to replace.
        kept = use.reads - replaced(instruction) if instruction.opcode in CALCULATING else use.reads
        # A guarded instruction may leave its result, and others leave a part of it.
        for cells in (kept, exact.reads | (exact.writes - replaced(instruction))):
            for cell in cells:
                _put(rig, cell, before[cell])
            scramble(rig, rng, cells)
            rig.execute(instruction)
            again = state(rig)
            assert {cell: again[cell] for cell in changed} == {cell: after[cell] for cell in changed}, instruction.text
        tried += 1
    assert tried > 300


def _exact(instruction: Instruction) -> Use:
    accesses = accesses_of(instruction)
    reads, writes = ({cell for one in part for cell in one.cells} for part in (accesses.reads, accesses.writes))
    return Use(frozenset(reads), frozenset(writes))


def test_no_cell_is_missing_that_is_known_to_be_accessed() -> None:
    tried = 0
    for _arch, _where, instruction in everything():
        if instruction.opcode not in ASYNCHRONOUS:
            use, exact = use_of(instruction), _exact(instruction)
            assert exact.reads <= use.reads, instruction.text
            assert exact.writes <= use.writes, instruction.text
            tried += 1
    assert tried > 10_000


@pytest.mark.parametrize(
    ("line", "reads", "writes"),
    [
        ("HGMMA.64x256x8.F32.TF32 R24, R8, gdesc[UR4], R24, gsb0", {8, 11, 24, 151}, {24, 151}),
        ("IGMMA.64x16x32.S8.S8 R24, gdesc[UR4], R24, gsb0", {24, 31}, {24, 31}),
        ("STSM.16.M88.4 [R2], R4", {2, 4, 7}, set()),
        ("BMMA.168256.AND.POPC R12, R4.ROW, R8.COL, RZ", {4, 7, 8, 9}, {12, 15}),
        ("QMMA.16832.F32.E4M3.E5M2 R8, R4.ROW, R12.COL, R8", {4, 7, 12, 13, 8, 11}, {8, 11}),
        ("TEX R2, R4, R6, UR4, 0x0, 2D", {6, 7}, {2, 3, 4, 5}),
        ("TXD R2, R4, R6, R8, UR4, 0x0, 2D", {6, 7, 8, 11}, {2, 3, 4, 5}),
        ("LEPC R2", set(), {2, 3}),
    ],
)
def test_operands_of_many_registers(line: str, reads: set[int], writes: set[int]) -> None:
    use = use_of(program(line)[0])
    assert reads <= use.reads
    assert writes <= use.writes


def _put(rig: Rig, cell: int, data: bytes) -> None:
    words = np.frombuffer(data, np.uint32)
    if cell < UNIFORM:
        if cell < REGISTERS:
            rig.r[cell] = words
    elif cell < PREDICATE:
        rig.ur[cell - UNIFORM] = words[0]
    elif cell < UNIFORM_PREDICATE:
        rig.p[cell - PREDICATE] = words[0]
    else:
        rig.up[cell - UNIFORM_PREDICATE] = words[0]


@pytest.mark.parametrize(
    ("lines", "cells"),
    [
        (("BRA `(.L_0)",), set()),
        # The counter and its bound, not the sum.
        (("IADD3 R4, R4, 0x1, RZ", "FADD R6, R6, R7", "ISETP.GE.AND P0, PT, R4, R5, PT", "@!P0 BRA `(.L_0)"),
         {4, 5}),
        # By way of a uniform register, and of two registers at once.
        (("UIADD3 UR4, UR4, 0x1, URZ", "MOV R8, UR4", "IMAD.WIDE R2, R8, R9, R10", "ISETP.NE.AND P1, PT, R3, RZ, PT",
          "@P1 BRA `(.L_0)"), {9, 10, 11, UNIFORM + 4}),
        # Memory and time decide.
        (("LDG.E R4, [R2.64]", "ISETP.NE.AND P0, PT, R4, RZ, PT", "@P0 BRA `(.L_0)"), None),
        (("CS2R R4, SR_CLOCKLO", "ISETP.NE.AND P0, PT, R4, RZ, PT", "@P0 BRA `(.L_0)"), None),
    ],
)  # fmt: skip
def test_what_decides_where_lanes_go(lines: tuple[str, ...], cells: set[int] | None) -> None:
    code = program(".L_0:", *lines)
    found = deciding(code, [True] * len(code))
    if cells is None:
        assert found is None
    else:
        assert found is not None
        assert found[0] == cells


def test_a_register_that_is_written_anew_decided_nothing_before() -> None:
    # R4 is a word of shared memory, then the counter's next value, and P0 guards a load before it ends the loop.
    lines = ("ISETP.GE.AND P0, PT, R6, R5, PT", "@!P0 LDS R4, [R2]", "FADD R7, R7, R4", "IADD3 R4, R6, 0x1, RZ",
             "MOV R6, R4", "ISETP.GE.AND P0, PT, R4, R5, PT", "@!P0 BRA `(.L_0)")  # fmt: skip
    code = program(".L_0:", *lines)
    found = deciding(code, [True] * len(code))
    assert found is not None
    assert [sorted(cells) for cells in found] == [[5, 6]] * 4 + [[4, 5], [4, 5, 6], [5, 6, PREDICATE]]
    # Where lanes that skip the addition keep the word, memory has a part in it.
    code = program(".L_0:", *lines[:3], "@P1 IADD3 R4, R6, 0x1, RZ", *lines[4:])
    assert deciding(code, [True] * len(code)) is None
    # Instructions that do not run lead nowhere.
    found = deciding(code, [False, False, True, True, True, True, True])
    assert found is not None
