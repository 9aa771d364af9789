"""Shifts, bit fields, bit counts, byte permutations, logic and saturating conversions, against Python's integers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gemmlab.emulator.form import UnsupportedError
from support.isa_harness import M32, M64, Rig, Words, each, mixed, rows, signed, truths

AMOUNTS = (0, 1, 2, 5, 8, 15, 16, 24, 30, 31, 32, 33, 47, 62, 63, 64, 65, 95, 127, 128, 255, 256, 0x80000000, M32)


def amounts(seed: int) -> Words:
    """A row of shift amounts, every one of interest among them."""
    rng = np.random.default_rng(seed)
    return rng.permutation(np.array((*AMOUNTS, *rng.integers(0, 80, 32 - len(AMOUNTS))), np.uint32))


def shifted(name: str, low: int, amount: int, high: int) -> int:
    """What the modifiers of SHF say."""
    parts = name.split(".")
    width = 64 if "64" in name else 32
    amount = amount % width if "W" in parts else min(amount, width)
    pair = high << 32 | low
    if "L" in parts:
        pair = pair << amount & M64
    else:
        pair = (signed(pair, 64) if "S" in parts[-1 - ("HI" in parts)] else pair) >> amount
    return (pair >> 32 if "HI" in parts else pair) & M32


SHIFTS = [
    f"SHF.{side}{wrap}.{kind}{part}"
    for side, wrap, kind, part in itertools.product("LR", ("", ".W"), ("U32", "S32", "U64", "S64"), ("", ".HI"))
]


@pytest.mark.parametrize("name", SHIFTS)
def test_shifts_by_any_amount(name: str) -> None:
    rig = Rig()
    for number, (low, high) in enumerate(rows(2, 4)):
        rig.r[1], rig.r[2], rig.r[3] = low, amounts(number), high
        rig.run(f"{name} R4, R1, R2, R3")
        expected = each(lambda a, s, b: shifted(name, a, s, b), low, rig.r[2], high)
        np.testing.assert_array_equal(rig.r[4], expected)
    rig.run(f"{name} R4, R1, 0x9, RZ")
    np.testing.assert_array_equal(rig.r[4], each(lambda a: shifted(name, a, 9, 0), rig.r[1]))


def bmsk(start: int, width: int, *, wrap: bool) -> int:
    if wrap:
        start, width = start & 31, width & 31
    return ((1 << min(width, 32)) - 1) << min(start, 32) & M32


def sgxt(value: int, width: int, *, wrap: bool, unsigned: bool) -> int:
    width = width & 31 if wrap else min(width, 32)
    kept = value & ((1 << width) - 1)
    return kept if unsigned or not width else signed(kept, width)


@pytest.mark.parametrize("wrap", [False, True])
def test_masks_and_fields_of_any_width(wrap: bool) -> None:
    rig = Rig()
    word = ".W" if wrap else ""
    for seed in range(6):
        rig.r[1], rig.r[2], rig.r[3] = amounts(2 * seed), amounts(2 * seed + 1), mixed(seed)
        rig.run(f"BMSK{word} R4, R1, R2")
        np.testing.assert_array_equal(rig.r[4], each(lambda s, w: bmsk(s, w, wrap=wrap), rig.r[1], rig.r[2]))
        for unsigned in (False, True):
            rig.run(f"SGXT{word}{'.U32' if unsigned else ''} R4, R3, R2")
            expected = each(lambda v, w, u=unsigned: sgxt(v, w, wrap=wrap, unsigned=u), rig.r[3], rig.r[2])
            np.testing.assert_array_equal(rig.r[4], expected)


def highest(value: int) -> int:
    """Position of the highest set bit, -1 where there is none."""
    return value.bit_length() - 1


def test_positions_and_counts_of_bits() -> None:
    rig = Rig()
    powers = (np.uint32(1) << np.arange(32, dtype=np.uint32)).astype(np.uint32)
    for row in (powers, ~powers, powers - np.uint32(1), mixed(1), np.zeros(32, np.uint32), np.full(32, M32, np.uint32)):
        rig.r[1] = row
        sign_free = [int(v) ^ (M32 if int(v) >> 31 else 0) for v in row]
        for text, expected in {
            "FLO.U32 R4, R1": each(highest, row),
            "FLO.U32 R4, ~R1": each(lambda v: highest(v ^ M32), row),
            "FLO R4, R1": each(highest, np.array(sign_free)),
            "FLO.U32.SH R4, R1": each(lambda v: 31 - highest(v) if v else -1, row),
            "FLO.SH R4, R1": each(lambda v: 31 - highest(v) if v else -1, np.array(sign_free)),
            "POPC R4, R1": each(int.bit_count, row),
            "POPC R4, ~R1": each(lambda v: (v ^ M32).bit_count(), row),
            "BREV R4, R1": each(lambda v: int(f"{v:032b}"[::-1], 2), row),
        }.items():
            rig.run(text)
            np.testing.assert_array_equal(rig.r[4], expected, text)


TABLES = {
    "F4E": (0x3210, 0x4321, 0x5432, 0x6543),
    "B4E": (0x5670, 0x6701, 0x7012, 0x0123),
    "RC8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ECL": (0x3210, 0x3211, 0x3222, 0x3333),
    "ECR": (0x0000, 0x1110, 0x2210, 0x3210),
    "RC16": (0x1010, 0x3232, 0x1010, 0x3232),
}
"""The PTX manual's tables for `prmt`, bytes d.b3 to d.b0."""


