"""Float32 instructions against exact fractions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gemmlab.emulator.form import UnsupportedError
from support.exact_floats import F32, MODES, differences
from support.isa_harness import ALL, Rig, mask, truths

SEEDS = range(12)
MODIFIERS = [".".join(part for part in parts if part) for parts in itertools.product(("", "FTZ"), MODES, ("", "SAT"))]
ONE = F32.of(1.0)


def filled(seed: int) -> Rig:
    rig = Rig()
    for register in range(4):
        rig.r[register] = np.array(F32.samples(11 * seed + register, 32), np.uint32)
    # Cancellation to the last bit, which random numbers never meet.
    rig.r[2, :4] = rig.r[1, :4] ^ 0x80000000
    return rig


def finished(pattern: int, flags: str) -> int:
    if "FTZ" in flags:
        pattern = F32.flushed(pattern)
    if "SAT" not in flags:
        return pattern
    if F32.is_nan(pattern) or pattern & F32.sign:
        return 0
    return min(pattern, ONE)


def operation(opcode: str, flags: str, a: int, b: int, c: int) -> int:
    if "FTZ" in flags:
        a, b, c = (F32.flushed(pattern) for pattern in (a, b, c))
    mode = next((name for name in ("RZ", "RM", "RP") if name in flags), "")
    made = {
        "FADD": lambda: F32.sum(a, b, mode),
        "FMUL": lambda: F32.product(a, b, mode),
        "FFMA": lambda: F32.fused(a, b, c, mode),
    }[opcode]()
    return finished(made, flags)


@pytest.mark.parametrize("flags", MODIFIERS)
@pytest.mark.parametrize("opcode", ["FADD", "FMUL", "FFMA"])
def test_arithmetic_is_rounded_once(opcode: str, flags: str) -> None:
    name = f"{opcode}.{flags}" if flags else opcode
    operands = "R4, R1, R2, R3" if opcode == "FFMA" else "R4, R1, R2"
    for seed in SEEDS:
        rig = filled(seed)
        rig.run(f"{name} {operands}")
        expected = [operation(opcode, flags, *(int(row[lane]) for row in rig.r[1:4])) for lane in range(32)]
        assert not differences(F32, rig.r[4].tolist(), expected)


def test_modified_operations_make_the_hardwares_nan() -> None:
    rig = Rig()
    rig.r[1] = 0xFFC12345
    for text in ("FADD.FTZ R4, R1, RZ", "FMUL.RZ R4, R1, R1", "FFMA.RP R4, R1, R1, R1", "FMNMX R4, R1, R1, PT"):
        rig.r[4] = 0
        rig.run(text)
        assert (rig.r[4] == 0x7FFFFFFF).all(), text


def test_signs_immediates_and_guards() -> None:
    rig = filled(3)
    before = rig.r[4].copy()
    rig.p[0] = 0x0F0F0F0F
    rig.run("@P0 FADD.RZ R4, -|R1|, 1.5", field=F32.of(1.5))
    a, half_more = [int(word) | F32.sign for word in rig.r[1]], F32.of(1.5)
    expected = [
        F32.sum(word, half_more, "RZ") if on else int(old)
        for word, on, old in zip(a, truths(0x0F0F0F0F), before, strict=True)
    ]
    assert not differences(F32, rig.r[4].tolist(), expected)
    rig.run("FADD.RZ RZ, R1, R2")
    rig.run("FADD.RZ R5, RZ, -RZ")
    assert (rig.r[5] == 0).all()


@pytest.mark.in_turns(20)
def test_extremes() -> None:
    for seed, flags, least in itertools.product(SEEDS, ("", ".NAN", ".FTZ", ".FTZ.NAN"), (True, False)):
        rig = filled(seed)
        rig.run(f"FMNMX{flags} R4, R1, R2, {'PT' if least else '!PT'}")
        for lane in range(32):
            a, b = int(rig.r[1, lane]), int(rig.r[2, lane])
            if "FTZ" in flags:
                a, b = F32.flushed(a), F32.flushed(b)
            nans = [F32.is_nan(a), F32.is_nan(b)]
            if all(nans) or (any(nans) and "NAN" in flags):
                wanted = 0x7FFFFFFF
            elif any(nans):
                wanted = b if nans[0] else a
            else:
                wanted = sorted((a, b), key=order)[0 if least else 1]
            assert int(rig.r[4, lane]) == wanted, (hex(a), hex(b), flags)


def order(pattern: int) -> int:
    """Numbers in order, -0 below +0."""
    return -(pattern & 0x7FFFFFFF) - 1 if pattern & F32.sign else pattern


def test_extremes_of_magnitudes_with_the_products_sign() -> None:
    rig = Rig()
    rig.r[1] = np.array([F32.of(value) for value in (1.0, -2.0, 3.0, -4.0)] * 8, np.uint32)
    rig.r[2] = np.array([F32.of(value) for value in (-5.0, -1.0, 2.0, 8.0)] * 8, np.uint32)
    rig.run("FMNMX.XORSIGN R4, |R1|, |R2|, PT")
    assert rig.r[4].view(np.float32)[:4].tolist() == [-1.0, 1.0, 2.0, -4.0]
    rig.run("FMNMX.NAN.XORSIGN R4, |R1|, |R2|, !PT")
    assert rig.r[4].view(np.float32)[:4].tolist() == [-5.0, 2.0, 3.0, -8.0]


COMPARISONS = ("LT", "LE", "GT", "GE", "EQ", "NE")


def compares(name: str, a: int, b: int) -> bool:
    x, y = F32.number(a), F32.number(b)
    unordered = F32.is_nan(a) or F32.is_nan(b)
    if name in {"NUM", "NAN"}:
        return unordered == (name == "NAN")
    if unordered:
        return name.endswith("U")
    return bool(getattr(x, f"__{name.removesuffix('U').lower()}__")(y)) if isinstance(x, type(y)) else mixed(name, x, y)


def mixed(name: str, x: object, y: object) -> bool:
    """An infinity against a fraction, which Python compares only as numbers of one kind."""
    one, two = (item if isinstance(item, float) else 0.0 for item in (x, y))
    return bool(getattr(one, f"__{name.removesuffix('U').lower()}__")(two))


@pytest.mark.parametrize("name", [*COMPARISONS, *(f"{word}U" for word in COMPARISONS), "NUM", "NAN"])
def test_comparisons(name: str) -> None:
    for seed, flags in itertools.product(SEEDS, ("", ".FTZ")):
        rig = filled(seed)
        rig.p[2] = 0x3C3C3C3C
        rig.run(f"FSETP.{name}{flags}.XOR P0, P1, R1, R2, P2")
        rig.run(f"FSET.BF.{name}{flags}.AND R4, R1, R2, PT")
        rig.run(f"FSET.{name}{flags}.OR R5, R1, R2, !P2")
        pairs = [tuple(F32.flushed(int(w)) if flags else int(w) for w in row) for row in rig.r[1:3].T]
        expected = mask([compares(name, a, b) for a, b in pairs])
        assert rig.p[0] == expected ^ 0x3C3C3C3C
        assert rig.p[1] == expected ^ ALL ^ 0x3C3C3C3C
        assert rig.r[4].tolist() == [ONE if on else 0 for on in truths(expected)]
        assert rig.r[5].tolist() == [ALL if on else 0 for on in truths(expected | ~0x3C3C3C3C & ALL)]


def test_selection_moves_bits() -> None:
    rig = filled(5)
    rig.p[1] = 0x00FF00FF
    rig.run("FSEL R4, -R1, |R2|, P1")
    chosen = np.where(truths(0x00FF00FF), rig.r[1] ^ 0x80000000, rig.r[2] & 0x7FFFFFFF)
    assert np.array_equal(rig.r[4], chosen)


def test_the_careful_division_is_asked_for_where_the_quick_one_could_fail() -> None:
    rig = Rig()
    for a, b, careful in (
        (1.0, 3.0, False), (-7.5, 1e-30, False), (1e30, 1e-30, True), (1e-30, 1e30, True), (0.0, 1.0, True),
        (1.0, 0.0, True), (1.0, float("inf"), True), (float("nan"), 1.0, True), (1e-40, 1.0, True), (1.0, 1e-40, True),
        (1.0, 3e38, True), (1e-37, 1e-37, True), (3e38, 3e37, False),
    ):  # fmt: skip
        rig.r[1], rig.r[2] = F32.of(a), F32.of(b)
        rig.run("FCHK P0, R1, R2")
        assert rig.p[0] == (ALL if careful else 0), (a, b)


def test_what_is_not_understood_is_refused() -> None:
    for text in ("FADD.XYZ R4, R1, R2", "FMNMX.RZ R4, R1, R2, PT", "FSETP.LT.SAT.AND P0, PT, R1, R2, PT"):
        with pytest.raises(UnsupportedError, match="not understood"):
            Rig().run(text)
