"""Instructions on doubles against exact fractions."""

from __future__ import annotations

import numpy as np
import pytest

from support.exact_floats import F64, MODES, differences
from support.isa_harness import ALL, Rig, mask, truths

SEEDS = range(20)
HALF_MORE = F64.of(1.5)


def filled(seed: int) -> Rig:
    rig = Rig()
    rows = [F64.samples(11 * seed + number, 32) for number in range(3)]
    # Sums that cancel to the last bit, products that nearly are denormal, an addend far below a product.
    rows[1][:3] = [word ^ F64.sign for word in rows[0][:3]]
    rows[0][3:6], rows[1][3:6] = [F64.of(2.0**-520 * 1.3)] * 3, [F64.of(2.0**-520 * 1.7)] * 3
    rows[2][3:6] = [1, F64.sign | 1, F64.of(2.0**-1040 * 1.1)]
    for number, row in enumerate(rows):
        rig.set_pair(2 + 2 * number, np.array(row, np.uint64))
    return rig


def lanes(rig: Rig, register: int) -> list[int]:
    return [int(word) for word in rig.pair(register)]


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("mode", MODES)
def test_arithmetic_is_rounded_once(mode: str) -> None:
    dot = f".{mode}" if mode else ""
    for seed in SEEDS:
        rig = filled(seed)
        a, b, c = (lanes(rig, register) for register in (2, 4, 6))
        rig.run(f"DADD{dot} R10, R2, R4")
        assert not differences(F64, lanes(rig, 10), [F64.sum(*row, mode) for row in zip(a, b, strict=True)])
        rig.run(f"DMUL{dot} R10, R2, R4")
        assert not differences(F64, lanes(rig, 10), [F64.product(*row, mode) for row in zip(a, b, strict=True)])
        rig.run(f"DFMA{dot} R10, R2, R4, R6")
        expected = [F64.fused(*row, mode) for row in zip(a, b, c, strict=True)]
        assert not differences(F64, lanes(rig, 10), expected)


def test_signs_immediates_and_guards() -> None:
    rig = filled(2)
    a, before = lanes(rig, 2), lanes(rig, 10)
    rig.p[3] = 0xF00FF00F
    rig.run("@!P3 DADD.RP R10, -|R2|, 1.5", field=HALF_MORE >> 32)
    expected = [
        old if on else F64.sum(word | F64.sign, HALF_MORE, "RP")
        for word, old, on in zip(a, before, truths(0xF00FF00F), strict=True)
    ]
    assert not differences(F64, lanes(rig, 10), expected)


def test_nan_is_the_last_operands_and_signs_leave_it_alone() -> None:
    rig = Rig()
    first, second = 0x7FF0000000000001, 0xFFF8000000000123
    for number, pattern in enumerate((first, second, F64.of(1.0))):
        rig.set_pair(2 + 2 * number, np.full(32, pattern, np.uint64))
    for text, wanted in (
        ("DADD R10, R2, -R4", second),
        ("DADD R10, -|R2|, R6", first | 1 << 51),
        ("DMUL.RZ R10, R4, R2", first | 1 << 51),
        ("DFMA R10, R2, R4, -R6", second),
        ("DFMA.RM R10, R6, R6, R2", first | 1 << 51),
    ):
        rig.run(text)
        assert set(lanes(rig, 10)) == {wanted}, text
    rig.set_pair(2, np.full(32, F64.infinity, np.uint64))
    rig.run("DADD R10, R2, -R2")
    assert set(lanes(rig, 10)) == {0xFFF8000000000000}


@pytest.mark.parametrize("name", ["LT", "LE", "GT", "GE", "EQ", "NE"])
def test_comparisons(name: str) -> None:
    for seed in SEEDS:
        rig = filled(seed)
        a, b = rig.pair(2).view(np.float64), rig.pair(4).view(np.float64)
        unordered = np.isnan(a) | np.isnan(b)
        holds = getattr(a, f"__{name.lower()}__")(b)
        rig.run(f"DSETP.{name}.AND P0, P1, R2, R4, PT")
        assert rig.p[0] == mask(holds & ~unordered)
        assert rig.p[1] == mask(holds & ~unordered) ^ ALL
        rig.run(f"DSETP.{name}U.AND P0, PT, R2, R4, PT")
        assert rig.p[0] == mask(holds | unordered)
        rig.run("DSETP.NUM.AND P0, P1, R2, R4, PT")
        assert rig.p[0] == mask(~unordered)


@pytest.mark.parametrize("name", ["MIN", "MAX"])
def test_extremes_as_compiled_code_composes_them(name: str) -> None:
    for seed in SEEDS:
        rig = filled(seed)
        a, b = lanes(rig, 2), lanes(rig, 4)
        rig.run(f"DSETP.{name}.AND P0, P1, R2, R4, PT")
        for lane, (one, two, first, both) in enumerate(zip(a, b, truths(rig.p[0]), truths(rig.p[1]), strict=True)):
            got = (two | 1 << 51) if both else one if first else two
            assert F64.same(got, extreme(name, one, two)), (lane, hex(one), hex(two))


def extreme(name: str, one: int, two: int) -> int:
    if F64.is_nan(one) or F64.is_nan(two):
        return two if F64.is_nan(one) else one
    choose = min if name == "MIN" else max
    return choose(one, two, key=lambda pattern: -(pattern & ~F64.sign) - 1 if pattern & F64.sign else pattern)
