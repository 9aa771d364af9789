"""Whole functions from nvdisasm's text: labels, source lines, sections, and refusals of what is cut short."""

from __future__ import annotations

import pytest

from gemmlab.core.errors import RecordError
from gemmlab.sass.instruction import Control
from gemmlab.sass.parse import parse

SMALL = """\
\t.target\tsm_90

//--------------------- .text.f --------------------------
\t.section\t.text.f,"ax",@progbits
\t.align\t128
        .size           f,(.L_x_2 - f)
f:
.text.f:
\t//## File "k.cu", line 1
        /*0000*/                   LDC R1, c[0x0][0x28] ;                        /* 0x00000a00ff017b82 */
                                                                                 /* 0x000ff00000000800 */
.L_x_1:
\t//## File "k.cu", line 6
        /*0010*/                   ISETP.GE.U32.AND P0, PT, R17, R0.reuse, PT ;  /* 0x000000001100720c */
                                                                                 /* 0x082fe20003f06070 */
        /*0020*/                   HFMA2.MMA R29, -RZ, RZ, 0, 1.5 ;              /* 0x00003e00ff1d7435 */
                                                                                 /* 0x000fe200000001ff */
        /*0030*/              @!P1 LDG.E R26, desc[UR8][R6.64+-0x10] ;           /* 0xfffff008061a9981 */
                                                                                 /* 0x000eac000c1e1900 */
        /*0040*/               @P0 BRA `(.L_x_1) ;                               /* 0xfffffffc00fc0947 */
                                                                                 /* 0x000fc0000383ffff */
        /*0050*/                   EXIT ;                                        /* 0x000000000000794d */
                                                                                 /* 0x000fea0003800000 */
.L_x_2:
"""
DATA = """
//--------------------- .nv.constant0.f --------------------------
\t.section\t.nv.constant0.f,"a",@progbits
\t.align\t4
.nv.constant0.f:
        /*0000*/ \t.byte\t0x00, 0x00
.L_y:
"""


def test_instructions_labels_and_guards() -> None:
    function = parse(SMALL)["f"]
    assert [i.name for i in function.instructions] == [
        "LDC", "ISETP.GE.U32.AND", "HFMA2.MMA", "LDG.E", "BRA", "EXIT",
    ]  # fmt: skip
    assert dict(function.labels) == {"f": 0, ".L_x_1": 0x10, ".L_x_2": 0x60}
    load, branch = function.instructions[3:5]
    assert load.predicate is not None
    assert (load.predicate.index, load.predicate.invert) == (1, True)
    assert load.text == "@!P1 LDG.E R26, desc[UR8][R6.64+-0x10]"
    assert load.encoding == 0x000EAC000C1E1900_FFFFF008061A9981
    address = load.operands[1]
    assert (address.kind, address.base, address.value, address.desc, address.suffix) == ("mem", 6, -16, 8, ("64",))
    assert branch.operands[0].value == 0x10
    assert function.at(0x40) is branch


@pytest.mark.parametrize("address", [-16, 8, 0x60])
def test_there_is_nothing_between_and_behind_instructions(address: int) -> None:
    with pytest.raises(IndexError, match="f: no instruction at"):
        parse(SMALL)["f"].at(address)


def test_a_line_holds_until_the_next() -> None:
    lines = [i.line for i in parse(SMALL)["f"].instructions]
    assert lines == [("k.cu", 1)] + 5 * [("k.cu", 6)]


def test_inlined_lines_form_a_chain() -> None:
    chain = (
        '\t//## File "mma.hpp", line 91 inlined at "tile.cuh", line 7\n'
        '\t//## File "tile.cuh", line 7 inlined at "k.cu", line 3\n'
        '\t//## File "k.cu", line 3\n'
    )
    inlined = parse(SMALL.replace('\t//## File "k.cu", line 6\n', chain))["f"].instructions[1]
    assert inlined.line == ("mma.hpp", 91)
    assert inlined.inlined_at == (("tile.cuh", 7), ("k.cu", 3))


def test_without_lines_there_are_none() -> None:
    bare = "".join(line for line in SMALL.splitlines(keepends=True) if "//##" not in line)
    assert {i.line for i in parse(bare)["f"].instructions} == {None}


def test_control_codes() -> None:
    # 0x082fe2...: reuse of source 1, wait for barrier 1, no barriers of its own, stall 1.
    control = parse(SMALL)["f"].instructions[1].control
    assert control == Control(stall=1, yield_=True, write_barrier=7, read_barrier=7, wait_mask=0b10, reuse=0b0010)


def test_sections_of_data_are_passed_over() -> None:
    other = SMALL.replace("f:", "g:").replace("text.f", "text.g").replace("f,(.L_x_2 - f)", "g,(.L_x_2 - g)")
    found = parse(DATA + SMALL + DATA + other + DATA)
    assert list(found) == ["f", "g"]
    assert set(found["f"].labels) == {"f", ".L_x_1", ".L_x_2"}
    assert [i.text for i in found["g"].instructions] == [i.text for i in found["f"].instructions]


def test_annotations_are_no_operands() -> None:
    branch = 'BRX R6 -0x100      (*"BRANCH_TARGETS .L_x_1,.L_x_2"*) ;'
    found = parse(SMALL.replace("@P0 BRA `(.L_x_1) ;", branch))["f"].instructions[4]
    assert found.text == "BRX R6 -0x100"
    assert found.targets == (0x10, 0x60)
    assert [operand.kind for operand in found.operands] == ["reg", "imm"]
    moved = parse(SMALL.replace("EXIT ;", 'YIELD   (*"RELOCATOR OPCODE,YIELD,280"*) ;'))["f"].instructions[5]
    assert (moved.text, moved.operands, moved.targets) == ("YIELD", (), ())


@pytest.mark.parametrize("targets", [".L_x_1,", ".L_x_1,elsewhere"])
def test_a_target_that_is_no_label_is_refused(targets: str) -> None:
    branch = f'BRX R6 -0x100      (*"BRANCH_TARGETS {targets}"*) ;'
    with pytest.raises(RecordError, match=r"line [0-9]+: expected a label of f"):
        parse(SMALL.replace("@P0 BRA `(.L_x_1) ;", branch))


@pytest.mark.parametrize("cut", range(9, len(SMALL.splitlines())))
def test_a_text_cut_short_is_refused(cut: int) -> None:
    with pytest.raises(RecordError, match="cut short"):
        parse("\n".join(SMALL.splitlines()[:cut]))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (".L_x_1:", "segfault", r"line 12: expected .* found 'segfault'"),
        ("/*0020*/", "/*0030*/", r"line 16: expected the instruction at 0x0020 of f, found '/\*0030\*/"),
        ("/* 0x00003e00ff1d7435 */", "", r"line 16: expected an instruction with its encoding"),
        ("`(.L_x_1)", "`(.L_x_9)", r"line 20: expected a label of f, not \.L_x_9"),
        (".text.", ".data.", "no .text section"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(old: str, new: str, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        parse(SMALL.replace(old, new))


@pytest.mark.parametrize("text", ["", "nvdisasm fatal: input file is not an ELF\n", "\x7fELF"])
def test_no_disassembly(text: str) -> None:
    with pytest.raises(RecordError, match=r"no \.text section"):
        parse(text)
