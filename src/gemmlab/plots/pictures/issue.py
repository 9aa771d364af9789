"""Picture of the main loop in the order of its code: the kind of each instruction and its control code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from gemmlab.plots.chart import BLACK, VegaChart
from gemmlab.plots.pictures.drawing import Drawing, Subject
from gemmlab.plots.pictures.kinds import BARRIER, GLOBAL, KINDS, LOAD, MATH, WAITS, kind_of, loop_code
from gemmlab.plots.pictures.sheet import BESIDE, Sheet
from gemmlab.sass.instruction import Instruction
from gemmlab.sass.metrics import opcode_mix

COLUMNS = 40
"""Usual number of instructions in a row of the picture."""
_LETTER, _MARGIN = 0.36, 2.6
_DARK = (MATH, BARRIER, GLOBAL, LOAD)
_NONE = 7
"""Value of `write_barrier` and `read_barrier` in a control code that sets no dependency barrier."""
Value = TypeVar("Value")


def issue_chart(instructions: Sequence[Instruction], columns: int = COLUMNS) -> VegaChart:
    """Draw the mix of opcodes, and below it one square per instruction, in rows of `columns`.

    Marks in a square: a number is the stall field if it is above 1; a yellow bar at the left means that the instruction
    waits for a dependency barrier, a white one at the right that it sets one; a line below means that an operand stays
    in the operand cache (`.reuse`); a line above asks the scheduler for another warp.
    """
    sheet = Sheet(square=18, tall=1.15)
    _strip(sheet, instructions, columns, _mix(sheet, instructions, columns) + 1.0)
    return sheet.chart(KINDS)


def _mix(sheet: Sheet, instructions: Sequence[Instruction], columns: int) -> float:
    """Draw the opcodes as one bar, the most frequent first, with counts below; return the y of the last row."""
    kinds = {instruction.opcode: kind_of(instruction) for instruction in instructions}
    at, beside, row = 0.0, 0.0, 1.6
    for opcode, count in opcode_mix(instructions).most_common():
        wide = columns * count / len(instructions)
        sheet.box(at, 0, kinds[opcode], wide=wide, high=0.9)
        at += wide
        label = f"{count} {opcode}"
        room = _LETTER * len(label) + 1.4
        if beside + room > columns:
            beside, row = 0.0, row + 0.9
        sheet.box(beside, row - 0.25, kinds[opcode], wide=0.5, high=0.5)
        sheet.word(beside + 0.7, row, label, size=10, align="left", colour=BESIDE)
        beside += room
    return row


def _strip(sheet: Sheet, instructions: Sequence[Instruction], columns: int, top: float) -> None:
    rows = [instructions[first : first + columns] for first in range(0, len(instructions), columns)]
    for number, row in enumerate(rows):
        y = top + number
        sheet.word(-0.3, y + 0.5, f"{row[0].address:#06x}", size=9, align="right", colour=BESIDE)
        for x, wide, kind in _runs([kind_of(instruction) for instruction in row]):
            sheet.box(x, y, kind, wide=wide)
        for x, wide, reused in _runs([instruction.control.reuse != 0 for instruction in row]):
            if reused:
                sheet.stroke(x + 0.2, y + 0.86, x + wide - 0.2, y + 0.86, "white", width=1.5)
        for x, instruction in enumerate(row):
            _mark(sheet, x, y, instruction)
    for x in range(1, columns):
        high = len(rows) if x <= len(rows[-1]) else len(rows) - 1
        sheet.stroke(x, top, x, top + high, "white", width=0.5)
    sheet.word(-_MARGIN, top, " ")
    sheet.word(columns, top, " ")


def _mark(sheet: Sheet, x: float, y: float, instruction: Instruction) -> None:
    control = instruction.control
    if control.stall > 1:
        colour = "white" if kind_of(instruction) in _DARK else BLACK
        sheet.word(x + 0.5, y + 0.48, str(control.stall), size=9, colour=colour)
    if control.wait_mask:
        sheet.stroke(x + 0.12, y + 0.12, x + 0.12, y + 0.8, WAITS, width=3)
    if control.write_barrier != _NONE or control.read_barrier != _NONE:
        sheet.stroke(x + 0.9, y + 0.12, x + 0.9, y + 0.8, "white", width=2.5)
    if not control.yield_:
        sheet.stroke(x + 0.25, y + 0.1, x + 0.75, y + 0.1, "white", width=2)


def _runs(values: Sequence[Value]) -> Iterator[tuple[int, int, Value]]:
    """Yield start, length and value of each run of equal values."""
    at = 0
    for value, same in groupby(values):
        wide = len(list(same))
        yield at, wide, value
        at += wide


def _draw(subject: Subject) -> VegaChart:
    return issue_chart(loop_code(subject).instructions)


DRAWING = Drawing(
    name="issue",
    place=62,
    title="The main loop, instruction by instruction",
    caption="Instructions in the order of the code. A number above 1 is the stall field. A yellow bar at the left "
    "marks a wait for a dependency barrier; a white bar at the right marks an instruction that sets one. A line below "
    "means that an operand stays in the operand cache (`.reuse`); a line above means that the scheduler is asked for "
    "another warp.",
    applies=lambda subject: subject.on_gpu and bool(loop_code(subject).instructions),
    draw=_draw,
)
