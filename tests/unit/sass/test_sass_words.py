"""Instruction words taken apart into fields and put together again."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmlab.sass.instruction import RZ, Control, Instruction
from gemmlab.sass.register_accesses import UnknownAccessError, accesses_of
from gemmlab.sass.writing.slots import EncodingError, slots_of
from gemmlab.sass.writing.word import WORD_BITS, Word, decode, encode
from support.cuda_source import needs_compiler
from support.raw_disassembly import disassembled
from support.sass_corpus import everything

pytestmark = needs_compiler

ARCHS = ("sm_80", "sm_89", "sm_90")


@cache
def decoded(arch: str) -> list[tuple[Instruction, Word]]:
    """One instruction of each form that can be encoded."""
    found: dict[object, tuple[Instruction, Word]] = {}
    for of, _where, instruction in everything():
        if of == arch:
            key = (instruction.encoding & 0xFFF, instruction.name, *(o.kind for o in instruction.operands))
            try:
                found.setdefault(key, (instruction, decode(instruction)))
            except EncodingError:
                continue
    return list(found.values())


@pytest.mark.parametrize("arch", ARCHS)
def test_fields_give_the_same_word(arch: str) -> None:
    same = refused = 0
    for of, _where, instruction in everything():
        if of != arch:
            continue
        try:
            word = decode(instruction)
        except EncodingError:
            refused += 1
            continue
        assert encode(word) == instruction.encoding, instruction.text
        same += 1
    assert same > 40 * refused > 0 or (same and not refused)


def test_fields_have_each_bit_once() -> None:
    for _, word in decoded("sm_90"):
        bits = [*range(12), 15, *range(105, 126)]
        for slot in word.slots:
            bits += range(slot.low, slot.low + slot.width)
        for _name, low, width, _value in word.rest:
            bits += range(low, low + width)
        assert sorted(bits) == list(range(WORD_BITS))


@given(
    place=st.integers(0, 10_000), stall=st.integers(1, 11), yields=st.booleans(), write=st.integers(0, 7),
    read=st.integers(0, 7), wait=st.integers(0, 63), reuse=st.integers(0, 5),
)  # fmt: skip
def test_any_control_codes_can_be_written(
    place: int, stall: int, yields: bool, write: int, read: int, wait: int, reuse: int
) -> None:
    forms = decoded("sm_80")
    instruction, word = forms[place % len(forms)]
    control = Control(stall, yields, write, read, wait, reuse)
    made = encode(word.with_control(control))
    assert Control.of(made) == control
    assert decode(replace(instruction, encoding=made, control=control)).with_control(word.control) == word


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("arch", ARCHS)
def test_nvdisasm_prints_the_register_that_was_set(arch: str, tmp_path: Path) -> None:
    cases = [
        (instruction, slot, word)
        for instruction, word in decoded(arch)
        for slot in word.slots
        if slot.kind in ("reg", "ureg") and _wide(instruction) is not None
    ]
    # Numbers that are a multiple of 8 suit registers that are one of several.
    numbers = [16 if word.number(slot.operand, slot.part) != 16 else 24 for _, slot, word in cases]
    words = [
        encode(word.with_register(slot.operand, number, slot.part))
        for (_, slot, word), number in zip(cases, numbers, strict=True)
    ]
    printed = disassembled(words, arch, tmp_path)
    assert len(printed) == len(cases) > 100
    for (before, slot, _), number, after in zip(cases, numbers, printed, strict=True):
        old, new = before.operands[slot.operand], after.operands[slot.operand]
        part = {"base": "base", "ubase": "ubase", "desc": "desc"}.get(slot.part, "index")
        assert getattr(new, part) == number, (before.text, after.text)
        assert replace(new, text="", **{part: getattr(old, part)}) == replace(old, text=""), (before.text, after.text)
        for n, other in enumerate(before.operands):
            assert n == slot.operand or other.kind == "label" or after.operands[n] == other, (before.text, after.text)


def _wide(instruction: Instruction) -> object:
    try:
        return accesses_of(instruction)
    except UnknownAccessError:
        return None


@pytest.mark.parametrize("arch", ARCHS)
def test_nvdisasm_prints_the_reuse_flags_that_were_set(arch: str, tmp_path: Path) -> None:
    forms = [
        (instruction, word) for instruction, word in decoded(arch)
        if instruction.opcode in ("FFMA", "ISETP", "IADD3", "LOP3") and word.opcode >> 9 == 1
    ]  # fmt: skip
    place = {24: 0, 32: 1, 64: 2}
    flags = [
        [slot for slot, number in zip(word.slots, word.registers, strict=True) if slot.low in place and number != RZ]
        for _, word in forms
    ]
    words = [
        encode(
            word.with_control(
                replace(word.control, stall=2, yield_=True, reuse=sum(1 << place[slot.low] for slot in some))
            )
        )
        for (_, word), some in zip(forms, flags, strict=True)
    ]
    printed = disassembled(words, arch, tmp_path)
    for some, after in zip(flags, printed, strict=True):
        marked = {n for n, operand in enumerate(after.operands) if operand.reuse}
        assert marked == {slot.operand for slot in some if slot.kind == "reg"}, after.text


def test_what_has_no_encoding_is_refused_by_name() -> None:
    _, word = next(pair for pair in decoded("sm_90") if pair[0].opcode == "FFMA")
    with pytest.raises(EncodingError, match="register 256 of operand 2"):
        word.with_register(1, 256)
    with pytest.raises(EncodingError, match="stall cannot be encoded: its field has 4 bits"):
        word.with_control(replace(word.control, stall=16))
    for stall in (0, 12):
        with pytest.raises(EncodingError, match=f"a stall of {stall} cannot be encoded with the yield bit set"):
            word.with_control(replace(word.control, stall=stall, yield_=True, reuse=0))
    with pytest.raises(EncodingError, match="reuse flags 0x6 cannot be encoded with a stall of 4 and the yield bit"):
        word.with_control(replace(word.control, stall=4, yield_=False, reuse=6))
    with pytest.raises(EncodingError, match="opcode 0x223 has no register as base of operand 1"):
        word.with_register(0, 1, "base")


def test_a_register_in_another_place_than_printed_is_refused() -> None:
    instruction = next(i for i, _ in decoded("sm_90") if i.opcode == "FFMA")
    wrong = replace(instruction, encoding=instruction.encoding ^ 1 << 24)
    with pytest.raises(EncodingError, match="operand 2 is not in bits 24 to 31"):
        slots_of(wrong)