def permuted(a: int, selector: int, b: int) -> int:
    octets = (b << 32 | a).to_bytes(8, "little")
    result = 0
    for place in range(4):
        nibble = selector >> 4 * place & 15
        octet = octets[nibble & 7]
        if nibble & 8:
            octet = 255 if octet & 128 else 0
        result |= octet << 8 * place
    return result


@pytest.mark.parametrize("mode", ["", *TABLES])
def test_permutations(mode: str) -> None:
    rig = Rig()
    for a, selector, b in rows(3):
        rig.r[1], rig.r[2], rig.r[3] = a, selector, b
        rig.run(f"PRMT{'.' * bool(mode)}{mode} R4, R1, R2, R3")
        chosen = np.array([TABLES[mode][int(s) & 3] for s in selector]) if mode else selector
        np.testing.assert_array_equal(rig.r[4], each(permuted, a, chosen, b))
    rig.run("PRMT R4, R1, 0x9910, RZ")
    np.testing.assert_array_equal(rig.r[4], rig.r[1].astype(np.int16).astype(np.int32).view(np.uint32))


def looked_up(table: int, *inputs: int) -> int:
    """Bit by bit through the table, the first input as the highest bit of the index."""
    result = 0
    for place in range(32):
        index = sum((value >> place & 1) << rank for rank, value in enumerate(reversed(inputs)))
        result |= (table >> index & 1) << place
    return result


@pytest.mark.parametrize("table", [*range(0, 256, 23), 0x96, 0xE8, 0xCA, 0x80, 0xFE, 0x1, 0xFF, 0xC0, 0x3C, 0xF8])
def test_any_function_of_three_words(table: int) -> None:
    rig = Rig()
    a, b, c = rig.r[1], rig.r[2], rig.r[3] = mixed(1), mixed(2), mixed(3)
    expected = each(lambda *v: looked_up(table, *v), a, b, c)
    rig.run(f"LOP3.LUT R4, R1, R2, R3, {table:#x}, !PT")
    np.testing.assert_array_equal(rig.r[4], expected)


@pytest.mark.slow
def test_every_table_on_predicates() -> None:
    rig = Rig()
    rig.p[0], rig.p[1], rig.p[2] = 0x0F0F0F0F, 0x33333333, 0x55555555
    ins = [int(word) for word in rig.p[:3]]
    for table in range(256):
        rig.run(f"PLOP3.LUT P3, P4, P0, P1, P2, {table:#x}, {table ^ 0xA5:#x}")
        assert int(rig.p[3]) == looked_up(table, *ins)
        assert int(rig.p[4]) == looked_up(table ^ 0xA5, *ins)


