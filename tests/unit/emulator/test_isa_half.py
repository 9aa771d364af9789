"""Instructions on pairs of 16-bit floats against exact fractions."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from support.exact_floats import BF16, F16, F32, Binary, differences
from support.isa_harness import Rig, mask, truths

SEEDS = range(12)
FORMATS = {"": F16, ".BF16_V2": BF16}


def filled(form: Binary, seed: int) -> Rig:
    rig = Rig()
    for register in range(4):
        words = form.samples(13 * seed + register, 64)
        rig.r[register] = np.array(
            [low | high << 16 for low, high in zip(words[::2], words[1::2], strict=True)], np.uint32
        )
    rig.r[2, :4] = rig.r[1, :4] ^ 0x80008000
    return rig


def split(words: np.ndarray[tuple[int, ...], np.dtype[np.uint32]]) -> list[int]:
    """Lower halves, then upper halves."""
    return [int(word) & 0xFFFF for word in words] + [int(word) >> 16 for word in words]


def finished(form: Binary, flags: str, pattern: int) -> int:
    if "FTZ" in flags and form is F16:
        pattern = form.flushed(pattern)
    if "SAT" in flags:
        return 0 if form.is_nan(pattern) or pattern & form.sign else min(pattern, form.of(1.0))
    if "RELU" in flags and pattern & form.sign and not form.is_nan(pattern):
        return 0
    return pattern


def operation(opcode: str, form: Binary, flags: str) -> Callable[[int, int, int], int]:
    def of(a: int, b: int, c: int) -> int:
        if "FTZ" in flags and form is F16:
            a, b, c = (form.flushed(pattern) for pattern in (a, b, c))
        made = {"HADD2": lambda: form.sum(a, b), "HMUL2": lambda: form.product(a, b)}.get(
            opcode, lambda: form.fused(a, b, c)
        )()
        return finished(form, flags, made)

    return of


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("flags", ["", ".FTZ", ".SAT", ".RELU"])
@pytest.mark.parametrize("opcode", ["HADD2", "HMUL2", "HFMA2", "HFMA2.MMA"])
def test_arithmetic_is_rounded_once(opcode: str, flags: str, kind: str) -> None:
    form = FORMATS[kind]
    expected = operation(opcode, form, flags)
    operands = "R4, R1, R2, R3" if opcode.startswith("HFMA2") else "R4, R1, R2"
    for seed in SEEDS:
        rig = filled(form, seed)
        rig.run(f"{opcode}{kind}{flags} {operands}")
        rows = zip(*(split(rig.r[register]) for register in (1, 2, 3)), strict=True)
        assert not differences(form, split(rig.r[4]), [expected(*row) for row in rows])


@pytest.mark.parametrize(("kind", "factors"), [("", (2.0**-5, 2.0**-6)), (".BF16_V2", (2.0**-4, 2.0**-4))])
def test_an_addend_far_below_a_tie_decides(kind: str, factors: tuple[float, float]) -> None:
    """A product half-way between two numbers of the format: what is added may be as small as the format allows."""
    form = FORMATS[kind]
    step = 2.0**-form.mantissa
    a, b = (form.of(1 + more) for more in factors)
    product = form.value(a) * form.value(b)
    assert product % step == step / 2
    for addend in (1, form.sign | 1, 1 << form.mantissa, form.sign | 1 << form.mantissa):
        rig = Rig()
        rig.r[1], rig.r[2], rig.r[3] = (pattern * 0x10001 for pattern in (a, b, addend))
        rig.run(f"HFMA2{kind} R4, R1, R2, R3")
        assert set(split(rig.r[4])) == {form.of(product + form.value(addend))}


@pytest.mark.parametrize("kind", FORMATS)
def test_products_among_denormals(kind: str) -> None:
    form = FORMATS[kind]
    rng = np.random.default_rng(5)
    for _ in range(20):
        low = rng.integers(1 << form.mantissa, 2 << form.mantissa, (2, 64))
        exponent = rng.integers(1, form.bias - form.mantissa, 64)
        other = form.bias - form.mantissa + 1 - exponent + rng.integers(-2, 4, 64)
        words = [
            [int(field - 1 << form.mantissa) + int(bits) for field, bits in zip(fields, row, strict=True)]
            for fields, row in zip((exponent, other.clip(1)), low, strict=True)
        ]
        rig = Rig()
        for register, row in enumerate(words, start=1):
            rig.r[register] = np.array(row[:32], np.uint32) | np.array(row[32:], np.uint32) << 16
        rig.run(f"HMUL2{kind} R4, R1, R2")
        assert split(rig.r[4]) == [form.product(a, b) for a, b in zip(*words, strict=True)]


def test_nan_is_the_hardwares() -> None:
    rig = Rig()
    rig.r[1] = 0xFE55FC01
    for kind, text in itertools.product(FORMATS, ("HADD2{} R4, R1, R1", "HFMA2{}.RELU R4, R1, R1, R1")):
        rig.r[1] = 0xFFD5FF81
        rig.run(text.format(kind))
        assert (rig.r[4] == 0x7FFF7FFF).all()


def test_halves_are_selected_negated_and_taken_from_the_instruction() -> None:
    rig = filled(F16, 4)
    low, high = split(rig.r[1])[:32], split(rig.r[1])[32:]
    rig.run("HADD2 R4, -R1.H1_H1, RZ.H0_H0")
    assert not differences(F16, split(rig.r[4]), [F16.sum(word ^ F16.sign, 0) for word in high] * 2)
    rig.run("HADD2.F32 R4, -RZ, |R1|.H0_H0")
    assert not differences(F32, rig.r[4].tolist(), [F32.of(F16.number(word & 0x7FFF)) for word in low])
    one_half, minus_two = F16.of(0.5), F16.of(-2.0)
    rig.run("HFMA2.MMA R4, R1, 0.5, -2, RZ", field=one_half << 16 | minus_two)
    expected = [F16.fused(word, minus_two, 0) for word in low] + [F16.fused(word, one_half, 0) for word in high]
    assert not differences(F16, split(rig.r[4]), expected)


def test_a_constant_is_written_by_way_of_zeros() -> None:
    rig = Rig()
    for pattern in (0, 1, 0x80000000, 0x3C000001, 0x8000FC00, 0x12345678):
        rig.run("HFMA2.MMA R4, -RZ, RZ, 1, 1", field=pattern)
        assert set(rig.r[4].tolist()) == {pattern}


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", ["LT", "LE", "GT", "GE", "EQ", "NE", "LTU", "GEU", "NEU", "NUM", "NAN"])
def test_comparisons(name: str, kind: str) -> None:
    form = FORMATS[kind]
    one = form.of(1.0)
    for seed in SEEDS:
        rig = filled(form, seed)
        rig.p[2] = 0x0FF00FF0
        numbers = [np.array([float(form.number(word)) for word in split(rig.r[register])]) for register in (1, 2)]
        unordered = np.isnan(numbers[0]) | np.isnan(numbers[1])
        if name in {"NUM", "NAN"}:
            holds = unordered == (name == "NAN")
        else:
            holds = getattr(numbers[0], f"__{name[:2].lower()}__")(numbers[1])
            holds = holds | unordered if name.endswith("U") else holds & ~unordered
        rig.run(f"HSETP2{kind}.{name}.AND P0, P1, R1, R2, P2")
        assert rig.p[0] == mask(holds[:32]) & 0x0FF00FF0
        assert rig.p[1] == mask(holds[32:]) & 0x0FF00FF0
        rig.run(f"HSET2{kind}.BF.{name}.OR R4, R1, R2, P2")
        either = holds | np.tile(truths(0x0FF00FF0), 2)
        assert split(rig.r[4]) == [one if on else 0 for on in either]
        rig.run(f"HSET2{kind}.{name}.AND R4, R1.H0_H0, R2.H0_H0, PT")
        assert split(rig.r[4]) == [0xFFFF if on else 0 for on in np.tile(holds[:32], 2)]


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("kind", FORMATS)
def test_extremes(kind: str) -> None:
    form = FORMATS[kind]

    def order(pattern: int) -> int:
        return -(pattern & 0x7FFF) - 1 if pattern & form.sign else pattern

    for seed, flags, least in itertools.product(SEEDS, ("", ".NAN"), (True, False)):
        rig = filled(form, seed)
        rig.run(f"HMNMX2{kind}{flags} R4, R1, R2, {'PT' if least else '!PT'}")
        expected = []
        for a, b in zip(split(rig.r[1]), split(rig.r[2]), strict=True):
            nans = form.is_nan(a), form.is_nan(b)
            if all(nans) or (any(nans) and flags):
                expected.append(0x7FFF)
            elif any(nans):
                expected.append(b if nans[0] else a)
            else:
                expected.append(sorted((a, b), key=order)[0 if least else 1])
        assert split(rig.r[4]) == expected


def test_extremes_with_the_products_sign() -> None:
    rig = Rig()
    rig.r[1], rig.r[2] = F16.of(-2.0) << 16 | F16.of(3.0), F16.of(-1.0) << 16 | F16.of(-4.0)
    rig.run("HMNMX2.XORSIGN R4, |R1|, |R2|, PT")
    assert (rig.r[4] == (F16.of(1.0) << 16 | F16.of(-3.0))).all()


def test_a_guard_keeps_lanes() -> None:
    rig = filled(F16, 1)
    rig.r[4] = 7
    rig.run("HADD2 R4, R1, R2", lanes=0x000000FF)
    assert (rig.r[4, 8:] == 7).all()
