"""The tile of sums in registers, found from the operands of multiply-adds."""

from __future__ import annotations

from itertools import pairwise

import pytest

from gemmlab.core.errors import UsageError
from gemmlab.kernels.catalog import find_kernel
from gemmlab.plots.pictures import register_tile
from gemmlab.plots.pictures.drawing import Subject
from gemmlab.plots.pictures.kinds import loop_code
from gemmlab.sass.blocks import flow_graph
from gemmlab.sass.loops import main_loop
from gemmlab.sass.register_tile import register_tile as tile_of
from support.picture_charts import found
from support.picture_subjects import subject
from support.sass_corpus import functions, written


def test_the_tile_of_code_that_was_read_by_hand() -> None:
    # The loop of tests/data/sass/loops: two LDS.128 bring R4-R7 and R8-R11, sixteen FFMA follow row by row.
    function = functions("loops", "sm_90")["outer"]
    graph, loop = flow_graph(function), main_loop(function)
    assert loop is not None
    tile = found(tuple(graph.instructions(*loop.own)))
    assert [factor.register for factor in tile.rows] == [4, 5, 6, 7]
    assert [factor.register for factor in tile.columns] == [8, 9, 10, 11]
    assert [factor.address for factor in tile.rows] == ["[R3]", "[R3+0x4]", "[R3+0x8]", "[R3+0xc]"]
    by_hand = [17, 20, 15, 18, 16, 14, 13, 12, 19, 22, 21, 24, 26, 28, 23, 25]
    assert [cell.register for cell in tile.cells] == by_hand
    assert [(cell.row, cell.column) for cell in tile.cells] == [
        (row, column) for row in range(4) for column in range(4)
    ]
    assert [cell.reuse for cell in tile.cells] == [("row",), ("row",), ("row",), ()] * 4
    assert [cell.bank for cell in tile.cells] == [register % 2 for register in by_hand]
    assert (tile.accumulators, tile.steps, tile.banks, tile.opcode) == (16, 1, 2, "FFMA")


def test_values_are_followed_not_registers() -> None:
    # Two steps of k, 2 x 2. In the second one R20 is a factor of the other side, operands change places, and one sum
    # moves from R3 to R9: still two rows, two columns, four sums.
    code = written(
        "LDS.64 R20, [R40]", "LDS.64 R22, [R41+0x8]",
        "FFMA R0, R20, R22.reuse, R0", "FFMA R2, R22, R21, R2", "FFMA R1, R20, R23, R1", "FFMA R9, R23, R21, R3",
        "LDS.64 R24, [R40+0x8]", "LDS.64 R20, [R41+0x10]",
        "FFMA R0, R24, R20, R0", "FFMA R1, R21, R24, R1", "FFMA R2, R20, R25, R2", "FFMA R3, R25, R21, R9",
    ).instructions  # fmt: skip
    tile = found(code)
    assert (len(tile.rows), len(tile.columns), tile.accumulators, tile.steps) == (2, 2, 4, 2)
    # Both steps have four; shown is the first. As many of its factors stand first as second: the side of R20 are rows.
    assert [(cell.row, cell.column, cell.register) for cell in tile.cells] == [
        (0, 0, 0), (1, 0, 2), (0, 1, 1), (1, 1, 9),
    ]  # fmt: skip
    assert tile.cells[0].reuse == ("column",)
    assert [factor.address for factor in tile.columns] == ["[R41+0x8]", "[R41+0xc]"]


def test_what_a_round_reads_first_the_round_before_wrote() -> None:
    # Fetched a step ahead, at the loop's end: the addresses are known all the same.
    code = written("FFMA R0, R8, R12, R0", "FFMA R1, R9, R12, R1", "LDS.64 R8, [R4+0x20]", "LDS R12, [R5]")
    assert [factor.address for factor in found(code.instructions).rows] == ["[R4+0x20]", "[R4+0x24]"]


def test_multiply_adds_that_form_no_tile() -> None:
    assert tile_of(written("IADD3 R0, R1, R2, RZ", "FADD R3, R4, R5").instructions, "sm_90") is None
    # A triangle has no two sides.
    triangle = written("FFMA R0, R4, R5, R0", "FFMA R1, R5, R6, R1", "FFMA R2, R6, R4, R2")
    assert tile_of(triangle.instructions, "sm_90") is None
    # A sum that one step reaches twice lies in two squares.
    twice = written("FFMA R0, R4, R5, R0", "FFMA R0, R4, R6, R0")
    assert tile_of(twice.instructions, "sm_90") is None


def test_conflicts_are_those_of_the_banks() -> None:
    # All three sources of the second one are even: one bank of two ports.
    code = written("FFMA R1, R4, R7, R1", "FFMA R2, R4, R6, R2").instructions
    assert [cell.conflict_cycles for cell in found(code).cells] == [0, 1]


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(("name", "rows", "columns"), [("register_stage", 8, 8), ("conflict_free", 8, 8)])
def test_every_sum_of_a_rung_lies_in_one_square(name: str, rows: int, columns: int) -> None:
    tile = found(loop_code(subject(name)).instructions)
    assert (len(tile.rows), len(tile.columns), tile.accumulators, tile.steps) == (rows, columns, 64, 8)
    assert {(cell.row, cell.column) for cell in tile.cells} == {(r, c) for r in range(rows) for c in range(columns)}
    assert [cell.order for cell in tile.cells] == list(range(64))
    assert len({cell.register for cell in tile.cells}) == 64
    # A quarter of the tile is one LDS.128 of each side: four neighbours, then four more.
    for side in (tile.rows, tile.columns):
        offsets = [factor.offset for factor in side]
        steps = [two - one for one, two in pairwise(offsets)]
        assert [step for place, step in enumerate(steps) if place != 3] == [4] * 6


def test_one_sum_is_no_tile_worth_a_picture() -> None:
    assert not register_tile.DRAWING.applies(subject("block_tile"))
    with pytest.raises(UsageError, match="no tile"):
        register_tile.DRAWING.draw(Subject(find_kernel("packed")))
