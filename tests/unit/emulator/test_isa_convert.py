"""Conversions between formats, against exact fractions and Python's integers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gemmlab.emulator.form import UnsupportedError
from support.exact_floats import BF16, E4M3, E5M2, F16, F32, F64, MODES, Binary, differences, integer_of
from support.isa_harness import EDGES, Rig

FORMATS = {"F16": F16, "BF16": BF16, "F32": F32, "F64": F64}
HOW = ("", "FLOOR", "CEIL", "TRUNC")
INTEGERS = [sign + str(bits) for sign in "SU" for bits in (8, 16, 32, 64)]


def named(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def bounds(name: str) -> tuple[int, int, int]:
    bits = int(name[1:])
    return (-(1 << bits - 1), (1 << bits - 1) - 1, bits) if name[0] == "S" else (0, (1 << bits) - 1, bits)


def given(rig: Rig, patterns: list[int]) -> None:
    """The operand in R2, R3."""
    rig.set_pair(2, np.array(patterns, np.uint64))


def taken(rig: Rig, bits: int) -> list[int]:
    """The result in R4, R5."""
    return [int(word) for word in (rig.pair(4) if bits == 64 else rig.r[4])]


def floats(form: Binary, seed: int, bits: int) -> list[int]:
    """Numbers around an integer type's limits, and others."""
    near = [
        form.of(float(sign * (limit + step)))
        for limit in (1 << bits, 1 << (bits - 1), 0)
        for step in (-1, -0.5, 0, 0.5, 1.5, 2.5)
        for sign in (1, -1)
    ]
    return [*near[:32], *form.samples(seed, 64)][: 32 * (1 + seed % 2)][-32:]


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("kind", FORMATS)
def test_floats_become_integers(kind: str, name: str) -> None:
    form = FORMATS[kind]
    low, high, bits = bounds(name)
    width = max(bits, 32)
    for how, zero, seed in itertools.product(HOW, (True, False), range(6)):
        rig = Rig()
        patterns = floats(form, seed, bits)
        given(rig, patterns)
        shown = "" if kind == "F32" else kind
        rig.run(named("F2I", "" if name == "S32" else name, shown, how, "NTZ" if zero else "") + " R4, R2")
        nan = 0 if zero else 1 << (bits - 1)
        if not zero and name[0] == "S":
            nan -= 1 << bits
        expected = [integer_of(form.number(word), low, high, how, nan) & (1 << width) - 1 for word in patterns]
        assert taken(rig, width) == expected


def test_denormals_are_flushed_before_rounding_up() -> None:
    rig = Rig()
    rig.r[2] = 1
    rig.run("F2I.CEIL.NTZ R4, R2")
    assert (rig.r[4] == 1).all()
    rig.run("F2I.FTZ.CEIL.NTZ R4, R2")
    assert (rig.r[4] == 0).all()


def test_two_bytes_are_packed() -> None:
    rig = Rig()
    rig.r[1], rig.r[2], rig.r[3] = F32.of(300.0), F32.of(2.5), 0xABCD1234
    rig.run("F2IP.U8.F32.NTZ R4, R1, R2, R3")
    assert (rig.r[4] == 0x1234FF02).all()
    rig.r[2] = F32.of(float("nan"))
    rig.run("F2IP.U8.F32.TRUNC.NTZ R4, RZ, R2, RZ")
    assert (rig.r[4] == 0).all()


