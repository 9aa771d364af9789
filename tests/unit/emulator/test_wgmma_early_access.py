"""Early accesses to the registers of a warpgroup multiplication count all registers of an operand, not the first."""

from __future__ import annotations

import pytest

from gemmlab.emulator.wgmma_early_access import Touch, touches
from support.isa_harness import program

MULTIPLY = "HGMMA.64x8x8.F32.TF32 R24, R32, gdesc[UR4], R24, gsb0"
"""D is in R24 to R27, A in R32 to R35."""
FENCE, WAIT = "WARPGROUP.ARRIVE", "WARPGROUP.DEPBAR.LE gsb0, 0x0"


def found(*lines: str) -> list[Touch]:
    code = program(*lines, "EXIT")
    return touches(code, [True] * len(code))


@pytest.mark.parametrize(
    ("line", "early"),
    [
        ("IMAD.WIDE R22, R2, R3, R4", False),
        ("IMAD.WIDE R26, R2, R3, R4", True),
        ("IMAD.WIDE.U32 R34, R2, R3, R4", True),
        ("DADD R26, R2, R4", True),
        ("F2F.F64.F32 R30, R2", False),
        ("F2F.F64.F32 R34, R2", True),
        ("HMMA.16816.F32 R20, R4, R8, RZ", False),
        ("HMMA.16816.F32 R22, R4, R8, RZ", True),
        ("LDSM.16.M88.4 R30, [R2]", True),
        ("LDG.E.128 R20, desc[UR4][R2.64]", False),
        ("LDG.E.128 R28, desc[UR4][R2.64]", False),
        ("LDG.E.128 R29, desc[UR4][R2.64]", True),
        ("SYNCS.ARRIVE.TRANS64.A1T0 R23, [R2+URZ], RZ", True),
        ("I2F.U64.RP R23, R2", False),
    ],
)
def test_a_result_of_several_registers_reaches_the_multiplications(line: str, early: bool) -> None:
    assert found(FENCE, MULTIPLY, line, WAIT) == [Touch(2, 1)] * early
    assert found(FENCE, line, MULTIPLY, WAIT) == [Touch(1, 2, fence=True)] * early
    assert not found(line, FENCE, MULTIPLY, WAIT)


@pytest.mark.parametrize(
    ("line", "early"),
    [
        ("STG.E.128 desc[UR4][R2.64], R20", False),
        ("STG.E.128 desc[UR4][R2.64], R22", True),
        ("STS.64 [R2], R23", True),
        ("STSM.16.M88.4 [R2], R22", True),
        ("DMUL R4, R2, R23", True),
        ("LDG.E R4, desc[UR4][R23.64]", True),
        # A may be read, too.
        ("STG.E.128 desc[UR4][R2.64], R32", False),
    ],
)
def test_a_source_of_several_registers_reaches_the_sums(line: str, early: bool) -> None:
    assert found(FENCE, MULTIPLY, line, WAIT) == [Touch(2, 1)] * early
    assert not found(FENCE, MULTIPLY, WAIT, line)
