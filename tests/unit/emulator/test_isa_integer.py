"""Sums, products, extremes and shifted sums of integers, against Python's own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gemmlab.emulator.form import UnsupportedError
from support.isa_harness import ALL, M32, M64, Rig, Words, each, mask, mixed, rows, signed, truths


def halves(function: Callable[..., int]) -> Callable[..., int]:
    """A function of 16-bit numbers, for both halves of words."""

    def of(*words: int) -> int:
        low = function(*(word & 0xFFFF for word in words)) & 0xFFFF
        return low | (function(*(word >> 16 for word in words)) & 0xFFFF) << 16

    return of


def two(kind: str, choose: Callable[..., int]) -> Callable[..., int]:
    """Extremes of pairs of 16-bit numbers."""
    return halves(lambda *v: choose(*(signed(part, 16) if kind == "S" else part for part in v)))


def bytes_of(value: int, *, of_signed: bool) -> list[int]:
    parts = [value >> 8 * i & 255 for i in range(4)]
    return [signed(part, 8) for part in parts] if of_signed else parts


def words_of(value: int, *, of_signed: bool) -> list[int]:
    parts = [value & 0xFFFF, value >> 16]
    return [signed(part, 16) for part in parts] if of_signed else parts


def dot(left: list[int], right: list[int], c: int) -> int:
    return sum(x * y for x, y in zip(left, right, strict=True)) + c


SIMPLE: dict[str, Callable[[int, int, int], int]] = {
    "IADD3 R4, R1, R2, R3": lambda a, b, c: a + b + c,
    "IADD3 R4, -R1, R2, R3": lambda a, b, c: -a + b + c,
    "IADD3 R4, R1, 0xfffffff0, -R3": lambda a, _b, c: a - 16 - c,
    "VIADD R4, R1, -R2": lambda a, b, _c: a - b,
    "VIADD.16x2 R4, R1, R2": lambda a, b, _c: halves(lambda x, y: x + y)(a, b),
    "IMAD R4, R1, R2, R3": lambda a, b, c: a * b + c,
    "IMAD.IADD R4, R1, 0x1, -R3": lambda a, _b, c: a - c,
    "IMAD.MOV.U32 R4, RZ, RZ, R3": lambda _a, _b, c: c,
    "IMAD.SHL.U32 R4, R1, 0x4, RZ": lambda a, _b, _c: a << 2,
    "LEA R4, R1, R2, 0x5": lambda a, b, _c: (a << 5) + b,
    "LEA R4, R1, -R2, 0x1": lambda a, b, _c: (a << 1) - b,
    "LEA.HI R4, R1, R2, R3, 0x7": lambda a, b, c: ((c << 32 | a) << 7 >> 32) + b,
    "LEA.HI R4, R1, R2, RZ, 0x1f": lambda a, b, _c: (a << 31 >> 32) + b,
    "LEA.HI R4, R1, R2, R3, 0x0": lambda _a, b, c: c + b,
    "LEA.HI.SX32 R4, R1, R2, 0x1e": lambda a, b, _c: (signed(a) << 30 >> 32) + b,
    "IABS R4, R1": lambda a, _b, _c: abs(signed(a)),
    "VABSDIFF R4, R1, R2, R3": lambda a, b, c: abs(signed(a) - signed(b)) + c,
    "VABSDIFF.U32 R4, R1, R2, R3": lambda a, b, c: abs(a - b) + c,
    "VABSDIFF4.U8 R4, R1, R2, R3": lambda a, b, _c: sum(
        abs(x - y) << 8 * i
        for i, (x, y) in enumerate(zip(bytes_of(a, of_signed=False), bytes_of(b, of_signed=False), strict=True))
    ),
    "VABSDIFF4.U8.ACC R4, R1, R2, R3": lambda a, b, c: (
        sum(abs((a >> 8 * i & 255) - (b >> 8 * i & 255)) for i in range(4)) + c
    ),
    "IMNMX R4, R1, R2, PT": lambda a, b, _c: min(signed(a), signed(b)),
    "IMNMX.U32 R4, R1, R2, !PT": lambda a, b, _c: max(a, b),
    "VIMNMX R4, R1, R2, !PT": lambda a, b, _c: max(signed(a), signed(b)),
    "VIMNMX.RELU R4, R1, R2, PT": lambda a, b, _c: max(min(signed(a), signed(b)), 0),
    "VIMNMX.S16x2 R4, R1, R2, PT": lambda a, b, _c: two("S", min)(a, b),
    "VIMNMX.S16x2.RELU R4, R1, R2, !PT": lambda a, b, _c: two("S", lambda x, y: max(x, y, 0))(a, b),
    "VIMNMX.U16x2 R4, R1, R2, !PT": lambda a, b, _c: two("U", max)(a, b),
    "VIMNMX3 R4, R1, R2, R3, !PT": lambda a, b, c: max(signed(a), signed(b), signed(c)),
    "VIMNMX3.U32 R4, R1, R2, R3, PT": min,
    "VIMNMX3.S16x2.RELU R4, R1, R2, R3, PT": two("S", lambda *v: max(min(v), 0)),
    "VIADDMNMX R4, R1, R2, R3, PT": lambda a, b, c: min(signed(a + b), signed(c)),
    "VIADDMNMX R4, R1, -R2, R3, !PT": lambda a, b, c: max(signed(a - b), signed(c)),
    "VIADDMNMX.U32 R4, R1, R2, R3, !PT": lambda a, b, c: max((a + b) & M32, c),
    "VIADDMNMX.S16x2 R4, R1, R2, R3, PT": two("S", lambda x, y, z: min(signed(x + y, 16), z)),
    "IDP.4A.S8.S8 R4, R1, R2, R3": lambda a, b, c: dot(bytes_of(a, of_signed=True), bytes_of(b, of_signed=True), c),
    "IDP.4A.U8.S8 R4, R1, R2, R3": lambda a, b, c: dot(bytes_of(a, of_signed=False), bytes_of(b, of_signed=True), c),
    "IDP.4A.S8.U8 R4, R1, R2, -R3": lambda a, b, c: dot(bytes_of(a, of_signed=True), bytes_of(b, of_signed=False), -c),
    "IDP.2A.LO.S16.U8 R4, R1, R2, R3": lambda a, b, c: dot(
        words_of(a, of_signed=True), bytes_of(b, of_signed=False)[:2], c
    ),
    "IDP.2A.HI.U16.S8 R4, R1, R2, R3": lambda a, b, c: dot(
        words_of(a, of_signed=False), bytes_of(b, of_signed=True)[2:], c
    ),
    "IMAD.HI R4, R1, R2, RZ": lambda a, b, _c: signed(a) * signed(b) >> 32,
    "IMAD.HI.U32 R4, R1, R2, RZ": lambda a, b, _c: a * b >> 32,
}


@pytest.mark.parametrize("text", SIMPLE)
def test_one_word_of_three(text: str) -> None:
    rig = Rig()
    for a, b, c in rows(3):
        rig.r[1], rig.r[2], rig.r[3] = a, b, c
        rig.run(text)
        np.testing.assert_array_equal(rig.r[4], each(SIMPLE[text], a, b, c))


def carries(rig: Rig, text: str) -> tuple[Words, list[int], list[int]]:
    """The word that `text` leaves in R4, what P0 and P1 say of each lane after it."""
    rig.p[0], rig.p[1] = 0x0F0F0F0F, 0x33333333
    rig.run(text)
    first, second = ([int(bit) for bit in truths(rig.p[n])] for n in (0, 1))
    return rig.r[4].copy(), first, second


CARRYING: dict[str, Callable[[int, int, int, int, int], int]] = {
    "IADD3 R4, P0, R1, R2, RZ": lambda a, b, _c, _p, _q: a + b,
    "IADD3 R4, P0, R1, -R2, RZ": lambda a, b, _c, _p, _q: a + (M32 ^ b) + 1,
    "IADD3 R4, P0, RZ, -R1, RZ": lambda a, _b, _c, _p, _q: (M32 ^ a) + 1,
    "IADD3 R4, P0, R1, -0x5, RZ": lambda a, _b, _c, _p, _q: a + M32 - 4,
    "IADD3.X R4, P0, R1, R2, RZ, P0, !PT": lambda a, b, _c, p, _q: a + b + p,
    "IADD3.X R4, P0, R1, ~R2, RZ, P1, !PT": lambda a, b, _c, _p, q: a + (M32 ^ b) + q,
    "LEA R4, P0, R1, R2, 0x3": lambda a, b, _c, _p, _q: (a << 3 & M32) + b,
    "LEA R4, P0, -R1, R2, 0x3": lambda a, b, _c, _p, _q: (M32 ^ (a << 3 & M32)) + 1 + b,
    "LEA R4, P0, -R1, 0x21, 0x1": lambda a, _b, _c, _p, _q: (M32 ^ (a << 1 & M32)) + 1 + 0x21,
    "LEA.HI R4, P0, R1, R2, R3, 0x3": lambda a, b, c, _p, _q: ((c << 32 | a) << 3 >> 32 & M32) + b,
    "LEA.HI.X R4, P0, R1, R2, R3, 0x3, P1": lambda a, b, c, _p, q: ((c << 32 | a) << 3 >> 32 & M32) + b + q,
    "LEA.HI.X.SX32 R4, P0, R1, ~R2, 0x1, P1": lambda a, b, _c, _p, q: (signed(a) << 1 >> 32 & M32) + (M32 ^ b) + q,
    "LEA.X R4, P0, R1, R2, 0x4, P1": lambda a, b, _c, _p, q: (a << 4 & M32) + b + q,
}


@pytest.mark.parametrize("text", CARRYING)
def test_a_carry_in_and_out(text: str) -> None:
    rig = Rig()
    for a, b, c in rows(3):
        rig.r[1], rig.r[2], rig.r[3] = a, b, c
        result, first, _second = carries(rig, text)
        ins = truths(0x0F0F0F0F), truths(0x33333333)
        sums = [CARRYING[text](*map(int, lane)) for lane in zip(a, b, c, *ins, strict=True)]
        assert list(result) == [value & M32 for value in sums]
        assert first == [value >> 32 for value in sums]


@pytest.mark.parametrize("text", ["IADD3 R4, P0, P1, R1, R2, R3", "IADD3 R4, P0, P1, R1, -R2, R3"])
def test_two_carries_out_add_to_that_of_three_terms(text: str) -> None:
    rig = Rig()
    for a, b, c in [*rows(3), [np.full(32, M32, np.uint32)] * 3]:
        rig.r[1], rig.r[2], rig.r[3] = a, b, c
        result, first, second = carries(rig, text)
        term = each(lambda x: M32 ^ x, b) if "-" in text else b
        sums = [int(x) + int(y) + int(z) + ("-" in text) for x, y, z in zip(a, term, c, strict=True)]
        assert list(result) == [value & M32 for value in sums]
        assert [x + y for x, y in zip(first, second, strict=True)] == [value >> 32 for value in sums]


def test_two_carries_in() -> None:
    rig = Rig()
    a, b = rig.r[1], rig.r[2] = mixed(1), mixed(2)
    rig.p[0], rig.p[1] = 0x0F0F0F0F, 0x33333333
    rig.run("IADD3.X R4, R1, ~R2, RZ, P0, P1")
    expected = [
        int(x) - int(y) - 1 + int(p) + int(q) & M32
        for x, y, p, q in zip(a, b, truths(0x0F0F0F0F), truths(0x33333333), strict=True)
    ]
    assert list(rig.r[4]) == expected
    rig.run("IMAD.X R5, R1, 0x1, ~R2, P0")
    expected = [int(x) - int(y) - 1 + int(p) & M32 for x, y, p in zip(a, b, truths(0x0F0F0F0F), strict=True)]
    assert list(rig.r[5]) == expected


WIDE: dict[str, Callable[[int, int, int, int], tuple[int, int]]] = {
    "IMAD.WIDE R4, R1, R2, R6": lambda a, b, c, _p: (signed(a) * signed(b) & M64, c),
    "IMAD.WIDE R4, P1, R1, R2, -R6": lambda a, b, c, _p: (signed(a) * signed(b) & M64, (M64 ^ c) + 1),
    "IMAD.WIDE R4, R1, -0x7, R6": lambda a, _b, c, _p: (signed(a) * -7 & M64, c),
    "IMAD.WIDE.U32 R4, R1, -0x7, R6": lambda a, _b, c, _p: (a * (M32 - 6), c),
    "IMAD.WIDE.U32 R4, P1, R1, R2, R6": lambda a, b, c, _p: (a * b, c),
    "IMAD.WIDE.U32.X R4, P1, R1, R2, R6, P0": lambda a, b, c, p: (a * b, c + p),
    "IMAD.WIDE.U32.X R4, P1, R1, R2, ~R6, P0": lambda a, b, c, p: (a * b, (M64 ^ c) + p),
    "IMAD.HI.U32 R4, P1, R1, R2, R6": lambda a, b, c, _p: (a * b, c),
    "IMAD.HI R4, P1, R1, R2, R6": lambda a, b, c, _p: (signed(a) * signed(b) & M64, c),
}


@pytest.mark.parametrize("text", WIDE)
def test_products_of_64_bits(text: str) -> None:
    rig = Rig()
    for a, b, low, high in rows(4):
        rig.r[1], rig.r[2], rig.r[6], rig.r[7] = a, b, low, high
        rig.p[0], rig.p[1] = 0x0F0F0F0F, 0
        rig.run(text)
        ins = [(x, y, int(h) << 32 | int(g)) for x, y, g, h in zip(a, b, low, high, strict=True)]
        carry = truths(0x0F0F0F0F)
        sums = [sum(WIDE[text](int(x), int(y), c, int(p))) for (x, y, c), p in zip(ins, carry, strict=True)]
        if ".HI" in text:
            assert list(rig.r[4]) == [value >> 32 & M32 for value in sums]
        else:
            assert list(rig.pair(4)) == [value & M64 for value in sums]
        if "P1" in text:
            assert list(truths(rig.p[1])) == [bool(value >> 64) for value in sums]


@pytest.mark.parametrize("part", ["LO", "HI"])
def test_products_without_carries(part: str) -> None:
    rig = Rig()
    for registers in rows(6, 4):
        for index, row in enumerate(registers, start=2):
            rig.r[index] = row
        rig.run(f"CLMAD.{part} R8, R2, R4, R6")
        for lane, result in enumerate(rig.pair(8)):
            a, b, c = (int(rig.pair(register)[lane]) for register in (2, 4, 6))
            product = 0
            for bit in range(64):
                product ^= (a << bit) * (b >> bit & 1)
            assert int(result) == (product >> 64 if part == "HI" else product) & M64 ^ c


@pytest.mark.parametrize("word", ["PT", "!PT"])
@pytest.mark.parametrize("kind", ["S", "U"])
def test_predicates_of_a_packed_extreme_say_what_was_taken(word: str, kind: str) -> None:
    rig = Rig()
    for a, b in rows(2):
        rig.r[1], rig.r[2] = a, b
        rig.run(f"VIMNMX.{kind}16x2 R4, P0, P1, R1, R2, {word}")
        for predicate, shift in ((0, 0), (1, 16)):
            pairs = [(int(x) >> shift & 0xFFFF, int(y) >> shift & 0xFFFF) for x, y in zip(a, b, strict=True)]
            numbers = [(signed(x, 16), signed(y, 16)) if kind == "S" else (x, y) for x, y in pairs]
            expected = [x <= y if word == "PT" else x >= y for x, y in numbers]
            assert list(truths(rig.p[predicate])) == expected


def test_an_extreme_chosen_by_a_predicate() -> None:
    rig = Rig()
    a, b = rig.r[1], rig.r[2] = mixed(5), mixed(6)
    rig.p[3] = 0x00FF00FF
    rig.run("IMNMX.U32 R4, R1, R2, P3")
    np.testing.assert_array_equal(rig.r[4], np.where(truths(0x00FF00FF), np.minimum(a, b), np.maximum(a, b)))


def test_lanes_that_do_not_execute_keep_their_values() -> None:
    rig = Rig()
    a, b = rig.r[1], rig.r[2] = mixed(7), mixed(8)
    rig.r[4] = old = mixed(9)
    rig.p[0], rig.p[1] = 0x00FF00FF, 0xAAAA5555
    rig.run("@!P1 IADD3 R4, P0, R1, R2, RZ", lanes=0x0000FFFF)
    on = truths(0x0000FFFF & ~0xAAAA5555)
    np.testing.assert_array_equal(rig.r[4], np.where(on, a + b, old))
    over = (a.astype(np.uint64) + b) >> np.uint64(32) != 0
    assert int(rig.p[0]) == mask(np.where(on, over, truths(0x00FF00FF)))


def test_nothing_is_written_to_rz_and_pt() -> None:
    rig = Rig()
    rig.r[1] = ALL
    rig.run("IADD3 RZ, PT, R1, R1, RZ")
    rig.run("IMAD.WIDE RZ, R1, R1, RZ")
    rig.run("IADD3 R4, RZ, RZ, RZ")
    rig.run("@PT IADD3 R5, R4, 0x1, RZ")
    assert not rig.r[4].any()
    assert (rig.r[5] == 1).all()


def test_constants_as_operands() -> None:
    rig = Rig(constants={0: np.arange(64, dtype=np.uint32).tobytes()})
    rig.r[1] = a = mixed(10)
    rig.run("IMAD R4, R1, c[0x0][0x14], R1")
    np.testing.assert_array_equal(rig.r[4], a * 6)
    rig.run("IMAD.WIDE.U32 R6, R1, 0x2, c[0x0][0x20]")
    assert list(rig.pair(6)) == [int(x) * 2 + (9 << 32 | 8) for x in a]


@pytest.mark.parametrize(
    "text",
    [
        "IMAD.WIDE R4, R1, R2, 0x5",
        "VABSDIFF4 R4, R1, R2, R3",
        "VIMNMX.U32.RELU R4, R1, R2, PT",
        "LEA.HI R4, -R1, R2, R3, 0x3",
        "IADD3.S16 R4, R1, R2, R3",
        "IDP.4A.S8 R4, R1, R2, R3",
        "IADD3 R4, R1.H1, R2, R3",
        "VIADD.16x2 R4, R1, -R2",
    ],
)
def test_what_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedError, match="no meaning for"):
        Rig().run(text)
