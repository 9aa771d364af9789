"""What code is made of, on instructions written by hand and on compiled kernels."""

from __future__ import annotations

from collections import Counter

import pytest

from gemmlab.sass import metrics
from gemmlab.sass.blocks import flow_graph
from gemmlab.sass.loops import main_loop
from gemmlab.sass.pipes import pipe
from support.sass_corpus import everything, functions, written

MIXED = written(
    "LDS.128 R0, [R20]",
    "LDS R4, [R20+0x10]",
    "LDG.E.128 R8, desc[UR4][R22.64]",
    "FFMA R12, R0.reuse, R8, R12",
    "FFMA R13, R0, R9, R13",
    "FFMA R14, R1, 0.5, RZ",
    "IMAD R15, R2.reuse, R3.reuse, R4",
    "@P0 MUFU.RCP R16, R15",
    "ISETP.GE.AND P0, PT, R15, R16, PT",
    "UIADD3 UR4, UR4, 0x1, URZ",
    "EXIT",
    "NOP",
).instructions


def test_mixes() -> None:
    opcodes = metrics.opcode_mix(MIXED)
    assert (opcodes["FFMA"], opcodes["LDS"], opcodes["NOP"], opcodes.total()) == (3, 2, 1, 12)
    assert Counter(map(pipe, MIXED)) == {
        "lsu": 3, "fma": 3, "fmaheavy": 1, "xu": 1, "alu": 1, "uniform": 1, "cbu": 1, "none": 1,
    }  # fmt: skip


def test_shares_leave_padding_out() -> None:
    assert metrics.share(MIXED, "FFMA") == pytest.approx(3 / 11)
    assert metrics.share(MIXED, "HMMA") == 0
    assert metrics.share([], "FFMA") == 0
    assert metrics.code_bytes(MIXED) == 192


def test_reuse_counts_registers_that_arithmetic_reads() -> None:
    # FFMA 3 + 3 + 1 (neither RZ nor the literal), IMAD 3, ISETP 2, whose first operands are predicates.
    assert metrics.reuse_rate(MIXED) == pytest.approx(3 / 12)
    assert metrics.reuse_rate(MIXED[:3]) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FFMA R0, R1, R2, R3", 64),
        ("FFMA R0, R1, R2, RZ", 64),
        ("FFMA R0, RZ, R2, R3", 0),
        ("FADD R0, R1, R2", 32),
        ("FADD R0, -RZ, |R2|", 0),
        ("FMUL R0, R1, 0.5", 32),
        ("DFMA R0, R2, R4, R6", 64),
        ("HFMA2 R0, R1, R2, R3", 128),
        ("HFMA2.MMA R0, -RZ, RZ, 0, 1.5", 0),
        ("HADD2.F32 R0, -RZ, R2.H0_H0", 0),
        ("HMMA.16816.F32 R4, R8, R12, R4", 2 * 16 * 8 * 16),
        ("HMMA.1688.F32.TF32 R4, R8, R12, R4", 2 * 16 * 8 * 8),
        ("DMMA.884 R4, R8, R12, R4", 2 * 8 * 8 * 4),
        ("IMMA.16816.S8.S8 R4, R8, R12, R4", 2 * 16 * 8 * 16),
        ("HGMMA.64x8x16.F32 R24, gdesc[UR4], R24, gsb0", 2 * 64 * 8 * 16 // 4),
        ("IMAD R0, R1, R2, R3", 0),
        ("LDG.E R0, desc[UR4][R2.64]", 0),
    ],
)
def test_operations_of_a_warp(text: str, expected: int) -> None:
    assert metrics.flops(written(text).instructions[0]) == expected


def test_a_matrix_without_a_shape() -> None:
    assert metrics.matrix_shape(written("HMMA.F32 R4, R8, R12, R4").instructions[0]) == (0, 0, 0)


def test_every_opcode_of_the_corpus_has_a_pipe() -> None:
    assert {i.opcode for _, _, i in everything() if pipe(i) == "none"} == {"NOP"}


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_a_tiled_loop_reads_its_tiles_128_bits_at_a_time(arch: str) -> None:
    tiled = functions("control", arch)["tiled"]
    loop = main_loop(tiled)
    assert loop is not None
    inside = list(flow_graph(tiled).instructions(*loop.blocks))
    assert {i.name for i in inside if i.opcode == "LDS"} == {"LDS.128"}
    assert metrics.share(inside, "FFMA") > 0.7
    rate = metrics.reuse_rate(inside)
    assert rate is not None
    assert 0.1 < rate < 0.6
