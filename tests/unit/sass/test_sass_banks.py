"""Register-bank conflicts, counted by hand."""

from __future__ import annotations

import pytest

from gemmlab.core.errors import UsageError
from gemmlab.sass.banks import RegisterFile, conflict_cycles, register_file
from gemmlab.sass.blocks import flow_graph
from gemmlab.sass.loops import main_loop
from support.sass_corpus import functions, written


def cycles(arch: str, *lines: str) -> list[int]:
    return conflict_cycles(written(*lines).instructions, arch)


def test_banks_by_architecture() -> None:
    assert register_file("sm_52") == register_file("sm_61") == RegisterFile(4, 1)
    assert register_file("sm_70") == register_file("sm_90a") == RegisterFile(2, 2)
    with pytest.raises(UsageError, match="compute_90"):
        register_file("compute_90")


@pytest.mark.parametrize(
    ("line", "volta", "maxwell"),
    [
        ("FFMA R0, R2, R4, R6", 1, 1),  # all even; of banks 2, 0, 2 of four
        ("FFMA R0, R4, R8, R12", 1, 2),  # all even; three in bank 0 of four
        ("FFMA R0, R2, R4, R7", 0, 0),
        ("FFMA R0, R2, R6, R7", 0, 1),
        ("FFMA R0, R1, R1, R3", 0, 0),  # the same register is read once; R1 and R3 in banks 1 and 3
        ("FFMA R0, R1, R5, R9", 1, 2),
        ("FFMA R0, R2, R4, RZ", 0, 0),
        ("FFMA R0, R2, 0.5, R6", 0, 1),
        ("FFMA R0, R2, c[0x0][0x160], R6", 0, 1),
        ("IADD3 R0, P0, R2, R4, R6", 1, 1),  # a predicate among the operands
        ("IMAD.WIDE R0, R2, R4, R6", 0, 0),  # 64-bit sums come from both banks
        ("LDS.128 R4, [R2]", 0, 0),
    ],
)
def test_one_instruction(line: str, volta: int, maxwell: int) -> None:
    assert cycles("sm_90", line) == [volta]
    assert cycles("sm_52", line) == [maxwell]


def test_a_kept_operand_is_not_read_again() -> None:
    # R2 is kept in the first place by the first, served to the second, kept there too, and served to the third,
    # which does not keep it: the fourth reads three of one bank again.
    kept = ("FFMA R1, R2.reuse, R4, R6", "FFMA R3, R2.reuse, R8, R10", "FFMA R5, R2, R8, R10", "FFMA R7, R2, R8, R10")
    assert cycles("sm_80", *kept) == [1, 0, 0, 1]


def test_it_is_kept_for_its_own_place_alone() -> None:
    assert cycles("sm_80", "FFMA R1, R2.reuse, R4, R7", "FFMA R3, R8, R2, R10") == [0, 1]


def test_another_bank_in_that_place_leaves_it() -> None:
    lines = ("FFMA R1, R2.reuse, R4, R7", "FFMA R3, R5, R8, R10", "FFMA R9, R2, R8, R10")
    assert cycles("sm_80", *lines) == [0, 0, 0]


def test_the_same_bank_in_that_place_drops_it() -> None:
    lines = ("FFMA R1, R2.reuse, R4, R7", "FFMA R3, R12, R8, R11", "FFMA R9, R2, R8, R10")
    assert cycles("sm_80", *lines) == [0, 0, 1]


def test_loads_leave_the_operand_cache_alone() -> None:
    assert cycles("sm_80", "FFMA R1, R2.reuse, R4, R7", "LDS R9, [R12]", "FFMA R3, R2, R8, R10") == [0, 0, 0]


def test_an_outer_product_under_both_rules() -> None:
    # The 16 FFMA of `outer` for sm_80, in order: left factor R4 to R7 four times each, right factor R8 to R11, sums
    # R25 27 29 16 | 18 20 22 24 | 23 21 19 17 | 15 14 13 12; kept are the 1st and 2nd of each four, in the second
    # four also the 3rd, in the third four the 2nd and 3rd.
    # Of two banks: never three of a parity. Of four: 1 (R4 R8), 4 (R4 R16), 7 (R10 R22), 10 (R9 R21), 13 (R7 R15),
    # 16 (R7 R11).
    function = functions("loops", "sm_80")["outer"]
    loop = main_loop(function)
    assert loop is not None
    body = list(flow_graph(function).instructions(*loop.blocks))
    assert sum(conflict_cycles(body, "sm_80")) == 0
    ffma = [c for i, c in zip(body, conflict_cycles(body, "sm_52"), strict=True) if i.opcode == "FFMA"]
    assert [number for number, count in enumerate(ffma, 1) if count] == [1, 4, 7, 10, 13, 16]
    assert sum(conflict_cycles(body, "sm_52")) == 6