def test_predicates_of_signs_and_negated_inputs() -> None:
    rig = Rig()
    rig.r[1] = a = mixed(4)
    rig.p[0] = 0x0F0F0F0F
    rig.run("PLOP3.LUT P3, PT, R1.SIGN, !P0, PT, 0x80, 0x0")
    np.testing.assert_array_equal(truths(rig.p[3]), (a.view(np.int32) < 0) & ~truths(0x0F0F0F0F))
    rig.up[2] = M32
    rig.run("PLOP3.LUT P4, PT, !P0, PT, UP2, 0x80, 0x0")
    assert int(rig.p[4]) == 0xF0F0F0F0
    rig.run("PLOP3.LUT P5, PT, PT, PT, PT, 0x8, 0x0")
    rig.run("PLOP3.LUT P6, PT, PT, PT, PT, 0x80, 0x0")
    assert (int(rig.p[5]), int(rig.p[6])) == (0, M32)


def test_the_predicate_of_a_logic_function() -> None:
    rig = Rig()
    a, b = rig.r[1], rig.r[2] = mixed(5), mixed(6) & np.uint32(3)
    some = (a & b) != 0
    rig.p[0] = 0x0F0F0F0F
    rig.run("LOP3.LUT P1, R4, R1, R2, RZ, 0xc0, !PT")
    np.testing.assert_array_equal(truths(rig.p[1]), some)
    np.testing.assert_array_equal(rig.r[4], a & b)
    rig.run("LOP3.LUT P2, RZ, R1, R2, RZ, 0xc0, P0")
    np.testing.assert_array_equal(truths(rig.p[2]), some | truths(0x0F0F0F0F))
    rig.run("LOP3.LUT.PAND P3, RZ, R1, R2, RZ, 0xc0, P0")
    np.testing.assert_array_equal(truths(rig.p[3]), some & truths(0x0F0F0F0F))


def saturated(kind: str, value: int) -> int:
    bits = int(kind[1:])
    low, high = (-1 << (bits - 1), (1 << (bits - 1)) - 1) if kind[0] == "S" else (0, (1 << bits) - 1)
    return min(max(signed(value), low), high)


@pytest.mark.parametrize("kind", ["U8", "S8", "U16", "S16"])
def test_saturation(kind: str) -> None:
    rig = Rig()
    for (a,) in rows(1):
        rig.r[1] = a
        rig.run(f"I2I.{kind}.S32.SAT R4, R1")
        np.testing.assert_array_equal(rig.r[4], each(lambda v: saturated(kind, v), a))


@pytest.mark.parametrize("kind", ["U16", "S16", "U8", "S8", "U4", "S4", "U2", "S2"])
def test_packing_with_saturation(kind: str) -> None:
    rig = Rig()
    bits = int(kind[1:])
    ones, suffix = (1 << bits) - 1, {4: ".24", 2: ".28"}.get(bits, "")
    for a, b, c in rows(3):
        rig.r[1], rig.r[2], rig.r[3] = a, b, c
        rig.run(f"I2IP.{kind}.S32.SAT R4, R1, R2, {'RZ' if bits == 16 else 'R3'}{suffix}")

        def packed(x: int, y: int, z: int) -> int:
            low = (saturated(kind, x) & ones) << bits | saturated(kind, y) & ones
            return low if bits == 16 else low | z << 2 * bits

        np.testing.assert_array_equal(rig.r[4], each(packed, a, b, c))


@pytest.mark.parametrize(
    "text",
    [
        "I2IP.U8.S32.SAT R4, R1, R2, R3.H1",
        "I2IP.U8.S32 R4, R1, R2, R3",
        "FLO.U32 R4, P0, R1",
        "PRMT.INVALID7 R4, R1, R2, R3",
        "SHF.L.U32 R4, R1.H1, R2, R3",
    ],
)
def test_what_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedError, match="no meaning for"):
        Rig().run(text)
