"""Every kind of operand by its text, and the laws that reading it obeys."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmlab.sass.instruction import PT, RZ, UNRESOLVED, URZ, Control
from gemmlab.sass.operands import parse_operand, parse_operands


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        ("R4", "reg", {"index": 4}),
        ("RZ", "reg", {"index": RZ}),
        ("-R4", "reg", {"index": 4, "neg": True}),
        ("|R4|", "reg", {"index": 4, "absolute": True}),
        ("-|R4|.reuse", "reg", {"index": 4, "neg": True, "absolute": True, "reuse": True}),
        ("~R4", "reg", {"index": 4, "invert": True}),
        ("R4.reuse", "reg", {"index": 4, "reuse": True, "suffix": ()}),
        ("-RZ.H0_H0", "reg", {"index": RZ, "neg": True, "suffix": ("H0_H0",)}),
        ("R4.H1_H1.reuse", "reg", {"index": 4, "suffix": ("H1_H1",), "reuse": True}),
        ("R20.64", "reg", {"index": 20, "suffix": ("64",)}),
        ("UR4", "ureg", {"index": 4}),
        ("URZ", "ureg", {"index": URZ}),
        ("~URZ", "ureg", {"index": URZ, "invert": True}),
        ("P0", "pred", {"index": 0}),
        ("!P6", "pred", {"index": 6, "invert": True}),
        ("PT", "pred", {"index": PT}),
        ("!UPT", "upred", {"index": PT, "invert": True}),
        ("UP3", "upred", {"index": 3}),
        ("PR", "special", {"name": "PR"}),
        ("SR_TID.X", "special", {"name": "SR_TID.X"}),
        ("SR_CgaCtaId", "special", {"name": "SR_CgaCtaId"}),
        ("SRZ", "special", {"name": "SRZ"}),
        ("B6", "barrier", {"index": 6}),
        ("SB0", "scoreboard", {"index": 0}),
        ("0x7f800000", "imm", {"value": 0x7F800000}),
        ("-0x10", "imm", {"value": 0xFFFFFFF0, "neg": False}),
        ("c[0x0][0x210]", "const", {"bank": 0, "value": 0x210, "base": RZ, "ubase": URZ}),
        ("-c[0x3][0x8]", "const", {"bank": 3, "value": 8, "neg": True}),
        ("|c[0x0][0x160]|", "const", {"value": 0x160, "absolute": True}),
        ("c[0x4][-0x1190]", "const", {"bank": 4, "value": 0xEE70}),
        ("c[0x4][R4+-0x10]", "const", {"bank": 4, "value": -0x10, "base": 4}),
        ("c[0x3][R4+0x10]", "const", {"bank": 3, "value": 16, "base": 4}),
        ("c[0x0][UR4]", "const", {"bank": 0, "value": 0, "ubase": 4}),
        ("cx[UR4][0x20]", "const", {"bank": UNRESOLVED, "value": 0x20, "desc": 4, "name": "cx"}),
        ("[R4]", "mem", {"base": 4, "value": 0, "ubase": URZ, "desc": URZ}),
        ("[R4+-0x80]", "mem", {"base": 4, "value": -0x80}),
        ("[R4.X4+0x10]", "mem", {"base": 4, "value": 16, "suffix": ("X4",)}),
        ("[R4+UR5+0x20]", "mem", {"base": 4, "ubase": 5, "value": 0x20}),
        ("[UR4+0x10]", "mem", {"base": RZ, "ubase": 4, "value": 16}),
        ("[0x10]", "mem", {"base": RZ, "ubase": URZ, "value": 16}),
        ("[R6.U32+UR4]", "mem", {"base": 6, "ubase": 4, "suffix": ("U32",)}),
        ("desc[UR8][R6.64+0x10]", "mem", {"desc": 8, "base": 6, "value": 16, "suffix": ("64",), "name": ""}),
        ("a[0x10]", "mem", {"value": 16, "name": "a"}),
        ("gdesc[UR4]", "mem", {"ubase": 4, "name": "gdesc"}),
        ("2D", "text", {"name": "2D"}),
        # Code that no linker has seen.
        ("32@lo(table)", "imm", {"name": "32@lo(table)"}),
        ("32@hi((f + .L_x_1@srel))", "imm", {"name": "32@hi((f + .L_x_1@srel))"}),
        ("c[`((weights + 0x18))]", "const", {"bank": UNRESOLVED, "name": "`((weights + 0x18))"}),
        ("[R5.X4+`(tile)]", "mem", {"base": 5, "suffix": ("X4",), "name": "`(tile)"}),
    ],
)
def test_each_kind(text: str, kind: str, fields: dict[str, Any]) -> None:
    operand = parse_operand(text)
    assert operand.kind == kind
    assert operand.text == text
    assert {name: getattr(operand, name) for name in fields} == fields


@pytest.mark.parametrize(
    "text", ["|R4", "R4|", "R", "P", "c[0x0]]", "[R4*2]", "desc[UR4]R2", "[R4+R5z]", "B", "-", "0x"]
)
def test_what_is_not_understood_stays_text(text: str) -> None:
    assert parse_operand(text).kind == "text"


def test_a_label_is_an_address_of_the_function() -> None:
    (operand,) = parse_operands("`(.L_x_3)", 0, {".L_x_3": 0x250})
    assert (operand.kind, operand.name, operand.value) == ("label", ".L_x_3", 0x250)
    (outside,) = parse_operands("`($f$g)", 0, {})
    assert outside.value == UNRESOLVED


def test_a_space_separates_too() -> None:
    register, label = parse_operands("R20 `(f)", 0, {"f": 0})
    assert (register.index, label.value) == (20, 0)
    register, offset = parse_operands("R6 -0x100", 0, {})
    assert (register.index, offset.value) == (6, 0xFFFFFF00)


def test_a_space_within_a_constant_separates_nothing() -> None:
    zero, constant, true = parse_operands("RZ.H0_H0, c[0x0] [0x18c].H0_H0, PT", 0, {})
    assert (zero.kind, constant.kind, constant.value, constant.suffix) == ("reg", "const", 0x18C, ("H0_H0",))
    assert true.kind == "pred"


@pytest.mark.parametrize("literal", ["1", "-0.5", "+INF", "-INF", "+QNAN", "-QNAN", "5.877471754111437540e-39"])
def test_the_encoding_tells_what_a_float_is(literal: str) -> None:
    *_, operand = parse_operands(f"R2, R14, {literal} ", 0x12345678 << 32, {})
    assert (operand.kind, operand.text, operand.value, operand.name) == ("imm", literal, 0x12345678, "")


def test_two_floats_share_the_field() -> None:
    *_, upper, lower = parse_operands("R29, -RZ, RZ, 0, 1.5", 0x3E00 << 32, {})
    assert (upper.value, lower.value) == (0, 0x3E00)


def test_a_third_float_has_no_pattern() -> None:
    assert [operand.kind for operand in parse_operands("1, 2, 3", 0, {})] == ["imm", "imm", "text"]


@given(st.text(max_size=40))
def test_no_text_raises(text: str) -> None:
    assert parse_operand(text).text == text
    parse_operands(text, 0, {})


@given(
    st.sampled_from(["", "-", "~"]), st.booleans(), st.integers(0, 254), st.booleans(),
    st.sampled_from(["", "64", "H0_H0", "U16"]),
)  # fmt: skip
def test_registers_are_what_was_printed(sign: str, bars: bool, index: int, reuse: bool, suffix: str) -> None:
    name = f"|R{index}|" if bars else f"R{index}"
    operand = parse_operand(sign + name + (f".{suffix}" if suffix else "") + (".reuse" if reuse else ""))
    assert (operand.kind, operand.index, operand.absolute, operand.reuse) == ("reg", index, bars, reuse)
    assert (operand.neg, operand.invert) == (sign == "-", sign == "~")
    assert operand.suffix == ((suffix,) if suffix else ())


@given(
    st.none() | st.integers(0, 254), st.none() | st.integers(0, 62), st.integers(-(1 << 23), (1 << 23) - 1),
    st.none() | st.integers(0, 62),
)  # fmt: skip
def test_addresses_are_what_was_printed(base: int | None, ubase: int | None, offset: int, desc: int | None) -> None:
    terms = [f"R{base}.64"] if base is not None else []
    terms += [f"UR{ubase}"] if ubase is not None else []
    terms += [hex(offset)] if offset or not terms else []
    operand = parse_operand((f"desc[UR{desc}]" if desc is not None else "") + f"[{'+'.join(terms)}]")
    assert (operand.kind, operand.value) == ("mem", offset)
    assert operand.base == (RZ if base is None else base)
    assert operand.ubase == (URZ if ubase is None else ubase)
    assert operand.desc == (URZ if desc is None else desc)
    assert operand.suffix == (() if base is None else ("64",))


@given(st.integers(-(1 << 31), (1 << 32) - 1))
def test_integers_are_patterns_of_32_bits(value: int) -> None:
    assert parse_operand(hex(value)).value == value & 0xFFFFFFFF


@given(
    st.integers(0, 15), st.booleans(), st.integers(0, 7), st.integers(0, 7), st.integers(0, 63), st.integers(0, 15),
    st.integers(0, (1 << 105) - 1), st.integers(0, 3),
)  # fmt: skip
def test_control_codes_lie_above_bit_105(
    stall: int, hint: bool, write: int, read: int, mask: int, reuse: int, below: int, above: int
) -> None:
    codes = stall | hint << 4 | write << 5 | read << 8 | mask << 11 | reuse << 17
    encoding = below | codes << 105 | above << 126
    assert Control.of(encoding) == Control(stall, hint, write, read, mask, reuse)
