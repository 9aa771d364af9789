"""What the parser reads from the text of real code agrees with the code's encoding."""

from __future__ import annotations

import math
import struct

import pytest

from gemmlab.core.errors import RecordError
from gemmlab.sass.checking.reuse import sources
from gemmlab.sass.instruction import Instruction
from gemmlab.sass.parse import parse
from gemmlab.sass.pipes import pipe
from support.sass_corpus import FILES, everything, functions, texts

TEXTURE_SHAPES = {"1D", "2D", "3D", "CUBE", "ARRAY_2D"}


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def encoded_target(arch: str, instruction: Instruction) -> int:
    """Where a branch goes by its encoding: relative to the next instruction, in one field until compute capability
    9.0 cut eight bits from it for branches.
    """
    word = instruction.encoding
    if arch in {"sm_90", "sm_90a", "sm_100"} and instruction.opcode != "BSSY":
        offset = signed(word >> 34 & (1 << 48) - 1, 48) << 8 | word >> 16 & 0xFF
    else:
        # Above 32 bits BSSY keeps flags there.
        offset = signed(word >> 34 & (1 << 30) - 1, 30)
    return instruction.address + 16 + 4 * offset


def as_floats(pattern: int) -> list[float]:
    """What a pattern may mean: float32, upper half of a float64, float16 or bfloat16."""
    whole = [*struct.unpack("<f", struct.pack("<I", pattern)), *struct.unpack("<d", struct.pack("<Q", pattern << 32))]
    if pattern < 1 << 16:
        whole += struct.unpack("<e", struct.pack("<H", pattern))
        whole += struct.unpack("<f", struct.pack("<I", pattern << 16))
    return whole


@pytest.mark.in_turns(20)
def test_the_corpus_is_there() -> None:
    assert {arch for arch, _, _ in everything()} == {"sm_75", "sm_80", "sm_89", "sm_90", "sm_90a", "sm_100"}
    assert len(everything()) > 10_000


@pytest.mark.in_turns(20)
def test_only_the_shapes_of_textures_have_no_structure() -> None:
    unknown = {o.text for _, _, instruction in everything() for o in instruction.operands if o.kind == "text"}
    assert unknown == TEXTURE_SHAPES


def test_printing_operands_again_gives_the_text() -> None:
    for arch, where, instruction in everything():
        guard = f"@{instruction.predicate.text}" if instruction.predicate else ""
        printed = [guard, instruction.name, *(operand.text for operand in instruction.operands)]
        assert " ".join(filter(None, printed)) == " ".join(instruction.text.replace(",", " ").split()), (arch, where)


def test_guards_agree_with_the_encoding() -> None:
    for arch, where, instruction in everything():
        guard = instruction.predicate
        expected = (guard.index, guard.invert) if guard else (7, False)
        word = instruction.encoding
        assert (word >> 12 & 7, bool(word >> 15 & 1)) == expected, (arch, where, instruction.text)


def test_destinations_agree_with_the_encoding() -> None:
    seen = 0
    for arch, where, instruction in everything():
        first = instruction.operands[0] if instruction.operands else None
        if first is not None and first.kind == "reg" and pipe(instruction) not in ("cbu", "tex"):
            assert first.index == instruction.encoding >> 16 & 0xFF, (arch, where, instruction.text)
            seen += 1
    assert seen > 5000


def test_labels_agree_with_the_encoding() -> None:
    seen = 0
    for arch, where, instruction in everything():
        for operand in instruction.operands:
            if operand.kind == "label":
                assert operand.value == encoded_target(arch, instruction), (arch, where, instruction.text)
                seen += 1
    assert seen > 500


def test_reuse_flags_agree_with_the_control_codes() -> None:
    for arch, where, instruction in everything():
        # Texture instructions carry flags that nvdisasm does not print.
        if pipe(instruction) != "tex":
            printed = sum(operand.reuse for operand in instruction.operands)
            assert printed == instruction.control.reuse.bit_count(), (arch, where, instruction.text)


def test_a_reuse_flag_is_the_bit_of_its_operand_place() -> None:
    seen = 0
    for arch, where, instruction in everything():
        if any(operand.reuse for operand in instruction.operands):
            bits = sum(1 << place for place, operand in sources(instruction) if operand.reuse)
            assert bits == instruction.control.reuse, (arch, where, instruction.text)
            seen += 1
    assert seen > 500


def test_float_literals_are_the_encoded_patterns() -> None:
    seen = 0
    for arch, where, instruction in everything():
        for operand in instruction.operands:
            if operand.kind == "imm" and "0x" not in operand.text:
                meant = float(operand.text.replace("Q", ""))
                possible = as_floats(operand.value)
                assert meant in possible or (math.isnan(meant) and any(map(math.isnan, possible))), (
                    arch, where, instruction.text,
                )  # fmt: skip
                seen += 1
    assert seen > 200


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_indexed_branches_know_where_they_go(arch: str) -> None:
    switch = functions("control", arch)["switches"]
    branches = [instruction for instruction in switch.instructions if instruction.opcode == "BRX"]
    assert len(branches) >= 1
    for branch in branches:
        assert [operand.kind for operand in branch.operands] == ["reg", "imm"]
        assert len(branch.targets) >= 3
        assert all(switch.at(target) for target in branch.targets)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_calls_and_returns_name_places_of_the_section(arch: str) -> None:
    calls = functions("control", arch)["calls"]
    inner = [address for name, address in calls.labels.items() if name.startswith("$calls$")]
    called = {i.operands[-1].value for i in calls.instructions if i.opcode == "CALL"}
    assert len(inner) == 1
    assert called == set(inner)
    returns = [i for i in calls.instructions if i.opcode == "RET"]
    # Relative to the kernel's start: the register holds an offset into the section.
    assert {i.operands[1].value for i in returns} == {0}


@pytest.mark.parametrize("name", FILES)
def test_a_function_cut_short_is_refused(name: str) -> None:
    lines = texts(name)["sm_90a" if name == "hopper" else "sm_90"].splitlines()
    last = max(i for i, line in enumerate(lines) if "/*0" in line)
    for kept in (last, last - 1, last - 7):
        with pytest.raises(RecordError, match="cut short"):
            parse("\n".join(lines[:kept]))


def test_lines_of_the_source() -> None:
    products = [i for i in functions("tensor", "sm_90")["matrices"].instructions if i.opcode == "HMMA"]
    assert len({i.line for i in products}) == 3
    assert all(i.line is not None and i.line[0].endswith("tensor.cu") for i in products)