def integers(name: str, seed: int) -> list[int]:
    """Bit patterns: edges, and numbers of any magnitude with few and many bits."""
    bits = int(name[1:])
    rng = np.random.default_rng(seed)
    edges = [edge << shift & (1 << bits) - 1 for edge in EDGES for shift in (0, bits // 2)]
    spread = [int(rng.integers(0, 1 << 63)) * 2 + 1 >> int(rng.integers(64 - bits, 64)) for _ in range(32)]
    ties = [(2 * odd + 1) << int(rng.integers(0, bits)) & (1 << bits) - 1 for odd in spread]
    near = [word ^ int(rng.integers(0, 2)) for word in ties]
    pool = [*edges, *spread, *ties, *near]
    return [pool[place] for place in rng.integers(0, len(pool), 32)]


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", FORMATS)
def test_integers_become_floats(kind: str, mode: str) -> None:
    form = FORMATS[kind]
    for name, seed in itertools.product(INTEGERS, range(8)):
        low, _high, bits = bounds(name)
        rig = Rig()
        patterns = integers(name, seed)
        rig.set_pair(2, np.array(patterns, np.uint64))
        if bits < 32:
            rig.r[2] |= np.uint32(0xA5A5A5A5 << bits & 0xFFFFFFFF)
        shown = "" if kind == "F32" else kind
        rig.run(named("I2F", shown, "" if name == "S32" else name, mode) + " R4, R2")
        numbers = [word - (1 << bits) if low and word >> (bits - 1) else word for word in patterns]
        # The nearest double would be one rounding too many.
        expected = [form.of(number + 0 * form.value(1), mode) for number in numbers]
        assert not differences(form, taken(rig, form.bits), expected), (name, seed)


def test_parts_of_a_register_become_floats() -> None:
    rig = Rig()
    rig.r[2] = 0x80FF7F01
    for part, unsigned, signed in (("B0", 1, 1), ("B1", 0x7F, 0x7F), ("B2", 0xFF, -1), ("B3", 0x80, -128)):
        rig.run(f"I2F.U8 R4, R2.{part}")
        assert set(rig.r[4].view(np.float32).tolist()) == {unsigned}
        rig.run(f"I2F.S8 R4, R2.{part}")
        assert set(rig.r[4].view(np.float32).tolist()) == {signed}
    rig.run("I2F.S16 R4, R2.H1")
    assert set(rig.r[4].view(np.float32).tolist()) == {0x80FF - 0x10000}
    rig.run("I2FP.F32.U32.RZ R4, R2")
    assert set(rig.r[4].tolist()) == {F32.of(0x80FF7F01 + 0 * F32.value(1), "RZ")}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("to", "source"), list(itertools.permutations(FORMATS, 2)))
def test_floats_become_floats(to: str, source: str, mode: str) -> None:
    if (to, source) == ("BF16", "F64"):
        with pytest.raises(UnsupportedError):
            Rig().run("F2F.BF16.F64 R4, R2")
        return
    for seed in range(12):
        rig = Rig()
        form, wide = FORMATS[to], FORMATS[source]
        patterns = wide.samples(seed, 32)
        # Halfway between two numbers of the result, and the number next to that.
        ties = [form.value(word) for word in form.samples(seed + 99, 8) if form.special(word) is None]
        steps = form.value(1)
        patterns[: len(ties)] = [wide.of(value + steps / 2) for value in ties]
        given(rig, patterns)
        rig.run(named("F2F", to, source, mode) + " R4, R2")
        expected = [form.of(wide.number(word), mode, negative_zero=bool(word & wide.sign)) for word in patterns]
        assert not differences(form, taken(rig, form.bits), expected), (seed, mode)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("kind", FORMATS)
def test_floats_become_whole(kind: str, how: str) -> None:
    form = FORMATS[kind]
    for seed in range(8):
        rig = Rig()
        patterns = form.samples(seed, 32)
        given(rig, patterns)
        rig.run(named("FRND", "" if kind == "F32" else kind, how) + " R4, R2")
        assert not differences(form, taken(rig, form.bits), [form.whole(word, how) for word in patterns])


@pytest.mark.parametrize("mode", ["", "RZ"])
@pytest.mark.parametrize("relu", ["", "RELU"])
@pytest.mark.parametrize("kind", ["F16.F32", "BF16.F32", "", "BF16"])
def test_two_floats_are_packed(kind: str, relu: str, mode: str) -> None:
    form = BF16 if "BF16" in kind else F16

    def converted(word: int) -> int:
        if F32.is_nan(word):
            return 0x7FFF
        made = form.of(F32.number(word), mode, negative_zero=bool(word & F32.sign))
        return 0 if relu and made & form.sign else made

    for seed in range(8):
        rig = Rig()
        rig.r[1:4] = np.array([F32.samples(3 * seed + number, 32) for number in range(3)], np.uint32)
        rig.run(named("F2FP", relu, kind, "PACK_AB", mode) + " R4, R1, R2")
        expected = [converted(int(a)) << 16 | converted(int(b)) for a, b in rig.r[1:3].T]
        assert rig.r[4].tolist() == expected
        rig.run(named("F2FP", relu, kind, "MERGE_C", mode) + " R4, R1, R3")
        expected = [converted(int(a)) | int(c) << 16 & 0xFFFFFFFF for a, c in zip(rig.r[1], rig.r[3], strict=True)]
        assert rig.r[4].tolist() == expected


def test_tensor_floats_keep_ten_bits() -> None:
    rig = Rig()
    rig.r[2] = np.array([0x3F801000, 0x3F803000, 0x3F801001, 0xBF800FFF, 0x7F800001, 0xFF800000, 1, 0x7F7FFFFF] * 4)
    rig.run("F2FP.TF32.F32.PACK_B R4, R2")
    nearest = [0x3F800000, 0x3F804000, 0x3F802000, 0xBF800000, 0x7FFFE000, 0xFF800000, 0, 0x7F800000]
    assert rig.r[4, :8].tolist() == nearest
    rig.run("F2FP.TF32.F32.PACK_B.RZ R4, R2")
    cut = [0x3F800000, 0x3F802000, 0x3F800000, 0xBF800000, 0x7FFFE000, 0xFF800000, 0, 0x7F7FE000]
    assert rig.r[4, :8].tolist() == cut


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(("kind", "form", "largest"), [("E4M3", E4M3, 448.0), ("E5M2", E5M2, 57344.0)])
def test_bytes_are_floats(kind: str, form: Binary, largest: float) -> None:
    finite = [word for word in range(1 << 7) if magnitude(kind, form, word) is not None]
    rig = Rig()
    for start in range(0, 256, 32):
        words = np.arange(start, start + 32, dtype=np.uint32)
        rig.r[2] = words | (255 - words) << 8
        rig.run(f"F2FP.F16.{kind}.UNPACK_B R4, R2")
        for lane, word in enumerate(words.tolist()):
            wanted = magnitude(kind, form, word & 127)
            half = int(rig.r[4, lane]) & 0xFFFF
            if wanted is None:
                assert F16.is_nan(half) or (kind == "E5M2" and half & 0x7FFF == F16.infinity)
            else:
                assert half == (F16.of(wanted) | (word & 128) << 8)
            assert (int(rig.r[4, lane]) >> 16) == unpacked(kind, 255 - word)
        rig.r[3] = rig.r[2] << 16 | 0x55AA
        rig.run(f"F2FP.F16.{kind}.UNPACK_B R5, R3.H1")
        assert rig.r[5].tolist() == rig.r[4].tolist()
    for seed in range(12):
        rig.r[1:4] = np.array([F32.samples(3 * seed + number, 32) for number in range(3)], np.uint32)
        rig.r[1, :16] = [F32.of(float(value)) for value in np.random.default_rng(seed).normal(0, 20, 16)]
        rig.run(f"F2FP.SATFINITE.{kind}.F32.PACK_AB_MERGE_C R4, R1, R2, R3")
        for a, b, c, got in zip(*rig.r[1:5].tolist(), strict=True):
            low, high = (nearest(kind, form, finite, word, largest) for word in (b, a))
            assert got == low | high << 8 | c << 16 & 0xFFFFFFFF, (hex(a), hex(b))


def magnitude(kind: str, form: Binary, word: int) -> float | None:
    """What 7 bits stand for; nothing for NaN and infinities. E4M3 keeps only its last pattern for NaN."""
    if kind == "E4M3" and word >= 0x78:
        return None if word == 0x7F else 256.0 * (1 + (word & 7) / 8)
    return None if word >= form.infinity else float(form.value(word))


def unpacked(kind: str, word: int) -> int:
    rig = Rig()
    rig.r[2] = word
    rig.run(f"F2FP.F16.{kind}.UNPACK_B R4, R2")
    return int(rig.r[4, 0]) & 0xFFFF


def nearest(kind: str, form: Binary, finite: list[int], word: int, largest: float) -> int:
    """The byte nearest to a float32, of two the one with the even pattern."""
    if F32.is_nan(word):
        return 0x7F
    value = min(abs(float(F32.number(word))), largest)
    best = min(finite, key=lambda byte: (abs((magnitude(kind, form, byte) or 0.0) - value), byte & 1))
    return best | (0x80 if word & F32.sign else 0)
