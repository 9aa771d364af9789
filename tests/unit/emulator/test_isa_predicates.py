"""Comparisons, predicates as bits of registers, moves, special registers, and the uniform path."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from gemmlab.emulator.form import UnsupportedError
from gemmlab.emulator.layout import Warp
from support.isa_harness import ALL, Rig, each, mask, mixed, rows, truths

P0, P1 = 0x0F0F0F0F, 0x33333333
COMPARE = {name: getattr(operator, name.lower()) for name in ("LT", "LE", "GT", "GE", "EQ", "NE")}
JOIN = {"AND": operator.and_, "OR": operator.or_, "XOR": operator.xor}


@pytest.mark.parametrize("kind", ["", ".U32"])
@pytest.mark.parametrize("name", [*COMPARE, "T", "F"])
def test_comparisons(name: str, kind: str) -> None:
    rig = Rig()
    for a, b in rows(2, 4):
        rig.r[1], rig.r[2] = a, np.where(mixed(3) & np.uint32(1), a, b)
        view = np.uint32 if kind else np.int32
        truth = COMPARE[name](rig.r[1].view(view), rig.r[2].view(view)) if name in COMPARE else np.full(32, name == "T")
        for word, join in JOIN.items():
            rig.p[0] = P0
            rig.run(f"ISETP.{name}{kind}.{word} P2, P3, R1, R2, !P0")
            np.testing.assert_array_equal(truths(rig.p[2]), join(truth, ~truths(P0)))
            np.testing.assert_array_equal(truths(rig.p[3]), join(~truth, ~truths(P0)))


@pytest.mark.parametrize("kind", ["", ".U32"])
@pytest.mark.parametrize("name", COMPARE)
def test_wide_comparisons_go_on_from_the_lower_halves(name: str, kind: str) -> None:
    rig = Rig()
    for low, other_low, high, other_high in rows(4):
        rig.r[1], rig.r[2] = low, np.where(mixed(5) & np.uint32(1), low, other_low)
        rig.r[3], rig.r[4] = high, np.where(mixed(6) & np.uint32(3), high, other_high)
        rig.p[0], rig.p[1] = P0, 0
        rig.run(f"ISETP.{name}.U32.AND P1, PT, R1, R2, PT")
        rig.run(f"ISETP.{name}{kind}.OR.EX P2, P3, R3, R4, P0, P1")
        wide = [
            (rig.r[part + 2].astype(np.uint64) << np.uint64(32) | rig.r[part]).view(np.uint64 if kind else np.int64)
            for part in (1, 2)
        ]
        truth = COMPARE[name](*wide)
        np.testing.assert_array_equal(truths(rig.p[2]), truth | truths(P0))
        np.testing.assert_array_equal(truths(rig.p[3]), ~truth | truths(P0))


def test_a_predicate_keeps_its_value_where_lanes_do_not_execute() -> None:
    rig = Rig()
    rig.p[2], rig.p[4] = ALL, 0x0000FFFF
    rig.run("@P4 ISETP.NE.AND P2, PT, RZ, RZ, PT", lanes=0xFFFFFF0F)
    assert int(rig.p[2]) == 0xFFFF00F0
    rig.run("ISETP.EQ.AND PT, PT, RZ, 0x1, PT")
    rig.run("ISETP.EQ.AND P2, PT, RZ, RZ, PT")
    assert int(rig.p[2]) == ALL


@pytest.mark.parametrize("shift", [0, 8, 16, 24])
def test_predicates_as_bits_and_back(shift: int) -> None:
    rig = Rig()
    rig.p[:] = before = np.array([P0, P1, 0x55555555, 0xFFFF, 0, ALL, 0xF00FF00F], np.uint32)
    rig.r[1] = a = mixed(7)
    bits = sum(truths(word).astype(np.uint32) << np.uint32(index) for index, word in enumerate(before))
    part = f".B{shift // 8}" * bool(shift)
    rig.run(f"P2R{part} R4, PR, R1, 0x5e")
    kept = a & np.uint32(0xFFFFFFFF ^ 0x5E << shift)
    np.testing.assert_array_equal(rig.r[4], kept | (bits & np.uint32(0x5E)) << np.uint32(shift))

    rig.r[5] = fresh = mixed(8)
    lanes = 0x7FFFFFF0
    rig.run(f"R2P PR, R5{part}, 0x5e", lanes=lanes)
    for index, old in enumerate(before):
        new = mask(fresh >> np.uint32(shift + index) & 1) if 0x5E >> index & 1 else int(old)
        assert int(rig.p[index]) == new & lanes | int(old) & ~lanes
    rig.run(f"R2P PR, R5{part}")
    assert [int(word) for word in rig.p] == [mask(fresh >> np.uint32(shift + index) & 1) for index in range(7)]


def test_moves_and_selections() -> None:
    rig = Rig()
    a, b = rig.r[1], rig.r[2] = mixed(1), mixed(2)
    rig.ur[4] = 0x12345678
    rig.p[0], rig.up[1] = P0, 0
    rig.run("SEL R4, R1, R2, !P0")
    np.testing.assert_array_equal(rig.r[4], np.where(truths(P0), b, a))
    rig.run("SEL R4, R1, -0x1, UP1")
    assert (rig.r[4] == ALL).all()
    rig.run("MOV R5, UR4", lanes=0xFF)
    assert list(rig.r[5]) == [0x12345678] * 8 + [0] * 24
    rig.r[6] = 5
    rig.r[6, 9] = 77
    rig.run("R2UR UR7, R6", lanes=0xFFFFFE00)
    assert int(rig.ur[7]) == 77
    with pytest.raises(UnsupportedError, match="operand 3"):
        rig.run("MOV R2, R4, 0x3")


def test_who_a_thread_is() -> None:
    rig = Rig(threads=(8, 4, 2), grid=(5, 4, 3), block=5 * 4 * 2 + 5 * 3 + 4)
    lane = np.arange(32, dtype=np.int64)
    for name, expected in {
        "SR_TID.X": lane % 8,
        "SR_TID.Y": lane // 8,
        "SR_TID.Z": lane * 0,
        "SR_CTAID.X": lane * 0 + 4,
        "SR_CTAID.Y": lane * 0 + 3,
        "SR_CTAID.Z": lane * 0 + 2,
        "SR_LANEID": lane,
        "SR_EQMASK": 1 << lane,
        "SR_LTMASK": (1 << lane) - 1,
        "SR_LEMASK": (2 << lane) - 1,
        "SR_GTMASK": -(2 << lane),
        "SR_GEMASK": -(1 << lane),
        "SR_VIRTID": lane * 0,
        "SRZ": lane * 0,
    }.items():
        rig.run(f"S2R R4, {name}")
        np.testing.assert_array_equal(rig.r[4], expected.astype(np.uint32), name)
    rig.run("S2UR UR5, SR_CTAID.Y")
    assert int(rig.ur[5]) == 3
    rig.r[6] = rig.r[7] = 9
    rig.run("CS2R R6, SRZ", lanes=0xF)
    assert list(rig.pair(6)) == [0] * 4 + [9 << 32 | 9] * 28
    with pytest.raises(UnsupportedError, match="SR_VIRTCFG"):
        rig.run("S2R R4, SR_VIRTCFG")


def test_the_clock_moves_at_every_reading() -> None:
    rig = Rig()
    rig.warp[Warp.CLOCK : Warp.CLOCK + 8].view(np.int64)[0] = 0x5_FFFF_FFFE
    rig.run("CS2R R4, SR_CLOCKLO")
    assert (rig.pair(4) == 0x5_FFFF_FFFF).all()
    rig.run("CS2R.32 R6, SR_CLOCKLO")
    rig.run("CS2R.32 R7, SR_CLOCKHI")
    assert (rig.pair(6) == 0x6_0000_0000).all()


UNIFORM = [
    "IADD3 {r}4, {r}1, -{r}2, {r}3",
    "IADD3 {r}4, {p}2, {p}3, {r}1, {r}2, {r}3",
    "IADD3.X {r}4, {p}2, ~{r}1, {r}2, {r}3, {p}0, !{p}1",
    "IMAD {r}4, {r}1, {r}2, {r}3",
    "IMAD.WIDE.U32 {r}4, {p}2, {r}1, {r}2, {r}6",
    "LEA.HI {r}4, {r}1, {r}2, {r}3, 0x5",
    "LOP3.LUT {p}2, {r}4, {r}1, {r}2, {r}3, 0xca, !{p}T",
    "SHF.R.S64 {r}4, {r}1, {r}2, {r}3",
    "PRMT {r}4, {r}1, {r}2, {r}3",
    "ISETP.GE.U32.AND.EX {p}2, {p}3, {r}1, {r}2, {p}0, {p}1",
    "SEL {r}4, {r}1, {r}2, !{p}0",
    "MOV {r}4, {r}1",
    "BMSK {r}4, {r}1, {r}2",
    "SGXT {r}4, {r}1, 0x9",
    "FLO.U32 {r}4, {r}1",
    "POPC {r}4, {r}1",
    "BREV {r}4, {r}1",
    "PLOP3.LUT {p}2, {p}3, {p}0, {r}1.SIGN, {r}2.SIGN, 0x96, 0x1",
]


@pytest.mark.parametrize("form", UNIFORM)
def test_the_uniform_path_computes_what_a_lane_does(form: str) -> None:
    vector, uniform = Rig(), Rig()
    for inputs in rows(7, 4):
        for lane in range(3):
            for index, row in enumerate(inputs, start=1):
                vector.r[index] = row[lane]
                uniform.ur[index] = row[lane]
            for rig_words in (vector.p, uniform.up):
                rig_words[:] = 0
                rig_words[1 - lane % 2] = ALL
            vector.run(form.format(r="R", p="P"))
            uniform.run("U" + form.format(r="UR", p="UP"))
            assert list(vector.r[4:6, 31]) == list(uniform.ur[4:6])
            assert list(vector.p) == list(uniform.up)


def test_uniform_predicates_as_bits_and_back() -> None:
    rig = Rig()
    rig.up[:] = [ALL, 0, ALL, ALL, 0, 0, ALL]
    rig.ur[1], rig.ur[2] = 0xA5A5A5A5, 0x7F
    rig.run("UP2UR UR4, UPR, UR1, UR2")
    assert int(rig.ur[4]) == 0xA5A5A580 | 0b1001101
    rig.ur[5] = 0b0110010 << 8
    rig.run("UR2UP UPR, UR5.B1, 0x3f")
    assert list(rig.up) == [0, ALL, 0, 0, ALL, ALL, ALL]


def test_an_instruction_whose_uniform_guard_fails_does_nothing() -> None:
    rig = Rig()
    rig.ur[4] = 7
    rig.up[0] = ALL
    rig.run("@!UP0 UMOV UR4, 0x9")
    assert int(rig.ur[4]) == 7
    rig.run("@UP0 UIADD3 UR4, UR4, 0x2, URZ")
    assert int(rig.ur[4]) == 9
    rig.run("UMOV URZ, 0x9")
    rig.run("UMOV UR5, URZ")
    assert int(rig.ur[5]) == 0


def test_vector_operands_from_uniform_registers() -> None:
    rig = Rig()
    rig.r[1] = a = mixed(3)
    rig.ur[4], rig.ur[5] = 0x89ABCDEF, 0x1
    rig.run("IADD3 R4, P0, R1, -UR4, RZ")
    np.testing.assert_array_equal(rig.r[4], a - np.uint32(0x89ABCDEF))
    np.testing.assert_array_equal(truths(rig.p[0]), a >= 0x89ABCDEF)
    rig.run("IMAD.WIDE.U32 R6, R1, 0x4, UR4")
    assert list(rig.pair(6)) == [int(x) * 4 + 0x189ABCDEF for x in a]
    rig.run("ISETP.GE.U32.AND P1, PT, R1, UR4, PT")
    np.testing.assert_array_equal(truths(rig.p[1]), a >= 0x89ABCDEF)
    rig.run("FLO.U32 R8, UR5")
    np.testing.assert_array_equal(rig.r[8], each(lambda _a: 0, a))
